#include "operator/nodeset/build_worker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "kube/cache/record.hpp"
#include "kube/client/credentials.hpp"
#include "operator/common/slinky.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/testing/world.hpp"
#include "slinky/worker_names.hpp"

namespace op::nodeset {
namespace {

using core::Json;
using testing::World;

Json pod_of(const Json& spec, int ordinal = 3) {
  const Observed observed = World(spec).observe();
  const core::Result<Json> made = worker_template(observed, "hash");
  EXPECT_TRUE(made) << made.error().message;
  return worker_pod(*made, observed, {ordinal});
}

Json named(const Json& list, std::string_view name) {
  for (const Json& item : list) {
    if (item["name"] == name) return item;
  }
  return nullptr;
}

Json slurmd_of(const Json& pod) {
  return named(pod["spec"]["containers"], "slurmd");
}

/// Returns the content of a file of the repository.
std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Compares the whole pod of the shortest spec with the golden file, because an accidental change of a probe, a grace period or
// a mount can end jobs. For an intended change, copy the new pod over the golden file and review the diff.
TEST(BuildWorker, IsTheWholePodOfTheGoldenFile) {
  const std::filesystem::path golden = "src/operator/nodeset/testdata/worker_pod.json";
  const std::filesystem::path made = std::filesystem::path(::testing::TempDir()) / "worker_pod.json";
  const std::string pod = pod_of(Json::object()).dump(2) + "\n";
  if (pod == text_of(golden)) return;
  std::ofstream(made) << pod;
  const Json before = Json::parse(text_of(golden), nullptr, false);
  ADD_FAILURE() << (before.is_discarded() ? "there is none, or not in this directory"
                                          : Json::diff(before, Json::parse(pod)).dump(1))
                << "\n  as it should be? cp " << made << " " << golden;
}

TEST(BuildWorker, RegistersDrainedWhereOthersHadDrainedItsNode) {
  World world({{"extraConf", "CPUs=2"}, {"slurmd", {{"args", {"-vv"}}}}});
  world.nodeset()["status"]["drainsToRestore"]["cpu-3"] = "bad disk";
  const Observed observed = world.observe();
  const core::Result<Json> made = worker_template(observed, "hash");
  ASSERT_TRUE(made) << made.error().message;
  const Json pod = worker_pod(*made, observed, {3}), other = worker_pod(*made, observed, {4});
  EXPECT_EQ(slurmd_of(pod)["args"][4], "'Features=cpu CPUs=2 $(SLURMD_FIRST_CONF)'");
  EXPECT_EQ(named(slurmd_of(pod)["env"], "SLURMD_FIRST_CONF")["valueFrom"]["fieldRef"]["fieldPath"],
            "metadata.annotations['nodeset.slinky.slurm.net/first-conf']");
  EXPECT_EQ(pod["metadata"]["annotations"]["nodeset.slinky.slurm.net/first-conf"],
            "State=DRAIN Reason=drained-before-its-record-was-made-anew");
  EXPECT_EQ(slurmd_of(other)["args"][4], "'Features=cpu CPUs=2'");
  EXPECT_FALSE(other["metadata"]["annotations"].contains("nodeset.slinky.slurm.net/first-conf"));
}

TEST(BuildWorker, IsWhatUsersOfTheGoOperatorExpect) {
  const Json pod =
      pod_of(Json{{"template", {{"metadata", {{"labels", {{"team", "a"}, {"app.kubernetes.io/name", "mine"}}}}}}}});
  EXPECT_EQ(pod["metadata"]["name"], "cpu-3");
  EXPECT_EQ(pod["metadata"]["namespace"], "default");
  const Json labels{{"app.kubernetes.io/name", "slurmd"},
                    {"app.kubernetes.io/instance", "cpu"},
                    {"app.kubernetes.io/component", "worker"},
                    {"slinky.slurm.net/cluster", "demo"},
                    {"nodeset.slinky.slurm.net/pod-name", "cpu-3"},
                    {"nodeset.slinky.slurm.net/pod-index", "3"},
                    {"nodeset.slinky.slurm.net/pod-hostname", "cpu-3"},
                    {"nodeset.slinky.slurm.net/scaling-mode", "StatefulSet"},
                    {"nodeset.slinky.slurm.net/pod-protect", "true"},
                    {"controller-revision-hash", "hash"},
                    {"team", "a"}};
  EXPECT_EQ(pod["metadata"]["labels"], labels);
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["kind"], "NodeSet");
  EXPECT_EQ(pod["metadata"]["ownerReferences"][0]["uid"], "set-uid");
  EXPECT_EQ(pod["metadata"]["annotations"]["kubectl.kubernetes.io/default-container"], "slurmd");

  const Json& spec = pod["spec"];
  EXPECT_EQ(spec["hostname"], "cpu-3");
  EXPECT_EQ(spec["subdomain"], "slurm-workers-demo");
  EXPECT_EQ(spec["dnsConfig"]["searches"], Json::array({"slurm-workers-demo.default.svc.cluster.local"}));
  EXPECT_EQ(spec["automountServiceAccountToken"], false);
  std::vector<std::string> tolerated;
  for (const Json& toleration : spec["tolerations"]) {
    EXPECT_EQ(toleration, toleration_of(toleration["key"].get<std::string>()));
    tolerated.push_back(toleration["key"]);
  }
  EXPECT_THAT(tolerated, ::testing::ElementsAre("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
                                                "nodeset.slinky.slurm.net/worker"));
  EXPECT_EQ(spec["volumes"].size(), 2U);
  const Json& source = spec["volumes"][0]["projected"]["sources"][0]["secret"];
  EXPECT_EQ(source["name"], "demo-keyring");
  EXPECT_EQ(source["items"], Json::array({{{"key", "slurm.key"}, {"path", "slurm.key"}}}));
  const Json terms = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
  ASSERT_EQ(terms.size(), 1U);
  EXPECT_EQ(terms[0]["labelSelector"]["matchExpressions"][0]["values"], Json::array({"slurmd"}));

  const Json slurmd = slurmd_of(pod);
  EXPECT_EQ(slurmd["args"], Json::array({"-Z", "--conf-server", "demo-controller.default:6817", "--conf", "'Features=cpu'"}));
  EXPECT_EQ(slurmd["securityContext"]["privileged"], true);
  EXPECT_EQ(slurmd["securityContext"]["capabilities"]["add"], Json::array({"BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"}));
  EXPECT_EQ(slurmd["ports"], Json::array({{{"name", "slurmd"}, {"containerPort", 6818}, {"protocol", "TCP"}}}));
  EXPECT_EQ(slurmd["readinessProbe"]["periodSeconds"], 1);
  EXPECT_EQ(slurmd["volumeMounts"][0]["mountPath"], "/etc/slurm");
  const std::string stop = slurmd["lifecycle"]["preStop"]["exec"]["command"][2];
  EXPECT_TRUE(stop.starts_with("timeout 3 "));
  EXPECT_EQ(named(slurmd["env"], "POD_UID")["valueFrom"]["fieldRef"]["fieldPath"], "metadata.uid");
  ASSERT_EQ(spec["initContainers"].size(), 1U);
  const Json& wait = spec["initContainers"][0];
  EXPECT_EQ(wait["name"], "wait-controller");
  EXPECT_EQ(wait["image"], "local/slurmd:26.05");
  EXPECT_EQ(wait["command"][3], "demo-controller.default");
  EXPECT_EQ(wait["command"][4], "6817");
  EXPECT_THAT(wait["command"][2].get<std::string>(), ::testing::HasSubstr("/dev/tcp/$0/$1")) << "it asks for slurmctld";
  EXPECT_THAT(wait["command"][2].get<std::string>(), ::testing::HasSubstr("sleep 0.2;")) << "every 0.2 s";
}

TEST(BuildWorker, HasSshdWhereItIsAskedFor) {
  const Json plain = pod_of({{"ssh", {{"enabled", false}, {"sssdConfRef", {{"name", "s"}, {"key", "k"}}}}}});
  EXPECT_EQ(plain, pod_of(Json::object()));

  const Json pod = pod_of(
      {{"ssh", {{"enabled", true}, {"extraSshdConfig", "MaxSessions 7"}, {"sssdConfRef", {{"name", "s"}, {"key", "k"}}}}},
       {"slurmd", {{"ports", {{{"name", "ssh"}, {"containerPort", 2222}}}}}}});
  const Json& spec = pod["spec"];
  const Json slurmd = slurmd_of(pod);
  EXPECT_EQ(named(slurmd["ports"], "ssh")["containerPort"], 2222) << "users choose another one";
  const std::string conf = pod["metadata"]["annotations"]["slinky.slurm.net/sshd-config"];
  EXPECT_THAT(conf, ::testing::HasSubstr("\nUsePAM yes\n"));
  EXPECT_THAT(conf, ::testing::HasSubstr("\nHostKey /etc/ssh/host_keys.d/ssh_host_ed25519_key\n"));
  EXPECT_NE(conf.find("# extraSshdConfig\nMaxSessions 7\n"), std::string::npos) << conf;
  EXPECT_EQ(named(spec["volumes"], "ssh-config")["projected"]["sources"][0]["downwardAPI"]["items"][0]["fieldRef"]["fieldPath"],
            "metadata.annotations['slinky.slurm.net/sshd-config']");
  EXPECT_EQ(named(spec["volumes"], "ssh-host-keys")["projected"]["sources"][0]["secret"],
            (Json{{"name", "cpu-worker-ssh-host-keys"}}))
      << "the kubelet waits until it sees them";
  EXPECT_EQ(named(spec["volumes"], "ssh-host-keys")["projected"]["defaultMode"], 0600);
  EXPECT_EQ(named(spec["volumes"], "sssd-conf")["projected"]["sources"][0]["secret"],
            (Json{{"name", "s"}, {"items", {{{"key", "k"}, {"path", "sssd.conf"}}}}}));
  EXPECT_EQ(named(slurmd["volumeMounts"], "ssh-config")["mountPath"], "/etc/ssh/sshd_config");
  EXPECT_EQ(named(slurmd["volumeMounts"], "ssh-host-keys")["mountPath"], "/etc/ssh/host_keys.d");
  EXPECT_EQ(named(slurmd["volumeMounts"], "sssd-conf")["mountPath"], "/etc/sssd/sssd.conf");
  const Json check = named(spec["initContainers"], "check");
  EXPECT_EQ(check["image"], slurmd["image"]);
  EXPECT_EQ(named(check["volumeMounts"], "sssd-conf")["mountPath"], "/etc/sssd/sssd.conf");
  EXPECT_EQ(slurmd["readinessProbe"], slurmd_of(plain)["readinessProbe"]) << "a worker serves jobs, whatever sshd does";
}

TEST(BuildWorker, SshdKnowsTheUsersOfTheImageWhereNothingElseIsSaid) {
  const Json pod = pod_of({{"ssh", {{"enabled", true}}}});
  EXPECT_TRUE(named(pod["spec"]["volumes"], "sssd-conf").is_null());
  EXPECT_TRUE(named(slurmd_of(pod)["volumeMounts"], "sssd-conf").is_null());
}

constexpr const char* kNoRecord = "";

/// Runs the preStop hook with a fake scontrol. After " State=", scontrol prints `shown`, or `later` (if given) once the hook
/// has drained the node. Returns what the hook does: "drain and down REASON", "down REASON", or "".
std::string after_pre_stop(const std::string& shown, const std::optional<std::string>& later = {}) {
  const std::filesystem::path bin = std::filesystem::path(::testing::TempDir()) / ("pre-stop-" + std::to_string(getpid()));
  std::filesystem::create_directories(bin);
  const auto stand_in = [&](const char* name, const char* script) {
    std::ofstream(bin / name) << "#!/bin/sh\n" << script << "\n";
    std::filesystem::permissions(bin / name, std::filesystem::perms::owner_all);
  };
  stand_in("hostname", "echo cpu-3");
  stand_in("scontrol", R"sh(wrote=$(dirname "$0")/wrote
if [ "$1" = update ]; then touch "$wrote"; printf '[%s]' "$@"; exit; fi
[ -e "$wrote" ] && SHOWN=$LATER
[ -n "$SHOWN" ] || exit 1
printf '%s\n' "NodeName=cpu-3 NodeAddr=10.0.0.1 State=$SHOWN Comment={\"podName\":\"cpu-3\"} ")sh");
  kube::System::Command command;
  command.argv = {"/usr/bin/env", "PATH=" + bin.string() + ":/usr/bin:/bin", "POD_UID=uid-7", "SHOWN=" + shown,
                  "LATER=" + later.value_or(shown)};
  const Json hook = slurmd_of(pod_of(Json::object()))["lifecycle"]["preStop"]["exec"]["command"];
  command.argv.insert(command.argv.end(), hook.begin(), hook.end());
  const core::Result<std::string> said = kube::real_system().run(command);
  std::filesystem::remove_all(bin);
  EXPECT_TRUE(said) << said.error().message;
  const std::string drain = "[update][nodename=cpu-3][state=drain][reason=",
                    down = "[update][nodename=cpu-3][state=down][reason=";
  const std::size_t at = said ? said->find(down) : std::string::npos;
  if (at == std::string::npos) return "";
  const std::string reason = said->substr(at + down.size(), said->size() - at - down.size() - 1);
  if (at == 0) return "down " + reason;
  if (*said == drain + reason + "]" + down + reason + "]") return "drain and down " + reason;
  return said->starts_with(drain) ? "drain, then down " + reason : *said;
}

TEST(BuildWorker, PreStopKeepsTheWordOfWhoeverTookTheNodeFromWork) {
  constexpr const char* kTime = " [root@2026-01-02T03:04:05]";
  const std::string ours = "drain and down slurm-operator: Pod is terminating (uid-7)",
                    silent = "down drained without a reason";
  const auto after = [&](const char* state, const std::string& reason) {
    return after_pre_stop(std::string(state) + " ThreadsPerCore=1 NextState=UNKNOWN" +
                          (reason.empty() ? "" : "  Reason=" + reason + kTime));
  };
  EXPECT_EQ(after("IDLE+DYNAMIC_NORM", ""), ours);
  EXPECT_EQ(after("IDLE+DYNAMIC_NORM", "left over"), ours) << "before 26.05 a reason stays on a node that works";
  EXPECT_EQ(after("IDLE+DRAIN+DYNAMIC_NORM", "bad disk"), "") << "it runs nothing, and who undrains it is not to find it DOWN";
  EXPECT_EQ(after("MIXED+DRAIN+DYNAMIC_NORM", "bad disk"), "down bad disk");
  EXPECT_EQ(after("DOWN+DYNAMIC_NORM", "repair, until [3pm]"), "down repair, until [3pm]");
  EXPECT_EQ(after("MIXED+FAIL", "ECC errors"), "down ECC errors");
  EXPECT_EQ(after("MIXED+FAIL", "slurm-operator: x"), "down slurm-operator: x") << "a drain would end the fail";
  EXPECT_EQ(after("IDLE+DRAIN", "slurm-operator: Node (a) was cordoned"), ours) << "and not when the node is uncordoned";
  EXPECT_EQ(after("DOWN+DRAIN+NOT_RESPONDING", "slurm-operator: x : Not responding"), ours);
  EXPECT_EQ(after("IDLE+DRAIN", "slurm-operator: a; b; slurm-bridge: pods; run"), ours + "; slurm-bridge: pods; run");
  EXPECT_EQ(after("MIXED+DRAIN", "slurm-operator: a; slurm-bridge: b; slurm-enlist: c"),
            ours + "; slurm-bridge: b; slurm-enlist: c");
  EXPECT_EQ(after("DOWN+DRAIN", "slurm-operator: a; slurm-enlist: c : Not responding"),
            ours + "; slurm-enlist: c : Not responding");
  EXPECT_EQ(after("IDLE", "slurm-operator: a; slurm-bridge: left over"), ours);
  EXPECT_EQ(after("DOWN+NOT_RESPONDING", "slurm-operator: a; slurm-bridge: left over : Not responding"), ours);
  EXPECT_EQ(after("MIXED+DRAIN", "slurm-bridge: pods run there"), "down slurm-bridge: pods run there");
  EXPECT_EQ(after("IDLE+COMPLETING+DRAIN", ""), silent) << "nobody undoes what we did not do";
  EXPECT_EQ(after("IDLE+FAIL", ""), silent);
  EXPECT_EQ(after("DOWN", "Not responding"), ours) << "that is slurmctld's";
  EXPECT_EQ(after("DOWN+DRAIN+NOT_RESPONDING", "Not responding"), silent);
  EXPECT_EQ(after("DOWN", "Not responding to IPMI, RMA 12"), "down Not responding to IPMI, RMA 12");
  EXPECT_EQ(after("DOWN", "Not responding : Not responding"), ours);
  EXPECT_EQ(after("DOWN", "Node unexpectedly rebooted"), ours);
}

TEST(BuildWorker, PreStopLooksAgainAfterItsDrain) {
  constexpr const char* kOurs = "drain and down slurm-operator: Pod is terminating (uid-7)";
  const auto reason = [](const std::string& text) {
    return " NextState=UNKNOWN  Reason=" + text + " [root@2026-01-02T03:04:05]";
  };
  const std::string drained = reason("slurm-operator: Pod is terminating (uid-7)");
  EXPECT_EQ(after_pre_stop(kNoRecord), "");
  EXPECT_EQ(after_pre_stop("IDLE", "IDLE+DRAIN" + drained), kOurs);
  EXPECT_EQ(after_pre_stop("MIXED", "MIXED+DRAIN" + drained), kOurs);
  EXPECT_EQ(after_pre_stop("MIXED", kNoRecord), kOurs) << "slurmctld may be away for a moment";
  EXPECT_EQ(after_pre_stop("MIXED", "MIXED+DRAIN" + reason("bad disk")), "drain, then down bad disk") << "said meanwhile";
  EXPECT_EQ(after_pre_stop("MIXED", "MIXED" + drained), kOurs) << "somebody resumed it";
}

TEST(BuildWorker, AProbeKillsNoSlurmdThatSlurmStillWaitsFor) {
  World world;
  for (const int seconds : {300, 1000, 0}) {
    world.add_to_conf("SlurmdTimeout=" + std::to_string(seconds));
    const Observed observed = world.observe();
    const Json probe = slurmd_of(worker_pod(worker_template(observed, "hash").value(), observed, {0}))["livenessProbe"];
    const int window = probe["periodSeconds"].get<int>() * (probe["failureThreshold"].get<int>() - 1);
    EXPECT_GT(window, seconds == 0 ? 80000 : seconds) << seconds;
    EXPECT_GE(probe["timeoutSeconds"].get<int>(), 5) << "a loaded host answers late";
  }
}

TEST(BuildWorker, WorkersAreNotTheFirstToBeEvictedForPressure) {
  const auto resources = [](const Json& spec) { return slurmd_of(pod_of(spec)).value("resources", Json()); };
  EXPECT_EQ(resources(Json::object())["requests"], (Json{{"cpu", "100m"}, {"memory", "128Mi"}}));
  const Json limits{{"limits", {{"memory", "8Gi"}}}};
  EXPECT_EQ(resources({{"slurmd", {{"resources", limits}}}})["requests"], (Json{{"cpu", "100m"}})) << "a limit is the request";
  EXPECT_EQ(resources({{"slurmd", {{"resources", {{"requests", {{"cpu", "4"}, {"memory", "1Gi"}}}}}}}})["requests"],
            (Json{{"cpu", "4"}, {"memory", "1Gi"}}));
}

TEST(BuildWorker, APriorityIsTheOneThatUsersNameOrTheOperators) {
  const auto of = [](const Json& spec) {
    Observed observed = World(spec).observe();
    observed.worker_priority_class = "workers";
    return (*worker_template(observed, "hash"))["spec"].value("priorityClassName", "");
  };
  EXPECT_EQ(of(Json::object()), "workers");
  EXPECT_EQ(of({{"template", {{"spec", {{"priorityClassName", ""}}}}}}), "workers");
  EXPECT_EQ(of({{"template", {{"spec", {{"priorityClassName", "mine"}}}}}}), "mine");
  EXPECT_FALSE(pod_of(Json::object())["spec"].contains("priorityClassName"));
}

TEST(BuildWorker, UsersSayHowLongWorkersStayOnALostHost) {
  const Json own{
      {"key", "node.kubernetes.io/unreachable"}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 60}};
  const Json pod = pod_of({{"template", {{"spec", {{"tolerations", Json::array({own})}}}}}});
  EXPECT_EQ(pod["spec"]["tolerations"], Json::array({own, toleration_of("node.kubernetes.io/not-ready"),
                                                     toleration_of("nodeset.slinky.slurm.net/worker")}));
}

TEST(BuildWorker, NoTagEndsADaemon) {
  for (const char* image : {"local/slurmd:26.05", "local/slurmd:24.11", "local/slurmd:26.04-slurm24.11",
                            "local/slurmd:slurmd-rocm-24.05.7-26.05.1", "local/slurmd", "local/slurmd@sha256:0123"}) {
    const Json slurmd = slurmd_of(pod_of(Json{{"slurmd", {{"image", image}}}}));
    for (const char* probe : {"startupProbe", "livenessProbe", "readinessProbe"}) {
      EXPECT_EQ(slurmd[probe]["tcpSocket"]["port"], "slurmd") << probe << " of " << image;
      EXPECT_FALSE(slurmd[probe].contains("httpGet")) << probe << " of " << image;
    }
  }
}

TEST(BuildWorker, WhatUsersWriteWins) {
  const Json pod = pod_of(Json::parse(R"({
    "slurmd": {"image": "mine:26.05", "args": ["-v"], "env": [{"name": "POD_CPUS", "value": "7"}, {"name": "X", "value": "y"}],
               "securityContext": {"privileged": false, "capabilities": {"add": ["SYS_ADMIN"]}},
               "readinessProbe": {"exec": {"command": ["true"]}},
               "lifecycle": {"preStop": {"exec": {"command": ["bye"]}}},
               "resources": {"limits": {"cpu": "1500m", "memory": "2Gi"}}},
    "template": {"spec": {"hostname": "node", "nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}],
                          "containers": [{"name": "side", "image": "side"}],
                          "volumes": [{"name": "scratch", "emptyDir": {}}],
                          "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}}}},
    "ordinalPadding": 3})"));
  EXPECT_EQ(pod["metadata"]["name"], "cpu-003");
  EXPECT_EQ(pod["spec"]["hostname"], "node003");
  EXPECT_EQ(pod["metadata"]["labels"]["nodeset.slinky.slurm.net/pod-hostname"], "node003");
  EXPECT_EQ(pod["spec"]["nodeSelector"]["a"], "b");
  EXPECT_EQ(pod["spec"]["tolerations"].size(), 2U);
  EXPECT_EQ(pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"].size(), 2U);
  EXPECT_EQ(pod["spec"]["containers"].size(), 2U);
  EXPECT_EQ(pod["spec"]["volumes"].size(), 3U);
  const Json slurmd = slurmd_of(pod);
  EXPECT_EQ(slurmd["args"].back(), "-v");
  EXPECT_EQ(slurmd["args"][4], "'Features=node'");
  EXPECT_EQ(named(slurmd["env"], "POD_CPUS")["value"], "7");
  EXPECT_EQ(named(slurmd["env"], "POD_MEMORY")["value"], "2048");
  EXPECT_EQ(named(slurmd["env"], "X")["value"], "y");
  EXPECT_EQ(slurmd["securityContext"]["privileged"], false);
  EXPECT_EQ(slurmd["securityContext"]["capabilities"]["add"], Json::array({"SYS_ADMIN"}));
  EXPECT_FALSE(slurmd["readinessProbe"].contains("tcpSocket"));
  EXPECT_EQ(slurmd["lifecycle"]["preStop"]["exec"]["command"], Json::array({"bye"}));
  EXPECT_EQ(pod["spec"]["initContainers"][0]["image"], "mine:26.05");
  EXPECT_EQ(pod["spec"]["initContainers"][0]["resources"], slurmd["resources"]);
}

TEST(BuildWorker, SlurmdIsToldItsLimitsInWholeUnits) {
  const auto told = [](const Json& cpu) {
    const Json slurmd = slurmd_of(pod_of(Json{{"slurmd", {{"resources", {{"limits", {{"cpu", cpu}, {"memory", "2.5Gi"}}}}}}}}));
    EXPECT_EQ(named(slurmd["env"], "POD_MEMORY")["value"], "2560");
    return named(slurmd["env"], "POD_CPUS")["value"].get<std::string>();
  };
  EXPECT_EQ(told("1500m"), "2");
  EXPECT_EQ(told("2000m"), "2");
  EXPECT_EQ(told(0.1), "1");
  EXPECT_EQ(told(2), "2");
  for (const char* none : {"0", "-1", "100E", "x"}) EXPECT_EQ(told(none), "0") << none;
}

TEST(BuildWorker, EmptyListsAsTheGoOperatorsChartWritesThemTakeNothingAway) {
  const Json pod = pod_of(Json::parse(R"({
    "logfile": {"image": "docker.io/library/alpine:latest", "imagePullPolicy": "IfNotPresent", "resources": {}},
    "slurmd": {"args": [], "env": [], "image": "local/slurmd:26.05", "imagePullPolicy": "IfNotPresent", "resources": {},
               "volumeMounts": []},
    "template": {"metadata": {"labels": {"helm.sh/chart": "slurm-1.2.3"}},
                 "spec": {"affinity": {}, "hostname": "slinky-", "imagePullSecrets": null, "initContainers": [],
                          "nodeSelector": {"kubernetes.io/os": "linux"}, "priorityClassName": "", "resources": {},
                          "tolerations": [], "volumes": []}}})"));
  const Json plain = pod_of(Json::parse(R"({
    "logfile": {"image": "docker.io/library/alpine:latest"}, "slurmd": {"image": "local/slurmd:26.05"},
    "template": {"spec": {"hostname": "slinky-"}}})"));
  for (const char* same : {"args", "env", "ports", "volumeMounts", "lifecycle"}) {
    EXPECT_EQ(slurmd_of(pod)[same], slurmd_of(plain)[same]) << same;
  }
  for (const char* same : {"volumes", "tolerations", "affinity", "dnsConfig"}) {
    EXPECT_EQ(pod["spec"][same], plain["spec"][same]) << same;
  }
  EXPECT_EQ(pod["spec"]["initContainers"].size(), 2U);
}

TEST(BuildWorker, ASidecarReadsTheLogWhenOneIsConfigured) {
  const Json pod = pod_of(Json{{"logfile", {{"image", "alpine:3"}}}});
  ASSERT_EQ(pod["spec"]["initContainers"].size(), 2U);
  EXPECT_EQ(pod["spec"]["initContainers"][0]["name"], "logfile");
  EXPECT_EQ(pod["spec"]["initContainers"][0]["restartPolicy"], "Always");
  EXPECT_EQ(slurmd_of(pod)["args"][5], "-L");
}

TEST(BuildWorker, TheSidecarIsOfSlurmdsImageWhenNoneIsNamed) {
  const Json command{"cat"};
  Json pod = pod_of(Json{{"logfile", {{"command", command}}}});
  EXPECT_EQ(pod["spec"]["initContainers"][0]["image"], "local/slurmd:26.05");
  EXPECT_EQ(pod["spec"]["initContainers"][0]["command"], command);
  Json other = pod_of(Json{{"logfile", {{"image", "alpine:3"}}}});
  EXPECT_EQ(other["spec"]["initContainers"][0]["image"], "alpine:3");
}

TEST(BuildWorker, SlurmdMayBeGivenInTheTemplate) {
  Json pod = pod_of(Json::parse(R"({
    "slurmd": {"image": "mine:26.05", "args": ["-v"], "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}},
    "logfile": {"command": ["cat"]},
    "template": {"spec": {"containers": [{"name": "slurmd", "image": "theirs:24.11", "args": ["-vv"],
                                          "imagePullPolicy": "Never",
                                          "resources": {"limits": {"cpu": 3, "memory": "2Gi"}},
                                          "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}}]}}})"));
  ASSERT_EQ(pod["spec"]["containers"].size(), 1U);
  Json slurmd = slurmd_of(pod);
  EXPECT_EQ(slurmd["image"], "theirs:24.11");
  EXPECT_EQ(named(slurmd["env"], "POD_CPUS")["value"], "3");
  EXPECT_EQ(named(slurmd["env"], "POD_MEMORY")["value"], "2048");
  EXPECT_EQ(slurmd["args"][5], "-L");
  EXPECT_EQ(slurmd["args"][7], "-v");
  EXPECT_EQ(slurmd["args"].back(), "-vv");
  EXPECT_EQ(slurmd["args"].size(), 9U) << "each word once";
  EXPECT_EQ(slurmd["lifecycle"]["preStop"], Json({{"sleep", {{"seconds", 1}}}})) << "a handler has one member";
  Json wait = named(pod["spec"]["initContainers"], "wait-controller");
  EXPECT_EQ(wait["image"], "theirs:24.11");
  EXPECT_EQ(wait["imagePullPolicy"], "Never");
  EXPECT_EQ(wait["resources"], slurmd["resources"]);
  EXPECT_EQ(named(pod["spec"]["initContainers"], "logfile")["image"], "theirs:24.11");
}

TEST(BuildWorker, WorkersMayShareANode) {
  EXPECT_FALSE(pod_of(Json{{"oversubscribeNode", true}})["spec"].contains("affinity"));
}

TEST(BuildWorker, HostNetworkingHasNoHostnameOfItsOwn) {
  const Json pod = pod_of(Json{{"template", {{"spec", {{"hostNetwork", true}}}}}});
  EXPECT_FALSE(pod["spec"].contains("hostname"));
  EXPECT_FALSE(pod["metadata"]["labels"].contains("nodeset.slinky.slurm.net/pod-hostname"));
}

TEST(BuildWorker, WithHostNetworkingSlurmdIsToldItsName) {
  Json spec{{"template", {{"spec", {{"hostNetwork", true}}}}}, {"slurmd", {{"args", Json::array({"-vv"})}}}};
  const Json slurmd = slurmd_of(pod_of(spec)), plain = slurmd_of(pod_of(Json::object()));
  EXPECT_THAT(
      slurmd["args"].get<std::vector<std::string>>(),
      ::testing::ElementsAre("-Z", "--conf-server", ::testing::_, "--conf", "'Features=cpu'", "-N", "$(WORKER_NAME)", "-vv"));
  EXPECT_EQ(named(slurmd["env"], "WORKER_NAME")["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
  const auto script = [](const Json& container) {
    return container["lifecycle"]["preStop"]["exec"]["command"][2].get<std::string>();
  };
  EXPECT_THAT(script(slurmd), ::testing::StartsWith("timeout 3 sh -c 'n=$WORKER_NAME; "));
  EXPECT_THAT(script(plain), ::testing::StartsWith("timeout 3 sh -c 'n=$(hostname); "));
  EXPECT_TRUE(named(plain["env"], "WORKER_NAME").is_null());
  spec["scalingMode"] = "DaemonSet";
  World world(spec);
  world.add_host("ip-10-0-0-1.internal");
  const Observed observed = world.observe();
  const Json pod = worker_pod(worker_template(observed, "hash").value(), observed, {-1, "ip-10-0-0-1.internal"});
  EXPECT_EQ(named(slurmd_of(pod)["env"], "WORKER_NAME")["valueFrom"]["fieldRef"]["fieldPath"], "spec.nodeName");
  Json bound = pod;
  bound["metadata"]["uid"] = "uid";
  bound["spec"]["nodeName"] = "ip-10-0-0-1.internal";
  EXPECT_EQ(slurm_node_name(*kube::record_from_json<kube::PodRecord>(bound).value()), "ip-10-0-0-1.internal")
      << "the name that the operator expects is the one that slurmd gets";
}

TEST(BuildWorker, WhoseSlurmdWouldHaveAnotherNameIsNotMade) {
  const Observed observed = World({{"slurmd", {{"args", {"-N", "x"}}}}}).observe();
  const core::Result<Json> made = worker_template(observed, "hash");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, core::ErrorCode::kInvalid);
  const Observed in_template =
      World({{"template", {{"spec", {{"containers", Json::array({{{"name", "slurmd"}, {"args", {"-N", "x"}}}})}}}}}}).observe();
  EXPECT_FALSE(worker_template(in_template, "hash"));
}

TEST(SlurmdConf, MergesFeaturesAndRepeatedKeys) {
  api::NodeSetSpec spec;
  spec.extra_conf = "Weight=2  feature=a,b Gres=gpu:1 GRES=nic:2 Feature=c";
  EXPECT_EQ(slurmd_conf(spec, "cpu").value(), "Features=cpu,a,b,c Weight=2 Gres=gpu:1,nic:2");
  spec.extra_conf = "Reason=\"two words\" State=DRAIN";
  EXPECT_EQ(slurmd_conf(spec, "cpu").value(), "Features=cpu Reason=\"two words\" State=DRAIN");
  for (const char* bad : {"Weight", "=2", "NodeName=x", "Weight=1 oops"}) {
    spec.extra_conf = bad;
    EXPECT_FALSE(slurmd_conf(spec, "cpu")) << bad;
  }
}

TEST(ShellWord, SurvivesQuotes) {
  EXPECT_EQ(shell_word("a b$(c)"), "'a b$(c)'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
}

TEST(BuildWorker, HasItsClaimsWithDaemonSetToo) {
  World world(Json{{"scalingMode", "DaemonSet"},
                   {"slurmd", {{"volumeMounts", Json::array({{{"name", "scratch"}, {"mountPath", "/scratch"}}})}}},
                   {"volumeClaimTemplates", Json::array({{{"metadata", {{"name", "scratch"}}}, {"spec", Json::object()}}})}});
  world.add_host("gpu-1");
  const Observed observed = world.observe();
  const Json pod = worker_pod(worker_template(observed, "hash").value(), observed, {-1, "gpu-1"});
  const std::string name = pod["metadata"]["name"];
  EXPECT_EQ(named(pod["spec"]["volumes"], "scratch")["persistentVolumeClaim"]["claimName"], "scratch-" + name)
      << "the API server refuses a mount without its volume";
}

TEST(BuildWorker, IsBoundToItsKubernetesNodeWithDaemonSet) {
  const Json other{{"key", "x"}, {"operator", "Exists"}};
  const Json spec{{"scalingMode", "DaemonSet"},
                  {"template",
                   {{"spec",
                     {{"hostname", "ignored-"},
                      {"nodeSelector", {{"pool", "slurm"}}},
                      {"affinity",
                       {{"nodeAffinity",
                         {{"requiredDuringSchedulingIgnoredDuringExecution",
                           {{"nodeSelectorTerms", Json::array({{{"matchExpressions", Json::array({other})}}})}}}}}}}}}}}};
  World world(spec);
  world.add_host("gpu-1.example.com", {{"pool", "slurm"}, {"x", ""}});
  const Observed observed = world.observe();
  const Json pod = worker_pod(worker_template(observed, "hash").value(), observed, {-1, "gpu-1.example.com"});
  EXPECT_EQ(pod["spec"]["hostname"], "gpu-1");
  EXPECT_EQ(pod["metadata"]["labels"]["nodeset.slinky.slurm.net/pod-hostname"], "gpu-1");
  EXPECT_EQ(pod["metadata"]["labels"]["nodeset.slinky.slurm.net/pod-name"], pod["metadata"]["name"]);
  EXPECT_EQ(pod["metadata"]["labels"]["nodeset.slinky.slurm.net/scaling-mode"], "DaemonSet");
  EXPECT_FALSE(pod["metadata"]["labels"].contains("nodeset.slinky.slurm.net/pod-index"));
  EXPECT_FALSE(pod["spec"].contains("nodeSelector")) << "a kubelet that starts anew would end it when the label is gone";
  EXPECT_TRUE(pod["spec"]["affinity"].contains("podAntiAffinity"));
  Json made = pod;
  made["metadata"]["uid"] = "uid";
  const kube::PodPtr record = kube::record_from_json<kube::PodRecord>(made).value();
  EXPECT_EQ(record->pinned_to, "gpu-1.example.com");
  EXPECT_EQ(place_of(*record, "cpu"), (SlotKey{-1, "gpu-1.example.com"})) << "it is found again";
  EXPECT_TRUE(NodeSelection(pod["spec"]).judge(world.hosts.at("gpu-1.example.com")).starts);
  std::vector<std::string> tolerated;
  for (const Json& toleration : pod["spec"]["tolerations"]) {
    if (core::get_string(toleration, {"effect"}) == "NoSchedule") tolerated.push_back(toleration["key"]);
  }
  EXPECT_THAT(tolerated, ::testing::Contains("node.kubernetes.io/unschedulable"));
  EXPECT_EQ(pod["spec"]["tolerations"].back(), (Json{{"key", "slinky.slurm.net/managed-node"}, {"operator", "Exists"}}));
}

}  // namespace
}  // namespace op::nodeset
