#include "enlist/rules/judge.hpp"

#include <algorithm>
#include <charconv>

#include "enlist/rules/leave.hpp"
#include "enlist/rules/service_files.hpp"
#include "enlist/rules/text.hpp"
#include "slurm/conf/conf.hpp"
#include "slurm/holds.hpp"

namespace enlist {
namespace {

using slurm::Holds;
using slurm::Owner;

/// If the start time of slurmd in Slurm's record is this much before Report::started, it is that of an earlier start.
constexpr core::Duration kStartTolerance{10'000};
/// The first and the longest pause before slurmd is asked to register once more.
constexpr core::Duration kFirstPause{5'000}, kLongestPause{300'000};

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::ranges::find(words, word) != words.end();
}

struct Resources {
  std::uint64_t cpus = 0, memory_mib = 0;  ///< 0: not in --conf.
};
Resources asked_for(const std::string& conf) {
  Resources out;
  std::uint64_t boards = 1, sockets = 0, cores = 0, threads = 1;
  for (const slurm::conf::Setting& setting : slurm::conf::parse_node_conf(conf).settings) {
    const std::uint64_t number = whole_number(setting.value).value_or(0);
    if (setting.key == "CPUs" || setting.key == "Procs") out.cpus = number;
    if (setting.key == "RealMemory") out.memory_mib = number;
    if (setting.key == "Boards") boards = number;
    if (setting.key == "Sockets" || setting.key == "SocketsPerBoard") sockets = number;
    if (setting.key == "CoresPerSocket") cores = number;
    if (setting.key == "ThreadsPerCore") threads = number;
    if (setting.key == "Sockets") boards = 1;
  }
  if (out.cpus == 0) out.cpus = boards * sockets * cores * threads;
  return out;
}

Resources resources_of(const slurm::Node& record) {
  return {.cpus = static_cast<std::uint64_t>(std::max<std::int64_t>(record.cpus, 0)),
          .memory_mib = static_cast<std::uint64_t>(std::max<std::int64_t>(record.real_memory_mib, 0))};
}

constexpr const char* kFromBefore =
    ": it is from before the node got these parameters, and Slurm reads them only for a new record";

/// Returns what Slurm's record lacks of Report::conf, or "". Ignores less than so many percent of the memory.
std::string less_than_asked(const slurm::Node& record, const Report& report, std::uint64_t percent) {
  const Resources asked = asked_for(report.conf), has = resources_of(record);
  const auto less = [](std::uint64_t there, std::uint64_t wanted, const char* what) {
    return "Slurm's record has " + std::to_string(there) + " " + what + " of " + std::to_string(wanted) + kFromBefore;
  };
  if (has.cpus < asked.cpus) return less(has.cpus, asked.cpus, "CPUs");
  if (has.memory_mib + has.memory_mib * percent / 100 < asked.memory_mib)
    return less(has.memory_mib, asked.memory_mib, "MiB of memory");
  return "";
}

/// Judges one node. Every function that returns a Judged sets the phase and the message.
class Judging {
 public:
  explicit Judging(const JudgeInput& input)
      : in_(input),
        node_(input.node),
        report_(input.node.report),
        record_(input.slurm ? input.slurm->node(node_.name) : nullptr) {}

  [[nodiscard]] Judged judge() const {
    if (node_.revoked) return stays("its key is revoked");
    if (!in_.slurm || !in_.slurm->complete()) return stays(slurm_is_silent());
    if (!in_.two_hosts.empty()) return {.phase = Phase::kImpostor, .message = in_.two_hosts};
    if (agent_silent() && (record_ == nullptr || not_responding())) return {.phase = Phase::kSilent, .message = silence()};
    Judged out = report_.running ? running() : not_running();
    // The agent may report an error although slurmd runs.
    if (report_.running && !report_.error.empty()) add(out.message, "the agent reports: " + report_.error);
    if (agent_silent()) add(out.message, "its agent has not reported for two minutes");
    if (!report_.note.empty()) add(out.message, report_.note);
    return out;
  }

 private:
  static void add(std::string& message, const std::string& more) { message += (message.empty() ? "" : "; ") + more; }
  [[nodiscard]] Judged stays(std::string why) const { return {.phase = node_.phase, .message = std::move(why)}; }

  // --- facts ---

  [[nodiscard]] bool agent_silent() const { return in_.heard_at && in_.now - *in_.heard_at >= kSilentAfter; }
  [[nodiscard]] bool not_responding() const { return record_->state.has("NOT_RESPONDING"); }
  /// True if the snapshot was requested after slurmd was first seen running unconfirmed.
  [[nodiscard]] bool asked_since() const { return in_.running_since && in_.slurm->requested_at > *in_.running_since; }
  /// True if asked_since(), and slurmd has run unconfirmed for `refused_after`.
  [[nodiscard]] bool waited() const { return asked_since() && in_.now - *in_.running_since >= in_.refused_after; }
  [[nodiscard]] std::string limit() const { return std::to_string(in_.refused_after.count() / 1000) + " s"; }

  [[nodiscard]] std::string slurm_is_silent() const {
    const std::string why = in_.slurm && !in_.slurm->error.empty() ? ": " + in_.slurm->error : "";
    std::string out = "Slurm does not answer" + why;
    if (!report_.running && !report_.error.empty()) add(out, "slurmd does not run: " + report_.error);
    return out;
  }
  [[nodiscard]] std::string silence() const {
    const std::string slurmd =
        record_ == nullptr ? "Slurm has no record of the node" : "slurmd does not respond to Slurm either";
    return "its agent has not reported for two minutes, and " + slurmd;
  }

  // --- the agent reports that slurmd does not run ---

  [[nodiscard]] Judged not_running() const {
    if (!report_.error.empty()) {
      const bool foreign = report_.error.starts_with(kForeignSlurmd);
      return {.phase = Phase::kRefused, .message = (foreign ? "" : "slurmd does not run: ") + report_.error};
    }
    const bool reported = has_reported(report_);
    if (!reported && record_ != nullptr && node_.confirmed.empty())
      return {.phase = Phase::kImpostor,
              .message = "Slurm has a node of this name, which was never on this host" + whereabouts()};
    if (!reported) return {.phase = Phase::kPending, .message = "its agent has not reported yet"};
    if (report_.instance_id.empty()) return {.phase = Phase::kStarting, .message = "the agent prepares slurmd"};
    return {.phase = Phase::kStarting, .message = "slurmd does not run; the agent starts it"};
  }

  // --- slurmd runs ---

  [[nodiscard]] Judged running() const {
    if (record_ == nullptr) return node_.confirmed.empty() ? unseen() : vanished();
    if (record_->instance_id != report_.instance_id || report_.instance_id.empty()) return other_process();
    if (auto bad = invalid()) return *std::move(bad);
    if (!has(record_->partitions, node_.pool)) return outside();
    if (must_close()) {
      return {.phase = Phase::kEnlisted,
              .message = "the host has booted, and its check has not passed yet; the gate closes",
              .close_gate = true};
    }
    if (earlier_start() && just_started() && node_.phase != Phase::kReady)
      return {.phase = Phase::kConfirming, .message = "slurmd runs; Slurm still shows its start from before"};
    return confirmed();
  }

  [[nodiscard]] Judged unseen() const {
    if (std::string cause = sure_cause(); !cause.empty()) return {.phase = Phase::kRefused, .message = std::move(cause)};
    Judged out{.phase = Phase::kConfirming, .message = "slurmd runs; Slurm does not show it yet"};
    if (waited()) out = {.phase = Phase::kRefused, .message = likely_cause()};
    // A registration during a reconfigure of slurmctld is lost, and slurmd does not repeat it.
    out.register_again = try_again();
    return out;
  }

  [[nodiscard]] Judged vanished() const {
    const std::string lost = "Slurm has lost the record of the node";
    if (starts() && !waited()) return unseen();
    const bool asked = report_.registrations < node_.registrations;
    if (asked && node_.phase != Phase::kRefused)
      return {.phase = Phase::kLost, .message = lost + "; the agent must register slurmd again"};
    if (node_.phase != Phase::kLost && node_.phase != Phase::kRefused)
      return {.phase = Phase::kLost, .message = lost + "; slurmd must register again", .register_again = true};
    if (node_.phase == Phase::kLost && !waited())
      return {.phase = Phase::kLost, .message = lost + "; slurmd has registered again, and Slurm does not show it yet"};
    std::string cause = sure_cause();
    const bool may_help = cause.empty();
    if (may_help) cause = likely_cause();
    return {.phase = Phase::kRefused, .message = lost + ". " + cause, .register_again = may_help && try_again()};
  }
  /// Reports whether slurmd was started and has not been confirmed since, so that it registers without being asked.
  [[nodiscard]] bool starts() const {
    const auto before = {Phase::kPending, Phase::kStarting, Phase::kConfirming, Phase::kRefused};
    return report_.instance_id != node_.confirmed || std::ranges::find(before, node_.phase) != before.end();
  }
  /// Reports whether the agent has carried out the last registration, and the pause after it is over.
  [[nodiscard]] bool try_again() const {
    if (!in_.running_since || report_.registrations < node_.registrations) return false;
    const core::MonoTime last = in_.registered_at.value_or(*in_.running_since);
    core::Duration pause = kFirstPause;
    for (int i = 0; i < in_.registered && pause < kLongestPause; ++i) pause *= 2;
    return in_.slurm->requested_at > last && in_.now - last >= std::min(pause, kLongestPause);
  }
  /// Returns a cause that is certain before `refused_after` is over; "": none is known.
  [[nodiscard]] std::string sure_cause() const {
    const slurm::Snapshot& slurm = *in_.slurm;
    if (asked_since() && in_.max_node_count && slurm.nodes.size() >= *in_.max_node_count) {
      return "Slurm's node table is full: it has " + std::to_string(slurm.nodes.size()) +
             " nodes, and MaxNodeCount=" + std::to_string(*in_.max_node_count) +
             ". Raise it in slurm.conf, and run scontrol reconfigure";
    }
    return version_problem(report_.slurm_version, slurm.capabilities.release);
  }
  /// Returns the probable causes for people. slurmctld reports the actual cause only in its log.
  [[nodiscard]] std::string likely_cause() const {
    const std::string refused = "Slurm has not accepted the node within " + limit();
    if (in_.slurm->partitions.contains(node_.name)) {
      return refused + ": a partition is called " + node_.name + " too, and Slurm refuses a node with the name of a NodeSet";
    }
    // slurmd has not tried to register yet. judge() appends the error that the agent reports.
    if (report_.error.contains(kStillStarting)) return "slurmd has not registered within " + limit();
    return refused +
           ", and gives no reason: see the logs of slurmd and slurmctld. Usual causes: the host does not resolve the name in "
           "SlurmctldHost, or does not reach its port (6817); another auth key, or another time; a full node table "
           "(MaxNodeCount); a NodeSet called " +
           node_.name;
  }

  [[nodiscard]] Judged other_process() const {
    if (!waited()) {
      return {.phase = Phase::kConfirming,
              .message = "slurmd runs; Slurm shows an earlier slurmd under this name" + whereabouts()};
    }
    if (!node_.confirmed.empty() && record_->instance_id == node_.confirmed) {
      return {.phase = Phase::kRefused,
              .message = "Slurm still shows the slurmd from before the restart: the new one has not registered within " +
                         limit() + ". See the logs of slurmctld and slurmd"};
    }
    return {.phase = Phase::kImpostor, .message = "Slurm shows another slurmd under this name" + whereabouts()};
  }
  /// Returns the host and the address in Slurm's record: " (host h, address a)"; "" if it has neither.
  [[nodiscard]] std::string whereabouts() const {
    std::string out;
    if (!record_->hostname.empty()) out += "host " + record_->hostname;
    if (!record_->address.empty()) out += (out.empty() ? "" : ", ") + std::string("address ") + record_->address;
    return out.empty() ? "" : " (" + out + ")";
  }

  /// Returns kInvalid if Slurm's record does not have the requested values.
  [[nodiscard]] std::optional<Judged> invalid() const {
    const auto bad = [](std::string message) { return Judged{.phase = Phase::kInvalid, .message = std::move(message)}; };
    if (record_->state.has("INVALID_REG")) {
      const bool told = !record_->reason.empty() && !slurm::held_by(record_->reason, Owner::kEnlistment);
      return bad("Slurm has marked the registration as invalid (INVALID_REG): " +
                 (told ? record_->reason : "slurmctld's log has the cause"));
    }
    if (!has(record_->features, node_.pool))
      return bad("Slurm's record lacks the feature " + node_.pool + ", so that the node is not in its pool");
    // A node that was confirmed before is not invalid: its record stays, and the host may have some MiB more after an update of
    // its kernel.
    if (const std::string less = less_than_asked(*record_, report_, 0); !less.empty() && node_.confirmed.empty())
      return bad(less);
    return std::nullopt;
  }
  [[nodiscard]] Judged outside() const {
    // A new pool needs a reconfigure of slurmctld, which then adds the node to the partition.
    const bool early = !waited() && node_.phase != Phase::kReady && node_.phase != Phase::kInvalid;
    const bool there = in_.slurm->partitions.contains(node_.pool);
    return {.phase = early ? Phase::kConfirming : Phase::kInvalid,
            .message =
                there ? "Slurm has the node outside of the partition " + node_.pool : "Slurm has no partition " + node_.pool};
  }

  /// Reports whether Slurm's record shows an earlier start of slurmd than the report. Both times are by the clock of the host.
  /// A slurmctld that was started after the registration does not have the time.
  [[nodiscard]] bool earlier_start() const {
    return report_.started != core::WallTime{} && record_->slurmd_start_time &&
           *record_->slurmd_start_time + kStartTolerance < report_.started;
  }
  [[nodiscard]] bool just_started() const {
    return !in_.started_at || in_.slurm->requested_at <= *in_.started_at || in_.now - *in_.started_at < in_.refused_after;
  }
  [[nodiscard]] std::string start_words() const {
    if (!earlier_start() || just_started()) return {};
    return "Slurm shows that slurmd was started at " + core::format_rfc3339(*record_->slurmd_start_time) +
           ", and the one that runs was started at " + core::format_rfc3339(report_.started) +
           ": it has not registered, or the clock of the host was set. To register it: systemctl reload slurmd";
  }

  // --- confirmed ---

  [[nodiscard]] Judged confirmed() const {
    const std::string& reason = record_->reason;
    const Holds holds = Holds::read(reason);
    // A node that was to leave but stays, or that was silent, is resumed like a node at the gate.
    const bool gated = record_->state.drains() && holds_itself(reason);
    if (gated) return at_the_gate(holds.others_than(Owner::kEnlistment));
    // Right after a node was resumed, Slurm shows it as not responding for a moment.
    const bool comes = not_responding() && node_.phase != Phase::kReady;
    Judged out{.phase = comes ? Phase::kEnlisted : Phase::kReady,
               .message = comes ? "the gate is open; Slurm waits for slurmd to respond" : state_words(),
               .gate_decided = report_.check_passed && boot_known()};
    if (const std::string differs = differs_from_conf(*record_, report_); !differs.empty()) add(out.message, differs);
    if (const std::string start = start_words(); !start.empty()) add(out.message, start);
    if (record_->state.drains()) {
      // Somebody else has set this drain, so we do not end it.
      add(out.message, "somebody else has drained it: " + (reason.empty() ? "no reason given" : reason));
    } else if ((record_->state.base == "DOWN" || record_->state.has("FAIL")) && !reason.empty()) {
      add(out.message, reason);
    }
    return out;
  }

  /// False if the agent could not read the boot id.
  [[nodiscard]] bool boot_known() const { return !report_.boot_id.empty(); }

  /// Reports whether the gate must close after a boot of the host. A host without a check always reports check_passed.
  [[nodiscard]] bool must_close() const {
    const bool booted = boot_known() && !node_.gate_boot.empty() && node_.gate_boot != report_.boot_id;
    return booted && !report_.check_passed && !record_->state.has("DRAIN") && state_words().empty();
  }

  [[nodiscard]] Judged at_the_gate(bool others) const {
    Judged out{.phase = Phase::kEnlisted, .message = down_while_unheard() ? "" : state_words(), .gate_decided = boot_known()};
    if (others) {
      add(out.message, "other programs have drained it too: " + slurm::said_by_others(record_->reason, Owner::kEnlistment));
    } else if (!report_.check_passed) {
      add(out.message, "its check has not passed yet");
    } else if (out.message.empty()) {
      out.message = "it is confirmed; the gate opens";
      out.open_gate = true;
    }
    return out;
  }

  /// True if slurmctld itself has set the node down because its slurmd did not respond, after we had drained the node. If
  /// somebody else had set it down, the reason would not be ours. slurmctld does not end this state for a node with our reason.
  [[nodiscard]] bool down_while_unheard() const {
    return record_->state.base == "DOWN" && !not_responding() && !record_->state.has("FAIL") &&
           Holds::read(record_->reason).why(Owner::kEnlistment) != kGate;
  }

  /// Returns why Slurm would start no jobs on the node even without a drain; "": it would. A node must not be resumed while
  /// this is not "", because Slurm sets a node down that is resumed before its slurmd responds.
  [[nodiscard]] std::string state_words() const {
    const std::string& base = record_->state.base;
    if (not_responding()) return "Slurm shows it as " + base + ", and slurmd does not respond";
    const bool works = base == "IDLE" || base == "MIXED" || base == "ALLOCATED";
    if (!works) return "Slurm shows it as " + base;
    return record_->state.has("FAIL") ? "Slurm shows it as FAIL" : "";
  }

  const JudgeInput& in_;
  const Node& node_;
  const Report& report_;
  const slurm::Node* record_;
};

}  // namespace

std::optional<int> release_number(std::string_view version) {
  int year = 0, month = 0;
  const auto [dot, error] = std::from_chars(version.data(), version.data() + version.size(), year);
  if (error != std::errc() || dot == version.data() + version.size() || *dot != '.') return std::nullopt;
  if (std::from_chars(dot + 1, version.data() + version.size(), month).ec != std::errc()) return std::nullopt;
  // There is a major release every May and November.
  return year * 2 + (month > 6 ? 1 : 0);
}

std::string version_problem(std::string_view slurmd, std::string_view slurmctld) {
  const std::optional<int> node = release_number(slurmd), controller = release_number(slurmctld);
  if (!node || !controller) return {};
  const std::string versions = "slurmd is " + shown(slurmd) + " and slurmctld is " + shown(slurmctld);
  if (*node > *controller) return versions + ": slurmd must not be newer";
  if (*node < *controller - 3) return versions + ": slurmd must be at most three major releases older";
  return {};
}

bool has_reported(const Report& report) {
  return !report.boot_id.empty() || !report.error.empty();
}

std::string differs_from_conf(const slurm::Node& record, const Report& report) {
  constexpr std::uint64_t kTolerance = 1;
  const std::string less = less_than_asked(record, report, kTolerance);
  if (!less.empty()) return less;
  const Resources asked = asked_for(report.conf), has = resources_of(record);
  const auto more = [](std::uint64_t there, std::uint64_t wanted, const char* what) {
    return "Slurm's record has " + std::to_string(there) + " " + what + " in place of " + std::to_string(wanted) + kFromBefore;
  };
  if (asked.cpus != 0 && has.cpus > asked.cpus) return more(has.cpus, asked.cpus, "CPUs");
  if (asked.memory_mib != 0 && has.memory_mib * 100 > asked.memory_mib * (100 + kTolerance))
    return more(has.memory_mib, asked.memory_mib, "MiB of memory");
  return "";
}

Judged judge(const JudgeInput& input) {
  return Judging(input).judge();
}

}  // namespace enlist
