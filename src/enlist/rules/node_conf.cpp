#include "enlist/rules/node_conf.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "enlist/rules/judge.hpp"
#include "enlist/rules/text.hpp"
#include "slurm/conf/conf.hpp"
#include "slurm/holds.hpp"

namespace enlist {
namespace {

using slurm::conf::Setting;

constexpr auto kTopologyWords = std::to_array<std::string_view>(
    {"Boards", "CoresPerSocket", "CPUs", "Procs", "Sockets", "SocketsPerBoard", "ThreadsPerCore"});
constexpr auto kDecidedWords =
    std::to_array<std::string_view>({"NodeAddr", "NodeHostname", "NodeName", "Port", "Reason", "State"});

/// Parameters that Slurm has since a release after 24.11, with that release.
constexpr auto kNewWords =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"GresConf", "25.05"}, {"Topology", "25.05"}});

template <class Words>
bool among(const Words& words, std::string_view key) {
  return std::ranges::any_of(words, [&](std::string_view word) { return same_word(word, key); });
}

bool is_features(const Setting& setting) {
  return same_word(setting.key, "Features") || same_word(setting.key, "Feature");
}

bool has_key(const std::vector<Setting>& settings, std::string_view key) {
  return std::ranges::any_of(settings, [&](const Setting& setting) { return same_word(setting.key, key); });
}

void add_features(std::vector<std::string>& features, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    if (!is_features(setting)) continue;
    for (std::string& item : list_items(setting.value)) {
      if (std::ranges::find(features, item) == features.end()) features.push_back(std::move(item));
    }
  }
}

/// Writes parameters for --conf so that slurmd reads the same settings. Slurm has no escapes in --conf. A value that was parsed
/// never contains both a double quote and blanks.
std::string written_words(const std::vector<Setting>& settings) {
  std::string out;
  for (const Setting& setting : settings) {
    const bool quotes = setting.value.empty() || setting.value.find_first_of(" \t\r\v\f=") != std::string::npos;
    const std::string quote = quotes && setting.value.find('"') == std::string::npos ? "\"" : "";
    out += (out.empty() ? "" : " ") + setting.key + "=" + quote + setting.value + quote;
  }
  return out;
}

/// Parses parameters for --conf. Error: kInvalid, with all parameters with which slurmd would not start or that only
/// slurm-enlist sets.
core::Result<std::vector<Setting>> read_words(std::string_view words) {
  slurm::conf::NodeConf read = slurm::conf::parse_node_conf(words);
  std::string wrong;
  const auto add = [&](const std::string& problem) { wrong += (wrong.empty() ? "" : "; ") + problem; };
  for (const Setting& setting : read.settings) {
    if (among(kDecidedWords, setting.key)) add(setting.key + ": set by slurm-enlist; remove it");
  }
  for (const slurm::conf::Problem& problem : read.problems) {
    if (problem.fatal && !among(kDecidedWords, problem.key)) add(problem.str());
  }
  if (!wrong.empty()) return core::fail(core::ErrorCode::kInvalid, std::move(wrong));
  return std::move(read.settings);
}

}  // namespace

core::Result<std::string> detected_conf(std::string_view slurmd_c) {
  // Lines about GPUs ("Found gpu:...") may precede the line of the node.
  while (!slurmd_c.empty() && !slurmd_c.starts_with("NodeName=")) {
    slurmd_c.remove_prefix(std::min(slurmd_c.find('\n'), slurmd_c.size() - 1) + 1);
  }
  const std::string_view line = slurmd_c.substr(0, slurmd_c.find('\n'));
  std::vector<Setting> settings = slurm::conf::parse_node_conf(line).settings;
  std::erase_if(settings,
                [](const Setting& setting) { return same_word(setting.key, "NodeName") || same_word(setting.key, "UpTime"); });
  for (const std::string_view key : {"CPUs", "RealMemory"}) {
    const bool known = std::ranges::any_of(
        settings, [&](const Setting& setting) { return setting.key == key && whole_number(setting.value).value_or(0) > 0; });
    if (!known) return core::fail(core::ErrorCode::kInvalid, "slurmd -C reports no " + std::string(key));
  }
  return written_words(settings);
}

core::Result<std::string> merged_conf(std::string_view base, std::string_view over) {
  const core::Result<std::vector<Setting>> lower = read_words(base);
  if (!lower) return std::unexpected(lower.error());
  const core::Result<std::vector<Setting>> upper = read_words(over);
  if (!upper) return std::unexpected(upper.error());
  const bool other_topology = std::ranges::any_of(*upper, [](const Setting& s) { return among(kTopologyWords, s.key); });
  const auto stays = [&](const Setting& setting) {
    if (is_features(setting) || has_key(*upper, setting.key)) return false;
    if (other_topology && among(kTopologyWords, setting.key)) return false;
    // GresConf describes the GPUs of a Gres.
    return setting.key != "GresConf" || !has_key(*upper, "Gres");
  };
  std::vector<Setting> out;
  std::ranges::copy_if(*lower, std::back_inserter(out), stays);
  std::ranges::copy_if(*upper, std::back_inserter(out), [](const Setting& setting) { return !is_features(setting); });
  std::vector<std::string> features;
  add_features(features, *lower);
  add_features(features, *upper);
  if (!features.empty()) out.push_back({"Features", comma_list(features)});
  return written_words(out);
}

core::Result<void> check_node_words(std::string_view words, const std::vector<std::string>& releases) {
  // The detected parameters of each host have at least these two.
  if (const auto merged = merged_conf("CPUs=1 RealMemory=1", words); !merged) return std::unexpected(merged.error());
  const slurm::conf::NodeConf read = slurm::conf::parse_node_conf(words);
  // slurmd exits if --conf has an unknown parameter.
  if (!read.problems.empty()) return core::fail(core::ErrorCode::kInvalid, read.problems.front().str());
  for (const auto& [key, since] : kNewWords) {
    if (!has_key(read.settings, key)) continue;
    for (const std::string& release : releases) {
      if (release_number(release).value_or(*release_number(since)) < *release_number(since))
        return core::fail(core::ErrorCode::kInvalid, std::string(key) + ": Slurm has this parameter since " +
                                                         std::string(since) + ", but the release here is " + shown(release) +
                                                         "; remove it");
    }
  }
  return {};
}

bool differ_live(std::string_view one, std::string_view other) {
  const auto lasting = [](std::string_view words) {
    std::vector<std::pair<std::string, std::string>> out;
    for (const Setting& setting : slurm::conf::parse_node_conf(words).settings) {
      if (!is_features(setting) && !same_word(setting.key, "Weight")) out.emplace_back(setting.key, setting.value);
    }
    std::ranges::sort(out);
    return out;
  };
  return lasting(one) == lasting(other);
}

std::int64_t weight_in(std::string_view words) {
  for (const Setting& setting : slurm::conf::parse_node_conf(words).settings) {
    if (same_word(setting.key, "Weight")) return static_cast<std::int64_t>(whole_number(setting.value).value_or(1));
  }
  return 1;
}

std::vector<std::string> features_in(std::string_view words) {
  std::vector<std::string> out;
  add_features(out, slurm::conf::parse_node_conf(words).settings);
  return out;
}

bool has_word(std::string_view words, std::string_view key) {
  return has_key(slurm::conf::parse_node_conf(words).settings, key);
}

std::string gated_conf(std::string_view words, std::string_view pool) {
  std::vector<Setting> settings = slurm::conf::parse_node_conf(words).settings;
  std::vector<std::string> features{std::string(pool)};
  add_features(features, settings);
  std::erase_if(settings, [](const Setting& setting) { return is_features(setting) || among(kDecidedWords, setting.key); });
  settings.push_back({"Features", comma_list(features)});
  settings.push_back({"State", "DRAIN"});
  settings.push_back({"Reason", slurm::Holds().hold(slurm::Owner::kEnlistment, kGate).reason()});
  return written_words(settings);
}

std::vector<std::string> slurmd_arguments(std::string_view node, std::string_view conf,
                                          const std::vector<std::string>& controllers, std::string_view instance_id) {
  std::vector<std::string> out{"-Z", "-N", std::string(node), "--conf", std::string(conf)};
  // slurmd would take an empty list for a host without a name. Without the option, it finds slurmctld by other means.
  if (!controllers.empty()) {
    out.emplace_back("--conf-server");
    out.push_back(comma_list(controllers));
  }
  out.emplace_back("--instance-id");
  out.emplace_back(instance_id);
  return out;
}

}  // namespace enlist
