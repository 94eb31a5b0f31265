#include "slurm/rest/decode.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/hostlist.hpp"
#include "slurm/rest/reader.hpp"

namespace slurm {
namespace {

constexpr std::array<std::string_view, 7> kNodeBases{"ALLOCATED", "DOWN", "ERROR", "FUTURE", "IDLE", "MIXED", "UNKNOWN"};
constexpr std::array<std::string_view, 13> kJobBases{"PENDING",  "RUNNING",       "SUSPENDED", "COMPLETED", "CANCELLED",
                                                     "FAILED",   "TIMEOUT",       "NODE_FAIL", "PREEMPTED", "BOOT_FAIL",
                                                     "DEADLINE", "OUT_OF_MEMORY", "REVOKED"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& words, std::string_view word) {
  for (const std::string_view w : words) {
    if (w == word) return true;
  }
  return false;
}

Node node_of(od::object object) {
  Node node;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "name") {
      node.name = text_of(value);
    } else if (key == "state") {
      for_words(value, [&](std::string_view word) {
        if (node.state.base.empty() && among(kNodeBases, word)) {
          node.state.base = word;
        } else {
          node.state.flags.emplace(word);
        }
      });
    } else if (key == "reason") {
      node.reason = text_of(value);
    } else if (key == "reason_changed_at") {
      node.reason_time = time_of(value);
    } else if (key == "comment") {
      node.comment = text_of(value);
    } else if (key == "address") {
      node.address = text_of(value);
    } else if (key == "hostname") {
      node.hostname = text_of(value);
    } else if (key == "features") {
      node.features = words_of(value);
    } else if (key == "active_features") {
      node.active_features = words_of(value);
    } else if (key == "topology") {
      node.topology = text_of(value);
    } else if (key == "reservation") {
      node.reservation = text_of(value);
    } else if (key == "gres") {
      node.gres = text_of(value);
    } else if (key == "partitions") {
      node.partitions = words_of(value);
    } else if (key == "extra") {
      node.extra = text_of(value);
    } else if (key == "instance_id") {
      node.instance_id = text_of(value);
    } else if (key == "version") {
      node.version = text_of(value);
    } else if (key == "slurmd_start_time") {
      node.slurmd_start_time = time_of(value);
    } else if (key == "boot_time") {
      node.boot_time = time_of(value);
    } else if (key == "cpus") {
      node.cpus = integer_of(value);
    } else if (key == "weight") {
      node.weight = integer_of(value);
    } else if (key == "real_memory") {
      node.real_memory_mib = integer_of(value);
    }
  }
  if (node.name.empty()) throw Nonsense{"a node without a name"};
  // UNKNOWN is Slurm's own name for an unknown state. Such a row only proves that the node exists.
  if (node.state.base.empty()) node.state.base = "UNKNOWN";
  return node;
}

void add_name(std::vector<std::string>& names, std::string_view name) {
  if (!name.empty() && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

/// Adds the names in "matlab:2,idl" or, for alternatives, "matlab|idl".
void add_licenses(std::vector<std::string>& names, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(",;|"), text.size());
    add_name(names, text.substr(0, std::min(end, text.find_first_of(":("))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// Adds the names in "cpu=1,gres/gpu:tesla=2" and "gres/gpu:1,gres/shard:4".
void add_gres(std::vector<std::string>& names, std::string_view text) {
  constexpr std::string_view kGres = "gres/";
  for (std::size_t at = text.find(kGres); at != std::string_view::npos; at = text.find(kGres)) {
    text.remove_prefix(at + kGres.size());
    add_name(names, text.substr(0, text.find_first_of(":=,")));
  }
}

void read_detail(std::string_view key, od::value value, JobDetails& details) {
  if (key == "user_name") {
    details.user = text_of(value);
  } else if (key == "admin_comment") {
    details.admin_comment = text_of(value);
  } else if (key == "mcs_label") {
    details.mcs_label = text_of(value);
  } else if (key == "comment") {
    details.comment = text_of(value);
  } else if (key == "excluded_nodes") {
    details.excluded_nodes = text_of(value);
  } else if (key == "submit_time") {
    details.submitted = time_of(value);
  } else if (key == "preempt_time") {
    details.preempted = time_of(value);
  }
}

/// Reads the base state of a job, and its flags. `value`: a list of words.
void read_states(od::value& value, std::string& state, std::set<std::string, std::less<>>& flags) {
  for_words(value, [&](std::string_view word) {
    if (state.empty() && among(kJobBases, word)) {
      state = word;
    } else {
      flags.emplace(word);
    }
  });
}

/// Reads a row of GET jobs/state. In this reply the number of a job is a text: "12", or "12_3" for a task of an array.
JobState job_state_of(od::object object) {
  JobState out;
  std::set<std::string, std::less<>> flags;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "job_id") {
      const std::string_view text = text_of(value);
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.id);
      if (error != std::errc() || end != text.data() + text.size()) out.id = 0;
    } else if (key == "state") {
      read_states(value, out.state, flags);
    }
  }
  return out;
}

/// A job with an unreadable state counts as holding its nodes. A job with unreadable nodes counts as holding all nodes. Sets
/// `cluster` to the ClusterName in the row, if any. `details`: where to store the details, or null.
Job job_of(od::object object, std::string& cluster, JobDetails* details) {
  Job job;
  std::optional<core::WallTime> end;
  Number limit;
  std::string nodes;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "job_id") {
      job.id = integer_of(value);
    } else if (key == "cluster") {
      if (const std::string_view name = text_of(value); name != cluster) cluster = name;
    } else if (key == "job_state") {
      read_states(value, job.state, job.flags);
    } else if (key == "state_reason") {
      const std::string_view reason = text_of(value);
      job.prolog = reason == "Prolog";
      if (details != nullptr) details->reason = reason;
    } else if (key == "partition") {
      job.partition = text_of(value);
    } else if (key == "licenses" || key == "licenses_allocated") {
      add_licenses(job.licenses, text_of(value));
    } else if (key.starts_with("tres_per_") || key == "tres_req_str" || key == "tres_alloc_str") {
      add_gres(job.gres, text_of(value));
    } else if (key == "nodes") {
      nodes = text_of(value);
    } else if (key == "required_nodes") {
      job.required_nodes = text_of(value);
    } else if (key == "start_time") {
      job.start = time_of(value);
    } else if (key == "end_time") {
      end = time_of(value);
    } else if (key == "time_limit") {
      limit = number_of(value);
    } else if (key == "array_job_id") {
      if (const Number number = number_of(value); const auto* id = std::get_if<std::int64_t>(&number)) job.array = *id;
    } else if (key == "array_task_id") {
      if (const Number number = number_of(value); const auto* task = std::get_if<std::int64_t>(&number)) job.task = *task;
    } else if (key == "batch_flag") {
      job.batch = truth_of(value);
    } else if (key == "requeue") {
      job.requeue = truth_of(value);
    } else if (key == "flags") {
      for_words(value, [&](std::string_view word) {
        job.stepmgr = job.stepmgr || word == "STEPMGR_ENABLED";
        if (details != nullptr) details->external = details->external || word == "EXTERNAL_JOB";
      });
    } else if (details != nullptr) {
      read_detail(key, value, *details);
    }
  }
  // Expands node lists only for jobs that hold nodes, because slurmctld remembers thousands of ended jobs, each with up to
  // thousands of nodes. Also expands the nodes of an ended external job, because its pod may still run there.
  const bool external = details != nullptr && details->external && job.state != "PENDING";
  if (job.holds_nodes() || external) {
    if (auto names = core::expand_hostlist(nodes)) {
      job.nodes = *std::move(names);
    } else {
      job.nodes_unknown = true;
    }
  }
  // -w can name more nodes than the job gets by -N. When Slurm is reconfigured, it looks up all named nodes. If one of these
  // nodes is gone, Slurm fails the job, even a running job (_sync_detail_bitmaps).
  if (job.holds_nodes() && !job.required_nodes.empty() && job.required_nodes != nodes) {
    if (auto named = core::expand_hostlist(job.required_nodes)) {
      const std::set<std::string, std::less<>> held(job.nodes.begin(), job.nodes.end());
      std::erase_if(*named, [&](const std::string& name) { return held.contains(name); });
      job.only_named = named->size();
      job.nodes.insert(job.nodes.end(), named->begin(), named->end());
    }
  }
  job.prolog = job.prolog && job.state == "RUNNING";
  if (job.state != "PENDING") job.required_nodes.clear();
  job.required_nodes.shrink_to_fit();
  // If a running or suspended job has no time limit, Slurm reports an end in the far future. Such a job has no end here.
  const bool open_ended = std::holds_alternative<Infinite>(limit) && (job.state == "RUNNING" || job.state == "SUSPENDED");
  if (!open_ended) job.end = end;
  if (job.state == "PENDING" && details == nullptr) job.start = job.end = {};
  return job;
}

Partition partition_of(od::object object) {
  Partition partition;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "name") {
      partition.name = text_of(value);
    } else if (key == "nodes" && value.type() == od::json_type::object) {
      for (auto inner : value.get_object()) {
        if (std::string_view(inner.unescaped_key()) == "configured") partition.nodes = text_of(inner.value());
      }
    } else if (key == "partition" && value.type() == od::json_type::object) {
      for (auto inner : value.get_object()) {
        if (std::string_view(inner.unescaped_key()) != "state") continue;
        for_words(inner.value(), [&](std::string_view word) {
          if (partition.state.empty()) partition.state = word;
        });
      }
    } else if (key == "flags") {
      for_words(value, [&](std::string_view word) { partition.hidden = partition.hidden || word == "HIDDEN"; });
    }
  }
  if (partition.name.empty()) throw Nonsense{"a partition without a name"};
  return partition;
}

/// Decodes a reservation. A reservation with unreadable nodes counts as a reservation of all nodes.
Reservation reservation_of(od::object object) {
  Reservation out;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "name") {
      out.name = text_of(value);
    } else if (key == "users") {
      out.users = text_of(value);
    } else if (key == "node_list") {
      if (auto names = core::expand_hostlist(text_of(value))) {
        out.nodes = *std::move(names);
      } else {
        out.nodes_unknown = true;
      }
    } else if (key == "flags") {
      for_words(value, [&](std::string_view word) { out.flags.emplace(word); });
    } else if (key == "start_time") {
      out.start = time_of(value);
    } else if (key == "end_time") {
      out.end = time_of(value);
    }
  }
  if (out.name.empty()) throw Nonsense{"a reservation without a name"};
  return out;
}

bool says(od::value value, std::string_view word) {
  if (value.type() == od::json_type::boolean) return value.get_bool();
  return text_of(value) == word;
}

Ping ping_of(od::object object, const Spelling& spelling) {
  Ping ping;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "hostname") {
      ping.hostname = text_of(value);
    } else if (key == spelling.ping_up) {
      ping.responding = says(value, "UP");
    } else if (key == spelling.ping_role) {
      ping.primary = says(value, "primary");
    }
  }
  return ping;
}

Diag diag_of(od::object object) {
  Diag diag;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "server_thread_count") {
      diag.server_threads = integer_of(value);
    } else if (key == "agent_queue_size") {
      diag.agent_queue = integer_of(value);
    } else if (key == "jobs_running") {
      diag.jobs_running = integer_of(value);
    } else if (key == "jobs_pending") {
      diag.jobs_pending = integer_of(value);
    }
  }
  return diag;
}

}  // namespace

core::Result<Decoded<Node>> decode_nodes(std::string body) {
  return decode_list<Node>(std::move(body), "nodes", [](od::object object) { return node_of(object); });
}

core::Result<Decoded<Job>> decode_jobs(std::string body, bool details) {
  std::int64_t unnumbered = 0;
  std::string cluster;
  auto out = decode_list<Job>(std::move(body), "jobs", [&](od::object object) {
    const auto more = details ? std::make_shared<JobDetails>() : nullptr;
    Job job = job_of(object, cluster, more.get());
    job.details = JobDetailsPtr(more);
    if (job.id <= 0) job.id = --unnumbered;
    return job;
  });
  if (out) out->envelope.slurmctld_cluster = std::move(cluster);
  return out;
}

core::Result<Decoded<JobState>> decode_job_states(std::string body) {
  return decode_list<JobState>(std::move(body), "jobs", [](od::object object) { return job_state_of(object); });
}

core::Result<Decoded<Partition>> decode_partitions(std::string body) {
  return decode_list<Partition>(std::move(body), "partitions", [](od::object object) { return partition_of(object); });
}

core::Result<Decoded<Reservation>> decode_reservations(std::string body) {
  return decode_list<Reservation>(std::move(body), "reservations", [](od::object object) { return reservation_of(object); });
}

core::Result<Decoded<Ping>> decode_pings(std::string body, const Spelling& spelling) {
  return decode_list<Ping>(std::move(body), "pings", [&](od::object object) { return ping_of(object, spelling); });
}

core::Result<Decoded<Diag>> decode_diag(std::string body) {
  Decoded<Diag> out;
  const auto read = read_document(body, &out.envelope, [&](std::string_view key, od::value value) {
    if (key != "statistics" || value.type() != od::json_type::object) return;
    out.present = true;
    out.rows.push_back(std::make_shared<const Diag>(diag_of(value.get_object())));
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

core::Result<Decoded<LoadedConf>> decode_conf(std::string body) {
  Decoded<LoadedConf> out;
  const auto read = read_document(body, &out.envelope, [&](std::string_view key, od::value value) {
    if (key != "slurm_conf" || value.type() != od::json_type::object) return;
    out.present = true;
    out.rows.push_back(std::make_shared<const LoadedConf>());
    for (auto field : value.get_object()) {
      if (std::string_view(field.unescaped_key()) == "ClusterName") out.envelope.slurmctld_cluster = text_of(field.value());
    }
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

core::Result<Envelope> decode_envelope(std::string body) {
  Envelope out;
  bool marked = false;
  const auto read = read_document(body, nullptr, [&](std::string_view key, od::value value) {
    if (key == "errors") {
      marked = true;
      read_errors(value, out);
    } else if (key == "warnings") {
      read_warnings(value, out);
    } else if (key == "meta") {
      marked = true;
      read_meta(value, out);
    } else if (key == "job_id") {
      out.job_id = integer_of(value);
    }
  });
  if (!read) return std::unexpected(read.error());
  if (!marked) return core::fail(core::ErrorCode::kInternal, "a reply that is not slurmrestd's");
  return out;
}

bool Paths::has(std::string_view path, std::string_view method) const {
  const auto it = methods.find(path);
  return it != methods.end() && it->second.contains(std::string(method));
}

core::Result<Paths> decode_paths(std::string body) {
  Paths out;
  const auto read_info = [&](od::object info) {
    std::string version;
    for (auto field : info) {
      const std::string_view key = field.unescaped_key();
      od::value value = field.value();
      if (key == "version") {
        version = text_of(value);
      } else if (key == "x-slurm" && value.type() == od::json_type::object) {
        for (auto inner : value.get_object()) {
          if (std::string_view(inner.unescaped_key()) == "release") out.release = text_of(inner.value());
        }
      }
    }
    // Before 26.05, the version is in this form: "Slurm-24.11.5&openapi/slurmctld".
    if (out.release.empty() && version.starts_with("Slurm-")) out.release = version.substr(6, version.find('&') - 6);
  };
  const auto read = read_document(body, nullptr, [&](std::string_view key, od::value value) {
    if (key == "info") read_info(value.get_object());
    if (key != "paths") return;
    for (auto path : value.get_object()) {
      std::string name(std::string_view(path.unescaped_key()));
      while (name.ends_with('/')) name.pop_back();
      auto& methods = out.methods[name];
      for (auto method : path.value().get_object()) methods.emplace(std::string_view(method.unescaped_key()));
    }
  });
  if (!read) return std::unexpected(read.error());
  if (out.methods.empty()) return core::fail(core::ErrorCode::kInternal, "/openapi/v3 lists no paths");
  return out;
}

}  // namespace slurm
