// Jobs that our programs submit: their settings, the mark that names the program, and the evidence of who submitted a job.
//
// These jobs are external (EXTERNAL_JOB, Slurm 25.05 and later): they hold nodes, have no script, and Slurm runs nothing for
// them. Slurm numbers jobs itself, so a program gives each submission a key. The program, its instance and the key are in the
// admin_comment of the job, which users cannot write:
//
//   {"owner": "slurm-bridge", "instance": "UID of the Kubernetes cluster", "key": "1f6c.../1", ...what the program adds}
//
// Only a program that asks for details of jobs sees the admin_comment (ClientOptions::job_details).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "plan/evidence.hpp"
#include "slurm/holds.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace slurm {

/// The settings of a job to submit, or the changes of a waiting job. Only members that are set are sent.
struct JobWish {
  std::optional<std::string> name, account, partition, qos, reservation, mcs_label, licenses, constraints, wckey, comment;
  std::optional<std::string> user_id, group_id;  ///< Names or numbers. Unset: those of the connection's user.
  std::optional<std::string> shared;             ///< "none": the job gets whole nodes; "user", "mcs", "topo", "oversubscribe".
  std::optional<std::string> tres_per_node;      ///< "gres/gpu:2".
  std::optional<std::int64_t> nodes;             ///< The exact number of nodes.
  std::optional<std::int64_t> tasks_per_node, cpus_per_task, memory_per_node_mib, priority;
  std::optional<std::chrono::minutes> time_limit;
  std::optional<std::vector<std::string>> excluded_nodes;  ///< Slurm refuses unknown names.
};
/// Returns the wish as JSON with Slurm's names. Memory is in MiB, times in minutes.
[[nodiscard]] core::Json to_json(const JobWish& wish);

/// Identifies the submission from which a job comes.
struct JobMark {
  Owner owner{};
  std::string instance;  ///< The installation of the owner. Several installations can share one slurmctld.
  std::string key;
  friend bool operator==(const JobMark&, const JobMark&) = default;
};
/// Returns the mark in the job's admin_comment; nullopt if no program of ours submitted the job, or the job has no details.
[[nodiscard]] std::optional<JobMark> mark_of(const Job& job);
/// Returns the admin_comment of a job with this mark. `more`: an object with further members, or null.
[[nodiscard]] std::string admin_comment(const JobMark& mark, core::Json more);

/// Evidence that Slurm has this job, and that this installation of the program submitted it.
class OwnJob final : public plan::Evidence {
 public:
  static std::optional<OwnJob> of(const plan::Observing& observing, const Snapshot& snapshot, ClusterKey cluster, Owner owner,
                                  std::string_view instance, std::int64_t id);
  [[nodiscard]] const ClusterKey& cluster() const { return cluster_; }
  [[nodiscard]] std::int64_t id() const { return id_; }
  [[nodiscard]] const JobMark& mark() const { return mark_; }

 private:
  OwnJob(const plan::Observing& observing, ClusterKey cluster, std::int64_t id, JobMark mark, core::MonoTime until)
      : Evidence(observing, "OwnJob", "job " + std::to_string(id) + " was submitted by " + std::string(to_string(mark.owner)),
                 until),
        cluster_(std::move(cluster)),
        id_(id),
        mark_(std::move(mark)) {}

  ClusterKey cluster_;
  std::int64_t id_;
  JobMark mark_;
};

}  // namespace slurm
