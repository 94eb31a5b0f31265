// What the agent of a host decides: which key file is written, and when slurmd is started or reloaded. Pure.
//
// The agent brings its host to what the coordinator desires. It has the last desire in a file, so a coordinator that is away
// stops no slurmd, and a host that boots meanwhile starts it. slurmd is stopped only when the node leaves: an error leaves it
// as it is.
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

/// The auth key in its file, which this program wrote.
struct KeyFile {
  std::string file;      ///< "slurm.key" or "slurm.jwks"; "": this program has written none.
  std::string revision;  ///< Of the coordinator.
  std::string digest;    ///< SHA-256 of the content, to see that the file is as it was written.
  friend bool operator==(const KeyFile&, const KeyFile&) = default;
};

/// What the agent must know after a restart: the file agent.json, of mode 0600. `join` writes it first.
struct Memory {
  std::string host;         ///< Name or address of the coordinator.
  std::uint16_t port = 0;   ///< Its listener for agents.
  std::string coordinator;  ///< The fingerprint of its key.
  std::string node, pool, cluster;
  std::optional<Desired> desired{};  ///< The last that the coordinator said.
  KeyFile key{};
  /// What this program wrote before `key`, and may still be there: a file of the other name until slurmd does not need it any
  /// more, and the content from before until `key` is written.
  std::vector<KeyFile> former{};
  /// The name of the key file when slurmd was last started. A slurmd keeps to it when it reloads. "": not known.
  std::string started_with{};
  std::string loaded_key{};  ///< The revision that was in the file when slurmd was last started or reloaded.
  /// ServiceState::image just before that. As long as it runs, slurmd may have an earlier key. nullopt: it is not known.
  std::optional<std::string> stale_image{};
  /// The revision of a slurm.jwks for which slurmd was restarted, because it kept to a slurm.key.
  std::string restarted_for{};
  std::uint64_t registrations = 0;  ///< The last Desired::registrations that was carried out.
  std::string prepared{};           ///< The value of --conf that was written for the next start since slurmd was last started.
  bool stopped = false;             ///< slurmd was stopped because the node leaves, or gets other words.
  bool left = false;                ///< The host was cleaned up, except for the agent itself.
  friend bool operator==(const Memory&, const Memory&) = default;
};

/// The facts of the host. They are read again while slurmd does not run, or while the node is invalid and no step runs. The
/// release is also read when slurmd's file is replaced.
struct Facts {
  std::string hostname, boot_id;
  std::string slurm_version;  ///< Of `slurmd -V`: "26.05.1".
  std::string detected;       ///< Words for --conf: of `slurmd -C`, and those of the detector of GPUs.
  friend bool operator==(const Facts&, const Facts&) = default;
};

/// The service as it was last read.
struct SlurmdSeen {
  bool running = false;
  bool changing = false;  ///< It is being started or stopped just now, or will be started again by itself.
  std::string error{};    ///< ServiceState::error.
  std::optional<std::vector<std::string>> arguments{};  ///< nullopt: this program has not started it.
  core::WallTime started{};                             ///< When the process was started; 0: not known.
  std::string image{};                                  ///< ServiceState::image.
  bool file_missing = false;                            ///< ServiceState::file_missing.
  bool keeps_plain_key = false;                         ///< ServiceState::keeps_plain_key.
  friend bool operator==(const SlurmdSeen&, const SlurmdSeen&) = default;
};

/// The host as it was last read.
struct Seen {
  core::Result<Facts> facts = core::fail(core::ErrorCode::kUnavailable, "not read yet");
  std::string program{};  ///< Changes when the file of slurmd is replaced.
  core::Result<SlurmdSeen> slurmd = core::fail(core::ErrorCode::kUnavailable, "not read yet");
  /// SHA-256 of the file of the auth key; "": there is none. An error: it cannot be read.
  core::Result<std::string> key_digest;
  /// slurmd was asked to reload a while ago, and the program from before still runs: it may have failed to read its
  /// configuration.
  bool not_reloaded = false;
  std::string local_conf{};               ///< The path of a slurm.conf of the host; "": there is none.
  std::string local_cluster{};            ///< ClusterName in it.
  std::string jwks{};                     ///< The path of slurm.jwks. slurmd prefers it to a slurm.key.
  core::Result<std::string> jwks_digest;  ///< As key_digest, of slurm.jwks.
  /// The steps on the host (Service::steps). Read only while the node leaves, or slurmd runs as another node.
  core::Result<std::vector<std::string>> steps = core::fail(core::ErrorCode::kUnavailable, "not read yet");
};
[[nodiscard]] bool same(const Seen& one, const Seen& other);

/// The outcome of the admin's check script.
struct Checked {
  bool wanted = false;     ///< There is a script.
  std::string instance{};  ///< The start of slurmd for which it passed; "": it did not pass.
  std::string error{};     ///< What it last said when it did not pass.
  friend bool operator==(const Checked&, const Checked&) = default;
};

/// What the coordinator last said of the node, and whether it answers.
struct Told {
  std::string phase{}, message{};
  std::string trouble{};  ///< Why the coordinator cannot be reached; "": it answers.
  bool heard = false;     ///< The coordinator has heard the last report, or does not know this host any more.
  friend bool operator==(const Told&, const Told&) = default;
};

struct Observed {
  Memory memory;               ///< As it is in this process.
  Memory saved;                ///< As it is in the file.
  std::optional<Seen> seen{};  ///< nullopt: nothing was read yet.
  Checked check{};
  Told told{};
  std::optional<Report> reported{};  ///< What was last given to the connection.
  std::string status{};              ///< The text of the status file as it was last written.
  plan::Outcomes outcomes{};
};

/// The arguments of slurmd that matter here. Others are ignored.
struct Launch {
  std::string node, conf;
  std::vector<std::string> controllers{};
  std::string instance{};
  friend bool operator==(const Launch&, const Launch&) = default;
};
[[nodiscard]] Launch launch_of(const std::vector<std::string>& arguments);
/// Returns how slurmd has to run, without an instance; nullopt: it is not to be started yet. Error: why it cannot run like
/// that.
[[nodiscard]] core::Result<std::optional<Launch>> wanted(const Observed& observed);
/// Returns the value of --instance-id for the slurmd of this host. Slurm stores the id of the first registration only: a slurmd
/// that registers again with another id is not told apart from one that has not registered.
[[nodiscard]] std::string instance_of(const Memory& memory);
/// Reports whether this program wrote a key file of this name with this content.
[[nodiscard]] bool wrote(const Memory& memory, std::string_view file, const std::string& digest);
/// Returns why slurmd must not be started while this key file is there.
[[nodiscard]] std::string foreign_key(const std::string& path);
/// Returns the value of ClusterName in a slurm.conf; "" if it has none.
[[nodiscard]] std::string cluster_name_of(std::string_view slurm_conf);

/// Fetches the auth key from the coordinator, and writes it to its file. The key is never part of an act. Fails if the file has
/// another key, and this program has not written it.
struct WriteKey final : plan::Act {
  WriteKey(std::string of_revision, Memory memory_now) : revision(std::move(of_revision)), memory(std::move(memory_now)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.WriteKey"}, {"revision", revision}}; }
  std::string revision;
  Memory memory;  ///< It is saved, with the key, before the key is written.
};

/// Starts slurmd, with the instance id of this host. Restarts it if it runs. If the key is in slurm.key, removes a slurm.jwks
/// that this program wrote, right before.
struct StartSlurmd final : plan::Act {
  StartSlurmd(Launch how, std::uint64_t number) : launch(std::move(how)), registrations(number) {}
  [[nodiscard]] core::Json describe() const override;
  [[nodiscard]] Withhold withhold() const override { return Withhold::kLong; }
  Launch launch;  ///< Without an instance.
  std::uint64_t registrations;
};

/// Writes the arguments for the next start of slurmd, and missing files of its service. Does not touch the slurmd that runs.
struct PrepareSlurmd final : plan::Act {
  explicit PrepareSlurmd(Launch next) : launch(std::move(next)) {}
  [[nodiscard]] core::Json describe() const override {
    return {{"act", "enlist.PrepareSlurmd"}, {"node", launch.node}, {"conf", launch.conf}};
  }
  Launch launch;  ///< Without an instance.
};

/// Removes the key file of the other name, if it is as this program wrote it, and forgets it.
struct RemoveFormerKey final : plan::Act {
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.RemoveFormerKey"}}; }
  [[nodiscard]] bool destructive() const override { return true; }
};

/// Makes slurmd read the key again, and register again.
struct ReloadSlurmd final : plan::Act {
  explicit ReloadSlurmd(std::uint64_t number) : registrations(number) {}
  [[nodiscard]] core::Json describe() const override {
    return {{"act", "enlist.ReloadSlurmd"}, {"registrations", registrations}};
  }
  std::uint64_t registrations;
};

/// Stops slurmd, and keeps it from being started at the next boot. Fails with kBusy if a step runs on the host. Leaves a slurmd
/// alone that this program has not started.
struct StopSlurmd final : plan::Act {
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.StopSlurmd"}}; }
};

/// Removes the auth keys and the files of slurmd's service that this program has written, and restores those that were there
/// before.
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

/// Writes the status file, which `join` shows.
struct WriteStatus final : plan::Act {
  explicit WriteStatus(std::string new_text) : text(std::move(new_text)) {}
  [[nodiscard]] core::Json describe() const override { return {{"act", "enlist.WriteStatus"}, {"text", text}}; }
  [[nodiscard]] Withhold withhold() const override { return Withhold::kNever; }
  std::string text;
};

/// Gives the connection a new report.
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
