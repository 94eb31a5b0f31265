// Tests our assumptions about Slurm on real releases and on our model. The tests are the same, so that one fails where the
// model is wrong.
//
// The models are always tested. A real Slurm is tested if SLURM_REST_URL and its companions (world.hpp) are set.
// tests/conformance/slurm_test.sh does it for both releases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "fixture.hpp"
#include "plan/testing/observing.hpp"
#include "slurm/acts.hpp"
#include "slurm/conf/loaded.hpp"
#include "slurm/rest/client.hpp"
#include "slurm/rest/release.hpp"
#include "slurm/rest/spelling.hpp"
#include "slurm/rest/target.hpp"
#include "slurm/snapshot/registry.hpp"
#include "world.hpp"

namespace conformance {
namespace {

bool shows_drained(const slurm::Snapshot& snapshot, core::MonoTime now) {
  return slurm::Drained::of(plan::testing::Observer::at(now), snapshot, {kCluster, "n1"}).has_value();
}

INSTANTIATE_TEST_SUITE_P(Slurm, SlurmTest, kWorlds, [](const auto& which) { return which.param; });

TEST_P(SlurmTest, Negotiates) {
  const auto found = ask<slurm::Capabilities>([&](auto done) { client->connect(std::move(done)); });
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->release.starts_with(world->release())) << found->release;
  EXPECT_EQ(found->data_parser, before_26_05() ? "v0.0.42" : "v0.0.45");
  EXPECT_TRUE(found->batch_node_update);
  EXPECT_EQ(found->conf, !before_26_05());
  EXPECT_EQ(found->metrics, !before_26_05());
  EXPECT_EQ(found->nodes_difference, slurm::parse_release(found->release) >= (slurm::Release{26, 5, 3}));
  const auto pings = ask<std::vector<slurm::Ping>>([&](auto done) { client->ping(std::move(done)); });
  ASSERT_TRUE(pings) << pings.error().message;
  ASSERT_EQ(pings->size(), 1U);
  EXPECT_TRUE(pings->front().responding);
  EXPECT_TRUE(pings->front().primary);
  const auto diag = ask<slurm::Diag>([&](auto done) { client->diag(std::move(done)); });
  EXPECT_TRUE(diag) << (diag ? "" : diag.error().message);
}

TEST_P(SlurmTest, SpeaksEveryDataParserOfTheServer) {
  const std::vector<std::string> served = before_26_05() ? std::vector<std::string>{"v0.0.40", "v0.0.41", "v0.0.42"}
                                                         : std::vector<std::string>{"v0.0.42", "v0.0.43", "v0.0.44", "v0.0.45"};
  for (const std::string& parser : served) {
    SCOPED_TRACE(parser);
    slurm::ClientOptions options;
    options.newest_parser = parser;
    options.job_details = true;
    client = std::make_unique<Client>(world->loop(), *http, *tokens, log, options);
    const auto all = nodes();
    ASSERT_TRUE(all) << all.error().message;
    EXPECT_EQ(client->capabilities()->data_parser, parser);
    EXPECT_GE(all->rows.size(), 2U);
    // Reads nodes and jobs twice, because v0.0.40 and v0.0.41 read no update_time and must not be asked for changes.
    EXPECT_TRUE(nodes(all->last_update));
    const auto all_jobs = jobs();
    ASSERT_TRUE(all_jobs) << all_jobs.error().message;
    EXPECT_TRUE(jobs(all_jobs->last_update));
    EXPECT_TRUE(partitions());
    EXPECT_EQ(client->capabilities()->jobs_difference, parser >= "v0.0.42");
    const auto pings = ask<std::vector<slurm::Ping>>([&](auto done) { client->ping(std::move(done)); });
    ASSERT_TRUE(pings);
    EXPECT_TRUE(pings->front().responding && pings->front().primary);
    ASSERT_TRUE(becomes("n1", "IDLE"));
    NodeUpdate drain;
    drain.state = "DRAIN";
    drain.reason = "slurm-operator: " + parser;
    drain.comment = "by " + parser;
    drain.features = {"cpu", "extra"};
    const auto drained = ask<void>([&](auto done) { client->update_nodes({"n1", "n2"}, drain, std::move(done)); });
    ASSERT_TRUE(drained) << error_of(drained);
    const auto n1 = node("n1");
    ASSERT_TRUE(n1) << n1.error().message;
    EXPECT_TRUE(n1->state.has("DRAIN"));
    EXPECT_EQ(n1->reason, "slurm-operator: " + parser);
    EXPECT_EQ(n1->comment, "by " + parser);
    EXPECT_EQ(n1->features, (std::vector<std::string>{"cpu", "extra"}));
    EXPECT_TRUE(update("n1", "UNDRAIN"));
    EXPECT_TRUE(update("n2", "UNDRAIN"));
  }
}

TEST_P(SlurmTest, ReadsTables) {
  const auto all = nodes();
  ASSERT_TRUE(all) << all.error().message;
  for (const auto& row : all->rows) {
    EXPECT_EQ(row->state.base, "IDLE") << row->name;
    EXPECT_TRUE(row->state.has("DYNAMIC_NORM"));
    EXPECT_EQ(row->partitions, std::vector<std::string>{"all"});
    EXPECT_EQ(row->features, std::vector<std::string>{"cpu"});
    EXPECT_EQ(row->cpus, 4);
    EXPECT_EQ(row->real_memory_mib, 1000);
    EXPECT_TRUE(row->slurmd_start_time);
    EXPECT_TRUE(row->version.starts_with(world->release())) << row->version;
  }
  const auto parts = partitions();
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->rows.size(), 1U);
  EXPECT_EQ(parts->rows[0]->name, "all");
  EXPECT_EQ(parts->rows[0]->state, "UP");
  EXPECT_FALSE(parts->rows[0]->hidden);
}

TEST_P(SlurmTest, ReadsJobs) {
  const std::int64_t running = world->submit("n1", 300s);
  ASSERT_TRUE(job_becomes(running, "RUNNING"));
  const std::int64_t waiting = world->submit("n2", 300s);
  ASSERT_TRUE(job_becomes(waiting, "RUNNING"));
  world->suspend(waiting);
  ASSERT_TRUE(job_becomes(waiting, "SUSPENDED"));
  const auto all = jobs();
  ASSERT_TRUE(all);
  for (const auto& job : all->rows) {
    if (job->id != running) continue;
    EXPECT_EQ(job->nodes, std::vector<std::string>{"n1"}) << "it names no other";
    EXPECT_EQ(job->required_nodes, "") << "it waits no longer";
    EXPECT_EQ(job->details->user, "user");
    EXPECT_EQ(job->partition, "all");
    ASSERT_TRUE(job->start && job->end);
    EXPECT_EQ(*job->end - *job->start, core::Duration(10min));
  }
  EXPECT_EQ(state("n1"), "MIXED");
}

TEST_P(SlurmTest, ATableWithoutChangesSaysSo) {
  auto later_nodes = nodes();
  auto later_jobs = jobs();
  auto later_partitions = partitions();
  // After-effects of the previous test may still change something.
  bool unchanged = false;
  for (int tries = 0; tries < 20 && !unchanged; ++tries) {
    pass(2s);  // The server's times are whole seconds.
    later_nodes = nodes();
    later_jobs = jobs();
    later_partitions = partitions();
    ASSERT_TRUE(later_nodes && later_jobs && later_partitions);
    const auto same_nodes = nodes(later_nodes->last_update);
    const auto same_jobs = jobs(later_jobs->last_update);
    const auto same_partitions = partitions(later_partitions->last_update);
    ASSERT_TRUE(same_nodes && same_jobs && same_partitions);
    unchanged = same_nodes->unchanged && same_jobs->unchanged && same_partitions->unchanged;
  }
  EXPECT_TRUE(unchanged);

  // Changes a node, but no partition. Then slurmrestd before 26.05.3 fails, and the client requests the whole table.
  ASSERT_TRUE(update("n1", "DRAIN", "slurm-operator: x"));
  const auto changed = nodes(later_nodes->last_update);
  ASSERT_TRUE(changed) << changed.error().message;
  EXPECT_FALSE(changed->unchanged);
  EXPECT_GE(changed->rows.size(), 2U) << "all of them, not only the changed";
  for (const auto& row : changed->rows) EXPECT_EQ(row->partitions, std::vector<std::string>{"all"}) << row->name;
  const std::int64_t job = world->submit("n2", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  const auto changed_jobs = jobs(later_jobs->last_update);
  ASSERT_TRUE(changed_jobs);
  EXPECT_FALSE(changed_jobs->unchanged);
  EXPECT_TRUE(std::ranges::any_of(changed_jobs->rows, [&](const auto& row) { return row->id == job; }));
}

TEST_P(SlurmTest, AnUnknownNodeIsNotFoundEverywhere) {
  EXPECT_EQ(node("nowhere").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(update("nowhere", "DRAIN", "x").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(remove("nowhere").error().code, ErrorCode::kNotFound);
  const auto removed = run(deletion("nowhere"));
  ASSERT_TRUE(removed.value) << removed.value.error().message;
  EXPECT_EQ(*removed.value, (core::Json{{"deleted", false}}));
  NodeUpdate drain;
  drain.state = "DRAIN";
  drain.reason = "slurm-operator: x";
  const auto batch = ask<void>([&](auto done) { client->update_nodes({"n1", "nowhere", "n2"}, drain, std::move(done)); });
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(state("n1"), "IDLE+DRAIN") << "the others of a batch are changed all the same";
  EXPECT_EQ(state("n2"), "IDLE+DRAIN");
}

TEST_P(SlurmTest, DrainsAndResumes) {
  const auto drained = run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1", "n2"}, "scale in"));
  ASSERT_TRUE(drained.value) << drained.value.error().message;
  EXPECT_TRUE(opens(drained));
  const auto snapshot = clusters->snapshot(kCluster);
  EXPECT_TRUE(shows_drained(*snapshot, world->loop().clock().mono()));
  EXPECT_EQ(node("n1")->reason, "slurm-operator: scale in");
  for (const char* name : {"n1", "n2"}) {
    const auto resumed = run(slurm::resume_node(kCluster, slurm::Owner::kOperator, name));
    ASSERT_TRUE(resumed.value) << resumed.value.error().message;
    EXPECT_TRUE(opens(resumed));
  }
  // Slurm contacts slurmd first, so the node does not respond for a moment.
  EXPECT_TRUE(becomes("n1", "IDLE", 10s));
  EXPECT_TRUE(becomes("n2", "IDLE", 10s));
  EXPECT_EQ(node("n1")->reason, before_26_05() ? "Not responding" : "") << "Slurm writes its own reasons over what is left";
  EXPECT_EQ(run(slurm::resume_node(kCluster, slurm::Owner::kOperator, "n1")).value.error().code, ErrorCode::kConflict);
}

TEST_P(SlurmTest, SeveralProgramsHoldOneNode) {
  using enum slurm::Owner;
  ASSERT_TRUE(run(slurm::drain_nodes(kCluster, kBridge, {"n1"}, "pods run there")).value);
  ASSERT_TRUE(becomes("n1", "IDLE+DRAIN"));
  ASSERT_TRUE(run(slurm::drain_nodes(kCluster, kOperator, {"n1"}, "scale in")).value);
  EXPECT_EQ(node("n1")->reason, "slurm-operator: scale in; slurm-bridge: pods run there");
  ASSERT_TRUE(run(slurm::resume_node(kCluster, kBridge, "n1")).value);
  EXPECT_EQ(node("n1")->reason, "slurm-operator: scale in");
  EXPECT_EQ(state("n1"), "IDLE+DRAIN") << "the operator holds it still";
  ASSERT_TRUE(run(slurm::drain_nodes(kCluster, kBridge, {"n1"}, "pods run there")).value);
  ASSERT_TRUE(run(slurm::resume_node(kCluster, kOperator, "n1")).value);
  EXPECT_EQ(node("n1")->reason, "slurm-bridge: pods run there");
  ASSERT_TRUE(run(slurm::resume_node(kCluster, kBridge, "n1")).value);
  EXPECT_TRUE(becomes("n1", "IDLE", 10s));
}

TEST_P(SlurmTest, LeavesTheDrainsOfOthers) {
  world->scontrol("n1", "DRAIN", "bad disk");
  ASSERT_TRUE(becomes("n1", "IDLE+DRAIN"));
  const auto drained = run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1"}, "scale in"));
  ASSERT_TRUE(drained.value) << drained.value.error().message;
  EXPECT_EQ((*drained.value)["kept"], (core::Json{"n1"}));
  EXPECT_EQ(node("n1")->reason, "bad disk");
  const auto resumed = run(slurm::resume_node(kCluster, slurm::Owner::kOperator, "n1"));
  ASSERT_FALSE(resumed.value);
  EXPECT_EQ(resumed.value.error().code, ErrorCode::kConflict);
  EXPECT_EQ(state("n1"), "IDLE+DRAIN");
}

TEST_P(SlurmTest, ADrainWithoutAReasonKeepsTheReasonOfADown) {
  world->scontrol("n1", "DOWN", "dead board");
  ASSERT_TRUE(becomes("n1", "DOWN"));
  const auto drained = run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1"}, "scale in"));
  ASSERT_TRUE(drained.value) << drained.value.error().message;
  EXPECT_EQ(state("n1"), "DOWN+DRAIN");
  EXPECT_EQ(node("n1")->reason, "dead board");
  EXPECT_EQ(run(slurm::resume_node(kCluster, slurm::Owner::kOperator, "n1")).value.error().code, ErrorCode::kConflict);
}

TEST_P(SlurmTest, ResumesItsOwnDown) {
  ASSERT_TRUE(update("n1", "DOWN", "slurm-operator: pod ended"));
  ASSERT_TRUE(becomes("n1", "DOWN"));
  const auto resumed = run(slurm::resume_node(kCluster, slurm::Owner::kOperator, "n1"));
  ASSERT_TRUE(resumed.value) << resumed.value.error().message;
  EXPECT_EQ((*resumed.value)["by"], "RESUME");
  EXPECT_TRUE(becomes("n1", "IDLE", 10s));
}

TEST_P(SlurmTest, UndrainingAnIdleNodeMakesItStopResponding) {
  // slurmctld pings the node at once, so it may respond before our request.
  bool missed = false;
  for (int tries = 0; tries < 200 && !missed; ++tries) {
    ASSERT_TRUE(update("n1", "UNDRAIN"));
    const auto found = ask<Node>([&](auto done) { client->node("n1", std::move(done)); });
    missed = found && found->state.base == "IDLE" && found->state.has("NOT_RESPONDING");
    ASSERT_TRUE(becomes("n1", "IDLE", 10s));
  }
  EXPECT_TRUE(missed) << "why the target asks before it undrains";
  const auto resumed = update("n1", "RESUME");
  ASSERT_FALSE(resumed);
  EXPECT_EQ(resumed.error().code, ErrorCode::kInvalid);
}

TEST_P(SlurmTest, AQuestionForOneNodeDoesNotCountWhatIsAllocated) {
  clusters->remove(kCluster);  // Otherwise the client's polls read the whole table every second.
  pass(1s);
  ASSERT_TRUE(nodes());
  const std::int64_t job = world->submit("n1", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  const auto base = [&] {
    const auto found = ask<Node>([&](auto done) { client->node("n1", std::move(done)); });
    return found ? found->state.base : found.error().message;
  };
  EXPECT_EQ(base(), "ALLOCATED") << "with a job on one of four CPUs";
  ASSERT_TRUE(nodes());
  EXPECT_EQ(base(), "MIXED");
  world->cancel(job);
  ASSERT_TRUE(job_becomes(job, "CANCELLED"));
  EXPECT_EQ(base(), "MIXED") << "with no job left";
  EXPECT_EQ(node("n1")->state.base, "IDLE");
}

TEST_P(SlurmTest, ADownRequeuesTheJobsOfANode) {
  const std::int64_t job = world->submit("n1", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  ASSERT_TRUE(update("n1", "DOWN", "slurm-operator: pod ended"));
  EXPECT_TRUE(becomes("n1", "DOWN"));
  EXPECT_TRUE(job_becomes(job, "PENDING"));
}

TEST_P(SlurmTest, AllFeaturesOfANodeAreRemoved) {
  NodeUpdate change;
  change.features = {"cpu", "extra"};
  ASSERT_TRUE(ask<void>([&](auto done) { client->update_node("n1", change, std::move(done)); }));
  EXPECT_EQ(node("n1")->features, (std::vector<std::string>{"cpu", "extra"}));
  change.features = std::vector<std::string>{};
  ASSERT_TRUE(ask<void>([&](auto done) { client->update_node("n1", change, std::move(done)); }));
  EXPECT_TRUE(node("n1")->features.empty());
  EXPECT_TRUE(node("n1")->active_features.empty());
}

TEST_P(SlurmTest, AnExternalJobIsSubmittedOnceChangedAndCancelled) {
  const slurm::JobMark mark = new_mark();
  const auto own = [&](std::int64_t id) {
    return slurm::OwnJob::of(plan::testing::Observer::at(world->loop().clock().mono()), *clusters->snapshot(kCluster), kCluster,
                             mark.owner, mark.instance, id);
  };
  slurm::JobWish wish;
  wish.name = "train";
  wish.partition = "all";
  wish.nodes = 1;
  wish.tasks_per_node = 1;
  wish.cpus_per_task = 1;
  wish.memory_per_node_mib = 100;
  wish.time_limit = 10min;
  wish.excluded_nodes = {"n2"};
  ASSERT_TRUE(run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1"}, "it is to wait")).value);
  const auto submitted = run(slurm::submit_job(kCluster, mark, wish, {{"pods", {"ns/p"}}}));
  if (before_26_05()) {
    EXPECT_FALSE(submitted.value) << "24.11 has no external jobs";
    return;
  }
  ASSERT_TRUE(submitted.value) << submitted.value.error().message;
  EXPECT_EQ((*submitted.value)["submitted"], true);
  const auto id = submitted.value->at("job").get<std::int64_t>();
  ASSERT_TRUE(opens(submitted));
  const auto snapshot = clusters->snapshot(kCluster);
  ASSERT_TRUE(snapshot->jobs.contains(id)) << "the gate waits for it";
  const slurm::Job& job = *snapshot->jobs.at(id);
  EXPECT_EQ(job.state, "PENDING");
  EXPECT_FALSE(job.batch);
  EXPECT_EQ(job.details->user, "slurm");
  EXPECT_EQ(slurm::mark_of(job), mark);
  EXPECT_EQ((*core::parse_json(job.details->admin_comment))["pods"], core::Json::array({"ns/p"}));
  EXPECT_EQ(*run(slurm::submit_job(kCluster, mark, wish)).value, (core::Json{{"job", id}, {"submitted", false}}));

  ASSERT_TRUE(opens(run(slurm::resume_node(kCluster, slurm::Owner::kOperator, "n1"))));
  ASSERT_TRUE(own(id));
  slurm::JobWish change;
  change.excluded_nodes = {"nowhere"};
  const auto refused = run(slurm::update_job(*own(id), change));
  ASSERT_FALSE(refused.value);
  EXPECT_EQ(refused.value.error().code, ErrorCode::kNotFound) << refused.value.error().message;
  ASSERT_TRUE(job_becomes(id, "RUNNING"));
  EXPECT_TRUE(becomes("n1", "MIXED"));
  ASSERT_TRUE(world->until([&] { return clusters->snapshot(kCluster)->fresh(world->loop().clock().mono()) && own(id); }));
  change.excluded_nodes = {"n1"};
  const auto late = run(slurm::update_job(*own(id), change));
  ASSERT_FALSE(late.value);
  EXPECT_EQ(late.value.error().code, ErrorCode::kConflict) << late.value.error().message;

  const auto cancelled = run(slurm::cancel_job(*own(id)));
  ASSERT_TRUE(cancelled.value) << cancelled.value.error().message;
  EXPECT_EQ(*cancelled.value, (core::Json{{"cancelled", true}}));
  EXPECT_EQ(job_state(id), "CANCELLED") << "its nodes are free at once";
  ASSERT_TRUE(opens(cancelled));
  EXPECT_EQ(*run(slurm::cancel_job(*own(id))).value, (core::Json{{"cancelled", false}}));
  EXPECT_EQ(run(slurm::update_job(*own(id), change)).value.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(*run(slurm::submit_job(kCluster, mark, wish)).value, (core::Json{{"job", id}, {"submitted", false}}));
}

TEST_P(SlurmTest, ChangingTheExcludedNodesLetsAnExternalJobStart) {
  if (before_26_05()) GTEST_SKIP() << "24.11 has no external jobs";
  const slurm::JobMark mark = new_mark();
  slurm::JobWish wish;
  wish.nodes = 1;
  wish.excluded_nodes = {"n2"};
  ASSERT_TRUE(run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1"}, "it is to wait")).value);
  const auto submitted = run(slurm::submit_job(kCluster, mark, wish));
  ASSERT_TRUE(submitted.value) << submitted.value.error().message;
  ASSERT_TRUE(opens(submitted));
  const auto id = submitted.value->at("job").get<std::int64_t>();
  EXPECT_EQ(job_state(id), "PENDING");
  const auto own = slurm::OwnJob::of(plan::testing::Observer::at(world->loop().clock().mono()), *clusters->snapshot(kCluster),
                                     kCluster, mark.owner, mark.instance, id);
  ASSERT_TRUE(own);
  slurm::JobWish change;
  change.excluded_nodes = {"n1"};
  const auto changed = run(slurm::update_job(*own, change));
  ASSERT_TRUE(changed.value) << changed.value.error().message;
  ASSERT_TRUE(job_becomes(id, "RUNNING"));
  ASSERT_TRUE(opens(changed));
  EXPECT_TRUE(world->until([&] { return !clusters->snapshot(kCluster)->jobs_on("n2").empty(); }));
}

TEST_P(SlurmTest, AnExternalJobWithAWrongNameIsRefused) {
  if (before_26_05()) GTEST_SKIP() << "24.11 has no external jobs";
  const auto error = [&](const slurm::JobWish& wish) {
    const auto result = run(slurm::submit_job(kCluster, {slurm::Owner::kBridge, "cluster-a", "refused"}, wish));
    return result.value ? ErrorCode::kInternal : result.value.error().code;
  };
  slurm::JobWish wish;
  wish.nodes = 1;
  wish.partition = "nowhere";
  EXPECT_EQ(error(wish), ErrorCode::kInvalid);
  wish.partition = "all";
  wish.excluded_nodes = {"nowhere"};
  EXPECT_EQ(error(wish), ErrorCode::kNotFound);
}

TEST_P(SlurmTest, TheJobsOfADrainThatTimedOutAreRequeuedOrCancelled) {
  const auto end_jobs = [&](slurm::EndOfJobs how) {
    const auto snapshot = clusters->snapshot(kCluster);
    const auto evidence = slurm::DrainTimedOut::of(plan::testing::Observer::at(world->loop().clock().mono()), *snapshot,
                                                   {kCluster, "n1"}, slurm::Owner::kOperator, "scale in", how, "test");
    return evidence ? run(slurm::end_jobs(*evidence)).value : core::fail(ErrorCode::kConflict, "no evidence");
  };
  const auto sees = [&](std::int64_t job) {
    return world->until([&] {
      const auto snapshot = clusters->snapshot(kCluster);
      return snapshot->fresh(world->loop().clock().mono()) && !snapshot->jobs_on("n1").empty() &&
             snapshot->jobs_on("n1").front()->id == job;
    });
  };
  const std::int64_t job = world->submit("n1", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  ASSERT_TRUE(opens(run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1"}, "scale in"))));
  ASSERT_TRUE(sees(job));
  const auto requeued = end_jobs(slurm::EndOfJobs::kRequeue);
  if (before_26_05()) {
    ASSERT_FALSE(requeued);
    EXPECT_EQ(requeued.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(job_state(job), "RUNNING");
    ASSERT_TRUE(sees(job));
    ASSERT_TRUE(end_jobs(slurm::EndOfJobs::kCancel));
    EXPECT_TRUE(job_becomes(job, "CANCELLED"));
  } else {
    ASSERT_TRUE(requeued) << requeued.error().message;
    EXPECT_EQ(*requeued, (core::Json{{"ended", {std::to_string(job)}}}));
    EXPECT_TRUE(job_becomes(job, "PENDING"));
    // Requeueing a job that does not run has no effect.
    EXPECT_TRUE(ask<void>([&](auto done) { client->requeue_job(std::to_string(job), std::move(done)); }));
    world->cancel(job);
    EXPECT_TRUE(job_becomes(job, "CANCELLED"));
    EXPECT_TRUE(ask<void>([&](auto done) { client->requeue_job(std::to_string(job), std::move(done)); }));
    EXPECT_EQ(job_state(job), "CANCELLED");
  }
  EXPECT_TRUE(becomes("n1", "IDLE+DRAIN"));
  EXPECT_TRUE(ask<void>([&](auto done) { client->cancel_job(std::to_string(job), std::move(done)); })) << "it has ended";
}

TEST_P(SlurmTest, ABusyNodeIsNotDeleted) {
  const std::int64_t job = world->submit("n1", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  const auto direct = remove("n1");
  ASSERT_FALSE(direct);
  EXPECT_EQ(direct.error().code, ErrorCode::kBusy) << direct.error().message;
  EXPECT_EQ(direct.error().reason, "2016");
  const auto drained = run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1"}, "scale in"));
  ASSERT_TRUE(drained.value);
  EXPECT_EQ(state("n1"), "MIXED+DRAIN");
  EXPECT_TRUE(opens(drained));
  EXPECT_FALSE(shows_drained(*clusters->snapshot(kCluster), world->loop().clock().mono()));
  const auto deleted = run(deletion("n1"));
  ASSERT_FALSE(deleted.value);
  EXPECT_EQ(deleted.value.error().code, ErrorCode::kBusy);
  EXPECT_EQ(job_state(job), "RUNNING");
  world->cancel(job);
  EXPECT_TRUE(becomes("n1", "IDLE+DRAIN"));
  EXPECT_TRUE(world->until([&] { return shows_drained(*clusters->snapshot(kCluster), world->loop().clock().mono()); }));
  const auto gone = run(deletion("n1"));
  ASSERT_TRUE(gone.value) << gone.value.error().message;
  EXPECT_EQ(*gone.value, (core::Json{{"deleted", true}}));
  EXPECT_EQ(state("n1"), "absent");
  EXPECT_TRUE(opens(gone));
  EXPECT_EQ(clusters->snapshot(kCluster)->node("n1"), nullptr);
}

TEST_P(SlurmTest, ASuspendedJobHidesItselfFromTheNodeAndIsSeenAllTheSame) {
  const std::int64_t job = world->submit("n1", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  world->suspend(job);
  ASSERT_TRUE(job_becomes(job, "SUSPENDED"));
  const auto drained = run(slurm::drain_nodes(kCluster, slurm::Owner::kOperator, {"n1"}, "scale in"));
  ASSERT_TRUE(drained.value);
  // The state is MIXED without allocated CPUs, or IDLE, depending on SelectTypeParameters and the job's memory.
  const std::string words = state("n1");
  EXPECT_TRUE(words == "IDLE+DRAIN" || words == "MIXED+DRAIN") << words;
  EXPECT_TRUE(opens(drained));
  EXPECT_FALSE(shows_drained(*clusters->snapshot(kCluster), world->loop().clock().mono()));
  const auto deleted = run(deletion("n1"));
  ASSERT_FALSE(deleted.value);
  EXPECT_EQ(deleted.value.error().code, ErrorCode::kBusy);
  EXPECT_EQ(state("n1"), words);
  EXPECT_EQ(job_state(job), "SUSPENDED");
}

// Because Slurm does so, the operator itself checks the jobs of a node before it deletes the node.
TEST_P(SlurmTest, SlurmItselfDeletesANodeUnderASuspendedJob) {
  const std::int64_t job = world->submit("n2", 300s);
  ASSERT_TRUE(job_becomes(job, "RUNNING"));
  world->suspend(job);
  ASSERT_TRUE(job_becomes(job, "SUSPENDED"));
  ASSERT_TRUE(update("n2", "DRAIN", "slurm-operator: x"));
  const auto removed = remove("n2");
  EXPECT_TRUE(removed) << error_of(removed);
  EXPECT_EQ(state("n2"), "absent");
  EXPECT_EQ(job_state(job), "SUSPENDED");
  world->cancel(job);
  ASSERT_TRUE(job_becomes(job, "CANCELLED+COMPLETING"));
  pass(3s);
  EXPECT_EQ(job_state(job), "CANCELLED+COMPLETING") << "for good: nobody is left to end it";
}

TEST_P(SlurmTest, ARecordOutlivesItsSlurmdAndCanBeDeletedWithoutIt) {
  world->stop_node("n1");
  ASSERT_TRUE(update("n1", "DOWN", "slurm-operator: pod ended"));
  const auto deleted = run(deletion("n1", slurm::NodeEvidence::Live::kKept));
  ASSERT_TRUE(deleted.value) << deleted.value.error().message;
  EXPECT_EQ(state("n1"), "absent");
}

TEST_P(SlurmTest, AKnownNameIgnoresItsConfUntilItIsDeleted) {
  world->stop_node("n1");
  world->start_node("n1", "CPUs=4 RealMemory=1000 Features=other");
  pass(3s);
  EXPECT_EQ(node("n1")->features, std::vector<std::string>{"cpu"});
  world->stop_node("n1");
  ASSERT_TRUE(update("n1", "DOWN", "slurm-operator: x"));
  ASSERT_TRUE(remove("n1"));
  world->start_node("n1", "CPUs=4 RealMemory=1000 Features=other");
  ASSERT_TRUE(becomes("n1", "IDLE"));
  EXPECT_EQ(node("n1")->features, std::vector<std::string>{"other"});
}

TEST_P(SlurmTest, ADrainSurvivesARegistrationAndADownDoesNot) {
  ASSERT_TRUE(update("n1", "DRAIN", "slurm-operator: x"));
  ASSERT_TRUE(update("n2", "DOWN", "slurm-operator: x"));
  for (const char* name : {"n1", "n2"}) {
    world->stop_node(name);
    world->start_node(name, kNodeConf);
  }
  EXPECT_TRUE(becomes("n2", "IDLE", 20s)) << "ReturnToService=2";
  EXPECT_TRUE(becomes("n1", "IDLE+DRAIN", 20s));
}

TEST_P(SlurmTest, ReconfigureShowsWhatIsLoaded) {
  EXPECT_FALSE(slurm::conf::loaded_hash(slurm::Owner::kOperator, *clusters->snapshot(kCluster)));
  world->configure(slurm::conf::marker_partition(slurm::Owner::kOperator, "0123456789ab") + "\nPartitionName=p2 Nodes=ALL\n");
  const auto loaded = run(slurm::reconfigure(kCluster));
  ASSERT_TRUE(loaded.value) << loaded.value.error().message;
  EXPECT_TRUE(world->until(
      [&] { return slurm::conf::loaded_hash(slurm::Owner::kOperator, *clusters->snapshot(kCluster)) == "0123456789ab"; }, 10s));
  const auto snapshot = clusters->snapshot(kCluster);
  ASSERT_TRUE(snapshot->partitions.contains("p2"));
  for (const auto& [name, partition] : snapshot->partitions) {
    const bool marker = slurm::conf::is_marker(slurm::Owner::kOperator, name);
    EXPECT_EQ(partition.state, marker ? "INACTIVE" : "UP") << name;
    EXPECT_EQ(partition.hidden, marker && !before_26_05()) << name;
    EXPECT_EQ(partition.nodes.empty(), marker) << name;
  }
  EXPECT_TRUE(world->until([&] {
    const Node* n1 = clusters->snapshot(kCluster)->node("n1");
    return n1 != nullptr && n1->partitions.size() == 2;
  })) << "nodes are in the new partition, and not in the marker";

  for (const char* bad : {"PartitionName=p3 Nodes=nosuchnode", "NoSuchKey=1", "MaxNodeCount=abc", "PartitionName=all Nodes=ALL",
                          "SlurmdTimeout="}) {
    SCOPED_TRACE(bad);
    world->configure(slurm::conf::marker_partition(slurm::Owner::kOperator, "ba9876543210") + "\n" + bad + "\n");
    const auto refused = run(slurm::reconfigure(kCluster));
    ASSERT_FALSE(refused.value);
    EXPECT_EQ(refused.value.error().code, ErrorCode::kInvalid) << refused.value.error().message;
    EXPECT_TRUE(opens(refused));
    EXPECT_EQ(slurm::conf::loaded_hash(slurm::Owner::kOperator, *clusters->snapshot(kCluster)), "0123456789ab")
        << "the old one stays in force";
    pass(kApart);
  }
  EXPECT_TRUE(becomes("n1", "IDLE"));
  world->configure("");
  const auto back = run(slurm::reconfigure(kCluster));
  EXPECT_TRUE(back.value);
}

TEST_P(SlurmTest, RenewsItsTokenInTime) {
  // A request must take less than a fifth of the lifetime: the token is renewed that long before its end, in whole seconds.
  tokens = std::make_unique<slurm::Hs256Tokens>(world->loop().clock(), world->key(), "slurm", 15s);
  client = std::make_unique<Client>(world->loop(), *http, *tokens, log);
  for (int i = 0; i < 16; ++i) {
    const auto all = nodes();
    ASSERT_TRUE(all) << all.error().message;
    pass(2s);
  }
}

TEST_P(SlurmTest, AWrongKeyIsUnauthorized) {
  slurm::Hs256Tokens wrong(world->loop().clock(), "another key, another key, another", "slurm");
  client = std::make_unique<Client>(world->loop(), *http, wrong, log);
  const auto all = nodes();
  ASSERT_FALSE(all);
  EXPECT_EQ(all.error().code, ErrorCode::kUnauthorized) << all.error().message;
  EXPECT_EQ(update("n1", "DRAIN", "x").error().code, ErrorCode::kUnauthorized);
  client = std::make_unique<Client>(world->loop(), *http, *tokens, log);
  EXPECT_EQ(state("n1"), "IDLE");
}

TEST_P(SlurmTest, ASnapshotTellsAWrongKeyFromASlurmctldThatIsAway) {
  clusters->set("stranger", {"slurmrestd", 6820}, "another key, another key, another");
  const auto code = [&] { return clusters->snapshot("stranger")->error_code; };
  ASSERT_TRUE(world->until([&] { return code() == ErrorCode::kUnauthorized; }, 60s)) << clusters->snapshot("stranger")->error;
  EXPECT_EQ(clusters->snapshot("stranger")->health, slurm::Snapshot::Health::kNone);
  clusters->set("stranger", {"slurmrestd", 6820}, world->key());
  EXPECT_TRUE(world->until([&] { return clusters->snapshot("stranger")->complete(); }));
}

TEST_P(SlurmTest, AnOrdinaryUserMayNotWrite) {
  slurm::Hs256Tokens user(world->loop().clock(), world->key(), "user");
  client = std::make_unique<Client>(world->loop(), *http, user, log);
  EXPECT_TRUE(nodes());
  const auto drained = update("n1", "DRAIN", "x");
  ASSERT_FALSE(drained);
  EXPECT_EQ(drained.error().code, ErrorCode::kForbidden) << drained.error().message;
}

TEST_P(SlurmTest, ASlurmctldThatIsAwayIsStaleAndComesBackWhole) {
  ASSERT_TRUE(update("n1", "DRAIN", "slurm-operator: x"));
  ASSERT_TRUE(world->until([&] { return clusters->snapshot(kCluster)->node("n1")->state.has("DRAIN"); }));
  const plan::ActPtr delete_n1 = deletion("n1");
  world->stop_slurmctld();
  const auto pings = ask<std::vector<slurm::Ping>>([&](auto done) { client->ping(std::move(done)); });
  ASSERT_TRUE(pings) << pings.error().message;
  EXPECT_FALSE(pings->front().responding);
  ASSERT_TRUE(world->until([&] { return clusters->snapshot(kCluster)->health == slurm::Snapshot::Health::kStale; }, 20s));
  EXPECT_NE(clusters->snapshot(kCluster)->node("n1"), nullptr);
  const auto act = run(delete_n1);
  ASSERT_FALSE(act.value);
  EXPECT_EQ(act.value.error().code, ErrorCode::kUnavailable);
  EXPECT_NE(act.value.error().message.find("Slurm does not answer"), std::string::npos)
      << "at once, without slurmrestd, which would say after ten seconds: " << act.value.error().message;
  world->start_slurmctld();
  EXPECT_TRUE(world->until([&] { return clusters->snapshot(kCluster)->complete(); }, 10s));
  EXPECT_TRUE(becomes("n1", "IDLE+DRAIN", 20s)) << "its state is kept";
  EXPECT_EQ(node("n1")->reason, "slurm-operator: x");
}

}  // namespace
}  // namespace conformance
