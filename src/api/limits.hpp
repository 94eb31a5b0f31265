// Field descriptions that the resources about Slurm's accounting (SlurmQos, SlurmAccount ...) share: names, times and limits.
// Internal to src/api.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "api/slurmqos.hpp"

namespace api::limits {

inline constexpr std::size_t kMaxName = 253;
inline constexpr std::size_t kMaxDescription = 1024;
inline constexpr std::size_t kMaxValue = 64;
inline constexpr std::size_t kMaxList = 256;
/// The largest count. Slurm stores counts in 32 bits and reserves the last three values.
inline constexpr std::int64_t kMaxCount = 4294967292;
/// The largest limit on a TRES: the largest integer that every JSON parser reads exactly.
inline constexpr std::int64_t kMaxTres = 9007199254740991;

inline constexpr const char* kCount = "^(unlimited|default|[0-9]+)$";
inline constexpr const char* kNumber = "^(default|[0-9]+)$";
inline constexpr const char* kTres = "^(unlimited|default|[0-9]+[KMGTP]?)$";
/// The name of a QOS or a cluster.
inline constexpr const char* kLowerName = "^[a-z0-9][a-z0-9_.+-]*$";
/// The name of an account or a user. Slurm ignores the case of these names.
inline constexpr const char* kName = "^[A-Za-z0-9][A-Za-z0-9_.+-]*$";
/// A time in the notation of Slurm or Kubernetes. A plain number is minutes.
inline constexpr const char* kTime =
    R"(^(unlimited|default|[0-9]+|[0-9]+(:[0-9]+){1,2}|[0-9]+-[0-9]+(:[0-9]+){0,2}|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$)";

template <class Owner>
Field value(std::string name, std::optional<IntOrString> Owner::*member, const char* pattern, const std::string& text) {
  return field(std::move(name), member).minimum(0).maximum(kMaxCount).pattern(pattern, kMaxValue).describe(text);
}

template <class Owner>
Field count(std::string name, std::optional<IntOrString> Owner::*member, const std::string& text) {
  return value(std::move(name), member, kCount, text + " A number, unlimited or default.");
}

template <class Owner>
Field wall(std::string name, std::optional<IntOrString> Owner::*member, const std::string& text) {
  return value(std::move(name), member, kTime,
               text +
                   " A time in Slurm's notation (72:00:00, 3-00:00:00, or a number of minutes) or in Kubernetes' (72h), "
                   "unlimited or default. Slurm keeps whole minutes: seconds are rounded up, so that 1:30 is 2 minutes.");
}

template <class Owner>
Field tres(std::string name, TresMap Owner::*member, const std::string& text) {
  Field out = field(std::move(name), member);
  core::Json& item = out.limits["additionalProperties"];
  item["minimum"] = 0;
  item["maximum"] = kMaxTres;
  item["pattern"] = kTres;
  item["maxLength"] = kMaxValue;
  return out.describe(text +
                      " By TRES (cpu, mem, node, gres/gpu, license/NAME): a number, unlimited or default. mem is in MB, or "
                      "has a unit: 100G.");
}

/// Describes a list of `least` to kMaxList names that match `pattern`. `Member` is a vector of strings, or an optional vector.
template <class Owner, class Member>
Field names(std::string name, Member Owner::*member, const char* pattern, std::size_t least, const std::string& text) {
  Field out = field(std::move(name), member).items(least, kMaxList).describe(text);
  core::Json& item = out.limits["items"];
  item["pattern"] = pattern;
  item["maxLength"] = kMaxName;
  return out;
}

/// Returns the rule that the member `name` of a struct cannot be changed, added or removed.
inline Rule name_unchanged() {
  return {"has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",
          "cannot be changed, added or removed", "name"};
}

}  // namespace api::limits
