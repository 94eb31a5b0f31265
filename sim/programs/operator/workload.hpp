// What a history does to the operator: edits and deletions by users, harm to what the operator made, jobs, an administrator's
// hand.
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

  // Workload.
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
  /// Of a Kubernetes node, by a user; "": none.
  void taint(const std::string& node, const std::string& effect, const std::string& key = "site/maintenance");

  /// What users name beside their cluster: keys of their own, files and scripts.
  core::Json controller() const;
  core::Json nodeset(const std::string& name, int replicas);
  [[nodiscard]] core::Json retention();
  std::vector<std::string> inputs() const;
  [[nodiscard]] static const kube::Resource& kind_of_input(const std::string& name);
  void put_input(const std::string& name);
  void put_slurm_key_back();
  void note_key();
  void bring_inputs_back();
  /// Files that the Controller names, and Tokens. In a storm an edit that was missed is made good by whatever comes after it;
  /// here nothing does. What is not reached; empty: all is.
  std::vector<std::string> edit_one_by_one();
  void remove_taken_secrets();

  /// Names of what the operator made of a kind, and makes anew.
  [[nodiscard]] bool key_is_newer(const core::Json& copy) const;
  [[nodiscard]] std::vector<std::string> children(const kube::Resource& kind) const;
  void harm_child(const kube::Resource& kind);
  /// A user does something to the LoginSet.
  void touch_logins();
  void touch_sshd(const std::string& nodeset);
  /// A user gives the cluster accounting, or takes it away.
  void touch_accounting();
  /// A child of each kind, while all else is quiet: only its own watch tells of it. What does not come back.
  std::vector<std::string> harm_one_by_one();
  /// Workers that a user let their NodeSet leave behind.
  /// True: a NodeSet was made for some.
  bool look_after_orphans();

  void submit_with_prolog();
  std::string some_node();
  void fill_modes();

  std::string some(const std::vector<std::string>& names) { return history_.some(names); }

  World& world_;
  History& history_;
  OperatorProgram& program_;
  SeededRandom& random_;  ///< The history's.
  std::vector<Action> actions_;
  SeededRandom logins_;  ///< What befalls login nodes, apart from all else as well.
  bool with_logins_;
  SeededRandom accounting_;  ///< Likewise, of what users do about accounting.
  bool with_accounting_;
  SeededRandom more_;             ///< Apart from all else: half of the histories go without, and are what they were.
  std::vector<Action> extra_;     ///< Drawn by it.
  SeededRandom drains_;           ///< Likewise, of what users say of drains.
  std::vector<Action> draining_;  ///< Drawn by it.
  SeededRandom volumes_;          ///< Apart from all else, too: whether workers have volumes, and what becomes of these.
  bool with_volumes_;
  SeededRandom updates_;  ///< The same for what users do about updates.
  std::vector<Action> updating_;
  SeededRandom prologs_;  ///< Likewise: a third of the histories have jobs with prologs.
  bool has_prologs_;
  SeededRandom modes_;  ///< Likewise, of scalingMode and of what Kubernetes nodes are labelled with.
  std::vector<Action> mode_actions_;
  bool own_keys_, own_files_;
  bool taken_key_;                           ///< The user made the Secret that would be generated.
  bool volatile_;                            ///< slurmctld's state goes with its pod.
  std::map<std::string, std::string> keys_;  ///< By Secret; they are the same when they come back.
  std::string ran_with_;                     ///< The auth/slurm key that daemons mount, or did at last.
  bool rekeyed_ = false;                     ///< A user's key has changed.
  int edits_ = 0;
  bool helped_ = false;  ///< Workers were made, or made anew, by hand.
};

}  // namespace sim
