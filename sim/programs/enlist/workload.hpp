// Does what users and administrators do in a history of slurm-enlist, and what happens to hosts and to Slurm.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/programs/enlist/program.hpp"

namespace sim {

class EnlistWorkload final : public Workload {
 public:
  EnlistWorkload(World& world, History& history, EnlistProgram& program);

  void found() override;
  std::vector<Action> actions() override;
  std::vector<std::string> calm() override;

 private:
  struct Token {
    std::string text, pool;
  };
  void make_pool();
  void make_token();
  void join();
  void submit();
  void change_node(const std::string& state, const std::string& reason);
  void fill_host_actions(std::vector<Action>& out);
  void fill_slurm_actions(std::vector<Action>& out);
  void stop_slurmctld(bool loses_state);
  void lose_registrations();
  void heal();
  void finish_joins();
  void mend_refused();
  [[nodiscard]] std::vector<std::string> rest();
  [[nodiscard]] EnlistHost& some_host();
  [[nodiscard]] std::string some_node();
  [[nodiscard]] std::string some_pool();
  [[nodiscard]] core::Duration between(std::int64_t least, std::int64_t most) {
    return core::Duration{random_.between(least, most)};
  }
  void note(const std::string& what) { world_.oracles().note(what); }

  World& world_;
  SeededRandom& random_;
  EnlistProgram& program_;
  std::vector<Token> tokens_;
  std::set<EnlistHost*> unfinished_;  ///< The hosts on which the last join failed or was killed.
  int clouds_ = 0;
};

}  // namespace sim
