#include "enlist/juju/controller.hpp"

#include <algorithm>
#include <utility>

#include "enlist/coordinator/slurm_facts.hpp"
#include "enlist/rules/leave.hpp"
#include "enlist/rules/pool_file.hpp"
#include "enlist/rules/text.hpp"
#include "slurm/conf/conf.hpp"
#include "slurm/conf/loaded.hpp"

namespace enlist::juju {
namespace {

namespace conf = slurm::conf;
using core::ErrorCode;

constexpr std::string_view kLabel = "slurm-enlist-key-";

/// Returns the line of a partition in a pool file; "": there is none.
std::string_view line_of(std::string_view file, const std::string& partition) {
  const std::string begin = "PartitionName=" + partition + " ";
  while (!file.empty()) {
    const std::string_view line = file.substr(0, file.find('\n'));
    if (line.starts_with(begin)) return line;
    file.remove_prefix(std::min(line.size() + 1, file.size()));
  }
  return {};
}

/// How many jobs a message names at most.
constexpr std::size_t kNamedJobs = 8;

std::string named(const std::vector<std::string>& jobs) {
  std::string out;
  for (std::size_t i = 0; i < std::min(jobs.size(), kNamedJobs); ++i) out += (i == 0 ? "" : ", ") + jobs[i];
  return jobs.size() > kNamedJobs ? out + " and " + std::to_string(jobs.size() - kNamedJobs) + " more" : out;
}

/// Reports whether `scontrol ping` shows this slurmctld as running: "Slurmctld(primary) at NAME is UP".
bool is_up(std::string_view ping, const std::string& name) {
  return ping.find(" at " + name + " is UP") != std::string_view::npos;
}

std::map<std::string, std::string> texts_at(const core::Json& json, const char* key) {
  std::map<std::string, std::string> out;
  const core::Json* object = core::find(json, {key});
  if (object == nullptr || !object->is_object()) return out;
  for (const auto& [name, value] : object->items()) {
    if (value.is_string()) out.emplace(name, value.get<std::string>());
  }
  return out;
}

bool is_related(const PartitionsSeen& seen, const std::string& app) {
  return std::ranges::any_of(seen.relations, [&](const ComputeRelation& relation) { return relation.app == app; });
}

/// Updates ControllerMemory::relations, and adds applications that no longer have a relation to ControllerMemory::removing.
void note_relations(const PartitionsSeen& seen, ControllerMemory& memory) {
  std::map<std::string, std::string> gone = std::exchange(memory.relations, {});
  for (const ComputeRelation& relation : seen.relations) {
    gone.erase(relation.id);
    memory.relations.emplace(relation.id, relation.app);
    memory.removing.erase(relation.app);
  }
  if (seen.event.name.ends_with("-relation-broken") && !seen.event.remote_app.empty())
    gone.try_emplace(seen.event.relation_id, seen.event.remote_app);
  for (const auto& [relation, app] : gone) {
    if (!is_related(seen, app)) memory.removing.insert_or_assign(app, relation);
  }
}

/// Closes (State=DRAIN) the partitions whose applications are gone. Removes closed partitions that have no jobs any more.
void remove_partitions(const PartitionsSeen& seen, std::map<std::string, Pool>& pools, PartitionsPlan& plan) {
  const std::set<std::string> closed = closed_in(seen);
  const bool runs = seen.loaded && seen.file && *seen.loaded == hash_of(*seen.file);
  if (runs) {
    std::erase_if(plan.memory.removing,
                  [&](const auto& entry) { return !pools.contains(entry.first) && !seen.ended.contains(entry.second); });
  }
  for (auto pool = pools.begin(); pool != pools.end();) {
    const std::string& app = pool->first;
    if (is_related(seen, app) || !(closed.contains(app) || plan.memory.removing.contains(app))) {
      ++pool;
      continue;
    }
    const auto jobs = seen.jobs.find(app);
    // relation-broken removes nothing: this unit itself may be leaving, which Juju may report only after that event.
    if (closed.contains(app) && runs && !seen.event.name.ends_with("-relation-broken") && jobs != seen.jobs.end() &&
        jobs->second.empty()) {
      pool = pools.erase(pool);
      continue;
    }
    std::string what = "slurmctld has not closed its partition for new jobs yet";
    if (closed.contains(app) && runs) {
      what = jobs == seen.jobs.end() ? "Slurm does not report which jobs use its partition" : "no job is left in its partition";
      if (jobs != seen.jobs.end() && !jobs->second.empty()) what = "jobs use its partition: " + named(jobs->second);
    }
    plan.waits.push_back(app + " is being removed: " + what);
    pool->second.removing = true;
    ++pool;
  }
}

}  // namespace

core::Json to_json(const ControllerMemory& memory) {
  return {{"accepted", memory.accepted},   {"refused", memory.refused},   {"reason", memory.reason},
          {"relations", memory.relations}, {"removing", memory.removing}, {"departed", memory.departed},
          {"silent", memory.silent},       {"absent", memory.absent}};
}

core::Result<ControllerMemory> controller_memory_from(const core::Json& json) {
  if (!json.is_object()) return core::fail(ErrorCode::kInvalid, "is not an object");
  ControllerMemory out{.accepted = core::get_string(json, {"accepted"}),
                       .refused = core::get_string(json, {"refused"}),
                       .reason = core::get_string(json, {"reason"}),
                       .relations = texts_at(json, "relations"),
                       .removing = texts_at(json, "removing"),
                       .departed = texts_at(json, "departed")};
  const auto read_times = [&json](std::string_view key, std::map<std::string, std::int64_t>& times) {
    const core::Json* found = core::find(json, {key});
    if (found == nullptr || !found->is_object()) return;
    for (const auto& [unit, since] : found->items()) {
      if (since.is_number_integer()) times.emplace(unit, since.get<std::int64_t>());
    }
  };
  read_times("silent", out.silent);
  read_times("absent", out.absent);
  return out;
}

core::Result<std::vector<Slurmctld>> slurmctlds_of(std::string_view slurm_conf, std::string_view ping) {
  const core::Result<SlurmFacts> facts = facts_of(slurm_conf);
  if (!facts) return std::unexpected(facts.error());
  const auto hosts = conf::parse(conf::Kind::kSlurm, slurm_conf).conf.get_all("SlurmctldHost");
  if (hosts.size() != facts->controllers.size())
    return core::fail(ErrorCode::kInvalid, "slurm.conf names a SlurmctldHost twice");
  std::vector<Slurmctld> out;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string name = hosts[i].substr(0, hosts[i].find('('));
    out.push_back({name, facts->controllers[i], is_up(ping, name)});
  }
  return out;
}

std::string missing_in(std::string_view slurm_conf) {
  const conf::Conf read = conf::parse(conf::Kind::kSlurm, slurm_conf).conf;
  std::vector<std::string> missing;
  if (read.get("AuthType") != "auth/slurm") missing.emplace_back("AuthType=auth/slurm");
  if (read.get("CredType").value_or("cred/slurm") != "cred/slurm") missing.emplace_back("CredType=cred/slurm");
  const auto parameters = list_items(read.get("SlurmctldParameters").value_or(""));
  if (std::ranges::none_of(parameters, [](const std::string& item) { return same_word(item, "enable_configless"); }))
    missing.emplace_back("SlurmctldParameters=enable_configless");
  if (!read.get("MaxNodeCount")) missing.emplace_back("MaxNodeCount=1024");
  return comma_list(missing);
}

std::map<std::string, Pool> pools_in(std::string_view pool_file) {
  std::map<std::string, Pool> out;
  const conf::Conf read = conf::parse(conf::Kind::kSlurm, pool_file).conf;
  for (const conf::Entry& entry : read.entries()) {
    if (!entry.record() || entry.head().key != "PartitionName") continue;
    const std::string& name = entry.head().value;
    if (conf::is_marker(slurm::Owner::kEnlistment, name)) continue;
    Pool pool{.name = name};
    for (auto setting = entry.settings.begin() + 1; setting != entry.settings.end(); ++setting) {
      if (setting->key == "Nodes") continue;
      if (setting->key == "State" && same_word(setting->value, "DRAIN")) pool.removing = true;
      const char* quote = setting->value.empty() || setting->value.find_first_of(" \t") != std::string::npos ? "\"" : "";
      pool.partition_conf += (pool.partition_conf.empty() ? "" : " ") + setting->key + "=" + quote + setting->value + quote;
    }
    out.emplace(name, std::move(pool));
  }
  return out;
}

std::set<std::string> closed_in(const PartitionsSeen& seen) {
  std::set<std::string> out;
  for (const auto& [name, pool] : pools_in(seen.file.value_or(""))) {
    if (pool.removing && !is_related(seen, name)) out.insert(name);
  }
  return out;
}

core::Result<PartitionsPlan> plan_partitions(const PartitionsSeen& seen) {
  PartitionsPlan out{.memory = seen.memory};
  std::map<std::string, Pool> pools;
  if (seen.file && seen.file->find_first_not_of(" \t\r\n") != std::string::npos) {
    if (hash_of(*seen.file).empty()) {
      return core::fail(
          ErrorCode::kAlreadyExists,
          std::string(kPoolFile) + " beside slurm.conf was not written by this charm: remove it, or give it another name");
    }
    pools = pools_in(*seen.file);
  }
  note_relations(seen, out.memory);
  for (const ComputeRelation& relation : seen.relations) {
    auto pool = pool_from(relation.theirs, relation.app);
    if (!pool) out.problems.push_back(relation.app + ": " + pool.error().message);
    if (pool && *pool) pools.insert_or_assign(relation.app, **std::move(pool));
  }
  remove_partitions(seen, pools, out);
  out.text = pool_file(pools);
  // In these events, a refused file is tried again, because the administrator may have fixed the cause.
  const bool again = seen.event.name == "config-changed" || seen.event.name == "start" || seen.event.name == "upgrade-charm";
  const bool refused = out.text == seen.memory.refused && !again && seen.loaded != hash_of(out.text);
  if (refused) out.problems.push_back("slurmctld refuses the partitions: " + seen.memory.reason);
  if (!seen.loaded) {
    // A slurmctld that does not answer cannot test a file. It would not start with a bad file, nor without the file.
    out.write = !seen.file;
    out.text = seen.file.value_or(pool_file({}));
    return out;
  }
  // The stored accepted file may be outdated, because another unit may have been the leader meanwhile.
  if (seen.loaded->empty()) {
    out.memory.accepted = pool_file({});
  } else if (seen.file && *seen.loaded == hash_of(*seen.file)) {
    out.memory.accepted = *seen.file;
  } else if (*seen.loaded != hash_of(seen.memory.accepted)) {
    out.memory.accepted.clear();
  }
  if (refused) out.text = out.memory.accepted;
  if (out.text.empty()) return out;
  out.write = seen.file != out.text;
  out.reconfigure = *seen.loaded != hash_of(out.text);
  return out;
}

bool tells_refusal(std::string_view said) {
  const auto says = [said](std::string_view words) { return said.find(words) != std::string_view::npos; };
  // "Unspecified error": the process that slurmctld has started with the new file has ended. "fatal:": scontrol itself cannot
  // read the file.
  return (says("slurm_reconfigure error") && says("Unspecified error")) || says("fatal:");
}

void note_departure(const Event& event, ControllerMemory& memory) {
  if (event.name.ends_with("-relation-departed") && !event.departing_unit.empty() && event.departing_unit != event.unit)
    memory.departed.insert_or_assign(event.departing_unit, event.relation_id);
}

void forget_staying(const Event& event, const std::vector<ComputeRelation>& relations,
                    const std::map<std::string, std::vector<std::string>>& units, ControllerMemory& memory) {
  const auto stays = [&](const std::string& unit, const std::string& departed_from) {
    return std::ranges::any_of(relations, [&](const ComputeRelation& relation) {
      if (relation.id != departed_from) return relation.app == app_of(unit);
      if (unit == event.departing_unit) return false;
      const auto there = units.find(relation.id);
      return there == units.end() || std::ranges::find(there->second, unit) != there->second.end();
    });
  };
  std::erase_if(memory.departed, [&](const auto& entry) { return stays(entry.first, entry.second); });
  for (auto* times : {&memory.silent, &memory.absent})
    std::erase_if(*times, [&](const auto& entry) { return !memory.departed.contains(entry.first); });
}

namespace {

/// Returns how long a state of the unit has lasted. Its first call stores the start of the state in `times`.
core::Duration lasts_for(std::map<std::string, std::int64_t>& times, const std::string& unit, core::MonoTime now) {
  const std::int64_t ms = now.since_start.count();
  std::int64_t& since = times.try_emplace(unit, ms).first->second;
  // The monotonic clock restarts when the machine boots, so that a stored time may be in the future.
  since = std::min(since, ms);
  return core::Duration{ms - since};
}

}  // namespace

std::optional<core::Duration> silent_for(const std::string& unit, const std::optional<slurm::Node>& record, core::MonoTime now,
                                         ControllerMemory& memory) {
  if (!record || !slurm::is_silent(*record)) {
    memory.silent.erase(unit);
    return std::nullopt;
  }
  return lasts_for(memory.silent, unit, now);
}

bool is_forgotten(const std::string& unit, bool lacks, core::MonoTime now, ControllerMemory& memory) {
  if (lacks) return lasts_for(memory.absent, unit, now) >= kSavedAfter;
  memory.absent.erase(unit);
  return false;
}

SharesPlan plan_shares(const SharesSeen& seen) {
  SharesPlan out;
  std::set<std::string> gone;
  for (const auto& [relation, secret] : seen.secrets) gone.insert(relation);
  for (const ComputeRelation& relation : seen.relations) {
    gone.erase(relation.id);
    const auto before = controller_data_from(relation.published);
    const auto pool = pool_from(relation.theirs, relation.app);
    Share share{.relation = relation.id};
    for (const Slurmctld& slurmctld : seen.slurmctlds) {
      // A published slurmctld that is down stays published. Otherwise, every slurmd would be restarted.
      const bool was_there =
          before && *before && std::ranges::find((*before)->controllers, slurmctld.address) != (*before)->controllers.end();
      if (slurmctld.up || was_there) share.controllers.push_back(slurmctld.address);
    }
    // Publishes only if slurmctld has loaded the partition, because slurmd must not register before that.
    const bool ready =
        pool && *pool && line_of(seen.file, relation.app) == line_of(pool_file({{relation.app, **pool}}), relation.app);
    if (share.controllers.empty() || (!ready && !(before && *before))) continue;
    const auto secret = seen.secrets.find(relation.id);
    if (secret != seen.secrets.end()) share.secret = secret->second;
    share.renew = seen.outdated.contains(share.secret);
    share.publish = share.secret.empty() || !before || *before != ControllerData{share.secret, share.controllers};
    if (share.publish || share.renew) out.shares.push_back(std::move(share));
  }
  for (const std::string& relation : gone) {
    const bool stays = std::ranges::any_of(seen.removing, [&](const auto& entry) {
      return entry.second == relation && (seen.file.empty() || !line_of(seen.file, entry.first).empty());
    });
    if (!stays) out.remove.push_back(seen.secrets.at(relation));
  }
  return out;
}

std::string label_of(std::string_view relation) {
  return std::string(kLabel) + std::string(relation.substr(relation.find(':') + 1));
}

std::string relation_of(std::string_view label) {
  if (!label.starts_with(kLabel)) return {};
  return std::string(kControllerEndpoint) + ":" + std::string(label.substr(kLabel.size()));
}

}  // namespace enlist::juju
