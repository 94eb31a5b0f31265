// Reads Slurm's files on the host of slurmctld for the coordinator: slurm.conf, the files that it includes, and the auth key.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/result.hpp"
#include "enlist/coordinator/slurm_facts.hpp"
#include "enlist/host/host.hpp"
#include "enlist/rules/key_file.hpp"

namespace enlist {

/// The key of auth/slurm. `content` is a secret.
struct AuthKey {
  std::string file;      ///< "slurm.jwks" or "slurm.key".
  std::string revision;  ///< key_revision(): identifies the content without revealing it.
  std::string content;
};
/// Reads the key beside slurm.conf as Slurm does: slurm.jwks, or else slurm.key. Blocks. Errors: kNotFound (there is neither),
/// kInvalid (the file is empty, or Slurm does not accept the slurm.jwks), and those of Host::read.
core::Result<AuthKey> read_auth_key(Host& host, const std::filesystem::path& slurm_conf);
/// Reads the files that slurm.conf includes, and the files that those include. Returns their texts by the names in the Include
/// lines. `text`: the text of slurm.conf. Leaves out the pool file, and files that do not exist. Blocks. Errors: those of
/// Host::read, except kNotFound.
core::Result<std::map<std::string, std::string>> read_included(Host& host, const std::filesystem::path& slurm_conf,
                                                               const std::string& text);
/// Reads slurm.conf and the files that it includes. A missing included file counts as empty. Blocks. Errors: those of facts_of
/// and Host::read.
core::Result<SlurmFacts> read_facts(Host& host, const std::filesystem::path& slurm_conf);

class SlurmFiles {
 public:
  /// Calls `changed` after each reading with a new result. `host` is used on other threads, and must outlive the loop.
  SlurmFiles(core::Loop& loop, core::Logger& log, Host& host, std::filesystem::path slurm_conf, std::function<void()> changed);
  /// Reads the files now, and again every five seconds. The result of a reading never replaces that of a reading that began
  /// later.
  void start();
  void stop();
  [[nodiscard]] const core::Result<SlurmFacts>& facts() const { return facts_; }
  /// Returns the keys in the file of the auth key. Error: the file cannot be read, or its keys cannot be rotated.
  [[nodiscard]] const core::Result<KeySet>& keys() const { return keys_; }
  /// Readings are numbered from 1. Return the number of the last one that has begun, and the highest of those that have ended.
  [[nodiscard]] std::uint64_t begun() const { return begun_; }
  [[nodiscard]] std::uint64_t ended() const { return ended_; }
  /// Returns the name of the file of the auth key: "slurm.jwks" or "slurm.key". "": the key cannot be read, or was not read
  /// yet.
  [[nodiscard]] const std::string& key_file() const { return key_file_; }
  /// Returns the revision of the auth key.
  [[nodiscard]] const core::Result<std::string>& key_revision() const { return key_revision_; }
  [[nodiscard]] const std::filesystem::path& slurm_conf() const { return slurm_conf_; }
  /// Reads the auth key now. Calls `done` in a later iteration of the loop.
  void read_key(std::function<void(core::Result<AuthKey>)> done);

 private:
  struct Reading;
  void read(Reading reading);

  core::Loop& loop_;
  core::Logger& log_;
  Host& host_;
  std::filesystem::path slurm_conf_;
  std::function<void()> changed_;
  core::Result<SlurmFacts> facts_ = core::fail(core::ErrorCode::kUnavailable, "slurm.conf is not read yet");
  core::Result<std::string> key_revision_ = core::fail(core::ErrorCode::kUnavailable, "the auth key is not read yet");
  std::string key_file_;
  core::Result<KeySet> keys_ = core::fail(core::ErrorCode::kUnavailable, "the auth key is not read yet");
  std::uint64_t begun_ = 0, ended_ = 0;
  bool stopped_ = false;
  core::Timer again_;
};

}  // namespace enlist
