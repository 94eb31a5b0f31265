// The settings that the coordinator reads from slurm.conf. Pure.
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
  std::string jwt_key;                        ///< The path of the key that signs tokens for slurmrestd.
  std::optional<std::size_t> max_node_count;  ///< MaxNodeCount. nullopt: it is not set, or is not a number.
  std::set<std::string> node_sets;            ///< The names of all NodeSets, including those of the pool file.
  std::set<std::string> partitions;           ///< The names of all partitions except those of the pool file.
  std::vector<std::string> controller_names;  ///< The names of the SlurmctldHosts, without addresses, the primary first.
  std::vector<std::string> accounting_hosts;  ///< The hosts of slurmdbd. Empty: there is no slurmdbd.
  std::int64_t signed_for_s = 120;            ///< For how many seconds Slurm accepts a signature (AuthInfo: ttl, cred_expire).
  friend bool operator==(const SlurmFacts&, const SlurmFacts&) = default;
};

/// Parses slurm.conf(5). `text`: slurm.conf, followed by the files that it includes except the pool file. `pool_file`: the text
/// of the pool file, of which only the NodeSets count. Error: kInvalid if there is no ClusterName or no SlurmctldHost.
[[nodiscard]] core::Result<SlurmFacts> facts_of(std::string_view text, std::string_view pool_file = {});

}  // namespace enlist
