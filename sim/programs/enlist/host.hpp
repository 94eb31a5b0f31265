// A host in a world of slurm-enlist: its disk, systemd and slurmd. What is on the disk survives reboots. All changes are writes
// of the world's faults: each may be refused or lost, and may end the program that makes it, or the whole host.
//
// slurmd registers with SimSlurm. It has the arguments of /etc/default/slurmd, and the auth key on the disk.
//
// Folder sim/programs/enlist: slurm-enlist as a program of a world. Uses sim/histories, enlist/agent and enlist/coordinator.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "enlist/host/host.hpp"
#include "enlist/wire/identity.hpp"
#include "sim/histories/world.hpp"
#include "sim/programs/enlist/oracle.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace sim {

class EnlistHost final : public enlist::Host {
 public:
  /// `number` makes the host's names and address differ from others'. 0: the machine of slurmctld, which is always on.
  EnlistHost(World& world, EnlistOracle& oracle, SimSlurm& slurm, int number);

  static constexpr const char* kSlurmd = "/usr/sbin/slurmd";
  static constexpr const char* kCheck = "/usr/local/sbin/check";
  static constexpr const char* kState = "/var/lib/slurm-enlist";
  static constexpr const char* kAgentUnit = "slurm-enlist-agent.service";
  static constexpr const char* kAgentFile = "/etc/systemd/system/slurm-enlist-agent.service";
  static constexpr const char* kSlurmdUnit = "slurmd.service";
  static constexpr const char* kSlurmdDefaults = "/etc/default/slurmd";

  // enlist::Host.
  core::Result<enlist::Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds limit,
                                   const std::string& input) override;
  core::Result<std::string> read(const std::filesystem::path& file) override;
  core::Result<void> write(const std::filesystem::path& file, const std::string& text, unsigned mode) override;
  core::Result<void> remove(const std::filesystem::path& file) override;

  /// Carries out one change, or a part of it if the program dies in the middle. Returns an error if it was not carried out, or
  /// if that is not told.
  core::Result<void> change(const std::string& what, const std::function<void()>& act, const std::function<void()>& half = {});
  /// Like load_or_make_identity: the host's key, by its content.
  core::Result<enlist::Identity> identity();
  /// Returns systemd's slurmd, for the agent.
  [[nodiscard]] std::unique_ptr<enlist::Service> service();
  /// Returns the steps of the jobs whose processes are on the host.
  [[nodiscard]] std::vector<std::string> steps() const;
  /// Returns the fingerprint of the host's key; "": it has none.
  [[nodiscard]] std::string fingerprint() const;

  // --- What happens to the host ---
  void power_off();
  void boot();
  void power_cycle(core::Duration length);
  void set_cut(bool cut);
  void set_hung(bool hung);
  /// slurmd ends. systemd starts it again if `failed`.
  void end_slurmd(bool failed);
  /// Somebody removes by hand what an agent has left behind whose coordinator does not know it any more.
  void clean_by_hand();
  /// As `systemctl reload slurmd`.
  void reload_slurmd();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] bool cut() const { return cut_; }
  [[nodiscard]] bool enabled(const std::string& unit) const { return enabled_.contains(unit); }
  /// Reports whether systemd runs the agent, and starts it again when it dies.
  [[nodiscard]] bool has_agent() const { return up_ && agent_active_ && files.contains(kAgentFile); }
  /// Returns since when the host and its slurmd are as they should be: on, connected and not hanging.
  [[nodiscard]] core::MonoTime well_since() const { return well_since_; }
  /// Returns the name of slurmd's node; "": it does not run.
  [[nodiscard]] std::string node() const { return pid_ == 0 ? "" : node_; }
  [[nodiscard]] std::string last_node() const { return node_; }
  [[nodiscard]] const std::vector<std::string>& arguments() const { return arguments_; }
  /// Returns the auth key on the disk; "": there is none.
  [[nodiscard]] std::string auth_key() const { return content("/etc/slurm/slurm.key"); }
  [[nodiscard]] std::string content(const std::string& file) const;

  int slot = 0;  ///< Of the program on this host, in the world.
  std::map<std::string, std::string> files;
  std::string hostname, address;
  bool disk_full = false;
  bool lost = false;          ///< Nobody turns it on, or connects it again.
  bool check_passes = true;   ///< What the check script says.
  bool check_passed = false;  ///< The check script has passed at least once.
  bool dead = false;          ///< The program on this host has died: nothing that it still does has an effect.
  /// If set, called in place of the end of the program on this host.
  std::function<void()> on_death;

 private:
  core::Result<enlist::Output> systemctl(const std::vector<std::string>& words);
  [[nodiscard]] std::string shown() const;
  void start_slurmd();
  void die();

  World& world_;
  EnlistOracle& oracle_;
  SimSlurm& slurm_;
  int number_;
  std::string name_;
  bool up_ = true, cut_ = false, hung_ = false;
  int boots_ = 1;
  std::int64_t booted_ = 0;
  std::set<std::string> enabled_;
  // slurmd's service.
  std::string node_;
  std::vector<std::string> arguments_;
  int pid_ = 0, last_pid_ = 100;
  bool failed_ = false, starts_again_ = false;
  bool agent_active_ = false;
  core::MonoTime well_since_;
  std::string log_;
};

}  // namespace sim
