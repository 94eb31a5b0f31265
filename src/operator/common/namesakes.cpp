#include "operator/common/namesakes.hpp"

#include <algorithm>

#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"
#include "slinky/worker_names.hpp"

namespace op {
namespace {

/// True if workers with these name prefixes can get equal names. This is so if the prefixes are equal, or if one is the other
/// followed only by digits.
bool may_meet(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  return b.starts_with(a) && b.find_first_not_of("0123456789", a.size()) == std::string_view::npos;
}

bool named_after_hosts(const kube::Object& nodeset) {
  return core::get_bool(nodeset.body, {"spec", "template", "spec", "hostNetwork"});
}

/// Reports whether the workers have the names of their Kubernetes nodes, so that the names of the workers do not contain the
/// NodeSet's name.
bool bound_to_hosts(const kube::Object& nodeset) {
  return core::get_string(nodeset.body, {"spec", "scalingMode"}) == api::to_string(api::ScalingMode::kDaemonSet);
}

}  // namespace

bool same_cluster_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

Precedence precedence(const WorkersOf& workers_of, const kube::Object& nodeset) {
  return {workers_of(nodeset).empty(), nodeset.meta.created, nodeset.meta.name};
}

bool Rival::takes(std::string_view node) const {
  if (nodes.contains(node)) return true;
  const auto ordinal = ordinal_of(node, prefix);
  return ordinal && *ordinal < reserved && prefix + padded_ordinal(*ordinal, padding) == node;
}

Rival rival(const WorkersOf& workers_of, const kube::Object& self, const kube::Object& other) {
  Rival out{other.meta.name, {}, host_prefix(other), 0, 0, false};
  if (named_after_hosts(self) || named_after_hosts(other)) return out;
  if (!bound_to_hosts(self) && !bound_to_hosts(other) && !may_meet(out.prefix, host_prefix(self))) return out;
  for (const kube::PodPtr& worker : workers_of(other)) out.nodes.insert(slurm_node_name(*worker));
  if (other.meta.terminating() || !(precedence(workers_of, other) < precedence(workers_of, self))) return out;
  out.claims_hosts = bound_to_hosts(other);
  if (out.claims_hosts) return out;
  out.padding = static_cast<int>(core::get_int(other.body, {"spec", "ordinalPadding"}));
  out.reserved = static_cast<int>(core::get_int(other.body, {"spec", "replicas"}, 1));
  return out;
}

}  // namespace op
