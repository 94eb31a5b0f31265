#include "cli/terminal.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "api/kinds.hpp"

namespace cli {
namespace {

std::string_view code_of(Tone tone) {
  switch (tone) {
    case Tone::kGood:
      return "32";
    case Tone::kWarn:
      return "33";
    case Tone::kBad:
      return "31";
    case Tone::kStrong:
      return "1";
    case Tone::kPlain:
      break;
  }
  return "";
}

/// Counts characters, not bytes.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

std::string Style::paint(Tone tone, std::string_view text) const {
  const std::string_view code = code_of(tone);
  if (!colours_ || code.empty()) return std::string(text);
  return fmt::format("\033[{}m{}\033[0m", code, text);
}

bool wants_colours(bool is_terminal, const std::function<std::string(const char*)>& env) {
  return is_terminal && env("NO_COLOR").empty() && env("TERM") != "dumb";
}

void Table::drop(std::string_view header) {
  for (std::size_t i = 0; i < header_.size(); ++i) {
    if (header_[i] != header) continue;
    for (std::vector<Cell>& row : rows_) {
      if (i < row.size()) row[i] = Cell("");
    }
  }
}

std::string Table::text(const Style& style, std::string_view margin) const {
  std::vector<std::size_t> widths(header_.size(), 0);
  for (const std::vector<Cell>& row : rows_) {
    for (std::size_t i = 0; i < std::min(row.size(), widths.size()); ++i)
      widths[i] = std::max(widths[i], width_of(printable(row[i].text)));
  }
  std::string out;
  const auto write = [&](const std::vector<Cell>& row) {
    std::string line(margin);
    std::size_t owed = 0;
    for (std::size_t i = 0; i < header_.size(); ++i) {
      if (widths[i] == 0) continue;
      const Cell cell = i < row.size() ? row[i] : Cell("");
      const std::string shown = printable(cell.text);
      line.append(owed, ' ').append(style.paint(cell.tone, shown));
      owed = std::max(widths[i], width_of(header_[i])) - width_of(shown) + 2;
    }
    while (line.ends_with(' ')) line.pop_back();
    out += line + "\n";
  };
  write({header_.begin(), header_.end()});
  for (const std::vector<Cell>& row : rows_) write(row);
  return out;
}

std::string render(const core::Json& document, Format format) {
  if (format == Format::kYaml) return api::to_yaml(document);
  return document.dump(2, ' ', false, core::Json::error_handler_t::replace) + "\n";
}

std::string short_duration(core::Duration time) {
  using std::chrono::duration_cast;
  const auto seconds = duration_cast<std::chrono::seconds>(std::max(time, core::Duration{0})).count();
  if (seconds < 60) return fmt::format("{}s", seconds);
  const auto minutes = seconds / 60;
  if (minutes < 60) return fmt::format("{}m", minutes);
  const auto hours = minutes / 60;
  if (hours < 24) return minutes % 60 == 0 ? fmt::format("{}h", hours) : fmt::format("{}h{}m", hours, minutes % 60);
  return hours % 24 == 0 ? fmt::format("{}d", hours / 24) : fmt::format("{}d{}h", hours / 24, hours % 24);
}

std::string moment_text(const std::string& time, core::WallTime now) {
  const auto at = core::parse_rfc3339(time);
  if (!at) return time;
  return time + (*at > now ? " (in " + short_duration(*at - now) + ")" : " (" + short_duration(now - *at) + " ago)");
}

std::string slurm_minutes(std::int64_t minutes) {
  const std::string time = fmt::format("{:02}:{:02}:00", minutes / 60 % 24, minutes % 60);
  return minutes < 24 * 60 ? time : fmt::format("{}-{}", minutes / (24 * 60), time);
}

std::string tres_count(std::string_view tres, std::int64_t count) {
  if (tres != "mem") return std::to_string(count);
  constexpr std::string_view kUnits = "MGTP";
  std::size_t unit = 0;
  for (; unit + 1 < kUnits.size() && count != 0 && count % 1024 == 0; ++unit) count /= 1024;
  return std::to_string(count) + kUnits[unit];
}

std::string printable(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(
      out, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, ' ');
  return out;
}

}  // namespace cli
