#include "kube/app/manager.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "core/base64.hpp"
#include "core/testing/manual_loop.hpp"
#include "kube/app/metrics.hpp"
#include "kube/apply_helper.hpp"
#include "kube/testing/fake_transport.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::Json;
using testing::ElementsAre;
using testing::HasSubstr;

/// A very small API server: objects by path, watches with initial events, and one resourceVersion for all. Answers take 1 ms,
/// and watch events take `lag`.
class MiniApi final : public net::HttpTransport {
 public:
  explicit MiniApi(core::ManualLoop& l) : loop(l) {}

  RequestId send(net::HttpRequest request, Done done) override {
    log.push_back(request.method + " " + request.target.substr(0, request.target.find('?')));
    const RequestId id = ++last_;
    if (request.method != "GET") ++writes;
    std::optional<core::Error> fault;
    if (before_write && request.method != "GET") fault = before_write(request);
    if (fault && fault->http_status != 0) {
      later(id, done, net::HttpResponse{fault->http_status, {}, status_json(fault->http_status, fault->reason).dump()});
    } else {
      net::HttpResponse answer = serve(request);
      if (!hold.empty() && log.back() == hold) {
        held.push_back([this, id, done, answer] { later(id, done, answer); });
      } else if (fault) {
        later(id, done, std::unexpected(*fault));  // carried out, but the reply is lost
      } else {
        later(id, done, std::move(answer));
      }
    }
    return id;
  }

  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override {
    const RequestId id = ++last_;
    const std::string path = request.target.substr(0, request.target.find('?'));
    std::string name;
    if (const auto at = request.target.find("fieldSelector=metadata.name%3D"); at != std::string::npos) {
      name = request.target.substr(at + 30, request.target.find('&', at) - at - 30);
    }
    watches[id] = {path, name, std::move(handler)};
    ++opened;
    loop.after(1ms, [this, id, path] {
      if (!watches.contains(id) || refuse_watches) return;
      const Watcher& w = watches.at(id);
      w.handler.on_head(200, {});
      for (const auto& [key, object] : objects) {
        if (shows(w, key)) deliver(id, "ADDED", object);
      }
      deliver(id, "BOOKMARK", bookmark_json(std::to_string(rv), true));
    });
    return id;
  }
  void cancel(RequestId id) override {
    watches.erase(id);
    cancelled.insert(id);
  }

  void put(const std::string& collection, Json object) {
    object["metadata"]["resourceVersion"] = std::to_string(++rv);
    const std::string key = collection + "/" + object["metadata"]["name"].get<std::string>();
    const bool fresh = !objects.contains(key);
    if (fresh && !object["metadata"].contains("uid")) object["metadata"]["uid"] = "uid-" + std::to_string(rv);
    objects[key] = object;
    notify(key, fresh ? "ADDED" : "MODIFIED", object);
  }
  void remove(const std::string& key) {
    Json object = objects.at(key);
    objects.erase(key);
    object["metadata"]["resourceVersion"] = std::to_string(++rv);
    notify(key, "DELETED", object);
  }

  struct Watcher {
    std::string path, name;
    net::StreamHandler handler;
  };
  core::ManualLoop& loop;
  std::map<std::string, Json> objects;
  std::map<RequestId, Watcher> watches;
  std::set<RequestId> cancelled;
  std::vector<std::string> log;
  core::Duration lag{2};
  long rv = 100;
  int writes = 0;
  int opened = 0;
  bool refuse_watches = false;
  std::string hold;  ///< Requests with this "METHOD path" are carried out, but their answers are held back.
  std::vector<std::function<void()>> held;
  /// Called before each write. Returns the fault to inject, if any. A fault with an HTTP status becomes the answer, and the
  /// write is not carried out. For a fault without a status, the write is carried out and the reply is lost.
  std::function<std::optional<core::Error>(const net::HttpRequest&)> before_write;

 private:
  void later(RequestId id, const Done& done, core::Result<net::HttpResponse> answer) {
    loop.after(1ms, [this, id, done, answer = std::move(answer)] {
      if (!cancelled.contains(id)) done(answer);
    });
  }
  static bool shows(const Watcher& w, const std::string& key) {
    return key.starts_with(w.path + "/") && (w.name.empty() || key == w.path + "/" + w.name);
  }
  void deliver(RequestId id, std::string_view type, const Json& object) {
    watches.at(id).handler.on_data(Json{{"type", type}, {"object", object}}.dump() + "\n");
  }
  void notify(const std::string& key, const std::string& type, const Json& object) {
    loop.after(lag, [this, key, type, object] {
      std::vector<RequestId> ids;
      for (const auto& [id, w] : watches) {
        if (shows(w, key)) ids.push_back(id);
      }
      for (const RequestId id : ids) deliver(id, type, object);
    });
  }
  net::HttpResponse serve(const net::HttpRequest& request) {
    const std::string path = request.target.substr(0, request.target.find('?'));
    const auto respond = [](int status, const Json& body) { return net::HttpResponse{status, {}, body.dump()}; };
    if (request.method == "POST") {
      const Json object = Json::parse(request.body);
      const std::string key = path + "/" + object["metadata"]["name"].get<std::string>();
      if (objects.contains(key)) return respond(409, status_json(409, "AlreadyExists"));
      put(path, object);
      return respond(201, objects.at(key));
    }
    if (request.method == "PATCH" && !objects.contains(path) &&
        request.headers.at("content-type").find("apply") != std::string::npos) {
      put(path.substr(0, path.rfind('/')), Json::parse(request.body));
      return respond(201, objects.at(path));
    }
    if (!objects.contains(path)) return respond(404, status_json(404, "NotFound"));
    if (request.method == "PUT") {
      put(path.substr(0, path.rfind('/')), Json::parse(request.body));
      return respond(200, objects.at(path));
    }
    if (request.method == "PATCH") {
      Json object = objects.at(path);
      object.merge_patch(Json::parse(request.body));
      put(path.substr(0, path.rfind('/')), object);
      return respond(200, objects.at(path));
    }
    if (request.method == "DELETE") {
      remove(path);
      return respond(200, {{"kind", "Status"}, {"status", "Success"}});
    }
    return respond(200, objects.at(path));
  }
  RequestId last_ = 0;
};

const std::string kConfigs = "/api/v1/namespaces/ns/configmaps";
const std::string kSecrets = "/api/v1/namespaces/ns/secrets";
const std::string kServices = "/api/v1/namespaces/ns/services";

struct Seen {
  std::shared_ptr<const Object> config;
  std::shared_ptr<const Object> service;
  plan::Context context;
  Presence named = Presence::kAbsent;
  std::vector<Presence> all_named;
};

/// Creates a Service of the same name for each ConfigMap.
class TestController final : public TypedController<Seen> {
 public:
  TestController(Cache<Object>& c, Cache<Object>& s)
      : TypedController([this](const Seen& seen) { return planner ? planner(seen) : plan::Plan(); }), configs(c), services(s) {}
  [[nodiscard]] std::string name() const override { return "test"; }
  Cache<Object>& configs;
  Cache<Object>& services;
  std::function<plan::Plan(const Seen&)> planner;
  std::vector<Seen> observed;
  std::string throws_on;  ///< The key for which observe() throws.
  bool reads_secret = false;
  int reads_secrets = 0;  ///< The number of Secrets to read.
  std::function<std::string(const Key&)> shares;
  [[nodiscard]] std::string share(const Key& key) const override { return shares ? shares(key) : ""; }

 protected:
  std::shared_ptr<const Seen> observe_typed(const Key& key, Recorder& recorder, const run::Observation& context) override {
    if (key.name == throws_on) throw std::logic_error("bug");
    auto seen = std::make_shared<Seen>();
    seen->config = configs.find(key);
    seen->service = services.find(key);
    seen->context = context;
    if (reads_secret && seen->config) seen->named = recorder.secret({key.ns, "named"}).presence;
    for (int i = 0; i < reads_secrets; ++i) {
      seen->all_named.push_back(recorder.secret({key.ns, "named-" + std::to_string(i)}).presence);
    }
    observed.push_back(*seen);
    return seen;
  }
};

Json service(std::string_view name) {
  return {{"metadata", {{"namespace", "ns"}, {"name", name}}}};
}
Json config(std::string_view name, Json data = Json::object()) {
  return {{"metadata", {{"namespace", "ns"}, {"name", name}}}, {"data", std::move(data)}};
}

/// Stores the logged lines.
class LineLogger final : public core::Logger {
 public:
  void log(core::Level level, std::string_view message, std::vector<core::Field> fields) override {
    lines.push_back(core::Json::parse(core::format_log_line({}, level, message, fields)));
  }
  std::vector<core::Json> lines;
};

class ManagerTest : public testing::Test {
 protected:
  explicit ManagerTest(ManagerOptions options = {}) {
    options.metrics = &metrics;
    manager = std::make_unique<Manager>(loop, random, log, client, options);
    auto& configs = manager->cache<Object>(resources::kConfigMap, {"ns", "", ""});
    auto& services = manager->cache<Object>(resources::kService, {"ns", "", ""});
    controller = std::make_unique<TestController>(configs, services);
    manager->add(*controller);
    for (Cache<Object>* cache : {&configs, &services})
      listen<Object>(*cache, self<Object>(), {}, [this](const Key& key) { manager->wake("test", key); });
  }
  void start() {
    manager->start();
    loop.advance(10ms);
  }
  static plan::Plan wants_service(const Seen& seen) {
    plan::Plan plan;
    if (seen.config && !seen.service)
      plan.lane("create").add({{"create service"}, "wanted", create(resources::kService, service(seen.config->meta.name))});
    return plan;
  }

  /// Returns the value of a metric, named with its labels; -1 if there is none.
  double metric(const std::string& name) {
    const std::string text = "\n" + metrics.text();
    const auto at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  core::ManualLoop loop;
  FakeRandom random;
  LineLogger log;
  MiniApi api{loop};
  StaticCredentials credentials{{}};
  Client client{loop, random, api, credentials, {}};
  Metrics metrics{"slurm-operator"};
  std::unique_ptr<Manager> manager;
  std::unique_ptr<TestController> controller;
};

TEST_F(ManagerTest, OneWatchForOneCache) {
  auto& again = manager->cache<Object>(resources::kConfigMap, {"ns", "", ""});
  EXPECT_EQ(&again, &controller->configs);
  start();
  EXPECT_EQ(api.opened, 2);
}

TEST_F(ManagerTest, WatchesStartInTheSameOrderWhoeverAsksFirst) {
  const auto order = [&](const std::vector<Resource>& asked) {
    Manager other(loop, random, log, client);
    for (const Resource& resource : asked) other.cache<Object>(resource, {"ns", "", ""});
    other.start();
    loop.advance(10ms);
    std::vector<std::string> paths;
    for (const auto& [id, watch] : api.watches) paths.push_back(watch.path);
    other.stop([] {});
    loop.advance(10s);
    api.watches.clear();
    return paths;
  };
  const std::vector<std::string> once = order({resources::kConfigMap, resources::kService, resources::kPod});
  EXPECT_EQ(once.size(), 3U);
  EXPECT_EQ(order({resources::kPod, resources::kService, resources::kConfigMap}), once);
}

/// Pods contain digests of their keys. If the digests changed, every restart of the operator would restart every slurmctld.
TEST_F(ManagerTest, DigestsOfSecretsAreTheSameInEveryProcessAndRelease) {
  auto& secrets = manager->cache<SecretRecord>(resources::kSecret, {"ns", "", ""});
  start();
  api.put("/api/v1/namespaces/ns/secrets",
          {{"metadata", {{"namespace", "ns"}, {"name", "key"}, {"uid", "u"}}}, {"data", {{"k", core::base64_encode("v")}}}});
  loop.advance(100ms);
  ASSERT_NE(secrets.find({"ns", "key"}), nullptr);
  EXPECT_EQ(secrets.find({"ns", "key"})->value_hashes.at("k"),
            "ab5c6d94011382e9ac4a9fb4523b391d9de512f1582ea315ebb2d383b7a6e875");
}

TEST_F(ManagerTest, PassesBeginWhenAllCachesAreSynced) {
  api.put(kConfigs, config("a"));
  api.refuse_watches = true;
  start();
  EXPECT_FALSE(manager->synced());
  EXPECT_TRUE(controller->observed.empty());
  api.refuse_watches = false;
  loop.advance(60s);
  EXPECT_TRUE(manager->synced());
  EXPECT_EQ(controller->observed.size(), 1U);
}

TEST_F(ManagerTest, ReachesTheStateAndRests) {
  controller->planner = wants_service;
  api.put(kConfigs, config("a"));
  api.put(kConfigs, config("b"));
  start();
  loop.advance(1s);
  EXPECT_TRUE(api.objects.contains(kServices + "/a"));
  EXPECT_TRUE(api.objects.contains(kServices + "/b"));
  EXPECT_EQ(api.writes, 2);
  EXPECT_TRUE(manager->idle());
  const auto passes = controller->observed.size();
  loop.advance(200s);
  EXPECT_EQ(api.writes, 2);
  EXPECT_EQ(controller->observed.size(), passes);
  api.remove(kServices + "/a");
  loop.advance(1s);
  EXPECT_EQ(api.writes, 3);
  EXPECT_TRUE(api.objects.contains(kServices + "/a"));
}

TEST_F(ManagerTest, AKeyWaitsUntilTheCachesShowItsWrite) {
  controller->planner = wants_service;
  api.lag = 300ms;
  start();
  api.put(kConfigs, config("a"));
  loop.advance(310ms);
  ASSERT_EQ(api.writes, 1);
  ASSERT_EQ(manager->passes().held().size(), 1U);
  EXPECT_THAT(manager->passes().held()[0], HasSubstr("test ns/a: Service ns/a at resourceVersion"));
  const auto passes = controller->observed.size();
  manager->wake("test", {"ns", "a"});
  loop.advance(200ms);
  EXPECT_EQ(controller->observed.size(), passes) << "planned on contents known to be old";
  loop.advance(200ms);
  EXPECT_GT(controller->observed.size(), passes);
  EXPECT_EQ(api.writes, 1);
  EXPECT_TRUE(manager->passes().held().empty());
}

TEST_F(ManagerTest, OtherKeysDoNotWaitForAHeldOne) {
  controller->planner = wants_service;
  api.lag = 300ms;
  start();
  api.put(kConfigs, config("a"));
  loop.advance(305ms);
  ASSERT_EQ(manager->passes().held().size(), 1U);
  manager->wake("test", {"ns", "other"});
  loop.advance(5ms);
  ASSERT_FALSE(controller->observed.empty());
  EXPECT_FALSE(controller->observed.back().config);
}

TEST_F(ManagerTest, AGateThatStaysClosedIsSettledLive) {
  controller->planner = wants_service;
  start();
  api.put(kConfigs, config("a"));
  api.lag = 1000s;  // the watch is quiet after this
  loop.advance(100ms);
  ASSERT_EQ(manager->passes().held().size(), 1U);
  const int opened = api.opened;
  loop.advance(32s);
  EXPECT_GT(api.opened, opened) << "the cache that is behind lists again";
  EXPECT_TRUE(manager->passes().held().empty());
  EXPECT_EQ(api.writes, 1);
}

/// An act on another system. No cache shows the effect of the act.
class ElsewhereAct final : public plan::Act {
 public:
  [[nodiscard]] Json describe() const override { return {{"act", "elsewhere"}}; }
};
class ClosedGate final : public plan::Gate {
 public:
  [[nodiscard]] bool open() const override { return false; }
  [[nodiscard]] std::string describe() const override { return "elsewhere"; }
};
class ElsewhereTarget final : public plan::Target {
 public:
  explicit ElsewhereTarget(core::Loop& l) : loop(l) {}
  [[nodiscard]] bool handles(const plan::Act& act) const override { return dynamic_cast<const ElsewhereAct*>(&act) != nullptr; }
  void execute(plan::ActPtr, Done done) override {
    loop.after(1ms, [done] { done({Json::object(), {std::make_shared<ClosedGate>()}}); });
  }
  core::Loop& loop;
};

TEST_F(ManagerTest, AServerThatIsGoneDoesNotHoldItsKeyForEver) {
  ElsewhereTarget elsewhere(loop);
  manager->add_target(elsewhere);
  controller->planner = [](const Seen& seen) {
    plan::Plan plan;
    if (seen.config && seen.context.outcomes.empty())
      plan.lane("x").add({{"write"}, "wanted", std::make_shared<ElsewhereAct>()});
    return plan;
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(29s);
  EXPECT_EQ(manager->passes().held().size(), 1U);
  loop.advance(3s);
  EXPECT_TRUE(manager->passes().held().empty());
  EXPECT_GT(controller->observed.size(), 1U);
}

TEST_F(ManagerTest, AKeyThatIsDearToPlanIsNotPlannedForEveryEvent) {
  start();
  controller->planner = [this](const Seen&) {
    loop.manual_clock().move(10ms);
    return plan::Plan();
  };
  for (int i = 0; i < 100; ++i) {
    api.put(kConfigs, config("a", {{"n", std::to_string(i)}}));
    loop.advance(1ms);
  }
  loop.advance(1s);
  EXPECT_LE(controller->observed.size(), 12U);
  EXPECT_EQ(core::get_string(controller->observed.back().config->body, {"data", "n"}), "99") << "the last event is not lost";
}

TEST_F(ManagerTest, AFailureIsTriedAgainWithBackoffAndItsOutcomeIsObserved) {
  controller->planner = wants_service;
  int failures = 0;
  api.before_write = [&](const net::HttpRequest&) -> std::optional<core::Error> {
    if (++failures > 3) return std::nullopt;
    return core::Error{ErrorCode::kForbidden, "", 403, "Forbidden", {}};
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(1s);
  EXPECT_TRUE(api.objects.contains(kServices + "/a"));
  std::vector<int> counts;
  for (const Seen& seen : controller->observed) {
    const auto it = seen.context.outcomes.find({"create service"});
    if (it != seen.context.outcomes.end() && it->second.state == plan::Outcome::State::kFailed) {
      counts.push_back(it->second.count);
      EXPECT_EQ(it->second.error->code, ErrorCode::kForbidden);
    }
  }
  EXPECT_THAT(counts, ElementsAre(1, 2, 3));
  EXPECT_EQ(controller->observed.back().context.outcomes.at({"create service"}).state, plan::Outcome::State::kDone);
  EXPECT_TRUE(manager->passes().outcomes("test", {"ns", "a"}).empty()) << "no plan names the step any more";
  EXPECT_TRUE(manager->idle());
}

TEST_F(ManagerTest, ALostReplyIsNotDoneTwice) {
  controller->planner = wants_service;
  bool lose = true;
  api.before_write = [&](const net::HttpRequest&) -> std::optional<core::Error> {
    if (!std::exchange(lose, false)) return std::nullopt;
    return core::Error{ErrorCode::kUnknownOutcome, "lost", 0, "", {}};
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(1s);
  EXPECT_EQ(manager->passes().held().size(), 1U);
  loop.advance(20s);
  EXPECT_TRUE(manager->idle());
  EXPECT_EQ(api.writes, 1);
}

TEST_F(ManagerTest, AskedToWaitItWaits) {
  controller->planner = wants_service;
  bool refuse = true;
  api.before_write = [&](const net::HttpRequest&) -> std::optional<core::Error> {
    if (!std::exchange(refuse, false)) return std::nullopt;
    return core::Error{ErrorCode::kUnavailable, "", 403, "Forbidden", {}};
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(5s);
  EXPECT_EQ(api.writes, 2);
}

TEST_F(ManagerTest, APlanThatNeedsAFactGetsItAndIsMadeAgain) {
  api.put(kServices, service("live"));
  controller->planner = [](const Seen& seen) {
    plan::Plan plan;
    if (!seen.config || seen.service) return plan;
    const auto fact = seen.context.facts.find("live");
    if (fact == seen.context.facts.end()) {
      auto get = std::make_shared<Get>();
      get->resource = resources::kService;
      get->key = {"ns", "live"};
      plan.need({"live", get});
      plan.lane("create").add({{"too early"}, "not yet", create(resources::kService, service("early"))});
    } else if (fact->second.value) {
      plan.lane("create").add({{"create service"}, "wanted", create(resources::kService, service("a"))});
    }
    return plan;
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(1s);
  EXPECT_TRUE(api.objects.contains(kServices + "/a"));
  EXPECT_FALSE(api.objects.contains(kServices + "/early")) << "steps wait for the facts";
}

TEST_F(ManagerTest, APlanIsMadeAgainWhenItAsked) {
  controller->planner = [](const Seen& seen) {
    plan::Plan plan;
    if (seen.config) plan.wake_after(500ms, "to see");
    return plan;
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(2s);
  EXPECT_GE(controller->observed.size(), 4U);
  EXPECT_LE(controller->observed.size(), 6U);
}

TEST_F(ManagerTest, AKeyThatDoesTheSameAgainAndAgainIsHeldBack) {
  controller->planner = [](const Seen& seen) {
    plan::Plan plan;
    if (seen.config)
      plan.lane("x").add(
          {{"touch"}, "never enough", merge_patch(resources::kConfigMap, seen.config->meta, {{"data", {{"x", "y"}}}})});
    return plan;
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(1s);
  EXPECT_GE(api.writes, 5);
  EXPECT_LE(api.writes, 10);
  loop.advance(60s);
  EXPECT_LE(api.writes, 18);
}

TEST_F(ManagerTest, AKeyThatDoesSomethingElseEachTimeIsNot) {
  controller->planner = [](const Seen& seen) {
    plan::Plan plan;
    if (!seen.config) return plan;
    const int n = std::stoi(core::get_string(seen.config->body, {"data", "n"}, "0"));
    if (n < 50)
      plan.lane("x").add(
          {{"count"}, "up", merge_patch(resources::kConfigMap, seen.config->meta, {{"data", {{"n", std::to_string(n + 1)}}}})});
    return plan;
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(1s);
  EXPECT_EQ(api.writes, 50);
}

/// Another writer reverts the operator's writes to data.x of ConfigMap a at once. The ConfigMap also has data of others.
class FightTest : public ManagerTest {
 protected:
  FightTest() {
    controller->planner = [this](const Seen& seen) {
      plan::Plan plan;
      if (!seen.config) return plan;
      const auto patch = [&](const char* key, const std::string& value) {
        return merge_patch(resources::kConfigMap, seen.config->meta, {{"data", {{key, value}}}});
      };
      if (core::get_string(seen.config->body, {"data", "x"}) != "ours") {
        plan.lane("fight")
            .add({{"write x"}, "wanted", patch("x", "ours")})
            .then()
            .add({{"behind"}, "comes after x", create(resources::kService, service("behind-" + std::to_string(++tries)))});
      }
      const std::string asked = core::get_string(seen.config->body, {"data", "asked"});
      if (core::get_string(seen.config->body, {"data", "told"}) != asked)
        plan.lane("status").add({{"tell"}, "it has changed", patch("told", asked)});
      return plan;
    };
    api.before_write = [this](const net::HttpRequest& request) -> std::optional<core::Error> {
      if (request.method != "PATCH") return std::nullopt;
      const Json patch = Json::parse(request.body);
      if (patch["data"].contains("told")) ++told;
      if (!patch["data"].contains("x")) return std::nullopt;
      ++written;
      if (fights) loop.after(20ms, [this] { set("x", "theirs"); });
      return std::nullopt;
    };
  }
  void set(const char* key, const std::string& value) {
    Json object = api.objects.at(kConfigs + "/a");
    object["data"][key] = value;
    api.put(kConfigs, object);
  }
  [[nodiscard]] std::string value(const char* key) const {
    return core::get_string(api.objects.at(kConfigs + "/a"), {"data", key});
  }
  [[nodiscard]] std::vector<std::string> warnings() const {
    std::vector<std::string> out;
    for (const Json& line : log.lines) {
      if (line["level"] == "warn") out.push_back(line["msg"]);
    }
    return out;
  }

  bool fights = true;
  int tries = 0;
  int written = 0;  ///< The number of writes of data.x.
  int told = 0;     ///< The number of writes of data.told.
};

TEST_F(FightTest, SlowsDownToTheBackoff) {
  start();
  api.put(kConfigs, config("a"));
  loop.advance(900ms);
  EXPECT_EQ(written, 5);
  loop.advance(10s);
  ASSERT_EQ(written, 8) << "after 1 s, 2 s and 4 s more";
  ASSERT_EQ(std::ranges::count(api.log, "POST " + kServices), 8) << "its lane does not go past it";
  loop.advance(3600s);
  EXPECT_GE(written, 18);
  EXPECT_LE(written, 26);
  ASSERT_EQ(warnings().size(), 1U) << "told once";
  EXPECT_THAT(warnings()[0], HasSubstr("done 5 times within a minute, and something changes it back: write x"));
  EXPECT_GT(metric("slurm_operator_steps_total{controller=\"test\",outcome=\"withheld\"}"), 10);
}

TEST_F(FightTest, ThatEndsIsFollowedByTheWrite) {
  start();
  api.put(kConfigs, config("a"));
  loop.advance(10s);
  ASSERT_EQ(value("x"), "theirs");
  fights = false;
  loop.advance(20s);
  EXPECT_EQ(value("x"), "ours") << "the key wakes by itself";
  EXPECT_TRUE(manager->idle());
  EXPECT_EQ(manager->passes().steps_remembered(), 2U);
  loop.advance(700s);
  EXPECT_EQ(manager->passes().steps_remembered(), 0U);
  set("x", "theirs");
  loop.advance(1s);
  EXPECT_EQ(value("x"), "ours") << "forgotten: it is done at once";
}

TEST_F(FightTest, DelaysNoOtherLaneAndNothingThatReallyChanges) {
  start();
  api.put(kConfigs, config("a"));
  loop.advance(5s);
  ASSERT_EQ(value("x"), "theirs");
  const int before = written;
  for (int i = 1; i <= 20; ++i) {
    set("asked", std::to_string(i));
    loop.advance(50ms);
    EXPECT_EQ(value("told"), std::to_string(i));
  }
  EXPECT_EQ(told, 20);
  EXPECT_LE(written, before + 1);
}

TEST_F(FightTest, StepsThatNoLongerComeAreForgotten) {
  fights = false;
  start();
  for (int i = 0; i < 50; ++i) {
    api.put(kConfigs, config("a" + std::to_string(i)));
    loop.advance(100ms);
  }
  EXPECT_EQ(manager->passes().steps_remembered(), 100U);
  for (int i = 0; i < 50; ++i) api.remove(kConfigs + "/a" + std::to_string(i));
  loop.advance(130s);
  EXPECT_EQ(manager->passes().steps_remembered(), 0U);
}

TEST_F(ManagerTest, AnEventAloneIsNoReasonToLookAgain) {
  controller->planner = [](const Seen& seen) {
    plan::Plan plan;
    if (!seen.config) return plan;
    auto event = std::make_shared<EventAct>();
    event->regarding = resources::kConfigMap;
    event->object = seen.config->meta;
    event->type = "Normal";
    event->reason = event->action = "Seen";
    plan.lane("tell").add({{"tell"}, "always", event});
    return plan;
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(10s);
  EXPECT_EQ(controller->observed.size(), 1U);
}

TEST_F(ManagerTest, NamedObjectsAreWatchedForAsLongAsAKeyNamesThem) {
  controller->reads_secret = true;
  start();
  EXPECT_EQ(api.watches.size(), 2U);
  api.put(kConfigs, config("a"));
  loop.advance(2ms);
  loop.advance(100ms);
  ASSERT_EQ(api.watches.size(), 3U);
  EXPECT_EQ(controller->observed.front().named, Presence::kUnknown);
  EXPECT_EQ(controller->observed.back().named, Presence::kAbsent) << "that it is absent is news";
  api.put(kSecrets, {{"metadata", {{"namespace", "ns"}, {"name", "named"}}}});
  loop.advance(100ms);
  EXPECT_EQ(controller->observed.back().named, Presence::kPresent);
  auto passes = controller->observed.size();
  api.put(kSecrets, {{"metadata", {{"namespace", "ns"}, {"name", "somebody-elses"}}}});
  loop.advance(100ms);
  EXPECT_EQ(controller->observed.size(), passes);
  api.put(kConfigs, config("b"));
  loop.advance(100ms);
  EXPECT_EQ(api.watches.size(), 3U) << "one watch for two who ask";
  api.remove(kConfigs + "/a");
  loop.advance(100ms);
  EXPECT_EQ(api.watches.size(), 3U);
  api.remove(kConfigs + "/b");
  loop.advance(100ms);
  EXPECT_EQ(api.watches.size(), 2U);
}

// Each watch is a socket, so many named objects must share watches.
TEST_F(ManagerTest, ManyNamedObjectsAreWatchedTogether) {
  controller->reads_secrets = 1000;
  api.put(kSecrets, {{"metadata", {{"namespace", "ns"}, {"name", "named-3"}}}});
  start();
  api.put(kConfigs, config("a"));
  loop.advance(1s);
  EXPECT_LE(api.watches.size(), 2U + 17U);
  const auto presence = [&](std::size_t i) { return controller->observed.back().all_named.at(i); };
  EXPECT_EQ(presence(3), Presence::kPresent);
  EXPECT_EQ(presence(4), Presence::kAbsent);
  EXPECT_EQ(presence(999), Presence::kAbsent);
  api.put(kSecrets, {{"metadata", {{"namespace", "ns"}, {"name", "named-999"}}}});
  loop.advance(100ms);
  EXPECT_EQ(presence(999), Presence::kPresent) << "who names it is woken";
  const auto passes = controller->observed.size();
  api.put(kSecrets, {{"metadata", {{"namespace", "ns"}, {"name", "somebody-elses"}}}});
  loop.advance(100ms);
  EXPECT_EQ(controller->observed.size(), passes);
  controller->reads_secrets = 0;
  api.put(kConfigs, config("a"));
  loop.advance(100ms);
  EXPECT_EQ(api.watches.size(), 2U);
}

TEST_F(ManagerTest, WhatWaitsForOneSlowThingTakesItsShareAndNoMore) {
  controller->planner = wants_service;
  controller->shares = [](const Key& key) { return key.name.substr(0, 4); };
  start();
  api.hold = "POST " + kServices;
  for (int i = 0; i < 100; ++i) api.put(kConfigs, config("slow" + std::to_string(i)));
  loop.advance(1s);
  EXPECT_EQ(api.held.size(), 16U);
  for (int i = 0; i < 100; ++i) api.put(kConfigs, config("dull" + std::to_string(i)));
  loop.advance(1s);
  EXPECT_EQ(api.held.size(), 32U);
  for (int i = 0; i < 100; ++i) api.put(kConfigs, config("dumb" + std::to_string(i)));
  loop.advance(1s);
  EXPECT_EQ(api.held.size(), 36U) << "less where much is taken";
  api.hold.clear();
  api.put(kConfigs, config("good"));
  loop.advance(100ms);
  EXPECT_TRUE(api.objects.contains(kServices + "/good"));
}

TEST_F(ManagerTest, APlanThatTakesTooLongIsToldToWhoeverAsks) {
  controller->planner = [&](const Seen&) -> plan::Plan {
    EXPECT_TRUE(manager->passes().plans_in_time());
    loop.manual_clock().move(59s);
    EXPECT_TRUE(manager->passes().plans_in_time());
    loop.manual_clock().move(1s);
    EXPECT_FALSE(manager->passes().plans_in_time());
    return {};
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(100ms);
  EXPECT_TRUE(manager->passes().plans_in_time());
  EXPECT_FALSE(controller->observed.empty());
}

TEST_F(ManagerTest, APlanThatThrowsHurtsItsKeyOnly) {
  controller->planner = [](const Seen& seen) -> plan::Plan {
    if (seen.config && seen.config->meta.name == "bad") throw std::logic_error("bug");
    return wants_service(seen);
  };
  start();
  api.put(kConfigs, config("bad"));
  api.put(kConfigs, config("good"));
  loop.advance(1s);
  EXPECT_TRUE(api.objects.contains(kServices + "/good"));
  EXPECT_FALSE(manager->idle()) << "the bad one is tried again";
  EXPECT_GT(metric("controller_runtime_reconcile_panics_total{controller=\"test\"}"), 1);
}

TEST_F(ManagerTest, AnObserveThatThrowsHurtsItsKeyOnly) {
  controller->planner = wants_service;
  controller->throws_on = "bad";
  start();
  api.put(kConfigs, config("bad"));
  api.put(kConfigs, config("good"));
  loop.advance(1s);
  EXPECT_TRUE(api.objects.contains(kServices + "/good"));
  EXPECT_GT(metric("controller_runtime_reconcile_panics_total{controller=\"test\"}"), 1);
  controller->throws_on.clear();
  loop.advance(60s);
  EXPECT_TRUE(api.objects.contains(kServices + "/bad")) << "tried again by itself";
  EXPECT_TRUE(manager->idle());
}

TEST_F(ManagerTest, APassThatRunsOutOfTimeIsCountedAndGoesOn) {
  controller->planner = [](const Seen& seen) {
    plan::Plan plan;
    if (!seen.config) return plan;
    if (!seen.service) plan.lane("x").add({{"a"}, "wanted", create(resources::kService, service("a"))});
    plan.lane("x").then().add({{"b"}, "wanted", create(resources::kService, service("b"))});
    return plan;
  };
  start();
  api.hold = "POST " + kServices;
  api.put(kConfigs, config("a"));
  loop.advance(4s);
  ASSERT_EQ(api.held.size(), 1U);
  EXPECT_EQ(metric("controller_runtime_reconcile_timeouts_total{controller=\"test\"}"), 0);
  api.held.front()();
  loop.advance(100ms);
  EXPECT_EQ(metric("controller_runtime_reconcile_timeouts_total{controller=\"test\"}"), 1);
  EXPECT_TRUE(api.objects.contains(kServices + "/b")) << "in the next pass";
}

TEST_F(ManagerTest, ChangesOfOldAndNewOwnersWakeBoth) {
  const auto map = controller_owner<Object>("NodeSet");
  Object owned;
  owned.meta.ns = "ns";
  owned.meta.owners = {{"v1", "NodeSet", "n", "u", false}};
  EXPECT_TRUE(map(owned).empty()) << "only the controller owner counts";
  owned.meta.owners[0].controller = true;
  EXPECT_THAT(map(owned), ElementsAre(Key{"ns", "n"}));
  EXPECT_TRUE(controller_owner<Object>("Other")(owned).empty());
}

TEST_F(ManagerTest, StopEndsInOrder) {
  controller->planner = wants_service;
  start();
  api.put(kConfigs, config("a"));
  loop.advance(2ms);
  loop.advance(1ms);  // the write is under way
  bool stopped = false;
  manager->stop([&] { stopped = true; });
  EXPECT_FALSE(stopped);
  loop.advance(100ms);
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(api.watches.empty());
  const auto passes = controller->observed.size();
  api.put(kConfigs, config("b"));
  manager->wake("test", {"ns", "b"});
  loop.advance(60s);
  EXPECT_EQ(controller->observed.size(), passes);
  EXPECT_FALSE(api.objects.contains(kServices + "/b"));
}

TEST_F(ManagerTest, MetricsCountPasses) {
  controller->planner = wants_service;
  start();
  api.put(kConfigs, config("a"));
  loop.advance(1s);
  manager->collect();
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("controller_runtime_reconcile_total{controller=\"test\",result=\"success\"}"));
  EXPECT_THAT(text, HasSubstr("slurm_operator_steps_total{controller=\"test\",outcome=\"done\"} 1"));
  EXPECT_THAT(text, HasSubstr("slurm_operator_cache_objects{cache=\"configmaps\"} 1"));
  EXPECT_THAT(text, HasSubstr("controller_runtime_active_workers{controller=\"test\"} 0"));
}

TEST_F(ManagerTest, TheWaitAtAGateIsNoWork) {
  controller->planner = wants_service;
  api.lag = 300ms;
  start();
  api.put(kConfigs, config("a"));
  loop.advance(400ms);
  ASSERT_EQ(manager->passes().held().size(), 1U);
  EXPECT_EQ(metric("controller_runtime_active_workers{controller=\"test\"}"), 0);
  const std::string labels = "{controller=\"test\",name=\"test\"}";
  EXPECT_EQ(metric("workqueue_work_duration_seconds_count" + labels), 1);
  EXPECT_LT(metric("workqueue_work_duration_seconds_sum" + labels), 0.01);
  EXPECT_EQ(metric("controller_runtime_reconcile_total{controller=\"test\",result=\"requeue\"}"), 0) << "it has not ended";
  loop.advance(1s);
  EXPECT_EQ(metric("controller_runtime_active_workers{controller=\"test\"}"), 0);
  EXPECT_EQ(metric("controller_runtime_reconcile_total{controller=\"test\",result=\"requeue\"}"), 1);
  EXPECT_LT(metric("workqueue_work_duration_seconds_sum" + labels), 0.01);
}

TEST_F(ManagerTest, TheQueueIsCountedAsDashboardsExpect) {
  controller->planner = [](const Seen&) {
    plan::Plan plan;
    plan.wake_after(60s, "to look again");
    return plan;
  };
  const auto depth = [&] {
    manager->collect();
    return metric("workqueue_depth{controller=\"test\",name=\"test\",priority=\"\"}");
  };
  const auto adds = [&] { return metric("workqueue_adds_total{controller=\"test\",name=\"test\"}"); };
  start();
  for (int i = 0; i < 5; ++i) manager->wake("test", {"ns", "a"});
  EXPECT_EQ(depth(), 1);
  EXPECT_EQ(adds(), 1) << "five wakes, one key";
  loop.advance(1s);
  EXPECT_EQ(controller->observed.size(), 1U);
  EXPECT_EQ(depth(), 0) << "it is delayed";
  EXPECT_EQ(adds(), 1);
  loop.advance(60s);
  EXPECT_EQ(controller->observed.size(), 2U);
  EXPECT_EQ(depth(), 0);
  EXPECT_EQ(adds(), 2) << "what a pass asked for counts when its time has come";
}

TEST_F(ManagerTest, APassThatDidSomethingIsALineWithAnIdOfItsOwn) {
  controller->planner = wants_service;
  start();
  api.put(kConfigs, config("a"));
  api.put(kConfigs, config("b"));
  loop.advance(1s);
  std::set<std::string> ids;
  for (const core::Json& line : log.lines) {
    if (line["msg"] != "pass") continue;
    EXPECT_EQ(line["controller"], "test");
    EXPECT_EQ(line["namespace"], "ns");
    EXPECT_EQ(line["done"], core::Json::array({"create service"}));
    EXPECT_EQ(line["intent"], "create service");
    ids.insert(line["reconcileID"].get<std::string>());
  }
  EXPECT_EQ(ids.size(), 2U);
}

class DryRunTest : public ManagerTest {
 protected:
  static ManagerOptions dry() {
    ManagerOptions options;
    options.dry_run = true;
    return options;
  }
  DryRunTest() : ManagerTest(dry()) {}
};

/// Records each plan, and the number of writes before the plan.
class ShownTest : public ManagerTest {
 protected:
  ShownTest()
      : ManagerTest([this] {
          ManagerOptions options;
          options.on_plan = [this](const plan::Plan& plan) { plans.push_back({plan.describe(), api.writes}); };
          return options;
        }()) {}
  struct Shown {
    Json plan;
    int writes = 0;  ///< The number of writes so far.
  };
  std::vector<Shown> plans;
};

TEST_F(ShownTest, APlanIsShownBeforeItIsCarriedOut) {
  controller->planner = wants_service;
  start();
  api.put(kConfigs, config("a"));
  loop.advance(10s);
  ASSERT_EQ(api.writes, 1);
  ASSERT_EQ(plans.size(), 2U) << "and one that finds nothing left to do";
  EXPECT_EQ(plans[0].plan["lanes"]["create"][0][0]["id"], "create service");
  EXPECT_EQ(plans[0].writes, 0);
  EXPECT_TRUE(plans[1].plan.empty()) << plans[1].plan;
}

TEST_F(ShownTest, APlanThatNeedsAFactIsShownEachTimeItIsMade) {
  controller->planner = [](const Seen& seen) {
    plan::Plan plan;
    if (seen.context.facts.contains("live")) return plan;
    auto get = std::make_shared<Get>();
    get->resource = resources::kService;
    get->key = {"ns", "live"};
    plan.need({"live", get});
    return plan;
  };
  start();
  api.put(kConfigs, config("a"));
  loop.advance(10s);
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_TRUE(plans[0].plan.contains("needs"));
  EXPECT_TRUE(plans[1].plan.empty()) << plans[1].plan;
}

TEST_F(DryRunTest, NothingIsWritten) {
  controller->planner = wants_service;
  start();
  api.put(kConfigs, config("a"));
  loop.advance(10s);
  EXPECT_EQ(api.writes, 0);
  EXPECT_TRUE(manager->idle());
}

class ElectedTest : public ManagerTest {
 protected:
  static ManagerOptions elected() {
    ManagerOptions options;
    options.election = LeaseOptions{};
    options.election->key = {"ns", "lease"};
    options.election->identity = "me";
    return options;
  }
  ElectedTest() : ManagerTest(elected()) {}

  /// Becomes the leader, and sends a write that is never answered.
  void lead_with_a_write_under_way() {
    controller->planner = wants_service;
    start();
    loop.advance(100ms);
    ASSERT_TRUE(manager->leading());
    api.hold = "POST " + kServices;
    api.put(kConfigs, config("a"));
    loop.advance(100ms);
    ASSERT_EQ(api.held.size(), 1U);
  }
  [[nodiscard]] std::string holder() const {
    return core::get_string(api.objects.at("/apis/coordination.k8s.io/v1/namespaces/ns/leases/lease"),
                            {"spec", "holderIdentity"});
  }
};

TEST_F(ElectedTest, SlowRenewalsAreCounted) {
  start();
  loop.advance(5s);
  EXPECT_EQ(metric("leader_election_slowpath_total{name=\"lease\"}"), 0);
  bool refuse = true;
  api.before_write = [&](const net::HttpRequest&) -> std::optional<core::Error> {
    if (!std::exchange(refuse, false)) return std::nullopt;
    return core::Error{ErrorCode::kConflict, "", 409, "Conflict", {}};
  };
  loop.advance(5s);
  EXPECT_EQ(metric("leader_election_slowpath_total{name=\"lease\"}"), 1);
}

TEST_F(ElectedTest, TheLeaseIsReleasedAfterTheLastWrite) {
  lead_with_a_write_under_way();
  bool stopped = false;
  manager->stop([&] { stopped = true; });
  loop.advance(9s);
  EXPECT_FALSE(stopped);
  EXPECT_EQ(holder(), "me");
  EXPECT_NE(client.options().lease_deadline(), std::nullopt) << "renewed for as long as something may write";
  api.held.front()();
  loop.advance(100ms);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(holder(), "");
}

TEST_F(ElectedTest, TheLeaseRunsOutByItselfWhenAWriteDoesNotEnd) {
  lead_with_a_write_under_way();
  bool stopped = false;
  manager->stop([&] { stopped = true; });
  loop.advance(15s);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(client.options().lease_deadline(), std::nullopt) << "nothing more is written";
  const auto sent = api.log.size();
  loop.advance(60s);
  EXPECT_EQ(holder(), "me");
  EXPECT_EQ(api.log.size(), sent) << "and it is not renewed";
}

TEST_F(ElectedTest, TheLeaseRunsOutByItselfWhereAReplyWasLost) {
  controller->planner = wants_service;
  start();
  loop.advance(100ms);
  api.before_write = [&](const net::HttpRequest& request) -> std::optional<core::Error> {
    if (request.method != "POST") return std::nullopt;
    return core::Error{ErrorCode::kUnknownOutcome, "lost", 0, "", {}};
  };
  api.put(kConfigs, config("a"));
  loop.advance(100ms);
  ASSERT_EQ(manager->passes().held().size(), 1U) << "the pass has ended, and waits for what became of its write";
  bool stopped = false;
  manager->stop([&] { stopped = true; });
  loop.advance(1s);
  EXPECT_TRUE(stopped);
  EXPECT_EQ(holder(), "me") << "it may be carried out yet";
}

TEST_F(ElectedTest, StandbysKeepTheirCachesWarmAndDoNotAct) {
  controller->planner = wants_service;
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
  api.put(leases, {{"metadata", {{"namespace", "ns"}, {"name", "lease"}}}, {"spec", {{"holderIdentity", "other"}}}});
  api.put(kConfigs, config("a"));
  start();
  loop.advance(5s);
  EXPECT_TRUE(manager->synced());
  EXPECT_FALSE(manager->leading());
  EXPECT_EQ(api.writes, 0);
  EXPECT_EQ(metric("leader_election_master_status{name=\"lease\"}"), 0);
  EXPECT_EQ(metric("leader_election_slowpath_total{name=\"lease\"}"), 0);
}

TEST_F(ElectedTest, ANewLeaderListsAgainBeforeItActs) {
  controller->planner = wants_service;
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
  api.put(leases, {{"metadata", {{"namespace", "ns"}, {"name", "lease"}}}, {"spec", {{"holderIdentity", "other"}}}});
  start();
  ASSERT_TRUE(manager->synced());
  api.lag = 1000s;  // the standby's watches are quiet
  api.put(kConfigs, config("a"));
  api.put(kServices, service("a"));  // made by the previous leader, which then dies
  const int opened = api.opened;
  loop.advance(20s);
  ASSERT_TRUE(manager->leading());
  EXPECT_EQ(api.opened, opened + 2);
  ASSERT_FALSE(controller->observed.empty());
  for (const Seen& seen : controller->observed) EXPECT_TRUE(seen.service);
  EXPECT_EQ(std::ranges::count(api.log, "POST " + kServices), 0);
}

}  // namespace
}  // namespace kube
