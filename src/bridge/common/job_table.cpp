#include "bridge/common/job_table.hpp"

#include <algorithm>
#include <ranges>

#include "bridge/common/groups.hpp"
#include "bridge/common/states.hpp"
#include "core/json.hpp"

namespace bridge {
namespace {

/// Fills `keys` and `uids` of the row from the admin_comment.
void read_pods(const core::Json& comment, JobTable::Row& row) {
  const auto key_of = [](const core::Json& object) {
    return run::Key{core::get_string(object, {"ns"}), core::get_string(object, {"name"})};
  };
  const core::Json* group = core::find(comment, {"group"});
  if (group != nullptr) row.keys.insert(key_of(*group));
  const core::Json* pods = core::find(comment, {"pods"});
  if (pods == nullptr || !pods->is_array()) return;
  for (const core::Json& pod : *pods) {
    if (group == nullptr) row.keys.insert(key_of(pod));
    if (std::string uid = core::get_string(pod, {"uid"}); !uid.empty()) row.uids.insert(std::move(uid));
  }
  std::erase_if(row.keys, [](const run::Key& key) { return key.ns.empty() || key.name.empty(); });
}

std::vector<std::string> ended_nodes_of(const slurm::Job& job) {
  return phase_of(job) == JobPhase::kEnded ? nodes_of(job) : std::vector<std::string>{};
}

template <class Key>
void remove_from(std::map<Key, std::set<std::int64_t>>& index, const Key& key, std::int64_t id) {
  const auto ids = index.find(key);
  if (ids == index.end()) return;
  ids->second.erase(id);
  if (ids->second.empty()) index.erase(ids);
}

}  // namespace

void JobTable::read(const slurm::SnapshotPtr& snapshot) {
  if (snapshot == nullptr || snapshot == last_) return;
  if (last_ != nullptr && last_->jobs.same(snapshot->jobs)) {
    last_ = snapshot;
    return;
  }
  if (last_ != nullptr) {
    for (const auto& [id, job] : last_->jobs) {
      if (!snapshot->jobs.contains(id)) drop(id);
    }
  }
  for (const auto& [id, job] : snapshot->jobs) {
    if (last_ != nullptr) {
      const auto before = last_->jobs.find(id);
      if (before != last_->jobs.end() && before->second == job) continue;
    }
    drop(id);
    add(job);
  }
  follow_life(last_.get(), *snapshot);
  last_ = snapshot;
}

const run::Key* JobTable::Row::group() const {
  const auto found = std::ranges::find_if(keys, is_group);
  return found == keys.end() ? nullptr : &*found;
}

bool JobTable::Row::is_for(const kube::SchedulingPodRecord& pod) const {
  const run::Key* of = group();
  if (of == nullptr) return submission_of(mark).root_uid == pod.meta.uid;
  if (of->ns != pod.meta.ns) return false;
  const std::vector<JobId> placed = placed_for(pod);
  return uids.contains(pod.meta.uid) || std::ranges::find(placed, id_of(*job)) != placed.end();
}

std::vector<const JobTable::Row*> JobTable::of(const run::Key& key) const {
  return rows_in(by_key_, key);
}

std::vector<const JobTable::Row*> JobTable::ended_on(const std::string& slurm_node) const {
  return rows_in(ended_on_, slurm_node);
}

template <class Key>
std::vector<const JobTable::Row*> JobTable::rows_in(const std::map<Key, std::set<std::int64_t>>& index, const Key& key) const {
  std::vector<const Row*> out;
  const auto found = index.find(key);
  if (found == index.end()) return out;
  for (const std::int64_t id : found->second) out.push_back(&rows_.at(id));
  return out;
}

const JobTable::Row* JobTable::row(std::int64_t job) const {
  const auto found = rows_.find(job);
  return found == rows_.end() ? nullptr : &found->second;
}

std::vector<run::Key> JobTable::keys() const {
  const auto keys = std::views::keys(by_key_);
  return {keys.begin(), keys.end()};
}

bool JobTable::holds(const kube::SchedulingPodRecord& pod) const {
  return std::ranges::any_of(placed_for(pod), [&](const JobId& job) {
    const Row* of = row(job.number);
    return of != nullptr && of->is_for(pod) && of->job->holds_nodes();
  });
}

const run::Key* JobTable::placed_group_of(const kube::SchedulingPodRecord& pod) const {
  for (const JobId& job : placed_for(pod)) {
    const Row* of = row(job.number);
    if (of != nullptr && of->is_for(pod) && of->group() != nullptr) return of->group();
  }
  return nullptr;
}

bool JobTable::has_own_job(const kube::SchedulingPodRecord& pod) const {
  return std::ranges::any_of(of(pod.meta.key()), [&](const Row* row) { return row->group() == nullptr && row->is_for(pod); });
}

Life JobTable::life() const {
  return {since_, last_ == nullptr || last_->jobs.empty() ? 0 : std::prev(last_->jobs.end())->first};
}

std::int64_t JobTable::younger(const std::string& installation, const JobId& job) const {
  if (since_ == 0 || since_ > job.submitted) return 0;
  std::int64_t out = 0;
  for (const auto& [number, row] : rows_) {
    if (row.mark.instance != installation) continue;
    const std::int64_t submitted = id_of(*row.job).submitted;
    // External jobs are never requeued, so their numbers and submission times have the same order, unless slurmctld returned to
    // an older state.
    if (number < job.number ? submitted > job.submitted : submitted < job.submitted) return 0;
    if (number > job.number) out = number;
  }
  return out;
}

void JobTable::add(const std::shared_ptr<const slurm::Job>& job) {
  const auto mark = slurm::mark_of(*job);
  if (!mark || mark->owner != slurm::Owner::kBridge) return;
  const core::Json comment = core::parse_json(job->details->admin_comment).value_or(core::Json::object());
  const Life life{core::get_int(comment, {"life", "since"}), core::get_int(comment, {"life", "last"})};
  Row row{job, *mark, {}, {}, core::get_string(comment, {"wish"}), life};
  read_pods(comment, row);
  for (const run::Key& key : row.keys) by_key_[key].insert(job->id);
  for (const std::string& node : ended_nodes_of(*job)) ended_on_[node].insert(job->id);
  rows_.emplace(job->id, std::move(row));
}

/// Updates `since_`. Two successive snapshots are of the same life of slurmctld if they share a job.
void JobTable::follow_life(const slurm::Snapshot* before, const slurm::Snapshot& now) {
  bool same = false;
  std::int64_t since = 0;
  const auto at_most = [&](std::int64_t time) {
    if (time != 0 && (since == 0 || time < since)) since = time;
  };
  for (const auto& [number, job] : now.jobs) {
    const JobId id = id_of(*job);
    at_most(id.submitted);
    if (same || before == nullptr) continue;
    const auto old = before->jobs.find(number);
    same = old != before->jobs.end() && id.submitted != 0 && id_of(*old->second) == id;
  }
  for (const auto& [number, row] : rows_) {
    if (number > row.life.last) at_most(row.life.since);
  }
  if (same) at_most(since_);
  since_ = since;
}

void JobTable::drop(std::int64_t id) {
  const auto row = rows_.find(id);
  if (row == rows_.end()) return;
  for (const run::Key& key : row->second.keys) remove_from(by_key_, key, id);
  for (const std::string& node : ended_nodes_of(*row->second.job)) remove_from(ended_on_, node, id);
  rows_.erase(row);
}

}  // namespace bridge
