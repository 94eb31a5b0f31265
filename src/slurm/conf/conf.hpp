// slurm.conf, cgroup.conf and slurmdbd.conf as a model: read, check, merge by rule, and render in a stable order.
//
//   conf::Parsed user = conf::parse(conf::Kind::kSlurm, spec.extra_conf);
//   conf::Merged merged = conf::merge(base, user.conf);
//   std::string text = merged.conf.render();
//
// Rules of syntax: slurm.conf(5), and Slurm's parse_config.c, to which tests/conformance/slurm holds them. Keys are compared
// without case. A line holds settings, and a record: the words from a key on that is NodeName, NodeSet, PartitionName,
// DownNodes or PowerAction.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slurm::conf {

enum class Kind { kSlurm, kCgroup, kSlurmdbd };

struct Setting {
  std::string key;    ///< In Slurm's own spelling where we know the key.
  std::string value;  ///< Without the quotes it may have had.
  int line = 0;       ///< Where it was read; 0: it was not.
};

/// One line: settings[0] is the record's key and name, the rest its parameters; or a single setting.
struct Entry {
  std::vector<Setting> settings;
  [[nodiscard]] const Setting& head() const { return settings.front(); }
  [[nodiscard]] bool record() const;
  /// A record whose name is DEFAULT, of any case: its parameters are those of the records of its kind behind it.
  [[nodiscard]] bool defaults() const;
};

/// What is wrong with a text. `message` names key, value and what is allowed; `line` counts from 1.
struct Problem {
  int line = 0;
  std::string key;
  std::string message;
  bool fatal = true;  ///< False: slurmctld decides (a key that we do not know and that resembles none we do).
  [[nodiscard]] std::string str() const;  ///< "line 3: ScedulerType: unknown, did you mean SchedulerType?"
};

class Conf {
 public:
  /// The value of the last setting of this key.
  [[nodiscard]] std::optional<std::string> get(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> get_all(std::string_view key) const;
  /// The record of this kind and name, or null.
  [[nodiscard]] const Entry* record(std::string_view kind, std::string_view name) const;
  /// Replaces all settings of this key by one, where the first stood; adds it when there was none.
  void set(std::string_view key, std::string value);
  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  /// Adds a setting even if the key is there (Prolog, Epilog).
  void add(std::string_view key, std::string value);
  /// Adds a record: kind and name, then "Key=Value" words as a user writes them ("Default=YES State=UP"). Problems of the words
  /// are given back.
  std::vector<Problem> add_record(std::string_view kind, std::string_view name, std::string_view words);
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// One line an entry: settings in the order in which they were added, then NodeSet, NodeName, DownNodes and PartitionName
  /// records.
  [[nodiscard]] std::string render() const;

 private:
  std::vector<Entry> entries_;
};

struct Parsed {
  Conf conf;
  std::vector<Problem> problems;
};
/// Reads everything it can, and tells every problem. `Include` is refused: the file lies where no other can be found.
Parsed parse(Kind kind, std::string_view text);

struct Merged {
  Conf conf;
  std::vector<Problem> problems;
};
/// Puts a user's configuration over the operator's. A user's value wins, except: keys that the operator owns are refused; comma
/// lists of parameters (AuthInfo, AuthAltParameters, AuthAltTypes, SlurmctldParameters) are united, the operator's entry
/// winning; keys that may stand more than once (Prolog, Epilog ...) and records are added, a record of a known kind and name
/// being refused. Of slurmdbd.conf, what an Accounting's spec.storageConfig says is refused with that field's name.
Merged merge(const Conf& base, const Conf& user, Kind kind = Kind::kSlurm);

/// The keys that only a restart of slurmctld brings into force.
const std::vector<std::string_view>& restart_keys();

/// Checks "Key=Value ..." words of slurmd's --conf (slurmd(8), NODE PARAMETERS): known keys, no NodeName, double quotes only.
/// The settings are given back as read. Fatal is what no slurmd starts with; not fatal is a key that a later one may know, and
/// one that slurmd has no use for.
struct NodeConf {
  std::vector<Setting> settings;
  std::vector<Problem> problems;
};
NodeConf parse_node_conf(std::string_view words);

}  // namespace slurm::conf
