// `kubectl slurm why`: makes a document of the facts that were read about a job, and text of the document. Both steps are
// pure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/limits.hpp"
#include "cli/session.hpp"
#include "cli/slurm_access.hpp"
#include "cli/terminal.hpp"

namespace cli {

/// The name of a job as users write it: "12", or "12_3" for a task of an array.
struct JobName {
  std::int64_t id = 0;
  std::optional<std::int64_t> task{};
  /// Parses a name. Error: kInvalid.
  static core::Result<JobName> read(const std::string& text);
  [[nodiscard]] std::string text() const;
};

/// Returns the record of the job; null if there is none. If the name is the number of a job array, prefers the record of the
/// array's waiting tasks.
[[nodiscard]] std::shared_ptr<const slurm::accounting::QueuedJob> find_job(
    const JobName& name, const ClusterFacts::Rows<slurm::accounting::QueuedJob>& jobs);

/// Returns the record of a job that is not in the queue of the cluster. `rows` is slurmdbd's answer about the job's number.
/// Error: kNotFound if slurmdbd has no such job. After any other error, it is unknown whether the job existed.
[[nodiscard]] core::Result<std::shared_ptr<const slurm::accounting::QueuedJob>> recorded_job(
    const std::string& controller, const JobName& name, core::Result<ClusterFacts::Rows<slurm::accounting::QueuedJob>> rows);

struct WhyFacts {
  std::string ns, controller;
  std::shared_ptr<const slurm::accounting::QueuedJob> job;
  ClusterFacts cluster;
};

/// Reads the facts from the cluster's Slurm. Errors: kNotFound if Slurm has no such job, and another code if Slurm or slurmdbd
/// does not answer.
core::Result<WhyFacts> read_why(Api& api, const ReachedCluster& cluster, const JobName& name);

/// Returns why the job waits. docs/reference/kubectl-slurm.md documents the form of the document, which is stable.
[[nodiscard]] core::Json why_document(const WhyFacts& facts);
[[nodiscard]] std::string why_text(const core::Json& document, const Style& style, core::WallTime now);

}  // namespace cli
