// A Wiring without a manager, for unit tests and for code that reads the controllers' declarations. The caller fills the
// caches. LocalWiring records the woken keys and runs no controller.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <typeindex>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "kube/cache/record.hpp"
#include "kube/label_selector.hpp"
#include "slinky/wiring.hpp"

namespace slinky {

class LocalWiring final : public Wiring {
 public:
  using AccountingSource = std::function<std::optional<slurm::accounting::View>(const slurm::AccountingKey&)>;
  /// `nodes`: whether the program has the right to read Kubernetes nodes.
  explicit LocalWiring(SnapshotSource snapshot = nullptr, bool nodes = true, AccountingSource accounting = nullptr)
      : snapshot_(std::move(snapshot)), accounting_(std::move(accounting)), nodes_(nodes) {}
  LocalWiring(const LocalWiring&) = delete;
  LocalWiring& operator=(const LocalWiring&) = delete;

  std::vector<std::string> woken;      ///< The woken keys in order, each with its controller: "restapi ns/x".
  std::vector<std::string> elsewhere;  ///< Namespaces in which acts_in() returns false.

  /// Fills the caches that are declared so far: each with the documents that it selects. All these caches are then synced.
  void show(const std::vector<const core::Json*>& documents, const std::string& rv) {
    for (const auto& show_in : shows_) show_in(documents, rv);
  }

  /// Puts the document into the cache, in namespace "ns" and with a new resourceVersion. Returns the keys that were woken.
  template <class Record>
  const std::vector<std::string>& put(kube::Cache<Record>& cache, core::Json document) {
    document["metadata"]["namespace"] = "ns";
    document["metadata"]["resourceVersion"] = std::to_string(++version_);
    woken.clear();
    cache.upsert(kube::record_from_json<Record>(document).value());
    return woken;
  }

  void run(run::Controller&) override {}
  [[nodiscard]] slurm::SnapshotPtr snapshot(const slurm::ClusterKey& cluster) const override {
    return snapshot_ ? snapshot_(cluster) : nullptr;
  }
  [[nodiscard]] std::optional<slurm::accounting::View> accounting(const slurm::AccountingKey& database) const override {
    return accounting_ ? accounting_(database) : std::nullopt;
  }
  [[nodiscard]] bool acts_in(std::string_view ns) const override { return std::ranges::find(elsewhere, ns) == elsewhere.end(); }
  [[nodiscard]] bool reads_nodes() const override { return nodes_; }

 private:
  template <class Record>
  kube::Cache<Record>& own(const CacheOf<Record>& wanted) {
    std::unique_ptr<kube::CacheBase>& known =
        caches_[{typeid(Record), wanted.resource.kind, std::string(wanted.label_selector)}];
    if (known) return static_cast<kube::Cache<Record>&>(*known);
    auto made = std::make_unique<kube::Cache<Record>>();
    kube::Cache<Record>& out = *made;
    known = std::move(made);
    shows_.push_back([&out, &wanted](const std::vector<const core::Json*>& documents, const std::string& rv) {
      std::vector<std::shared_ptr<const Record>> records;
      for (const core::Json* document : documents) {
        if (core::get_string(*document, {"kind"}) != wanted.resource.kind) continue;
        auto record = kube::record_from_json<Record>(*document).value();
        if (kube::matches_labels(wanted.label_selector, record->meta.labels)) records.push_back(std::move(record));
      }
      out.replace(std::move(records), rv);
    });
    return out;
  }

  kube::CacheBase& find_or_make(const AnyCacheOf& wanted) override {
    return std::visit([this](const auto* of) -> kube::CacheBase& { return own(*of); }, wanted);
  }
  void wake(std::string_view controller, const kube::Key& key) override {
    woken.push_back(std::string(controller) + " " + key.str());
  }

  SnapshotSource snapshot_;
  AccountingSource accounting_;
  bool nodes_;
  int version_ = 0;
  /// The caches by type of record, kind and selector.
  std::map<std::tuple<std::type_index, std::string, std::string>, std::unique_ptr<kube::CacheBase>> caches_;
  std::vector<std::function<void(const std::vector<const core::Json*>&, const std::string&)>> shows_;
};

}  // namespace slinky
