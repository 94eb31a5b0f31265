// Output for users: tables for people, documents for programs. Adds colours only if the terminal shows colours.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"

namespace cli {

enum class Format { kTable, kJson, kYaml };

enum class Tone { kPlain, kGood, kWarn, kBad, kStrong };

/// Adds colours to text for a terminal, or leaves the text unchanged.
class Style {
 public:
  explicit Style(bool colours = false) : colours_(colours) {}
  [[nodiscard]] std::string paint(Tone tone, std::string_view text) const;
  [[nodiscard]] bool colours() const { return colours_; }

 private:
  bool colours_;
};

/// Returns true for a terminal that is not dumb, unless NO_COLOR is set (https://no-color.org).
[[nodiscard]] bool wants_colours(bool is_terminal, const std::function<std::string(const char*)>& env);

/// A table. Each column is as wide as its widest cell; two spaces separate columns. Omits a column without content.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  struct Cell {
    std::string text;
    Tone tone = Tone::kPlain;
    Cell(std::string of, Tone with = Tone::kPlain) : text(std::move(of)), tone(with) {}  // NOLINT(google-explicit-constructor)
    Cell(const char* of) : text(of) {}                                                   // NOLINT(google-explicit-constructor)
  };
  void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  /// Hides the column with this header. Call it after all rows are added.
  void drop(std::string_view header);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string text(const Style& style, std::string_view margin = "") const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<Cell>> rows_;
};

/// Renders the document in the format that the user chose, with a line end.
[[nodiscard]] std::string render(const core::Json& document, Format format);

/// Formats a duration: "45s", "12m", "3h12m", "2d4h".
[[nodiscard]] std::string short_duration(core::Duration time);

/// Formats a time in RFC 3339 with its distance from now: "2026-01-02T03:00:00Z (5m ago)". Returns other text unchanged.
[[nodiscard]] std::string moment_text(const std::string& time, core::WallTime now);

/// Formats minutes as Slurm does: "00:30:00", "1-12:00:00".
[[nodiscard]] std::string slurm_minutes(std::int64_t minutes);
/// Formats a count of a TRES as sacctmgr does: "8", and "1500M" or "2G" for memory, which is counted in MiB.
[[nodiscard]] std::string tres_count(std::string_view tres, std::int64_t count);

/// Replaces control characters in text from others, because such characters could move the terminal's cursor.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace cli
