// What a deleted object waits for before it goes: those that refer to it and are being deleted as well. Who deletes several
// objects at once deletes one after the other, in any order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kube/object.hpp"
#include "plan/plan.hpp"

namespace op {

/// Objects that refer to the one that was deleted.
struct Referrers {
  kube::Resource resource;
  std::string field;  ///< The field of their spec that names it, or names the same object as it does.
  std::string name;   ///< What stands there.
  // As the cache has them.
  std::vector<std::string> ending;  ///< Those that are being deleted.
  bool lasting = false;             ///< There are others.
  std::string others;               ///< What else needs it, in words, or "".
};

struct Needed {
  std::string waiting;   ///< What for, in words; "": nothing needs it any more.
  bool at_work = false;  ///< What needs it may use it, so it must be there; otherwise it only waits for more deletions.
};

/// Looks at the cache first; where that shows nothing, the API server is asked, for a cache may be behind. nullopt: it is being
/// asked.
std::optional<Needed> needed_by(const plan::Context& context, const kube::ObjectMeta& deleted, const Referrers& referrers,
                                plan::Plan& plan);

}  // namespace op
