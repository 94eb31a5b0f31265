// The coordinator's memory: an SQLite file, mirrored in this process. One process writes it.
//
//   auto store = enlist::Store::open(loop, "/var/lib/slurm-enlist/coordinator.db");
//   (*store)->commit([](const Contents& now) -> Result<Changes> { ... }, done);
//
// Commits are carried out one after another: each sees the contents after the earlier ones, is written in one transaction on
// another thread, and counts only when it is on the disk.
//
// Folder src/enlist/store: the coordinator's records. Uses enlist/wire, enlist/rules and core.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "core/result.hpp"
#include "enlist/rules/model.hpp"

namespace enlist {

struct Contents {
  std::map<std::string, Pool> pools;
  std::map<std::string, Node> nodes;
  std::map<std::string, Token> tokens;       ///< By digest_of() their secret.
  std::map<std::string, core::Json> values;  ///< Single values, such as the state of the rollout of the pool file.
};

/// Rows to write; nullopt deletes a row.
struct Changes {
  std::map<std::string, std::optional<Pool>> pools{};
  std::map<std::string, std::optional<Node>> nodes{};
  std::map<std::string, std::optional<Token>> tokens{};
  std::map<std::string, std::optional<core::Json>> values{};
};

class Store {
 public:
  using Change = std::function<core::Result<Changes>(const Contents&)>;
  using Done = std::function<void(core::Result<void>)>;

  /// Opens or creates the file (mode 0600), and locks it until the store is destroyed or the process ends. Reads all of it, and
  /// so blocks. Errors: kInvalid (not our file, of a newer version, or damaged), kUnavailable (locked by another process, or
  /// the disk fails).
  static core::Result<std::unique_ptr<Store>> open(core::Loop& loop, const std::filesystem::path& file);
  virtual ~Store() = default;
  [[nodiscard]] virtual const Contents& contents() const = 0;
  /// Returns why the last write has failed, in one line; "": it has not.
  [[nodiscard]] virtual std::string problem() const { return {}; }
  /// Calls `change` and `done` in later turns, unless the store is destroyed before. `done` gets the error of `change`, or
  /// kUnavailable if the disk fails: then nothing has changed. Rows that are already as `change` wants them are not written.
  virtual void commit(Change change, Done done) = 0;
  /// Called on the loop after each commit that changed something.
  virtual void listen(std::function<void(const Changes&)> listener) = 0;
};

}  // namespace enlist
