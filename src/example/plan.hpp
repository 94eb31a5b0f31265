// The decisions of the example program: it keeps the files of a folder equal to those of a list.
//
// This is the smallest program on the engine: one controller and one target, without Kubernetes and Slurm. See
// docs/how-to/add-a-program.md, which quotes this file. sim/programs/example runs it in the simulator.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "plan/evidence.hpp"
#include "plan/plan.hpp"

namespace example {

/// Maps the name of a file to its text.
using Files = std::map<std::string, std::string>;

/// The contents of the disk.
struct Contents {
  Files list;   ///< The files that should exist.
  Files files;  ///< The files of the folder.
  friend bool operator==(const Contents&, const Contents&) = default;
};

/// The first line of each file that the program writes. A file without this line belongs to somebody else.
inline constexpr std::string_view kMark = "# kept by keep-files\n";
[[nodiscard]] inline bool is_ours(std::string_view text) {
  return text.starts_with(kMark);
}

/// Evidence that a file may be removed: the program wrote it, and the list does not name it.
class Unlisted final : public plan::Evidence {
 public:
  [[nodiscard]] static std::optional<Unlisted> of(const plan::Observing& observing, const Contents& contents,
                                                  const std::string& name);
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Unlisted(const plan::Observing& observing, std::string name)
      : Evidence(observing, "Unlisted", "the list does not name it", std::nullopt), name_(std::move(name)) {}
  std::string name_;
};

/// Writes a file. Fails if the file has changed since the observation (`seen`).
struct WriteFile final : plan::Act {
  WriteFile(std::string of, std::string new_text, std::optional<std::string> before)
      : name(std::move(of)), text(std::move(new_text)), seen(std::move(before)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "file.Write"}, {"name", name}, {"text", text}}; }
  std::string name, text;
  std::optional<std::string> seen;  ///< The text of the file when it was observed; nullopt: there was no such file.
};

/// Removes a file. Fails if the evidence no longer holds.
struct RemoveFile final : plan::Act {
  explicit RemoveFile(Unlisted why) : evidence(std::move(why)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "file.Remove"}, {"name", evidence.name()}}; }
  [[nodiscard]] bool destructive() const override { return true; }
  Unlisted evidence;
};

struct Observed {
  core::Result<Contents> contents;           ///< An error means that nothing is known, not that the folder is empty.
  std::map<std::string, Unlisted> unlisted;  ///< Maps the name of a file to the evidence for its removal.
};

[[nodiscard]] plan::Plan plan(const Observed& observed);

}  // namespace example
