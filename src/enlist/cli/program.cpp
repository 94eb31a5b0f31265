#include "enlist/cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "enlist/rules/text.hpp"

namespace enlist::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Formats the rows as a table whose columns are two spaces apart.
std::string table(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return out;
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : text;
}

struct Flags {
  Connection connection;
  std::string name;  ///< A pool; in node config, drain and resume: a node.
  std::string partition, nodes;
  std::string valid_for = "1h";
  int uses = 1;
  std::string output;
  std::vector<std::string> hosts;  ///< The names of nodes.
  std::string node, reason;
  std::vector<std::string> words;  ///< Settings for slurmd's --conf.
  bool reset = false;
  bool force = false;
  int wait = -1;  ///< --wait, in seconds; -1: no limit.
  // Flags of `rotate`: names of hosts and nodes.
  std::vector<std::string> also, acknowledge, without;
  bool abandon = false;
  std::string lifetime, phase;
};

constexpr std::chrono::milliseconds kShowAgain{500};
/// How many hosts of a rotation are listed at most.
constexpr std::size_t kShownHosts = 20;

class Commands {
 public:
  Commands(const Outside& outside, const Flags& flags) : outside_(outside), flags_(flags) {}

  int make_pool() const {
    return told(ask("/v1/pools", {{"name", flags_.name}, {"partition_conf", flags_.partition}, {"node_conf", flags_.nodes}}),
                [this](const core::Json& body) {
                  const bool before = core::get_bool(body, {"existed"});
                  return "pool " + flags_.name + (before ? " exists already, with these parameters\n" : " is made\n");
                });
  }

  int make_token() const {
    const auto valid = parse_time(flags_.valid_for);
    if (!valid) return wrong("--valid-for " + valid.error().message);
    return told(ask("/v1/tokens", {{"pool", flags_.name}, {"valid_for_s", valid->count()}, {"uses", flags_.uses}}),
                [](const core::Json& body) { return core::get_string(body, {"token"}) + "\n"; });
  }

  int list_pools() const {
    const auto nodes = ask("/v1/nodes");
    if (!nodes) return failed(nodes.error());
    return told(ask("/v1/pools"), [&](const core::Json& body) {
      Rows rows{{"NAME", "NODES", "READY", "PARTITION", "NODE-CONF", "PROBLEM"}};
      return listed(body, "pools", std::move(rows), [&](const core::Json& pool) {
        int all = 0, ready = 0;
        for (const core::Json& node : members(*nodes, "nodes")) {
          if (core::get_string(node, {"pool"}) != core::get_string(pool, {"name"}) || core::get_bool(node, {"revoked"}))
            continue;
          ++all;
          if (core::get_string(node, {"phase"}) == "Ready") ++ready;
        }
        return std::vector{core::get_string(pool, {"name"}),
                           std::to_string(all),
                           std::to_string(ready),
                           or_dash(core::get_string(pool, {"partition_conf"})),
                           or_dash(core::get_string(pool, {"node_conf"})),
                           or_dash(core::get_string(pool, {"problem"}))};
      });
    });
  }

  int list_nodes() const {
    return told(ask("/v1/nodes"), [this](const core::Json& body) {
      Rows rows{{"NAME", "POOL", "PHASE", "HOST", "SLURMD", "MESSAGE"}};
      return listed(body, "nodes", std::move(rows), [](const core::Json& node) {
        const bool revoked = core::get_bool(node, {"revoked"}) && !core::get_bool(node, {"leaving", "wanted"});
        return std::vector{core::get_string(node, {"name"}),
                           core::get_string(node, {"pool"}),
                           revoked ? "Revoked" : core::get_string(node, {"phase"}),
                           or_dash(core::get_string(node, {"report", "hostname"})),
                           or_dash(core::get_string(node, {"report", "slurm_version"})),
                           or_dash(core::get_string(node, {"message"}))};
      });
    });
  }

  int remove_nodes() const {
    if (const auto asked = ask("/v1/nodes/leave", {{"nodes", flags_.hosts}, {"force", flags_.force}}); !asked)
      return failed(asked.error());
    std::map<std::string, std::string> shown;
    return wait_until("the nodes have not left", [&]() -> core::Result<bool> {
      const auto answer = ask("/v1/nodes");
      if (!answer) return std::unexpected(answer.error());
      std::set<std::string> left(flags_.hosts.begin(), flags_.hosts.end());
      for (const core::Json& node : members(*answer, "nodes")) {
        const std::string name = core::get_string(node, {"name"});
        if (left.erase(name) == 0) continue;
        if (!core::get_bool(node, {"leaving", "wanted"}))
          return core::fail(core::ErrorCode::kConflict, "node " + name + " stays: the request was cancelled");
        show(shown[name], name, core::get_string(node, {"phase"}) + ": " + core::get_string(node, {"message"}));
      }
      for (const std::string& name : left) show(shown[name], name, "it has left");
      return left.size() == std::set<std::string>(flags_.hosts.begin(), flags_.hosts.end()).size();
    });
  }

  int config_node() const {
    std::string words;
    for (const std::string& word : flags_.words) words += (words.empty() ? "" : " ") + word;
    if (flags_.reset && !words.empty()) return wrong("node config: give parameters or --reset, not both");
    if (words.empty() && !flags_.reset) return show_config();
    const auto asked = ask("/v1/nodes/config", {{"nodes", core::Json::array({flags_.name})}, {"conf", words}});
    if (!asked) return failed(asked.error());
    bool live = false;
    for (const core::Json& node : members(*asked, "nodes")) live = core::get_bool(node, {"configuring", "live"});
    std::string shown;
    return wait_until(flags_.name + " does not have its new parameters", [&]() -> core::Result<bool> {
      const auto node = the_node();
      if (!node) return std::unexpected(node.error());
      const bool waits = core::get_bool(*node, {"configuring", "wanted"});
      const std::string phase = core::get_string(*node, {"phase"}), message = core::get_string(*node, {"message"});
      const std::string line = phase + (message.empty() ? "" : ": " + message);
      const std::string gets =
          waits ? core::get_string(*node, {"configuring", "conf"}) : core::get_string(*node, {"node_conf"});
      if (gets != words)
        return core::fail(core::ErrorCode::kConflict,
                          "the request was cancelled, or " + flags_.name + " was given other parameters");
      show(shown, flags_.name, line);
      if (waits) return false;
      if (live || phase == "Ready") return true;
      if (phase == "Refused" || phase == "Invalid" || phase == "Impostor" || phase == "Silent")
        return core::fail(core::ErrorCode::kConflict,
                          flags_.name + " is not ready with its new parameters; set others, or remove them with --reset");
      return false;
    });
  }

  int keep_nodes() const {
    return told(ask("/v1/nodes/keep", {{"nodes", flags_.hosts}}), [](const core::Json&) { return "done\n"; });
  }
  int revoke_nodes() const {
    return told(ask("/v1/nodes/revoke", {{"nodes", flags_.hosts}}), [](const core::Json&) {
      return "done; the tokens of their pools are withdrawn; the hosts still have the auth key of the cluster: slurm-enlist "
             "rotate\n";
    });
  }
  int drain_node() const {
    return told(ask("/v1/nodes/drain", {{"nodes", core::Json::array({flags_.name})}, {"reason", flags_.reason}}),
                [](const core::Json&) { return "done\n"; });
  }
  int resume_node() const {
    return told(ask("/v1/nodes/resume", {{"nodes", core::Json::array({flags_.name})}}),
                [](const core::Json&) { return "done\n"; });
  }

  int remove_pool() const {
    if (const auto asked = ask("/v1/pools/remove", {{"name", flags_.name}, {"force", flags_.force}}); !asked)
      return failed(asked.error());
    std::string shown;
    return wait_until("the pool is not removed", [&]() -> core::Result<bool> {
      const auto answer = ask("/v1/pools");
      if (!answer) return std::unexpected(answer.error());
      for (const core::Json& pool : members(*answer, "pools")) {
        if (core::get_string(pool, {"name"}) != flags_.name) continue;
        show(shown, flags_.name, or_dash(core::get_string(pool, {"problem"})));
        return false;
      }
      for (const core::Json& pool : members(*answer, "dropping")) {
        if (pool != flags_.name) continue;
        show(shown, flags_.name, "slurmctld drops its partition");
        return false;
      }
      show(shown, flags_.name, "it is removed");
      return true;
    });
  }

  int rotate() const {
    const int verbs = (flags_.acknowledge.empty() ? 0 : 1) + (flags_.without.empty() ? 0 : 1) + (flags_.abandon ? 1 : 0);
    const bool begins = verbs == 0;
    if (verbs > 1) return wrong("rotate: use only one of --acknowledge, --without and --abandon");
    if (!begins && (!flags_.also.empty() || !flags_.lifetime.empty()))
      return wrong("rotate: --also and --lifetime are only for the start of a rotation");
    if (flags_.acknowledge.empty() && !flags_.phase.empty()) return wrong("rotate: --phase is for --acknowledge");
    if (!flags_.acknowledge.empty()) return acknowledge();
    if (!flags_.without.empty()) return changed(ask("/v1/rotation/without", {{"nodes", flags_.without}}));
    std::int64_t lifetime = 0;
    if (!flags_.lifetime.empty()) {
      const auto time = parse_time(flags_.lifetime);
      if (!time) return wrong("--lifetime " + time.error().message);
      lifetime = time->count();
    }
    const auto asked = begins ? ask("/v1/rotation", {{"also", flags_.also}, {"lifetime_s", lifetime}})
                              : ask("/v1/rotation/abandon", core::Json::object());
    if (!asked) return failed(asked.error());
    if (begins) outside_.write_out(holders_of(*asked));
    std::string shown;
    bool done = false;
    const int code = wait_until("the rotation has not ended", [&]() -> core::Result<bool> {
      const auto status = ask("/v1/rotation");
      if (!status) return std::unexpected(status.error());
      std::string text = rotation_text(*status);
      if (text != shown) outside_.write_out(text);
      shown = std::move(text);
      done = core::get_string(*status, {"result"}).starts_with("done") || !begins;
      return !core::get_bool(*status, {"running"});
    });
    return code == 0 && flags_.wait != 0 && !done ? 1 : code;
  }

  int rotation_status() const {
    return told(ask("/v1/rotation"),
                [this](const core::Json& body) { return flags_.output == "json" ? body.dump(2) + "\n" : rotation_text(body); });
  }

  int destroy_jobs() const {
    if (flags_.node.empty() == flags_.name.empty()) return wrong("destroy-jobs: name a node, or a pool with --pool");
    const auto answer =
        ask("/v1/jobs/end", flags_.node.empty() ? core::Json{{"pool", flags_.name}} : core::Json{{"node", flags_.node}});
    bool all = true;
    for (const core::Json& job : answer ? members(*answer, "jobs") : core::Json::array())
      all = all && core::get_string(job, {"error"}).empty();
    const int code = told(answer, [this](const core::Json& body) {
      return listed(body, "jobs", {{"JOB", "NAME", "USER", "PARTITION", "NODES", "RESULT"}}, [](const core::Json& job) {
        const std::string error = core::get_string(job, {"error"});
        return std::vector{core::get_string(job, {"job"}),           or_dash(core::get_string(job, {"name"})),
                           or_dash(core::get_string(job, {"user"})), or_dash(core::get_string(job, {"partition"})),
                           core::get_string(job, {"nodes"}),         error.empty() ? "ended" : "not ended: " + error};
      });
    });
    return all ? code : 1;
  }

 private:
  int acknowledge() const {
    std::string phase = flags_.phase;
    if (phase.empty()) {
      const auto status = ask("/v1/rotation");
      if (!status) return failed(status.error());
      phase = core::get_string(*status, {"phase"});
    }
    return changed(ask("/v1/rotation/acknowledge", {{"hosts", flags_.acknowledge}, {"phase", phase}}));
  }

  int changed(const core::Result<core::Json>& answer) const {
    return told(answer, [](const core::Json& body) { return rotation_text(body); });
  }

  static std::string holders_of(const core::Json& status) {
    std::string out = "The hosts of slurm-enlist's nodes and this host have the key. slurm-enlist gives them the new one.\n";
    const core::Json holders = members(status, "holders");
    for (std::size_t i = 0; i < std::min(holders.size(), kShownHosts); ++i) {
      out += fmt::format(
          "{} has the key, too: in each phase, copy the file there, {}, and run slurm-enlist rotate --acknowledge.\n",
          core::get_string(holders[i], {"host"}), core::get_string(holders[i], {"what"}));
    }
    if (holders.size() > kShownHosts) out += fmt::format("So do {} other hosts.\n", holders.size() - kShownHosts);
    return out +
           "slurm-enlist knows no other host with the key. If there is one, such as a login host with sackd, run slurm-enlist "
           "rotate --abandon, and start again with --also HOST.\n";
  }

  static std::string rotation_text(const core::Json& status) {
    const std::string phase = core::get_string(status, {"phase"}), result = core::get_string(status, {"result"});
    if (phase.empty()) return or_dash(core::get_string(status, {"problem"}, "there was no rotation")) + "\n";
    if (!core::get_bool(status, {"running"})) return result + "\n";
    std::string out = phase + (core::get_bool(status, {"abandoned"}) ? " (abandoned)" : "") + "\n";
    for (const char* member : {"problem", "refusal", "waits"}) {
      if (const std::string text = core::get_string(status, {member}); !text.empty())
        out += fmt::format("  {}: {}\n", member, text);
    }
    std::size_t shown = 0;
    for (const core::Json& host : members(status, "hosts")) {
      if (++shown > kShownHosts) break;
      const std::string name = core::get_string(host, {"host"}), why = core::get_string(host, {"why"});
      if (!core::get_bool(host, {"acknowledge"})) {
        out += fmt::format("  {}: {}\n", name, why);
      } else {
        out += fmt::format("  {}: {}{}, then: slurm-enlist rotate --acknowledge {} --phase {}\n", name,
                           core::get_bool(host, {"here"}) ? "" : "copy slurm.jwks there, ", why, name, phase);
      }
    }
    if (shown > kShownHosts) out += fmt::format("  and {} other hosts\n", members(status, "hosts").size() - kShownHosts);
    return out;
  }

  [[nodiscard]] core::Result<core::Json> the_node() const {
    const auto answer = ask("/v1/nodes");
    if (!answer) return std::unexpected(answer.error());
    for (const core::Json& node : members(*answer, "nodes")) {
      if (core::get_string(node, {"name"}) == flags_.name) return node;
    }
    return core::fail(core::ErrorCode::kNotFound, "there is no node " + flags_.name + "; slurm-enlist node list shows all");
  }

  int show_config() const {
    return told(the_node(), [](const core::Json& node) {
      std::string out = or_dash(core::get_string(node, {"node_conf"})) + "\n";
      if (core::get_bool(node, {"configuring", "wanted"}))
        out += "requested: " + or_dash(core::get_string(node, {"configuring", "conf"})) + " (" +
               core::get_string(node, {"phase"}) + ": " + core::get_string(node, {"message"}) + ")\n";
      return out;
    });
  }

  void show(std::string& shown, const std::string& name, const std::string& text) const {
    if (shown == text) return;
    shown = text;
    outside_.write_out(name + ": " + text + "\n");
  }

  /// Calls `look` until it returns true, fails, or --wait is over; then writes `what`, such as "the pool is not removed". If
  /// the coordinator is unavailable, tries again.
  template <class Look>
  int wait_until(const std::string& what, const Look& look) const {
    if (flags_.wait == 0) return 0;
    const auto began = outside_.now();
    bool away = false;
    while (true) {
      const core::Result<bool> done = look();
      if (done && *done) return 0;
      const bool waits = !done && done.error().code == core::ErrorCode::kUnavailable;
      if (!done && !waits) return failed(done.error());
      if (waits && !std::exchange(away, true)) outside_.write_err("slurm-enlist: " + done.error().message + "; trying again\n");
      away = waits;
      if (flags_.wait > 0 && outside_.now() - began >= std::chrono::seconds(flags_.wait)) {
        outside_.write_err(fmt::format("slurm-enlist: {} after {} s. The coordinator goes on.\n", what, flags_.wait));
        return 1;
      }
      outside_.sleep(kShowAgain);
    }
  }

  [[nodiscard]] core::Result<core::Json> ask(const std::string& path, const core::Json& body = nullptr) const {
    auto answer = outside_.ask(flags_.connection, path, body);
    const std::string problem = answer ? core::get_string(*answer, {"store_problem"}) : "";
    if (!problem.empty() && !std::exchange(warned_, true))
      outside_.write_err("slurm-enlist: warning: the last write to the records of the coordinator has failed: " + problem +
                         "\n");
    return answer;
  }

  template <class Text>
  int told(const core::Result<core::Json>& answer, const Text& text) const {
    if (!answer) return failed(answer.error());
    outside_.write_out(text(*answer));
    return 0;
  }

  int failed(const core::Error& error) const {
    outside_.write_err("slurm-enlist: " + error.message + "\n");
    return 1;
  }
  int wrong(const std::string& what) const {
    outside_.write_err("slurm-enlist: " + what + "\n");
    return 2;
  }

  static core::Json members(const core::Json& body, std::string_view key) {
    const core::Json* list = core::find(body, {key});
    return list != nullptr && list->is_array() ? *list : core::Json::array();
  }

  template <class Row>
  [[nodiscard]] std::string listed(const core::Json& body, std::string_view key, Rows rows, const Row& row) const {
    const core::Json list = members(body, key);
    if (flags_.output == "json") return list.dump(2) + "\n";
    for (const core::Json& item : list) rows.push_back(row(item));
    return table(rows);
  }

  const Outside& outside_;
  const Flags& flags_;
  mutable bool warned_ = false;  ///< ask() has written its warning.
};

/// Reports whether a token is an argument other than the value of --token. An error message about this argument would print it.
bool shows_token(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool token = words[i].starts_with("enlist1_") || words[i].starts_with("--token-file=enlist1_");
    if (token && (i == 0 || words[i - 1] != "--token")) return true;
  }
  return false;
}

/// Returns the first argument that is in the place of a command but is no command; "": there is none.
std::string unknown_command(CLI::App& root, const std::vector<std::string>& words) {
  CLI::App* at = &root;
  for (const std::string& word : words) {
    if (word.starts_with('-') || at->get_require_subcommand_min() == 0) return {};
    const auto found = at->get_subcommands([&word](CLI::App* command) { return command->get_name() == word; });
    if (found.empty()) return word;
    at = found.front();
  }
  return {};
}

}  // namespace

int run_program(const Outside& outside, const std::vector<std::string>& words) {
  // The commands up to `charm` parse their own flags.
  const auto rest = [&](std::size_t from) {
    return std::vector(words.begin() + static_cast<std::ptrdiff_t>(from), words.end());
  };
  const auto starts = [&](const std::vector<std::string>& with) {
    return words.size() >= with.size() && std::equal(with.begin(), with.end(), words.begin());
  };
  // Without this check, a user who is not root would get errors about one file or program after the other.
  const auto as_root = [&](const std::string& command, const Outside::Program& program, std::size_t from) {
    const auto asks = [](const std::string& word) { return word == "--help" || word == "-h" || word == "--version"; };
    if (outside.root || std::ranges::any_of(words, asks)) return program(rest(from));
    outside.write_err("slurm-enlist " + command + ": run this as root\n");
    return 1;
  };
  if (starts({"coordinator", "run"})) return as_root("coordinator run", outside.coordinator, 2);
  if (starts({"coordinator", "init"})) return as_root("coordinator init", outside.init, 2);
  if (starts({"agent"})) return as_root("agent", outside.agent, 1);
  if (starts({"join"}) && shows_token(words)) {
    outside.write_err(
        "slurm-enlist join: a token must not be an argument, because other users can see arguments: run slurm-enlist join "
        "--token-file - and paste the token\n");
    return 2;
  }
  if (starts({"join"})) return as_root("join", outside.join, 1);
  if (starts({"leave"})) return as_root("leave", outside.leave, 1);
  if (starts({"charm"})) return outside.charm(rest(1));

  Flags flags;
  const Commands commands(outside, flags);
  std::function<int()> chosen;
  CLI::App root("Lets hosts join a Slurm cluster as nodes of a pool.", "slurm-enlist");
  root.set_version_flag("--version", outside.version);
  root.require_subcommand(1);
  // The code above runs these commands. Here they only get their lines in the help.
  CLI::App* coordinator =
      root.add_subcommand("coordinator", "On the host of slurmctld: prepare slurm.conf (init), and run the coordinator (run)");
  coordinator->require_subcommand(1);
  coordinator->add_subcommand("init", "Check slurm.conf, and change the settings that joining needs");
  coordinator->add_subcommand("run", "Run the coordinator");
  root.add_subcommand("agent", "On a host that has joined: run the agent");
  root.add_subcommand("join", "On a host: join a pool with a token");
  root.add_subcommand("leave", "On a host that has joined: leave the cluster");
  root.add_subcommand("charm", "For Juju: run a hook of the charm slurmd or slurmctld");
  const auto command = [&](CLI::App* parent, const std::string& name, const std::string& help, int (Commands::*run)() const) {
    CLI::App* out = parent->add_subcommand(name, help);
    out->add_option("--coordinator", flags.connection.address, "The coordinator's listener for administrators")
        ->capture_default_str();
    out->add_option("--state", flags.connection.state, "The coordinator's folder, with the administrators' key")
        ->capture_default_str();
    out->callback([&chosen, &commands, run] {
      // The callback of a command within another one, such as `rotate status`, runs first. It must not be replaced.
      if (!chosen) chosen = [&commands, run] { return (commands.*run)(); };
    });
    return out;
  };
  const auto lists = [&](CLI::App* list) {
    list->add_option("-o,--output", flags.output, "Output format: json (default: a table)")->check(CLI::IsMember({"json"}));
  };
  const auto waits = [&](CLI::App* waiting) {
    waiting->add_option("--wait", flags.wait, "How many seconds to wait; 0: do not wait (default: no limit)")
        ->check(CLI::Range(0, 10'000'000));
  };
  CLI::App* pool = root.add_subcommand("pool", "Make, list and remove pools");
  pool->require_subcommand(1);
  CLI::App* create = command(pool, "create", "Make a pool: a partition for hosts that join", &Commands::make_pool);
  create->add_option("NAME", flags.name, "The name of the pool, of its partition, and of the feature of its nodes")->required();
  create->add_option("--partition", flags.partition,
                     "Parameters of its partition, as in slurm.conf: \"Default=YES MaxTime=1-0\"");
  create->add_option("--nodes", flags.nodes, "Node parameters for all its nodes, as for slurmd --conf: \"Weight=5\"");
  lists(command(pool, "list", "List the pools", &Commands::list_pools));
  CLI::App* remove = command(pool, "remove", "Remove a pool: its nodes leave, and then its partition", &Commands::remove_pool);
  remove->add_option("NAME", flags.name, "The pool")->required();
  remove->add_flag(
      "--force", flags.force,
      "Remove the pool even if jobs use it: its partition takes no new jobs, and the pool is removed when they have ended");
  waits(remove);
  CLI::App* token = command(&root, "token", "Make a token, with which a host joins a pool", &Commands::make_token);
  token->add_option("POOL", flags.name, "The pool")->required();
  token->add_option("--valid-for", flags.valid_for, "How long it can be used: 90s, 15m, 1h, 7d")->capture_default_str();
  token->add_option("--uses", flags.uses, "How many hosts can join with it")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  CLI::App* rotate = command(&root, "rotate", "Replace the auth key of the cluster while jobs run", &Commands::rotate);
  rotate->add_option("--also", flags.also, "Further hosts that hold the key, such as login hosts: a hostlist");
  rotate->add_option("--lifetime", flags.lifetime,
                     "How long a signed token or credential stays valid, if longer than in slurm.conf: 10m");
  rotate->add_option("--acknowledge", flags.acknowledge,
                     "Confirm that these hosts have loaded the file of this phase: a hostlist");
  rotate->add_option("--phase", flags.phase, "With --acknowledge: the phase whose file they have loaded");
  rotate->add_option("--without", flags.without, "Do not wait for these nodes, on which Slurm has no job: a hostlist");
  rotate->add_flag("--abandon", flags.abandon, "Go back to the old key");
  waits(rotate);
  lists(command(rotate, "status", "Show what the rotation waits for", &Commands::rotation_status));
  CLI::App* destroy =
      command(&root, "destroy-jobs", "End the jobs on a node, or on all nodes of a pool, now", &Commands::destroy_jobs);
  destroy->add_option("NODE", flags.node, "The node");
  destroy->add_option("--pool", flags.name, "The pool");
  lists(destroy);
  CLI::App* node = root.add_subcommand("node", "List, drain and remove nodes");
  node->require_subcommand(1);
  lists(command(node, "list", "List the nodes of all pools", &Commands::list_nodes));
  const auto on_nodes = [&](const char* verb, const char* help, int (Commands::*run)() const) {
    CLI::App* out = command(node, verb, help, run);
    out->add_option("NODE", flags.hosts, "The nodes")->required();
    return out;
  };
  CLI::App* leave = on_nodes("remove", "Let nodes leave when their jobs have ended", &Commands::remove_nodes);
  leave->add_flag("--force", flags.force,
                  "Do not wait long for a host that does not answer. The nodes still leave only when their jobs have ended");
  waits(leave);
  CLI::App* config =
      command(node, "config", "Set node parameters of one node, as for slurmd --conf, or show them", &Commands::config_node);
  config->add_option("NODE", flags.name, "The node")->required();
  config->add_option("PARAMETERS", flags.words,
                     "The new parameters, which replace those set before: \"RealMemory=64000 Weight=5\"");
  config->add_flag("--reset", flags.reset, "Remove the parameters of this node");
  waits(config);
  on_nodes("keep", "Cancel the removal or the new parameters of nodes that have not stopped slurmd yet", &Commands::keep_nodes);
  on_nodes("revoke", "Revoke the keys of these nodes, and withdraw the tokens of their pools", &Commands::revoke_nodes);
  CLI::App* drain = command(node, "drain", "Drain a node, as scontrol does", &Commands::drain_node);
  drain->add_option("NODE", flags.name, "The node")->required();
  drain->add_option("--reason", flags.reason, "Why")->required();
  command(node, "resume", "Return a node to service, no matter who drained it", &Commands::resume_node)
      ->add_option("NODE", flags.name, "The node")
      ->required();

  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    root.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    outside.write_out(root.help());  // The help of the subcommand, with its whole name.
    return 0;
  } catch (const CLI::CallForVersion&) {
    outside.write_out(outside.version + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    const std::string unknown = unknown_command(root, words);
    std::string what = unknown.empty() ? error.what() : "there is no command " + unknown;
    std::ranges::replace(what, '\n', ' ');
    outside.write_err("slurm-enlist: " + what + "; see slurm-enlist --help\n");
    return 2;
  }
  return chosen ? chosen() : 2;
}

}  // namespace enlist::cli
