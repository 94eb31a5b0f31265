#include "slurm/model.hpp"

namespace slurm {

bool Job::holds_nodes() const {
  return state == "RUNNING" || state == "SUSPENDED" || flags.contains("CONFIGURING") || flags.contains("COMPLETING");
}

}  // namespace slurm
