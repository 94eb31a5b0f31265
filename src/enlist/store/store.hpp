// The coordinator's records: an SQLite file, with a copy in memory. Only one process has the file open.
//
//   auto store = enlist::Store::open(loop, "/var/lib/slurm-enlist/coordinator.db");
//   (*store)->commit([](const Contents& now) -> Result<Changes> { ... }, done);
//
// Commits are carried out one after another. Each commit sees the contents after the earlier commits, and is written in one
// transaction on another thread. contents() has its changes only once they are on the disk.
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
  std::map<std::string, Token> tokens;       ///< The key of the map is digest_of() the token's secret.
  std::map<std::string, core::Json> values;  ///< Single values by name, such as the state of the rollout of the pool file.
};

/// The rows to write, by their keys. nullopt deletes the row.
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

  /// Opens or creates the file (mode 0600), and locks it until the store is destroyed or the process ends. Reads the whole
  /// file. Blocks. Errors: kInvalid (the file is not ours, of a newer version, or damaged), kUnavailable (the file is locked by
  /// another process, or the disk fails).
  static core::Result<std::unique_ptr<Store>> open(core::Loop& loop, const std::filesystem::path& file);
  virtual ~Store() = default;
  [[nodiscard]] virtual const Contents& contents() const = 0;
  /// Returns why the last write has failed, in one line; "": it has succeeded, or there was none.
  [[nodiscard]] virtual std::string problem() const { return {}; }
  /// Calls `change` and then `done` in later iterations of the loop, unless the store is destroyed before. `done` gets the
  /// error of `change`, or kUnavailable if the disk fails; in both cases nothing has changed. Rows that already have the
  /// requested value are not written.
  virtual void commit(Change change, Done done) = 0;
  /// Adds a listener, which is called on the loop after each commit that changed something.
  virtual void listen(std::function<void(const Changes&)> listener) = 0;
};

}  // namespace enlist
