// The whole program against a simulated API server: its command line, what it reads and writes, and its exit codes.
#include "cli/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>

#include "api/revision.hpp"
#include "cli/completion.hpp"
#include "cli/testing/objects.hpp"
#include "cli/testing/pods.hpp"
#include "core/base64.hpp"
#include "sim/base/loop.hpp"
#include "sim/base/transport.hpp"
#include "sim/kube/sim_kube.hpp"
#include "slinky/names.hpp"

namespace cli {
namespace {

using core::Json;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// The replies of slurmrestd, by service and path: "slurm-restapi/openapi/v3".
using Slurm = std::map<std::string, std::string, std::less<>>;

/// What users may not read: parts of paths.
using Forbidden = std::vector<std::string>;

/// Answers every request with this status. If the status is 0, refuses what is forbidden, answers requests to slurmrestds
/// through the proxy of Services itself, and passes on all other requests.
class Gatekeeper final : public net::HttpTransport {
 public:
  Gatekeeper(core::Loop& loop, net::HttpTransport& behind, const int& status, const Slurm& slurm, const Forbidden& forbidden)
      : loop_(loop), behind_(behind), status_(status), slurm_(slurm), forbidden_(forbidden) {}
  RequestId send(net::HttpRequest request, Done done) override {
    net::HttpResponse reply;
    reply.status = status_;
    for (const std::string& part : forbidden_) {
      if (!request.target.contains(part)) continue;
      reply.status = 403;
      reply.body = R"({"kind": "Status", "reason": "Forbidden", "message": "User \"ada\" cannot read )" + part + "\"}";
    }
    if (reply.status == 403 && status_ == 0) {
      loop_.after(core::Duration{1}, [reply, done = std::move(done)] { done(reply); });
      return 0;
    }
    constexpr std::string_view kServices = "/api/v1/namespaces/hpc/services/", kProxy = ":6820/proxy";
    if (const std::size_t at = request.target.find(kProxy);
        status_ == 0 && request.target.starts_with(kServices) && at != std::string::npos) {
      const auto found = slurm_.find(request.target.substr(kServices.size(), at - kServices.size()) +
                                     request.target.substr(at + kProxy.size()));
      reply.status = found == slurm_.end() ? 503 : 200;
      reply.body = found == slurm_.end() ? R"({"kind":"Status","message":"no endpoints available"})" : found->second;
    } else if (status_ == 0) {
      return behind_.send(std::move(request), std::move(done));
    }
    loop_.after(core::Duration{1}, [reply, done = std::move(done)] { done(reply); });
    return 0;
  }
  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override {
    return behind_.stream(std::move(request), std::move(handler));
  }
  void cancel(RequestId id) override { behind_.cancel(id); }

 private:
  core::Loop& loop_;
  net::HttpTransport& behind_;
  const int& status_;
  const Slurm& slurm_;
  const Forbidden& forbidden_;
};

class SimSession final : public Session {
 public:
  SimSession(sim::SimLoop& loop, sim::SimKube& kube, sim::Faults& faults, const int& refuse, const Slurm& slurm,
             const Forbidden& forbidden)
      : loop_(loop),
        behind_(loop, loop, kube, faults, loop.random().fork()),
        transport_(loop, behind_, refuse, slurm, forbidden),
        random_(loop.random().fork()) {}
  core::Loop& loop() override { return loop_; }
  core::Random& random() override { return random_; }
  net::HttpTransport& transport() override { return transport_; }
  kube::Credentials& credentials() override { return credentials_; }
  bool run_until(const std::function<bool()>& done) override { return loop_.run_until(done, patience); }
  void wake() override {}

  core::Duration patience = 10min;  ///< The time after which the user interrupts the program.

 private:
  sim::SimLoop& loop_;
  sim::Transport behind_;
  Gatekeeper transport_;
  sim::SeededRandom random_;
  kube::StaticCredentials credentials_{{}};
};

struct ProgramTest : testing::Test {
  sim::SimLoop loop{1};
  sim::SimKube kube{loop, loop.random().fork()};
  sim::Faults faults{loop.random().fork()};
  std::string out, err;
  core::Duration patience = 10min;
  int refuse = 0;  ///< The status of all answers of the API server; 0: normal answers.
  Slurm slurm;     ///< Empty: no slurmrestd has an endpoint.
  Forbidden forbidden;

  ProgramTest() {
    kube.add_namespace("hpc");
    put(slinky::resources::kController, controller_object());
    put(slinky::resources::kNodeSet, nodeset_object());
    put(slinky::resources::kRestApi, restapi_object());
  }

  void put(const kube::Resource& resource, const Json& object) {
    const auto made = kube.api().create(resource, object);
    ASSERT_TRUE(made) << made.error();
    if (!object.contains("status")) return;
    const Json& status = object["status"];
    const auto told =
        kube.api().patch(resource, kube::key_of(object), sim::PatchKind::kMerge, {{"status", status}}, {}, "status");
    ASSERT_TRUE(told) << told.error();
  }

  int run(std::vector<std::string> arguments) {
    Outside outside;
    outside.version = "1.2.3";
    outside.open = [&](const Options&) -> core::Result<std::unique_ptr<Session>> {
      auto session = std::make_unique<SimSession>(loop, kube, faults, refuse, slurm, forbidden);
      session->patience = patience;
      return session;
    };
    outside.write_out = [&](std::string_view text) { out += text; };
    outside.write_err = [&](std::string_view text) { err += text; };
    outside.ask = [](const std::string&) { return false; };
    outside.env = [](const char*) { return std::string(); };
    out.clear();
    err.clear();
    return run_program(outside, std::move(arguments));
  }
};

TEST_F(ProgramTest, VersionHelpAndMistakes) {
  EXPECT_EQ(run({"version"}), kDone);
  EXPECT_EQ(out, "kubectl-slurm 1.2.3\n");
  EXPECT_EQ(run({"--version"}), kDone);
  EXPECT_EQ(out, "kubectl-slurm 1.2.3\n");
  EXPECT_EQ(run({"version", "-n", "hpc", "--context", "c", "--kubeconfig", "none"}), kDone) << err;
  EXPECT_EQ(out, "kubectl-slurm 1.2.3\n");
  EXPECT_EQ(run({"completion", "bash", "-n", "hpc"}), kDone) << err;
  EXPECT_EQ(run({}), kDone);
  EXPECT_THAT(out, testing::AllOf(HasSubstr("status"), HasSubstr("version"), HasSubstr("completion"), HasSubstr("help")));
  EXPECT_EQ(run({"help", "drain"}), kDone);
  EXPECT_THAT(out, HasSubstr("--reason"));
  EXPECT_EQ(run({"drain"}), kUsage);
  EXPECT_THAT(err, HasSubstr("WORKER is required"));
  EXPECT_EQ(run({"status", "-o", "xml"}), kUsage);
  EXPECT_EQ(run({"dance"}), kUsage);
}

TEST_F(ProgramTest, StatusAsTextAndAsDocument) {
  ASSERT_EQ(run({"status", "-n", "hpc", "--without-slurm"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Cluster hpc/slurm"));
  ASSERT_EQ(run({"status", "slurm", "-n", "hpc", "-o", "json"}), kDone) << err;
  const Json document = Json::parse(out);
  EXPECT_EQ(document["kind"], "ClusterStatusList");
  EXPECT_EQ(document["items"][0]["slurm"]["answers"], false);
  EXPECT_EQ(run({"status", "none", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("there is no cluster (Controller) none in namespace hpc"));
  EXPECT_EQ(run({"status"}), kDone);
  EXPECT_THAT(err, HasSubstr("-A shows all namespaces"));
}

TEST_F(ProgramTest, AnApiServerThatIsAwayIsTold) {
  kube.set_listening(false);
  EXPECT_EQ(run({"status", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("The API server cannot be reached"));
}

/// A cluster with an Accounting. The replies of slurmrestd are those of a real slurmrestd (src/slurm/testdata).
struct AccountsTest : ProgramTest, testing::WithParamInterface<std::pair<const char*, const char*>> {
  AccountsTest() {
    accounting("slurm");
    change({{"spec", {{"accountingRef", {{"name", "slurm"}}}, {"clusterName", "local"}}}});
    jwt_key("slurm");
    serve("slurm-restapi");
  }

  void jwt_key(const std::string& controller) {
    Json secret = json(R"({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "hpc"}})");
    secret["metadata"]["name"] = controller + "-jwt-key";
    secret["data"]["jwt.key"] = core::base64_encode("0123456789abcdef0123456789abcdef");
    put(kube::resources::kSecret, secret);
  }
  void accounting(const std::string& name) {
    put(slinky::resources::kAccounting, {{"apiVersion", "slinky.slurm.net/v1beta1"},
                                         {"kind", "Accounting"},
                                         {"metadata", {{"name", name}, {"namespace", "hpc"}}},
                                         {"spec", {{"storageConfig", {{"host", "db"}}}}}});
  }
  void change(const Json& of, const std::string& controller = "slurm") {
    const auto changed = kube.api().patch(slinky::resources::kController, {"hpc", controller}, sim::PatchKind::kMerge, of);
    ASSERT_TRUE(changed) << changed.error();
  }
  /// Adds another cluster.
  void cluster(const std::string& name, bool restapi) {
    Json controller = controller_object();
    controller["metadata"] = {{"name", name}, {"namespace", "hpc"}};
    controller["spec"]["accountingRef"]["name"] = "slurm";
    put(slinky::resources::kController, controller);
    if (!restapi) return;
    jwt_key(name);
    Json rest = restapi_object();
    rest["metadata"] = {{"name", name}, {"namespace", "hpc"}};
    rest["spec"]["controllerRef"]["name"] = name;
    put(slinky::resources::kRestApi, rest);
  }
  void serve(const std::string& service) {
    const auto [release, parser] = GetParam();
    const std::string base = std::string("/slurm/") + parser + "/", accounts = std::string("/slurmdb/") + parser + "/";
    slurm[service + "/openapi/v3"] = R"({"info": {"x-slurm": {"release": ")" + std::string(release) + R"(.5"}}, "paths": {")" +
                                     base + R"(nodes/": {"get": {}}, ")" + accounts + R"(qos/": {"get": {}}}})";
    const std::vector<std::pair<std::string, const char*>> files{
        {base + "jobs/", "queue"},
        {base + "partitions/", "partitions"},
        {base + "shares", "shares"},
        {accounts + "job/1", "ended"},
        {accounts + "qos/", "qos"},
        {accounts + "accounts/?WithCoordinators=true", "accounts"},
        {accounts + "users/", "users"},
        {accounts + "associations/", "associations"},
        {accounts + "associations/?Exclude%20limits%20from%20parents=true", "own-associations"}};
    for (const auto& [path, name] : files) {
      std::ifstream file("src/slurm/testdata/" + std::string(release) + "-" + parser + "-" + name + ".json");
      slurm[service + path] = {std::istreambuf_iterator<char>(file), {}};
    }
    slurm[service + accounts + "job/99"] = R"({"jobs": [], "errors": [], "warnings": []})";
  }
  void forget(const std::string& part) {
    std::erase_if(slurm, [&](const auto& entry) { return entry.first.find(part) != std::string::npos; });
  }
};

TEST_P(AccountsTest, TheTree) {
  ASSERT_EQ(run({"tree", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Cluster local (Controller slurm)\n"));
  EXPECT_THAT(out, HasSubstr("GrpTRES=cpu=2,mem=500M"));
  ASSERT_EQ(run({"tree", "--accounting", "slurm", "-n", "hpc", "-o", "json"}), kDone) << err;
  const Json document = Json::parse(out);
  const Json& rows = document["items"][0]["associations"];
  std::map<std::string, Json> found;
  for (const Json& row : rows) found[row["account"].get<std::string>() + "/" + row["user"].get<std::string>()] = row;
  EXPECT_EQ(found.size(), 6U);
  EXPECT_EQ(found["science/"]["limits"], (Json{{"GrpTRES", {{"cpu", 2}, {"mem", 500}}}, {"MaxJobs", 5}}));
  EXPECT_EQ(found["physics/"]["limits"], (Json{{"GrpTRES", {{"cpu", 3}}}})) << "MaxJobs is that of science";
  EXPECT_EQ(found["physics/"]["fairShare"], 5);
  EXPECT_EQ(found["physics/user"]["limits"], (Json{{"GrpTRESMins", {{"cpu", 1000}}}, {"MaxJobs", 1}}));
  EXPECT_EQ(found["physics/user"]["qos"], Json::array({"gpu", "normal"})) << "as it inherits them";
  EXPECT_EQ(found["physics/user"]["defaultQos"], "normal");
  EXPECT_TRUE(found["physics/user"]["usage"]["fairShareFactor"].is_number());
  EXPECT_EQ(found["physics/"]["level"], 2);
  ASSERT_EQ(run({"tree", "--cluster", "slurm", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, Not(HasSubstr("0123456789abcdef")));
  EXPECT_EQ(run({"tree", "--cluster", "slurm", "--accounting", "slurm"}), kUsage);
}

TEST_P(AccountsTest, TheTreeWithoutUsage) {
  forget("/shares");
  ASSERT_EQ(run({"tree", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Usage is not shown: Slurm does not answer: "));
  EXPECT_THAT(out, HasSubstr("GrpTRES=cpu=2,mem=500M"));
}

TEST_P(AccountsTest, AnySlurmrestdOfTheAccountingServesTheTree) {
  cluster("another", false);
  cluster("beta", true);
  ASSERT_EQ(run({"tree", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Cluster hpc_another (Controller another)\n  It has no accounts.\n"));
  EXPECT_THAT(out, HasSubstr("GrpTRES=cpu=2,mem=500M"));
  forget("slurm-restapi");
  EXPECT_EQ(run({"tree", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("cluster another: no RestApi belongs to this cluster; cluster beta: Slurm does not answer: "));
  serve("beta-restapi");
  EXPECT_EQ(run({"tree", "-n", "hpc"}), kDone) << err;
}

TEST_P(AccountsTest, WhatATreeNeeds) {
  EXPECT_EQ(run({"tree", "--accounting", "none", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("there is no Accounting none in namespace hpc"));
  EXPECT_EQ(run({"tree", "--cluster", "none", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("there is no cluster (Controller) none in namespace hpc"));
  EXPECT_EQ(run({"tree"}), kFailed);
  EXPECT_THAT(err, HasSubstr("there is no Accounting in namespace default"));
  accounting("other");
  EXPECT_EQ(run({"tree", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("several Accountings: name one with -A (other, slurm)"));
  EXPECT_EQ(run({"tree", "-n", "hpc", "--accounting", "other"}), kFailed);
  EXPECT_THAT(err, HasSubstr("no Controller in namespace hpc names Accounting other"));
  forget("/qos/");
  EXPECT_EQ(run({"tree", "-n", "hpc", "--accounting", "slurm"}), kDone) << "it reads no QOS";
  slurm["slurm-restapi/openapi/v3"] = R"({"paths": {"/slurm/v0.0.42/nodes/": {"get": {}}}})";
  EXPECT_EQ(run({"tree", "-n", "hpc", "--accounting", "slurm"}), kFailed);
  EXPECT_THAT(err, HasSubstr("openapi/slurmdbd is not loaded"));
  change({{"spec", {{"accountingRef", nullptr}}}});
  EXPECT_EQ(run({"tree", "-n", "hpc", "--cluster", "slurm"}), kFailed);
  EXPECT_THAT(err, HasSubstr("cluster slurm has no accounting (spec.accountingRef of its Controller)"));
}

TEST_P(AccountsTest, WhyJobsOfARealClusterWait) {
  ASSERT_EQ(run({"why", "3", "-n", "hpc", "-o", "json"}), kDone) << err;
  Json document = Json::parse(out);
  EXPECT_EQ(document["reason"]["name"], "QOSMaxJobsPerUserLimit");
  const auto limit = [&](const std::string& name) {
    for (const Json& row : document["limits"]) {
      if (row["name"] == name) return row;
    }
    return Json();
  };
  Json named = limit("MaxJobsPerUser");
  EXPECT_EQ(named["named"], true);
  EXPECT_EQ(named["holder"], "gpu");
  EXPECT_EQ(named["inUse"], 1);
  EXPECT_EQ(named["overBy"], 1);
  EXPECT_EQ(named["jobs"], Json::array({"2"}));
  EXPECT_EQ(limit("MaxTRESPerUser/cpu")["overBy"], 1) << "it would hold the job as well";
  EXPECT_TRUE(document["limitFreeBy"].is_string());

  ASSERT_EQ(run({"why", "8", "-n", "hpc", "-o", "yaml"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("kind: JobExplanation"));
  ASSERT_EQ(run({"why", "8", "-n", "hpc", "-o", "json"}), kDone) << err;
  document = Json::parse(out);
  named = limit("GrpTRES/cpu");
  EXPECT_EQ(named["holder"], "science") << "physics has room";
  EXPECT_EQ(named["named"], true);
  EXPECT_EQ(named["inUse"], 2);

  ASSERT_EQ(run({"why", "4", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(
      out, HasSubstr("MaxJobs      user user in account physics  user user in account physics  1         1       1         1"));
  ASSERT_EQ(run({"why", "5", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Its user holds it."));
  ASSERT_EQ(run({"why", "6", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("It depends on afterok:2(unfulfilled)."));
  ASSERT_EQ(run({"why", "7_2", "-n", "hpc", "--cluster", "slurm"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Job 7_[1-3%1] is pending"));
  EXPECT_THAT(out, HasSubstr("not to start before a time"));
  EXPECT_THAT(out, Not(HasSubstr("0123456789abcdef")));
}

TEST_P(AccountsTest, WhyJobsDoNotWait) {
  ASSERT_EQ(run({"why", "2", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Job 2 is not pending: it is RUNNING"));
  EXPECT_THAT(out, HasSubstr(" on n1\n"));
  ASSERT_EQ(run({"why", "1", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Job 1 is not pending: it has ended"));
  EXPECT_THAT(out, HasSubstr("CANCELLED"));
  EXPECT_EQ(run({"why", "99", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("cluster slurm knows no job 99"));
  forget("/job/99");
  EXPECT_EQ(run({"why", "99", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("slurmdbd did not answer whether it ended"));
  EXPECT_EQ(run({"why", "7_9", "-n", "hpc"}), kFailed);
  EXPECT_EQ(run({"why", "x", "-n", "hpc"}), kUsage);
  EXPECT_THAT(err, HasSubstr("\"x\" is not a job"));
  EXPECT_EQ(run({"why", "-n", "hpc"}), kUsage);
}

TEST_P(AccountsTest, WhyWithoutListsOfLimits) {
  forget("/associations/");
  ASSERT_EQ(run({"why", "3", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Limits are not shown: Slurm does not answer: "));
  change({{"spec", {{"accountingRef", nullptr}}}});
  ASSERT_EQ(run({"why", "3", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Limits are not shown: the cluster has no accounting"));
  forget("/partitions/");
  ASSERT_EQ(run({"why", "3", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("Limits are not shown: Slurm does not answer: "));
}

TEST_P(AccountsTest, WhatWhyNeeds) {
  EXPECT_EQ(run({"why", "3"}), kFailed);
  EXPECT_THAT(err, HasSubstr("there is no cluster (Controller) in namespace default"));
  forget("/jobs/");
  EXPECT_EQ(run({"why", "3", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("error: Slurm does not answer: "));
  EXPECT_THAT(err, Not(HasSubstr("API server cannot be reached")));
  cluster("another", false);
  EXPECT_EQ(run({"why", "3", "-n", "hpc"}), kFailed);
  EXPECT_THAT(err, HasSubstr("name one with --cluster (another, slurm)"));
  EXPECT_EQ(run({"why", "3", "-n", "hpc", "--cluster", "another"}), kFailed);
  EXPECT_THAT(err, HasSubstr("no RestApi belongs to this cluster"));
  ASSERT_TRUE(kube.api().remove(kube::resources::kSecret, {"hpc", "slurm-jwt-key"}));
  EXPECT_EQ(run({"why", "3", "-n", "hpc", "--cluster", "slurm"}), kFailed);
  EXPECT_THAT(err, HasSubstr("the JWT key cannot be read: "));
}

/// Pod research/train-0 waits for the job 40, which is like the job 3 of AccountsTest.
struct WhyPodProgramTest : AccountsTest {
  Json pod = waiting_pod_object();

  WhyPodProgramTest() {
    kube.add_namespace("kube-system");
    kube.add_namespace("research");
    kube.add_namespace("slurm-bridge");
    put(kube::resources::kDeployment, bridge_deployment(usual_arguments()));
    pod["metadata"].erase("uid");
    set_condition(pod, "SlurmQueued", "True", "QOSMaxJobsPerUserLimit",
                  "job 40 waits in partition all: QOSMaxJobsPerUserLimit");
    put(kube::resources::kPod, pod);
    add_job(uid_of(kube::resources::kNamespace, {"", "kube-system"}), uid_of(kube::resources::kPod, {"research", "train-0"}));
  }

  std::string uid_of(const kube::Resource& resource, const kube::Key& key) {
    return core::get_string(*kube.api().peek(resource, key), {"metadata", "uid"});
  }
  void add_job(const std::string& installation, const std::string& uid) {
    std::string& queue = slurm["slurm-restapi/slurm/" + std::string(GetParam().second) + "/jobs/"];
    Json document = Json::parse(queue);
    const auto is_third = [](const Json& job) { return job["job_id"] == 3; };
    Json job = *std::ranges::find_if(document["jobs"], is_third);
    job["job_id"] = 40;
    job["flags"].push_back("EXTERNAL_JOB");
    job["admin_comment"] = bridge_comment(installation, uid);
    document["jobs"].push_back(std::move(job));
    queue = document.dump();
  }
  Json explained(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"why", "pod/train-0", "-n", "research", "-o", "json"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(run(words), kDone) << err;
    return Json::parse(out);
  }
};

TEST_P(WhyPodProgramTest, ItsJobIsExplained) {
  // The simulated Deployment becomes ready during the first command.
  ASSERT_EQ(run({"why", "pod/train-0", "-n", "research"}), kDone) << err;
  ASSERT_EQ(run({"why", "pod/train-0", "-n", "research"}), kDone) << err;
  EXPECT_THAT(out, testing::AllOf(HasSubstr("Pod research/train-0 is Pending"), HasSubstr("It waits for Slurm.\n"),
                                  HasSubstr("\nJob 40 is pending, of user "), HasSubstr("Reason: QOSMaxJobsPerUserLimit\n"),
                                  HasSubstr("MaxJobsPerUser ")));
  EXPECT_THAT(out, Not(HasSubstr("0123456789abcdef")));
  const std::string first = out;
  ASSERT_EQ(run({"why", "pod", "train-0", "-n", "research", "--controller", "hpc/slurm"}), kDone) << err;
  EXPECT_EQ(out, first);
  const Json document = explained();
  EXPECT_EQ(document["kind"], "PodExplanation");
  EXPECT_EQ(document["controller"], "hpc/slurm");
  EXPECT_EQ(document["job"]["job"]["id"], "40");
  ASSERT_EQ(run({"why", "40", "-n", "research", "--cluster", "hpc/slurm"}), kDone) << err;
  EXPECT_THAT(first, HasSubstr(out));
}

TEST_P(WhyPodProgramTest, AUserOfTheNamespaceStillSeesWhatKubernetesHas) {
  forbidden = {"/deployments", "/kube-system", "/secrets", "/slinky.slurm.net/"};
  ASSERT_EQ(run({"why", "pod/train-0", "-n", "research"}), kDone) << err;
  EXPECT_THAT(out, testing::AllOf(HasSubstr("SlurmQueued is True"), HasSubstr("As many jobs run at once as this limit allows."),
                                  HasSubstr("Its job in Slurm is not shown: the settings of slurm-bridge cannot be read: "),
                                  HasSubstr("cannot read /deployments; --cluster NAMESPACE/NAME names its Controller.\n")));
  EXPECT_EQ(err, "");
  Json document = explained({"--cluster", "hpc/slurm"});
  EXPECT_THAT(document["jobUnknown"].get<std::string>(),
              testing::AllOf(HasSubstr("cannot read /slinky.slurm.net/"), HasSubstr("Your user lacks this right.")));
  forbidden = {"/deployments", "/secrets"};
  EXPECT_THAT(explained({"--cluster", "hpc/slurm"})["jobUnknown"].get<std::string>(),
              HasSubstr("the JWT key cannot be read: "));
  // The mark of the job names the UID of the pod, which is enough.
  forbidden = {"/deployments", "/kube-system"};
  document = explained({"--cluster", "hpc/slurm"});
  EXPECT_EQ(document["job"]["job"]["id"], "40");
  forbidden = {"/events"};
  EXPECT_EQ(explained()["job"]["job"]["id"], "40");
  forbidden = {"/pods"};
  EXPECT_EQ(run({"why", "pod/train-0", "-n", "research"}), kFailed);
  EXPECT_THAT(err, HasSubstr("Your user lacks this right."));
}

TEST_P(WhyPodProgramTest, TheJobOfAnotherClusterIsNotShown) {
  serve("slurm-restapi");
  add_job("another", uid_of(kube::resources::kPod, {"research", "train-0"}));
  const Json document = explained();
  EXPECT_TRUE(document["job"].is_null());
  EXPECT_EQ(document["jobUnknown"], "cluster hpc/slurm has no job of the pod");
  forget("/jobs/");
  EXPECT_THAT(explained()["jobUnknown"].get<std::string>(), HasSubstr("Slurm does not answer: "));
  EXPECT_THAT(explained({"--cluster", "hpc/none"})["jobUnknown"].get<std::string>(),
              HasSubstr("there is no cluster (Controller) none in namespace hpc"));
}

TEST_P(WhyPodProgramTest, WarningsOfThePod) {
  const auto event = [&](const std::string& name, const std::string& uid, const std::string& type, const std::string& message) {
    put({"", "v1", "Event", "events", true},
        {{"metadata", {{"name", name}, {"namespace", "research"}}},
         {"involvedObject", {{"kind", "Pod"}, {"name", "train-1"}, {"namespace", "research"}, {"uid", uid}}},
         {"type", type},
         {"reason", "FailedMount"},
         {"message", message},
         {"lastTimestamp", "2026-01-02T03:00:00Z"}});
  };
  pod["metadata"]["name"] = "train-1";
  place_pod(pod, 40, true);
  put(kube::resources::kPod, pod);
  const std::string uid = uid_of(kube::resources::kPod, {"research", "train-1"});
  event("a", uid, "Warning", "no such secret");
  event("b", "another pod", "Warning", "of another pod");
  event("c", uid, "Normal", "no warning");
  ASSERT_EQ(run({"why", "pod/train-1", "-n", "research"}), kDone) << err;
  EXPECT_THAT(out, testing::AllOf(HasSubstr("Warning FailedMount, 2026-01-02T03:00:00Z"), HasSubstr("  no such secret\n"),
                                  Not(HasSubstr("of another pod")), Not(HasSubstr("no warning"))));
  EXPECT_THAT(out, HasSubstr("does not list job 40 of the pod any more"));
}

TEST_P(WhyPodProgramTest, MistakesAndCompletion) {
  EXPECT_EQ(run({"why", "pod/none", "-n", "research"}), kFailed);
  EXPECT_EQ(err, "error: there is no pod none in namespace research; -n names another namespace\n");
  EXPECT_EQ(run({"why", "train-0", "-n", "research"}), kUsage);
  EXPECT_THAT(err, HasSubstr("name a pod as pod/train-0"));
  EXPECT_EQ(run({"why", "pod/train-0", "--cluster", "slurm"}), kUsage);
  EXPECT_THAT(err, HasSubstr("must be NAMESPACE/NAME of a Controller, because"));
  EXPECT_EQ(run({"why", "pod", "a", "b"}), kUsage);
  ASSERT_EQ(run({"__complete", "why", "-n", "research", "p"}), kDone);
  EXPECT_EQ(out, "pod/train-0\n:4\n");
  ASSERT_EQ(run({"__complete", "why", "-n", "research", "pod", "t"}), kDone);
  EXPECT_EQ(out, "train-0\n:4\n");
  kube.api().modify(
      kube::resources::kPod, {"research", "train-0"}, [](Json& object) { object["status"]["phase"] = "Running"; }, {},
      "status");
  ASSERT_EQ(run({"__complete", "why", "-n", "research", ""}), kDone);
  EXPECT_EQ(out, ":4\n");
}

INSTANTIATE_TEST_SUITE_P(Releases, WhyPodProgramTest, testing::Values(std::pair("26.05", "v0.0.45")),
                         [](const auto&) { return "Slurm26"; });

INSTANTIATE_TEST_SUITE_P(Releases, AccountsTest, testing::Values(std::pair("24.11", "v0.0.42"), std::pair("26.05", "v0.0.45")),
                         [](const auto& info) { return "Slurm" + std::string(info.param.first).substr(0, 2); });

constexpr const char* kCordonAnnotation = "nodeset.slinky.slurm.net/pod-cordon";

struct DrainProgramTest : ProgramTest {
  DrainProgramTest() { put_worker({"Mixed"}, ""); }

  void put_worker(std::initializer_list<const char*> states, const std::string& reason) {
    Json pod = worker_object("cpu-0", states, reason);
    pod["spec"]["containers"] = json(R"([{"name": "slurmd", "image": "i"}])");
    const Json status = pod["status"];
    if (kube.api().peek(kube::resources::kPod, {"hpc", "cpu-0"}) == nullptr) {
      pod["metadata"].erase("uid");
      ASSERT_TRUE(kube.api().create(kube::resources::kPod, pod));
    }
    ASSERT_TRUE(kube.api().modify(
        kube::resources::kPod, {"hpc", "cpu-0"}, [&](Json& object) { object["status"] = status; }, {}, "status"));
  }
  /// Returns the reason as the operator writes it for the pod's annotation.
  std::string shown_reason() { return "slurm-operator: " + annotation("nodeset.slinky.slurm.net/pod-cordon-reason"); }
  std::string annotation(const std::string& name) {
    return core::get_string(*kube.api().peek(kube::resources::kPod, {"hpc", "cpu-0"}), {"metadata", "annotations", name});
  }
};

TEST_F(DrainProgramTest, DrainWaitsForTheLastJob) {
  loop.after(10s, [&] { put_worker({"Mixed", "Drain"}, shown_reason()); });
  loop.after(60s, [&] { put_worker({"Idle", "Drain"}, shown_reason()); });
  ASSERT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--reason", "bad disk", "--wait"}), kDone) << err;
  EXPECT_EQ(annotation(kCordonAnnotation), "true");
  EXPECT_THAT(annotation("nodeset.slinky.slurm.net/pod-cordon-reason"), HasSubstr(": bad disk"));
  EXPECT_THAT(err, HasSubstr("cpu-0: waits for Slurm to drain it\ncpu-0: draining\ncpu-0: drained\n"));
  EXPECT_THAT(err, HasSubstr("cpu-0: requested the drain in Slurm from the operator"));
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0"}), kDone);
  EXPECT_THAT(err, HasSubstr("has been drained before"));
  EXPECT_EQ(run({"resume", "-n", "hpc", "cpu-0"}), kDone) << err;
  EXPECT_EQ(annotation(kCordonAnnotation), "");
}

TEST_F(DrainProgramTest, AnEarlierDrainOnThePodIsNotBelieved) {
  put_worker({"Idle", "Drain"}, "slurm-operator: drained by somebody earlier");
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait", "--timeout", "30s"}), kNotYet);
  EXPECT_THAT(err, Not(HasSubstr("cpu-0: drained\n")));
  EXPECT_THAT(err, HasSubstr("which may be older than this drain, and Slurm cannot be queried"));
  // Without --timeout, the wait still ends.
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait"}), kNotYet);
  EXPECT_THAT(err, HasSubstr("The drain remains"));
  // The pod shows the same reason until the operator ends the earlier drain.
  put_worker({"Idle", "Drain"}, shown_reason());
  loop.after(5s, [&] { put_worker({"Mixed"}, ""); });
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait", "--timeout", "30s"}), kNotYet);
  EXPECT_THAT(err, Not(HasSubstr("cpu-0: drained\n")));
}

TEST_F(DrainProgramTest, AWorkerWithoutANodeIsNotWaitedFor) {
  put_worker({}, "");
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait"}), kNotYet);
  EXPECT_THAT(err, HasSubstr("cpu-0: has no node in Slurm\n"));
  EXPECT_EQ(annotation(kCordonAnnotation), "true");
}

TEST_F(DrainProgramTest, AnExternalSlurmctldHasNoPodToRunCommandsIn) {
  put_worker({"Idle", "Drain"}, "bad disk");
  EXPECT_EQ(run({"resume", "-n", "hpc", "cpu-0"}), kRefused);
  EXPECT_THAT(err, HasSubstr("kubectl -n hpc exec slurm-controller-0 -c slurmctld -- scontrol update nodename=cpu-0"));
  kube.api().modify(slinky::resources::kController, {"hpc", "slurm"}, [](Json& object) {
    object["spec"]["external"] = true;
    object["spec"]["externalConfig"] = {{"host", "ctl.example.com"}, {"port", 6817}};
  });
  EXPECT_EQ(run({"resume", "-n", "hpc", "cpu-0"}), kRefused);
  EXPECT_THAT(err, HasSubstr("run: scontrol update nodename=cpu-0 state=resume"));
}

TEST_F(DrainProgramTest, ADrainStaysWhenWaitingEnds) {
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait", "--timeout", "20s"}), kNotYet);
  EXPECT_THAT(err, HasSubstr("The drain remains. To end it, run `kubectl slurm resume cpu-0`"));
  EXPECT_EQ(annotation(kCordonAnnotation), "true");
  patience = 1500ms;
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait"}), kInterrupted);
  EXPECT_THAT(err, HasSubstr("interrupted. The drain remains"));
  EXPECT_EQ(annotation(kCordonAnnotation), "true");
}

TEST_F(DrainProgramTest, WaitingEndsWhenThePodIsGoneOrSomebodyResumesIt) {
  loop.after(5s, [&] {
    kube.api().modify(kube::resources::kPod, {"hpc", "cpu-0"},
                      [](Json& pod) { pod["metadata"]["annotations"].erase(kCordonAnnotation); });
  });
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait"}), kFailed);
  EXPECT_THAT(err, HasSubstr("cpu-0: somebody resumed it"));
}

TEST_F(DrainProgramTest, AnothersDrainIsNotUndone) {
  put_worker({"Idle", "Drain"}, "bad disk");
  EXPECT_EQ(run({"resume", "-n", "hpc", "cpu-0"}), kRefused);
  EXPECT_THAT(err, HasSubstr("somebody else (bad disk)"));
}

struct RolloutProgramTest : ProgramTest {
  Json nodeset() { return *kube.api().peek(slinky::resources::kNodeSet, {"hpc", "cpu"}); }
};

TEST_F(RolloutProgramTest, PausesAndGoesOn) {
  ASSERT_EQ(run({"rollout", "pause", "cpu", "-n", "hpc"}), kDone) << err;
  EXPECT_TRUE(core::get_bool(nodeset(), {"spec", "updateStrategy", "paused"}));
  ASSERT_EQ(run({"rollout", "pause", "cpu", "-n", "hpc"}), kDone);
  EXPECT_EQ(err, "nothing to change\n");
  ASSERT_EQ(run({"rollout", "resume", "cpu", "-n", "hpc"}), kDone) << err;
  EXPECT_FALSE(core::get_bool(nodeset(), {"spec", "updateStrategy", "paused"}));
}

TEST_F(RolloutProgramTest, FollowsAnUpdateToItsEnd) {
  loop.after(30s, [&] {
    kube.api().modify(
        slinky::resources::kNodeSet, {"hpc", "cpu"},
        [](Json& object) {
          object["status"]["updatedReplicas"] = 3;
          object["status"]["observedGeneration"] = object["metadata"]["generation"];
          for (Json& condition : object["status"]["conditions"]) {
            if (condition["type"] == "Progressing")
              condition.update(Json{{"status", "False"}, {"reason", "Done"}, {"message", ""}});
          }
        },
        {}, "status");
  });
  ASSERT_EQ(run({"rollout", "status", "cpu", "-n", "hpc", "--once"}), kNotYet);
  ASSERT_EQ(run({"rollout", "status", "cpu", "-n", "hpc", "--timeout", "5s"}), kNotYet);
  ASSERT_EQ(run({"rollout", "status", "cpu", "-n", "hpc"}), kDone) << err;
  EXPECT_THAT(out, HasSubstr("2 of 3 workers are updated"));
  EXPECT_THAT(out, HasSubstr("NodeSet cpu is up to date: 3 workers, all ready\n"));
  EXPECT_EQ(run({"rollout", "status", "none", "-n", "hpc"}), kFailed);
}

TEST_F(RolloutProgramTest, AnApiServerThatIsAwayForAMomentIsToldOnce) {
  loop.after(5s, [&] { kube.set_listening(false); });
  loop.after(60s, [&] { kube.set_listening(true); });
  EXPECT_EQ(run({"rollout", "status", "cpu", "-n", "hpc", "--timeout", "5m"}), kNotYet);
  const auto first = err.find("cannot read the state, trying again: ");
  ASSERT_NE(first, std::string::npos) << err;
  EXPECT_EQ(err.find("cannot read the state", first + 1), std::string::npos) << err;
}

TEST_F(RolloutProgramTest, WithoutTheRightToLookItEnds) {
  for (const int status : {401, 403}) {
    refuse = 0;
    loop.after(10s, [&, status] { refuse = status; });
    EXPECT_EQ(run({"rollout", "status", "cpu", "-n", "hpc"}), kFailed) << status;
    EXPECT_THAT(err, HasSubstr(status == 401 ? "Log in again" : "Your user lacks this right"));
  }
}

TEST_F(RolloutProgramTest, UndoPutsTheRecordedTemplateBackAndNothingElse) {
  const auto record = [&](std::int64_t number) {
    const Json of = nodeset();
    const auto spec = api::from_json<api::NodeSet>(of)->spec;
    Json revision{{"revision", number}, {"data", api::revision_data(spec)}};
    revision["metadata"] = {{"name", "cpu-" + std::to_string(number)}, {"namespace", "hpc"}};
    revision["metadata"]["labels"] = {{"app.kubernetes.io/name", "slurmd"},
                                      {"app.kubernetes.io/instance", "cpu"},
                                      {"controller-revision-hash", api::revision_hash(spec)}};
    revision["metadata"]["ownerReferences"] =
        Json::array({kube::owner_reference_json(slinky::resources::kNodeSet, kube::parse_meta(of))});
    ASSERT_TRUE(kube.api().create(kube::resources::kControllerRevision, revision));
  };
  const auto change = [&](const Json& spec) {
    ASSERT_TRUE(kube.api().patch(slinky::resources::kNodeSet, {"hpc", "cpu"}, sim::PatchKind::kMerge, {{"spec", spec}}));
  };
  record(1);
  EXPECT_EQ(run({"rollout", "undo", "cpu", "-n", "hpc"}), kFailed);
  change({{"slurmd", {{"image", "slurmd:broken"}}}, {"extraConf", "Weight=5"}, {"replicas", 7}});
  record(2);
  ASSERT_EQ(run({"rollout", "undo", "cpu", "-n", "hpc", "--dry-run"}), kDone) << err;
  EXPECT_EQ(core::get_string(nodeset(), {"spec", "slurmd", "image"}), "slurmd:broken");
  ASSERT_EQ(run({"rollout", "undo", "cpu", "-n", "hpc"}), kDone) << err;
  EXPECT_EQ(core::get_string(nodeset(), {"spec", "slurmd", "image"}), "");
  EXPECT_EQ(core::get_string(nodeset(), {"spec", "extraConf"}), "");
  EXPECT_EQ(core::get_int(nodeset(), {"spec", "replicas"}), 7);
  ASSERT_EQ(run({"rollout", "history", "cpu", "-n", "hpc", "-o", "json"}), kDone) << err;
  EXPECT_EQ(Json::parse(out)["items"][0]["inForce"], true);
}

struct ReleaseProgramTest : ProgramTest {
  Json finalizers() {
    const Json object = *kube.api().peek(slinky::resources::kNodeSet, {"hpc", "cpu"});
    return object["metadata"].value("finalizers", Json::array());
  }
  void put_lease(const std::string& renewed) {
    kube.add_namespace("slurm-operator");
    put(kube::resources::kLease, {{"metadata", {{"name", "slurm-operator"}, {"namespace", "slurm-operator"}}},
                                  {"spec",
                                   {{"holderIdentity", "op-1_0123456789abcdef"},
                                    {"leaseDurationSeconds", 15},
                                    {"renewTime", renewed},
                                    {"acquireTime", renewed}}}});
  }
};

TEST_F(ReleaseProgramTest, IsRefusedWhileTheOperatorLeads) {
  put_lease(core::format_rfc3339_micro(loop.clock().wall()));
  EXPECT_EQ(run({"release", "slurm", "-n", "hpc", "--yes"}), kRefused);
  EXPECT_THAT(err, HasSubstr("the operator is active"));
  EXPECT_THAT(err, HasSubstr("scale deployment/slurm-operator --replicas=0"));
  EXPECT_EQ(finalizers().size(), 2U);
}

TEST_F(ReleaseProgramTest, TakesOursOffWhenSomebodySaysYes) {
  put_lease("2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(run({"release", "slurm", "-n", "hpc", "--dry-run"}), kDone) << err;
  EXPECT_EQ(run({"release", "slurm", "-n", "hpc"}), kRefused);
  EXPECT_EQ(finalizers().size(), 2U);
  ASSERT_EQ(run({"release", "slurm", "-n", "hpc", "--yes"}), kDone) << err;
  EXPECT_EQ(finalizers(), Json::array({"example.com/other"}));
  EXPECT_FALSE(kube.api()
                   .peek(slinky::resources::kController, {"hpc", "slurm"})
                   ->at("metadata")
                   .value("finalizers", Json::array())
                   .size() > 0);
  ASSERT_EQ(run({"release", "slurm", "-n", "hpc"}), kDone);
  EXPECT_THAT(out, HasSubstr("nothing of this operator is left"));
}

TEST_F(ProgramTest, ASupportBundleIsWrittenOnceAndHasNoSecret) {
  put(kube::resources::kSecret, {{"metadata", {{"name", "db"}, {"namespace", "hpc"}}},
                                 {"type", "Opaque"},
                                 {"data", {{"password", core::base64_encode("Pl4nted-Passw0rd")}}}});
  const std::string path = testing::TempDir() + "bundle-" + std::to_string(getpid()) + ".tar.gz";
  ASSERT_EQ(run({"support-bundle", "-n", "hpc", "-o", path}), kDone) << err;
  EXPECT_EQ(out, path + "\n");
  EXPECT_EQ(run({"support-bundle", "-n", "hpc", "-o", path}), kFailed) << "it overwrites nothing";
  std::ifstream file(path);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  EXPECT_GT(content.size(), 500U);
  std::remove(path.c_str());
}

TEST_F(ProgramTest, CompletesCommandsOptionsAndNames) {
  ASSERT_EQ(run({"__complete", "st"}), kDone);
  EXPECT_EQ(out, "status\n:4\n");
  ASSERT_EQ(run({"__complete", "drain", "--re"}), kDone);
  EXPECT_EQ(out, "--reason\n:4\n");
  ASSERT_EQ(run({"__complete", "status", "-n", "hpc", ""}), kDone);
  EXPECT_EQ(out, "slurm\n:4\n");
  for (const char* shell : {"bash", "zsh", "fish"}) {
    ASSERT_EQ(run({"completion", shell}), kDone);
    EXPECT_THAT(out, HasSubstr("kubectl-slurm __complete"));
  }
  EXPECT_EQ(run({"completion", "tcsh"}), kUsage);
}

}  // namespace
}  // namespace cli
