// Caches. A cache contains the objects of one kind that match one selector, as immutable records of what the API server last
// sent.
//
// A cache is fed by a watch (kube/cache/watch.hpp). Readers get shared_ptr<const Record>.
//
// Requires: all calls are on the loop; listeners do not change the cache.
// Guarantees: a record never changes; the contents are always a complete list plus all later events, never a part of a list;
// listeners are called after the cache contains the change.
//
//   for (const PodPtr& pod : pods.by_index("owner", nodeset_uid)) ...
//
// Folder src/kube/cache: records, watches, and the caches that they fill. Uses kube/client.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/object.hpp"

namespace kube {

/// The part of a cache that does not depend on its record type.
class CacheBase {
 public:
  virtual ~CacheBase() = default;
  /// Returns false until the first complete list, then always true. While the watch is lost, the contents are old but complete.
  [[nodiscard]] virtual bool synced() const = 0;
  /// Returns the newest resourceVersion that the stream has shown, in lists, objects or bookmarks.
  [[nodiscard]] virtual const std::string& resource_version() const = 0;
  [[nodiscard]] virtual std::size_t size() const = 0;
  /// Returns the uid and resourceVersion of the record with this key; empty strings if there is none.
  [[nodiscard]] virtual std::pair<std::string, std::string> identity(const Key& key) const = 0;
};

template <class Record>
class Cache final : public CacheBase {
 public:
  using Ptr = std::shared_ptr<const Record>;
  /// Returns the values under which by_index() finds a record in an index.
  using IndexFunction = std::function<std::vector<std::string>(const Record&)>;
  /// Called after the cache contains the change. `before` is null for an added record, `after` for a deleted one.
  using Listener = std::function<void(const Ptr& before, const Ptr& after)>;

  void add_index(std::string name, IndexFunction function);
  void listen(Listener listener) { listeners_.push_back(std::move(listener)); }
  /// Calls `listener` after any change of the contents or the resourceVersion, and after the first sync. The listeners that
  /// listen() registers are called earlier.
  void listen_changed(std::function<void()> listener) { changed_.push_back(std::move(listener)); }

  [[nodiscard]] Ptr find(const Key& key) const;
  [[nodiscard]] std::vector<Ptr> all() const;                                                     ///< Sorted by key.
  [[nodiscard]] std::vector<Ptr> by_index(std::string_view index, std::string_view value) const;  ///< Sorted by key.

  [[nodiscard]] bool synced() const override { return synced_; }
  [[nodiscard]] const std::string& resource_version() const override { return rv_; }
  [[nodiscard]] std::size_t size() const override { return items_.size(); }
  [[nodiscard]] std::pair<std::string, std::string> identity(const Key& key) const override;

  // The watch calls these functions. An event that is not newer than the cached object changes nothing, so repeats do no harm.
  void upsert(Ptr record);
  /// `rv` is the resourceVersion of the deletion, and `uid` the uid of the deleted object; "" if unknown.
  void erase(const Key& key, std::string rv = "", std::string_view uid = "");
  /// Replaces the contents with the complete list at `rv`. Objects that are absent from the list were deleted.
  void replace(std::vector<Ptr> records, std::string rv);
  void bookmark(std::string rv);

 private:
  struct Index {
    IndexFunction function;
    std::map<std::string, std::map<Key, Ptr>, std::less<>> entries;
  };
  void notify(const Ptr& before, const Ptr& after);
  void notify_changed();
  void remove(const Ptr& record);
  void add(const Ptr& record);
  void index_add(Index& index, const Ptr& record);

  std::map<Key, Ptr> items_;
  std::map<std::string, Index, std::less<>> indices_;
  std::vector<Listener> listeners_;
  std::vector<std::function<void()>> changed_;
  std::string rv_;
  bool synced_ = false;
};

template <class Record>
void Cache<Record>::add_index(std::string name, IndexFunction function) {
  Index& index = indices_[std::move(name)];
  index.function = std::move(function);
  index.entries.clear();
  for (const auto& [key, record] : items_) index_add(index, record);
}

template <class Record>
typename Cache<Record>::Ptr Cache<Record>::find(const Key& key) const {
  const auto it = items_.find(key);
  return it == items_.end() ? nullptr : it->second;
}

template <class Record>
std::vector<typename Cache<Record>::Ptr> Cache<Record>::all() const {
  std::vector<Ptr> result;
  result.reserve(items_.size());
  for (const auto& [key, record] : items_) result.push_back(record);
  return result;
}

template <class Record>
std::vector<typename Cache<Record>::Ptr> Cache<Record>::by_index(std::string_view index, std::string_view value) const {
  std::vector<Ptr> result;
  const auto it = indices_.find(index);
  if (it == indices_.end()) return result;
  const auto entries = it->second.entries.find(value);
  if (entries == it->second.entries.end()) return result;
  for (const auto& [key, record] : entries->second) result.push_back(record);
  return result;
}

template <class Record>
std::pair<std::string, std::string> Cache<Record>::identity(const Key& key) const {
  const Ptr record = find(key);
  if (!record) return {};
  return {record->meta.uid, record->meta.resource_version};
}

template <class Record>
void Cache<Record>::upsert(Ptr record) {
  Ptr& slot = items_[record->meta.key()];
  const std::string& version = record->meta.resource_version;
  const bool known =
      slot && slot->meta.uid == record->meta.uid && !version.empty() && rv_at_least(slot->meta.resource_version, version);
  if (known) return;
  const Ptr before = std::exchange(slot, record);
  if (before) remove(before);
  add(record);
  if (rv_at_least(record->meta.resource_version, rv_)) rv_ = record->meta.resource_version;
  notify(before, record);
  notify_changed();
}

template <class Record>
void Cache<Record>::erase(const Key& key, std::string rv, std::string_view uid) {
  if (!rv.empty() && rv_at_least(rv, rv_)) rv_ = std::move(rv);
  const auto it = items_.find(key);
  if (it != items_.end() && (uid.empty() || it->second->meta.uid == uid)) {
    const Ptr before = std::move(items_.extract(it).mapped());
    remove(before);
    notify(before, nullptr);
  }
  notify_changed();
}

template <class Record>
void Cache<Record>::replace(std::vector<Ptr> records, std::string rv) {
  std::map<Key, Ptr> next;
  for (Ptr& record : records) {
    Key key = record->meta.key();
    next[std::move(key)] = std::move(record);
  }
  const std::map<Key, Ptr> before = std::exchange(items_, std::move(next));
  for (auto& [name, index] : indices_) index.entries.clear();
  for (const auto& [key, record] : items_) add(record);
  rv_ = std::move(rv);
  synced_ = true;
  // All listeners see the complete new contents. The iteration uses a copy, in case a listener wrongly changes the cache.
  const std::map<Key, Ptr> after = items_;
  for (const auto& [key, record] : before) {
    if (!after.contains(key)) notify(record, nullptr);
  }
  for (const auto& [key, record] : after) {
    const auto old = before.find(key);
    if (old == before.end()) {
      notify(nullptr, record);
    } else if (old->second->meta.resource_version != record->meta.resource_version ||
               old->second->meta.uid != record->meta.uid) {
      notify(old->second, record);
    }
  }
  notify_changed();
}

template <class Record>
void Cache<Record>::bookmark(std::string rv) {
  rv_ = std::move(rv);
  notify_changed();
}

template <class Record>
void Cache<Record>::notify(const Ptr& before, const Ptr& after) {
  for (const Listener& listener : listeners_) listener(before, after);
}

template <class Record>
void Cache<Record>::notify_changed() {
  for (const auto& listener : changed_) listener();
}

template <class Record>
void Cache<Record>::remove(const Ptr& record) {
  const Key key = record->meta.key();
  for (auto& [name, index] : indices_) {
    for (const std::string& value : index.function(*record)) {
      const auto it = index.entries.find(value);
      if (it != index.entries.end() && it->second.erase(key) > 0 && it->second.empty()) index.entries.erase(it);
    }
  }
}

template <class Record>
void Cache<Record>::add(const Ptr& record) {
  for (auto& [name, index] : indices_) index_add(index, record);
}

template <class Record>
void Cache<Record>::index_add(Index& index, const Ptr& record) {
  for (const std::string& value : index.function(*record)) index.entries[value].insert_or_assign(record->meta.key(), record);
}

}  // namespace kube
