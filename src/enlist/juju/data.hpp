// The data that the charms `slurmd` and `slurmctld` exchange over their relation. Pure.
//
// Each value in a databag is JSON. The application slurmd publishes "partition" and "nodeset", slurmctld publishes
// "auth_key_id" and "controllers". The key itself is a secret of Juju, of which only the id is published.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "enlist/rules/model.hpp"

namespace enlist::juju {

/// The databag of an application in a relation.
using Databag = std::map<std::string, std::string>;

/// Returns what slurmd publishes: a partition and a NodeSet, both with the name of the application. `partition_conf`: the
/// option partition-config, which cannot set the partition's name or nodes. Error: kInvalid with the setting that is wrong.
[[nodiscard]] core::Result<Databag> compute_data(const std::string& app, std::string_view partition_conf);
/// Reads what slurmd has published, as a pool. nullopt: slurmd has not published yet. Error: kInvalid, also if the names in the
/// data are not the name of the application `app`.
[[nodiscard]] core::Result<std::optional<Pool>> pool_from(const Databag& databag, const std::string& app);

struct ControllerData {
  std::string auth_key_id;               ///< The id of the secret with the auth key.
  std::vector<std::string> controllers;  ///< "host:port", the primary first.
  friend bool operator==(const ControllerData&, const ControllerData&) = default;
};
[[nodiscard]] Databag to_databag(const ControllerData& data);
/// Reads what slurmctld has published. nullopt: the id or the controllers are missing. Error: kInvalid with the databag's key.
[[nodiscard]] core::Result<std::optional<ControllerData>> controller_data_from(const Databag& databag);

}  // namespace enlist::juju
