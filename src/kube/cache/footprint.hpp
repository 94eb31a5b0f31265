// Estimates the heap memory of records in bytes, for metrics. Excludes the allocator's overhead.
#pragma once

#include <cstddef>
#include <string>

#include "kube/object.hpp"

namespace kube {

/// The size of a node of std::map in addition to its value: colour, parent and two children.
inline constexpr std::size_t kMapNodeBytes = 4 * sizeof(void*);

/// Returns the memory that a value holds outside of itself. Short strings hold none.
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
