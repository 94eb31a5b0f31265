// The kinds that the simulated API server serves: which fields it fills in, which it refuses, which it does not let change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace sim {

/// One reason why an object is refused (a cause of a 422).
struct FieldProblem {
  std::string field;
  std::string reason;  ///< "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden" ...
  std::string message;
};

struct KubeKind {
  kube::Resource resource;
  std::string singular{};
  bool custom = false;     ///< From a CRD.
  bool status = true;      ///< Has the status subresource.
  bool scale = false;      ///< Has the scale subresource.
  bool generation = true;  ///< metadata.generation counts changes of the spec.
  bool graceful = false;   ///< Deleted with a grace period: pods.
  bool returns_object_on_delete = false;
  std::function<void(core::Json& object)> defaults{};
  std::function<void(core::Json& object)> on_create{};  ///< What admission adds, once.
  std::function<std::vector<FieldProblem>(const core::Json& object)> validate{};
  /// Changes of `before` into `after` that are not allowed.
  std::function<std::vector<FieldProblem>(const core::Json& before, const core::Json& after)> validate_update{};
  /// Paths of unknown fields, under strict field validation.
  std::function<std::vector<std::string>(const core::Json& object)> unknown_fields{};
};

/// The kinds of Kubernetes that the project touches.
std::vector<KubeKind> builtin_kinds();
/// A custom resource with its schema's defaults and checks (CEL rules are not evaluated).
KubeKind custom_kind(kube::Resource resource, core::Json schema, bool scale);
/// The project's own kinds.
std::vector<KubeKind> project_kinds();

/// It is being deleted.
bool terminating(const core::Json& object);
/// Its containers will never run again.
bool ended(const core::Json& pod);
/// What the API server fills into a pod's spec.
void default_pod_spec(core::Json& spec);

}  // namespace sim
