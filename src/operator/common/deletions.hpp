// Finds out what a deleted object must wait for. Referrers are objects that refer to the deleted object. The deleted object
// waits for referrers that are being deleted as well. A client that deletes several objects sends one request per object, in
// any order. So a deleted object also waits a short time for the deletion of its referrers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// The referrers: objects that refer to the deleted object.
struct Referrers {
  kube::Resource resource;
  /// The field in the spec of a referrer: "accountingRef" if this field names the deleted object, or "controllerRef" if
  /// the referrer and the deleted object name the same Controller in this field.
  std::string field;
  std::string name;  ///< The value of spec.FIELD.name in a referrer.
  // The next members are from the cache.
  std::vector<std::string> ending;  ///< The referrers that are being deleted.
  bool lasting = false;             ///< True if some referrers are not being deleted.
  std::string others;               ///< A text for users: what else needs the deleted object. "": nothing.
};

struct Needed {
  std::string waiting;  ///< A text for users: what the deleted object waits for. "": it does not wait.
  /// True if something might still use the deleted object, so the children of the deleted object must stay. False if the
  /// operator only waits to see whether the referrers are deleted as well.
  bool at_work = false;
};

/// Returns what the deleted object waits for, or nullopt while the API server is being asked. Checks the cached referrers
/// first. If no cached referrer needs the object, reads the referrers from the API server, because a cache can be behind.
std::optional<Needed> needed_by(const plan::Context& context, const kube::ObjectMeta& deleted, const Referrers& referrers,
                                plan::Plan& plan);

}  // namespace op
