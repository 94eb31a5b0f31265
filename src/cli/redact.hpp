// Removes secrets from texts and objects that users pass on. If unsure whether a text is secret, removes the text.
//
//   Redactor redact(values_of_secrets);
//   std::string shown = redact.text(log);          // a log, a configuration file, a message
//   core::Json object = redact.object(pod);        // a resource of any kind
//
// Two mechanisms remove secrets. The values of the Secrets that we could read are removed from all texts and objects.
// Everything that looks like a secret is removed as well: passwords in assignments, bearer tokens, JWTs, private keys,
// passwords in URLs, and the values of environment variables other than a few harmless ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"

namespace cli {

inline constexpr std::string_view kRedacted = "(redacted)";

class Redactor {
 public:
  /// `values` are the values of Secrets. Ignores short values, because they might be ordinary words.
  explicit Redactor(const std::vector<std::string>& values = {});

  [[nodiscard]] std::string text(std::string_view text) const;
  /// Returns the resource without secrets and managedFields. Replaces the values of a Secret by their sizes and by hashes
  /// salted with `salt`. Equal values have equal hashes.
  [[nodiscard]] core::Json object(core::Json object, std::string_view salt = "") const;

 private:
  [[nodiscard]] core::Json annotation(std::string_view name, core::Json value) const;
  [[nodiscard]] core::Json member(std::string_view name, core::Json value) const;

  std::vector<std::string> values_;  ///< Sorted by length, the longest first, because one value can contain another.
};

}  // namespace cli
