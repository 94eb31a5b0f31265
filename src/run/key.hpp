// What a controller looks after, one at a time: an object, or all that belongs to one. Plans may see it.
#pragma once

#include <compare>
#include <string>

namespace run {

struct Key {
  std::string ns;  ///< "": it has none.
  std::string name;
  [[nodiscard]] std::string str() const { return ns.empty() ? name : ns + "/" + name; }
  friend auto operator<=>(const Key&, const Key&) = default;
};

}  // namespace run
