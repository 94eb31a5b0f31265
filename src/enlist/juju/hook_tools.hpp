// The hook tools: programs that Juju provides while it runs a hook of a charm. Relations and secrets change when the
// hook succeeds; the status and the log change at once. The functions block.
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
/// The auth key in a secret. Never log `content`.
struct SharedKey {
  std::string file;  ///< The name of the key's file: "slurm.key" or "slurm.jwks".
  std::string content;
};

class HookTools {
 public:
  virtual ~HookTools() = default;
  virtual core::Result<bool> is_leader() = 0;
  /// Returns the options that are set or have a default.
  virtual core::Result<core::Json> config() = 0;
  /// Returns the status of this unit. nullopt: the charm has not set one yet.
  virtual core::Result<std::optional<Status>> status() = 0;
  virtual core::Result<void> set_status(const Status& status) = 0;
  /// Writes to the log of the unit. `level`: DEBUG, INFO, WARNING or ERROR. A failure is ignored.
  virtual void log(std::string_view level, const std::string& message) = 0;

  /// Returns the ids of the relations at an endpoint: "slurmd:3".
  virtual core::Result<std::vector<std::string>> relations(std::string_view endpoint) = 0;
  virtual core::Result<std::string> remote_app(const std::string& relation) = 0;
  /// Returns the units at the other end of a relation, as far as Juju has announced them to this unit.
  virtual core::Result<std::vector<std::string>> remote_units(const std::string& relation) = 0;
  /// Returns the databag of an application in a relation. Only the leader may read the databag of its own application.
  virtual core::Result<Databag> databag(const std::string& relation, const std::string& app) = 0;
  /// Sets keys in the databag of our own application. Only the leader may do so.
  virtual core::Result<void> publish(const std::string& relation, const Databag& databag) = 0;

  // The next three functions work only while an action runs.

  virtual core::Result<core::Json> action_parameters() = 0;
  /// Sets the results of the action. Keys consist of lower-case letters and hyphens.
  virtual core::Result<void> set_results(const std::map<std::string, std::string>& results) = 0;
  virtual core::Result<void> fail_action(const std::string& message) = 0;

  virtual core::Result<std::vector<OwnedSecret>> owned_secrets() = 0;
  /// Creates a secret of our application with the auth key in `file`, and returns the id of the secret. Juju reads the file, so
  /// that the key is not an argument.
  virtual core::Result<std::string> add_key(const std::string& label, const std::filesystem::path& file) = 0;
  virtual core::Result<void> set_key(const std::string& id, const std::filesystem::path& file) = 0;
  virtual core::Result<void> grant_secret(const std::string& id, const std::string& relation) = 0;
  virtual core::Result<void> remove_secret(const std::string& id) = 0;
  /// Returns the key in the newest revision of a secret. Unless `peek`, this unit tracks that revision from then on. Errors:
  /// kForbidden or kNotFound if Juju reports them, kInvalid if the secret contains no key, or kUnavailable.
  virtual core::Result<SharedKey> key(const std::string& id, bool peek) = 0;
};

/// Runs Juju's programs on the host.
std::unique_ptr<HookTools> juju_tools(Host& host);

}  // namespace enlist::juju
