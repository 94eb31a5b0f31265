// The machine for the agent, the coordinator and the charms: programs, files and services. The functions block, so a program
// with a loop calls them on other threads (core::Loop::offload). Exception: supervise() and the functions of Supervised are
// called on the loop's thread.
//
// Folder src/enlist/host: the only place of src/enlist that starts programs, or that writes files other than the store and the
// keys of enlist/wire/identity.hpp.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "core/result.hpp"

namespace enlist {

struct Output {
  int status = 0;  ///< The exit code, or 128 + the signal if a signal ended the program.
  std::string out, err;
};

class Host {
 public:
  virtual ~Host() = default;
  /// Runs a program to its end, without a shell. `input`: its standard input. Errors: kNotFound (no such program), kUnavailable
  /// (it cannot be started, or was killed after `limit`), kInternal (it was killed because it wrote more than 1 MiB).
  virtual core::Result<Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds limit,
                                   const std::string& input) = 0;
  /// Returns the content of a file. Errors: kNotFound (no such file), kUnavailable.
  virtual core::Result<std::string> read(const std::filesystem::path& file) = 0;
  /// Replaces the whole file atomically: writes a temporary file in the same folder, and renames it to `file`. Fsyncs the file
  /// and the folder. If the write fails, the file is unchanged. `mode`: 0600 for secrets. Creates missing folders with mode
  /// 0755.
  virtual core::Result<void> write(const std::filesystem::path& file, const std::string& text, unsigned mode) = 0;
  /// As write(), but with the owner of the file `owner_of`, and with those bits of its mode that `mode` has as well. If `file`
  /// is a symbolic link, replaces the file to which the link points.
  virtual core::Result<void> write_as(const std::filesystem::path& file, const std::string& text, unsigned mode,
                                      const std::filesystem::path& owner_of) {
    (void)owner_of;
    return write(file, text, mode);
  }
  /// As write(), but with the mode and the owner of the file `like`, which may be `file` itself.
  virtual core::Result<void> write_like(const std::filesystem::path& file, const std::string& text,
                                        const std::filesystem::path& like) {
    (void)like;
    return write(file, text, 0644);
  }
  /// Removes the temporary files that write() of this file has left in a process that was killed. The caller must ensure that
  /// nobody writes the file meanwhile.
  virtual core::Result<void> remove_leftovers(const std::filesystem::path& file) {
    (void)file;
    return {};
  }
  /// Removes a file or an empty folder. Succeeds if it does not exist.
  virtual core::Result<void> remove(const std::filesystem::path& file) = 0;
};
std::unique_ptr<Host> local_host();

/// The state of a service.
struct ServiceState {
  bool running = false;
  /// Why slurmd does not run: its exit code and the last lines of its log. Also set if slurmd is still starting after some
  /// seconds, or crashes repeatedly. Empty for somebody else's slurmd, unless systemd is restarting it.
  std::string error{};
  /// slurmd is being started or stopped, or the service manager will start it again by itself. The caller should wait.
  bool changing = false;
  /// The arguments of the running slurmd, or else those of its last start. nullopt: this program has not started slurmd.
  std::optional<std::vector<std::string>> arguments{};
  /// When the running process was started, in whole seconds. 0: no process runs, or the time is not known.
  core::WallTime started{};
  /// Identifies the program image of the running process. It changes with each start, and with each reload that slurmd has
  /// carried out. "": no process runs, or the image is not known.
  std::string image{};
  /// Somebody has removed a file of the service manager that start() has written. prepare() writes it again.
  bool file_missing = false;
  /// The environment of the process names a slurm.key and no slurm.jwks. A configless slurmd that finds a slurm.key
  /// adds the name itself, and then reads only this file, even after a reload (fetch_config.c of Slurm, 24.11 to 26.05).
  bool keeps_plain_key = false;
  friend bool operator==(const ServiceState&, const ServiceState&) = default;
};

/// Starts, stops and observes slurmd: through systemd, or as a child of this process on hosts without systemd.
class Service {
 public:
  virtual ~Service() = default;
  virtual core::Result<ServiceState> state() = 0;
  /// Starts or restarts slurmd. Does not wait until slurmd is ready. Jobs (slurmstepd) survive a restart.
  virtual core::Result<void> start(const std::vector<std::string>& arguments) = 0;
  /// Stores the arguments for the next start by the service manager, and writes missing files of the service again. Does not
  /// touch the running process.
  virtual core::Result<void> prepare(const std::vector<std::string>& arguments) = 0;
  virtual core::Result<void> reload() = 0;  ///< Sends SIGHUP: slurmd reads its files and registers again.
  virtual core::Result<void> stop() = 0;    ///< Stops slurmd, and disables its start at boot.
  /// Removes the files that start() wrote, and restores somebody else's files that start() has replaced. Call stop() before.
  virtual core::Result<void> uninstall() = 0;
  /// Returns the job steps whose slurmstepd runs on this host: "12.batch". "?": a slurmstepd whose command line names no step.
  virtual core::Result<std::vector<std::string>> steps() = 0;
};

struct SystemdPaths {
  std::string service = "slurmd.service";
  std::filesystem::path unit = "/etc/systemd/system/slurmd.service";
  std::filesystem::path defaults = "/etc/default/slurmd";
};
/// Runs slurmd by systemd. start() writes the unit and /etc/default/slurmd (enlist/rules/service_files.hpp), and calls
/// systemctl daemon-reload, enable and restart --no-block. It copies somebody else's file to NAME.before-slurm-enlist, and
/// writes ours with the same mode and owner.
std::unique_ptr<Service> systemd_service(Host& host, std::string slurmd, SystemdPaths paths = {});
/// Runs slurmd as a child process (slurmd -D) that writes to the file `log`. Only start() restarts it. The child outlives this
/// process, and a later process finds it by the file LOG.state. slurmstepds outlive slurmd.
std::unique_ptr<Service> child_service(Host& host, std::string slurmd, std::filesystem::path log);

/// A child process of the coordinator that must always run, such as slurmrestd. Call its functions on the loop's thread.
class Supervised {
 public:
  virtual ~Supervised() = default;
  virtual void stop() = 0;
  [[nodiscard]] virtual bool running() const = 0;
  [[nodiscard]] virtual std::string last_error() const = 0;  ///< Why it ended or did not start; "": it runs.
};
struct Command {
  std::vector<std::string> arguments;
  std::vector<std::string> environment{};  ///< "NAME=value", added to our own.
  std::string user{};                      ///< "": our own user.
  /// A folder that only this user and root can enter. It is created before a start if it is missing. An empty folder of another
  /// user is replaced; if the other user's folder is not empty, the start fails. "": no folder.
  std::filesystem::path folder{};
};
/// Runs the program, and restarts it 0.3 s to 10 s after it ended. Calls `changed` on the loop, but not within this call, when
/// the program starts or ends. stop() and the end of this process send SIGTERM to the program. The destructor of Supervised
/// kills the program.
std::unique_ptr<Supervised> supervise(core::Loop& loop, Command command, std::function<void()> changed);

}  // namespace enlist
