// Which version of the NodeSet a worker is of.
//
// The hash is over what users wrote (with defaults), never over the pod we build from it: a later release that builds another
// pod must not replace every worker. Its value is an interface, fixed by a golden test.
#pragma once

#include <string>

#include "api/nodeset.hpp"
#include "core/json.hpp"

namespace op::nodeset {

/// The inputs that make a worker: {"spec": {template, slurmd, logfile, ssh, extraConf, ordinalPadding, oversubscribeNode}}.
core::Json revision_data(const api::NodeSetSpec& spec);
/// The label controller-revision-hash: ten characters.
std::string revision_hash(const api::NodeSetSpec& spec);

}  // namespace op::nodeset
