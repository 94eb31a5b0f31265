#include "cli/why_target.hpp"

#include <algorithm>

namespace cli {
namespace {

core::Error wrong(const std::string& what, const std::string& why) {
  return core::fail(core::ErrorCode::kInvalid, "\"" + printable(what) + "\" " + why).error();
}

/// Reports whether the text can be the name of a pod.
bool can_name_pod(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= 253 && plain(text.front()) && plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-' || c == '.'; });
}

core::Result<WhyTarget> read_object(const std::string& kind, const std::string& name, const std::string& given) {
  if (kind == "job" || kind == "jobs" || kind.starts_with("jobs."))
    return std::unexpected(wrong(given, "is a Job of Kubernetes: name one of its pods, as pod/NAME, or a job of Slurm, as 12"));
  if (!means_pods(kind))
    return std::unexpected(
        wrong(given, "is neither a job nor a pod: name a job of Slurm, as 12 or 12_3, or a pod, as pod/NAME"));
  if (name.empty()) return std::unexpected(wrong(given, "lacks the name of the pod: write pod/NAME"));
  if (!can_name_pod(name))
    return std::unexpected(
        wrong(name, "is no name of a pod: such names have a-z, 0-9, \"-\" and \".\"; -n names the namespace"));
  return PodName{name};
}

}  // namespace

bool means_pods(std::string_view word) {
  return word == "pod" || word == "pods" || word == "po";
}

core::Result<WhyTarget> read_target(const std::vector<std::string>& words) {
  const std::string& first = words.front();
  if (words.size() > 1) {
    const std::string all = first + " " + words[1];
    if (JobName::read(first)) return std::unexpected(wrong(all, "is more than one job: name one"));
    if (first.contains('/')) return std::unexpected(wrong(all, "is more than one object: name one"));
    return read_object(first, words[1], all);
  }
  const std::size_t slash = first.find('/');
  if (slash != std::string::npos) return read_object(first.substr(0, slash), first.substr(slash + 1), first);
  if (means_pods(first)) return read_object(first, "", first);
  auto job = JobName::read(first);
  if (job) return *job;
  core::Error error = job.error();
  if (can_name_pod(first) && (first.front() < '0' || first.front() > '9')) error.message += "; name a pod as pod/" + first;
  return std::unexpected(std::move(error));
}

core::Result<kube::Key> read_cluster(const std::string& text, const WhyTarget& target) {
  if (text.empty()) return kube::Key{};
  if (auto key = controller_key(text)) return *std::move(key);
  std::string must = "must be NAME or NAMESPACE/NAME of a Controller";
  if (!text.contains('/')) {
    if (std::holds_alternative<JobName>(target)) return kube::Key{"", text};
    must = "must be NAMESPACE/NAME of a Controller, because -n is the namespace of the pod";
  }
  return core::fail(core::ErrorCode::kInvalid, "--cluster \"" + printable(text) + "\": " + must);
}

}  // namespace cli
