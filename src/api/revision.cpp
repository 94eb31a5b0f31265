#include "api/revision.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "api/well_known.hpp"
#include "core/hash.hpp"

namespace api {
namespace {

using core::Json;

/// Returns the JSON merge patch (RFC 7386) that turns `from` into `to`.
Json merge_patch(const Json& from, const Json& to) {
  if (!from.is_object() || !to.is_object()) return to;
  Json out = Json::object();
  for (const auto& [key, value] : from.items()) {
    if (!to.contains(key)) out[key] = nullptr;
  }
  for (const auto& [key, value] : to.items()) {
    const auto before = from.find(key);
    if (before == from.end()) {
      out[key] = value;
    } else if (*before != value) {
      out[key] = merge_patch(*before, value);
    }
  }
  return out;
}

/// Removes the empty fields of a pod or container: Kubernetes and this operator treat them as absent. Keeps empty nested
/// fields, because an empty selector selects all objects.
Json without_empty_fields(Json fields) {
  if (!fields.is_object()) return fields;
  const Json before = std::exchange(fields, Json::object());
  for (const auto& [key, value] : before.items()) {
    const bool empty = value.is_string() ? value.get_ref<const std::string&>().empty() : value.empty();
    if (!empty) fields[key] = value;
  }
  return fields;
}

/// Removes labels that the chart of another operator may put into a template, and empty fields.
PodTemplate without_chart(PodTemplate pod_template) {
  StringMap& labels = pod_template.metadata.labels;
  drop_chart_versions(labels);
  for (const char* name : {"app.kubernetes.io/managed-by", "app.kubernetes.io/part-of"}) labels.erase(name);
  pod_template.spec = without_empty_fields(std::move(pod_template.spec));
  return pod_template;
}

Json ssh_data(NodeSetSsh ssh) {
  if (ssh.sssd_conf_ref) ssh.sssd_conf_ref->optional.reset();  // Not acted on.
  return to_json(ssh);
}

}  // namespace

void drop_chart_versions(StringMap& labels) {
  for (const char* name : {"helm.sh/chart", "app.kubernetes.io/version"}) labels.erase(name);
}

Json revision_data(const NodeSetSpec& spec) {
  Json data = Json::object();
  data["template"] = to_json(without_chart(spec.pod_template));
  data["slurmd"] = without_empty_fields(spec.slurmd);
  data["logfile"] = without_empty_fields(spec.logfile);
  data["ssh"] = spec.ssh && spec.ssh->enabled ? ssh_data(*spec.ssh) : Json::object();
  data["extraConf"] = spec.extra_conf;
  data["ordinalPadding"] = spec.ordinal_padding;
  data["oversubscribeNode"] = spec.oversubscribe_node;
  return {{"spec", std::move(data)}};
}

Json recorded_data(const NodeSetSpec& spec) {
  Json data = revision_data(spec);
  if (spec.ssh) data["spec"]["ssh"] = ssh_data(*spec.ssh);
  return data;
}

std::string revision_hash(const NodeSetSpec& spec) {
  return core::short_hash(core::canonical(revision_data(spec)), 10);
}

std::string hash_in_force(const NodeSetSpec& spec, std::vector<const Json*> revisions) {
  std::string hash = revision_hash(spec);
  const auto number = [](const Json* revision) { return core::get_int(*revision, {"revision"}); };
  std::ranges::sort(revisions, std::ranges::greater{}, number);
  for (const Json* revision : revisions) {
    std::string recorded = core::get_string(*revision, {"metadata", "labels", kLabelRevisionHash});
    if (recorded == hash) return hash;
    // Skips the revisions of another operator. Their names do not end with the hash.
    if (recorded.empty() || !core::get_string(*revision, {"metadata", "name"}).ends_with("-" + recorded)) continue;
    const core::Result<NodeSetSpec> read = with_revision(spec, *revision);
    if (read && revision_hash(*read) == hash) return recorded;
  }
  return hash;
}

core::Result<NodeSetSpec> with_revision(NodeSetSpec spec, const Json& revision) {
  const Json* data = core::find(revision, {"data", "spec"});
  if (data == nullptr || !data->is_object()) {
    return core::fail(core::ErrorCode::kInvalid, "ControllerRevision " + core::get_string(revision, {"metadata", "name"}) +
                                                     " has no data.spec, so it is not one of a NodeSet");
  }
  Json body{{"spec", *data}};
  // An empty ssh in the data means that there is no sshd.
  if (const Json* ssh = core::find(*data, {"ssh"}); ssh != nullptr && ssh->empty()) body["spec"].erase("ssh");
  body["spec"]["controllerRef"]["name"] = spec.controller_ref.name;
  core::Result<NodeSet> read = from_json<NodeSet>(body);
  if (!read) {
    return core::fail(core::ErrorCode::kInvalid, "ControllerRevision " + core::get_string(revision, {"metadata", "name"}) +
                                                     ": data." + read.error().message);
  }
  spec.pod_template = std::move(read->spec.pod_template);
  spec.slurmd = std::move(read->spec.slurmd);
  spec.logfile = std::move(read->spec.logfile);
  spec.ssh = std::move(read->spec.ssh);
  spec.extra_conf = std::move(read->spec.extra_conf);
  spec.ordinal_padding = read->spec.ordinal_padding;
  spec.oversubscribe_node = read->spec.oversubscribe_node;
  return spec;
}

core::Result<Json> apply_revision(const Json& nodeset, const Json& revision) {
  const core::Result<NodeSet> read = from_json<NodeSet>(nodeset);
  if (!read) return core::fail(core::ErrorCode::kInvalid, read.error().message);
  const core::Result<NodeSetSpec> wanted = with_revision(read->spec, revision);
  if (!wanted) return std::unexpected(wanted.error());
  // A merge patch only removes fields that its base has. If an sshd must run, the base includes the disabled sshd, so that the
  // patch removes the fields of the disabled sshd.
  const bool runs = wanted->ssh && wanted->ssh->enabled;
  Json out = merge_patch(runs ? recorded_data(read->spec) : revision_data(read->spec), revision_data(*wanted));
  // Removes `ssh` as a whole, because an empty object would lack required fields.
  if (!wanted->ssh && read->spec.ssh && read->spec.ssh->enabled) out["spec"]["ssh"] = nullptr;
  return out;
}

}  // namespace api
