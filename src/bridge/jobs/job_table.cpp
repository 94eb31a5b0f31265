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
    const auto mark = slurm::mark_of(*job);
    if (!mark || mark->owner != slurm::Owner::kBridge) continue;
    const core::Json comment = core::parse_json(job->details->admin_comment).value_or(core::Json::object());
    Row row{job, *mark, pods_of(comment), core::get_string(comment, {"wish"})};
    for (const run::Key& pod : row.pods) by_pod_[pod].insert(id);
    rows_.emplace(id, std::move(row));
  }
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

std::int64_t JobTable::youngest(const std::string& installation) const {
  for (auto it = rows_.rbegin(); it != rows_.rend(); ++it) {
    if (it->second.mark.instance == installation) return it->first;
  }
  return 0;
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
