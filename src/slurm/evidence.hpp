// The evidence that Slurm's answers give about a node: that no work is lost when its record, or what runs its slurmd, goes.
//
// It is good for as long as the snapshot that it was found in (Snapshot::good_for), and says what a live look has to find just
// before anything is destroyed.
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
  /// What the live node has to be, if there still is one.
  enum class Live {
    kKept,     ///< Drained or down.
    kDrained,  ///< Drained, whoever says so.
    kSilent,   ///< Down, and not responding.
  };

  [[nodiscard]] const NodeId& node() const { return node_; }
  /// What Slurm's record said; "" where there was none.
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

/// DRAIN and not UNDRAIN; base IDLE or DOWN; none of COMPLETING, ALLOCATED, MIXED; no job holds it; snapshot fresh.
class Drained final : public NodeEvidence {
 public:
  static std::optional<Drained> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node);

 private:
  using NodeEvidence::NodeEvidence;
};

/// See absent_for_good().
class NeverRegistered final : public NodeEvidence {
 public:
  static constexpr std::string_view kKind = "NeverRegistered";
  static std::optional<NeverRegistered> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node,
                                           bool stamped, std::optional<core::MonoTime> since);

 private:
  using NodeEvidence::NodeEvidence;
};

/// Absent from a fresh snapshot in which no job names it, for a worker whose node the caller has missed since `since`.
class Forgotten final : public NodeEvidence {
 public:
  static std::optional<Forgotten> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node,
                                     core::WallTime since);

 private:
  using NodeEvidence::NodeEvidence;
};

/// DOWN and NOT_RESPONDING in a fresh snapshot in which no job names it, for a worker whose Kubernetes node, `host`, the caller
/// knows to be lost.
class Silent final : public NodeEvidence {
 public:
  static std::optional<Silent> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node,
                                  std::string_view host);

 private:
  using NodeEvidence::NodeEvidence;
};

/// DOWN in a fresh snapshot, of a record that is no worker's any more: its caller knows none, and says why that is so in `why`.
class LeftBehind final : public NodeEvidence {
 public:
  static std::optional<LeftBehind> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node, std::string why);

 private:
  using NodeEvidence::NodeEvidence;
};

/// The slurmd that Slurm knows to have been started at `slurmd` is no more, and neither are its jobs. Whoever knows where it
/// ran issues it.
class SlurmdEnded final : public NodeEvidence {
 public:
  SlurmdEnded(const plan::Observing& observing, NodeId node, core::WallTime slurmd, std::string detail,
              std::optional<core::MonoTime> good_until)
      : NodeEvidence(observing, std::move(node), "SlurmdEnded", std::move(detail), good_until), slurmd_(slurmd) {}
  [[nodiscard]] core::WallTime slurmd() const { return slurmd_; }

 private:
  core::WallTime slurmd_;
};

/// What is done to jobs that still run on a drained node when its time is over.
enum class EndOfJobs {
  kRequeue,  ///< Those that can be requeued are, and start anew elsewhere.
  kCancel,   ///< All are cancelled.
};
[[nodiscard]] std::string_view to_string(EndOfJobs how);

/// Jobs that its user lets us end: a fresh snapshot has the node drained by `owner` alone, for the purpose `why`, and
/// these jobs on it. Its caller knows that the drain has lasted for as long as the user wants to wait, and says so in `detail`.
class DrainTimedOut final : public NodeEvidence {
 public:
  struct OneJob {
    std::int64_t id;
    std::string full_id;
    std::optional<core::WallTime> start;  ///< Of this run of it.
  };
  /// Nothing if there is no job that it may be done to.
  static std::optional<DrainTimedOut> of(const plan::Observing& observing, const Snapshot& snapshot, NodeId node, Owner owner,
                                         std::string_view why, EndOfJobs how, std::string detail);
  [[nodiscard]] const std::vector<OneJob>& jobs() const { return jobs_; }
  [[nodiscard]] EndOfJobs how() const { return how_; }
  [[nodiscard]] Owner owner() const { return owner_; }
  /// The owner's word in the node's reason.
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

/// True if `owner` has the node drained for the purpose `why`, and nobody else has.
[[nodiscard]] bool drained_only_for(const Node& node, Owner owner, std::string_view why);
/// It runs there, and this can be done to it.
[[nodiscard]] bool may_be_ended(const Job& job, std::string_view node, EndOfJobs how);

/// A worker has neither a node nor a job in a fresh snapshot, was never stamped as seen in Slurm (`stamped` false), and its
/// slurmd could have registered for kRegistration (`since`; nullopt: it cannot). A younger one may do so at any moment, and get
/// a job.
[[nodiscard]] bool absent_for_good(const Snapshot& snapshot, std::string_view node, bool stamped,
                                   std::optional<core::MonoTime> since, core::MonoTime now);

}  // namespace slurm
