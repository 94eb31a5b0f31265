// What the coordinator takes from slurm.conf, and how releases of Slurm go together. Pure.
//
// Folder src/enlist/coordinator: the coordinator, which runs beside slurmctld and alone changes Slurm. Uses enlist/store,
// enlist/wire, enlist/host, slurm and run.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

struct SlurmFacts {
  std::string cluster_name;
  std::vector<std::string> controllers;  ///< "host:port" for slurmd's --conf-server, the primary first. IPv6 in brackets.
  std::string slurm_user = "root";
  std::string jwt_key;  ///< The path of the key that signs tokens for slurmrestd: jwt_key of AuthAltParameters.
  std::optional<std::size_t> max_node_count;
  std::set<std::string> node_sets;    ///< The names of all NodeSets, whoever wrote them.
  std::vector<std::string> includes;  ///< The files of Include lines, as they are written there.
  friend bool operator==(const SlurmFacts&, const SlurmFacts&) = default;
};

/// Reads slurm.conf(5). Error: kInvalid if there is no ClusterName or no SlurmctldHost.
[[nodiscard]] core::Result<SlurmFacts> facts_of(std::string_view slurm_conf);
/// Returns the names of the NodeSets of a file that slurm.conf includes.
[[nodiscard]] std::set<std::string> node_sets_of(std::string_view included);

/// Checks that a slurmd of one release works with the slurmctld of another: it must not be of a newer major release, and at
/// most two major releases older. Error: kInvalid with both releases.
[[nodiscard]] core::Result<void> check_release(std::string_view slurmd, std::string_view slurmctld);

}  // namespace enlist
