#include "cli/rollout.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "api/revision.hpp"
#include "api/well_known.hpp"
#include "cli/command.hpp"
#include "cli/objects.hpp"
#include "slinky/names.hpp"

namespace cli {
namespace {

using core::Json;

constexpr core::Duration kFollowEvery{2000};
/// The number of tries of a write. The operator may write the NodeSet's status between our read and our write.
constexpr int kTries = 5;

std::string hash_of(const Json& revision) {
  return core::get_string(revision, {"metadata", "labels", api::kLabelRevisionHash});
}

/// Returns the hash of the current template, even if the operator has not processed the template yet.
std::string hash_in_force(const Json& nodeset, const std::vector<Json>& revisions) {
  const auto read = api::from_json<api::NodeSet>(nodeset);
  std::vector<const Json*> recorded;
  for (const Json& revision : revisions) recorded.push_back(&revision);
  return read ? api::hash_in_force(read->spec, std::move(recorded)) : core::get_string(nodeset, {"status", "nodeSetHash"});
}

std::int64_t number_of(const Json& revision) {
  return core::get_int(revision, {"revision"});
}

std::string progressing(const Json& nodeset, const char* field) {
  const Json* condition = condition_of(nodeset, api::kConditionProgressing);
  return condition == nullptr ? "" : core::get_string(*condition, {field});
}

/// Returns why the operator waits for a user before it replaces the remaining workers; "" if it replaces them by itself.
std::string held_by_people(const Json& nodeset) {
  const std::string reason = progressing(nodeset, "reason");
  const bool held = reason == "UpdatePaused" || reason == "UpdatePartitioned" || reason == "UpdateHeld" ||
                    reason == "UpdateScheduled" || reason == "OnDelete" || reason == "SwitchHeld";
  return held ? progressing(nodeset, "message") : "";
}

ListRequest workers_of(const Json& nodeset, kube::Resource resource, bool metadata_only) {
  const kube::Key key = kube::key_of(nodeset);
  ListRequest out{std::move(resource), key.ns};
  out.label_selector = fmt::format("{}={},{}={}", api::kLabelName, slinky::kAppWorker, api::kLabelInstance, key.name);
  out.metadata_only = metadata_only;
  return out;
}

core::Result<std::vector<Json>> read_revisions(Api& api, const Json& nodeset) {
  auto list = api.list(workers_of(nodeset, kube::resources::kControllerRevision, false));
  if (!list) return std::unexpected(list.error());
  return revisions_of(nodeset, std::move(*list));
}

core::Result<Json> read_nodeset(Context& context, Api& api, const std::string& name) {
  return api.get(slinky::resources::kNodeSet, {context.one_ns(), name});
}

int follow(Context& context, Api& api, const std::string& name, bool watch, core::Duration timeout) {
  const core::MonoTime begun = api.clock().mono();
  std::string told;
  bool away = false;
  while (true) {
    const auto nodeset = read_nodeset(context, api, name);
    if (!nodeset) {
      // Tries again only if an earlier read succeeded and the error may pass.
      if (told.empty() || nodeset.error().code == core::ErrorCode::kNotFound || !may_pass(nodeset.error()))
        return context.fail(nodeset.error());
      if (nodeset.error().code != core::ErrorCode::kCancelled && !std::exchange(away, true))
        context.note("cannot read the state, trying again: " + nodeset.error().message);
    } else {
      away = false;
      const RolloutState state = rollout_state(*nodeset);
      if (told != state.text) context.out(state.text + "\n");
      told = state.text;
      if (state.phase == RolloutState::Phase::kComplete) return kDone;
      if (state.phase == RolloutState::Phase::kWaitsForPeople || !watch) return kNotYet;
    }
    if (timeout.count() > 0 && api.clock().mono() - begun >= timeout) {
      context.note("not done within " + short_duration(timeout) + "; the update goes on");
      return kNotYet;
    }
    if (!api.pause(kFollowEvery)) {
      context.note("interrupted; the update goes on");
      return kInterrupted;
    }
  }
}

/// Sends the patch that `make` returns for the NodeSet. Tries again if somebody else changed the NodeSet in between.
int patch_nodeset(Context& context, Api& api, const std::string& name,
                  const std::function<core::Result<Json>(const Json& nodeset)>& make, const std::string& done) {
  core::Error conflict;
  for (int i = 0; i < kTries; ++i) {
    const auto nodeset = read_nodeset(context, api, name);
    if (!nodeset) return context.fail(nodeset.error());
    auto patch = make(*nodeset);
    if (!patch) return context.fail(patch.error());
    if (patch->empty()) {
      context.note("nothing to change");
      return kDone;
    }
    const kube::ObjectMeta meta = kube::parse_meta(*nodeset);
    (*patch)["metadata"] = {{"uid", meta.uid}, {"resourceVersion", meta.resource_version}};
    const auto written = api.patch(slinky::resources::kNodeSet, meta.key(), kube::PatchType::kMerge, *patch);
    if (written) {
      context.note(done);
      return kDone;
    }
    if (written.error().code != core::ErrorCode::kConflict) return context.fail(written.error());
    conflict = written.error();
  }
  return context.fail(conflict);
}

int run_undo(Context& context, const std::string& name, std::optional<std::int64_t> number, bool dry_run) {
  const auto api = context.api();
  if (!api) return context.fail(api.error());
  const auto nodeset = read_nodeset(context, **api, name);
  if (!nodeset) return context.fail(nodeset.error());
  const auto revisions = read_revisions(**api, *nodeset);
  if (!revisions) return context.fail(revisions.error());
  const auto revision = revision_to_undo(*nodeset, *revisions, number);
  if (!revision) return context.fail(revision.error());
  if (dry_run) {
    const auto patch = api::apply_revision(*nodeset, *revision);
    if (!patch) return context.fail(patch.error());
    context.out(render(*patch, Format::kYaml));
    return kDone;
  }
  return patch_nodeset(
      context, **api, name, [&](const Json& now) { return api::apply_revision(now, *revision); },
      fmt::format("NodeSet {} has the template of revision {} again. The source of the NodeSet (Helm, GitOps, a manifest) "
                  "restores its own template when it is next applied.",
                  name, number_of(*revision)));
}

Command of_nodeset(std::string path, std::string about, std::function<Run(CLI::App&, std::shared_ptr<std::string>)> declare) {
  Command out{.path = std::move(path), .about = std::move(about), .names = Names::kNodeSets, .declare = {}};
  out.declare = [declare = std::move(declare)](CLI::App& app) {
    auto name = std::make_shared<std::string>();
    app.add_option("NODESET", *name)->required();
    return declare(app, name);
  };
  return out;
}

Command pause_command(bool pause) {
  const char* about = pause ? "Update no further workers; those that still run jobs serve again" : "Go on with a paused update";
  return of_nodeset(pause ? "rollout pause" : "rollout resume", about, [pause](CLI::App&, std::shared_ptr<std::string> name) {
    return [pause, name](Context& context) -> int {
      const auto api = context.api();
      if (!api) return context.fail(api.error());
      const auto make = [pause](const Json& nodeset) -> core::Result<Json> {
        if (core::get_bool(nodeset, {"spec", "updateStrategy", "paused"}) == pause) return Json::object();
        return Json{{"spec", {{"updateStrategy", {{"paused", pause}}}}}};
      };
      return patch_nodeset(context, **api, *name, make, "updates of NodeSet " + *name + (pause ? " are paused" : " go on"));
    };
  });
}

}  // namespace

RolloutState rollout_state(const Json& nodeset) {
  using Phase = RolloutState::Phase;
  const std::string name = "NodeSet " + kube::key_of(nodeset).name;
  if (core::find(nodeset, {"metadata", "deletionTimestamp"}) != nullptr)
    return {Phase::kWaitsForPeople, name + " is being deleted"};
  if (core::get_int(nodeset, {"status", "observedGeneration"}) < core::get_int(nodeset, {"metadata", "generation"}))
    return {Phase::kUnderWay, "waiting for the operator to see the change"};
  if (const std::string held = held_by_people(nodeset); !held.empty()) return {Phase::kWaitsForPeople, held};
  const auto desired = core::get_int(nodeset, {"status", "desired"});
  const auto updated = core::get_int(nodeset, {"status", "updatedReplicas"});
  const auto ready = core::get_int(nodeset, {"status", "readyReplicas"});
  const auto all = core::get_int(nodeset, {"status", "replicas"});
  const bool switching = progressing(nodeset, "reason") == "SwitchingMode";
  if (updated >= desired && ready >= desired && all == desired && !switching)
    return {Phase::kComplete, fmt::format("{} is up to date: {} workers, all ready", name, desired)};
  RolloutState out;
  // The counts include workers that will be deleted, by a scale-in or because scalingMode has changed.
  out.text = all > desired || switching ? fmt::format("{} workers are wanted and {} exist: {} of those are updated, {} ready",
                                                      desired, all, updated, ready)
                                        : fmt::format("{} of {} workers are updated, {} ready", updated, desired, ready);
  for (const std::string& line : waits_of(nodeset)) out.text += "; " + line;
  return out;
}

std::vector<Json> revisions_of(const Json& nodeset, std::vector<Json> revisions) {
  const std::string uid = core::get_string(nodeset, {"metadata", "uid"});
  std::erase_if(revisions, [&](const Json& revision) {
    const kube::ObjectMeta meta = kube::parse_meta(revision);
    return meta.controller_owner() == nullptr || meta.controller_owner()->uid != uid;
  });
  std::ranges::sort(revisions, {}, number_of);
  return revisions;
}

Json history_document(const Json& nodeset, const std::vector<Json>& revisions, const std::vector<Json>& workers) {
  const std::string in_force = hash_in_force(nodeset, revisions);
  Json items = Json::array();
  const Json none;
  const Json* before = nullptr;
  for (const Json& revision : revisions) {
    const Json* data = core::find(revision, {"data", "spec"});
    Json item{{"revision", number_of(revision)},
              {"name", kube::key_of(revision).name},
              {"created", core::get_string(revision, {"metadata", "creationTimestamp"})},
              {"inForce", hash_of(revision) == in_force},
              {"image", core::get_string(revision, {"data", "spec", "slurmd", "image"})}};
    item["workers"] = std::ranges::count_if(workers, [&](const Json& pod) { return hash_of(pod) == hash_of(revision); });
    item["changes"] = before == nullptr || data == nullptr ? Json::array() : Json(core::diff_paths(*before, *data));
    items.push_back(std::move(item));
    before = data == nullptr ? &none : data;
  }
  return {{"apiVersion", "cli.slinky.slurm.net/v1"}, {"kind", "RevisionList"}, {"items", std::move(items)}};
}

std::string history_text(const Json& document) {
  constexpr std::size_t kShown = 5;
  Table table({"REVISION", "CREATED", "WORKERS", "IN FORCE", "IMAGE", "CHANGED"});
  for (const Json& item : document["items"]) {
    std::string changes;
    for (std::size_t i = 0; i < std::min(kShown, item["changes"].size()); ++i)
      changes += (i == 0 ? "" : ", ") + item["changes"][i].get<std::string>();
    if (item["changes"].size() > kShown) changes += fmt::format(" and {} more", item["changes"].size() - kShown);
    table.add({std::to_string(core::get_int(item, {"revision"})), core::get_string(item, {"created"}),
               std::to_string(core::get_int(item, {"workers"})), core::get_bool(item, {"inForce"}) ? "yes" : "",
               core::get_string(item, {"image"}), changes});
  }
  return table.text(Style());
}

core::Result<Json> revision_to_undo(const Json& nodeset, const std::vector<Json>& revisions,
                                    std::optional<std::int64_t> number) {
  const std::string name = kube::key_of(nodeset).name;
  // Several revisions may restore the same spec: an earlier release of the operator also made revisions for changes that do
  // not affect workers.
  const auto differs = [&](const Json& revision) {
    const auto patch = api::apply_revision(nodeset, revision);
    return !patch || !patch->empty();
  };
  const Json* found = nullptr;
  for (const Json& revision : revisions) {
    if (number ? number_of(revision) == *number : differs(revision)) found = &revision;
  }
  if (found != nullptr) return *found;
  if (number)
    return core::fail(core::ErrorCode::kNotFound,
                      fmt::format("NodeSet {} has no revision {}: kubectl slurm rollout history {}", name, *number, name));
  return core::fail(core::ErrorCode::kNotFound,
                    fmt::format("NodeSet {} has no earlier revision. Of the revisions that no worker uses, as many are kept as "
                                "spec.revisionHistoryLimit allows, which is {}.",
                                name, core::get_int(nodeset, {"spec", "revisionHistoryLimit"})));
}

std::vector<Command> rollout_commands() {
  std::vector<Command> out;
  out.push_back(
      of_nodeset("rollout status", "Follow the update of a NodeSet", [](CLI::App& app, std::shared_ptr<std::string> name) {
        auto once = std::make_shared<bool>(false);
        auto timeout = std::make_shared<double>(0);
        app.add_flag("--once", *once, "Print the progress once, and exit");
        add_timeout(app, *timeout, "The longest time to follow it");
        return [name, once, timeout](Context& context) -> int {
          const auto api = context.api();
          return api ? follow(context, **api, *name, !*once, seconds(*timeout)) : context.fail(api.error());
        };
      }));
  Command history =
      of_nodeset("rollout history", "The revisions of a NodeSet", [](CLI::App&, std::shared_ptr<std::string> name) {
        return [name](Context& context) -> int {
          const auto api = context.api();
          if (!api) return context.fail(api.error());
          const auto nodeset = read_nodeset(context, **api, *name);
          if (!nodeset) return context.fail(nodeset.error());
          const auto revisions = read_revisions(**api, *nodeset);
          if (!revisions) return context.fail(revisions.error());
          const auto workers = (*api)->list(workers_of(*nodeset, kube::resources::kPod, true));
          if (!workers) return context.fail(workers.error());
          const Json document = history_document(*nodeset, *revisions, *workers);
          const Format format = context.options().format;
          context.out(format == Format::kTable ? history_text(document) : render(document, format));
          return kDone;
        };
      });
  history.formats = true;
  out.push_back(std::move(history));
  out.push_back(
      of_nodeset("rollout undo", "Go back to an earlier revision", [](CLI::App& app, std::shared_ptr<std::string> name) {
        auto number = std::make_shared<std::optional<std::int64_t>>();
        auto dry_run = std::make_shared<bool>(false);
        app.add_option("--to-revision", *number, "A number of rollout history (default: the revision before)");
        app.add_flag("--dry-run", *dry_run, "Print the change, and change nothing");
        return [name, number, dry_run](Context& context) -> int { return run_undo(context, *name, *number, *dry_run); };
      }));
  out.push_back(pause_command(true));
  out.push_back(pause_command(false));
  return out;
}

}  // namespace cli
