// The programs that Juju gives a charm while it runs a hook, as an interface. What they change takes effect when the hook
// succeeds. They block.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/host/host.hpp"
#include "enlist/juju/data.hpp"
#include "enlist/juju/status.hpp"

namespace enlist::juju {

/// A secret of our application.
struct OwnedSecret {
  std::string id;  ///< "secret:d1qg..."
  std::string label;
};
/// The auth key in a secret. `content` is a secret.
struct SharedKey {
  std::string file;  ///< The name of its file: "slurm.key" or "slurm.jwks".
  std::string content;
};

class HookTools {
 public:
  virtual ~HookTools() = default;
  virtual core::Result<bool> is_leader() = 0;
  /// Returns the options that are set or have a default.
  virtual core::Result<core::Json> config() = 0;
  /// nullopt: none of ours is set yet.
  virtual core::Result<std::optional<Status>> status() = 0;
  virtual core::Result<void> set_status(const Status& status) = 0;
  /// Writes to the log of the unit. `level`: DEBUG, INFO, WARNING or ERROR. A failure is ignored.
  virtual void log(std::string_view level, const std::string& message) = 0;

  /// Returns the ids of the relations at an endpoint: "slurmd:3".
  virtual core::Result<std::vector<std::string>> relations(std::string_view endpoint) = 0;
  virtual core::Result<std::string> remote_app(const std::string& relation) = 0;
  /// Returns the units at the other end that this unit has been told of.
  virtual core::Result<std::vector<std::string>> remote_units(const std::string& relation) = 0;
  /// Returns the databag of an application in a relation. Only the leader may read that of its own application.
  virtual core::Result<Databag> databag(const std::string& relation, const std::string& app) = 0;
  /// Sets keys in the databag of our own application. Only the leader may.
  virtual core::Result<void> publish(const std::string& relation, const Databag& databag) = 0;

  // In an action.

  virtual core::Result<core::Json> action_parameters() = 0;
  /// Sets what the action returns. Keys are of lower-case letters and hyphens.
  virtual core::Result<void> set_results(const std::map<std::string, std::string>& results) = 0;
  virtual core::Result<void> fail_action(const std::string& message) = 0;

  virtual core::Result<std::vector<OwnedSecret>> owned_secrets() = 0;
  /// Makes a secret of our application with the auth key in a file, and returns its id. Juju reads the file: the key is no
  /// argument.
  virtual core::Result<std::string> add_key(const std::string& label, const std::filesystem::path& file) = 0;
  virtual core::Result<void> set_key(const std::string& id, const std::filesystem::path& file) = 0;
  virtual core::Result<void> grant_secret(const std::string& id, const std::string& relation) = 0;
  virtual core::Result<void> remove_secret(const std::string& id) = 0;
  /// Returns the key in the newest revision of a secret. From then on this unit follows that revision, unless it only peeks.
  /// Errors: kForbidden or kNotFound as far as Juju says so, else kUnavailable.
  virtual core::Result<SharedKey> key(const std::string& id, bool peek) = 0;
};

/// Runs Juju's programs on the host.
std::unique_ptr<HookTools> juju_tools(Host& host);

}  // namespace enlist::juju
