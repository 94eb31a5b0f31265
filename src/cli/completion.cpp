#include "cli/completion.hpp"

#include <algorithm>
#include <set>

namespace cli {
namespace {

constexpr std::string_view kBash =
    R"(# kubectl-slurm: completion for bash. Load it with: source <(kubectl slurm completion bash)
_kubectl_slurm() {
  local IFS=$'\n'
  COMPREPLY=($(kubectl-slurm __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | grep -v '^:'))
}
complete -F _kubectl_slurm kubectl-slurm
)";
constexpr std::string_view kZsh = R"(#compdef kubectl-slurm
# kubectl-slurm: completion for zsh. Load it with: source <(kubectl slurm completion zsh)
_kubectl_slurm() {
  local -a words_found
  words_found=("${(@f)$(kubectl-slurm __complete "${(@)words[2,CURRENT]}" 2>/dev/null | grep -v '^:')}")
  compadd -- $words_found
}
compdef _kubectl_slurm kubectl-slurm
)";
constexpr std::string_view kFish = R"(# kubectl-slurm: completion for fish. Load it with: kubectl slurm completion fish | source
complete -c kubectl-slurm -f -a '(kubectl-slurm __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null | string match -v ":*")'
)";

/// Returns the number of words in the path if `words` begin with it, else -1.
std::ptrdiff_t matched(const std::vector<std::string>& path, const std::vector<std::string>& words) {
  if (words.size() < path.size() || !std::equal(path.begin(), path.end(), words.begin())) return -1;
  return static_cast<std::ptrdiff_t>(path.size());
}

}  // namespace

std::optional<std::string> completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(kBash);
  if (shell == "zsh") return std::string(kZsh);
  if (shell == "fish") return std::string(kFish);
  return std::nullopt;
}

std::vector<std::string> complete(const std::vector<Completable>& commands, const std::vector<std::string>& words,
                                  const std::function<std::vector<std::string>(Names)>& names_of) {
  const std::string begun = words.empty() ? "" : words.back();
  std::vector<std::string> before(words.begin(), words.empty() ? words.end() : words.end() - 1);
  std::set<std::string> out;
  const auto offer = [&](const std::string& word) {
    if (word.starts_with(begun)) out.insert(word);
  };
  for (const Completable& command : commands) {
    if (matched(command.path, before) >= 0) {
      if (begun.starts_with('-')) {
        std::ranges::for_each(command.options, offer);
      } else if (command.names != Names::kNone && (before.empty() || !before.back().starts_with('-'))) {
        std::ranges::for_each(names_of(command.names), offer);
      }
    } else if (before.size() < command.path.size() && std::equal(before.begin(), before.end(), command.path.begin())) {
      offer(command.path[before.size()]);
    }
  }
  return {out.begin(), out.end()};
}

}  // namespace cli
