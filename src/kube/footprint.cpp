#include "kube/footprint.hpp"

namespace kube {

namespace {

std::size_t heap_bytes(const StringMap& map) {
  std::size_t sum = 0;
  for (const auto& [key, value] : map) {
    sum += kMapNodeBytes + sizeof(StringMap::value_type) + kube::heap_bytes(key) + kube::heap_bytes(value);
  }
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
  sum += of_texts(record.node_name, record.hostname, record.phase, record.pod_ip, record.reason, record.message);
  sum += room_of(record.conditions) + room_of(record.containers) + room_of(record.secrets);
  for (const std::string& secret : record.secrets) sum += of_texts(secret);
  for (const PodCondition& condition : record.conditions) {
    sum += of_texts(condition.type, condition.status, condition.reason, condition.message);
  }
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
  return heap_bytes(record.meta);
}

}  // namespace kube
