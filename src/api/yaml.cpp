#include <regex>

#include "api/kinds.hpp"

namespace api {
namespace {

using core::Json;

/// Reports whether a text needs no quotes in YAML 1.1 and 1.2. Other texts get JSON quotes, which YAML accepts.
bool is_plain(const std::string& text) {
  static const std::regex kPlain(R"([A-Za-z/<(][-A-Za-z0-9_./<>()=,; ]*[-A-Za-z0-9_./>)]|[A-Za-z])");
  static const std::regex kSpecial("(y|n|yes|no|on|off|true|false|null)", std::regex::icase);
  return std::regex_match(text, kPlain) && !std::regex_match(text, kSpecial) && text.size() < 4096;
}

std::string scalar(const Json& json) {
  if (json.is_string() && is_plain(json.get_ref<const std::string&>())) return json.get<std::string>();
  return json.dump();
}

bool is_block(const Json& json) {
  return json.is_structured() && !json.empty();
}

void write(const Json& json, std::size_t indent, std::string& out);

/// Writes the value that follows "key:" or "-".
void write_value(const Json& json, std::size_t indent, std::string& out) {
  if (is_block(json)) {
    out += "\n";
    write(json, indent, out);
  } else {
    out += " " + scalar(json) + "\n";
  }
}

void write(const Json& json, std::size_t indent, std::string& out) {
  const std::string margin(indent, ' ');
  if (json.is_array()) {
    for (const Json& item : json) {
      if (!is_block(item)) {
        out += margin + "- " + scalar(item) + "\n";
        continue;
      }
      std::string block;
      write(item, indent + 2, block);
      block[indent] = '-';
      out += block;
    }
    return;
  }
  for (const auto& [key, value] : json.items()) {
    out += margin + scalar(Json(key)) + ":";
    write_value(value, indent + (value.is_array() ? 0 : 2), out);
  }
}

}  // namespace

std::string to_yaml(const Json& json) {
  if (!is_block(json)) return scalar(json) + "\n";
  std::string out;
  write(json, 0, out);
  return out;
}

}  // namespace api
