#include "slurm/own_job.hpp"

namespace slurm {

core::Json to_json(const JobWish& wish) {
  core::Json out = core::Json::object();
  const auto put = [&](const char* key, const auto& value) {
    if (value) out[key] = *value;
  };
  put("name", wish.name);
  put("account", wish.account);
  put("partition", wish.partition);
  put("qos", wish.qos);
  put("reservation", wish.reservation);
  put("mcs_label", wish.mcs_label);
  put("licenses", wish.licenses);
  put("constraints", wish.constraints);
  put("wckey", wish.wckey);
  put("comment", wish.comment);
  put("user_id", wish.user_id);
  put("group_id", wish.group_id);
  if (wish.shared) out["shared"] = core::Json::array({*wish.shared});
  put("tres_per_node", wish.tres_per_node);
  put("nodes", wish.nodes);
  put("tasks_per_node", wish.tasks_per_node);
  put("cpus_per_task", wish.cpus_per_task);
  put("memory_per_node", wish.memory_per_node_mib);
  put("priority", wish.priority);
  put("excluded_nodes", wish.excluded_nodes);
  if (wish.time_limit) out["time_limit"] = wish.time_limit->count();
  return out;
}

std::optional<JobMark> mark_of(const Job& job) {
  if (!job.details || !job.details->external) return std::nullopt;
  const auto comment = core::parse_json(job.details->admin_comment);
  if (!comment || !comment->is_object()) return std::nullopt;
  const std::string owner = core::get_string(*comment, {"owner"});
  for (const Owner one : {Owner::kOperator, Owner::kBridge, Owner::kEnlistment}) {
    if (owner == to_string(one))
      return JobMark{one, core::get_string(*comment, {"instance"}), core::get_string(*comment, {"key"})};
  }
  return std::nullopt;
}

std::string admin_comment(const JobMark& mark, core::Json more) {
  if (!more.is_object()) more = core::Json::object();
  more["owner"] = to_string(mark.owner);
  more["instance"] = mark.instance;
  more["key"] = mark.key;
  return more.dump(-1, ' ', false, core::Json::error_handler_t::replace);
}

std::optional<OwnJob> OwnJob::of(const plan::Observing& observing, const Snapshot& snapshot, ClusterKey cluster, Owner owner,
                                 std::string_view instance, std::int64_t id) {
  const auto found = snapshot.jobs.find(id);
  if (!snapshot.fresh(observing.now()) || found == snapshot.jobs.end()) return std::nullopt;
  std::optional<JobMark> mark = mark_of(*found->second);
  if (!mark || mark->owner != owner || mark->instance != instance) return std::nullopt;
  return OwnJob(observing, std::move(cluster), id, *std::move(mark), snapshot.requested_at + snapshot.good_for());
}

}  // namespace slurm
