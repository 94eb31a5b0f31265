#include "sim/histories/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "api/token.hpp"
#include "api/well_known.hpp"
#include "cluster/names.hpp"
#include "core/base64.hpp"
#include "sim/oracles/agents.hpp"
#include "sim/slurm/text.hpp"

namespace sim {
namespace {

using core::Duration;
using core::Json;
namespace kinds = kube::resources;

/// Within this long after the last fault the declared state is reached. slurmctld takes SlurmdTimeout (5 min) to miss a slurmd,
/// a pod of a lost Kubernetes node stays for longer, and backoffs of crashed containers run up to 5 min.
constexpr Duration kSettle{std::chrono::minutes{25}};
constexpr Duration kRest{std::chrono::minutes{3}};
/// Whatever was coalesced or put off comes within this; a watch whose request was lost is missed after 30 s, and tried again up
/// to 30 s later.
constexpr Duration kBeforeRest{std::chrono::seconds{70}};

const std::vector<std::string> kNodeSets{"cpu", "gpu", "big"};
const std::vector<std::string> kUsers{"alice", "bob", "carol"};
constexpr const char* kRefusedConf = "PartitionName=extra Nodes=nosuch\n";
constexpr const char* kNoImage = "local/nonesuch:1";
constexpr const char* kOtherSlurmd = "local/slurmd:other";
constexpr const char* kOtherSlurmctld = "local/slurmctld:other";
constexpr const char* kReservation = "window";
constexpr const char* kBadDisk = "disk is failing";
constexpr const char* kBadPower = "power supply";
/// MiB: less than any worker was ever registered with.
constexpr std::int64_t kLittleMemory = 500;

std::string first_few(const std::vector<std::string>& reasons) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(reasons.size(), 6); ++i) out += (i == 0 ? "" : "; ") + reasons[i];
  return out;
}

}  // namespace

namespace {

/// A token and its status at four fifths of each life; or the status and the event of one that expires.
std::uint64_t token_writes_due(const World& world, Duration length) {
  std::uint64_t out = 0;
  for (const std::string& name : world.names(op::resources::kToken)) {
    const auto token = api::from_json<api::Token>(*world.find(op::resources::kToken, name));
    if (!token) continue;
    const Duration life = token->spec.lifetime.value_or(api::kDefaultTokenLifetime);
    out += 2 * (1 + (token->spec.refresh ? static_cast<std::uint64_t>(length / (life * 4 / 5)) : 0));
  }
  return out;
}

}  // namespace

std::vector<std::string> check_rest(World& world, Duration length) {
  world.loop().run_for(kBeforeRest);
  const std::uint64_t before = world.oracles().writes(), before_of_tokens = world.oracles().token_writes();
  world.loop().run_for(length);
  const std::uint64_t kept_fresh = world.oracles().token_writes() - before_of_tokens;
  const std::uint64_t written = world.oracles().writes() - before - kept_fresh;
  std::vector<std::string> out;
  if (written > 0) out.push_back(fmt::format("{} writes in {} s of rest", written, length.count() / 1000));
  const std::uint64_t due = token_writes_due(world, length);
  if (kept_fresh > due)
    out.push_back(fmt::format("{} writes of Tokens in {} s of rest, of {} due", kept_fresh, length.count() / 1000, due));
  return out;
}

History::History(World& world)
    : world_(world),
      random_(world.random().fork()),
      more_(~world.options().seed),
      own_keys_(random_.chance(0.4)),
      own_files_(random_.chance(0.5)),
      taken_key_(!own_keys_ && random_.chance(0.25)),
      // Without a volume generated keys go with their Controller.
      volatile_(random_.chance(taken_key_ ? 0.6 : 0.1)) {
  for (const char* image : {kOtherSlurmd, kOtherSlurmctld}) world_.kube().nodes().add_image(image);
  // A slurmctld with much to do is slow all the time, also when all else is well.
  if (random_.chance(0.15)) fair_.latency = Duration{random_.between(100, 2500)};
  usual_ = fair_;
  world_.slurm_rates = fair_;
  fill_actions();
  if (more_.chance(0.5)) fill_more();
}

std::vector<std::string> History::run() {
  found_cluster();
  storm();
  if (world_.oracles().ok()) calm();
  if (world_.oracles().ok() && wrong_.empty() && random_.chance(0.5)) end();
  std::vector<std::string> out = world_.oracles().violations();
  out.insert(out.end(), wrong_.begin(), wrong_.end());
  return out;
}

std::string History::some(const std::vector<std::string>& names) {
  return names.empty() ? "" : names[random_.below(names.size())];
}

std::string History::some_node() {
  std::vector<std::string> out;
  if (const SimSlurm* slurm = world_.slurm()) {
    for (const auto& [name, node] : slurm->nodes()) out.push_back(name);
  }
  return some(out);
}

void History::found_cluster() {
  std::vector<std::function<void()>> first{
      [&] { world_.apply(controller()); },
      [&] { world_.apply(restapi_json()); },
      [&] { world_.apply(nodeset_json("cpu", static_cast<int>(random_.between(1, 4)))); },
      [&] { world_.start_operators(); },
  };
  if (random_.chance(0.5))
    first.emplace_back([&] { world_.apply(nodeset_json("gpu", static_cast<int>(random_.between(0, 3)))); });
  if (!world_.options().namespaces.empty()) {
    first.emplace_back([&] {
      for (const Json& object : {controller(), restapi_json(), nodeset_json("cpu", 2)})
        world_.apply(object, World::kOtherNamespace);
    });
  }
  if (taken_key_) {
    const std::string name = op::generated_jwt_key_name(World::kCluster);
    world_.apply(secret_json(name, {{std::string(api::kKeyJwt), random_.bytes(32)}}));
  }
  // Some come only in the storm.
  for (const std::string& name : inputs()) {
    if (random_.chance(0.8)) first.emplace_back([this, name] { put_input(name); });
  }
  // In any order: what names others may come before them.
  for (std::size_t i = first.size(); i > 1; --i) std::swap(first[i - 1], first[random_.below(i)]);
  for (const auto& act : first) {
    act();
    world_.loop().run_for(Duration{random_.between(0, 2000)});
  }
  world_.loop().run_for(Duration{random_.between(0, 40000)});
}

/// Faults come in spells.
void History::weather() {
  Faults& faults = world_.faults();
  const double rate = random_.chance(0.4) ? 0.0 : random_.chance(0.7) ? 0.01 : 0.05;
  faults.rates = FaultRates::all(rate);
  if (random_.chance(0.5)) faults.rates.crash_before = faults.rates.crash_after = rate / 2;
  // One bad thing at a time, now and then, and much of it.
  if (random_.chance(0.2)) faults.rates.cut = 0.2;
  if (random_.chance(0.1)) faults.rates.forbidden = 0.3;
  if (random_.chance(0.1)) faults.rates.lost_reply = 0.3;
  if (random_.chance(0.1)) faults.rates.withhold_bookmark = 1.0;
  SlurmRates& slurm = world_.slurm_rates;
  slurm = fair_;
  if (random_.chance(0.3)) {
    slurm.unchanged = slurm.refused = slurm.slow = slurm.empty = slurm.bare = slurm.partial = slurm.error = slurm.lost = 0.02;
  }
  if (random_.chance(0.1)) slurm.unchanged = random_.chance(0.5) ? 0.5 : 1.0;
  if (random_.chance(0.1)) slurm.refused = 1.0;
  if (random_.chance(0.1)) slurm.slow = 0.5;
  if (random_.chance(0.1)) slurm.empty = 0.5;
  if (random_.chance(0.1)) slurm.bare = 0.5;
  if (random_.chance(0.1)) slurm.partial = 0.5;
  if (random_.chance(0.1)) slurm.lost = 0.5;
}

void History::storm() {
  const core::MonoTime end = world_.loop().clock().mono() + Duration{random_.between(60000, 420000)};
  const auto act = [](const std::vector<Action>& actions, SeededRandom& random) {
    const int total =
        std::accumulate(actions.begin(), actions.end(), 0, [](int sum, const Action& a) { return sum + a.weight; });
    auto pick = static_cast<int>(random.below(static_cast<std::uint64_t>(total)));
    for (const Action& action : actions) {
      pick -= action.weight;
      if (pick < 0) return action.act();
    }
  };
  core::MonoTime next_weather = world_.loop().clock().mono();
  while (world_.loop().clock().mono() < end && world_.oracles().ok()) {
    if (next_weather <= world_.loop().clock().mono()) {
      weather();
      next_weather = world_.loop().clock().mono() + Duration{random_.between(5000, 60000)};
    }
    act(actions_, random_);
    if (!extra_.empty() && more_.chance(0.15)) act(extra_, more_);
    // Often close together, now and then far apart.
    world_.loop().run_for(Duration{random_.chance(0.3) ? random_.between(0, 300) : random_.between(300, 12000)});
    note_key();
  }
}

void History::fill_actions() {
  fill_user_actions();
  fill_child_actions();
  fill_input_actions();
  fill_token_actions();
  fill_slurm_actions();
  fill_accidents();
}

void History::fill_user_actions() {
  const auto any_nodeset = [this] { return some(world_.names(op::resources::kNodeSet)); };
  actions_.push_back({14, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty())
                          world_.merge(op::resources::kNodeSet, name, {{"spec", {{"replicas", random_.between(0, 5)}}}});
                      }});
  actions_.push_back({6, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty()) change_mind(name);
                      }});
  actions_.push_back({2, [=, this] {
                        const std::string name = any_nodeset();
                        const Json conf(fmt::format("CPUs=2 RealMemory=1000 Weight={}", ++edits_));
                        if (!name.empty()) world_.merge(op::resources::kNodeSet, name, {{"spec", {{"extraConf", conf}}}});
                      }});
  actions_.push_back(
      {2, [=, this] {
         const std::string name = any_nodeset();
         const Json image = random_.chance(0.5) ? Json(nullptr) : random_.chance(0.7) ? Json(kNoImage) : Json(kOtherSlurmd);
         if (!name.empty()) world_.merge(op::resources::kNodeSet, name, {{"spec", {{"slurmd", {{"image", image}}}}}});
       }});
  actions_.push_back({2, [=, this] {
                        const std::string name = any_nodeset();
                        const Json config(random_.chance(0.5) ? "State=UP" : "MaxTime=60");
                        if (!name.empty())
                          world_.merge(op::resources::kNodeSet, name, {{"spec", {{"partition", {{"config", config}}}}}});
                      }});
  actions_.push_back({2, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty())
                          world_.remove(op::resources::kNodeSet, name, random_.chance(0.5) ? "Background" : "Foreground");
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string name = any_nodeset();
                        if (!name.empty()) world_.remove(op::resources::kNodeSet, name, "Orphan");
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string name = any_nodeset();
                        const Json enabled(random_.chance(0.6));
                        if (!name.empty())
                          world_.merge(op::resources::kNodeSet, name, {{"spec", {{"partition", {{"enabled", enabled}}}}}});
                      }});
  actions_.push_back(
      {1, [this] {
         world_.merge(op::resources::kRestApi, World::kCluster, {{"spec", {{"replicas", random_.between(1, 2)}}}});
       }});
  actions_.push_back(
      {1, [this] {
         const Json image = random_.chance(0.5) ? Json(kOtherSlurmctld) : Json(nullptr);
         world_.merge(op::resources::kController, World::kCluster, {{"spec", {{"slurmctld", {{"image", image}}}}}});
       }});
  actions_.push_back({4, [this] {
                        const std::string name = some(kNodeSets);
                        if (world_.find(op::resources::kNodeSet, name) == nullptr)
                          world_.apply(nodeset_json(name, static_cast<int>(random_.between(0, 3))));
                      }});
  actions_.push_back({1, [this] { world_.remove(op::resources::kRestApi, World::kCluster); }});
  actions_.push_back({1, [this] {
                        if (random_.chance(0.3)) {
                          world_.remove(op::resources::kController, World::kCluster,
                                        random_.chance(0.4) ? "Orphan" : "Background");
                        }
                      }});
  actions_.push_back({1, [this] {
                        if (random_.chance(0.2)) world_.tear_away(op::resources::kController, World::kCluster);
                      }});
  actions_.push_back({2, [this] {
                        if (world_.find(op::resources::kRestApi, World::kCluster) == nullptr) world_.apply(restapi_json());
                        if (world_.find(op::resources::kController, World::kCluster) == nullptr) world_.apply(controller());
                      }});
  actions_.push_back({2, [this] {
                        const Json conf(fmt::format("MessageTimeout={}\n", 10 + ++edits_));
                        world_.merge(op::resources::kController, World::kCluster, {{"spec", {{"extraConf", conf}}}});
                      }});
  actions_.push_back({1, [this] {
                        // slurmctld refuses it; the operator cannot know.
                        const Json conf(kRefusedConf);
                        world_.merge(op::resources::kController, World::kCluster, {{"spec", {{"extraConf", conf}}}});
                      }});
  actions_.push_back({4, [this] {
                        const std::string pod = some(world_.workers());
                        if (!pod.empty()) world_.remove(kinds::kPod, pod);
                      }});
  actions_.push_back({1, [this] {
                        const std::string pod = some(world_.workers());
                        if (!pod.empty()) world_.evict(pod);
                      }});
  actions_.push_back({2, [this] {
                        std::vector<std::string> others;
                        const std::vector<std::string> mine = world_.workers();
                        for (const std::string& name : world_.names(kinds::kPod)) {
                          if (std::find(mine.begin(), mine.end(), name) == mine.end()) others.push_back(name);
                        }
                        const std::string pod = some(others);
                        if (!pod.empty()) world_.remove(kinds::kPod, pod);
                      }});
  actions_.push_back({3, [this] {
                        const std::string node =
                            "kube-" + std::to_string(random_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
                        world_.merge(kinds::kNode, node, {{"spec", {{"unschedulable", random_.chance(0.4)}}}});
                      }});
  actions_.push_back(
      {3, [this] {
         const std::string pod = some(world_.workers());
         if (pod.empty()) return;
         const Json value = random_.chance(0.6) ? Json("true") : Json(nullptr);
         world_.merge(kinds::kPod, pod, {{"metadata", {{"annotations", {{std::string(api::kAnnotationPodCordon), value}}}}}});
       }});
  actions_.push_back({1, [this] {
                        const std::string pod = some(world_.workers());
                        const Json cost(std::to_string(random_.between(-5, 5)));
                        if (!pod.empty()) {
                          world_.merge(
                              kinds::kPod, pod,
                              {{"metadata", {{"annotations", {{std::string(api::kAnnotationPodDeletionCost), cost}}}}}});
                        }
                      }});
}

// --- What the operator made -------------------------------------------------------------------------------------------

namespace {

/// All but pods, and but generated keys: these have no owner, and another key would be no remedy.
const std::vector<kube::Resource>& child_kinds() {
  static const std::vector<kube::Resource> kAll{kinds::kService,    kinds::kConfigMap,           kinds::kStatefulSet,
                                                kinds::kDeployment, kinds::kPodDisruptionBudget, kinds::kControllerRevision,
                                                kinds::kSecret};
  return kAll;
}

/// A change of what the operator wishes; null: none is possible.
Json stray_edit(const kube::Resource& kind) {
  if (kind == kinds::kService) return {{"spec", {{"selector", {{std::string(api::kLabelName), "stray"}}}}}};
  if (kind == kinds::kConfigMap) return {{"data", {{"slurm.conf", "ClusterName=stray\n"}}}};
  if (kind == kinds::kStatefulSet || kind == kinds::kDeployment) return {{"spec", {{"replicas", 0}}}};
  if (kind == kinds::kPodDisruptionBudget) return {{"spec", {{"minAvailable", nullptr}, {"maxUnavailable", 2}}}};
  return nullptr;
}

/// What of a child is wished, as far as it is not drawn; null while there is none.
Json wished_of(const kube::Resource& kind, const Json* child) {
  if (child == nullptr || core::find(*child, {"metadata", "deletionTimestamp"}) != nullptr) return nullptr;
  Json out{{"labels", (*child)["metadata"].value("labels", Json())}, {"spec", child->value("spec", Json::object())}};
  // What an earlier version of the template left, and the marks of restarts, may go with them.
  if (out["spec"].contains("template")) return {{"labels", out["labels"]}, {"replicas", out["spec"]["replicas"]}};
  for (const char* drawn : {"clusterIP", "clusterIPs"}) out["spec"].erase(drawn);
  if (!child->contains("data")) return out;
  out["data"] = (*child)["data"];
  for (Json& value : out["data"]) {
    if (kind == kinds::kSecret) value = "(drawn)";
  }
  return out;
}

std::int64_t revision_of(const Json& object) {
  return core::get_int(object, {"revision"});
}

}  // namespace

/// The Secret that a copy was made of was made anew since: from the copy, say.
bool History::key_is_newer(const Json& copy) const {
  const Json* key = world_.find(kinds::kSecret, op::generated_slurm_key_name(World::kCluster));
  const auto made = [](const Json& object) { return core::get_string(object, {"metadata", "creationTimestamp"}); };
  return key == nullptr || made(*key) > made(copy);
}

std::vector<std::string> History::children(const kube::Resource& kind) const {
  std::vector<std::string> out;
  std::map<std::string, std::pair<std::int64_t, std::string>> newest;  // Of ControllerRevisions only the one in use comes back.
  for (const std::string& name : world_.names(kind)) {
    const Json& object = *world_.find(kind, name);
    const Json* owners = core::find(object, {"metadata", "ownerReferences"});
    if (owners == nullptr || owners->empty()) continue;
    if (!core::get_string(owners->front(), {"apiVersion"}).starts_with(api::kGroup)) continue;
    // Where users change the key, or make its Secret anew, nobody knows any more what was in it.
    if (name == op::keyring_name(World::kCluster) && (own_keys_ || key_is_newer(object))) continue;
    if (!(kind == kinds::kControllerRevision)) {
      out.push_back(name);
      continue;
    }
    auto& best = newest[core::get_string(owners->front(), {"uid"})];
    best = std::max(best, std::pair(revision_of(object), name));
  }
  for (const auto& [owner, best] : newest) out.push_back(best.second);
  return out;
}

void History::harm_child(const kube::Resource& kind) {
  const std::string name = some(children(kind));
  if (name.empty()) return;
  const Json edit = stray_edit(kind);
  if (!edit.is_null() && random_.chance(0.5)) return world_.merge(kind, name, edit);
  world_.remove(kind, name, random_.chance(0.7) ? "Background" : "Foreground");
}

std::vector<std::string> History::harm_one_by_one() {
  // Longer than any watch is cut for.
  constexpr Duration kNoticed{60000};
  for (const kube::Resource& kind : child_kinds()) {
    std::map<std::string, Json> before;
    for (const std::string& name : children(kind)) before[name] = wished_of(kind, world_.find(kind, name));
    harm_child(kind);
    const auto restored = [&] {
      return std::ranges::all_of(before,
                                 [&](const auto& was) { return wished_of(kind, world_.find(kind, was.first)) == was.second; });
    };
    if (!world_.loop().run_until(restored, kNoticed)) {
      std::vector<std::string> out;
      for (const auto& [name, was] : before) {
        differences(was, wished_of(kind, world_.find(kind, name)), kind.kind + " " + name, out);
      }
      return out;
    }
    if (std::vector<std::string> unmet = world_.settle(kSettle); !unmet.empty()) return unmet;
  }
  return {};
}

void History::fill_child_actions() {
  actions_.push_back({3, [this] { harm_child(child_kinds()[random_.below(child_kinds().size())]); }});
}

/// A NodeSet of their name takes them over. Nobody else ends them with their cluster.
bool History::look_after_orphans() {
  bool adopted = false;
  const Json* cluster = world_.find(op::resources::kController, World::kCluster);
  const bool ends = cluster != nullptr && core::find(*cluster, {"metadata", "deletionTimestamp"}) != nullptr;
  for (const std::string& name : world_.workers()) {
    const Json& pod = *world_.find(kinds::kPod, name);
    if (core::find(pod, {"metadata", "ownerReferences"}) != nullptr) continue;
    const std::string nodeset = core::get_string(pod, {"metadata", "labels", api::kLabelInstance});
    if (ends) {
      world_.remove(kinds::kPod, name);
    } else if (world_.find(op::resources::kNodeSet, nodeset) == nullptr) {
      helped_ = adopted = true;
      world_.apply(nodeset_json(nodeset, 2));
    }
  }
  return adopted;
}

// --- What users name -----------------------------------------------------------------------------------------------

namespace {

constexpr const char* kSlurmKeySecret = "site-slurm-key";
constexpr const char* kJwtKeySecret = "site-jwt-key";
/// ConfigMaps by the Controller's field that names them, and the files that may be in them. The first one always is.
struct SiteFiles {
  const char* field;
  const char* name;
  std::vector<std::string> files;
};
const std::vector<SiteFiles> kSiteFiles{
    {"configFileRefs", "site-files", {"gres.conf", "topology.yaml"}},
    {"prologScriptRefs", "site-prolog", {"10-scratch.sh", "20-gpu.sh"}},
    {"epilogScriptRefs", "site-epilog", {"80-clean.sh", "90-report.sh"}},
    {"prologSlurmctldScriptRefs", "site-ctld-prolog", {"begin.sh", "license.sh"}},
    {"epilogSlurmctldScriptRefs", "site-ctld-epilog", {"end.sh"}},
    {"jwksKeyRef", "site-jwks", {"jwks.json"}},
};

Json reference(const SiteFiles& of) {
  if (std::string_view(of.field) == "jwksKeyRef") return {{"name", of.name}, {"key", of.files.front()}};
  return Json::array({{{"name", of.name}}});
}

}  // namespace

Json History::controller() const {
  Json out = controller_json();
  if (volatile_) out["spec"]["persistence"] = {{"enabled", false}};
  if (own_keys_) {
    out["spec"]["slurmKeyRef"] = {{"name", kSlurmKeySecret}, {"key", api::kKeySlurm}};
    out["spec"]["jwtKeyRef"] = {{"name", kJwtKeySecret}, {"key", api::kKeyJwt}};
  }
  if (!own_files_) return out;
  for (const SiteFiles& of : kSiteFiles) out["spec"][of.field] = reference(of);
  return out;
}

std::vector<std::string> History::inputs() const {
  std::vector<std::string> out;
  if (own_keys_) out = {kSlurmKeySecret, kJwtKeySecret};
  if (!own_files_) return out;
  for (const SiteFiles& of : kSiteFiles) out.emplace_back(of.name);
  return out;
}

const kube::Resource& History::kind_of_input(const std::string& name) {
  return name == kSlurmKeySecret || name == kJwtKeySecret ? kinds::kSecret : kinds::kConfigMap;
}

/// Keys are what they were; of files there is always a new version.
void History::put_input(const std::string& name) {
  if (kind_of_input(name) == kinds::kSecret) {
    std::string& key = keys_[name];
    if (key.empty()) key = random_.bytes(32);
    return world_.apply(secret_json(name, {{std::string(name == kJwtKeySecret ? api::kKeyJwt : api::kKeySlurm), key}}));
  }
  const auto of = std::ranges::find(kSiteFiles, name, &SiteFiles::name);
  std::map<std::string, std::string> data;
  for (const std::string& file : of->files) {
    if (data.empty() || random_.chance(0.7)) data[file] = fmt::format("# version {}\n", ++edits_);
  }
  world_.apply(config_map_json(name, data));
}

/// Whoever changed the auth/slurm key under running workers puts back what they run with.
void History::put_slurm_key_back() {
  note_key();
  if (!own_keys_ || ran_with_.empty() || keys_[kSlurmKeySecret] == ran_with_) return;
  keys_[kSlurmKeySecret] = ran_with_;
  put_input(kSlurmKeySecret);
}

/// The copy may go with its Controller, and daemons run on.
void History::note_key() {
  const Json* keyring = world_.find(kinds::kSecret, op::keyring_name(World::kCluster));
  if (keyring == nullptr) return;
  const auto key = core::base64_decode(core::get_string(*keyring, {"data", api::kKeySlurm}));
  if (key && !key->empty()) ran_with_ = *key;
}

void History::bring_inputs_back() {
  for (const std::string& name : inputs()) {
    if (world_.find(kind_of_input(name), name) == nullptr) put_input(name);
  }
}

void History::fill_input_actions() {
  if (inputs().empty()) return;
  actions_.push_back({4, [this] {
                        const std::string name = some(inputs());
                        const bool there = world_.find(kind_of_input(name), name) != nullptr;
                        if (!there || kind_of_input(name) == kinds::kConfigMap) put_input(name);
                      }});
  actions_.push_back({2, [this] {
                        const std::string name = some(inputs());
                        if (world_.find(kind_of_input(name), name) != nullptr) world_.remove(kind_of_input(name), name);
                      }});
  actions_.push_back({2, [this] { bring_inputs_back(); }});
  if (own_keys_) {
    actions_.push_back({1, [this] {
                          const std::string name = some({kJwtKeySecret, kSlurmKeySecret});
                          keys_[name] = random_.bytes(32);
                          rekeyed_ = true;
                          put_input(name);
                        }});
  }
  if (!own_files_) return;
  actions_.push_back({1, [this] {
                        const SiteFiles& of = kSiteFiles[random_.below(kSiteFiles.size())];
                        const Json value = random_.chance(0.4) ? Json(nullptr) : reference(of);
                        world_.merge(op::resources::kController, World::kCluster, {{"spec", {{of.field, value}}}});
                      }});
}

void History::fill_token_actions() {
  const auto any_token = [this] { return some(world_.names(op::resources::kToken)); };
  const auto login = [](const std::string& name) { return Json{{"name", name + "-login"}, {"key", "token"}}; };
  const auto lifetime = [this] { return Json(some({"10s", "45s", "2m", "15m", "24h"})); };
  actions_.push_back({4, [=, this] {
                        const std::string name = some(kUsers);
                        if (world_.find(op::resources::kToken, name) != nullptr) return;
                        Json token = own_keys_ ? token_json(name, kJwtKeySecret, std::string(api::kKeyJwt))
                                               : token_json(name, op::generated_jwt_key_name(World::kCluster),
                                                            std::string(api::kKeyJwt));
                        if (random_.chance(0.8)) token["spec"]["lifetime"] = lifetime();
                        if (random_.chance(0.3)) token["spec"]["refresh"] = false;
                        if (random_.chance(0.3)) token["spec"]["secretRef"] = login(name);
                        world_.apply(token);
                      }});
  actions_.push_back({3, [=, this] {
                        const std::string name = any_token();
                        Json spec;
                        switch (random_.below(4)) {
                          case 0:
                            spec["lifetime"] = lifetime();
                            break;
                          case 1:
                            spec["username"] = fmt::format("{}{}", name, random_.below(3));
                            break;
                          case 2:
                            spec["secretRef"] = random_.chance(0.5) ? login(name) : Json(nullptr);
                            break;
                          default:
                            spec["refresh"] = random_.chance(0.6);
                        }
                        if (!name.empty()) world_.merge(op::resources::kToken, name, {{"spec", spec}});
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string name = any_token();
                        if (!name.empty())
                          world_.remove(op::resources::kToken, name, random_.chance(0.5) ? "Background" : "Foreground");
                      }});
  actions_.push_back({1, [=, this] {
                        // Whatever is there, or comes to be in the Token's way.
                        const std::string secret = some(kUsers) + "-login";
                        if (world_.find(kinds::kSecret, secret) != nullptr) {
                          world_.remove(kinds::kSecret, secret);
                        } else {
                          world_.apply(secret_json(secret, {{"password", "correct horse battery"}}));
                        }
                      }});
}

/// What stands in the way of a Token is its user's to take away.
void History::remove_taken_secrets() {
  for (const std::string& user : kUsers) {
    const Json* secret = world_.find(kinds::kSecret, user + "-login");
    if (secret != nullptr && core::find(*secret, {"data", "password"}) != nullptr)
      world_.remove(kinds::kSecret, user + "-login");
  }
}

// --- Slurm and its users -----------------------------------------------------------------------------------------------

void History::submit_job(const std::string& partition) {
  SimSlurm* slurm = world_.slurm();
  if (slurm == nullptr) return;
  JobRequest job;
  job.partition = partition;
  job.nodes = static_cast<int>(random_.between(1, 2));
  job.duration = Duration{random_.between(500, 150000)};
  job.exclusive = random_.chance(0.3);
  job.requeue = random_.chance(0.7);
  if (random_.chance(0.5)) job.limit = Duration{600000};
  // Such a job is no accident that an oracle could excuse: anybody may submit one.
  if (job.duration.count() % 8 == 0) job.name = {'w', kOddByte};
  (void)slurm->submit(job);
}

/// Out for waiting jobs, and in again as the first of them starts: what is reported of the new workers is behind.
void History::change_mind(const std::string& nodeset) {
  const std::int64_t before = core::get_int(*world_.find(op::resources::kNodeSet, nodeset), {"spec", "replicas"}, 1);
  const auto scale = [&](std::int64_t replicas) {
    world_.merge(op::resources::kNodeSet, nodeset, {{"spec", {{"replicas", replicas}}}});
  };
  const auto running = [&] {
    const SimSlurm* slurm = world_.slurm();
    if (slurm == nullptr) return std::ptrdiff_t{0};
    return std::ranges::count_if(slurm->jobs(), [&](const auto& entry) {
      return entry.second.request.partition == nodeset && entry.second.state == SimJob::State::kRunning;
    });
  };
  scale(before + random_.between(1, 3));
  for (int i = 0; i < 6; ++i) submit_job(nodeset);
  const auto busy = running();
  world_.loop().run_until([&] { return running() > busy; }, Duration{random_.between(1000, 15000)});
  world_.loop().run_for(Duration{random_.between(0, 300)});
  scale(random_.between(0, before));
}

void History::fill_slurm_actions() {
  const auto update = [this](const char* state, const char* reason) {
    const std::string node = some_node();
    SimSlurm* slurm = world_.slurm();
    if (slurm == nullptr || node.empty()) return;
    SimNodeUpdate change;
    change.state = state;
    if (reason != nullptr) change.reason = reason;
    (void)slurm->update_node(node, change, std::string(kSlurmAdmin));
  };
  actions_.push_back({10, [this] { submit_job(some(kNodeSets)); }});
  actions_.push_back({3, [this] {
                        SimSlurm* slurm = world_.slurm();
                        if (slurm == nullptr) return;
                        std::vector<std::int64_t> jobs;
                        for (const auto& [id, job] : slurm->jobs()) {
                          if (!job.ended()) jobs.push_back(id);
                        }
                        if (jobs.empty()) return;
                        const std::int64_t job = jobs[random_.below(jobs.size())];
                        switch (random_.below(3)) {
                          case 0:
                            slurm->suspend(job);
                            break;
                          case 1:
                            slurm->resume(job);
                            break;
                          default:
                            slurm->cancel(job);
                        }
                      }});
  actions_.push_back({3, [=] { update("DRAIN", kBadDisk); }});
  actions_.push_back({1, [=] { update("DOWN", kBadPower); }});
  actions_.push_back({3, [=] { update("RESUME", nullptr); }});
  actions_.push_back({1, [=] { update("UNDRAIN", nullptr); }});
  actions_.push_back({2, [this] {
                        const std::string node = some_node();
                        SimSlurm* slurm = world_.slurm();
                        if (slurm == nullptr || node.empty()) return;
                        world_.oracles().note("a reservation over " + node);
                        slurm->reserve(kReservation, {node});
                      }});
  actions_.push_back({1, [this] {
                        if (SimSlurm* slurm = world_.slurm()) slurm->end_reservation(kReservation);
                      }});
  actions_.push_back({1, [this] {
                        const std::string node = some_node();
                        SimSlurm* slurm = world_.slurm();
                        if (slurm == nullptr || node.empty() || slurm->busy(node)) return;
                        world_.oracles().note("an admin deletes the record of " + node);
                        (void)slurm->delete_node(node, std::string(kSlurmAdmin));
                      }});
  actions_.push_back({1, [this] {
                        SimSlurm* slurm = world_.slurm();
                        if (slurm == nullptr) return;
                        const bool little = random_.chance(0.5);
                        world_.oracles().note(little ? "machines have little memory" : "machines have their memory");
                        slurm->set_memory(little ? kLittleMemory : SlurmOptions{}.memory);
                      }});
}

void History::fill_accidents() {
  const auto kube_node = [this] {
    return "kube-" + std::to_string(random_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
  };
  const auto which = [this] { return static_cast<int>(random_.below(static_cast<std::uint64_t>(world_.operator_count()))); };
  actions_.push_back({3, [=, this] { world_.crash_operator(which(), Duration{random_.between(0, 20000)}); }});
  actions_.push_back({2, [=, this] { world_.pause_operator(which(), Duration{random_.between(100, 40000)}); }});
  actions_.push_back({1, [=, this] { world_.jump_clock(which(), Duration{random_.between(-300000, 300000)}); }});
  actions_.push_back({1, [=, this] {
                        const std::string node = kube_node();
                        world_.oracles().note("machine " + node + " stops");
                        world_.kube().nodes().crash_node(node);
                        lost_nodes_.insert(node);
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string node = kube_node();
                        world_.oracles().note("machine " + node + " is cut off");
                        world_.kube().nodes().cut_node(node);
                        cut_nodes_.insert(node);
                      }});
  actions_.push_back({3, [this] { restore(); }});
  actions_.push_back({2, [this] {
                        const std::string pod = some(world_.workers());
                        if (pod.empty()) return;
                        world_.oracles().note("pod " + pod + " fails");
                        world_.kube().nodes().fail_pod({World::kNamespace, pod});
                      }});
  actions_.push_back({2, [this] { world_.api().end_watches(); }});
  actions_.push_back({2, [this] { world_.api().compact(); }});
  actions_.push_back({1, [this] { world_.stop_api(Duration{random_.between(100, 15000)}); }});
}

void History::taint(const std::string& node, const std::string& effect) {
  constexpr const char* kKey = "site/maintenance";
  const Json* object = world_.find(kinds::kNode, node);
  if (object == nullptr) return;
  const Json before = (*object)["spec"].value("taints", Json::array());
  Json taints = before;
  std::erase_if(taints.get_ref<Json::array_t&>(), [&](const Json& taint) { return taint["key"] == kKey; });
  if (!effect.empty()) taints.push_back({{"key", kKey}, {"effect", effect}});
  if (taints == before) return;
  world_.merge(kinds::kNode, node, {{"spec", {{"taints", taints.empty() ? Json(nullptr) : taints}}}});
}

void History::fill_more() {
  const auto kube_node = [this] {
    return "kube-" + std::to_string(more_.below(static_cast<std::uint64_t>(world_.options().kube_nodes)));
  };
  extra_.push_back({4, [this] {
                      SimSlurm* slurm = world_.slurm();
                      if (slurm == nullptr) return;
                      JobRequest job;
                      job.partition = kNodeSets[more_.below(kNodeSets.size())];
                      job.duration = Duration{more_.between(500, 40000)};
                      (more_.chance(0.5) ? job.prolog_fails : job.epilog_fails) = true;
                      (void)slurm->submit(job);
                    }});
  extra_.push_back({2, [=, this] {
                      const double drawn = more_.unit();
                      taint(kube_node(), drawn < 0.4 ? "" : drawn < 0.75 ? "NoSchedule" : "NoExecute");
                    }});
  extra_.push_back({3, [this] {
                      const std::vector<std::string> workers = world_.workers();
                      if (workers.empty()) return;
                      const std::string& pod = workers[more_.below(workers.size())];
                      world_.oracles().note("a pod of a higher priority needs the place of " + pod);
                      world_.kube().nodes().preempt({World::kNamespace, pod});
                    }});
  extra_.push_back({2, [=, this] {
                      // slurmctld waits for longer, and so does who asks slurmd.
                      const std::string node = kube_node();
                      world_.oracles().note("machine " + node + " is under load");
                      world_.kube().nodes().load_node(node, true);
                      world_.loop().after(Duration{more_.between(5000, 100000)},
                                          [this, node] { world_.kube().nodes().load_node(node, false); });
                    }});
  extra_.push_back({1, [=, this] {
                      // For longer than Kubernetes by itself lets pods stay on a machine that is away, with jobs that last.
                      const std::string node = kube_node();
                      if (SimSlurm* slurm = world_.slurm()) {
                        JobRequest job;
                        job.duration = Duration{more_.between(450000, 600000)};
                        for (const std::string& nodeset : kNodeSets) {
                          job.partition = nodeset;
                          (void)slurm->submit(job);
                        }
                        world_.loop().run_for(Duration{5000});
                      }
                      world_.oracles().note("machine " + node + " is cut off for long");
                      world_.kube().nodes().cut_node(node);
                      world_.loop().after(Duration{more_.between(320000, 400000)},
                                          [this, node] { world_.kube().nodes().heal_node(node); });
                    }});
  extra_.push_back({1, [this] {
                      // Minutes of it; each answer still comes before anybody gives it up.
                      fair_.latency = world_.slurm_rates.latency = Duration{more_.between(2000, 5000)};
                      world_.oracles().note(fmt::format("Slurm takes {} ms for each answer", fair_.latency.count()));
                      world_.loop().after(Duration{more_.between(60000, 240000)},
                                          [this] { fair_.latency = world_.slurm_rates.latency = usual_.latency; });
                    }});
}

void History::restore() {
  for (const std::string& node : lost_nodes_) world_.kube().nodes().restart_node(node);
  for (const std::string& node : cut_nodes_) world_.kube().nodes().heal_node(node);
  lost_nodes_.clear();
  cut_nodes_.clear();
}

/// Again and again, once slurmctld is there. A suspended job holds its workers for ever; under a name that an admin holds, a
/// worker that cannot start is replaced by nobody else; nor is one of many that Slurm has forgotten.
void History::help_by_hand() {
  world_.loop().after(Duration{10000}, [this] { help_by_hand(); });
  look_after_orphans();
  SimSlurm* slurm = world_.slurm();
  if (slurm == nullptr) return;
  for (const auto& [id, job] : slurm->jobs()) {
    slurm->resume(id);
    // What waits in a partition that is to go may wait for ever, and keeps it.
    const auto partition = slurm->partitions().find(job.request.partition);
    const bool goes = partition != slurm->partitions().end() && partition->second.state == "DRAIN";
    if (goes && job.state == SimJob::State::kPending) slurm->cancel(id);
  }
  slurm->end_reservation(kReservation);
  give_memory_back(*slurm);
  const Json* controller = world_.find(op::resources::kController, World::kCluster);
  if (controller != nullptr && controller->dump().find("\"RestartWithheld\"") != std::string::npos) {
    std::vector<std::int64_t> jobs;
    for (const auto& [id, job] : slurm->jobs()) {
      if (!job.ended()) jobs.push_back(id);
    }
    for (const std::int64_t job : jobs) slurm->cancel(job);
    world_.merge(op::resources::kController, World::kCluster,
                 {{"metadata", {{"annotations", {{std::string(api::kAnnotationLoseJobs), "true"}}}}}});
  }
  // Also of a NodeSet that is being deleted.
  const bool blank = std::ranges::any_of(world_.api().store().all(table_name(op::resources::kNodeSet)), [](const auto& entry) {
    return entry.second->body.dump().find("\"SlurmStateLost\"") != std::string::npos;
  });
  for (const std::string& name : world_.workers()) {
    const SimNode* node = slurm->node(name);
    const bool held = node != nullptr && (node->drain || node->down) && !given_by_operator(node->reason);
    const bool cannot_start = world_.find(kinds::kPod, name)->dump().find(kNoImage) != std::string::npos;
    // A new Controller knows nothing of the key that workers of the one before have.
    const bool cut_off = rekeyed_ && slurm->slurmd_runs(name) && !slurm->hears(name);
    if (!(blank && node == nullptr) && !(held && cannot_start) && !cut_off) continue;
    helped_ = true;
    world_.remove(kinds::kPod, name);
  }
}

/// Who lacked memory is freed by nobody else.
void History::give_memory_back(SimSlurm& slurm) {
  slurm.set_memory(SlurmOptions{}.memory);
  std::vector<std::string> drained;
  for (const auto& [name, node] : slurm.nodes()) {
    if (node.invalid_reg) slurm.reload_slurmd(name);
    // The reason of a DOWN or a drain that is over stays over a drain for lack of memory.
    const bool lacked = node.reason.starts_with("Low RealMemory") ||
                        (!node.down && (node.reason.starts_with(kBadPower) || node.reason.starts_with(kBadDisk)));
    // A drain that is over leaves the DOWN of a worker that ended under that reason, and its successor is there.
    const Json* pod = world_.find(kinds::kPod, name);
    const bool serves =
        pod != nullptr && slurm.slurmd_ready(name) && core::find(*pod, {"metadata", "deletionTimestamp"}) == nullptr;
    const bool left_down = node.down && !node.drain && serves && node.reason.starts_with(kBadDisk);
    if (!node.invalid_reg && (left_down || (node.drain && (lacked || node.own_drain)))) drained.push_back(name);
  }
  SimNodeUpdate change;
  change.state = "RESUME";
  for (const std::string& name : drained) (void)slurm.update_node(name, change, std::string(kSlurmAdmin));
}

std::vector<std::string> History::edit_one_by_one() {
  const Json* named = world_.find(op::resources::kController, World::kCluster);
  std::vector<std::function<void()>> edits;
  for (const SiteFiles& of : kSiteFiles) {
    if (named != nullptr && core::find(*named, {"spec", of.field}) != nullptr)
      edits.emplace_back([this, &of] { put_input(of.name); });
  }
  for (const std::string& token : world_.names(op::resources::kToken)) {
    edits.emplace_back([this, token] { world_.merge(op::resources::kToken, token, {{"spec", {{"username", token + "9"}}}}); });
  }
  for (const auto& edit : edits) {
    edit();
    if (std::vector<std::string> unmet = world_.settle(kSettle); !unmet.empty()) return unmet;
  }
  return {};
}

void History::calm() {
  world_.oracles().note("--- calm ---");
  world_.faults().rates = {};
  fair_ = usual_;
  world_.slurm_rates = fair_;
  world_.kube().set_listening(true);
  restore();
  world_.correct_clocks();
  put_slurm_key_back();
  bring_inputs_back();
  remove_taken_secrets();
  if (world_.find(op::resources::kController, World::kCluster) == nullptr) world_.apply(controller());
  if (world_.find(op::resources::kRestApi, World::kCluster) == nullptr) world_.apply(restapi_json());
  // A configuration that is refused stays refused until its user mends it.
  const Json* named = world_.find(op::resources::kController, World::kCluster);
  if (core::get_string(*named, {"spec", "extraConf"}) == kRefusedConf)
    world_.merge(op::resources::kController, World::kCluster, {{"spec", {{"extraConf", "MessageTimeout=99\n"}}}});
  for (const std::string& name : world_.names(op::resources::kNodeSet)) {
    world_.merge(op::resources::kNodeSet, name, {{"spec", {{"slurmd", {{"image", nullptr}}}}}});
  }
  for (int i = 0; i < world_.options().kube_nodes; ++i) {
    world_.merge(kinds::kNode, "kube-" + std::to_string(i), {{"spec", {{"unschedulable", false}}}});
    taint("kube-" + std::to_string(i), "");
  }
  help_by_hand();
  // Whoever was deleted at the last moment comes back: the cluster is to stand at the end. A RestApi that waits for workers may
  // need its Controller back before it can go.
  std::vector<std::string> unmet;
  for (int round = 0; round < 4; ++round) {
    unmet = world_.settle(kSettle);
    // A NodeSet that went meanwhile has left its workers.
    const bool adopted = look_after_orphans();
    const bool whole = world_.find(op::resources::kController, World::kCluster) != nullptr &&
                       world_.find(op::resources::kRestApi, World::kCluster) != nullptr;
    if ((whole && !adopted) || !world_.oracles().ok()) break;
    if (whole) continue;
    world_.apply(controller());
    world_.apply(restapi_json());
  }
  const Json workers = worker_starts();
  helped_ = false;
  world_.oracles().service().expect(unmet.empty());
  if (unmet.empty()) unmet = edit_one_by_one();
  if (unmet.empty() && world_.oracles().ok()) unmet = harm_one_by_one();
  if (!unmet.empty()) {
    // A violation ends the wait at once: then it tells of that moment only.
    const bool waited = world_.oracles().ok();
    wrong_.push_back((waited ? "the declared state is not reached: " : "at the violation there lacked: ") + first_few(unmet));
    return;
  }
  // The end of a job is written to its workers.
  if (SimSlurm* slurm = world_.slurm()) slurm->cancel_all();
  const std::vector<std::string> restless = check_rest(world_, kRest);
  world_.oracles().service().expect(false);
  // Nothing of what was done since the storm is about workers; but they go with the state of a slurmctld without a volume.
  if (!volatile_ && !helped_) differences(workers, worker_starts(), "starts", wrong_);
  wrong_.insert(wrong_.end(), restless.begin(), restless.end());
  if (const std::vector<std::string> later = world_.oracles().unmet(); !later.empty()) {
    wrong_.push_back("the declared state did not last: " + first_few(later));
  }
}

/// How often workers were made, and slurmds started.
Json History::worker_starts() const {
  Json out = Json::object();
  const Json all = world_.oracles().starts();
  for (const auto& [name, count] : all.items()) {
    if (name.starts_with("slurmd ") || name.starts_with("pod ")) out[name] = count;
  }
  return out;
}

/// The namespace is deleted, or all of the cluster's resources are. With Drain jobs end first: the oracles judge each deletion
/// of a worker.
void History::end() {
  const bool drain = random_.chance(0.6);
  // The namespace takes what users made with it, whatever the policy: a slurmctld that restarts meanwhile lacks its keys or
  // files.
  const bool whole = random_.chance(0.5) && (!drain || (inputs().empty() && !taken_key_));
  world_.oracles().note(
      fmt::format("--- the {} is deleted, {} ---", whole ? "namespace" : "cluster", drain ? "Drain" : "Immediate"));
  world_.merge(op::resources::kController, World::kCluster, {{"spec", {{"deletionPolicy", drain ? "Drain" : "Immediate"}}}});
  for (int i = 0; i < 4; ++i) submit_job(some(kNodeSets));
  world_.loop().run_for(Duration{random_.between(0, 5000)});
  weather();
  const kube::Key space{"", World::kNamespace};
  if (whole) {
    (void)world_.api().remove(kinds::kNamespace, space, {}, {});
  } else {
    const std::string propagation = random_.chance(0.5) ? "Foreground" : "Background";
    for (const kube::Resource& kind :
         {op::resources::kController, op::resources::kRestApi, op::resources::kNodeSet, op::resources::kToken}) {
      for (const std::string& name : world_.names(kind)) world_.remove(kind, name, propagation);
      world_.loop().run_for(Duration{random_.between(0, 1000)});
    }
  }
  world_.loop().run_for(Duration{random_.between(0, 30000)});
  world_.faults().rates = {};
  world_.slurm_rates = fair_;
  const std::vector<kube::Resource> ours{op::resources::kController,
                                         op::resources::kRestApi,
                                         op::resources::kNodeSet,
                                         op::resources::kToken,
                                         kinds::kStatefulSet,
                                         kinds::kDeployment,
                                         kinds::kPod};
  const auto left = [&] {
    std::vector<std::string> out;
    for (const kube::Resource& kind : ours) {
      for (const std::string& name : world_.names(kind)) out.push_back(kind.plural + "/" + name);
    }
    for (const std::string& name : world_.names(kinds::kSecret)) {
      const Json labels = (*world_.find(kinds::kSecret, name))["metadata"].value("labels", Json::object());
      if (core::get_string(labels, {api::kLabelName}) == op::kAppToken) out.push_back("secrets/" + name);
    }
    if (whole && world_.api().peek(kinds::kNamespace, space) != nullptr) out.emplace_back("the namespace itself");
    return out;
  };
  if (!world_.loop().run_until([&] { return left().empty(); }, kSettle)) {
    wrong_.push_back("what was deleted does not go: " + first_few(left()));
  }
}

// --- The fixed history ------------------------------------------------------------------------------------------------

void differences(const Json& expected, const Json& state, const std::string& path, std::vector<std::string>& out) {
  constexpr std::size_t kShown = 600;
  if (expected == state) return;
  if (!expected.is_object() || !state.is_object()) {
    out.push_back(
        fmt::format("another end: {} is {}, not {}", path, state.dump().substr(0, kShown), expected.dump().substr(0, kShown)));
    return;
  }
  for (const auto& [name, was] : expected.items()) differences(was, state.value(name, Json()), path + "/" + name, out);
  for (const auto& [name, is] : state.items()) {
    if (!expected.contains(name)) differences(Json(), is, path + "/" + name, out);
  }
}

FixedResult run_fixed(World& world) {
  FixedResult out;
  const auto settled = [&](const char* what) {
    if (!out.wrong.empty()) return false;
    const std::vector<std::string> unmet = world.settle(kSettle);
    if (!unmet.empty()) out.wrong.push_back(fmt::format("{}: {}", what, first_few(unmet)));
    for (const std::string& violation : world.oracles().violations()) out.wrong.push_back(violation);
    return out.wrong.empty();
  };
  const auto scale = [&](int replicas) { world.merge(op::resources::kNodeSet, "cpu", {{"spec", {{"replicas", replicas}}}}); };
  world.found_cluster(2);
  if (settled("founding")) scale(3);
  if (settled("scale-out") && world.slurm() != nullptr) {
    JobRequest job;
    job.partition = "cpu";
    job.duration = Duration{20000};
    job.nodes = 3;
    (void)world.slurm()->submit(job);
    world.loop().run_for(Duration{3000});
    scale(1);
  }
  if (settled("scale-in under a job")) scale(2);
  if (settled("scale-out again")) {
    world.apply(nodeset_json("gpu", 1));
    world.merge(op::resources::kController, World::kCluster, {{"spec", {{"extraConf", "MessageTimeout=33\n"}}}});
  }
  if (settled("a new partition")) world.remove(op::resources::kNodeSet, "gpu");
  if (settled("a NodeSet goes")) world.remove(kinds::kPod, "cpu-0");
  (void)settled("a worker is deleted by hand");
  if (out.wrong.empty()) out.wrong = check_rest(world, Duration{60000});
  out.state = world.oracles().final_state();
  out.state["starts"] = world.oracles().starts();
  out.writes = world.faults().writes();
  return out;
}

}  // namespace sim
