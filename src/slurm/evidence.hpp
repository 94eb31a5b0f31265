// Evidence from Slurm's answers that no work is lost if a node record is deleted, or if the pod or process of its slurmd ends.
// DrainTimedOut differs: it proves that the user allows the owner to end jobs.
//
// Evidence is valid for as long as the snapshot from which it was made (Snapshot::good_for). Evidence also names the state that
// the live node must have just before anything is destroyed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/evidence.hpp"
#include "slurm/holds.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slurm {

struct NodeId {
  ClusterKey cluster;
  std::string name;
};

class NodeEvidence : public plan::Evidence {
 public:
  /// The state that the live node must have, if it still exists.
  enum class Live {
    kKept,     ///< Drained, failing or down.
    kDrained,  ///< Drained by anybody.
    kSilent,   ///< Down and not responding.
  };

  [[nodiscard]] const NodeId& node() const { return node_; }
  /// Slurm's reason for the node; "" if Slurm has no record of the node.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] Live live() const { return live_; }

 protected:
  NodeEvidence(const plan::Observing& observing, NodeId node, std::string_view kind, std::string detail,
               std::optional<core::MonoTime> good_until, std::string reason = {}, Live live = Live::kKept)
      : Evidence(observing, kind, std::move(detail), good_until),
        node_(std::move(node)),
        reason_(std::move(reason)),
        live_(live) {}

 private:
  NodeId node_;
  std::string reason_;
  Live live_;
};

/// Proves that a node is drained: a fresh snapshot has it with DRAIN and without UNDRAIN, with the base state IDLE or DOWN, and
/// with none of COMPLETING, ALLOCATED and MIXED. No job holds the node.
class Drained final : public NodeEvidence {
 public:
  static std::optional<Drained> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node);

 private:
  using NodeEvidence::NodeEvidence;
};

/// Proves that the worker has never registered: it had enough time to do so, or it cannot register. See absent_for_good().
class NeverRegistered final : public NodeEvidence {
 public:
  static constexpr std::string_view kKind = "NeverRegistered";
  static std::optional<NeverRegistered> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node,
                                           bool stamped, std::optional<core::MonoTime> since);

 private:
  using NodeEvidence::NodeEvidence;
};

/// Proves that a fresh snapshot lacks the node, and that no job names it. The caller knows since when Slurm lacks it: `since`.
class Forgotten final : public NodeEvidence {
 public:
  static std::optional<Forgotten> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node,
                                     core::WallTime since);

 private:
  using NodeEvidence::NodeEvidence;
};

/// Proves that a fresh snapshot has the node DOWN and NOT_RESPONDING, and that no job names it. The caller knows that the
/// worker's Kubernetes node, `host`, is lost.
class Silent final : public NodeEvidence {
 public:
  static std::optional<Silent> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node,
                                  std::string_view host);

 private:
  using NodeEvidence::NodeEvidence;
};

/// Proves that a fresh snapshot has the node DOWN. The caller knows, and explains in `why`, that no worker uses the record.
class LeftBehind final : public NodeEvidence {
 public:
  static std::optional<LeftBehind> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node, std::string why);

 private:
  using NodeEvidence::NodeEvidence;
};

/// Proves that the node's slurmd has ended, and with it all jobs of the node. `slurmd` is the start time of this slurmd in the
/// node record, which identifies it. The caller knows where the slurmd ran, and that it ended there.
class SlurmdEnded final : public NodeEvidence {
 public:
  SlurmdEnded(const plan::Observing& observing, NodeId node, core::WallTime slurmd, std::string detail,
              std::optional<core::MonoTime> good_until)
      : NodeEvidence(observing, std::move(node), "SlurmdEnded", std::move(detail), good_until), slurmd_(slurmd) {}
  [[nodiscard]] core::WallTime slurmd() const { return slurmd_; }

 private:
  core::WallTime slurmd_;
};

/// Selects what happens to jobs that still run on a drained node when the drain times out.
enum class EndOfJobs {
  kRequeue,  ///< Jobs that can be requeued are requeued; other jobs keep running.
  kCancel,   ///< All jobs are cancelled.
};
[[nodiscard]] std::string_view to_string(EndOfJobs how);

/// Proves that the user allows the owner to end these jobs. A fresh snapshot shows them on a node that only `owner` has
/// drained, for the purpose `why`. The caller knows that the drain has reached its timeout, and states this in `detail`.
class DrainTimedOut final : public NodeEvidence {
 public:
  struct OneJob {
    std::int64_t id;
    std::string full_id;
    std::optional<core::WallTime> start;  ///< Start of the current run.
  };
  /// Returns nullopt if the node has no job that `how` allows the owner to end.
  static std::optional<DrainTimedOut> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node, Owner owner,
                                         std::string_view why, EndOfJobs how, std::string detail);
  [[nodiscard]] const std::vector<OneJob>& jobs() const { return jobs_; }
  [[nodiscard]] EndOfJobs how() const { return how_; }
  [[nodiscard]] Owner owner() const { return owner_; }
  /// Returns the purpose of the drain: the owner's part of the node's reason.
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  DrainTimedOut(const plan::Observing& observing, const Node& node, NodeId id, Owner owner, std::string why, EndOfJobs how,
                std::vector<OneJob> jobs, std::string detail, core::MonoTime good_until)
      : NodeEvidence(observing, std::move(id), "DrainTimedOut", std::move(detail), good_until, node.reason),
        owner_(owner),
        why_(std::move(why)),
        how_(how),
        jobs_(std::move(jobs)) {}

  Owner owner_;
  std::string why_;
  EndOfJobs how_;
  std::vector<OneJob> jobs_;
};

/// True if `owner`, and nobody else, has drained the node, for the purpose `why`.
[[nodiscard]] bool drained_only_for(const Node& node, Owner owner, std::string_view why);
/// True if the job runs on the node and `how` can be applied to it.
[[nodiscard]] bool may_be_ended(const Job& job, std::string_view node, EndOfJobs how);

/// True if a fresh snapshot has neither the node nor a job on it, the worker was never `stamped` as seen in Slurm, and its
/// slurmd has had the time kRegistration, from `since` on, to register. `since` is nullopt if the slurmd cannot register. A
/// slurmd that had less time can still register at any moment and get a job.
[[nodiscard]] bool absent_for_good(const Snapshot& snapshot, std::string_view node, bool stamped,
                                   std::optional<core::MonoTime> since, core::MonoTime now);

}  // namespace slurm
