#include "operator/nodeset/testing/world.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "kube/cache/record.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/plan.hpp"
#include "plan/executor.hpp"
#include "slinky/config_map.hpp"
#include "slinky/keys.hpp"
#include "slinky/local_wiring.hpp"
#include "slinky/status.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset::testing {
namespace {

using core::Json;

const std::size_t kMaxSteps = plan::PassLimits{}.max_steps;

/// Adds to the intent what a step changes. Writes of the status, notes of drains, events and confirmations change nothing.
void add_step(plan::Intent& into, const plan::Step& step) {
  if (step.id.is(kStatus) || step.id.is(kNoteDrain) || step.id.is(kEvent) || step.id.is(kConfirm)) return;
  if (const auto* drain = dynamic_cast<const slurm::DrainNodes*>(step.act.get())) {
    for (const std::string& node : drain->nodes) into.add(kDrain.of(node));
  } else {
    into.add(step.id);
  }
}

}  // namespace

World::World(Json spec) {
  now = core::WallTime{core::Duration{1'767'323'045'000}};  // 2026-01-02T03:04:05Z
  capabilities.release = "26.05.5";
  capabilities.requeue = capabilities.topology_update = capabilities.reservations = true;
  Json set{{"apiVersion", api::kApiVersion},
           {"kind", "NodeSet"},
           {"metadata", {{"name", name_}, {"uid", "set-uid"}, {"creationTimestamp", "2026-01-01T00:00:00Z"}}},
           {"spec", {{"controllerRef", {{"name", "demo"}}}, {"slurmd", {{"image", "local/slurmd:26.05"}}}}}};
  set["spec"].merge_patch(spec);
  put(set);
  put({{"apiVersion", api::kApiVersion},
       {"kind", "Controller"},
       {"metadata", {{"name", "demo"}, {"uid", "controller-uid"}}},
       {"spec", Json::object()}});
  put({{"apiVersion", "v1"},
       {"kind", "ConfigMap"},
       {"metadata", {{"name", config_map_name("demo")}}},
       {"data", {{kSlurmConf, "PrologFlags=Contain\n"}}}});
  put({{"apiVersion", "v1"},
       {"kind", "Secret"},
       {"metadata", {{"name", keyring_name("demo")}, {"annotations", {{api::kAnnotationSlurmKeyHash, "a digest"}}}}},
       {"data", {{api::kKeySlurm, core::base64_encode("a key")}}}});
  slurmctld_pod.meta.ns = "default";
  slurmctld_pod.meta.name = "demo-controller-0";
  slurmctld_pod.meta.uid = "slurmctld-uid";
  slurmctld_pod.meta.created = now - core::Duration{3600 * 1000};
  slurmctld_pod.meta.labels = {{std::string(api::kLabelName), std::string(kAppController)},
                               {std::string(api::kLabelInstance), "demo"}};
  slurmctld_pod.phase = "Running";
  slurmctld_pod.conditions = {{"Ready", "True", "", ""}};
  slurmctld_pod.ready_since = now - core::Duration{3600 * 1000};
}

void World::rename(const std::string& name) {
  Json renamed = nodeset();
  renamed["metadata"]["name"] = name;
  op::testing::World::remove("NodeSet", {"default", name_});
  name_ = name;
  put(std::move(renamed));
}

void World::end_cluster(bool drain) {
  controller()["metadata"]["deletionTimestamp"] = core::format_rfc3339(now);
  controller()["spec"]["deletionPolicy"] = drain ? "Drain" : "Immediate";
  controller()["status"]["conditions"] = Json::array({{{"type", api::kConditionProgressing},
                                                       {"status", "True"},
                                                       {"reason", kReasonTerminating},
                                                       {"message", ""},
                                                       {"lastTransitionTime", core::format_rfc3339(now)}}});
}

struct World::Process {
  slurm::SnapshotPtr snapshot;
  LocalWiring wiring{[this](const slurm::ClusterKey&) { return snapshot; }};
  Caches caches{wiring};
  NodeSetController controller{wiring, {.propagated_conditions = {"Trouble"}}};
  std::map<Id, std::pair<Json, kube::ObjectPtr>> records;

  /// Parses a document only if it has changed: parsing takes much of the time of all tests.
  kube::ObjectPtr record_of(const Json& document) {
    auto& [parsed, record] = records[id_of(document)];
    if (record == nullptr || parsed != document) {
      parsed = document;
      record = kube::record_from_json<kube::Object>(document).value();
    }
    return record;
  }
};

slurm::SnapshotPtr World::snapshot() const {
  auto out = std::make_shared<slurm::Snapshot>();
  out->health = health;
  out->requested_at = mono - snapshot_age;
  if (health != slurm::Snapshot::Health::kNone) {
    for (const auto& [name, node] : nodes) out->nodes.emplace(name, std::make_shared<slurm::Node>(node));
    for (const std::string& name : partitions) out->partitions.emplace(name, slurm::Partition{name, name, "UP"});
    for (const auto& [id, job] : jobs) out->jobs.emplace(id, std::make_shared<slurm::Job>(job));
    out->capabilities = capabilities;
    out->job_index = slurm::JobIndex::of(out->jobs);
  }
  if (health != slurm::Snapshot::Health::kComplete) out->error = "connection refused";
  if (!slurm_readable) {
    out->error_code = core::ErrorCode::kInternal;
    out->error = "jobs/: a reply that is not valid JSON";
    out->failures = 3;
  }
  if (!slurm_is_ours) {
    out->error = "slurmrestd is of cluster \"elsewhere\", not of \"default_demo\"";
    out->other_cluster = true;
  }
  return out;
}

KubeNodes World::host_records() const {
  std::map<std::string, kube::NodeRecord> out = hosts;
  // A node that is not in `hosts` has a taint, so that scalingMode DaemonSet places no worker there.
  const auto add = [&](const std::string& name) {
    if (name.empty() || gone_kube_nodes.contains(name) || out.contains(name)) return;
    out[name].meta.name = name;
    out[name].ready = true;
    out[name].taints = {{"test/of-no-worker", "", "NoSchedule"}};
  };
  for (const auto& [name, pod] : pods) add(pod.node_name);
  const Json pins = status().value("ordinalToNode", Json::object());
  for (const auto& [ordinal, name] : pins.items()) add(name);
  KubeNodes all;
  for (const auto& [name, record] : out) all.push_back(std::make_shared<kube::NodeRecord>(record));
  return all;
}

Observed World::observe() {
  tend_reservations();
  if (!process_) process_ = std::make_shared<Process>();
  const auto show = [this]<class Record>(kube::Cache<Record>& cache, std::vector<std::shared_ptr<const Record>> records) {
    cache.replace(std::move(records), next_version());
  };
  const std::vector<const Json*> documents = shown();
  const auto show_all = [&](kube::Cache<kube::Object>& cache, const std::string& kind) {
    std::vector<kube::ObjectPtr> out;
    for (const Json* document : documents) {
      if (core::get_string(*document, {"kind"}) == kind) out.push_back(process_->record_of(*document));
    }
    show(cache, std::move(out));
  };
  const Caches& caches = process_->caches;
  show_all(caches.nodesets, "NodeSet");
  show_all(caches.controllers, "Controller");
  show_all(caches.config_maps, "ConfigMap");
  show_all(caches.controller_revisions, "ControllerRevision");
  show_all(caches.claims, "PersistentVolumeClaim");
  std::vector<kube::PodPtr> all{std::make_shared<kube::PodRecord>(slurmctld_pod)};
  for (const auto& [name, pod] : pods) all.push_back(std::make_shared<kube::PodRecord>(pod));
  show(caches.pods, std::move(all));
  show(caches.nodes, host_records());
  process_->snapshot = snapshot();
  Reader reader(*this);
  run::Controller& base = process_->controller;
  const auto seen = base.observe({"default", name_}, reader, {now, mono, ledger.outcomes(), std::exchange(facts_, {})});
  Observed out = *std::static_pointer_cast<const Observed>(seen);
  if (amend) amend(out);
  return out;
}

int World::run(const plan::Plan& plan) {
  // Answer needs first: a plan that needs facts is not carried out.
  for (const plan::Need& need : plan.needs()) {
    if (dynamic_cast<const kube::List*>(need.query.get()) != nullptr) {
      Json items = Json::array();
      if (!claim_event.empty()) items.push_back({{"note", claim_event}, {"eventTime", core::format_rfc3339(now)}});
      facts_.emplace(need.id, plan::Fact{Json{{"items", std::move(items)}}, mono});
      continue;
    }
    if (dynamic_cast<const slurm::ReadReservations*>(need.query.get()) != nullptr) {
      Json all = Json::array();
      for (const auto& [name, one] : reservations) all.push_back(slurm::to_json(one));
      facts_.emplace(need.id, plan::Fact{std::move(all), mono});
      continue;
    }
    if (dynamic_cast<const kube::DryRun*>(need.query.get()) != nullptr) {
      core::Result<Json> answer = Json::object();
      for (const auto& [prefix, error] : refuse) {
        if (need.id.starts_with(prefix)) answer = std::unexpected(error);
      }
      facts_.emplace(need.id, plan::Fact{std::move(answer), mono});
      continue;
    }
    const auto* get = dynamic_cast<const kube::Get*>(need.query.get());
    if (get == nullptr) violations.push_back("unknown question " + need.query->describe().dump());
    if (get != nullptr && get->resource == resources::kNodeSet) {
      facts_.emplace(need.id, plan::Fact{nodeset(), mono});
      continue;
    }
    const bool node = get != nullptr && get->resource == kube::resources::kNode;
    const bool there = get != nullptr && (node ? !gone_kube_nodes.contains(get->key.name) : pods.contains(get->key.name));
    facts_.emplace(need.id,
                   plan::Fact{there ? core::Result<Json>(Json::object()) : core::fail(core::ErrorCode::kNotFound, ""), mono});
  }
  if (!plan.needs().empty()) return 1;
  ledger.keep(plan);
  note_conflicts(plan);
  std::size_t count = 0;
  for (const auto& [name, lane] : plan.lanes()) {
    bool failed = false;
    for (const auto& group : lane.groups()) {
      if (failed) break;
      for (const plan::Step& step : group) {
        if (count == kMaxSteps) violations.push_back("more steps in a plan than in a pass");
        ++count;
        core::Result<void> result;
        for (const auto& [prefix, error] : refuse) {
          if (step.id.text().starts_with(prefix)) result = std::unexpected(error);
        }
        check_intent(plan.intent, step);
        if (result) result = execute(*step.act);
        ledger.add({{step.id, plan::tried(result, mono)}});
        failed = failed || !result;
        if (!result) continue;
        done.push_back(step.id.text());
        add_step(did, step);
      }
    }
  }
  return static_cast<int>(count);
}

void World::note_conflicts(const plan::Plan& plan) {
  std::map<std::string, std::string> deleted;  // The lanes with deletions, by pod.
  for (const auto& [name, lane] : plan.lanes()) {
    for (const auto& group : lane.groups()) {
      for (const plan::Step& step : group) {
        const auto* act = dynamic_cast<const kube::Delete*>(step.act.get());
        if (act != nullptr && act->resource == kube::resources::kPod) deleted.emplace(act->key.name, name);
      }
    }
  }
  for (const auto& [name, lane] : plan.lanes()) {
    for (const auto& group : lane.groups()) {
      for (const plan::Step& step : group) {
        const auto* act = dynamic_cast<const kube::Patch*>(step.act.get());
        if (act == nullptr || act->resource != kube::resources::kPod) continue;
        const auto lane_of_deletion = deleted.find(act->key.name);
        if (lane_of_deletion != deleted.end() && lane_of_deletion->second != name)
          violations.push_back("beside the deletion of its pod: " + step.id.text());
      }
    }
  }
}

void World::check_intent(const plan::Intent& whole, const plan::Step& step) {
  plan::Intent part;
  add_step(part, step);
  for (const auto& [kind, names] : part.remaining) {
    const auto it = whole.remaining.find(kind);
    for (const std::string& name : names) {
      if (it == whole.remaining.end() || !it->second.contains(name))
        violations.push_back("not in the intent: " + step.id.text());
    }
  }
}

int World::settle(int passes) {
  for (int pass = 1; pass <= passes; ++pass) {
    const plan::Plan plan = plan_nodeset(observe());
    if (run(plan) == 0 && !plan.wake()) return pass;
    advance(core::Duration{300});
  }
  return passes;
}

core::Result<void> World::execute(const plan::Act& act) {
  if (const auto* it = dynamic_cast<const kube::Create*>(&act)) {
    if (it->resource == kube::resources::kPod) return create_pod(*it);
    const bool claim = it->resource == kube::resources::kPersistentVolumeClaim;
    const auto created = op::testing::World::execute(act);
    if (created && claim) document("PersistentVolumeClaim", it->object["metadata"]["name"])["status"]["phase"] = "Pending";
    return created;
  }
  if (const auto* it = dynamic_cast<const kube::Patch*>(&act)) {
    if (it->resource == kube::resources::kPod) return patch_pod(*it);
    if (it->resource != resources::kNodeSet) return op::testing::World::execute(act);
    Json before = nodeset();
    auto patched = op::testing::World::execute(act);
    if (find("NodeSet", {"default", name_}) == nullptr) {  // Tests look at the NodeSet after its deletion.
      before["metadata"]["finalizers"] = Json::array();
      store({"NodeSet", {"default", name_}}, std::move(before));
    }
    if (old_definitions && nodeset().contains("status")) nodeset()["status"].erase("drainsToRestore");
    return patched;
  }
  if (const auto* it = dynamic_cast<const kube::Delete*>(&act)) {
    if (it->uid.empty()) violations.push_back("deletion without uid: " + it->key.str());
    if (it->resource == kube::resources::kPod) return remove_pod(*it);
    const bool claim = it->resource == kube::resources::kPersistentVolumeClaim;
    if (claim && pod_uses(it->key.name)) violations.push_back("deleted a claim that a pod uses: " + it->key.str());
    return op::testing::World::execute(act);
  }
  if (dynamic_cast<const kube::EventAct*>(&act) != nullptr) return op::testing::World::execute(act);
  return slurm_act(act);
}

core::Result<void> World::create_pod(const kube::Create& act) {
  Json object = act.object;
  const std::string name = core::get_string(object, {"metadata", "name"});
  object["metadata"]["uid"] = fmt::format("uid-{}", ++uid_);
  object["metadata"]["resourceVersion"] = next_version();
  object["metadata"]["creationTimestamp"] = core::format_rfc3339(now);
  if (pods.contains(name)) return core::fail(core::ErrorCode::kAlreadyExists, name);
  for (const Json& volume : object["spec"].value("volumes", Json::array())) {
    const std::string claim = core::get_string(volume, {"persistentVolumeClaim", "claimName"});
    if (!claim.empty() && find("PersistentVolumeClaim", {"default", claim}) == nullptr)
      violations.push_back("created without its claim: " + name);
    if (volume["name"] == "ssh-host-keys" && !has_host_keys()) violations.push_back("created without host keys: " + name);
  }
  object["status"]["phase"] = "Pending";
  const auto record = kube::record_from_json<kube::PodRecord>(object);
  if (!record) return std::unexpected(record.error());
  pods[name] = **record;
  for (const Json& container : object["spec"]["containers"]) {
    if (container["name"] != kAppWorker) continue;
    images[name] = container.value("image", "");
    const std::string args = container["args"].dump();
    const std::size_t at = args.find("Weight=");
    conf_weights[name] = at == std::string::npos ? 1 : std::stoi(args.substr(at + 7));
  }
  return {};
}

bool World::pod_uses(const std::string& claim) const {
  return std::ranges::any_of(pods, [&](const auto& pod) { return claim.ends_with("-" + pod.first); });
}

core::Result<void> World::patch_pod(const kube::Patch& act) {
  const auto it = pods.find(act.key.name);
  if (it == pods.end()) return core::fail(core::ErrorCode::kNotFound, act.key.str());
  kube::PodRecord& pod = it->second;
  if (act.uid.empty()) violations.push_back("patch without uid: " + act.key.str());
  if (act.uid != pod.meta.uid) return core::fail(core::ErrorCode::kConflict, "uid");
  pod.meta.resource_version = next_version();
  if (act.type == kube::PatchType::kJson) return patch_tolerations(pod, act.patch);
  if (act.subresource == "status") {
    for (const Json& change : act.patch.at("status").at("conditions")) {
      const std::string type = change.at("type");
      if (!type.starts_with(api::kPodConditionPrefix) && type != api::kPodConditionRegistered)
        violations.push_back("touches condition " + type);
      std::erase_if(pod.conditions, [&](const kube::PodCondition& c) { return c.type == type; });
      if (!change.contains("$patch")) pod.conditions.push_back({type, change.at("status"), "", change.value("message", "")});
    }
    return {};
  }
  const auto apply = [](kube::StringMap& map, const Json& changes) {
    for (const auto& [key, value] : changes.items()) {
      if (value.is_null()) {
        map.erase(key);
      } else {
        map[key] = value.get<std::string>();
      }
    }
  };
  const Json& meta = act.patch.at("metadata");
  for (const Json& owner : meta.value("ownerReferences", Json::array())) {
    if (!owner.contains("$patch")) pod.meta.owners = {{owner["apiVersion"], owner["kind"], owner["name"], owner["uid"], true}};
  }
  if (meta.contains("labels")) apply(pod.meta.labels, meta["labels"]);
  if (meta.contains("annotations")) apply(pod.meta.annotations, meta["annotations"]);
  return {};
}

core::Result<void> World::patch_tolerations(kube::PodRecord& pod, const Json& operations) {
  for (const Json& operation : operations) {
    for (auto& [taint, has] :
         {std::pair{kube::kTaintNotReady, &pod.not_ready}, std::pair{kube::kTaintUnreachable, &pod.unreachable}}) {
      const std::string path = "/spec/tolerations/" + std::to_string(has->index);
      if (operation["op"] == "test" && operation["path"] == path + "/key" && operation["value"] != taint)
        return core::fail(core::ErrorCode::kConflict, "another toleration");
      if (operation["op"] == "remove" && operation["path"] == path + "/tolerationSeconds") has->seconds.reset();
      if (operation["op"] == "add" && operation["value"]["key"] == taint) has->index = 7;
    }
  }
  return {};
}

core::Result<void> World::remove_pod(const kube::Delete& act) {
  const auto it = pods.find(act.key.name);
  if (it == pods.end()) return {};
  kube::PodRecord& pod = it->second;
  if (act.uid != pod.meta.uid) return core::fail(core::ErrorCode::kConflict, "uid");
  if (!act.resource_version.empty() && act.resource_version != pod.meta.resource_version) {
    return core::fail(core::ErrorCode::kConflict, "resourceVersion");
  }
  if (act.evidence && !act.fenced && !act.evidence->good_at(mono)) return core::fail(core::ErrorCode::kExpired, "too old");
  if (!act.evidence) {
    violations.push_back("deletion without evidence: " + act.key.str());
  } else if (act.evidence->kind() != "OwnerEnds" && act.evidence->kind() != "Ended" && job_on(node_of(pod))) {
    violations.push_back("deleted while it runs a job: " + act.key.str());
  }
  if (!pod.meta.deletion_timestamp) pod.meta.deletion_timestamp = now + core::Duration{30000};
  return {};
}

std::string World::node_of(const kube::PodRecord& pod) const {
  const auto other = registers.find(pod.meta.name);
  return other == registers.end() ? slurm_node_name(pod) : other->second;
}

bool World::job_on(const std::string& node) const {
  return std::any_of(jobs.begin(), jobs.end(), [&](const auto& item) {
    const auto& list = item.second.nodes;
    return item.second.holds_nodes() && std::find(list.begin(), list.end(), node) != list.end();
  });
}

core::Result<void> World::slurm_act(const plan::Act& act) {
  if (health != slurm::Snapshot::Health::kComplete) return core::fail(core::ErrorCode::kUnavailable, "connection refused");
  if (const auto* drain = dynamic_cast<const slurm::DrainNodes*>(&act)) {
    for (const std::string& name : drain->nodes) {
      const auto it = nodes.find(name);
      if (it == nodes.end()) continue;
      const bool drains = it->second.state.has("DRAIN");
      const bool renamed = drain->renames && drains && slurm::held_by(it->second.reason, drain->holder);
      if (renamed || slurm::drained_without(it->second, drain->holder)) {
        it->second.reason = slurm::Holds::read(it->second.reason).hold(drain->holder, drain->reason).reason();
        it->second.reason_time = now;
      }
      if (it->second.state.has("DRAIN")) continue;
      const bool failing = it->second.state.flags.erase("FAIL") > 0;  // A node is either drained or failing.
      it->second.state.flags.insert("DRAIN");
      if ((failing || it->second.state.base == "DOWN") && slurm::given_by_others(it->second.reason, slurm::Owner::kOperator)) {
        if (drain->reason.find("scaled in") == std::string::npos)
          violations.push_back("drained a node that somebody set down or failing: " + name);
        continue;
      }
      it->second.reason = slurm::Holds().hold(drain->holder, drain->reason).reason();
      it->second.reason_time = now;
    }
    return {};
  }
  if (const auto* resume = dynamic_cast<const slurm::ResumeNode*>(&act)) {
    const auto it = nodes.find(resume->node);
    if (it == nodes.end()) return core::fail(core::ErrorCode::kNotFound, resume->node);
    if (!slurm::held_by(it->second.reason, resume->holder) && !slurm::down_by_slurm(it->second)) {
      violations.push_back("undid a foreign drain: " + resume->node);
      return core::fail(core::ErrorCode::kConflict, "not ours");
    }
    if (slurm::Holds holds = slurm::Holds::read(it->second.reason); holds.others_than(resume->holder)) {
      it->second.reason = holds.release(resume->holder).reason();
      return {};
    }
    if (it->second.state.flags.erase("FAIL") > 0) violations.push_back("undid a fail: " + resume->node);
    it->second.state.flags.erase("DRAIN");
    if (it->second.state.base == "DOWN") it->second.state.base = "IDLE";
    it->second.reason.clear();
    return {};
  }
  if (const auto* gone = dynamic_cast<const slurm::DeleteNode*>(&act)) {
    if (gone->evidence && !gone->evidence->good_at(mono)) return core::fail(core::ErrorCode::kExpired, "too old");
    const auto held = nodes.find(gone->node);
    const bool is_reserved = held != nodes.end() && held->second.state.has("RESERVED");
    if (is_reserved || job_on(gone->node)) return core::fail(core::ErrorCode::kBusy, "Requested nodes are busy");
    const auto it = nodes.find(gone->node);
    if (it == nodes.end()) return {};
    if (gone->reason != it->second.reason && slurm::given_by_others(it->second.reason, slurm::Owner::kOperator))
      return core::fail(core::ErrorCode::kConflict, "somebody else's");
    if (gone->expected == slurm::NodeEvidence::Live::kSilent && !slurm::is_silent(it->second))
      return core::fail(core::ErrorCode::kConflict, "it answers");
    if (gone->expected == slurm::NodeEvidence::Live::kKept && it->second.state.base != "DOWN" &&
        !it->second.state.has("DRAIN")) {
      return core::fail(core::ErrorCode::kConflict, "neither down nor drained");
    }
    if (gone->expected == slurm::NodeEvidence::Live::kDrained && !it->second.state.has("DRAIN"))
      return core::fail(core::ErrorCode::kConflict, "not drained");
    const Json* cluster = find("Controller", {"default", "demo"});
    const bool ends = cluster == nullptr || (*cluster)["metadata"].contains("deletionTimestamp");
    const bool wanted = !nodeset()["metadata"].contains("deletionTimestamp") && !ends;
    if (wanted && drained_by_others(it->second) && core::find(nodeset(), {"status", "drainsToRestore", gone->node}) == nullptr)
      violations.push_back("lost a foreign drain: " + gone->node);
    nodes.erase(it);
    return {};
  }
  if (const auto* restore = dynamic_cast<const slurm::RestoreReason*>(&act)) {
    slurm::Node& node = nodes.at(restore->node);
    if (!node.state.has("DRAIN") || node.reason != restore->seen)
      return core::fail(core::ErrorCode::kConflict, "changed since");
    node.reason = restore->reason;
    return {};
  }
  if (const auto* end = dynamic_cast<const slurm::EndNode*>(&act)) {
    slurm::Node& node = nodes.at(end->evidence.node().name);
    if (!node.state.has("DRAIN") || !slurm::held_by(node.reason, slurm::Owner::kOperator) ||
        node.slurmd_start_time != end->evidence.slurmd())
      return core::fail(core::ErrorCode::kConflict, "not ours, or of another slurmd");
    for (const auto& [name, pod] : pods) {
      if (node_of(pod) == end->evidence.node().name) violations.push_back("ended under a pod: " + end->evidence.node().name);
    }
    std::erase_if(jobs, [&](const auto& job) {
      return std::ranges::find(job.second.nodes, end->evidence.node().name) != job.second.nodes.end();
    });
    node.state.base = "DOWN";
    return {};
  }
  if (const auto* ends = dynamic_cast<const slurm::EndJobs*>(&act)) {
    if (!ends->evidence.good_at(mono)) return core::fail(core::ErrorCode::kExpired, "too old");
    const std::string& name = ends->evidence.node().name;
    if (!slurm::drained_only_for(nodes.at(name), slurm::Owner::kOperator, ends->evidence.why()))
      violations.push_back("ends jobs of " + name);
    for (const auto& one : ends->evidence.jobs()) {
      if (!jobs.contains(one.id)) continue;
      if (!slurm::may_be_ended(jobs.at(one.id), name, ends->evidence.how())) violations.push_back("ends job " + one.full_id);
      end_job(one.id);
    }
    return {};
  }
  if (const auto* confirm = dynamic_cast<const slurm::ConfirmIdle*>(&act)) {
    if (job_on(confirm->evidence.node().name)) return core::fail(core::ErrorCode::kBusy, "a job holds it");
    const auto it = nodes.find(confirm->evidence.node().name);
    if (it == nodes.end()) return core::fail(core::ErrorCode::kConflict, "gone");
    if (it->second.state.base == "DOWN" || it->second.state.has("DRAIN")) return {};
    return core::fail(core::ErrorCode::kConflict, "neither down nor drained");
  }
  if (const auto* update = dynamic_cast<const slurm::UpdateNode*>(&act)) {
    if (update->update.state || update->update.reason) violations.push_back("a state with an update: " + update->node);
    if (update->update.features) violations.push_back("all features of " + update->node);
    slurm::Node& node = nodes.at(update->node);
    node.comment = update->update.comment.value_or(node.comment);
    node.weight = update->update.weight.value_or(node.weight);
    if (update->own) {
      node.features = slurm::replace_own(node.features, *update->own);
      node.active_features = slurm::replace_own(node.active_features, *update->own);
    }
    if (update->update.topology == "nowhere") return core::fail(core::ErrorCode::kInvalid, "topology is not available");
    node.topology = update->update.topology.value_or(node.topology);
    return {};
  }
  return reservation_act(act);
}

core::Result<void> World::reservation_act(const plan::Act& act) {
  const auto own = [&](const slurm::OwnReservation& evidence) -> core::Result<slurm::Reservation*> {
    const auto found = reservations.find(evidence.seen().name);
    if (!evidence.good_at(mono)) return core::fail(core::ErrorCode::kExpired, "too old");
    if (found == reservations.end()) return nullptr;
    if (!slurm::made_by_operator(found->second)) violations.push_back("touches a reservation of others: " + found->first);
    return &found->second;
  };
  if (const auto* make = dynamic_cast<const slurm::MakeReservation*>(&act)) {
    const slurm::ReservationWish& wish = make->wish;
    if (reservations.contains(wish.name)) return core::fail(core::ErrorCode::kConflict, "there is one");
    if (wish.start + core::Duration{30000} < now) return core::fail(core::ErrorCode::kInvalid, "Invalid time specified");
    if (std::ranges::any_of(wish.nodes, [&](const std::string& name) { return !nodes.contains(name); }))
      violations.push_back("reserves a node that Slurm does not have");
    const bool tracked = kube::has_finalizer(kube::parse_meta(nodeset()), api::kFinalizerReservation);
    if (!tracked) violations.push_back("makes a reservation before it has the finalizer");
    slurm::Reservation made{wish.name, "slurm", wish.nodes, false, {"MAINT", "IGNORE_JOBS", "SPEC_NODES"}, wish.start, {}};
    made.flags.insert(wish.flags.begin(), wish.flags.end());
    made.end = wish.start + wish.duration;
    reservations[wish.name] = std::move(made);
    return {};
  }
  if (const auto* set = dynamic_cast<const slurm::SetReservationNodes*>(&act)) {
    const auto found = own(set->evidence);
    if (!found || *found == nullptr) return core::fail(core::ErrorCode::kConflict, "another, or none");
    for (const std::string& name : (*found)->nodes) {
      const auto node = nodes.find(name);
      const bool taken_out = std::ranges::find(set->nodes, name) == set->nodes.end() && node != nodes.end();
      if (taken_out && !node->second.state.has("DRAIN") && node->second.state.base != "DOWN")
        violations.push_back("takes a node out that may get jobs: " + name);
    }
    (*found)->nodes = set->nodes;
    return {};
  }
  if (const auto* end = dynamic_cast<const slurm::DeleteReservation*>(&act)) {
    const auto found = own(end->evidence);
    if (!found) return std::unexpected(found.error());
    if (*found != nullptr) reservations.erase(end->evidence.seen().name);
    return {};
  }
  violations.push_back("unknown act " + act.describe().dump());
  return {};
}

void World::tend_reservations() {
  std::erase_if(reservations, [&](const auto& one) { return *one.second.end <= now && !one.second.flags.contains("DAILY"); });
  for (auto& [name, node] : nodes) {
    if (node.reservation.empty()) continue;
    node.reservation.clear();
    node.state.flags.erase("RESERVED");
    node.state.flags.erase("MAINTENANCE");
  }
  for (auto& [name, one] : reservations) {
    while (*one.end <= now) {
      one.start = *one.start + core::Duration{86'400'000};
      one.end = *one.end + core::Duration{86'400'000};
    }
    std::erase_if(one.nodes, [&](const std::string& node) { return !nodes.contains(node); });
    if (now < *one.start) continue;
    for (const std::string& node : one.nodes) {
      nodes[node].reservation = name;
      nodes[node].state.flags.insert("RESERVED");
      if (one.flags.contains("MAINT")) nodes[node].state.flags.insert("MAINTENANCE");
    }
  }
  std::erase_if(reservations, [](const auto& one) { return one.second.nodes.empty(); });
}

void World::start_pods() {
  for (auto& [name, pod] : pods) {
    if (pod.phase != "Pending" || pod.meta.terminating()) continue;
    const std::string pin(pod.meta.annotation(api::kAnnotationPinnedTo));
    if (!pin.empty() && gone_kube_nodes.contains(pin)) continue;
    if (pod.node_name.empty()) pod.node_name = !pin.empty() ? pin : pod.pinned_to.empty() ? "kube-1" : pod.pinned_to;
    pod.phase = "Running";
    pod.pod_ip = fmt::format("10.0.0.{}", pods.size());
    pod.meta.resource_version = next_version();
    pod.ready_since = now;
    pod.conditions.push_back({"Ready", "True", "", ""});
    pod.containers.clear();
    kube::ContainerState& slurmd = pod.containers.emplace_back();
    slurmd.name = "slurmd";
    slurmd.ready = slurmd.started_once = true;
    const std::string host = node_of(pod);
    slurm::Node& node = nodes[host];
    if (node.name.empty()) {
      node.name = host;
      node.state.base = "IDLE";
      node.features = {"cpu"};
      if (const auto weight = conf_weights.find(name); weight != conf_weights.end()) node.weight = weight->second;
      // The pod's slurmd sends this drain.
      if (pod.meta.annotations.contains(api::kAnnotationFirstConf)) {
        node.state.flags.insert("DRAIN");
        node.reason = kDrainedBefore;
      }
    }
    // Slurm returns a silent node to service, and leaves any other DOWN node as it is (ReturnToService=1).
    if (node.state.base == "DOWN" && node.reason == slurm::kNotResponding) {
      node.state.base = "IDLE";
      if (!node.state.has("DRAIN") && !node.state.has("FAIL")) node.reason.clear();
    }
    node.address = pod.pod_ip;
    node.hostname = pod.host_network ? host : pod.hostname;
    node.slurmd_start_time = now;
  }
}

void World::user_deletes(const std::string& name) {
  kube::PodRecord& pod = pods.at(name);
  if (pod.meta.terminating()) return;
  pod.meta.deletion_timestamp = now + core::Duration{30000};
  const std::string host = node_of(pod);
  std::vector<std::int64_t> dead;
  for (const auto& [id, job] : jobs) {
    if (std::find(job.nodes.begin(), job.nodes.end(), host) != job.nodes.end()) dead.push_back(id);
  }
  for (const std::int64_t id : dead) end_job(id);
  const auto node = nodes.find(host);
  if (node == nodes.end()) return;
  slurm::NodeState& state = node->second.state;
  if (state.base == "IDLE" && state.has("DRAIN") && slurm::given_by_others(node->second.reason, slurm::Owner::kOperator))
    return;
  const bool held =
      slurm::given_by_others(node->second.reason, slurm::Owner::kOperator) && (state.base == "DOWN" || state.has("DRAIN"));
  if (!held && !state.has("FAIL")) {
    state.flags.insert("DRAIN");
    node->second.reason = "slurm-operator: Pod is terminating (" + pod.meta.uid + ")";
    node->second.reason_time = now;
  }
  state.base = "DOWN";
}

void World::deleted_without_pre_stop(const std::string& name) {
  pods.at(name).meta.deletion_timestamp = now + core::Duration{30000};
}

void World::finish_pods() {
  std::erase_if(pods, [&](const auto& item) {
    if (!item.second.meta.terminating() || !item.second.meta.finalizers.empty()) return false;
    // The pod's slurmd does not answer any more, and slurmctld notices that sooner or later.
    const auto node = nodes.find(node_of(item.second));
    if (node != nodes.end() && node->second.state.base != "DOWN") {
      node->second.state.base = "DOWN";
      if (!node->second.state.has("DRAIN")) node->second.reason = "Not responding";
    }
    return true;
  });
}

kube::PodRecord& World::add_pod(int ordinal) {
  const std::string name = fmt::format("cpu-{}", ordinal);
  kube::PodRecord& pod = pods[name];
  pod.meta.ns = "default";
  pod.meta.name = name;
  pod.meta.uid = fmt::format("uid-{}", ++uid_);
  pod.meta.resource_version = next_version();
  pod.meta.created = now - core::Duration{3600 * 1000};
  pod.meta.owners = {{std::string(api::kApiVersion), "NodeSet", name_, core::get_string(nodeset(), {"metadata", "uid"}), true}};
  pod.meta.labels = {{std::string(api::kLabelName), std::string(kAppWorker)},
                     {std::string(api::kLabelInstance), name_},
                     {std::string(api::kLabelCluster), "demo"}};
  pod.hostname = name;
  pod.phase = "Pending";
  pod.node_name = fmt::format("kube-{}", ordinal);
  pod.not_ready.index = 0;
  pod.unreachable.index = 1;
  if (const auto wanted = api::from_json<api::NodeSet>(nodeset()); wanted && always_protected(wanted->spec))
    pod.meta.labels[std::string(api::kLabelPodProtect)] = "true";
  start_pods();
  pod.ready_since = now - core::Duration{3500 * 1000};
  pod.conditions.push_back({"SlurmNodeStateIdle", "True", "", ""});
  return pod;
}

kube::NodeRecord& World::add_host(const std::string& name, kube::StringMap labels) {
  gone_kube_nodes.erase(name);
  kube::NodeRecord& host = hosts[name];
  host = {};
  host.meta.name = name;
  host.meta.labels = std::move(labels);
  host.meta.created = now + core::Duration{static_cast<std::int64_t>(hosts.size())};
  host.ready = true;
  return host;
}

void World::remove_host(const std::string& name) {
  hosts.erase(name);
  gone_kube_nodes.insert(name);
}

slurm::Node& World::add_node(const std::string& name) {
  slurm::Node& node = nodes[name];
  node.name = name;
  node.state.base = "IDLE";
  node.features = {"cpu"};
  return node;
}

std::int64_t World::add_job(std::vector<std::string> names, std::string state) {
  slurm::Job job;
  job.id = ++job_;
  job.state = std::move(state);
  job.nodes = std::move(names);
  job.end = now + core::Duration{3600 * 1000};
  job.batch = job.requeue = true;
  for (const std::string& name : job.nodes) nodes.at(name).state.base = job.state == "SUSPENDED" ? "IDLE" : "ALLOCATED";
  jobs[job.id] = job;
  return job.id;
}

void World::end_job(std::int64_t id) {
  for (const std::string& name : jobs.at(id).nodes) {
    const auto it = nodes.find(name);
    if (it != nodes.end() && it->second.state.base == "ALLOCATED") it->second.state.base = "IDLE";
  }
  jobs.erase(id);
}

void World::edit(const std::string& field, Json value) {
  spec()[field] = std::move(value);
  nodeset()["metadata"]["generation"] = nodeset()["metadata"]["generation"].get<int>() + 1;
}

std::string World::condition(std::string_view type) const {
  for (const Json& item : status().value("conditions", Json::array())) {
    if (item["type"] == type) return item["status"].get<std::string>() + " " + item["reason"].get<std::string>();
  }
  return "";
}

std::string World::message(std::string_view type) const {
  for (const Json& item : status().value("conditions", Json::array())) {
    if (item["type"] == type) return item["message"].get<std::string>();
  }
  return "";
}

TEST(World, SeesADeletionUnderAJob) {
  World world;
  world.add_pod(0);
  world.add_job({"cpu-0"});
  kube::Delete act;
  act.resource = kube::resources::kPod;
  act.key = {"default", "cpu-0"};
  act.uid = world.pod("cpu-0").meta.uid;
  plan::Plan plan;
  plan.lane("x").add({{"delete x"}, "", std::make_shared<kube::Delete>(act)});
  plan.intent.add({"delete x"});
  world.run(plan);
  EXPECT_EQ(world.violations.size(), 1U);
}

}  // namespace op::nodeset::testing
