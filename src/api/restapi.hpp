// RestApi: the slurmrestd of a Controller.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "api/common.hpp"
#include "api/field.hpp"

namespace api {

/// The longest name X of a RestApi. The name of its Service, "X-restapi", must be a DNS label of at most 63 characters.
inline constexpr std::size_t kMaxRestApiName = 55;

struct RestApiSpec {
  ControllerReference controller_ref;
  std::int32_t replicas = 1;
  core::Json slurmrestd = core::Json::object();  ///< A core/v1 Container that is merged over the operator's own.
  PodTemplate pod_template;
  std::optional<SecretKeySelector> sssd_conf_ref;
  ServiceSpec service;
};

struct RestApiStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
};

struct RestApi {
  RestApiSpec spec;
  RestApiStatus status;
};

const FieldList& field_list(const RestApiSpec*);
const FieldList& field_list(const RestApiStatus*);
const FieldList& field_list(const RestApi*);

}  // namespace api
