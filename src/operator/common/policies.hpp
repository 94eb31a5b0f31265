// The chart's admission policies. They restrict who is allowed to delete workers, and who is allowed to delete the objects that
// are needed to drain workers. Each policy is declared once: slurm-operator-gen writes it in CEL for the chart
// (charts/slurm-operator/files/admission-policies.yaml), and the simulator evaluates the same clauses. Parts that depend on the
// chart's values (names, users, namespaces and actions) are in the chart's templates.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/kinds.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

/// A request to delete an object, with the values that the CEL expressions of a policy can read.
struct Deletion {
  const kube::Resource& resource;
  std::string user;
  const core::Json& object;           ///< CEL's oldObject: the object to be deleted.
  const core::Json* space = nullptr;  ///< CEL's namespaceObject; null: unknown.
  /// An object of the policy's paramKind. A policy with parameters is evaluated once for each such object in the namespace.
  const core::Json* params = nullptr;
};

/// One term of a policy: its CEL expression, and the same condition in C++.
struct Clause {
  std::string name;
  std::string cel;
  std::function<bool(const Deletion&)> holds;
};

/// The policy's objectSelector. Empty: all objects.
struct LabelSelector {
  std::map<std::string, std::string> equal{};
  std::vector<std::string> exist{};
  std::map<std::string, std::vector<std::string>> in{};
};

/// The users that a policy applies to. The chart's values define each group.
enum class Deleters {
  kCleaners,    ///< The garbage collector and the namespace controller.
  kSchedulers,  ///< Schedulers, which preempt pods.
  kUsers,       ///< All users that are not part of Kubernetes.
};

struct AdmissionPolicy {
  std::string name;  ///< The suffix of the policy's name in the cluster.
  Deleters deleters;
  bool fails_open = false;  ///< failurePolicy: Ignore. A deletion that cannot be evaluated is allowed.
  LabelSelector labels{};
  std::vector<std::string> groups, versions, resources;
  const kube::Resource* params = nullptr;  ///< The policy's paramKind.
  std::vector<Clause> conditions{};        ///< matchConditions: the policy applies to deletions that meet all clauses.
  std::vector<Clause> passes;              ///< The deletion is allowed if any of these clauses holds.
  bool variables = false;                  ///< The CEL declares `passes` as named variables, not inline.
  std::string subject;  ///< The first word of the message, such as "worker". The name of the parameter or object follows.
  std::string message;  ///< The part of the message after the name of the parameter or object.

  /// Reports whether the policy applies to the deletion of this object by a user in `deleters`.
  [[nodiscard]] bool concerns(const Deletion& deletion) const;
  [[nodiscard]] bool allows(const Deletion& deletion) const;
  /// Returns the message for a deletion that the policy refuses.
  [[nodiscard]] std::string refusal(const Deletion& deletion) const;
};

const std::vector<AdmissionPolicy>& admission_policies();
/// Returns the file that the chart's templates read. It has all policies, by name.
[[nodiscard]] api::GeneratedFile admission_policies_file();

}  // namespace op
