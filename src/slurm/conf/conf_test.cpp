#include "slurm/conf/conf.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "slurm/conf/known_keys.hpp"
#include "slurm/conf/loaded.hpp"

namespace slurm::conf {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> words_of(const std::vector<Problem>& problems) {
  std::vector<std::string> out;
  for (const Problem& problem : problems) out.push_back(problem.str());
  return out;
}

TEST(Parse, JoinsContinuedLinesAsSlurmDoes) {
  const auto read = [](std::string_view text) {
    const Parsed parsed = parse(Kind::kSlurm, text);
    EXPECT_THAT(words_of(parsed.problems), IsEmpty()) << text;
    return parsed.conf.render();
  };
  EXPECT_EQ(read("PartitionName=a Nodes=\\\ncpu-0,\\ \t\ncpu-1 \\\nState=UP\n"), "PartitionName=a Nodes=cpu-0,cpu-1 State=UP\n")
      << "nothing comes between, and blanks may stand behind the backslash";
  EXPECT_EQ(read("MailProg=/a\\\\\nMailDomain=b\n"), "MailProg=/a\\\\\nMailDomain=b\n") << "an escaped backslash joins nothing";
  EXPECT_EQ(read("MailProg=/a\\#b # c \\\nMailDomain=b\\\\#c\n"), "MailProg=/a\\#b\nMailDomain=b\\\\\n")
      << "an escaped # begins no comment, and one behind an escaped backslash does";
}

TEST(Parse, TakesEscapesAwayAndWritesThemAgain) {
  const Parsed parsed = parse(Kind::kSlurm, "MailProg=/a\\#b\\\\c\\d MailDomain=\\\"x # e\nPartitionName=a\\_b Nodes=\"c\\#\n");
  EXPECT_EQ(parsed.conf.get("MailProg"), "/a#b\\cd");
  EXPECT_THAT(words_of(parsed.problems),
              ElementsAre(HasSubstr("MailDomain: the value has no closing"), HasSubstr("Nodes: the value")))
      << "a quote is one, be it escaped";
  EXPECT_NE(parsed.conf.record("PartitionName", "a_b"), nullptr);
  const std::string text = "MailProg=/a\\#b\\\\cd\n";
  EXPECT_EQ(parse(Kind::kSlurm, text).conf.render(), text);
  Conf conf;
  EXPECT_THAT(words_of(conf.add_record("PartitionName", "a", "AllowGroups=b\\#c State=UP")), IsEmpty());
  EXPECT_EQ(conf.render(), "PartitionName=a AllowGroups=b\\#c State=UP\n");
}

TEST(Parse, ARecordMayStandBehindSettings) {
  const Parsed parsed = parse(Kind::kSlurm, "MailDomain=a PartitionName=b Nodes=ALL MaxTime=1\n");
  EXPECT_THAT(words_of(parsed.problems), IsEmpty());
  EXPECT_EQ(parsed.conf.render(), "MailDomain=a\nPartitionName=b Nodes=ALL MaxTime=1\n");
}

TEST(Parse, DefaultsMayBeRepeated) {
  const std::string text =
      "PartitionName=DEFAULT MaxTime=1\nPartitionName=a Nodes=ALL\nPartitionName=default MaxTime=2\nPartitionName=default "
      "State=UP\n";
  const Parsed parsed = parse(Kind::kSlurm, text);
  EXPECT_THAT(words_of(parsed.problems), IsEmpty());
  EXPECT_EQ(parsed.conf.render(), text) << "in their order: they are of what is behind them";
  EXPECT_TRUE(parsed.conf.entries()[2].defaults());
  EXPECT_FALSE(parsed.conf.entries()[1].defaults());
}

TEST(Parse, BlanksAreThoseOfSlurm) {
  const Parsed parsed = parse(Kind::kSlurm, "\v MailDomain\t=\fa\rMailProg=/b\r\nPartitionName=a\v Nodes=ALL\r\n");
  EXPECT_THAT(words_of(parsed.problems), IsEmpty());
  EXPECT_EQ(parsed.conf.render(), "MailDomain=a\nMailProg=/b\nPartitionName=a Nodes=ALL\n");
}

TEST(Parse, ReadsSettingsRecordsCommentsAndContinuedLines) {
  const Parsed parsed = parse(Kind::kSlurm,
                              "# a comment\n"
                              "schedulertype=sched/backfill SelectType = select/cons_tres # both on one line\n"
                              "NodeSet=gpu Feature=gpu\n"
                              "PartitionName=big Nodes=gpu \\\n"
                              "  default=YES\n"
                              "Epilog=\"/etc/slurm/a b\"\n");
  EXPECT_THAT(words_of(parsed.problems), IsEmpty());
  EXPECT_EQ(parsed.conf.get("SchedulerType"), "sched/backfill");
  EXPECT_EQ(parsed.conf.get("selecttype"), "select/cons_tres");
  const Entry* partition = parsed.conf.record("PartitionName", "big");
  ASSERT_NE(partition, nullptr);
  EXPECT_EQ(partition->settings[2].key, "Default");
  EXPECT_EQ(parsed.conf.render(),
            "SchedulerType=sched/backfill\nSelectType=select/cons_tres\nEpilog=\"/etc/slurm/a b\"\n"
            "NodeSet=gpu Feature=gpu\nPartitionName=big Nodes=gpu Default=YES\n");
}

TEST(Parse, RenderedTextReadsTheSame) {
  const std::string text =
      "SchedulerType=sched/backfill\nMailProg=\"/bin/a b\"\nNodeSet=a Feature=a\nPartitionName=a Nodes=a State=UP\n";
  EXPECT_EQ(parse(Kind::kSlurm, text).conf.render(), text);
}

TEST(Parse, AnEmptyValueStaysInItsQuotes) {
  const std::string text = "MailDomain=\"\"\nPartitionName=a Nodes=ALL AllowGroups=\"\" State=UP\n";
  const Parsed parsed = parse(Kind::kSlurm, text);
  EXPECT_THAT(words_of(parsed.problems), IsEmpty());
  EXPECT_EQ(parsed.conf.get("MailDomain"), "");
  EXPECT_EQ(parsed.conf.render(), text) << "without the quotes slurmctld refuses the file";
}

TEST(Parse, NamesLineKeyAndNearestKnownKey) {
  const Parsed parsed = parse(Kind::kSlurm, "\nScedulerType=sched/backfill\nPartitionName=a Nods=b\n");
  EXPECT_THAT(words_of(parsed.problems),
              ElementsAre("line 2: ScedulerType: not a known key of slurm.conf, did you mean SchedulerType?",
                          "line 3: Nods: not a known parameter of PartitionName, did you mean Nodes?"));
}

TEST(Parse, KnowsTheKeysOfSlurmdbd) {
  const auto read = [](std::string_view text) { return parse(Kind::kSlurmdbd, text); };
  EXPECT_THAT(words_of(read("commitdelay=1\nPurgeJobAfter=12month\nTrackWCKey=yes\n").problems), IsEmpty());
  EXPECT_EQ(read("commitdelay=1\n").conf.render(), "CommitDelay=1\n");
  EXPECT_THAT(
      words_of(read("CommitDelay=soon\nArchiveJobs=maybe\nPurgeJobAftr=1\nInclude x\n").problems),
      ElementsAre("line 1: CommitDelay: \"soon\" is not a whole number", "line 2: ArchiveJobs: \"maybe\" is neither yes nor no",
                  "line 3: PurgeJobAftr: not a known key of slurmdbd.conf, did you mean PurgeJobAfter?",
                  "line 4: Include: other files cannot be included"));
  EXPECT_EQ(read("NodeName=a\n").problems.size(), 1U) << "there are no records";
}

TEST(Merge, OfSlurmdbdRefusesWhatFieldsSay) {
  Conf base;
  base.set("DbdHost", "x-accounting-0");
  base.set("StorageHost", "db");
  base.set("AuthAltParameters", "jwt_key=/etc/slurm/jwt.key");
  const Conf user =
      parse(Kind::kSlurmdbd, "DebugLevel=debug\nstoragehost=other\nDbdHost=h\nAuthAltParameters=userclaimfield=sub\n").conf;
  const Merged merged = merge(base, user, Kind::kSlurmdbd);
  EXPECT_THAT(words_of(merged.problems),
              ElementsAre("line 2: StorageHost: set by the operator; remove it, and set spec.storageConfig.host",
                          "line 3: DbdHost: set by the operator; remove it"));
  EXPECT_EQ(merged.conf.render(),
            "DbdHost=x-accounting-0\nStorageHost=db\nAuthAltParameters=jwt_key=/etc/slurm/jwt.key,userclaimfield=sub\n"
            "DebugLevel=debug\n");
}

TEST(Parse, LeavesKeysThatResembleNoneToSlurmctld) {
  const Parsed parsed = parse(Kind::kSlurm, "QuantumEntanglement=yes\n");
  ASSERT_EQ(parsed.problems.size(), 1U);
  EXPECT_FALSE(parsed.problems[0].fatal);
  EXPECT_EQ(parsed.conf.get("QuantumEntanglement"), "yes");
}

TEST(Parse, KnowsWhatPartitionsMayBe) {
  const auto problems = [](const std::string& words) {
    return words_of(parse(Kind::kSlurm, "PartitionName=a " + words + "\n").problems);
  };
  for (const char* good : {"State=UP", "State=inactive", "MaxTime=90", "MaxTime=1:30", "MaxTime=12:00:00", "MaxTime=7-0",
                           "MaxTime=7-12:30", "DefaultTime=1-0:0:30", "MaxTime=UNLIMITED", "MaxTime=infinite", "MaxTime=-1",
                           "OverSubscribe=NO", "OverSubscribe=force:4", "Shared=Exclusive", "OverSubscribe=YES"}) {
    EXPECT_THAT(problems(good), IsEmpty()) << good;
  }
  EXPECT_THAT(problems("State=BOGUS"), ElementsAre("line 1: State: \"BOGUS\" is not UP, DOWN, DRAIN or INACTIVE"));
  for (const char* bad : {"MaxTime=soon", "MaxTime=1:2:3:4", "MaxTime=1-", "MaxTime=-5", "DefaultTime=1h", "DefaultTime=1::2",
                          "OverSubscribe=MAYBE", "OverSubscribe=NO:2", "OverSubscribe=FORCE:x"}) {
    EXPECT_THAT(problems(bad), ElementsAre(HasSubstr("is not "))) << bad;
  }
  EXPECT_THAT(words_of(parse(Kind::kSlurm, "NodeName=a State=FUTURE\n").problems), IsEmpty()) << "of nodes it is another word";
}

TEST(Parse, RefusesWhatSlurmsCommandsWouldDieOf) {
  EXPECT_THAT(words_of(parse(Kind::kSlurm, "MailProg=\n").problems), ElementsAre(HasSubstr("MailProg: an empty value")));
  EXPECT_THAT(words_of(parse(Kind::kSlurm, "MailProg\n").problems), ElementsAre(HasSubstr("write MailProg=VALUE")));
  EXPECT_THAT(words_of(parse(Kind::kSlurm, "Include other.conf\n").problems), ElementsAre(HasSubstr("configFileRefs")));
  EXPECT_THAT(words_of(parse(Kind::kSlurm, "MailProg=\"a\n").problems), ElementsAre(HasSubstr("closing double quote")));
  EXPECT_THAT(words_of(parse(Kind::kSlurm, "PartitionName=a Nodes=b\nPartitionName=a Nodes=c\n").problems),
              ElementsAre(HasSubstr("line 2: PartitionName: a is already defined in line 1")));
}

TEST(Parse, KnowsWhichValuesAreNumbersOrYesAndNo) {
  const Parsed parsed =
      parse(Kind::kSlurm,
            "MaxNodeCount=abc\nMessageTimeout=-1\nTrackWCKey=maybe\nMinJobAge=5m\n"
            "PartitionName=a Nodes=ALL Hidden=perhaps PriorityTier=high OverTimeLimit=UNLIMITED MaxTime=1-0\n");
  EXPECT_THAT(
      words_of(parsed.problems),
      ElementsAre("line 1: MaxNodeCount: \"abc\" is not a whole number", "line 2: MessageTimeout: \"-1\" is not a whole number",
                  "line 3: TrackWCKey: \"maybe\" is neither yes nor no", "line 4: MinJobAge: \"5m\" is not a whole number",
                  "line 5: Hidden: \"perhaps\" is neither yes nor no", "line 5: PriorityTier: \"high\" is not a whole number"));
  EXPECT_TRUE(parsed.problems[0].fatal);
  EXPECT_THAT(words_of(parse(Kind::kSlurm,
                             "MaxNodeCount=64k\nMaxStepCount=unlimited\nTrackWCKey=Yes\nSuspendTime=-1\n"
                             "PartitionName=a Nodes=ALL MaxNodes=INFINITE Default=no\n")
                           .problems),
              IsEmpty());
  EXPECT_THAT(words_of(parse(Kind::kCgroup, "ConstrainCores=maybe\nMinRAMSpace=x\n").problems),
              ElementsAre("line 1: ConstrainCores: \"maybe\" is neither yes nor no",
                          "line 2: MinRAMSpace: \"x\" is not a whole number"));
}

TEST(Parse, KnowsKeysThatResembleOthers) {
  EXPECT_THAT(words_of(parse(Kind::kSlurm,
                             "DefMemPerGPU=4096\nDefCPUPerGPU=8\nSlurmdPidFile=/run/slurmd.pid\n"
                             "PartitionName=a Nodes=ALL Exclusive=NODE DefMemPerGPU=4096\n")
                           .problems),
              IsEmpty());
}

TEST(KnownKeys, WhatIsANumberOrYesOrNoIsAKey) {
  const auto among = [](const auto& names, std::string_view key) {
    return std::find(names.begin(), names.end(), key) != names.end();
  };
  for (const std::string_view key : kSlurmNumbers) EXPECT_TRUE(among(kSlurmKeys, key)) << key;
  for (const std::string_view key : kPartitionNumbers) EXPECT_TRUE(among(kPartitionParameters, key)) << key;
  for (const std::string_view key : kNodeNumbers) EXPECT_TRUE(among(kNodeParameters, key)) << key;
  for (const std::string_view key : kCgroupNumbers) EXPECT_TRUE(among(kCgroupKeys, key)) << key;
  for (const std::string_view key : kSlurmdbdNumbers) EXPECT_TRUE(among(kSlurmdbdKeys, key)) << key;
  for (const std::string_view key : kYesNo) {
    EXPECT_TRUE(among(kSlurmKeys, key) || among(kPartitionParameters, key) || among(kCgroupKeys, key) ||
                among(kSlurmdbdKeys, key))
        << key;
  }
}

TEST(Parse, KnowsCgroupConf) {
  EXPECT_THAT(words_of(parse(Kind::kCgroup, "CgroupPlugin=disabled\nConstrainCores=yes\n").problems), IsEmpty());
  EXPECT_THAT(words_of(parse(Kind::kCgroup, "CgroupPlugins=disabled\n").problems),
              ElementsAre(HasSubstr("did you mean CgroupPlugin?")));
}

class MergeTest : public testing::Test {
 protected:
  MergeTest() {
    base_.set("ClusterName", "a");
    base_.set("SlurmctldParameters", "enable_configless,reconfig_on_restart");
    base_.set("MaxNodeCount", "65533");
    base_.add_record("NodeSet", "cpu", "Feature=cpu");
    base_.add_record("PartitionName", "cpu", "Nodes=cpu");
  }
  Merged over(std::string_view user) const { return merge(base_, parse(Kind::kSlurm, user).conf); }
  Conf base_;
};

TEST_F(MergeTest, AUsersValueWins) {
  EXPECT_EQ(over("MaxNodeCount=10").conf.get("MaxNodeCount"), "10");
}

TEST_F(MergeTest, ParameterListsAreUnited) {
  EXPECT_EQ(over("SlurmctldParameters=idle_on_node_suspend,enable_configless").conf.get("SlurmctldParameters"),
            "enable_configless,reconfig_on_restart,idle_on_node_suspend");
}

TEST_F(MergeTest, KeysOfTheOperatorAreRefused) {
  const Merged merged = over("\nclustername=mine");
  EXPECT_THAT(words_of(merged.problems), ElementsAre("line 2: ClusterName: set by the operator; remove it"));
  EXPECT_EQ(merged.conf.get("ClusterName"), "a");
  const Merged metrics = over("MetricsType=metrics/openmetrics");
  EXPECT_THAT(words_of(metrics.problems), IsEmpty()) << "nothing sets it";
  EXPECT_EQ(metrics.conf.get("MetricsType"), "metrics/openmetrics");
}

TEST_F(MergeTest, DynamicNodesNeedConsTres) {
  EXPECT_THAT(words_of(over("SelectType=select/linear").problems), ElementsAre(HasSubstr("only select/cons_tres does")));
  EXPECT_THAT(words_of(over("selecttype=select/cons_tres").problems), IsEmpty());
}

TEST_F(MergeTest, RecordsOfANodeSetAreNotWrittenTwice) {
  EXPECT_THAT(words_of(over("PartitionName=cpu Nodes=ALL").problems), ElementsAre(HasSubstr("cpu is created for the NodeSet")));
  EXPECT_THAT(words_of(over("PartitionName=all Nodes=ALL").problems), IsEmpty());
}

TEST_F(MergeTest, RepeatedKeysAreAdded) {
  base_.add("Prolog", "a.sh");
  EXPECT_THAT(over("Prolog=b.sh").conf.get_all("Prolog"), ElementsAre("a.sh", "b.sh"));
}

TEST(NodeConf, ReadsQuotedValues) {
  const NodeConf conf = parse_node_conf("CPUs=2 Reason=\"new node\" Features=a,b");
  EXPECT_THAT(words_of(conf.problems), IsEmpty());
  ASSERT_EQ(conf.settings.size(), 3U);
  EXPECT_EQ(conf.settings[1].value, "new node");
}

TEST(NodeConf, RefusesWhatSlurmdWouldDieOf) {
  EXPECT_THAT(words_of(parse_node_conf("NodeName=a").problems), ElementsAre(HasSubstr("NodeName: the node's name")));
  EXPECT_THAT(words_of(parse_node_conf("Port=1").problems), ElementsAre(HasSubstr("Port: not accepted")));
  EXPECT_THAT(words_of(parse_node_conf("CPU=1").problems), ElementsAre(HasSubstr("did you mean CPUs?")));
  EXPECT_THAT(words_of(parse_node_conf("Hyperdrive=1").problems),
              ElementsAre(HasSubstr("Hyperdrive: not a known node parameter")));
  EXPECT_FALSE(parse_node_conf("Port=1").problems[0].fatal) << "slurmd starts with it";
  EXPECT_TRUE(parse_node_conf("CPU=1").problems[0].fatal);
  EXPECT_THAT(words_of(parse_node_conf("CPUs").problems), ElementsAre(HasSubstr("write CPUs=VALUE")));
  EXPECT_THAT(words_of(parse_node_conf("CPUs=1 cpus=2").problems), ElementsAre(HasSubstr("more than once")));
  EXPECT_THAT(words_of(parse_node_conf("Reason='a'").problems), ElementsAre(HasSubstr("only double quotes")));
}

TEST(NodeConf, NamesTheKeysThatAreAllowedAndChecksNumbers) {
  const NodeConf unknown = parse_node_conf("Flavour=vanilla");
  ASSERT_EQ(unknown.problems.size(), 1U);
  EXPECT_FALSE(unknown.problems[0].fatal) << "a later slurmd may know it";
  EXPECT_THAT(unknown.problems[0].message, HasSubstr("RealMemory"));
  EXPECT_THAT(unknown.problems[0].message, testing::Not(HasSubstr("NodeAddr")));
  EXPECT_THAT(words_of(parse_node_conf("CPUs=four RealMemory=1000").problems),
              ElementsAre("CPUs: \"four\" is not a whole number"));
}

TEST(Marker, IsFoundAgain) {
  Snapshot snapshot;
  EXPECT_FALSE(loaded_hash(Owner::kOperator, snapshot));
  for (const char* name : {"cpu", "slurm-enlist-9", "slurm-operator-0123abc", "zeta"}) snapshot.partitions[name].name = name;
  EXPECT_EQ(loaded_hash(Owner::kOperator, snapshot), "0123abc");
  EXPECT_EQ(loaded_hash(Owner::kEnlistment, snapshot), "9");
  EXPECT_FALSE(loaded_hash(Owner::kBridge, snapshot));
  EXPECT_THAT(words_of(parse(Kind::kSlurm, marker_partition(Owner::kOperator, "0123abc")).problems), IsEmpty());
}

}  // namespace
}  // namespace slurm::conf
