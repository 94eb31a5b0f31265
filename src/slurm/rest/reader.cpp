#include "slurm/rest/reader.hpp"

#include <algorithm>

namespace slurm {
namespace {

/// Returns the length of the well-formed UTF-8 sequence at `at` (Unicode standard, table 3-7); 0 if there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t ahead) {
    return at + ahead < text.size() ? static_cast<unsigned char>(text[at + ahead]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0U : first < 0xe0 ? 2U : first < 0xf0 ? 3U : first < 0xf5 ? 4U : 0U;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

/// Replies contain text of users, which Slurm passes on unchanged (the name of a job). Replaces invalid UTF-8 by '?' and
/// control characters by spaces, so that one job cannot make the whole table unreadable.
void repair(std::string& body) {
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t length = utf8_length(body, at);
    if (length == 0) body[at] = '?';
    if (static_cast<unsigned char>(body[at]) < ' ') body[at] = ' ';
    at += std::max<std::size_t>(length, 1);
  }
}

}  // namespace

std::string_view text_of(od::value value) {
  std::string_view text;
  if (value.type() != od::json_type::string) return {};
  return value.get_string().get(text) == simdjson::SUCCESS ? text : "?";
}

std::int64_t integer_of(od::value value) {
  od::number number;
  if (value.type() != od::json_type::number || value.get_number().get(number) != simdjson::SUCCESS) return 0;
  const double as_double = number.as_double();
  if (as_double >= 9.2e18 || as_double <= -9.2e18) return 0;
  return number.is_double() ? static_cast<std::int64_t>(as_double) : number.get_int64();
}

bool truth_of(od::value value) {
  return value.type() == od::json_type::boolean && value.get_bool();
}

Number number_of(od::value value) {
  const od::json_type type = value.type();
  if (type == od::json_type::number) return integer_of(value);
  if (type != od::json_type::object) return Unset{};
  bool set = false;
  bool infinite = false;
  std::int64_t number = 0;
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "set") set = truth_of(field.value());
    if (key == "infinite") infinite = truth_of(field.value());
    if (key == "number") number = integer_of(field.value());
  }
  if (infinite) return Infinite{};
  if (!set) return Unset{};
  return number;
}

std::optional<double> fraction_of(od::value value) {
  const od::json_type type = value.type();
  if (type == od::json_type::number) return value.get_double();
  if (type != od::json_type::object) return {};
  bool set = false;
  std::optional<double> number;
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    od::value inner = field.value();
    if (key == "set") set = truth_of(inner);
    if (key == "number" && inner.type() == od::json_type::number) number = inner.get_double();
  }
  return set ? number : std::nullopt;
}

std::optional<core::WallTime> time_of(od::value value) {
  const Number number = number_of(value);
  const auto* seconds = std::get_if<std::int64_t>(&number);
  if (seconds == nullptr || *seconds <= 0) return std::nullopt;
  return core::WallTime{std::chrono::seconds{*seconds}};
}

std::vector<std::string> words_of(od::value value) {
  std::vector<std::string> out;
  for_words(value, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

void read_errors(od::value value, Envelope& envelope) {
  if (value.type() != od::json_type::array) return;
  for (auto item : value.get_array()) {
    RestError error;
    for (auto field : item.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "error_number") error.number = integer_of(field.value());
      if (key == "error") error.text = text_of(field.value());
      if (key == "description") error.description = text_of(field.value());
    }
    envelope.errors.push_back(std::move(error));
  }
}

void read_warnings(od::value value, Envelope& envelope) {
  if (value.type() != od::json_type::array) return;
  for (auto item : value.get_array()) {
    for (auto field : item.get_object()) {
      if (std::string_view(field.unescaped_key()) == "description") envelope.warnings.emplace_back(text_of(field.value()));
    }
  }
}

void read_meta(od::value value, Envelope& envelope) {
  if (value.type() != od::json_type::object) return;
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    od::value inner = field.value();
    if ((key != "slurm" && key != "Slurm") || inner.type() != od::json_type::object) continue;
    for (auto detail : inner.get_object()) {
      const std::string_view name = detail.unescaped_key();
      if (name == "release") envelope.release = text_of(detail.value());
      if (name == "cluster") envelope.cluster = text_of(detail.value());
    }
  }
}

core::Result<void> read_document(std::string& body, Envelope* envelope,
                                 const std::function<void(std::string_view, od::value)>& each) {
  try {
    body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
    const simdjson::padded_string_view text(body.data(), body.size(), body.capacity());
    od::parser parser;
    od::document document;
    simdjson::error_code error = parser.iterate(text).get(document);
    if (error == simdjson::UTF8_ERROR || error == simdjson::UNESCAPED_CHARS) {
      repair(body);
      error = parser.iterate(text).get(document);
    }
    if (error != simdjson::SUCCESS) throw simdjson::simdjson_error(error);
    od::object object = document.get_object();
    for (auto field : object) {
      const std::string_view key = field.unescaped_key();
      od::value value = field.value();
      if (envelope != nullptr && key == "errors") {
        read_errors(value, *envelope);
      } else if (envelope != nullptr && key == "warnings") {
        read_warnings(value, *envelope);
      } else if (envelope != nullptr && key == "meta") {
        read_meta(value, *envelope);
      } else {
        each(key, value);
      }
    }
    return {};
  } catch (const simdjson::simdjson_error& error) {
    return core::fail(core::ErrorCode::kInternal, std::string("a reply that is not valid JSON: ") + error.what());
  } catch (const Nonsense& nonsense) {
    return core::fail(core::ErrorCode::kInternal, "a reply with unexpected content: " + nonsense.what);
  }
}

}  // namespace slurm
