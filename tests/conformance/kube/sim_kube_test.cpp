// Sends the same requests to a real API server (that of KUBECONFIG) and to SimKube's. The answers must be the same, except for
// fields that differ between any two servers, such as revisions, uids and times. Skipped if KUBECONFIG is not set.
//
// Works in a namespace of its own that it deletes at the end. Keeps the real cluster's controllers away from the compared
// objects: pods name a scheduler that does not exist, sets have no replicas.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <regex>
#include <set>
#include <thread>

#include "core/json.hpp"
#include "core/testing/manual_loop.hpp"
#include "real_api.hpp"
#include "sim/base/random.hpp"
#include "sim/kube/api.hpp"

namespace sim {
namespace {

using core::Json;
using namespace std::chrono_literals;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual net::HttpResponse call(const net::HttpRequest& request) = 0;
};

class RealBackend final : public Backend {
 public:
  net::HttpResponse call(const net::HttpRequest& request) override { return api_.call(request); }

 private:
  RealApi api_;
};

class SimBackend final : public Backend {
 public:
  SimBackend() {
    for (KubeKind& kind : project_kinds()) api.serve_kind(std::move(kind));
  }

  net::HttpResponse call(const net::HttpRequest& request) override {
    if (!KubeApi::is_watch(request)) return api.serve(request);
    net::HttpResponse reply{200, {}, ""};
    bool ended = false;
    const auto id =
        api.watch(request, {[&](const KubeApi::WatchEvent& event) { reply.body += event.line; }, [&] { ended = true; }});
    if (!id) return id.error();
    loop_.run_ready();
    for (int i = 0; i < 100 && !ended; ++i) loop_.advance(100ms);
    return reply;
  }

 private:
  core::ManualLoop loop_;
  SeededRandom random_{1};

 public:
  KubeApi api{loop_, random_};
};

/// A server, and what its clients have learnt of it. In requests, "${uid:name}" and "${rv:name}" stand for the last values of
/// an object, "${old:name}" for the resourceVersion before, and "${start}" for the revision at the beginning.
class Client {
 public:
  Client(Backend& backend, std::string ns) : backend_(backend), ns_(std::move(ns)) {}

  struct Answer {
    int status = 0;
    std::string body;
  };

  Answer call(net::HttpRequest request) {
    request.headers["user-agent"] = "conformance/1";
    request.target = fill(request.target);
    request.body = fill(request.body);
    const net::HttpResponse reply = backend_.call(request);
    learn(reply.body);
    return {reply.status, mask(reply.body)};
  }

  [[nodiscard]] const std::map<std::string, std::string>& known() const { return known_; }

 private:
  std::string fill(std::string text) const {
    const auto replace = [&](const std::string& from, const std::string& to) {
      for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    };
    replace("${ns}", ns_);
    for (const auto& [name, value] : known_) replace("${" + name + "}", value);
    // Replaces the uids of objects that were never seen.
    text = std::regex_replace(text, std::regex(R"(\$\{uid:[^}]*\})"), "00000000-0000-0000-0000-000000000000");
    return std::regex_replace(text, std::regex(R"(\$\{(rv|old):[^}]*\})"), "1");
  }

  void learn(const std::string& body) {
    const auto json = core::parse_json(body);
    if (!json || !json->contains("metadata")) return;
    const std::string rv = core::get_string(*json, {"metadata", "resourceVersion"});
    if (core::get_string(*json, {"kind"}).ends_with("List")) {
      known_["start"] = rv;
      return;
    }
    const std::string name = core::get_string(*json, {"metadata", "name"});
    const std::string uid = core::get_string(*json, {"metadata", "uid"});
    if (name.empty() || uid.empty()) return;
    std::string& now = known_["rv:" + name];
    if (now != rv && !now.empty()) known_["old:" + name] = now;
    now = rv;
    known_["uid:" + name] = uid;
  }

  std::string mask(std::string text) const {
    text = std::regex_replace(text, std::regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), "UID");
    text = std::regex_replace(text, std::regex(R"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z)"), "TIME");
    text = std::regex_replace(text, std::regex(R"((resource version: [0-9]+) \([0-9]+\))"), "$1 (RV)");
    text = std::regex_replace(text, std::regex(R"((resource version: [0-9]+, current:) [0-9]+)"), "$1 RV");
    text = std::regex_replace(text, std::regex(R"((precondition|record) \([0-9]+\))"), "$1 (RV)");
    return std::regex_replace(text, std::regex(ns_), "NS");
  }

  Backend& backend_;
  std::string ns_;
  std::map<std::string, std::string> known_;
};

/// Removes fields that differ between any two servers, such as uids and times.
void strip(Json& json) {
  if (json.is_array()) {
    for (Json& item : json) strip(item);
    return;
  }
  if (!json.is_object()) return;
  for (const char* name :
       {"managedFields", "resourceVersion", "continue", "clusterIP", "clusterIPs", "remainingItemCount", "selfLink"}) {
    json.erase(name);
  }
  if (json.contains("metadata") && json["metadata"].is_object()) {
    json["metadata"].erase("creationTimestamp");
    if (json.value("kind", "") == "Status") json["metadata"] = Json::object();
  }
  // Some kinds are validated twice, so the same cause may occur twice.
  if (json.contains("causes")) {
    Json causes = Json::array();
    for (const Json& cause : json["causes"]) {
      if (std::find(causes.begin(), causes.end(), cause) == causes.end()) causes.push_back(cause);
    }
    json["causes"] = std::move(causes);
  }
  for (auto& [name, value] : json.items()) strip(value);
}

struct Pair {
  RealBackend real_backend;
  SimBackend sim_backend;
  std::string ns = new_namespace();
  Client real{real_backend, ns};
  Client sim{sim_backend, ns};

  Pair() {
    const net::HttpRequest create{
        "POST", "/api/v1/namespaces", {{"content-type", "application/json"}}, R"({"metadata": {"name": ")" + ns + "\"}}"};
    (void)real.call(create);
    (void)sim.call(create);
    // Waits for what the cluster's own controllers create in a new namespace.
    for (int i = 0;
         i < 1200 && real_backend.call({"GET", "/api/v1/namespaces/" + ns + "/serviceaccounts/default"}).status != 200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
  ~Pair() { (void)real.call({"DELETE", "/api/v1/namespaces/" + ns}); }
};

class SimKubeConformance : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::getenv("KUBECONFIG") != nullptr) pair = new Pair;
  }
  static void TearDownTestSuite() {
    delete pair;
    pair = nullptr;
  }
  void SetUp() override {
    if (pair == nullptr) GTEST_SKIP() << "KUBECONFIG is not set";
  }

  /// Sends one request to both servers. Returns how the answers differ, or "". The real answer may have more fields (defaults).
  static std::string compare(const net::HttpRequest& request) {
    const Client::Answer real = pair->real.call(request);
    const Client::Answer sim = pair->sim.call(request);
    std::string where = request.method + " " + request.target + " " + request.body;
    if (real.status != sim.status)
      return where + "\n  real: " + std::to_string(real.status) + " " + real.body + "\n  sim:  " + std::to_string(sim.status) +
             " " + sim.body;
    auto real_json = core::parse_json(real.body);
    auto sim_json = core::parse_json(sim.body);
    if (!real_json || !sim_json) return real.body == sim.body ? "" : where + "\n  real: " + real.body + "\n  sim:  " + sim.body;
    for (Json* json : {&*real_json, &*sim_json}) {
      strip(*json);
      // The managers of a conflict come in any order, because Kubernetes keeps them in a map.
      const Json* causes = core::find(*json, {"details", "causes"});
      if (causes == nullptr || !causes->is_array()) continue;
      auto sorted = causes->get<std::vector<Json>>();
      std::sort(sorted.begin(), sorted.end());
      (*json)["details"]["causes"] = std::move(sorted);
    }
    const bool failure = core::get_string(*real_json, {"status"}) == "Failure";
    const bool same = failure ? *real_json == *sim_json : core::contains(*real_json, *sim_json);
    if (same) return "";
    std::string differences;
    for (const std::string& path : core::diff_paths(*real_json, *sim_json)) differences += " " + path;
    return where + "\n  real: " + real_json->dump() + "\n  sim:  " + sim_json->dump() + "\n  at:  " + differences;
  }
  static void both(const std::string& method, const std::string& target, const std::string& body = "",
                   const std::string& type = "application/json") {
    const std::string difference = compare({method, target, {{"content-type", type}}, body});
    EXPECT_TRUE(difference.empty()) << difference;
  }
  static void merge(const std::string& target, const std::string& body) {
    both("PATCH", target, body, "application/merge-patch+json");
  }
  static void apply(const std::string& target, const std::string& body) {
    both("PATCH", target, body, "application/apply-patch+yaml");
  }

  static constexpr const char* kMaps = "/api/v1/namespaces/${ns}/configmaps";
  static constexpr const char* kPods = "/api/v1/namespaces/${ns}/pods";
  static std::string map(const std::string& name) { return std::string(kMaps) + "/" + name; }
  static std::string pod_body(const std::string& name, const std::string& more = "") {
    return R"({"metadata": {"name": ")" + name +
           R"("}, "spec": {"schedulerName": "nobody", "automountServiceAccountToken": false,)" + more +
           R"( "containers": [{"name": "c", "image": "i:1"}]}})";
  }

  static Pair* pair;
};
Pair* SimKubeConformance::pair = nullptr;

TEST_F(SimKubeConformance, ObjectsComeAndGo) {
  both("GET", map("m"));
  both("POST", kMaps, R"({"metadata": {"name": "m", "labels": {"a": "b"}}, "data": {"k": "1"}})");
  both("POST", kMaps, R"({"metadata": {"name": "m"}})");
  both("GET", map("m"));
  both("PUT", map("m"), R"({"metadata": {"name": "m", "resourceVersion": "${rv:m}"}, "data": {"k": "2"}})");
  both("PUT", map("m"), R"({"metadata": {"name": "m", "resourceVersion": "${old:m}"}, "data": {"k": "3"}})");
  both("PUT", map("m"), R"({"metadata": {"name": "m"}, "data": {"k": "4"}})");
  both("PUT", map("m"), R"({"metadata": {"name": "m", "uid": "${uid:x}"}, "data": {"k": "5"}})");
  both("PUT", map("m"), R"({"metadata": {"name": "other"}, "data": {}})");
  both("PUT", map("missing"), R"({"metadata": {"name": "missing"}, "data": {}})");
  both("DELETE", map("m"), R"({"preconditions": {"uid": "${uid:x}"}})");
  both("DELETE", map("m"), R"({"preconditions": {"resourceVersion": "${old:m}"}})");
  both("DELETE", map("m"), R"({"preconditions": {"uid": "${uid:m}", "resourceVersion": "${rv:m}"}})");
  both("DELETE", map("m"));
}

TEST_F(SimKubeConformance, BadRequestsAreRefusedAlike) {
  both("POST", kMaps, R"({"metadata": {"name": "Bad_Name"}})");
  both("GET", "/apis/apps/v1/namespaces/${ns}/statefulsets/none");
  both("GET", "/apis/slinky.slurm.net/v1beta1/namespaces/${ns}/nodesets/none");
  both("GET", "/apis/nope.example/v1/things");
  both("POST", "/api/v1/namespaces/none-such/configmaps", R"({"metadata": {"name": "m"}})");
  both("PATCH", map("missing"), R"({"data": {}})", "application/merge-patch+json");
  both("POST", kMaps, R"({"metadata": {"name": "m", "namespace": "default"}})");
}

TEST_F(SimKubeConformance, PatchesGuardAndChange) {
  both("POST", kMaps, R"({"metadata": {"name": "p"}, "data": {"k": "1", "l": "2"}})");
  merge(map("p"), R"({"data": {"k": null, "n": "3"}})");
  merge(map("p"), R"({"metadata": {"resourceVersion": "${old:p}"}, "data": {"n": "4"}})");
  merge(map("p"), R"({"metadata": {"resourceVersion": "${rv:p}"}, "data": {"n": "5"}})");
  merge(map("p"), R"({"metadata": {"uid": "${uid:x}"}, "data": {"n": "6"}})");
  const std::string type = "application/json-patch+json";
  both("PATCH", map("p"),
       R"([{"op": "test", "path": "/data/n", "value": "5"}, {"op": "add", "path": "/data/o", "value": "7"}])", type);
  EXPECT_EQ(
      pair->real.call({"PATCH", map("p"), {{"content-type", type}}, R"([{"op": "test", "path": "/data/n", "value": "x"}])"})
          .status,
      pair->sim.call({"PATCH", map("p"), {{"content-type", type}}, R"([{"op": "test", "path": "/data/n", "value": "x"}])"})
          .status);
  both("GET", map("p"));
  both("PATCH", map("p"), R"({"metadata": {"finalizers": ["a.b/c"]}})", "application/strategic-merge-patch+json");
  both("DELETE", map("p"));
  merge(map("p"), R"({"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})");
  merge(map("p"), R"({"metadata": {"finalizers": []}})");
  both("GET", map("p"));
}

TEST_F(SimKubeConformance, ApplyOwnsFields) {
  const std::string as = "?fieldManager=op&force=true";
  const auto config = [](const char* data) {
    return std::string(R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": )") + data + "}";
  };
  apply(map("a") + as, config(R"({"a": "1", "b": "2"})"));
  apply(map("a") + as, config(R"({"a": "1", "b": "2"})"));
  EXPECT_FALSE(pair->real.known().contains("old:a")) << "no difference, no write";
  EXPECT_FALSE(pair->sim.known().contains("old:a"));
  merge(map("a") + "?fieldManager=user", R"({"data": {"b": "9", "c": "3"}})");
  apply(map("a") + as, config(R"({"a": "1"})"));
  apply(map("a") + "?fieldManager=third", config(R"({"c": "4"})"));
  apply(map("a") + "?fieldManager=third&force=true", config(R"({"c": "4"})"));
  apply(map("a") + "?fieldManager=third&force=true", config("{}"));
  apply(map("a") + as, R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "${uid:x}"}})");
  apply(map("none") + as, R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "none", "uid": "${uid:x}"}})");
  both("GET", map("a"));
}

TEST_F(SimKubeConformance, ApplyOverOthersTakesWhatItNames) {
  both("POST", std::string(kMaps) + "?fieldManager=user", R"({"metadata": {"name": "o"}, "data": {"u": "1", "s": "1"}})");
  apply(map("o") + "?fieldManager=op&force=true",
        R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o"}, "data": {"s": "1", "m": "2"}})");
  apply(map("o") + "?fieldManager=op&force=true", R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "o"}})");
}

TEST_F(SimKubeConformance, PodsAreDefaultedCheckedAndFrozen) {
  both("POST", kPods, pod_body("p"));
  both("POST", std::string(kPods) + "?fieldValidation=Strict", pod_body("q", R"("nodeSelectr": {"a": "b"},)"));
  both("POST", kPods, R"({"metadata": {"name": "q"}, "spec": {"containers": []}})");
  both("POST", kPods, R"({"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c"}]}})");
  merge(std::string(kPods) + "/p", R"({"metadata": {"labels": {"x": "y"}}})");
  merge(std::string(kPods) + "/p", R"({"spec": {"activeDeadlineSeconds": 60}})");
  merge(std::string(kPods) + "/p/status", R"({"status": {"conditions": [{"type": "Mine", "status": "True"}]}})");
  both("PATCH", std::string(kPods) + "/p/status", R"({"status": {"conditions": [{"type": "Yours", "status": "False"}]}})",
       "application/strategic-merge-patch+json");
  both("GET", std::string(kPods) + "/p");
  both("DELETE", std::string(kPods) + "/p");
  both("GET", std::string(kPods) + "/p");
}

TEST_F(SimKubeConformance, FrozenThingsStay) {
  both("POST", kMaps, R"({"metadata": {"name": "f"}, "immutable": true, "data": {"k": "1"}})");
  merge(map("f"), R"({"data": {"k": "2"}})");
  const std::string sets = "/apis/apps/v1/namespaces/${ns}/statefulsets";
  const std::string set =
      R"({"metadata": {"name": "s"}, "spec": {"replicas": 0, "serviceName": "x", "selector": {"matchLabels": {"a": "b"}},
      "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})";
  both("POST", sets, set);
  merge(sets + "/s", R"({"spec": {"serviceName": "y"}})");
  merge(sets + "/s/scale", R"({"spec": {"replicas": 0}})");
  both("POST", sets, R"({"metadata": {"name": "t"}, "spec": {"serviceName": "x", "selector": {"matchLabels": {"a": "b"}},
      "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})");
  both("DELETE", sets + "/s", R"({"propagationPolicy": "Background"})");
}

TEST_F(SimKubeConformance, LeasesNeedTheirRevision) {
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/${ns}/leases";
  both("POST", leases, R"({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}})");
  both("PUT", leases + "/l", R"({"metadata": {"name": "l", "resourceVersion": "${rv:l}"}, "spec": {"holderIdentity": "b"}})");
  both("PUT", leases + "/l", R"({"metadata": {"name": "l", "resourceVersion": "${old:l}"}, "spec": {"holderIdentity": "c"}})");
  both("PUT", leases + "/l", R"({"metadata": {"name": "l"}, "spec": {"holderIdentity": "d"}})");
}

TEST_F(SimKubeConformance, DeletesAndEvictionsKnowTheirPreconditions) {
  const std::string pod = std::string(kPods) + "/held", bait = std::string(kPods) + "/bait";
  const auto held_pod = [](const std::string& name) {
    return R"({"metadata": {"name": ")" + name + R"(", "finalizers": ["a.b/c"]}, "spec": {"schedulerName": "nobody",
      "automountServiceAccountToken": false, "containers": [{"name": "c", "image": "i:1"}]}})";
  };
  // Every 20 seconds, Kubernetes' pod garbage collector fails pods that are being deleted and were never scheduled. So the test
  // waits until it has failed the pod "bait". Then nearly 20 seconds remain before it could fail the pod "held".
  const auto collected = [&] { return pair->real.call({"GET", bait}).body.find("\"phase\":\"Failed\"") != std::string::npos; };
  (void)pair->real.call({"POST", kPods, {{"content-type", "application/json"}}, held_pod("bait")});
  (void)pair->real.call({"DELETE", bait});
  for (int i = 0; i < 1000 && !collected(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(collected());
  (void)pair->real.call(
      {"PATCH", bait, {{"content-type", "application/merge-patch+json"}}, R"({"metadata": {"finalizers": null}})"});
  both("POST", kPods, held_pod("held"));
  merge(pod, R"({"metadata": {"labels": {"x": "y"}}})");
  const auto evict = [&](const std::string& preconditions) {
    both("POST", pod + "/eviction",
         R"({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "held"},
        "deleteOptions": {"preconditions": )" +
             preconditions + "}}");
  };
  evict(R"({"uid": "${uid:x}"})");
  evict(R"({"resourceVersion": "${old:held}"})");
  both("GET", pod);
  both("DELETE", pod, R"({"preconditions": {"uid": "${uid:x}", "resourceVersion": "${rv:held}"}})");
  both("DELETE", pod, R"({"preconditions": {"uid": "${uid:held}", "resourceVersion": "${old:held}"}})");
  both("GET", pod);
  evict(R"({"uid": "${uid:held}", "resourceVersion": "${rv:held}"})");
  both("GET", pod);
  // Preconditions still apply to an object that is being deleted.
  both("DELETE", pod, R"({"preconditions": {"resourceVersion": "${old:held}"}})");
  both("DELETE", pod, R"({"preconditions": {"uid": "${uid:held}", "resourceVersion": "${rv:held}"}})");
  merge(pod, R"({"metadata": {"finalizers": null}})");
  both("GET", pod);
}

TEST_F(SimKubeConformance, GenerationsCountWhatUsersWant) {
  const std::string sets = "/apis/slinky.slurm.net/v1beta1/namespaces/${ns}/nodesets";
  if (pair->real.call({"GET", sets}).status != 200) GTEST_SKIP() << "the resources are not installed";
  const std::string set = sets + "/g";
  both("POST", sets,
       R"({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "g", "generation": 7},
      "spec": {"controllerRef": {"name": "none"}, "replicas": 0}, "status": {"replicas": 5}})");
  merge(set, R"({"metadata": {"labels": {"a": "b"}, "generation": 9}})");
  merge(set, R"({"spec": {"minReadySeconds": 1}})");
  merge(set, R"({"spec": {"minReadySeconds": 1}})");
  merge(set, R"({"status": {"replicas": 5}})");
  merge(set + "/status", R"({"metadata": {"labels": {"c": "d"}}, "spec": {"minReadySeconds": 2}, "status": {"replicas": 3}})");
  both("GET", set);
  merge(set, R"({"spec": {"minReadySeconds": 3}, "status": {"replicas": 6}})");
  apply(
      set + "/status?fieldManager=op&force=true",
      R"({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "g"}, "status": {"replicas": 4}})");
  merge(set, R"({"metadata": {"finalizers": ["a.b/c"]}})");
  both("DELETE", set);
  merge(set + "/status", R"({"status": {"replicas": 2}})");
  merge(set, R"({"metadata": {"finalizers": ["a.b/c", "d.e/f"]}})");
  merge(set, R"({"metadata": {"finalizers": null}})");
  both("GET", set);
}

TEST_F(SimKubeConformance, BudgetsKeepPods) {
  both("POST", kPods, pod_body("guarded"));
  both("POST", "/api/v1/namespaces/${ns}/pods/guarded/eviction",
       R"({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "guarded"}})");
  both("POST", "/api/v1/namespaces/${ns}/pods/none/eviction",
       R"({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "none"}})");
}

TEST_F(SimKubeConformance, PodsMayBeGated) {
  Json gated = Json::parse(pod_body("gated"));
  gated["spec"]["schedulingGates"] = Json::array({{{"name", "conformance.test/wait"}}});
  both("POST", kPods, gated.dump());
}

TEST_F(SimKubeConformance, EvictionsNameTheirPod) {
  both("POST", kPods, pod_body("evicted"));
  both("POST", std::string(kPods) + "/evicted/eviction",
       R"({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "other"}})");
}

TEST_F(SimKubeConformance, TokensAreMadeForAccounts) {
  const std::string accounts = "/api/v1/namespaces/${ns}/serviceaccounts";
  both("POST", accounts, R"({"metadata": {"name": "t"}})");
  const auto refused = [&](const char* account, const char* request) {
    both("POST", accounts + "/" + account + "/token", request);
  };
  refused("none", R"({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})");
  refused("t", R"({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 599}})");
  refused("t", R"({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "metadata": {"name": "u"}, "spec": {}})");
  refused("t", R"({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
      "spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Secret", "name": "none"}}})");
  // The tokens are random, so only the other fields are checked.
  const net::HttpRequest request{
      "POST",
      accounts + "/t/token",
      {{"content-type", "application/json"}},
      R"({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["x"], "expirationSeconds": 600}})"};
  for (Client* client : {&pair->real, &pair->sim}) {
    const Client::Answer made = client->call(request);
    EXPECT_EQ(made.status, 201) << made.body;
    const auto json = core::parse_json(made.body);
    ASSERT_TRUE(json);
    EXPECT_EQ(core::get_string(*json, {"kind"}), "TokenRequest");
    EXPECT_EQ((*json)["spec"]["audiences"], Json({"x"}));
    EXPECT_EQ((*json)["spec"]["expirationSeconds"], 600);
    EXPECT_FALSE(core::get_string(*json, {"status", "token"}).empty());
    EXPECT_FALSE(core::get_string(*json, {"status", "expirationTimestamp"}).empty());
  }
}

TEST_F(SimKubeConformance, MetadataAloneIsServed) {
  both("POST", kMaps, R"({"metadata": {"name": "meta", "labels": {"meta": "yes"}}, "data": {"k": "1"}})");
  const std::string one = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
  const std::string list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
  const auto get = [](const std::string& target, const std::string& accept) {
    EXPECT_EQ(compare({"GET", target, {{"accept", accept}}, ""}), "");
  };
  const std::string all = std::string(kMaps) + "?labelSelector=meta";
  get(map("meta"), one);
  get(all, list);
  get(map("none"), one);
  for (const auto& [target, accept] : {std::pair(map("meta"), list), std::pair(all, one),
                                       std::pair(map("meta"), std::string("application/json;as=Nothing;g=meta.k8s.io;v=v1"))}) {
    const net::HttpRequest request{"GET", target, {{"accept", accept}}, ""};
    EXPECT_EQ(pair->real.call(request).status, pair->sim.call(request).status) << target << " " << accept;
  }
  const net::HttpRequest watch{
      "GET", std::string(kMaps) + "?watch=true&labelSelector=meta&timeoutSeconds=10&resourceVersion=0", {{"accept", one}}, ""};
  for (Client* client : {&pair->real, &pair->sim}) {
    const std::string lines = client->call(watch).body;
    const auto event = core::parse_json(lines.substr(0, lines.find('\n')));
    ASSERT_TRUE(event) << lines;
    EXPECT_EQ(core::get_string(*event, {"object", "kind"}), "PartialObjectMetadata");
    EXPECT_FALSE((*event)["object"].contains("data"));
  }
}

TEST_F(SimKubeConformance, ListsSelect) {
  both("POST", kMaps, R"({"metadata": {"name": "l1", "labels": {"list": "1"}}})");
  both("POST", kMaps, R"({"metadata": {"name": "l2", "labels": {"list": "2"}}})");
  for (const char* query : {"labelSelector=list", "labelSelector=list%3D1", "labelSelector=list%20in%20(1,2)",
                            "labelSelector=list,list!%3D1", "labelSelector=list%20notin%20(2),list",
                            "labelSelector=list&limit=1", "labelSelector=list&fieldSelector=metadata.name%3Dl2"}) {
    both("GET", std::string(kMaps) + "?" + query);
  }
}

TEST_F(SimKubeConformance, ListsAreAsOldAsAsked) {
  const auto list = [](const std::string& query) { both("GET", std::string(kMaps) + "?labelSelector=aged&" + query); };
  both("POST", kMaps, R"({"metadata": {"name": "aged", "labels": {"aged": "yes"}}, "data": {"k": "1"}})");
  merge(map("aged"), R"({"data": {"k": "2"}})");
  both("POST", kMaps, R"({"metadata": {"name": "aged2", "labels": {"aged": "yes"}}})");
  for (const Client* client : {&pair->real, &pair->sim}) EXPECT_TRUE(client->known().contains("old:aged"));
  list("resourceVersion=${rv:aged}&resourceVersionMatch=Exact");
  for (const Client* client : {&pair->real, &pair->sim}) EXPECT_EQ(client->known().at("start"), client->known().at("rv:aged"));
  list("resourceVersion=${old:aged}&resourceVersionMatch=Exact");
  for (const Client* client : {&pair->real, &pair->sim}) EXPECT_EQ(client->known().at("start"), client->known().at("old:aged"));
  list("resourceVersion=${old:aged}&resourceVersionMatch=Exact&limit=1");
  list("resourceVersion=${old:aged}&limit=5");
  list("resourceVersion=${rv:aged2}&resourceVersionMatch=NotOlderThan");
  list("resourceVersion=${rv:aged2}");
  list("resourceVersion=0&resourceVersionMatch=NotOlderThan");
  for (const char* nonsense :
       {"resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan", "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Newest", "resourceVersionMatch=Newest",
        "resourceVersion=1&resourceVersionMatch=Exact&continue=x", "sendInitialEvents=true",
        "watch=true&resourceVersionMatch=NotOlderThan", "watch=true&resourceVersion=1&resourceVersionMatch=Exact",
        "watch=true&sendInitialEvents=true&resourceVersionMatch=Exact", "resourceVersion=999999999999"}) {
    list(nonsense);
  }
}

/// Requests for revisions before the compaction fail with 410 Gone. dev/conformance.sh has compacted the real server's history
/// beyond revision 1. The kind must be younger than the cluster: for older kinds the server may still cache the beginning.
TEST_F(SimKubeConformance, WhatIsForgottenIsExpired) {
  const std::string all = "/apis/slinky.slurm.net/v1beta1/namespaces/${ns}/nodesets?";
  if (pair->real.call({"GET", all}).status != 200) GTEST_SKIP() << "the resources are not installed";
  pair->sim_backend.api.compact();
  both("GET", all + "resourceVersion=1&resourceVersionMatch=Exact");
  both("GET", all + "resourceVersion=1&limit=3");
  // The token contains {"v":"meta.k8s.io/v1","rv":1,"start":"ab"}.
  const std::string token = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhYiJ9";
  both("GET", all + "limit=3&continue=" + token);
  for (Client* client : {&pair->real, &pair->sim}) {
    const auto status = core::parse_json(client->call({"GET", all + "limit=3&continue=" + token}).body);
    ASSERT_TRUE(status);
    const std::string rest = core::get_string(*status, {"metadata", "continue"});
    EXPECT_FALSE(rest.empty()) << "a way to go on";
    EXPECT_EQ(client->call({"GET", all + "limit=3&continue=" + rest}).status, 200);
  }
  const net::HttpRequest request{"GET", all + "watch=true&timeoutSeconds=2&resourceVersion=1"};
  const auto error = core::parse_json(pair->real.call(request).body);
  ASSERT_TRUE(error);
  EXPECT_EQ(*error, core::parse_json(pair->sim.call(request).body).value_or(Json()));
}

/// Summarizes a watch by what both servers have in common: types, names and codes; for bookmarks, what they mark.
std::vector<std::string> summary(const std::string& body, bool bookmarks = false) {
  std::vector<std::string> out;
  std::size_t start = 0;
  while (start < body.size()) {
    const std::size_t end = std::min(body.find('\n', start), body.size());
    const auto event = core::parse_json(std::string_view(body).substr(start, end - start));
    start = end + 1;
    if (!event) continue;
    const std::string type = core::get_string(*event, {"type"});
    if (type != "BOOKMARK") {
      out.push_back(type + " " + core::get_string(*event, {"object", "metadata", "name"}) + " " +
                    std::to_string(core::get_int(*event, {"object", "code"})));
    } else if (bookmarks) {
      Json object = (*event)["object"];
      const bool numbered = !core::get_string(object, {"metadata", "resourceVersion"}).empty();
      strip(object);
      out.push_back(type + " " + object.dump() + (numbered ? " of a revision" : ""));
    }
  }
  return out;
}

TEST_F(SimKubeConformance, WatchesTellTheSame) {
  both("GET", std::string(kMaps) + "?labelSelector=watched%3Dyes");
  both("POST", kMaps, R"({"metadata": {"name": "w1", "labels": {"watched": "yes"}}})");
  both("POST", kMaps, R"({"metadata": {"name": "w2"}})");
  merge(map("w1"), R"({"data": {"k": "1"}})");
  merge(map("w2"), R"({"metadata": {"labels": {"watched": "yes"}}})");
  merge(map("w1"), R"({"metadata": {"labels": {"watched": "no"}}})");
  both("DELETE", map("w2"));
  for (const char* more :
       {"&resourceVersion=${start}", "&resourceVersion=${rv:w1}", "&resourceVersion=0&fieldSelector=metadata.name%3Dw1"}) {
    const net::HttpRequest request{"GET",
                                   std::string(kMaps) + "?watch=true&labelSelector=watched%3Dyes&timeoutSeconds=10" + more};
    EXPECT_EQ(summary(pair->real.call(request).body), summary(pair->sim.call(request).body)) << more;
  }
  const net::HttpRequest old{"GET", std::string(kMaps) + "?watch=true&timeoutSeconds=2&resourceVersion=abc"};
  EXPECT_EQ(pair->real.call(old).status, pair->sim.call(old).status);
  const net::HttpRequest no_match{"GET", std::string(kMaps) + "?watch=true&timeoutSeconds=2&sendInitialEvents=true"};
  EXPECT_EQ(pair->real.call(no_match).status, pair->sim.call(no_match).status);
}

TEST_F(SimKubeConformance, WatchListTellsTheSameWhereItIsServed) {
  both("POST", kMaps, R"({"metadata": {"name": "i1", "labels": {"initial": "yes"}}})");
  const net::HttpRequest request{"GET", std::string(kMaps) +
                                            "?watch=true&labelSelector=initial%3Dyes&timeoutSeconds=10&sendInitialEvents=true"
                                            "&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"};
  const auto real = pair->real.call(request);
  pair->sim_backend.api.options().watch_list = real.status == 200;
  pair->sim_backend.api.options().watch_progress = !real.body.contains("RequestWatchProgress");
  const bool served = real.status == 200 && pair->sim_backend.api.options().watch_progress;
  const auto sim = pair->sim.call(request);
  EXPECT_EQ(real.status, sim.status) << real.body;
  const auto first = [](const std::string& body) {
    auto lines = summary(body, true);
    lines.resize(std::min<std::size_t>(lines.size(), 2));  // the object, and the bookmark that ends the initial list
    return lines;
  };
  EXPECT_EQ(first(real.body), first(sim.body));
  if (!served) return;
  EXPECT_THAT(first(sim.body).back(), testing::HasSubstr(R"("k8s.io/initial-events-end":"true")"));
}

TEST_F(SimKubeConformance, CustomResourcesAreDefaultedAndChecked) {
  const std::string sets = "/apis/slinky.slurm.net/v1beta1/namespaces/${ns}/nodesets";
  if (pair->real.call({"GET", sets}).status != 200) GTEST_SKIP() << "the resources are not installed";
  both(
      "POST", sets,
      R"({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "n", "finalizers": ["conformance.test/hold"]},
      "spec": {"controllerRef": {"name": "none"}, "replicas": 0}})");
  merge(sets + "/n", R"({"metadata": {"labels": {"a": "b"}}})");
  merge(sets + "/n", R"({"spec": {"replicas": 0, "minReadySeconds": 1}})");
  const auto refused = [&](const char* body) {
    const net::HttpRequest request{"PATCH", sets + "/n", {{"content-type", "application/merge-patch+json"}}, body};
    EXPECT_EQ(pair->real.call(request).status, pair->sim.call(request).status) << body;
  };
  refused(R"({"spec": {"replicas": -1}})");
  refused(R"({"spec": {"replicas": "many"}})");
  refused(R"({"spec": {"scalingMode": "Sideways"}})");
  both("PATCH", sets + "/n", R"({"spec": {}})", "application/strategic-merge-patch+json");
  both("PUT", sets + "/n", R"({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "n"},
      "spec": {"controllerRef": {"name": "none"}}})");
  merge(sets + "/n", R"({"metadata": {"uid": "${uid:x}"}})");
  merge(sets + "/n/status", R"({"metadata": {"resourceVersion": "${old:n}"}, "status": {"replicas": 1}})");
  apply(sets + "/n?fieldManager=op&force=true",
        R"({"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "n"},
      "spec": {"controllerRef": {"name": "none"}, "minReadySeconds": 2}})");
  merge(sets + "/n", R"({"metadata": {"finalizers": null}})");
  (void)pair->real.call({"DELETE", sets + "/n"});
}

// Sends random requests about two objects.
TEST_F(SimKubeConformance, RandomHistories) {
  const bool held = rc::check("the same answers to random requests", [] {
    const std::string name = *rc::gen::element<std::string>("r1", "r2");
    const auto value = [] { return std::to_string(*rc::gen::inRange(0, 3)); };
    const auto data = [&] {
      Json out = Json::object();
      for (const char* key : {"a", "b", "c"}) {
        if (*rc::gen::inRange(0, 2) == 1) out[key] = value();
      }
      if (out.empty()) out["a"] = value();  // owners of an empty map are tested elsewhere
      return out;
    };
    const auto version = [&](Json& metadata) {
      const int pick = *rc::gen::inRange(0, 4);
      if (pick == 1) metadata["resourceVersion"] = "${rv:" + name + "}";
      if (pick == 2) metadata["resourceVersion"] = "${old:" + name + "}";
      if (pick == 3) metadata["uid"] = "${uid:" + name + "}";
    };
    for (int steps = *rc::gen::inRange(1, 12); steps > 0; --steps) {
      Json object{{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", {{"name", name}}}, {"data", data()}};
      net::HttpRequest request{"GET", map(name), {{"content-type", "application/json"}}};
      switch (*rc::gen::inRange(0, 8)) {
        case 0:
          request.method = "POST";
          request.target = kMaps;
          request.body = object.dump();
          break;
        case 1:
          version(object["metadata"]);
          request.method = "PUT";
          request.body = object.dump();
          break;
        case 2:
          request.method = "PATCH";
          request.headers["content-type"] = "application/merge-patch+json";
          object = {{"data", data()}};
          if (*rc::gen::inRange(0, 2) == 1) object["data"]["b"] = nullptr;
          object["metadata"] = Json::object();
          version(object["metadata"]);
          request.body = object.dump();
          break;
        case 3:
        case 4:
        case 5:
          request.method = "PATCH";
          request.headers["content-type"] = "application/apply-patch+yaml";
          request.target += *rc::gen::element<std::string>("?fieldManager=one", "?fieldManager=two",
                                                           "?fieldManager=one&force=true", "?fieldManager=two&force=true");
          request.body = object.dump();
          break;
        case 6: {
          request.method = "DELETE";
          Json preconditions = Json::object();
          version(preconditions);
          request.body = Json{{"preconditions", preconditions}}.dump();
          break;
        }
        default:
          break;
      }
      const std::string difference = compare(request);
      if (!difference.empty()) RC_LOG() << difference << "\n";
      RC_ASSERT(difference.empty());
    }
    for (const char* gone : {"r1", "r2"}) {
      (void)pair->real.call({"DELETE", map(gone)});
      (void)pair->sim.call({"DELETE", map(gone)});
    }
  });
  EXPECT_TRUE(held);
}

}  // namespace
}  // namespace sim
