#include "enlist/juju/slurm_node.hpp"

#include <algorithm>
#include <utility>

#include "enlist/host/spawn.hpp"
#include "enlist/juju/compute.hpp"
#include "enlist/rules/text.hpp"
#include "slurm/holds.hpp"
#include "slurm/rest/decode.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;
using slurm::Owner;
using Words = std::vector<std::string>;
using namespace std::chrono_literals;

constexpr auto kCommandLimit = 60s;
/// The rounds of take_out(): one drains the node, one deletes the record, and one sees that the record is gone.
constexpr int kLooks = 3;
/// How long a cancelled job may take to leave the node.
constexpr auto kEnds = 10s;
constexpr auto kJobsAgain = 500ms;

}  // namespace

SlurmNode::SlurmNode(const Event& event, const CharmParts& parts, std::string_view why)
    : node_(node_of(event.unit)), instance_(instance_of(event)), why_(why), parts_(parts) {}

SlurmNode::SlurmNode(const Event& event, const CharmParts& parts, core::Duration silent_for) : SlurmNode(event, parts) {
  silent_for_ = silent_for;
}

core::Result<std::string> SlurmNode::ask(const Words& words) {
  auto output = parts_.host.run(words, kCommandLimit, "");
  if (!output) return std::unexpected(output.error());
  if (output->status == 0) return std::move(output->out);
  const std::string said = telling_lines(output->err);
  return core::fail(ErrorCode::kUnavailable,
                    words.front() + ": " + (said.empty() ? "exit code " + std::to_string(output->status) : said));
}

core::Result<void> SlurmNode::update(const Words& words) {
  Words all{"scontrol", "update", "NodeName=" + node_};
  all.insert(all.end(), words.begin(), words.end());
  if (const auto done = ask(all); !done) return std::unexpected(done.error());
  return {};
}

core::Result<std::optional<slurm::Node>> SlurmNode::record() {
  auto text = ask({"scontrol", "--json", "show", "node", node_});
  if (!text) return std::unexpected(text.error());
  const auto shown = slurm::decode_nodes(*std::move(text));
  if (!shown) return std::unexpected(shown.error());
  if (!shown->envelope.errors.empty())
    return std::unexpected(slurm::to_error(shown->envelope.errors, 200, slurm::RequestKind::kRead));
  if (!shown->present) return core::fail(ErrorCode::kInternal, "scontrol shows no list of nodes");
  for (const auto& row : shown->rows) {
    if (row->name == node_) return *row;
  }
  if (!shown->rows.empty()) return core::fail(ErrorCode::kInternal, "scontrol shows another node than " + node_);
  return std::nullopt;
}

core::Result<slurm::Node> SlurmNode::known_record() {
  auto shown = record();
  if (!shown) return std::unexpected(shown.error());
  if (!*shown) return core::fail(ErrorCode::kNotFound, "Slurm has no node " + node_);
  if ((*shown)->instance_id != instance_)
    return core::fail(ErrorCode::kConflict, "Slurm shows another slurmd under the name " + node_);
  return **std::move(shown);
}

core::Result<Jobs> SlurmNode::jobs(const Words& which) {
  const auto text = ask(jobs_question(which));
  if (!text) return std::unexpected(text.error());
  return jobs_from(*text);
}

core::Result<LeaveSeen> SlurmNode::look() {
  LeaveSeen out{.node = node_, .instance = instance_, .why = why_, .silent_for = silent_for_};
  auto shown = record();
  if (!shown) return std::unexpected(shown.error());
  out.record = *std::move(shown);
  if (out.record) {
    auto there = jobs({"--states=all", "--nodelist=" + node_});
    if (!there) return std::unexpected(there.error());
    auto waiting = jobs({"--states=PENDING"});
    if (!waiting) return std::unexpected(waiting.error());
    out.there = *std::move(there);
    out.waiting = *std::move(waiting);
  }
  if (silent_for_) return out;
  auto steps = parts_.slurmd.steps();
  if (!steps) return std::unexpected(steps.error());
  out.steps = *std::move(steps);
  return out;
}

core::Result<void> SlurmNode::drain() {
  const auto shown = record();
  if (!shown) return std::unexpected(shown.error());
  if (!*shown || !judge_unit({.node = node_, .instance = instance_, .record = *shown, .why = why_}).drain) return {};
  return update({"State=DRAIN", "Reason=" + drain_reason(**shown, why_)});
}

core::Result<Leaves> SlurmNode::take_out(const Keep& keep) {
  Leaves out;
  for (int i = 0; i < kLooks; ++i) {
    const auto seen = look();
    if (!seen) return std::unexpected(seen.error());
    out = judge_unit(*seen);
    if (out.drain) {
      if (auto done = update({"State=DRAIN", "Reason=" + drain_reason(*seen->record, why_)}); !done)
        return std::unexpected(done.error());
    } else if (out.erase) {
      if (keep) {
        if (auto kept = keep(*seen->record); !kept) return std::unexpected(kept.error());
      }
      if (auto done = ask({"scontrol", "delete", "NodeName=" + node_}); !done) return std::unexpected(done.error());
    } else {
      break;
    }
  }
  return out;
}

core::Result<void> SlurmNode::open() {
  const auto shown = record();
  if (!shown) return std::unexpected(shown.error());
  if (!*shown || (*shown)->instance_id != instance_ || !(*shown)->state.drains()) return {};
  slurm::Holds holds = slurm::Holds::read((*shown)->reason);
  const std::string why = holds.why(Owner::kEnlistment).value_or("");
  if (why != kLeaves && why != kConfigures) return {};
  if (holds.others_than(Owner::kEnlistment))
    return update({"State=DRAIN", "Reason=" + holds.release(Owner::kEnlistment).reason()});
  // Before 26.05, UNDRAIN does not clear a reason, and slurmctld's next drain would keep any other one than "Not responding".
  return update({"State=UNDRAIN", "Reason=" + std::string(slurm::kNotResponding)});
}

core::Result<void> SlurmNode::keep_out(std::string reason) {
  // scontrol removes some double quotes from a reason.
  std::ranges::replace(reason, '"', '\'');
  const auto seen = known_record();
  if (!seen) return std::unexpected(seen.error());
  if (seen->state.drains() && seen->reason == reason) return {};
  if (seen->state.drains() && slurm::given_by_others(seen->reason, Owner::kEnlistment))
    return core::fail(ErrorCode::kConflict, node_ + " is drained already: " + seen->reason);
  return update({"State=DRAIN", "Reason=" + reason});
}

core::Result<void> SlurmNode::resume() {
  const auto seen = known_record();
  if (!seen) return std::unexpected(seen.error());
  if (slurm::Holds::read(seen->reason).others_than(Owner::kEnlistment))
    return core::fail(ErrorCode::kConflict, "another program keeps " + node_ + " out of service: " + seen->reason);
  if (!seen->state.has("DRAIN") && !seen->state.has("FAIL") && seen->state.base != "DOWN") return {};
  return update({"State=RESUME", "Reason=" + std::string(slurm::kNotResponding)});
}

core::Result<Words> SlurmNode::jobs_there() {
  const auto seen = known_record();
  if (!seen) return std::unexpected(seen.error());
  const auto there = jobs({"--states=all", "--nodelist=" + node_});
  if (!there) return std::unexpected(there.error());
  Words out;
  for (const auto& [id, job] : *there) {
    if (job->holds_nodes()) out.push_back(job->full_id());
  }
  return out;
}

core::Result<SlurmNode::Ended> SlurmNode::end_jobs() {
  auto jobs = jobs_there();
  if (!jobs) return std::unexpected(jobs.error());
  Ended out{.jobs = *std::move(jobs)};
  if (out.jobs.empty()) return out;
  Words words{"scancel"};
  words.insert(words.end(), out.jobs.begin(), out.jobs.end());
  if (const auto done = ask(words); !done) return std::unexpected(done.error());
  for (auto waited = 0ms;; waited += kJobsAgain) {
    const auto now = jobs_there();
    if (!now) return std::unexpected(now.error().with("the jobs " + comma_list(out.jobs) + " were ended"));
    out.left.clear();
    std::ranges::copy_if(out.jobs, std::back_inserter(out.left),
                         [&](const std::string& job) { return std::ranges::find(*now, job) != now->end(); });
    if (out.left.empty() || waited >= kEnds) return out;
    parts_.pause(kJobsAgain);
  }
}

core::Result<void> SlurmNode::set_features(const std::string& features) {
  const auto seen = known_record();
  if (!seen) return std::unexpected(seen.error());
  return update({"AvailableFeatures=" + features, "ActiveFeatures=" + features});
}

}  // namespace enlist::juju
