// A map whose copies share their contents until one of them is written to. So a new snapshot in which nothing has changed needs
// no copy of the contents.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <utility>

namespace slurm {

/// Reads like a const std::map. Writing copies the contents first if they are shared. Several threads may read copies; only the
/// owner of a copy may write to it.
template <class Key, class Value>
class SharedMap {
 public:
  using Map = std::map<Key, Value, std::less<>>;
  using key_type = Key;
  using mapped_type = Value;
  using value_type = typename Map::value_type;
  using const_iterator = typename Map::const_iterator;

  SharedMap() = default;
  SharedMap(std::initializer_list<value_type> items) : map_(std::make_shared<Map>(items)) {}
  SharedMap(Map items) : map_(std::make_shared<Map>(std::move(items))) {}

  [[nodiscard]] const_iterator begin() const { return get().begin(); }
  [[nodiscard]] const_iterator end() const { return get().end(); }
  [[nodiscard]] std::size_t size() const { return get().size(); }
  [[nodiscard]] bool empty() const { return get().empty(); }
  template <class K>
  [[nodiscard]] const_iterator find(const K& key) const {
    return get().find(key);
  }
  template <class K>
  [[nodiscard]] const_iterator lower_bound(const K& key) const {
    return get().lower_bound(key);
  }
  template <class K>
  [[nodiscard]] bool contains(const K& key) const {
    return get().contains(key);
  }
  template <class K>
  [[nodiscard]] std::size_t count(const K& key) const {
    return get().count(key);
  }
  [[nodiscard]] const Value& at(const Key& key) const { return get().at(key); }
  /// Returns true if both share the same contents in memory.
  [[nodiscard]] bool same(const SharedMap& other) const { return map_ == other.map_; }

  Value& operator[](const Key& key) { return own()[key]; }
  template <class... Args>
  auto emplace(Args&&... args) {
    return own().emplace(std::forward<Args>(args)...);
  }
  template <class K, class V>
  auto insert_or_assign(K&& key, V&& value) {
    return own().insert_or_assign(std::forward<K>(key), std::forward<V>(value));
  }
  std::size_t erase(const Key& key) { return own().erase(key); }
  void clear() { map_.reset(); }

 private:
  [[nodiscard]] const Map& get() const {
    static const Map kEmpty;
    return map_ ? *map_ : kEmpty;
  }
  Map& own() {
    if (!map_) {
      map_ = std::make_shared<Map>();
    } else if (map_.use_count() > 1) {
      map_ = std::make_shared<Map>(*map_);
    }
    return *map_;
  }

  std::shared_ptr<Map> map_;
};

}  // namespace slurm
