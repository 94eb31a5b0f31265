#include "cli/status.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "api/accounting.hpp"
#include "cli/command.hpp"
#include "cli/objects.hpp"
#include "slinky/names.hpp"
#include "slinky/releases.hpp"
#include "slinky/status.hpp"
#include "slinky/worker_names.hpp"
#include "slurm/holds.hpp"

namespace cli {
namespace {

using core::Json;

bool belongs(const Json& object, const kube::ObjectMeta& controller) {
  return kube::key_of(object).ns == controller.ns &&
         core::get_string(object, {"spec", "controllerRef", "name"}) == controller.name;
}

Json ready_json(const Json& object) {
  const Json* ready = condition_of(object, api::kConditionReady);
  if (ready == nullptr) return {{"status", "Unknown"}, {"reason", ""}, {"message", "the operator has not processed it yet"}};
  return {{"status", core::get_string(*ready, {"status"})},
          {"reason", core::get_string(*ready, {"reason"})},
          {"message", core::get_string(*ready, {"message"})}};
}

Json named(const Json& object) {
  return {{"name", kube::key_of(object).name}, {"ready", ready_json(object)}, {"waitsFor", waits_of(object)}};
}

/// Reports whether slurmctld is external. We know neither the release nor the configuration of an external slurmctld.
bool is_external(const Json& controller) {
  return core::get_bool(controller, {"spec", "external"});
}

/// Returns the state of the configuration: reason and message of the condition ConfigAccepted if it is False, or else those of
/// Reconfigured.
Json configuration_json(const Json& controller) {
  if (is_external(controller)) return nullptr;
  const Json* accepted = condition_of(controller, "ConfigAccepted");
  const Json* loaded = condition_of(controller, api::kConditionReconfigured);
  const bool refused = accepted != nullptr && core::get_string(*accepted, {"status"}) == "False";
  const Json* says = refused ? accepted : loaded;
  if (says == nullptr) return {{"state", "Unknown"}, {"message", ""}};
  return {{"state", core::get_string(*says, {"reason"})}, {"message", core::get_string(*says, {"message"})}};
}

std::string release_of(const Json& controller, const SlurmFacts* slurm) {
  if (slurm != nullptr && !slurm->release.empty()) return slurm->release;
  if (is_external(controller)) return "";
  const std::string image = core::get_string(controller, {"spec", "slurmctld", "image"}, slinky::kDefaultSlurmctldImage);
  return slinky::to_string(slinky::slurm_release(image));
}

Json time_json(std::optional<core::WallTime> time) {
  return time ? Json(core::format_rfc3339(*time)) : Json();
}

Json job_json(const slurm::Job& job) {
  const std::string user = job.details ? job.details->user : "";
  Json out{{"id", job.id}, {"user", user}, {"state", job.state}, {"partition", job.partition}, {"nodes", job.nodes}};
  out["start"] = time_json(job.start);
  out["end"] = job.holds_nodes() ? time_json(job.end) : Json();
  return out;
}

bool has(const std::optional<SlurmWord>& word, std::string_view flag) {
  return word && word->state.has(flag);
}

/// Returns why the worker takes no jobs. Omits drains, because the table has a column for drains.
std::vector<std::string> worker_waits(const kube::PodPtr& pod, const Said& said) {
  std::vector<std::string> out;
  if (pod->meta.terminating()) out.emplace_back("the pod is being deleted");
  for (const slinky::Problem& problem : slinky::pod_problems({pod})) {
    // The table already names the pod.
    const std::string place = "pod " + pod->meta.name;
    std::string_view text = problem.message;
    if (text.starts_with(place)) text.remove_prefix(std::min(text.size(), place.size() + 2));
    out.push_back(problem.reason + ": " + std::string(text));
  }
  if (out.empty() && !pod->ready()) out.emplace_back("slurmd is not ready yet");
  if (out.empty() && !said.word) out.emplace_back("its node is not in Slurm yet");
  if (said.word && said.word->state.base == "DOWN" && !has(said.word, "DRAIN") && !said.word->reason.empty())
    out.push_back("down: " + said.word->reason);
  if (has(said.word, "DRAIN") && said.deadline.busy) out.emplace_back("waits for its last job");
  return out;
}

Json worker_json(const kube::PodPtr& pod, const std::string& current, const SlurmFacts* slurm) {
  const std::string node = slinky::slurm_node_name(*pod);
  const Said said = said_of(*pod, slurm);
  Json out{{"pod", pod->meta.name}, {"slurmNode", node}, {"kubernetesNode", pod->node_name}};
  out["slurmState"] = said.word ? state_text(said.word->state) : "";
  out["podPhase"] = pod->phase;
  out["ready"] = pod->ready();
  out["busy"] = said.deadline.busy;
  out["jobs"] = said.jobs ? Json(said.ids) : Json();
  out["busyUntil"] = said.deadline.busy ? time_json(said.deadline.at) : Json();
  out["earlierTemplate"] = !current.empty() && pod->meta.label(api::kLabelRevisionHash) != current;
  out["drain"] = nullptr;
  if (has(said.word, "DRAIN")) {
    const DrainOwner owner = drain_owner(said.word->reason);
    out["drain"] = {{"by", owner.who}, {"reason", owner.why}};
  }
  out["waitsFor"] = worker_waits(pod, said);
  return out;
}

Json nodeset_json(const Json& nodeset, const std::vector<kube::PodPtr>& pods, const SlurmFacts* slurm) {
  const kube::ObjectMeta meta = kube::parse_meta(nodeset);
  Json out = named(nodeset);
  const bool enabled = core::get_bool(nodeset, {"spec", "partition", "enabled"});
  out["partition"] = enabled ? slinky::slurm_node_set_name(kube::Object{meta, nodeset}) : "";
  out["desired"] = core::get_int(nodeset, {"status", "desired"}, core::get_int(nodeset, {"spec", "replicas"}, 1));
  out["replicas"] = core::get_int(nodeset, {"status", "replicas"});
  out["readyReplicas"] = core::get_int(nodeset, {"status", "readyReplicas"});
  out["updatedReplicas"] = core::get_int(nodeset, {"status", "updatedReplicas"});
  out["paused"] = core::get_bool(nodeset, {"spec", "updateStrategy", "paused"});
  const std::string current = core::get_string(nodeset, {"status", "nodeSetHash"});
  out["workers"] = Json::array();
  for (const kube::PodPtr& pod : pods) {
    if (pod->meta.ns != meta.ns || pod->meta.label(api::kLabelInstance) != meta.name) continue;
    out["workers"].push_back(worker_json(pod, current, slurm));
  }
  return out;
}

Json jobs_json(const SlurmFacts& slurm, bool each) {
  std::size_t running = 0, pending = 0;
  Json list = Json::array();
  for (const auto& job : slurm.jobs) {
    if (!job->in_queue()) continue;
    ++(job->state == "PENDING" ? pending : running);
    if (each) list.push_back(job_json(*job));
  }
  Json out{{"running", running}, {"pending", pending}};
  if (each) out["list"] = std::move(list);
  return out;
}

Json cluster_json(const Json& controller, const StatusFacts& facts, const std::vector<kube::PodPtr>& pods,
                  const StatusOptions& options) {
  const kube::ObjectMeta meta = kube::parse_meta(controller);
  const auto found = facts.slurm.find(meta.key().str());
  const SlurmFacts* slurm = found == facts.slurm.end() ? nullptr : &found->second;
  Json out{{"namespace", meta.ns}, {"name", meta.name}, {"ready", ready_json(controller)}, {"waitsFor", waits_of(controller)}};
  out["slurmRelease"] = release_of(controller, slurm);
  out["configuration"] = configuration_json(controller);
  const bool known = slurm != nullptr && slurm->known();
  out["slurm"] = {{"answers", known}, {"message", slurm == nullptr ? "not asked" : slurm->why_not}};
  out["jobs"] = known ? jobs_json(*slurm, options.jobs) : Json();
  for (const auto& [name, list] : {std::pair{"restApis", &facts.restapis}, std::pair{"loginSets", &facts.loginsets}}) {
    out[name] = Json::array();
    for (const Json& object : *list) {
      if (belongs(object, meta)) out[name].push_back(named(object));
    }
  }
  out["nodeSets"] = Json::array();
  for (const Json& nodeset : facts.nodesets) {
    if (belongs(nodeset, meta)) out["nodeSets"].push_back(nodeset_json(nodeset, pods, slurm));
  }
  return out;
}

/// Returns those of the given Controllers that name this Accounting.
Json clusters_json(const kube::ObjectMeta& accounting, const std::vector<Json>& controllers) {
  Json out = Json::array();
  for (const Json& controller : controllers) {
    const kube::Key key = kube::key_of(controller);
    if (key.ns == accounting.ns && core::get_string(controller, {"spec", "accountingRef", "name"}) == accounting.name)
      out.push_back(key.name);
  }
  return out;
}

std::string database_text(const api::AccountingSpec& spec) {
  if (spec.external || !spec.storage_config) return "";
  const api::StorageConfig& storage = *spec.storage_config;
  return storage.managed ? "managed" : fmt::format("{}:{}/{}", storage.host, storage.port, storage.database);
}

Json accounting_json(const Json& accounting, const std::vector<Json>& controllers) {
  const kube::ObjectMeta meta = kube::parse_meta(accounting);
  Json out = named(accounting);
  out["namespace"] = meta.ns;
  out["clusters"] = clusters_json(meta, controllers);
  const auto spec = api::from_json<api::AccountingSpec>(accounting.value("spec", Json::object()));
  out["external"] = spec && spec->external;
  out["slurmdbd"] = spec ? slinky::accounting_endpoint(*spec, meta.ns, meta.name).str() : "";
  out["database"] = spec ? database_text(*spec) : "";
  return out;
}

// Rendering as text.

Tone tone_of(const Json& ready) {
  const std::string status = core::get_string(ready, {"status"});
  return status == "True" ? Tone::kGood : status == "False" ? Tone::kBad : Tone::kWarn;
}

std::string ready_text(const Json& ready) {
  const std::string status = core::get_string(ready, {"status"});
  if (status == "True") return "Ready";
  return status == "False" ? "not ready" : "unknown";
}

Tone tone_of_state(std::string_view state) {
  if (state == "IDLE" || state == "ALLOCATED" || state == "MIXED") return Tone::kGood;
  return state.starts_with("DOWN") || state.find("FAIL") != std::string_view::npos ? Tone::kBad : Tone::kWarn;
}

std::string joined(const Json& list, std::string_view between) {
  std::string out;
  for (const Json& item : list) out += (out.empty() ? "" : std::string(between)) + item.get<std::string>();
  return out;
}

std::string number(const Json& object, std::string_view name) {
  return std::to_string(core::get_int(object, {name}));
}

void write_waits(const std::string& what, const Json& object, std::string& out) {
  for (const Json& line : object["waitsFor"]) out += "  " + what + ": " + printable(line.get<std::string>()) + "\n";
}

std::string details_of(const Json& worker) {
  std::vector<std::string> parts;
  if (const Json& drain = worker["drain"]; drain.is_object()) {
    const std::string reason = core::get_string(drain, {"reason"});
    // The reason of a drain by `kubectl slurm drain` already names the user who drained the worker.
    parts.push_back(reason.starts_with("drained ")
                        ? reason
                        : "drained by " + core::get_string(drain, {"by"}) + (reason.empty() ? "" : ": " + reason));
  }
  if (const std::string waits = joined(worker["waitsFor"], "; "); !waits.empty()) parts.push_back(waits);
  if (core::get_bool(worker, {"earlierTemplate"})) parts.emplace_back("earlier template");
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : "; ") + part;
  return out;
}

std::vector<Table::Cell> worker_row(const std::string& nodeset, const Json& worker, core::WallTime now) {
  const bool busy = core::get_bool(worker, {"busy"});
  Deadline deadline{busy, {}};
  if (const auto at = core::parse_rfc3339(core::get_string(worker, {"busyUntil"}))) deadline.at = *at;
  const std::string state = core::get_string(worker, {"slurmState"}, "");
  const Json& jobs = worker["jobs"];
  return {core::get_string(worker, {"pod"}),
          core::get_string(worker, {"slurmNode"}),
          nodeset,
          {state.empty() ? "-" : state, tone_of_state(state)},
          jobs.is_array() ? std::to_string(jobs.size())
          : busy          ? "busy"
                          : "-",
          deadline_text(deadline, now),
          core::get_string(worker, {"kubernetesNode"}),
          details_of(worker)};
}

std::string cluster_text(const Json& cluster, const Style& style, core::WallTime now) {
  const std::string release = core::get_string(cluster, {"slurmRelease"});
  std::string out =
      style.paint(Tone::kStrong,
                  "Cluster " + core::get_string(cluster, {"namespace"}) + "/" + core::get_string(cluster, {"name"})) +
      ": " + style.paint(tone_of(cluster["ready"]), ready_text(cluster["ready"])) +
      (release.empty() ? "" : ", Slurm " + release) +
      (cluster["configuration"].is_null() ? "" : ", configuration " + core::get_string(cluster, {"configuration", "state"})) +
      "\n";
  write_waits("Controller", cluster, out);
  Table sets({"NODESET", "PARTITION", "DESIRED", "READY", "UPDATED", "STATE"});
  Table workers({"WORKER", "SLURM NODE", "NODESET", "STATE", "JOBS", "LAST JOB ENDS", "KUBERNETES NODE", "DETAILS"});
  bool renamed = false;
  for (const Json& nodeset : cluster["nodeSets"]) {
    const std::string name = core::get_string(nodeset, {"name"});
    write_waits("NodeSet " + name, nodeset, out);
    const std::string state = ready_text(nodeset["ready"]) + (core::get_bool(nodeset, {"paused"}) ? ", updates paused" : "");
    sets.add({name,
              core::get_string(nodeset, {"partition"}),
              number(nodeset, "desired"),
              number(nodeset, "readyReplicas"),
              number(nodeset, "updatedReplicas"),
              {state, tone_of(nodeset["ready"])}});
    for (const Json& worker : nodeset["workers"]) {
      workers.add(worker_row(name, worker, now));
      renamed = renamed || worker["pod"] != worker["slurmNode"];
    }
  }
  if (!renamed) workers.drop("SLURM NODE");
  Table others({"OTHER", "NAME", "STATE"});
  for (const auto& [list, kind] : {std::pair{"restApis", "RestApi"}, std::pair{"loginSets", "LoginSet"}}) {
    for (const Json& object : cluster[list]) {
      write_waits(std::string(kind) + " " + core::get_string(object, {"name"}), object, out);
      others.add({kind, core::get_string(object, {"name"}), {ready_text(object["ready"]), tone_of(object["ready"])}});
    }
  }
  for (const Table* table : {&sets, &workers, &others}) {
    if (!table->empty()) out += "\n" + table->text(style, "  ");
  }
  const Json& jobs = cluster["jobs"];
  if (!jobs.is_object()) {
    const std::string why = core::get_string(cluster, {"slurm", "message"});
    return out + "\n  Jobs are not shown: " + printable(why) + "\n";
  }
  out += fmt::format("\n  Jobs: {} running, {} pending\n", core::get_int(jobs, {"running"}), core::get_int(jobs, {"pending"}));
  if (!jobs.contains("list") || jobs["list"].empty()) return out;
  Table list({"JOB", "USER", "STATE", "PARTITION", "NODES", "ENDS"});
  for (const Json& job : jobs["list"]) {
    Deadline ends{core::get_string(job, {"state"}) != "PENDING", {}};
    if (const auto at = core::parse_rfc3339(core::get_string(job, {"end"}))) ends.at = *at;
    list.add({number(job, "id"), core::get_string(job, {"user"}), core::get_string(job, {"state"}),
              core::get_string(job, {"partition"}), joined(job["nodes"], ","), deadline_text(ends, now)});
  }
  return out + list.text(style, "  ");
}

std::string accountings_text(const Json& accountings, const Style& style) {
  std::string out;
  Table table({"ACCOUNTING", "STATE", "SLURMDBD", "DATABASE", "CLUSTERS"});
  for (const Json& accounting : accountings) {
    const std::string name = core::get_string(accounting, {"namespace"}) + "/" + core::get_string(accounting, {"name"});
    std::string clusters = joined(accounting["clusters"], ",");
    if (clusters.empty()) clusters = "-";
    for (const Json& line : accounting["waitsFor"])
      out += "Accounting " + name + ": " + printable(line.get<std::string>()) + "\n";
    const bool external = core::get_bool(accounting, {"external"});
    table.add({name,
               {ready_text(accounting["ready"]), tone_of(accounting["ready"])},
               core::get_string(accounting, {"slurmdbd"}),
               external ? "external" : core::get_string(accounting, {"database"}),
               clusters});
  }
  return table.empty() ? "" : out + table.text(style, "");
}

}  // namespace

core::Result<StatusFacts> read_status(Api& api, const std::string& ns, const std::string& name, bool with_slurm) {
  std::string workers = std::string(api::kLabelName) + "=" + std::string(slinky::kAppWorker);
  if (!name.empty()) workers += "," + std::string(api::kLabelCluster) + "=" + name;
  auto lists = api.lists({{slinky::resources::kController, ns, {}, name.empty() ? "" : "metadata.name=" + name},
                          {slinky::resources::kNodeSet, ns},
                          {slinky::resources::kRestApi, ns},
                          {.resource = slinky::resources::kLoginSet, .ns = ns, .optional = true},
                          {.resource = slinky::resources::kAccounting, .ns = ns, .optional = true},
                          {kube::resources::kPod, ns, workers}});
  for (const auto& list : lists) {
    if (!list) return std::unexpected(list.error());
  }
  StatusFacts out{std::move(*lists[0]),
                  std::move(*lists[1]),
                  std::move(*lists[2]),
                  std::move(*lists[3]),
                  std::move(*lists[4]),
                  std::move(*lists[5]),
                  {}};
  if (!name.empty() && out.controllers.empty())
    return core::fail(core::ErrorCode::kNotFound, fmt::format("there is no cluster (Controller) {} in namespace {}", name, ns));
  // If the user named a cluster, show only the Accounting of that cluster.
  if (!name.empty()) {
    std::erase_if(out.accountings,
                  [&](const Json& object) { return clusters_json(kube::parse_meta(object), out.controllers).empty(); });
  }
  if (!with_slurm) return out;
  for (const Json& controller : out.controllers) {
    const kube::Key key = kube::key_of(controller);
    std::vector<Json> servers;
    std::ranges::copy_if(out.restapis, std::back_inserter(servers),
                         [&](const Json& restapi) { return kube::key_of(restapi).ns == key.ns; });
    out.slurm.emplace(key.str(), ask_slurm(api, controller, servers));
  }
  return out;
}

Json status_document(const StatusFacts& facts, const StatusOptions& options) {
  const std::vector<kube::PodPtr> pods = pod_records(facts.pods);
  Json items = Json::array();
  for (const Json& controller : facts.controllers) items.push_back(cluster_json(controller, facts, pods, options));
  Json accountings = Json::array();
  for (const Json& accounting : facts.accountings) accountings.push_back(accounting_json(accounting, facts.controllers));
  return {{"apiVersion", "cli.slinky.slurm.net/v1"},
          {"kind", "ClusterStatusList"},
          {"items", std::move(items)},
          {"accountings", std::move(accountings)}};
}

std::string status_text(const Json& document, const Style& style, core::WallTime now) {
  std::string out;
  for (const Json& cluster : document["items"]) out += (out.empty() ? "" : "\n") + cluster_text(cluster, style, now);
  if (const std::string text = accountings_text(document["accountings"], style); !text.empty())
    out += (out.empty() ? "" : "\n") + text;
  return out;
}

Command status_command() {
  const auto declare = [](CLI::App& app) -> Run {
    struct Arguments {
      std::string name;
      bool without_slurm = false;
      StatusOptions options;
    };
    auto given = std::make_shared<Arguments>();
    app.add_option("CLUSTER", given->name, "A Controller (default: all)");
    app.add_flag("--jobs", given->options.jobs, "List each job");
    app.add_flag("--without-slurm", given->without_slurm, "Query only Kubernetes, not Slurm");
    return [given](Context& context) -> int {
      const auto api = context.api();
      if (!api) return context.fail(api.error());
      const auto facts = read_status(**api, context.ns(), given->name, !given->without_slurm);
      if (!facts) return context.fail(facts.error());
      const Json document = status_document(*facts, given->options);
      if (context.options().format != Format::kTable) {
        context.out(render(document, context.options().format));
      } else if (facts->controllers.empty() && facts->accountings.empty()) {
        const std::string ns = context.ns();
        context.note("There are no Slurm clusters " +
                     (ns.empty() ? "here." : "in namespace " + ns + ". -A shows all namespaces."));
      } else {
        context.out(status_text(document, context.style(), (*api)->clock().wall()));
      }
      return kDone;
    };
  };
  return {.path = "status",
          .about = "Clusters, NodeSets, workers, jobs and Accountings; what each waits for, and why",
          .names = Names::kClusters,
          .formats = true,
          .all_namespaces = true,
          .declare = declare};
}

}  // namespace cli
