#include "enlist/coordinator/pools_controller.hpp"

#include <algorithm>
#include <utility>

#include "enlist/coordinator/rotation_plan.hpp"

namespace enlist {
namespace {

std::optional<core::Json> value_of(const Contents& contents, const char* name) {
  const auto found = contents.values.find(name);
  return found == contents.values.end() ? std::nullopt : std::optional(found->second);
}

std::string wanted_file(const Contents& contents) {
  std::map<std::string, Pool> pools = contents.pools;
  pools.merge(found_pools(contents.values));
  return pool_file(pools, key_mark_of(contents.values));
}

}  // namespace

PoolsController::PoolsController(core::Loop& loop, Store& store, slurm::Clusters& clusters, slurm::ClusterKey cluster,
                                 const FileTarget& file, std::function<void(const run::Key&)> wake,
                                 std::function<std::set<std::string>()> elsewhere)
    : TypedController(plan_pools),
      loop_(loop),
      store_(store),
      clusters_(clusters),
      cluster_(std::move(cluster)),
      file_(file),
      wake_(std::move(wake)),
      elsewhere_(std::move(elsewhere)) {}

void PoolsController::wake() {
  // Before the first reading of the file, there is nothing to decide. That reading wakes the key.
  if (file_.ended() > 0) wake_({"", std::string(kPoolFile)});
}

void PoolsController::start() {
  wanted_ = wanted_file(store_.contents());
  wake();
}

void PoolsController::changed(const Changes& changes) {
  const auto removing = [](const auto& entry) { return entry.second.removing; };
  const bool found = changes.values.contains(kFoundValue);
  if (found || std::ranges::any_of(store_.contents().pools, removing)) wake();
  if (changes.pools.empty() && !changes.values.contains(kRotationValue) && !found) return;
  // Most changes of pools do not change the file: each node that joins changes Pool::next_number.
  std::string wanted = wanted_file(store_.contents());
  if (wanted == wanted_) return;
  wanted_ = std::move(wanted);
  const core::MonoTime now = loop_.clock().mono();
  edits_ = Edits{edits_ ? edits_->first : now, now};
  wake();
}

void PoolsController::changed(const slurm::Change& change) {
  if (change.cluster == cluster_ && (change.health || change.partitions)) wake();
}

void PoolsController::looked(bool changed) {
  if (changed) wake();
}

std::shared_ptr<const PoolsObserved> PoolsController::observe_typed(const run::Key&, run::Recorder&,
                                                                    const run::Observation& context) {
  const Contents& contents = store_.contents();
  auto out = std::make_shared<PoolsObserved>(PoolsObserved{.context = context, .cluster = cluster_});
  out->pools = contents.pools;
  out->key_mark = key_mark_of(contents.values);
  out->found = found_pools(contents.values);
  out->elsewhere = elsewhere_();
  for (const auto& [name, node] : contents.nodes) {
    const auto pool = contents.pools.find(node.pool);
    if (pool == contents.pools.end() || !pool->second.removing) continue;
    PoolsObserved::Left& left = out->left[node.pool];
    ++left.nodes;
    if (!node.leaving.wanted || node.leaving.dead) ++left.staying;
  }
  out->state = value_of(contents, kRolloutValue);
  out->problems = value_of(contents, kProblemsValue);
  // When another content is offered, it has all changes that were made until then. For later changes, the wait begins again.
  const std::string offered = out->state ? core::get_string(*out->state, {"offeredHash"}) : "";
  if (edits_ && offered == hash_of(wanted_)) {
    edits_.reset();
  } else if (edits_ && offered != offered_) {
    edits_->first = edits_->last;
  }
  offered_ = offered;
  out->edits = edits_;
  out->file = file_.content();
  out->slurm = clusters_.snapshot(cluster_);
  return out;
}

}  // namespace enlist
