#include "enlist/rules/rotation.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>

#include "core/base64.hpp"
#include "core/hash.hpp"

namespace enlist {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using P = RotationPhase;

constexpr core::WallTime kNoon{core::Duration{1'800'000'000'000}};

/// A cluster whose key is rotated. The test plays the coordinator, the agents and slurmctld: it changes the stored state, the
/// key file and the reports as they would.
struct Site {
  std::string text;
  std::map<std::string, Node> nodes;
  std::vector<KeyHolder> others;
  std::map<std::string, slurm::Node> records;
  std::vector<slurm::Job> jobs;
  bool slurm_answers = true, slurmctld_loads = true, agents_load = true;
  std::optional<std::pair<core::WallTime, std::string>> refused;
  core::WallTime next_try{};
  std::string loaded;  ///< The mark that slurmctld has loaded.
  core::Json stored;
  core::Duration now{0};
  std::optional<core::MonoTime> settled_since;
  core::WallTime settled{};
  std::vector<std::string> contents;  ///< The keys of each written file, in this order: "old,new*" ("*": signs).

  Site() {
    text =
        core::Json{
            {"keys",
             core::Json::array(
                 {{{"alg", "HS256"}, {"kty", "oct"}, {"kid", "old"}, {"k", core::base64_encode(std::string(32, 'o'))}}})}}
            .dump();
    for (const char* name : {"gpu-1", "gpu-2"}) {
      nodes[name] = {.name = name, .pool = "gpu", .key = "k", .report = {.hostname = "h", .boot_id = "b", .running = true}};
      records[name].name = name;
      records[name].state = {"IDLE", {"DYNAMIC_NORM"}};
    }
    load();
  }
  [[nodiscard]] std::string revision() const { return core::short_digest(text); }
  [[nodiscard]] core::Result<KeySet> keys() const { return key_set_of("slurm.jwks", revision(), text); }
  [[nodiscard]] std::string content() const {
    std::string out;
    const KeySet set = keys().value();
    for (const KeyId& key : set.keys) out += (out.empty() ? "" : ",") + key.kid + (key.kid == set.signer ? "*" : "");
    return out;
  }
  void begin() { stored = to_json(begin_rotation(keys().value(), "new", kNoon).value()); }
  [[nodiscard]] Rotation state() const { return rotation_from(stored).value(); }
  void set(const std::function<void(Rotation&)>& change) {
    Rotation next = state();
    change(next);
    stored = to_json(next);
  }
  void load() {
    for (auto& [name, node] : nodes) node.report.key_revision = node.report.key_loaded = revision();
  }
  [[nodiscard]] slurm::SnapshotPtr slurm() const {
    auto out = std::make_shared<slurm::Snapshot>();
    out->health = slurm_answers ? slurm::Snapshot::Health::kComplete : slurm::Snapshot::Health::kStale;
    std::map<std::string, std::shared_ptr<const slurm::Node>, std::less<>> all_nodes;
    for (const auto& [name, record] : records) all_nodes[name] = std::make_shared<slurm::Node>(record);
    std::map<std::int64_t, std::shared_ptr<const slurm::Job>, std::less<>> all_jobs;
    for (const slurm::Job& job : jobs) all_jobs[job.id] = std::make_shared<slurm::Job>(job);
    out->nodes = std::move(all_nodes);
    out->jobs = std::move(all_jobs);
    return out;
  }
  [[nodiscard]] Rotating look() {
    const Rotation rotation = state();
    const auto set = keys();
    if (rotation.settled != settled) {
      settled = rotation.settled;
      settled_since = settled == core::WallTime{} ? std::nullopt : std::optional(core::MonoTime{now});
    }
    return judge_rotation({.state = rotation,
                           .keys = set,
                           .nodes = nodes,
                           .others = others,
                           .slurm = slurm(),
                           .loaded = loaded == rotation.mark,
                           .refused = refused,
                           .next_try = next_try,
                           .lifetime = 120s,
                           .settled_since = settled_since,
                           .now = kNoon + now,
                           .mono = core::MonoTime{now}});
  }
  /// Carries out one decision of judge_rotation(). Returns false if there was nothing to do.
  bool step() {
    const Rotating judged = look();
    if (judged.next) {
      stored = to_json(*judged.next);
    } else if (judged.write) {
      text = changed_keys(text, *judged.write, std::string(64, 'n')).value();
      contents.push_back(content());
    } else {
      return false;
    }
    return true;
  }
  /// Continues until this phase has begun.
  void go_to(P phase) {
    for (int i = 0; i < 10'000 && state().phase != phase; ++i) {
      if (!step()) now += 1s;
      if (agents_load && state().phase != phase) load();
      if (slurmctld_loads) loaded = state().mark;
    }
    ASSERT_EQ(state().phase, phase);
  }
  /// Continues until the rotation has ended, or `limit` is over.
  void go(core::Duration limit = 1000s) {
    for (const core::Duration end = now + limit; now < end; now += 1s) {
      while (step()) {
        if (agents_load) load();
        if (slurmctld_loads) loaded = state().mark;
      }
      if (state().phase == P::kEnded) return;
    }
  }
};

/// A cluster in which each daemon has the keys that it has read. In each tick, one thing happens. At any time, each daemon must
/// be able to verify what any other one signs, and what was signed before and has not expired.
struct Cluster {
  enum class Event { kRestart, kReconfigure, kAbandon, kHostOff, kHostDeaf, kRefuse, kRestore };
  using Events = std::multimap<int, Event>;
  enum class Is { kOn, kOff, kDeaf };
  struct Daemon {
    std::string file, has;  ///< The text of the daemon's key file, and the text that the daemon has read.
    Is is = Is::kOn;
    core::Duration until{0};  ///< The end of kOff or kDeaf.
  };
  static constexpr core::Duration kLifetime = 120s, kAway = 900s;

  std::string text, before;  ///< The key file beside slurm.conf, and the former one.
  Daemon slurmctld;
  std::string pool_file, loaded, accepted, refused_mark;  ///< The marks (Rotation::mark) of these pool files.
  bool refuses = false;
  core::WallTime refused_at{};
  std::map<std::string, Daemon> hosts;
  std::map<std::string, Node> nodes;
  slurm::SnapshotPtr slurm;
  Rotation state;
  core::Duration now{0};
  core::WallTime settled{};
  std::optional<core::MonoTime> settled_since;
  std::map<std::string, core::Duration> signed_at;  ///< When a key was last used to sign, by KeyId::print.
  std::map<std::string, KeySet> sets;

  Cluster() {
    Site site;
    text = before = site.text;
    nodes = site.nodes;
    slurm = site.slurm();
    slurmctld = {.file = text, .has = text};
    for (auto& [name, node] : nodes) {
      hosts[name] = {.file = text, .has = text};
      report(name);
    }
    state = begin_rotation(set_of(text), "new", kNoon).value();
  }
  const KeySet& set_of(const std::string& file) {
    const auto found = sets.find(file);
    if (found != sets.end()) return found->second;
    return sets[file] = key_set_of("slurm.jwks", core::short_digest(file), file).value();
  }
  void report(const std::string& name) {
    Report& out = nodes[name].report;
    out.key_revision = set_of(hosts[name].file).revision;
    out.key_loaded = set_of(hosts[name].has).revision;
  }
  void read_by_slurmctld() {
    slurmctld.has = text;
    loaded = pool_file;
  }
  void apply(Event event) {
    Daemon& host = hosts.at("gpu-2");
    switch (event) {
      case Event::kRestart:
        return read_by_slurmctld();
      case Event::kReconfigure:  // For example because of a new pool. The pool file gets the mark of the stored state.
        if (refused_mark != state.mark) pool_file = state.mark;
        return read_by_slurmctld();
      case Event::kAbandon:
        if (const auto next = abandoned(state, set_of(text), kNoon + now)) state = *next;
        return;
      case Event::kHostOff:
      case Event::kHostDeaf:
        if (host.is != Is::kOn) return;
        // The agent has fetched and loaded the file, and could not report that.
        if (event == Event::kHostDeaf) host.file = host.has = text;
        host.is = event == Event::kHostOff ? Is::kOff : Is::kDeaf;
        host.until = now + kAway;
        return;
      case Event::kRefuse:
        refuses = true;
        return;
      case Event::kRestore:  // Somebody restores the former key file, and undoes that if the rotation reports a problem.
        std::swap(text, before);
        if (!judged().problem.empty()) std::swap(text, before);
        return;
    }
  }
  Rotating judged() {
    const core::Result<KeySet> keys = set_of(text);
    if (state.settled != settled) {
      settled = state.settled;
      settled_since = settled == core::WallTime{} ? std::nullopt : std::optional(core::MonoTime{now});
    }
    RotationInput in{.state = state,
                     .keys = keys,
                     .nodes = nodes,
                     .others = {},
                     .slurm = slurm,
                     .loaded = loaded == state.mark,
                     .lifetime = kLifetime,
                     .settled_since = settled_since,
                     .now = kNoon + now,
                     .mono = core::MonoTime{now}};
    if (refused_at != core::WallTime{} && refused_mark == state.mark) {
      in.refused.emplace(refused_at, "no");
      in.next_try = refused_at + 60s;
    }
    return judge_rotation(in);
  }
  /// Carries out one decision of judge_rotation() for the coordinator. Returns false if there was nothing to do.
  bool coordinator() {
    const Rotating does = judged();
    if (does.next) {
      state = *does.next;
    } else if (does.write) {
      before = std::exchange(text, changed_keys(text, *does.write, std::string(64, 'n')).value());
    }
    return does.next || does.write;
  }
  bool pools() {
    const bool tried = refused_mark == state.mark && kNoon + now < refused_at + 60s;
    if (pool_file != state.mark && !tried) return pool_file = state.mark, true;
    if (loaded == pool_file) return false;
    if (refuses) {
      refuses = false;
      refused_mark = pool_file;
      refused_at = core::whole_seconds(kNoon + now);
      pool_file = accepted;
    }
    read_by_slurmctld();
    accepted = loaded;
    return true;
  }
  bool agents() {
    for (auto& [name, host] : hosts) {
      if (host.is != Is::kOn && now >= host.until) {
        if (host.is == Is::kOff) host.has = host.file;
        host.is = Is::kOn;
      }
      if (host.is != Is::kOn || nodes[name].report.key_loaded == set_of(text).revision) continue;
      host.file = host.has = text;
      report(name);
      return true;
    }
    return false;
  }
  /// Returns which daemon cannot verify a signature that is still valid; "": none.
  std::string unverified() {
    std::map<std::string, const Daemon*> all{{"slurmctld", &slurmctld}};
    for (const auto& [name, host] : hosts) {
      if (host.is != Is::kOff) all[name] = &host;
    }
    for (const auto& [name, daemon] : all) {
      const KeySet& set = set_of(daemon->has);
      signed_at[std::ranges::find(set.keys, set.signer, &KeyId::kid)->print] = now;
    }
    for (const auto& [print, at] : signed_at) {
      if (at + kLifetime < now) continue;
      for (const auto& [name, daemon] : all) {
        const KeySet& set = set_of(daemon->has);
        if (std::ranges::find(set.keys, print, &KeyId::print) == set.keys.end())
          return fmt::format("{} does not verify what was signed {} s ago", name, (now - at) / 1s);
      }
    }
    return "";
  }
  /// Runs the rotation with these events to its end. Returns what has gone wrong; "": nothing. `ticks` gets the number of
  /// ticks.
  std::string run(const Events& events, int* ticks = nullptr) {
    for (int tick = 0; tick < 600 && state.phase != P::kEnded; ++tick) {
      const auto [from, to] = events.equal_range(tick);
      for (auto event = from; event != to; ++event) apply(event->second);
      now += coordinator() || pools() || agents() ? 1s : 20s;
      if (std::string wrong = unverified(); !wrong.empty())
        return fmt::format("tick {}, {}: {}", tick, to_string(state.phase), wrong);
      if (ticks != nullptr) *ticks = tick;
    }
    return state.phase == P::kEnded ? "" : fmt::format("it does not end: {}", to_json(state).dump());
  }
};
using Event = Cluster::Event;

TEST(RotationTest, SlurmctldMaySignWithTheNewKeyBeforeItIsMadeToLoadIt) {
  // In Sign, slurmctld reads the key file while a host that is off does not have it. Then the rotation is abandoned.
  int ticks = 0;
  EXPECT_EQ(Cluster().run({}, &ticks), "");
  for (int off = 0; off <= ticks; ++off) {
    for (int read = off; read <= ticks; ++read) {
      for (const Event event : {Event::kRestart, Event::kReconfigure}) {
        const Cluster::Events events{{off, Event::kHostOff}, {read, event}, {read + 2, Event::kAbandon}};
        ASSERT_EQ(Cluster().run(events), "") << "off at " << off << ", read at " << read;
      }
    }
  }
}

TEST(RotationTest, WhateverOneSignsWithAllOthersVerify) {
  int ticks = 0;
  ASSERT_EQ(Cluster().run({}, &ticks), "");
  std::minstd_rand random(7);  // NOLINT: the same each time.
  for (int i = 0; i < 2000; ++i) {
    Cluster::Events events;
    std::string told;
    for (unsigned n = 0; n <= i % 5U; ++n) {
      const int at = static_cast<int>(random() % (2U * static_cast<unsigned>(ticks)));
      const auto event = static_cast<Event>(random() % 7U);
      events.emplace(at, event);
      told += fmt::format("{} at {}; ", static_cast<int>(event), at);
    }
    ASSERT_EQ(Cluster().run(events), "") << told;
  }
}

TEST(RotationTest, ThreePhasesLeadToTheNewKey) {
  Site site;
  site.begin();
  site.go();
  EXPECT_THAT(site.contents, ElementsAre("old*,new", "old,new*", "new*"));
  EXPECT_EQ(site.state().phase, P::kEnded);
  EXPECT_THAT(site.state().result, HasSubstr("done"));
  EXPECT_GE(site.now, 120s) << "what the old key has signed must expire first";
  EXPECT_LT(site.now, 240s) << "and only in the phase Sign";
  EXPECT_EQ(site.state().mark, site.revision());
}

TEST(RotationTest, AWishForALongerWaitCounts) {
  Site site;
  site.begin();
  site.set([](Rotation& state) { state.lifetime = 600s; });
  site.go();
  EXPECT_GE(site.now, 600s);
}

TEST(RotationTest, ItGoesOnAfterACrashAtAnyPoint) {
  // Each step is made as by a new process of the coordinator, which has only the store and the key file. Its wait begins anew.
  Site site;
  site.begin();
  for (int i = 0; i < 100 && site.state().phase != P::kEnded; ++i) {
    site.step();
    site.load();
    site.loaded = site.state().mark;
    site.now += 60s;
    if (i % 3 == 0) site.settled_since = core::MonoTime{site.now};
  }
  EXPECT_THAT(site.contents, ElementsAre("old*,new", "old,new*", "new*"));
  EXPECT_EQ(site.state().phase, P::kEnded);
}

TEST(RotationTest, AWriteWhoseOutcomeIsNotStoredIsFoundInTheFile) {
  Site site;
  site.begin();
  ASSERT_TRUE(site.look().write) << "the phase is stored before the file is written";
  ASSERT_TRUE(site.step());
  EXPECT_FALSE(site.look().write);
  EXPECT_FALSE(site.look().next->fresh.print.empty()) << "the key that was made is known from its file";
}

TEST(RotationTest, ANodeCountsOnlyWhenItsSlurmdHasLoadedTheFile) {
  for (const auto& change : std::vector<std::function<void(Report&)>>{
           [](Report& report) { report.key_loaded = "before"; }, [](Report& report) { report.key_loaded = ""; },
           [](Report& report) { report.key_revision = "before"; },
           [](Report& report) { report = {.hostname = "h", .boot_id = "", .slurm_version = "26.05.0"}; }}) {
    Site site;
    site.begin();
    site.agents_load = false;
    site.step();
    site.step();
    site.load();
    change(site.nodes["gpu-2"].report);
    site.go();
    EXPECT_EQ(site.state().phase, P::kSpread);
    EXPECT_EQ(site.state().mark, "") << "slurmctld is not asked to load before";
    ASSERT_EQ(site.look().hosts.size(), 1U);
    EXPECT_EQ(site.look().hosts[0].host, "gpu-2");
    Report& report = site.nodes["gpu-2"].report;
    if (report.boot_id.empty()) EXPECT_EQ(site.look().hosts[0].why, "its agent has not reported yet") << "it has just joined";
    report.boot_id = "b";
    site.agents_load = true;
    site.load();
    site.go();
    EXPECT_EQ(site.state().phase, P::kEnded);
  }
}

TEST(RotationTest, HostsWithoutTheKeyAreNotWaitedFor) {
  Site site;
  site.nodes["gpu-1"].revoked = true;
  site.nodes["gpu-2"].report.stopped = true;
  site.agents_load = false;
  site.begin();
  site.go();
  ASSERT_EQ(site.look().hosts.size(), 1U) << "its slurmd gets new parameters, and starts again";
  EXPECT_EQ(site.look().hosts[0].host, "gpu-2");
  site.nodes["gpu-2"].leaving.wanted = true;
  site.go();
  EXPECT_EQ(site.state().phase, P::kEnded);
}

TEST(RotationTest, ASilentNodeIsLeftOutOnlyWhileItHasNoJobs) {
  Site site;
  site.begin();
  site.agents_load = false;
  site.nodes["gpu-2"].phase = Phase::kSilent;
  site.set([](Rotation& state) { state.without = {"gpu-1", "gpu-2"}; });
  site.step();
  site.step();
  EXPECT_EQ(site.look().hosts.size(), 2U) << "jobs may start there";
  for (auto& [name, record] : site.records) record.state = {"IDLE", {"DRAIN"}};
  EXPECT_THAT(site.look().hosts, IsEmpty());
  slurm::Job job;
  job.id = 7;
  job.state = "RUNNING";
  job.nodes = {"gpu-2"};
  site.jobs = {job};
  ASSERT_EQ(site.look().hosts.size(), 1U);
  EXPECT_THAT(site.look().hosts[0].why, HasSubstr("the host is silent"));
  site.slurm_answers = false;
  EXPECT_THAT(site.look().waits, HasSubstr("Slurm does not answer"));
  EXPECT_NE(must_wait_for(site.slurm(), "gpu-1"), "");
}

TEST(RotationTest, PeopleAcknowledgeInEachPhase) {
  Site site;
  site.others = {{"db", "restart slurmdbd"}};
  site.records["static-1"].name = "static-1";
  site.records["static-1"].state = {"IDLE", {}};
  site.begin();
  for (const P phase : {P::kSpread, P::kSign, P::kRetire}) {
    site.go();
    EXPECT_EQ(site.state().phase, phase);
    ASSERT_EQ(site.look().hosts.size(), 2U) << "a node that is not ours holds the key as well";
    EXPECT_TRUE(site.look().hosts[0].by_people);
    EXPECT_EQ(site.look().hosts[1].host, "static-1");
    site.set([](Rotation& state) { state.acknowledged = {"db", "static-1"}; });
  }
  site.go();
  EXPECT_EQ(site.state().phase, P::kEnded);
}

TEST(RotationTest, NothingOfSomebodyElseIsOverwritten) {
  Site site;
  site.begin();
  site.agents_load = false;
  site.go(10s);
  const std::string spread = site.text;
  const core::Json all = core::parse_json(spread)->at("keys");
  core::Json other_key = all, third = all;
  other_key[0]["k"] = core::base64_encode(std::string(32, 'x'));
  third.push_back(all[0]);
  third[2]["kid"] = "third";
  third[2].erase("use");
  for (const core::Json& changed : {core::Json::array({all[1]}), other_key, third}) {
    site.text = core::Json{{"keys", changed}}.dump();
    EXPECT_FALSE(site.look().write) << changed;
    EXPECT_FALSE(site.look().next) << changed;
    EXPECT_THAT(site.look().problem, HasSubstr("somebody else has changed"));
    const auto abandon = abandoned(site.state(), site.keys(), kNoon);
    ASSERT_TRUE(abandon);
    EXPECT_EQ(abandon->phase, P::kEnded) << "the way out changes no file";
  }
  site.text = "not JSON";
  EXPECT_THAT(site.look().problem, HasSubstr("is not JSON"));
  EXPECT_TRUE(abandoned(site.state(), site.keys(), kNoon));
  site.text = spread;
  site.agents_load = true;
  site.load();
  site.go();
  EXPECT_EQ(site.state().phase, P::kEnded) << "it goes on when the file is restored";
}

TEST(RotationTest, AFileFromBeforeIsNotReplacedOnceTheNewKeyMaySign) {
  Site site;
  site.begin();
  const std::string before = site.text;
  site.go_to(P::kSign);
  site.go(10s);
  site.text = before;
  EXPECT_FALSE(site.look().write);
  EXPECT_THAT(site.look().problem, HasSubstr("somebody else has changed"));
  EXPECT_EQ(abandoned(site.state(), site.keys(), kNoon)->phase, P::kEnded);
}

TEST(RotationTest, AFileThatIsRestoredInSpreadGetsAnotherNewKey) {
  Site site;
  site.begin();
  const std::string before = site.text;
  site.agents_load = false;
  site.go(10s);
  site.text = before;
  site.agents_load = true;
  site.go();
  EXPECT_THAT(site.contents, ElementsAre("old*,new", "old*,new", "old,new*", "new*"));
  EXPECT_EQ(site.state().phase, P::kEnded);
}

TEST(RotationTest, JobsThatBeganBeforeTheFileWasRestoredAreWaitedFor) {
  Site site;
  slurm::Job job;
  job.id = 7;
  job.state = "RUNNING";
  job.nodes = {"gpu-1"};
  job.stepmgr = true;
  job.start = kNoon;
  site.jobs = {job};
  site.begin();
  const std::string before = site.text;
  site.go(30s);
  ASSERT_THAT(site.look().waits, HasSubstr("--stepmgr): 7"));
  site.now += 60s;
  site.jobs[0].start = kNoon + site.now;
  site.now += 60s;
  site.text = before;
  site.go(30s);
  EXPECT_EQ(site.state().phase, P::kSpread) << "its slurmstepd does not have the key that was made since";
  EXPECT_THAT(site.look().waits, HasSubstr("--stepmgr): 7"));
  site.jobs.clear();
  site.go();
  EXPECT_THAT(site.contents, ElementsAre("old*,new", "old*,new", "old,new*", "new*"));
}

TEST(RotationTest, AFileThatIsReplacedAfterAllHaveLoadedItIsLoadedAgain) {
  Site site;
  site.others = {{"db", "restart slurmdbd"}};
  site.begin();
  site.step();
  const std::string spread = site.text;
  site.set([](Rotation& state) { state.acknowledged = {"db"}; });
  site.go(10s);
  site.set([](Rotation& state) { state.acknowledged = {"db"}; });
  site.go(10s);
  ASSERT_EQ(site.state().phase, P::kSign);
  ASSERT_NE(site.state().settled, core::WallTime{});
  const std::string sign = site.revision();
  site.text = spread;
  site.go(10s);
  EXPECT_EQ(site.content(), "old,new*");
  EXPECT_NE(site.revision(), sign) << "somebody may have loaded the other one since";
  ASSERT_EQ(site.look().hosts.size(), 1U);
  EXPECT_EQ(site.look().hosts[0].host, "db");
}

TEST(RotationTest, AnOlderStoreLearnsFromTheFileThatTheNewKeyMaySign) {
  for (const bool at_once : {true, false}) {
    Site site;
    site.begin();
    site.go_to(P::kSign);
    Rotation older = site.state();
    older.phase = P::kSpread;
    older.signed_anew = false;
    site.go(10s);
    const core::Duration then = site.now;
    site.stored = to_json(older);
    if (!at_once) site.step();
    site.stored = to_json(abandoned(site.state(), site.keys(), kNoon + site.now).value());
    EXPECT_EQ(site.state().phase, P::kSpread);
    site.go();
    EXPECT_THAT(site.contents, ElementsAre("old*,new", "old,new*", "old*,new", "old*"));
    EXPECT_GE(site.now - then, 120s) << "what the new key has signed must expire";
  }
}

TEST(RotationTest, ARefusedSpreadEndsTheRotation) {
  Site site;
  site.begin();
  site.slurmctld_loads = false;
  site.go(10s);
  ASSERT_EQ(site.state().mark, site.revision());
  site.refused.emplace(kNoon + 10s, "no such node set");
  site.slurmctld_loads = true;
  site.loaded = "";  // The former pool file, which has no mark, is written back, and slurmctld runs with it.
  site.go();
  EXPECT_THAT(site.contents, ElementsAre("old*,new", "old*"));
  EXPECT_EQ(site.state().phase, P::kEnded);
  EXPECT_THAT(site.state().result, HasSubstr("no such node set"));
  EXPECT_EQ(site.state().mark, "");
}

TEST(RotationTest, ARefusedSignStepsBackAndIsTriedAgain) {
  Site site;
  site.begin();
  site.go_to(P::kSign);
  site.slurmctld_loads = false;
  site.go(10s);
  ASSERT_EQ(site.state().phase, P::kSign);
  const std::string sign = site.state().mark;
  site.refused.emplace(kNoon + site.now, "no such node set");
  site.next_try = kNoon + site.now + 60s;
  site.slurmctld_loads = true;
  site.step();
  EXPECT_EQ(site.state().phase, P::kSpread);
  site.refused.reset();
  site.go();
  EXPECT_THAT(site.contents, ElementsAre("old*,new", "old,new*", "old*,new", "old,new*", "new*"));
  EXPECT_EQ(site.state().phase, P::kEnded);
  EXPECT_THAT(site.state().result, HasSubstr("done"));
}

TEST(RotationTest, ASignThatIsRefusedAgainIsTriedLater) {
  Site site;
  site.begin();
  for (const auto& [refusals, wait] : {std::pair{1, 60s}, std::pair{2, 120s}, std::pair{3, 240s}}) {
    site.go_to(P::kSign);
    site.slurmctld_loads = false;
    site.go(10s);
    ASSERT_EQ(site.state().phase, P::kSign);
    const core::WallTime at = core::whole_seconds(kNoon + site.now);
    site.refused.emplace(at, "no such node set");
    site.next_try = at + 60s;  // The rollout of the pool file has forgotten the earlier refusals.
    site.step();
    EXPECT_EQ(site.state().refusals, refusals);
    EXPECT_EQ(site.state().try_at, at + wait);
    site.refused.reset();
    site.slurmctld_loads = true;
  }
}

TEST(RotationTest, ARefusalDoesNotWaitForAClockThatWasSetBack) {
  Site site;
  site.begin();
  site.go_to(P::kSign);
  site.set([](Rotation& state) {
    state.phase = P::kSpread;
    state.refusal = "no";
    state.refused_at = kNoon + 6h;
    state.try_at = kNoon + 6h + 60s;
  });
  site.go_to(P::kSign);
  EXPECT_LT(site.now, 60s);
}

TEST(RotationTest, ARefusalAfterSlurmctldHasLoadedThePhaseDoesNotStepBack) {
  Site site;
  site.begin();
  site.go_to(P::kSign);
  site.go(10s);
  ASSERT_EQ(site.loaded, site.state().mark);
  site.refused.emplace(kNoon + site.now, "a pool has bad words");
  site.go();
  EXPECT_THAT(site.state().result, HasSubstr("done"));
}

TEST(RotationTest, TheStatusNamesJobsThatAreStarting) {
  Site site;
  site.begin();
  site.slurmctld_loads = false;
  slurm::Job job;
  job.id = 7;
  job.state = "RUNNING";
  job.flags = {"CONFIGURING"};
  job.nodes = {"gpu-1"};
  site.jobs = {job};
  site.go(10s);
  EXPECT_THAT(site.look().waits, HasSubstr("the jobs that are starting: 7"));
  site.jobs.clear();
  EXPECT_THAT(site.look().waits, HasSubstr("slurm-enlist pool list"));
}

TEST(RotationTest, ARefusedSpreadDoesNotReturnOnceTheNewKeyMaySign) {
  Site site;
  site.begin();
  site.go_to(P::kSign);
  site.go(10s);
  site.stored = to_json(abandoned(site.state(), site.keys(), kNoon).value());
  site.slurmctld_loads = false;
  site.go(10s);
  ASSERT_EQ(site.state().phase, P::kSpread);
  site.refused.emplace(kNoon + site.now, "a pool has bad words");
  EXPECT_FALSE(site.look().next);
  EXPECT_THAT(site.look().waits, HasSubstr("a pool has bad words"));
}

TEST(RotationTest, ARefusalThatWasSeenBeforeIsNoNewOne) {
  Site site;
  site.begin();
  site.agents_load = true;
  site.refused.emplace(kNoon, "once");
  site.set([](Rotation& state) { state.refused_at = kNoon; });
  site.go();
  EXPECT_EQ(site.state().phase, P::kEnded);
  EXPECT_THAT(site.state().result, HasSubstr("done"));
}

TEST(RotationTest, ARefusedRetireIsWaitedFor) {
  Site site;
  site.begin();
  site.go_to(P::kRetire);
  site.slurmctld_loads = false;
  site.go(10s);
  site.refused.emplace(kNoon + site.now, "no such node set");
  EXPECT_FALSE(site.look().next) << "the old key is not there any more, and slurmctld accepts the new one";
  EXPECT_FALSE(site.look().write);
  EXPECT_THAT(site.look().waits, HasSubstr("no such node set"));
  EXPECT_FALSE(abandoned(site.state(), site.keys(), kNoon));
}

TEST(RotationTest, AbandonedInSpreadItReturnsAtOnce) {
  Site site;
  site.begin();
  site.agents_load = false;
  site.go(10s);
  site.stored = to_json(abandoned(site.state(), site.keys(), kNoon).value());
  site.agents_load = true;
  site.go();
  EXPECT_THAT(site.contents, ElementsAre("old*,new", "old*"));
  EXPECT_LT(site.now, 120s);
  EXPECT_THAT(site.state().result, HasSubstr("abandoned"));
}

TEST(RotationTest, AbandonedInSignItReturnsWhenWhatTheNewKeySignedHasExpired) {
  Site site;
  site.begin();
  site.go_to(P::kSign);
  site.go(10s);
  const core::Duration then = site.now;
  site.stored = to_json(abandoned(site.state(), site.keys(), kNoon).value());
  site.go();
  EXPECT_THAT(site.contents, ElementsAre("old*,new", "old,new*", "old*,new", "old*"));
  EXPECT_GE(site.now - then, 120s);
  EXPECT_EQ(site.state().phase, P::kEnded);
  EXPECT_FALSE(abandoned(site.state(), site.keys(), kNoon)) << "none runs any more";
}

TEST(RotationTest, JobsThatManageTheirStepsKeepTheKeysThatTheyBeganWith) {
  Site site;
  slurm::Job job;
  job.id = 7;
  job.state = "RUNNING";
  job.nodes = {"gpu-1"};
  job.stepmgr = true;
  job.start = kNoon - 1h;
  site.jobs = {job};
  site.begin();
  site.go();
  EXPECT_EQ(site.state().phase, P::kSpread);
  EXPECT_THAT(site.look().waits, HasSubstr("--stepmgr): 7"));
  site.jobs[0].start = kNoon + site.now + 1h;
  site.go(30s);
  EXPECT_EQ(site.state().phase, P::kSpread) << "slurmctld's clock was set back since it began";
  site.jobs[0].start = kNoon + site.now;
  site.go(30s);
  EXPECT_EQ(site.state().phase, P::kSign) << "a job that began later has both keys";
  site.go();
  EXPECT_EQ(site.state().phase, P::kSign) << "but signs with the old one";
  site.jobs.clear();
  site.go();
  EXPECT_EQ(site.state().phase, P::kEnded);
}

TEST(RotationTest, TheStateIsStoredAsItIs) {
  Site site;
  site.begin();
  site.set([](Rotation& state) {
    state.also = {"a"};
    state.without = {"b"};
    state.acknowledged = {"c"};
    state.refusal = "no";
    state.try_at = state.refused_at = kNoon;
    state.lifetime = 5s;
    state.revision = "r2";
    state.refusals = 2;
    state.signed_anew = state.abandoned = true;
  });
  EXPECT_EQ(to_json(site.state()), site.stored);
  EXPECT_EQ(rotation_from(to_json(site.state())), site.state());
  for (const char* member : {"phase", "oldKeys", "newKey", "oldSigner", "since", "also"}) {
    core::Json broken = site.stored;
    broken.erase(member);
    EXPECT_FALSE(rotation_from(broken)) << member;
  }
}

}  // namespace
}  // namespace enlist
