// The events of a history of the operator: edits and deletions by users, harm to the objects that the operator created, jobs,
// and an administrator's changes.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/histories/history.hpp"
#include "sim/programs/operator/program.hpp"
#include "sim/programs/operator/users.hpp"

namespace sim {

class OperatorWorkload final : public Workload {
 public:
  OperatorWorkload(World& world, History& history, OperatorProgram& program);

  // Implements Workload.
  void found() override;
  [[nodiscard]] std::vector<Action> actions() override;
  void act_apart() override;
  void look() override { note_key(); }
  [[nodiscard]] std::vector<std::string> calm() override;
  [[nodiscard]] std::vector<std::string> end() override;

 private:
  void help_by_hand();
  [[nodiscard]] core::Json worker_starts() const;
  void give_memory_back(SimSlurm& slurm);
  void submit_job(const std::string& partition);
  void change_mind(const std::string& nodeset);
  void fill_user_actions();
  void fill_child_actions();
  void fill_input_actions();
  void fill_token_actions();
  void fill_slurm_actions();
  void fill_more();
  void fill_drains();
  void fill_updates();
  /// Lets a user taint a Kubernetes node; `effect` "" removes the taint. Does nothing if there is no such node.
  void taint(const std::string& node, const std::string& effect, const std::string& key = "site/maintenance");

  // The cluster, and the objects that users provide beside it: keys, files and scripts.
  core::Json controller() const;
  core::Json nodeset(const std::string& name, int replicas);
  [[nodiscard]] core::Json retention();
  std::vector<std::string> inputs() const;
  [[nodiscard]] static const kube::Resource& kind_of_input(const std::string& name);
  void put_input(const std::string& name);
  void put_slurm_key_back();
  void note_key();
  void bring_inputs_back();
  /// Edits the files that the Controller names, and Tokens, one at a time, while nothing else happens: in a storm, a later
  /// event can hide that the operator missed an edit. Returns why the declared state is not reached; empty if it is reached.
  std::vector<std::string> edit_one_by_one();
  void remove_taken_secrets();

  // Functions for objects that the operator creates.
  [[nodiscard]] bool key_is_newer(const core::Json& copy) const;
  [[nodiscard]] std::vector<std::string> children(const kube::Resource& kind) const;
  void harm_child(const kube::Resource& kind);
  /// Lets a user change the LoginSet.
  void touch_logins();
  void touch_sshd(const std::string& nodeset);
  /// Lets a user add accounting to the cluster, or remove it.
  void touch_accounting();
  /// Deletes or edits a child of each kind while nothing else happens, so that only the watch of the child's kind reports it.
  /// Returns what the operator has not restored.
  std::vector<std::string> harm_one_by_one();
  /// Handles workers that a deleted NodeSet left behind. Returns true if it created a NodeSet that adopts some of these
  /// workers.
  bool look_after_orphans();

  void submit_with_prolog();
  std::string some_node();
  void fill_modes();

  std::string some(const std::vector<std::string>& names) { return history_.some(names); }

  World& world_;
  History& history_;
  OperatorProgram& program_;
  SeededRandom& random_;  ///< The random source of the history.
  std::vector<Action> actions_;
  SeededRandom logins_;  ///< A random source for events of login nodes.
  bool with_logins_;
  SeededRandom accounting_;  ///< A random source for what users do about accounting.
  bool with_accounting_;
  SeededRandom more_;             ///< A separate random source. Half of the histories never draw from it.
  std::vector<Action> extra_;     ///< The actions that more_ draws.
  SeededRandom drains_;           ///< A random source for the drains that users set.
  std::vector<Action> draining_;  ///< The actions that drains_ draws.
  SeededRandom volumes_;          ///< A random source for everything about the volumes of workers.
  bool with_volumes_;
  SeededRandom updates_;  ///< A random source for what users do about updates.
  std::vector<Action> updating_;
  SeededRandom prologs_;  ///< A random source for prologs. A third of the histories have jobs with prologs.
  bool has_prologs_;
  SeededRandom modes_;  ///< A random source for scalingMode and the labels of Kubernetes nodes.
  std::vector<Action> mode_actions_;
  bool own_keys_, own_files_;
  bool taken_key_;                           ///< A user created the Secret that the operator would generate.
  bool volatile_;                            ///< slurmctld's state ends with its pod.
  std::map<std::string, std::string> keys_;  ///< The key in each Secret. A Secret that is created again gets the same key.
  std::string ran_with_;                     ///< The auth/slurm key that the daemons mount now, or mounted last.
  bool rekeyed_ = false;                     ///< A user has changed a key.
  int edits_ = 0;
  bool helped_ = false;  ///< Workers were created, or recreated, by hand.
};

}  // namespace sim
