// slurm.conf, cgroup.conf and slurmdbd.conf as a model: read, check, merge by rule, and render in a stable order.
//
//   conf::Parsed user = conf::parse(conf::Kind::kSlurm, spec.extra_conf);
//   conf::Merged merged = conf::merge(base, user.conf);
//   std::string text = merged.conf.render();
//
// The syntax follows slurm.conf(5) and Slurm's parse_config.c; tests/conformance/slurm compares this parser with Slurm's. Keys
// are case-insensitive. A line contains settings, and at most one record at its end. A record begins with one of the keys
// NodeName, NodeSet, PartitionName, DownNodes, FrontendName and PowerAction.
//
// Folder src/slurm/conf: configuration files of Slurm as a model. No I/O. Uses core.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace slurm::conf {

enum class Kind { kSlurm, kCgroup, kSlurmdbd };

struct Setting {
  std::string key;    ///< In Slurm's spelling if the key is known.
  std::string value;  ///< The value without enclosing quotes.
  int line = 0;       ///< The line of the text, from 1. 0: the setting does not come from a text.
};

/// A record or a single setting. In a record, settings[0] is the key and name, and the other settings are its parameters.
struct Entry {
  std::vector<Setting> settings;
  [[nodiscard]] const Setting& head() const { return settings.front(); }
  [[nodiscard]] bool record() const;
  /// True for a record named DEFAULT, in any case. Its parameters apply to the records of its kind that follow.
  [[nodiscard]] bool defaults() const;
};

/// A problem of a text. `message` says what is wrong with the key or its value. `line` counts from 1; 0 means no line.
struct Problem {
  int line = 0;
  std::string key;
  std::string message;
  bool fatal = true;                      ///< False: Slurm might accept it, for example a key that resembles no known key.
  [[nodiscard]] std::string str() const;  ///< "line 3: MinJobAge: "5m" is not a whole number".
};

class Conf {
 public:
  /// Returns the value of the last setting of this key.
  [[nodiscard]] std::optional<std::string> get(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> get_all(std::string_view key) const;
  /// Returns the record of this kind and name, or null.
  [[nodiscard]] const Entry* record(std::string_view kind, std::string_view name) const;
  /// Replaces all settings of this key by one setting, at the place of the first one. Adds a setting if there is none.
  void set(std::string_view key, std::string value);
  void add(Entry entry) { entries_.push_back(std::move(entry)); }
  /// Adds a setting even if the key exists (Prolog, Epilog).
  void add(std::string_view key, std::string value);
  /// Adds a record: kind and name, then "Key=Value" words as a user writes them ("Default=YES State=UP"). Returns the problems
  /// of the words.
  std::vector<Problem> add_record(std::string_view kind, std::string_view name, std::string_view words);
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  /// Renders one line for each entry: settings first, then NodeSet, NodeName, other records, and PartitionName. Entries of the
  /// same kind keep the order in which they were added.
  [[nodiscard]] std::string render() const;

 private:
  std::vector<Entry> entries_;
};

struct Parsed {
  Conf conf;
  std::vector<Problem> problems;
};
/// Parses as much as it can, and reports every problem. Refuses `Include`, because slurmctld would not find the included file.
Parsed parse(Kind kind, std::string_view text);

struct Merged {
  Conf conf;
  std::vector<Problem> problems;
};
/// Merges a user's configuration into the operator's. A user's value wins, with these exceptions. Keys that the operator owns
/// are refused, and so is a SelectType other than select/cons_tres. For comma lists of parameters (AuthInfo, AuthAltParameters,
/// AuthAltTypes, SlurmctldParameters) the result is the union, and the operator's items win. Repeatable keys (Prolog, Epilog)
/// and records are added. A record of the same kind and name as one of the operator's is refused, unless it is named
/// DEFAULT. In slurmdbd.conf, a key that a field of the Accounting sets is refused, and the problem names the field.
Merged merge(const Conf& base, const Conf& user, Kind kind = Kind::kSlurm);

/// Returns the keys that only take effect when slurmctld restarts.
const std::vector<std::string_view>& restart_keys();

/// Checks the "Key=Value ..." words of slurmd's --conf (slurmd(8), NODE PARAMETERS): known keys, no NodeName, double quotes
/// only. Returns the settings as read. A problem is fatal if no slurmd would start with it. Keys that a newer slurmd can know,
/// and keys that slurmd ignores, are not fatal.
struct NodeConf {
  std::vector<Setting> settings;
  std::vector<Problem> problems;
};
NodeConf parse_node_conf(std::string_view words);

}  // namespace slurm::conf
