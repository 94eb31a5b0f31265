#include "operator/common/policies.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"

namespace op {
namespace {

using core::Json;
namespace kinds = kube::resources;

const AdmissionPolicy& policy(const std::string& name) {
  const auto& all = admission_policies();
  const auto found = std::ranges::find(all, name, &AdmissionPolicy::name);
  if (found == all.end()) throw std::invalid_argument("no policy: " + name);
  return *found;
}

Json with(Json object, const char* pointer, Json value) {
  object[Json::json_pointer(pointer)] = std::move(value);
  return object;
}

Json without(Json object, const char* pointer) {
  const Json::json_pointer path(pointer);
  object.at(path.parent_pointer()).erase(path.back());
  return object;
}

constexpr const char* kDeleted = "/metadata/deletionTimestamp";
constexpr const char* kEvidence = "/metadata/annotations/nodeset.slinky.slurm.net~1deletion-evidence";
constexpr const char* kRelease = "/metadata/annotations/nodeset.slinky.slurm.net~1pod-release";
constexpr const char* kName = "/metadata/labels/app.kubernetes.io~1name";
const std::string kUser = "system:serviceaccount:kube-system:generic-garbage-collector";

Json worker() {
  return Json::parse(R"({"metadata": {"namespace": "n", "name": "w", "labels": {"app.kubernetes.io/name": "slurmd",
    "slinky.slurm.net/cluster": "c", "nodeset.slinky.slurm.net/pod-busy": "true"}},
    "spec": {"nodeName": "k"}, "status": {"phase": "Running"}})");
}

/// Two objects for a clause. The clause holds for the deletion of `yes`, and does not hold for the deletion of `no`.
struct Case {
  Json no, yes;
};

Case of_worker(const char* pointer, Json value) {
  return {worker(), with(worker(), pointer, std::move(value))};
}

std::vector<Case> cases(const std::string& clause) {
  if (clause == "evidence") return {of_worker(kEvidence, "drained"), of_worker(kEvidence, "")};
  if (clause == "ending") return {of_worker(kDeleted, "2026-01-01T00:00:00Z")};
  if (clause == "ended") return {of_worker("/status/phase", "Failed"), of_worker("/status/phase", "Succeeded")};
  if (clause == "neverStarted") return {{worker(), without(worker(), "/spec/nodeName")}, of_worker("/spec/nodeName", "")};
  if (clause == "released")
    return {{with(worker(), kRelease, "false"), with(worker(), kRelease, "true")}, of_worker(kRelease, "true")};
  return {};
}

TEST(AdmissionPolicies, EachClauseLetsThroughWhatItSays) {
  for (const char* name : {"workers", "preemption", "deletion"}) {
    for (const Clause& clause : policy(name).passes) {
      EXPECT_FALSE(cases(clause.name).empty()) << "no case: " << clause.name;
      for (const Case& it : cases(clause.name)) {
        const Deletion no{kinds::kPod, kUser, it.no};
        const Deletion yes{kinds::kPod, kUser, it.yes};
        EXPECT_FALSE(clause.holds(no)) << name << " " << clause.name;
        EXPECT_TRUE(clause.holds(yes)) << name << " " << clause.name;
        EXPECT_FALSE(policy(name).allows(no)) << name;
        EXPECT_TRUE(policy(name).allows(yes)) << name;
      }
    }
  }
}

TEST(AdmissionPolicies, ConcernWorkersAlone) {
  const auto concerns = [](const char* name, const Json& object, const kube::Resource& resource = kinds::kPod) {
    return policy(name).concerns({resource, kUser, object});
  };
  for (const char* name : {"workers", "preemption", "deletion"}) {
    EXPECT_TRUE(concerns(name, worker()));
    EXPECT_FALSE(concerns(name, with(worker(), kName, "slurmctld"))) << name;
    EXPECT_FALSE(concerns(name, without(worker(), "/metadata/labels"))) << name;
    EXPECT_FALSE(concerns(name, worker(), kinds::kService)) << name;
    EXPECT_FALSE(concerns(name, worker(), {"metrics.k8s.io", "v1beta1", "PodMetrics", "pods"})) << name;
  }
  EXPECT_FALSE(concerns("workers", without(worker(), "/metadata/labels/slinky.slurm.net~1cluster")));
  const char* busy = "/metadata/labels/nodeset.slinky.slurm.net~1pod-busy";
  EXPECT_TRUE(concerns("workers", without(worker(), busy)));
  EXPECT_FALSE(concerns("preemption", with(worker(), busy, "false")));
  EXPECT_FALSE(concerns("deletion", without(worker(), busy)));
}

TEST(AdmissionPolicies, WhatDrainsNeedIsFoundByLabelAndKind) {
  const auto concerns = [](const char* name, const char* app, const kube::Resource& resource) {
    return policy(name).concerns({resource, kUser, with(Json::object(), kName, app)});
  };
  for (const char* app : {"slurmctld", "slurmrestd", "slurmdbd", "slurm-mariadb"}) {
    EXPECT_TRUE(concerns("clusters", app, kinds::kPod)) << app;
    EXPECT_TRUE(concerns("clusters", app, kinds::kService)) << app;
  }
  EXPECT_TRUE(concerns("clusters", "slurmd", kinds::kService));
  EXPECT_FALSE(concerns("clusters", "slurmd", kinds::kPod)) << "workers have a policy of their own";
  EXPECT_FALSE(concerns("clusters", "mine", kinds::kPod));
  EXPECT_FALSE(concerns("clusters", "slurmctld", kinds::kNode));
  EXPECT_FALSE(concerns("clusters", "slurmrestd", resources::kRestApi));

  EXPECT_TRUE(concerns("restapis", "mine", resources::kRestApi)) << "its labels are its user's";
  EXPECT_FALSE(concerns("restapis", "slurmrestd", kinds::kService));

  EXPECT_TRUE(concerns("slurmrestd", "slurmrestd", kinds::kDeployment));
  EXPECT_TRUE(concerns("slurmrestd", "slurmrestd", kinds::kService));
  EXPECT_FALSE(concerns("slurmrestd", "slurmrestd", kinds::kPod));
  EXPECT_FALSE(concerns("slurmrestd", "slurmctld", kinds::kService));
}

/// A deletion that the policy refuses. If any one of its parts were missing, the policy would allow the deletion.
struct Kept {
  Json object =
      Json::parse(R"({"metadata": {"namespace": "n", "name": "o", "ownerReferences": [{"uid": "other"}, {"uid": "u"}]}})");
  Json params =
      Json::parse(R"({"metadata": {"namespace": "n", "name": "p", "uid": "u"}, "spec": {"deletionPolicy": "Drain"}})");
  Json space = Json::object();
  std::string user = kUser;

  [[nodiscard]] bool allowed(const char* name) const {
    return policy(name).allows({kinds::kService, user, object, &space, &params});
  }
  Kept& ends(const char* finalizer) {
    params["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    params["metadata"]["finalizers"] = Json::array({"other", finalizer});
    return *this;
  }
  Kept& space_ends() {
    space["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    return *this;
  }
};

TEST(AdmissionPolicies, AClusterIsKeptWhileItsControllerDrains) {
  for (const char* name : {"clusters", "restapis"}) {
    EXPECT_TRUE(Kept().allowed(name)) << "nothing is being deleted but this";
    EXPECT_FALSE(Kept().space_ends().allowed(name)) << name;
    Kept cleaner;
    cleaner.user = "system:serviceaccount:kube-system:namespace-controller";
    EXPECT_FALSE(cleaner.allowed(name)) << "it cleans namespaces that end, whatever is known of them";
    Kept at_once = Kept().space_ends();
    at_once.params["spec"]["deletionPolicy"] = "Immediate";
    EXPECT_TRUE(at_once.allowed(name));
    at_once.params["spec"].erase("deletionPolicy");
    EXPECT_TRUE(at_once.allowed(name));
    Kept going = Kept().space_ends();
    going.object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z";
    EXPECT_TRUE(going.allowed(name));
  }
  EXPECT_FALSE(Kept().ends("controller.slinky.slurm.net/teardown").allowed("clusters"));
  EXPECT_TRUE(Kept().ends("another").allowed("clusters")) << "the operator has let go of it";
  EXPECT_TRUE(Kept().ends("controller.slinky.slurm.net/teardown").allowed("restapis")) << "it ends by its own finalizer";
  Kept alive = Kept().ends("controller.slinky.slurm.net/teardown");
  alive.params["metadata"].erase("deletionTimestamp");
  EXPECT_TRUE(alive.allowed("clusters"));
}

TEST(AdmissionPolicies, SlurmrestdIsKeptWhileItsRestApiServes) {
  const Kept kept = Kept().ends("restapi.slinky.slurm.net/serve");
  EXPECT_FALSE(kept.allowed("slurmrestd"));
  EXPECT_TRUE(Kept(kept).space_ends().allowed("slurmrestd")) << "the policy of clusters says what then is kept";
  EXPECT_TRUE(Kept(kept).ends("another").allowed("slurmrestd"));
  Kept of_another = kept;
  of_another.object["metadata"]["ownerReferences"].erase(1);
  EXPECT_TRUE(of_another.allowed("slurmrestd"));
  of_another.object["metadata"].erase("ownerReferences");
  EXPECT_TRUE(of_another.allowed("slurmrestd"));
}

TEST(AdmissionPolicies, SayWhatIsKeptAndWhy) {
  EXPECT_EQ(policy("workers").refusal({kinds::kPod, kUser, worker()}),
            "worker n/w may run jobs: slurm-operator has not released it (annotation "
            "nodeset.slinky.slurm.net/deletion-evidence)");
  const Kept kept;
  EXPECT_EQ(policy("clusters").refusal({kinds::kService, kUser, kept.object, &kept.space, &kept.params}),
            "Controller n/p has deletionPolicy: Drain, and its workers still exist");
}

TEST(AdmissionPolicies, TheChartHasThem) {
  const api::GeneratedFile file = admission_policies_file();
  std::ifstream in(file.path, std::ios::binary);
  std::stringstream have;
  have << in.rdbuf();
  EXPECT_EQ(have.str(), file.text) << file.path
                                   << " is not what src/operator/common/policies.cpp declares: run slurm-operator-gen";
}

}  // namespace
}  // namespace op
