// Kubernetes and Slurm in memory, for scenarios that test one controller. The objects of Kubernetes are JSON documents, which
// the real caches and observers read. The acts of a plan change these documents one by one.
//
// The world is not a simulator: it has no garbage collection and no kubelet, and time passes only when a scenario advances it.
// The simulator in sim/ has a garbage collector, kubelets and a clock.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "core/json.hpp"
#include "kube/acts.hpp"
#include "kube/cache/record.hpp"
#include "kube/cache/recorder.hpp"
#include "operator/common/ports.hpp"
#include "operator/common/slinky.hpp"
#include "plan/ledger.hpp"
#include "sim/kube/merge.hpp"
#include "slinky/local_wiring.hpp"
#include "slinky/names.hpp"
#include "slurm/accounting/model.hpp"
#include "slurm/accounting/rows.hpp"
#include "slurm/acts.hpp"
#include "slurm/conf/conf.hpp"
#include "slurm/conf/loaded.hpp"

namespace op::testing {

using core::Json;

/// What slurmctld does. kObeys: works normally. kIgnores: loads no slurm.conf. kRefuses: refuses slurm.conf. kForbids: refuses
/// the token. kBabbles: sends answers that are not JSON. kElsewhere: belongs to another cluster. kSilent: does not answer
/// slurmrestd. kAway: slurmctld and slurmrestd do not answer.
enum class Slurmctld { kObeys, kIgnores, kRefuses, kAway, kForbids, kBabbles, kElsewhere, kSilent };

class World {
 public:
  virtual ~World() = default;
  World() = default;
  World(const World&) = default;
  World& operator=(const World&) = default;

  core::WallTime now{core::Duration{1767225600000}};  // 2026-01-01T00:00:00Z
  core::MonoTime mono{core::Duration{1000000}};
  plan::Ledger ledger;
  Slurmctld slurmctld = Slurmctld::kAway;
  std::string loaded;                        ///< The hash of the configuration that slurmctld has loaded.
  std::map<std::string, slurm::Node> nodes;  ///< The nodes that slurmctld knows.
  slurm::Capabilities capabilities{.release = "26.05", .data_parser = {}, .topology_update = true};
  std::map<std::int64_t, slurm::Job> jobs;             ///< The jobs that slurmctld knows.
  std::vector<slurm::accounting::Cluster> registered;  ///< The clusters that slurmdbd has.
  std::string refusal = "error: bad line";
  std::string bad_text;  ///< Not empty: slurmctld refuses a slurm.conf that contains this text, even with kObeys.
  /// Errors by "Kind/name". Live reads and writes of such an object fail with its error.
  std::map<std::string, core::Error> faults;
  std::vector<std::string> events;  ///< The events so far: "Warning ConfigRefused: note".

  void put(Json document) {
    Json& meta = document["metadata"];
    if (!meta.contains("namespace")) meta["namespace"] = "default";
    const Id id = id_of(document);
    const auto there = objects_.find(id);
    if (there != objects_.end()) {
      const bool changed = there->second.value("spec", Json()) != core::merge(there->second, document).value("spec", Json());
      document = core::merge(there->second, document);
      if (changed) document["metadata"]["generation"] = core::get_int(document, {"metadata", "generation"}) + 1;
    } else {
      if (!meta.contains("uid")) meta["uid"] = "uid-" + std::to_string(++serial_);
      meta["generation"] = 1;
      if (!meta.contains("creationTimestamp")) meta["creationTimestamp"] = core::format_rfc3339(now);
    }
    store(id, std::move(document));
  }

  /// Replaces the spec, as a user does.
  void edit(const std::string& kind, const kube::Key& key, const Json& spec) {
    Json document = objects_.at({kind, key});
    if (document.value("spec", Json()) == spec) return;
    document["spec"] = spec;
    document["metadata"]["generation"] = core::get_int(document, {"metadata", "generation"}) + 1;
    store({kind, key}, std::move(document));
  }

  /// Deletes the object, as a user does. An object with finalizers is only marked as being deleted.
  void remove(const std::string& kind, const kube::Key& key) {
    const auto it = objects_.find({kind, key});
    if (it == objects_.end()) return;
    const Json* finalizers = core::find(it->second, {"metadata", "finalizers"});
    if (finalizers != nullptr && !finalizers->empty()) {
      Json marked = it->second;
      marked["metadata"]["deletionTimestamp"] = core::format_rfc3339(now);
      store(it->first, std::move(marked));
    } else {
      objects_.erase(it);
    }
  }

  /// Cuts the object's watch. Until mend() is called, the cache shows the object, or its absence, as at the time of this call.
  void cut(const std::string& kind, const kube::Key& key) {
    const Json* now_shown = find(kind, key);
    cut_[{kind, key}] = now_shown == nullptr ? std::nullopt : std::optional(*now_shown);
  }
  void mend() { cut_.clear(); }

  [[nodiscard]] const Json* find(const std::string& kind, const kube::Key& key) const {
    const auto it = objects_.find({kind, key});
    return it == objects_.end() ? nullptr : &it->second;
  }

  /// Returns a document for direct changes. Throws std::out_of_range if the namespace default has no such object.
  [[nodiscard]] Json& document(const std::string& kind, const std::string& name) {
    return objects_.at({kind, {"default", name}});
  }

  /// The documents of a kind, by name.
  [[nodiscard]] std::map<std::string, Json> documents(const std::string& kind) const {
    std::map<std::string, Json> out;
    for (const auto& [id, document] : objects_) {
      if (id.first == kind) out.emplace(id.second.name, document);
    }
    return out;
  }

  [[nodiscard]] std::vector<Json> objects() const {
    std::vector<Json> out;
    for (const auto& [id, document] : objects_) out.push_back(document);
    return out;
  }

  /// Sets whether the operator polls Slurm. While polling is off, the operator sees the snapshot of Slurm from the time of this
  /// call, and the snapshot becomes old.
  void poll(bool polls) {
    last_answer_ = nullptr;
    if (!polls) last_answer_ = snapshot();
  }

  /// Restarts the operator.
  virtual void restart() { ledger = {}; }

  void advance(core::Duration d) {
    now = now + d;
    mono = mono + d;
  }

  /// Fills the caches, observes and plans, as the manager would.
  template <class Controller>
  plan::Plan plan(const kube::Key& key) {
    LocalWiring wiring([this](const slurm::ClusterKey&) { return snapshot(); }, true,
                       [this](const slurm::AccountingKey&) { return accounting(); });
    Controller controller(wiring);
    wiring.show(shown(), next_version());
    Reader reader(*this);
    plan::Facts facts;
    for (;;) {
      const auto observed =
          static_cast<run::Controller&>(controller).observe(key, reader, {now, mono, ledger.outcomes(), facts});
      if (observed == nullptr) throw std::logic_error("not all caches are synced");
      plan::Plan made = static_cast<run::Controller&>(controller).plan(observed.get());
      const std::vector<plan::Need> open = plan::open_needs(made, facts);
      for (const plan::Need& need : open) facts.emplace(need.id, plan::Fact{answer(*need.query), mono});
      if (!open.empty()) continue;
      ledger.keep(made);
      return made;
    }
  }

  /// Carries a plan out. Returns the ids of the tried steps. The ids of failed steps begin with "!".
  std::vector<std::string> carry_out(const plan::Plan& plan) {
    std::vector<std::string> tried;
    for (const auto& [name, lane] : plan.lanes()) {
      for (const auto& group : lane.groups()) {
        bool failed = false;
        for (const plan::Step& step : group) {
          const core::Result<void> result = execute(*step.act);
          tried.push_back((result ? "" : "!") + step.id.text());
          ledger.add({{step.id, plan::tried(result, mono)}});
          failed = failed || !result;
        }
        if (failed) break;
      }
    }
    return tried;
  }

 protected:
  using Id = std::pair<std::string, kube::Key>;

  class Reader final : public kube::Recorder {
   public:
    explicit Reader(const World& world) : world_(world) {}
    kube::Named<kube::SecretRecord> secret(const kube::Key& key) override { return read<kube::SecretRecord>("Secret", key); }
    kube::Named<kube::Object> object(const kube::Resource& resource, const kube::Key& key) override {
      return read<kube::Object>(resource.kind, key);
    }
    kube::Named<kube::MetadataRecord> metadata(const kube::Resource& resource, const kube::Key& key) override {
      return read<kube::MetadataRecord>(resource.kind, key);
    }

   private:
    template <class Record>
    kube::Named<Record> read(const std::string& kind, const kube::Key& key) {
      const Json* document = world_.find(kind, key);
      if (document == nullptr) return {kube::Presence::kAbsent, nullptr};
      return {kube::Presence::kPresent, kube::record_from_json<Record>(*document).value()};
    }
    const World& world_;
  };

  static constexpr const char* kManager = "operator";

  static Id id_of(const Json& document) { return {core::get_string(document, {"kind"}), kube::key_of(document)}; }

  void store(const Id& id, Json document) {
    document["metadata"]["resourceVersion"] = std::to_string(++serial_);
    objects_[id] = std::move(document);
  }

  /// Returns all objects as the caches show them. An object whose watch is cut is shown as it was when the watch was cut.
  [[nodiscard]] std::vector<const Json*> shown() const {
    std::map<Id, const Json*> by_id;
    for (const auto& [id, document] : objects_) by_id[id] = &document;
    for (const auto& [id, document] : cut_) {
      by_id.erase(id);
      if (document) by_id.emplace(id, &*document);
    }
    std::vector<const Json*> out;
    for (const auto& [id, document] : by_id) out.push_back(document);
    return out;
  }
  std::string next_version() { return std::to_string(++serial_); }

  /// Answers a live read of a plan. Supports only field selectors like "a.b=value,c=value".
  [[nodiscard]] core::Result<Json> answer(const plan::Act& query) const {
    if (const auto* get = dynamic_cast<const kube::Get*>(&query)) {
      if (auto broken = fault({get->resource.kind, get->key}); !broken) return std::unexpected(broken.error());
      const Json* document = find(get->resource.kind, get->key);
      return document != nullptr ? core::Result<Json>(*document) : core::fail(core::ErrorCode::kNotFound, "not found");
    }
    if (const auto* log = dynamic_cast<const kube::Log*>(&query)) {
      const Json* pod = find("Pod", log->pod);
      if (pod == nullptr) return core::fail(core::ErrorCode::kNotFound, "not found");
      return Json{{"log", core::get_string(*pod, {"log", log->container})}};
    }
    if (dynamic_cast<const slurm::ReadAccountingClusters*>(&query) != nullptr) {
      if (auto broken = fault({"Slurm", {"", "clusters"}}); !broken) return std::unexpected(broken.error());
      Json rows = Json::array();
      for (const slurm::accounting::Cluster& cluster : registered) rows.push_back(to_json(cluster));
      return rows;
    }
    if (const auto* reach = dynamic_cast<const ReachPort*>(&query)) {
      if (auto broken = fault({"Port", {"", reach->port.str()}}); !broken) return std::unexpected(broken.error());
      return Json();
    }
    const auto* list = dynamic_cast<const kube::List*>(&query);
    if (list == nullptr) return core::fail(core::ErrorCode::kUnsupported, query.describe().dump());
    if (auto broken = fault({list->resource.kind, {list->ns, ""}}); !broken) return std::unexpected(broken.error());
    Json items = Json::array();
    for (const auto& [id, document] : objects_) {
      if (id.first == list->resource.kind && id.second.ns == list->ns && selected(document, list->field_selector))
        items.push_back(document);
    }
    return Json{{"items", std::move(items)}};
  }

  static bool selected(const Json& document, const std::string& selector) {
    std::istringstream clauses(selector);
    for (std::string clause; std::getline(clauses, clause, ',');) {
      const std::size_t equals = clause.find('=');
      std::istringstream path(clause.substr(0, equals));
      const Json* at = &document;
      for (std::string part; at != nullptr && std::getline(path, part, '.');) at = core::find(*at, {part});
      if (at == nullptr || *at != clause.substr(equals + 1)) return false;
    }
    return true;
  }

  /// Returns the lists of the accounting database.
  [[nodiscard]] virtual std::optional<slurm::accounting::View> accounting() { return {}; }

  [[nodiscard]] slurm::SnapshotPtr snapshot() const {
    if (last_answer_) return last_answer_;
    auto out = std::make_shared<slurm::Snapshot>();
    if (slurmctld == Slurmctld::kForbids) {
      out->error = "authentication failed";
      out->error_code = core::ErrorCode::kUnauthorized;
    }
    if (slurmctld == Slurmctld::kBabbles) {
      out->error = "jobs/: a reply that is not valid JSON";
      out->error_code = core::ErrorCode::kInternal;
      out->failures = 3;
      return out;
    }
    if (slurmctld == Slurmctld::kSilent) {
      out->error = "slurmctld does not answer slurmrestd";
      out->from_server = true;
      out->failures = 3;
      return out;
    }
    if (slurmctld == Slurmctld::kElsewhere) {
      out->error = "slurmctld is of cluster \"elsewhere\", not of \"site\"";
      out->other_cluster = true;
      return out;
    }
    if (slurmctld == Slurmctld::kAway || slurmctld == Slurmctld::kForbids) return out;
    out->health = slurm::Snapshot::Health::kComplete;
    out->requested_at = mono;
    out->capabilities = capabilities;
    const std::string name = slurm::conf::marker_name(slurm::Owner::kOperator, loaded);
    for (const auto& [node_name, node] : nodes) out->nodes.insert_or_assign(node_name, std::make_shared<slurm::Node>(node));
    for (const auto& [id, job] : jobs) out->jobs.insert_or_assign(id, std::make_shared<slurm::Job>(job));
    if (!loaded.empty()) out->partitions.insert_or_assign(name, slurm::Partition{name, "", "INACTIVE", true});
    const slurm::conf::Conf runs = slurm::conf::parse(slurm::conf::Kind::kSlurm, loaded_text()).conf;
    for (const slurm::conf::Entry& entry : runs.entries()) {
      if (entry.head().key != "PartitionName" || slurm::conf::is_marker(slurm::Owner::kOperator, entry.head().value)) continue;
      slurm::Partition partition{entry.head().value, "", "UP"};
      for (const slurm::conf::Setting& setting : entry.settings) {
        if (setting.key == "State") partition.state = setting.value;
        if (setting.key == "Nodes") partition.nodes = setting.value;
      }
      out->partitions.insert_or_assign(partition.name, partition);
    }
    return out;
  }

  /// Returns the slurm.conf with which slurmctld runs, or "" if no ConfigMap has that file any more.
  [[nodiscard]] std::string loaded_text() const {
    for (const auto& [id, document] : objects_) {
      if (id.first != "ConfigMap") continue;
      for (const auto& [hash, file] :
           {std::pair("slurm-config-hash", "slurm.conf"), std::pair("accepted-config-hash", "accepted.slurm.conf")}) {
        const bool runs =
            core::get_string(document, {"metadata", "annotations", std::string("slinky.slurm.net/") + hash}) == loaded;
        const std::string text = core::get_string(document, {"data", file});
        if (runs && !text.empty()) return text;
      }
    }
    return "";
  }

  virtual core::Result<void> execute(const plan::Act& act) {
    if (const auto* create = dynamic_cast<const kube::Create*>(&act)) return run(*create);
    if (const auto* apply = dynamic_cast<const kube::Apply*>(&act)) return run(*apply);
    if (const auto* patch = dynamic_cast<const kube::Patch*>(&act)) return run(*patch);
    if (const auto* gone = dynamic_cast<const kube::Delete*>(&act)) return run(*gone);
    if (const auto* event = dynamic_cast<const kube::EventAct*>(&act)) {
      events.push_back(event->type + " " + event->reason + ": " + event->note);
      return {};
    }
    if (dynamic_cast<const slurm::Reconfigure*>(&act) != nullptr) return reconfigure();
    if (dynamic_cast<const slurm::ConfirmNoneStarts*>(&act) != nullptr) {
      if (auto broken = fault({"Slurm", {"", "jobs"}}); !broken) return broken;
      const bool any = std::ranges::any_of(jobs, [](const auto& entry) { return entry.second.starting(); });
      return any ? core::fail(core::ErrorCode::kBusy, "a job is starting") : core::Result<void>{};
    }
    if (dynamic_cast<const slurm::ConfirmNoJobs*>(&act) != nullptr)
      return jobs.empty() ? core::Result<void>{} : core::fail(core::ErrorCode::kBusy, "there are jobs");
    if (const auto* gone = dynamic_cast<const slurm::DeleteNode*>(&act)) return run(*gone);
    return core::fail(core::ErrorCode::kUnsupported, act.describe().dump());
  }

  core::Result<void> fault(const Id& id) const {
    const auto it = faults.find(id.first + "/" + id.second.name);
    if (it == faults.end()) return {};
    return std::unexpected(it->second);
  }

  core::Result<void> run(const kube::Create& act) {
    Json document = with_values(act.object);
    document["kind"] = act.resource.kind;
    if (auto broken = fault(id_of(document)); !broken) return broken;
    if (objects_.contains(id_of(document))) return core::fail(core::ErrorCode::kAlreadyExists, "already exists");
    put(std::move(document));
    return {};
  }

  core::Result<void> run(const kube::Apply& act) {
    const Id id = id_of(act.object);
    if (auto broken = fault(id); !broken) return broken;
    const auto there = objects_.find(id);
    if (there == objects_.end()) {
      owners_[id] = {{kManager, sim::fields_of(act.object, false)}};
      put(act.object);
      return {};
    }
    const auto is_ours = [](const kube::OwnerReference& owner) { return owner.api_version.starts_with(api::kGroup); };
    if (act.unseen && std::ranges::none_of(kube::parse_meta(there->second).owners, is_ours))
      return core::fail(core::ErrorCode::kAlreadyExists, id.first + " " + id.second.str() + " is somebody else's");
    sim::ApplyResult applied = sim::apply_config(there->second, owners_[id], act.object, kManager, true, false);
    Json& next = applied.object;
    if (two_handlers(next)) return core::fail(core::ErrorCode::kInvalid, "may not specify more than 1 handler type");
    if (id.first == "Service" && twin_ports(next))
      return core::fail(core::ErrorCode::kInvalid, "Duplicate value: a port's name");
    if (core::find(next, {"spec", "minAvailable"}) && core::find(next, {"spec", "maxUnavailable"}))
      return core::fail(core::ErrorCode::kInvalid, "minAvailable and maxUnavailable cannot be both set");
    if (there->second.value("spec", Json()) != next.value("spec", Json()))
      next["metadata"]["generation"] = core::get_int(next, {"metadata", "generation"}) + 1;
    owners_[id] = std::move(applied.owners);
    store(id, std::move(next));
    return {};
  }

  core::Result<void> run(const kube::Patch& act) {
    const Id id{act.resource.kind, act.key};
    if (auto broken = fault(id); !broken) return broken;
    const auto it = objects_.find(id);
    if (it == objects_.end()) return core::fail(core::ErrorCode::kNotFound, "not found");
    const kube::ObjectMeta meta = kube::parse_meta(it->second);
    if ((!act.uid.empty() && act.uid != meta.uid) ||
        (!act.resource_version.empty() && act.resource_version != meta.resource_version)) {
      return core::fail(core::ErrorCode::kConflict, "a precondition does not hold");
    }
    Json document = it->second;
    if (act.type == kube::PatchType::kJson) {
      auto patched = sim::json_patch(document, act.patch);
      if (!patched) return std::unexpected(patched.error());
      document = *std::move(patched);
    } else if (act.type == kube::PatchType::kStrategic) {
      sim::strategic_patch(document, act.patch);
    } else {
      sim::merge_patch(document, with_values(act.patch));
    }
    const Json* finalizers = core::find(document, {"metadata", "finalizers"});
    if (meta.terminating() && (finalizers == nullptr || finalizers->empty())) {
      objects_.erase(it);
    } else {
      store(id, std::move(document));
    }
    return {};
  }

  core::Result<void> run(const kube::Delete& act) {
    const Id id{act.resource.kind, act.key};
    if (auto broken = fault(id); !broken) return broken;
    const auto it = objects_.find(id);
    if (it == objects_.end()) return {};
    const kube::ObjectMeta meta = kube::parse_meta(it->second);
    if (meta.uid != act.uid || (!act.resource_version.empty() && meta.resource_version != act.resource_version))
      return core::fail(core::ErrorCode::kConflict, "a precondition does not hold");
    remove(id.first, id.second);
    return {};
  }

  /// Deletes a node record. Refuses if the live node is not in the state that slurm::Target would require.
  core::Result<void> run(const slurm::DeleteNode& act) {
    const auto it = nodes.find(act.node);
    if (it == nodes.end()) return {};
    if (act.expected == slurm::NodeEvidence::Live::kKept && !it->second.state.has("DRAIN") && it->second.state.base != "DOWN")
      return core::fail(core::ErrorCode::kConflict, "it is neither drained nor down");
    nodes.erase(it);
    return {};
  }

  core::Result<void> reconfigure() {
    switch (slurmctld) {
      case Slurmctld::kForbids:
      case Slurmctld::kBabbles:
      case Slurmctld::kElsewhere:
      case Slurmctld::kSilent:
      case Slurmctld::kAway:
        return core::fail(core::ErrorCode::kUnavailable, "slurmctld is away");
      case Slurmctld::kRefuses:
        return core::fail(core::ErrorCode::kInvalid, refusal);
      case Slurmctld::kIgnores:
        return {};
      case Slurmctld::kObeys:
        break;
    }
    for (const auto& [id, document] : objects_) {
      const std::string hash = core::get_string(document, {"metadata", "annotations", "slinky.slurm.net/slurm-config-hash"});
      if (id.first != "ConfigMap" || hash.empty()) continue;
      if (!bad_text.empty() && core::get_string(document, {"data", "slurm.conf"}).find(bad_text) != std::string::npos)
        return core::fail(core::ErrorCode::kInvalid, refusal);
      loaded = hash;
    }
    return {};
  }

  /// Replaces each $copy recipe by the copied value, and each other recipe by a new value. Adds the public keys of $sshKey
  /// recipes.
  Json with_values(Json document) {
    if (!document.contains("data") || !document["data"].is_object()) return document;
    const Json recipes = document["data"];
    for (const auto& [name, recipe] : recipes.items()) {
      const std::string public_key = core::get_string(recipe, {"$sshKey", "publicKey"});
      if (!public_key.empty()) document["data"][public_key] = core::base64_encode("of " + name);
    }
    for (auto& [name, value] : document["data"].items()) {
      if (!value.is_object() || value.empty() || !value.begin().key().starts_with('$')) continue;
      if (const Json* copy = core::find(value, {"$copy"})) {
        value = copied(*copy);
        continue;
      }
      value = core::base64_encode(value.dump() + " " + std::to_string(++serial_));
    }
    return document;
  }

  /// Returns the value for a recipe $copy. Throws std::logic_error if kube::Target would fail.
  [[nodiscard]] Json copied(const Json& recipe) const {
    const Json* source = find("Secret", {core::get_string(recipe, {"namespace"}), core::get_string(recipe, {"name"})});
    if (source == nullptr) throw std::logic_error("no Secret to copy from");
    for (const char* same : {"uid", "resourceVersion"}) {
      if (source->at("metadata").at(same) != recipe.at(same)) throw std::logic_error("another Secret to copy from");
    }
    return source->at("data").at(core::get_string(recipe, {"key"}));
  }

  /// True if two ports of a Service have the same name. The API server refuses such a Service.
  static bool twin_ports(const Json& service) {
    std::set<std::string> names;
    const Json* ports = core::find(service, {"spec", "ports"});
    return ports != nullptr && std::ranges::any_of(*ports, [&](const Json& port) {
             return !names.insert(core::get_string(port, {"name"})).second;
           });
  }

  /// True if a probe or hook has more than one handler. The API server refuses such an object.
  static bool two_handlers(const Json& at) {
    if (!at.is_structured()) return false;
    int handlers = 0;
    for (const char* handler : {"httpGet", "tcpSocket", "exec", "grpc"})
      handlers += at.is_object() && at.contains(handler) ? 1 : 0;
    return handlers > 1 || std::any_of(at.begin(), at.end(), two_handlers);
  }

  std::map<Id, Json> objects_;
  std::map<Id, std::optional<Json>> cut_;  ///< What caches show of objects whose watch is cut.
  std::map<Id, sim::FieldOwners> owners_;  ///< For each applied object, which manager owns which fields.
  int serial_ = 100;
  slurm::SnapshotPtr last_answer_;  ///< The snapshot while Slurm is not polled; nullptr: each observation takes a new one.
};

}  // namespace op::testing
