#include "slinky/secret_key.hpp"

#include <utility>

#include "core/base64.hpp"

namespace slinky {

slurm::KeyedCluster::ReadKey secret_key(kube::Client& client, kube::Key secret, std::string data_key) {
  return [&client, secret = std::move(secret), data_key = std::move(data_key)](slurm::KeyedCluster::KeyDone done) {
    client.get(kube::resources::kSecret, secret, [data_key, done = std::move(done)](const core::Result<core::Json>& read) {
      if (!read) return done(std::unexpected(read.error()));
      done(core::base64_decode(core::get_string(*read, {"data", data_key})));
    });
  };
}

}  // namespace slinky
