#include "operator/nodeset/registered_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <vector>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

using core::Json;

/// Short options of slurmd(8) that take a value. The value is in the same word as the option, or in the next word. The value of
/// -F is always in the same word.
constexpr std::string_view kTakeValue = "FLNdfn";
/// Long options whose value can be the next word of the command line.
constexpr auto kLongTakeValue = std::to_array<std::string_view>(
    {"--authinfo", "--ca-cert-file", "--conf", "--conf-server", "--extra", "--instance-id", "--instance-type", "--parameters"});
constexpr auto kShells = std::to_array<std::string_view>({"ash", "bash", "dash", "ksh", "sh", "zsh"});
/// Expressions that a shell replaces by the pod's hostname.
constexpr auto kHostnames = std::to_array<std::string_view>(
    {"$(hostname)", "$(hostname -s)", "`hostname`", "`hostname -s`", "$HOSTNAME", "${HOSTNAME}"});

bool among(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

/// A word of a command line after a shell has split the line and removed quotes, but before the shell expands variables.
struct Word {
  std::string text;
  bool literal = false;  ///< The word is in single quotes, so the shell does not expand variables in it.
  bool ends = false;     ///< This is not a word but the end of a command.
};
using Words = std::vector<Word>;

/// Returns the length of the command substitution with which `text` begins. 0: `text` does not begin with one.
std::size_t substitution(std::string_view text) {
  if (text.starts_with('`')) return std::min(text.find('`', 1), text.size() - 1) + 1;
  if (!text.starts_with("$(")) return 0;
  int depth = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  return text.size();
}

void split(std::string_view text, Words& out) {
  Word word;
  bool begun = false;
  char quote = '\0';
  const auto end_word = [&] {
    if (begun) out.push_back(std::move(word));
    word = {};
    begun = false;
  };
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = quote == '\'' ? 0 : substitution(text);
    if (length > 0) {
      word.text += text.substr(0, length);
      begun = true;
    } else if (quote != '\0' ? c == quote : c == '\'' || c == '"') {
      quote = quote == '\0' ? c : '\0';
      word.literal = word.literal || c == '\'';
      begun = true;
    } else if (quote == '\0' && std::string_view(";|&\n").find(c) != std::string_view::npos) {
      end_word();
      out.push_back({"", false, true});
    } else if (quote == '\0' && std::isspace(static_cast<unsigned char>(c)) != 0) {
      end_word();
    } else {
      word.text += c;
      begun = true;
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  end_word();
}

/// A value of slurmd's option -N. `by_shell`: a shell expands the value before slurmd gets it.
struct GivenName {
  std::string text;
  bool by_shell = false;
};
using GivenNames = std::vector<GivenName>;

/// Returns where a word such as -DN or -DNx has the letter of an option that takes a value (N). npos: the word has no such
/// letter.
std::size_t value_option(std::string_view word) {
  if (word.size() < 2 || word[0] != '-') return std::string_view::npos;
  for (std::size_t at = 1; at < word.size() && std::isalpha(static_cast<unsigned char>(word[at])) != 0; ++at) {
    if (kTakeValue.find(word[at]) != std::string_view::npos) return at;
  }
  return std::string_view::npos;
}

void find_names(std::span<const Word> options, bool in_shell, GivenNames& out) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    const Word& word = options[i];
    if (among(kLongTakeValue, word.text)) ++i;
    const std::size_t at = value_option(word.text);
    if (at == std::string_view::npos) continue;
    const bool apart = at + 1 == word.text.size() && word.text[at] != 'F';
    if (apart) ++i;
    if (word.text[at] != 'N') continue;
    if (!apart) {
      out.push_back({word.text.substr(at + 1), in_shell && !word.literal});
    } else if (i < options.size()) {
      out.push_back({options[i].text, in_shell && !options[i].literal});
    } else {
      out.push_back({});
    }
  }
}

/// Finds the values of slurmd's option -N in a shell script. Looks only at commands that start slurmd or pass on the
/// container's arguments, because another command can have an option -N of its own.
void find_in_script(std::string_view script, GivenNames& out) {
  Words words;
  split(script, words);
  for (auto from = words.begin(); from != words.end();) {
    const auto to = std::ranges::find_if(from, words.end(), &Word::ends);
    // Skip the words before the word that starts slurmd, because they can be options of another program: numactl -N 0 slurmd.
    const auto starts = std::find_if(from, to, [](const Word& word) {
      return base_name(word.text) == kAppWorker || word.text.find("entrypoint") != std::string::npos || word.text == "$@" ||
             word.text == "$*";
    });
    find_names({starts, to}, true, out);
    from = to == words.end() ? to : std::next(to);
  }
}

std::vector<std::string> texts(const Json& slurmd, std::string_view list) {
  std::vector<std::string> out;
  const Json* found = core::find(slurmd, {list});
  if (found == nullptr || !found->is_array()) return out;
  for (const Json& item : *found) {
    if (item.is_string()) out.push_back(item.get<std::string>());
  }
  return out;
}

/// An environment variable that the user sets in the container.
struct Variable {
  std::string name, value, field;
};
using Environment = std::span<const Variable>;

std::vector<Variable> read_env(const Json& slurmd) {
  std::vector<Variable> out;
  const Json* env = core::find(slurmd, {"env"});
  if (env == nullptr || !env->is_array()) return out;
  for (const Json& one : *env) {
    out.push_back({core::get_string(one, {"name"}), core::get_string(one, {"value"}),
                   core::get_string(one, {"valueFrom", "fieldRef", "fieldPath"})});
  }
  return out;
}

GivenNames given_names(const Json& slurmd, Environment env) {
  GivenNames out;
  const std::vector<std::string> command = texts(slurmd, "command");
  Words options;
  const bool shell = !command.empty() && among(kShells, base_name(command.front()));
  bool script = false;
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string& before = command[i - 1];
    if (shell && !script && before.starts_with('-') && !before.starts_with("--") && before.ends_with('c')) {
      find_in_script(command[i], out);
      script = true;
      options.clear();
    } else {
      split(command[i], options);
    }
  }
  for (const std::string& arg : texts(slurmd, "args")) split(arg, options);
  const auto daemon = std::ranges::find_if(options, [](const Word& word) { return base_name(word.text) == kAppWorker; });
  find_names({daemon == options.end() ? options.begin() : daemon, options.end()}, false, out);
  // The entrypoint of the images passes the options in SLURMD_OPTIONS to slurmd, before the arguments.
  for (const Variable& variable : env) {
    if (variable.name != "SLURMD_OPTIONS") continue;
    options.clear();
    split(variable.value, options);
    find_names(options, false, out);
  }
  return out;
}

/// Returns the name X of the variable in "$(X)", and in a shell also in "$X" and "${X}". "": the text refers to no variable.
std::string_view referred(const GivenName& name) {
  std::string_view text = name.text;
  if (text.starts_with("$(") && text.ends_with(')')) return text.substr(2, text.size() - 3);
  if (!name.by_shell || !text.starts_with('$')) return {};
  text.remove_prefix(1);
  return text.starts_with('{') && text.ends_with('}') ? text.substr(1, text.size() - 2) : text;
}

/// Decides whether a value of -N is certainly the name by which the operator finds the worker.
class Names {
 public:
  Names(const api::NodeSetSpec& spec, std::string_view nodeset)
      : on_host_(uses_host_network(spec)),
        by_host_(spec.scaling_mode == api::ScalingMode::kDaemonSet),
        like_pod_(!on_host_ && !by_host_ &&
                  host_prefix(core::get_string(spec.pod_template.spec, {"hostname"}), nodeset) == std::string(nodeset) + "-") {}

  [[nodiscard]] bool on_host() const { return on_host_; }

  [[nodiscard]] bool certain(const GivenName& name, Environment env) const {
    const std::string_view variable = referred(name);
    if (on_host_ && variable == kWorkerName) return true;
    // If several variables have the same name, the last one is used. The last variable can refer only to variables before it.
    for (std::size_t i = variable.empty() ? 0 : env.size(); i-- > 0;) {
      if (env[i].name == variable) return certain(env[i], env.first(i));
    }
    return name.by_shell && !on_host_ && among(kHostnames, name.text);
  }

  /// Returns a text that explains how a worker is named in Slurm, and how a user can change its name.
  [[nodiscard]] std::string rule() const {
    if (on_host_) return "with hostNetwork a worker has the name of its Kubernetes node in Slurm";
    if (by_host_) {
      return fmt::format(
          "a worker has the first label of its Kubernetes node's name in Slurm, or what that node's annotation {} says",
          api::kAnnotationNodeHostnameOverride);
    }
    return "a worker has its pod's hostname in Slurm; for the names of Kubernetes nodes, set spec.scalingMode: DaemonSet, or "
           "hostNetwork: true in spec.template.spec";
  }

 private:
  [[nodiscard]] bool certain(const Variable& variable, Environment before) const {
    if (variable.field.empty()) return certain(GivenName{variable.value, false}, before);
    const auto label = [](std::string_view name) { return fmt::format("metadata.labels['{}']", name); };
    if (variable.field == "spec.nodeName") return on_host_;
    if (variable.field == label(api::kLabelPodHostname)) return !on_host_;
    return like_pod_ && (variable.field == "metadata.name" || variable.field == label(api::kLabelPodName));
  }

  bool on_host_, by_host_, like_pod_;
};

}  // namespace

std::string registered_name_problem(const Json& slurmd, const api::NodeSetSpec& spec, std::string_view nodeset) {
  const Names names(spec, nodeset);
  const std::vector<Variable> env = read_env(slurmd);
  if (names.on_host() && std::ranges::find(env, kWorkerName, &Variable::name) != env.end()) {
    return fmt::format("container slurmd: with hostNetwork the variable {} is set by the operator: rename yours", kWorkerName);
  }
  for (const GivenName& name : given_names(slurmd, env)) {
    if (names.certain(name, env)) continue;
    return fmt::format(
        "container slurmd: with the option -N {} it may register under a name by which the operator does not find it: remove "
        "the option, for {}",
        name.text, names.rule());
  }
  return {};
}

}  // namespace op::nodeset
