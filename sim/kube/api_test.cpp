#include "sim/kube/api.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/manual_loop.hpp"
#include "sim/base/random.hpp"

namespace sim {
namespace {

using core::Json;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Json j(const std::string& text) {
  return *core::parse_json(text);
}

struct KubeApiTest : testing::Test {
  core::ManualLoop loop;
  SeededRandom random{7};
  KubeApi api{loop, random};

  KubeApiTest() { (void)api.create(kube::resources::kNamespace, {{"metadata", {{"name", "ns"}}}}); }

  net::HttpResponse http(const std::string& method, const std::string& target, const std::string& body = "",
                         const std::string& type = "application/json") {
    return api.serve({method, target, {{"content-type", type}, {"user-agent", "test/1"}}, body});
  }
  static Json body(const net::HttpResponse& reply) { return j(reply.body); }

  static constexpr const char* kMaps = "/api/v1/namespaces/ns/configmaps";
  Json make_map(const std::string& name, const std::string& value = "1") {
    const auto reply = http("POST", kMaps, R"({"metadata": {"name": ")" + name + R"("}, "data": {"k": ")" + value + R"("}})");
    EXPECT_EQ(reply.status, 201) << reply.body;
    return body(reply);
  }
  static Json pod(const std::string& name, Json extra = Json::object()) {
    Json out{{"metadata", {{"name", name}, {"namespace", "ns"}}},
             {"spec", {{"containers", Json::array({Json{{"name", "c"}, {"image", "i:1"}}})}}}};
    out.merge_patch(extra);
    return out;
  }

  struct Watched {
    std::vector<Json> events;
    bool ended = false;
    [[nodiscard]] std::vector<std::string> summary() const {
      std::vector<std::string> out;
      for (const Json& event : events) {
        out.push_back(core::get_string(event, {"type"}) + " " + core::get_string(event, {"object", "metadata", "name"}));
      }
      return out;
    }
  };
  std::shared_ptr<Watched> watch(const std::string& target) {
    auto watched = std::make_shared<Watched>();
    const auto id = api.watch({"GET", target, {}, ""},
                              {[watched](const KubeApi::WatchEvent& event) { watched->events.push_back(j(event.line)); },
                               [watched] { watched->ended = true; }});
    EXPECT_TRUE(id) << (id ? "" : id.error().body);
    return watched;
  }
};

TEST_F(KubeApiTest, CreateFillsInIdentityAndDefaults) {
  const auto made = api.create(kube::resources::kPod, pod("p"));
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)["metadata"]["generation"], 1);
  EXPECT_EQ((*made)["metadata"]["uid"].get<std::string>().size(), 36U);
  EXPECT_EQ((*made)["spec"]["terminationGracePeriodSeconds"], 30);
  EXPECT_EQ((*made)["spec"]["containers"][0]["imagePullPolicy"], "IfNotPresent");
  EXPECT_EQ((*made)["status"]["phase"], "Pending");
  EXPECT_FALSE((*made)["metadata"]["managedFields"].empty());
}

TEST_F(KubeApiTest, SaysNoAsTheApiServerDoes) {
  make_map("m");
  const Json exists = body(http("POST", kMaps, R"({"metadata": {"name": "m"}})"));
  EXPECT_EQ(exists["message"], "configmaps \"m\" already exists");
  EXPECT_EQ(exists["reason"], "AlreadyExists");
  EXPECT_EQ(exists["code"], 409);
  const Json missing = body(http("GET", "/apis/apps/v1/namespaces/ns/statefulsets/x"));
  EXPECT_EQ(missing["message"], "statefulsets.apps \"x\" not found");
  EXPECT_EQ(missing["details"], j(R"({"name": "x", "group": "apps", "kind": "statefulsets"})"));
  EXPECT_EQ(http("GET", "/apis/nope/v1/things").status, 404);
  EXPECT_EQ(http("POST", "/api/v1/namespaces/other/configmaps", R"({"metadata": {"name": "m"}})").status, 404);
  EXPECT_EQ(http("POST", kMaps, "{").status, 400);
  const Json bad_name = body(http("POST", kMaps, R"({"metadata": {"name": "Bad_Name"}})"));
  EXPECT_EQ(bad_name["code"], 422);
  EXPECT_EQ(bad_name["details"]["causes"][0]["field"], "metadata.name");
}

TEST_F(KubeApiTest, UpdatesKnowTheirPreconditions) {
  Json map = make_map("m");
  const std::string path = std::string(kMaps) + "/m";
  map["data"]["k"] = "2";
  const Json second = body(http("PUT", path, map.dump()));
  EXPECT_EQ(second["data"]["k"], "2");
  EXPECT_NE(second["metadata"]["resourceVersion"], map["metadata"]["resourceVersion"]);
  const auto stale = http("PUT", path, map.dump());
  EXPECT_EQ(stale.status, 409);
  EXPECT_THAT(stale.body, HasSubstr("the object has been modified"));
  const auto other = http("PATCH", path, R"({"metadata": {"uid": "other"}})", "application/merge-patch+json");
  EXPECT_EQ(other.status, 422) << "a patch cannot change it; a PUT conflicts";
  EXPECT_THAT(other.body, HasSubstr("field is immutable"));
  map["metadata"]["uid"] = "other";
  map["metadata"].erase("resourceVersion");
  const auto put = http("PUT", path, map.dump());
  EXPECT_EQ(put.status, 409);
  EXPECT_THAT(put.body, HasSubstr("UID in precondition: other"));
}

TEST_F(KubeApiTest, AWriteThatChangesNothingIsNoWrite) {
  const Json map = make_map("m");
  const auto same = http("PATCH", std::string(kMaps) + "/m", R"({"data": {"k": "1"}})", "application/merge-patch+json");
  EXPECT_EQ(body(same)["metadata"]["resourceVersion"], map["metadata"]["resourceVersion"]);
}

TEST_F(KubeApiTest, GenerationCountsSpecChangesOnly) {
  ASSERT_TRUE(api.create(kube::resources::kPod, pod("p")));
  const std::string path = "/api/v1/namespaces/ns/pods/p";
  const std::string merge = "application/merge-patch+json";
  EXPECT_EQ(body(http("PATCH", path, R"({"metadata": {"labels": {"a": "b"}}})", merge))["metadata"]["generation"], 1);
  EXPECT_EQ(body(http("PATCH", path + "/status", R"({"status": {"phase": "Running"}})", merge))["metadata"]["generation"], 1);
  EXPECT_EQ(body(http("PATCH", path, R"({"spec": {"activeDeadlineSeconds": 5}})", merge))["metadata"]["generation"], 2);
}

TEST_F(KubeApiTest, StatusAndSpecDoNotTouchEachOther) {
  ASSERT_TRUE(api.create(kube::resources::kPod, pod("p")));
  const std::string path = "/api/v1/namespaces/ns/pods/p";
  const std::string merge = "application/merge-patch+json";
  http("PATCH", path + "/status",
       R"({"status": {"phase": "Running"}, "spec": {"activeDeadlineSeconds": 9}, "metadata": {"labels": {"x": "y"}}})", merge);
  http("PATCH", path, R"({"status": {"phase": "Failed"}})", merge);
  const Json now = body(http("GET", path));
  EXPECT_EQ(now["status"]["phase"], "Running");
  EXPECT_FALSE(now["spec"].contains("activeDeadlineSeconds"));
  EXPECT_EQ(http("GET", std::string(kMaps) + "/m/status").status, 404) << "a kind without it";
}

TEST_F(KubeApiTest, JsonPatchTestsGuard) {
  make_map("m");
  const std::string path = std::string(kMaps) + "/m";
  const std::string type = "application/json-patch+json";
  EXPECT_EQ(
      http("PATCH", path,
           R"([{"op": "test", "path": "/data/k", "value": "1"}, {"op": "replace", "path": "/data/k", "value": "2"}])", type)
          .status,
      200);
  const auto failed =
      http("PATCH", path,
           R"([{"op": "test", "path": "/data/k", "value": "1"}, {"op": "replace", "path": "/data/k", "value": "3"}])", type);
  EXPECT_EQ(failed.status, 422);
  EXPECT_EQ(body(http("GET", path))["data"]["k"], "2");
}

TEST_F(KubeApiTest, StrictValidationRefusesUnknownFields) {
  const Json misspelt = pod("p", {{"spec", {{"nodeSelectr", {{"a", "b"}}}}}});
  const auto strict = http("POST", "/api/v1/namespaces/ns/pods?fieldValidation=Strict", misspelt.dump());
  EXPECT_EQ(strict.status, 400);
  EXPECT_THAT(strict.body, HasSubstr("unknown field \\\"spec.nodeSelectr\\\""));
  EXPECT_EQ(http("POST", "/api/v1/namespaces/ns/pods", misspelt.dump()).status, 201);
}

TEST_F(KubeApiTest, ImmutableFieldsStay) {
  http("POST", kMaps, R"({"metadata": {"name": "frozen"}, "immutable": true, "data": {"k": "1"}})");
  EXPECT_EQ(http("PATCH", std::string(kMaps) + "/frozen", R"({"data": {"k": "2"}})", "application/merge-patch+json").status,
            422);
  ASSERT_TRUE(api.create(kube::resources::kPod, pod("p")));
  const auto renamed =
      http("PATCH", "/api/v1/namespaces/ns/pods/p", R"({"spec": {"hostname": "x"}})", "application/merge-patch+json");
  EXPECT_EQ(renamed.status, 422);
  EXPECT_THAT(renamed.body, HasSubstr("pod updates may not change fields other than"));
}

TEST_F(KubeApiTest, ApplyCreatesChangesAndLeavesAlone) {
  const std::string path = std::string(kMaps) + "/m?fieldManager=op&force=true";
  const std::string type = "application/apply-patch+yaml";
  const std::string first =
      R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1", "b": "2"}})";
  const auto created = http("PATCH", path, first, type);
  EXPECT_EQ(created.status, 201);
  const auto again = http("PATCH", path, first, type);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(body(again)["metadata"]["resourceVersion"], body(created)["metadata"]["resourceVersion"])
      << "no difference, no write";
  http("PATCH", std::string(kMaps) + "/m?fieldManager=user", R"({"data": {"c": "3"}})", "application/merge-patch+json");
  const auto less =
      http("PATCH", path, R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}})", type);
  EXPECT_EQ(body(less)["data"], j(R"({"a": "1", "c": "3"})"));
  const auto refused =
      http("PATCH", std::string(kMaps) + "/m?fieldManager=third",
           R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"c": "4"}})", type);
  EXPECT_EQ(refused.status, 409);
  EXPECT_THAT(refused.body, HasSubstr("Apply failed with 1 conflict: conflict with \\\"user\\\" using v1: .data.c"));
}

TEST_F(KubeApiTest, ApplyOverAnObjectOfOthersOwnsOnlyWhatItNames) {
  make_map("m");
  const std::string type = "application/apply-patch+yaml";
  const std::string path = std::string(kMaps) + "/m?fieldManager=op&force=true";
  http("PATCH", path, R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"mine": "1"}})", type);
  const auto none = http("PATCH", path, R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}})", type);
  EXPECT_EQ(body(none)["data"], j(R"({"k": "1"})"));
}

TEST_F(KubeApiTest, DeletesKnowTheirPreconditions) {
  const Json map = make_map("m");
  const std::string path = std::string(kMaps) + "/m";
  EXPECT_EQ(http("DELETE", path, R"({"preconditions": {"uid": "other"}})").status, 409);
  EXPECT_EQ(http("DELETE", path, R"({"preconditions": {"resourceVersion": "1"}})").status, 409);
  const auto gone = http("DELETE", path, Json{{"preconditions", {{"uid", map["metadata"]["uid"]}}}}.dump());
  EXPECT_EQ(gone.status, 200);
  EXPECT_EQ(body(gone)["status"], "Success");
  EXPECT_EQ(body(gone)["details"]["uid"], map["metadata"]["uid"]);
  EXPECT_EQ(http("DELETE", path).status, 404);
}

TEST_F(KubeApiTest, FinalizersHoldAndLastOneLetsGo) {
  http("POST", kMaps, R"({"metadata": {"name": "m", "finalizers": ["x/y"]}})");
  const std::string path = std::string(kMaps) + "/m";
  const Json deleting = body(http("DELETE", path));
  EXPECT_TRUE(deleting["metadata"].contains("deletionTimestamp"));
  const auto added = http("PATCH", path, R"({"metadata": {"finalizers": ["x/y", "z/w"]}})", "application/merge-patch+json");
  EXPECT_EQ(added.status, 422);
  EXPECT_THAT(added.body, HasSubstr("no new finalizers can be added"));
  EXPECT_EQ(http("PATCH", path, R"({"metadata": {"finalizers": null}})", "application/merge-patch+json").status, 200);
  EXPECT_EQ(http("GET", path).status, 404);
}

TEST_F(KubeApiTest, PodsGoGracefullyOnceTheyAreBound) {
  ASSERT_TRUE(api.create(kube::resources::kPod, pod("free")));
  ASSERT_TRUE(api.create(kube::resources::kPod, pod("bound", {{"spec", {{"nodeName", "n"}}}})));
  http("DELETE", "/api/v1/namespaces/ns/pods/free");
  EXPECT_EQ(http("GET", "/api/v1/namespaces/ns/pods/free").status, 404);
  const Json going = body(http("DELETE", "/api/v1/namespaces/ns/pods/bound"));
  EXPECT_EQ(going["metadata"]["deletionGracePeriodSeconds"], 30);
  EXPECT_EQ(going["metadata"]["generation"], 2);
  EXPECT_EQ(http("GET", "/api/v1/namespaces/ns/pods/bound").status, 200);
  http("DELETE", "/api/v1/namespaces/ns/pods/bound?gracePeriodSeconds=0");
  EXPECT_EQ(http("GET", "/api/v1/namespaces/ns/pods/bound").status, 404);
}

TEST_F(KubeApiTest, ListsInPagesOfOneRevision) {
  for (const char* name : {"a", "b", "c", "d"}) make_map(name);
  const Json first = body(http("GET", std::string(kMaps) + "?limit=3"));
  EXPECT_EQ(first["items"].size(), 3U);
  EXPECT_EQ(first["metadata"]["remainingItemCount"], 1);
  EXPECT_FALSE(first["items"][0].contains("kind"));
  http("DELETE", std::string(kMaps) + "/d");
  make_map("e");
  const std::string token = first["metadata"]["continue"];
  const Json second = body(http("GET", std::string(kMaps) + "?limit=3&continue=" + token));
  ASSERT_EQ(second["items"].size(), 1U);
  EXPECT_EQ(second["items"][0]["metadata"]["name"], "d") << "as it was at the first page";
  EXPECT_EQ(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
  api.compact();
  const auto expired = http("GET", std::string(kMaps) + "?limit=3&continue=" + token);
  EXPECT_EQ(expired.status, 410);
  const std::string rest = body(expired)["metadata"]["continue"];
  EXPECT_EQ(body(http("GET", std::string(kMaps) + "?continue=" + rest))["items"][0]["metadata"]["name"], "e") << "as it is now";
}

TEST_F(KubeApiTest, ListsAreAsOldAsAsked) {
  const std::string rv = make_map("a")["metadata"]["resourceVersion"];
  make_map("b");
  const auto list = [&](const std::string& query) { return http("GET", std::string(kMaps) + "?" + query); };
  const Json exact = body(list("resourceVersionMatch=Exact&resourceVersion=" + rv));
  EXPECT_EQ(exact["items"].size(), 1U);
  EXPECT_EQ(exact["metadata"]["resourceVersion"], rv);
  EXPECT_EQ(body(list("resourceVersionMatch=NotOlderThan&resourceVersion=" + rv))["items"].size(), 2U);
  for (const char* nonsense : {"resourceVersionMatch=Exact", "resourceVersionMatch=Exact&resourceVersion=0",
                               "resourceVersionMatch=Newest&resourceVersion=1", "sendInitialEvents=true"}) {
    EXPECT_EQ(list(nonsense).status, 422) << nonsense;
  }
  api.compact();
  EXPECT_EQ(list("resourceVersionMatch=Exact&resourceVersion=" + rv).status, 410);
}

TEST_F(KubeApiTest, SelectorsSelect) {
  http("POST", kMaps, R"({"metadata": {"name": "a", "labels": {"app": "x", "tier": "1"}}})");
  http("POST", kMaps, R"({"metadata": {"name": "b", "labels": {"app": "y"}}})");
  http("POST", kMaps, R"({"metadata": {"name": "c"}})");
  const auto names = [&](const std::string& query) {
    std::vector<std::string> out;
    const Json list = body(http("GET", std::string(kMaps) + "?" + query));
    for (const Json& item : list["items"]) out.push_back(item["metadata"]["name"]);
    return out;
  };
  EXPECT_THAT(names("labelSelector=app%3Dx"), ElementsAre("a"));
  EXPECT_THAT(names("labelSelector=app!%3Dx"), ElementsAre("b", "c"));
  EXPECT_THAT(names("labelSelector=app%20in%20(x,y),!tier"), ElementsAre("b"));
  EXPECT_THAT(names("labelSelector=app%20notin%20(x)"), ElementsAre("b", "c"));
  EXPECT_THAT(names("labelSelector=tier"), ElementsAre("a"));
  EXPECT_THAT(names("fieldSelector=metadata.name%3Dc"), ElementsAre("c"));
}

TEST_F(KubeApiTest, WatchesTellWhatChanged) {
  const Json first = make_map("a");
  const auto watched =
      watch(std::string(kMaps) + "?watch=true&resourceVersion=" + first["metadata"]["resourceVersion"].get<std::string>());
  make_map("b");
  http("PATCH", std::string(kMaps) + "/a", R"({"data": {"k": "2"}})", "application/merge-patch+json");
  http("DELETE", std::string(kMaps) + "/b");
  EXPECT_THAT(watched->summary(), ElementsAre("ADDED b", "MODIFIED a", "DELETED b"));
  EXPECT_EQ(watched->events[1]["object"]["kind"], "ConfigMap");
  const auto resumed = watch(std::string(kMaps) + "?watch=true&resourceVersion=" +
                             watched->events[0]["object"]["metadata"]["resourceVersion"].get<std::string>());
  EXPECT_THAT(resumed->summary(), ElementsAre("MODIFIED a", "DELETED b"));
}

TEST_F(KubeApiTest, ASelectorTurnsChangesIntoComingAndGoing) {
  make_map("a");
  const auto watched =
      watch(std::string(kMaps) + "?watch=true&labelSelector=x%3D1&resourceVersion=" + std::to_string(api.store().revision()));
  const auto label = [&](const char* value) {
    http("PATCH", std::string(kMaps) + "/a", std::string(R"({"metadata": {"labels": {"x": )") + value + "}}}",
         "application/merge-patch+json");
  };
  label("\"1\"");
  label("\"2\"");
  label("\"3\"");
  EXPECT_THAT(watched->summary(), ElementsAre("ADDED a", "DELETED a"));
  EXPECT_EQ(watched->events[1]["object"]["metadata"]["labels"]["x"], "1") << "as it was when it was last seen";
}

TEST_F(KubeApiTest, AWatchFromForgottenHistoryGets410) {
  const Json first = make_map("a");
  make_map("b");
  api.compact();
  const auto watched =
      watch(std::string(kMaps) + "?watch=true&resourceVersion=" + first["metadata"]["resourceVersion"].get<std::string>());
  EXPECT_THAT(watched->events, IsEmpty());
  loop.run_ready();
  ASSERT_EQ(watched->events.size(), 1U);
  EXPECT_EQ(watched->events[0]["type"], "ERROR");
  EXPECT_EQ(watched->events[0]["object"]["code"], 410);
  EXPECT_TRUE(watched->ended);
}

TEST_F(KubeApiTest, WatchListSendsAllThenABookmark) {
  make_map("a");
  make_map("b");
  const std::string target =
      std::string(kMaps) + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
  const auto watched = watch(target);
  EXPECT_THAT(watched->summary(), ElementsAre("ADDED a", "ADDED b", "BOOKMARK "));
  EXPECT_EQ(watched->events[2]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
  EXPECT_EQ(watched->events[2]["object"]["metadata"]["resourceVersion"], std::to_string(api.store().revision()));
  make_map("c");
  EXPECT_EQ(watched->summary().back(), "ADDED c");
  api.options().watch_list = false;
  const auto refused = api.watch({"GET", target, {}, ""}, {[](const KubeApi::WatchEvent&) {}, [] {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 422);
}

TEST_F(KubeApiTest, WithoutProgressOfEtcdAWatchListIsAnError) {
  make_map("a");
  api.options().watch_progress = false;
  const auto watched = watch(std::string(kMaps) +
                             "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true");
  loop.run_ready();
  ASSERT_EQ(watched->events.size(), 1U);
  EXPECT_EQ(watched->events[0]["type"], "ERROR");
  EXPECT_EQ(watched->events[0]["object"]["code"], 500);
  EXPECT_TRUE(watched->ended);
  EXPECT_EQ(watch(std::string(kMaps) + "?watch=true")->summary().front(), "ADDED a") << "other watches are served";
}

TEST_F(KubeApiTest, WatchesEndInTimeAndSendBookmarks) {
  const auto watched = watch(std::string(kMaps) + "?watch=true&allowWatchBookmarks=true&timeoutSeconds=25&resourceVersion=" +
                             std::to_string(api.store().revision()));
  loop.advance(24s);
  EXPECT_EQ(watched->events.size(), 2U);
  EXPECT_FALSE(watched->ended);
  loop.advance(1s);
  EXPECT_EQ(watched->events.size(), 3U) << "one more at the end";
  EXPECT_TRUE(watched->ended);
  EXPECT_EQ(api.watch_count(), 0U);
}

TEST_F(KubeApiTest, TheFutureIsTooLarge) {
  EXPECT_EQ(http("GET", std::string(kMaps) + "?resourceVersion=99999").status, 504);
  const auto refused = api.watch({"GET", std::string(kMaps) + "?watch=true&resourceVersion=99999", {}, ""},
                                 {[](const KubeApi::WatchEvent&) {}, [] {}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(j(refused.error().body)["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
}

TEST_F(KubeApiTest, LeasesNeedAResourceVersion) {
  const std::string path = "/apis/coordination.k8s.io/v1/namespaces/ns/leases";
  Json lease = body(http("POST", path, R"({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}})"));
  lease["spec"]["holderIdentity"] = "b";
  EXPECT_EQ(http("PUT", path + "/l", lease.dump()).status, 200);
  EXPECT_EQ(http("PUT", path + "/l", lease.dump()).status, 409);
  lease["metadata"].erase("resourceVersion");
  EXPECT_EQ(http("PUT", path + "/l", lease.dump()).status, 422);
}

TEST_F(KubeApiTest, ATerminatingNamespaceTakesNothingNew) {
  http("DELETE", "/api/v1/namespaces/ns");
  const auto refused = http("POST", kMaps, R"({"metadata": {"name": "m"}})");
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(body(refused)["details"]["causes"][0]["reason"], "NamespaceTerminating");
}

TEST_F(KubeApiTest, TolerationsOfAPodAreAddedOrLastLonger) {
  ASSERT_TRUE(api.create(kube::resources::kPod, j(R"({"metadata": {"name": "p", "namespace": "ns"},
      "spec": {"tolerations": [{"key": "a", "operator": "Exists"}], "containers": [{"name": "c", "image": "i"}]}})")));
  const auto patch = [&](const std::string& operations) {
    return http("PATCH", "/api/v1/namespaces/ns/pods/p", operations, "application/json-patch+json").status;
  };
  EXPECT_EQ(patch(R"([{"op": "remove", "path": "/spec/tolerations/1/tolerationSeconds"}])"), 200);
  EXPECT_EQ(patch(R"([{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "b", "operator": "Exists"}}])"), 200);
  EXPECT_EQ(patch(R"([{"op": "remove", "path": "/spec/tolerations/0"}])"), 422);
  EXPECT_EQ(patch(R"([{"op": "replace", "path": "/spec/tolerations/0/key", "value": "c"}])"), 422);
}

TEST_F(KubeApiTest, AdmissionMayRefuse) {
  make_map("m");
  api.add_admission([](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || request.user != "test") return std::nullopt;
    return make_status(403, "Forbidden", "not you");
  });
  EXPECT_EQ(http("DELETE", std::string(kMaps) + "/m").status, 403);
  EXPECT_TRUE(api.remove(kube::resources::kConfigMap, {"ns", "m"}));
}

TEST_F(KubeApiTest, EvictionsRespectBudgets) {
  ASSERT_TRUE(api.create(kube::resources::kPod, pod("p", {{"metadata", {{"labels", {{"app", "x"}}}}}})));
  api.modify(
      kube::resources::kPod, {"ns", "p"}, [](Json& p) { p["status"]["phase"] = "Running"; }, {}, "status");
  ASSERT_TRUE(api.create(kube::resources::kPodDisruptionBudget,
                         {{"metadata", {{"name", "b"}, {"namespace", "ns"}}},
                          {"spec", {{"maxUnavailable", 0}, {"selector", {{"matchLabels", {{"app", "x"}}}}}}}}));
  const auto refused = http("POST", "/api/v1/namespaces/ns/pods/p/eviction", R"({"metadata": {"name": "p"}})");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(body(refused)["details"]["causes"][0]["reason"], "DisruptionBudget");
  api.modify(
      kube::resources::kPodDisruptionBudget, {"ns", "b"}, [](Json& b) { b["status"]["disruptionsAllowed"] = 1; }, {}, "status");
  const auto evict_if = [&](const std::string& version) {
    return http("POST", "/api/v1/namespaces/ns/pods/p/eviction",
                R"({"metadata": {"name": "p"}, "deleteOptions": {"preconditions": {"resourceVersion": ")" + version + R"("}}})")
        .status;
  };
  ASSERT_EQ(evict_if("1"), 409);
  api.modify(
      kube::resources::kPodDisruptionBudget, {"ns", "b"}, [](Json& b) { b["status"]["disruptionsAllowed"] = 1; }, {}, "status");
  EXPECT_EQ(evict_if((*api.peek(kube::resources::kPod, {"ns", "p"}))["metadata"]["resourceVersion"]), 201);
}

TEST_F(KubeApiTest, AnEvictionNamesItsPod) {
  ASSERT_TRUE(api.create(kube::resources::kPod, pod("p")));
  const auto refused = http("POST", "/api/v1/namespaces/ns/pods/p/eviction", R"({"metadata": {"name": "q"}})");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(body(refused)["message"], "name in URL does not match name in Eviction object");
}

TEST_F(KubeApiTest, TokensAreMadeForAccounts) {
  const std::string path = "/api/v1/namespaces/ns/serviceaccounts/a/token";
  EXPECT_EQ(http("POST", path, "{}").status, 404);
  ASSERT_EQ(http("POST", "/api/v1/namespaces/ns/serviceaccounts", R"({"metadata": {"name": "a"}})").status, 201);
  const auto made = http("POST", path, R"({"spec": {"audiences": ["x"], "expirationSeconds": 600}})");
  ASSERT_EQ(made.status, 201);
  EXPECT_EQ(body(made)["kind"], "TokenRequest");
  EXPECT_EQ(body(made)["spec"]["audiences"], Json({"x"}));
  EXPECT_FALSE(body(made)["status"]["token"].get<std::string>().empty());
  EXPECT_EQ(core::parse_rfc3339(body(made)["status"]["expirationTimestamp"].get<std::string>())->since_epoch -
                core::parse_rfc3339(body(made)["metadata"]["creationTimestamp"].get<std::string>())->since_epoch,
            600s);
  EXPECT_NE(body(http("POST", path, "{}"))["status"]["token"], body(made)["status"]["token"]);
  EXPECT_EQ(body(http("POST", path, "{}"))["spec"]["expirationSeconds"], 3600);
  EXPECT_EQ(http("POST", path, R"({"spec": {"expirationSeconds": 599}})").status, 422);
  EXPECT_EQ(http("POST", path, R"({"metadata": {"name": "b"}})").status, 422);
  EXPECT_EQ(http("POST", path, R"({"spec": {"boundObjectRef": {"kind": "Pod", "name": "none"}}})").status, 404);
  EXPECT_EQ(http("POST", path, R"({"spec": {"boundObjectRef": {"kind": "Service", "name": "none"}}})").status, 400);
  ASSERT_TRUE(api.create(kube::resources::kSecret, {{"metadata", {{"name", "s"}, {"namespace", "ns"}}}}));
  EXPECT_EQ(http("POST", path, R"({"spec": {"boundObjectRef": {"kind": "Secret", "name": "s"}}})").status, 201);
  EXPECT_EQ(http("POST", path, R"({"spec": {"boundObjectRef": {"kind": "Secret", "name": "s", "uid": "old"}}})").status, 409);
  EXPECT_EQ(http("GET", path).status, 405);
}

struct MetadataTest : KubeApiTest {
  static constexpr const char* kOne = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  static constexpr const char* kList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  net::HttpResponse get(const std::string& target, const std::string& accept) {
    return api.serve({"GET", target, {{"accept", accept}}, ""});
  }
};

TEST_F(MetadataTest, ObjectsAndListsComeAsMetadata) {
  make_map("a");
  const Json one = body(get(std::string(kMaps) + "/a", kOne));
  EXPECT_EQ(one["kind"], "PartialObjectMetadata");
  EXPECT_EQ(one["apiVersion"], "meta.k8s.io/v1");
  EXPECT_EQ(one["metadata"]["name"], "a");
  EXPECT_FALSE(one.contains("data"));
  const Json list = body(get(std::string(kMaps) + "?limit=1", kList));
  EXPECT_EQ(list["kind"], "PartialObjectMetadataList");
  EXPECT_TRUE(list["metadata"].contains("resourceVersion"));
  EXPECT_EQ(list["items"], Json::array({one}));
}

TEST_F(MetadataTest, TheFirstKnownClauseCounts) {
  make_map("a");
  const std::string path = std::string(kMaps) + "/a";
  EXPECT_TRUE(body(get(path, "application/json")).contains("data"));
  EXPECT_TRUE(body(get(path, "application/json;as=Table;g=meta.k8s.io;v=v9, application/json")).contains("data"));
  EXPECT_FALSE(
      body(get(path, std::string("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata, ") + kOne)).contains("data"));
  EXPECT_EQ(get(path, "application/json;as=Nothing;g=meta.k8s.io;v=v1").status, 406);
  EXPECT_EQ(get(path, kList).status, 406);
  EXPECT_EQ(get(kMaps, kOne).status, 406);
  EXPECT_EQ(get(std::string(kMaps) + "/none", kOne).status, 404) << "errors are errors";
}

TEST_F(MetadataTest, WatchesTellMetadataToo) {
  make_map("a");
  std::vector<Json> events;
  const auto id = api.watch({"GET",
                             std::string(kMaps) + "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
                             {{"accept", kOne}},
                             ""},
                            {[&](const KubeApi::WatchEvent& event) { events.push_back(j(event.line)); }, [] {}});
  ASSERT_TRUE(id);
  make_map("b");
  ASSERT_EQ(events.size(), 3U);
  for (const Json& event : events) EXPECT_EQ(event["object"]["kind"], "PartialObjectMetadata") << event;
  EXPECT_EQ(events[2]["object"]["metadata"]["name"], "b");
  EXPECT_FALSE(events[2]["object"].contains("data"));
  EXPECT_EQ(events[1]["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

TEST_F(KubeApiTest, ScaleChangesReplicasOnly) {
  Json set{{"metadata", {{"name", "s"}, {"namespace", "ns"}}},
           {"spec",
            {{"selector", {{"matchLabels", {{"a", "b"}}}}},
             {"serviceName", "s"},
             {"template", {{"metadata", {{"labels", {{"a", "b"}}}}}, {"spec", pod("x")["spec"]}}}}}};
  ASSERT_TRUE(api.create(kube::resources::kStatefulSet, set));
  const std::string path = "/apis/apps/v1/namespaces/ns/statefulsets/s";
  EXPECT_EQ(body(http("GET", path + "/scale"))["status"]["selector"], "a=b");
  EXPECT_EQ(http("PATCH", path + "/scale", R"({"spec": {"replicas": 4}})", "application/merge-patch+json").status, 200);
  const Json now = body(http("GET", path));
  EXPECT_EQ(now["spec"]["replicas"], 4);
  EXPECT_EQ(now["metadata"]["generation"], 2);
}

TEST_F(KubeApiTest, OldHistoryIsForgottenByAge) {
  const Json first = make_map("a");
  loop.advance(301s);
  make_map("b");
  loop.advance(301s);
  make_map("c");
  EXPECT_GE(api.store().compacted(), std::stoull(first["metadata"]["resourceVersion"].get<std::string>()));
}

}  // namespace
}  // namespace sim
