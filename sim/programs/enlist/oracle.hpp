// The oracle of slurm-enlist. It checks these rules against the simulated Slurm, the hosts and the coordinator's disk, not
// against the reports of slurm-enlist:
//
// 1. No job ends early because of slurm-enlist. Users, administrators, accidents and Slurm itself end jobs.
// 2. The coordinator does not free a node that somebody else had drained or set down when the coordinator last read the node.
//    If a drained node's record is deleted, the next record of the node gets the drain again.
// 3. A record in Slurm belongs to one node of the coordinator, and no two hosts run slurmd under one name.
// 4. No secret is in a log, an argument, a message, a record or a file other than the secret's own.
// 5. The gate of a node (the drain while its host joins) is opened only after the coordinator has read the node's record and
//    the host's check has passed. The agent restarts no slurmd that runs as the right node.
// 6. In the end, every host that its user wants in a pool is Ready there, with an open gate, unless somebody drained the node.
// 7. A node leaves only if somebody has requested it, its pool is being removed, or its host was silent for too long. In the
//    end, a node whose leave was requested is removed from Slurm, from the coordinator's records and from its host.
// 8. In the end, a node has the parameters of --conf that it was last given, in Slurm and for the next start of slurmd.
// 9. The coordinator deletes a record only if the node leaves or must restart with other parameters. It does not do so
//    while slurmd is well, unless the leave is forced or the host is revoked. The agent does not stop slurmd while a job step
//    runs. The coordinator does not forget a node before its host is clean, unless the host is silent or revoked, or the leave
//    is forced.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop.hpp"
#include "enlist/store/store.hpp"
#include "net/http.hpp"
#include "sim/oracles/oracles.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace sim {

class EnlistHost;

class EnlistOracle final : public Oracle {
 public:
  EnlistOracle(Oracles& all, core::Loop& loop, SimSlurm& slurm, const std::vector<std::shared_ptr<EnlistHost>>& hosts,
               const enlist::Contents& disk);

  /// Learns a secret, in all encodings in which it might appear.
  void learn(const std::string& secret);
  void search(std::string_view text, const std::string& where);
  void violation(const std::string& text) { all_.violation(text); }
  /// Records a change to a disk or a service, whether it was carried out or not.
  void wrote(const std::string& what);
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  [[nodiscard]] const std::string& last_write() const { return last_write_; }
  /// Checks that the agent has a reason to start slurmd. Called before systemd starts or restarts slurmd.
  void starts(const EnlistHost& host);
  /// Checks that no step runs on the host. Called before the agent stops slurmd.
  void stops(const EnlistHost& host);
  /// Checks a commit of the coordinator's records before it is carried out.
  void stores(const enlist::Changes& changes);
  /// Records that the coordinator has answered the agent whose host has this key. `at`: when the agent's request arrived.
  void heard(const std::string& key, core::MonoTime at) { heard_[key] = std::max(heard_[key], at); }
  /// Records that somebody has requested, or may have requested, that the node leaves.
  void asks_to_leave(const std::string& node) { asked_.insert(node); }
  /// Records whether the node must leave (true) or stay (false), by the last request that certainly reached the coordinator.
  void leaves(const std::string& node, bool leaves);
  /// Records the parameters of --conf that the node must have for itself, as `node config` sets them.
  void wants_words(const std::string& node, const std::string& words) { words_[node] = words; }
  /// Records that an administrator drains or resumes a node through the coordinator, now or soon.
  void people_set(const std::string& node) { people_[node] = loop_.clock().mono(); }
  /// Reports whether the coordinator has forgotten the host with this key without having cleaned it.
  [[nodiscard]] bool abandoned(const std::string& key) const { return abandoned_.contains(key); }
  /// Reports whether the coordinator has forgotten the host of this node without having cleaned the host.
  [[nodiscard]] bool was_abandoned(const std::string& node) const;
  /// Records that a user lets a host join. From then on, the host may have files of slurm-enlist.
  void joins(const EnlistHost& host) { clean_.erase(&host); }
  /// Checks a request of the coordinator to slurmrestd before it is sent.
  void request(const net::HttpRequest& request);
  /// Checks that a request to the coordinator and its response contain no secret, except where a secret must be.
  void exchanged(const net::HttpRequest& request, const net::HttpResponse& response);
  /// If set, called in a later iteration of the event loop after the coordinator has deleted a record.
  std::function<void()> on_deleted;
  /// True while an administrator reconfigures slurmctld.
  bool admin_reconfigures = false;
  /// Records in which pool the user wants a host; "": in none.
  void wants(const EnlistHost& host, const std::string& pool) { wanted_[&host] = pool; }
  [[nodiscard]] const std::map<const EnlistHost*, std::string>& wanted() const { return wanted_; }

  // Implements Oracle.
  void log_line(std::string_view line) override { search(line, "a log"); }
  [[nodiscard]] std::vector<std::string> unmet() const override;

  static constexpr const char* kOurs = "slurm";  ///< The user as whom the coordinator changes Slurm.
  static constexpr const char* kGate = "slurm-enlist: joining";
  static constexpr const char* kOwnReason = "slurm-enlist: ";

 private:
  void check_update(const SimNode& node, const SimNodeUpdate& update, const std::string& user);
  void check_gate(const SimNode& node);
  void check_delete(const SimNode& node);
  void check_leaving(const enlist::Node& before, const enlist::Node& after);
  void check_forgotten(const enlist::Node& node);
  [[nodiscard]] bool is_silent(const std::string& key) const;
  /// Reports whether an administrator has just changed the node through the coordinator.
  [[nodiscard]] bool by_people(const std::string& node, const SimNodeUpdate& update) const;
  void check_loss(const SimJob& job, const JobLoss& loss);
  [[nodiscard]] const EnlistHost* host_of(const std::string& node) const;
  [[nodiscard]] std::string wrong_with(const EnlistHost& host) const;
  [[nodiscard]] std::string wrong_words(const EnlistHost& host, const enlist::Node& node, const SimNode& record) const;
  [[nodiscard]] std::string left_on(const EnlistHost& host) const;

  Oracles& all_;
  core::Loop& loop_;
  SimSlurm& slurm_;
  const std::vector<std::shared_ptr<EnlistHost>>& hosts_;
  const enlist::Contents& disk_;
  std::set<std::string> secrets_;
  std::uint64_t writes_ = 0;
  std::string last_write_;
  std::map<const EnlistHost*, std::string> wanted_;
  std::map<std::string, core::MonoTime> read_;     ///< When the coordinator last asked for a node, by name.
  std::map<std::string, core::MonoTime> foreign_;  ///< When somebody else last changed a node.
  std::map<std::string, core::MonoTime> heard_;    ///< When the coordinator last answered an agent, by the key of its host.
  std::map<std::string, core::MonoTime> people_;   ///< When people last drained or resumed a node by the coordinator, by node.
  std::map<std::string, core::MonoTime> stopped_;  ///< When an agent last stopped slurmd and its service, by node.
  std::map<std::string, core::MonoTime> deleted_;  ///< When the coordinator deleted a record, by node.
  std::map<std::string, std::string> words_;       ///< The parameters of --conf that a node must have for itself, by node.
  std::map<std::string, std::string> abandoned_;   ///< The forgotten nodes whose host was not clean, by the host's key.
  std::set<std::string> asked_, leaving_;          ///< The nodes that were (perhaps) asked to leave; those that must leave.
  std::set<std::string> gone_pools_;               ///< The pools that were removed and not created again.
  std::set<const EnlistHost*> clean_;              ///< The hosts that have left and have not joined again.
  core::MonoTime read_all_;                        ///< When the coordinator last asked for all nodes.
  core::MonoTime reconfigured_;                    ///< When the coordinator last asked for a reconfigure.
};

}  // namespace sim
