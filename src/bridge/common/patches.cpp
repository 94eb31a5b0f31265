#include "bridge/common/patches.hpp"

#include <utility>

namespace bridge {
namespace {

/// Escapes a name as a part of a JSON pointer.
std::string pointer(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

core::Json add_op(std::string path, core::Json value) {
  return {{"op", "add"}, {"path", std::move(path)}, {"value", std::move(value)}};
}

void add_entry(core::Json& patch, const std::string& map, bool there_is_one, std::string_view name, std::string value) {
  if (!there_is_one) return patch.push_back(add_op(map, {{name, std::move(value)}}));
  patch.push_back(add_op(map + "/" + pointer(name), std::move(value)));
}

}  // namespace bridge
