#include "operator/common/quantity.hpp"

#include <charconv>
#include <cmath>
#include <string>

namespace op {
namespace {

/// What a suffix multiplies by; 0 for an unknown one.
long double factor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  if (suffix == "n") return 1e-9L;
  if (suffix == "u") return 1e-6L;
  if (suffix == "m") return 1e-3L;
  constexpr std::string_view kUnits = "kMGTPE";
  if (suffix.size() == 1) {
    const std::size_t power = kUnits.find(suffix.front());
    return power == std::string_view::npos ? 0 : std::pow(1000.0L, static_cast<long double>(power + 1));
  }
  if (suffix.size() == 2 && suffix.back() == 'i') {
    const std::size_t power = suffix.front() == 'K' ? 0 : kUnits.find(suffix.front());
    if (power == std::string_view::npos || suffix.front() == 'k') return 0;
    return std::pow(1024.0L, static_cast<long double>(power + 1));
  }
  return 0;
}

}  // namespace

std::optional<std::int64_t> quantity(std::string_view text) {
  // from_chars knows exponents, and would take "E" of "2E" for the start of one only when digits follow: as Kubernetes reads
  // it.
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return {};
  const long double scale = factor(text.substr(static_cast<std::size_t>(end - text.data())));
  if (scale == 0) return {};
  const long double exact = static_cast<long double>(number) * scale;
  // A binary fraction of a decimal number may lie a hair beside a whole one: it must not be rounded up for that.
  const long double whole = std::round(exact);
  const bool same = std::fabs(exact - whole) <= 1e-12L * std::fmax(1.0L, exact);
  const long double value = same ? whole : std::ceil(exact);
  if (value > 9.2e18L) return {};
  return static_cast<std::int64_t>(value);
}

std::optional<std::int64_t> quantity_of(const core::Json& value) {
  if (value.is_string()) return quantity(value.get_ref<const std::string&>());
  if (value.is_number()) return quantity(value.dump());
  return {};
}

}  // namespace op
