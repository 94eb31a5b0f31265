#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "core/json.hpp"
#include "enlist/host/host.hpp"
#include "enlist/host/spawn.hpp"
#include "enlist/rules/service_files.hpp"

namespace enlist {

namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using namespace std::chrono_literals;

using Words = std::vector<std::string>;

/// slurmd comes up within this time if it can fetch its configuration.
constexpr auto kComesUp = 5s;
/// A slurmd that systemd has restarted less than this time ago may crash again.
constexpr auto kStartsAnew = 60s;

/// Returns the command line of a process. Error: the process is gone.
core::Result<Words> command_line_of(Host& host, long pid) {
  const auto line = host.read("/proc/" + std::to_string(pid) + "/cmdline");
  if (!line) return std::unexpected(line.error());
  Words out;
  for (std::size_t at = 0; at < line->size();) {
    const std::size_t end = std::min(line->find('\0', at), line->size());
    out.push_back(line->substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// Returns the job step of a slurmstepd: "12.batch" if its command line is "slurmstepd: [12.batch]". "?": the command line
/// names no step. "": another process, or "slurmstepd infinity", which has no step and only holds the cgroup of all steps.
std::string step_of(Host& host, const std::string& pid) {
  const auto name = host.read("/proc/" + pid + "/comm");
  if (!name || !name->starts_with("slurmstepd")) return {};
  auto line = host.read("/proc/" + pid + "/cmdline");
  // A zombie has no command line, and does not run any more.
  if (!line || line->empty()) return {};
  std::ranges::replace(*line, '\0', ' ');
  if (line->find(" infinity") != std::string::npos) return {};
  const std::size_t begin = line->find('['), end = line->find(']');
  return begin < end && end != std::string::npos ? line->substr(begin + 1, end - begin - 1) : "?";
}

core::Result<Words> steps_on(Host& host) {
  std::error_code error;
  Words out;
  for (fs::directory_iterator at("/proc", error), end; !error && at != end; at.increment(error)) {
    const std::string pid = at->path().filename();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    if (std::string step = step_of(host, pid); !step.empty()) out.push_back(std::move(step));
  }
  if (error) return core::fail(ErrorCode::kUnavailable, "/proc: " + error.message());
  std::ranges::sort(out);
  return out;
}

/// Returns a text that changes when the process executes another program: it has the start of the stack, field 28 of
/// /proc/PID/stat, which is at a random address (proc(5)). "": not known.
std::string image_of(Host& host, pid_t pid) {
  const auto stat = host.read("/proc/" + std::to_string(pid) + "/stat");
  const std::size_t name_end = stat ? stat->rfind(')') : std::string::npos;
  if (name_end == std::string::npos || name_end + 2 >= stat->size()) return {};
  std::string_view rest = std::string_view(*stat).substr(name_end + 2);
  std::string start;
  for (int field = 3; field < 28; ++field) {
    if (field == 22) start = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
  }
  const std::string stack(rest.substr(0, rest.find(' ')));
  if (stack.empty() || stack == "0") return {};
  return std::to_string(pid) + "." + start + "." + stack;
}

/// Sets ServiceState::image and ServiceState::keeps_plain_key for a process.
void look_at_program(Host& host, pid_t pid, ServiceState& out) {
  out.image = image_of(host, pid);
  const auto environment = host.read("/proc/" + std::to_string(pid) + "/environ");
  const auto sets = [&](const std::string& name) {
    return environment && (environment->starts_with(name) || environment->find('\0' + name) != std::string::npos);
  };
  out.keeps_plain_key = sets("SLURM_SACK_KEY=") && !sets("SLURM_SACK_JWKS=");
}

// --- systemd ---

class SystemdService final : public Service {
 public:
  SystemdService(Host& host, std::string slurmd, SystemdPaths paths)
      : host_(host), slurmd_(std::move(slurmd)), paths_(std::move(paths)) {}

  core::Result<ServiceState> state() override {
    const auto shown = systemctl({"show", paths_.service, "--property=" + std::string(kProperties)}, 10s);
    if (!shown) return std::unexpected(shown.error());
    std::map<std::string, std::string, std::less<>> values;
    for (std::string_view rest = *shown; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (const std::size_t is = line.find('='); is != std::string_view::npos)
        values.emplace(line.substr(0, is), line.substr(is + 1));
    }
    const std::string active = values["ActiveState"], sub = values["SubState"], job = values["Job"];
    if (active.empty()) return core::fail(ErrorCode::kUnavailable, "systemctl does not show the state of " + paths_.service);
    const auto pid = static_cast<long>(number_of(values["MainPID"]));

    ServiceState out;
    auto last = last_arguments();
    if (!last) return std::unexpected(last.error());
    out.arguments = *std::move(last);
    out.file_missing = out.arguments && (missing(paths_.unit) || missing(paths_.defaults));
    const bool starts = active == "activating", up = active == "active" || active == "reloading" || active == "refreshing";
    out.running = pid != 0 && (starts || up);
    if (out.running) out.started = wall_time(values["ExecMainStartTimestampMonotonic"]);
    if (out.running) look_at_program(host_, static_cast<pid_t>(pid), out);
    out.changing = active == "deactivating" || (starts && !out.running) || (up && !job.empty() && job != "0");
    if (out.running && out.arguments) {
      // Reads the command line of the process, because the file may have been written for a start that failed. While the unit
      // starts, the process may not be slurmd yet.
      auto now = command_line_of(host_, pid);
      if (now && !now->empty() && (up || is_slurmd(now->front())))
        out.arguments = Words(now->begin() + 1, now->end());
      else
        out.changing = true;
    }
    // Ignores the failure of a slurmd that somebody else has started. Debian's package starts one when it is installed.
    if (!out.running && ((active == "failed" && out.arguments) || sub.starts_with("auto-restart")))
      out.error = with_log("slurmd ended (" + values["Result"] + ", exit code " + values["ExecMainStatus"] + ")");
    if (out.running && out.arguments && !out.changing)
      out.error = trouble(values["NRestarts"], starts, values["ExecMainStartTimestampMonotonic"], pid);
    return out;
  }

  core::Result<void> start(const Words& arguments) override {
    if (auto written = replace(paths_.unit, unit_file(slurmd_, paths_.defaults.native())); !written) return written;
    if (auto written = replace(paths_.defaults, defaults_file(arguments)); !written) return written;
    if (auto done = systemctl({"daemon-reload"}, 60s); !done) return std::unexpected(done.error());
    if (auto done = systemctl({"enable", paths_.service}, 60s); !done) return std::unexpected(done.error());
    // After several failures in a row, systemd would refuse the start. reset-failed itself fails if there is nothing to reset.
    [[maybe_unused]] const auto reset = systemctl({"reset-failed", paths_.service}, 10s);
    return done(systemctl({"restart", "--no-block", paths_.service}, 30s));
  }
  core::Result<void> prepare(const Words& arguments) override {
    if (auto written = replace(paths_.defaults, defaults_file(arguments)); !written) return written;
    if (!missing(paths_.unit)) return {};
    // Without slurmd's unit, systemd would kill the jobs when slurmd ends, because its default is KillMode=control-group.
    if (auto written = host_.write(paths_.unit, unit_file(slurmd_, paths_.defaults.native()), 0644); !written) return written;
    return done(systemctl({"daemon-reload"}, 60s));
  }
  core::Result<void> reload() override { return done(systemctl({"reload", "--no-block", paths_.service}, 30s)); }
  core::Result<void> stop() override { return done(systemctl({"disable", "--now", paths_.service}, 120s)); }
  core::Result<void> uninstall() override {
    for (const fs::path& file : {paths_.unit, paths_.defaults}) {
      if (auto restored = restore(file); !restored) return restored;
    }
    return done(systemctl({"daemon-reload"}, 60s));
  }
  core::Result<Words> steps() override { return steps_on(host_); }

 private:
  static constexpr std::string_view kProperties =
      "ActiveState,SubState,MainPID,Job,Result,ExecMainStatus,ExecMainStartTimestampMonotonic,NRestarts";
  static long long number_of(const std::string& text) {
    long long out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }
  [[nodiscard]] bool is_slurmd(const std::string& program) const {
    const fs::path name = fs::path(program).filename();
    return name == "slurmd" || name == fs::path(slurmd_).filename();  // slurmd_ may be a script that executes slurmd.
  }
  static core::Result<void> done(core::Result<std::string> result) {
    if (!result) return std::unexpected(result.error());
    return {};
  }
  core::Result<std::string> systemctl(Words words, std::chrono::milliseconds limit) {
    const std::string what = "systemctl " + words.front();
    words.insert(words.begin(), "systemctl");
    auto output = host_.run(words, limit, "");
    if (!output) return std::unexpected(output.error());
    if (output->status == 0) return std::move(output->out);
    const std::string said = telling_lines(output->err);
    return core::fail(ErrorCode::kUnavailable,
                      what + ": " + (said.empty() ? "exit code " + std::to_string(output->status) : said));
  }
  core::Result<std::optional<Words>> last_arguments() {
    const auto text = host_.read(paths_.defaults);
    if (!text && text.error().code == ErrorCode::kNotFound) return without_defaults();
    if (!text) return std::unexpected(text.error());
    if (!text->starts_with(kFileMark)) return std::nullopt;
    auto words = arguments_of(*text);
    // The file is ours, but somebody has edited it. Empty arguments differ from the wanted ones, so that it is written again.
    return words ? std::optional(*std::move(words)) : std::optional(Words{});
  }
  bool missing(const fs::path& file) {
    const auto content = host_.read(file);
    return !content && content.error().code == ErrorCode::kNotFound;
  }
  /// Returns empty arguments if the unit is ours: somebody has removed only the file with the arguments. Otherwise nullopt.
  core::Result<std::optional<Words>> without_defaults() {
    const auto unit = host_.read(paths_.unit);
    if (!unit && unit.error().code != ErrorCode::kNotFound) return std::unexpected(unit.error());
    return unit && unit->starts_with(kFileMark) ? std::optional(Words{}) : std::nullopt;
  }
  core::Result<void> replace(const fs::path& file, const std::string& text) {
    const auto before = host_.read(file);
    if (before && *before == text) return {};
    if (!before && before.error().code != ErrorCode::kNotFound) return std::unexpected(before.error());
    if (!before) return host_.write(file, text, 0644);
    if (!before->starts_with(kFileMark)) {
      if (auto kept = host_.write_like(before_of(file), *before, file); !kept) return kept;
    }
    return host_.write_like(file, text, file);
  }
  static fs::path before_of(const fs::path& file) { return file.string() + ".before-slurm-enlist"; }
  /// Undoes replace(). A file that somebody else has written since then stays.
  core::Result<void> restore(const fs::path& file) {
    const auto now = host_.read(file);
    if (!now && now.error().code != ErrorCode::kNotFound) return std::unexpected(now.error());
    if (now && !now->starts_with(kFileMark)) return {};
    const auto before = host_.read(before_of(file));
    if (!before && before.error().code != ErrorCode::kNotFound) return std::unexpected(before.error());
    if (!before) return host_.remove(file);
    if (auto written = host_.write_like(file, *before, before_of(file)); !written) return written;
    return host_.remove(before_of(file));
  }
  /// Converts a time of CLOCK_MONOTONIC, in microseconds, to wall time. Repeated calls with the same time return the same
  /// result, even if the wall clock is adjusted.
  core::WallTime wall_time(const std::string& microseconds) {
    const long long since_boot = number_of(microseconds);
    if (since_boot == 0) return {};
    const std::lock_guard lock(mutex_);
    if (std::exchange(last_start_, since_boot) != since_boot) {
      const auto ago = std::chrono::steady_clock::now().time_since_epoch() - std::chrono::microseconds(since_boot);
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      started_ = core::whole_seconds({std::chrono::duration_cast<core::Duration>(now - ago)});
    }
    return started_;
  }
  /// Returns why a running slurmd does not work: it crashes repeatedly, or is still starting. "": no problem is known.
  std::string trouble(const std::string& restarts, bool starts, const std::string& started, long pid) {
    const long long since_boot = number_of(started);
    if (since_boot == 0) return {};
    const auto ago = std::chrono::steady_clock::now().time_since_epoch() - std::chrono::microseconds(since_boot);
    if (number_of(restarts) > 1 && ago < kStartsAnew)
      return with_log("slurmd ends again and again, and systemd starts it each time");
    if (starts && ago >= kComesUp) return with_log(std::string(kStillStarting), {"_PID=" + std::to_string(pid)});
    return {};
  }
  /// Appends telling_lines() of slurmd's journal to the text. `matches`: further matches for journalctl.
  std::string with_log(const std::string& text, const Words& matches = {}) {
    // Does not use --unit, which also shows systemd's own messages about the unit.
    Words words = {"journalctl", "_SYSTEMD_UNIT=" + paths_.service};
    words.insert(words.end(), matches.begin(), matches.end());
    words.insert(words.end(), {"--lines", "20", "--output", "cat", "--no-pager"});
    const auto log = host_.run(words, 10s, "");
    const std::string said = log && log->status == 0 ? telling_lines(log->out) : "";
    return said.empty() ? text : text + ": " + said;
  }

  Host& host_;
  std::string slurmd_;
  SystemdPaths paths_;
  std::mutex mutex_;
  long long last_start_ = 0;  ///< The argument of the last wall_time(). Its result is in started_.
  core::WallTime started_;
};

// --- without systemd ---

/// Reports whether a process has other threads than its first one.
bool has_other_threads(pid_t pid) {
  std::error_code error;
  const fs::directory_iterator threads("/proc/" + std::to_string(pid) + "/task", error);
  return !error && std::ranges::any_of(threads, [&](const fs::directory_entry& thread) {
    return thread.path().filename() != std::to_string(pid);
  });
}

/// Returns when a process started, in ticks since the boot: field 22 of /proc/PID/stat (proc(5)). "": there is no such
/// process, or it is a zombie.
std::string start_of(Host& host, pid_t pid) {
  for (bool again : {false, true}) {
    const auto stat = host.read("/proc/" + std::to_string(pid) + "/stat");
    if (!stat) return {};
    const std::size_t name_end = stat->rfind(')');
    if (name_end == std::string::npos || name_end + 2 >= stat->size()) return {};
    std::string_view rest = std::string_view(*stat).substr(name_end + 2);
    // slurmd reconfigures by an execve(2) in another thread. The first thread is a zombie until the new program replaces it.
    if ((rest.starts_with('Z') || rest.starts_with('X')) && !has_other_threads(pid)) {
      if (again) return {};
      continue;
    }
    for (int field = 3; field < 22; ++field) rest.remove_prefix(std::min(rest.find(' ') + 1, rest.size()));
    return std::string(rest.substr(0, rest.find(' ')));
  }
  return {};
}

/// Reports whether SIGHUP would end the process, because it neither handles nor blocks the signal yet (proc(5), status).
bool hangup_ends(Host& host, pid_t pid) {
  const auto status = host.read("/proc/" + std::to_string(pid) + "/status");
  if (!status) return false;
  for (const std::string_view name : {"SigBlk:", "SigIgn:", "SigCgt:"}) {
    const std::size_t at = status->find(name);
    if (at == std::string::npos || (std::strtoull(status->c_str() + at + name.size(), nullptr, 16) & 1U) != 0) return false;
  }
  return true;
}

class ChildService final : public Service {
 public:
  ChildService(Host& host, std::string slurmd, fs::path log)
      : host_(host), slurmd_(std::move(slurmd)), log_(std::move(log)), state_(log_.string() + ".state") {}

  core::Result<ServiceState> state() override {
    const std::lock_guard lock(mutex_);
    auto child = find();
    if (!child) return std::unexpected(child.error());
    ServiceState out;
    if (!*child) return out;
    out.running = (*child)->pid != 0;
    if (out.running) out.started = (*child)->started;
    if (out.running) look_at_program(host_, (*child)->pid, out);
    out.arguments = std::move((*child)->arguments);
    // hangup_ends() also holds for a moment after a reload, because slurmd then executes itself again.
    if (!out.running || !hangup_ends(host_, (*child)->pid)) {
      starts_since_.reset();
    } else if (const auto now = std::chrono::steady_clock::now(); !starts_since_) {
      starts_since_ = now;
    } else if (now - *starts_since_ >= kComesUp) {
      const std::string said = telling_lines(end_of_log((*child)->log_begin));
      out.error = std::string(kStillStarting) + (said.empty() ? "" : ": " + said);
    }
    if (!out.running) {
      const std::string code = ended_ ? " (exit code " + std::to_string(*ended_) + ")" : "";
      const std::string said = telling_lines(end_of_log((*child)->log_begin));
      out.error = "slurmd ended" + code + (said.empty() ? "" : ": " + said);
    }
    return out;
  }

  core::Result<void> start(const Words& arguments) override {
    const std::lock_guard lock(mutex_);
    if (auto stopped = end(); !stopped) return stopped;
    std::error_code ignored;
    fs::create_directories(log_.parent_path(), ignored);
    const bool too_long = fs::exists(log_, ignored) && fs::file_size(log_, ignored) > kLongestLog;
    const Fd log(open(log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (too_long ? O_TRUNC : 0), 0640));
    if (!log.open()) return core::fail(ErrorCode::kUnavailable, log_.string() + ": cannot be written");
    const off_t begin = std::max<off_t>(lseek(log.get(), 0, SEEK_END), 0);
    Words words = {slurmd_, "-D"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto pid = spawn({.arguments = std::move(words), .out = log.get(), .err = log.get()});
    if (!pid) return std::unexpected(pid.error());
    ended_.reset();
    starts_since_.reset();
    const core::Json state = {{"pid", *pid},
                              {"start", start_of(host_, *pid)},
                              {"started", core::format_rfc3339(core::SystemClock().wall())},
                              {"arguments", arguments},
                              {"logBegin", begin}};
    auto written = host_.write(state_, state.dump() + "\n", 0600);
    if (!written) {  // Without this file, a later process would not find the child.
      kill(*pid, SIGKILL);
      waitpid(*pid, nullptr, 0);
    }
    return written;
  }

  /// Does nothing, because only start() starts a child, and it gets the arguments.
  core::Result<void> prepare(const Words&) override { return {}; }
  core::Result<void> reload() override {
    const std::lock_guard lock(mutex_);
    const auto child = find();
    if (!child) return std::unexpected(child.error());
    if (!*child || (*child)->pid == 0) return core::fail(ErrorCode::kConflict, "slurmd does not run");
    if (hangup_ends(host_, (*child)->pid))
      return core::fail(ErrorCode::kConflict, std::string(kStillStarting) + ": it may wait for slurmctld");
    if (kill((*child)->pid, SIGHUP) != 0) return core::fail(ErrorCode::kConflict, "slurmd has ended");
    return {};
  }

  core::Result<void> stop() override {
    const std::lock_guard lock(mutex_);
    if (auto stopped = end(); !stopped) return stopped;
    return host_.remove(state_);
  }
  core::Result<void> uninstall() override { return host_.remove(state_); }
  core::Result<Words> steps() override { return steps_on(host_); }

 private:
  static constexpr std::uintmax_t kLongestLog = 1UL << 20;
  struct Child {
    pid_t pid = 0;  ///< 0: the child has ended.
    Words arguments;
    off_t log_begin = 0;  ///< The size of the log when the child was started.
    core::WallTime started{};
  };

  /// Returns the child that was started last; nullopt: none was started, or stop() has ended it.
  core::Result<std::optional<Child>> find() {
    const auto text = host_.read(state_);
    if (!text && text.error().code == ErrorCode::kNotFound) return std::nullopt;
    if (!text) return std::unexpected(text.error());
    const auto json = core::parse_json(*text);
    if (!json) return std::unexpected(json.error().with(state_.string()));
    Child out{.pid = static_cast<pid_t>(core::get_int(*json, {"pid"})),
              .arguments = {},
              .log_begin = static_cast<off_t>(core::get_int(*json, {"logBegin"}))};
    if (const core::Json* words = core::find(*json, {"arguments"}); words != nullptr && words->is_array()) {
      for (const core::Json& word : *words) {
        if (word.is_string()) out.arguments.push_back(word.get<std::string>());
      }
    }
    if (const auto started = core::parse_rfc3339(core::get_string(*json, {"started"}))) out.started = *started;
    if (int status = 0; out.pid > 0 && waitpid(out.pid, &status, WNOHANG) == out.pid) ended_ = exit_code(status);
    const std::string start = out.pid > 0 ? start_of(host_, out.pid) : "";
    if (start.empty() || start != core::get_string(*json, {"start"})) out.pid = 0;
    return out;
  }
  /// Ends only slurmd, not the other processes of its group, so that its jobs keep running.
  core::Result<void> end() {
    auto child = find();
    if (!child) return std::unexpected(child.error());
    for (int tries = 0; *child && (*child)->pid != 0; ++tries) {
      constexpr int kTries = 500;  // of 20 ms
      if (tries > kTries + 50) return core::fail(ErrorCode::kUnavailable, "slurmd cannot be ended");
      if (tries == 0) kill((*child)->pid, SIGTERM);
      if (tries == kTries) kill((*child)->pid, SIGKILL);
      std::this_thread::sleep_for(20ms);
      child = find();
      if (!child) return std::unexpected(child.error());
    }
    return {};
  }
  [[nodiscard]] std::string end_of_log(off_t begin) const {
    constexpr off_t kEnd = 8192;
    const Fd fd(open(log_.c_str(), O_RDONLY | O_CLOEXEC));
    std::string out;
    if (!fd.open()) return out;
    lseek(fd.get(), std::max({lseek(fd.get(), 0, SEEK_END) - kEnd, begin, off_t{0}}), SEEK_SET);
    read_some(fd.get(), out);
    return out;
  }

  Host& host_;
  std::string slurmd_;
  fs::path log_, state_;
  std::mutex mutex_;
  std::optional<int> ended_;  ///< The exit code of the last child, if this process started it.
  /// When state() first saw the running child as still starting; nullopt: it is not starting.
  std::optional<std::chrono::steady_clock::time_point> starts_since_;
};

}  // namespace

std::unique_ptr<Service> systemd_service(Host& host, std::string slurmd, SystemdPaths paths) {
  return std::make_unique<SystemdService>(host, std::move(slurmd), std::move(paths));
}

std::unique_ptr<Service> child_service(Host& host, std::string slurmd, fs::path log) {
  return std::make_unique<ChildService>(host, std::move(slurmd), std::move(log));
}

}  // namespace enlist
