#include "slurm/snapshot/keyed_cluster.hpp"

#include <utility>

namespace slurm {

namespace {

/// The delay before a missing key, or the key of a failing connection, is read again. If Slurm refused a token of the key, the
/// key is read again at once.
constexpr core::Duration kReadAgain{5000};

}  // namespace

struct KeyedCluster::Impl : std::enable_shared_from_this<Impl> {
  Impl(core::Loop& loop, Clusters& in, ClusterKey of) : clusters(in), cluster(std::move(of)), again(loop) {}

  Clusters& clusters;
  ClusterKey cluster;
  Endpoint endpoint;
  std::string user;
  ReadKey read_key;          ///< Unset before connect() and after disconnect().
  std::uint64_t wishes = 0;  ///< The number of calls of connect().
  bool reading = false;
  core::Timer again;

  void read() {
    if (reading || !read_key) return;
    reading = true;
    again.cancel();
    read_key([weak = weak_from_this(), asked = wishes](const core::Result<std::string>& bytes) {
      if (const auto self = weak.lock()) self->key_read(asked, bytes);
    });
  }

  void key_read(std::uint64_t asked, const core::Result<std::string>& bytes) {
    reading = false;
    if (!read_key) return;
    if (asked != wishes) return read();
    // The caller of connect() reports a missing key. Here, only read the key again.
    if (!bytes || bytes->empty()) return read_after(kReadAgain);
    clusters.set(cluster, endpoint, *bytes, user);
  }

  void read_after(core::Duration delay) {
    again.set(delay, [this] { read(); });
  }
};

KeyedCluster::KeyedCluster(core::Loop& loop, Clusters& clusters, ClusterKey cluster)
    : impl_(std::make_shared<Impl>(loop, clusters, std::move(cluster))) {}
KeyedCluster::~KeyedCluster() = default;

void KeyedCluster::connect(Endpoint endpoint, ReadKey read_key, std::string user) {
  impl_->endpoint = std::move(endpoint);
  impl_->user = std::move(user);
  impl_->read_key = std::move(read_key);
  ++impl_->wishes;
  impl_->read();
}

void KeyedCluster::read_missing_key() {
  if (!impl_->clusters.contains(impl_->cluster)) impl_->read();
}

void KeyedCluster::disconnect() {
  impl_->read_key = nullptr;
  impl_->again.cancel();
  impl_->clusters.remove(impl_->cluster);
}

void KeyedCluster::changed(const Change& change) {
  const bool idle = impl_->read_key && !impl_->reading && !impl_->again.pending();
  if (change.cluster != impl_->cluster || change.now->complete() || !idle) return;
  const bool refused = change.health && change.now->error_code == core::ErrorCode::kUnauthorized;
  impl_->read_after(refused ? core::Duration{0} : kReadAgain);
}

}  // namespace slurm
