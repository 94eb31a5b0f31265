// The facts for the governance plan, copied from the caches at one moment: all resources of one Accounting, and the lists that
// its slurmdbd last sent.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/slurmqos.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "plan/plan.hpp"
#include "slurm/accounting/acts.hpp"
#include "slurm/accounting/rows.hpp"

namespace op::governance {

struct QosResource {
  kube::ObjectPtr object;
  api::SlurmQos qos;
  std::string parse_error;
  /// Returns the name of the QOS in Slurm, in lower case.
  [[nodiscard]] std::string qos_name() const { return slurm::accounting::folded(qos.spec.name.value_or(object->meta.name)); }
};

struct Observed {
  plan::Context context;
  kube::Key key;                 ///< The key of the Accounting.
  kube::ObjectPtr accounting;    ///< Null if it does not exist.
  std::vector<QosResource> qos;  ///< The SlurmQos of the Accounting, the oldest first.

  slurm::AccountingKey database;
  /// The lists of slurmdbd; nullopt while no cluster is known whose slurmrestd can ask it.
  std::optional<slurm::accounting::View> view;
  /// Evidence for the QOS that may be deleted, by name in lower case.
  std::map<std::string, slurm::UnusedQos, std::less<>> unused;
};

}  // namespace op::governance
