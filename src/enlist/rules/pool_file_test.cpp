#include "enlist/rules/pool_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "enlist/rules/service_files.hpp"
#include "slurm/conf/conf.hpp"

namespace enlist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

std::map<std::string, Pool> pools() {
  return {{"gpu", {.name = "gpu", .partition_conf = "MaxTime=1-0 AllowGroups=\"a b\""}}, {"cpu", {.name = "cpu"}}};
}

TEST(PartitionConf, TakesTheParametersOfAPartition) {
  for (const char* good : {"", "MaxTime=1-0 Default=YES", "state=UP\tMaxNodes=4", "AllowGroups=\"a b\"", "AllowGroups=a\\#b"})
    EXPECT_TRUE(check_partition_conf(good)) << good;
}

TEST(PartitionConf, RefusesTheRestWithTheWord) {
  const auto error = [](std::string_view words) {
    const auto checked = check_partition_conf(words);
    EXPECT_FALSE(checked) << words;
    return checked ? "" : checked.error().message;
  };
  EXPECT_THAT(error("Nodes=ALL"), HasSubstr("Nodes: the nodes are those of the pool"));
  EXPECT_THAT(error("nodes=ALL"), HasSubstr("remove it"));
  EXPECT_THAT(error("partitionname=x"), HasSubstr("has the name of the pool"));
  EXPECT_THAT(error("MaxTime=soon"), HasSubstr("MaxTime: \"soon\" is not a time"));
  EXPECT_THAT(error("MaxTme=1"), HasSubstr("did you mean MaxTime?"));
  EXPECT_THAT(error("Colour=red"), HasSubstr("Colour: not a known parameter of PartitionName. Known parameters: AllocNodes, "));
  EXPECT_THAT(error("Default"), HasSubstr("Default=VALUE"));
  EXPECT_THAT(error("MaxTime="), HasSubstr("empty value"));
  EXPECT_THAT(error("MaxTime=1\nInclude /etc/passwd"), HasSubstr("one line")) << "a pool is no way to write other lines";
  EXPECT_THAT(error(std::string("MaxTime=1\0", 10)), HasSubstr("control characters"));
  EXPECT_THAT(error("MaxTime=soon Nodes=a"), HasSubstr("; ")) << "all at once";
}

TEST(PoolFile, HasNodeSetsPartitionsAndTheMarkerLast) {
  const std::string text = pool_file(pools());
  EXPECT_THAT(text, StartsWith(std::string(kFileMark) +
                               "NodeSet=cpu Feature=cpu\nNodeSet=gpu Feature=gpu\nPartitionName=cpu Nodes=cpu\n"
                               "PartitionName=gpu Nodes=gpu MaxTime=1-0 AllowGroups=\"a b\"\nPartitionName=slurm-enlist-"));
  EXPECT_THAT(text, testing::EndsWith(hash_of(text) + " Hidden=YES RootOnly=YES State=INACTIVE\n"));
  EXPECT_THAT(slurm::conf::parse(slurm::conf::Kind::kSlurm, text).problems, IsEmpty()) << "Slurm reads it";
  EXPECT_EQ(text, pool_file(pools()));
}

TEST(PoolFile, ItsHashIsThatOfItsContent) {
  const std::string hash = hash_of(pool_file(pools()));
  EXPECT_EQ(hash.size(), 16U);
  auto other = pools();
  other["cpu"].next_number = 7;
  EXPECT_EQ(hash_of(pool_file(other)), hash) << "it is no part of the file";
  other["cpu"].partition_conf = "MaxTime=1";
  EXPECT_NE(hash_of(pool_file(other)), hash);
  EXPECT_NE(hash_of(pool_file({})), "") << "without pools there is a file";
  for (const char* none : {"", "PartitionName=gpu Nodes=gpu\n", "# PartitionName=slurm-enlist-abc\n"})
    EXPECT_EQ(hash_of(none), "");
  EXPECT_EQ(hash_of("PartitionName=slurm-enlist-abc Hidden=YES\n"), "abc");
  EXPECT_EQ(hash_of("PartitionName=slurm-operator-abc Hidden=YES\n"), "") << "the operator's marker";
}

TEST(PoolFile, ItsPoolsAreRead) {
  auto all = pools();
  all["tpu"] = {.name = "tpu", .partition_conf = "MaxTime=60 AllowGroups=a\\#b"};
  EXPECT_EQ(pools_of(pool_file(all)), all);
  EXPECT_EQ(pool_file(pools_of(pool_file(all))), pool_file(all));
  EXPECT_THAT(pools_of(pool_file({}, "0123456789abcdef")), IsEmpty());
  EXPECT_THAT(pools_of("NodeSet=a Feature=a\nPartitionName=a Nodes=a\n"), IsEmpty()) << "it is not ours";
  EXPECT_EQ(pools_of("NodeSet=B Feature=B\nPartitionName=B Nodes=B\nPartitionName=mine Nodes=ALL\n" + pool_file(all)), all)
      << "what no pool can be is not ours either";
  all["gpu"].removing = true;
  EXPECT_EQ(pools_of(pool_file(all)).at("gpu").partition_conf, "MaxTime=1-0 AllowGroups=\"a b\" State=DRAIN");
}

/// A slurm.conf that needs no changes.
constexpr std::string_view kGood =
    "ClusterName=c\n"
    "SlurmctldHost=ctld # the only one\n"
    "AuthType=auth/slurm\n"
    "AuthAltTypes=auth/jwt\n"
    "AuthAltParameters=jwt_key=/etc/slurm/jwt.key\n"
    "SlurmctldParameters=enable_configless\n"
    "MaxNodeCount=1024\n"
    "Include slurm-enlist.conf\n";

std::string good_with(std::string_view line, std::string_view instead) {
  std::string out(kGood);
  const std::size_t at = out.find(line);
  EXPECT_NE(at, std::string::npos) << line;
  return out.replace(at, line.size(), instead);
}

Preflight check(std::string_view text, const std::map<std::string, std::string>& included = {}) {
  Preflight out = preflight(text, 1024, "/new/jwt.key", included);
  const Preflight again = preflight(out.text, 1024, "/new/jwt.key", included);
  EXPECT_EQ(again.text, out.text) << "a second run changes nothing";
  EXPECT_THAT(again.changes, IsEmpty());
  EXPECT_EQ(again.problems, out.problems);
  EXPECT_EQ(again.jwt_key, out.jwt_key);
  return out;
}

TEST(Preflight, ChangesNothingWhereNothingIsNeeded) {
  const Preflight out = check(kGood);
  EXPECT_THAT(out.problems, IsEmpty());
  EXPECT_THAT(out.changes, IsEmpty());
  EXPECT_EQ(out.text, kGood);
  EXPECT_EQ(out.jwt_key, "/etc/slurm/jwt.key");
}

TEST(Preflight, AddsWhatIsMissingAtTheEnd) {
  const std::string before = "# mine\nClusterName=c\nAuthType=auth/slurm\n";
  const Preflight out = check(before);
  EXPECT_THAT(out.problems, IsEmpty());
  EXPECT_EQ(out.text,
            before +
                "SlurmctldParameters=enable_configless\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/new/jwt.key\n"
                "MaxNodeCount=1024\nInclude slurm-enlist.conf\n");
  EXPECT_THAT(out.changes,
              ElementsAre(StartsWith("SlurmctldParameters=enable_configless is added: "),
                          StartsWith("AuthAltTypes=auth/jwt is added: "),
                          StartsWith("AuthAltParameters=jwt_key=/new/jwt.key is added: "),
                          StartsWith("MaxNodeCount=1024 is added: "), StartsWith("Include slurm-enlist.conf is added: ")));
  EXPECT_EQ(out.jwt_key, "/new/jwt.key");
}

TEST(Preflight, TheLastLineMayEndAnyhow) {
  const std::string lines = std::string(kGood).substr(0, kGood.find("Include"));
  EXPECT_EQ(check(lines + "MailProg=/a").text, lines + "MailProg=/a\nInclude slurm-enlist.conf\n");
  EXPECT_EQ(check(lines + "MailProg=/a \\").text, lines + "MailProg=/a \\\n\nInclude slurm-enlist.conf\n")
      << "else the line would be part of the one before";
  EXPECT_EQ(check(lines + "MailProg=/a \\\n").text, lines + "MailProg=/a \\\n\nInclude slurm-enlist.conf\n");
  EXPECT_EQ(check(lines + "MailProg=/a \\ # b\n").text, lines + "MailProg=/a \\ # b\n\nInclude slurm-enlist.conf\n");
  EXPECT_EQ(check(lines + "# a \\\n").text, lines + "# a \\\nInclude slurm-enlist.conf\n") << "a comment is not continued";
}

TEST(Preflight, ExtendsListsWhereverTheyStand) {
  const auto parameters = [](std::string_view before, std::string_view after) {
    const Preflight out = check(good_with("SlurmctldParameters=enable_configless", before));
    EXPECT_THAT(out.problems, IsEmpty());
    EXPECT_EQ(out.text, good_with("SlurmctldParameters=enable_configless", after));
    EXPECT_THAT(out.changes, ElementsAre(StartsWith("SlurmctldParameters=enable_configless,")));
  };
  parameters("SlurmctldParameters=a,b", "SlurmctldParameters=enable_configless,a,b");
  parameters("slurmctldPARAMETERS = a,b # c", "slurmctldPARAMETERS = enable_configless,a,b # c");
  parameters("MailProg=/m SlurmctldParameters=a NodeName=n", "MailProg=/m SlurmctldParameters=enable_configless,a NodeName=n");
  parameters("SlurmctldParameters=\"a,b\"", "SlurmctldParameters=\"enable_configless,a,b\"");
  parameters("SlurmctldParameters=a,\\\nb", "SlurmctldParameters=enable_configless,a,\\\nb");
  parameters("SlurmctldParameters=\\\n  a", "SlurmctldParameters=\\\n  enable_configless,a");
  parameters("MailProg=/m \\\n SlurmctldParameters=a", "MailProg=/m \\\n SlurmctldParameters=enable_configless,a");
  parameters("\tSlurmctldParameters=a\r", "\tSlurmctldParameters=enable_configless,a\r");
  parameters("#SlurmctldParameters=x\nSlurmctldParameters=a # SlurmctldParameters=y",
             "#SlurmctldParameters=x\nSlurmctldParameters=enable_configless,a # SlurmctldParameters=y");
  parameters("SlurmctldParameters=enable_configless\nSlurmctldParameters=a",
             "SlurmctldParameters=enable_configless\nSlurmctldParameters=enable_configless,a");
  parameters("MailProg=/m\\#SlurmctldParameters=b SlurmctldParameters=a",
             "MailProg=/m\\#SlurmctldParameters=b SlurmctldParameters=enable_configless,a");
}

TEST(Preflight, AnItemIsFoundInAnyCaseAndPlace) {
  for (const char* there : {"SlurmctldParameters=a,Enable_Configless,b", "slurmctldparameters=\"a, enable_configless\""})
    EXPECT_THAT(check(good_with("SlurmctldParameters=enable_configless", there)).changes, IsEmpty()) << there;
  EXPECT_THAT(check(good_with("SlurmctldParameters=enable_configless", "SlurmctldParameters=enable_configless_not")).changes,
              testing::SizeIs(1));
}

TEST(Preflight, AnEmptyListGetsTheItemAlone) {
  EXPECT_EQ(check(good_with("SlurmctldParameters=enable_configless", "SlurmctldParameters=\"\"")).text,
            good_with("SlurmctldParameters=enable_configless", "SlurmctldParameters=\"enable_configless\""));
}

TEST(Preflight, ASettingWithoutAValueIsNamed) {
  for (const char* empty : {"SlurmctldParameters=\n", "SlurmctldParameters= # none\n", "SlurmctldParameters=\\\n\n"}) {
    const Preflight out = check(good_with("SlurmctldParameters=enable_configless\n", empty));
    EXPECT_THAT(out.changes, IsEmpty());
    EXPECT_THAT(
        out.problems,
        ElementsAre(StartsWith("slurm.conf: SlurmctldParameters= must become SlurmctldParameters=enable_configless: ")));
  }
}

TEST(Preflight, RaisesALowNodeCount) {
  const auto text_with = [](std::string_view before) { return check(good_with("MaxNodeCount=1024", before)).text; };
  EXPECT_EQ(text_with("maxnodecount=16 # few"), good_with("MaxNodeCount=1024", "maxnodecount=1024 # few"));
  EXPECT_EQ(text_with("MaxNodeCount=\"16\""), good_with("MaxNodeCount=1024", "MaxNodeCount=\"1024\""));
  EXPECT_EQ(text_with("MaxNodeCount=4\nMaxNodeCount=24"), good_with("MaxNodeCount=1024", "MaxNodeCount=4\nMaxNodeCount=1024"))
      << "the last one counts";
  for (const char* enough : {"MaxNodeCount=1024", "MaxNodeCount=2000", "MaxNodeCount=1k", "MaxNodeCount=65536"})
    EXPECT_EQ(text_with(enough), good_with("MaxNodeCount=1024", enough)) << enough;
  EXPECT_THAT(check(good_with("MaxNodeCount=1024", "MaxNodeCount=16")).changes,
              ElementsAre(StartsWith("MaxNodeCount=1024 replaces MaxNodeCount=16: ")));
  EXPECT_THAT(preflight("", 100'000, "/k").text, HasSubstr("MaxNodeCount=65536\n")) << "Slurm allows no more";
}

TEST(Preflight, NamesWhatTheAdministratorMustDecide) {
  const auto problem = [](std::string_view text) {
    const Preflight out = check(text);
    EXPECT_THAT(out.changes, IsEmpty()) << text;
    EXPECT_EQ(out.text, text);
    EXPECT_THAT(out.problems, testing::SizeIs(1));
    return out.problems.empty() ? "" : out.problems.front();
  };
  EXPECT_THAT(problem(good_with("AuthType=auth/slurm", "authtype=auth/munge")),
              StartsWith("AuthType=auth/munge: set AuthType=auth/slurm. "));
  EXPECT_THAT(problem(good_with("AuthType=auth/slurm\n", "# AuthType=auth/slurm\n")),
              StartsWith("AuthType is not set, and Slurm's default is auth/munge: set AuthType=auth/slurm."));
  EXPECT_THAT(problem(good_with("AuthType=auth/slurm", "AuthType=auth/slurm CredType=cred/munge")),
              StartsWith("CredType=cred/munge: set CredType=cred/slurm."));
  EXPECT_THAT(problem(good_with("ClusterName=c", "ClusterName=c SelectType=select/linear")),
              StartsWith("SelectType=select/linear: set SelectType=select/cons_tres."));
  EXPECT_THAT(check(good_with("ClusterName=c", "SelectType=select/cons_tres CredType=cred/slurm")).problems, IsEmpty());
}

TEST(Preflight, TheKeyOfTokensStaysTheOneThatSlurmHas) {
  const auto jwt = [](std::string_view before) {
    return check(good_with("AuthAltParameters=jwt_key=/etc/slurm/jwt.key\n", before));
  };
  const Preflight by_default = jwt("StateSaveLocation=/state\n");
  EXPECT_EQ(by_default.jwt_key, "/state/jwt_hs256.key") << "auth/jwt is there: its tokens stay valid";
  EXPECT_THAT(by_default.text, HasSubstr("\nAuthAltParameters=jwt_key=/state/jwt_hs256.key\n"));
  EXPECT_EQ(jwt("AuthInfo=jwt_key=/info.key\n").jwt_key, "/info.key");
  EXPECT_THAT(jwt("AuthInfo=jwt_key=/info.key\n").changes, IsEmpty());
  EXPECT_THAT(jwt("AuthAltParameters=jwks=/etc/slurm/jwks.json\n").text,
              HasSubstr("\nAuthAltParameters=jwt_key=/new/jwt.key,jwks=/etc/slurm/jwks.json\n"));
  EXPECT_EQ(jwt("AuthAltParameters=disable_token_creation,jwt_key=/a.key\n").jwt_key, "/a.key");
  EXPECT_THAT(check(good_with("AuthAltTypes=auth/jwt\n", "AuthAltTypes=auth/other\n")).text,
              HasSubstr("\nAuthAltTypes=auth/jwt,auth/other\n"));
}

TEST(Preflight, APathThatSlurmWouldReadOtherwiseIsQuoted) {
  const Preflight out = preflight("AuthType=auth/slurm\n", 5, "/my keys/#1");
  const auto parsed = slurm::conf::parse(slurm::conf::Kind::kSlurm, out.text);
  EXPECT_EQ(parsed.conf.get("AuthAltParameters"), "jwt_key=/my keys/#1");
  EXPECT_THAT(preflight("AuthType=auth/slurm\nAuthAltParameters=jwks=/j\n", 5, "/my keys/#1").problems,
              ElementsAre(StartsWith(
                  "slurm.conf: AuthAltParameters=jwks=/j must become AuthAltParameters=jwt_key=/my keys/#1,jwks=/j: ")))
      << "what cannot be written safely is left to the administrator";
}

TEST(Preflight, SettingsOfIncludedFilesCountInTheirOrder) {
  const std::string text = "Include auth.conf\n" + good_with("AuthType=auth/slurm\n", "");
  EXPECT_THAT(check(text, {{"auth.conf", "AuthType=auth/slurm\nMaxNodeCount=4\n"}}).problems, IsEmpty())
      << "MaxNodeCount=1024 comes later";
  EXPECT_THAT(check(text, {{"auth.conf", "AuthType=auth/munge\n"}}).problems,
              ElementsAre(HasSubstr("AuthType=auth/munge: set")));
  EXPECT_THAT(check(text, {{"auth.conf", "include more.conf\n"}, {"more.conf", "AuthType=auth/slurm"}}).problems, IsEmpty());
  const Preflight low = check(std::string(kGood) + "  INCLUDE\tnodes.conf # c\n", {{"nodes.conf", "\nMaxNodeCount=4\n"}});
  EXPECT_THAT(low.problems, ElementsAre(StartsWith("nodes.conf: MaxNodeCount=4 must become MaxNodeCount=1024: ")));
  EXPECT_THAT(low.changes, IsEmpty());
  EXPECT_THAT(check(std::string(kGood) + "Include gone.conf\n").problems,
              ElementsAre(StartsWith("Include gone.conf: the file cannot be read")));
  EXPECT_THAT(check(std::string(kGood) + "Include a\n", {{"a", "Include a\n"}}).problems, ElementsAre(HasSubstr("too deeply")));
  EXPECT_THAT(included_files(text + " include b/c.conf\nIncludes=x\n#Include d\nMailProg=a Include=e\n"),
              ElementsAre("auth.conf", "b/c.conf"));
}

TEST(Preflight, ThePoolFileIsIncludedOnceAndWithoutAFolder) {
  EXPECT_THAT(check(good_with("Include slurm-enlist.conf", "\tinclude   slurm-enlist.conf  # ours")).changes, IsEmpty());
  EXPECT_THAT(check(std::string(kGood) + "Include slurm-enlist.conf\n").problems, ElementsAre(HasSubstr("twice")));
  EXPECT_THAT(check(good_with("Include slurm-enlist.conf", "Include /etc/slurm/slurm-enlist.conf")).problems,
              ElementsAre(HasSubstr("without a folder")));
  EXPECT_THAT(check(good_with("Include slurm-enlist.conf", "# Include slurm-enlist.conf")).changes, testing::SizeIs(1));
  EXPECT_THAT(check(good_with("Include", "MailProg=/m\nInclude") + "PartitionName=last Nodes=ALL\n").changes, IsEmpty())
      << "it may stand anywhere";
}

RC_GTEST_PROP(Preflight, EverythingElseStaysByteForByte, ()) {
  const auto piece = rc::gen::element<std::string>(
      "SlurmctldParameters", "slurmctldparameters", "MaxNodeCount", "AuthType", "AuthAltTypes", "AuthAltParameters", "MailProg",
      "Include", "NodeName", "slurm-enlist.conf", "auth/slurm", "auth/jwt", "enable_configless", "jwt_key=/a", "16", "2000",
      "=", "=", "=", "=", " ", " ", "\n", "\n", "\n", "\\", "\\\n", "#", "\"", ",", "\r\n", "\t");
  std::string text;
  for (const std::string& one : *rc::gen::container<std::vector<std::string>>(piece)) text += one;
  const Preflight out = preflight(text, 1024, "/new/jwt.key");
  const Preflight again = preflight(out.text, 1024, "/new/jwt.key");
  RC_ASSERT(again.text == out.text);
  RC_ASSERT(again.changes.empty());
  // Lines are changed in place, and new lines are appended, so no line is removed.
  RC_ASSERT(std::ranges::count(out.text, '\n') >= std::ranges::count(text, '\n'));
  if (out.changes.empty()) RC_ASSERT(out.text == text);
  // Slurm reads the same values for all other settings.
  const auto others = [](std::string_view of) {
    std::vector<std::string> all;
    const auto parsed = slurm::conf::parse(slurm::conf::Kind::kSlurm, of);
    for (const auto& entry : parsed.conf.entries()) {
      for (const auto& setting : entry.settings) {
        for (const char* ours : {"SlurmctldParameters", "MaxNodeCount", "AuthAltTypes", "AuthAltParameters"}) {
          if (!entry.record() && setting.key == ours) goto next;
        }
        all.push_back(setting.key + "=" + setting.value);
      next:;
      }
    }
    return all;
  };
  RC_ASSERT(others(out.text) == others(text));
}

}  // namespace
}  // namespace enlist
