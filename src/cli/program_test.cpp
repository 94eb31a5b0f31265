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

/// Answers every request with this status, unless the status is 0.
class Gatekeeper final : public net::HttpTransport {
 public:
  Gatekeeper(core::Loop& loop, net::HttpTransport& behind, const int& status) : loop_(loop), behind_(behind), status_(status) {}
  RequestId send(net::HttpRequest request, Done done) override {
    if (status_ == 0) return behind_.send(std::move(request), std::move(done));
    net::HttpResponse reply;
    reply.status = status_;
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
};

class SimSession final : public Session {
 public:
  SimSession(sim::SimLoop& loop, sim::SimKube& kube, sim::Faults& faults, const int& refuse)
      : loop_(loop),
        behind_(loop, loop, kube, faults, loop.random().fork()),
        transport_(loop, behind_, refuse),
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
      auto session = std::make_unique<SimSession>(loop, kube, faults, refuse);
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
  EXPECT_THAT(err, HasSubstr("cpu-0: the operator is asked to drain it in Slurm"));
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0"}), kDone);
  EXPECT_THAT(err, HasSubstr("has been drained before"));
  EXPECT_EQ(run({"resume", "-n", "hpc", "cpu-0"}), kDone) << err;
  EXPECT_EQ(annotation(kCordonAnnotation), "");
}

TEST_F(DrainProgramTest, AnEarlierDrainOnThePodIsNotBelieved) {
  put_worker({"Idle", "Drain"}, "slurm-operator: drained by somebody earlier");
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait", "--timeout", "30s"}), kNotYet);
  EXPECT_THAT(err, Not(HasSubstr("cpu-0: drained\n")));
  EXPECT_THAT(err, HasSubstr("which may be of before this drain, and Slurm cannot be asked"));
  // Without --timeout, the wait still ends.
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait"}), kNotYet);
  EXPECT_THAT(err, HasSubstr("The drain stays"));
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
  EXPECT_THAT(err, HasSubstr("ends it with: scontrol update nodename=cpu-0 state=resume"));
}

TEST_F(DrainProgramTest, ADrainStaysWhenWaitingEnds) {
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait", "--timeout", "20s"}), kNotYet);
  EXPECT_THAT(err, HasSubstr("The drain stays; it ends with `kubectl slurm resume cpu-0`"));
  EXPECT_EQ(annotation(kCordonAnnotation), "true");
  patience = 1500ms;
  EXPECT_EQ(run({"drain", "-n", "hpc", "cpu-0", "--wait"}), kInterrupted);
  EXPECT_THAT(err, HasSubstr("interrupted. The drain stays"));
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
  const auto first = err.find("cannot look, trying again: ");
  ASSERT_NE(first, std::string::npos) << err;
  EXPECT_EQ(err.find("cannot look", first + 1), std::string::npos) << err;
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
  EXPECT_THAT(err, HasSubstr("the operator leads"));
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
