// The methods by which the API server changes documents: merge patch, JSON patch, strategic merge patch, and server-side apply
// with field owners. Pure functions on JSON. They derive the type of a list from its field name, as far as needed.
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

/// Describes how a list is merged.
struct ListType {
  enum class Kind { kAtomic, kSet, kMap };
  Kind kind = Kind::kAtomic;
  std::vector<std::string> keys;  ///< For kMap: the fields that identify an item.
};
/// Returns the type of the list in a field with this name. In custom resources (`custom`), all lists of specs are atomic.
ListType list_type(std::string_view field, const core::Json& list, bool custom);

/// Changes `target` by a merge patch (RFC 7386).
void merge_patch(core::Json& target, const core::Json& patch);
/// Returns `target` changed by a JSON patch (RFC 6902). Errors: kConflict for a failed test, kInvalid otherwise.
core::Result<core::Json> json_patch(const core::Json& target, const core::Json& patch);
/// Changes `target` by a strategic merge patch with $patch: delete and replace, and $deleteFromPrimitiveList.
void strategic_patch(core::Json& target, const core::Json& patch);

/// The steps of a path to a field, such as "f:spec", `k:{"name":"x"}` and `v:"finalizer"`.
using FieldPath = std::vector<std::string>;
using FieldSet = std::set<FieldPath>;
/// Maps each owner, such as "Apply slurm-operator" or "Update kubectl", to its fields.
using FieldOwners = std::map<std::string, FieldSet>;

/// Returns the fields that a document sets (leaves, and items of associative lists), except identity and metadata set by the
/// server.
FieldSet fields_of(const core::Json& document, bool custom);
/// Returns metadata.managedFields[].fieldsV1 for the fields.
core::Json fields_v1(const FieldSet& fields);

struct ApplyConflict {
  std::string owner;  ///< The owner, as in FieldOwners.
  std::string path;   ///< The field, such as ".data.key".
};

struct ApplyResult {
  core::Json object;
  FieldOwners owners;
  std::vector<ApplyConflict> conflicts;  ///< If not empty, ignore the other members.
};
/// Applies `config` as `manager` to `live`, whose fields belong to `owners`. `force` takes over the fields of other owners.
ApplyResult apply_config(const core::Json& live, const FieldOwners& owners, const core::Json& config,
                         const std::string& manager, bool force, bool custom);
/// Returns the owners after `manager` has changed a document by other means than apply.
FieldOwners own_changes(const core::Json& from, const core::Json& to, FieldOwners owners, const std::string& manager,
                        bool custom);

}  // namespace sim
