#include "core/quantity.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

namespace core {
namespace {

/// Removes a leading sign. Returns true for a minus.
bool take_sign(std::string_view& text) {
  const bool minus = text.starts_with('-');
  if (minus || text.starts_with('+')) text.remove_prefix(1);
  return minus;
}

std::string_view take_digits(std::string_view& text) {
  const std::string_view digits = text.substr(0, text.find_first_not_of("0123456789"));
  text.remove_prefix(digits.size());
  return digits;
}

/// The factor of a number: 2^twos * 10^tens.
struct Scale {
  int twos = 0, tens = 0;
};

/// Returns the scale of a suffix ("", "Ki", "m", "e-3"); nullopt for any other text.
std::optional<Scale> scale_of(std::string_view suffix) {
  constexpr std::string_view kBinary = "KMGTPE";
  constexpr std::string_view kDecimal = "numkMGTPE";  // 10^-9, 10^-6 ...
  if (suffix.empty()) return Scale{};
  if (suffix.size() == 1) {
    const std::size_t power = kDecimal.find(suffix.front());
    if (power == std::string_view::npos) return std::nullopt;
    // kDecimal has no letter for 10^0, so the powers before "k" have another offset.
    return Scale{0, 3 * (static_cast<int>(power) - (power < 3 ? 3 : 2))};
  }
  if (suffix.size() == 2 && suffix.back() == 'i') {
    const std::size_t power = kBinary.find(suffix.front());
    if (power == std::string_view::npos) return std::nullopt;
    return Scale{10 * (static_cast<int>(power) + 1), 0};
  }
  if (suffix.front() != 'e' && suffix.front() != 'E') return std::nullopt;
  suffix.remove_prefix(1);
  const bool minus = take_sign(suffix);
  const std::string exponent(take_digits(suffix));
  if (exponent.empty() || exponent.size() > 2 || !suffix.empty()) return std::nullopt;
  return Scale{0, minus ? -std::stoi(exponent) : std::stoi(exponent)};
}

std::optional<long double> parse(std::string_view text) {
  const bool minus = take_sign(text);
  std::string digits(take_digits(text));
  int tens = 0;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const std::string_view fraction = take_digits(text);
    digits += fraction;
    tens = -static_cast<int>(fraction.size());
  }
  const std::optional<Scale> scale = scale_of(text);
  if (!scale || digits.empty() || digits.size() > 18) return std::nullopt;
  tens += scale->tens;
  // Scales by a single power of ten, so that equal quantities give equal results.
  const long double up = std::ldexp(static_cast<long double>(std::stoull(digits)), scale->twos);
  const long double value = tens >= 0 ? up * std::pow(10.0L, tens) : up / std::pow(10.0L, -tens);
  return minus ? -value : value;
}

}  // namespace

std::optional<long double> quantity(const Json& value) {
  if (value.is_string()) return parse(value.get_ref<const std::string&>());
  if (value.is_number()) return parse(value.dump());
  return std::nullopt;
}

}  // namespace core
