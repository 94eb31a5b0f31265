#include "kube/cache/footprint.hpp"

namespace kube {

namespace {

std::size_t heap_bytes(const StringMap& map) {
  std::size_t sum = 0;
  for (const auto& [key, value] : map) {
    sum += kMapNodeBytes + sizeof(StringMap::value_type) + kube::heap_bytes(key) + kube::heap_bytes(value);
  }
  return sum;
}

std::size_t heap_bytes(const ResourceAmounts& amounts) {
  std::size_t sum = 0;
  for (const auto& [name, amount] : amounts)
    sum += kMapNodeBytes + sizeof(ResourceAmounts::value_type) + kube::heap_bytes(name);
  return sum;
}

template <class Item>
std::size_t room_of(const std::vector<Item>& items) {
  return items.capacity() * sizeof(Item);
}

template <class... Text>
std::size_t of_texts(const Text&... texts) {
  return (kube::heap_bytes(texts) + ... + 0);
}

std::size_t of_conditions(const std::vector<PodCondition>& conditions) {
  std::size_t sum = 0;
  for (const PodCondition& condition : conditions) {
    sum += of_texts(condition.type, condition.status, condition.reason, condition.message);
  }
  return sum;
}

std::size_t heap_bytes(const ObjectMeta& meta) {
  std::size_t sum = of_texts(meta.ns, meta.name, meta.uid, meta.resource_version);
  sum += heap_bytes(meta.labels) + heap_bytes(meta.annotations);
  sum += room_of(meta.owners) + room_of(meta.finalizers);
  for (const OwnerReference& owner : meta.owners) sum += of_texts(owner.api_version, owner.kind, owner.name, owner.uid);
  for (const std::string& finalizer : meta.finalizers) sum += kube::heap_bytes(finalizer);
  return sum;
}

}  // namespace

std::size_t heap_bytes(const std::string& text) {
  static const std::size_t inside = std::string().capacity();
  return text.capacity() > inside ? text.capacity() + 1 : 0;
}

std::size_t heap_bytes(const Key& key) {
  return of_texts(key.ns, key.name);
}

std::size_t heap_bytes(const core::Json& value) {
  std::size_t sum = 0;
  if (value.is_object()) {
    sum += sizeof(core::Json::object_t);
    for (const auto& [key, member] : value.get_ref<const core::Json::object_t&>()) {
      sum += kMapNodeBytes + sizeof(core::Json::object_t::value_type) + heap_bytes(key) + heap_bytes(member);
    }
  } else if (value.is_array()) {
    const auto& items = value.get_ref<const core::Json::array_t&>();
    sum += sizeof(core::Json::array_t) + room_of(items);
    for (const core::Json& item : items) sum += heap_bytes(item);
  } else if (value.is_string()) {
    sum += sizeof(std::string) + heap_bytes(value.get_ref<const std::string&>());
  }
  return sum;
}

std::size_t heap_bytes(const Object& record) {
  return heap_bytes(record.meta) + heap_bytes(record.body);
}

std::size_t heap_bytes(const PodRecord& record) {
  std::size_t sum = heap_bytes(record.meta);
  sum +=
      of_texts(record.node_name, record.hostname, record.phase, record.pod_ip, record.reason, record.message, record.pinned_to);
  sum += room_of(record.conditions) + room_of(record.containers) + room_of(record.secrets) + room_of(record.http_probed);
  for (const auto* names : {&record.secrets, &record.http_probed}) {
    for (const std::string& name : *names) sum += of_texts(name);
  }
  sum += of_conditions(record.conditions);
  for (const ContainerState& container : record.containers) {
    sum += of_texts(container.name, container.waiting_reason, container.message);
  }
  return sum;
}

std::size_t heap_bytes(const SecretRecord& record) {
  return heap_bytes(record.meta) + heap_bytes(record.value_hashes) + heap_bytes(record.sizes) + heap_bytes(record.contents) +
         heap_bytes(record.type);
}

std::size_t heap_bytes(const NodeRecord& record) {
  std::size_t sum = heap_bytes(record.meta) + room_of(record.taints) + room_of(record.troubles);
  for (const Taint& taint : record.taints) sum += of_texts(taint.key, taint.value, taint.effect);
  return sum + of_conditions(record.troubles);
}

std::size_t heap_bytes(const MetadataRecord& record) {
  return heap_bytes(record.meta);
}

std::size_t heap_bytes(const SchedulingPodRecord& record) {
  std::size_t sum = heap_bytes(static_cast<const PodRecord&>(record));
  sum += of_texts(record.scheduler, record.priority_class) + room_of(record.gates) + room_of(record.tolerations);
  for (const std::string& gate : record.gates) sum += of_texts(gate);
  for (const Toleration& toleration : record.tolerations) {
    sum += of_texts(toleration.key, toleration.op, toleration.value, toleration.effect);
  }
  return sum + heap_bytes(record.requests) + heap_bytes(record.node_selector) + heap_bytes(record.affinity);
}

std::size_t heap_bytes(const SchedulingNodeRecord& record) {
  std::size_t sum = heap_bytes(static_cast<const NodeRecord&>(record));
  sum += room_of(record.conditions) + heap_bytes(record.allocatable);
  return sum + of_conditions(record.conditions);
}

}  // namespace kube
