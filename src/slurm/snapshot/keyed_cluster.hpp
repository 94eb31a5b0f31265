// A cluster of the registry whose key is stored somewhere: in a Secret (slinky/secret_key.hpp), or in a file. Reads the key,
// connects, and reads the key again while it is missing and when the connection fails, because the key can be new.
//
//   slurm::KeyedCluster site(loop, clusters, "site");
//   site.connect({"slurmrestd.example.org", 6820}, slinky::secret_key(client, {"slurm-bridge", "jwt"}, "jwt.key"));
//   clusters.listen([&](const slurm::Change& change) { site.changed(change); });
//
// Folder src/slurm/snapshot: snapshots of clusters, polling, and the registry of connections. Uses slurm/rest and
// slurm/accounting.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/loop.hpp"
#include "slurm/snapshot/registry.hpp"

namespace slurm {

class KeyedCluster {
 public:
  using KeyDone = std::function<void(core::Result<std::string> bytes)>;
  /// Reads the key, and calls `done` once, in a later loop iteration. An empty key counts as a missing key.
  using ReadKey = std::function<void(KeyDone done)>;

  KeyedCluster(core::Loop& loop, Clusters& clusters, ClusterKey cluster);
  /// Leaves the cluster in the registry. Call disconnect() to remove it.
  ~KeyedCluster();
  KeyedCluster(const KeyedCluster&) = delete;
  KeyedCluster& operator=(const KeyedCluster&) = delete;

  /// Connects to this slurmrestd with the key that `read_key` reads now. Until the key is read, an earlier connection stays in
  /// use. `user` is the user for writes (SlurmUser).
  void connect(Endpoint endpoint, ReadKey read_key, std::string user = "slurm");
  /// Reads a missing key now, instead of some seconds later.
  void read_missing_key();
  /// Removes the cluster from the registry and stops reading its key.
  void disconnect();
  /// Reads the key again, at once or later, if the connection to this cluster fails. Call it for each change. Changes of other
  /// clusters are ignored.
  void changed(const Change& change);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
