// Tests limits with a real slurmctld and slurmdbd: `kubectl slurm why` must find the limit that holds a job, and must count as
// Slurm does. Also tests what `kubectl slurm tree` reads.
//
// Needs an instance as qos_test.cpp does. tests/conformance/accounting_test.sh starts one for each release.
#include "cli/limits.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "cli/why.hpp"
#include "net/asio_loop.hpp"
#include "net/beast_transport.hpp"
#include "slurm/rest/client.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;
namespace rows = slurm::accounting;
template <class Row>
using Rows = cli::ClusterFacts::Rows<Row>;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class LimitsOfSlurm : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string url = variable("SLURM_REST_URL");
    dir = variable("SLURM_LOCAL_DIR");
    release = variable("SLURM_LOCAL_RELEASE");
    if (url.empty()) GTEST_SKIP() << "SLURM_REST_URL is not set: see tests/conformance/accounting_test.sh";
    net::Endpoint endpoint;
    const std::size_t colon = url.rfind(':');
    endpoint.host = url.substr(7, colon - 7);
    endpoint.port = static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1)));
    std::ifstream file(dir + "/etc/jwt.key", std::ios::binary);
    std::stringstream key;
    key << file.rdbuf();
    transport = std::make_unique<net::BeastTransport>(loop, endpoint);
    tokens = std::make_unique<slurm::Hs256Tokens>(loop.clock(), key.str(), "slurm");
    client = std::make_unique<slurm::Client>(loop, *transport, *tokens, log);
    clean();
    sacctmgr("add account limits-above");
    sacctmgr("add account limits parent=limits-above");
    sacctmgr("add user root account=limits");
    sacctmgr("add qos limited");
    sacctmgr("modify user root where account=limits set qos+=limited");
    // slurmdbd sends the association to slurmctld after sacctmgr has ended.
    const auto known = [&] {
      return local("scontrol --oneliner show assoc_mgr flags=assoc users=root accounts=limits")
                 .find("Account=limits UserName=root") != std::string::npos;
    };
    ASSERT_TRUE(until(known, 300s)) << local("scontrol show assoc_mgr flags=assoc");
  }
  void TearDown() override {
    if (client == nullptr) return;
    clean();
    client.reset();
  }
  void clean() {
    local("scancel --user=root");
    ASSERT_TRUE(until([&] { return local("squeue --noheader").empty(); }));
    sacctmgr("delete user root account=limits");
    sacctmgr("delete account limits,limits-above");
    sacctmgr("delete qos limited");
  }

  bool until(const std::function<bool()>& test, core::Duration most = 60s) {
    for (const auto end = loop.clock().mono() + most; loop.clock().mono() < end;) {
      if (test()) return true;
      loop.after(100ms, [&] { loop.stop(); });
      loop.run();
    }
    return test();
  }
  std::string local(const std::string& words) const {
    std::string out;
    std::FILE* pipe = popen(("dev/slurm-local.sh " + release + " exec " + dir + " " + words + " 2>&1").c_str(), "r");
    std::array<char, 4096> buffer{};
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) out += buffer.data();
    pclose(pipe);
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
  }
  std::string sacctmgr(const std::string& words) const { return local("sacctmgr --immediate " + words); }
  /// Submits a job with these options of sbatch. Returns the number of the job.
  std::int64_t submit(const std::string& options) const {
    const std::string out =
        local("sbatch --parsable --account=limits --qos=limited --output=/dev/null " + options + " --wrap='sleep 3000'");
    EXPECT_TRUE(out.find_first_not_of("0123456789") == std::string::npos) << out;
    return std::atoll(out.c_str());
  }

  template <class Row>
  Rows<Row> read(const std::function<void(slurm::AccountingClient::Done<Row>)>& start) {
    auto out = std::make_shared<std::optional<core::Result<Rows<Row>>>>();
    start([this, out](core::Result<Rows<Row>> result) {
      *out = std::move(result);
      loop.stop();
    });
    while (!*out) loop.run();
    EXPECT_TRUE(**out) << (**out).error().message;
    return **out ? ***out : Rows<Row>{};
  }
  Rows<rows::QueuedJob> queue() {
    return read<rows::QueuedJob>([&](auto done) { client->queue(std::move(done)); });
  }
  std::shared_ptr<const rows::QueuedJob> job(std::int64_t id) { return cli::find_job({id, {}}, queue()); }
  cli::ClusterFacts facts() {
    auto& accounting = client->accounting();
    cli::ClusterFacts out;
    out.jobs = queue();
    out.partitions = read<rows::PartitionRules>([&](auto done) { client->partition_rules(std::move(done)); });
    out.qos = read<rows::Qos>([&](auto done) { accounting.qos(std::move(done)); });
    out.associations = read<rows::Association>([&](auto done) { accounting.own_associations(std::move(done)); });
    out.shares = read<rows::Share>([&](auto done) { client->shares(std::move(done)); });
    out.now = loop.clock().wall();
    return out;
  }

  std::string dir, release;
  net::AsioLoop loop;
  core::NullLogger log;
  std::unique_ptr<net::BeastTransport> transport;
  std::unique_ptr<slurm::Hs256Tokens> tokens;
  std::unique_ptr<slurm::Client> client;
};

/// A limit, a job that waits for it while another job runs (2 CPUs, 100 MB, 30 minutes), and what the test must find.
struct Held {
  const char* set;     ///< The arguments of `sacctmgr modify` that set the limit.
  const char* job;     ///< Options of sbatch.
  const char* reason;  ///< Slurm's reason why the job waits.
  const char* limit;   ///< The limit to find, with its TRES.
  const char* holder;  ///< The account, user or QOS that has this limit.
  std::int64_t over;
};
constexpr const char* kSmall = "--ntasks=1 --mem=100 --time=30";
constexpr const char* kLarge = "--ntasks=2 --mem=200 --time=30";
const std::vector<Held>& cases() {
  static const std::vector<Held> kCases{
      {"qos limited set MaxJobsPerUser=1", kSmall, "QOSMaxJobsPerUserLimit", "MaxJobsPerUser", "QOS limited", 1},
      {"qos limited set MaxJobsPerAccount=1", kSmall, "MaxJobsPerAccount", "MaxJobsPerAccount", "QOS limited", 1},
      {"qos limited set GrpJobs=1", kSmall, "QOSGrpJobsLimit", "GrpJobs", "QOS limited", 1},
      {"qos limited set GrpTRES=cpu=3", kLarge, "QOSGrpCpuLimit", "GrpTRES/cpu", "QOS limited", 1},
      {"qos limited set GrpTRES=mem=150", kSmall, "QOSGrpMemLimit", "GrpTRES/mem", "QOS limited", 50},
      {"qos limited set MaxTRESPerUser=cpu=2", kSmall, "QOSMaxCpuPerUserLimit", "MaxTRESPerUser/cpu", "QOS limited", 1},
      {"qos limited set MaxTRESPerAccount=cpu=2", kSmall, "MaxCpuPerAccount", "MaxTRESPerAccount/cpu", "QOS limited", 1},
      {"qos limited set MaxTRESPerJob=cpu=1", kLarge, "QOSMaxCpuPerJobLimit", "MaxTRESPerJob/cpu", "QOS limited", 1},
      {"qos limited set MinTRESPerJob=cpu=2", kSmall, "QOSMinCpuNotSatisfied", "MinTRESPerJob/cpu", "QOS limited", 1},
      {"qos limited set MaxWallDurationPerJob=10", kSmall, "QOSMaxWallDurationPerJobLimit", "MaxWallDurationPerJob",
       "QOS limited", 20},
      {"qos limited set MaxTRESMinsPerJob=cpu=50", kLarge, "QOSMaxCpuMinutesPerJobLimit", "MaxTRESMinsPerJob/cpu",
       "QOS limited", 10},
      {"account limits-above set GrpTRES=cpu=2", kSmall, "AssocGrpCpuLimit", "GrpTRES/cpu", "account limits-above", 1},
      {"account limits set GrpJobs=1", kSmall, "AssocGrpJobsLimit", "GrpJobs", "account limits", 1},
      {"account limits set GrpTRES=mem=150", kSmall, "AssocGrpMemLimit", "GrpTRES/mem", "account limits", 50},
      // 24.11: if such a limit of an account changes, only the next level below the account inherits it until slurmctld
      // restarts.
      {"account limits set MaxJobs=1", kSmall, "AssocMaxJobsLimit", "MaxJobs", "account limits", 1},
      {"user root where account=limits set MaxJobs=1", kSmall, "AssocMaxJobsLimit", "MaxJobs", "user root in account limits",
       1},
      {"user root where account=limits set MaxTRESPerJob=cpu=1", kLarge, "AssocMaxCpuPerJobLimit", "MaxTRESPerJob/cpu",
       "user root in account limits", 1},
      {"account limits set MaxWallDurationPerJob=10", kSmall, "AssocMaxWallDurationPerJobLimit", "MaxWallDurationPerJob",
       "account limits", 20},
  };
  return kCases;
}

/// Returns the same arguments with the value -1, which removes the limit.
std::string unset(std::string set) {
  set.resize(set.rfind('=') + 1);
  return set + "-1";
}

TEST_F(LimitsOfSlurm, TheOneThatHoldsAJobIsFound) {
  const std::int64_t runs = submit("--ntasks=2 --mem=100 --time=30");
  ASSERT_TRUE(until([&] { return job(runs) != nullptr && job(runs)->running(); }));
  for (const Held& each : cases()) {
    SCOPED_TRACE(each.set);
    sacctmgr(std::string("modify ") + each.set);
    const std::int64_t waits = submit(each.job);
    EXPECT_TRUE(until([&] { return job(waits) != nullptr && job(waits)->reason == each.reason; }, 20s)) << job(waits)->reason;
    const cli::ClusterFacts known = facts();
    const auto held = cli::find_job({waits, {}}, known.jobs);
    ASSERT_NE(held, nullptr);
    const auto limits = cli::limits_of(*held, known);
    EXPECT_EQ(limits.size(), 1U);
    for (const cli::JobLimit& limit : limits) {
      EXPECT_EQ(std::string(limit.kind->name) + (limit.tres.empty() ? "" : "/" + limit.tres), each.limit);
      EXPECT_EQ(limit.holder_kind + " " + limit.holder, each.holder);
      EXPECT_EQ(limit.over, each.over);
    }
    const core::Json told = cli::why_document({"ns", "c", held, known});
    ASSERT_EQ(told["limits"].size(), 1U);
    EXPECT_EQ(told["limits"][0]["named"], true);
    sacctmgr(std::string("modify ") + unset(each.set));
    local("scancel " + std::to_string(waits));
  }
}

TEST_F(LimitsOfSlurm, RunMinutesAreCountedAsSlurmDoes) {
  const std::int64_t runs = submit("--ntasks=2 --mem=100 --time=30");
  ASSERT_TRUE(until([&] { return job(runs) != nullptr && job(runs)->running(); }));
  sacctmgr("modify qos limited set GrpTRESRunMins=cpu=70");
  const std::int64_t waits = submit(kSmall);
  ASSERT_TRUE(until([&] { return job(waits) != nullptr && job(waits)->reason == "QOSGrpCPURunMinutesLimit"; }))
      << job(waits)->reason;
  const cli::ClusterFacts known = facts();
  const auto limits = cli::limits_of(*cli::find_job({waits, {}}, known.jobs), known);
  ASSERT_EQ(limits.size(), 1U);
  EXPECT_EQ(limits[0].asks, 30);
  EXPECT_TRUE(limits[0].in_use && *limits[0].in_use > 50 && *limits[0].in_use <= 60);
  EXPECT_TRUE(limits[0].holds());
}

TEST_F(LimitsOfSlurm, OnlyOwnLimitsAreRead) {
  sacctmgr("modify account limits-above set MaxJobs=7");
  bool inherits = false, own = false, has_parent = false;
  for (const auto& row : read<rows::Association>([&](auto done) { client->accounting().associations(std::move(done)); }))
    inherits = inherits || (row->account == "limits" && row->user == "root" && row->limits.counts.contains("MaxJobs") &&
                            row->limits.counts.at("MaxJobs") == slurm::Number(7));
  for (const auto& row : read<rows::Association>([&](auto done) { client->accounting().own_associations(std::move(done)); })) {
    const auto jobs = row->limits.counts.find("MaxJobs");
    const bool set = jobs != row->limits.counts.end() && std::holds_alternative<std::int64_t>(jobs->second);
    if (row->account.starts_with("limits")) EXPECT_EQ(set, row->account == "limits-above") << row->key();
    own = own || set;
    has_parent = has_parent || (row->account == "limits" && row->parent_account == "limits-above");
  }
  EXPECT_TRUE(inherits && own && has_parent);
}

TEST_F(LimitsOfSlurm, SharesAndEndedJobsAreRead) {
  const std::int64_t runs = submit(kSmall);
  ASSERT_TRUE(until([&] { return job(runs) != nullptr && job(runs)->running(); }));
  EXPECT_TRUE(until([&] {
    const auto shares = read<rows::Share>([&](auto done) { client->shares(std::move(done)); });
    return std::ranges::any_of(shares, [](const auto& share) {
      return share->is_user && share->name == "root" && share->parent == "limits" && share->factor.has_value();
    });
  }));
  local("scancel " + std::to_string(runs));
  EXPECT_TRUE(until([&] {
    const auto jobs = read<rows::QueuedJob>([&](auto done) { client->accounting().job(runs, std::move(done)); });
    return jobs.size() == 1 && jobs[0]->state == "CANCELLED" && jobs[0]->user == "root" && jobs[0]->end.has_value();
  }));
}

}  // namespace
}  // namespace conformance
