#include "slinky/worker_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/well_known.hpp"

namespace slinky {
namespace {

/// The limit for hostnames and for values of labels.
constexpr std::size_t kMaxLabel = 63;

}  // namespace

std::string padded_ordinal(int ordinal, int padding) {
  return fmt::format("{:0{}}", ordinal, std::clamp(padding, 0, 60));
}

std::string host_prefix(std::string_view template_hostname, std::string_view nodeset) {
  return template_hostname.empty() ? std::string(nodeset) + "-" : std::string(template_hostname);
}

std::string host_prefix(const kube::Object& nodeset) {
  return host_prefix(core::get_string(nodeset.body, {"spec", "template", "spec", "hostname"}), nodeset.meta.name);
}

std::string pod_name(std::string_view nodeset, int ordinal, int padding) {
  return std::string(nodeset) + "-" + padded_ordinal(ordinal, padding);
}

std::optional<int> ordinal_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return {};
  name.remove_prefix(prefix.size());
  if (name.empty() || !std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) return {};
  int ordinal = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), ordinal);
  if (error != std::errc{}) return {};
  return ordinal;
}

bool uses_host_network(const api::NodeSetSpec& spec) {
  return core::get_bool(spec.pod_template.spec, {"hostNetwork"});
}

std::string_view stamped_node_name(const kube::PodRecord& pod) {
  // Earlier releases wrote only "true".
  const std::string_view stamp = pod.meta.annotation(api::kAnnotationRegistered);
  return stamp == "true" ? "" : stamp;
}

std::string slurm_node_name(const kube::PodRecord& pod) {
  if (const std::string_view stamp = stamped_node_name(pod); !stamp.empty()) return std::string(stamp);
  if (!pod.host_network) {
    if (!pod.hostname.empty()) return pod.hostname;
    const std::string_view label = pod.meta.label(api::kLabelPodHostname);
    if (!label.empty()) return std::string(label);
  }
  return pod.node_name.empty() ? pod.meta.name : pod.node_name;
}

std::optional<core::Json> worker_comment(const std::string& comment) {
  core::Result<core::Json> json = core::parse_json(comment);
  if (!json || !json->is_object() || !json->contains("podName") || !json->contains("namespace")) return {};
  return std::move(*json);
}

std::string hostname_problem(std::string_view prefix, int ordinal, int padding) {
  return hostname_problem(std::string(prefix) + padded_ordinal(ordinal, padding));
}

std::string pod_name_problem(const std::string& name) {
  if (name.size() <= kMaxLabel) return {};
  return fmt::format("Pod {} has a name of {} characters, but the label {} takes at most {}", name, name.size(),
                     api::kLabelPodName, kMaxLabel);
}

std::string hostname_problem(const std::string& name) {
  if (name.size() > kMaxLabel)
    return fmt::format("hostname {} has {} characters, but at most 63 are allowed", name, name.size());
  const auto allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  if (name.empty() || !std::all_of(name.begin(), name.end(), allowed) || name.front() == '-') {
    return fmt::format("hostname {} is not valid: it must consist of a-z, 0-9 and '-', and begin with a letter or digit", name);
  }
  return {};
}

}  // namespace slinky
