// Slurm's reasons why a job waits, in plain words.
//
// There are some 200 reasons. Most names are composed of the parts of a limit ("QOSMaxCpuPerUserLimit"); the program parses
// these names. A table explains other reasons. A reason that is neither parsed nor in the table is shown as Slurm spells it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cli {

/// The limit that a reason names.
struct NamedLimit {
  bool of_qos = false;  ///< True: a QOS sets the limit. False: an association sets it.
  std::string name;     ///< sacctmgr's name of the limit: "MaxTRESPerUser".
  std::string tres;     ///< The limited TRES: "cpu"; "gres/" for any GRES; "?" if the reason does not name it; "" if none.
  friend bool operator==(const NamedLimit&, const NamedLimit&) = default;
  /// Reports whether the limit restricts this TRES, or might restrict it.
  [[nodiscard]] bool covers(std::string_view of_tres) const;
};
/// Returns the limit that the reason names; nullopt if the reason names no limit.
[[nodiscard]] std::optional<NamedLimit> limit_of_reason(std::string_view reason);

struct Explanation {
  std::string_view meaning;  ///< What the reason means, in a sentence.
  std::string_view advice;   ///< What the user can do; "" if only waiting helps.
};
/// Returns the explanation of a reason; nullopt if the table has none.
[[nodiscard]] std::optional<Explanation> explain_reason(std::string_view reason);

/// Returns the explanation of a reason, whether or not the reason names a limit; nullopt if it is unknown.
[[nodiscard]] std::optional<Explanation> explain_any_reason(std::string_view reason);

/// The quantity that a limit counts.
enum class Measure {
  kJobs,         ///< Running jobs.
  kSubmitted,    ///< Running and waiting jobs.
  kTres,         ///< The TRES of running jobs.
  kRunMinutes,   ///< The TRES minutes that running jobs can still use before their time limits.
  kUsedMinutes,  ///< The TRES minutes that jobs have used. Past use counts less (PriorityDecayHalfLife).
  kUsedWall,     ///< The minutes that jobs have run. Past minutes count less.
  kJobTres,      ///< The TRES that one job asks for.
  kJobMinutes,   ///< The TRES minutes that one job can use before its time limit.
  kNodeTres,     ///< The TRES that one job asks for on each node.
  kLeastTres,    ///< The least TRES that one job must ask for.
  kJobWall,      ///< The time limit of one job.
};
enum class Among { kAll, kUser, kAccount };

/// A kind of limit that can keep jobs waiting.
struct LimitKind {
  std::string_view name;  ///< The name of the limit in sacctmgr.
  Measure measure;
  Among among = Among::kAll;  ///< The jobs that count: all jobs of the QOS or association, or those of one user or account.
};
/// Returns the kind of the limit with this name in sacctmgr; null if no limit on jobs has this name.
[[nodiscard]] const LimitKind* limit_kind(std::string_view name);
/// Explains a limit that a QOS or an association sets.
[[nodiscard]] Explanation explain_limit(const LimitKind& kind);

}  // namespace cli
