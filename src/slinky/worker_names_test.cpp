#include "slinky/worker_names.hpp"

#include <gtest/gtest.h>

namespace slinky {
namespace {

TEST(WorkerNames, PadOrdinals) {
  EXPECT_EQ(pod_name("cpu", 7, 0), "cpu-7");
  EXPECT_EQ(pod_name("cpu", 7, 3), "cpu-007");
  EXPECT_EQ(pod_name("cpu", 1234, 3), "cpu-1234");
}

TEST(WorkerNames, ComeBackToTheirOrdinal) {
  EXPECT_EQ(ordinal_of("cpu-007", "cpu-"), 7);
  EXPECT_EQ(ordinal_of("node12", "node"), 12);
  for (const char* name : {"cpu-", "cpu-1a", "cpu--1", "gpu-1", "cpu-1-2", "cpu-99999999999"}) {
    EXPECT_FALSE(ordinal_of(name, "cpu-")) << name;
  }
}

TEST(WorkerNames, HostnamesBeginWithTheTemplatesOrTheNodeSets) {
  EXPECT_EQ(host_prefix("", "cpu"), "cpu-");
  EXPECT_EQ(host_prefix("node-", "cpu"), "node-");
  EXPECT_EQ(host_prefix("n", "cpu"), "n");
}

TEST(WorkerNames, SayWhatIsWrongWithAHostname) {
  EXPECT_EQ(hostname_problem("cpu-", 7, 3), "");
  EXPECT_NE(hostname_problem(std::string(62, 'a'), 10, 0), "");
  EXPECT_EQ(hostname_problem(std::string(62, 'a'), 9, 0), "");
  EXPECT_NE(hostname_problem("a.b-", 1, 0), "");
  EXPECT_NE(hostname_problem("Cpu", 1, 0), "");
  EXPECT_NE(hostname_problem("-a", 1, 0), "");
  EXPECT_EQ(pod_name_problem(std::string(63, 'a')), "") << "it is the value of a label";
  EXPECT_NE(pod_name_problem(std::string(64, 'a')), "");
}

TEST(WorkerNames, TheSlurmNodeIsTheHostname) {
  kube::PodRecord pod;
  pod.meta.name = "cpu-1";
  EXPECT_EQ(slurm_node_name(pod), "cpu-1");
  pod.node_name = "kube-3";
  EXPECT_EQ(slurm_node_name(pod), "kube-3");  // Pods with host networking have no hostname of their own.
  pod.hostname = "node1";
  EXPECT_EQ(slurm_node_name(pod), "node1");
  pod.host_network = true;
  EXPECT_EQ(slurm_node_name(pod), "kube-3") << "its hostname is the host's";
}

TEST(WorkerNames, TheSlurmNodeStaysTheOneThatWasSeenFirst) {
  kube::PodRecord pod;
  pod.meta.name = "cpu-1";
  pod.hostname = "cpu-1";
  pod.meta.annotations["nodeset.slinky.slurm.net/registered"] = "true";
  EXPECT_EQ(slurm_node_name(pod), "cpu-1") << "stamped by an earlier release";
  pod.meta.annotations["nodeset.slinky.slurm.net/registered"] = "machine-7";
  EXPECT_EQ(slurm_node_name(pod), "machine-7");
}

}  // namespace
}  // namespace slinky
