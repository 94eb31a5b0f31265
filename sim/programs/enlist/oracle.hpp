// The oracle of slurm-enlist. It checks these rules against the simulated Slurm, the hosts and the coordinator's disk, not
// against what slurm-enlist says:
//
// 1. No job ends early because of slurm-enlist. Users, administrators, accidents and Slurm itself end jobs.
// 2. The coordinator deletes no record, and does not free a node that somebody else had drained or set down when it last read
// the
//    node.
// 3. A record in Slurm belongs to one node of the coordinator, and no two hosts run slurmd under one name.
// 4. No secret is in a log, an argument, a message, a record or a file that is not its own.
// 5. The gate of a node is opened only after the coordinator has read the record there, and after the host's check has passed.
//    The agent restarts no slurmd that runs as it should.
// 6. Every host that its user wants in a pool is Ready there, with an open gate, unless an administrator drained the node.
#pragma once

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
  /// Checks that the agent has a reason to start slurmd. Called before slurmd is started, and before one that runs is ended.
  void starts(const EnlistHost& host);
  /// Checks a request of the coordinator to slurmrestd before it is sent.
  void request(const net::HttpRequest& request);
  /// Checks what a host or an administrator and the coordinator have said to each other.
  void exchanged(const net::HttpRequest& request, const net::HttpResponse& response);
  /// True while an administrator reconfigures slurmctld.
  bool admin_reconfigures = false;
  /// Records in which pool the user wants a host; "": in none.
  void wants(const EnlistHost& host, const std::string& pool) { wanted_[&host] = pool; }
  [[nodiscard]] const std::map<const EnlistHost*, std::string>& wanted() const { return wanted_; }

  // Oracle.
  void log_line(std::string_view line) override { search(line, "a log"); }
  [[nodiscard]] std::vector<std::string> unmet() const override;

  static constexpr const char* kOurs = "slurm";  ///< The user as whom the coordinator changes Slurm.
  static constexpr const char* kGate = "slurm-enlist: joining";
  static constexpr const char* kOwnReason = "slurm-enlist: ";

 private:
  void check_update(const SimNode& node, const SimNodeUpdate& update, const std::string& user);
  void check_gate(const SimNode& node);
  void check_loss(const SimJob& job, const JobLoss& loss);
  [[nodiscard]] const EnlistHost* host_of(const std::string& node) const;
  [[nodiscard]] std::string wrong_with(const EnlistHost& host) const;

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
  core::MonoTime read_all_;                        ///< When the coordinator last asked for all nodes.
  core::MonoTime reconfigured_;                    ///< When the coordinator last asked for a reconfigure.
};

}  // namespace sim
