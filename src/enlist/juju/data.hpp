// What the charms `slurmd` and `slurmctld` tell each other over their relation, as data. Pure.
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

/// Returns what slurmd publishes: the partition and the NodeSet of the application, both called like it. `partition_conf`: the
/// option partition-config. Error: kInvalid with the word that is wrong. The name of the partition and its nodes cannot be
/// set.
[[nodiscard]] core::Result<Databag> compute_data(const std::string& app, std::string_view partition_conf);
/// Reads it back as a pool. nullopt: slurmd has not published yet. Error: kInvalid, also if the data are of another
/// application than `app`.
[[nodiscard]] core::Result<std::optional<Pool>> pool_from(const Databag& databag, const std::string& app);

struct ControllerData {
  std::string auth_key_id;               ///< The id of the secret with the auth key.
  std::vector<std::string> controllers;  ///< "host:port", the primary first.
  friend bool operator==(const ControllerData&, const ControllerData&) = default;
};
[[nodiscard]] Databag to_databag(const ControllerData& data);
/// nullopt: the id, the controllers or both are not published yet. Error: kInvalid with the key of the databag.
[[nodiscard]] core::Result<std::optional<ControllerData>> controller_data_from(const Databag& databag);

}  // namespace enlist::juju
