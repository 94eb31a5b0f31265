#include "operator/controller/build.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "core/hash.hpp"
#include "kube/cache/record.hpp"
#include "kube/client/credentials.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/testing/observed.hpp"

namespace op::controller {
namespace {

using core::Json;
using testing::observed_of;

Json pod_template(const Observed& observed) {
  const Rendered rendered = render_config(observed, {});
  EXPECT_TRUE(rendered.ok());
  const ConfigState state = next_config_state({}, [&](const ConfigState&) { return rendered; }, {});
  return build_stateful_set(observed, state, observed.keyring.digest)["spec"]["template"];
}

// If a version of the operator has another template, its installation restarts the slurmctld of every cluster. If this test
// fails, look for a way to avoid the restart. If there is none, add the restart to the release notes and put the new hash here.
TEST(StatefulSet, TemplateIsTheSameInEveryVersion) {
  EXPECT_EQ(core::sha256_hex(core::canonical(pod_template(observed_of(Json::object())))).substr(0, 16), "57807c06cbfa550e");
}

TEST(StatefulSet, TemplateDoesNotFollowTheConfiguration) {
  Observed observed = observed_of(Json::object());
  const Json before = pod_template(observed);
  observed.nodesets.push_back({"a", "a", true, "State=UP", false, "", "a-"});
  EXPECT_EQ(pod_template(observed), before) << "a NodeSet";
  observed.controller.spec.extra_conf = "SchedulerType=sched/builtin\n";
  EXPECT_EQ(pod_template(observed), before) << "a setting that a reconfigure loads";
  observed.controller.spec.extra_conf = "HashPlugin=hash/sha3\n";
  EXPECT_NE(pod_template(observed), before) << "a setting that needs a restart";
}

TEST(StatefulSet, PodsCarryTheControllersLabelsAndAnnotations) {
  Observed observed = observed_of(Json::object());
  const Json before = pod_template(observed);
  auto object = std::make_shared<kube::Object>(*observed.object);
  object->meta.annotations = {{"kubectl.kubernetes.io/last-applied-configuration", "{}"}};
  observed.object = object;
  EXPECT_EQ(pod_template(observed), before) << "each kubectl apply would restart slurmctld";
  object->meta.labels = {{"team", "a"}, {"app.kubernetes.io/component", "mine"}};
  object->meta.annotations["note"] = "x";
  const Json metadata = pod_template(observed)["metadata"];
  EXPECT_EQ(core::get_string(metadata, {"labels", "team"}), "a");
  EXPECT_EQ(core::get_string(metadata, {"labels", "app.kubernetes.io/component"}), "controller");
  EXPECT_EQ(core::get_string(metadata, {"annotations", "note"}), "x");
}

/// If srun waits in slurmctld's own pod, slurmctld calls srun back at the address from which srun connected.
TEST(StatefulSet, ClientsInThePodReachSlurmctldWithoutItsService) {
  Observed observed = observed_of(Json::object());
  const kube::ObjectMeta& meta = observed.object->meta;
  const std::string name = meta.name + "-controller." + meta.ns;
  const std::string conf = render_config(observed, {}).files.at("slurm.conf");
  EXPECT_NE(conf.find("(" + name + ")"), std::string::npos) << "the name that clients look for";
  EXPECT_EQ(pod_template(observed)["spec"]["hostAliases"], Json::array({{{"ip", "127.0.0.1"}, {"hostnames", {name}}}}));
  observed.controller.spec.pod_template.spec = {
      {"hostAliases", {{{"ip", "192.0.2.1"}, {"hostnames", {"license"}}}, {{"ip", "127.0.0.1"}, {"hostnames", {"self"}}}}}};
  EXPECT_EQ(pod_template(observed)["spec"]["hostAliases"], Json::array({{{"ip", "192.0.2.1"}, {"hostnames", {"license"}}},
                                                                        {{"ip", "127.0.0.1"}, {"hostnames", {"self", name}}}}))
      << "those of users stay";
}

/// slurmctld sends messages to each srun. It holds its job lock while it resolves the host name of the srun.
TEST(StatefulSet, SlurmctldKnowsTheNamesOfWorkersAndLoginNodes) {
  Observed observed = observed_of(Json::object());
  observed.cluster_domain = "example.com";
  const std::string domain =
      fmt::format("slurm-workers-{}.{}.svc.example.com", observed.object->meta.name, observed.object->meta.ns);
  EXPECT_EQ(pod_template(observed)["spec"]["dnsConfig"], Json({{"searches", {domain}}}));
  // As with all other fields, the user's settings win.
  observed.controller.spec.pod_template.spec = {{"dnsPolicy", "None"},
                                                {"dnsConfig", {{"nameservers", {"192.0.2.53"}}, {"searches", Json::array()}}}};
  EXPECT_EQ(pod_template(observed)["spec"]["dnsConfig"], Json({{"nameservers", {"192.0.2.53"}}, {"searches", {domain}}}));
  observed.controller.spec.pod_template.spec["dnsConfig"]["searches"] = {"site.example"};
  EXPECT_EQ(pod_template(observed)["spec"]["dnsConfig"]["searches"], Json({"site.example"}));
}

TEST(StatefulSet, TemplateFollowsTheKeys) {
  Observed observed = observed_of(Json::object());
  const Json before = pod_template(observed);
  observed.jwt_key.digest = "other";
  EXPECT_NE(pod_template(observed), before);
}

TEST(StatefulSet, ReconfigureSidecarKnowsTheMark) {
  const Json pod = pod_template(observed_of({{"inplaceReconfigure", true}, {"reconfigure", {{"image", "mine"}}}}));
  const Json& sidecar = pod["spec"]["initContainers"][0];
  EXPECT_EQ(sidecar["name"], "reconfigure");
  EXPECT_EQ(sidecar["image"], "mine");
  EXPECT_EQ(sidecar["restartPolicy"], "Always");
  EXPECT_NE(sidecar["command"][2].get<std::string>().find("PartitionName=\\(slurm-operator-[0-9a-z]*\\)"), std::string::npos)
      << sidecar["command"][2];
}

/// Runs the sidecar until it reconfigures. `squeue`: the script that replaces squeue. Returns the output until the reconfigure,
/// which ends with the number of pauses.
std::string waited_before_reconfigure(const char* squeue) {
  const std::filesystem::path bin = std::filesystem::path(::testing::TempDir()) / ("sidecar-" + std::to_string(getpid()));
  std::filesystem::create_directories(bin);
  const auto stand_in = [&](const char* name, const std::string& script) {
    std::ofstream(bin / name) << "#!/bin/sh\npauses=$(dirname \"$0\")/pauses\n" << script << "\n";
    std::filesystem::permissions(bin / name, std::filesystem::perms::owner_all);
  };
  stand_in("sleep", "echo \"$1\" >>\"$pauses\"");
  stand_in("sed", "echo slurm-operator-1");
  stand_in("squeue", squeue);
  stand_in("scontrol", "case $1 in ping) exit ;; reconfigure) wc -l <\"$pauses\"; kill $PPID; exit ;; esac\nexit 1");
  const Json pod = pod_template(observed_of({{"inplaceReconfigure", true}}));
  kube::System::Command command;
  command.argv = {"/usr/bin/env", "PATH=" + bin.string() + ":/usr/bin:/bin"};
  for (const Json& word : pod["spec"]["initContainers"][0]["command"]) command.argv.push_back(word);
  const core::Result<std::string> said = kube::real_system().run(command);
  std::filesystem::remove_all(bin);
  return said ? said->substr(0, said->find("reconfigured")) : said.error().message;
}

TEST(StatefulSet, ReconfigureSidecarWaitsForJobsThatStart) {
  EXPECT_EQ(waited_before_reconfigure(""), "1\n");
  EXPECT_EQ(waited_before_reconfigure("echo '7 RUNNING None'; echo '8 RUNNING PrologX'"), "1\n");
  const std::string told = "jobs were starting for a minute, or cannot be seen:\n";
  EXPECT_EQ(waited_before_reconfigure("echo '7 RUNNING None'; echo '8 RUNNING Prolog'"), told + "8 RUNNING Prolog\n13\n");
  EXPECT_EQ(waited_before_reconfigure("echo '9 CONFIGURING None'"), told + "9 CONFIGURING None\n13\n");
  EXPECT_EQ(waited_before_reconfigure("exit 1"), told + "\n13\n");
  EXPECT_EQ(waited_before_reconfigure("[ $(wc -l <\"$pauses\") -gt 3 ] || echo '9 RUNNING Prolog'"), "4\n");
}

// ReturnToService decides which nodes accept jobs again when they register: nodes that an administrator has set down, or nodes
// that did not respond.
TEST(RenderConfig, SaysWhatReturnsToService) {
  const std::string conf = render_config(observed_of(Json::object()), {}).files.at("slurm.conf");
  EXPECT_NE(conf.find("\nReturnToService=1\n"), std::string::npos) << conf;
}

TEST(RenderConfig, IsStable) {
  Observed observed = observed_of({{"extraConf", "SchedulerType=sched/builtin\n"}});
  observed.nodesets = {{"a", "a", false, "", false, "", "a-"}, {"b", "b", true, "State=UP", false, "", "b-"}};
  const Rendered first = render_config(observed, {});
  const Rendered second = render_config(observed, {});
  EXPECT_EQ(first.files, second.files);
  EXPECT_EQ(first.hash, second.hash);
  EXPECT_NE(first.files.at("slurm.conf").find(first.hash), std::string::npos) << "the file carries its own hash";
}

TEST(RenderConfig, APartitionThatIsLeftOutStaysWithoutItsWordsWhereItMayHaveJobs) {
  Observed observed = observed_of(Json::object());
  observed.nodesets = {{"a", "a", true, "QOS=later", false, "", "a-"}};
  ConfigState state;
  state.left_out["a"] = {"QOS=later", "no", core::WallTime{}, 1};
  const auto conf = [&] { return render_config(observed, state).files.at("slurm.conf"); };
  EXPECT_EQ(conf().find("PartitionName=a"), std::string::npos) << "no worker has ever registered";
  state.served_key = "slurm";
  EXPECT_NE(conf().find("\nPartitionName=a Nodes=a\n"), std::string::npos) << "it was up, and jobs may wait: " << conf();
  state.served_key.clear();
  state.ran = true;
  EXPECT_NE(conf().find("\nPartitionName=a Nodes=a\n"), std::string::npos) << "a worker had registered: " << conf();
  state.ran = false;
  observed.workers_registered = true;
  EXPECT_NE(conf().find("\nPartitionName=a Nodes=a\n"), std::string::npos) << conf();
  state.accepted_hash = "known";
  EXPECT_EQ(conf().find("PartitionName=a"), std::string::npos) << "slurmctld runs without it";
  auto pod = std::make_shared<kube::PodRecord>();
  pod->phase = "Running";
  pod->containers.emplace_back();
  pod->containers.back().name = kAppController;
  pod->containers.back().crashed = true;
  observed.pods = {pod};
  EXPECT_NE(conf().find("\nPartitionName=a Nodes=a\n"), std::string::npos) << "it may have loaded it before it ended";
}

TEST(RenderConfig, ATableIsNotMadeSmallerWhileNobodyKnowsWhatIsInIt) {
  Observed observed = observed_of(Json::object());
  observed.controller.spec.extra_conf = "MaxNodeCount=50\n";
  ConfigState state;
  state.offered["slurm.conf"] = "MaxNodeCount=100\n";
  const auto takes = [&](const char* line) {
    return render_config(observed, state).files.at("slurm.conf").find(line) != std::string::npos;
  };
  EXPECT_TRUE(takes("\nMaxNodeCount=50\n")) << "nothing has ever run with the other";
  observed.workers_registered = true;
  EXPECT_TRUE(takes("\nMaxNodeCount=100\n"));
  state.offered["slurm.conf"] = "MaxNodeCount=40\n";
  EXPECT_TRUE(takes("\nMaxNodeCount=50\n")) << "it grows";
}

TEST(RenderConfig, ALongClusterNameIsRefusedBeforeSlurmctldDoes) {
  Observed observed = observed_of(Json::object());
  observed.controller.spec.cluster_name = std::string(41, 'a');  // The default, <namespace>_<name>, can be this long.
  const Rendered rendered = render_config(observed, {});
  ASSERT_EQ(rendered.problems.size(), 1U);
  EXPECT_EQ(rendered.problems[0].reason, "ClusterNameTooLong");
}

TEST(RenderConfig, WhatSlurmMayKnowIsAppliedAndTold) {
  const Rendered rendered = render_config(observed_of({{"extraConf", "SchedulerType=sched/builtin\nZyzzyvaWeight=7\n"}}), {});
  EXPECT_TRUE(rendered.ok());
  EXPECT_NE(rendered.files.at("slurm.conf").find("\nZyzzyvaWeight=7\n"), std::string::npos);
  ASSERT_EQ(rendered.warnings.size(), 1U);
  EXPECT_EQ(rendered.warnings[0].reason, "ExtraConfSuspect");
  EXPECT_NE(rendered.warnings[0].message.find("line 2: ZyzzyvaWeight"), std::string::npos) << rendered.warnings[0].message;
}

TEST(RenderConfig, JwksNeedsItsKeyInTheConfigMap) {
  Observed observed = observed_of({{"jwksKeyRef", {{"name", "jwks"}, {"key", "jwks.json"}}}});
  observed.jwks = NamedFiles{"jwks", kube::Presence::kPresent, {{"other.json", "{}"}}};
  const Rendered rendered = render_config(observed, {});
  EXPECT_TRUE(rendered.files.empty());
  ASSERT_EQ(rendered.problems.size(), 1U);
  EXPECT_EQ(rendered.problems[0].reason, "ConfigMapKeyMissing");
  EXPECT_EQ(rendered.problems[0].message, "ConfigMap ns/jwks has no data under the key jwks.json");
  observed.jwks->files = {{"jwks.json", "{}"}};
  EXPECT_TRUE(render_config(observed, {}).ok());
}

}  // namespace
}  // namespace op::controller
