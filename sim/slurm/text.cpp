#include "sim/slurm/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace sim {
namespace {

using core::ErrorCode;

bool numeric(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// The keys of slurm.conf that the model accepts. slurmctld accepts more keys.
const std::set<std::string, std::less<>>& setting_keys() {
  // clang-format off
  static const std::set<std::string, std::less<>> kAll{
      "accountingstoragehost", "accountingstorageport", "accountingstoragetype", "authaltparameters", "authalttypes",
      "authinfo", "authtype", "clustername", "credtype", "debugflags", "epilog", "epilogslurmctld", "grestypes",
      "inactivelimit", "jobacctgathertype", "killwait", "licenses", "logtimeformat", "maxjobcount", "maxnodecount",
      "messagetimeout", "minjobage", "launchparameters", "preemptmode", "prioritytype", "healthcheckinterval",
      "healthcheckprogram", "communicationparameters", "resumetimeout", "proctracktype", "prolog", "prologflags",
      "prologslurmctld", "returntoservice", "schedulerparameters", "schedulertype", "selecttype", "selecttypeparameters",
      "slurmctlddebug", "slurmctldhost", "slurmctldlogfile", "slurmctldparameters", "slurmctldpidfile", "slurmctldport",
      "slurmctldtimeout", "slurmddebug", "slurmdlogfile", "slurmdparameters", "slurmdpidfile", "slurmdport", "slurmdspooldir",
      "slurmdtimeout", "slurmduser", "slurmschedlogfile", "slurmuser", "statesavelocation", "switchtype", "taskplugin",
      "topologyparam", "topologyplugin", "treewidth", "unkillablesteptimeout", "waittime"};
  // clang-format on
  return kAll;
}

const std::set<std::string, std::less<>>& node_keys() {
  static const std::set<std::string, std::less<>> kAll{
      "boards", "corespeccount",   "corespersocket", "cpus",    "cpuspeclist", "feature",    "features",
      "gres",   "memspeclimit",    "port",           "procs",   "reason",      "realmemory", "sockets",
      "state",  "socketsperboard", "threadspercore", "tmpdisk", "topology",    "weight"};
  return kAll;
}

core::Result<ConfWords> words_of(std::string_view line) {
  ConfWords out;
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) return out;
    const std::size_t equal = line.find('=');
    const std::string key = lower(line.substr(0, equal));
    if (equal == std::string_view::npos || key.empty() || key.find_first_of(" \t\"") != std::string::npos)
      return core::fail(ErrorCode::kInvalid, "not Key=Value: " + std::string(line));
    line.remove_prefix(equal + 1);
    const bool quoted = line.starts_with('"');
    if (quoted) line.remove_prefix(1);
    const std::size_t end = line.find_first_of(quoted ? "\"" : " \t");
    if (quoted && end == std::string_view::npos) return core::fail(ErrorCode::kInvalid, "no closing quote: " + key);
    out.emplace_back(key, line.substr(0, end));
    line.remove_prefix(std::min(end, line.size()));
    if (quoted) line.remove_prefix(1);
  }
}

}  // namespace

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

int number(std::string_view text, int fallback) {
  int value = fallback;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) out.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string word(const ConfWords& words, std::string_view key) {
  const auto it = std::ranges::find(words, key, &std::pair<std::string, std::string>::first);
  return it == words.end() ? "" : it->second;
}

core::Result<std::vector<ConfWords>> read_slurm_conf(std::string_view text) {
  std::vector<ConfWords> out;
  std::set<std::string> records;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    auto words = words_of(line.substr(0, line.find('#')));
    if (!words) return std::unexpected(words.error());
    if (words->empty()) continue;
    const auto& [key, value] = words->front();
    const bool record = key == "partitionname" || key == "nodeset" || key == "nodename";
    if (record && value != "DEFAULT" && !records.insert(key + "=" + value).second)
      return core::fail(ErrorCode::kInvalid, key + " " + value + " stands there twice");
    if (!record) {
      for (const auto& [name, content] : *words) {
        if (!setting_keys().contains(name)) return core::fail(ErrorCode::kInvalid, "unknown key " + name);
        const bool number = name.ends_with("timeout") || name == "maxnodecount" || name == "returntoservice";
        if (number && !numeric(content)) return core::fail(ErrorCode::kInvalid, name + " is no number: " + content);
      }
    }
    out.push_back(*std::move(words));
  }
  return out;
}

core::Result<ConfWords> read_node_conf(std::string_view text) {
  if (text.find_first_of("'\n") != std::string_view::npos)
    return core::fail(ErrorCode::kInvalid, "a single quote or a line break in --conf");
  auto words = words_of(text);
  if (!words) return words;
  for (const auto& [key, value] : *words) {
    if (!node_keys().contains(key)) return core::fail(ErrorCode::kInvalid, "unknown node parameter " + key);
  }
  return words;
}

core::Result<std::vector<std::string>> read_hostlist(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t open = text.find('['), comma = text.find(',');
    if (open == std::string_view::npos || comma < open) {
      const std::string_view name = text.substr(0, comma);
      if (!name.empty()) out.emplace_back(name);
      text.remove_prefix(std::min(name.size() + 1, text.size()));
      continue;
    }
    const std::size_t close = text.find(']', open);
    if (close == std::string_view::npos) return core::fail(ErrorCode::kInvalid, "no closing bracket");
    const std::string prefix(text.substr(0, open));
    std::string_view ranges = text.substr(open + 1, close - open - 1);
    text.remove_prefix(close + 1);
    // Slurm allows more text after the bracket, but no history has such node names.
    if (!text.empty() && !text.starts_with(',')) return core::fail(ErrorCode::kInvalid, "something follows the bracket");
    text.remove_prefix(std::min<std::size_t>(1, text.size()));
    while (!ranges.empty()) {
      const std::string_view range = ranges.substr(0, ranges.find(','));
      ranges.remove_prefix(std::min(range.size() + 1, ranges.size()));
      const std::string first(range.substr(0, range.find('-')));
      const std::string last = first.size() == range.size() ? first : std::string(range.substr(first.size() + 1));
      if (!numeric(first) || !numeric(last) || first.size() > 6 || last.size() > 6 || std::stoi(last) < std::stoi(first))
        return core::fail(ErrorCode::kInvalid, "not a range: " + std::string(range));
      for (int i = std::stoi(first); i <= std::stoi(last); ++i)
        out.push_back(fmt::format("{}{:0{}}", prefix, i, static_cast<int>(first.size())));
    }
  }
  return out;
}

std::string write_hostlist(const std::vector<std::string>& names) {
  // Groups names by the text before their number and by the width of the number. A name without a number is an item of its own.
  std::map<std::pair<std::string, std::size_t>, std::set<long>> numbered;
  std::string out;
  const auto add = [&](const std::string& word) { out += (out.empty() ? "" : ",") + word; };
  for (const std::string& name : std::set<std::string>(names.begin(), names.end())) {
    const std::size_t digits = name.size() - name.find_last_not_of("0123456789") - 1;
    if (digits == 0 || digits > 9 || digits == name.size()) {
      add(name);
    } else {
      numbered[{name.substr(0, name.size() - digits), digits}].insert(std::stol(name.substr(name.size() - digits)));
    }
  }
  for (const auto& [kind, numbers] : numbered) {
    std::string ranges;
    for (auto it = numbers.begin(); it != numbers.end();) {
      const long first = *it;
      long last = first;
      for (++it; it != numbers.end() && *it == last + 1; ++it) last = *it;
      ranges += (ranges.empty() ? "" : ",") + fmt::format("{:0{}}", first, static_cast<int>(kind.second));
      if (last != first) ranges += fmt::format("-{:0{}}", last, static_cast<int>(kind.second));
    }
    const bool single = numbers.size() == 1;
    add(kind.first + (single ? ranges : "[" + ranges + "]"));
  }
  return out;
}

bool given_by_operator(std::string_view reason) {
  return reason.starts_with("slurm-operator: ");
}

bool tells_lack(std::string_view reason) {
  return reason.starts_with("gres/") || reason.starts_with("Low RealMemory");
}

}  // namespace sim
