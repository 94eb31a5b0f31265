#include "sim/kube/store.hpp"

#include <algorithm>

namespace sim {

std::string table_name(const kube::Resource& resource) {
  return resource.group.empty() ? resource.plural : resource.plural + "." + resource.group;
}

StoredPtr KubeStore::find(const std::string& table, const kube::Key& key) const {
  const auto it = tables_.find(table);
  if (it == tables_.end()) return nullptr;
  const auto found = it->second.objects.find(key);
  return found == it->second.objects.end() ? nullptr : found->second;
}

const std::map<kube::Key, StoredPtr>& KubeStore::all(const std::string& table) const {
  static const std::map<kube::Key, StoredPtr> kNone;
  const auto it = tables_.find(table);
  return it == tables_.end() ? kNone : it->second.objects;
}

std::vector<kube::Key> KubeStore::pods_on(const std::string& node) const {
  std::vector<kube::Key> out;
  for (const auto& [key, pod] : all("pods")) {
    if (core::get_string(pod->body, {"spec", "nodeName"}) == node) out.push_back(key);
  }
  return out;
}

std::optional<std::map<kube::Key, StoredPtr>> KubeStore::all_at(const std::string& table, std::uint64_t revision) const {
  if (revision < compacted_) return std::nullopt;
  std::map<kube::Key, StoredPtr> objects = all(table);
  const auto it = tables_.find(table);
  if (it == tables_.end()) return objects;
  const auto& history = it->second.history;
  for (auto change = history.rbegin(); change != history.rend() && (*change)->revision > revision; ++change) {
    if ((*change)->before) {
      objects[(*change)->key] = (*change)->before;
    } else {
      objects.erase((*change)->key);
    }
  }
  return objects;
}

std::vector<std::string> KubeStore::tables() const {
  std::vector<std::string> names;
  for (const auto& [name, table] : tables_) names.push_back(name);
  return names;
}

StoredPtr KubeStore::put(const std::string& table, const kube::Key& key, core::Json body, FieldOwners owners,
                         const std::string& creator) {
  ++revision_;
  body["metadata"]["resourceVersion"] = std::to_string(revision_);
  StoredPtr& slot = tables_[table].objects[key];
  const StoredPtr before = slot;
  slot =
      std::make_shared<const Stored>(Stored{std::move(body), std::move(owners), revision_, before ? before->creator : creator});
  const auto type = before ? Change::Type::kModified : Change::Type::kAdded;
  const StoredPtr stored = slot;
  record(table, std::make_shared<const Change>(Change{type, revision_, key, stored, before}));
  return stored;
}

void KubeStore::erase(const std::string& table, const kube::Key& key) {
  auto& objects = tables_[table].objects;
  const auto it = objects.find(key);
  if (it == objects.end()) return;
  const StoredPtr before = it->second;
  objects.erase(it);
  ++revision_;
  Stored last{before->body, before->owners, revision_, before->creator};
  last.body["metadata"]["resourceVersion"] = std::to_string(revision_);
  record(table, std::make_shared<const Change>(
                    Change{Change::Type::kDeleted, revision_, key, std::make_shared<const Stored>(std::move(last)), before}));
}

void KubeStore::record(const std::string& table, ChangePtr change) {
  tables_[table].history.push_back(change);
  for (std::size_t i = 0; i < listeners_.size(); ++i) listeners_[i](table, change);
}

std::optional<std::vector<ChangePtr>> KubeStore::changes_after(const std::string& table, std::uint64_t revision) const {
  if (revision < compacted_) return std::nullopt;
  const auto it = tables_.find(table);
  if (it == tables_.end()) return std::vector<ChangePtr>{};
  const auto& history = it->second.history;
  const auto first = std::upper_bound(history.begin(), history.end(), revision,
                                      [](std::uint64_t rv, const ChangePtr& change) { return rv < change->revision; });
  return std::vector<ChangePtr>(first, history.end());
}

void KubeStore::compact(std::uint64_t revision) {
  compacted_ = std::max(compacted_, std::min(revision, revision_));
  for (auto& [name, table] : tables_) {
    while (!table.history.empty() && table.history.front()->revision <= compacted_) table.history.pop_front();
  }
}

}  // namespace sim
