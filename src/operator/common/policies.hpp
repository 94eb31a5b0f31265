// The chart's admission policies: who may delete workers, and what drains need. One declaration for the chart, which gets them
// in CEL (charts/slurm-operator/files/admission-policies.yaml, written by slurm-operator-gen), and for the simulator, which
// evaluates the same clauses. What depends on the chart's values, names, users, namespaces and actions, stands in the chart's
// templates.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/kinds.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

/// A deletion that a policy is asked about, as CEL sees it.
struct Deletion {
  const kube::Resource& resource;
  std::string user;
  const core::Json& object;           ///< oldObject.
  const core::Json* space = nullptr;  ///< namespaceObject; null: unknown.
  /// Of the policy's kind of parameters; a policy that has one is asked once for each object of it in the namespace.
  const core::Json* params = nullptr;
};

/// One term of a policy: in CEL, and what that means.
struct Clause {
  std::string name;
  std::string cel;
  std::function<bool(const Deletion&)> holds;
};

/// Which objects the API server asks a policy about, by label; with nothing in it: all.
struct LabelSelector {
  std::map<std::string, std::string> equal{};
  std::vector<std::string> exist{};
  std::map<std::string, std::vector<std::string>> in{};
};

/// Whose deletions: the chart's values say who these are.
enum class Deleters {
  kCleaners,    ///< The garbage collector and the namespace controller.
  kSchedulers,  ///< They preempt.
  kUsers,       ///< Whoever does not work for Kubernetes.
};

struct AdmissionPolicy {
  std::string name;  ///< The end of its name in the cluster.
  Deleters deleters;
  bool fails_open = false;  ///< What cannot be evaluated is let through.
  LabelSelector labels{};
  std::vector<std::string> groups, versions, resources;
  const kube::Resource* params = nullptr;  ///< The kind of its parameters.
  std::vector<Clause> conditions{};        ///< It concerns deletions for which all of these hold.
  std::vector<Clause> passes;              ///< Any of these lets the deletion through.
  bool variables = false;                  ///< `passes` are written as variables under their names, not inline.
  std::string subject;                     ///< Of the message: what the parameter is, or without one the object.
  std::string message;                     ///< What follows its name.

  /// It is asked about deleting this object, by whoever it means.
  [[nodiscard]] bool concerns(const Deletion& deletion) const;
  [[nodiscard]] bool allows(const Deletion& deletion) const;
  /// Why it is refused.
  [[nodiscard]] std::string refusal(const Deletion& deletion) const;
};

const std::vector<AdmissionPolicy>& admission_policies();
/// What the chart's templates read: the policies by name.
[[nodiscard]] api::GeneratedFile admission_policies_file();

}  // namespace op
