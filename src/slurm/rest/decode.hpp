// Decodes slurmrestd's replies in one pass into the neutral model. An incomplete table is an error, so that it is never taken
// for a complete table. A row without its name is an error too. Other malformed rows do not affect the rest: their text is
// repaired, and unreadable parts get the most restrictive value (a job that holds every node, a node of unknown state).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"
#include "slurm/model.hpp"
#include "slurm/reservation.hpp"
#include "slurm/rest/client.hpp"
#include "slurm/rest/errors.hpp"
#include "slurm/rest/spelling.hpp"

namespace slurm {

/// The part that all replies have besides their rows: errors, warnings, and facts about the server.
struct Envelope {
  std::vector<RestError> errors;
  std::vector<std::string> warnings;
  std::string release;  ///< The release of slurmrestd: "26.05.5".
  /// ClusterName according to slurmrestd's own slurm.conf, and according to slurmctld, which names it in jobs and in its loaded
  /// configuration. "" if the reply does not name it.
  std::string cluster{}, slurmctld_cluster{};
  std::int64_t job_id = 0;  ///< The number of the submitted job; 0: not given.
};

template <class T>
struct Decoded {
  Envelope envelope;
  bool present = false;  ///< The reply had the list, even if empty.
  std::int64_t last_update = 0;
  std::vector<std::shared_ptr<const T>> rows;
};

// These functions take `body` by value, because the JSON parser needs free space after the text. Their only error is kInternal.
core::Result<Decoded<Node>> decode_nodes(std::string body);
core::Result<Decoded<Job>> decode_jobs(std::string body, bool details = false);
core::Result<Decoded<JobState>> decode_job_states(std::string body);
core::Result<Decoded<Partition>> decode_partitions(std::string body);
core::Result<Decoded<Reservation>> decode_reservations(std::string body);
core::Result<Decoded<Ping>> decode_pings(std::string body, const Spelling& spelling);
core::Result<Decoded<Diag>> decode_diag(std::string body);
/// Decodes slurmctld's configuration. Only Envelope::slurmctld_cluster is read.
core::Result<Decoded<LoadedConf>> decode_conf(std::string body);
core::Result<Envelope> decode_envelope(std::string body);

/// The contents of /openapi/v3: paths without the last slash, with their methods in lower case, and the release if it is given.
struct Paths {
  std::map<std::string, std::set<std::string>, std::less<>> methods;
  std::string release;
  [[nodiscard]] bool has(std::string_view path, std::string_view method) const;
};
core::Result<Paths> decode_paths(std::string body);

}  // namespace slurm
