#include "bridge/common/wish.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>

#include "bridge/common/names.hpp"
#include "bridge/common/node_affinity.hpp"
#include "core/quantity.hpp"

namespace bridge {
namespace {

using core::Result;
using slurm::JobWish;

constexpr long double kMiB = 1024.0L * 1024;
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

/// Reads one annotation into a wish. The error says what is allowed.
struct Reader {
  std::string_view value;
  bool trusted;  ///< An administrator has written it, or users may name identities.
  JobWish& wish;
};
using Read = std::function<std::string(Reader)>;  ///< Returns what is allowed instead, or "".

Read text(std::optional<std::string> JobWish::*field) {
  return [field](Reader in) -> std::string {
    if (in.value.empty()) return "a text that is not empty";
    in.wish.*field = in.value;
    return {};
  };
}

/// An identity that only administrators may choose.
std::string refused_identity(const Reader& in) {
  return in.trusted ? "" : "absent, because slurm-bridge runs without --trust-identities";
}

Read identity(std::optional<std::string> JobWish::*field) {
  return [field](Reader in) -> std::string {
    if (std::string refused = refused_identity(in); !refused.empty()) return refused;
    return text(field)(in);
  };
}

/// A single pod takes one node.
std::string read_one_node(Reader in) {
  return in.value == "1" ? "" : "1 for a single pod";
}

std::string read_priority(Reader in) {
  if (std::string refused = refused_identity(in); !refused.empty()) return refused;
  in.wish.priority = number(in.value, 0, 4294967293);
  return in.wish.priority ? "" : "a whole number from 0";
}

std::string read_time_limit(Reader in) {
  const auto minutes = number(in.value, 1, 4294967293);
  if (!minutes) return "a whole number of minutes, 1 or more";
  in.wish.time_limit = std::chrono::minutes(*minutes);
  return {};
}

std::string read_cpus(Reader in) {
  const auto cpus = core::quantity(std::string(in.value));
  if (!cpus || *cpus <= 0 || *cpus > 65533) return "a quantity of CPUs";
  in.wish.cpus_per_task = static_cast<std::int64_t>(std::ceil(*cpus));
  return {};
}

std::string read_memory(Reader in) {
  const auto bytes = core::quantity(std::string(in.value));
  if (!bytes || *bytes <= 0 || *bytes > kMiB * 4294967293.0L) return "a quantity of memory";
  in.wish.memory_per_node_mib = static_cast<std::int64_t>(std::ceil(*bytes / kMiB));
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
      {"gres", text(&JobWish::tres_per_node)},
      {"group-id", identity(&JobWish::group_id)},
      {"job-name", text(&JobWish::name)},
      {"licenses", text(&JobWish::licenses)},
      {"max-nodes", read_one_node},
      {"mem-per-node", read_memory},
      {"min-nodes", read_one_node},
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

JobWish from_requests(const kube::SchedulingPodRecord& pod, const Settings& settings) {
  JobWish out;
  out.name = pod.meta.name;
  out.nodes = 1;
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

/// Returns what the bridge cannot honour in the affinity of a pod, or "".
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

/// Reads all annotations with our prefix.
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

}  // namespace

bool is_setting(std::string_view name) {
  return annotations().contains(name);
}

Result<JobWish> wish_of(const kube::SchedulingPodRecord& pod, const Settings& settings) {
  if (std::ranges::any_of(pod.tolerations, is_record))
    return core::fail(core::ErrorCode::kInvalid, "spec.tolerations: " + std::string(kTolerationPlacedFor) +
                                                     " is the record of slurm-bridge, must be absent");
  std::string refused = refused_affinity(pod.affinity);
  if (refused.empty()) refused = contradiction(pod.node_selector, pod.affinity);
  if (!refused.empty()) return core::fail(core::ErrorCode::kInvalid, std::move(refused));
  JobWish out = from_requests(pod, settings);
  if (auto wrong = read_all(settings.defaults, true, out); !wrong)
    return std::unexpected(wrong.error().with("namespace " + pod.meta.ns));
  if (auto wrong = read_all(pod.meta.annotations, settings.trusts_identities, out); !wrong)
    return std::unexpected(wrong.error());
  return out;
}

}  // namespace bridge
