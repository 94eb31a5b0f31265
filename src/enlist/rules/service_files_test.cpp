#include "enlist/rules/service_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

namespace enlist {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Requirement 5
// Requirement 36
TEST(DefaultsFile, QuotesTwiceAsSystemdReadsTwice) {
  EXPECT_EQ(
      defaults_file({"-Z", "-N", "gpu-1", "--conf", "CPUs=8 Reason=\"slurm-enlist: joining\"", "--conf-server", "a:1,[::1]:1"}),
      "# Written by slurm-enlist. Changes are overwritten.\n"
      "SLURMD_OPTIONS=\"-Z -N gpu-1 --conf 'CPUs=8 Reason=\\\"slurm-enlist: joining\\\"' --conf-server a:1,[::1]:1\"\n");
  EXPECT_EQ(defaults_file({"", "it's", "a\\b", "$HOME `id`"}),
            std::string(kFileMark) + "SLURMD_OPTIONS=\"'' 'it\\\\'s' 'a\\\\\\\\b' '\\$HOME \\`id\\`'\"\n");
  EXPECT_EQ(defaults_file({}), std::string(kFileMark) + "SLURMD_OPTIONS=\"\"\n");
}

/// Parses the file by systemd's rules, without our own code: systemd.exec(5) EnvironmentFile=, systemd.service(5) COMMAND
/// LINES.
std::vector<std::string> as_systemd(const std::string& file) {
  std::string value;
  const std::size_t begin = file.find("SLURMD_OPTIONS=\"") + 16;
  for (std::size_t i = begin; i < file.size() && file[i] != '"'; ++i) {
    if (file[i] == '\\' && std::string_view("\"\\`$").find(file[i + 1]) != std::string_view::npos) ++i;
    value += file[i];
  }
  std::vector<std::string> out;
  std::optional<std::string> word;
  char quote = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    if (c == '\\' && i + 1 < value.size()) {
      word = word.value_or("") + value[++i];
    } else if (quote != 0 ? c == quote : c == '\'' || c == '"') {
      quote = quote != 0 ? static_cast<char>(0) : c;
      word = word.value_or("");
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (word) out.push_back(*word);
      word.reset();
    } else {
      word = word.value_or("") + c;
    }
  }
  if (word) out.push_back(*word);
  return out;
}

RC_GTEST_PROP(DefaultsFile, BothReadTheArgumentsThatWereWritten, ()) {
  const auto arguments = *rc::gen::container<std::vector<std::string>>(rc::gen::container<std::string>(
      rc::gen::element('a', ' ', '"', '\'', '\\', '$', '`', '%', '=', '#', ';', '\t', '\n', '{', '}', '-', ',')));
  const std::string file = defaults_file(arguments);
  RC_ASSERT(as_systemd(file) == arguments);
  RC_ASSERT((arguments_of(file) == arguments));
}

TEST(ArgumentsOf, TakesTheLastAndLeavesOtherVariablesAlone) {
  const std::string ours = defaults_file({"-Z", "a b"});
  EXPECT_THAT(*arguments_of("SLURMD_OPTIONS=\"-v\"\n" + ours + "LANG=C\n"), ElementsAre("-Z", "a b"));
  EXPECT_THAT(*arguments_of("SLURMD_OPTIONS=\"-v\"\n"), ElementsAre("-v"));
}

TEST(ArgumentsOf, RefusesTheQuotingOfOthers) {
  EXPECT_THAT(arguments_of("").error().message, HasSubstr("no SLURMD_OPTIONS"));
  EXPECT_THAT(arguments_of("# SLURMD_OPTIONS=\"-Z\"\n").error().message, HasSubstr("no SLURMD_OPTIONS"));
  for (const char* bad :
       {"SLURMD_OPTIONS=-Z\n", "SLURMD_OPTIONS='-Z'\n", "SLURMD_OPTIONS=\"-Z  -N\"\n", "SLURMD_OPTIONS=\"-Z",
        "SLURMD_OPTIONS=\"-Z\"", "SLURMD_OPTIONS=\"'-Z'\"\n", "SLURMD_OPTIONS=\"--conf \\\"a b\\\"\"\n",
        "SLURMD_OPTIONS=\"'a\"\n", "SLURMD_OPTIONS=\"-Z\"x\n", "SLURMD_OPTIONS=\"'a''b'\"\n", "SLURMD_OPTIONS="}) {
    const auto read = arguments_of(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, core::ErrorCode::kInvalid);
    EXPECT_THAT(read.error().message, HasSubstr("not written as slurm-enlist writes it"));
  }
}

// Requirement 3
TEST(UnitFile, StartsSlurmdItselfAndWaitsForIt) {
  const std::string unit = unit_file("/usr/sbin/slurmd", "/etc/default/slurmd");
  EXPECT_THAT(unit, StartsWith(kFileMark));
  for (const char* line :
       {"Type=notify", "EnvironmentFile=/etc/default/slurmd", "ExecStart=/usr/sbin/slurmd --systemd $SLURMD_OPTIONS",
        "ExecReload=/bin/kill -HUP $MAINPID", "KillMode=process", "Delegate=yes", "TimeoutStartSec=infinity",
        "Restart=on-failure", "WantedBy=multi-user.target"})
    EXPECT_THAT(unit, HasSubstr("\n" + std::string(line) + "\n"));
  for (const char* word : {"PIDFile", "forking", "ExecStartPre", "/bin/sh"})
    EXPECT_EQ(unit.find(word), std::string::npos) << word;
}

TEST(UnitFile, ThePathIsNoSpecifierAndOneWord) {
  EXPECT_THAT(unit_file("/opt/100%/slurmd", "/etc/default/slurmd"), HasSubstr("ExecStart=/opt/100%%/slurmd --systemd"));
  EXPECT_THAT(unit_file("/opt/my slurm/slurmd", "/etc/default/slurmd"),
              HasSubstr("ExecStart=\"/opt/my slurm/slurmd\" --systemd"));
}

}  // namespace
}  // namespace enlist
