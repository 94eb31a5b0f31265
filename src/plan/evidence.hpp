// Destruction needs evidence: a value that says why an act cannot lose work. Only observers can issue it, from facts they hold,
// so a plan that deletes a worker without a reason does not compile.
#pragma once

#include <string>
#include <string_view>

namespace kube {
class PodWitness;
class OwnerWitness;
}  // namespace kube
namespace slurm {
class SnapshotWitness;
}

namespace plan {

class Evidence {
 public:
  enum class Kind {
    kDrained,          ///< A fresh, complete Slurm snapshot says by every sign that the node runs nothing and takes nothing.
    kNeverStarted,     ///< The pod has no Kubernetes node yet.
    kEnded,            ///< The pod's phase is Failed or Succeeded.
    kNeverRegistered,  ///< Never stamped as seen in Slurm, absent from a fresh snapshot, and not about to register.
    kForgotten,        ///< Registered once, but absent for long from Slurm's fresh answers, and no job names it.
    kSilent,           ///< Its host is lost, and Slurm has it DOWN, not responding and without jobs.
    kOwnerEnds,        ///< The user deleted the Controller, without deletionPolicy Drain: the cluster ends.
  };

  [[nodiscard]] Kind kind() const { return kind_; }
  /// The UID of the pod that it speaks of: it is evidence for deleting that one only.
  [[nodiscard]] const std::string& subject() const { return subject_; }
  [[nodiscard]] const std::string& detail() const { return detail_; }

 private:
  friend class kube::PodWitness;        // NeverStarted, Ended
  friend class kube::OwnerWitness;      // OwnerEnds
  friend class slurm::SnapshotWitness;  // Drained, NeverRegistered, Forgotten, Silent
  Evidence(Kind kind, std::string subject, std::string detail)
      : kind_(kind), subject_(std::move(subject)), detail_(std::move(detail)) {}

  Kind kind_;
  std::string subject_;
  std::string detail_;
};

std::string_view to_string(Evidence::Kind kind);

}  // namespace plan
