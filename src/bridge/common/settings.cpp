#include "bridge/common/settings.hpp"

#include <algorithm>

#include "bridge/common/names.hpp"

namespace bridge {

bool manages(const Settings& settings, const kube::SchedulingPodRecord& pod) {
  if (std::ranges::find(settings.managed_namespaces, pod.meta.ns) != settings.managed_namespaces.end()) return true;
  return !settings.scheduler_name.empty() && pod.meta.annotation(kAnnotationManagedBy) == settings.cluster;
}

}  // namespace bridge
