// Compares how our parser (src/slurm/conf) and the real slurmctld read slurm.conf, according to `scontrol show`.
#include <gmock/gmock.h>

#include <sstream>

#include "fixture.hpp"
#include "slurm/conf/conf.hpp"

namespace conformance {
namespace {

using Values = std::map<std::string, std::string>;

/// The configuration that slurmctld has loaded.
struct Shown {
  Values config;
  std::map<std::string, Values> partitions;  ///< The parameters of each partition, by its name.
};

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

class SlurmConf : public SlurmTest {
 protected:
  core::Result<void> load(const std::string& lines) {
    world->configure(lines);
    auto loaded = ask<void>([&](auto done) { client->reconfigure(std::move(done)); });
    pass(kApart);
    return loaded;
  }

  Shown shown() {
    Shown out;
    std::istringstream config(world->show("config"));
    for (std::string line; std::getline(config, line);) {
      const std::size_t equals = line.find(" = ");
      if (equals != std::string::npos) out.config[trimmed(line.substr(0, equals))] = trimmed(line.substr(equals + 3));
    }
    // The values of these keys depend on the time, or on the exact text of the file.
    for (const char* key : {"BOOT_TIME", "HASH_VAL", "NEXT_JOB_ID"}) out.config.erase(key);
    std::istringstream partitions(world->show("partition"));
    for (std::string line; std::getline(partitions, line);) {
      Values values;
      std::istringstream words(line);
      for (std::string word; words >> word;) {
        if (const std::size_t equals = word.find('='); equals != std::string::npos)
          values[word.substr(0, equals)] = word.substr(equals + 1);
      }
      out.partitions[values["PartitionName"]] = values;
    }
    return out;
  }
};

/// Returns the parameters of each partition, with those of the preceding DEFAULT lines applied as Slurm does.
std::map<std::string, Values> partitions_of(const slurm::conf::Conf& conf) {
  std::map<std::string, Values> out;
  Values defaults;
  for (const slurm::conf::Entry& entry : conf.entries()) {
    if (entry.head().key != "PartitionName") continue;
    Values values = defaults;
    for (const slurm::conf::Setting& setting : entry.settings) values[setting.key] = setting.value;
    (entry.defaults() ? defaults : out[entry.head().value]) = values;
  }
  return out;
}

constexpr const char* kSpellings =
    "# a comment, and an empty line\n"
    "\n"
    "maildomain=a.example\n"
    "MAILPROG = /bin/true   # of any case, with blanks\n"
    "  \tTaskProlog=\"/opt/a b\"\t\r\n"
    "TaskEpilog=/opt/a\\#b\\\\c\\d#e\n"
    "SrunProlog=/opt/x,\\\n"
    "y,\\ \t\n"
    "z\n"
    "SrunEpilog=/opt/e\\\\\n"
    "UnkillableStepProgram=/opt/a\n"
    "UnkillableStepProgram=/opt/b\n"
    "RebootProgram=\"\"\n"
    "HealthCheckProgram=/opt/a\"b\\\"c\n"
    "KillWait=31\n"
    "PartitionName=behind Nodes=ALL MaxTime=00:05:00\n"
    "PartitionName=DEFAULT MaxTime=00:10:00 PriorityJobFactor=3\n"
    "PartitionName=one Nodes=ALL\n"
    "partitionname=default PriorityTier=7\n"
    "PartitionName=two nodes=ALL \\\n"
    "  maxtime=00:20:00 AllowAccounts=a,\\\n"
    "b\n"
    "PartitionName=Default PriorityTier=8 MaxTime=00:30:00\n"
    "PartitionName=three Nodes=ALL # PriorityTier=9\n";

TEST_P(SlurmConf, IsReadAsSlurmReadsIt) {
  const slurm::conf::Parsed parsed = slurm::conf::parse(slurm::conf::Kind::kSlurm, kSpellings);
  for (const slurm::conf::Problem& problem : parsed.problems) ADD_FAILURE() << problem.str();
  const auto loaded = load(kSpellings);
  ASSERT_TRUE(loaded) << error_of(loaded);
  const Shown slurms = shown();
  for (const char* key : {"MailDomain", "MailProg", "TaskProlog", "TaskEpilog", "SrunProlog", "SrunEpilog",
                          "UnkillableStepProgram", "HealthCheckProgram", "RebootProgram"}) {
    EXPECT_EQ(parsed.conf.get(key), slurms.config.at(key)) << key;
  }
  EXPECT_EQ(parsed.conf.get("KillWait").value_or("") + " sec", slurms.config.at("KillWait"));
  const auto partitions = partitions_of(parsed.conf);
  EXPECT_EQ(partitions.size(), 4U);
  for (const auto& [name, values] : partitions) {
    ASSERT_TRUE(slurms.partitions.contains(name)) << name;
    const Values& shown = slurms.partitions.at(name);
    for (const char* key : {"MaxTime", "PriorityTier", "PriorityJobFactor", "AllowAccounts"}) {
      const std::string unsaid = std::string_view(key) == "AllowAccounts" ? "ALL" : "1";
      const auto said = values.find(key);
      EXPECT_EQ(said == values.end() ? unsaid : said->second, shown.at(key)) << name << " " << key;
    }
  }
  // Slurm must read the rendered file in the same way.
  const auto rendered = load(parsed.conf.render());
  ASSERT_TRUE(rendered) << error_of(rendered) << "\n" << parsed.conf.render();
  const Shown again = shown();
  EXPECT_EQ(again.config, slurms.config);
  EXPECT_EQ(again.partitions, slurms.partitions);
  EXPECT_TRUE(load(""));
}

TEST_P(SlurmConf, WhatSlurmRefusesIsRefused) {
  for (const char* bad :
       {"MailDomain=", "MailDomain", "MailDomain=a b", "MailDomain=\\\n#\n", "MailDomain=a\\\n b", "MailDomain=\"a b\" c", "=a",
        "MessageTimeout=abc", "TrackWCKey=maybe", "KillWait=1 x=2 PartitionName=p", "PartitionName=p Nodes=ALL State=BOGUS",
        "PartitionName=p Nodes=ALL MaxTime=soon", "PartitionName=p Nodes=ALL\nPartitionName=p Nodes=ALL"}) {
    SCOPED_TRACE(bad);
    const auto& problems = slurm::conf::parse(slurm::conf::Kind::kSlurm, bad).problems;
    EXPECT_FALSE(problems.empty());
    EXPECT_FALSE(load(std::string(bad) + "\n"));
  }
  EXPECT_TRUE(load(""));
}

// Our parser refuses these, although Slurm accepts them: nobody writes them on purpose, or their meaning is not obvious.
TEST_P(SlurmConf, OfWhatSlurmTakesLittleIsRefused) {
  for (const char* odd : {"MailDomain=\"a", "MailDomain=\"a\"b", "MailDomain+=a", "MinJobAge=0x10"}) {
    SCOPED_TRACE(odd);
    const auto problems = slurm::conf::parse(slurm::conf::Kind::kSlurm, odd).problems;
    EXPECT_TRUE(std::ranges::any_of(problems, &slurm::conf::Problem::fatal));
    EXPECT_TRUE(load(std::string(odd) + "\n"));
  }
  EXPECT_TRUE(load(""));
}

INSTANTIATE_TEST_SUITE_P(Slurm, SlurmConf, ::testing::Values("real"), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace conformance
