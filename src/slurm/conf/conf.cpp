#include "slurm/conf/conf.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include "slurm/conf/known_keys.hpp"

namespace slurm::conf {
namespace {

using Names = std::span<const std::string_view>;

constexpr char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

bool same(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

constexpr bool precedes(std::string_view a, std::string_view b) {
  return std::ranges::lexicographical_compare(
      a, b, {}, [](char c) { return lower(c); }, [](char c) { return lower(c); });
}
template <class... Lists>
consteval bool sorted(const Lists&... lists) {
  return (std::ranges::is_sorted(lists, precedes) && ...);
}
static_assert(sorted(kSlurmKeys, kCgroupKeys, kSlurmdbdKeys, kRecordKeys, kNodeParameters, kNodeSetParameters,
                     kPartitionParameters, kDownNodesParameters, kPowerActionParameters, kSlurmNumbers, kCgroupNumbers,
                     kSlurmdbdNumbers, kNodeNumbers, kPartitionNumbers, kYesNo),
              "find_name searches them");

bool one_of(Names names, std::string_view key) {
  return std::ranges::any_of(names, [&](std::string_view name) { return same(name, key); });
}

/// Returns the name in a sorted list that equals the key if case is ignored, or "".
std::string_view find_name(Names names, std::string_view key) {
  const auto at = std::ranges::lower_bound(names, key, precedes);
  return at != names.end() && same(*at, key) ? *at : std::string_view();
}

constexpr auto kOwnedKeys =
    std::to_array<std::string_view>({"AuthType", "ClusterName", "CredType", "SlurmctldAddr", "SlurmctldHost", "SlurmctldPort",
                                     "SlurmdPort", "SlurmdUser", "SlurmUser", "StateSaveLocation"});
/// Owned keys of slurmdbd.conf, each with the field of an Accounting that sets it.
constexpr auto kOwnedByAccounting =
    std::to_array<std::pair<std::string_view, std::string_view>>({{"AuthType", ""},
                                                                  {"DbdAddr", ""},
                                                                  {"DbdBackupHost", ""},
                                                                  {"DbdHost", ""},
                                                                  {"DbdPort", "spec.service.port"},
                                                                  {"PidFile", ""},
                                                                  {"SlurmUser", ""},
                                                                  {"StorageHost", "spec.storageConfig.host"},
                                                                  {"StorageLoc", "spec.storageConfig.database"},
                                                                  {"StoragePass", "spec.storageConfig.passwordKeyRef"},
                                                                  {"StoragePassScript", "spec.storageConfig.passwordKeyRef"},
                                                                  {"StoragePort", "spec.storageConfig.port"},
                                                                  {"StorageType", ""},
                                                                  {"StorageUser", "spec.storageConfig.username"}});
constexpr auto kUnitedKeys =
    std::to_array<std::string_view>({"AuthAltParameters", "AuthAltTypes", "AuthInfo", "SlurmctldParameters"});
constexpr auto kRepeatedKeys =
    std::to_array<std::string_view>({"Epilog", "EpilogSlurmctld", "Prolog", "PrologSlurmctld", "SlurmctldHost"});
/// --conf takes the parameters of NodeName= except these. slurmctld learns the address and port from the registration.
constexpr auto kNotInNodeConf = std::to_array<std::string_view>({"NodeAddr", "NodeHostname", "Port", "SuspendTime"});

/// The characters of isspace(3), except the end of a line.
constexpr std::string_view kBlanks = " \t\r\v\f";

bool blank(char c) {
  return kBlanks.find(c) != std::string_view::npos;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, change});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// Returns the known key that is most similar, if at most two letters and fewer than half of the letters differ; else "".
std::string_view nearest(Names names, std::string_view key) {
  std::string_view best;
  std::size_t distance = 3;
  for (const std::string_view name : names) {
    const std::size_t d = edit_distance(name, key);
    if (d < distance && d < name.size() / 2) {
      best = name;
      distance = d;
    }
  }
  return best;
}

/// Replaces the key by Slurm's spelling of the key. Reports an unknown key.
void settle_key(Setting& setting, Names names, std::string_view what, std::vector<Problem>& problems) {
  if (const std::string_view known = find_name(names, setting.key); !known.empty()) {
    setting.key = known;
    return;
  }
  const std::string_view meant = nearest(names, setting.key);
  if (meant.empty()) {
    problems.push_back(
        {setting.line, setting.key, "not a known " + std::string(what) + "; Slurm decides whether it is valid", false});
  } else {
    problems.push_back(
        {setting.line, setting.key, "not a known " + std::string(what) + ", did you mean " + std::string(meant) + "?"});
  }
}

bool whole_number(std::string_view value) {
  if (same(value, "UNLIMITED") || same(value, "INFINITE")) return true;
  if (value.size() > 1 && (value.back() == 'k' || value.back() == 'K')) value.remove_suffix(1);
  return !value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Reports values that Slurm's parser refuses, because slurmctld would answer the reconfigure only with "Unspecified error".
void check_value(const Setting& setting, Names numbers, std::vector<Problem>& problems) {
  static const auto kWords = std::to_array<std::string_view>({"yes", "no", "up", "down", "true", "false", "1", "0"});
  if (setting.value.empty()) return;  // split_words has reported it, unless the user wrote Key="" on purpose.
  if (!find_name(numbers, setting.key).empty() && !whole_number(setting.value)) {
    problems.push_back({setting.line, setting.key, "\"" + setting.value + "\" is not a whole number"});
  } else if (!find_name(kYesNo, setting.key).empty() &&
             std::ranges::none_of(kWords, [&](std::string_view word) { return same(word, setting.value); })) {
    problems.push_back({setting.line, setting.key, "\"" + setting.value + "\" is neither yes nor no"});
  }
}

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Accepts minutes, M:S, H:M:S, D-H, D-H:M, D-H:M:S, or no limit.
bool time_limit(std::string_view value) {
  if (same(value, "UNLIMITED") || same(value, "INFINITE") || value == "-1") return true;
  if (const std::size_t dash = value.find('-'); dash != std::string_view::npos) {
    if (!digits(value.substr(0, dash))) return false;
    value.remove_prefix(dash + 1);
  }
  for (int parts = 1; parts <= 3; ++parts) {
    const std::size_t colon = value.find(':');
    if (!digits(value.substr(0, colon))) return false;
    if (colon == std::string_view::npos) return true;
    value.remove_prefix(colon + 1);
  }
  return false;
}

bool over_subscribe(std::string_view value) {
  static const auto kWords = std::to_array<std::string_view>({"NO", "EXCLUSIVE", "YES", "FORCE"});
  const std::size_t colon = value.find(':');
  const std::string_view word = value.substr(0, colon);
  if (colon == std::string_view::npos) return one_of(kWords, word);
  return (same(word, "YES") || same(word, "FORCE")) && digits(value.substr(colon + 1));
}

/// Reports values for which slurmctld would refuse the partition, and therefore the whole file.
void check_partition_value(const Setting& setting, std::vector<Problem>& problems) {
  static const auto kStates = std::to_array<std::string_view>({"UP", "DOWN", "DRAIN", "INACTIVE"});
  if (setting.value.empty()) return;  // split_words has already reported the empty value.
  const auto tell = [&](std::string_view what) {
    problems.push_back({setting.line, setting.key, "\"" + setting.value + "\" is not " + std::string(what)});
  };
  if (setting.key == "State" && !one_of(kStates, setting.value)) tell("UP, DOWN, DRAIN or INACTIVE");
  if ((setting.key == "MaxTime" || setting.key == "DefaultTime") && !time_limit(setting.value))
    tell("a time: minutes, hours:minutes:seconds, days-hours or UNLIMITED");
  if ((setting.key == "OverSubscribe" || setting.key == "Shared") && !over_subscribe(setting.value))
    tell("NO, EXCLUSIVE, YES[:count] or FORCE[:count]");
}

Names numbers_of(std::string_view record) {
  if (same(record, "NodeName")) return kNodeNumbers;
  if (same(record, "PartitionName")) return kPartitionNumbers;
  return {};
}

Names parameters_of(std::string_view record) {
  if (same(record, "NodeName")) return kNodeParameters;
  if (same(record, "NodeSet")) return kNodeSetParameters;
  if (same(record, "PartitionName")) return kPartitionParameters;
  if (same(record, "DownNodes")) return kDownNodesParameters;
  return kPowerActionParameters;
}

/// Splits "Key=Value Key2="quoted value"" into settings. Values with blanks must be in double quotes (slurm.conf(5)).
std::vector<Setting> split_words(std::string_view text, int line, std::vector<Problem>& problems) {
  std::vector<Setting> out;
  while (!(text = trim(text)).empty()) {
    const std::size_t end = std::min(text.find('='), text.find_first_of(kBlanks));
    if (end == std::string_view::npos || text[end] != '=') {
      // "Key = Value" is one setting as well.
      const std::size_t equals = end == std::string_view::npos ? end : text.find_first_not_of(kBlanks, end);
      if (equals == std::string_view::npos || text[equals] != '=') {
        const std::string word(text.substr(0, end));
        problems.push_back({line, word, "no value; write " + word + "=VALUE"});
        if (end == std::string_view::npos) break;
        text.remove_prefix(end);
        continue;
      }
      out.push_back({std::string(text.substr(0, end)), "", line});
      text.remove_prefix(equals + 1);
    } else {
      out.push_back({std::string(text.substr(0, end)), "", line});
      text.remove_prefix(end + 1);
    }
    Setting& setting = out.back();
    while (!text.empty() && blank(text.front())) text.remove_prefix(1);
    if (text.starts_with('"')) {
      const std::size_t close = text.find('"', 1);
      if (close == std::string_view::npos) {
        problems.push_back({line, setting.key, "the value has no closing double quote"});
        setting.value = text.substr(1);
        break;
      }
      setting.value = text.substr(1, close - 1);
      text.remove_prefix(close + 1);
      continue;
    }
    const std::size_t stop = std::min(text.find_first_of(kBlanks), text.size());
    setting.value = text.substr(0, stop);
    text.remove_prefix(stop);
    if (setting.key.empty())
      problems.push_back({line, setting.value, "a value without a key"});
    else if (setting.value.empty())
      problems.push_back({line, setting.key, "an empty value; Slurm's own commands refuse such a file"});
  }
  return out;
}

/// Returns the text before a comment. A # begins a comment if it follows an even number of backslashes, or none.
std::string_view without_comment(std::string_view line) {
  std::size_t backslashes = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && backslashes % 2 == 0) return line.substr(0, i);
    backslashes = line[i] == '\\' ? backslashes + 1 : 0;
  }
  return line;
}

/// Returns the position of the backslash that continues the line. It must be the last of an odd number of backslashes, followed
/// only by blanks. Returns npos if the line is not continued.
std::size_t continuation(std::string_view line) {
  line = line.substr(0, line.find_last_not_of(kBlanks) + 1);
  const std::size_t last_other = line.find_last_not_of('\\');
  const std::size_t backslashes = line.size() - (last_other == std::string_view::npos ? 0 : last_other + 1);
  return backslashes % 2 == 1 ? line.size() - 1 : std::string_view::npos;
}

/// Removes each backslash and keeps the character after it.
std::string without_escapes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') ++i;
    if (i < text.size()) out += text[i];
  }
  return out;
}

/// Returns the lines with their numbers, as Slurm's parse_config.c reads them: removes comments, then joins a line that ends
/// with a backslash and the line below it, then removes escapes. A joined line has the number of its first line.
std::vector<std::pair<int, std::string>> logical_lines(std::string_view text) {
  std::vector<std::pair<int, std::string>> out;
  int number = 0;
  bool joined = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_comment(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const std::size_t more = continuation(line);
    if (!joined) out.emplace_back(number, "");
    out.back().second += line.substr(0, more);
    joined = more != std::string_view::npos;
  }
  for (auto& [line, content] : out) content = without_escapes(content);
  return out;
}

void settle_record(Entry& entry, std::vector<Problem>& problems) {
  const Names names = parameters_of(entry.head().key);
  for (std::size_t i = 1; i < entry.settings.size(); ++i) {
    settle_key(entry.settings[i], names, "parameter of " + entry.head().key, problems);
    check_value(entry.settings[i], numbers_of(entry.head().key), problems);
    if (same(entry.head().key, "PartitionName")) check_partition_value(entry.settings[i], problems);
  }
}

/// Quotes and escapes a value so that it is read back unchanged.
std::string written(const std::string& value) {
  const bool quotes = value.empty() || value.find_first_of(kBlanks) != std::string::npos;
  std::string out = quotes ? "\"" : "";
  for (const char c : value) {
    if (c == '\\' || c == '#') out += '\\';
    out += c;
  }
  return quotes ? out + '"' : out;
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (const auto item = trim(text.substr(0, end)); !item.empty()) out.emplace_back(item);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::string_view name_of_item(std::string_view item) {
  return item.substr(0, item.find('='));
}

/// Returns the operator's items, and those items of the user whose names differ from the names of the operator's items.
std::string unite(std::string_view base, std::string_view user) {
  std::vector<std::string> items = split_list(base);
  for (std::string& item : split_list(user)) {
    const bool there =
        std::ranges::any_of(items, [&](const std::string& i) { return same(name_of_item(i), name_of_item(item)); });
    if (!there) items.push_back(std::move(item));
  }
  std::string out;
  for (const std::string& item : items) out += (out.empty() ? "" : ",") + item;
  return out;
}

int rank(const Entry& entry) {
  if (!entry.record()) return 0;
  if (entry.head().key == "NodeSet") return 1;
  if (entry.head().key == "NodeName") return 2;
  return entry.head().key == "PartitionName" ? 4 : 3;
}

}  // namespace

bool Entry::record() const {
  return one_of(kRecordKeys, head().key);
}

bool Entry::defaults() const {
  return record() && same(head().value, "DEFAULT");
}

std::string Problem::str() const {
  return (line > 0 ? "line " + std::to_string(line) + ": " : "") + (key.empty() ? "" : key + ": ") + message;
}

std::optional<std::string> Conf::get(std::string_view key) const {
  const auto all = get_all(key);
  if (all.empty()) return {};
  return all.back();
}

std::vector<std::string> Conf::get_all(std::string_view key) const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_) {
    if (same(entry.head().key, key)) out.push_back(entry.head().value);
  }
  return out;
}

const Entry* Conf::record(std::string_view kind, std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.record() && same(entry.head().key, kind) && entry.head().value == name) return &entry;
  }
  return nullptr;
}

void Conf::set(std::string_view key, std::string value) {
  const auto is_key = [&](const Entry& entry) { return same(entry.head().key, key); };
  const auto first = std::ranges::find_if(entries_, is_key);
  if (first == entries_.end()) {
    add(key, std::move(value));
    return;
  }
  first->settings.front().value = std::move(value);
  entries_.erase(std::remove_if(std::next(first), entries_.end(), is_key), entries_.end());
}

void Conf::add(std::string_view key, std::string value) {
  entries_.push_back({{{std::string(key), std::move(value), 0}}});
}

std::vector<Problem> Conf::add_record(std::string_view kind, std::string_view name, std::string_view words) {
  std::vector<Problem> problems;
  Entry entry{{{std::string(kind), std::string(name), 0}}};
  for (Setting& setting : split_words(without_escapes(words), 0, problems)) entry.settings.push_back(std::move(setting));
  settle_record(entry, problems);
  entries_.push_back(std::move(entry));
  return problems;
}

std::string Conf::render() const {
  std::vector<const Entry*> sorted;
  for (const Entry& entry : entries_) sorted.push_back(&entry);
  std::ranges::stable_sort(sorted, {}, [](const Entry* entry) { return rank(*entry); });
  std::string out;
  for (const Entry* entry : sorted) {
    for (std::size_t i = 0; i < entry->settings.size(); ++i) {
      out += (i == 0 ? "" : " ") + entry->settings[i].key + "=" + written(entry->settings[i].value);
    }
    out += '\n';
  }
  return out;
}

namespace {

struct Vocabulary {
  Names keys, numbers;
  std::string_view what;
};

Vocabulary vocabulary_of(Kind kind) {
  switch (kind) {
    case Kind::kCgroup:
      return {kCgroupKeys, kCgroupNumbers, "key of cgroup.conf"};
    case Kind::kSlurmdbd:
      return {kSlurmdbdKeys, kSlurmdbdNumbers, "key of slurmdbd.conf"};
    case Kind::kSlurm:
      break;
  }
  return {kSlurmKeys, kSlurmNumbers, "key of slurm.conf"};
}

/// Returns why the user must not set this key; nullopt if it is allowed.
std::optional<std::string> why_owned(Kind kind, std::string_view key) {
  if (kind != Kind::kSlurmdbd) return one_of(kOwnedKeys, key) ? std::optional("set by the operator; remove it") : std::nullopt;
  const auto found = std::ranges::find_if(kOwnedByAccounting, [&](const auto& owned) { return same(owned.first, key); });
  if (found == kOwnedByAccounting.end()) return {};
  if (found->second.empty()) return "set by the operator; remove it";
  return "set by the operator; remove it, and set " + std::string(found->second);
}

}  // namespace

Parsed parse(Kind kind, std::string_view text) {
  const Vocabulary vocabulary = vocabulary_of(kind);
  Parsed out;
  std::map<std::pair<std::string, std::string>, int> records;
  for (const auto& [number, line] : logical_lines(text)) {
    const std::string_view content = trim(line);
    if (content.empty()) continue;
    if (same(content.substr(0, content.find_first_of(" \t=")), "Include")) {
      out.problems.push_back({number, "Include",
                              kind == Kind::kSlurmdbd ? "other files cannot be included"
                                                      : "other files cannot be included; use ConfigMaps in "
                                                        "configFileRefs"});
      continue;
    }
    std::vector<Setting> settings = split_words(content, number, out.problems);
    // A record contains all settings that follow the record's key on the line.
    const auto record = kind != Kind::kSlurm ? settings.end() : std::ranges::find_if(settings, [](const Setting& setting) {
      return one_of(kRecordKeys, setting.key);
    });
    for (auto setting = settings.begin(); setting != record; ++setting) {
      settle_key(*setting, vocabulary.keys, vocabulary.what, out.problems);
      check_value(*setting, vocabulary.numbers, out.problems);
      out.conf.add({{std::move(*setting)}});
    }
    if (record == settings.end()) continue;
    Entry entry{{std::make_move_iterator(record), std::make_move_iterator(settings.end())}};
    settle_key(entry.settings.front(), kRecordKeys, "key", out.problems);
    settle_record(entry, out.problems);
    const auto [known, fresh] = records.try_emplace({entry.head().key, entry.head().value}, number);
    if (!fresh && !entry.defaults()) {
      out.problems.push_back(
          {number, entry.head().key, entry.head().value + " is already defined in line " + std::to_string(known->second)});
    }
    out.conf.add(std::move(entry));
  }
  return out;
}

Merged merge(const Conf& base, const Conf& user, Kind kind) {
  Merged out{base, {}};
  for (const Entry& entry : user.entries()) {
    const Setting& head = entry.head();
    if (entry.record()) {
      if (!entry.defaults() && base.record(head.key, head.value) != nullptr) {
        out.problems.push_back(
            {head.line, head.key, head.value + " is created for the NodeSet of that name; choose another name"});
      } else {
        out.conf.add(entry);
      }
    } else if (auto why = why_owned(kind, head.key)) {
      out.problems.push_back({head.line, head.key, std::move(*why)});
    } else if (same(head.key, "SelectType") && !same(head.value, "select/cons_tres")) {
      // With another SelectType, create_dynamic_reg_node and delete_nodes in node_mgr.c fail: "only compatible with
      // select/cons_tres".
      out.problems.push_back(
          {head.line, head.key,
           "\"" + head.value + "\" does not let workers register by themselves; only select/cons_tres does"});
    } else if (one_of(kUnitedKeys, head.key)) {
      out.conf.set(head.key, unite(out.conf.get(head.key).value_or(""), head.value));
    } else if (one_of(kRepeatedKeys, head.key)) {
      out.conf.add(head.key, head.value);
    } else {
      out.conf.set(head.key, head.value);
    }
  }
  return out;
}

const std::vector<std::string_view>& restart_keys() {
  // A reconfigure does not change these keys: the new slurmctld process takes over the sockets and the identity of the old
  // process (slurm.conf(5); scontrol(1), "reconfigure").
  static const std::vector<std::string_view> keys{"AuthType",          "ClusterName",   "CredType",      "HashPlugin",
                                                  "SlurmUser",         "SlurmctldHost", "SlurmctldPort", "SlurmdPort",
                                                  "StateSaveLocation", "TLSType"};
  return keys;
}

namespace {

std::string node_conf_keys() {
  std::string out;
  for (const std::string_view name : kNodeParameters) {
    if (!one_of(kNotInNodeConf, name)) out += (out.empty() ? "" : ", ") + std::string(name);
  }
  return out;
}

}  // namespace

NodeConf parse_node_conf(std::string_view words) {
  NodeConf out;
  if (words.find('\'') != std::string_view::npos) {
    out.problems.push_back({0, "", "contains a single quote; Slurm accepts only double quotes"});
  }
  if (words.find('\n') != std::string_view::npos)
    out.problems.push_back({0, "", "contains a line break; write everything on one line"});
  out.settings = split_words(words, 0, out.problems);
  std::set<std::string> seen;
  for (Setting& setting : out.settings) {
    if (same(setting.key, "NodeName")) {
      out.problems.push_back({0, setting.key, "the node's name is its pod's hostname; remove it"});
      continue;
    }
    if (one_of(kNotInNodeConf, setting.key)) {
      out.problems.push_back({0, setting.key, "not accepted by slurmd --conf; remove it", same(setting.key, "SuspendTime")});
      continue;
    }
    const std::size_t before = out.problems.size();
    settle_key(setting, kNodeParameters, "node parameter", out.problems);
    for (std::size_t i = before; i < out.problems.size(); ++i) {
      if (!out.problems[i].fatal) {
        out.problems[i].message =
            "not a known node parameter; slurmd exits unless its release knows it. Known parameters: " + node_conf_keys();
      }
    }
    check_value(setting, kNodeNumbers, out.problems);
    const std::string canonical = same(setting.key, "Feature") ? "features" : lower(setting.key);
    if (!seen.insert(canonical).second && canonical != "features") {
      out.problems.push_back({0, setting.key, "is set more than once"});
    }
  }
  return out;
}

}  // namespace slurm::conf
