// LoginSet: the login nodes of a Controller, with sackd, sshd and sssd.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/common.hpp"
#include "api/field.hpp"

namespace api {

/// The longest name of a LoginSet. Its Service has the same name, which must be a DNS label.
inline constexpr std::size_t kMaxLoginSetName = 63;

enum class DeploymentStrategyType { kRollingUpdate, kRecreate };
constexpr std::array<std::string_view, 2> enum_names(DeploymentStrategyType) {
  return {"RollingUpdate", "Recreate"};
}

struct DeploymentRollingUpdate {
  std::optional<IntOrString> max_unavailable;
  std::optional<IntOrString> max_surge;
};
struct DeploymentStrategy {
  std::optional<DeploymentStrategyType> type;
  DeploymentRollingUpdate rolling_update;
};

struct LoginSetSpec {
  ControllerReference controller_ref;
  std::int32_t replicas = 1;
  core::Json login = core::Json::object();     ///< A core/v1 Container that is merged over the operator's own.
  core::Json initconf = core::Json::object();  ///< A core/v1 Container that is merged over the operator's own.
  PodTemplate pod_template;
  std::string root_ssh_authorized_keys;
  std::vector<LocalObjectReference> authorized_keys_refs;  ///< ConfigMaps: each key is a user's name, each value the SSH keys.
  std::string extra_sshd_config;
  std::optional<SecretKeySelector> sssd_conf_ref;
  DeploymentStrategy strategy;
  ServiceSpec service;
};

struct LoginSetStatus {
  std::int32_t replicas = 0;
  std::int32_t ready_replicas = 0;
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  std::string selector;
};

struct LoginSet {
  LoginSetSpec spec;
  LoginSetStatus status;
};

const FieldList& field_list(const DeploymentRollingUpdate*);
const FieldList& field_list(const DeploymentStrategy*);
const FieldList& field_list(const LoginSetSpec*);
const FieldList& field_list(const LoginSetStatus*);
const FieldList& field_list(const LoginSet*);

}  // namespace api
