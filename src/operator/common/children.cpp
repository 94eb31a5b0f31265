#include "operator/common/children.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/hash.hpp"
#include "kube/acts.hpp"
#include "kube/apply_helper.hpp"

namespace op {
namespace {

std::string name_of(const core::Json& object) {
  return core::get_string(object, {"metadata", "name"});
}

plan::StepId apply_id(const kube::Resource& resource, const core::Json& intent) {
  return {"apply", resource.kind, name_of(intent)};
}

bool has_other_handler(const core::Json& wanted, const core::Json& there) {
  constexpr std::array<const char*, 4> kHandlers{"httpGet", "tcpSocket", "exec", "grpc"};
  return std::ranges::any_of(kHandlers,
                             [&](const char* handler) { return there.contains(handler) && !wanted.contains(handler); });
}

/// For the containers in `list`, adds JSON patch operations that remove each probe whose handler is not of the wanted type.
void drop_probes(const core::Json& wanted, const core::Json& there, std::string_view list, core::Json& patch) {
  const core::Json* ours = core::find(wanted, {"spec", "template", "spec", list});
  const core::Json* theirs = core::find(there, {"spec", "template", "spec", list});
  if (ours == nullptr || theirs == nullptr) return;
  std::unordered_map<std::string, const core::Json*> by_name;
  for (const core::Json& container : *ours) by_name.emplace(core::get_string(container, {"name"}), &container);
  for (std::size_t i = 0; i < theirs->size(); ++i) {
    const core::Json& old = (*theirs)[i];
    const std::string place = "/spec/template/spec/" + std::string(list) + "/" + std::to_string(i);
    const auto found = by_name.find(core::get_string(old, {"name"}));
    if (found == by_name.end()) continue;
    const core::Json& container = *found->second;
    for (const char* probe : {"startupProbe", "livenessProbe", "readinessProbe"}) {
      if (!container.contains(probe) || !old.contains(probe) || !has_other_handler(container[probe], old[probe])) continue;
      patch.push_back({{"op", "test"}, {"path", place + "/name"}, {"value", old["name"]}});
      patch.push_back({{"op", "remove"}, {"path", place + "/" + probe}});
    }
  }
}

/// Adds JSON patch operations that replace each volume whose type differs from the type of the wanted volume with this name.
void replace_volumes(const core::Json& wanted, const core::Json& there, core::Json& patch) {
  const core::Json* ours = core::find(wanted, {"spec", "template", "spec", "volumes"});
  const core::Json* theirs = core::find(there, {"spec", "template", "spec", "volumes"});
  if (ours == nullptr || theirs == nullptr) return;
  for (std::size_t i = 0; i < theirs->size(); ++i) {
    const core::Json& old = (*theirs)[i];
    const auto found = std::ranges::find_if(*ours, [&](const core::Json& volume) { return volume["name"] == old["name"]; });
    if (found == ours->end()) continue;
    const auto other = [&](const auto& item) { return !found->contains(item.key()); };
    const auto items = old.items();
    if (std::none_of(items.begin(), items.end(), other)) continue;
    const std::string place = "/spec/template/spec/volumes/" + std::to_string(i);
    patch.push_back({{"op", "test"}, {"path", place + "/name"}, {"value", old["name"]}});
    patch.push_back({{"op", "replace"}, {"path", place}, {"value", *found}});
  }
}

/// Returns the ports that the Service should have, which are our ports and the ports that others have added. Null: an apply is
/// enough. Server-side apply finds the ports of a Service by their numbers and protocols. If somebody has changed the number or
/// protocol of one of our ports, an apply would add our port beside the changed port. But the API server refuses two ports with
/// the same name or nodePort. `wanted_before`: our ports have not changed since the last apply. So fields of these ports that
/// we do not set were added by others, and stay.
core::Json repaired_ports(const core::Json& intent, const core::Json& observed, bool wanted_before) {
  const core::Json* ours = core::find(intent, {"spec", "ports"});
  const core::Json* there = core::find(observed, {"spec", "ports"});
  if (ours == nullptr || there == nullptr) return nullptr;
  const auto protocol = [](const core::Json& port) { return port.value("protocol", "TCP"); };
  const auto same_number = [&](const core::Json& a, const core::Json& b) {
    return core::get_int(a, {"port"}) == core::get_int(b, {"port"}) && protocol(a) == protocol(b);
  };
  const auto same_name = [](const core::Json& a, const core::Json& b) {
    return core::get_string(a, {"name"}) == core::get_string(b, {"name"});
  };
  const auto same_node_port = [&](const core::Json& a, const core::Json& b) {
    const auto number = core::get_int(a, {"nodePort"});
    return number != 0 && number == core::get_int(b, {"nodePort"}) && protocol(a) == protocol(b);
  };
  const auto one_of_ours = [&](const core::Json& port, const auto& like) {
    return std::ranges::any_of(*ours, [&](const core::Json& wanted) { return like(wanted, port); });
  };
  const auto collides = [&](const core::Json& wanted, const core::Json& port) {
    return !same_number(wanted, port) && (same_name(wanted, port) || same_node_port(wanted, port));
  };
  if (std::ranges::none_of(*there, [&](const core::Json& port) { return one_of_ours(port, collides); })) return nullptr;
  core::Json out = core::Json::array();
  for (const core::Json& wanted : *ours) {
    auto found = std::ranges::find_if(*there, [&](const core::Json& port) { return same_name(wanted, port); });
    if (found == there->end()) {
      found = std::ranges::find_if(
          *there, [&](const core::Json& port) { return same_number(wanted, port) && !one_of_ours(port, same_name); });
    }
    out.push_back(found == there->end() || !wanted_before ? wanted : core::merge(*found, wanted));
    out.back()["protocol"] = protocol(wanted);
  }
  for (core::Json port : *there) {
    if (one_of_ours(port, same_name) || one_of_ours(port, same_number)) continue;
    if (one_of_ours(port, same_node_port)) port.erase("nodePort");  // Kubernetes allocates another one.
    out.push_back(std::move(port));
  }
  return out;
}

/// True for labels and annotations by which a tool finds the objects that the tool manages. If a child had one of these, the
/// tool would claim or prune the child.
bool belongs_to_tool(std::string_view name) {
  constexpr std::array<std::string_view, 6> kPrefixes{"kubectl.kubernetes.io/", "deployment.kubernetes.io/", "meta.helm.sh/",
                                                      "argocd.argoproj.io/",    "objectset.rio.cattle.io/",  "kapp.k14s.io/"};
  return name.find(".toolkit.fluxcd.io/") != std::string_view::npos ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// True for annotations of a Controller that control the operator. If they were copied to a pod template, their changes would
/// restart slurmctld.
bool is_switch(std::string_view name) {
  return name.starts_with("controller.slinky.slurm.net/");
}

}  // namespace

core::Json child_json(const kube::Resource& resource, const kube::Key& key, const kube::Resource& owner_kind,
                      const kube::ObjectMeta& owner, const kube::StringMap& labels, const kube::StringMap& annotations) {
  core::Json meta = kube::meta_json(key, labels, annotations);
  meta["ownerReferences"] = core::Json::array({kube::owner_reference_json(owner_kind, owner)});
  return {{"apiVersion", resource.api_version()}, {"kind", resource.kind}, {"metadata", std::move(meta)}};
}

core::Json owned_child(const kube::Resource& resource, const kube::Key& key, const kube::Resource& owner_kind,
                       const kube::ObjectMeta& owner, const kube::StringMap& ours, const api::Metadata& over) {
  kube::StringMap labels, annotations;
  add_metadata(labels, owner.labels);
  add_metadata(annotations, owner.annotations);
  for (const auto& [name, value] : over.labels) labels[name] = value;
  for (const auto& [name, value] : over.annotations) annotations[name] = value;
  for (const auto& [name, value] : ours) labels[name] = value;
  return child_json(resource, key, owner_kind, owner, labels, annotations);
}

std::optional<plan::Step> apply_step(const kube::Resource& resource, core::Json intent, const kube::Object* observed,
                                     std::string_view manager) {
  if (observed != nullptr && observed->meta.terminating()) return {};
  plan::StepId id = apply_id(resource, intent);
  const bool wanted_before = observed != nullptr && observed->meta.annotation(kube::kIntentHash) == kube::intent_hash(intent);
  const char* why = observed == nullptr ? "it does not exist"
                    : wanted_before     ? "somebody has changed it"
                                        : "the desired object has changed";
  if (observed != nullptr && resource == kube::resources::kService) {
    if (core::Json ports = repaired_ports(intent, observed->body, wanted_before); !ports.is_null()) {
      core::Json patch = core::Json::array({{{"op", "replace"}, {"path", "/spec/ports"}, {"value", std::move(ports)}}});
      return plan::Step{std::move(id), why, kube::json_patch(resource, observed->meta, std::move(patch))};
    }
  }
  plan::ActPtr act = kube::apply_if_different(resource, std::move(intent), observed, std::string(manager));
  if (act == nullptr) return {};
  return plan::Step{std::move(id), why, std::move(act)};
}

void keep_fixed_fields(core::Json& spec, const kube::Object* observed) {
  if (observed == nullptr) return;
  for (const char* fixed : {"serviceName", "podManagementPolicy", "volumeClaimTemplates"}) {
    const core::Json* value = core::find(observed->body, {"spec", fixed});
    if (value == nullptr) {
      spec.erase(fixed);
    } else if (!spec.contains(fixed) || !core::contains(*value, spec[fixed])) {
      spec[fixed] = *value;
    }
  }
}

std::optional<plan::Step> make_way_step(const kube::Resource& resource, const core::Json& intent, const kube::Object* observed,
                                        const plan::Outcomes& outcomes) {
  if (observed == nullptr || observed->meta.terminating()) return {};
  if (!observed->meta.annotation(kube::kIntentHash).empty()) {
    const auto tried = outcomes.find(apply_id(resource, intent));
    const bool refused =
        tried != outcomes.end() && tried->second.error && tried->second.error->code == core::ErrorCode::kInvalid;
    if (!refused) return {};
  }
  core::Json operations = core::Json::array();
  for (const char* list : {"containers", "initContainers"}) drop_probes(intent, observed->body, list, operations);
  replace_volumes(intent, observed->body, operations);
  if (operations.empty()) return {};
  return plan::Step{{"clear conflicts in", resource.kind, observed->meta.name},
                    "somebody else has set another probe handler or another volume type than the desired ones",
                    kube::patch_any_version(resource, observed->meta, std::move(operations), kube::PatchType::kJson)};
}

std::string salted_digest(const kube::ObjectMeta& owner, std::string_view content) {
  return content.empty() ? "" : core::short_digest(owner.uid + '\n' + std::string(content));
}

void add_metadata(kube::StringMap& into, const kube::StringMap& from) {
  for (const auto& [name, value] : from) {
    if (!belongs_to_tool(name) && !is_switch(name)) into[name] = value;
  }
}

}  // namespace op
