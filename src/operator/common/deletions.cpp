#include "operator/common/deletions.hpp"

#include <optional>

namespace op {

core::Duration left_for_company(const kube::ObjectMeta& deleted, core::WallTime now) {
  constexpr core::Duration kCompany{3000};
  const std::optional<core::WallTime>& since = deleted.deletion_timestamp;
  if (!since) return core::Duration{0};
  const core::Duration left = *since + kCompany - now;
  // A clock that is far behind the API server's is none to wait by.
  return left > 2 * kCompany ? core::Duration{0} : left;
}

}  // namespace op
