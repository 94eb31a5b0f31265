// The events of a history of slurm-enlist: actions of users and administrators, and accidents of hosts and of Slurm.
#pragma once

#include <map>
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
  /// Request that a node leaves: leave_node by `node remove`, leave_host by `leave` on the node's host.
  void leave_node(const std::string& node, bool force);
  void leave_host(EnlistHost& host);
  void keep_node(const std::string& node);
  void configure(const std::string& node, const std::string& words);
  void set_state(const std::string& verb, const std::string& node);
  void remove_pool(const std::string& pool, bool force);
  /// Turns a host off or cuts it off, until the calm or for ever.
  void lose_host();
  void submit();
  void suspend();
  void change_node(const std::string& state, const std::string& reason);
  void fill_leave_actions(std::vector<Action>& out);
  void fill_host_actions(std::vector<Action>& out);
  void fill_slurm_actions(std::vector<Action>& out);
  void stop_slurmctld(bool loses_state);
  void kill_slurmctld(core::Duration unsaved);
  void lose_registrations();
  void heal();
  /// Passes the outcome of requests whose answer was lost to the oracle, as the coordinator's records show it.
  void learn_wishes();
  void end_jobs_that_keep();
  void bury_lost_hosts();
  void finish_joins();
  void clean_up();
  void finish_words();
  void learn_words(const std::string& node);
  void mend_refused();
  [[nodiscard]] std::vector<std::string> rest();
  [[nodiscard]] EnlistHost& some_host();
  [[nodiscard]] std::string some_node();
  [[nodiscard]] std::string some_pool();
  [[nodiscard]] std::string some_record();
  [[nodiscard]] EnlistHost* host_of(const std::string& node);
  [[nodiscard]] bool known(const EnlistHost& host) const;
  void wish(const std::string& node, bool leaves);
  [[nodiscard]] core::Duration between(std::int64_t least, std::int64_t most) {
    return core::Duration{random_.between(least, most)};
  }
  void note(const std::string& what) { world_.oracles().note(what); }

  World& world_;
  SeededRandom& random_;
  EnlistProgram& program_;
  std::vector<Token> tokens_;
  std::set<EnlistHost*> unfinished_;          ///< The hosts on which the last join failed or was killed.
  std::set<EnlistHost*> lost_;                ///< The hosts that are off or cut off until the calm, or for ever.
  std::set<EnlistHost*> dead_;                ///< The hosts in lost_ that never return.
  std::map<std::string, std::string> words_;  ///< The parameters last requested for a node, if the answer was lost.
  std::set<std::string> unsure_;              ///< The nodes whose last request to leave or stay may be unanswered.
  int clouds_ = 0;
};

}  // namespace sim
