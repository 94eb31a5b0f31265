// `kubectl slurm why`: makes a document of what was read about a job, and text of the document. Both steps are pure.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/limits.hpp"
#include "cli/session.hpp"
#include "cli/terminal.hpp"

namespace cli {

/// A job as people name it: "12", "12_3".
struct JobName {
  std::int64_t id = 0;
  std::optional<std::int64_t> task{};
  /// Parses a name. Error: kInvalid.
  static core::Result<JobName> read(const std::string& text);
  [[nodiscard]] std::string text() const;
};

/// Returns the record of the job. For the number of an array, prefers the record of its waiting tasks. Returns null if there is
/// none.
[[nodiscard]] std::shared_ptr<const slurm::accounting::QueuedJob> find_job(
    const JobName& name, const ClusterFacts::Rows<slurm::accounting::QueuedJob>& jobs);

/// Returns the record of a job that is not in the cluster's queue, from slurmdbd's answer `rows` about the number of the job.
/// Error: kNotFound if slurmdbd has no such job. Any other error leaves open whether the job existed.
[[nodiscard]] core::Result<std::shared_ptr<const slurm::accounting::QueuedJob>> recorded_job(
    const std::string& controller, const JobName& name, core::Result<ClusterFacts::Rows<slurm::accounting::QueuedJob>> rows);

struct WhyFacts {
  std::string ns, controller;
  std::shared_ptr<const slurm::accounting::QueuedJob> job;
  ClusterFacts cluster;
};

/// Asks the cluster's Slurm. `cluster` is a Controller, or "" for the only one. Errors: kNotFound if Slurm has no such job,
/// and another code if Slurm or slurmdbd does not answer.
core::Result<WhyFacts> read_why(Api& api, const std::string& ns, const std::string& cluster, const JobName& name);

/// Returns why the job waits. The form is stable and documented in docs/reference/kubectl-slurm.md.
[[nodiscard]] core::Json why_document(const WhyFacts& facts);
[[nodiscard]] std::string why_text(const core::Json& document, const Style& style, core::WallTime now);

}  // namespace cli
