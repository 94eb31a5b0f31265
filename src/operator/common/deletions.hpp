// Finds what a deleted object waits for: objects that refer to it and are being deleted as well. A client that deletes several
// objects sends one request for each, in any order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// The objects that refer to the deleted one.
struct Referrers {
  kube::Resource resource;
  std::string field;  ///< The field in the spec of a referrer: "accountingRef" if it names the deleted object itself, or
                      ///< "controllerRef" if both name the same Controller.
  std::string name;   ///< The name in that field.
  // The next members are from the cache.
  std::vector<std::string> ending;  ///< The referrers that are being deleted.
  bool lasting = false;             ///< True if some referrers are not being deleted.
  std::string others;               ///< What else needs the deleted object, for users; "": nothing.
};

struct Needed {
  std::string waiting;  ///< What the object waits for, for users. "": nothing needs it any more.
  /// True if something may still use the object, so its children must stay. False: the object only waits to see whether its
  /// referrers are deleted as well.
  bool at_work = false;
};

/// Returns what the deleted object waits for; nullopt until that is known. Checks the cached referrers first. If none of them
/// needs the object, reads the referrers from the API server, because a cache may be behind.
std::optional<Needed> needed_by(const plan::Context& context, const kube::ObjectMeta& deleted, const Referrers& referrers,
                                plan::Plan& plan);

}  // namespace op
