#include "slinky/releases.hpp"

#include <gtest/gtest.h>

#include "api/well_known.hpp"

namespace slinky {
namespace {

TEST(Releases, AreCountedByHalfYears) {
  EXPECT_EQ(releases_between({24, 11}, {24, 11}), 0);
  EXPECT_EQ(releases_between({24, 11}, {25, 5}), 1);
  EXPECT_EQ(releases_between({24, 11}, {26, 5}), 3);
  EXPECT_EQ(releases_between({24, 5}, {26, 5}), 4);
  EXPECT_EQ(releases_between({26, 5}, {25, 11}), -1);
  EXPECT_EQ(releases_between({}, {26, 5}), 0) << "nobody knows";
  EXPECT_EQ(to_string(ImageRelease{26, 5}), "26.05");
  EXPECT_EQ(to_string(ImageRelease{}), "");
}

TEST(Releases, AreReadFromTags) {
  EXPECT_EQ(slurm_release("local/slurmctld:26.05"), (ImageRelease{26, 5}));
  EXPECT_EQ(slurm_release("ghcr.io/slinkyproject/slurmctld:25.11-ubuntu24.04"), (ImageRelease{25, 11}));
  EXPECT_EQ(slurm_release("r.example:5000/slurmctld:24.11.5"), (ImageRelease{24, 11}));
  EXPECT_EQ(slurm_release("x/y:26.05@sha256:0123"), (ImageRelease{26, 5}));
  EXPECT_EQ(slurm_release("x/y:26.04-slurm24.11"), (ImageRelease{24, 11})) << "the distribution first";
  EXPECT_EQ(slurm_release("x/y:rocky9_25.05.4_26.05-not"), ImageRelease{}) << "two of them";
  for (const char* unknown :
       {"slurmctld", "r.example:5000/slurmctld", "x:latest", "x:1.2.3", "x:26", "x:26.05rc1", "x:26.13", "", "x@sha256:26.05",
        "x:25.12.03", "x:23.05", "x:slurmd-rocm-24.05.7-26.05.1", "x:1.26.05", "x:126.05"})
    EXPECT_EQ(slurm_release(unknown), ImageRelease{}) << unknown;
}

TEST(Releases, NothingMayBeNewerThanSlurmctld) {
  kube::Object map;
  const auto refused = [&](std::string_view image) {
    const auto problem = newer_than_slurmctld("spec.slurmd.image", image, &map);
    return problem ? problem->message : "";
  };
  EXPECT_EQ(refused("r/slurmd:26.05"), "") << "nobody knows what slurmctld is";
  map.meta.annotations[std::string(api::kAnnotationSlurmctldRelease)] = "25.11";
  EXPECT_TRUE(refused("r/slurmd:26.05-ubuntu").starts_with("spec.slurmd.image is of Slurm 26.05, and slurmctld is of 25.11: "));
  EXPECT_EQ(refused("r/slurmd:25.11.9"), "");
  EXPECT_EQ(refused("r/slurmd:24.11"), "");
  EXPECT_EQ(refused("r/slurmd:latest"), "") << "its release is not known";
  EXPECT_FALSE(newer_than_slurmctld("spec.slurmd.image", "r/slurmd:26.05", nullptr));
}

}  // namespace
}  // namespace slinky
