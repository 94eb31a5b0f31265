#include "operator/controller/rollout.hpp"

#include <algorithm>
#include <charconv>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "kube/acts.hpp"
#include "operator/common/deployments.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/cluster_number.hpp"
#include "operator/controller/keyring.hpp"
#include "operator/controller/prologs.hpp"
#include "slinky/releases.hpp"
#include "slinky/workers.hpp"
#include "slurm/acts.hpp"
#include "slurm/conf/conf.hpp"

namespace op::controller {

using slurm::rollout::answered;
using slurm::rollout::kTriesOfFormer;
using slurm::rollout::outcome_of;
using slurm::rollout::try_at;
using slurm::rollout::try_due;
using slurm::rollout::waited;

namespace {

constexpr std::string_view kOurAnnotations = "slinky.slurm.net/";
/// The first wait between the refresh of the volume and the reconfigure. The wait doubles with each try.
constexpr core::Duration kFirstWait{500};
constexpr core::Duration kLongestWait{30000};
/// A temporary fault while slurmctld starts can cause a single refusal. A second refusal shows that the file is the cause.
constexpr int kTriesUntilRefused = 2;
/// If slurmctld crashes this often with a content that it has never accepted, the content counts as refused.
constexpr int kCrashesUntilRefused = 2;

/// The time between two checks whether jobs have ended. The end of a job does not start a pass.
constexpr core::Duration kJobsPoll{5000};

struct Refresh {
  std::string hash;
  int count = 0;
  /// Returns the value for the annotation that refreshes the pod's volume.
  [[nodiscard]] std::string str() const { return hash + "." + std::to_string(count); }
};

int read_number(std::string_view text) {
  int number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Refresh read_refresh(const kube::PodRecord& pod) {
  const std::string_view text = pod.meta.annotation(api::kAnnotationConfigRefresh);
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return {};
  return {std::string(text.substr(0, dot)), read_number(text.substr(dot + 1))};
}

plan::StepId reconfigure_id(const Refresh& refresh) {
  return kReconfigure.of(refresh.str());
}
plan::StepId refresh_id(const Refresh& refresh) {
  return {"refresh", "", refresh.str()};
}

bool crashing(const kube::PodRecord& pod) {
  return std::any_of(pod.containers.begin(), pod.containers.end(), [](const kube::ContainerState& container) {
    return container.name == kAppController && container.crashed;
  });
}

/// Returns a digest of the pod template with which slurmctld runs. The digest leaves out the operator's own annotations, and
/// topology.yaml, which depends on the offered content. "": the pod is about to be replaced.
std::string slurmctld_digest(const Observed& observed) {
  const kube::PodRecord* pod = running_pod(observed);
  if (!observed.stateful_set || pod == nullptr) return "";
  const core::Json& body = observed.stateful_set->body;
  const std::int64_t seen = core::get_int(body, {"status", "observedGeneration"});
  if (seen != 0 && seen != observed.stateful_set->meta.generation) return "";
  if (pod->meta.label(api::kLabelRevisionHash) != core::get_string(body, {"status", "updateRevision"})) return "";
  const core::Json* found = core::find(body, {"spec", "template"});
  if (found == nullptr) return "";
  core::Json made_of = *found;
  core::Json notes = core::Json::object();
  if (const core::Json* annotations = core::find(made_of, {"metadata", "annotations"})) {
    for (const auto& [name, value] : annotations->items()) {
      if (!name.starts_with(kOurAnnotations)) notes[name] = value;
    }
    made_of["metadata"]["annotations"] = std::move(notes);
  }
  const core::Json topology = topology_source(observed);
  for (core::Json& volume : made_of["spec"]["volumes"]) {
    if (!volume.contains("projected")) continue;
    core::Json others = core::Json::array();
    for (const core::Json& source : volume["projected"]["sources"]) {
      if (!core::contains(source, topology)) others.push_back(source);
    }
    volume["projected"]["sources"] = std::move(others);
  }
  return core::short_digest(core::canonical(made_of));
}

plan::Step refresh_step(const kube::PodRecord& pod, const Refresh& refresh) {
  // The patch has no resourceVersion, because the pod's status changes all the time and nobody else writes this annotation.
  return {refresh_id(refresh), "the kubelet of pod " + pod.meta.name + " must refresh the configuration",
          kube::patch_any_version(
              kube::resources::kPod, pod.meta,
              {{"metadata", {{"annotations", {{std::string(api::kAnnotationConfigRefresh), refresh.str()}}}}}})};
}

/// Returns the error of a slurmctld that crashes repeatedly with the offered content. nullopt: no slurmctld crashes so.
std::optional<std::string> words_of_crashes(const Observed& observed, const ConfigState& state) {
  for (const kube::PodPtr& pod : observed.pods) {
    // If the pod crashed before the content was offered to it, the content did not cause the crash.
    if (read_refresh(*pod).hash != state.offered_hash) continue;
    for (const kube::ContainerState& container : pod->containers) {
      if (container.name == kAppController && container.crashed && container.restarts >= kCrashesUntilRefused &&
          !differing_numbers(container)) {
        const std::string words = last_words(container.message);
        return std::string(kEndsWithIt) + (words.empty() ? "" : ": " + words);
      }
    }
  }
  return {};
}

/// True if the offered content has a NodeSet's partition that could be left out.
bool offers_partitions(const Observed& observed, const ConfigState& state) {
  const std::string_view text = slurm_conf(state.offered);
  return std::any_of(observed.nodesets.begin(), observed.nodesets.end(), [&](const NodeSetFacts& nodeset) {
    return text.find("\nPartitionName=" + nodeset.slurm_name + " ") != std::string_view::npos;
  });
}

/// Returns those of the partitions in `names` whose settings differ between the offered and the accepted content.
std::vector<std::string> changed_partitions(const ConfigState& state, const std::map<std::string, std::string>& names) {
  const auto read = [](const std::map<std::string, std::string>& files) {
    return slurm::conf::parse(slurm::conf::Kind::kSlurm, slurm_conf(files)).conf;
  };
  const slurm::conf::Conf before = read(state.accepted_files()), after = read(state.offered);
  const auto line = [](const slurm::conf::Conf& conf, const std::string& name) {
    const slurm::conf::Entry* entry = conf.record("PartitionName", name);
    slurm::conf::Conf alone;
    if (entry != nullptr) alone.add(*entry);
    return alone.render();
  };
  std::vector<std::string> out;
  for (const auto& [name, config] : names) {
    const std::string offered = line(after, name);
    if (!offered.empty() && offered != line(before, name)) out.push_back(name);
  }
  return out;
}

/// True if slurmctld need not restart to try the refused content again. If a restart were needed, each try would be an outage.
bool may_try(const ConfigState& state, const Rendered& wanted) {
  // slurmctld needs a restart to join an Accounting: see accounting.hpp.
  if (!wanted.slurmdbd.empty() && slurmdbd_of(slurm_conf(state.offered)) != wanted.slurmdbd) return false;
  // Adding or removing topology.yaml needs a new pod.
  const std::string topology(kTopologyYaml);
  return restart_digest(slurm_conf(state.offered)) == restart_digest(slurm_conf(wanted.files)) &&
         state.offered.contains(topology) == wanted.files.contains(topology);
}

/// Forgets left-out partitions that are no longer wanted, or whose settings have changed.
void drop_settled(ConfigState& next, const Rendered& wanted) {
  std::erase_if(next.left_out, [&](const auto& item) {
    const auto asked = wanted.partitions.find(item.first);
    return asked == wanted.partitions.end() || asked->second != item.second.config;
  });
}

/// Handles a refusal of the content that users requested. Leaves out the partitions that are new or have changed. If there are
/// no such partitions, records that the whole content was refused.
Rendered blame(ConfigState& next, Rendered wanted, bool offers_wanted, const SlurmctldFacts& slurmctld, const Render& render) {
  std::vector<std::string> changed = changed_partitions(next, wanted.partitions);
  // Skip partitions that were left out before. They are in the content only for their jobs, without the users' settings.
  std::erase_if(changed, [&](const std::string& name) { return next.leaves_out(name, wanted.partitions.at(name)); });
  if (changed.empty()) {
    refuse_offered(next, wanted.asked, slurmctld.for_rollout());
    return wanted;
  }
  next.forget_refusal();
  next.refused_by = slurmctld.made_of;
  for (const std::string& name : changed) {
    LeftOut& item = next.left_out[name];
    item = {.config = wanted.partitions.at(name), .refusal = "", .refusals = item.refusals};
  }
  wanted = render(next);
  // Only this partition was new, so it is the cause of the refusal.
  if (offers_wanted && changed.size() == 1 && wanted.hash == next.accepted_hash) {
    LeftOut& guilty = next.left_out[changed.front()];
    guilty.refusal = *slurmctld.refusal;
    guilty.refused_at = slurmctld.now;
    ++guilty.refusals;
  }
  return wanted;
}

/// Ends the try of a single refused partition if the spec changes or slurmctld is not up, and counts the try as a refusal. So
/// the partition does not prevent slurmctld from starting.
Rendered end_try(ConfigState& next, Rendered wanted, const SlurmctldFacts& slurmctld, const Render& render) {
  const auto tried = std::ranges::find_if(next.left_out, [](const auto& item) { return item.second.trying; });
  if (tried == next.left_out.end() || (next.offered_hash == wanted.hash && (slurmctld.ready || slurmctld.refusal)))
    return wanted;
  tried->second.trying = false;
  tried->second.refused_at = slurmctld.now;
  ++tried->second.refusals;
  return render(next);
}

/// Once the rest of the content is loaded, offers one more of the left-out partitions: a partition that might be the cause of
/// the refusal, or a partition whose refusal was long enough ago.
Rendered try_a_partition(ConfigState& next, Rendered wanted, const SlurmctldFacts& slurmctld, const Render& render) {
  const auto suspect = std::ranges::find_if(next.left_out, [](const auto& item) { return item.second.refusal.empty(); });
  if (suspect != next.left_out.end()) {
    next.left_out.erase(suspect);
    return render(next);
  }
  const auto due = std::ranges::find_if(
      next.left_out, [&](const auto& item) { return try_due(item.second.refused_at, item.second.refusals, slurmctld.now); });
  if (due == next.left_out.end() || !slurmctld.ready) return wanted;
  due->second.trying = true;
  return render(next);
}

}  // namespace

bool answers(const Observed& observed) {
  return observed.snapshot && observed.snapshot->complete();
}

const kube::PodRecord* running_pod(const Observed& observed) {
  for (const kube::PodPtr& pod : observed.pods) {
    if (!pod->meta.terminating() && pod->phase == "Running") return pod.get();
  }
  return nullptr;
}

const LeftOut* ConfigState::known_against(std::string_view partition, std::string_view config) const {
  const auto it = left_out.find(partition);
  return it != left_out.end() && it->second.config == config ? &it->second : nullptr;
}

bool ConfigState::leaves_out(std::string_view partition, std::string_view config) const {
  const LeftOut* item = known_against(partition, config);
  return item != nullptr && !item->trying;
}

bool ConfigState::tries_partition() const {
  return std::ranges::any_of(left_out, [](const auto& item) { return item.second.trying; });
}

namespace {

using Files = std::map<std::string, std::string>;

/// Returns only the users' files, or only the other files. Leaves out the entry that marks the users' files as known.
Files part_of(const Files& content, bool users) {
  Files out;
  for (const auto& [name, text] : content) {
    if (name.starts_with(kUsers) == users && name != kUsers) out.emplace(name, text);
  }
  return out;
}

std::string data_digest(const ConfigState& state) {
  return core::short_digest(core::canonical(
      core::Json::array({core::Json(part_of(state.offered, false)), core::Json(part_of(state.accepted, false))})));
}

std::string users_digest(const Files& users) {
  return core::short_digest(core::canonical(core::Json(users)));
}

/// Returns the text and the binary data of a ConfigMap.
core::Json members_of(const core::Json& config_map) {
  const core::Json none = core::Json::object();
  return core::Json::array({config_map.value("data", none), config_map.value("binaryData", none)});
}

std::string members_digest(const core::Json& config_map) {
  return core::short_digest(core::canonical(members_of(config_map)));
}

/// True if the copies exist and were not edited.
bool is_whole(const kube::Object* copies) {
  return copies != nullptr && copies->meta.annotation(api::kAnnotationDataHash) == members_digest(copies->body);
}

Files read_copies(const kube::Object* copies) {
  Files out;
  if (copies == nullptr) return out;
  std::string prefix;
  for (const core::Json& members : members_of(copies->body)) {
    prefix += kUsers;
    if (!members.is_object()) continue;
    for (const auto& [name, text] : members.items()) {
      if (text.is_string()) out[prefix + name] = text.get<std::string>();
    }
  }
  return out;
}

}  // namespace

ConfigState read_config_state(const kube::Object* config_map) {
  ConfigState out;
  if (config_map == nullptr) return out;
  if (const core::Json* data = core::find(config_map->body, {"data"}); data != nullptr && data->is_object()) {
    for (const std::string_view file : {kSlurmConf, kCgroupConf, kTopologyYaml}) {
      const std::string name(file), accepted = std::string(kAcceptedPrefix) + name;
      if (data->contains(name)) out.offered[name] = core::get_string(*data, {name});
      if (data->contains(accepted)) out.accepted[name] = core::get_string(*data, {accepted});
    }
  }
  out.left_out = read_left_out(*config_map);
  out.scripts_hash = config_map->meta.annotation(api::kAnnotationScriptsHash);
  out.served_key = config_map->meta.annotation(api::kAnnotationSlurmKeyHash);
  out.served_made_with = config_map->meta.annotation(api::kAnnotationMadeWithKey);
  out.served_release = config_map->meta.annotation(api::kAnnotationSlurmctldRelease);
  out.numbers_differ = config_map->meta.annotation(api::kAnnotationNumbersDiffer);
  out.served_by = config_map->meta.annotation(api::kAnnotationServedBy);
  out.ran = is_true(config_map->meta.annotation(api::kAnnotationRan));
  if (const auto at = core::parse_rfc3339(config_map->meta.annotation(api::kAnnotationHeldSince))) out.held_since = *at;
  if (const auto at = core::parse_rfc3339(config_map->meta.annotation(api::kAnnotationStartingAt))) out.starting_at = *at;
  out.places = read_places(*config_map);
  if (const auto cut = core::parse_json(config_map->meta.annotation(api::kAnnotationCutShort)); cut && cut->is_object()) {
    if (const auto at = core::parse_rfc3339(core::get_string(*cut, {"at"}))) out.cut_short_at = *at;
    if (const core::Json* jobs = core::find(*cut, {"jobs"}); jobs != nullptr && jobs->is_array() && out.cut_short_at) {
      for (const core::Json& job : *jobs) {
        if (job.is_number_integer()) out.cut_short.insert(job.get<std::int64_t>());
      }
    }
  }
  // If somebody edited the data, slurmctld was never offered the edited content, and the annotations describe an earlier
  // content.
  const std::string_view written = config_map->meta.annotation(api::kAnnotationDataHash);
  if (!written.empty() && written != data_digest(out)) {
    out.offered.clear();
    out.accepted.clear();
    return out;
  }
  out.offered_hash = config_map->meta.annotation(api::kAnnotationSlurmConfigHash);
  out.accepted_hash = config_map->meta.annotation(api::kAnnotationAcceptedConfigHash);
  out.refused_hash = config_map->meta.annotation(api::kAnnotationRefusedConfigHash);
  out.refused_reason = config_map->meta.annotation(api::kAnnotationRefusedReason);
  out.offered_asked = config_map->meta.annotation(api::kAnnotationAskedHash);
  out.refused_asked = config_map->meta.annotation(api::kAnnotationRefusedAskedHash);
  out.refused_by = config_map->meta.annotation(api::kAnnotationRefusedBy);
  if (const auto at = core::parse_rfc3339(config_map->meta.annotation(api::kAnnotationRefusedAt))) out.refused_at = *at;
  out.refusals = read_number(config_map->meta.annotation(api::kAnnotationRefusals));
  return out;
}

ConfigState read_config_state(const kube::Object* config_map, const kube::Object* copies, const kube::Object* accepted) {
  ConfigState out = read_config_state(config_map);
  if (config_map == nullptr || !out.exists()) return out;
  const std::string of_offered(config_map->meta.annotation(api::kAnnotationFilesHash));
  const std::string of_accepted(out.accepted.empty() ? std::string_view{}
                                                     : config_map->meta.annotation(api::kAnnotationAcceptedFilesHash));
  const std::string of_none = users_digest({});
  const auto lacks = [&](const std::string& digest, const kube::Object* there) {
    return !digest.empty() && digest != of_none && !is_whole(there);
  };
  if (lacks(of_offered, copies) || (of_accepted != of_offered && lacks(of_accepted, accepted))) {
    out.offered.clear();
    out.accepted.clear();
    for (std::string* hash : {&out.offered_hash, &out.accepted_hash, &out.offered_asked, &out.refused_by}) hash->clear();
    out.forget_refusal();
    return out;
  }
  const std::vector<Files> there{{}, read_copies(copies), read_copies(accepted)};
  const auto add = [&](Files& to, const std::string& digest) {
    const auto users = std::ranges::find(there, digest, users_digest);
    if (to.empty() || users == there.end()) return;
    to.insert(users->begin(), users->end());
    to.emplace(kUsers, "");
  };
  add(out.offered, of_offered);
  add(out.accepted, of_accepted);
  return out;
}

ConfigState read_config_state(const Observed& observed) {
  return read_config_state(observed.config_map.get(), observed.file_copies.get(), observed.accepted_copies.get());
}

bool knows_files(const Files& content) {
  return content.contains(std::string(kUsers));
}

bool knows_files(const ConfigState& state) {
  return knows_files(state.offered) && (state.accepted.empty() || knows_files(state.accepted));
}

bool has_file_copies(const ConfigState& state) {
  return !part_of(state.offered, true).empty() || !part_of(state.accepted, true).empty();
}

Files accepted_apart(const ConfigState& state) {
  const bool same = knows_files(state) && part_of(state.accepted, true) == part_of(state.offered, true);
  return same ? Files{} : state.accepted;
}

const std::string* file_copy(const ConfigState& state, std::string_view file) {
  const auto found = state.offered.find(std::string(kUsers) + std::string(file));
  return found == state.offered.end() ? nullptr : &found->second;
}

void write_file_copies(const Files& content, core::Json& config_map) {
  const std::string binary = std::string(kUsers) + std::string(kUsers);
  for (const auto& [name, text] : part_of(content, true)) {
    const bool is_text = !name.starts_with(binary);
    config_map[is_text ? "data" : "binaryData"][name.substr(is_text ? kUsers.size() : binary.size())] = text;
  }
  config_map["metadata"]["annotations"][std::string(api::kAnnotationDataHash)] = members_digest(config_map);
}

void write_config_state(const ConfigState& state, core::Json& config_map) {
  core::Json data = core::Json::object();
  for (const auto& [name, text] : part_of(state.offered, false)) data[name] = text;
  for (const auto& [name, text] : part_of(state.accepted, false)) data[std::string(kAcceptedPrefix) + name] = text;
  config_map["data"] = std::move(data);
  core::Json& annotations = config_map["metadata"]["annotations"];
  const auto annotate = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) annotations[std::string(name)] = value;
  };
  annotate(api::kAnnotationDataHash, data_digest(state));
  annotate(api::kAnnotationSlurmConfigHash, state.offered_hash);
  annotate(api::kAnnotationAcceptedConfigHash, state.accepted_hash);
  // Copies are created once the users' files of both contents are known. If the files-hash annotations are absent, a missing
  // copy does not mean that somebody deleted it.
  if (knows_files(state)) {
    annotate(api::kAnnotationFilesHash, users_digest(part_of(state.offered, true)));
    if (!state.accepted.empty()) annotate(api::kAnnotationAcceptedFilesHash, users_digest(part_of(state.accepted, true)));
  }
  annotate(api::kAnnotationRefusedConfigHash, state.refused_hash);
  annotate(api::kAnnotationRefusedReason, state.refused_reason);
  annotate(api::kAnnotationAskedHash, state.offered_asked);
  annotate(api::kAnnotationRefusedAskedHash, state.refused_asked);
  annotate(api::kAnnotationRefusedBy, state.refused_by);
  if (state.refused_at) annotate(api::kAnnotationRefusedAt, core::format_rfc3339(*state.refused_at));
  if (state.refusals > 0) annotate(api::kAnnotationRefusals, std::to_string(state.refusals));
  annotate(api::kAnnotationScriptsHash, state.scripts_hash);
  annotate(api::kAnnotationSlurmKeyHash, state.served_key);
  annotate(api::kAnnotationMadeWithKey, state.served_made_with);
  annotate(api::kAnnotationSlurmctldRelease, state.served_release);
  annotate(api::kAnnotationNumbersDiffer, state.numbers_differ);
  annotate(api::kAnnotationServedBy, state.served_by);
  annotate(api::kAnnotationRan, state.ran ? "true" : "");
  if (state.starting_at) annotate(api::kAnnotationStartingAt, core::format_rfc3339(*state.starting_at));
  if (state.places && state.places->given_until)
    annotate(api::kAnnotationPlacesGiven, core::format_rfc3339(*state.places->given_until));
  if (state.places && state.places->due) annotate(api::kAnnotationPlacesDue, core::format_rfc3339(*state.places->due));
  if (state.held_since) annotate(api::kAnnotationHeldSince, core::format_rfc3339(*state.held_since));
  if (!state.cut_short.empty() && state.cut_short_at) {
    annotate(api::kAnnotationCutShort,
             core::canonical({{"at", core::format_rfc3339(*state.cut_short_at)}, {"jobs", state.cut_short}}));
  }
  if (!state.left_out.empty()) annotate(api::kAnnotationLeftOut, write_left_out(state.left_out));
}

std::optional<core::WallTime> next_try(const ConfigState& state) {
  std::optional<core::WallTime> next = slurm::rollout::next_try(state);
  for (const auto& [name, item] : state.left_out) {
    if (item.trying || !item.refused_at) continue;
    const core::WallTime at = try_at(*item.refused_at, item.refusals);
    next = std::min(next.value_or(at), at);
  }
  return next;
}

ConfigState next_config_state(const ConfigState& now, const Render& render, const SlurmctldFacts& slurmctld) {
  const slurm::rollout::Slurmctld facts = slurmctld.for_rollout();
  ConfigState next = now;
  if (!slurmctld.key.empty()) {
    next.served_key = slurmctld.key;
    next.served_made_with = slurmctld.made_with == slurmctld.key ? "" : slurmctld.made_with;
  }
  if (slurmctld.release) next.served_release = *slurmctld.release;
  if (!slurmctld.pod.empty()) next.served_by = slurmctld.pod;
  if (now.is_loaded(facts)) std::erase_if(next.left_out, [](const auto& item) { return item.second.trying; });
  if (note_loaded(next, facts)) next.left_out.clear();
  // `ran` is stored because the evidence that slurmctld has run is only in this process or on the last worker. This evidence
  // can be lost before it is needed. Once served_key is stored, that is permanent evidence.
  next.ran = next.served_key.empty() && (next.ran || (slurmctld.ran && next.accepted_hash.empty()));
  Rendered wanted = render(next);
  const bool refuses = is_refused(next, facts);
  if (!wanted.ok()) {
    // Roll back if the present request cannot be rendered and slurmctld refused the previous request.
    const bool told =
        std::ranges::any_of(wanted.problems, [](const Problem& problem) { return problem.kind != Problem::Kind::kComing; });
    if (told && refuses) withdraw(next, facts);
    return next;
  }
  drop_settled(next, wanted);
  wanted = end_try(next, std::move(wanted), slurmctld, render);
  const bool offers_wanted = now.offered_hash == wanted.hash;
  const bool offers_asked = now.offers(wanted);
  if (refuses && offers_asked) {
    wanted = blame(next, std::move(wanted), offers_wanted, slurmctld, render);
  } else if (offers_wanted && now.is_loaded(facts)) {
    wanted = try_a_partition(next, std::move(wanted), slurmctld, render);
  }
  if (!next.refuses(wanted)) next.forget_refusal();
  if (next.refused_hash.empty() && next.left_out.empty()) next.refused_by.clear();

  // While slurmctld starts, the offered content does not change: the start shows whether slurmctld accepts the content, and
  // missing answers of Slurm could change which items the content retains. There are two exceptions. If Slurm reports running
  // jobs, lines that these jobs need are added, because the slurmctld of a pod that is not ready can still answer. If slurmctld
  // crashed before it had this content, it gets the wanted content.
  const bool judged = !slurmctld.ready && !slurmctld.fails && !slurmctld.failed_before;
  const bool starts = offers_asked && !refuses && judged && next.left_out == now.left_out && !lacks_withheld(next, wanted);
  if (starts && !offers_wanted && !next.refuses(wanted)) return next;
  const bool tries = !next.refuses(wanted) || may_try(next, wanted);
  advance(next, std::move(wanted), facts, tries);
  return next;
}

SlurmctldFacts read_slurmctld(const Observed& observed, const ConfigState& state) {
  const kube::PodRecord* pod = running_pod(observed);
  const bool ready = pod != nullptr && pod->ready();
  const std::string made_of = slurmctld_digest(observed);
  const bool known = ready && !made_of.empty();
  const std::string made_with = ready ? std::string(pod->meta.annotation(api::kAnnotationSlurmKeyHash)) : "";
  return {
      loaded_config_hash(observed), find_refusal(observed, state), made_of, ready, observed.context.now,
      // While a key rotates, slurmctld might have either key.
      observed.keyring.rotation ? "" : key_by(observed, made_with), made_with,
      // If there is no StatefulSet, the answering slurmctld belongs to another cluster.
      observed.stateful_set && has_run(observed, state),
      known ? std::optional(to_string(slurm_release(made_image(*observed.stateful_set, kAppController)))) : std::nullopt,
      ready && !observed.controller.spec.persistence.enabled ? pod->meta.uid : "",
      words_of_crashes(observed, state).has_value(),
      pod != nullptr && crashing(*pod) && !read_refresh(*pod).hash.empty() && read_refresh(*pod).hash != state.offered_hash};
}

std::optional<std::string> loaded_config_hash(const Observed& observed) {
  return slurm::rollout::loaded(slurm::Owner::kOperator, observed.snapshot);
}

bool runs(const Observed& observed) {
  const kube::PodRecord* pod = running_pod(observed);
  return pod != nullptr && !crashing(*pod);
}

plan::Outcomes without_refusals(plan::Outcomes outcomes) {
  std::erase_if(outcomes, [](const auto& item) {
    const auto& [id, outcome] = item;
    const bool waits = id.is(kLookForStarting) && outcome.error && outcome.error->code == core::ErrorCode::kBusy;
    return waits || (id.is(kReconfigure) && refused(&outcome));
  });
  return outcomes;
}

std::optional<std::string> find_refusal(const Observed& observed, const ConfigState& state) {
  if (!state.exists() || state.offered_hash == state.accepted_hash) return {};
  for (const kube::PodPtr& pod : observed.pods) {
    const Refresh refresh = read_refresh(*pod);
    if (refresh.hash == state.offered_hash && refresh.count >= kTriesUntilRefused) {
      const plan::Outcome* outcome = outcome_of(observed.context, reconfigure_id(refresh));
      if (refused(outcome)) return outcome->error->message;
    }
  }
  // If there is no accepted content to return to, a crash is only reported: see pod_problems.
  if (!state.can_roll_back() && !offers_partitions(observed, state)) return {};
  return words_of_crashes(observed, state);
}

bool restart_crashed(const Observed& observed, const ConfigState& state) {
  // Without a volume, a new pod would lose the state of a slurmctld that has run. A new pod is not necessary: when the kubelet
  // restarts the container, slurmctld reads the offered content.
  const bool ran = !state.accepted_hash.empty() || observed.workers_registered;
  if (ran && !observed.controller.spec.persistence.enabled) return false;
  const kube::PodRecord* pod = running_pod(observed);
  if (pod == nullptr || !crashing(*pod)) return false;
  const Refresh seen = read_refresh(*pod);
  return !seen.hash.empty() && seen.hash != state.offered_hash;
}

bool has_run(const Observed& observed, const ConfigState& state) {
  return slurm::has_answered(observed.snapshot) || observed.workers_registered || state.ran || !state.served_key.empty() ||
         !state.accepted_hash.empty();
}

bool slurmctld_crashes(const Observed& observed) {
  const kube::PodRecord* pod = running_pod(observed);
  return pod != nullptr && crashing(*pod);
}

bool has_state(const Observed& observed) {
  return !slurmctld_crashes(observed) && std::ranges::any_of(observed.pods, [](const kube::PodPtr& pod) {
    const auto slurmctld = std::ranges::find(pod->containers, std::string(kAppController), &kube::ContainerState::name);
    return !pod->meta.terminating() && slurmctld != pod->containers.end() && slurmctld->started_once;
  });
}

std::optional<core::MonoTime> reconfigured_at(const Observed& observed) {
  const kube::PodRecord* pod = running_pod(observed);
  const plan::Outcome* outcome = pod == nullptr ? nullptr : outcome_of(observed.context, reconfigure_id(read_refresh(*pod)));
  if (outcome == nullptr || outcome->state != plan::Outcome::State::kDone) return {};
  return outcome->last;
}

void remember_reconfigure(const Observed& observed, plan::Plan& plan) {
  if (const kube::PodRecord* pod = running_pod(observed)) plan.remember(reconfigure_id(read_refresh(*pod)));
}

bool holds_offered(const Observed& observed, const ConfigState& state) {
  const kube::PodRecord* pod = running_pod(observed);
  if (pod == nullptr || crashing(*pod) || loaded_config_hash(observed) != state.offered_hash) return false;
  const std::string refreshed = read_refresh(*pod).hash;
  return refreshed.empty() || refreshed == state.offered_hash;
}

bool needs_load(const Observed& observed, const ConfigState& state) {
  const kube::PodRecord* pod = running_pod(observed);
  if (pod == nullptr || crashing(*pod) || !state.exists()) return false;
  if (state.offered_hash == state.refused_hash && !state.can_roll_back()) return false;
  const std::optional<std::string> loaded = loaded_config_hash(observed);
  return loaded && *loaded != state.offered_hash;
}

bool awaits_load(const Observed& observed, const ConfigState& state) {
  const kube::PodRecord* pod = running_pod(observed);
  // Without a RestApi, the operator never sees whether slurmctld has loaded the content.
  if (pod == nullptr || crashing(*pod) || observed.restapis.empty()) return false;
  if (state.offered_hash == state.refused_hash || state.tries_partition()) return false;
  const std::optional<std::string> loaded = loaded_config_hash(observed);
  return loaded ? *loaded != state.offered_hash : state.offered_hash != state.accepted_hash;
}

std::optional<plan::Step> script_refresh(const Observed& observed, const ConfigState& state) {
  const kube::PodRecord* pod = running_pod(observed);
  if (pod == nullptr || state.scripts_hash.empty() || state.scripts_hash == scripts_digest(observed)) return {};
  const Refresh done = read_refresh(*pod);
  // The refresh is not for another configuration, so the hash stays and only the count changes.
  return refresh_step(*pod, {done.hash.empty() ? state.offered_hash : done.hash, done.count + 1});
}

void add_crash_mark(const Observed& observed, const ConfigState& state, plan::Plan& plan) {
  const kube::PodRecord* pod = running_pod(observed);
  if (pod == nullptr || !state.exists() || !crashing(*pod) || !read_refresh(*pod).hash.empty()) return;
  plan.lane("load").add(refresh_step(*pod, {state.offered_hash, 0}));
}

void add_load_steps(const Observed& observed, const ConfigState& state, const Rendered& wanted, plan::Plan& plan) {
  const kube::PodRecord* pod = running_pod(observed);
  if (pod == nullptr || !state.exists() || crashing(*pod)) return;
  const std::optional<std::string> loaded = loaded_config_hash(observed);
  // If slurmctld refused the content and there is no accepted content, another try would not help.
  if (!loaded || (state.offered_hash == state.refused_hash && !state.can_roll_back())) return;

  const Refresh done = read_refresh(*pod);
  const bool stale_volume = !done.hash.empty() && done.hash != state.offered_hash;
  if (*loaded == state.offered_hash) {
    // After a rollback, the volume still has the refused content. slurmctld must not find that content when it restarts.
    if (stale_volume) plan.lane("load").add(refresh_step(*pod, {state.offered_hash, 1}));
    // After a refusal, slurmctld has to read the accepted files again: see kTriesOfFormer.
    if (state.refused_hash.empty() || done.hash != state.offered_hash) return;
  }
  if (done.hash != state.offered_hash) {
    plan.lane("load").add(refresh_step(*pod, {state.offered_hash, 1}));
    plan.wake_after(kFirstWait, kNotLoaded);
    return;
  }
  plan.remember(refresh_id(done));
  plan.remember(reconfigure_id(done));
  if (const plan::Outcome* refreshed = outcome_of(observed.context, refresh_id(done))) {
    if (!waited(observed.context, refreshed->last, kFirstWait, plan, kNotLoaded)) return;
  }
  const plan::Outcome* tried = outcome_of(observed.context, reconfigure_id(done));
  if (!answered(tried)) {
    if (held_back(observed, state)) return plan.wake_after(kPrologPoll, kWaitsForProlog);
    if (!load_ends_jobs(observed, state, wanted).empty()) return plan.wake_after(kJobsPoll, "the configuration would end jobs");
    // Either the reconfigure was not tried yet, or it failed. The executor delays a step that fails repeatedly.
    plan.lane("load")
        .add(look_for_prologs(observed, state))
        .then()
        .add({reconfigure_id(done), "slurmctld runs with another configuration than the offered one",
              slurm::reconfigure(observed.cluster)});
    return;
  }
  // Nothing is left to do if slurmctld has read the accepted files again, or if enough attempts to do so were made.
  if (*loaded == state.offered_hash && (tried->state == plan::Outcome::State::kDone || done.count >= kTriesOfFormer)) return;
  // slurmctld loaded the old content of the volume, so the operator refreshes the volume again, after a longer wait.
  if (!waited(observed.context, tried->last, wait_of_try(done.count, kFirstWait, kLongestWait), plan, kNotLoaded)) return;
  plan.lane("load").add(refresh_step(*pod, {done.hash, done.count + 1}));
  plan.wake_after(kFirstWait, kNotLoaded);
}

}  // namespace op::controller
