// A cluster of the registry whose key is stored somewhere: in a Secret (slinky/secret_key.hpp), or in a file. Reads the key,
// connects, and reads it again while it is missing and when the connection fails, because somebody may have replaced it.
//
//   slurm::KeyedCluster site(loop, clusters, "site");
//   site.connect({"slurmrestd.example.org", 6820}, slinky::secret_key(client, {"slurm-bridge", "jwt"}, "jwt.key"));
//   clusters.listen([&](const slurm::Change& change) { site.changed(change); });
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
  /// Reads the key, and calls `done` once, in a later turn. An empty key counts as a missing one.
  using ReadKey = std::function<void(KeyDone done)>;

  KeyedCluster(core::Loop& loop, Clusters& clusters, ClusterKey cluster);
  /// Does not disconnect.
  ~KeyedCluster();
  KeyedCluster(const KeyedCluster&) = delete;
  KeyedCluster& operator=(const KeyedCluster&) = delete;

  /// Connects to this slurmrestd with this key, which is read now. What was connected before stays in use until it is read.
  void connect(Endpoint endpoint, ReadKey read_key);
  /// Reads a missing key now, instead of some seconds later.
  void read_missing_key();
  /// Removes the cluster from the registry, and reads its key no more.
  void disconnect();
  /// Call it for each change. Changes of other clusters are ignored.
  void changed(const Change& change);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace slurm
