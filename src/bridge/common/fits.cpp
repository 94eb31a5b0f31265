#include "bridge/common/fits.hpp"

#include <algorithm>
#include <compare>
#include <tuple>

namespace bridge {
namespace {

auto fields_of(const kube::Toleration& toleration) {
  return std::tie(toleration.key, toleration.op, toleration.value, toleration.effect, toleration.seconds);
}

bool comes_first(const std::vector<kube::Toleration>& a, const std::vector<kube::Toleration>& b) {
  return std::ranges::lexicographical_compare(
      a, b, [](const kube::Toleration& x, const kube::Toleration& y) { return fields_of(x) < fields_of(y); });
}

/// Reports whether fit_of() reads the same values from the Slurm nodes of both snapshots.
bool same_places(const slurm::Snapshot& before, const slurm::Snapshot& now, const std::string& installation) {
  if (before.nodes.same(now.nodes)) return true;
  return std::ranges::equal(before.nodes, now.nodes, [&](const auto& a, const auto& b) {
    if (a.second == b.second) return true;
    const slurm::Node &x = *a.second, &y = *b.second;
    return x.name == y.name && x.partitions == y.partitions &&
           other_cluster_of(x, installation) == other_cluster_of(y, installation);
  });
}

}  // namespace

bool Fits::Less::operator()(const Template& a, const Template& b) const {
  if (a.second != b.second) return a.second < b.second;
  const Pod &x = *a.first, &y = *b.first;
  if (&x == &y) return false;
  if (x.requests != y.requests) return x.requests < y.requests;
  if (x.node_selector != y.node_selector) return x.node_selector < y.node_selector;
  if (x.tolerations != y.tolerations) return comes_first(x.tolerations, y.tolerations);
  return x.affinity < y.affinity;
}

void Fits::follow(std::shared_ptr<const Hosts> hosts, slurm::SnapshotPtr snapshot, std::string_view installation) {
  const bool same = hosts == hosts_ && installation == installation_ && snapshot != nullptr && snapshot_ != nullptr &&
                    same_places(*snapshot_, *snapshot, installation_);
  if (!same) fits_.clear();
  hosts_ = std::move(hosts);
  snapshot_ = std::move(snapshot);
  installation_ = installation;
}

FitPtr Fits::of(const PodPtr& pod, const std::string& partitions) {
  if (snapshot_ == nullptr || hosts_ == nullptr) return nullptr;
  const Template key{pod, partitions};
  if (const auto known = fits_.find(key); known != fits_.end()) return known->second;
  if (fits_.size() >= kMost) fits_.clear();
  auto fit = std::make_shared<const Fit>(fit_of({pod}, *hosts_, *snapshot_, installation_, partitions));
  fits_.emplace(key, fit);
  return fit;
}

}  // namespace bridge
