// Which slurmrestd serves a cluster: a pure function of what is observed.
//
// It is that of the oldest RestApi with a ready pod; else the one that served before; else the oldest.
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
  bool ready = false;                   ///< One of its pods is, and is to stay.
};

/// What decides who serves a cluster.
struct ServingObserved {
  std::optional<kube::ObjectMeta> meta;       ///< The Controller's; nullopt: there is none.
  std::optional<api::Controller> controller;  ///< nullopt: its spec cannot be read.
  std::vector<Server> servers;
  std::string before;  ///< The RestApi that serves now; "": none.
};

struct Serving {
  std::string restapi;  ///< Its name.
  slurm::Endpoint endpoint;
  KeyRef key;  ///< That signs tokens for it.
  friend bool operator==(const Serving&, const Serving&) = default;
};

/// nullopt: nobody is to be connected to.
[[nodiscard]] std::optional<Serving> plan_serving(const ServingObserved& observed);

}  // namespace slinky
