// Watches the objects that other objects name (Secrets, ConfigMaps ...) while a key names them. Each named object has its own
// watch. If many objects in one namespace are named, they share a watch instead: each watch takes a socket, and one object can
// name tens of thousands of objects.
//
// Requires: the owner calls caches_changed() after each change of a cache.
// Guarantees: each change of an object wakes the keys that read the object. Keys are also woken when it becomes known whether
// the object exists. If a key did not name an object in its last observe, this class does not watch the object for the key.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "kube/cache/cache_entry.hpp"
#include "kube/cache/recorder.hpp"
#include "run/queue.hpp"

namespace kube {

class NamedWatches {
 public:
  /// Calls `wake` when a named object has changed or has become known. Calls `changed` when the contents of a cache have
  /// changed.
  NamedWatches(CacheMaker& maker, std::function<void(const run::WorkKey&)> wake, std::function<void()> changed)
      : maker_(maker), wake_(std::move(wake)), changed_(std::move(changed)) {}

  /// Identifies a named object: the watched resource with its record type, and the key of the object.
  using Id = std::pair<std::string, Key>;

  /// Reads named objects during one observe() for a key. The destructor ends the watches that the key no longer needs.
  class Reading final : public Recorder {
   public:
    Reading(NamedWatches& owner, run::WorkKey key) : owner_(owner), key_(std::move(key)) {}
    ~Reading() override { owner_.keep(key_, std::move(names_)); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

    Named<SecretRecord> secret(const Key& key) override { return read<SecretRecord>(resources::kSecret, key); }
    Named<Object> object(const Resource& resource, const Key& key) override;
    Named<MetadataRecord> metadata(const Resource& resource, const Key& key) override {
      return read<MetadataRecord>(resource, key);
    }

   private:
    template <class Record>
    Named<Record> read(const Resource& resource, const Key& key);

    NamedWatches& owner_;
    run::WorkKey key_;
    std::set<Id> names_;
  };

  /// Wakes the keys of each named object that has become known since the last call.
  void caches_changed();
  void each(const std::function<void(const CacheEntry&)>& see) const;
  void stop();

 private:
  struct Entry {
    std::unique_ptr<CacheEntry> alone;  ///< The object's own watch. Null: the namespace's watch covers the object.
    std::set<run::WorkKey> users;
    bool was_synced = false;
  };
  using Place = std::pair<std::string, std::string>;  ///< The watched resource with its record type, and the namespace; "" for
                                                      ///< cluster-scoped resources.
  static Place place_of(const Id& id) { return {id.first, id.second.ns}; }

  [[nodiscard]] const CacheEntry& shown_by(const Id& id, const Entry& entry) const {
    return entry.alone ? *entry.alone : *namespaces_.at(place_of(id));
  }
  [[nodiscard]] std::map<Id, Entry>::const_iterator first_in(const Place& place) const;
  [[nodiscard]] bool few_in(const Place& place, const Id& but) const;
  void keep(const run::WorkKey& key, std::set<Id> names);
  void wake_users(const Id& id);
  template <class Record>
  void watch(Entry& entry, const Id& id, const Resource& resource);
  template <class Record>
  std::unique_ptr<CacheEntry> make(const std::string& what, const Resource& resource, Scope scope);

  CacheMaker& maker_;
  std::function<void(const run::WorkKey&)> wake_;
  std::function<void()> changed_;
  std::map<Id, Entry> entries_;
  std::map<Place, std::unique_ptr<CacheEntry>> namespaces_;
  std::map<run::WorkKey, std::set<Id>> reads_;  ///< The objects that the last observe of each key named.
};

}  // namespace kube
