#include "enlist/juju/departure.hpp"

#include <utility>

#include "enlist/host/spawn.hpp"
#include "enlist/juju/compute.hpp"
#include "slurm/holds.hpp"
#include "slurm/rest/decode.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;
using slurm::Owner;
using namespace std::chrono_literals;

constexpr auto kSlurmLimit = 60s;
/// A drain, a deletion, and the look that shows that the record is gone.
constexpr int kLooks = 3;

}  // namespace

Departure::Departure(const Event& event, const CharmParts& parts)
    : node_(node_of(event.unit)), instance_(instance_of(event)), parts_(parts) {}

core::Result<std::string> Departure::ask(const std::vector<std::string>& words) {
  auto output = parts_.host.run(words, kSlurmLimit, "");
  if (!output) return std::unexpected(output.error());
  if (output->status == 0) return std::move(output->out);
  const std::string said = telling_lines(output->err);
  return core::fail(ErrorCode::kUnavailable,
                    words.front() + ": " + (said.empty() ? "exit code " + std::to_string(output->status) : said));
}

core::Result<std::optional<slurm::Node>> Departure::record() {
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

core::Result<Jobs> Departure::jobs(const std::vector<std::string>& which) {
  const auto text = ask(jobs_question(which));
  if (!text) return std::unexpected(text.error());
  return jobs_from(*text);
}

core::Result<LeaveSeen> Departure::look() {
  LeaveSeen out{.node = node_, .instance = instance_};
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
  auto steps = parts_.slurmd.steps();
  if (!steps) return std::unexpected(steps.error());
  out.steps = *std::move(steps);
  return out;
}

core::Result<void> Departure::drain(const slurm::Node& record) {
  const auto done = ask({"scontrol", "update", "NodeName=" + node_, "State=DRAIN", "Reason=" + leaving_reason(record)});
  if (!done) return std::unexpected(done.error());
  return {};
}

core::Result<void> Departure::drain() {
  const auto shown = record();
  if (!shown) return std::unexpected(shown.error());
  if (!*shown || !judge_unit({.node = node_, .instance = instance_, .record = *shown}).drain) return {};
  return drain(**shown);
}

core::Result<Leaves> Departure::advance() {
  Leaves out;
  for (int i = 0; i < kLooks; ++i) {
    const auto seen = look();
    if (!seen) return std::unexpected(seen.error());
    out = judge_unit(*seen);
    if (out.drain) {
      if (auto done = drain(*seen->record); !done) return std::unexpected(done.error());
    } else if (out.erase) {
      if (auto done = ask({"scontrol", "delete", "NodeName=" + node_}); !done) return std::unexpected(done.error());
    } else {
      break;
    }
  }
  return out;
}

core::Result<void> Departure::stay() {
  const auto shown = record();
  if (!shown) return std::unexpected(shown.error());
  if (!*shown || (*shown)->instance_id != instance_ || !(*shown)->state.drains()) return {};
  slurm::Holds holds = slurm::Holds::read((*shown)->reason);
  if (holds.why(Owner::kEnlistment) != kLeaves) return {};
  std::vector<std::string> words{"scontrol", "update", "NodeName=" + node_};
  if (holds.others_than(Owner::kEnlistment)) {
    words.insert(words.end(), {"State=DRAIN", "Reason=" + holds.release(Owner::kEnlistment).reason()});
  } else {
    // Before 26.05, Slurm does not clear a reason, and the next drain would keep it.
    words.insert(words.end(), {"State=UNDRAIN", "Reason=" + std::string(slurm::kNotResponding)});
  }
  const auto done = ask(words);
  if (!done) return std::unexpected(done.error());
  return {};
}

}  // namespace enlist::juju
