#include "bridge/jobs/job_table.hpp"

#include <ranges>

#include "core/json.hpp"

namespace bridge::jobs {
namespace {

std::set<run::Key> pods_of(const core::Json& comment) {
  std::set<run::Key> out;
  const core::Json* pods = core::find(comment, {"pods"});
  if (pods == nullptr || !pods->is_array()) return out;
  for (const core::Json& pod : *pods) {
    run::Key key{core::get_string(pod, {"ns"}), core::get_string(pod, {"name"})};
    if (!key.ns.empty() && !key.name.empty()) out.insert(std::move(key));
  }
  return out;
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

std::vector<const JobTable::Row*> JobTable::of(const run::Key& pod) const {
  std::vector<const Row*> out;
  const auto found = by_pod_.find(pod);
  if (found == by_pod_.end()) return out;
  for (const std::int64_t id : found->second) out.push_back(&rows_.at(id));
  return out;
}

const JobTable::Row* JobTable::row(std::int64_t job) const {
  const auto found = rows_.find(job);
  return found == rows_.end() ? nullptr : &found->second;
}

std::vector<run::Key> JobTable::pods() const {
  const auto keys = std::views::keys(by_pod_);
  return {keys.begin(), keys.end()};
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
    // External jobs are never requeued. Numbers and times have the same order, unless slurmctld went back to an older state.
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
  Row row{job, *mark, pods_of(comment), core::get_string(comment, {"wish"}), life};
  for (const run::Key& pod : row.pods) by_pod_[pod].insert(job->id);
  rows_.emplace(job->id, std::move(row));
}

/// A snapshot is of the same life as the one before if they share a job.
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
  for (const run::Key& pod : row->second.pods) {
    const auto ids = by_pod_.find(pod);
    if (ids == by_pod_.end()) continue;
    ids->second.erase(id);
    if (ids->second.empty()) by_pod_.erase(ids);
  }
  rows_.erase(row);
}

}  // namespace bridge::jobs
