#include "enlist/agent/agent.hpp"

#include <utility>

namespace enlist {

namespace {

constexpr core::Duration kStopGrace{10000};
/// The agent plans for one object only, this host, so it has one run::Key.
const run::Key kHost{"", "host"};

}  // namespace

Agent::Agent(core::Loop& loop, core::Random& random, core::Logger& log, net::HttpTransport& transport,
             std::shared_ptr<Host> host, std::shared_ptr<Service> service, MachineOptions options, Memory memory,
             run::PassMetrics* metrics, std::function<void()> left)
    : TypedController(enlist::plan),
      log_(log),
      connection_(loop, random, transport,
                  {.on_reply = [this](const SyncReply& reply) { told(reply); },
                   .on_trouble = [this](const std::string& why) { troubled(why); }}),
      machine_(loop, std::move(host), std::move(service), std::move(options), std::move(memory),
               {.on_look = [this](bool changed) { looked(changed); },
                .fetch_key = [this](auto done) { connection_.fetch_key(std::move(done)); },
                .report = [this](const Report& report) { connection_.report(report); },
                .ended =
                    [this, left = std::move(left)] {
                      // After this, nothing may write the agent's files again.
                      ended_ = true;
                      connection_.stop();
                      log_.info("this host has left the cluster");
                      if (left) left();
                    },
                .at_rest = [this] { return at_rest(); },
                .invalid = [this] { return told_.phase == to_string(Phase::kInvalid); }}),
      executor_(loop, machine_),
      passes_(loop, random, log, executor_, {},
              {.may_begin = [this] { return machine_.ended() > 0; },
               .on_first = [](std::size_t) {},
               .on_ended = [this] { shutdown_.pass_ended(); },
               .on_waiting = [](const std::string&) {}},
              metrics),
      shutdown_(loop, log, kStopGrace,
                {.passes = [this] { return passes_.under_way(); },
                 .stop_watches =
                     [this] {
                       machine_.stop();
                       connection_.stop();
                     },
                 .send_events = [](const std::function<void()>& done) { done(); },
                 .give_up_lease = [](const std::function<void()>& done) { done(); }}) {
  passes_.add(*this);
}

void Agent::stop(std::function<void()> done) {
  passes_.stop();
  shutdown_.begin(std::move(done));
}

bool Agent::at_rest() const {
  const auto& seen = machine_.seen();
  return seen && seen->slurmd && seen->slurmd->running &&
         (told_.phase == to_string(Phase::kReady) || !told_.trouble.empty() || told_.phase.empty());
}

std::shared_ptr<const Observed> Agent::observe_typed(const run::Key&, run::Recorder&, const run::Observation& context) {
  told_.heard = connection_.heard();
  return std::make_shared<Observed>(Observed{.memory = machine_.memory(),
                                             .saved = machine_.saved(),
                                             .seen = ended_ ? std::nullopt : machine_.seen(),
                                             .check = machine_.check(),
                                             .told = told_,
                                             .reported = machine_.reported(),
                                             .status = machine_.status(),
                                             .outcomes = context.outcomes});
}

void Agent::looked(bool changed) {
  // After CleanHost, only the coordinator's answer is missing. The host does not change any more, so wakes at each reading.
  if (changed || machine_.memory().left) wake();
  passes_.caches_changed();
}

void Agent::told(const SyncReply& reply) {
  Told now{.phase = reply.phase, .message = reply.message};
  if (now.phase != told_.phase) log_.info("phase", {{"phase", now.phase}, {"message", now.message}});
  now.heard = told_.heard;
  const bool changed = machine_.desire(reply.desired) || now != told_ || machine_.memory().left;
  told_ = std::move(now);
  if (changed) wake();
}

void Agent::troubled(const std::string& why) {
  log_.warn("slurmd continues without changes", {{"trouble", why}});
  told_.trouble = why;
  wake();
}

void Agent::wake() {
  passes_.wake({passes_.id_of(name()), kHost});
}

}  // namespace enlist
