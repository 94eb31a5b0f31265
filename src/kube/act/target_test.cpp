#include "kube/act/target.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base64.hpp"
#include "kube/testing/client_fixture.hpp"
#include "plan/testing/observing.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::Json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TargetTest : public testing::Test, protected ClientFixture, protected CacheDirectory {
 protected:
  TargetTest() {
    pods.replace({}, "1");
    configs.replace({}, "1");
  }
  [[nodiscard]] std::vector<CacheView> caches(const Resource& resource) const override {
    if (resource == resources::kPod) return {{&pods, {"ns", "app=x", ""}, [this] { ++relisted; }}};
    if (resource == resources::kConfigMap) return {{&configs, {}, [this] { ++relisted; }}};
    return {};
  }
  void run(plan::ActPtr act) {
    done = false;
    target.execute(std::move(act), [this](plan::ActResult r) {
      done = true;
      result = std::move(r);
    });
    loop.run_ready();
  }
  [[nodiscard]] bool open() const {
    return std::ranges::all_of(result.gates, [](const auto& gate) { return gate->open(); });
  }
  static std::shared_ptr<const PodRecord> pod(std::string_view name, std::string_view rv, std::string_view uid = "u") {
    return *record_from_json<PodRecord>(object_json("ns", name, rv, uid, {{"metadata", {{"labels", {{"app", "x"}}}}}}));
  }
  static std::shared_ptr<const Object> config(std::string_view name, std::string_view rv) {
    return *record_from_json<Object>(object_json("ns", name, rv));
  }

  EventRecorder events{loop, random, log, client, {}};
  Cache<PodRecord> pods;
  Cache<Object> configs;
  mutable int relisted = 0;
  Target target{loop, random, log, client, *this, events};
  bool done = false;
  plan::ActResult result{core::fail(ErrorCode::kInternal, "not run"), {}};
};

Json labelled(std::string_view name, std::string_view rv = "", std::string_view uid = "u") {
  return object_json("ns", name, rv, uid, {{"metadata", {{"labels", {{"app", "x"}}}}}});
}

TEST_F(TargetTest, ACreatedObjectHoldsItsKeyUntilTheCacheShowsIt) {
  run(create(resources::kPod, labelled("p")));
  api.take("POST").reply(201, labelled("p", "10"));
  ASSERT_TRUE(done);
  ASSERT_TRUE(result.value);
  EXPECT_FALSE(open());
  pods.upsert(pod("other", "9"));
  EXPECT_FALSE(open());
  pods.upsert(pod("p", "10"));
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, AStreamThatHasPassedTheWriteOpensTheGateToo) {
  run(create(resources::kPod, labelled("p")));
  api.take("POST").reply(201, labelled("p", "10"));
  EXPECT_FALSE(open());
  pods.bookmark("11");  // The object was created and deleted again, and the cache saw neither.
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, AnOlderVersionOfTheObjectDoesNotOpenTheGate) {
  pods.upsert(pod("p", "9"));
  run(merge_patch(resources::kPod, pod("p", "9")->meta, {{"metadata", {{"annotations", {{"a", "b"}}}}}}));
  const auto sent = api.take("PATCH");
  EXPECT_EQ(sent.body()["metadata"]["uid"], "u");
  EXPECT_EQ(sent.body()["metadata"]["resourceVersion"], "9");
  sent.reply(200, labelled("p", "10"));
  EXPECT_FALSE(open());
  pods.upsert(pod("p", "10"));
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, WhatNoCacheWouldShowHasNoGate) {
  Json other = labelled("p", "10");
  other["metadata"]["labels"] = {{"app", "y"}};
  run(create(resources::kPod, other));
  api.take("POST").reply(201, other);
  EXPECT_TRUE(open());
  run(create(resources::kService, labelled("s")));
  api.take("POST").reply(201, labelled("s", "12"));
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, AlreadyExistsIsAFailureWhenItIsSomebodyElses) {
  run(create(resources::kPod, labelled("p")));
  api.take("POST").reply(409, status_json(409, "AlreadyExists"));
  Json foreign = labelled("p", "5");
  foreign["metadata"]["labels"]["app"] = "theirs";
  api.take("GET").reply(200, foreign);
  ASSERT_TRUE(done);
  EXPECT_EQ(result.value.error().code, ErrorCode::kAlreadyExists);
}

TEST_F(TargetTest, AlreadyExistsIsDoneWhenAnEarlierCreateOfOursMadeIt) {
  Json intent = labelled("p");
  intent["metadata"]["ownerReferences"] = {{{"uid", "owner"}, {"controller", true}, {"kind", "NodeSet"}, {"name", "n"}}};
  run(create(resources::kPod, intent));
  api.take("POST").reply(409, status_json(409, "AlreadyExists"));
  Json live = intent;
  live["metadata"]["resourceVersion"] = "7";
  api.take("GET").reply(200, live);
  ASSERT_TRUE(result.value);
  EXPECT_FALSE(open());
  pods.upsert(pod("p", "7"));
  EXPECT_TRUE(open());

  // A cache that selects by labels may never show an object whose labels have changed.
  run(create(resources::kPod, intent));
  api.take("POST").reply(409, status_json(409, "AlreadyExists"));
  Json relabelled = live;
  relabelled["metadata"]["labels"]["app"] = "debug";
  api.take("GET").reply(200, relabelled);
  EXPECT_EQ(result.value.error().code, ErrorCode::kAlreadyExists);

  // An object that is being deleted does not count as the object that this Create made.
  run(create(resources::kPod, intent));
  api.take("POST").reply(409, status_json(409, "AlreadyExists"));
  live["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  api.take("GET").reply(200, live);
  EXPECT_EQ(result.value.error().code, ErrorCode::kAlreadyExists);
}

TEST_F(TargetTest, ALostReplyIsSettledByAReadAfterTheDeadline) {
  run(create(resources::kPod, labelled("p")));
  loop.advance(2s);
  api.take("POST").fail(ErrorCode::kUnknownOutcome);
  ASSERT_TRUE(done);
  EXPECT_EQ(result.value.error().code, ErrorCode::kUnknownOutcome);
  EXPECT_FALSE(open());
  pods.bookmark("1000");
  EXPECT_FALSE(open()) << "not even a cache that is ahead knows what is still on its way";
  loop.advance(7900ms);
  EXPECT_FALSE(api.has("GET")) << "the request may be carried out until its deadline";
  loop.advance(200ms);
  api.take("GET").fail(ErrorCode::kUnavailable);
  EXPECT_FALSE(open());
  loop.advance(3s);
  api.take("GET").reply(200, labelled("p", "2000"));
  EXPECT_FALSE(open());
  pods.upsert(pod("p", "2000"));
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, ALostCreateThatNeverHappenedIsSettledToo) {
  int settled = 0;
  target.on_settled([&] { ++settled; });
  run(create(resources::kPod, labelled("p")));
  api.take("POST").fail(ErrorCode::kUnknownOutcome);
  loop.advance(11s);
  api.take("GET").reply(404, status_json(404, "NotFound"));
  EXPECT_TRUE(open());
  EXPECT_EQ(settled, 1);
}

TEST_F(TargetTest, DeletesNeedAUidAndPodsNeedEvidence) {
  auto act = std::make_shared<Delete>();
  act->resource = resources::kPod;
  act->key = {"ns", "p"};
  run(act);
  EXPECT_EQ(result.value.error().code, ErrorCode::kInvalid);
  act->uid = "u";
  run(act);
  EXPECT_EQ(result.value.error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(api.sent.empty());
}

/// A kind of evidence for tests. Other folders define their kinds in the same form.
class TestEvidence final : public PodEvidence {
 public:
  TestEvidence(const PodRecord& pod, std::optional<core::MonoTime> good_until)
      : PodEvidence(plan::testing::Observer::at({}), pod, "Test", "seen by a test", good_until) {}
};

PodEvidence evidence(const std::string& uid, std::optional<core::MonoTime> good_until = std::nullopt) {
  PodRecord pod;
  pod.meta.uid = uid;
  return TestEvidence(pod, good_until);
}

TEST_F(TargetTest, EvidenceIsGoodForThePodThatItSpeaksOf) {
  auto act = std::make_shared<Delete>();
  act->resource = resources::kPod;
  act->key = {"ns", "p"};
  act->uid = "u";
  for (const char* other : {"other-uid", "p", ""}) {
    act->evidence = evidence(other);
    run(act);
    ASSERT_TRUE(api.sent.empty()) << "of \"" << other << '"';
    ASSERT_TRUE(done);
    EXPECT_EQ(result.value.error().code, ErrorCode::kInvalid);
  }
  act->evidence = evidence("u");
  run(act);
  EXPECT_EQ(api.take("DELETE").body()["preconditions"]["uid"], "u");
}

TEST_F(TargetTest, APodWithoutANodeIsDeletedOnlyAsItWasSeen) {
  PodRecord pod;
  pod.meta.ns = "ns";
  pod.meta.name = "p";
  pod.meta.uid = "u";
  pod.meta.resource_version = "9";
  pod.phase = "Pending";
  const std::optional<PodEvidence> evidence = NeverStarted::of(plan::testing::Observer::at({}), pod);
  ASSERT_TRUE(evidence);
  auto deletion = std::make_shared<Delete>();
  deletion->resource = resources::kPod;
  deletion->key = {"ns", "p"};
  deletion->uid = "u";
  deletion->evidence = evidence;
  run(deletion);
  EXPECT_EQ(api.take("DELETE").body()["preconditions"], (Json{{"uid", "u"}, {"resourceVersion", "9"}}));

  auto eviction = std::make_shared<Evict>();
  eviction->pod = {"ns", "p"};
  eviction->uid = "u";
  eviction->evidence = evidence;
  run(eviction);
  const auto sent = api.take("POST");
  EXPECT_EQ(sent.body()["deleteOptions"]["preconditions"], (Json{{"uid", "u"}, {"resourceVersion", "9"}}));
  sent.reply(409, status_json(409, "Conflict"));
  api.take("GET").reply(200, labelled("p", "10"));
  ASSERT_TRUE(done);
  EXPECT_EQ(result.value.error().code, ErrorCode::kConflict) << "it has been scheduled meanwhile";
}

TEST_F(TargetTest, EvidenceThatHasGrownOldDeletesNothing) {
  PodRecord pod;
  pod.meta.ns = "ns";
  pod.meta.name = "p";
  pod.meta.uid = "u";
  const core::MonoTime until = loop.clock().mono() + 3s;
  loop.advance(3s);
  run(delete_pod(pod, evidence("u", until)));
  api.take("DELETE").reply(404, status_json(404, "NotFound"));
  loop.advance(1ms);
  run(delete_pod(pod, evidence("u", until)));
  ASSERT_TRUE(done);
  EXPECT_EQ(result.value.error().code, ErrorCode::kExpired);
  EXPECT_THAT(result.value.error().message, HasSubstr("too old by now: seen by a test"));
  EXPECT_TRUE(api.sent.empty());
  run(delete_fenced_pod(pod, evidence("u", until)));
  EXPECT_EQ(api.take("DELETE").body()["preconditions"]["uid"], "u") << "the step before it has looked again";
}

TEST_F(TargetTest, AGracefulDeleteWaitsUntilTheCacheShowsItOnItsWay) {
  configs.upsert(config("c", "5"));
  run(delete_object(resources::kConfigMap, config("c", "5")->meta));
  const auto sent = api.take("DELETE");
  EXPECT_EQ(sent.body()["preconditions"]["uid"], "uid-c");
  Json reply = object_json("ns", "c", "6");
  reply["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  reply["metadata"]["finalizers"] = {"a/b"};
  sent.reply(200, reply);
  EXPECT_FALSE(open());
  configs.upsert(config("c", "6"));
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, AnImmediateDeleteWaitsUntilTheObjectIsGone) {
  configs.upsert(config("c", "5"));
  run(delete_object(resources::kConfigMap, config("c", "5")->meta));
  api.take("DELETE").reply(200, {{"kind", "Status"}, {"status", "Success"}});
  EXPECT_FALSE(open());
  configs.bookmark("100");
  EXPECT_FALSE(open());
  configs.erase({"ns", "c"});
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, DeletingWhatIsGoneIsDone) {
  configs.upsert(config("c", "5"));
  run(delete_object(resources::kConfigMap, config("c", "5")->meta));
  api.take("DELETE").reply(404, status_json(404, "NotFound"));
  EXPECT_TRUE(result.value);
  EXPECT_FALSE(open()) << "the cache does not know it yet";
  run(delete_object(resources::kConfigMap, config("c", "5")->meta));
  api.take("DELETE").reply(409, status_json(409, "Conflict"));
  api.take("GET").reply(200, object_json("ns", "c", "9", "another"));
  EXPECT_TRUE(result.value) << "another object of that name";
  run(delete_object(resources::kConfigMap, config("c", "5")->meta));
  api.take("DELETE").reply(409, status_json(409, "Conflict"));
  api.take("GET").reply(200, object_json("ns", "c", "9"));
  EXPECT_EQ(result.value.error().code, ErrorCode::kConflict);
}

TEST_F(TargetTest, TheLastFinalizerIsTheEndOfADeletedObject) {
  configs.upsert(config("c", "5"));
  ObjectMeta meta = config("c", "5")->meta;
  meta.finalizers = {"x/other", "x/ours"};
  run(remove_finalizer(resources::kConfigMap, meta, "x/ours"));
  const auto sent = api.take("PATCH");
  EXPECT_EQ(sent.request.headers.at("content-type"), "application/json-patch+json");
  EXPECT_EQ(sent.body(), Json::parse(R"([{"op":"test","path":"/metadata/uid","value":"uid-c"},
      {"op":"test","path":"/metadata/finalizers/1","value":"x/ours"},{"op":"remove","path":"/metadata/finalizers/1"}])"));
  Json reply = object_json("ns", "c", "5");
  reply["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  sent.reply(200, reply);
  EXPECT_FALSE(open());
  configs.erase({"ns", "c"});
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, APatchThatDoesNotFitIsAConflict) {
  ObjectMeta meta = config("c", "5")->meta;
  run(add_finalizer(resources::kConfigMap, meta, "x/ours"));
  api.take("PATCH").reply(422, status_json(422, "Invalid", "the server rejected our request due to an error in our request"));
  EXPECT_EQ(result.value.error().code, ErrorCode::kConflict);
  run(merge_patch(resources::kConfigMap, meta, {{"data", {{"a", "b"}}}}));
  api.take("PATCH").reply(422, status_json(422, "Invalid", R"(metadata.uid: Invalid value: "x": field is immutable)"));
  EXPECT_EQ(result.value.error().code, ErrorCode::kConflict);
  run(merge_patch(resources::kConfigMap, meta, {{"data", {{"a", 1}}}}));
  api.take("PATCH").reply(422, status_json(422, "Invalid", "data.a: must be a string"));
  EXPECT_EQ(result.value.error().code, ErrorCode::kInvalid);
}

TEST_F(TargetTest, AGateThatTakesTooLongIsSettledByALiveRead) {
  run(create(resources::kPod, labelled("p")));
  api.take("POST").reply(201, labelled("p", "10"));
  EXPECT_TRUE(result.gates.at(0)->settle());
  EXPECT_TRUE(result.gates.at(0)->settle());
  api.take("GET").reply(200, labelled("p", "12"));
  EXPECT_FALSE(api.has("GET"));
  EXPECT_EQ(relisted, 1) << "the cache is behind what is";
  EXPECT_FALSE(open());
  pods.replace({pod("p", "12")}, "12");
  EXPECT_TRUE(open());
  // The object was deleted in the meantime, so the gate has nothing to wait for.
  run(create(resources::kPod, labelled("q")));
  api.take("POST").reply(201, labelled("q", "20"));
  EXPECT_TRUE(result.gates.at(0)->settle());
  api.take("GET").reply(404, status_json(404, "NotFound"));
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, GeneratedValuesAreFilledInAndNotSaid) {
  const Json secret = {{"metadata", {{"namespace", "ns"}, {"name", "k"}}},
                       {"data", {{"key", {{"$generate", {{"bytes", 32}}}}}, {"plain", "YQ=="}}}};
  const auto act = create(resources::kSecret, secret);
  run(act);
  const auto sent = api.take("POST");
  EXPECT_EQ(core::base64_decode(sent.body()["data"]["key"].get<std::string>())->size(), 32U);
  EXPECT_EQ(sent.body()["data"]["plain"], "YQ==");
  Json reply = sent.body();
  reply["metadata"]["resourceVersion"] = "3";
  sent.reply(201, reply);
  EXPECT_THAT(result.value->dump(), Not(HasSubstr(sent.body()["data"]["key"].get<std::string>())));
  EXPECT_EQ(act->describe()["object"], secret);
}

TEST_F(TargetTest, GeneratedValuesMayBeText) {
  run(create(resources::kSecret, {{"metadata", {{"namespace", "ns"}, {"name", "k"}}},
                                  {"data", {{"password", {{"$generate", {{"bytes", 16}, {"as", "hex"}}}}}}}}));
  const std::string text = *core::base64_decode(api.take("POST").body()["data"]["password"].get<std::string>());
  EXPECT_EQ(text.size(), 32U);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST_F(TargetTest, SshKeysComeWithTheirPublicKeys) {
  const auto body = [](const char* type, const char* public_key) {
    const Json recipe = {{"type", type}, {"publicKey", public_key}, {"comment", "host"}};
    return Json{{"metadata", {{"namespace", "ns"}, {"name", "keys"}}}, {"data", {{"key", {{"$sshKey", recipe}}}}}};
  };
  const auto act = create(resources::kSecret, body("ed25519", "key.pub"));
  run(act);
  loop.run_ready();
  const Json data = api.take("POST").body()["data"];
  EXPECT_THAT(*core::base64_decode(data["key"].get<std::string>()), StartsWith("-----BEGIN OPENSSH PRIVATE KEY-----\n"));
  EXPECT_THAT(*core::base64_decode(data["key.pub"].get<std::string>()), AllOf(StartsWith("ssh-ed25519 "), EndsWith(" host\n")));
  EXPECT_THAT(act->describe().dump(), Not(HasSubstr("PRIVATE")));
  for (const auto& [type, public_key] : {std::pair("dsa", "key.pub"), std::pair("rsa", ""), std::pair("rsa", "key")}) {
    run(create(resources::kSecret, body(type, public_key)));
    EXPECT_EQ(result.value.error().code, core::ErrorCode::kInvalid) << type << public_key;
    EXPECT_FALSE(api.has("POST"));
  }
}

TEST_F(TargetTest, CopiesAreOfTheSecretThatThePlanSaw) {
  const Json recipe = {{"namespace", "ns"}, {"name", "k"}, {"key", "slurm"}, {"uid", "uid-k"}, {"resourceVersion", "2"}};
  const Json body = {{"metadata", {{"namespace", "ns"}, {"name", "copy"}}}, {"data", {{"slurm.key", {{"$copy", recipe}}}}}};
  const auto answer = [&](const char* uid, const char* version, const char* key) {
    result = {};
    run(create(resources::kSecret, body));
    Json source = object_json("ns", "k", version);
    source["metadata"]["uid"] = uid;
    source["data"][key] = core::base64_encode("the key");
    api.take("GET", "/api/v1/namespaces/ns/secrets/k").reply(200, source);
  };
  answer("uid-k", "2", "slurm");
  EXPECT_EQ(api.take("POST").body()["data"]["slurm.key"], core::base64_encode("the key"));
  answer("another", "2", "slurm");
  EXPECT_FALSE(api.has("POST"));
  EXPECT_EQ(result.value.error().code, core::ErrorCode::kConflict);
  answer("uid-k", "3", "slurm");
  EXPECT_FALSE(api.has("POST"));
  EXPECT_EQ(result.value.error().code, core::ErrorCode::kConflict);
  answer("uid-k", "2", "other");
  EXPECT_FALSE(api.has("POST"));
  EXPECT_EQ(result.value.error().code, core::ErrorCode::kNotFound);
}

TEST_F(TargetTest, AJwksHasEachKeyUnderANameOfItsOwn) {
  const auto key = [](const char* name) {
    return Json{{"namespace", "ns"}, {"name", "k"}, {"key", name}, {"uid", "uid-k"}, {"resourceVersion", "2"}};
  };
  const auto made = [&](const char* first, const char* second) {
    run(create(resources::kSecret,
               {{"metadata", {{"namespace", "ns"}, {"name", "copy"}}},
                {"data", {{"slurm.jwks", {{"$jwks", {{"signs", 0}, {"keys", {key(first), key(second)}}}}}}}}}));
    Json source = object_json("ns", "k", "2");
    source["metadata"]["uid"] = "uid-k";
    source["data"] = {{"a", core::base64_encode("one key >>>")}, {"b", core::base64_encode("another")}};
    for (int i = 0; i < 2; ++i) api.take("GET", "/api/v1/namespaces/ns/secrets/k").reply(200, source);
    return core::parse_json(*core::base64_decode(api.take("POST").body()["data"]["slurm.jwks"].get<std::string>()))->at("keys");
  };
  const Json keys = made("a", "b"), turned = made("b", "a");
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0]["k"], "b25lIGtleSA-Pj4");
  EXPECT_EQ(keys[1]["k"], core::base64url_encode("another"));
  EXPECT_EQ(keys[0]["use"], "default");
  EXPECT_FALSE(keys[1].contains("use"));
  for (const Json& one : keys) EXPECT_TRUE(one["alg"] == "HS256" && one["kty"] == "oct");
  EXPECT_NE(keys[0]["kid"], keys[1]["kid"]);
  EXPECT_EQ(keys[0]["kid"], turned[1]["kid"]) << "the same key has the same name in every file";
  EXPECT_EQ(turned[0]["k"], keys[1]["k"]);
  EXPECT_EQ(turned[0]["use"], "default");
}

TEST_F(TargetTest, TokensAreSignedWithTheKeyThatIsReadLive) {
  const Json recipe = {{"keyRef", {{"namespace", "ns"}, {"name", "jwt"}, {"key", "jwt.key"}}},
                       {"claims", {{"sun", "slurm"}}},
                       {"lifetimeSeconds", 3600}};
  run(create(resources::kSecret,
             {{"metadata", {{"namespace", "ns"}, {"name", "t"}}}, {"data", {{"token", {{"$mintToken", recipe}}}}}}));
  EXPECT_FALSE(api.has("POST"));
  Json key = object_json("ns", "jwt", "2");
  key["data"]["jwt.key"] = core::base64_encode("0123456789abcdef0123456789abcdef");
  api.take("GET", "/api/v1/namespaces/ns/secrets/jwt").reply(200, key);
  const auto sent = api.take("POST");
  const std::string token = *core::base64_decode(sent.body()["data"]["token"].get<std::string>());
  EXPECT_EQ(std::ranges::count(token, '.'), 2);
  const auto begin = token.find('.') + 1;
  std::string payload = token.substr(begin, token.rfind('.') - begin);
  std::ranges::replace(payload, '-', '+');
  std::ranges::replace(payload, '_', '/');
  while (payload.size() % 4 != 0) payload += '=';
  const Json claims = Json::parse(*core::base64_decode(payload));
  EXPECT_EQ(claims["sun"], "slurm");
  EXPECT_EQ(claims["iat"], 1767323045);
  EXPECT_EQ(claims["nbf"], 1767323045);
  EXPECT_EQ(claims["exp"], 1767323045 + 3600);
  EXPECT_TRUE(claims.contains("jti"));
}

TEST_F(TargetTest, AMissingSigningKeySaysWhich) {
  const Json recipe = {{"keyRef", {{"namespace", "ns"}, {"name", "jwt"}, {"key", "jwt.key"}}}};
  run(create(resources::kSecret,
             {{"metadata", {{"namespace", "ns"}, {"name", "t"}}}, {"data", {{"token", {{"$mintToken", recipe}}}}}}));
  api.take("GET").reply(200, object_json("ns", "jwt", "2"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().message, "signing key Secret ns/jwt has no key jwt.key");
  EXPECT_FALSE(api.has("POST"));
}

TEST_F(TargetTest, AListIsOnePageOfWhatIsSelected) {
  auto act = std::make_shared<List>();
  act->resource = resources::kSecret;
  act->ns = "ns";
  act->field_selector = "type=a/b";
  act->limit = 2;
  run(act);
  Json secret = object_json("ns", "s", "2");
  secret["data"]["password"] = core::base64_encode("hunter2");
  const auto request = api.take("GET");
  EXPECT_EQ(request.request.target, "/api/v1/namespaces/ns/secrets?fieldSelector=type%3Da%2Fb&limit=2");
  request.reply(200, {{"metadata", Json::object()}, {"items", Json::array({secret})}});
  ASSERT_TRUE(result.value);
  ASSERT_EQ((*result.value)["items"].size(), 1U);
  EXPECT_EQ((*result.value)["items"][0]["data"]["password"], (Json{{"bytes", 7}}));
}

TEST_F(TargetTest, FactsHoldNoSecretBytes) {
  auto act = std::make_shared<Get>();
  act->resource = resources::kSecret;
  act->key = {"ns", "s"};
  run(act);
  Json secret = object_json("ns", "s", "2");
  secret["data"]["password"] = core::base64_encode("hunter2");
  api.take("GET").reply(200, secret);
  EXPECT_EQ((*result.value)["data"]["password"], (Json{{"bytes", 7}}));
}

TEST_F(TargetTest, AnEventIsNeverAFailureAndHasNoGate) {
  auto act = std::make_shared<EventAct>();
  act->regarding = resources::kPod;
  act->object = pod("p", "1")->meta;
  act->type = "Normal";
  act->reason = act->action = "X";
  run(act);
  EXPECT_TRUE(done);
  EXPECT_TRUE(result.value);
  EXPECT_TRUE(result.gates.empty());
  EXPECT_TRUE(api.has("POST", "/apis/events.k8s.io/v1/namespaces/ns/events"));
}

TEST_F(TargetTest, ApplySaysWhatItIsAndWhoManagesIt) {
  run(std::make_shared<Apply>(resources::kStatefulSet, labelled("s"), "controller"));
  const auto sent = api.take("PATCH");
  EXPECT_EQ(sent.body()["kind"], "StatefulSet");
  EXPECT_EQ(sent.body()["apiVersion"], "apps/v1");
  EXPECT_THAT(sent.request.target, HasSubstr("fieldManager=controller&"));
}

TEST_F(TargetTest, ApplyTakesNothingOverThatItHadNotSeenAndThatHasAnotherOwner) {
  Json intent = labelled("m");
  intent["metadata"]["ownerReferences"] = {
      {{"uid", "owner"}, {"controller", true}, {"apiVersion", "x/v1"}, {"kind", "Controller"}, {"name", "c"}}};
  const auto unseen = std::make_shared<Apply>(resources::kConfigMap, intent, "controller");
  unseen->unseen = true;
  run(unseen);
  Json foreign = labelled("m", "5");
  foreign["metadata"]["ownerReferences"] = {
      {{"uid", "other"}, {"controller", true}, {"apiVersion", "y/v1"}, {"kind", "Z"}, {"name", "z"}}};
  api.take("GET").reply(200, foreign);
  ASSERT_TRUE(done);
  EXPECT_EQ(result.value.error().code, ErrorCode::kAlreadyExists);
  EXPECT_FALSE(api.has("PATCH", ""));

  // An object that lost its labels is still ours. An object that an earlier release made for several owners is ours, too.
  run(unseen);
  Json live = intent;
  live["metadata"].erase("labels");
  live["metadata"]["ownerReferences"] = {{{"uid", "other"}, {"apiVersion", "x/v1alpha1"}, {"kind", "NodeSet"}, {"name", "n"}}};
  api.take("GET").reply(200, live);
  api.take("PATCH").reply(200, intent);
  EXPECT_TRUE(result.value);

  run(unseen);
  api.take("GET").reply(404, status_json(404, "NotFound"));
  api.take("PATCH").reply(201, intent);
  EXPECT_TRUE(result.value);

  // An object that must have no controller is recognized by its labels.
  const auto ownerless = std::make_shared<Apply>(resources::kConfigMap, labelled("m"), "controller");
  ownerless->unseen = true;
  for (const Json& theirs : {foreign, live}) {
    run(ownerless);
    api.take("GET").reply(200, theirs);
    ASSERT_TRUE(done);
    EXPECT_EQ(result.value.error().code, ErrorCode::kAlreadyExists) << theirs;
  }
  run(ownerless);
  api.take("GET").reply(200, labelled("m", "6"));
  api.take("PATCH").reply(200, labelled("m", "7"));
  EXPECT_TRUE(result.value);

  run(unseen);
  api.take("GET").reply(500, status_json(500, "InternalError"));
  ASSERT_TRUE(done);
  EXPECT_FALSE(result.value);
}

std::shared_ptr<Evict> evict_act(const std::string& evidence_about = "u") {
  auto act = std::make_shared<Evict>();
  act->pod = {"ns", "p"};
  act->uid = "u";
  act->grace_seconds = 5;
  if (!evidence_about.empty()) act->evidence = evidence(evidence_about);
  return act;
}

TEST_F(TargetTest, AnEvictionHoldsItsKeyUntilThePodIsGone) {
  pods.upsert(pod("p", "9"));
  run(evict_act());
  const auto sent = api.take("POST", "/api/v1/namespaces/ns/pods/p/eviction?");
  EXPECT_EQ(sent.body(), (Json{{"apiVersion", "policy/v1"},
                               {"kind", "Eviction"},
                               {"metadata", {{"namespace", "ns"}, {"name", "p"}}},
                               {"deleteOptions", {{"preconditions", {{"uid", "u"}}}, {"gracePeriodSeconds", 5}}}}));
  sent.reply(201, {{"kind", "Status"}, {"status", "Success"}});
  ASSERT_TRUE(result.value);
  loop.run_ready();
  api.take("GET").reply(404, status_json(404, "NotFound"));
  EXPECT_FALSE(open());
  pods.erase({"ns", "p"}, "11");
  EXPECT_TRUE(open());
}

TEST_F(TargetTest, AnEvictionOfWhatIsGoneIsDone) {
  for (const int status : {404, 409}) {
    run(evict_act());
    api.take("POST").reply(status, status_json(status, status == 404 ? "NotFound" : "Conflict"));
    api.take("GET").reply(200, labelled("p", "10", "its-successor"));
    ASSERT_TRUE(done);
    EXPECT_TRUE(result.value) << status;
  }
  run(evict_act());
  api.take("POST").reply(409, status_json(409, "Conflict"));
  api.take("GET").reply(200, labelled("p", "10"));
  EXPECT_EQ(result.value.error().code, ErrorCode::kConflict);
}

TEST_F(TargetTest, AnEvictionNeedsEvidenceAboutThePod) {
  for (const char* about : {"", "another"}) {
    run(evict_act(about));
    ASSERT_TRUE(done);
    EXPECT_EQ(result.value.error().code, ErrorCode::kInvalid);
  }
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(TargetTest, ATokenOfAServiceAccountIsFilledIn) {
  const Json recipe = {
      {"serviceAccount", {{"namespace", "ns"}, {"name", "a"}}}, {"audiences", {"x"}}, {"expirationSeconds", 600}};
  const Json body = {{"metadata", {{"namespace", "ns"}, {"name", "t"}}}, {"data", {{"token", {{"$requestToken", recipe}}}}}};
  run(create(resources::kSecret, body));
  const auto asked = api.take("POST", "/api/v1/namespaces/ns/serviceaccounts/a/token?");
  EXPECT_EQ(asked.body(), (Json{{"apiVersion", "authentication.k8s.io/v1"},
                                {"kind", "TokenRequest"},
                                {"metadata", {{"namespace", "ns"}, {"name", "a"}}},
                                {"spec", {{"audiences", {"x"}}, {"expirationSeconds", 600}}}}));
  asked.reply(201, {{"metadata", {{"name", "a"}}}, {"status", {{"token", "secret-token"}}}});
  EXPECT_EQ(api.take("POST").body()["data"]["token"], core::base64_encode("secret-token"));
}

TEST_F(TargetTest, ATokenThatIsNotGotIsNothingToSettle) {
  const Json recipe = {{"serviceAccount", {{"namespace", "ns"}, {"name", "a"}}}};
  const Json body = {{"metadata", {{"namespace", "ns"}, {"name", "t"}}}, {"data", {{"token", {{"$requestToken", recipe}}}}}};
  run(create(resources::kSecret, body));
  api.take("POST").fail(ErrorCode::kUnknownOutcome);
  ASSERT_TRUE(done);
  EXPECT_EQ(result.value.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(result.value.error().message, HasSubstr("token of ServiceAccount ns/a"));
  EXPECT_TRUE(result.gates.empty());
  run(create(resources::kSecret, body));
  api.take("POST").reply(201, {{"metadata", {{"name", "a"}}}});
  EXPECT_EQ(result.value.error().code, ErrorCode::kInternal);
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(TargetTest, ADryRunSaysWhetherAnObjectWouldBeCreated) {
  const auto ask = [&](int status, const Json& answer) {
    run(std::make_shared<DryRun>(resources::kPod, labelled("p")));
    const auto sent = api.take("POST");
    EXPECT_THAT(sent.request.target, HasSubstr("dryRun=All"));
    sent.reply(status, answer);
    EXPECT_TRUE(done);
    EXPECT_TRUE(open());
  };
  ask(201, labelled("p"));
  EXPECT_TRUE(result.value);
  // The API server checks the name last, so an object whose name is taken has passed all other checks.
  ask(409, status_json(409, "AlreadyExists"));
  EXPECT_TRUE(result.value);
  ask(422, status_json(422, "Invalid"));
  ASSERT_FALSE(result.value);
  EXPECT_EQ(result.value.error().code, ErrorCode::kInvalid);
}

TEST_F(TargetTest, ALogIsTheLastLine) {
  const auto ask = [&] {
    run(std::make_shared<Log>(Key{"ns", "p"}, "sessions", 15s));
    return api.take("GET", "/api/v1/namespaces/ns/pods/p/log?container=sessions&tailLines=1&limitBytes=4096&sinceSeconds=15");
  };
  ask().done(net::HttpResponse{200, {}, "sessions=2\n"});
  ASSERT_TRUE(result.value);
  EXPECT_EQ(*result.value, (Json{{"log", "sessions=2\n"}}));
  const auto lost = ask();
  EXPECT_EQ(lost.request.timeout, 5s) << "the kubelet's machine may be gone";
  lost.reply(500, status_json(500, "InternalError"));
  EXPECT_FALSE(result.value);
}

TEST_F(TargetTest, AListOfAllTakesPageAfterPage) {
  auto act = std::make_shared<List>();
  act->resource = resources::kPod;
  act->ns = "ns";
  act->label_selector = "app=x";
  run(act);
  api.take("GET", "/api/v1/namespaces/ns/pods?labelSelector=app%3Dx&limit=500")
      .reply(200, {{"metadata", {{"continue", "more"}}}, {"items", {labelled("a")}}});
  EXPECT_FALSE(done);
  api.take("GET").reply(200, {{"metadata", Json::object()}, {"items", {labelled("b")}}});
  ASSERT_TRUE(done);
  EXPECT_EQ((*result.value)["items"].size(), 2U);
  act = std::make_shared<List>(*act);
  act->limit = 1;
  run(act);
  api.take("GET").reply(200, {{"metadata", {{"continue", "more"}}}, {"items", {labelled("a")}}});
  EXPECT_TRUE(done) << "as many as are wanted";
}

}  // namespace
}  // namespace kube
