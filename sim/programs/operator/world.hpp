// A world with the operator and no other program.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/histories/world.hpp"
#include "sim/programs/operator/program.hpp"
#include "sim/programs/operator/users.hpp"

namespace sim {

class OperatorWorld : public World {
 public:
  explicit OperatorWorld(WorldOptions options = {}, OperatorOptions operators = {})
      : World(std::move(options), only(std::move(operators))) {}
  [[nodiscard]] OperatorProgram& program() { return static_cast<OperatorProgram&>(*programs().front()); }
  /// The operator's own oracles.
  [[nodiscard]] OperatorOracles& judges() { return program().oracles(); }
  /// Starts the operators and creates a Controller, a RestApi and the NodeSet "cpu". Does not wait for them.
  void found_cluster(int workers, const core::Json& controller = core::Json::object()) {
    start(program());
    apply(core::merge(controller_json(), controller));
    apply(restapi_json());
    apply(nodeset_json("cpu", workers));
  }

 private:
  static std::vector<std::unique_ptr<Program>> only(OperatorOptions options) {
    std::vector<std::unique_ptr<Program>> out;
    out.push_back(std::make_unique<OperatorProgram>(std::move(options)));
    return out;
  }
};

}  // namespace sim
