// Key Secrets as observers may know them: whether they are there, and a digest to see changes by.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kube/controller.hpp"
#include "operator/common/names.hpp"
#include "operator/common/status.hpp"

namespace op {

struct SecretFacts {
  KeyRef ref;
  kube::Presence presence = kube::Presence::kUnknown;
  bool has_key = false;  ///< The data key exists and is not empty.
  std::string digest;    ///< Changes when the value changes; the same in every process if the salt of SecretRecords is.
  std::optional<kube::ObjectMeta> meta;

  [[nodiscard]] bool usable() const { return presence == kube::Presence::kPresent && has_key; }
};

SecretFacts read_key(kube::Recorder& recorder, const std::string& ns, const KeyRef& ref);

/// What is wrong with a key that the user named, or what is still awaited.
std::optional<Problem> key_problem(const SecretFacts& facts, std::string_view ns);

}  // namespace op
