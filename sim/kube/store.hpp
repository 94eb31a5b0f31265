// What etcd and the watch cache are to the API server: objects under one revision for everything, their history, and who
// watches it.
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
  core::Json body;     ///< With metadata.resourceVersion.
  FieldOwners owners;  ///< Empty while only its creator has written it: then everything is the creator's.
  std::uint64_t revision = 0;
  std::string creator{};       ///< The field manager.
  mutable std::string text{};  ///< As served; made when first asked for, on the loop's thread.
};
using StoredPtr = std::shared_ptr<const Stored>;

struct Change {
  enum class Type { kAdded, kModified, kDeleted };
  Type type = Type::kAdded;
  std::uint64_t revision = 0;
  kube::Key key;
  StoredPtr object;  ///< After the change; of a deletion, the last state under the deletion's revision.
  StoredPtr before;  ///< Null for kAdded.
};
using ChangePtr = std::shared_ptr<const Change>;

/// "pods" or "deployments.apps".
std::string table_name(const kube::Resource& resource);

class KubeStore {
 public:
  using Listener = std::function<void(const std::string& table, const ChangePtr& change)>;

  [[nodiscard]] std::uint64_t revision() const { return revision_; }
  /// The history before this revision is gone.
  [[nodiscard]] std::uint64_t compacted() const { return compacted_; }

  [[nodiscard]] StoredPtr find(const std::string& table, const kube::Key& key) const;
  /// Sorted by key.
  [[nodiscard]] const std::map<kube::Key, StoredPtr>& all(const std::string& table) const;
  /// The pods of a Kubernetes node.
  [[nodiscard]] std::vector<kube::Key> pods_on(const std::string& node) const;
  /// As it was at a revision; nullopt when that is compacted.
  [[nodiscard]] std::optional<std::map<kube::Key, StoredPtr>> all_at(const std::string& table, std::uint64_t revision) const;
  [[nodiscard]] std::vector<std::string> tables() const;

  /// Stores a new version under the next revision, which is written into it. The first one says who created it.
  StoredPtr put(const std::string& table, const kube::Key& key, core::Json body, FieldOwners owners,
                const std::string& creator = "");
  void erase(const std::string& table, const kube::Key& key);

  /// Changes after `revision`, oldest first; nullopt when that is compacted.
  [[nodiscard]] std::optional<std::vector<ChangePtr>> changes_after(const std::string& table, std::uint64_t revision) const;
  /// Forgets history up to a revision.
  void compact(std::uint64_t revision);
  /// Called after each change, in order.
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
