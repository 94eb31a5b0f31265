#include "bridge/common/wish.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <ranges>

#include "bridge/common/groups.hpp"
#include "bridge/common/names.hpp"
#include "bridge/common/node_affinity.hpp"
#include "core/quantity.hpp"

namespace bridge {
namespace {

using core::Result;
using slurm::JobWish;

constexpr long double kMiB = 1024.0L * 1024;
constexpr std::int64_t kMostNodes = 4294967293;
/// The extended resources that are GPUs in Slurm.
constexpr std::array<std::string_view, 2> kGpus{"nvidia.com/gpu", "amd.com/gpu"};

std::unexpected<core::Error> bad(std::string_view name, std::string_view value, std::string_view allowed) {
  return core::fail(core::ErrorCode::kInvalid, "annotation " + std::string(kAnnotationPrefix) + std::string(name) + ": \"" +
                                                   std::string(value) + "\", must be " + std::string(allowed));
}

std::optional<std::int64_t> number(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && out >= least && out <= most ? std::optional(out) : std::nullopt;
}

/// The input of a function that reads one annotation into a JobWish.
struct Reader {
  std::string_view value;
  bool trusted;  ///< An administrator has written the annotation, or users are allowed to name identities.
  JobWish& wish;
};
using Read = std::function<std::string(Reader)>;  ///< Returns what is allowed in place of the value; "" if the value is valid.

Read text(std::optional<std::string> JobWish::*field) {
  return [field](Reader in) -> std::string {
    if (in.value.empty()) return "a text that is not empty";
    in.wish.*field = in.value;
    return {};
  };
}

/// Returns what is allowed in place of an annotation that names an identity; "" if the annotation is trusted.
std::string refused_identity(const Reader& in) {
  return in.trusted ? "" : "absent: slurm-bridge runs without --trust-identities, so only the Namespace can have it";
}

Read identity(std::optional<std::string> JobWish::*field) {
  return [field](Reader in) -> std::string {
    if (std::string refused = refused_identity(in); !refused.empty()) return refused;
    return text(field)(in);
  };
}

/// Reads the minimum number of nodes. Each pod takes one node. `nodes` is not set for a pod of a group whose size is unknown.
std::string read_min_nodes(Reader in) {
  const std::int64_t nodes = in.wish.nodes.value_or(kMostNodes);
  if (nodes == 1) return in.value == "1" ? "" : "1 for a single pod";
  if (number(in.value, 1, nodes)) return {};
  return in.wish.nodes ? "at most the number of pods of the group, " + std::to_string(nodes) : "a whole number from 1";
}

std::string read_max_nodes(Reader in) {
  const std::int64_t nodes = in.wish.nodes.value_or(1);
  if (in.wish.nodes == 1) return read_min_nodes(in);
  if (number(in.value, nodes, kMostNodes)) return {};
  return in.wish.nodes ? "at least the number of pods of the group, " + std::to_string(nodes) : "a whole number from 1";
}

std::string read_gang(Reader in) {
  return in.value == "true" || in.value == "false" ? "" : "true or false";
}

std::string read_priority(Reader in) {
  if (std::string refused = refused_identity(in); !refused.empty()) return refused;
  in.wish.priority = number(in.value, 0, 4294967293);
  return in.wish.priority ? "" : "a whole number from 0 to 4294967293";
}

std::string read_time_limit(Reader in) {
  const auto minutes = number(in.value, 1, 4294967293);
  if (!minutes) return "a whole number of minutes, 1 or more";
  in.wish.time_limit = std::chrono::minutes(*minutes);
  return {};
}

std::string read_cpus(Reader in) {
  const auto cpus = core::quantity(std::string(in.value));
  if (!cpus || *cpus <= 0 || *cpus > 65533) return "a quantity of CPUs above 0 and at most 65533, such as 2";
  in.wish.cpus_per_task = static_cast<std::int64_t>(std::ceil(*cpus));
  return {};
}

std::string read_memory(Reader in) {
  const auto bytes = core::quantity(std::string(in.value));
  if (!bytes || *bytes <= 0 || *bytes > kMiB * 4294967293.0L) return "a quantity of memory above 0, such as 4Gi";
  in.wish.memory_per_node_mib = static_cast<std::int64_t>(std::ceil(*bytes / kMiB));
  return {};
}

/// Also accepts the form of sbatch --gres: "gpu:2" becomes "gres/gpu:2". Without this change, Slurm would refuse "gpu:2" and
/// ignore "gpu".
std::string read_gres(Reader in) {
  std::string out;
  for (const auto part : std::views::split(in.value, ',')) {
    const std::string_view one(part.begin(), part.end());
    if (one.empty()) return "GRES as of sbatch --gres, such as gpu:2";
    const bool prefixed = one.starts_with("gres/") || one.starts_with("gres:");
    out += (out.empty() ? "" : ",") + std::string(prefixed ? "" : "gres/") + std::string(one);
  }
  if (out.empty()) return "GRES as of sbatch --gres, such as gpu:2";
  in.wish.tres_per_node = std::move(out);
  return {};
}

std::string read_exclusive(Reader in) {
  if (in.value == "false") {
    in.wish.shared.reset();
  } else if (in.value == "true") {
    in.wish.shared = "none";
  } else if (in.value == "user" || in.value == "mcs" || in.value == "topo") {
    in.wish.shared = in.value;
  } else {
    return "true, false, user, mcs or topo";
  }
  return {};
}

const std::map<std::string_view, Read>& annotations() {
  static const std::map<std::string_view, Read> kAll{
      {"account", text(&JobWish::account)},
      {"comment", text(&JobWish::comment)},
      {"constraints", text(&JobWish::constraints)},
      {"cpu-per-task", read_cpus},
      {"exclusive", read_exclusive},
      {"gang", read_gang},
      {"gres", read_gres},
      {"group-id", identity(&JobWish::group_id)},
      {"job-name", text(&JobWish::name)},
      {"licenses", text(&JobWish::licenses)},
      {"max-nodes", read_max_nodes},
      {"mem-per-node", read_memory},
      {"min-nodes", read_min_nodes},
      {"partition", text(&JobWish::partition)},
      {"priority", read_priority},
      {"qos", text(&JobWish::qos)},
      {"reservation", text(&JobWish::reservation)},
      {"timelimit", read_time_limit},
      {"user-id", identity(&JobWish::user_id)},
      {"wckey", text(&JobWish::wckey)},
  };
  return kAll;
}

long double requested(const kube::SchedulingPodRecord& pod, std::string_view resource) {
  const auto amount = pod.requests.find(resource);
  return amount == pod.requests.end() ? 0 : amount->second;
}

JobWish from_requests(const JobWish& like, const kube::SchedulingPodRecord& pod, const Settings& settings) {
  JobWish out = like;
  out.tasks_per_node = 1;
  if (!settings.partition.empty()) out.partition = settings.partition;
  if (!settings.mcs_label.empty()) out.mcs_label = settings.mcs_label;
  if (settings.whole_nodes) out.shared = "none";
  if (const long double cpus = requested(pod, "cpu"); cpus > 0) out.cpus_per_task = static_cast<std::int64_t>(std::ceil(cpus));
  if (const long double bytes = requested(pod, "memory"); bytes > 0)
    out.memory_per_node_mib = static_cast<std::int64_t>(std::ceil(bytes / kMiB));
  long double gpus = 0;
  for (const std::string_view resource : kGpus) gpus += requested(pod, resource);
  if (gpus > 0) out.tres_per_node = "gres/gpu:" + std::to_string(static_cast<std::int64_t>(std::ceil(gpus)));
  return out;
}

/// Returns which rules in the affinity of a pod the bridge cannot follow, or "".
std::string refused_affinity(const core::Json& affinity) {
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const core::Json* required = core::find(affinity, {kind, "requiredDuringSchedulingIgnoredDuringExecution"});
    if (required != nullptr && !required->empty())
      return "spec.affinity." + std::string(kind) + ": required rules are not supported, because Slurm chooses the node";
  }
  const core::Json* terms =
      core::find(affinity, {"nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms"});
  const auto empty = [](const core::Json& term) {
    return term.value("matchExpressions", core::Json::array()).empty() &&
           term.value("matchFields", core::Json::array()).empty();
  };
  if (terms != nullptr && std::ranges::any_of(*terms, empty))
    return "spec.affinity.nodeAffinity: a required term is empty and matches no node, must have an expression";
  return {};
}

bool is_record(const kube::Toleration& toleration) {
  return toleration.key == kTolerationPlacedFor;
}

/// Reads all annotations with kAnnotationPrefix.
Result<void> read_all(const kube::StringMap& from, bool trusted, JobWish& out) {
  for (auto it = from.lower_bound(kAnnotationPrefix); it != from.end() && it->first.starts_with(kAnnotationPrefix); ++it) {
    const std::string_view name = std::string_view(it->first).substr(kAnnotationPrefix.size());
    const auto known = annotations().find(name);
    if (known == annotations().end()) return bad(name, it->second, "absent, because slurm-bridge does not know it");
    if (const std::string allowed = known->second({it->second, trusted, out}); !allowed.empty())
      return bad(name, it->second, allowed);
  }
  return {};
}

/// Reads the annotations of a Namespace. Refuses the annotation gang, because only the pod's own annotation puts a pod into a
/// group.
Result<void> read_defaults(const kube::StringMap& from, JobWish& out) {
  if (const auto gang = from.find(kAnnotationGang); gang != from.end())
    return bad("gang", gang->second, "absent, because it counts on pods only");
  return read_all(from, true, out);
}

/// `like`: has the name and the number of nodes that the job gets unless the pod's annotations set them.
Result<JobWish> wish_like(const JobWish& like, const kube::SchedulingPodRecord& pod, const Settings& settings) {
  if (std::ranges::any_of(pod.tolerations, is_record))
    return core::fail(core::ErrorCode::kInvalid, "spec.tolerations: " + std::string(kTolerationPlacedFor) +
                                                     " is the record of slurm-bridge, must be absent");
  std::string refused = refused_affinity(pod.affinity);
  if (refused.empty()) refused = contradiction(pod.node_selector, pod.affinity);
  if (!refused.empty()) return core::fail(core::ErrorCode::kInvalid, std::move(refused));
  JobWish out = from_requests(like, pod, settings);
  if (auto read = read_defaults(settings.defaults, out); !read)
    return std::unexpected(read.error().with("namespace " + pod.meta.ns));
  if (auto read = read_all(pod.meta.annotations, settings.trusts_identities, out); !read) return std::unexpected(read.error());
  return out;
}

/// Returns the first field in which the wishes differ, or "".
std::string difference(const JobWish& a, const JobWish& b) {
  const core::Json x = to_json(a), y = to_json(b);
  for (const auto* one : {&x, &y}) {
    for (const auto& [name, value] : one->items()) {
      if (x.value(name, core::Json()) != y.value(name, core::Json())) return name;
    }
  }
  return {};
}

}  // namespace

Result<JobWish> wish_of(const kube::SchedulingPodRecord& pod, const Settings& settings) {
  if (pod.meta.annotation(kAnnotationGang) == "true") return bad("gang", "true", "false for a pod that belongs to no Job");
  JobWish like;
  like.name = pod.meta.name;
  like.nodes = 1;
  return wish_like(like, pod, settings);
}

Result<JobWish> wish_of_group(const std::string& name, const Pods& pods, const Settings& settings) {
  JobWish like;
  like.name = name;
  like.nodes = static_cast<std::int64_t>(pods.size());
  std::optional<JobWish> out;
  for (const PodPtr& pod : pods) {
    auto wish = wish_like(like, *pod, settings);
    if (!wish) return std::unexpected(wish.error().with("pod " + pod->meta.name));
    if (!out) out = *wish;
    out->cpus_per_task = wish->cpus_per_task = std::max(out->cpus_per_task, wish->cpus_per_task);
    out->memory_per_node_mib = wish->memory_per_node_mib = std::max(out->memory_per_node_mib, wish->memory_per_node_mib);
    if (const std::string field = difference(*out, *wish); !field.empty())
      return core::fail(core::ErrorCode::kInvalid, "pods " + pods.front()->meta.name + " and " + pod->meta.name +
                                                       " of one group ask for different jobs: " + field +
                                                       " must be equal in all pods");
  }
  return *std::move(out);
}

Result<void> check_wish(const kube::SchedulingPodRecord& pod, const Settings& settings) {
  const auto wish = group_of(pod.meta) ? wish_like({}, pod, settings) : wish_of(pod, settings);
  if (!wish) return std::unexpected(wish.error());
  return {};
}

std::string partitions_of(const kube::SchedulingPodRecord& pod, const Settings& settings) {
  static const std::string kName = std::string(kAnnotationPrefix) + "partition";
  for (const kube::StringMap* words : {&pod.meta.annotations, &settings.defaults}) {
    if (const auto set = words->find(kName); set != words->end()) return set->second;
  }
  return settings.partition;
}

bool is_setting(std::string_view name) {
  return annotations().contains(name);
}

}  // namespace bridge
