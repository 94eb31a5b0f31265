// Revisions of a NodeSet: which part of the spec a ControllerRevision records, and how that part is restored.
//
//   auto patch = api::apply_revision(nodeset, revision);     // the two objects, as the API server has them
//   if (patch && !patch->empty()) ...                        // a JSON merge patch of the NodeSet: kubectl patch --type=merge
//
// The revisions of a NodeSet are the ControllerRevisions that it owns. Their member `revision` has the number. The revision
// with the highest number is in force. If users restore an old spec, no revision is added: the old revision gets the highest
// number.
#pragma once

#include <string>
#include <vector>

#include "api/nodeset.hpp"
#include "core/json.hpp"
#include "core/result.hpp"

namespace api {

/// Removes the labels that contain the version of a Helm chart, because a new chart version alone must not replace any pod.
void drop_chart_versions(StringMap& labels);

/// Returns the data by which revisions are compared and hashed: {"spec": {template, slurmd, logfile, ssh, extraConf,
/// ordinalPadding, oversubscribeNode}}. Omits everything that does not change a worker: labels that contain a chart's version,
/// a disabled sshd, and empty fields of the pod and its containers.
core::Json revision_data(const NodeSetSpec& spec);

/// Returns the `data` of a ControllerRevision: revision_data, and also a disabled `ssh`, because an earlier release compares
/// `ssh` even if it is disabled.
core::Json recorded_data(const NodeSetSpec& spec);

/// Returns the label controller-revision-hash, ten characters. Every release returns the same hash for the same spec. The hash
/// depends on the spec with defaults, not on the pod: a release that builds different pods must not replace all workers.
std::string revision_hash(const NodeSetSpec& spec);

/// Returns the hash in force for a spec: the label controller-revision-hash of the newest of the NodeSet's `revisions` that
/// records this spec. If no revision records the spec, returns revision_hash(spec). If an earlier release has recorded the spec
/// under another hash, the workers of the spec have that hash as their label.
std::string hash_in_force(const NodeSetSpec& spec, std::vector<const core::Json*> revisions);

/// Returns the spec with the fields of revision_data replaced by those of a ControllerRevision. Error: kInvalid if the data of
/// the ControllerRevision are missing or invalid.
core::Result<NodeSetSpec> with_revision(NodeSetSpec spec, const core::Json& revision);

/// Returns the JSON merge patch that restores the part of a NodeSet's spec that a ControllerRevision records; empty if nothing
/// differs. The rest of the spec (replicas, updateStrategy ...) stays. Error: kInvalid if either object is invalid.
core::Result<core::Json> apply_revision(const core::Json& nodeset, const core::Json& revision);

}  // namespace api
