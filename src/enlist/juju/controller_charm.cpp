#include <algorithm>
#include <utility>

#include "enlist/coordinator/pools_plan.hpp"
#include "enlist/coordinator/slurm_files.hpp"
#include "enlist/host/spawn.hpp"
#include "enlist/juju/compute.hpp"
#include "enlist/juju/controller.hpp"
#include "enlist/juju/leaving.hpp"
#include "enlist/juju/program.hpp"
#include "enlist/juju/slurm_node.hpp"
#include "enlist/rules/judge.hpp"
#include "enlist/rules/pool_file.hpp"
#include "slurm/conf/loaded.hpp"
#include "slurm/rollout/rollout.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;
using namespace std::chrono_literals;

/// Reports whether `squeue --format="%T %r"` lists a job whose launch a reconfigure would lose (slurm/rollout/rollout.hpp).
bool any_starts(std::string_view squeue) {
  return squeue.find("CONFIGURING") != std::string_view::npos || squeue.find(" Prolog") != std::string_view::npos;
}

/// One hook of the charm slurmctld.
class ControllerHook {
 public:
  ControllerHook(const Event& event, const CharmParts& parts) : event_(event), parts_(parts) {}

  core::Result<std::optional<Status>> run() {
    if (auto read = read_memory(); !read) return std::unexpected(read.error());
    ControllerMemory memory = memory_;
    note_departure(event_, memory);
    if (auto done = remember(memory); !done) return std::unexpected(done.error());
    if (auto program = ask_slurm({"slurmctld", "-V"}); !program)
      return blocked("slurmctld is not ready to run: " + program.error().message +
                     ". Install Slurm's slurmctld on this machine");
    if (auto read = read_conf(); !read) return blocked(read.error().message);
    if (const std::string missing = missing_in(conf_); !missing.empty()) return blocked("slurm.conf needs " + missing);
    const auto leader = parts_.tools.is_leader();
    if (!leader) return std::unexpected(leader.error());
    if (!*leader) return active();
    if (auto read = read_relations(); !read) return std::unexpected(read.error());

    if (auto done = bring_partitions(); !done) problems_.push_back(done.error().message);
    if (auto done = remove_departed(); !done) return std::unexpected(done.error());
    if (auto done = share(); !done) return std::unexpected(done.error());
    return status();
  }

 private:
  // --- what is known ---

  core::Result<void> read_conf() {
    core::Result<std::string> text = parts_.host.read(parts_.slurm_conf);
    if (!text && text.error().code == ErrorCode::kNotFound)
      return core::fail(ErrorCode::kNotFound, "there is no " + parts_.slurm_conf.string() + ": write one for this slurmctld");
    if (!text) return std::unexpected(text.error());
    const auto included = read_included(parts_.host, parts_.slurm_conf, *text);
    if (!included) return std::unexpected(included.error());
    conf_ = *std::move(text);
    for (const auto& [name, content] : *included) conf_ += "\n" + content;
    // The output shows which slurmctlds run. The exit code does not matter.
    const auto ping = parts_.host.run({"scontrol", "ping"}, kSlurmLimit, "");
    auto slurmctlds = slurmctlds_of(conf_, ping ? ping->out : "");
    if (!slurmctlds) return std::unexpected(slurmctlds.error());
    slurmctlds_ = *std::move(slurmctlds);
    return {};
  }
  core::Result<void> read_relations() {
    const auto ids = parts_.tools.relations(kControllerEndpoint);
    if (!ids) return std::unexpected(ids.error());
    for (const std::string& id : *ids) {
      const bool ended = std::ranges::any_of(memory_.removing, [&](const auto& entry) { return entry.second == id; });
      if (ended || event_.breaks(id)) {
        ended_.insert(id);
        continue;
      }
      auto app = parts_.tools.remote_app(id);
      if (!app) return std::unexpected(app.error());
      auto theirs = parts_.tools.databag(id, *app), published = parts_.tools.databag(id, event_.app);
      if (!theirs) return std::unexpected(theirs.error());
      if (!published) return std::unexpected(published.error());
      relations_.push_back({id, *std::move(app), *std::move(theirs), *std::move(published)});
    }
    return {};
  }
  core::Result<void> read_memory() {
    const auto text = parts_.host.read(parts_.state / kMemory);
    if (!text && text.error().code == ErrorCode::kNotFound) return {};
    if (!text) return std::unexpected(text.error());
    const auto json = core::parse_json(*text);
    if (!json) return std::unexpected(json.error().with(kMemory));
    auto memory = controller_memory_from(*json);
    if (!memory) return std::unexpected(memory.error());
    memory_ = *std::move(memory);
    return {};
  }
  core::Result<void> remember(const ControllerMemory& memory) {
    if (memory == memory_) return {};
    auto done = parts_.host.write(parts_.state / kMemory, to_json(memory).dump() + "\n", 0600);
    if (done) memory_ = memory;
    return done;
  }
  [[nodiscard]] bool active_slurmctld() const {
    return std::ranges::any_of(slurmctlds_, [](const Slurmctld& slurmctld) { return slurmctld.up; });
  }
  /// Returns the hash of the pool file with which slurmctld runs; "": none. nullopt: slurmctld does not answer.
  std::optional<std::string> loaded() {
    const auto shown = ask_slurm({"scontrol", "--all", "--oneliner", "show", "partitions"});
    if (!shown) return std::nullopt;
    const std::string begin = "PartitionName=" + slurm::conf::marker_name(slurm::Owner::kEnlistment, "");
    const std::size_t at = shown->find(begin);
    if (at == std::string::npos) return "";
    const std::string_view rest = std::string_view(*shown).substr(at + begin.size());
    return std::string(rest.substr(0, rest.find_first_of(" \n")));
  }
  core::Result<std::string> ask_slurm(const std::vector<std::string>& words) {
    auto output = parts_.host.run(words, kSlurmLimit, "");
    if (!output) return std::unexpected(output.error());
    if (output->status == 0) return std::move(output->out);
    const std::string said = telling_lines(output->err);
    return core::fail(ErrorCode::kInvalid,
                      said.empty() ? words.front() + ": exit code " + std::to_string(output->status) : said);
  }

  // --- the partitions ---

  core::Result<void> bring_partitions() {
    const auto file = parts_.host.read(pool_file_path());
    if (!file && file.error().code != ErrorCode::kNotFound) return std::unexpected(file.error());
    PartitionsSeen seen{.event = event_, .relations = relations_, .ended = ended_, .memory = memory_};
    if (file) seen.file = *file;
    if (active_slurmctld()) seen.loaded = loaded();
    for (const std::string& name : closed_in(seen)) {
      if (auto jobs = read_jobs_in(name)) seen.jobs.emplace(name, *std::move(jobs));
    }
    const auto plan = plan_partitions(seen);
    if (!plan) return std::unexpected(plan.error());
    problems_.insert(problems_.end(), plan->problems.begin(), plan->problems.end());
    waits_ = plan->waits;
    if (auto done = remember(plan->memory); !done) return done;
    if (plan->write) {
      if (auto done = write_pool_file(plan->text); !done) return done;
    }
    if (seen.loaded == hash_of(plan->text)) runs_with_ = plan->text;
    if (!plan->reconfigure) return {};
    return reconfigure(plan->text);
  }
  core::Result<std::vector<std::string>> read_jobs_in(const std::string& partition) {
    slurm::Snapshot snapshot;
    const auto shown = ask_slurm(jobs_question({"--partition=" + partition}));
    if (!shown) return std::unexpected(shown.error());
    auto jobs = jobs_from(*shown);
    if (!jobs) return std::unexpected(jobs.error());
    snapshot.jobs = *std::move(jobs);
    return jobs_in(snapshot, partition);
  }
  core::Result<void> reconfigure(const std::string& text) {
    wait_for_starting_jobs();
    const auto asked = ask_slurm({"scontrol", "reconfigure"});
    if (!asked && tells_refusal(asked.error().message) && loaded() != hash_of(text)) return roll_back(text, asked.error());
    for (auto waited = 0ms; waited <= kLoads; waited += kLookAgain) {
      if (loaded() == hash_of(text)) {
        runs_with_ = text;
        ControllerMemory memory = memory_;
        memory.accepted = text;
        memory.refused = memory.reason = "";
        return remember(memory);
      }
      parts_.pause(kLookAgain);
    }
    // The file stays: slurmctld may still load it, and jobs may then use its partitions. The next hook checks again.
    if (!asked)
      return core::fail(ErrorCode::kUnavailable, "slurmctld has not answered the reconfigure: " + asked.error().message);
    return core::fail(ErrorCode::kInvalid,
                      "slurmctld has reconfigured without loading the partitions: slurm.conf needs the line \"Include " +
                          std::string(kPoolFile) + "\"");
  }
  /// Restores the last file that slurmctld has accepted. Always returns an error: why slurmctld refused the new file.
  core::Result<void> roll_back(const std::string& text, const core::Error& cause) {
    ControllerMemory memory = memory_;
    memory.refused = text;
    memory.reason = cause.message;
    if (auto done = remember(memory); !done) return done;
    const std::string& former = memory.accepted;
    // No other file is written: it could lack partitions, and slurmctld would end the jobs of these partitions.
    if (former.empty()) {
      return core::fail(cause.code, "slurmctld refuses the partitions, and it is not known with which file it runs. Fix " +
                                        std::string(kPoolFile) + " before slurmctld is started again: " + cause.message);
    }
    if (auto done = write_pool_file(former); !done) return done;
    // Until slurmctld has read the former file again, it would send the refused file to slurmds that start.
    [[maybe_unused]] const auto again = ask_slurm({"scontrol", "reconfigure"});
    if (loaded() == hash_of(former)) runs_with_ = former;
    return core::fail(cause.code, "slurmctld refuses the partitions: " + cause.message);
  }
  void wait_for_starting_jobs() {
    for (auto waited = 0ms; waited < slurm::rollout::kPrologLimit; waited += kLookAgain) {
      const auto jobs = ask_slurm({"squeue", "--all", "--noheader", "--states=RUNNING,CONFIGURING", "--format=%T %r"});
      if (!jobs || !any_starts(*jobs)) return;
      parts_.pause(kLookAgain);
    }
  }
  [[nodiscard]] std::filesystem::path pool_file_path() const { return parts_.slurm_conf.parent_path() / kPoolFile; }
  core::Result<void> write_pool_file(const std::string& text) {
    return parts_.host.write(pool_file_path(), text, kPoolFileMode);
  }

  // --- units that are gone ---

  core::Result<void> remove_departed() {
    if (memory_.departed.empty()) return {};
    std::map<std::string, std::vector<std::string>> units;
    for (const ComputeRelation& relation : relations_) {
      auto there = parts_.tools.remote_units(relation.id);
      if (!there) return std::unexpected(there.error());
      units.emplace(relation.id, *std::move(there));
    }
    ControllerMemory memory = memory_;
    forget_staying(event_, relations_, units, memory);
    for (const auto& [unit, relation] : std::map(memory.departed)) {
      if (!remove_record_of(unit, memory)) continue;
      for (auto* times : {&memory.silent, &memory.absent}) times->erase(unit);
      memory.departed.erase(unit);
    }
    return remember(memory);
  }
  /// Deletes the record of a departed unit once its slurmd has been silent for kSilentAfter. Returns true if Slurm has no
  /// record and slurmctld has saved the deletion.
  bool remove_record_of(const std::string& unit, ControllerMemory& memory) {
    Event event = event_;
    event.unit = unit;
    const auto shown = SlurmNode(event, parts_).record();
    const bool lacks = shown && (!*shown || (*shown)->instance_id != instance_of(event));
    if (is_forgotten(unit, lacks, parts_.now(), memory)) return true;
    // A record that returns is silent anew.
    if (lacks) memory.silent.erase(unit);
    if (lacks) return false;
    const auto silent = silent_for(unit, shown ? *shown : std::nullopt, parts_.now(), memory);
    if (!silent) return false;
    const std::string stays = unit + " is gone, and Slurm has no answer from its slurmd. Its record " + node_of(unit);
    if (*silent < kSilentAfter) {
      waits_.push_back(stays + " is deleted in a later hook");
      return false;
    }
    const auto left = SlurmNode(event, parts_, *silent).take_out();
    if (left && left->phase == Phase::kGone) {
      parts_.tools.log("INFO", stays + " was deleted");
      return is_forgotten(unit, true, parts_.now(), memory);
    }
    waits_.push_back(stays + " stays: " + (left ? left->message : left.error().message));
    return false;
  }

  // --- what the applications get ---

  core::Result<void> share() {
    SharesSeen seen{.relations = relations_, .file = runs_with_, .removing = memory_.removing, .slurmctlds = slurmctlds_};
    const auto owned = parts_.tools.owned_secrets();
    if (!owned) return std::unexpected(owned.error());
    for (const OwnedSecret& secret : *owned) {
      if (const std::string relation = relation_of(secret.label); !relation.empty()) seen.secrets[relation] = secret.id;
    }
    const core::Result<AuthKey> key = read_auth_key(parts_.host, parts_.slurm_conf);
    if (!key) {
      problems_.push_back(key.error().message);
      return {};
    }
    for (const ComputeRelation& relation : relations_) {
      const auto secret = seen.secrets.find(relation.id);
      if (secret == seen.secrets.end()) continue;
      const auto shared = parts_.tools.key(secret->second, true);
      if (!shared) return std::unexpected(shared.error());
      if (shared->file != key->file || shared->content != key->content) seen.outdated.insert(secret->second);
    }
    const SharesPlan plan = plan_shares(seen);
    for (const Share& share : plan.shares) {
      if (auto done = carry_out(share, parts_.slurm_conf.parent_path() / key->file); !done) return done;
    }
    for (const std::string& secret : plan.remove) {
      if (auto done = parts_.tools.remove_secret(secret); !done) return done;
    }
    return {};
  }
  core::Result<void> carry_out(const Share& share, const std::filesystem::path& key) {
    std::string secret = share.secret;
    if (secret.empty()) {
      auto made = parts_.tools.add_key(label_of(share.relation), key);
      if (!made) return std::unexpected(made.error());
      secret = *std::move(made);
    } else if (share.renew) {
      if (auto done = parts_.tools.set_key(secret, key); !done) return done;
    }
    if (!share.publish) return {};
    if (auto done = parts_.tools.grant_secret(secret, share.relation); !done) return done;
    return parts_.tools.publish(share.relation, to_databag({secret, share.controllers}));
  }

  [[nodiscard]] Status status() const {
    std::string all;
    for (const std::string& problem : problems_) all += (all.empty() ? "" : "; ") + problem;
    if (!all.empty()) return blocked(all);
    for (const std::string& wait : waits_) all += (all.empty() ? "" : "; ") + wait;
    if (!all.empty()) return waiting(all);
    if (!active_slurmctld()) return waiting("no slurmctld of slurm.conf answers");
    return active();
  }

  static constexpr const char* kMemory = "charm-slurmctld.json";
  static constexpr auto kSlurmLimit = 60s;
  static constexpr unsigned kPoolFileMode = 0644;
  /// How long slurmctld may take after a reconfigure to show the new partitions.
  static constexpr auto kLoads = 10s;
  static constexpr auto kLookAgain = 500ms;

  Event event_;
  const CharmParts& parts_;
  std::string conf_;  ///< slurm.conf, and the files that it includes.
  std::vector<Slurmctld> slurmctlds_;
  std::vector<ComputeRelation> relations_;
  std::set<std::string> ended_;
  ControllerMemory memory_;
  std::string runs_with_;  ///< The text of the pool file with which slurmctld runs; "": not known.
  std::vector<std::string> problems_, waits_;
};

}  // namespace

core::Result<std::optional<Status>> run_controller(const Event& event, const CharmParts& parts) {
  return ControllerHook(event, parts).run();
}

}  // namespace enlist::juju
