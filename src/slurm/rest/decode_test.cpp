#include "slurm/rest/decode.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace slurm {
namespace {

/// The names of replies of real slurmrestds in src/slurm/testdata: the release and the data_parser.
const std::vector<std::string> kRecorded{"24.11-v0.0.40", "24.11-v0.0.41", "24.11-v0.0.42", "26.05-v0.0.42",
                                         "26.05-v0.0.43", "26.05-v0.0.44", "26.05-v0.0.45"};

std::string recorded(const std::string& which, const std::string& what) {
  std::ifstream file("src/slurm/testdata/" + which + "-" + what + ".json");
  if (!file) throw std::runtime_error("run in the root of the repository: there is no recorded " + which + " " + what);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

const Spelling& spelling(const std::string& which) {
  for (const Spelling& s : kSpellings) {
    if (which.ends_with(s.parser)) return s;
  }
  throw std::logic_error(which);
}

template <class T>
const T& row(const Decoded<T>& decoded, auto is) {
  for (const auto& r : decoded.rows) {
    if (is(*r)) return *r;
  }
  throw std::logic_error("no such row");
}

TEST(Decode, ReadsNodesOfEveryRecordedServerAlike) {
  for (const std::string& which : kRecorded) {
    SCOPED_TRACE(which);
    const auto nodes = decode_nodes(recorded(which, "nodes"));
    ASSERT_TRUE(nodes) << nodes.error().message;
    EXPECT_TRUE(nodes->present);
    EXPECT_TRUE(nodes->envelope.errors.empty());
    EXPECT_EQ(nodes->envelope.release, which.starts_with("24.11") ? "24.11.5" : "26.05.5");
    EXPECT_GT(nodes->last_update, 1'795'000'000);
    ASSERT_EQ(nodes->rows.size(), 3U);
    const Node& node = row(*nodes, [](const Node& n) { return n.name == "n1"; });
    EXPECT_EQ(node.state.base, "MIXED");
    EXPECT_EQ(node.state.flags, (std::set<std::string, std::less<>>{"DRAIN", "DYNAMIC_NORM"}));
    EXPECT_EQ(node.reason, "slurm-operator: scale in");
    EXPECT_EQ(node.comment, "wörker \"1\"");
    EXPECT_EQ(node.features, std::vector<std::string>{"cpu"});
    EXPECT_EQ(node.active_features, std::vector<std::string>{"cpu"});
    EXPECT_EQ(node.partitions, std::vector<std::string>{"all"});
    EXPECT_EQ(node.address, "127.0.0.1");
    EXPECT_EQ(node.hostname, "n1");
    EXPECT_EQ(node.cpus, 4);
    EXPECT_EQ(node.real_memory_mib, 1000);
    EXPECT_EQ(node.version, nodes->envelope.release);
    EXPECT_TRUE(node.slurmd_start_time);
    EXPECT_TRUE(node.boot_time);
  }
}

TEST(Decode, ReadsTheGresOfANode) {
  const auto nodes = decode_nodes(R"-({"nodes":[{"name":"n1","state":["IDLE"],"gres":"gpu:h100:8(S:0-1)"},
                                               {"name":"n2","state":["IDLE"]}]})-");
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(row(*nodes, [](const Node& n) { return n.name == "n1"; }).gres, "gpu:h100:8(S:0-1)");
  EXPECT_EQ(row(*nodes, [](const Node& n) { return n.name == "n2"; }).gres, "");
}

TEST(Decode, ReadsJobsOfEveryRecordedServerAlike) {
  for (const std::string& which : kRecorded) {
    SCOPED_TRACE(which);
    const auto jobs = decode_jobs(recorded(which, "jobs"), true);
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->rows.size(), 4U);
    const auto job = [&](std::int64_t id) { return row(*jobs, [id](const Job& j) { return j.id == id; }); };
    EXPECT_EQ(job(3).state, "RUNNING");
    EXPECT_EQ(job(3).details->user, "user");
    EXPECT_FALSE(job(3).details->external);
    EXPECT_EQ(job(6).details->reason, "JobHeldUser");
    EXPECT_EQ(job(3).partition, "all");
    EXPECT_EQ(job(3).nodes, std::vector<std::string>{"n1"});
    ASSERT_TRUE(job(3).start && job(3).end);
    EXPECT_EQ(*job(3).end - *job(3).start, core::Duration(std::chrono::minutes(10)));
    EXPECT_TRUE(job(3).batch && job(3).requeue);
    EXPECT_EQ(job(3).full_id(), "3");
    EXPECT_FALSE(job(4).end) << "no limit";
    EXPECT_EQ(job(5).state, "SUSPENDED");
    EXPECT_EQ(job(5).nodes, (std::vector<std::string>{"n2", "n3"}));
    EXPECT_TRUE(job(5).holds_nodes());
    EXPECT_EQ(job(6).state, "PENDING");
    EXPECT_TRUE(job(6).nodes.empty());
    EXPECT_EQ(job(6).required_nodes, "n3");
    EXPECT_FALSE(job(6).start);
  }
}

TEST(Decode, AnExternalJobThatHasEndedKeepsItsNodes) {
  const auto nodes = [](bool details, const std::string& state, const std::string& flags) {
    const auto jobs = decode_jobs(
        R"({"jobs":[{"job_id":1,"job_state":[")" + state + R"("],"flags":[)" + flags + R"(],"nodes":"n[1-2]"}]})", details);
    return jobs ? jobs->rows.at(0)->nodes : std::vector<std::string>{"unreadable"};
  };
  const std::string external = R"("EXTERNAL_JOB")";
  const std::vector<std::string> both{"n1", "n2"};
  EXPECT_EQ(nodes(true, "CANCELLED", external), both) << "its pod may still run there";
  EXPECT_EQ(nodes(true, "PENDING", external), std::vector<std::string>{});
  EXPECT_EQ(nodes(true, "CANCELLED", ""), std::vector<std::string>{});
  EXPECT_EQ(nodes(false, "CANCELLED", external), std::vector<std::string>{});
}

TEST(Decode, DetailsOfJobsOnlyIfTheyAreAskedFor) {
  const auto read = [](bool details, const std::string& reason, long start) {
    const auto jobs = decode_jobs(
        R"({"jobs":[{"job_id":1,"job_state":["PENDING"],"state_reason":")" + reason +
            R"(","admin_comment":"{}","mcs_label":"k8s","comment":"c","excluded_nodes":"n[1-2]","flags":["EXTERNAL_JOB"],"start_time":)" +
            std::to_string(start) + R"(,"end_time":)" + std::to_string(start + 60) +
            R"(,"submit_time":{"set":true,"infinite":false,"number":90},"preempt_time":{"set":true,"infinite":false,"number":0}}]})",
        details);
    return jobs ? *jobs->rows.at(0) : Job{};
  };
  EXPECT_EQ(read(false, "Priority", 100), read(false, "Resources", 200)) << "who does not ask sees no change";
  EXPECT_FALSE(read(false, "Priority", 100).details);
  const Job job = read(true, "Priority", 100);
  EXPECT_EQ(job, read(true, "Priority", 100));
  EXPECT_NE(job, read(true, "Resources", 100));
  EXPECT_NE(job, read(true, "Priority", 200));
  EXPECT_EQ(job.details->reason, "Priority");
  EXPECT_EQ(job.details->admin_comment, "{}");
  EXPECT_EQ(job.details->comment, "c");
  EXPECT_EQ(job.details->excluded_nodes, "n[1-2]");
  EXPECT_EQ(job.details->mcs_label, "k8s");
  EXPECT_TRUE(job.details->external);
  EXPECT_EQ(job.details->submitted, core::WallTime(std::chrono::seconds(90)));
  EXPECT_FALSE(job.details->preempted);
  EXPECT_EQ(job.start, core::WallTime(std::chrono::seconds(100))) << "expected";
}

TEST(Decode, ReadsWhatAJobUsesByName) {
  const auto jobs = decode_jobs(R"({"jobs":[{"job_id":1,"job_state":["RUNNING"],"licenses":"matlab:2,idl@server:1",
      "licenses_allocated":"matlab:2","tres_per_node":"gres/gpu:tesla:1,gres/shard:2","tres_req_str":"cpu=1,gres/gpu=1"},
      {"job_id":2,"job_state":["PENDING"],"licenses":"a|b","tres_alloc_str":"cpu=1,gres/mps:x=4"},
      {"job_id":3,"job_state":["PENDING"],"licenses":"","tres_per_node":"","tres_req_str":"cpu=1"}]})");
  ASSERT_TRUE(jobs) << jobs.error().message;
  using Words = std::vector<std::string>;
  EXPECT_EQ(jobs->rows[0]->licenses, (Words{"matlab", "idl@server"}));
  EXPECT_EQ(jobs->rows[0]->gres, (Words{"gpu", "shard"}));
  EXPECT_EQ(jobs->rows[1]->licenses, (Words{"a", "b"}));
  EXPECT_EQ(jobs->rows[1]->gres, (Words{"mps"}));
  EXPECT_TRUE(jobs->rows[2]->licenses.empty() && jobs->rows[2]->gres.empty());
}

TEST(Decode, ReadsPartitionsAndPingsOfEveryRecordedServer) {
  for (const std::string& which : kRecorded) {
    SCOPED_TRACE(which);
    const auto partitions = decode_partitions(recorded(which, "partitions"));
    ASSERT_TRUE(partitions) << partitions.error().message;
    ASSERT_EQ(partitions->rows.size(), 2U);
    EXPECT_EQ(partitions->rows[0]->name, "all");
    EXPECT_EQ(partitions->rows[0]->nodes, "n[1-3]");
    EXPECT_EQ(partitions->rows[0]->state, "UP");
    EXPECT_FALSE(partitions->rows[0]->hidden);
    EXPECT_EQ(partitions->rows[1]->name, "slurm-operator-0123456789ab");
    EXPECT_EQ(partitions->rows[1]->state, "INACTIVE");
    EXPECT_EQ(partitions->rows[1]->hidden, spelling(which).partition_flags);
    const auto pings = decode_pings(recorded(which, "ping"), spelling(which));
    ASSERT_TRUE(pings) << pings.error().message;
    ASSERT_EQ(pings->rows.size(), 1U);
    EXPECT_EQ(pings->rows[0]->hostname, "slurmctld");
    EXPECT_TRUE(pings->rows[0]->responding);
    EXPECT_TRUE(pings->rows[0]->primary);
  }
}

TEST(Decode, ReadsDiag) {
  for (const char* which : {"24.11-v0.0.42", "26.05-v0.0.42", "26.05-v0.0.45"}) {
    const auto diag = decode_diag(recorded(which, "diag"));
    ASSERT_TRUE(diag) << diag.error().message;
    ASSERT_TRUE(diag->present);
    EXPECT_EQ(diag->rows[0]->jobs_running, 3) << which << ": one of them suspended";
    EXPECT_GT(diag->rows[0]->server_threads, 0);
  }
}

/// Returns whether the server responds, and whether it is the primary.
std::pair<bool, bool> ping(std::string_view text, std::string_view parser) {
  const auto pings = decode_pings("{\"pings\":[" + std::string(text) + "]}", spelling(std::string(parser)));
  const Ping& read = *pings.value().rows.at(0);
  EXPECT_EQ(read.hostname, "c");
  return {read.responding, read.primary};
}

TEST(Decode, ReadsPingsInTheWordsOfOlderReleases) {
  for (const char* parser : {"v0.0.40", "v0.0.41"}) {
    SCOPED_TRACE(parser);
    EXPECT_EQ(ping(R"({"hostname":"c","pinged":"UP","mode":"primary"})", parser), std::pair(true, true));
    EXPECT_EQ(ping(R"({"hostname":"c","pinged":"DOWN","mode":"primary"})", parser), std::pair(false, true));
    EXPECT_EQ(ping(R"({"hostname":"c","pinged":"UP","mode":"backup1"})", parser), std::pair(true, false));
    EXPECT_EQ(ping(R"({"hostname":"c","pinged":"DOWN","mode":"backup1"})", parser), std::pair(false, false));
  }
}

TEST(Decode, ReadsPingsInTheWordsOfNewerReleases) {
  for (const char* parser : {"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"}) {
    SCOPED_TRACE(parser);
    for (const auto& [up, primary] : {std::pair(true, true), std::pair(false, true), std::pair(true, false)}) {
      const auto word = [](bool is) { return is ? "true" : "false"; };
      // The older fields appear as well, with other values.
      EXPECT_EQ(ping(std::string(R"({"hostname":"c","pinged":"UP","mode":"primary","responding":)") + word(up) +
                         R"(,"primary":)" + word(primary) + "}",
                     parser),
                std::pair(up, primary));
    }
  }
}

// A truncated reply must be an error. A table with fewer rows would mean that the missing objects do not exist in Slurm.
TEST(Decode, NeverTakesACutReplyForAWholeOne) {
  const std::string whole = recorded("26.05-v0.0.45", "nodes");
  const std::size_t end = whole.find_last_of('}');
  for (std::size_t length = 0; length <= end; length += length < 300 || length + 300 > end ? 1 : 7) {
    const auto nodes = decode_nodes(whole.substr(0, length));
    ASSERT_FALSE(nodes) << length;
    EXPECT_EQ(nodes.error().code, core::ErrorCode::kInternal);
  }
}

TEST(Decode, RefusesWhatMakesNoSense) {
  for (const char* body :
       {"", "[]", "null", "Authentication failure", R"({"nodes":[{"state":["IDLE"]}]})", R"({"nodes":[7]})"}) {
    EXPECT_FALSE(decode_nodes(body)) << body;
  }
  EXPECT_FALSE(decode_envelope(R"({"hello":1})"));
  EXPECT_FALSE(decode_paths(R"({"paths":{}})"));
}

// Any user can give a job such a name: `sbatch -J $'\xe9'`.
TEST(Decode, RepairsTextThatIsNoUtf8) {
  for (const std::string& name :
       {std::string("\xe9"), std::string("\xc0\xaf"), std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"),
        std::string("\xf0\x9f\x98"), std::string("a\x01 b"), std::string("a\nb"), std::string("\xff\xfe w\xc3\xb6rker")}) {
    const auto jobs = decode_jobs(R"({"jobs":[{"job_id":1,"job_state":["RUNNING"],"name":")" + name + R"(","user_name":")" +
                                  name + R"(","nodes":"n1"},{"job_id":2,"job_state":["PENDING"]}]})");
    ASSERT_TRUE(jobs) << jobs.error().message;
    ASSERT_EQ(jobs->rows.size(), 2U);
    EXPECT_TRUE(jobs->rows[0]->holds("n1"));
    EXPECT_FALSE(jobs->rows[0]->holds("n2"));
  }
  const auto nodes = decode_nodes(R"({"nodes":[{"name":"n1","state":["IDLE"],"comment":"wörker )"
                                  "\xe9"
                                  R"( €"}]})");
  ASSERT_TRUE(nodes);
  EXPECT_EQ(nodes->rows[0]->comment, "wörker ? €") << "what is good stays";
  const auto escape =
      decode_nodes(R"({"nodes":[{"name":"n1","state":["IDLE"],"comment":"\ud800","cpus":1e999,"real_memory":7}]})");
  ASSERT_TRUE(escape) << escape.error().message;
  EXPECT_EQ(escape->rows[0]->comment, "?");
  EXPECT_EQ(escape->rows[0]->real_memory_mib, 7);
}

// There may be thousands of pending and ended jobs, each with ten thousand nodes. These node lists must not be expanded.
TEST(Decode, NamesOfManyNodesStayAsTheyAreWritten) {
  std::string rows;
  for (int id = 1; id <= 2000; ++id) {
    rows += R"({"job_id":)" + std::to_string(id) + R"(,"job_state":["PENDING"],"nodes":"","required_nodes":"n[0-9999]"},)";
    rows += R"({"job_id":)" + std::to_string(id + 2000) +
            R"(,"job_state":["COMPLETED"],"nodes":"n[0-9999]","required_nodes":"n[0-9999]"},)";
  }
  rows.pop_back();
  const auto jobs = decode_jobs(R"({"jobs":[)" + rows + "]}");
  ASSERT_TRUE(jobs) << jobs.error().message;
  std::size_t bytes = 0;
  for (const auto& job : jobs->rows) {
    bytes += job->required_nodes.capacity() + job->nodes.size() * sizeof(std::string);
    EXPECT_FALSE(job->holds("n7"));
  }
  EXPECT_LT(bytes, 4000 * 32U);
  EXPECT_EQ(jobs->rows[0]->required_nodes, "n[0-9999]");
}

// sbatch -N1 -w n[1-3]: if one of these nodes is missing, slurmctld fails the job at its next reconfigure.
TEST(Decode, AJobThatRunsNeedsAllNodesThatItNames) {
  const auto row = [](const std::string& state) {
    return R"({"job_id":1,"job_state":[")" + state + R"("],"nodes":"n1","required_nodes":"n[1-3]"})";
  };
  for (const char* state : {"RUNNING", "SUSPENDED", "COMPLETED"}) {
    const auto jobs = decode_jobs(R"({"jobs":[)" + row(state) + "]}");
    ASSERT_TRUE(jobs) << jobs.error().message;
    EXPECT_EQ(jobs->rows[0]->holds("n3"), state != std::string("COMPLETED")) << state;
    EXPECT_FALSE(jobs->rows[0]->holds("n4")) << state;
    EXPECT_EQ(jobs->rows[0]->runs_on("n1"), state != std::string("COMPLETED")) << state;
    EXPECT_FALSE(jobs->rows[0]->runs_on("n3")) << "it only names it";
  }
}

// The last task of an array has the same number as the array. Alone, this number means all tasks.
TEST(Decode, ATaskOfAnArrayHasANumberOfItsOwn) {
  const auto jobs = decode_jobs(R"({"jobs":[{"job_id":2,"job_state":["RUNNING"],"nodes":"n1","batch_flag":true,"requeue":false,
      "array_job_id":{"set":true,"infinite":false,"number":2},"array_task_id":{"set":true,"infinite":false,"number":0}},
      {"job_id":3,"job_state":["RUNNING","COMPLETING"],"nodes":"n1","batch_flag":false,"requeue":true,
      "array_job_id":{"set":true,"infinite":false,"number":0},"array_task_id":{"set":false,"infinite":false,"number":0}}]})");
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->rows[0]->full_id(), "2_0");
  EXPECT_TRUE(jobs->rows[0]->batch);
  EXPECT_FALSE(jobs->rows[0]->requeue);
  EXPECT_TRUE(jobs->rows[0]->runs_on("n1"));
  EXPECT_EQ(jobs->rows[1]->full_id(), "3");
  EXPECT_FALSE(jobs->rows[1]->batch);
  EXPECT_FALSE(jobs->rows[1]->runs_on("n1")) << "it is ending";
}

// A malformed row must not affect the other rows. Its unreadable parts get the most restrictive value.
TEST(Decode, TakesAnOddRowForWhatForbidsMost) {
  const auto jobs = decode_jobs(R"({"jobs":[{"job_id":1,"nodes":"n1"},{"job_id":2,"job_state":["RUNNING"],"nodes":"n[1-"},)"
                                R"({"job_state":["RUNNING"],"nodes":"n3"},{"job_state":["RUNNING"],"nodes":"n4"},)"
                                R"({"job_id":5,"job_state":["COMPLETED"],"nodes":"n[1-"}]})");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->rows.size(), 5U);
  EXPECT_TRUE(jobs->rows[0]->holds("n1")) << "its state is not known";
  EXPECT_FALSE(jobs->rows[0]->holds("n2"));
  EXPECT_TRUE(jobs->rows[1]->holds("n7")) << "its nodes are not known";
  EXPECT_NE(jobs->rows[2]->id, jobs->rows[3]->id);
  EXPECT_FALSE(jobs->rows[4]->holds("n1")) << "it has ended";
  const auto nodes = decode_nodes(R"({"nodes":[{"name":"n1","state":["DRAIN"]},{"name":"n2","state":["IDLE"]}]})");
  ASSERT_TRUE(nodes) << nodes.error().message;
  EXPECT_EQ(nodes->rows[0]->state.base, "UNKNOWN");
  EXPECT_EQ(nodes->rows[1]->state.base, "IDLE");
}

TEST(Decode, AnAbsentListIsNotAnEmptyOne) {
  EXPECT_FALSE(decode_nodes(R"({"errors":[],"warnings":[]})")->present);
  EXPECT_TRUE(decode_nodes(R"({"nodes":[]})")->present);
  EXPECT_FALSE(decode_nodes(R"({"nodes":null})")->present);
}

TEST(Decode, KeepsUnsetInfiniteAndANumberApart) {
  const auto end = [](const std::string& limit, const std::string& state) {
    const auto jobs = decode_jobs(R"({"jobs":[{"job_id":1,"job_state":[")" + state +
                                  R"("],"end_time":{"set":true,"infinite":false,"number":100},"time_limit":)" + limit + "}]}");
    return jobs->rows.at(0)->end;
  };
  EXPECT_TRUE(end(R"({"set":true,"infinite":false,"number":10})", "RUNNING"));
  EXPECT_FALSE(end(R"({"set":false,"infinite":true,"number":0})", "RUNNING"));
  EXPECT_FALSE(end(R"({"set":true,"infinite":true,"number":0})", "SUSPENDED"));
  EXPECT_TRUE(end(R"({"set":false,"infinite":true,"number":0})", "COMPLETED")) << "it has ended";
  EXPECT_TRUE(end("10", "RUNNING")) << "a plain number";
  EXPECT_TRUE(end(R"({"set":false,"infinite":false,"number":0})", "RUNNING"));
}

TEST(Decode, SplitsJobStatesIntoBaseAndFlags) {
  const auto jobs = decode_jobs(R"({"jobs":[{"job_id":1,"job_state":["COMPLETING","COMPLETED"],"nodes":"a[1-2]"},)"
                                R"({"job_id":2,"job_state":"RUNNING"},{"job_id":3,"job_state":["HIBERNATING"],"nodes":"x"}]})");
  ASSERT_TRUE(jobs);
  EXPECT_EQ(jobs->rows[0]->state, "COMPLETED");
  EXPECT_TRUE(jobs->rows[0]->flags.contains("COMPLETING"));
  EXPECT_TRUE(jobs->rows[0]->holds_nodes());
  EXPECT_EQ(jobs->rows[1]->state, "RUNNING");
  EXPECT_TRUE(jobs->rows[2]->holds_nodes()) << "a state that we do not know may hold nodes";
}

TEST(Decode, ReadsErrorsAndWarnings) {
  const auto envelope = decode_envelope(
      R"({"errors":[{"description":"Failure to update node zz","error_number":2018,"error":"Invalid node name specified","source":"x"}],)"
      R"("warnings":[{"description":"hm"}],"meta":{"plugin":null,"slurm":{"release":"26.05.5","cluster":"local"}}})");
  ASSERT_TRUE(envelope);
  ASSERT_EQ(envelope->errors.size(), 1U);
  EXPECT_EQ(envelope->errors[0].number, 2018);
  EXPECT_EQ(envelope->warnings, std::vector<std::string>{"hm"});
  EXPECT_EQ(envelope->release, "26.05.5");
}

TEST(Decode, ReadsPathsWithTheirMethods) {
  const auto paths = decode_paths(
      R"({"openapi":"3.0.3","info":{"title":"x","version":"Slurm-24.11.5&openapi/slurmctld"},)"
      R"("paths":{"/slurm/v0.0.42/nodes/":{"get":{"a":[1]},"post":{}},"/slurm/v0.0.42/shares":{"get":{}}},"components":{}})");
  ASSERT_TRUE(paths);
  EXPECT_EQ(paths->release, "24.11.5");
  EXPECT_TRUE(paths->has("/slurm/v0.0.42/nodes", "post"));
  EXPECT_FALSE(paths->has("/slurm/v0.0.42/shares", "post"));
  EXPECT_FALSE(paths->has("/slurm/v0.0.42/conf", "get"));
  EXPECT_EQ(decode_paths(R"({"info":{"x-slurm":{"release":"26.05.5"},"version":"Slurm-26.05.5"},"paths":{"/a":{"get":{}}}})")
                ->release,
            "26.05.5");
}

}  // namespace
}  // namespace slurm
