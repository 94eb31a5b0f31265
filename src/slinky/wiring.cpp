#include "slinky/wiring.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

namespace slinky {

void Wiring::wakes_on_slurm(std::string controller, SlurmMapper map) {
  slurm_watches_.push_back({std::move(controller), std::move(map)});
}

void Wiring::slurm_changed(const slurm::Change& change, const kube::Key& of) {
  for (const SlurmWatch& watch : slurm_watches_) {
    for (const kube::Key& key : watch.map(change, of)) wake_here(watch.controller, key);
  }
}

void Wiring::wakes_on_lists(std::string controller, ListMapper map) {
  list_watches_.push_back({std::move(controller), std::move(map)});
}

void Wiring::list_changed(const slurm::ListChange& change, const kube::Key& of) {
  if (!change.changed) return;
  for (const ListWatch& watch : list_watches_) {
    for (const kube::Key& key : watch.map(change, of)) wake_here(watch.controller, key);
  }
}

void Wiring::wake_here(std::string_view controller, const kube::Key& key) {
  // An object without a namespace belongs to the whole Kubernetes cluster.
  if (key.ns.empty() || acts_in(key.ns)) wake(controller, key);
}

void Wiring::reconciles(const kube::Resource& resource) {
  rights.add(resource, {"get", "list", "watch", "patch"});
  rights.add(resource, {"get", "patch"}, "status");
  rights.add(resource, {"update"}, "finalizers");
}

void Wiring::makes(const kube::Resource& resource) {
  rights.add(resource, {"get", "list", "watch", "create", "patch", "delete"});
}

void Wiring::reads(const kube::Resource& resource) {
  rights.add(resource, {"get", "list", "watch"});
}

Keys keys_of(const std::vector<kube::ObjectPtr>& objects) {
  Keys keys;
  for (const kube::ObjectPtr& object : objects) keys.push_back(object->meta.key());
  return keys;
}

ManagerWiring::ManagerWiring(kube::Manager& manager, slurm::Clusters& clusters, std::vector<std::string> namespaces, bool nodes)
    : manager_(manager), clusters_(clusters), namespaces_(std::move(namespaces)), nodes_(nodes) {}

bool ManagerWiring::acts_in(std::string_view ns) const {
  return namespaces_.empty() || std::ranges::find(namespaces_, ns) != namespaces_.end();
}

std::optional<slurm::accounting::View> ManagerWiring::accounting(const slurm::AccountingKey& database) const {
  const slurm::accounting::Lists* lists = clusters_.lists(database);
  return lists == nullptr ? std::nullopt : std::optional(lists->view());
}

kube::CacheBase& ManagerWiring::find_or_make(const AnyCacheOf& wanted) {
  const auto of_manager = [&]<class Record>(const CacheOf<Record>* of) -> kube::CacheBase& {
    if (std::is_same_v<Record, kube::NodeRecord> && !nodes_) return no_nodes_;
    kube::Scope scope;
    scope.label_selector = of->label_selector;
    if (namespaces_.size() == 1 && of->resource.namespaced) scope.ns = namespaces_.front();
    return manager_.cache<Record>(of->resource, scope);
  };
  return std::visit(of_manager, wanted);
}

}  // namespace slinky
