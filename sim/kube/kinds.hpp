// The kinds that the simulated API server serves: their defaults, their validation, and the fields that cannot be changed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace sim {

/// One reason to refuse an object (a cause of a 422).
struct FieldProblem {
  std::string field;
  std::string reason;  ///< "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden" ...
  std::string message;
};

struct KubeKind {
  kube::Resource resource;
  std::string singular{};
  bool custom = false;     ///< The kind is defined by a CRD.
  bool status = true;      ///< The kind has the status subresource.
  bool scale = false;      ///< The kind has the scale subresource.
  bool generation = true;  ///< metadata.generation counts changes of the spec.
  bool graceful = false;   ///< Objects are deleted with a grace period: pods.
  bool returns_object_on_delete = false;
  std::function<void(core::Json& object)> defaults{};
  std::function<void(core::Json& object)> on_create{};  ///< Changes a new object as the server's own admission does.
  std::function<std::vector<FieldProblem>(const core::Json& object)> validate{};
  /// Returns the changes from `before` to `after` that are not allowed.
  std::function<std::vector<FieldProblem>(const core::Json& before, const core::Json& after)> validate_update{};
  /// Returns the paths of unknown fields, for strict field validation.
  std::function<std::vector<std::string>(const core::Json& object)> unknown_fields{};
};

/// Returns the kinds of Kubernetes that the project uses.
std::vector<KubeKind> builtin_kinds();
/// Returns a custom resource with the defaults and checks of its schema. CEL rules are not evaluated.
KubeKind custom_kind(kube::Resource resource, core::Json schema, bool scale);
/// Returns the project's own kinds.
std::vector<KubeKind> project_kinds();

/// Reports whether the object is being deleted.
bool terminating(const core::Json& object);
/// Reports whether the pod's containers will never run again.
bool ended(const core::Json& pod);
/// Adds the API server's defaults to a pod's spec.
void default_pod_spec(core::Json& spec);

}  // namespace sim
