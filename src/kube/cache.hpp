// Caches: what the API server last said of one kind under one selector, as immutable records.
//
// A cache is fed by a watch (kube/watch.hpp). Readers get shared_ptr<const Record>; a record never changes. All calls are on the loop.
//
//   for (const PodPtr& pod : pods.by_index("owner", nodeset_uid)) ...
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kube/object.hpp"

namespace kube {

/// What the runtime needs to know of any cache, whatever its record.
class CacheBase {
 public:
  virtual ~CacheBase() = default;
  /// False until the first complete list, and again never: a lost watch leaves old but complete contents.
  [[nodiscard]] virtual bool synced() const = 0;
  /// The newest resourceVersion that the stream has shown (objects or bookmarks).
  [[nodiscard]] virtual const std::string& resource_version() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// The uid and resourceVersion held for a key; empty strings when absent.
  [[nodiscard]] virtual std::pair<std::string, std::string> identity(const Key& key) const = 0;
};

template <class Record>
class Cache final : public CacheBase {
 public:
  using Ptr = std::shared_ptr<const Record>;
  /// The values under which a record is found in an index.
  using IndexFunction = std::function<std::vector<std::string>(const Record&)>;
  /// Called after the cache shows the change. `before` or `after` may be null (added, deleted), never both.
  using Listener = std::function<void(const Ptr& before, const Ptr& after)>;

  void add_index(std::string name, IndexFunction function);
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }

  [[nodiscard]] Ptr find(const Key& key) const;
  [[nodiscard]] std::vector<Ptr> all() const;                          ///< Sorted by key.
  [[nodiscard]] std::vector<Ptr> in_namespace(std::string_view ns) const;  ///< Sorted by key.
  [[nodiscard]] std::vector<Ptr> by_index(std::string_view index, std::string_view value) const;  ///< Sorted by key.

  [[nodiscard]] bool synced() const override { return synced_; }
  [[nodiscard]] const std::string& resource_version() const override { return rv_; }
  [[nodiscard]] std::size_t size() const override { return items_.size(); }
  [[nodiscard]] std::pair<std::string, std::string> identity(const Key& key) const override;

  // For the watch.
  void upsert(Ptr record);
  void erase(const Key& key);
  /// The complete contents at `rv`; what is absent was deleted.
  void replace(std::vector<Ptr> records, std::string rv);
  void bookmark(std::string rv) { rv_ = std::move(rv); }

 private:
  struct Index {
    IndexFunction function;
    std::map<std::string, std::map<Key, Ptr>, std::less<>> entries;
  };
  void notify(const Ptr& before, const Ptr& after);
  void index_remove(const Ptr& record);
  void index_add(const Ptr& record);

  std::map<Key, Ptr> items_;
  std::map<std::string, Index, std::less<>> indices_;
  std::vector<Listener> listeners_;
  std::string rv_;
  bool synced_ = false;
};

}  // namespace kube
