#include "bridge/common/groups.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>

#include "bridge/common/names.hpp"

namespace bridge {
namespace {

const kube::Resource kPodGroup{"scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", true};
const kube::Resource kJob{"batch", "v1", "Job", "jobs", true};
constexpr std::string_view kPodGroupName = "podgroup/";
constexpr std::string_view kJobName = "job/";
/// The largest number of pods in a group. The admin_comment of a job names all pods, and slurmdbd stores only 64 KiB of an
/// admin_comment.
constexpr std::int64_t kMostPods = 400;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Removes the digits at the beginning of `name`, and returns them without leading zeros.
std::string_view take_number(std::string_view& name) {
  const std::size_t end = std::min(name.find_first_not_of("0123456789"), name.size());
  std::string_view digits = name.substr(0, end);
  name.remove_prefix(end);
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits;
}

/// Compares names so that numbers in the names count as numbers.
bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view all_a = a, all_b = b;
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const std::string_view x = take_number(a), y = take_number(b);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else if (a.front() != b.front()) {
      return a.front() < b.front();
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() != b.size() ? a.size() < b.size() : all_a < all_b;
}

const kube::OwnerReference* job_of_pod(const kube::ObjectMeta& pod) {
  const kube::OwnerReference* owner = pod.controller_owner();
  return owner != nullptr && owner->kind == kJob.kind && owner->api_version == "batch/v1" ? owner : nullptr;
}

std::unexpected<core::Error> bad(const std::string& group, const std::string& what) {
  return core::fail(core::ErrorCode::kInvalid, group + ": " + what);
}

}  // namespace

std::optional<run::Key> group_of(const kube::ObjectMeta& pod) {
  if (const std::string_view name = pod.label(kLabelPodGroup); !name.empty())
    return run::Key{pod.ns, std::string(kPodGroupName) + std::string(name)};
  const kube::OwnerReference* job = pod.annotation(kAnnotationGang) == "true" ? job_of_pod(pod) : nullptr;
  if (job == nullptr) return std::nullopt;
  return run::Key{pod.ns, std::string(kJobName) + job->name};
}

bool is_group(const run::Key& key) {
  return key.name.contains('/');
}

GroupObject object_of(const run::Key& group) {
  const bool job = group.name.starts_with(kJobName);
  return {job ? kJob : kPodGroup, {group.ns, group.name.substr(group.name.find('/') + 1)}};
}

core::Result<GroupSpec> read_group(const run::Key& group, const core::Json& object) {
  GroupSpec out{core::get_string(object, {"metadata", "uid"}), 0};
  std::int64_t size = 0;
  if (group.name.starts_with(kJobName)) {
    size = core::get_int(object, {"spec", "parallelism"}, 1);
    if (const core::Json* all = core::find(object, {"spec", "completions"}); all != nullptr && all->is_number_integer())
      size = std::min(size, all->get<std::int64_t>() - std::int64_t{core::get_int(object, {"status", "succeeded"})});
  } else {
    size = core::get_int(object, {"spec", "minMember"});
    if (size < 1) return bad(group.name, "spec.minMember: " + std::to_string(size) + ", must be 1 or more");
  }
  if (out.uid.empty()) return bad(group.name, "it has no UID");
  if (size > kMostPods)
    return bad(group.name, "pods: " + std::to_string(size) + ", must be " + std::to_string(kMostPods) + " or fewer");
  out.size = static_cast<int>(std::max<std::int64_t>(size, 0));
  return out;
}

bool belongs_to(const kube::ObjectMeta& pod, const run::Key& group, const std::string& uid) {
  if (!group.name.starts_with(kJobName)) return true;
  const kube::OwnerReference* job = job_of_pod(pod);
  return job != nullptr && job->uid == uid;
}

std::optional<int> index_of(const kube::ObjectMeta& pod) {
  constexpr std::array<std::string_view, 2> kLabels{"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index"};
  for (const std::string_view label : kLabels) {
    const std::string_view text = pod.label(label).empty() ? pod.annotation(label) : pod.label(label);
    int out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (!text.empty() && error == std::errc() && end == text.data() + text.size() && out >= 0) return out;
  }
  return std::nullopt;
}

bool comes_before(const kube::ObjectMeta& a, const kube::ObjectMeta& b) {
  const auto x = index_of(a), y = index_of(b);
  if (x != y) return x.has_value() != y.has_value() ? x.has_value() : *x < *y;
  return natural_less(a.name, b.name);
}

}  // namespace bridge
