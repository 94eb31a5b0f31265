// Reads the JSON of slurmrestd's data_parsers: texts, numbers, words and lists. For the decoders only.
#pragma once

#include <simdjson.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/rest/decode.hpp"

namespace slurm {

namespace od = simdjson::ondemand;

/// Returns the text; "" if the value is no text, and "?" if the text has invalid escapes.
std::string_view text_of(od::value value);
/// Returns the number as an integer; 0 if the value is no number, or does not fit.
std::int64_t integer_of(od::value value);
bool truth_of(od::value value);
/// Reads {set, infinite, number}, or the plain number of older data_parsers. slurmrestd writes infinite numbers with set false.
Number number_of(od::value value);
/// Reads a number with a fraction, plain or as {set, infinite, number}; nullopt if it is not set.
std::optional<double> fraction_of(od::value value);
std::optional<core::WallTime> time_of(od::value value);
/// Calls `each` for the words of an array, or for the single word of a string.
template <class Each>
void for_words(od::value value, Each each) {
  const od::json_type type = value.type();
  if (type == od::json_type::string) {
    if (const std::string_view word = value.get_string(); !word.empty()) each(word);
  } else if (type == od::json_type::array) {
    for (auto item : value.get_array()) each(text_of(item.value()));
  }
}

std::vector<std::string> words_of(od::value value);

/// Calls `take(path, value)` for each field. Descends into an object if `take` returns false for it.
template <class Take>
void walk(od::object object, const std::string& above, const Take& take) {
  for (auto field : object) {
    const std::string path = above + std::string(std::string_view(field.unescaped_key()));
    od::value value = field.value();
    if (!take(path, value) && value.type() == od::json_type::object) walk(value.get_object(), path + "/", take);
  }
}

/// Thrown for a value that cannot be right. read_document turns it into an error.
struct Nonsense {
  std::string what;
};

void read_errors(od::value value, Envelope& envelope);
void read_warnings(od::value value, Envelope& envelope);
void read_meta(od::value value, Envelope& envelope);
/// Reads a document: fills `envelope` unless null, and passes other keys to `each`. An exception of `each` becomes an error.
core::Result<void> read_document(std::string& body, Envelope* envelope,
                                 const std::function<void(std::string_view key, od::value value)>& each);

template <class T, class RowOf>
core::Result<Decoded<T>> decode_list(std::string body, std::string_view list, RowOf row_of) {
  Decoded<T> out;
  const auto read = read_document(body, &out.envelope, [&](std::string_view key, od::value value) {
    if (key == "last_update") {
      const Number number = number_of(value);
      if (const auto* seconds = std::get_if<std::int64_t>(&number)) out.last_update = *seconds;
    } else if (key == list && value.type() == od::json_type::array) {
      out.present = true;
      for (auto item : value.get_array()) out.rows.push_back(std::make_shared<const T>(row_of(item.get_object())));
    }
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

}  // namespace slurm
