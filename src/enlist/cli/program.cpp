#include "enlist/cli/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace enlist::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

/// Returns the rows as columns, two spaces apart.
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
  std::string name;  ///< Of a pool.
  std::string partition, nodes;
  std::string valid_for = "1h";
  int uses = 1;
  std::string output;
};

class Commands {
 public:
  Commands(const Outside& outside, const Flags& flags) : outside_(outside), flags_(flags) {}

  int make_pool() const {
    return told(ask("/v1/pools", {{"name", flags_.name}, {"partition_conf", flags_.partition}, {"node_conf", flags_.nodes}}),
                [this](const core::Json&) { return "pool " + flags_.name + " is made\n"; });
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
        return std::vector{core::get_string(node, {"name"}),
                           core::get_string(node, {"pool"}),
                           core::get_bool(node, {"revoked"}) ? "Revoked" : core::get_string(node, {"phase"}),
                           or_dash(core::get_string(node, {"report", "hostname"})),
                           or_dash(core::get_string(node, {"report", "slurm_version"})),
                           or_dash(core::get_string(node, {"message"}))};
      });
    });
  }

 private:
  [[nodiscard]] core::Result<core::Json> ask(const std::string& path, const core::Json& body = nullptr) const {
    return outside_.ask(flags_.connection, path, body);
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
};

}  // namespace

core::Result<std::chrono::seconds> parse_time(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr std::string_view kUnits = "smhd";
  constexpr std::array<std::int64_t, 4> kSeconds{1, 60, 3600, 86400};
  const std::size_t found = unit.size() == 1 ? kUnits.find(unit) : std::string_view::npos;
  if (error != std::errc() || found == std::string_view::npos || number < 1 || number > 1000000)
    return core::fail(core::ErrorCode::kInvalid, fmt::format("{}: must be a number and s, m, h or d, such as 1h", text));
  return std::chrono::seconds{number * kSeconds.at(found)};
}

int run_program(const Outside& outside, const std::vector<std::string>& words) {
  // These have flags of their own.
  const auto rest = [&](std::size_t from) {
    return std::vector(words.begin() + static_cast<std::ptrdiff_t>(from), words.end());
  };
  const auto starts = [&](const std::vector<std::string>& with) {
    return words.size() >= with.size() && std::equal(with.begin(), with.end(), words.begin());
  };
  if (starts({"coordinator", "run"})) return outside.coordinator(rest(2));
  if (starts({"coordinator", "init"})) return outside.init(rest(2));
  if (starts({"agent"})) return outside.agent(rest(1));
  if (starts({"join"})) return outside.join(rest(1));
  if (starts({"charm"})) return outside.charm(rest(1));

  Flags flags;
  const Commands commands(outside, flags);
  std::function<int()> chosen;
  CLI::App root("Lets hosts join a Slurm cluster as nodes of a pool.", "slurm-enlist");
  root.set_version_flag("--version", outside.version);
  root.require_subcommand(1);
  // Lines with help only: these are run above.
  CLI::App* coordinator =
      root.add_subcommand("coordinator", "Beside slurmctld: prepare slurm.conf (init), and run the coordinator (run)");
  coordinator->require_subcommand(1);
  coordinator->add_subcommand("init", "Check slurm.conf, and set what joining needs");
  coordinator->add_subcommand("run", "Run the coordinator");
  root.add_subcommand("agent", "On a host that has joined: run the agent");
  root.add_subcommand("join", "On a host: join a pool with a token");
  root.add_subcommand("charm", "For Juju: run a hook of the charm slurmd or slurmctld");
  const auto command = [&](CLI::App* parent, const std::string& name, const std::string& help, int (Commands::*run)() const) {
    CLI::App* out = parent->add_subcommand(name, help);
    out->add_option("--coordinator", flags.connection.address, "The coordinator's listener for administrators")
        ->capture_default_str();
    out->add_option("--state", flags.connection.state, "The coordinator's folder, with the administrators' key")
        ->capture_default_str();
    out->callback([&chosen, &commands, run] { chosen = [&commands, run] { return (commands.*run)(); }; });
    return out;
  };
  const auto lists = [&](CLI::App* list) {
    list->add_option("-o,--output", flags.output, "json, or nothing for a table")->check(CLI::IsMember({"json"}));
  };
  CLI::App* pool = root.add_subcommand("pool", "Make and list pools");
  pool->require_subcommand(1);
  CLI::App* create = command(pool, "create", "Make a pool: a partition for hosts that join", &Commands::make_pool);
  create->add_option("NAME", flags.name, "The name of the pool, of its partition, and of the feature of its nodes")->required();
  create->add_option("--partition", flags.partition, "Words of its PartitionName line: \"Default=YES MaxTime=1-0\"");
  create->add_option("--nodes", flags.nodes, "Words of slurmd's --conf for all its nodes: \"Weight=5\"");
  lists(command(pool, "list", "List the pools", &Commands::list_pools));
  CLI::App* token = command(&root, "token", "Make a token, with which a host joins a pool", &Commands::make_token);
  token->add_option("POOL", flags.name, "The pool")->required();
  token->add_option("--valid-for", flags.valid_for, "How long it can be used: 90s, 15m, 1h, 7d")->capture_default_str();
  token->add_option("--uses", flags.uses, "How many hosts can join with it")
      ->capture_default_str()
      ->check(CLI::Range(1, 10000));
  CLI::App* node = root.add_subcommand("node", "List nodes");
  node->require_subcommand(1);
  lists(command(node, "list", "List the nodes of all pools", &Commands::list_nodes));

  try {
    std::vector<std::string> reversed(words.rbegin(), words.rend());
    root.parse(std::move(reversed));
  } catch (const CLI::CallForHelp&) {
    outside.write_out(root.help());  // Of the subcommand, with its whole name.
    return 0;
  } catch (const CLI::CallForVersion&) {
    outside.write_out(outside.version + "\n");
    return 0;
  } catch (const CLI::ParseError& error) {
    std::string what = error.what();
    std::ranges::replace(what, '\n', ' ');
    outside.write_err("slurm-enlist: " + what + "; see slurm-enlist --help\n");
    return 2;
  }
  return chosen ? chosen() : 2;
}

}  // namespace enlist::cli
