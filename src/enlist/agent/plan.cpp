#include "enlist/agent/plan.hpp"

#include <algorithm>
#include <cctype>

#include "core/hash.hpp"
#include "enlist/rules/node_conf.hpp"
#include "enlist/rules/service_files.hpp"

namespace enlist {

namespace {

const plan::StepId kWriteKey{"write", "auth key"}, kStart{"start", "slurmd"}, kReload{"reload", "slurmd"},
    kPrepare{"prepare", "slurmd"}, kSave{"save", "memory"}, kStatus{"write", "status"}, kReport{"report"},
    kStop{"stop", "slurmd"}, kClean{"clean", "host"}, kEnd{"end", "agent"}, kRemove{"remove", "former auth key"};

/// Reports whether the coordinator wants slurmd to be stopped, or the host to be cleaned up.
bool stops(const Memory& memory) {
  return memory.desired && (memory.desired->leave == kLeaveStop || memory.desired->leave == kLeaveClean);
}

bool own_runs(const Seen& seen) {
  return seen.slurmd && seen.slurmd->running && seen.slurmd->arguments;
}

bool same_text(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other, [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

std::vector<std::string> split(std::string_view list) {
  std::vector<std::string> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    if (end > 0) out.emplace_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

/// Reports whether the key file has the desired revision, and is unchanged since this program wrote it.
bool key_is_there(const Observed& observed, const Desired& desired) {
  const KeyFile& key = observed.memory.key;
  return observed.seen->key_digest && !key.digest.empty() && key.revision == desired.key_revision &&
         *observed.seen->key_digest == key.digest;
}

/// Reports whether slurmd still reads the key file with the other name, which it found when it was started.
bool keeps_other_file(const Observed& observed) {
  const auto& slurmd = observed.seen->slurmd;
  if (!slurmd || !slurmd->running) return false;
  const Memory& memory = observed.memory;
  return (slurmd->keeps_plain_key && memory.key.file != kPlainKeyFile) ||
         (!memory.started_with.empty() && memory.started_with != memory.key.file);
}

/// Returns why slurmd would or may sign with a slurm.jwks that this program has not written; "" if slurmd would not.
std::string foreign_jwks(const Observed& observed) {
  const Seen& seen = *observed.seen;
  if (observed.memory.key.file != kPlainKeyFile) return {};
  if (!seen.jwks_digest) return seen.jwks_digest.error().message;
  if (seen.jwks_digest->empty() || wrote(observed.memory, kJwksFile, *seen.jwks_digest)) return {};
  return foreign_key(seen.jwks);
}

/// Reports whether a key file with the other name may exist that this program wrote.
bool has_former(const Memory& memory) {
  return std::ranges::any_of(memory.former, [&](const KeyFile& former) { return former.file != memory.key.file; });
}

/// Reports whether no slurmd of this host runs with another key than that in the key file.
bool key_is_loaded(const Observed& observed) {
  const Memory& memory = observed.memory;
  const auto& slurmd = observed.seen->slurmd;
  if (slurmd && !slurmd->running && !slurmd->changing) return true;
  if (memory.loaded_key != memory.key.revision || keeps_other_file(observed) || !foreign_jwks(observed).empty()) return false;
  // The key was reported as loaded before. Every slurmd that has started since then has read the same file.
  if (observed.reported && observed.reported->key_loaded == memory.key.revision) return true;
  if (!slurmd || slurmd->changing) return false;
  return slurmd->arguments && memory.stale_image && !slurmd->image.empty() && slurmd->image != *memory.stale_image;
}

std::string foreign_slurmd(const Observed& observed) {
  const auto& slurmd = observed.seen->slurmd;
  if (!slurmd || !slurmd->running || slurmd->arguments) return {};
  return std::string(kForeignSlurmd) + " (systemctl disable --now slurmd); the agent starts its own then";
}

/// Returns a note if the host has a slurm.conf of another cluster; otherwise "". --conf-server overrides that file, so this is
/// no error.
std::string other_cluster(const Observed& observed) {
  const Seen& seen = *observed.seen;
  const std::string& ours = observed.memory.desired ? observed.memory.desired->cluster : observed.memory.cluster;
  if (seen.local_cluster.empty() || ours.empty() || same_text(seen.local_cluster, ours)) return {};
  return one_line("note: " + seen.local_conf + " is of the cluster " + seen.local_cluster +
                  "; slurmd ignores it and takes that of " + ours);
}

/// Returns why slurmd must not be restarted as another node yet: Slurm would lose the jobs of the old node. "": it may be.
std::string other_node_works(const Seen& seen, const Launch& want) {
  if (!own_runs(seen)) return {};
  const std::string node = launch_of(*seen.slurmd->arguments).node;
  if (node == want.node) return {};
  const std::string begin = "slurmd runs as node " + node + " here, and becomes " + want.node + " when no job runs there: ";
  if (!seen.steps) return begin + seen.steps.error().message;
  return seen.steps->empty() ? "" : begin + "step " + seen.steps->front() + " runs";
}

std::string errors_of(const Observed& observed, const core::Result<std::optional<Launch>>& want, bool check_passed) {
  std::string out;
  const auto add = [&out](const std::string& error) {
    if (!error.empty()) out += (out.empty() ? "" : "; ") + one_line(error);
  };
  const Seen& seen = *observed.seen;
  if (!seen.facts) {
    add(seen.facts.error().message);
  } else if (!want) {
    add(want.error().message);
  }
  if (!seen.key_digest) add(seen.key_digest.error().message);
  if (want && *want) add(other_node_works(seen, **want));
  if (!seen.slurmd) {
    add(seen.slurmd.error().message);
  } else if (!stops(observed.memory)) {
    add(seen.slurmd->error);
  }
  for (const plan::StepId& id : {kWriteKey, kStart, kPrepare, kReload, kRemove, kSave, kStatus, kStop, kClean, kEnd}) {
    const auto found = observed.outcomes.find(id);
    if (found != observed.outcomes.end() && found->second.error) add(found->second.error->message);
  }
  if (!check_passed) add(observed.check.error);
  return out;
}

}  // namespace

bool same(const Seen& one, const Seen& other) {
  const auto equal = [](const auto& a, const auto& b) {
    return a && b ? *a == *b : !a && !b && a.error().message == b.error().message;
  };
  return equal(one.facts, other.facts) && equal(one.slurmd, other.slurmd) && equal(one.key_digest, other.key_digest) &&
         equal(one.steps, other.steps) && equal(one.jwks_digest, other.jwks_digest) && one.not_reloaded == other.not_reloaded &&
         one.local_conf == other.local_conf && one.local_cluster == other.local_cluster;
}

core::Json StartSlurmd::describe() const {
  return {{"act", "enlist.StartSlurmd"}, {"node", launch.node}, {"conf", launch.conf}, {"controllers", launch.controllers}};
}

core::Json SendReport::describe() const {
  return {{"act", "enlist.SendReport"},
          {"running", report.running},
          {"instance", report.instance_id},
          {"registrations", report.registrations},
          {"error", report.error}};
}

Launch launch_of(const std::vector<std::string>& arguments) {
  Launch out;
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i) {
    const std::string &word = arguments[i], &value = arguments[i + 1];
    if (word == "-N") {
      out.node = value;
    } else if (word == "--conf") {
      out.conf = value;
    } else if (word == "--conf-server") {
      out.controllers = split(value);
    } else if (word == "--instance-id") {
      out.instance = value;
    } else {
      continue;
    }
    ++i;
  }
  return out;
}

std::string instance_of(const Memory& memory) {
  return core::short_digest(memory.coordinator + " " + memory.node);
}

bool wrote(const Memory& memory, std::string_view file, const std::string& digest) {
  const auto is = [&](const KeyFile& key) { return key.file == file && key.digest == digest; };
  return !digest.empty() && (is(memory.key) || std::ranges::any_of(memory.former, is));
}

std::string foreign_key(const std::string& path) {
  return path +
         " has another key, which slurm-enlist has not written, and slurmd would sign with it: move it away if nothing "
         "needs it, and restart slurmd if it runs";
}

std::string cluster_name_of(std::string_view slurm_conf) {
  constexpr std::string_view kKey = "ClusterName", kSpace = " \t\r";
  while (!slurm_conf.empty()) {
    std::string_view line = slurm_conf.substr(0, slurm_conf.find('\n'));
    slurm_conf.remove_prefix(std::min(line.size() + 1, slurm_conf.size()));
    line = line.substr(0, line.find('#'));
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    if (!same_text(line.substr(0, kKey.size()), kKey)) continue;
    line.remove_prefix(kKey.size());
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    if (!line.starts_with('=')) continue;
    line.remove_prefix(1);
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    return std::string(line.substr(0, line.find_first_of(kSpace)));
  }
  return {};
}

core::Result<std::optional<Launch>> wanted(const Observed& observed) {
  const auto& desired = observed.memory.desired;
  if (!desired || desired->controllers.empty() || stops(observed.memory)) return std::nullopt;
  const auto& facts = observed.seen->facts;
  if (!facts) return std::unexpected(facts.error());
  const auto words = merged_conf(facts->detected, desired->node_conf);
  if (!words) return std::unexpected(words.error());
  if (const std::string foreign = foreign_slurmd(observed); !foreign.empty())
    return core::fail(core::ErrorCode::kConflict, foreign);
  if (const std::string foreign = foreign_jwks(observed); !foreign.empty())
    return core::fail(core::ErrorCode::kConflict, foreign);
  return Launch{desired->node, gated_conf(*words, desired->pool), desired->controllers, ""};
}

Report report_of(const Observed& observed) {
  Report out;
  if (!observed.seen) return out;
  const Seen& seen = *observed.seen;
  if (seen.facts) {
    out.hostname = seen.facts->hostname;
    out.boot_id = seen.facts->boot_id;
    out.slurm_version = seen.facts->slurm_version;
  }
  if (seen.slurmd && seen.slurmd->arguments) {
    Launch launch = launch_of(*seen.slurmd->arguments);
    out.conf = std::move(launch.conf);
    out.instance_id = std::move(launch.instance);
    out.running = seen.slurmd->running;
    out.started = seen.slurmd->started;
  }
  if (const KeyFile& key = observed.memory.key; seen.key_digest && !key.digest.empty() && *seen.key_digest == key.digest) {
    out.key_revision = key.revision;
    if (key_is_loaded(observed)) out.key_loaded = key.revision;
  }
  out.registrations = observed.memory.registrations;
  if (observed.memory.desired && !observed.memory.desired->leave.empty()) {
    out.steps_known = seen.steps.has_value();
    if (seen.steps) out.steps = *seen.steps;
    out.stopped = observed.memory.stopped && seen.slurmd && !own_runs(seen);
    out.left = observed.memory.left;
    // The coordinator needs the id to recognise Slurm's record. After CleanHost, the service no longer knows its arguments.
    if (observed.memory.stopped) out.instance_id = instance_of(observed.memory);
  }
  out.check_passed = !observed.check.wanted || (!out.instance_id.empty() && observed.check.instance == out.instance_id);
  out.error = errors_of(observed, wanted(observed), out.check_passed);
  out.note = other_cluster(observed);
  return out;
}

std::string status_of(const Observed& observed) {
  core::Json out = {{"node", observed.memory.node},
                    {"pool", observed.memory.pool},
                    {"phase", observed.told.phase},
                    {"message", observed.told.message}};
  const Report report = report_of(observed);
  std::string error = report.error;
  // At the end of a leave, a coordinator that no longer knows the host is no error.
  const bool over = observed.memory.left && observed.told.heard;
  if (!observed.told.trouble.empty() && !over) error = observed.told.trouble + (error.empty() ? "" : "; ") + error;
  if (!error.empty()) out["error"] = one_line(error);
  if (!report.note.empty()) out["note"] = report.note;
  return core::canonical(out) + "\n";
}

namespace {

/// Returns why the running slurmd has to be reloaded, to read the key or to register again; "" if it has not.
std::string why_reload(const Observed& observed) {
  const Memory& memory = observed.memory;
  if (memory.registrations < memory.desired->registrations) return "Slurm does not have the node";
  if (memory.loaded_key != memory.key.revision) return "the key has changed";
  if (!memory.stale_image) return "an earlier agent has not noted which slurmd has read the key";
  return observed.seen->not_reloaded ? "it has not carried out the last reload" : "";
}

/// Adds the next step of leaving. Each pass carries out only one of these steps.
void add_leave(const Observed& observed, plan::Plan& out) {
  const Memory& memory = observed.memory;
  const Seen& seen = *observed.seen;
  if (!seen.slurmd) return;
  plan::Lane& lane = out.lane("slurmd");
  if (!memory.stopped || own_runs(seen)) {
    // A slurmd that crashes repeatedly must be stopped as well, because systemd would start it each time.
    lane.add({kStop, "the node leaves, and nothing runs there", std::make_shared<StopSlurmd>()});
  } else if (seen.slurmd->changing || memory.desired->leave != kLeaveClean) {
    return;
  } else if (!memory.left) {
    lane.add({kClean, "Slurm does not have the node any more", std::make_shared<CleanHost>()});
  } else if (observed.told.heard && observed.reported && observed.reported->left && status_of(observed) == observed.status) {
    lane.add({kEnd, "the coordinator knows that the host is clean", std::make_shared<EndAgent>()});
  }
}

}  // namespace

plan::Plan plan(const Observed& observed) {
  plan::Plan out;
  if (!observed.seen) return out;
  if (const std::string status = status_of(observed); status != observed.status)
    out.lane("status").add({kStatus, "what is known has changed", std::make_shared<WriteStatus>(status)});
  if (const Report report = report_of(observed); report != observed.reported)
    out.lane("report").add({kReport, "the host has changed", std::make_shared<SendReport>(report)});

  // A pass has one step for slurmd at most, because the next step depends on what is read after this one.
  const auto& desired = observed.memory.desired;
  const auto& slurmd = observed.seen->slurmd;
  if (desired && !stops(observed.memory) && !desired->key_revision.empty() && observed.seen->key_digest &&
      !key_is_there(observed, *desired)) {
    out.lane("slurmd").add({kWriteKey,
                            observed.memory.key.revision == desired->key_revision ? "the file is not as it was written"
                                                                                  : "the coordinator has another key",
                            std::make_shared<WriteKey>(desired->key_revision, observed.memory)});
    return out;  // WriteKey saves the memory as well.
  }
  if (observed.memory != observed.saved)
    out.lane("save").add({kSave, "it has changed", std::make_shared<SaveMemory>(observed.memory)});
  if (stops(observed.memory)) {
    // The memory must be saved before the next step, so that a new process knows the steps that were carried out.
    if (observed.memory == observed.saved) add_leave(observed, out);
    return out;
  }
  if (!desired || !slurmd || slurmd->changing) return out;
  if (desired->key_revision.empty() || !observed.seen->key_digest) return out;
  const auto want = wanted(observed);
  const std::string reload = why_reload(observed);
  if (!want || !*want || !other_node_works(*observed.seen, **want).empty()) {
    // A reload needs no arguments. Without it, slurmd would keep an old key, and the rest of the cluster would reject it.
    if (own_runs(*observed.seen) && !keeps_other_file(observed) && foreign_jwks(observed).empty() && !reload.empty())
      out.lane("slurmd").add({kReload, reload, std::make_shared<ReloadSlurmd>(desired->registrations)});
    return out;
  }

  std::optional<Launch> runs;
  if (slurmd->running && slurmd->arguments) runs = launch_of(*slurmd->arguments);
  if (runs) runs->instance.clear();
  // The coordinator changes the Weight and the Features directly in Slurm. So slurmd needs them only at its next start.
  Launch as_next = runs.value_or(Launch{});
  if (runs && differ_live(runs->conf, (*want)->conf)) as_next.conf = (*want)->conf;
  if (as_next != **want) {
    const std::string reason = runs ? "it runs with other arguments" : "it does not run";
    out.lane("slurmd").add({kStart, reason, std::make_shared<StartSlurmd>(**want, desired->registrations)});
  } else if (keeps_other_file(observed) && observed.memory.restarted_for != observed.memory.key.revision) {
    out.lane("slurmd").add({kStart, "it keeps to the key file from when it was started",
                            std::make_shared<StartSlurmd>(**want, desired->registrations)});
  } else if (!reload.empty()) {
    out.lane("slurmd").add({kReload, reload, std::make_shared<ReloadSlurmd>(desired->registrations)});
  } else if (slurmd->file_missing) {
    out.lane("slurmd").add({kPrepare, "a file of its service is missing", std::make_shared<PrepareSlurmd>(**want)});
  } else if ((runs != *want || !observed.memory.prepared.empty()) && observed.memory.prepared != (*want)->conf) {
    out.lane("slurmd").add({kPrepare, "its next start has other arguments", std::make_shared<PrepareSlurmd>(**want)});
  } else if (has_former(observed.memory) && key_is_loaded(observed)) {
    out.lane("slurmd").add({kRemove, "slurmd has the key from the new file", std::make_shared<RemoveFormerKey>()});
  }
  return out;
}

}  // namespace enlist
