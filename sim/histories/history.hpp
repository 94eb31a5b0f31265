// What happens in a world: a random history from its seed, or a fixed one for trying each fault at each write.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/histories/world.hpp"

namespace sim {

/// A random history: a storm of edits, accidents and faults; then calm, in which the declared state must be reached; then rest,
/// in which nothing may be written; in every other one all is deleted at last, and must go.
class History {
 public:
  explicit History(World& world);
  /// What the oracles hold against it; empty when all is well.
  std::vector<std::string> run();

 private:
  struct Action {
    int weight;
    std::function<void()> act;
  };

  void found_cluster();
  void storm();
  void calm();
  void end();
  void help_by_hand();
  [[nodiscard]] core::Json worker_starts() const;
  void give_memory_back(SimSlurm& slurm);
  void weather();
  void submit_job(const std::string& partition);
  void change_mind(const std::string& nodeset);
  void fill_actions();
  void fill_user_actions();
  void fill_child_actions();
  void fill_input_actions();
  void fill_token_actions();
  void fill_slurm_actions();
  void fill_accidents();
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
  std::string some(const std::vector<std::string>& names);
  std::string some_node();
  void restore();
  void fill_modes();

  World& world_;
  SeededRandom random_;
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
  std::vector<std::string> wrong_;
  std::set<std::string> lost_nodes_;  ///< Kubernetes nodes that are off.
  std::set<std::string> cut_nodes_;
  bool own_keys_, own_files_;
  bool taken_key_;                           ///< The user made the Secret that would be generated.
  bool volatile_;                            ///< slurmctld's state goes with its pod.
  SlurmRates usual_;                         ///< What befalls requests to slurmrestd when all is well.
  SlurmRates fair_;                          ///< And while the weather is fair.
  std::map<std::string, std::string> keys_;  ///< By Secret; they are the same when they come back.
  std::string ran_with_;                     ///< The auth/slurm key that daemons mount, or did at last.
  bool rekeyed_ = false;                     ///< A user's key has changed.
  int edits_ = 0;
  bool helped_ = false;  ///< Workers were made, or made anew, by hand.
};

/// The fixed history: a cluster is founded, grows, runs a job, shrinks, is edited, and its NodeSet goes. Returns the final
/// state, or what went wrong.
struct FixedResult {
  std::vector<std::string> wrong;
  core::Json state;
  std::uint64_t writes = 0;  ///< That faults could have met.
};
FixedResult run_fixed(World& world);
/// Appends where a final state is not the expected one.
void differences(const core::Json& expected, const core::Json& state, const std::string& path, std::vector<std::string>& out);

/// Rest after a settled history: nothing is written for `length`.
std::vector<std::string> check_rest(World& world, core::Duration length);

}  // namespace sim
