// Reads the key that signs tokens for slurmrestd from a Secret, for a slurm::KeyedCluster.
#pragma once

#include <string>

#include "kube/client/client.hpp"
#include "slurm/snapshot/keyed_cluster.hpp"

namespace slinky {

/// Returns a function that reads the bytes under `data_key`; "" if the Secret lacks the key. Errors: those of Client::get, and
/// kInvalid if the value is not base64. Requires the right to get the Secret. The client must outlive the function.
[[nodiscard]] slurm::KeyedCluster::ReadKey secret_key(kube::Client& client, kube::Key secret, std::string data_key);

}  // namespace slinky
