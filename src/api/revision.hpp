// Revisions of a NodeSet: what a ControllerRevision records of a spec, and how it is put back.
//
//   auto patch = api::apply_revision(nodeset, revision);     // the two objects, as the API server has them
//   if (patch && !patch->empty()) ...                        // a JSON merge patch of the NodeSet: kubectl patch --type=merge
//
// The revisions of a NodeSet are the ControllerRevisions that it owns; `revision` is their order, and the newest is in force. A
// NodeSet whose spec was put back gets no other revision: the one that it had becomes the newest.
#pragma once

#include <string>
#include <vector>

#include "api/nodeset.hpp"
#include "core/json.hpp"
#include "core/result.hpp"

namespace api {

/// Takes out the labels that tell the version of a chart: with another version of it alone, no pod is replaced.
void drop_chart_versions(StringMap& labels);

/// What revisions are compared and hashed by: {"spec": {template, slurmd, logfile, ssh, extraConf, ordinalPadding,
/// oversubscribeNode}}, all that makes a worker. Left out is what makes no other worker: labels by which a chart says who it
/// is, fields of the pod and its containers that are set to nothing, and an sshd that is not to run.
core::Json revision_data(const NodeSetSpec& spec);

/// What a ControllerRevision has as `data`: the same, with an sshd that is not to run, for an earlier release compares that.
core::Json recorded_data(const NodeSetSpec& spec);

/// The label controller-revision-hash: ten characters. It is made of what users wrote (with defaults), never of the pod that we
/// build of it: a later release that builds another pod must not replace every worker. Its value is an interface.
std::string revision_hash(const NodeSetSpec& spec);

/// The hash that is in force: of the newest of the NodeSet's ControllerRevisions that records this spec, or of the spec, if
/// there is none yet. An earlier release may have recorded it under another hash, which its workers have as a label.
std::string hash_in_force(const NodeSetSpec& spec, std::vector<const core::Json*> revisions);

/// The spec with the data of a ControllerRevision in the place of its own. Error: kInvalid; it has no such data.
core::Result<NodeSetSpec> with_revision(NodeSetSpec spec, const core::Json& revision);

/// What makes the spec of a NodeSet the one that a ControllerRevision records: a JSON merge patch of the NodeSet, empty where
/// nothing differs. All else of the spec (replicas, updateStrategy ...) stays. Error: kInvalid.
core::Result<core::Json> apply_revision(const core::Json& nodeset, const core::Json& revision);

}  // namespace api
