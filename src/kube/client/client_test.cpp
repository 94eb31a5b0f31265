#include "kube/client/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"
#include "kube/testing/fake_transport.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::Json;
using testing::HasSubstr;

/// Credentials whose token can be renewed.
class FakeCredentials final : public Credentials {
 public:
  [[nodiscard]] const net::Endpoint& endpoint() const override { return endpoint_; }
  [[nodiscard]] std::string base_path() const override { return base; }
  [[nodiscard]] std::optional<std::string> token() const override { return current; }
  void refresh(Done done) override {
    ++refreshed;
    if (next) current = next;
    done(next ? core::Result<void>{} : core::fail(ErrorCode::kUnauthorized, "no more tokens"));
  }
  [[nodiscard]] std::string default_namespace() const override { return "default"; }
  std::optional<std::string> current = "t1";
  std::optional<std::string> next;
  std::string base;
  int refreshed = 0;

 private:
  net::Endpoint endpoint_;
};

class ClientTest : public testing::Test {
 protected:
  Client::Done keep() {
    return [this](core::Result<Json> r) {
      ++calls;
      result = std::move(r);
    };
  }
  core::ManualLoop loop;
  FakeRandom random;
  FakeTransport api;
  FakeCredentials credentials;
  std::vector<RequestRecord> records;
  std::unique_ptr<Client> client = make({});
  core::Result<Json> result = core::fail(ErrorCode::kInternal, "no answer yet");
  int calls = 0;

  std::unique_ptr<Client> make(ClientOptions options) {
    options.user_agent = "slurm-operator/1";
    options.observe = [this](const RequestRecord& record) { records.push_back(record); };
    return std::make_unique<Client>(loop, random, api, credentials, options);
  }
};

TEST_F(ClientTest, GetIsAConsistentReadWithCredentials) {
  credentials.base = "/prefix";
  client->get(resources::kPod, {"ns", "p"}, keep());
  const auto sent = api.take("GET", "/prefix/api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(sent.request.target, "/prefix/api/v1/namespaces/ns/pods/p");
  EXPECT_EQ(sent.request.headers.at("authorization"), "Bearer t1");
  EXPECT_EQ(sent.request.headers.at("user-agent"), "slurm-operator/1");
  EXPECT_EQ(sent.request.headers.at("accept"), "application/json");
  sent.reply(200, object_json("ns", "p", "1"));
  ASSERT_TRUE(result);
  EXPECT_EQ((*result)["metadata"]["name"], "p");
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].status, 200);
}

TEST_F(ClientTest, WritesNameTheirManagerAndAreStrict) {
  const Json object = object_json("ns", "a", "");
  client->create(resources::kConfigMap, object, keep());
  auto sent = api.take("POST");
  EXPECT_EQ(sent.request.target, "/api/v1/namespaces/ns/configmaps?fieldManager=slurm-operator&fieldValidation=Strict");
  EXPECT_EQ(sent.request.headers.at("content-type"), "application/json");
  client->apply(resources::kStatefulSet, object, keep(), {.field_manager = "nodeset"});
  sent = api.take("PATCH");
  EXPECT_EQ(sent.request.target,
            "/apis/apps/v1/namespaces/ns/statefulsets/a?fieldManager=nodeset&fieldValidation=Strict&force=true");
  EXPECT_EQ(sent.request.headers.at("content-type"), "application/apply-patch+yaml");
  client->patch(resources::kPod, {"ns", "a"}, PatchType::kStrategic, Json::object(), keep(), {.subresource = "status"});
  sent = api.take("PATCH", "/api/v1/namespaces/ns/pods/a/status?");
  EXPECT_EQ(sent.request.headers.at("content-type"), "application/strategic-merge-patch+json");
  client->update(resources::kLease, object, keep());
  sent = api.take("PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/a?");
  client->remove(resources::kPod, {"ns", "a"}, {.uid = "u", .resource_version = "7"}, keep());
  sent = api.take("DELETE", "/api/v1/namespaces/ns/pods/a");
  EXPECT_EQ(sent.body()["preconditions"], (Json{{"uid", "u"}, {"resourceVersion", "7"}}));
  EXPECT_EQ(sent.body()["propagationPolicy"], "Background");
}

TEST_F(ClientTest, ErrorsCarryWhatTheServerSaid) {
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  Json status = status_json(422, "Invalid", "it is invalid");
  status["details"] = {{"causes", {{{"field", "spec.replicas"}, {"message", "must be 0 or more"}}}}};
  api.take("POST").reply(422, status);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(result.error().http_status, 422);
  EXPECT_EQ(result.error().reason, "Invalid");
  EXPECT_EQ(result.error().message, "it is invalid; spec.replicas: must be 0 or more");
}

TEST(ErrorFromResponseTest, CodesFollowStatusAndReason) {
  const auto code = [](int status, std::string_view reason) {
    return error_from_response(status, {}, status_json(status, reason).dump()).code;
  };
  EXPECT_EQ(code(409, "AlreadyExists"), ErrorCode::kAlreadyExists);
  EXPECT_EQ(code(409, "Conflict"), ErrorCode::kConflict);
  EXPECT_EQ(code(404, "NotFound"), ErrorCode::kNotFound);
  EXPECT_EQ(code(403, "Forbidden"), ErrorCode::kForbidden);
  EXPECT_EQ(code(401, "Unauthorized"), ErrorCode::kUnauthorized);
  EXPECT_EQ(code(410, "Expired"), ErrorCode::kExpired);
  EXPECT_EQ(code(429, "TooManyRequests"), ErrorCode::kTooManyRequests);
  EXPECT_EQ(code(503, "ServiceUnavailable"), ErrorCode::kUnavailable);
  EXPECT_EQ(code(504, "Timeout"), ErrorCode::kUnknownOutcome);
  EXPECT_EQ(code(500, "InternalError"), ErrorCode::kInternal);
  const auto plain = error_from_response(502, {{"retry-after", "3"}}, "<html>\nbad gateway");
  EXPECT_EQ(plain.code, ErrorCode::kInternal);
  EXPECT_EQ(plain.message, "HTTP 502: <html> bad gateway");
  EXPECT_EQ(plain.retry_after, 3s);
}

TEST_F(ClientTest, A401RenewsTheTokenOnce) {
  credentials.next = "t2";
  client->get(resources::kPod, {"ns", "p"}, keep());
  api.take("GET").reply(401, status_json(401, "Unauthorized"));
  const auto again = api.take("GET");
  EXPECT_EQ(again.request.headers.at("authorization"), "Bearer t2");
  again.reply(401, status_json(401, "Unauthorized"));
  loop.run_ready();
  ASSERT_EQ(calls, 1);
  EXPECT_EQ(result.error().code, ErrorCode::kUnauthorized);
  EXPECT_EQ(credentials.refreshed, 1);
}

TEST_F(ClientTest, WithoutATokenItGetsOneFirst) {
  credentials.current.reset();
  credentials.next = "t9";
  client->get(resources::kPod, {"ns", "p"}, keep());
  EXPECT_EQ(api.take("GET").request.headers.at("authorization"), "Bearer t9");
}

TEST_F(ClientTest, CredentialsThatCannotBeHadAreAnError) {
  credentials.current.reset();
  client->get(resources::kPod, {"ns", "p"}, keep());
  loop.run_ready();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(result.error().code, ErrorCode::kUnauthorized);
  EXPECT_THAT(result.error().message, HasSubstr("no more tokens"));
}

TEST_F(ClientTest, AskedToWaitItSendsAgain) {
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  api.take("POST").reply(429, status_json(429, "TooManyRequests"), {{"retry-after", "2"}});
  EXPECT_EQ(calls, 0);
  loop.advance(1900ms);
  EXPECT_FALSE(api.has("POST"));
  loop.advance(200ms);
  api.take("POST").reply(201, object_json("ns", "a", "1"));
  EXPECT_TRUE(result);
}

TEST_F(ClientTest, AskedToWaitLongerThanItsTimeItGivesUp) {
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  api.take("POST").reply(429, status_json(429, "TooManyRequests"), {{"retry-after", "30"}});
  ASSERT_EQ(calls, 1);
  EXPECT_EQ(result.error().code, ErrorCode::kTooManyRequests);
  EXPECT_EQ(result.error().retry_after, 30s);
}

TEST_F(ClientTest, WhatWasNeverSentIsSentAgainWithinBounds) {
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  int tries = 0;
  while (calls == 0) {
    ++tries;
    api.take("POST").fail(ErrorCode::kUnavailable);
    loop.advance(5s / 2);
  }
  EXPECT_GT(tries, 1);
  EXPECT_LE(tries, 5);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
}

TEST_F(ClientTest, ALostReplyOfAWriteIsNeverSentAgain) {
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  api.take("POST").fail(ErrorCode::kUnknownOutcome);
  ASSERT_EQ(calls, 1);
  EXPECT_EQ(result.error().code, ErrorCode::kUnknownOutcome);
  loop.advance(60s);
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(ClientTest, A500IsNotSentAgain) {
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  api.take("POST").reply(500, status_json(500, "InternalError"));
  ASSERT_EQ(calls, 1);
  EXPECT_EQ(result.error().code, ErrorCode::kUnknownOutcome) << "etcd may write what it has not answered in time";
  client->get(resources::kConfigMap, {"ns", "a"}, keep());
  api.take("GET").reply(500, status_json(500, "InternalError"));
  EXPECT_EQ(result.error().code, ErrorCode::kInternal) << "a read has no outcome";
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  Json refused = status_json(500, "InternalError");
  refused["message"] = "Internal error occurred: failed calling webhook \"x\": no endpoints";
  api.take("POST").reply(500, refused);
  EXPECT_EQ(result.error().code, ErrorCode::kInternal) << "nothing was written";
}

TEST_F(ClientTest, ALostReadHasNoOutcome) {
  client->get(resources::kPod, {"ns", "p"}, keep());
  api.take("GET").fail(ErrorCode::kUnknownOutcome);
  EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
}

TEST_F(ClientTest, AnUnreadableAnswerToAWriteLeavesItsOutcomeUnknown) {
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  api.take("POST").done(net::HttpResponse{201, {}, "{\"kind\":"});
  EXPECT_EQ(result.error().code, ErrorCode::kUnknownOutcome);
}

class FencedClientTest : public ClientTest {
 protected:
  FencedClientTest() {
    ClientOptions options;
    options.lease_deadline = [this] { return deadline; };
    client = make(options);
  }
  std::optional<core::MonoTime> deadline;
};

TEST_F(FencedClientTest, WhoDoesNotLeadDoesNotWrite) {
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  EXPECT_TRUE(api.sent.empty());
  loop.run_ready();
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
  client->get(resources::kPod, {"ns", "p"}, keep());
  EXPECT_TRUE(api.has("GET")) << "reading is free";
  client->update(resources::kLease, object_json("ns", "l", ""), keep(), {.fenced = false});
  EXPECT_TRUE(api.has("PUT")) << "the lease itself";
}

TEST_F(FencedClientTest, AWriteEndsBeforeTheLease) {
  deadline = loop.clock().mono() + 6s;
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  EXPECT_EQ(api.take("POST").request.timeout, 5s);
  deadline = loop.clock().mono() + 1100ms;
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  EXPECT_FALSE(api.has("POST"));
}

TEST_F(FencedClientTest, OthersMayAskUntilWhenToWrite) {
  EXPECT_EQ(client->write_deadline(), std::nullopt);
  deadline = loop.clock().mono() + 6s;
  EXPECT_EQ(client->write_deadline(), loop.clock().mono() + 5s);
  EXPECT_GT(make({})->write_deadline(), loop.clock().mono() + 1000h) << "without a lease";
}

TEST_F(FencedClientTest, ARetryIsFencedToo) {
  deadline = loop.clock().mono() + 30s;
  client->create(resources::kConfigMap, object_json("ns", "a", ""), keep());
  api.take("POST").reply(503, status_json(503, "ServiceUnavailable"), {{"retry-after", "1"}});
  deadline.reset();
  loop.advance(2s);
  EXPECT_FALSE(api.has("POST"));
  EXPECT_EQ(result.error().code, ErrorCode::kCancelled);
}

TEST_F(ClientTest, ADestroyedClientCallsNobody) {
  client->get(resources::kPod, {"ns", "p"}, keep());
  const auto sent = api.take("GET");
  client.reset();
  sent.reply(200, Json::object());
  EXPECT_EQ(calls, 0);
}

TEST_F(ClientTest, AStreamThatIsRefusedEndsTyped) {
  core::Result<void> end;
  int heads = 0;
  client->stream("/x", 10s,
                 {[&](int, const auto&) { ++heads; }, [](auto) { FAIL(); }, [&](core::Result<void> r) { end = std::move(r); }});
  api.take_stream().answer(403, status_json(403, "Forbidden", "you may not"));
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kForbidden);
  EXPECT_EQ(end.error().message, "you may not");
  EXPECT_EQ(heads, 0);
}

TEST_F(ClientTest, AStreamRenewsTheTokenOnce) {
  credentials.next = "t2";
  std::string text;
  client->stream("/x", 10s, {{}, [&](std::string_view piece) { text += piece; }, {}});
  api.take_stream().answer(401, status_json(401, "Unauthorized"));
  const auto again = api.take_stream();
  EXPECT_EQ(again.request.headers.at("authorization"), "Bearer t2");
  again.head();
  again.handler.on_data("abc");
  EXPECT_EQ(text, "abc");
}

TEST(QueryEscapeTest, KeepsOnlyUnreservedCharacters) {
  EXPECT_EQ(query_escape("a=b,c in (x y)~-._"), "a%3Db%2Cc%20in%20%28x%20y%29~-._");
}

TEST_F(ClientTest, SubresourcesAreCreatedUnderTheirObject) {
  client->create(resources::kPod, object_json("ns", "p", ""), keep(), {.subresource = "binding"});
  const auto sent = api.take("POST");
  EXPECT_EQ(sent.request.target, "/api/v1/namespaces/ns/pods/p/binding?fieldManager=slurm-operator&fieldValidation=Strict");
  sent.reply(201, {{"kind", "Status"}, {"status", "Success"}});
  ASSERT_TRUE(result);
}

TEST_F(ClientTest, ListsSelectAndGoOn) {
  client->list(resources::kPod, "ns",
               {.field_selector = "spec.nodeName=n", .label_selector = "a=b", .limit = 2, .continue_token = "to/ken"}, keep());
  EXPECT_EQ(api.take("GET").request.target,
            "/api/v1/namespaces/ns/pods?labelSelector=a%3Db&fieldSelector=spec.nodeName%3Dn&limit=2&continue=to%2Fken");
}

TEST_F(ClientTest, MetadataAloneIsAskedForByAccept) {
  client->get(resources::kPod, {"ns", "p"}, keep(), {.metadata_only = true});
  EXPECT_EQ(api.take("GET").request.headers.at("accept"), kMetadataOnly);
  client->list(resources::kPod, "ns", {.metadata_only = true}, keep());
  EXPECT_EQ(api.take("GET").request.headers.at("accept"), kMetadataOnlyList);
}

Json page(std::string_view name, std::string_view more = "") {
  Json list = {{"kind", "PodList"}, {"metadata", {{"resourceVersion", "7"}}}, {"items", {object_json("ns", name, "1")}}};
  if (!more.empty()) list["metadata"].update({{"continue", more}, {"remainingItemCount", 1}});
  return list;
}

std::vector<std::string> names(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list["items"]) out.push_back(item["metadata"]["name"]);
  return out;
}

TEST_F(ClientTest, AListOfAllTakesPageAfterPage) {
  client->list_all(resources::kPod, "ns", {.label_selector = "a"}, keep());
  auto sent = api.take("GET");
  EXPECT_EQ(sent.request.target, "/api/v1/namespaces/ns/pods?labelSelector=a&limit=500");
  sent.reply(200, page("a", "one"));
  sent = api.take("GET");
  EXPECT_EQ(sent.request.target, "/api/v1/namespaces/ns/pods?labelSelector=a&limit=500&continue=one");
  EXPECT_EQ(calls, 0);
  sent.reply(200, page("b"));
  ASSERT_TRUE(result);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(names(*result), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ((*result)["metadata"], (Json{{"resourceVersion", "7"}})) << "it is no page any more";
}

TEST_F(ClientTest, AListWhoseVersionIsForgottenBeginsAnew) {
  client->list_all(resources::kPod, "ns", {.limit = 1}, keep());
  api.take("GET").reply(200, page("gone", "one"));
  Json expired = status_json(410, "Expired");
  expired["metadata"] = {{"continue", "the-rest-as-it-is-now"}};
  api.take("GET").reply(410, expired);
  auto sent = api.take("GET");
  EXPECT_EQ(sent.request.target, "/api/v1/namespaces/ns/pods?limit=1");
  sent.reply(200, page("a", "two"));
  api.take("GET", "/api/v1/namespaces/ns/pods?limit=1&continue=two").reply(200, page("b"));
  ASSERT_TRUE(result);
  EXPECT_EQ(names(*result), (std::vector<std::string>{"a", "b"}));
}

TEST_F(ClientTest, AListThatIsForgottenAgainAndAgainFails) {
  client->list_all(resources::kPod, "ns", {.limit = 1}, keep());
  for (int i = 0; i <= Client::kMaxListRestarts; ++i) {
    EXPECT_EQ(calls, 0);
    api.take("GET").reply(200, page("a", "one"));
    api.take("GET").reply(410, status_json(410, "Expired"));
  }
  ASSERT_EQ(calls, 1);
  EXPECT_EQ(result.error().code, ErrorCode::kExpired);
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(ClientTest, AnEvictionThatABudgetHoldsIsNoQuestionOfLoad) {
  client->create(resources::kPod, object_json("ns", "p", ""), keep(), {.subresource = "eviction"});
  Json status = status_json(429, "TooManyRequests", "Cannot evict pod");
  status["details"] = {{"causes", {{{"reason", "DisruptionBudget"}, {"message", "b needs 1"}}}}, {"retryAfterSeconds", 10}};
  api.take("POST").reply(429, status);
  ASSERT_FALSE(result) << "it is not sent again";
  EXPECT_EQ(result.error().code, ErrorCode::kBusy);
  EXPECT_EQ(result.error().reason, "DisruptionBudget");
}

}  // namespace
}  // namespace kube
