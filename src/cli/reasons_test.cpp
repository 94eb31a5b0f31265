#include "cli/reasons.hpp"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace cli {
namespace {

// All reasons in Slurm's src/common/job_state_reason.c, of 24.11 and 26.05.
constexpr const char* kAll =
    "None Prolog Priority Dependency Resources PartitionNodeLimit PartitionTimeLimit PartitionDown PartitionInactive "
    "JobHeldAdmin JobHeldUser NvidiaImexChannels BeginTime Licenses AssociationJobLimit AssociationResourceLimit "
    "AssociationTimeLimit Reservation ReqNodeNotAvail SchedDefer NodeDown BadConstraints SystemFailure JobLaunchFailure "
    "NonZeroExitCode RaisedSignal TimeLimit InactiveLimit InvalidAccount InvalidQOS QOSUsageThreshold QOSJobLimit "
    "QOSResourceLimit QOSTimeLimit Cleaning QOSNotAllowed AccountNotAllowed DependencyNeverSatisfied QOSGrpCpuLimit "
    "QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit QOSGrpJobsLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpSubmitJobsLimit "
    "QOSGrpWallLimit QOSMaxCpuPerJobLimit QOSMaxCpuMinutesPerJobLimit QOSMaxNodePerJobLimit QOSMaxWallDurationPerJobLimit "
    "QOSMaxCpuPerUserLimit QOSMaxJobsPerUserLimit QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit QOSMinCpuNotSatisfied "
    "AssocGrpCpuLimit AssocGrpCPUMinutesLimit AssocGrpCPURunMinutesLimit AssocGrpJobsLimit AssocGrpMemLimit "
    "AssocGrpNodeLimit AssocGrpSubmitJobsLimit AssocGrpWallLimit AssocMaxJobsLimit AssocMaxCpuPerJobLimit "
    "AssocMaxCpuMinutesPerJobLimit AssocMaxNodePerJobLimit AssocMaxWallDurationPerJobLimit AssocMaxSubmitJobLimit "
    "JobHoldMaxRequeue JobArrayTaskLimit BurstBufferResources BurstBufferStageIn BurstBufferOperation AssocGrpUnknown "
    "AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes AssocMaxUnknownPerJob AssocMaxUnknownPerNode "
    "AssocMaxUnknownMinutesPerJob AssocMaxCpuPerNode AssocGrpMemMinutes AssocGrpMemRunMinutes AssocMaxMemPerJob "
    "AssocMaxMemPerNode AssocMaxMemMinutesPerJob AssocGrpNodeMinutes AssocGrpNodeRunMinutes AssocMaxNodeMinutesPerJob "
    "AssocGrpEnergy AssocGrpEnergyMinutes AssocGrpEnergyRunMinutes AssocMaxEnergyPerJob AssocMaxEnergyPerNode "
    "AssocMaxEnergyMinutesPerJob AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes AssocMaxGRESPerJob "
    "AssocMaxGRESPerNode AssocMaxGRESMinutesPerJob AssocGrpLicense AssocGrpLicenseMinutes AssocGrpLicenseRunMinutes "
    "AssocMaxLicensePerJob AssocMaxLicenseMinutesPerJob AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes AssocMaxBBPerJob "
    "AssocMaxBBPerNode AssocMaxBBMinutesPerJob QOSGrpUnknown QOSGrpUnknownMinutes QOSGrpUnknownRunMinutes "
    "QOSMaxUnknownPerJob QOSMaxUnknownPerNode QOSMaxUnknownPerUser QOSMaxUnknownMinutesPerJob QOSMinUnknown "
    "QOSMaxCpuPerNode QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes QOSMaxMemoryPerJob QOSMaxMemoryPerNode "
    "QOSMaxMemoryPerUser QOSMaxMemoryMinutesPerJob QOSMinMemory QOSGrpNodeMinutes QOSGrpNodeRunMinutes "
    "QOSMaxNodeMinutesPerJob QOSMinNode QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes QOSMaxEnergyPerJob "
    "QOSMaxEnergyPerNode QOSMaxEnergyPerUser QOSMaxEnergyMinutesPerJob QOSMinEnergy QOSGrpGRES QOSGrpGRESMinutes "
    "QOSGrpGRESRunMinutes QOSMaxGRESPerJob QOSMaxGRESPerNode QOSMaxGRESPerUser QOSMaxGRESMinutesPerJob QOSMinGRES "
    "QOSGrpLicense QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes QOSMaxLicensePerJob QOSMaxLicensePerUser "
    "QOSMaxLicenseMinutesPerJob QOSMinLicense QOSGrpBB QOSGrpBBMinutes QOSGrpBBRunMinutes QOSMaxBBPerJob QOSMaxBBPerNode "
    "QOSMaxBBPerUser QOSMinBB DeadLine MaxBBPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount "
    "MaxNodePerAccount MaxLicensePerAccount MaxMemoryPerAccount MaxUnknownPerAccount MaxJobsPerAccount "
    "MaxSubmitJobsPerAccount PartitionConfig AccountingPolicy FedJobLock OutOfMemory MaxMemPerLimit AssocGrpBilling "
    "AssocGrpBillingMinutes AssocGrpBillingRunMinutes AssocMaxBillingPerJob AssocMaxBillingPerNode "
    "AssocMaxBillingMinutesPerJob QOSGrpBilling QOSGrpBillingMinutes QOSGrpBillingRunMinutes QOSMaxBillingPerJob "
    "QOSMaxBillingPerNode QOSMaxBillingPerUser QOSMaxBillingMinutesPerJob MaxBillingPerAccount QOSMinBilling "
    "ReservationDeleted ReservationInvalid Constraints MaxBBRunMinsPerAccount MaxBillingRunMinsPerAccount "
    "MaxCpuRunMinsPerAccount MaxEnergyRunMinsPerAccount MaxGRESRunMinsPerAccount MaxNodeRunMinsPerAccount "
    "MaxLicenseRunMinsPerAccount MaxMemoryRunMinsPerAccount MaxUnknownRunMinsPerAccount MaxBBRunMinsPerUser "
    "MaxBillingRunMinsPerUser MaxCpuRunMinsPerUser MaxEnergyRunMinsPerUser MaxGRESRunMinsPerUser MaxNodeRunMinsPerUser "
    "MaxLicenseRunMinsPerUser MaxMemoryRunMinsPerUser MaxUnknownRunMinsPerUser MaxPoweredUpNodes MpiPortsBusy FrontEndDown";

TEST(Reasons, EachOfSlurmHasAnExplanation) {
  std::istringstream words{std::string(kAll)};
  int limits = 0;
  for (std::string reason; words >> reason;) {
    const auto limit = limit_of_reason(reason);
    const auto plain = explain_reason(reason);
    EXPECT_NE(limit.has_value(), plain.has_value()) << reason << ": by the rule or by the table, not by both";
    if (!limit) continue;
    ++limits;
    const LimitKind* kind = limit_kind(limit->name);
    ASSERT_NE(kind, nullptr) << reason << " is about " << limit->name;
    const Explanation text = explain_limit(*kind);
    EXPECT_TRUE(text.meaning.ends_with('.') && text.advice.ends_with('.')) << reason;
    EXPECT_EQ(limit->of_qos, !reason.starts_with("Assoc")) << reason;
  }
  EXPECT_GT(limits, 150);
}

TEST(Reasons, NameTheirLimit) {
  const std::vector<std::pair<const char*, NamedLimit>> cases{
      {"QOSMaxJobsPerUserLimit", {true, "MaxJobsPerUser", ""}},
      {"QOSMaxSubmitJobPerUserLimit", {true, "MaxSubmitJobsPerUser", ""}},
      {"QOSMaxWallDurationPerJobLimit", {true, "MaxWallDurationPerJob", ""}},
      {"QOSGrpCpuLimit", {true, "GrpTRES", "cpu"}},
      {"QOSGrpCPUMinutesLimit", {true, "GrpTRESMins", "cpu"}},
      {"QOSGrpCPURunMinutesLimit", {true, "GrpTRESRunMins", "cpu"}},
      {"QOSGrpGRES", {true, "GrpTRES", "gres/"}},
      {"QOSMaxMemoryPerUser", {true, "MaxTRESPerUser", "mem"}},
      {"QOSMinCpuNotSatisfied", {true, "MinTRESPerJob", "cpu"}},
      {"QOSMinUnknown", {true, "MinTRESPerJob", "?"}},
      {"MaxGRESPerAccount", {true, "MaxTRESPerAccount", "gres/"}},
      {"MaxCpuRunMinsPerUser", {true, "MaxTRESRunMinsPerUser", "cpu"}},
      {"MaxJobsPerAccount", {true, "MaxJobsPerAccount", ""}},
      {"AssocGrpCpuLimit", {false, "GrpTRES", "cpu"}},
      {"AssocGrpMemLimit", {false, "GrpTRES", "mem"}},
      {"AssocGrpWallLimit", {false, "GrpWall", ""}},
      {"AssocMaxJobsLimit", {false, "MaxJobs", ""}},
      {"AssocMaxSubmitJobLimit", {false, "MaxSubmitJobs", ""}},
      {"AssocMaxNodePerJobLimit", {false, "MaxTRESPerJob", "node"}},
      {"AssocMaxCpuMinutesPerJobLimit", {false, "MaxTRESMinsPerJob", "cpu"}},
      {"AssocMaxLicensePerJob", {false, "MaxTRESPerJob", "license/"}},
  };
  for (const auto& [reason, limit] : cases) EXPECT_EQ(limit_of_reason(reason), limit) << reason;
}

TEST(Reasons, OthersNameNone) {
  for (const char* reason : {"", "Priority", "MaxMemPerLimit", "MaxPoweredUpNodes", "AssociationJobLimit", "QOSUsageThreshold",
                             "QOSGrpColourLimit", "AssocGrpCpuColour", "QOSLimit", "MaxJobsPerUserLimit"})
    EXPECT_EQ(limit_of_reason(reason), std::nullopt) << reason;
  EXPECT_EQ(explain_reason("SomethingNew"), std::nullopt);
  EXPECT_EQ(limit_kind("Priority"), nullptr);
}

TEST(Reasons, CoverTheTresTheyMean) {
  const NamedLimit cpu{true, "GrpTRES", "cpu"}, gres{true, "GrpTRES", "gres/"}, unknown{true, "GrpTRES", "?"},
      jobs{true, "GrpJobs", ""};
  EXPECT_TRUE(cpu.covers("cpu"));
  EXPECT_FALSE(cpu.covers("mem"));
  EXPECT_TRUE(gres.covers("gres/gpu"));
  EXPECT_FALSE(gres.covers("cpu"));
  EXPECT_TRUE(unknown.covers("fs/disk"));
  EXPECT_FALSE(unknown.covers("gres/gpu"));
  EXPECT_FALSE(unknown.covers("cpu"));
  EXPECT_FALSE(unknown.covers(""));
  EXPECT_TRUE(jobs.covers(""));
  EXPECT_FALSE(jobs.covers("cpu"));
}

}  // namespace
}  // namespace cli
