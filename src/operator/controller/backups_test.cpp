#include "operator/controller/backups.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "api/well_known.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/config.hpp"
#include "operator/controller/testing/observed.hpp"

namespace op::controller {
namespace {

using core::Json;

struct World {
  Observed observed = testing::observed_of({{"ha", {{"enabled", true}, {"backups", 2}}},
                                            {"slurmctld", {{"image", "local/slurmctld:26.05"}}},
                                            {"persistence", {{"existingClaim", "shared"}}}});
  ConfigState state;

  World() {
    state.offered_hash = "new";
    auto set = std::make_shared<kube::Object>();
    set->meta.generation = 2;
    set->body = {{"status", {{"observedGeneration", 2}, {"updateRevision", "r2"}}}};
    observed.backup_set = set;
    observed.pods = {pod("x-controller-0", "r1", "")};
  }

  static kube::PodPtr pod(const std::string& name, const std::string& revision, const std::string& hash, bool ready = true) {
    auto out = std::make_shared<kube::PodRecord>();
    out->meta.name = name;
    out->meta.labels[std::string(api::kLabelRevisionHash)] = revision;
    out->meta.annotations[std::string(api::kAnnotationSlurmConfigHash)] = hash;
    out->phase = "Running";
    out->conditions.emplace_back();
    out->conditions.back().type = "Ready";
    out->conditions.back().status = ready ? "True" : "False";
    return out;
  }

  void stand_by(std::vector<kube::PodPtr> pods) { observed.backup_pods = std::move(pods); }
};

TEST(Backups, OneThatWasStartedWithAnotherConfigurationIsStale) {
  World world;
  EXPECT_FALSE(stale_backup(world.observed, world.state)) << "there is none";
  world.stand_by({World::pod("a", "r2", "new"), World::pod("b", "r2", "new")});
  EXPECT_FALSE(stale_backup(world.observed, world.state));
  world.stand_by({World::pod("a", "r2", "new"), World::pod("b", "r1", "old")});
  EXPECT_TRUE(stale_backup(world.observed, world.state));
  auto going = std::make_shared<kube::PodRecord>(*World::pod("b", "r1", "old"));
  going->meta.deletion_timestamp = core::WallTime{};
  world.stand_by({World::pod("a", "r2", "new"), going});
  EXPECT_FALSE(stale_backup(world.observed, world.state)) << "it ends";
  auto fails = std::make_shared<kube::PodRecord>(*World::pod("a", "r2", "new", false));
  fails->containers.emplace_back();
  fails->containers.back().name = kAppController;
  fails->containers.back().crashed = true;
  world.stand_by({fails, World::pod("b", "r1", "old")});
  EXPECT_FALSE(stale_backup(world.observed, world.state)) << "whether the new one is any good, the primary tells";
}

TEST(Backups, ThePrimaryRestartsOnceAllAreReadyAndAsWanted) {
  World world;
  world.stand_by({World::pod("a", "r2", "new"), World::pod("b", "r2", "new")});
  EXPECT_TRUE(primary_may_restart(world.observed, ConfigState{}));
  world.stand_by({World::pod("a", "r2", "new"), World::pod("b", "r2", "new", false)});
  EXPECT_FALSE(primary_may_restart(world.observed, ConfigState{})) << "one is not ready";
  world.stand_by({World::pod("a", "r2", "new"), World::pod("b", "r1", "new")});
  EXPECT_FALSE(primary_may_restart(world.observed, ConfigState{})) << "one is of before";
  world.stand_by({World::pod("a", "r2", "new")});
  EXPECT_FALSE(primary_may_restart(world.observed, ConfigState{})) << "one is missing";
  world.observed.pods = {World::pod("x-controller-0", "r1", "", false)};
  EXPECT_TRUE(primary_may_restart(world.observed, ConfigState{})) << "it serves nobody";
  world = World{};
  world.stand_by({World::pod("a", "r2", "new"), World::pod("b", "r2", "new")});
  auto set = std::make_shared<kube::Object>(*world.observed.backup_set);
  set->meta.generation = 3;
  world.observed.backup_set = set;
  EXPECT_FALSE(primary_may_restart(world.observed, ConfigState{})) << "Kubernetes has not seen what is wanted of them";
}

Json templates(const Observed& observed, const ConfigState& state, bool backup) {
  return (backup ? build_backup_set(observed, state, "k") : build_stateful_set(observed, state, "k"))["spec"]["template"];
}

TEST(Backups, TheirPodsFollowTheConfigurationAndThePrimarysDoesNot) {
  World world;
  ConfigState other = world.state;
  other.offered_hash = "newer";
  EXPECT_NE(templates(world.observed, world.state, true), templates(world.observed, other, true));
  EXPECT_EQ(templates(world.observed, world.state, false), templates(world.observed, other, false));
}

TEST(Backups, PodsStandApart) {
  World world;
  for (const bool backup : {false, true}) {
    const Json pod = templates(world.observed, world.state, backup)["spec"];
    const Json& term =
        pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"];
    EXPECT_EQ(term["topologyKey"], "kubernetes.io/hostname");
    EXPECT_EQ(term["labelSelector"]["matchLabels"],
              (Json{{"app.kubernetes.io/component", "controller"}, {"app.kubernetes.io/instance", "x"}}));
    EXPECT_EQ(pod.contains("hostAliases"), !backup);
  }
}

/// Runs the wait script of the primary's pod in a temporary directory. Returns the script's exit status. `before`: shell
/// commands that run before the script or in parallel with it.
int wait_for_backup(const std::string& before) {
  World world;
  Json pod = templates(world.observed, world.state, false)["spec"];
  EXPECT_EQ(pod["initContainers"].back()["name"], kWaitBackup);
  std::string script = pod["initContainers"].back()["command"][2];
  for (const std::string& path : {std::string("/etc/slurm/slurm.conf"), state_directory(world.observed) + "/heartbeat"}) {
    EXPECT_NE(script.find(path), std::string::npos) << script;
    for (std::size_t at = script.find(path); at != std::string::npos; at = script.find(path))
      script.replace(at, path.size(), path.substr(path.rfind('/') + 1));
  }
  std::ofstream(::testing::TempDir() + "wait-backup.sh") << script;
  const std::string run =
      "cd $(mktemp -d) && "
      "beat() { printf \"\\0\\0\\0\\0\\0\\0\\0$1\\0\\0\\0\\0\\0\\0\\0$2\" >new && mv new heartbeat; }; " +
      before + " timeout 60 sh " + ::testing::TempDir() + "wait-backup.sh";
  return std::system(("bash -c '" + run + " && { [ ! -f busy ] || exit 3; }'").c_str());
}

TEST(Backups, ThePrimaryWaitsUntilNoneWritesItsHeartbeat) {
  EXPECT_EQ(wait_for_backup(""), 0) << "a new cluster";
  EXPECT_EQ(wait_for_backup("echo SlurmctldTimeout=3 >slurm.conf; beat a \\\\0;"), 0) << "it served itself";
  EXPECT_EQ(wait_for_backup("echo SlurmctldTimeout=3 >slurm.conf; beat a \\\\1;"), 0) << "that backup is no more";
  EXPECT_EQ(wait_for_backup("echo SlurmctldTimeout=3 >slurm.conf; touch busy; beat a \\\\1; (for i in b c d e f g h i; do "
                            "sleep 0.3; beat $i \\\\1; done; rm busy) &"),
            0)
      << "it has waited for its end";
}

TEST(Backups, SlurmConfNamesAllAndUsersChooseTheTimeout) {
  World world;
  const std::string conf = render_config(world.observed, {}).files.at("slurm.conf");
  EXPECT_NE(conf.find("\nSlurmctldHost=x-controller-0(x-controller-0.ns)\n"
                      "SlurmctldPort=6817\n"
                      "SlurmctldHost=x-controller-backup-0(x-controller-backup-0.ns)\n"
                      "SlurmctldHost=x-controller-backup-1(x-controller-backup-1.ns)\n"
                      "SlurmctldTimeout=6\n"),
            std::string::npos)
      << conf;
  world.observed.controller.spec.extra_conf = "SlurmctldTimeout=60\n";
  const std::string own = render_config(world.observed, {}).files.at("slurm.conf");
  EXPECT_NE(own.find("\nSlurmctldTimeout=60\n"), std::string::npos) << own;
  EXPECT_EQ(own.find("SlurmctldTimeout=6\n"), std::string::npos) << own;
}

}  // namespace
}  // namespace op::controller
