// The machine as the agent and the coordinator use it: programs, files and services. The functions block, so they are called on
// other threads (core::Loop::offload), except for those of Supervisor.
//
// Folder src/enlist/host: the only place of src/enlist that starts programs or touches files outside of the store.
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
  int status = 0;  ///< The exit code; 128 + the signal if a signal ended the program.
  std::string out, err;
};

class Host {
 public:
  virtual ~Host() = default;
  /// Runs a program to its end, without a shell. `input` becomes its standard input. Errors: kNotFound (no such program),
  /// kUnavailable (it did not end in time) and kInternal (it wrote more than 1 MiB): it was killed.
  virtual core::Result<Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds limit,
                                   const std::string& input) = 0;
  /// Error: kNotFound if there is no such file.
  virtual core::Result<std::string> read(const std::filesystem::path& file) = 0;
  /// Replaces the file as a whole: a temporary file beside it, fsync, rename, fsync of the folder. After an error the file is
  /// as it was. `mode`: 0600 for secrets. Makes missing folders with mode 0755.
  virtual core::Result<void> write(const std::filesystem::path& file, const std::string& text, unsigned mode) = 0;
  /// As write(), with the owner of another file, and with the mode of that file as far as `mode` allows it. A symbolic link
  /// stays one: the file that it leads to is replaced.
  virtual core::Result<void> write_as(const std::filesystem::path& file, const std::string& text, unsigned mode,
                                      const std::filesystem::path& owner_of) {
    (void)owner_of;
    return write(file, text, mode);
  }
  /// As write(), with the mode and the owner of the file `like`, which may be the same one.
  virtual core::Result<void> write_like(const std::filesystem::path& file, const std::string& text,
                                        const std::filesystem::path& like) {
    (void)like;
    return write(file, text, 0644);
  }
  /// Removes the temporary files of writes of this file whose process was killed. Nobody else may write the file meanwhile.
  virtual core::Result<void> remove_leftovers(const std::filesystem::path& file) {
    (void)file;
    return {};
  }
  /// Removes a file or an empty folder. Succeeds if there is none.
  virtual core::Result<void> remove(const std::filesystem::path& file) = 0;
};
std::unique_ptr<Host> local_host();

/// The state of a service.
struct ServiceState {
  bool running = false;
  /// Why it does not run: the last lines of its log, or its exit code. Also why one that runs is still starting after some
  /// seconds, or ends again and again. Empty if somebody else has started it.
  std::string error{};
  /// It is being started or stopped just now, or the service manager will start it again by itself: wait.
  bool changing = false;
  /// The arguments of the process that runs, or else those with which it was last started. nullopt: not by this program.
  std::optional<std::vector<std::string>> arguments{};
  /// When the process that runs was started, in whole seconds. 0: none runs, or it is not known.
  core::WallTime started{};
  /// Tells the program that runs apart from those before it: it is another one after each start, and after each reload that
  /// slurmd has carried out. "": none runs, or it is not known.
  std::string image{};
  /// Somebody has removed a file of the service manager that start() has written. prepare() writes it again.
  bool file_missing = false;
  /// The environment of the process names a slurm.key and no slurm.jwks. A configless slurmd that has found a slurm.key sets it
  /// so, and then reads no other file, also after a reload (fetch_config.c of Slurm, 24.11 to 26.05).
  bool keeps_plain_key = false;
  friend bool operator==(const ServiceState&, const ServiceState&) = default;
};

/// Starts, stops and watches slurmd: through systemd, or as a child of this process where there is no systemd.
class Service {
 public:
  virtual ~Service() = default;
  virtual core::Result<ServiceState> state() = 0;
  /// Starts it, or restarts it. Does not wait until it is ready. Jobs (slurmstepd) survive a restart.
  virtual core::Result<void> start(const std::vector<std::string>& arguments) = 0;
  /// Keeps the arguments for the next start by the service manager, and writes files again that are missing. The process that
  /// runs is not touched.
  virtual core::Result<void> prepare(const std::vector<std::string>& arguments) = 0;
  virtual core::Result<void> reload() = 0;  ///< SIGHUP: slurmd registers again.
  virtual core::Result<void> stop() = 0;    ///< Also keeps it from being started at the next boot.
  /// Removes the files that start() wrote, and restores those of somebody else that were there before. Requires stop().
  virtual core::Result<void> uninstall() = 0;
  /// Returns the steps of jobs whose slurmstepd runs on this host, as "12.batch"; "?" for one that does not tell.
  virtual core::Result<std::vector<std::string>> steps() = 0;
};

struct SystemdPaths {
  std::string service = "slurmd.service";
  std::filesystem::path unit = "/etc/systemd/system/slurmd.service";
  std::filesystem::path defaults = "/etc/default/slurmd";
};
/// Through systemctl: writes the unit and /etc/default/slurmd (enlist/rules/service_files.hpp), daemon-reload, enable, restart
/// --no-block. A file of somebody else is kept beside ours, as NAME.before-slurm-enlist, and ours gets its mode and owner.
std::unique_ptr<Service> systemd_service(Host& host, std::string slurmd, SystemdPaths paths = {});
/// As a child (slurmd -D) that writes to the file `log`, and is restarted by start() only. It outlives this process, whose
/// successor finds it by the file LOG.state. slurmstepds live on in any case.
std::unique_ptr<Service> child_service(Host& host, std::string slurmd, std::filesystem::path log);

/// A child process of the coordinator that must always run, such as slurmrestd. Used on the loop's thread.
class Supervised {
 public:
  virtual ~Supervised() = default;
  virtual void stop() = 0;
  [[nodiscard]] virtual bool running() const = 0;
  [[nodiscard]] virtual std::string last_error() const = 0;  ///< Its last lines on stderr before it ended; "": it runs.
};
struct Command {
  std::vector<std::string> arguments;
  std::vector<std::string> environment{};  ///< "NAME=value", beside our own.
  std::string user{};                      ///< "": our own.
  /// A folder that only this user and root can enter, made before each start. One that belongs to another user is taken if it
  /// is empty; otherwise the program is not started. "": none.
  std::filesystem::path folder{};
};
/// Runs the program, and again 0.3 s to 10 s after it ended. `changed` is called on the loop, in a later turn, when it starts
/// or ends. The program gets SIGTERM by stop() or when this process ends, and SIGKILL if it still runs when the Supervised is
/// destroyed.
std::unique_ptr<Supervised> supervise(core::Loop& loop, Command command, std::function<void()> changed);

}  // namespace enlist
