#include "kube/cache/record.hpp"

#include <openssl/crypto.h>
#include <simdjson.h>

#include <algorithm>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "core/quantity.hpp"

namespace kube {

namespace dom = simdjson::dom;

namespace {

/// The annotation of kubectl apply. Its value is a second copy of the object, which no code here reads.
constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
/// After a larger input (in bytes), the parser is replaced, to free its buffer.
constexpr std::size_t kKeepBuffer = 256U << 10U;
/// Values at deeper nesting levels are cut. simdjson accepts 1024 levels.
constexpr std::size_t kMaxNesting = 1000;

std::string text(dom::element element, std::string_view key) {
  std::string_view value;
  if (element[key].get(value) != simdjson::SUCCESS) return {};
  return std::string(value);
}

bool flag(dom::element element, std::string_view key) {
  bool value = false;
  return element[key].get(value) == simdjson::SUCCESS && value;
}

std::int64_t integer(dom::element element, std::string_view key) {
  std::int64_t value = 0;
  return element[key].get(value) == simdjson::SUCCESS ? value : 0;
}

std::optional<core::WallTime> time(dom::element element, std::string_view key) {
  std::string_view value;
  if (element[key].get(value) != simdjson::SUCCESS) return std::nullopt;
  const auto at = core::parse_rfc3339(value);
  return at ? std::optional(*at) : std::nullopt;
}

template <class Each>
void each_item(dom::element element, std::string_view key, Each each) {
  dom::array array;
  if (element[key].get(array) != simdjson::SUCCESS) return;
  for (const dom::element item : array) each(item);
}

StringMap strings(dom::element element, std::string_view key) {
  StringMap result;
  dom::object object;
  if (element[key].get(object) != simdjson::SUCCESS) return result;
  for (const auto field : object) {
    std::string_view value;
    if (field.value.get(value) == simdjson::SUCCESS && field.key != kLastApplied) result.emplace(field.key, value);
  }
  return result;
}

/// Adds the names of the Secrets that a volume of a pod mounts.
void add_secrets(dom::element volume, std::vector<std::string>& into) {
  dom::element source;
  if (volume["secret"].get(source) == simdjson::SUCCESS) into.push_back(text(source, "secretName"));
  if (volume["projected"].get(source) != simdjson::SUCCESS) return;
  each_item(source, "sources", [&](dom::element item) {
    dom::element secret;
    if (item["secret"].get(secret) == simdjson::SUCCESS) into.push_back(text(secret, "name"));
  });
}

core::Result<ObjectMeta> checked_meta(dom::element object) {
  ObjectMeta meta = meta_of_element(object);
  if (meta.name.empty()) return core::fail(core::ErrorCode::kInvalid, "object without metadata.name");
  return meta;
}

bool began(dom::element state) {
  dom::element ignored;
  return state["running"].get(ignored) == simdjson::SUCCESS || state["terminated"].get(ignored) == simdjson::SUCCESS;
}

ContainerState container_state(dom::element status, bool init) {
  ContainerState result;
  result.name = text(status, "name");
  result.init = init;
  result.ready = flag(status, "ready");
  result.restarts = static_cast<int>(integer(status, "restartCount"));
  result.started_once = result.restarts > 0;
  dom::element state, last;
  const bool has_last = status["lastState"].get(last) == simdjson::SUCCESS;
  if (has_last && began(last)) result.started_once = true;
  if (status["state"].get(state) != simdjson::SUCCESS) return result;
  if (began(state)) result.started_once = true;
  dom::element inner;
  if (has_last && state["running"].get(inner) == simdjson::SUCCESS && last["terminated"].get(inner) == simdjson::SUCCESS &&
      integer(inner, "exitCode") != 0) {
    result.last_message = text(inner, "message");
  }
  if (state["waiting"].get(inner) == simdjson::SUCCESS) {
    result.waiting_reason = text(inner, "reason");
    result.message = text(inner, "message");
    result.crashed = result.waiting_reason == "CrashLoopBackOff";
    // Uses the termination message of the last run, because the kubelet's own message contains only the length of the back-off.
    if (result.crashed && has_last && last["terminated"].get(inner) == simdjson::SUCCESS)
      result.message = text(inner, "message");
  } else if (state["terminated"].get(inner) == simdjson::SUCCESS) {
    result.message = text(inner, "message");
    result.crashed = result.restarts > 0 && integer(inner, "exitCode") != 0;
  }
  return result;
}

/// Returns how long the pod tolerates the taint. Like the taint manager, uses the first toleration that matches. A toleration
/// of all taints is the user's own. It counts as a toleration without a time limit, so that the operator does not change it.
Patience patience_of(dom::element spec, std::string_view taint) {
  Patience result;
  std::int32_t index = 0;
  each_item(spec, "tolerations", [&](dom::element toleration) {
    const std::string key = text(toleration, "key"), effect = text(toleration, "effect");
    const bool any_value = text(toleration, "operator") == "Exists" || text(toleration, "value").empty();
    const bool fits = (key.empty() || key == taint) && (effect.empty() || effect == "NoExecute") && any_value;
    if (fits && result.index < 0) {
      result.index = index;
      std::int64_t seconds = 0;
      if (!key.empty() && toleration["tolerationSeconds"].get(seconds) == simdjson::SUCCESS) result.seconds = seconds;
    }
    ++index;
  });
  return result;
}

/// Returns the node that every term of the required node affinity names, as in pods of a DaemonSet; "" if there is none.
std::string pin_of(dom::element spec) {
  dom::element required;
  constexpr std::string_view kPath = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
  if (spec.at_pointer(kPath).get(required) != simdjson::SUCCESS) return {};
  std::optional<std::string> found;
  each_item(required, "nodeSelectorTerms", [&](dom::element term) {
    std::string named;
    each_item(term, "matchFields", [&](dom::element field) {
      dom::array values;
      std::string_view name;
      if (text(field, "key") == "metadata.name" && text(field, "operator") == "In" &&
          field["values"].get(values) == simdjson::SUCCESS && values.size() == 1 && values.at(0).get(name) == simdjson::SUCCESS)
        named = name;
    });
    found = !found || *found == named ? named : "";
  });
  return found.value_or("");
}

/// Cuts values that are nested deeper than `levels`, which no type of Kubernetes is. If a cut value is sent to a server later,
/// the server refuses the value and names its path.
void cut_deep(core::Json& value, std::size_t levels) {
  if (!value.is_structured()) return;
  if (levels == 0) {
    value = "nested too deep";
    return;
  }
  for (core::Json& inner : value) cut_deep(inner, levels - 1);
}

core::Json without(dom::object object, std::string_view left_out, std::string_view annotation_left_out) {
  core::Json result = core::Json::object();
  for (const auto field : object) {
    if (field.key == left_out) continue;
    if (field.key == "annotations") {
      dom::object annotations;
      if (field.value.get(annotations) == simdjson::SUCCESS) {
        result["annotations"] = without(annotations, annotation_left_out, "");
        continue;
      }
    }
    result[std::string(field.key)] = json_of_element(field.value);
  }
  return result;
}

}  // namespace

core::Json json_of_element(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::ARRAY: {
      core::Json result = core::Json::array();
      dom::array array;
      if (element.get(array) == simdjson::SUCCESS) {
        for (const dom::element item : array) result.push_back(json_of_element(item));
      }
      return result;
    }
    case dom::element_type::OBJECT: {
      core::Json result = core::Json::object();
      dom::object object;
      if (element.get(object) == simdjson::SUCCESS) {
        for (const auto field : object) result[std::string(field.key)] = json_of_element(field.value);
      }
      return result;
    }
    case dom::element_type::INT64:
      return element.get_int64().value_unsafe();
    case dom::element_type::UINT64:
      return element.get_uint64().value_unsafe();
    case dom::element_type::DOUBLE:
      return element.get_double().value_unsafe();
    case dom::element_type::STRING:
      return std::string(element.get_string().value_unsafe());
    case dom::element_type::BOOL:
      return element.get_bool().value_unsafe();
    case dom::element_type::NULL_VALUE:
      return nullptr;
  }
  return nullptr;
}

ObjectMeta meta_of_element(const dom::element& object) {
  ObjectMeta meta;
  dom::element m;
  if (object["metadata"].get(m) != simdjson::SUCCESS) return meta;
  meta.ns = text(m, "namespace");
  meta.name = text(m, "name");
  meta.uid = text(m, "uid");
  meta.resource_version = text(m, "resourceVersion");
  meta.generation = integer(m, "generation");
  meta.labels = strings(m, "labels");
  meta.annotations = strings(m, "annotations");
  each_item(m, "ownerReferences", [&](dom::element owner) {
    meta.owners.push_back(
        {text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name"), text(owner, "uid"), flag(owner, "controller")});
  });
  each_item(m, "finalizers", [&](dom::element finalizer) {
    std::string_view value;
    if (finalizer.get(value) == simdjson::SUCCESS) meta.finalizers.emplace_back(value);
  });
  meta.created = time(m, "creationTimestamp").value_or(core::WallTime{});
  meta.deletion_timestamp = time(m, "deletionTimestamp");
  return meta;
}

template <>
core::Result<std::shared_ptr<const Object>> parse_record<Object>(const dom::element& object, const ParseContext&) {
  auto meta = checked_meta(object);
  if (!meta) return std::unexpected(meta.error());
  auto record = std::make_shared<Object>();
  record->meta = std::move(*meta);
  record->body = core::Json::object();
  dom::object fields;
  if (object.get(fields) != simdjson::SUCCESS) return core::fail(core::ErrorCode::kInvalid, "not an object");
  for (const auto field : fields) {
    dom::object inner;
    if (field.key == "metadata" && field.value.get(inner) == simdjson::SUCCESS) {
      record->body["metadata"] = without(inner, "managedFields", kLastApplied);
    } else {
      record->body[std::string(field.key)] = json_of_element(field.value);
    }
  }
  return record;
}

namespace {

void note_end(const dom::element& status, std::vector<EphemeralContainer>& of) {
  dom::element terminated;
  std::int64_t code = -1;
  if (status["state"]["terminated"].get(terminated) != simdjson::SUCCESS) return;
  const auto found = std::ranges::find(of, text(status, "name"), &EphemeralContainer::name);
  if (found == of.end()) return;
  if (terminated["exitCode"].get(code) == simdjson::SUCCESS && code == 0) found->done = time(terminated, "finishedAt");
  found->failed = !found->done;
}

bool probed_by_http(const dom::element& container) {
  return std::ranges::any_of(kProbes, [&](std::string_view probe) {
    dom::object request;
    return container[probe]["httpGet"].get(request) == simdjson::SUCCESS;
  });
}

/// Parses all fields of PodRecord. Error: kInvalid.
template <class Record>
core::Result<std::shared_ptr<Record>> parse_pod(const dom::element& object) {
  auto meta = checked_meta(object);
  if (!meta) return std::unexpected(meta.error());
  auto pod = std::make_shared<Record>();
  pod->meta = std::move(*meta);
  dom::element spec;
  if (object["spec"].get(spec) == simdjson::SUCCESS) {
    pod->node_name = text(spec, "nodeName");
    pod->hostname = text(spec, "hostname");
    pod->host_network = flag(spec, "hostNetwork");
    pod->pinned_to = pin_of(spec);
    pod->not_ready = patience_of(spec, kTaintNotReady);
    pod->unreachable = patience_of(spec, kTaintUnreachable);
    each_item(spec, "volumes", [&](dom::element volume) { add_secrets(volume, pod->secrets); });
    pod->secrets.shrink_to_fit();
    each_item(spec, "containers", [&](dom::element c) {
      if (pod->image.empty()) pod->image = text(c, "image");
      if (probed_by_http(c)) pod->http_probed.push_back(text(c, "name"));
    });
    pod->http_probed.shrink_to_fit();
    each_item(spec, "ephemeralContainers", [&](dom::element c) { pod->ephemeral.push_back({.name = text(c, "name")}); });
  }
  dom::element status;
  if (object["status"].get(status) != simdjson::SUCCESS) return pod;
  pod->phase = text(status, "phase");
  pod->pod_ip = text(status, "podIP");
  pod->reason = text(status, "reason");
  pod->message = text(status, "message");
  each_item(status, "conditions", [&](dom::element c) {
    pod->conditions.push_back({text(c, "type"), text(c, "status"), text(c, "reason"), text(c, "message")});
    if (pod->conditions.back().type == "Ready" && pod->conditions.back().status == "True") {
      pod->ready_since = time(c, "lastTransitionTime");
    }
  });
  each_item(status, "initContainerStatuses", [&](dom::element c) { pod->containers.push_back(container_state(c, true)); });
  each_item(status, "containerStatuses", [&](dom::element c) { pod->containers.push_back(container_state(c, false)); });
  each_item(status, "ephemeralContainerStatuses", [&](dom::element c) { note_end(c, pod->ephemeral); });
  pod->conditions.shrink_to_fit();
  pod->containers.shrink_to_fit();
  return pod;
}

/// Parses all fields of NodeRecord. Error: kInvalid.
template <class Record>
core::Result<std::shared_ptr<Record>> parse_node(const dom::element& object) {
  auto meta = checked_meta(object);
  if (!meta) return std::unexpected(meta.error());
  auto node = std::make_shared<Record>();
  node->meta = std::move(*meta);
  dom::element spec;
  if (object["spec"].get(spec) == simdjson::SUCCESS) {
    node->unschedulable = flag(spec, "unschedulable");
    each_item(spec, "taints", [&](dom::element taint) {
      node->taints.push_back({text(taint, "key"), text(taint, "value"), text(taint, "effect")});
    });
    node->taints.shrink_to_fit();
  }
  dom::element status;
  if (object["status"].get(status) == simdjson::SUCCESS) {
    each_item(status, "conditions", [&](dom::element c) {
      const bool is_true = text(c, "status") == "True";
      if (text(c, "type") == "Ready") {
        node->ready = is_true;
      } else if (is_true) {
        node->troubles.push_back({text(c, "type"), text(c, "status"), text(c, "reason"), text(c, "message")});
      }
    });
  }
  return node;
}

ResourceAmounts quantities(dom::element element, std::string_view key) {
  ResourceAmounts result;
  dom::object object;
  if (element[key].get(object) != simdjson::SUCCESS) return result;
  for (const auto field : object) {
    if (const auto amount = core::quantity(json_of_element(field.value))) result.emplace(field.key, *amount);
  }
  return result;
}

ResourceAmounts requests_of(dom::element element) {
  dom::element resources;
  return element["resources"].get(resources) == simdjson::SUCCESS ? quantities(resources, "requests") : ResourceAmounts();
}

void add(ResourceAmounts& to, const ResourceAmounts& more) {
  for (const auto& [name, amount] : more) to[name] += amount;
}

void raise(ResourceAmounts& to, const ResourceAmounts& at_least) {
  for (const auto& [name, amount] : at_least) to[name] = std::max(to[name], amount);
}

/// Returns the amounts that the scheduler reserves for the pod, as PodRequests in k8s.io/component-helpers/resource does.
ResourceAmounts pod_requests(dom::element spec) {
  ResourceAmounts running;  // containers and sidecars, which run at the same time
  each_item(spec, "containers", [&](dom::element container) { add(running, requests_of(container)); });
  ResourceAmounts sidecars;  // sidecars started so far
  ResourceAmounts starting;  // the most that is requested while the pod starts
  each_item(spec, "initContainers", [&](dom::element container) {
    ResourceAmounts now = requests_of(container);
    if (text(container, "restartPolicy") == "Always") {
      add(running, now);
      add(sidecars, now);
      now = sidecars;
    } else {
      add(now, sidecars);
    }
    raise(starting, now);
  });
  raise(running, starting);
  for (const auto& [name, amount] : requests_of(spec)) running[name] = amount;
  add(running, quantities(spec, "overhead"));
  return running;
}

}  // namespace

namespace {

std::optional<int> exit_code_of(const dom::element& pod) {
  std::optional<int> result;
  dom::element status, terminated;
  if (pod["status"].get(status) != simdjson::SUCCESS) return result;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    each_item(status, list, [&](dom::element container) {
      if (container["state"]["terminated"].get(terminated) != simdjson::SUCCESS) return;
      result = std::max(result.value_or(0), static_cast<int>(integer(terminated, "exitCode")));
    });
  }
  return result;
}

}  // namespace

template <>
core::Result<std::shared_ptr<const PodRecord>> parse_record<PodRecord>(const dom::element& object, const ParseContext&) {
  return parse_pod<PodRecord>(object);
}

template <>
core::Result<std::shared_ptr<const SchedulingPodRecord>> parse_record<SchedulingPodRecord>(const dom::element& object,
                                                                                           const ParseContext&) {
  auto pod = parse_pod<SchedulingPodRecord>(object);
  dom::element spec;
  if (!pod || object["spec"].get(spec) != simdjson::SUCCESS) return pod;
  SchedulingPodRecord& record = **pod;
  each_item(spec, "schedulingGates", [&](dom::element gate) { record.gates.push_back(text(gate, "name")); });
  dom::object annotations;
  record.annotated = object["metadata"]["annotations"].get(annotations) == simdjson::SUCCESS;
  record.exit_code = exit_code_of(object);
  record.scheduler = text(spec, "schedulerName");
  record.priority_class = text(spec, "priorityClassName");
  record.priority = static_cast<std::int32_t>(integer(spec, "priority"));
  if (std::int64_t grace = 0; spec["terminationGracePeriodSeconds"].get(grace) == simdjson::SUCCESS)
    record.grace = std::chrono::seconds{grace};
  record.requests = pod_requests(spec);
  each_item(spec, "tolerations", [&](dom::element toleration) {
    std::int64_t seconds = 0;
    const bool limited = toleration["tolerationSeconds"].get(seconds) == simdjson::SUCCESS;
    record.tolerations.push_back({text(toleration, "key"), text(toleration, "operator"), text(toleration, "value"),
                                  text(toleration, "effect"), limited ? std::optional(seconds) : std::nullopt});
  });
  record.node_selector = strings(spec, "nodeSelector");
  dom::element affinity;
  if (spec["affinity"].get(affinity) == simdjson::SUCCESS) record.affinity = json_of_element(affinity);
  return pod;
}

template <>
core::Result<std::shared_ptr<const SecretRecord>> parse_record<SecretRecord>(const dom::element& object,
                                                                             const ParseContext& context) {
  auto meta = checked_meta(object);
  if (!meta) return std::unexpected(meta.error());
  auto secret = std::make_shared<SecretRecord>();
  secret->meta = std::move(*meta);
  secret->type = text(object, "type");
  secret->immutable = flag(object, "immutable");
  dom::object data;
  if (object["data"].get(data) != simdjson::SUCCESS) return secret;
  for (const auto field : data) {
    std::string_view encoded;
    if (field.value.get(encoded) != simdjson::SUCCESS) continue;
    auto value = core::base64_decode(encoded);
    if (!value) return std::unexpected(value.error().with("Secret " + secret->meta.key().str()));
    const std::string name(field.key);
    std::string salted = context.secret_salt + secret->meta.uid + '\n' + *value;
    std::string alone = context.secret_salt + '\n' + *value;
    secret->value_hashes.emplace(name, core::sha256_hex(salted));
    secret->contents.emplace(name, core::sha256_hex(alone));
    secret->sizes.emplace(name, std::to_string(value->size()));
    OPENSSL_cleanse(salted.data(), salted.size());
    OPENSSL_cleanse(alone.data(), alone.size());
    OPENSSL_cleanse(value->data(), value->size());
  }
  return secret;
}

template <>
core::Result<std::shared_ptr<const NodeRecord>> parse_record<NodeRecord>(const dom::element& object, const ParseContext&) {
  return parse_node<NodeRecord>(object);
}

template <>
core::Result<std::shared_ptr<const SchedulingNodeRecord>> parse_record<SchedulingNodeRecord>(const dom::element& object,
                                                                                             const ParseContext&) {
  auto node = parse_node<SchedulingNodeRecord>(object);
  if (!node) return node;
  SchedulingNodeRecord& record = **node;
  dom::element status;
  if (object["status"].get(status) == simdjson::SUCCESS) {
    record.allocatable = quantities(status, "allocatable");
    each_item(status, "addresses", [&](dom::element address) {
      if (record.internal_ip.empty() && text(address, "type") == "InternalIP") record.internal_ip = text(address, "address");
    });
    each_item(status, "conditions", [&](dom::element c) {
      record.conditions.push_back({text(c, "type"), text(c, "status"), text(c, "reason"), text(c, "message")});
    });
  }
  return node;
}

template <>
core::Result<std::shared_ptr<const MetadataRecord>> parse_record<MetadataRecord>(const dom::element& object,
                                                                                 const ParseContext&) {
  auto meta = checked_meta(object);
  if (!meta) return std::unexpected(meta.error());
  return std::make_shared<MetadataRecord>(MetadataRecord{std::move(*meta)});
}

struct DocumentParser::Impl {
  dom::parser parser;
};

DocumentParser::DocumentParser() : impl_(std::make_unique<Impl>()) {}
DocumentParser::~DocumentParser() = default;

core::Result<void> DocumentParser::parse(std::string_view input, const Use& use) {
  core::Result<void> result;
  {
    dom::element root;
    auto error = impl_->parser.parse(input.data(), input.size(), true).get(root);
    if (error == simdjson::NUMBER_ERROR || error == simdjson::DEPTH_ERROR) {
      if (auto json = core::parse_json(input)) {
        cut_deep(*json, kMaxNesting);
        error = impl_->parser.parse(json->dump()).get(root);
      }
    }
    if (error != simdjson::SUCCESS) {
      result = core::fail(core::ErrorCode::kInvalid, std::string("JSON: ") + simdjson::error_message(error));
    } else {
      result = use(root);
    }
  }
  if (input.size() > kKeepBuffer) impl_ = std::make_unique<Impl>();
  return result;
}

template <class Record>
core::Result<std::shared_ptr<const Record>> parse_record_text(std::string_view input, const ParseContext& context) {
  DocumentParser parser;
  core::Result<std::shared_ptr<const Record>> result;
  const auto parsed = parser.parse(input, [&](const dom::element& root) -> core::Result<void> {
    result = parse_record<Record>(root, context);
    return {};
  });
  if (!parsed) return std::unexpected(parsed.error());
  return result;
}

template core::Result<std::shared_ptr<const Object>> parse_record_text<Object>(std::string_view, const ParseContext&);
template core::Result<std::shared_ptr<const PodRecord>> parse_record_text<PodRecord>(std::string_view, const ParseContext&);
template core::Result<std::shared_ptr<const SecretRecord>> parse_record_text<SecretRecord>(std::string_view,
                                                                                           const ParseContext&);
template core::Result<std::shared_ptr<const NodeRecord>> parse_record_text<NodeRecord>(std::string_view, const ParseContext&);
template core::Result<std::shared_ptr<const MetadataRecord>> parse_record_text<MetadataRecord>(std::string_view,
                                                                                               const ParseContext&);
template core::Result<std::shared_ptr<const SchedulingPodRecord>> parse_record_text<SchedulingPodRecord>(std::string_view,
                                                                                                         const ParseContext&);
template core::Result<std::shared_ptr<const SchedulingNodeRecord>> parse_record_text<SchedulingNodeRecord>(std::string_view,
                                                                                                           const ParseContext&);

}  // namespace kube
