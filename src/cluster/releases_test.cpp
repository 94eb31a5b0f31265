#include "cluster/releases.hpp"

#include <gtest/gtest.h>

#include "api/well_known.hpp"

namespace op {
namespace {

TEST(Releases, AreCountedByHalfYears) {
  EXPECT_EQ(releases_between({24, 11}, {24, 11}), 0);
  EXPECT_EQ(releases_between({24, 11}, {25, 5}), 1);
  EXPECT_EQ(releases_between({24, 11}, {26, 5}), 3);
  EXPECT_EQ(releases_between({24, 5}, {26, 5}), 4);
  EXPECT_EQ(releases_between({26, 5}, {25, 11}), -1);
  EXPECT_EQ(releases_between({}, {26, 5}), 0) << "nobody knows";
  EXPECT_EQ(slurm_release("r/slurmctld:26.05-ubuntu"), (ImageRelease{26, 5}));
  for (const char* other : {"r/slurmctld:25.12.03", "r/slurmctld:23.05", "r/slurmctld:latest"})
    EXPECT_EQ(slurm_release(other), ImageRelease{}) << other;
  EXPECT_EQ(to_string(ImageRelease{26, 5}), "26.05");
  EXPECT_EQ(to_string(ImageRelease{}), "");
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
}  // namespace op
