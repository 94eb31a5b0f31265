// How the API server changes documents: merge patch, JSON patch, strategic merge patch, and server-side apply with field
// owners. Pure functions on JSON; lists are told apart by the names of their fields, as far as the kinds we use go.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"

namespace sim {

/// How a list is merged.
struct ListType {
  enum class Kind { kAtomic, kSet, kMap };
  Kind kind = Kind::kAtomic;
  std::vector<std::string> keys;  ///< Of a map.
};
/// The type of the list under `field`; `custom` for custom resources, whose specs have atomic lists only.
ListType list_type(std::string_view field, const core::Json& list, bool custom);

/// RFC 7386.
void merge_patch(core::Json& target, const core::Json& patch);
/// RFC 6902. Errors: kConflict for a failed test, kInvalid otherwise.
core::Result<core::Json> json_patch(const core::Json& target, const core::Json& patch);
/// Kubernetes' strategic merge patch with $patch: delete and replace, and $deleteFromPrimitiveList.
void strategic_patch(core::Json& target, const core::Json& patch);

/// A path to a field: "f:spec", `k:{"name":"x"}`, `v:"finalizer"`.
using FieldPath = std::vector<std::string>;
using FieldSet = std::set<FieldPath>;
/// Who owns which fields: "Apply slurm-operator" or "Update kubectl".
using FieldOwners = std::map<std::string, FieldSet>;

/// The fields that a document sets (leaves, items of associative lists), but for identity and server-set metadata.
FieldSet fields_of(const core::Json& document, bool custom);
/// As metadata.managedFields[].fieldsV1 has it.
core::Json fields_v1(const FieldSet& fields);

struct ApplyConflict {
  std::string owner;  ///< As in FieldOwners.
  std::string path;   ///< ".data.key"
};

struct ApplyResult {
  core::Json object;
  FieldOwners owners;
  std::vector<ApplyConflict> conflicts;  ///< When not empty, nothing else counts.
};
/// Applies `config` as `manager` onto `live`, whose fields belong to `owners`.
ApplyResult apply_config(const core::Json& live, const FieldOwners& owners, const core::Json& config,
                         const std::string& manager, bool force, bool custom);
/// The owners after `manager` changed one document into the other by other means than apply.
FieldOwners own_changes(const core::Json& from, const core::Json& to, FieldOwners owners, const std::string& manager,
                        bool custom);

}  // namespace sim
