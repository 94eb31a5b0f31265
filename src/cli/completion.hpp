// Completion in shells. The words come from the program itself: the shell's script asks `kubectl-slurm __complete WORD...`,
// whose last word is the one to be completed, and so does kubectl's own completion by the name kubectl_complete-slurm.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace cli {

/// The script for a shell; nullopt: there is none for it.
[[nodiscard]] std::optional<std::string> completion_script(std::string_view shell);

/// A command as completion knows it.
struct Completable {
  std::vector<std::string> path;
  std::vector<std::string> options;  ///< "--reason", "-n".
  Names names = Names::kNone;
};

/// What the last of these words may become. `names_of` is asked only where a name is wanted.
[[nodiscard]] std::vector<std::string> complete(const std::vector<Completable>& commands, const std::vector<std::string>& words,
                                                const std::function<std::vector<std::string>(Names)>& names_of);

}  // namespace cli
