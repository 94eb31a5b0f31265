// Slurm's reasons why a job waits, in plain words.
//
// There are some 200. Most name a limit according to a rule ("QOSMaxCpuPerUserLimit") and are read by that rule. The others are
// in a table. A reason that is covered by neither is shown as Slurm spells it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cli {

/// A limit as a reason names it.
struct NamedLimit {
  bool of_qos = false;  ///< If false, the limit of an association.
  std::string name;     ///< sacctmgr's name of the limit: "MaxTRESPerUser".
  std::string tres;     ///< What it limits: "cpu"; "gres/" for any GRES; "?" if Slurm does not say; "" without TRES.
  friend bool operator==(const NamedLimit&, const NamedLimit&) = default;
  /// True for a limit on this TRES.
  [[nodiscard]] bool covers(std::string_view of_tres) const;
};
/// Returns the limit that the reason is about, or nullopt.
[[nodiscard]] std::optional<NamedLimit> limit_of_reason(std::string_view reason);

struct Explanation {
  std::string_view meaning;  ///< A sentence.
  std::string_view advice;   ///< What one can do; "" if only waiting helps.
};
/// Returns the explanation of a reason; nullopt if the table has none.
[[nodiscard]] std::optional<Explanation> explain_reason(std::string_view reason);

/// How a limit counts.
enum class Measure {
  kJobs,         ///< Running jobs.
  kSubmitted,    ///< Running and waiting jobs.
  kTres,         ///< What running jobs have.
  kRunMinutes,   ///< What running jobs may still use up to their time limits.
  kUsedMinutes,  ///< What jobs have used, decayed.
  kUsedWall,     ///< How long jobs have run, decayed.
  kJobTres,      ///< What one job asks for.
  kJobMinutes,   ///< What one job may use up to its time limit.
  kNodeTres,     ///< What one job asks for on a node.
  kLeastTres,    ///< What one job must ask for at least.
  kJobWall,      ///< The time limit of one job.
};
enum class Among { kAll, kUser, kAccount };

/// A limit that keeps jobs waiting.
struct LimitKind {
  std::string_view name;  ///< sacctmgr's name.
  Measure measure;
  Among among = Among::kAll;  ///< Whose jobs count, of those that the holder of the limit has.
};
/// Returns null for a name that is no limit on jobs.
[[nodiscard]] const LimitKind* limit_kind(std::string_view name);
/// Explains the limit, which a QOS or an association has.
[[nodiscard]] Explanation explain_limit(const LimitKind& kind);

}  // namespace cli
