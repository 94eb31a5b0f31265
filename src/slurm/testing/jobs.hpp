// Jobs for unit tests.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "slurm/model.hpp"

namespace slurm::testing {

inline std::shared_ptr<const Job> job(std::int64_t id, std::string state, std::set<std::string, std::less<>> flags,
                                      std::vector<std::string> nodes) {
  auto out = std::make_shared<Job>();
  out->id = id;
  out->state = std::move(state);
  out->flags = std::move(flags);
  out->nodes = std::move(nodes);
  return out;
}

}  // namespace slurm::testing
