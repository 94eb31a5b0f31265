// What records take of the heap, in bytes: an estimate for metrics, without what the allocator adds.
#pragma once

#include <cstddef>
#include <string>

#include "kube/object.hpp"

namespace kube {

/// A node of std::map beside its value: colour, parent, two children.
inline constexpr std::size_t kMapNodeBytes = 4 * sizeof(void*);

/// What a value holds outside of itself; short strings hold nothing.
std::size_t heap_bytes(const std::string& text);
std::size_t heap_bytes(const Key& key);
std::size_t heap_bytes(const core::Json& value);
std::size_t heap_bytes(const Object& record);
std::size_t heap_bytes(const PodRecord& record);
std::size_t heap_bytes(const SecretRecord& record);
std::size_t heap_bytes(const NodeRecord& record);
std::size_t heap_bytes(const MetadataRecord& record);
std::size_t heap_bytes(const SchedulingPodRecord& record);
std::size_t heap_bytes(const SchedulingNodeRecord& record);

}  // namespace kube
