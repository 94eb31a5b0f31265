#include "enlist/rules/pool_file.hpp"

#include <algorithm>
#include <functional>

#include "core/hash.hpp"
#include "enlist/rules/names.hpp"
#include "enlist/rules/service_files.hpp"
#include "enlist/rules/text.hpp"
#include "slurm/conf/conf.hpp"
#include "slurm/conf/known_keys.hpp"
#include "slurm/conf/loaded.hpp"

namespace enlist {
namespace {

namespace conf = slurm::conf;
using slurm::Owner;

/// The largest MaxNodeCount: see slurm.conf(5).
constexpr std::uint64_t kMostNodes = 65536;
/// The largest depth of includes. It ends the reading of files that include each other.
constexpr int kDeepest = 8;
/// The beginning of the line with the revision of the auth key.
constexpr std::string_view kKeyMark = "# Auth key: ";

std::string known_parameters() {
  std::string out;
  for (const std::string_view name : conf::kPartitionParameters) {
    if (name != "Nodes") out += (out.empty() ? "" : ", ") + std::string(name);
  }
  return out;
}

/// A setting, and the name of the file that contains it; "": slurm.conf itself.
struct Placed {
  std::string file;
  conf::Setting setting;
};

/// Returns the file that line `number` of the text includes, counted from 1; "" if that is no Include line.
std::string include_in(std::string_view text, int number) {
  for (; number > 1; --number) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  constexpr std::string_view kAround = " \t\r\v\f", kWord = "Include";
  text = text.substr(0, std::min(text.find('\n'), text.find('#')));
  text.remove_prefix(std::min(text.find_first_not_of(kAround), text.size()));
  if (!same_word(text.substr(0, kWord.size()), kWord)) return {};
  text.remove_prefix(kWord.size());
  const std::size_t begin = text.find_first_not_of(kAround);
  if (begin == 0 || begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_first_of(kAround)));
}

/// The settings of slurm.conf and of the files that it includes, in the order in which Slurm reads them.
class Reading {
 public:
  explicit Reading(const std::map<std::string, std::string>& included) : included_(included) {}

  void read(const std::string& file, std::string_view text, int depth = 0) {
    const conf::Parsed parsed = conf::parse(conf::Kind::kSlurm, text);
    auto entry = parsed.conf.entries().begin();
    const auto take_until = [&](int line) {
      for (; entry != parsed.conf.entries().end() && entry->head().line < line; ++entry) {
        if (!entry->record()) settings_.push_back({file, entry->head()});
      }
    };
    for (const conf::Problem& problem : parsed.problems) {
      if (problem.key != "Include") continue;
      take_until(problem.line);
      if (const std::string name = include_in(text, problem.line); !name.empty()) include(name, depth);
    }
    take_until(INT32_MAX);
  }
  /// Returns the last setting with this key, which is the one that Slurm uses; null if there is none.
  [[nodiscard]] const Placed* last(std::string_view key) const {
    const auto found = std::ranges::find_if(settings_.rbegin(), settings_.rend(),
                                            [&](const Placed& placed) { return same_word(placed.setting.key, key); });
    return found == settings_.rend() ? nullptr : &*found;
  }
  [[nodiscard]] std::string value(std::string_view key) const {
    const Placed* placed = last(key);
    return placed == nullptr ? "" : placed->setting.value;
  }
  [[nodiscard]] int pool_files() const { return pool_files_; }
  [[nodiscard]] const std::vector<std::string>& problems() const { return problems_; }

 private:
  void include(const std::string& name, int depth) {
    if (name == kPoolFile) {
      if (++pool_files_ == 2) problems_.push_back("Include " + name + ": it is there twice; remove one of the lines");
      return;
    }
    if (name.ends_with("/" + std::string(kPoolFile))) {
      problems_.push_back("Include " + name +
                          ": slurmctld sends only files without a folder in their name to hosts; write Include " +
                          std::string(kPoolFile));
      ++pool_files_;
      return;
    }
    const auto text = included_.find(name);
    if (text == included_.end()) {
      problems_.push_back("Include " + name + ": the file cannot be read, so that its settings are not known");
    } else if (depth == kDeepest) {
      problems_.push_back("Include " + name + ": files include each other too deeply");
    } else {
      read(name, text->second, depth + 1);
    }
  }

  const std::map<std::string, std::string>& included_;
  std::vector<Placed> settings_;
  std::vector<std::string> problems_;
  int pool_files_ = 0;
};

bool same_settings(const std::vector<conf::Entry>& a, const std::vector<conf::Entry>& b) {
  const auto same_setting = [](const conf::Setting& x, const conf::Setting& y) { return x.key == y.key && x.value == y.value; };
  return std::ranges::equal(a, b, [&](const conf::Entry& x, const conf::Entry& y) {
    return std::ranges::equal(x.settings, y.settings, same_setting);
  });
}

/// Returns where the value begins of a setting whose key, of `key_size` characters, is at `at`; npos if no setting begins
/// there.
std::size_t value_at(std::string_view text, std::size_t at, std::size_t key_size) {
  constexpr std::string_view kBlanks = " \t\r\v\f";
  if (at > 0 && (kBlanks.find(text[at - 1]) == std::string_view::npos && text[at - 1] != '\n')) return std::string_view::npos;
  at = text.find_first_not_of(kBlanks, at + key_size);
  if (at == std::string_view::npos || text[at] != '=') return std::string_view::npos;
  while ((at = text.find_first_not_of(kBlanks, at + 1)) != std::string_view::npos && text[at] == '\\') {
    at = text.find_first_not_of(kBlanks, at + 1);  // A backslash at the end of the line continues it.
    if (at == std::string_view::npos || text[at] != '\n') return std::string_view::npos;
  }
  if (at != std::string_view::npos && text[at] == '"') ++at;
  return at == std::string_view::npos ? text.size() : at;
}

/// Returns the text with another value in the last setting of this key. Parses the result to check that nothing else changes.
/// nullopt: there is no such result.
std::optional<std::string> with_value(const std::string& text, const conf::Setting& setting, const std::string& value) {
  std::vector<conf::Entry> wanted = conf::parse(conf::Kind::kSlurm, text).conf.entries();
  const auto last = std::ranges::find_if(wanted.rbegin(), wanted.rend(),
                                         [&](const conf::Entry& entry) { return entry.head().key == setting.key; });
  if (last == wanted.rend()) return std::nullopt;
  last->settings.front().value = value;
  std::size_t at = 0;
  for (int line = 1; line < setting.line; ++line) at = text.find('\n', at) + 1;
  for (; at < text.size(); ++at) {
    if (!same_word(std::string_view(text).substr(at, setting.key.size()), setting.key)) continue;
    const std::size_t begin = value_at(text, at, setting.key.size());
    // Without quotes, it is unclear where an empty value begins. Slurm refuses such a setting.
    if (begin == std::string_view::npos || (setting.value.empty() && text[begin - 1] != '"')) continue;
    // A list may continue on the next line. A new item is put in front of the list, so the end of the list need not be found.
    const bool more = value.ends_with(setting.value);
    const std::size_t end = more ? begin : std::min(text.find_first_of(" \t\r\v\f\n\"#\\", begin), text.size());
    std::string out =
        text.substr(0, begin) + value.substr(0, value.size() - (more ? setting.value.size() : 0)) + text.substr(end);
    if (same_settings(conf::parse(conf::Kind::kSlurm, out).conf.entries(), wanted)) return out;
  }
  return std::nullopt;
}

/// Makes the changes of preflight().
class Changes {
 public:
  Changes(Preflight& out, const Reading& reading) : out_(out), reading_(reading) {}

  /// Sets the value in slurm.conf and records the change, or records a problem if that is not possible. `why`: for people.
  void set(std::string_view key, const std::string& value, const std::string& why) {
    const std::string line = std::string(key) + "=" + value;
    const Placed* placed = reading_.last(key);
    if (placed == nullptr) {
      conf::Conf added;
      added.add(key, value);
      added_ += added.render();
      out_.changes.push_back(line + " is added: " + why);
      return;
    }
    const std::string before = std::string(key) + "=" + placed->setting.value;
    if (placed->file.empty()) {
      if (auto text = with_value(out_.text, placed->setting, value)) {
        out_.text = *std::move(text);
        out_.changes.push_back(line + " replaces " + before + ": " + why);
        return;
      }
    }
    out_.problems.push_back((placed->file.empty() ? "slurm.conf" : placed->file) + ": " + before + " must become " + line +
                            ": " + why);
  }
  /// Adds an item at the front of the list that is the value of `key`.
  void set_item(std::string_view key, const std::string& item, const std::string& why) {
    const std::string list = reading_.value(key);
    set(key, item + (list.empty() ? "" : ",") + list, why);
  }
  void include(std::string_view file, const std::string& why) {
    const std::string line = "Include " + std::string(file);
    added_ += line + "\n";
    out_.changes.push_back(line + " is added: " + why);
  }
  /// Appends the new lines to the text.
  void finish() {
    if (added_.empty()) return;
    std::string& text = out_.text;
    if (!text.empty() && text.back() != '\n') text += '\n';
    // If the last line ends with a backslash, it would continue with the first new line.
    if (included_files(text + "Include x\n").size() == included_files(text).size()) text += '\n';
    text += added_;
  }

 private:
  Preflight& out_;
  const Reading& reading_;
  std::string added_;
};

/// Returns the value of the item "name=value" in a list with commas; nullopt if there is no such item.
std::optional<std::string> item_value(std::string_view list, std::string_view name) {
  for (const std::string& item : list_items(list)) {
    if (const std::size_t equals = item.find('='); same_word(std::string_view(item).substr(0, equals), name))
      return equals == std::string::npos ? "" : item.substr(equals + 1);
  }
  return std::nullopt;
}

void check_plugins(const Reading& reading, std::vector<std::string>& problems) {
  const auto check = [&](std::string_view key, std::string_view needed, const std::string& why) {
    const Placed* placed = reading.last(key);
    if (placed == nullptr || placed->setting.value == needed) return;
    problems.push_back(std::string(key) + "=" + placed->setting.value + ": set " + std::string(key) + "=" +
                       std::string(needed) + ". " + why);
  };
  const std::string why_auth =
      "Hosts that join get a key for auth/slurm, never one of munge. A change of the authentication takes a restart of all "
      "daemons, "
      "so you have to make it yourself";
  if (reading.last("AuthType") == nullptr)
    problems.push_back("AuthType is not set, and Slurm's default is auth/munge: set AuthType=auth/slurm. " + why_auth);
  check("AuthType", "auth/slurm", why_auth);
  check("CredType", "cred/slurm",
        "Job credentials must not need munge on the hosts. The change takes a restart of all daemons");
  check("SelectType", "select/cons_tres", "Slurm lets nodes register by themselves with it only. The change ends running jobs");
}

std::string set_jwt(const Reading& reading, std::string_view jwt_key, Changes& changes) {
  const std::string why = "slurm-enlist reaches slurmctld through slurmrestd, with JSON Web Tokens";
  const std::vector<std::string> types = list_items(reading.value("AuthAltTypes"));
  const bool has_jwt = std::ranges::find(types, "auth/jwt") != types.end();
  if (!has_jwt) changes.set_item("AuthAltTypes", "auth/jwt", why);
  const std::string parameters = reading.value("AuthAltParameters");
  if (auto key = item_value(parameters, "jwt_key"); key && !key->empty()) return *key;
  if (auto key = item_value(reading.value("AuthInfo"), "jwt_key"); key && !key->empty()) return *key;
  std::string key(jwt_key);
  if (has_jwt && !item_value(parameters, "jwks")) {
    // auth/jwt already uses the key at its default path. With the same key, tokens that are in use stay valid.
    const std::string state = reading.value("StateSaveLocation");
    key = (state.empty() ? "/var/spool" : state) + "/jwt_hs256.key";
  }
  changes.set_item("AuthAltParameters", "jwt_key=" + key, why);
  return key;
}

std::string marker_begin() {
  return "PartitionName=" + conf::marker_name(Owner::kEnlistment, "");
}

/// Returns what stands before the key revision and the marker.
std::string_view lines_of_pools(std::string_view pool_file) {
  const std::size_t key = pool_file.rfind("\n" + std::string(kKeyMark)), marker = pool_file.rfind("\n" + marker_begin());
  const std::size_t end = std::min(key, marker);
  return pool_file.substr(0, end == std::string_view::npos ? end : end + 1);
}

/// Returns the file with these lines of pools, the key revision and the marker.
std::string marked(std::string text, std::string_view key_revision) {
  if (!key_revision.empty()) text += std::string(kKeyMark) + std::string(key_revision) + "\n";
  return text + conf::marker_partition(Owner::kEnlistment, core::short_digest(text)) + "\n";
}

}  // namespace

core::Result<void> check_partition_conf(std::string_view words) {
  if (std::ranges::any_of(words, [](char c) { return static_cast<unsigned char>(c) < ' ' && c != '\t'; }))
    return core::fail(core::ErrorCode::kInvalid,
                      "the parameters of a partition must be on one line, without control characters");
  conf::Conf line;
  std::string wrong;
  const auto add = [&](const std::string& problem) { wrong += (wrong.empty() ? "" : "; ") + problem; };
  std::vector<conf::Problem> problems = line.add_record("PartitionName", "x", words);
  const std::vector<conf::Setting>& settings = line.entries().front().settings;
  for (auto setting = settings.begin() + 1; setting != settings.end(); ++setting) {
    if (same_word(setting->key, "PartitionName")) add("PartitionName: the partition has the name of the pool; remove it");
    if (same_word(setting->key, "Nodes")) add("Nodes: the nodes are those of the pool; remove it");
  }
  for (const conf::Problem& problem : problems) {
    if (same_word(problem.key, "PartitionName")) continue;
    if (problem.fatal) {
      add(problem.str());
    } else {
      add(problem.key + ": not a known parameter of PartitionName. Known parameters: " + known_parameters());
    }
  }
  if (!wrong.empty()) return core::fail(core::ErrorCode::kInvalid, std::move(wrong));
  return {};
}

std::string pool_file(const std::map<std::string, Pool>& pools, std::string_view key_revision) {
  conf::Conf out;
  for (const auto& [name, pool] : pools) {
    out.add_record("NodeSet", name, "Feature=" + name);
    conf::Conf line;
    line.add_record("PartitionName", name, "Nodes=" + name + " " + pool.partition_conf);
    conf::Entry entry = line.entries().front();
    if (pool.removing) {
      std::erase_if(entry.settings, [](const conf::Setting& setting) { return same_word(setting.key, "State"); });
      entry.settings.push_back({.key = "State", .value = "DRAIN"});
    }
    out.add(std::move(entry));
  }
  return marked(std::string(kFileMark) + out.render(), key_revision);
}

std::string with_key_revision(std::string_view pool_file, std::string_view key_revision) {
  return marked(std::string(lines_of_pools(pool_file)), key_revision);
}

std::string_view key_revision_of(std::string_view pool_file) {
  const std::size_t at = pool_file.rfind("\n" + std::string(kKeyMark));
  if (at == std::string_view::npos) return {};
  const std::string_view rest = pool_file.substr(at + 1 + kKeyMark.size());
  return rest.substr(0, rest.find('\n'));
}

bool same_pools(std::string_view one, std::string_view other) {
  return lines_of_pools(one) == lines_of_pools(other);
}

std::string hash_of(std::string_view pool_file) {
  const std::string begin = marker_begin();
  const std::size_t at = pool_file.starts_with(begin) ? 0 : pool_file.rfind("\n" + begin);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = pool_file.substr(pool_file.find(begin, at) + begin.size());
  return std::string(rest.substr(0, rest.find_first_of(" \t\r\n")));
}

std::map<std::string, Pool> pools_of(std::string_view pool_file) {
  std::map<std::string, Pool> out;
  if (hash_of(pool_file).empty()) return out;
  const conf::Conf read = conf::parse(conf::Kind::kSlurm, pool_file).conf;
  for (const conf::Entry& entry : read.entries()) {
    const std::string& name = entry.head().value;
    if (entry.head().key != "PartitionName" || read.record("NodeSet", name) == nullptr || !check_pool_name(name)) continue;
    conf::Entry words = entry;
    std::erase_if(words.settings, [](const conf::Setting& setting) {
      return same_word(setting.key, "PartitionName") || same_word(setting.key, "Nodes");
    });
    Pool pool{.name = name};
    if (!words.settings.empty()) {
      conf::Conf line;
      line.add(std::move(words));
      pool.partition_conf = line.render();
      pool.partition_conf.pop_back();
    }
    out.insert_or_assign(name, std::move(pool));
  }
  return out;
}

std::vector<std::string> included_files(std::string_view slurm_conf) {
  std::vector<std::string> out;
  for (const conf::Problem& problem : conf::parse(conf::Kind::kSlurm, slurm_conf).problems) {
    if (problem.key != "Include") continue;
    std::string name = include_in(slurm_conf, problem.line);
    if (!name.empty() && name != kPoolFile) out.push_back(std::move(name));
  }
  return out;
}

Preflight preflight(std::string_view slurm_conf, std::size_t max_nodes, std::string_view jwt_key,
                    const std::map<std::string, std::string>& included) {
  Preflight out{{}, {}, std::string(slurm_conf), {}};
  Reading reading(included);
  reading.read("", slurm_conf);
  out.problems = reading.problems();
  check_plugins(reading, out.problems);
  Changes changes(out, reading);
  const std::vector<std::string> parameters = list_items(reading.value("SlurmctldParameters"));
  if (std::ranges::none_of(parameters, [](const std::string& item) { return same_word(item, "enable_configless"); }))
    changes.set_item("SlurmctldParameters", "enable_configless", "slurmds fetch their configuration from slurmctld");
  out.jwt_key = set_jwt(reading, jwt_key, changes);
  const std::string count = reading.value("MaxNodeCount");
  const std::uint64_t needed = std::min<std::uint64_t>(max_nodes, kMostNodes);
  const bool endless = same_word(count, "UNLIMITED") || same_word(count, "INFINITE");
  if (!endless && (count.empty() || whole_number(count).value_or(0) < needed)) {
    changes.set("MaxNodeCount", std::to_string(needed),
                "slurmctld refuses further nodes without a message, and without the setting it has room for the nodes in "
                "slurm.conf only");
  }
  if (reading.pool_files() == 0) changes.include(kPoolFile, "the file with the partitions of the pools");
  changes.finish();
  return out;
}

}  // namespace enlist
