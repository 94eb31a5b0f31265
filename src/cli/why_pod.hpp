// `kubectl slurm why pod/NAME`: makes a document of the facts that were read about a pod, and text of the document. Both steps
// are pure.
#pragma once

#include <string>

#include "cli/pod_facts.hpp"
#include "cli/terminal.hpp"

namespace cli {

/// Returns why the pod waits or does not run. docs/reference/kubectl-slurm.md documents the form of the document, which is
/// stable.
[[nodiscard]] core::Json why_pod_document(const PodFacts& facts);
[[nodiscard]] std::string why_pod_text(const core::Json& document, const Style& style, core::WallTime now);

}  // namespace cli
