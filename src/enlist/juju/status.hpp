// The status of a unit, as `juju status` shows it.
#pragma once

#include <string>
#include <utility>

namespace enlist::juju {

struct Status {
  enum class Kind { kActive, kWaiting, kBlocked };  ///< kBlocked: an administrator has to act.
  Kind kind = Kind::kActive;
  std::string message{};  ///< One line, without secrets.
  friend bool operator==(const Status&, const Status&) = default;
};

inline Status active(std::string message = {}) {
  return {Status::Kind::kActive, std::move(message)};
}
inline Status waiting(std::string message) {
  return {Status::Kind::kWaiting, std::move(message)};
}
inline Status blocked(std::string message) {
  return {Status::Kind::kBlocked, std::move(message)};
}

}  // namespace enlist::juju
