#include "slurm/accounting/model.hpp"

namespace slurm::accounting {

core::Json to_json(const Cluster& cluster) {
  return {{"name", cluster.name}, {"host", cluster.host}, {"port", cluster.port}};
}

Cluster read_cluster(const core::Json& json) {
  return {core::get_string(json, {"name"}), core::get_string(json, {"host"}), core::get_int(json, {"port"})};
}

}  // namespace slurm::accounting
