// Tests the Kubernetes runtime against a real API server, that of KUBECONFIG. Works in a namespace of its own, which it
// removes.
//
// Not a unit test: it is built as kube_conformance and run by hand or by the conformance target.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

#include "core/log.hpp"
#include "core/random.hpp"
#include "kube/app/lease.hpp"
#include "kube/app/manager.hpp"
#include "kube/apply_helper.hpp"
#include "kube/client/client.hpp"
#include "kube/client/credentials.hpp"
#include "net/asio_loop.hpp"
#include "net/beast_transport.hpp"

namespace {

using core::Json;
using kube::Key;
using namespace std::chrono_literals;

const char* const kLabel = "conformance";

/// Forwards requests with changed targets, to test refusals that the server would not give otherwise.
class RewritingTransport final : public net::HttpTransport {
 public:
  explicit RewritingTransport(net::HttpTransport& inner) : inner_(inner) {}
  std::function<void(net::HttpRequest&)> rewrite;
  int writes = 0;  ///< The number of writes, except those of Leases.
  int lease_writes = 0;
  RequestId send(net::HttpRequest request, Done done) override {
    if (request.method != "GET") ++(request.target.contains("/leases") ? lease_writes : writes);
    if (rewrite) rewrite(request);
    return inner_.send(std::move(request), std::move(done));
  }
  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override {
    if (rewrite) rewrite(request);
    return inner_.stream(std::move(request), std::move(handler));
  }
  void cancel(RequestId id) override { inner_.cancel(id); }

 private:
  net::HttpTransport& inner_;
};

class KubeLive : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    KubeLive fixture;
    fixture.SetUp();
    fixture.ask([&](auto done) {
      fixture.client->create(kube::resources::kNamespace,
                             {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", ns()}}}}, done);
    });
  }
  static void TearDownTestSuite() {
    KubeLive fixture;
    fixture.SetUp();
    fixture.ask([&](auto done) { fixture.client->remove(kube::resources::kNamespace, {"", ns()}, {}, done); });
  }
  static std::string ns() { return "kube-conformance-" + std::to_string(getpid()); }

  void TestBody() override {}

  void SetUp() override {
    const char* path = std::getenv("KUBECONFIG");
    ASSERT_NE(path, nullptr) << "KUBECONFIG must name the cluster to use";
    auto found = kube::kubeconfig_credentials(loop, kube::real_system(), path);
    ASSERT_TRUE(found) << found.error().message;
    credentials = std::move(*found);
    beast = std::make_unique<net::BeastTransport>(loop, credentials->endpoint());
    transport = std::make_unique<RewritingTransport>(*beast);
    kube::ClientOptions options;
    options.user_agent = "slurm-operator/conformance";
    client = std::make_unique<kube::Client>(loop, random, *transport, *credentials, options);
  }

  bool wait_for(const std::function<bool()>& condition, core::Duration most = 90s) {
    const core::MonoTime end = loop.clock().mono() + most;
    std::function<void()> tick = [&] {
      if (condition() || loop.clock().mono() > end) return loop.stop();
      loop.after(5ms, tick);
    };
    loop.after(0ms, tick);
    loop.run();
    return condition();
  }

  core::Result<Json> ask(const std::function<void(kube::Client::Done)>& call) {
    std::optional<core::Result<Json>> reply;
    call([&](core::Result<Json> r) { reply = std::move(r); });
    EXPECT_TRUE(wait_for([&] { return reply.has_value(); }));
    return reply.value_or(core::fail(core::ErrorCode::kCancelled, "no reply"));
  }

  static Json config_map(const std::string& name, const std::string& label, Json data = Json::object()) {
    return {{"apiVersion", "v1"},
            {"kind", "ConfigMap"},
            {"metadata", kube::meta_json({ns(), name}, {{kLabel, label}})},
            {"data", std::move(data)}};
  }
  core::Result<Json> create(const Json& object) {
    return ask([&](auto done) { client->create(kube::resources::kConfigMap, object, done); });
  }
  core::Result<Json> remove(const Key& key, const kube::DeleteOptions& options = {}) {
    return ask([&](auto done) { client->remove(kube::resources::kConfigMap, key, options, done); });
  }

  struct Watched {
    kube::Cache<kube::Object> cache;
    kube::ParseContext context;
    kube::DocumentParser parser;
    kube::CacheSink<kube::Object> sink{cache, context};
    std::unique_ptr<kube::Watch> watch;
  };
  std::unique_ptr<Watched> watch(const std::string& label, kube::WatchOptions options = {}) {
    auto watched = std::make_unique<Watched>();
    watched->watch =
        std::make_unique<kube::Watch>(loop, random, log, *client, watched->parser, kube::resources::kConfigMap,
                                      kube::Scope{ns(), std::string(kLabel) + "=" + label, ""}, watched->sink, options);
    watched->watch->start();
    return watched;
  }

  /// Reports whether the server supports WatchList: its first event is an object, or the bookmark that ends the list.
  bool serves_watch_list() {
    std::string first;
    net::StreamHandler handler;
    bool ended = false;
    handler.on_data = [&](std::string_view piece) { first += piece; };
    handler.on_end = [&](const core::Result<void>&) { ended = true; };
    const auto stream = client->stream("/api/v1/namespaces/" + ns() +
                                           "/configmaps?watch=true&sendInitialEvents=true"
                                           "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
                                       20s, std::move(handler));
    EXPECT_TRUE(wait_for([&] { return ended || first.contains('\n'); }));
    if (!ended) client->cancel_stream(stream);
    const auto event = core::parse_json(std::string_view(first).substr(0, first.find('\n')));
    return event && core::get_string(*event, {"type"}) != "ERROR" && core::get_string(*event, {"type"}) != "";
  }

  /// Checks that a cache has all objects with a label, and follows their changes.
  kube::WatchStats follow_contents(const std::string& label) {
    const auto key = [&](const char* name) { return Key{ns(), label + "-" + name}; };
    EXPECT_TRUE(create(config_map(key("a").name, label, {{"k", "1"}})));
    EXPECT_TRUE(create(config_map(key("b").name, label)));
    EXPECT_TRUE(create(config_map(key("other").name, "not-" + label)));
    auto watched = watch(label);
    const auto k_of_a = [&]() -> std::string {
      const auto a = watched->cache.find(key("a"));
      return a ? core::get_string(a->body, {"data", "k"}) : "";
    };
    EXPECT_TRUE(wait_for([&] { return watched->cache.synced(); }));
    EXPECT_EQ(watched->cache.size(), 2U);
    EXPECT_EQ(k_of_a(), "1");
    const auto a = watched->cache.find(key("a"));
    EXPECT_TRUE(a && core::find(a->body, {"metadata", "managedFields"}) == nullptr);

    EXPECT_TRUE(create(config_map(key("c").name, label)));
    EXPECT_TRUE(wait_for([&] { return watched->cache.size() == 3; }));
    const auto patch = [&](const Key& object, const Json& change) {
      EXPECT_TRUE(
          ask([&](auto done) { client->patch(kube::resources::kConfigMap, object, kube::PatchType::kMerge, change, done); }));
    };
    patch(key("a"), {{"data", {{"k", "2"}}}});
    EXPECT_TRUE(wait_for([&] { return k_of_a() == "2"; }));
    EXPECT_TRUE(remove(key("b")));
    EXPECT_TRUE(wait_for([&] { return watched->cache.size() == 2; }));
    // A label that no longer matches takes an object out of the cache.
    patch(key("c"), {{"metadata", {{"labels", {{kLabel, "x"}}}}}});
    EXPECT_TRUE(wait_for([&] { return watched->cache.size() == 1; }));
    return watched->watch->stats();
  }

  net::AsioLoop loop{2};
  core::SystemRandom random;
  core::SpdLogger log{core::Level::kInfo, loop.clock()};
  std::unique_ptr<kube::Credentials> credentials;
  std::unique_ptr<net::BeastTransport> beast;
  std::unique_ptr<RewritingTransport> transport;
  std::unique_ptr<kube::Client> client;
};

TEST_F(KubeLive, WatchListGivesTheWholeContentsAndThenChanges) {
  if (!serves_watch_list()) GTEST_SKIP() << "this server does not serve WatchList";
  const kube::WatchStats stats = follow_contents("wl");
  EXPECT_TRUE(stats.used_watch_list);
  EXPECT_EQ(stats.lists, 1U);
  EXPECT_EQ(stats.failures, 0U);
}

TEST_F(KubeLive, AServerWithoutWatchListGivesTheSame) {
  if (serves_watch_list()) GTEST_SKIP() << "this server serves WatchList";
  const kube::WatchStats stats = follow_contents("no-wl");
  EXPECT_FALSE(stats.used_watch_list);
  EXPECT_EQ(stats.lists, 2U) << "the refused one, and that by pages";
  EXPECT_EQ(stats.failures, 1U);
}

TEST_F(KubeLive, PagesGiveTheSameContents) {
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(create(config_map("page-" + std::to_string(i), "page", {{"n", std::to_string(i)}})));
  kube::WatchOptions options;
  options.watch_list = false;
  options.page_size = 3;
  auto watched = watch("page", options);
  ASSERT_TRUE(wait_for([&] { return watched->cache.synced(); }));
  EXPECT_EQ(watched->cache.size(), 7U);
  EXPECT_FALSE(watched->watch->stats().used_watch_list);
  EXPECT_EQ(core::get_string(watched->cache.find({ns(), "page-6"})->body, {"data", "n"}), "6");
  ASSERT_TRUE(create(config_map("page-7", "page")));
  EXPECT_TRUE(wait_for([&] { return watched->cache.size() == 8; }));
}

TEST_F(KubeLive, ARefusedWatchListFallsBackToPages) {
  ASSERT_TRUE(create(config_map("refused-a", "refused")));
  transport->rewrite = [](net::HttpRequest& request) {
    const auto at = request.target.find("resourceVersionMatch=NotOlderThan");
    if (at != std::string::npos) request.target.replace(at, 33, "resourceVersionMatch=Exact");
  };
  auto watched = watch("refused");
  ASSERT_TRUE(wait_for([&] { return watched->cache.synced(); }));
  EXPECT_FALSE(watched->watch->stats().used_watch_list);
  EXPECT_EQ(watched->cache.size(), 1U);
  ASSERT_TRUE(create(config_map("refused-b", "refused")));
  EXPECT_TRUE(wait_for([&] { return watched->cache.size() == 2; }));
}

TEST_F(KubeLive, AResourceVersionOfThePastListsAgain) {
  // This kind was defined after the cluster's start, so the server has no history of its objects at revision 1.
  const kube::Resource kind{"slinky.slurm.net", "v1beta1", "NodeSet", "nodesets", true};
  const kube::Watch* subject = nullptr;
  transport->rewrite = [&](net::HttpRequest& request) {
    const auto at = request.target.find("&resourceVersion=");
    // Changes requests until one is answered with 410. The first may be refused for another reason, because the kind was just
    // defined.
    if (at == std::string::npos || subject == nullptr || subject->stats().expired > 0) return;
    request.target.resize(at);
    request.target += "&resourceVersion=1";
  };
  kube::WatchOptions options;
  options.watch_list = false;
  Watched watched;
  kube::Watch watch(loop, random, log, *client, watched.parser, kind, {}, watched.sink, options);
  subject = &watch;
  watch.start();
  const kube::WatchStats& stats = watch.stats();
  ASSERT_TRUE(wait_for([&] { return stats.expired == 1 && stats.lists >= 2 && stats.watches >= 1; }))
      << "lists " << stats.lists << ", watches " << stats.watches << ", expired " << stats.expired << ", failures "
      << stats.failures;
  EXPECT_TRUE(watched.cache.synced());
}

TEST_F(KubeLive, AWatchResumesWithoutAList) {
  kube::WatchOptions options;
  options.timeout_least = 2s;
  options.timeout_most = 2s;
  auto watched = watch("resume", options);
  ASSERT_TRUE(wait_for([&] { return watched->cache.synced(); }));
  const kube::WatchStats listed = watched->watch->stats();
  ASSERT_TRUE(wait_for([&] { return watched->watch->stats().watches >= 3; }));
  ASSERT_TRUE(create(config_map("resume-a", "resume")));
  EXPECT_TRUE(wait_for([&] { return watched->cache.size() == 1; }));
  EXPECT_EQ(watched->watch->stats().lists, listed.lists);
  EXPECT_EQ(watched->watch->stats().failures, listed.failures);
}

TEST_F(KubeLive, ErrorsAreTyped) {
  const Json object = config_map("err-a", "err");
  const auto created = create(object);
  ASSERT_TRUE(created);
  const std::string uid = core::get_string(*created, {"metadata", "uid"});
  EXPECT_EQ(create(object).error().code, core::ErrorCode::kAlreadyExists);
  EXPECT_EQ(remove({ns(), "err-none"}).error().code, core::ErrorCode::kNotFound);
  EXPECT_EQ(remove({ns(), "err-a"}, {.uid = "other"}).error().code, core::ErrorCode::kConflict);
  EXPECT_EQ(remove({ns(), "err-a"}, {.resource_version = "1"}).error().code, core::ErrorCode::kConflict);

  Json misspelt = config_map("err-b", "err");
  misspelt["dataa"] = Json::object();
  const auto strict = create(misspelt);
  ASSERT_FALSE(strict);
  EXPECT_EQ(strict.error().code, core::ErrorCode::kInvalid);
  EXPECT_NE(strict.error().message.find("dataa"), std::string::npos) << strict.error().message;

  Json invalid = config_map("Err_C", "err");
  const auto refused = create(invalid);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kInvalid);
  EXPECT_NE(refused.error().message.find("metadata.name"), std::string::npos) << refused.error().message;

  const auto stale = ask([&](auto done) {
    client->patch(kube::resources::kConfigMap, {ns(), "err-a"}, kube::PatchType::kMerge,
                  {{"metadata", {{"uid", uid}, {"resourceVersion", "1"}}}, {"data", {{"x", "y"}}}}, done);
  });
  EXPECT_EQ(stale.error().code, core::ErrorCode::kConflict) << stale.error().message;
  const auto foreign = ask([&](auto done) {
    client->patch(kube::resources::kConfigMap, {ns(), "err-a"}, kube::PatchType::kMerge,
                  {{"metadata", {{"uid", "other"}}}, {"data", {{"x", "y"}}}}, done);
  });
  // kube::Target turns this error into a conflict.
  EXPECT_EQ(foreign.error().code, core::ErrorCode::kInvalid);
  EXPECT_NE(foreign.error().message.find("metadata.uid: Invalid value"), std::string::npos) << foreign.error().message;
  const auto untrue = ask([&](auto done) {
    client->patch(kube::resources::kConfigMap, {ns(), "err-a"}, kube::PatchType::kJson,
                  Json::array({{{"op", "test"}, {"path", "/metadata/uid"}, {"value", "other"}},
                               {{"op", "add"}, {"path", "/metadata/finalizers"}, {"value", {"a/b"}}}}),
                  done);
  });
  EXPECT_EQ(untrue.error().http_status, 422);
  EXPECT_NE(untrue.error().message.find("the server rejected our request due to an error in our request"), std::string::npos)
      << untrue.error().message;
  // A path that does not exist gives the same answer.
  const auto nowhere = ask([&](auto done) {
    client->patch(kube::resources::kConfigMap, {ns(), "err-a"}, kube::PatchType::kJson,
                  Json::array({{{"op", "test"}, {"path", "/metadata/finalizers/0"}, {"value", "a/b"}},
                               {{"op", "remove"}, {"path", "/metadata/finalizers/0"}}}),
                  done);
  });
  EXPECT_EQ(nowhere.error().http_status, 422) << nowhere.error().message;
}

// A controller over real ConfigMaps. Each one labelled "source" gets a Secret with a random key (created), a ConfigMap with a
// copy (applied), and a finalizer that is removed at the end.
struct Seen {
  std::shared_ptr<const kube::Object> source, copy;
  std::shared_ptr<const kube::SecretRecord> key;
  kube::Presence named = kube::Presence::kAbsent;
  std::string named_hash;
};

plan::Plan plan_copy(const Seen& seen) {
  plan::Plan plan;
  if (!seen.source) return plan;
  const kube::ObjectMeta& meta = seen.source->meta;
  if (meta.terminating()) {
    if (auto act = kube::remove_finalizer(kube::resources::kConfigMap, meta, "slinky.slurm.net/copy")) {
      plan.lane("finalize").add({{"remove finalizer"}, "going", act});
    }
    return plan;
  }
  if (auto act = kube::add_finalizer(kube::resources::kConfigMap, meta, "slinky.slurm.net/copy")) {
    plan.lane("protect").add({{"add finalizer"}, "new", act});
    return plan;
  }
  const Json owner = kube::owner_reference_json(kube::resources::kConfigMap, meta);
  if (!seen.key) {
    Json secret = {{"metadata", kube::meta_json({meta.ns, meta.name + "-key"}, {{kLabel, "copied"}})},
                   {"data", {{"key", {{"$generate", {{"bytes", 32}}}}}}}};
    secret["metadata"]["ownerReferences"] = Json::array({owner});
    plan.lane("create").add({{"create key"}, "absent", kube::create(kube::resources::kSecret, secret)});
  }
  Json copy = {{"metadata", kube::meta_json({meta.ns, meta.name + "-copy"}, {{kLabel, "copied"}})},
               {"data", {{"text", core::get_string(seen.source->body, {"data", "text"})}, {"named", seen.named_hash}}}};
  copy["metadata"]["ownerReferences"] = Json::array({owner});
  if (seen.named == kube::Presence::kUnknown) return plan;
  if (auto act = kube::apply_if_different(kube::resources::kConfigMap, copy, seen.copy.get(), "copy-controller")) {
    plan.lane("apply").add({{"apply copy"}, "differs", act});
  }
  return plan;
}

class CopyController final : public kube::TypedController<Seen> {
 public:
  CopyController(kube::Cache<kube::Object>& sources, kube::Cache<kube::Object>& copies, kube::Cache<kube::SecretRecord>& keys)
      : TypedController(plan_copy), sources_(sources), copies_(copies), keys_(keys) {}
  [[nodiscard]] std::string name() const override { return "copy"; }
  int plans = 0;

 protected:
  std::shared_ptr<const Seen> observe_typed(const Key& key, kube::Recorder& recorder, const run::Observation&) override {
    ++plans;
    auto seen = std::make_shared<Seen>();
    seen->source = sources_.find(key);
    seen->copy = copies_.find({key.ns, key.name + "-copy"});
    seen->key = keys_.find({key.ns, key.name + "-key"});
    if (seen->source) {
      const std::string named = core::get_string(seen->source->body, {"data", "named"});
      if (!named.empty()) {
        const auto secret = recorder.secret({key.ns, named});
        seen->named = secret.presence;
        if (secret.record && secret.record->value_hashes.contains("k")) seen->named_hash = secret.record->value_hashes.at("k");
      }
    }
    return seen;
  }

 private:
  kube::Cache<kube::Object>& sources_;
  kube::Cache<kube::Object>& copies_;
  kube::Cache<kube::SecretRecord>& keys_;
};

TEST_F(KubeLive, AControllerReachesItsStateAndThenRests) {
  kube::ManagerOptions options;
  kube::LeaseOptions lease;
  lease.key = {ns(), "copy"};
  lease.identity = "one";
  options.election = lease;
  kube::Manager manager(loop, random, log, *client, options);
  const std::string source_label = std::string(kLabel) + "=source";
  const std::string copy_label = std::string(kLabel) + "=copied";
  auto& sources = manager.cache<kube::Object>(kube::resources::kConfigMap, {ns(), source_label, ""});
  auto& copies = manager.cache<kube::Object>(kube::resources::kConfigMap, {ns(), copy_label, ""});
  auto& keys = manager.cache<kube::SecretRecord>(kube::resources::kSecret, {ns(), copy_label, ""});
  CopyController controller(sources, copies, keys);
  manager.add(controller);
  const auto wake = [&](const kube::Key& woken) { manager.wake("copy", woken); };
  kube::listen<kube::Object>(sources, kube::self<kube::Object>(), {}, wake);
  kube::listen<kube::Object>(copies, kube::controller_owner<kube::Object>("ConfigMap"), {}, wake);
  kube::listen<kube::SecretRecord>(keys, kube::controller_owner<kube::SecretRecord>("ConfigMap"), {}, wake);
  manager.start();
  ASSERT_TRUE(wait_for([&] { return manager.leading() && manager.synced(); }));

  ASSERT_TRUE(create(config_map("src", "source", {{"text", "one"}, {"named", "user-secret"}})));
  const auto copy_text = [&]() -> std::string {
    const auto copy = copies.find({ns(), "src-copy"});
    return copy ? core::get_string(copy->body, {"data", "text"}) : "";
  };
  ASSERT_TRUE(wait_for([&] { return copy_text() == "one" && keys.find({ns(), "src-key"}); }));
  const auto key = keys.find({ns(), "src-key"});
  EXPECT_EQ(key->sizes.at("key"), "32");
  ASSERT_TRUE(wait_for([&] { return manager.idle(); }));

  // The controller plans again when an object that a user names in the source appears or changes.
  const auto named_hash = [&] { return core::get_string(copies.find({ns(), "src-copy"})->body, {"data", "named"}); };
  ASSERT_EQ(named_hash(), "");
  ASSERT_TRUE(ask([&](auto done) {
    client->create(kube::resources::kSecret, {{"metadata", kube::meta_json({ns(), "user-secret"})}, {"data", {{"k", "YQ=="}}}},
                   done);
  }));
  ASSERT_TRUE(wait_for([&] { return named_hash() != ""; }));

  // The controller undoes an edit of its objects by somebody else.
  const auto version = [&] { return copies.find({ns(), "src-copy"})->meta.resource_version; };
  const std::string before = version();
  const auto meddled = ask([&](auto done) {
    client->patch(kube::resources::kConfigMap, {ns(), "src-copy"}, kube::PatchType::kMerge, {{"data", {{"text", "meddled"}}}},
                  done);
  });
  ASSERT_TRUE(meddled);
  // Waits for two events: the edit, and the controller's write that undoes it. Until both arrive, the copy looks unchanged.
  const std::string edited = core::get_string(*meddled, {"metadata", "resourceVersion"});
  ASSERT_TRUE(wait_for([&] { return version() != before && version() != edited; }));
  EXPECT_EQ(copy_text(), "one");

  // At rest, only the Lease is written.
  ASSERT_TRUE(wait_for([&] { return manager.idle(); }));
  const int plans = controller.plans;
  const int writes = transport->writes;
  const int lease_writes = transport->lease_writes;
  const core::MonoTime begin = loop.clock().mono();
  wait_for([&] { return loop.clock().mono() - begin > 7s; });
  EXPECT_EQ(controller.plans, plans);
  EXPECT_EQ(transport->writes, writes);
  EXPECT_LE(transport->lease_writes - lease_writes, (loop.clock().mono() - begin) / lease.retry_period + 1);

  const auto removed = remove({ns(), "src"});
  ASSERT_TRUE(removed);
  EXPECT_TRUE(wait_for([&] { return sources.size() == 0; }));
  EXPECT_TRUE(wait_for([&] { return manager.idle(); })) << testing::PrintToString(manager.passes().held());

  bool stopped = false;
  manager.stop([&] { stopped = true; });
  ASSERT_TRUE(wait_for([&] { return stopped; }));
  const auto left = ask([&](auto done) { client->get(kube::resources::kLease, {ns(), "copy"}, done); });
  ASSERT_TRUE(left);
  EXPECT_EQ(core::get_string(*left, {"spec", "holderIdentity"}), "");
}

TEST_F(KubeLive, AListOfAllIsOneOfAllPages) {
  for (const char* name : {"all-a", "all-b", "all-c"}) ASSERT_TRUE(create(config_map(name, "all")));
  ASSERT_TRUE(create(config_map("all-other", "not-all")));
  const kube::ListOptions options{.label_selector = std::string(kLabel) + "=all", .limit = 2};
  const auto list = ask([&](auto done) { client->list_all(kube::resources::kConfigMap, ns(), options, done); });
  ASSERT_TRUE(list) << list.error().message;
  std::vector<std::string> names;
  for (const Json& item : (*list)["items"]) names.push_back(item["metadata"]["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"all-a", "all-b", "all-c"}));
  EXPECT_FALSE((*list)["metadata"].contains("continue"));
}

TEST_F(KubeLive, ACacheOfMetadataHasNoMore) {
  ASSERT_TRUE(create(config_map("meta-a", "meta", {{"k", "1"}})));
  const auto one = ask([&](auto done) {
    client->get(kube::resources::kConfigMap, {ns(), "meta-a"}, done, {.metadata_only = true});
  });
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ((*one)["kind"], "PartialObjectMetadata");
  EXPECT_FALSE(one->contains("data"));
  for (const bool by_watch_list : {true, false}) {
    kube::Cache<kube::MetadataRecord> cache;
    kube::ParseContext context;
    kube::DocumentParser parser;
    kube::CacheSink<kube::MetadataRecord> sink{cache, context};
    kube::WatchOptions options;
    options.watch_list = by_watch_list;
    kube::Watch watch(loop, random, log, *client, parser, kube::resources::kConfigMap,
                      {ns(), std::string(kLabel) + "=meta", ""}, sink, options);
    watch.start();
    ASSERT_TRUE(wait_for([&] { return cache.synced(); }));
    EXPECT_EQ(cache.size(), 1U);
    ASSERT_TRUE(create(config_map("meta-b", "meta")));
    EXPECT_TRUE(wait_for([&] { return cache.size() == 2; }));
    ASSERT_TRUE(remove({ns(), "meta-b"}));
    EXPECT_TRUE(wait_for([&] { return cache.size() == 1; }));
    watch.stop();
  }
}

TEST_F(KubeLive, SubresourcesAreCreated) {
  const Json account = {{"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", kube::meta_json({ns(), "sub"})}};
  ASSERT_TRUE(ask([&](auto done) { client->create(kube::resources::kServiceAccount, account, done); }));
  const Json token = {{"apiVersion", "authentication.k8s.io/v1"},
                      {"kind", "TokenRequest"},
                      {"metadata", kube::meta_json({ns(), "sub"})},
                      {"spec", {{"expirationSeconds", 600}}}};
  const auto made =
      ask([&](auto done) { client->create(kube::resources::kServiceAccount, token, done, {.subresource = "token"}); });
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(core::get_string(*made, {"status", "token"}).empty());

  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", kube::meta_json({ns(), "sub"})},
                    {"spec",
                     {{"schedulerName", "nobody"},
                      {"automountServiceAccountToken", false},
                      {"containers", {{{"name", "c"}, {"image", "i:1"}}}}}}};
  ASSERT_TRUE(ask([&](auto done) { client->create(kube::resources::kPod, pod, done); }));
  const auto bind = [&](const char* node) {
    const Json binding = {{"apiVersion", "v1"},
                          {"kind", "Binding"},
                          {"metadata", kube::meta_json({ns(), "sub"})},
                          {"target", {{"kind", "Node"}, {"name", node}}}};
    return ask([&](auto done) { client->create(kube::resources::kPod, binding, done, {.subresource = "binding"}); });
  };
  ASSERT_TRUE(bind("no-such-node"));
  const auto again = bind("another-node");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, core::ErrorCode::kConflict);
  const Json eviction = {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", kube::meta_json({ns(), "sub"})}};
  EXPECT_TRUE(ask([&](auto done) { client->create(kube::resources::kPod, eviction, done, {.subresource = "eviction"}); }));
}

TEST_F(KubeLive, OnlyOneLeads) {
  int first_leads = 0;
  int second_leads = 0;
  kube::LeaseOptions options;
  options.key = {ns(), "election"};
  options.identity = "first";
  kube::LeaderElection first(loop, random, log, *client, options, {[&] { ++first_leads; }, {}, {}});
  options.identity = "second";
  kube::LeaderElection second(loop, random, log, *client, options, {[&] { ++second_leads; }, {}, {}});
  first.start();
  ASSERT_TRUE(wait_for([&] { return first_leads == 1; }));
  second.start();
  const core::MonoTime begin = loop.clock().mono();
  wait_for([&] { return loop.clock().mono() - begin > 6s; });
  EXPECT_EQ(second_leads, 0);
  EXPECT_TRUE(first.leading());
  bool released = false;
  first.release([&] { released = true; });
  ASSERT_TRUE(wait_for([&] { return released && second_leads == 1; }));
  EXPECT_FALSE(first.leading());
}

TEST_F(KubeLive, EventsAreSeries) {
  const auto object = create(config_map("ev-a", "ev"));
  ASSERT_TRUE(object);
  kube::EventOptions options;
  options.instance = "conformance-0";
  kube::EventRecorder recorder(loop, random, log, *client, options);
  kube::EventAct event;
  event.regarding = kube::resources::kConfigMap;
  event.object = kube::parse_meta(*object);
  event.type = "Normal";
  event.reason = "Tried";
  event.action = "Try";
  event.note = "tried it";
  const auto count = [&]() -> long long {
    const auto list =
        ask([&](auto done) { client->list(kube::resources::kEvent, ns(), {.field_selector = "regarding.name=ev-a"}, done); });
    if (!list || (*list)["items"].empty()) return -1;
    return core::get_int((*list)["items"][0], {"series", "count"}, 1);
  };
  const auto becomes = [&](long long wanted) {
    for (int i = 0; i < 60 && count() < wanted; ++i) {
      const core::MonoTime begin = loop.clock().mono();
      wait_for([&] { return loop.clock().mono() - begin > 500ms; });
    }
    return count();
  };
  recorder.record(event);
  EXPECT_EQ(becomes(1), 1) << recorder.dropped();
  recorder.record(event);
  EXPECT_EQ(becomes(2), 2);
  EXPECT_EQ(recorder.dropped(), 0U);
}

}  // namespace
