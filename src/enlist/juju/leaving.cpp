#include "enlist/juju/leaving.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/hostlist.hpp"
#include "slurm/holds.hpp"

namespace enlist::juju {
namespace {

using slurm::Owner;

/// Takes the part before the next '|' from a line.
std::string_view next_field(std::string_view& line) {
  const std::size_t end = std::min(line.find('|'), line.size());
  const std::string_view out = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return out;
}

std::optional<std::int64_t> number_from(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

/// Parses a line of squeue such as "12|11_3|RUNNING|gpu|node[1-3]".
std::optional<slurm::Job> job_from(std::string_view line) {
  if (std::ranges::count(line, '|') != 4) return std::nullopt;
  const auto id = number_from(next_field(line));
  if (!id) return std::nullopt;
  slurm::Job out;
  out.id = *id;
  const std::string_view shown = next_field(line);
  if (const std::size_t at = shown.find('_'); at != std::string_view::npos) {
    // For pending tasks, squeue prints a list such as "11_[4-9]". `task` stays empty then.
    out.array = number_from(shown.substr(0, at)).value_or(0);
    out.task = number_from(shown.substr(at + 1));
  }
  out.state = next_field(line);
  // squeue prints some flags in place of the state.
  if (out.state == "COMPLETING" || out.state == "CONFIGURING") out.flags.insert(out.state);
  out.partition = next_field(line);
  out.required_nodes = line;
  return out;
}

}  // namespace

std::vector<std::string> jobs_question(const std::vector<std::string>& which) {
  std::vector<std::string> out{"squeue", "--all", "--noheader", "--format=%A|%i|%T|%P|%n"};
  out.insert(out.end(), which.begin(), which.end());
  return out;
}

core::Result<Jobs> jobs_from(std::string_view squeue) {
  Jobs out;
  while (!squeue.empty()) {
    const std::size_t end = std::min(squeue.find('\n'), squeue.size());
    const std::string_view line = squeue.substr(0, end);
    squeue.remove_prefix(std::min(end + 1, squeue.size()));
    if (line.empty()) continue;
    std::optional<slurm::Job> job = job_from(line);
    if (!job) return core::fail(core::ErrorCode::kInternal, "squeue prints a job that is not understood: " + std::string(line));
    out.insert_or_assign(job->id, std::make_shared<const slurm::Job>(*job));
  }
  return out;
}

Leaves judge_unit(const LeaveSeen& seen) {
  if (!seen.record && seen.steps.empty()) {
    Leaves gone;
    gone.phase = Phase::kGone;
    return gone;
  }
  if (seen.silent_for && seen.record && seen.record->instance_id == seen.instance && !slurm::is_silent(*seen.record)) {
    Leaves stays;
    stays.message = "its slurmd responds";
    return stays;
  }
  auto slurm = std::make_shared<slurm::Snapshot>();
  slurm->health = slurm::Snapshot::Health::kComplete;
  if (seen.record) slurm->nodes.emplace(seen.node, std::make_shared<const slurm::Node>(*seen.record));
  for (const auto& [id, shown] : seen.waiting) {
    slurm::Job job = *shown;
    core::HostSet named;
    if (!job.required_nodes.empty()) named.add(job.required_nodes);
    if (!named.has(seen.node)) continue;
    job.state = "PENDING";
    job.flags.clear();
    job.nodes = {seen.node};
    job.only_named = 1;
    slurm->jobs.insert_or_assign(id, std::make_shared<const slurm::Job>(std::move(job)));
  }
  for (const auto& [id, shown] : seen.there) {
    slurm::Job job = *shown;
    job.nodes = {seen.node};
    slurm->jobs.insert_or_assign(id, std::make_shared<const slurm::Job>(std::move(job)));
  }
  Node node{.name = seen.node, .pool = "", .key = ""};
  node.phase = Phase::kDraining;
  node.leaving.wanted = true;
  // Reports slurmd as stopped, because it is stopped only after the record is deleted.
  const bool there = !seen.silent_for;
  node.report = {
      .hostname = "", .boot_id = "", .instance_id = seen.instance, .steps_known = there, .steps = seen.steps, .stopped = there};
  return judge_leave({.node = node,
                      .slurm = std::move(slurm),
                      .asked_at = core::MonoTime{},
                      .heard_at = core::MonoTime{},
                      .kept_since = std::nullopt,
                      .now = core::MonoTime{} + seen.silent_for.value_or(core::Duration{0}),
                      .why = seen.why});
}

std::string drain_reason(const slurm::Node& record, std::string_view why) {
  slurm::Holds holds = slurm::Holds::read(record.reason);
  const bool out_of_service = record.state.base == "DOWN" || record.state.has("FAIL");
  if (out_of_service && holds.none() && slurm::given_by_others(record.reason, Owner::kEnlistment)) return record.reason;
  return holds.hold(Owner::kEnlistment, why).reason();
}

std::string kept_by_others(const slurm::Node& record) {
  const bool kept = record.state.drains() || record.state.base == "DOWN" || record.state.has("FAIL");
  return kept ? slurm::said_by_others(record.reason, Owner::kEnlistment) : "";
}

}  // namespace enlist::juju
