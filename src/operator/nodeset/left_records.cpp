// Records that workers leave behind: when they move (with host networking the Slurm node is named after the Kubernetes node),
// and for a next one of the name, with an extraConf or limits that are not its own.
#include <algorithm>
#include <array>

#include "cluster/worker_names.hpp"
#include "operator/nodeset/pass.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

/// A worker that has no Kubernetes node yet may come back to the one that it had, and find its record.
bool all_placed(const Pass& pass) {
  return pass.vacant.empty() && pass.in.orphans.empty() &&
         std::ranges::none_of(pass.workers, [](const Worker& worker) { return worker.pod->node_name.empty(); });
}

/// What slurmctld says of a slurmd that has less than its record, where a record made anew fits.
constexpr std::array<std::string_view, 5> kDiffers{"CoreSpec differ", "Low CPUs", "Low RealMemory", "Low TmpDisk",
                                                   "Low socket*core*thread count"};

/// What else it says of a slurmd that it refuses.
constexpr std::array<std::string_view, 6> kRefuses{"gres/",
                                                   "Could not unpack gres data",
                                                   "Failed to parse dynamic_conf",
                                                   "Failed to set topology",
                                                   "Reported active features",
                                                   "RestrictedCoresPerGPU"};

bool starts_with_any(const auto& all, const std::string& reason) {
  return std::ranges::any_of(all, [&](std::string_view words) { return reason.starts_with(words); });
}

/// The record is of one of our workers, and Slurm takes no slurmd like the last one for it. Nobody can resume it.
bool refused_by_slurm(const Pass& pass, const slurm::Node& node) {
  return node.state.has("INVALID_REG") && stamped_by_us(pass, node) && starts_with_any(kDiffers, node.reason);
}

}  // namespace

bool tells_refusal(const slurm::Node& node) {
  return node.state.has("INVALID_REG") && (starts_with_any(kDiffers, node.reason) || starts_with_any(kRefuses, node.reason));
}

bool stamped_by_us(const Pass& pass, const slurm::Node& node) {
  const std::string& uid = pass.in.meta().uid;
  // Most nodes are others': a look at the text is cheaper than reading it.
  if (node.comment.find(uid) == std::string::npos) return false;
  const auto comment = worker_comment(node.comment);
  return comment && core::get_string(*comment, {"nodeSetUID"}) == uid;
}

bool has_other_conf(const Pass& pass, const slurm::Node& record, std::string_view revision) {
  const auto hash = pass.conf_hashes.find(revision);
  // Most records are of this one: a look at the text is cheaper than reading it.
  if (hash == pass.conf_hashes.end() || record.comment.find(hash->second) != std::string::npos) return false;
  // One that an earlier release stamped does not tell.
  return stamped_by_us(pass, record) && !core::get_string(*worker_comment(record.comment), {kStampedConf}).empty();
}

OldRecord judge_old_record(const Pass& pass, const std::string& name) {
  const slurm::Node* record = pass.slurm_known() ? pass.in.snapshot->node(name) : nullptr;
  if (record == nullptr || pass.keeps(name, -1) || pass.stops()) return OldRecord::kStays;
  const slurm::NodeState& state = record->state;
  if (!refused_by_slurm(pass, *record)) {
    if (!has_other_conf(pass, *record, pass.in.hash)) return OldRecord::kStays;
    // What an administrator said is meant for the next pod too.
    const bool taken = state.has("DRAIN") || state.has("FAIL");
    if (slurm::given_by_others(record->reason, slurm::Owner::kOperator) ||
        (taken && !slurm::held_by(record->reason, slurm::Owner::kOperator)))
      return OldRecord::kStays;
  }
  // Jobs that name the node would be lost with it.
  if (state.has("RESERVED") || state.has("COMPLETING") || state.base == "ALLOCATED" || state.base == "MIXED" ||
      pass.in.snapshot->job_names(name)) {
    return OldRecord::kStays;
  }
  return state.base == "DOWN" && pass.slurm_fresh() ? OldRecord::kGoesFirst : OldRecord::kSettles;
}

void delete_moved(Pass& pass) {
  if (!pass.slurm_known() || pass.goal == Goal::kHold || pass.goal == Goal::kEndAll || pass.stops()) return;
  if (!uses_host_network(pass.in.nodeset.spec) || !all_placed(pass)) return;
  const std::string prefix =
      host_prefix(core::get_string(pass.in.nodeset.spec.pod_template.spec, {"hostname"}), pass.in.meta().name);
  for (const auto& [name, node] : pass.in.snapshot->nodes) {
    if (ordinal_of(name, prefix)) continue;  // delete_records has looked at it.
    if (pass.keeps(name, -1) || pass.in.other_workers.contains(name)) continue;
    // What somebody else said of the machine is to be found there when a worker comes back to it.
    if (!stamped_by_us(pass, *node) || slurm::given_by_others(node->reason, slurm::Owner::kOperator)) continue;
    // The machine may run a slurmd of its own: nothing that answers is taken for what was left behind.
    if (node->state.base != "DOWN") {
      if (pass.doubtful_record.empty()) pass.doubtful_record = name;
      continue;
    }
    if (!pass.slurm_fresh_or_again()) return;
    ++pass.records_left;
    const std::string why = "its worker has moved to another Kubernetes node";
    pass.step(pass.out.lane("record " + name), kDeleteRecord.of(name), why,
              slurm::delete_node(pass.cluster(), name, why, slurm::NodeEvidence::Live::kKept));
  }
}

}  // namespace op::nodeset
