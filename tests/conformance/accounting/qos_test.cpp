// Tests QOS against a real slurmdbd with a real MariaDB. Each rule of slurmdbd that slurm/accounting/qos.hpp and
// slurm/rest/accounting_target.hpp rely on has a test, which fails if a release changes the rule.
#include "slurmdbd.hpp"

namespace conformance {
namespace {

using core::ErrorCode;
using core::Json;
using slurm::accounting::Settings;
using ::testing::HasSubstr;

class QosOfSlurmdbd : public Slurmdbd {
 protected:
  void SetUp() override {
    Slurmdbd::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    // Remove what an interrupted test has left.
    local("exec", "scancel --user=root");
    sacctmgr("delete user root account=physics");
    sacctmgr("delete account physics");
    for (const auto& [name, row] : *view().qos.rows) {
      if (name != "normal") sacctmgr("delete qos " + name);
    }
    ASSERT_TRUE(until([&] { return view().qos.rows->size() == 1; })) << "a QOS of an earlier test is in use";
  }
  [[nodiscard]] std::string show(const std::string& qos, const std::string& fields) const {
    return local("exec", "sacctmgr --noheader --parsable2 show qos " + qos + " format=" + fields);
  }

  std::string write(const std::string& name, const Settings& settings) {
    return outcome(slurm::write_qos("db", name, id_of(name), settings));
  }
  std::int64_t id_of(const std::string& name) const {
    const auto rows = view().qos.rows;
    const auto it = rows->find(name);
    return it == rows->end() ? 0 : it->second->id;
  }
  Settings found(const std::string& name) const {
    return id_of(name) == 0 ? Settings{} : slurm::accounting::settings_of(*view().qos.rows->at(name));
  }
  std::string remove(const std::string& name) {
    const auto lists = view();
    const auto evidence =
        slurm::UnusedQos::of(plan::testing::Observer::at(loop.clock().mono()), "db", *lists.qos.rows->at(name), lists);
    return evidence ? outcome(slurm::delete_qos(*evidence)) : "no evidence";
  }
};

const std::vector<Shown>& all() {
  static const std::vector<Shown> kAll{
      {"Description", "Jobs on GPUs", "Description", "Jobs on GPUs"},
      {"Priority", 100, "Priority", "100"},
      {"Flags", Json::array({"DenyOnLimit", "NoDecay"}), "Flags", "DenyOnLimit,NoDecay"},
      {"Preempt", Json::array({"low"}), "Preempt", "low"},
      {"PreemptMode", "Requeue", "PreemptMode", "requeue"},
      {"PreemptExemptTime", 60, "PreemptExemptTime", "00:01:00"},
      {"GraceTime", 90, "GraceTime", "00:01:30"},
      {"UsageFactor", 1.5, "UsageFactor", "1.500000"},
      {"UsageThreshold", 0.25, "UsageThreshold", "0.250000"},
      {"LimitFactor", 2.0, "LimitFactor", "2.000000"},
      {"GrpJobs", 11, "GrpJobs", "11"},
      {"GrpJobsAccrue", 12, "GrpJobsAccrue", "12"},
      {"GrpSubmitJobs", 13, "GrpSubmit", "13"},
      {"GrpTRES/cpu", 14, "GrpTRES", "cpu=14"},
      {"GrpTRESMins/cpu", 15, "GrpTRESMins", "cpu=15"},
      {"GrpTRESRunMins/cpu", 16, "GrpTRESRunMins", "cpu=16"},
      {"GrpWall", 17, "GrpWall", "00:17:00"},
      {"MaxJobsAccruePerAccount", 18, "MaxJobsAccruePA", "18"},
      {"MaxJobsAccruePerUser", 19, "MaxJobsAccruePU", "19"},
      {"MaxJobsPerAccount", 20, "MaxJobsPA", "20"},
      {"MaxJobsPerUser", 21, "MaxJobsPU", "21"},
      {"MaxSubmitJobsPerAccount", 22, "MaxSubmitPA", "22"},
      {"MaxSubmitJobsPerUser", 23, "MaxSubmitPU", "23"},
      {"MaxTRESMinsPerJob/cpu", 24, "MaxTRESMins", "cpu=24"},
      {"MaxTRESPerAccount/cpu", 25, "MaxTRESPA", "cpu=25"},
      {"MaxTRESPerJob/cpu", 26, "MaxTRES", "cpu=26"},
      {"MaxTRESPerNode/cpu", 27, "MaxTRESPerNode", "cpu=27"},
      {"MaxTRESPerUser/cpu", 28, "MaxTRESPU", "cpu=28"},
      {"MaxTRESRunMinsPerAccount/cpu", 29, "MaxTRESRunMinsPA", "cpu=29"},
      {"MaxTRESRunMinsPerUser/cpu", 30, "MaxTRESRunMinsPU", "cpu=30"},
      {"MaxWallDurationPerJob", 4320, "MaxWall", "3-00:00:00"},
      {"MinPrioThreshold", 32, "MinPrioThreshold", "32"},
      {"MinTRESPerJob/cpu", 33, "MinTRES", "cpu=33"},
  };
  return kAll;
}

TEST_F(QosOfSlurmdbd, EveryFieldIsWhatSacctmgrShows) {
  ASSERT_EQ(all().size(), slurm::accounting::kQosFields.size());
  ASSERT_EQ(write("low", {}), "");
  Settings wanted;
  std::string formats, texts;
  for (const Shown& each : all()) {
    wanted[each.setting] = each.value;
    formats += (formats.empty() ? "" : ",") + std::string(each.format);
    texts += (texts.empty() ? "" : "|") + std::string(each.text);
  }
  ASSERT_EQ(write("gpu", wanted), "");
  EXPECT_TRUE(slurm::accounting::differences(wanted, found("gpu")).empty());
  EXPECT_EQ(show("gpu", formats), texts);

  // Resets one setting after the other. All others must stay.
  for (const Shown& each : all()) {
    SCOPED_TRACE(each.setting);
    if (each.setting == std::string("Preempt")) continue;  // Tested below.
    const Json none = slurm::accounting::default_of(each.setting);
    ASSERT_EQ(write("gpu", {{each.setting, none}}), "");
    wanted[each.setting] = none;
    EXPECT_TRUE(slurm::accounting::differences(wanted, found("gpu")).empty());
  }
  ASSERT_EQ(write("none", {{"Description", ""}}), "");
  sacctmgr("modify qos gpu set preempt=");
  EXPECT_EQ(show("gpu", formats), show("none", formats)) << "as a new one";
}

TEST_F(QosOfSlurmdbd, WhatARequestOmitsIsClearedSoItIsSentWhole) {
  ASSERT_EQ(write("gpu", {{"Flags", Json::array({"NoDecay"})}, {"PreemptMode", "Cancel"}, {"GrpJobs", 4}, {"GrpTRES/cpu", 8}}),
            "");
  ASSERT_EQ(write("gpu", {{"Priority", 5}}), "");
  EXPECT_EQ(show("gpu", "Flags,PreemptMode,GrpJobs,GrpTRES,Priority"), "NoDecay|cancel|4|cpu=8|5");
  // A request with only a name clears flags and preempt mode, and nothing else.
  const auto bare = ask<void>([&](auto done) { clusters->accounting("db")->write_qos({{"gpu", {}, {}}}, std::move(done)); });
  EXPECT_TRUE(bare);
  EXPECT_EQ(show("gpu", "Flags,PreemptMode,GrpJobs,GrpTRES"), "|cluster|4|cpu=8");
}

TEST_F(QosOfSlurmdbd, ATresThatItDoesNotKnowIsDroppedInSilence) {
  EXPECT_THAT(write("gpu", {{"GrpTRES/gres/gpu", 4}}),
              HasSubstr("stored something else: GrpTRES/gres/gpu is unlimited, wanted 4"));
}

TEST_F(QosOfSlurmdbd, APreemptedQosThatDoesNotExistIsRefused) {
  EXPECT_THAT(write("gpu", {{"Preempt", Json::array({"nosuch"})}}), HasSubstr("nosuch"));
  EXPECT_EQ(show("gpu", "Name"), "");
}

TEST_F(QosOfSlurmdbd, TheListOfPreemptedQosIsReplacedButCannotBeEmptied) {
  ASSERT_EQ(write("a", {}), "");
  ASSERT_EQ(write("b", {}), "");
  ASSERT_EQ(write("gpu", {{"Preempt", Json::array({"a"})}}), "");
  ASSERT_EQ(write("gpu", {{"Preempt", Json::array({"b"})}}), "");
  EXPECT_EQ(show("gpu", "Preempt"), "b");
  EXPECT_THAT(write("gpu", {{"Preempt", Json::array()}}), HasSubstr("Unsupported Preempt: "));
  // slurmrestd ignores a request with an empty list. It would crash on a list with an empty name.
  const auto bare = ask<void>([&](auto done) { clusters->accounting("db")->write_qos({{"gpu", {}, {}}}, std::move(done)); });
  EXPECT_TRUE(bare);
  EXPECT_EQ(show("gpu", "Preempt"), "b");
}

TEST_F(QosOfSlurmdbd, NewOnesAreCreatedTogetherOrNotAtAll) {
  ASSERT_EQ(write("old", {{"GrpJobs", 1}}), "");
  const auto post = [&](const std::vector<slurm::AccountingClient::QosWrite>& rows) {
    return ask<void>([&](auto done) { clusters->accounting("db")->write_qos(rows, std::move(done)); });
  };
  EXPECT_TRUE(post({{"a", {}, {{"GrpJobs", 4}, {"Flags", Json::array({"NoDecay"})}}}, {"b", {}, {{"Priority", 5}}}}));
  EXPECT_EQ(show("a", "GrpJobs,Flags"), "4|NoDecay");
  EXPECT_EQ(show("b", "Priority"), "5");
  // If slurmdbd refuses one QOS of a request, it stores none of them.
  EXPECT_FALSE(post({{"c", {}, {}}, {"d", {}, {{"Preempt", Json::array({"nosuch"})}}}}));
  EXPECT_EQ(show("c", "Name"), "");
  (void)post({{"c", {}, {}}, {"old", {}, {{"GrpJobs", 9}}}});
  EXPECT_EQ(show("c", "Name"), "c");
}

TEST_F(QosOfSlurmdbd, AReferenceToADeletedQosBreaksTheListOf24_11) {
  ASSERT_EQ(write("low", {}), "");
  ASSERT_EQ(write("gpu", {{"Preempt", Json::array({"low"})}}), "");
  EXPECT_EQ(remove("low"), "no evidence");
  sacctmgr("delete qos low");
  const auto listed = [&] {
    return ask<std::vector<std::shared_ptr<const slurm::accounting::Qos>>>(
               [&](auto done) { clusters->accounting("db")->qos(std::move(done)); })
        .has_value();
  };
  EXPECT_EQ(listed(), release >= "25.05");
  sacctmgr("modify qos gpu set preempt=");
  EXPECT_TRUE(listed());
}

TEST_F(QosOfSlurmdbd, FlagsOfLaterReleasesAreRefusedByName) {
  const std::string said = write("gpu", {{"Flags", Json::array({"PartitionQOS"})}});
  if (release < "25.05") {
    EXPECT_THAT(said, HasSubstr("Unsupported Flags: PartitionQOS"));
  } else {
    EXPECT_EQ(said, "");
  }
}

TEST_F(QosOfSlurmdbd, AChangeBySacctmgrIsSeen) {
  ASSERT_EQ(write("gpu", {{"GrpJobs", 4}}), "");
  sacctmgr("modify qos gpu set GrpJobs=20 flags=NoReserve");
  EXPECT_TRUE(until([&] { return slurm::accounting::value_of(found("gpu"), "GrpJobs") == 20; }));
  ASSERT_EQ(write("gpu", {{"GrpJobs", 4}}), "");
  EXPECT_EQ(show("gpu", "GrpJobs,Flags"), "4|NoReserve");
  sacctmgr("delete qos gpu");
  EXPECT_THAT(outcome(slurm::write_qos("db", "gpu", 1234, {{"GrpJobs", 4}})), HasSubstr("Conflict"));
  EXPECT_TRUE(until([&] { return id_of("gpu") == 0; }));
  ASSERT_EQ(write("gpu", {{"GrpJobs", 4}}), "") << "one that was deleted before can be created again";
  EXPECT_EQ(show("gpu", "GrpJobs,Flags,Description"), "4||gpu");
}

TEST_F(QosOfSlurmdbd, NamesAreComparedWithoutCase) {
  ASSERT_EQ(write("gpu", {{"Description", "Some TEXT"}}), "");
  const auto same = ask<slurm::accounting::Qos>([&](auto done) { clusters->accounting("db")->qos("GPU", std::move(done)); });
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_EQ(same->id, id_of("gpu"));
  sacctmgr("modify qos gpu set Description='Other TEXT'");
  EXPECT_TRUE(until([&] {
    const std::string is = found("gpu").at("Description");
    return is != "Some TEXT" && slurm::accounting::differences({{"Description", "Other TEXT"}}, found("gpu")).empty();
  })) << found("gpu").at("Description");
}

TEST_F(QosOfSlurmdbd, OneThatIsUsedIsNotDeleted) {
  ASSERT_EQ(write("gpu", {}), "");
  ASSERT_EQ(write("free", {}), "");
  sacctmgr("add account physics");
  sacctmgr("add user root account=physics");
  sacctmgr("modify user root account=physics set qos=normal,gpu,free defaultqos=normal");
  EXPECT_TRUE(until([&] { return view().associations.complete(); }));
  ASSERT_EQ(remove("free"), "") << "that it may be used holds nothing";
  EXPECT_EQ(show("free", "Name"), "");

  const std::string job = local("exec", "sbatch --parsable -D /tmp -o /dev/null -A physics -q gpu --mem=10 --hold --wrap true");
  EXPECT_THAT(remove("gpu"), HasSubstr("Busy it is used by job " + job + " of cluster local"));
  local("exec", "scancel " + job);
  EXPECT_TRUE(until([&] { return local("exec", "squeue --noheader").empty(); }));

  sacctmgr("modify user root account=physics set defaultqos=gpu");
  EXPECT_TRUE(until([&] { return !slurm::use_of_qos("gpu", view()).empty(); }));
  EXPECT_EQ(remove("gpu"), "no evidence");
  EXPECT_THAT(slurm::use_of_qos("gpu", view()), HasSubstr("account physics, user root, cluster local"));
  sacctmgr("modify user root account=physics set defaultqos=normal");
  EXPECT_TRUE(until([&] { return slurm::use_of_qos("gpu", view()).empty(); }));
  EXPECT_EQ(remove("gpu"), "");
  EXPECT_EQ(show("gpu", "Name"), "");
  sacctmgr("delete user root account=physics");
  sacctmgr("delete account physics");
}

TEST_F(QosOfSlurmdbd, ASlurmdbdThatDiesLeavesNothingHalfDone) {
  Settings wanted{{"GrpJobs", 4}, {"GrpTRES/cpu", 8}, {"Flags", Json::array({"NoDecay"})}, {"Priority", 7}};
  for (int i = 0; i < 6; ++i) {
    SCOPED_TRACE(i);
    const std::string name = "kill" + std::to_string(i);
    const auto out = std::make_shared<std::optional<plan::ActResult>>();
    target->execute(slurm::write_qos("db", name, 0, wanted), [out](plan::ActResult result) { *out = std::move(result); });
    const core::MonoTime strike = loop.clock().mono() + core::Duration{i * 3};
    until([&] { return loop.clock().mono() >= strike; });
    local("slurmdbd", "stop");
    local("slurmdbd", "start");
    ASSERT_TRUE(until([&] { return out->has_value(); }));
    EXPECT_TRUE(until([&] { return std::ranges::all_of((*out)->gates, [](const auto& gate) { return gate->open(); }); }));
    const core::MonoTime now = loop.clock().mono();
    ASSERT_TRUE(until([&] { return view().qos.complete() && view().qos.requested_at > now; }));
    if (id_of(name) != 0) {
      EXPECT_TRUE(slurm::accounting::differences(wanted, found(name)).empty()) << "all or nothing";
    }
    EXPECT_EQ(write(name, wanted), "");
    EXPECT_EQ(show(name, "GrpJobs,GrpTRES,Flags,Priority"), "4|cpu=8|NoDecay|7");
  }
}

}  // namespace
}  // namespace conformance
