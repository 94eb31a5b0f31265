#include "example/keeper.hpp"

#include <utility>

namespace example {

namespace {

constexpr core::Duration kStopGrace{10000};
/// There is one folder, so there is one key.
const run::Key kFolder{"", "folder"};

}  // namespace

Keeper::Keeper(core::Loop& loop, core::Random& random, core::Logger& log, std::shared_ptr<Disk> disk, run::PassMetrics* metrics)
    : TypedController(example::plan),
      log_(log),
      folder_(loop, std::move(disk), [this](bool changed) { looked(changed); }),
      executor_(loop, folder_),
      passes_(loop, random, log, executor_, {},
              {.may_begin = [this] { return folder_.ended() > 0; },
               .on_first = [](std::size_t) {},
               .on_ended = [this] { shutdown_.pass_ended(); },
               .on_waiting = [](const std::string&) {}},
              metrics),
      shutdown_(loop, log, kStopGrace,
                {.passes = [this] { return passes_.under_way(); },
                 .stop_watches = [this] { folder_.stop(); },
                 .send_events = [](const std::function<void()>& done) { done(); },
                 .give_up_lease = [](const std::function<void()>& done) { done(); }}) {
  passes_.add(*this);
}

void Keeper::stop(std::function<void()> done) {
  passes_.stop();
  shutdown_.begin(std::move(done));
}

std::shared_ptr<const Observed> Keeper::observe_typed(const run::Key&, run::Recorder&, const run::Observation& context) {
  auto out = std::make_shared<Observed>(Observed{folder_.contents(), {}});
  if (!out->contents) return out;
  for (const auto& [file, text] : out->contents->files) {
    if (auto evidence = Unlisted::of(context.observing, *out->contents, file))
      out->unlisted.emplace(file, *std::move(evidence));
  }
  return out;
}

void Keeper::looked(bool changed) {
  if (changed && !ready())
    log_.warn("nothing is written until this is mended", {core::error_field(folder_.contents().error())});
  if (changed) passes_.wake({passes_.id_of(name()), kFolder});
  passes_.caches_changed();
}

}  // namespace example
