// Reads the key that signs tokens for a Slurm from a Secret: for a connection to an address that is known, without a RestApi.
#pragma once

#include <string>

#include "kube/client/client.hpp"
#include "slurm/snapshot/keyed_cluster.hpp"

namespace slinky {

/// Returns a reader of the bytes under `data_key`. They are "" if the Secret has none. Requires the right to get the Secret.
/// The client must outlive the reader.
[[nodiscard]] slurm::KeyedCluster::ReadKey secret_key(kube::Client& client, kube::Key secret, std::string data_key);

}  // namespace slinky
