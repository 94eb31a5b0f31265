// What the agent of a host decides: which key file is written, and when slurmd is started or reloaded. Pure.
//
// The agent brings its host to the state that the coordinator desires. It stores the last desired state in a file. So if the
// coordinator is away, slurmd keeps running, and a host that boots still starts slurmd. The agent stops slurmd only when the
// node leaves or registers anew with other settings. After an error, slurmd stays as it is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/rules/model.hpp"
#include "plan/plan.hpp"

namespace enlist {

/// A file with an auth key that this program wrote.
struct KeyFile {
  std::string file;      ///< "slurm.key" or "slurm.jwks"; "": this program has written none.
  std::string revision;  ///< The coordinator's revision of the key.
  std::string digest;    ///< SHA-256 of the content, to detect that somebody has changed the file.
  friend bool operator==(const KeyFile&, const KeyFile&) = default;
};

/// What the agent must know after a restart: the file agent.json, of mode 0600. `join` writes it first.
struct Memory {
  std::string host;         ///< The name or the address of the coordinator.
  std::uint16_t port = 0;   ///< The port of the coordinator for agents.
  std::string coordinator;  ///< The fingerprint of the coordinator's key.
  std::string node, pool, cluster;
  std::optional<Desired> desired{};  ///< The last desired state from the coordinator.
  KeyFile key{};
  /// Key files that this program wrote before `key` and that might still exist: the file with the other name, until slurmd no
  /// longer needs it, and the former content of the same file, until `key` is written.
  std::vector<KeyFile> former{};
  /// The name of the key file when slurmd was last started. slurmd reads the same file when it reloads. "": not known.
  std::string started_with{};
  std::string loaded_key{};  ///< The revision in the key file when slurmd was last started or reloaded.
  /// ServiceState::image just before slurmd was last started or reloaded. While this image still runs, slurmd might have an
  /// earlier key. nullopt: not known.
  std::optional<std::string> stale_image{};
  /// The revision of the key when slurmd was last started. slurmd is not restarted a second time because of this key.
  std::string restarted_for{};
  std::uint64_t registrations = 0;  ///< The Desired::registrations that was carried out last.
  std::string prepared{};  ///< The value of --conf that was written for slurmd's next start. "": none since its last start.
  bool stopped = false;    ///< slurmd was stopped because the node leaves, or gets other settings.
  bool left = false;       ///< The host was cleaned up, except for the agent's own files.
  friend bool operator==(const Memory&, const Memory&) = default;
};

/// The facts of the host. They are read again while slurmd does not run, or while the node is invalid and no job step runs. The
/// release is also read again when slurmd's program file is replaced.
struct Facts {
  std::string hostname, boot_id;
  std::string slurm_version;  ///< The release in the output of `slurmd -V`: "26.05.1".
  std::string detected;       ///< Settings for --conf: from `slurmd -C` and from the GPU detector.
  friend bool operator==(const Facts&, const Facts&) = default;
};

/// The state of slurmd's service when it was last read.
struct SlurmdSeen {
  bool running = false;
  bool changing = false;  ///< slurmd is being started or stopped, or will be started again by systemd.
  std::string error{};    ///< ServiceState::error.
  std::optional<std::vector<std::string>> arguments{};  ///< nullopt: this program has not started slurmd.
  core::WallTime started{};                             ///< When the running process was started; 0: not known.
  std::string image{};                                  ///< ServiceState::image.
  bool file_missing = false;                            ///< ServiceState::file_missing.
  bool keeps_plain_key = false;                         ///< ServiceState::keeps_plain_key.
  friend bool operator==(const SlurmdSeen&, const SlurmdSeen&) = default;
};

/// The state of the host when it was last read.
struct Seen {
  core::Result<Facts> facts = core::fail(core::ErrorCode::kUnavailable, "not read yet");
  std::string program{};  ///< Identifies slurmd's program file. Changes when the file is replaced.
  core::Result<SlurmdSeen> slurmd = core::fail(core::ErrorCode::kUnavailable, "not read yet");
  /// SHA-256 of the key file that KeyFile::file names; "": there is no such file. Error: the file cannot be read.
  core::Result<std::string> key_digest;
  /// slurmd was asked to reload at least 120 s ago, and still has the image from before. slurmd might have failed to
  /// read its configuration.
  bool not_reloaded = false;
  std::string local_conf{};               ///< The path of a slurm.conf on the host; "": there is none.
  std::string local_cluster{};            ///< ClusterName in local_conf.
  std::string jwks{};                     ///< The path of slurm.jwks, which slurmd prefers to slurm.key.
  core::Result<std::string> jwks_digest;  ///< As key_digest, but of slurm.jwks.
  /// The job steps on the host (Service::steps()). Read only while the node leaves, or slurmd runs under another node name.
  core::Result<std::vector<std::string>> steps = core::fail(core::ErrorCode::kUnavailable, "not read yet");
};
[[nodiscard]] bool same(const Seen& one, const Seen& other);

/// The outcome of the admin's check script.
struct Checked {
  bool wanted = false;     ///< A check script is configured.
  std::string instance{};  ///< The instance id of the slurmd for which the script passed; "": it did not pass.
  std::string error{};     ///< Why the script did not pass when it last ran; "": it passed.
  friend bool operator==(const Checked&, const Checked&) = default;
};

/// What the coordinator last reported of the node, and whether the coordinator answers.
struct Told {
  std::string phase{}, message{};
  std::string trouble{};  ///< Why the coordinator cannot be reached; "": it answers.
  bool heard = false;     ///< Connection::heard(): the coordinator has received the last report, or refuses this host.
  friend bool operator==(const Told&, const Told&) = default;
};

struct Observed {
  Memory memory;               ///< The memory in this process.
  Memory saved;                ///< The memory in agent.json.
  std::optional<Seen> seen{};  ///< nullopt: the host was not read yet, or has left.
  Checked check{};
  Told told{};
  std::optional<Report> reported{};  ///< The report that was last passed to the connection.
  std::string status{};              ///< The text that was last written to the status file.
  plan::Outcomes outcomes{};
};

/// The arguments of slurmd that this program compares with the wanted ones. Other arguments are ignored.
struct Launch {
  std::string node, conf;
  std::vector<std::string> controllers{};
  std::string instance{};
  friend bool operator==(const Launch&, const Launch&) = default;
};
[[nodiscard]] Launch launch_of(const std::vector<std::string>& arguments);
/// Returns the arguments with which slurmd has to run, without the instance id. nullopt: slurmd must not be started. Error: why
/// slurmd cannot run with them.
[[nodiscard]] core::Result<std::optional<Launch>> wanted(const Observed& observed);
/// Returns the value of --instance-id for the slurmd of this host. It depends only on the coordinator and the node, because
/// Slurm stores the id of the first registration only: under another id, a later registration would not be seen.
[[nodiscard]] std::string instance_of(const Memory& memory);
/// Reports whether this program wrote a key file of this name with this content.
[[nodiscard]] bool wrote(const Memory& memory, std::string_view file, const std::string& digest);
/// Returns the message that slurmd must not be started while somebody else's key file exists at `path`.
[[nodiscard]] std::string foreign_key(const std::string& path);
/// Returns the value of ClusterName in a slurm.conf; "" if it has none.
[[nodiscard]] std::string cluster_name_of(std::string_view slurm_conf);

/// Fetches the auth key from the coordinator, and writes it to its file. The act never contains the key. Fails if the file has
/// another key that this program has not written.
struct WriteKey final : plan::Act {
  WriteKey(std::string of_revision, Memory memory_now) : revision(std::move(of_revision)), memory(std::move(memory_now)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.WriteKey"}, {"revision", revision}}; }
  std::string revision;
  Memory memory;  ///< Saved before the key is written, with the name and the digest of the new key.
};

/// Starts slurmd with the instance id of this host, or restarts a running slurmd. If the key is in slurm.key, first removes a
/// slurm.jwks that this program wrote.
struct StartSlurmd final : plan::Act {
  StartSlurmd(Launch how, std::uint64_t number) : launch(std::move(how)), registrations(number) {}
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] Withhold withhold() const override { return Withhold::kLong; }
  Launch launch;  ///< Without an instance id.
  std::uint64_t registrations;
};

/// Writes the arguments for slurmd's next start, and missing files of its service. Does not touch the running slurmd.
struct PrepareSlurmd final : plan::Act {
  explicit PrepareSlurmd(Launch next) : launch(std::move(next)) {}
  [[nodiscard]] core::Json describe() const override {
    return {{"act", "enlist.PrepareSlurmd"}, {"node", launch.node}, {"conf", launch.conf}};
  }
  Launch launch;  ///< Without an instance id.
};

/// Removes the key files in Memory::former, except the file in use and files that others changed. Clears Memory::former.
struct RemoveFormerKey final : plan::Act {
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.RemoveFormerKey"}}; }
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Makes slurmd read the key file again, and register again.
struct ReloadSlurmd final : plan::Act {
  explicit ReloadSlurmd(std::uint64_t number) : registrations(number) {}
  [[nodiscard]] core::Json describe() const override {
    return {{"act", "enlist.ReloadSlurmd"}, {"registrations", registrations}};
  }
  std::uint64_t registrations;
};

/// Stops slurmd, and disables its start at boot. Fails with kBusy if a job step runs on the host. Does nothing to a slurmd that
/// this program has not started.
struct StopSlurmd final : plan::Act {
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.StopSlurmd"}}; }
};

/// Removes the auth keys and the files of slurmd's service that this program has written. Restores the files of slurmd's
/// service that existed before.
struct CleanHost final : plan::Act {
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.CleanHost"}}; }
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Removes the agent's own files and its service, and ends this process.
struct EndAgent final : plan::Act {
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.EndAgent"}}; }
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Writes agent.json.
struct SaveMemory final : plan::Act {
  explicit SaveMemory(Memory memory_now) : memory(std::move(memory_now)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.SaveMemory"}, {"node", memory.node}}; }
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
  Memory memory;
};

/// Writes the status file, which the commands `join` and `leave` show.
struct WriteStatus final : plan::Act {
  explicit WriteStatus(std::string new_text) : text(std::move(new_text)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.WriteStatus"}, {"text", text}}; }
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
  std::string text;
};

/// Passes a new report to the connection.
struct SendReport final : plan::Act {
  explicit SendReport(Report new_report) : report(std::move(new_report)) {}
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
  Report report;
};

[[nodiscard]] Report report_of(const Observed& observed);
/// Returns the text of the status file: {"node", "pool", "phase", "message", "error"?, "note"?}, in JSON.
[[nodiscard]] std::string status_of(const Observed& observed);

[[nodiscard]] plan::Plan plan(const Observed& observed);

}  // namespace enlist
