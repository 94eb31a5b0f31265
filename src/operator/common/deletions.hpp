// Who deletes several objects at once deletes one after the other, in any order.
#pragma once

#include "core/clock.hpp"
#include "kube/object.hpp"

namespace op {

/// How much longer, after an object was deleted, is waited for others that may be deleted with it.
[[nodiscard]] core::Duration left_for_company(const kube::ObjectMeta& deleted, core::WallTime now);

}  // namespace op
