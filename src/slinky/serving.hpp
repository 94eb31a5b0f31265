// Selects the slurmrestd that serves a cluster: a pure function of what is observed.
//
// Selects the oldest RestApi with a ready pod. If there is none, keeps the RestApi in `before`, or else selects the oldest.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/controller.hpp"
#include "api/restapi.hpp"
#include "kube/object.hpp"
#include "slinky/names.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slinky {

/// A RestApi of the cluster.
struct Server {
  kube::ObjectMeta meta;
  std::optional<api::RestApi> restapi;  ///< nullopt: its spec cannot be read.
  bool ready = false;                   ///< A pod of the RestApi is ready and not terminating.
};

/// The input of plan_serving.
struct ServingObserved {
  std::optional<kube::ObjectMeta> meta;       ///< The metadata of the Controller. nullopt: there is no Controller.
  std::optional<api::Controller> controller;  ///< nullopt: its spec cannot be read.
  std::vector<Server> servers;
  std::string before;  ///< The RestApi that serves the cluster now; "" if there is none.
};

struct Serving {
  std::string restapi;  ///< The RestApi's name.
  slurm::Endpoint endpoint;
  KeyRef key;  ///< The key that signs tokens for this slurmrestd.
  friend bool operator==(const Serving&, const Serving&) = default;
};

/// Returns the slurmrestd that serves the cluster; nullopt if none exists, or if the operator must not connect to the cluster.
[[nodiscard]] std::optional<Serving> plan_serving(const ServingObserved& observed);

}  // namespace slinky
