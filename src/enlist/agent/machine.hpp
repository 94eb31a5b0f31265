// The host for the agent's engine: stores what was last read from the host, and carries out the acts that change the host.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "core/loop.hpp"
#include "enlist/agent/connection.hpp"
#include "enlist/agent/plan.hpp"
#include "enlist/host/host.hpp"
#include "plan/executor.hpp"

namespace enlist {

struct MachineOptions {
  std::filesystem::path state = "/var/lib/slurm-enlist";  ///< The folder of agent.json.
  std::filesystem::path status_file = "/run/slurm-enlist/agent.status";
  std::filesystem::path slurm_folder = "/etc/slurm";  ///< The folder of the auth key, and maybe of a slurm.conf.
  std::string slurmd = "/usr/sbin/slurmd";
  std::string check{};  ///< The admin's check script. Its arguments are the names of the node and the pool. "": none.
  std::filesystem::path agent_unit =
      "/etc/systemd/system/slurm-enlist-agent.service";  ///< The unit of this agent, if it has one.
  std::string gpu_detector{};  ///< A program that prints settings for --conf, such as "Gres=gpu:a100:2". "": none.
};

/// Reads the facts that seldom change while slurmd runs: the host's name and boot, slurmd's release, and the hardware that
/// slurmd and the GPU detector print. Blocks.
[[nodiscard]] core::Result<Facts> read_facts(Host& host, const MachineOptions& options);

class Machine final : public plan::Target {
 public:
  struct Callbacks {
    std::function<void(bool changed)> on_look;  ///< The host was read, or the check has another outcome.
    std::function<void(std::function<void(core::Result<Connection::Key>)>)> fetch_key;
    std::function<void(const Report&)> report;
    std::function<void()> ended;    ///< The host has left the cluster, and this process must end.
    std::function<bool()> at_rest;  ///< Nothing is expected to change, so the host is read less often.
    std::function<bool()> invalid;  ///< The coordinator reports the node as invalid.
  };
  /// `memory`: the content of agent.json.
  Machine(core::Loop& loop, std::shared_ptr<Host> host, std::shared_ptr<Service> service, MachineOptions options, Memory memory,
          Callbacks callbacks);

  /// Reads the host now, and from then on every 0.25 s to 10 s.
  void look();
  void stop();
  /// Sets the desired state that the coordinator has sent. Returns true if it differs from the former one.
  bool desire(const Desired& desired);

  [[nodiscard]] const std::optional<Seen>& seen() const { return seen_; }
  [[nodiscard]] const Memory& memory() const { return memory_; }
  [[nodiscard]] const Memory& saved() const { return saved_; }
  [[nodiscard]] const Checked& check() const { return check_; }
  [[nodiscard]] const std::optional<Report>& reported() const { return reported_; }
  [[nodiscard]] const std::string& status() const { return status_; }
  /// Return how many readings of the host have begun, and how many have ended.
  [[nodiscard]] std::uint64_t begun() const { return begun_; }
  [[nodiscard]] std::uint64_t ended() const { return ended_; }

 private:
  void looked(Seen seen);
  void look_soon();
  void run_check();
  void checked(const std::string& instance, const core::Result<Output>& output);
  void write_key(const std::shared_ptr<const WriteKey>& act, const Done& done);
  void key_fetched(const std::shared_ptr<const WriteKey>& act, core::Result<Connection::Key> key, const Done& done);
  void start_slurmd(const StartSlurmd& act, const Done& done);
  /// Runs `work` on another thread and, if it succeeded, `after` on the loop. If `looks`, also reads the host again, and passes
  /// `done` a gate that opens after that reading.
  void carry_out(std::function<core::Result<void>()> work, std::function<void()> after, bool looks, Done done);

  core::Loop& loop_;
  std::shared_ptr<Host> host_;
  std::shared_ptr<Service> service_;
  MachineOptions options_;
  Callbacks callbacks_;
  Memory memory_, saved_;
  std::optional<Seen> seen_;
  Checked check_;
  std::optional<Report> reported_;
  std::string status_;
  std::uint64_t begun_ = 0, ended_ = 0;
  bool looks_again_ = false, checking_ = false, stopped_ = false;
  core::MonoTime check_at_, acted_at_, facts_at_, reloaded_at_;
  core::Timer next_;
};

}  // namespace enlist
