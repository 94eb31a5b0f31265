// The messages between agents, administrators and the coordinator: JSON over HTTPS. Unknown members are ignored, so that
// different versions can talk to each other.
//
// Listener for joining (the client presents its own key; the token contains the fingerprint of the server's key):
//   POST /v1/join        JoinRequest -> JoinReply. 401 bad token, 409 a conflict, such as a key that has joined another pool,
//                        429 too many bad tokens, 503 Slurm does not answer, 422 anything else.
// Listener for agents and administrators (mutual TLS with registered keys):
//   POST /v1/sync        Sync -> SyncReply. Waits up to `wait_ms` for a revision other than `revision`. Agents only.
//   GET  /v1/key         the auth key: {"file": "slurm.key", "revision": "...", "content": base64}. Agents only.
//   POST /v1/leave       the node of the agent leaves. Agents only.
//   GET  /v1/pools, POST /v1/pools   administrators only, as all requests below
//   POST /v1/pools/remove {"name": "gpu", "force": false}
//   GET  /v1/nodes
//   POST /v1/nodes/leave {"nodes": ["gpu-1"], "force": false}; /keep, /revoke and /resume have only "nodes"
//   POST /v1/nodes/config {"nodes": ["gpu-1"], "conf": "Weight=5"}: the parameters for --conf of one node
//   POST /v1/nodes/drain {"nodes": ["gpu-1"], "reason": "fan"}
//   POST /v1/jobs/end    {"node": "gpu-1"} or {"pool": "gpu"} -> {"jobs": [{"job", "name", "user", "partition", "nodes",
//                        "error"?}]}
//   GET  /v1/rotation    the rotation of the auth key: {"phase": "Sign", "running": true, "hosts": [{"host", "why",
//                        "acknowledge", "here"}], "holders": [{"host", "what"}], "waits"?, "problem"?, "refusal"?, "result"?,
//                        ...}
//   POST /v1/rotation    {"also": ["login1"], "lifetime_s": 0} begins a rotation. Each POST answers like GET. Names may be
//                        hostlists.
//   POST /v1/rotation/acknowledge {"hosts": ["login1"], "phase": "Sign"}, /without {"nodes": ["gpu-1"]}, /abandon {}
//   POST /v1/tokens      {"pool": "gpu", "valid_for_s": 3600, "uses": 1} -> {"token": "enlist1_..."}
// An error has a body {"error": "one line"}.
#pragma once

#include <string>

#include "core/json.hpp"
#include "core/result.hpp"
#include "enlist/rules/model.hpp"

namespace enlist {

struct JoinRequest {
  std::string secret;  ///< The secret of the token.
  std::string hostname;
  std::string slurm_version;
  std::string conf;  ///< The result of detected_conf(). The coordinator refuses the join if it cannot work.
  /// The revisions (key_revision) of a slurm.key and a slurm.jwks on the host that slurm-enlist has not written. "": none.
  std::string plain_key{}, jwks{};
  friend bool operator==(const JoinRequest&, const JoinRequest&) = default;
};
struct JoinReply {
  std::string node, pool, cluster;
  std::uint16_t port = 0;  ///< The port of the listener for agents, on the same host.
  friend bool operator==(const JoinReply&, const JoinReply&) = default;
};
struct Sync {
  Report report;
  std::string revision{};  ///< SyncReply::revision of the last reply that the agent has; "": none.
  int wait_ms = 0;         ///< 0 to 30,000.
  friend bool operator==(const Sync&, const Sync&) = default;
};
struct SyncReply {
  Desired desired;
  /// A digest of the rest of the reply. So an agent that waits gets a new phase or message at once.
  std::string revision{};
  std::string phase{};    ///< to_string(Phase). A text, because a newer coordinator can have more phases.
  std::string message{};  ///< Why the node is in this phase: one line for people.
};

/// to_json() returns the JSON of a message, and from_json() parses it. Error: kInvalid with the member's name, without any
/// value. Members whose declaration has an initializer may be missing. Write the text with core::canonical, because lines from
/// programs can have invalid UTF-8, for which nlohmann's dump() throws.
core::Json to_json(const Pool& pool);
core::Json to_json(const Node& node);
core::Json to_json(const Token& token);
core::Json to_json(const Report& report);
core::Json to_json(const Desired& desired);
core::Json to_json(const JoinRequest& request);
core::Json to_json(const JoinReply& reply);
core::Json to_json(const Sync& sync);
core::Json to_json(const SyncReply& reply);
template <class T>
core::Result<T> from_json(const core::Json& json);  ///< `T`: one of the types above.

}  // namespace enlist
