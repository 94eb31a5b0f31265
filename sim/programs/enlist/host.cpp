#include "sim/programs/enlist/host.hpp"

#include <fmt/format.h>

#include "core/hash.hpp"
#include "enlist/rules/service_files.hpp"

namespace sim {
namespace {

using core::ErrorCode;
using enlist::Output;

constexpr const char* kDefaults = EnlistHost::kSlurmdDefaults;
constexpr const char* kUnit = EnlistHost::kSlurmdUnit;
constexpr core::Duration kRestart{1000};

std::string value_of(const std::vector<std::string>& arguments, std::string_view flag) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    if (arguments[i] == flag) return arguments[i + 1];
  }
  return {};
}

/// The slurmd service of systemd. Takes the job steps from the simulated Slurm, in place of /proc.
class HostService final : public enlist::Service {
 public:
  HostService(EnlistHost& host, std::function<bool()> fails)
      : host_(host), fails_(std::move(fails)), systemd_(enlist::systemd_service(host, EnlistHost::kSlurmd)) {}
  core::Result<enlist::ServiceState> state() override { return systemd_->state(); }
  core::Result<void> start(const std::vector<std::string>& arguments) override { return systemd_->start(arguments); }
  core::Result<void> prepare(const std::vector<std::string>& arguments) override { return systemd_->prepare(arguments); }
  core::Result<void> reload() override { return systemd_->reload(); }
  core::Result<void> stop() override { return systemd_->stop(); }
  core::Result<void> uninstall() override { return systemd_->uninstall(); }
  core::Result<std::vector<std::string>> steps() override {
    if (fails_()) return core::fail(ErrorCode::kUnavailable, "/proc: Input/output error");
    return host_.steps();
  }

 private:
  EnlistHost& host_;
  std::function<bool()> fails_;
  std::unique_ptr<enlist::Service> systemd_;
};

}  // namespace

EnlistHost::EnlistHost(World& world, EnlistOracle& oracle, SimSlurm& slurm, int number)
    : hostname(fmt::format("host-{}", number)),
      address(fmt::format("10.0.{}.1", number)),
      world_(world),
      oracle_(oracle),
      slurm_(slurm),
      number_(number),
      name_(fmt::format("h{}", number)) {}

std::string EnlistHost::content(const std::string& file) const {
  const auto found = files.find(file);
  return found == files.end() ? "" : found->second;
}

std::string EnlistHost::fingerprint() const {
  const std::string key = content(std::string(kState) + "/host.key");
  return key.empty() ? "" : core::sha256_hex(key);
}

core::Result<enlist::Identity> EnlistHost::identity() {
  const std::string file = std::string(kState) + "/host.key";
  if (content(file).empty()) {
    const std::string key = "host-key-" + core::hex(world_.random().bytes(16));
    oracle_.learn(key);
    if (auto written = write(file, key, 0600); !written) return std::unexpected(written.error());
  }
  return enlist::Identity{"certificate", "key", fingerprint()};
}

std::unique_ptr<enlist::Service> EnlistHost::service() {
  return std::make_unique<HostService>(*this, [this] {
    return world_.random().chance(0.1) &&
           world_.faults().decide({.method = "GET", .target = "/" + name_ + "/proc"}) != Fault::kNone;
  });
}

std::vector<std::string> EnlistHost::steps() const {
  std::vector<std::string> out;
  if (!up_) return out;
  for (const SimJob* job : slurm_.jobs_on(node_)) {
    if (!job->completing && !job->doomed && !job->unlaunched && !slurm_.in_prolog(*job))
      out.push_back(fmt::format("{}.batch", job->id));
  }
  return out;
}

// --- Changes ----------------------------------------------------------------------------------------------------------

/// Ends the program that makes a change, sometimes together with its host.
void EnlistHost::die() {
  if (on_death) return on_death();
  dead = true;
  if (number_ > 0 && world_.random().chance(0.3)) return power_cycle(core::Duration{world_.random().between(2000, 20000)});
  world_.crash(slot, core::Duration{500});
}

core::Result<void> EnlistHost::change(const std::string& what, const std::function<void()>& act,
                                      const std::function<void()>& half) {
  if (dead || !up_) return core::fail(ErrorCode::kUnavailable, "the program has ended");
  const Fault fault = world_.faults().decide({.method = "PUT", .target = "/" + name_ + what});
  oracle_.wrote(fmt::format("{} {}: {}", name_, what, to_string(fault)));
  switch (fault) {
    case Fault::kNone:
    case Fault::kSlow:
      act();
      return {};
    case Fault::kLostReply:
    case Fault::kInternalAfter:
      act();
      return core::fail(ErrorCode::kUnknownOutcome, what + ": I/O error");
    case Fault::kCrashAfter:
      act();
      die();
      return core::fail(ErrorCode::kUnknownOutcome, what + ": I/O error");
    case Fault::kCrashBefore:
      if (half) half();
      die();
      return core::fail(ErrorCode::kUnknownOutcome, what + ": I/O error");
    default:
      return core::fail(ErrorCode::kUnavailable, what + ": I/O error");
  }
}

core::Result<void> EnlistHost::write(const std::filesystem::path& path, const std::string& text, unsigned mode) {
  const std::string& file = path.native();
  const bool secret = file.ends_with("/slurm.key") || file.ends_with("/host.key");
  if (!secret) oracle_.search(text, file + " on " + name_);
  if ((secret || file.ends_with("/agent.json")) && mode != 0600) oracle_.violation(file + " can be read by others");
  if (disk_full && !file.starts_with("/run/")) return core::fail(ErrorCode::kUnavailable, file + ": No space left on device");
  return change(
      file, [&] { files[file] = text; }, [&] { files[file + ".new~"] = text.substr(0, text.size() / 2); });
}

core::Result<void> EnlistHost::remove(const std::filesystem::path& file) {
  if (!files.contains(file)) return {};
  return change("removes " + file.native(), [&] { files.erase(file); });
}

core::Result<std::string> EnlistHost::read(const std::filesystem::path& path) {
  const std::string& file = path.native();
  if (file == "/proc/sys/kernel/hostname") return hostname + "\n";
  if (file == "/proc/sys/kernel/random/boot_id") return fmt::format("boot-{}-{}\n", name_, boots_);
  if (file == fmt::format("/proc/{}/cmdline", pid_) && pid_ != 0) {
    std::string out = kSlurmd;
    for (const std::string& word : arguments_) (out += '\0') += word;
    return out + '\0';
  }
  // Faults of reads from the disk are rare.
  if (world_.random().chance(0.1) && world_.faults().decide({.method = "GET", .target = "/" + name_ + file}) != Fault::kNone)
    return core::fail(ErrorCode::kUnavailable, file + ": Input/output error");
  const auto found = files.find(file);
  if (found == files.end()) return core::fail(ErrorCode::kNotFound, file + ": No such file or directory");
  return found->second;
}

// --- Programs ---------------------------------------------------------------------------------------------------------

core::Result<Output> EnlistHost::run(const std::vector<std::string>& arguments, std::chrono::milliseconds, const std::string&) {
  for (const std::string& word : arguments) oracle_.search(word, "an argument on " + name_);
  const std::string& program = arguments.front();
  if (program == "systemctl") return systemctl(arguments);
  if (program == "journalctl") return Output{0, log_, ""};
  if (program == kCheck) {
    check_passed = check_passed || check_passes;
    return check_passes ? Output{} : Output{1, "", "a file system is missing"};
  }
  if (program == kSlurmd && arguments.back() == "-V") return Output{0, "slurm " + slurm_.options().release + "\n", ""};
  if (program == kSlurmd && arguments.back() == "-C")
    return Output{
        0,
        fmt::format("NodeName={} CPUs=4 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=24000\n"
                    "UpTime=0-00:01:00\n",
                    hostname),
        ""};
  return core::fail(ErrorCode::kNotFound, "there is no program " + program);
}

core::Result<Output> EnlistHost::systemctl(const std::vector<std::string>& words) {
  const std::string &verb = words[1], &unit = words.back();
  const auto carried_out = [&](const std::function<void()>& act) -> core::Result<Output> {
    const auto done = change("systemctl " + verb + " " + unit, act);
    return done ? Output{} : Output{1, "", done.error().message};
  };
  if (verb == "show") return Output{0, shown(), ""};
  if (verb == "enable") return enabled(unit) ? Output{} : carried_out([&] { enabled_.insert(unit); });
  if (verb == "is-active") return Output{has_agent() ? 0 : 3, "", ""};
  if ((verb == "restart" || verb == "stop") && unit == kAgentUnit) {
    return carried_out([&] {
      agent_active_ = verb == "restart";
      world_.crash(slot, core::Duration{0});
    });
  }
  if (verb == "restart") {
    return carried_out([&] {
      oracle_.starts(*this);
      start_slurmd();
    });
  }
  if (verb == "reload") return pid_ == 0 ? Output{1, "", "slurmd is not active"} : carried_out([&] { reload_slurmd(); });
  if (verb == "disable") {
    return carried_out([&] {
      enabled_.erase(unit);
      if (unit != kUnit) return;
      oracle_.stops(*this);
      end_slurmd(false);
    });
  }
  return Output{};  // daemon-reload, reset-failed
}

std::string EnlistHost::shown() const {
  const char* active = pid_ != 0 ? "active" : starts_again_ ? "activating" : failed_ ? "failed" : "inactive";
  const char* sub = pid_ != 0 ? "running" : starts_again_ ? "auto-restart" : failed_ ? "failed" : "dead";
  return fmt::format("ActiveState={}\nSubState={}\nMainPID={}\nJob=0\nResult={}\nExecMainStatus={}\n", active, sub, pid_,
                     failed_ ? "exit-code" : "success", failed_ ? 1 : 0);
}

// --- slurmd -----------------------------------------------------------------------------------------------------------

void EnlistHost::start_slurmd() {
  end_slurmd(false);
  const auto arguments = enlist::arguments_of(content(kDefaults));
  if (!arguments) return;
  arguments_ = *arguments;
  node_ = value_of(arguments_, "-N");
  pid_ = ++last_pid_;
  hung_ = failed_ = false;
  well_since_ = world_.loop().clock().mono();
  if (!slurm_.start_slurmd(node_, value_of(arguments_, "--conf"), address, value_of(arguments_, "--instance-id"),
                           value_of(arguments_, "--conf-server"), booted_)) {
    pid_ = 0;
    failed_ = true;
    log_ = "slurmd: fatal: invalid --conf\n";
    return;
  }
  slurm_.cut_slurmd(node_, cut_);
}

void EnlistHost::end_slurmd(bool failed) {
  starts_again_ = false;
  if (pid_ == 0) return;
  slurm_.end_slurmd(node_);
  pid_ = 0;
  failed_ = starts_again_ = failed;
  log_ = "slurmd: error: killed\n";
  if (!failed) return;
  world_.loop().after(kRestart, [this, boots = boots_] {
    if (starts_again_ && up_ && boots == boots_) start_slurmd();
  });
}

void EnlistHost::clean_by_hand() {
  world_.oracles().note("somebody cleans up " + name_);
  agent_active_ = false;
  enabled_.clear();
  end_slurmd(false);
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("/etc/") || file.first.starts_with(kState); });
  world_.crash(slot, core::Duration{0});
}

void EnlistHost::reload_slurmd() {
  if (pid_ != 0 && !hung_) slurm_.reload_slurmd(node_);
}

void EnlistHost::set_cut(bool cut) {
  if (lost && !cut) return;
  if (cut_ != cut) well_since_ = world_.loop().clock().mono();
  cut_ = cut;
  if (pid_ != 0) slurm_.cut_slurmd(node_, cut_ || hung_);
}

void EnlistHost::set_hung(bool hung) {
  if (pid_ == 0) return;
  if (hung_ != hung) well_since_ = world_.loop().clock().mono();
  hung_ = hung;
  slurm_.cut_slurmd(node_, cut_ || hung_);
}

// --- The host ---------------------------------------------------------------------------------------------------------

void EnlistHost::power_off() {
  if (!up_) return;
  world_.oracles().note(name_ + " is off");
  up_ = agent_active_ = false;
  if (!node_.empty()) slurm_.stop_slurmd(node_);
  pid_ = 0;
  failed_ = starts_again_ = false;
  std::erase_if(files, [](const auto& file) { return file.first.starts_with("/run/"); });
  world_.crash(slot, core::Duration{0});
}

void EnlistHost::boot() {
  if (up_ || lost) return;
  world_.oracles().note(name_ + " boots");
  up_ = true;
  agent_active_ = enabled(kAgentUnit);
  ++boots_;
  well_since_ = world_.loop().clock().mono();
  booted_ = slurm_.now_seconds();
  if (enabled(kUnit)) start_slurmd();
  world_.crash(slot, core::Duration{0});
}

void EnlistHost::power_cycle(core::Duration length) {
  power_off();
  world_.loop().after(length, [this] { boot(); });
}

}  // namespace sim
