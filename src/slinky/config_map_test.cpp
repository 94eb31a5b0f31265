#include "slinky/config_map.hpp"

#include <gtest/gtest.h>

namespace slinky {
namespace {

TEST(RestartDigest, DiffersByWhatOnlyARestartBringsIntoForce) {
  EXPECT_EQ(restart_digest("KillWait=30"), restart_digest("killwait=30"));
  EXPECT_EQ(restart_digest("KillWait=30"), restart_digest("KillWait=31"));
  EXPECT_EQ(restart_digest("AuthType=auth/slurm\nKillWait=30"), restart_digest("KillWait=30\nauthtype=auth/slurm"));
  EXPECT_NE(restart_digest("SlurmctldPort=6817"), restart_digest("SlurmctldPort=6818"));
  EXPECT_NE(restart_digest("CredType=cred/slurm"), restart_digest(""));
}

slurm::conf::Conf conf(const char* text) {
  return slurm::conf::parse(slurm::conf::Kind::kSlurm, text).conf;
}

TEST(SlurmdTimeout, IsSlurmsUnlessSaid) {
  EXPECT_EQ(slurmd_timeout(conf("KillWait=30")), core::Duration{300000});
  EXPECT_EQ(slurmd_timeout(conf("slurmdtimeout=1000")), core::Duration{1000000});
  EXPECT_EQ(slurmd_timeout(conf("SlurmdTimeout=0")), core::Duration{0});
  EXPECT_EQ(slurmd_timeout(conf("SlurmdTimeout=soon")), core::Duration{300000});
}

TEST(MaxNodeCount, IsNotThereUnlessSaid) {
  EXPECT_EQ(max_node_count(conf("ClusterName=a\nmaxnodecount=12\nKillWait=30\n")), 12U);
  EXPECT_EQ(max_node_count(conf("ClusterName=a\n")), std::nullopt);
  EXPECT_EQ(max_node_count(conf("ClusterName=a\nMaxNodeCount=many\n")), std::nullopt);
}

TEST(ContainsJobs, WhereAFlagSaysOrImpliesIt) {
  for (const char* text : {"PrologFlags=Contain", "prologflags=alloc,CONTAIN", "PrologFlags=X11", "PrologFlags=RunInJob"})
    EXPECT_TRUE(contains_jobs(conf(text))) << text;
  for (const char* text : {"", "PrologFlags=Alloc,DeferBatch", "Prolog=/contain"})
    EXPECT_FALSE(contains_jobs(conf(text))) << text;
}

TEST(ReadPlaces, AreThereWhereAnyTimeIs) {
  kube::Object map;
  EXPECT_EQ(read_places(map), std::nullopt);
  map.meta.annotations["slinky.slurm.net/places-due"] = "1970-01-01T00:00:05Z";
  const core::WallTime five{core::Duration{5000}}, two{core::Duration{2000}};
  EXPECT_EQ(read_places(map), (Places{{}, five}));
  map.meta.annotations["slinky.slurm.net/places-given-until"] = "1970-01-01T00:00:02Z";
  EXPECT_EQ(read_places(map), (Places{two, five}));
  map.meta.annotations["slinky.slurm.net/places-due"] = "soon";
  EXPECT_EQ(read_places(map), (Places{two, {}}));
}

}  // namespace
}  // namespace slinky
