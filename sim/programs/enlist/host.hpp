// A host in a world of slurm-enlist: its disk, systemd and slurmd. Files survive reboots, except those in /run. Each change is
// a write to which World::faults() applies: the change is refused, its result is lost, or the program that makes the change, or
// the whole host, ends.
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
  /// The host's names and address contain `number`. 0: the machine of slurmctld, which is always on.
  EnlistHost(World& world, EnlistOracle& oracle, SimSlurm& slurm, int number);

  static constexpr const char* kSlurmd = "/usr/sbin/slurmd";
  static constexpr const char* kCheck = "/usr/local/sbin/check";
  static constexpr const char* kState = "/var/lib/slurm-enlist";
  static constexpr const char* kAgentUnit = "slurm-enlist-agent.service";
  static constexpr const char* kAgentFile = "/etc/systemd/system/slurm-enlist-agent.service";
  static constexpr const char* kSlurmdUnit = "slurmd.service";
  static constexpr const char* kSlurmdDefaults = "/etc/default/slurmd";

  // Implements enlist::Host.
  core::Result<enlist::Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds limit,
                                   const std::string& input) override;
  core::Result<std::string> read(const std::filesystem::path& file) override;
  core::Result<void> write(const std::filesystem::path& file, const std::string& text, unsigned mode) override;
  core::Result<void> remove(const std::filesystem::path& file) override;

  /// Carries out one change: calls `act`, or `half` if the program dies in the middle. Returns an error if the change was not
  /// carried out, or if the outcome is unknown.
  core::Result<void> change(const std::string& what, const std::function<void()>& act, const std::function<void()>& half = {});
  /// Returns the host's identity, and creates the key file if it is missing, like load_or_make_identity.
  core::Result<enlist::Identity> identity();
  /// Returns the slurmd service of systemd, for the agent.
  [[nodiscard]] std::unique_ptr<enlist::Service> service();
  /// Returns the steps of the jobs whose processes are on the host.
  [[nodiscard]] std::vector<std::string> steps() const;
  /// Returns the fingerprint of the host's key; "" if the host has no key.
  [[nodiscard]] std::string fingerprint() const;

  // --- What happens to the host ---
  void power_off();
  void boot();
  void power_cycle(core::Duration length);
  void set_cut(bool cut);
  void set_hung(bool hung);
  /// Ends slurmd. If `failed`, systemd starts slurmd again.
  void end_slurmd(bool failed);
  /// Lets somebody remove by hand the agent, slurmd and their files from a host that the coordinator has forgotten.
  void clean_by_hand();
  /// Reloads slurmd, as `systemctl reload slurmd` does.
  void reload_slurmd();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] bool cut() const { return cut_; }
  [[nodiscard]] bool enabled(const std::string& unit) const { return enabled_.contains(unit); }
  /// Reports whether systemd runs the agent, and starts the agent again when it dies.
  [[nodiscard]] bool has_agent() const { return up_ && agent_active_ && files.contains(kAgentFile); }
  /// Returns when the host last booted or started slurmd, or when a cut or a hang of the host last began or ended.
  [[nodiscard]] core::MonoTime well_since() const { return well_since_; }
  /// Returns the name of slurmd's node; "" if slurmd does not run.
  [[nodiscard]] std::string node() const { return pid_ == 0 ? "" : node_; }
  [[nodiscard]] std::string last_node() const { return node_; }
  [[nodiscard]] const std::vector<std::string>& arguments() const { return arguments_; }
  /// Returns the auth key on the disk; "" if there is none.
  [[nodiscard]] std::string auth_key() const { return content("/etc/slurm/slurm.key"); }
  [[nodiscard]] std::string content(const std::string& file) const;

  int slot = 0;  ///< The slot in the world of the program on this host.
  std::map<std::string, std::string> files;
  std::string hostname, address;
  bool disk_full = false;
  bool lost = false;          ///< Nobody turns the host on or reconnects it.
  bool check_passes = true;   ///< Whether the check script succeeds.
  bool check_passed = false;  ///< The check script has passed at least once.
  bool dead = false;          ///< The program on this host has died, so its further actions have no effect.
  /// If set, called when a fault ends the program on this host, in place of ending that program.
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
  // The state of slurmd's service.
  std::string node_;
  std::vector<std::string> arguments_;
  int pid_ = 0, last_pid_ = 100;
  bool failed_ = false, starts_again_ = false;
  bool agent_active_ = false;
  core::MonoTime well_since_;
  std::string log_;
};

}  // namespace sim
