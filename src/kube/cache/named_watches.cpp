#include "kube/cache/named_watches.hpp"

#include <stdexcept>

namespace kube {

namespace {

/// The maximum number of named objects of one kind in one namespace that have a watch each. If more are named, one watch of
/// the namespace covers all of them.
constexpr int kMostAlone = 16;

}  // namespace

/// Returns the first object named in this place, or the end.
std::map<NamedWatches::Id, NamedWatches::Entry>::const_iterator NamedWatches::first_in(const Place& place) const {
  const auto it = entries_.lower_bound({place.first, {place.second, ""}});
  return it != entries_.end() && place_of(it->first) == place ? it : entries_.end();
}

/// Reports whether fewer than kMostAlone objects are named in this place, not counting `but`.
bool NamedWatches::few_in(const Place& place, const Id& but) const {
  int count = 0;
  for (auto it = first_in(place); it != entries_.end() && place_of(it->first) == place; ++it) {
    if (it->first != but && ++count >= kMostAlone) return false;
  }
  return true;
}

void NamedWatches::wake_users(const Id& id) {
  const auto it = entries_.find(id);
  if (it == entries_.end()) return;
  for (const run::WorkKey& user : it->second.users) wake_(user);
}

void NamedWatches::caches_changed() {
  for (auto& [id, entry] : entries_) {
    if (entry.was_synced || !shown_by(id, entry).cache->synced()) continue;
    // It has just become known whether the object exists, so all keys that name the object are woken.
    entry.was_synced = true;
    for (const run::WorkKey& user : entry.users) wake_(user);
  }
}

void NamedWatches::each(const std::function<void(const CacheEntry&)>& see) const {
  for (const auto& [id, entry] : entries_) {
    if (entry.alone) see(*entry.alone);
  }
  for (const auto& [place, entry] : namespaces_) see(*entry);
}

void NamedWatches::stop() {
  for (const auto& [id, entry] : entries_) {
    if (entry.alone) entry.alone->watch->stop();
  }
  for (const auto& [place, entry] : namespaces_) entry->watch->stop();
}

void NamedWatches::keep(const run::WorkKey& key, std::set<Id> names) {
  const std::set<Id> before = std::exchange(reads_[key], std::move(names));
  const std::set<Id>& kept = reads_[key];
  for (const Id& id : before) {
    if (kept.contains(id)) continue;
    const auto it = entries_.find(id);
    if (it == entries_.end()) continue;
    it->second.users.erase(key);
    if (!it->second.users.empty()) continue;
    entries_.erase(it);
    if (first_in(place_of(id)) == entries_.end()) namespaces_.erase(place_of(id));
  }
  if (kept.empty()) reads_.erase(key);
}

template <class Record>
std::unique_ptr<CacheEntry> NamedWatches::make(const std::string& what, const Resource& resource, Scope scope) {
  auto cache = std::make_unique<Cache<Record>>();
  cache->listen([this, what](const auto& before, const auto& after) {
    wake_users({what, (after ? after : before)->meta.key()});
  });
  cache->listen_changed([this] { changed_(); });
  auto sink = std::make_unique<CacheSink<Record>>(*cache, maker_.context());
  auto made = maker_.make(resource, std::move(scope), typeid(Record), std::move(cache), std::move(sink));
  made->watch->start();
  return made;
}

template <class Record>
void NamedWatches::watch(Entry& entry, const Id& id, const Resource& resource) {
  const Place place = place_of(id);
  if (namespaces_.contains(place)) return;
  if (few_in(place, id)) {
    entry.alone = make<Record>(id.first, resource, {place.second, "", "metadata.name=" + id.second.name});
  } else {
    namespaces_[place] = make<Record>(id.first, resource, {place.second, "", ""});
  }
}

template <class Record>
Named<Record> NamedWatches::Reading::read(const Resource& resource, const Key& key) {
  // An object without a name cannot exist, so it is not watched.
  if (key.name.empty() || (resource.namespaced && key.ns.empty())) return {Presence::kAbsent, nullptr};
  const Id id{resource.plural + "." + resource.group + " " + typeid(Record).name(), key};
  names_.insert(id);
  const auto [it, is_new] = owner_.entries_.try_emplace(id);
  it->second.users.insert(key_);
  if (is_new) owner_.watch<Record>(it->second, id, resource);
  const auto& cache = static_cast<const Cache<Record>&>(*owner_.shown_by(id, it->second).cache);
  if (!cache.synced()) return {Presence::kUnknown, nullptr};
  auto record = cache.find(key);
  if (!record) return {Presence::kAbsent, nullptr};
  return {Presence::kPresent, std::move(record)};
}

Named<Object> NamedWatches::Reading::object(const Resource& resource, const Key& key) {
  if (resource == resources::kSecret) throw std::logic_error("a Secret is not read whole: no cache holds its values");
  return read<Object>(resource, key);
}

}  // namespace kube
