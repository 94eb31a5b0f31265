#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "kube/client/credentials.hpp"
#include "operator/accounting/plan.hpp"

namespace op::accounting {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::Optional;
using testing::StartsWith;
using testing::UnorderedElementsAre;

/// Runs the script of the init container with a stand-in for slurmdbd.
class WriteConf : public ::testing::Test {
 protected:
  WriteConf() : home_(fs::path(::testing::TempDir()) / ("write-conf-" + std::to_string(getpid()))) {
    fs::remove_all(home_);
    for (const char* folder : {"bin", "from", "to"}) fs::create_directories(home_ / folder);
    write("from/slurmdbd.conf", "StorageHost=db\n");
    write("from/slurm.key", "key");
    slurmdbd("echo 'Slurm Database already at the highest version. No conversion needed.'");
  }
  ~WriteConf() override { fs::remove_all(home_); }
  WriteConf(const WriteConf&) = delete;
  WriteConf& operator=(const WriteConf&) = delete;

  void write(const std::string& file, const std::string& text) { std::ofstream(home_ / file, std::ios::binary) << text; }
  [[nodiscard]] std::string read(const std::string& file) const {
    std::ifstream in(home_ / file, std::ios::binary);
    std::stringstream out;
    out << in.rdbuf();
    return out.str();
  }
  void slurmdbd(const std::string& lines) {
    write("bin/slurmdbd", "#!/bin/sh\n[ \"$1\" != -V ] || exec echo slurm-wlm 26.05.5\n" + lines + "\n");
    fs::permissions(home_ / "bin/slurmdbd", fs::perms::owner_all);
  }

  /// Runs the script. Returns the exit status and the output of the script.
  std::pair<int, std::string> run() {
    fs::remove(home_ / "words");
    kube::System::Command command;
    command.argv = {"/usr/bin/env",
                    "PATH=" + (home_ / "bin").string() + ":/usr/bin:/bin",
                    "sh",
                    "-c",
                    "sh -c \"$@\" 2>&1; echo \"ended with $?\"",
                    "sh",
                    write_conf_script(),
                    "sh",
                    (home_ / "from").string(),
                    (home_ / "to").string(),
                    (home_ / "words").string()};
    const core::Result<std::string> said = kube::real_system().run(command);
    EXPECT_TRUE(said) << said.error().message;
    const std::size_t at = said ? said->rfind("ended with ") : std::string::npos;
    if (at == std::string::npos) return {-1, ""};
    return {std::stoi(said->substr(at + std::string_view("ended with ").size())), said->substr(0, at)};
  }

  /// Returns the password as slurmdbd parses it (parse_config.c). nullopt: the file has no line with a password.
  [[nodiscard]] std::optional<std::string> password() const {
    static const std::regex kLine(
        "^[[:space:]]*([[:alnum:]_.]+)[[:space:]]*([-*+/]?)=[[:space:]]*((\"([^\"]*)\")|([^[:space:]]+))([[:space:]]|$)");
    std::stringstream lines(read("to/slurmdbd.conf"));
    std::optional<std::string> out;
    for (std::string line; std::getline(lines, line);) {
      std::string stripped;
      for (std::size_t i = 0; i < line.size() && line[i] != '#'; ++i) {
        if (line[i] == '\\') ++i;
        if (i < line.size()) stripped += line[i];
      }
      std::smatch found;
      if (!std::regex_search(stripped, found, kLine) || found[1] != "StoragePass") continue;
      out = found[5].matched ? found[5].str() : found[6].str();
    }
    return out;
  }

  const fs::path home_;
};

TEST_F(WriteConf, SlurmdbdReadsThePasswordThatTheSecretHolds) {
  for (const std::string text :
       {"secret", "a=b",      "a#b",  "#",    "a\\b",  "\\",        "a\\#b", "a b", " a ",  "a b\\",        "a\"b",
        "\"",     "\"a\"b\"", "\"ab", "ab\"", "'a b'", "$HOME`id`", "%s%d",  "-n",  "a\tb", "\xc3\xa4\xff", "a # b"}) {
    write("from/password", text);
    EXPECT_EQ(run().first, 0) << text;
    EXPECT_THAT(password(), Optional(text));
    write("from/password", text + "\n");
    EXPECT_EQ(run().first, 0) << text;
    EXPECT_THAT(password(), Optional(text)) << "a line end is the file's";
  }
}

TEST_F(WriteConf, SaysWhatSlurmdbdConfCannotHold) {
  const auto words = [&](const std::string& text) {
    write("from/password", text);
    EXPECT_EQ(run().first, 1) << text;
    return read("words");
  };
  EXPECT_THAT(words("a\nb"), StartsWith("password: it has more than one line"));
  EXPECT_THAT(words("a\n\n"), StartsWith("password: it has more than one line"));
  EXPECT_THAT(words("\n"), StartsWith("password: it is empty"));
  EXPECT_THAT(words("a \"b"), StartsWith("password: it has blanks and double quotes"));
  EXPECT_THAT(words("\"ab\""), StartsWith("password: it begins and ends with a double quote"));
}

TEST_F(WriteConf, ItsFilesAreItsUsersAlone) {
  write("from/password", "secret");
  EXPECT_EQ(run().first, 0);
  EXPECT_EQ(read("to/slurmdbd.conf"), "StorageHost=db\nStoragePass=secret\n");
  EXPECT_EQ(read("to/slurm.key"), "key");
  EXPECT_FALSE(fs::exists(home_ / "to/password"));
  for (const char* file : {"to/slurmdbd.conf", "to/slurm.key"})
    EXPECT_EQ(fs::status(home_ / file).permissions(), fs::perms::owner_read | fs::perms::owner_write) << file;
  EXPECT_EQ(run().first, 0) << "again, in the same pod";
  EXPECT_EQ(read("to/slurmdbd.conf"), "StorageHost=db\nStoragePass=secret\n");
}

TEST_F(WriteConf, SaysOnceWhatKeepsSlurmdbdFromItsDatabase) {
  write("from/password", "secret");
  // Each start of the stand-in adds a line to the file `tries`.
  const std::string counts = "echo x >>" + (home_ / "tries").string() + "\n";
  slurmdbd(counts + "echo \"slurmdbd: error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'h'\" >&2; exit 1");
  EXPECT_EQ(run().first, 1);
  EXPECT_EQ(read("words"), "database: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'h'");
  EXPECT_EQ(read("tries"), "x\nx\n") << "a database that is just starting is no fault";
  // The script has reported this cause, so the next run of the script tries until the database accepts slurmdbd.
  slurmdbd(counts + "[ $(wc -l <" + (home_ / "tries").string() +
           ") -gt 4 ] && echo 'Slurm Database already at the highest version' && exit 0\n"
           "echo \"slurmdbd: error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'h'\" >&2; exit 1");
  EXPECT_EQ(run().first, 0);
}

TEST_F(WriteConf, GoesOnTryingWhereCausesAlternate) {
  write("from/password", "secret");
  slurmdbd("echo x >>" + (home_ / "tries").string() + "\ntries=$(wc -l <" + (home_ / "tries").string() +
           ")\n"
           "[ $tries -lt 8 ] || exec echo 'Slurm Database already at the highest version'\n"
           "[ $((tries % 2)) = 0 ] || { echo 'slurmdbd: error: mysql_real_connect failed: 1045 denied' >&2; exit 1; }\n"
           "echo 'slurmdbd: error: mysql_real_connect failed: 2002 no route' >&2; exit 1");
  std::vector<std::string> told;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(run().first, 1);
    told.push_back(read("words"));
  }
  EXPECT_THAT(told, UnorderedElementsAre("database: mysql_real_connect failed: 1045 denied",
                                         "database: mysql_real_connect failed: 2002 no route"));
  EXPECT_EQ(run().first, 0) << "each start of the container that fails makes the kubelet wait longer";
}

TEST_F(WriteConf, TellsWhichSettingsOfTheServerSlurmdbdComplainsOf) {
  write("from/password", "secret");
  write("from/slurmdbd.conf", "StorageHost=db\nStorageLoc=records\nStorageUser=slurm\n");
  const auto says = [&](const std::string& lines) {
    slurmdbd("[ \"$1\" != -u ] || exec echo 'Slurm Database already at the highest version. No conversion needed.'\ncat " +
             (home_ / "to/slurmdbd.conf").string() + " >>" + (home_ / "started").string() + "\n" + lines + "\nexit 1");
    EXPECT_EQ(run().first, 0);
    return read("words");
  };
  const std::string small =
      "echo 'slurmdbd: error: Database settings not recommended values: innodb_buffer_pool_size max_allowed_packet' >&2";
  const std::string isolation =
      "echo '[2026] error: innodb_snapshot_isolation is enabled, which is not supported by Slurm' >&2";
  EXPECT_EQ(says(small), "release: 26.05\nsettings: innodb_buffer_pool_size max_allowed_packet\n");
  EXPECT_EQ(says(isolation + "\n" + small),
            "release: 26.05\nsettings: innodb_snapshot_isolation innodb_buffer_pool_size max_allowed_packet\n");
  EXPECT_EQ(says(isolation), "release: 26.05\nsettings: innodb_snapshot_isolation\n");
  EXPECT_EQ(says("echo 'slurmdbd: fatal: no tables' >&2"), "release: 26.05\n");
  EXPECT_THAT(read("started"), AllOf(HasSubstr("StorageLoc=information_schema\n"), Not(HasSubstr("StorageLoc=records"))))
      << "nothing is done to the database";
  EXPECT_EQ(read("to/slurmdbd.conf"), "StorageHost=db\nStorageLoc=records\nStorageUser=slurm\nStoragePass=secret\n");
  slurmdbd("echo 'Slurm Database already at the highest version. No conversion needed.'");
  EXPECT_EQ(run().first, 0);
  EXPECT_EQ(read("words"), "release: 26.05\n");
}

TEST_F(WriteConf, TellsWhatTheDatabaseRefuses) {
  write("from/password", "secret");
  const auto words = [&](const std::string& lines) {
    fs::remove(home_ / "to/.told");
    slurmdbd(lines);
    EXPECT_EQ(run().first, 1) << lines;
    return read("words");
  };
  EXPECT_EQ(words("echo \"slurmdbd: fatal: mysql_query failed: 1044 Access denied for user 'a'@'b' to database 'c'\ncreate "
                  "database c\" >&2; exit 1"),
            "database: mysql_query failed: 1044 Access denied for user 'a'@'b' to database 'c'");
  EXPECT_EQ(words("echo \"Slurm Database is somehow higher than expected '16' but I only know as high as '15'. Conversion "
                  "needed.\"; exit 1"),
            "database: later release");
  EXPECT_EQ(words("echo 'slurmdbd: fatal: Parsing error at unrecognized key: Foo' >&2; exit 1"),
            "slurmdbd: fatal: Parsing error at unrecognized key: Foo");
  fs::remove(home_ / "to/.told");
  EXPECT_THAT(run().second, Not(HasSubstr("database")));
}

TEST_F(WriteConf, GoesOnWhereSlurmdbdSaysNothingOfItsDatabase) {
  write("from/password", "secret");
  slurmdbd("echo 'Slurm Database current version is 14 needs to be at 15. Conversion needed.'; exit 1");
  EXPECT_EQ(run().first, 0) << "it converts its tables when it starts";
  slurmdbd(
      "echo \"slurmdbd: error: mysql_query failed: 1146 Table 'convert' doesn't exist\" >&2; echo 'Slurm Database ...'; exit "
      "1");
  EXPECT_EQ(run().first, 0) << "a new database";
  slurmdbd(
      "echo \"Slurm Database is somehow higher than expected '4294967294' but I only know as high as '16'. Conversion "
      "needed.\"; "
      "exit 1");
  EXPECT_EQ(run().first, 0) << "a new database, with 24.11";
  slurmdbd("echo 'usage: slurmdbd'; exit 2");
  EXPECT_EQ(run().first, 0) << "a release that does not know -u";
}

}  // namespace
}  // namespace op::accounting
