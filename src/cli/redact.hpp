// Takes secrets out of what is to be handed to others. It would rather take too much.
//
//   Redactor redact(values_of_secrets);
//   std::string shown = redact.text(log);          // a log, a configuration file, a message
//   core::Json object = redact.object(pod);        // a resource, without what must not be shown of its kind
//
// Two nets: the values of the Secrets that we could read are taken out wherever they stand; and what looks like a secret is
// taken out whether we know it or not (passwords in assignments, bearer tokens, JWTs, private keys, passwords in URLs, the
// values of environment variables).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"

namespace cli {

inline constexpr std::string_view kRedacted = "(redacted)";

class Redactor {
 public:
  /// `values`: of Secrets, as they are. Short ones are words that stand everywhere.
  explicit Redactor(const std::vector<std::string>& values = {});

  [[nodiscard]] std::string text(std::string_view text) const;
  /// Of a Secret only what describes it, with sizes; the hash of each value with `salt` tells whether two are the same.
  [[nodiscard]] core::Json object(core::Json object, std::string_view salt = "") const;

 private:
  [[nodiscard]] core::Json annotation(std::string_view name, core::Json value) const;
  [[nodiscard]] core::Json member(std::string_view name, core::Json value) const;

  std::vector<std::string> values_;  ///< The longest first, so that none hides in a part of another.
};

}  // namespace cli
