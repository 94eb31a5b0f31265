// Removes secrets from texts and objects that are handed to others. When in doubt, removes too much.
//
//   Redactor redact(values_of_secrets);
//   std::string shown = redact.text(log);          // a log, a configuration file, a message
//   core::Json object = redact.object(pod);        // a resource of any kind
//
// There are two mechanisms. The values of the Secrets that we could read are removed everywhere. Besides, everything that looks
// like a secret is removed: passwords in assignments, bearer tokens, JWTs, private keys, passwords in URLs, and the values of
// environment variables, except some that are known to be harmless.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"

namespace cli {

inline constexpr std::string_view kRedacted = "(redacted)";

class Redactor {
 public:
  /// `values` are the values of Secrets. Short values are ignored, because they may be words that appear everywhere.
  explicit Redactor(const std::vector<std::string>& values = {});

  [[nodiscard]] std::string text(std::string_view text) const;
  /// Returns the resource without secrets and without managedFields. The values of a Secret are replaced by their sizes, and by
  /// hashes with `salt`, which show which values are equal.
  [[nodiscard]] core::Json object(core::Json object, std::string_view salt = "") const;

 private:
  [[nodiscard]] core::Json annotation(std::string_view name, core::Json value) const;
  [[nodiscard]] core::Json member(std::string_view name, core::Json value) const;

  std::vector<std::string> values_;  ///< Sorted by length, the longest first, because one may contain another.
};

}  // namespace cli
