// The events of a history of the bridge: actions of users and administrators.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/programs/bridge/program.hpp"

namespace sim {

class BridgeWorkload final : public Workload {
 public:
  BridgeWorkload(World& world, History& history, BridgeProgram& program);

  void found() override;
  std::vector<Action> actions() override;
  std::vector<std::string> calm() override;
  std::vector<std::string> end() override;

  /// Maps the uid of a pod that is to end by itself to the exit code.
  using Ends = std::map<std::string, int>;

 private:
  void watch();
  [[nodiscard]] bool fair() const;
  void make_pod();
  void make_gang();
  void make_member(const std::string& gang, int index);
  void mend_gang();
  void finish_pod();
  void free_pod();
  void change_words();
  void lose_slurm_state();
  void submit_foreign();
  void submit_native();
  void fill_node_actions(std::vector<Action>& out);
  void fill_slurm_actions(std::vector<Action>& out);
  void restore_slurm();
  [[nodiscard]] std::string some_pod();
  [[nodiscard]] std::string some_node();
  [[nodiscard]] std::int64_t some_job(bool foreign);

  World& world_;
  SeededRandom& random_;
  BridgeProgram& program_;
  std::shared_ptr<Ends> ends_ = std::make_shared<Ends>();
  std::map<std::string, int> gangs_;  ///< The size of each group of pods, by name.
  int pods_ = 0;
};

}  // namespace sim
