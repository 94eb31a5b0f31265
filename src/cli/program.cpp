#include "cli/program.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include "cli/completion.hpp"
#include "cli/why_target.hpp"
#include "slinky/names.hpp"

namespace cli {
namespace {

constexpr std::string_view kAbout =
    "Slurm clusters on Kubernetes: what they do, what they wait for and why, and what operators of a cluster do every day.\n"
    "It needs nothing but a kubeconfig.";

/// Returns a command that prints a text and reads nothing from the API server.
Command printing_command(std::string path, std::string about, std::string text) {
  Command out{.path = std::move(path), .about = std::move(about), .declare = {}};
  out.declare = [text = std::move(text)](CLI::App&) {
    return [text](Context& context) -> int {
      context.out(text);
      return kDone;
    };
  };
  return out;
}

std::string version_text(const std::string& version) {
  return "kubectl-slurm " + version + "\n";
}

/// Returns all commands, in the order of the help.
std::vector<Command> all_commands(const std::string& version) {
  std::vector<Command> out{status_command(), tree_command(), why_command(), drain_command(), resume_command()};
  std::ranges::move(rollout_commands(), std::back_inserter(out));
  out.push_back(release_command());
  out.push_back(support_bundle_command());
  for (const std::string shell : {"bash", "zsh", "fish"})
    out.push_back(printing_command("completion " + shell, "Print the completion script for " + shell,
                                   completion_script(shell).value_or("")));
  out.push_back(printing_command("version", "Print the version", version_text(version)));
  return out;
}

std::vector<std::string> words_of(const std::string& path) {
  std::istringstream in(path);
  return {std::istream_iterator<std::string>(in), {}};
}

/// The declared command line: CLI11's tree, and the function to run for each leaf.
struct Tree {
  CLI::App root;
  Options options;
  std::vector<Command> commands;
  std::map<const CLI::App*, std::pair<const Command*, Run>> leaves;

  explicit Tree(const std::string& version) : root(std::string(kAbout), "kubectl slurm"), commands(all_commands(version)) {
    root.require_subcommand(1);
    root.set_version_flag("--version", version);
    for (const Command& command : commands) {
      CLI::App* leaf = place(words_of(command.path));
      leaf->description(command.about);
      Run run = command.declare(*leaf);
      add_options(*leaf, command);
      leaves.emplace(leaf, std::pair(&command, std::move(run)));
    }
  }

  CLI::App* place(const std::vector<std::string>& path) {
    CLI::App* at = &root;
    for (const std::string& word : path) {
      const auto found = at->get_subcommands([&](const CLI::App* app) { return app->get_name() == word; });
      CLI::App* next = found.empty() ? at->add_subcommand(word) : found.front();
      if (&word != &path.back()) next->require_subcommand(1);
      at = next;
    }
    return at;
  }

  void add_options(CLI::App& leaf, const Command& command) {
    const std::string common = "Options of all commands";
    leaf.add_option("-n,--namespace", options.ns, "Namespace (default: of the context)")->group(common);
    leaf.add_option("--kubeconfig", options.kubeconfig, "Path of a kubeconfig (default: $KUBECONFIG, ~/.kube/config)")
        ->group(common);
    leaf.add_option("--context", options.context, "Context of the kubeconfig (default: its current one)")->group(common);
    if (command.all_namespaces) leaf.add_flag("-A,--all-namespaces", options.all_namespaces, "All namespaces");
    if (!command.formats) return;
    const std::map<std::string, Format> formats{{"table", Format::kTable}, {"json", Format::kJson}, {"yaml", Format::kYaml}};
    leaf.add_option("-o,--output", options.format, "table, json or yaml")
        ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case));
  }

  [[nodiscard]] std::vector<Completable> completables() const {
    std::vector<Completable> out{{{"help"}, {}}};
    for (const auto& [leaf, what] : leaves) {
      Completable command{words_of(what.first->path), {}, what.first->names};
      for (const CLI::Option* option : leaf->get_options()) {
        for (const std::string& name : option->get_lnames()) command.options.push_back("--" + name);
        for (const std::string& name : option->get_snames()) command.options.push_back("-" + name);
      }
      out.push_back(std::move(command));
    }
    return out;
  }
};

/// Returns the existing names. If the API server does not answer, returns none, because a shell is waiting.
std::vector<std::string> existing(Context& context, Names names) {
  auto api = context.api();
  if (!api) return {};
  ListRequest request{slinky::resources::kController, context.one_ns()};
  if (names == Names::kNodeSets) request.resource = slinky::resources::kNodeSet;
  if (names == Names::kWorkers) {
    request.resource = kube::resources::kPod;
    request.label_selector = std::string(api::kLabelName) + "=" + std::string(slinky::kAppWorker);
  }
  if (names == Names::kWaitingPods) {
    request.resource = kube::resources::kPod;
    request.field_selector = "status.phase=Pending";
  }
  request.metadata_only = true;
  const auto found = (*api)->list(request);
  std::vector<std::string> out;
  if (!found) return out;
  for (const core::Json& object : *found) out.push_back(kube::key_of(object).name);
  return out;
}

int run_completion(const Outside& outside, const std::vector<std::string>& words) {
  const Tree tree(outside.version);
  Options options;
  // The words typed so far say where to look up names.
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == "-n" || words[i] == "--namespace") options.ns = words[i + 1];
    if (words[i] == "--context") options.context = words[i + 1];
    if (words[i] == "--kubeconfig") options.kubeconfig = words[i + 1];
  }
  Context context(
      options, outside.open, Style(), outside.write_out, [](std::string_view) {}, outside.ask);
  const auto names_of = [&](Names names) {
    std::vector<std::string> out = existing(context, names);
    const bool after_kind = words.size() > 1 && means_pods(words[words.size() - 2]);
    if (names == Names::kWaitingPods && !after_kind)
      std::ranges::for_each(out, [](std::string& name) { name = "pod/" + name; });
    return out;
  };
  for (const std::string& word : complete(tree.completables(), words, names_of)) outside.write_out(word + "\n");
  // Tells kubectl not to offer file names.
  outside.write_out(":4\n");
  return kDone;
}

/// Turns `help status` into `status --help`.
std::vector<std::string> without_help(std::vector<std::string> arguments) {
  if (arguments.empty()) return {"--help"};
  if (arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

/// Returns the help of a command. The help of the root also lists `help`, which is not in the tree.
std::string help_of(const CLI::App& app, const CLI::App& root) {
  std::string text = app.help();
  if (&app == &root) text += "  help                        Explain a command\n";
  return text;
}

const CLI::App* chosen(const CLI::App& root) {
  const CLI::App* at = &root;
  while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
  return at;
}

}  // namespace

int run_program(const Outside& outside, std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "__complete")
    return run_completion(outside, {arguments.begin() + 1, arguments.end()});
  if (arguments == std::vector<std::string>{"--version"}) {
    outside.write_out(version_text(outside.version));
    return kDone;
  }
  Tree tree(outside.version);
  arguments = without_help(std::move(arguments));
  std::ranges::reverse(arguments);
  try {
    tree.root.parse(arguments);
  } catch (const CLI::CallForHelp&) {
    outside.write_out(help_of(*chosen(tree.root), tree.root));
    return kDone;
  } catch (const CLI::ParseError& error) {
    const CLI::App* at = chosen(tree.root);
    outside.write_err(std::string("error: ") + error.what() + "\nSee " +
                      (at == &tree.root ? "" : at->get_parent()->get_name() + " ") + at->get_name() + " --help\n");
    return kUsage;
  }
  const auto leaf = tree.leaves.find(chosen(tree.root));
  if (leaf == tree.leaves.end()) return kUsage;
  Context context(tree.options, outside.open, Style(wants_colours(outside.is_terminal, outside.env)), outside.write_out,
                  outside.write_err, outside.ask);
  return leaf->second.second(context);
}

Outside real_outside(std::string version) {
  Outside out;
  out.version = std::move(version);
  out.open = [](const Options& options) { return open_session(options.kubeconfig, options.context); };
  out.write_out = [](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  };
  out.write_err = [](std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); };
  out.ask = [](const std::string& question) {
    if (isatty(STDIN_FILENO) == 0) return false;
    std::fprintf(stderr, "%s [y/N] ", question.c_str());
    std::string answer;
    std::getline(std::cin, answer);
    return answer == "y" || answer == "Y" || answer == "yes";
  };
  out.env = [](const char* name) {
    const char* value = std::getenv(name);  // nothing changes the environment
    return std::string(value == nullptr ? "" : value);
  };
  out.is_terminal = isatty(STDOUT_FILENO) == 1;
  return out;
}

}  // namespace cli
