// Shell completion. The program computes the completions: the shell's script calls `kubectl-slurm __complete WORD...` to
// complete the last word. kubectl calls the program for the same purpose under the name kubectl_complete-slurm.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.hpp"

namespace cli {

/// Returns the completion script for "bash", "zsh" or "fish"; nullopt for any other shell.
[[nodiscard]] std::optional<std::string> completion_script(std::string_view shell);

/// The part of a command that completion needs.
struct Completable {
  std::vector<std::string> path;
  std::vector<std::string> options;  ///< "--reason", "-n".
  Names names = Names::kNone;
};

/// Returns the words that can replace the last of `words`. Calls `names_of` only if the last word is a name.
[[nodiscard]] std::vector<std::string> complete(const std::vector<Completable>& commands, const std::vector<std::string>& words,
                                                const std::function<std::vector<std::string>(Names)>& names_of);

}  // namespace cli
