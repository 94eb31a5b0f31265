// The objects that others name (Secrets, ConfigMaps ...): each is watched for as long as a key names it; alone, or where many
// of a namespace are named, with its namespace. Each watch is a socket, and one object may name tens of thousands of others.
//
// Requires: it is told of each change of its caches (caches_changed).
// Guarantees: who reads a name is woken by each change of that object, and when it is known at all; what nobody named in his
// last observe is not watched.
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
  /// `wake`: what a key named has changed, or is known now. `changed`: a cache has changed.
  NamedWatches(CacheMaker& maker, std::function<void(const run::WorkKey&)> wake, std::function<void()> changed)
      : maker_(maker), wake_(std::move(wake)), changed_(std::move(changed)) {}

  /// What is watched (a resource, and which record is kept of it), and the object.
  using Id = std::pair<std::string, Key>;

  /// Reads named objects for one observe of one key. Its end gives up what the key named before, and has not named again.
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

  /// A cache has changed: wakes whoever named what is known since.
  void caches_changed();
  void each(const std::function<void(const CacheEntry&)>& see) const;
  void stop();

 private:
  struct Entry {
    std::unique_ptr<CacheEntry> alone;  ///< Null: its namespace is watched.
    std::set<run::WorkKey> users;
    bool was_synced = false;
  };
  using Place = std::pair<std::string, std::string>;  ///< What is watched, and its namespace; "": of all, or it has none.
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
  std::map<run::WorkKey, std::set<Id>> reads_;  ///< What the last observe of a key named.
};

}  // namespace kube
