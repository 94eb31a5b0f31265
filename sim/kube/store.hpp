// Stores the objects of the API server, in place of etcd and the watch cache. All objects share one revision counter. The store
// also keeps the history of the objects, and calls listeners.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "kube/object.hpp"
#include "sim/kube/merge.hpp"

namespace sim {

/// One version of an object; never changes.
struct Stored {
  core::Json body;     ///< The object, with metadata.resourceVersion.
  FieldOwners owners;  ///< Empty while only its creator has written the object: the creator then owns everything.
  std::uint64_t revision = 0;
  std::string creator{};       ///< The field manager.
  mutable std::string text{};  ///< The body as served. Made on the first request, on the loop's thread.
};
using StoredPtr = std::shared_ptr<const Stored>;

struct Change {
  enum class Type { kAdded, kModified, kDeleted };
  Type type = Type::kAdded;
  std::uint64_t revision = 0;
  kube::Key key;
  StoredPtr object;  ///< The object after the change. For a deletion, its last state with the deletion's revision.
  StoredPtr before;  ///< The object before the change; null for kAdded.
};
using ChangePtr = std::shared_ptr<const Change>;

/// Returns the name of the resource with its group: "pods", "deployments.apps".
std::string table_name(const kube::Resource& resource);

class KubeStore {
 public:
  using Listener = std::function<void(const std::string& table, const ChangePtr& change)>;

  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  /// Returns the revision up to which the history has been dropped.
  [[nodiscard]] std::uint64_t compacted() const { return compacted_; }

  [[nodiscard]] StoredPtr find(const std::string& table, const kube::Key& key) const;
  /// Returns the objects of a table, sorted by key.
  [[nodiscard]] const std::map<kube::Key, StoredPtr>& all(const std::string& table) const;
  /// Returns the pods of a Kubernetes node.
  [[nodiscard]] std::vector<kube::Key> pods_on(const std::string& node) const;
  /// Returns the objects at a revision; nullopt if it is compacted.
  [[nodiscard]] std::optional<std::map<kube::Key, StoredPtr>> all_at(const std::string& table, std::uint64_t revision) const;
  [[nodiscard]] std::vector<std::string> tables() const;

  /// Stores a new version under the next revision, and sets its resourceVersion. `creator` counts only for a new object.
  StoredPtr put(const std::string& table, const kube::Key& key, core::Json body, FieldOwners owners,
                const std::string& creator = "");
  void erase(const std::string& table, const kube::Key& key);

  /// Returns the changes after `revision`, oldest first; nullopt if they are compacted.
  [[nodiscard]] std::optional<std::vector<ChangePtr>> changes_after(const std::string& table, std::uint64_t revision) const;
  /// Drops the history up to a revision.
  void compact(std::uint64_t revision);
  /// Adds a callback that is called for each change, in order.
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

 private:
  struct Table {
    std::map<kube::Key, StoredPtr> objects;
    std::deque<ChangePtr> history;
  };
  void record(const std::string& table, ChangePtr change);

  std::uint64_t revision_ = 100;
  std::uint64_t compacted_ = 0;
  std::map<std::string, Table> tables_;
  std::vector<Listener> listeners_;
};

}  // namespace sim
