// A cluster for unit tests, with the account `science`, the account `physics` below `science`, and users ann and bob in
// `physics`.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cli/limits.hpp"

namespace cli {

inline const core::WallTime kTestNow = *core::parse_rfc3339("2026-01-02T03:00:00Z");

inline std::shared_ptr<slurm::accounting::QueuedJob> queued_job(std::int64_t id, const std::string& state,
                                                                const std::string& user,
                                                                const std::string& tres = "cpu=1,mem=100M,node=1") {
  auto out = std::make_shared<slurm::accounting::QueuedJob>();
  out->id = id;
  out->state = state;
  out->user = user;
  out->cluster = "local";
  out->account = "physics";
  out->qos = "normal";
  out->partition = "all";
  out->asks = slurm::accounting::read_tres(tres);
  out->time_limit = 30;
  out->submitted = kTestNow - std::chrono::minutes{5};
  if (out->running()) {
    out->has = out->asks;
    out->nodes = "n" + std::to_string(id);
    out->start = kTestNow - std::chrono::minutes{10};
    out->end = kTestNow + std::chrono::minutes{20};
  }
  return out;
}

inline std::shared_ptr<slurm::accounting::Association> association(const std::string& account, const std::string& user = "",
                                                                   const std::string& parent = "") {
  auto out = std::make_shared<slurm::accounting::Association>();
  out->cluster = "local";
  out->account = account;
  out->user = user;
  out->parent_account = parent;
  out->shares = 1;
  return out;
}

/// A waiting job of ann, and two running jobs: one of ann (2 CPUs) and one of bob (3 CPUs).
struct TestCluster {
  ClusterFacts facts;
  std::shared_ptr<slurm::accounting::QueuedJob> job = queued_job(9, "PENDING", "ann", "cpu=2,mem=1G,node=1,gres/gpu=1");
  std::shared_ptr<slurm::accounting::Qos> normal = std::make_shared<slurm::accounting::Qos>();
  std::shared_ptr<slurm::accounting::PartitionRules> all = std::make_shared<slurm::accounting::PartitionRules>();
  std::shared_ptr<slurm::accounting::Association> root = association("root"), science = association("science", "", "root"),
                                                  physics = association("physics", "", "science"),
                                                  ann = association("physics", "ann"), bob = association("physics", "bob");

  TestCluster() {
    normal->name = "normal";
    all->name = "all";
    all->state = "UP";
    facts.now = kTestNow;
    facts.jobs = {queued_job(1, "RUNNING", "ann", "cpu=2,mem=2G,node=1"),
                  queued_job(2, "RUNNING", "bob", "cpu=3,mem=100M,node=1"), job};
    facts.partitions = {all};
    facts.qos = {normal};
    facts.associations = {root, science, physics, ann, bob};
  }
  void past_usage(const std::string& name, const std::string& parent, bool user, double cpu_minutes) {
    slurm::accounting::Share share;
    share.cluster = "local";
    share.is_user = user;
    share.name = name;
    share.parent = parent;
    share.tres_seconds = {{"cpu", cpu_minutes * 60}};
    facts.shares.push_back(std::make_shared<const slurm::accounting::Share>(std::move(share)));
  }
};

}  // namespace cli
