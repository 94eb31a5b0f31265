// Identifies what a controller reconciles in one pass: an object, or objects that belong together. Plans can contain keys.
#pragma once

#include <compare>
#include <string>

namespace run {

struct Key {
  std::string ns;  ///< "" if the key has no namespace.
  std::string name;
  [[nodiscard]] std::string str() const { return ns.empty() ? name : ns + "/" + name; }
  friend auto operator<=>(const Key&, const Key&) = default;
};

}  // namespace run
