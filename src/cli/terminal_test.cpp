#include "cli/terminal.hpp"

#include <gtest/gtest.h>

#include <map>

namespace cli {
namespace {

using namespace std::chrono_literals;

TEST(Table, AlignsColumnsAndLeavesOutEmptyOnes) {
  Table table({"NAME", "EMPTY", "STATE"});
  table.add({"a", "", "ok"});
  table.add({"longer-name", "", {"bad", Tone::kBad}});
  EXPECT_EQ(table.text(Style(false)), "NAME         STATE\na            ok\nlonger-name  bad\n");
  EXPECT_EQ(table.text(Style(true)), "NAME         STATE\na            ok\nlonger-name  \033[31mbad\033[0m\n");
}

TEST(Table, CountsCharactersAndKeepsControlCharactersFromTheTerminal) {
  Table table({"WHO", "WHAT"});
  table.add({"\xC3\xA4\xC3\xB6", "x\033[2Jy\nz"});
  EXPECT_EQ(table.text(Style(false)), "WHO  WHAT\n\xC3\xA4\xC3\xB6   x [2Jy z\n");
}

TEST(Terminal, ColoursAreForTerminalsAndNoColorTurnsThemOff) {
  std::map<std::string, std::string> variables{{"TERM", "xterm"}};
  const auto env = [&](const char* name) { return variables[name]; };
  EXPECT_TRUE(wants_colours(true, env));
  EXPECT_FALSE(wants_colours(false, env));
  variables["NO_COLOR"] = "1";
  EXPECT_FALSE(wants_colours(true, env));
  variables = {{"TERM", "dumb"}};
  EXPECT_FALSE(wants_colours(true, env));
}

TEST(Terminal, DurationsAreShort) {
  EXPECT_EQ(short_duration(45s), "45s");
  EXPECT_EQ(short_duration(12min + 5s), "12m");
  EXPECT_EQ(short_duration(3h), "3h");
  EXPECT_EQ(short_duration(3h + 12min), "3h12m");
  EXPECT_EQ(short_duration(52h), "2d4h");
  EXPECT_EQ(short_duration(-1s), "0s");
}

TEST(Terminal, DocumentsAreJsonOrYaml) {
  const core::Json document{{"a", {{"b", 1}}}};
  EXPECT_EQ(render(document, Format::kJson), "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n");
  EXPECT_EQ(render(document, Format::kYaml), "a:\n  b: 1\n");
}

TEST(Terminal, TimesAndMemoryAsSlurmWritesThem) {
  EXPECT_EQ(slurm_minutes(0), "00:00:00");
  EXPECT_EQ(slurm_minutes(90), "01:30:00");
  EXPECT_EQ(slurm_minutes(36 * 60), "1-12:00:00");
  EXPECT_EQ(tres_count("cpu", 1024), "1024");
  EXPECT_EQ(tres_count("mem", 0), "0M");
  EXPECT_EQ(tres_count("mem", 1500), "1500M");
  EXPECT_EQ(tres_count("mem", 2048), "2G");
  EXPECT_EQ(tres_count("mem", 1024 * 1024), "1T");
}

}  // namespace
}  // namespace cli
