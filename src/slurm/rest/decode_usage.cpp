#include "slurm/rest/decode_usage.hpp"

#include <utility>

#include "slurm/rest/reader.hpp"

namespace slurm {
namespace {

using accounting::PartitionRules;
using accounting::QueuedJob;
using accounting::Share;

std::optional<std::int64_t> whole_of(od::value value) {
  const Number number = number_of(value);
  const auto* whole = std::get_if<std::int64_t>(&number);
  return whole == nullptr ? std::nullopt : std::optional(*whole);
}

void take_states(QueuedJob& job, od::value value) {
  for_words(value, [&](std::string_view word) {
    // Slurm lists the base state first.
    if (job.state.empty()) {
      job.state = word;
    } else {
      job.flags.emplace(word);
    }
  });
}

/// Reads a field to which slurmctld and slurmdbd give the same name. Returns false for all other fields.
bool take_common(QueuedJob& job, std::string_view path, od::value value) {
  if (path == "job_id") {
    job.id = integer_of(value);
  } else if (path == "name") {
    job.name = text_of(value);
  } else if (path == "cluster") {
    job.cluster = text_of(value);
  } else if (path == "account") {
    job.account = text_of(value);
  } else if (path == "qos") {
    job.qos = text_of(value);
  } else if (path == "partition") {
    job.partition = text_of(value);
  } else if (path == "nodes") {
    job.nodes = text_of(value);
  } else if (path == "priority") {
    job.priority = number_of(value);
  } else if (path == "licenses") {
    job.licenses = text_of(value);
  } else if (path == "exit_code/return_code") {
    job.exit_code = whole_of(value).value_or(0);
  } else {
    return false;
  }
  return true;
}

QueuedJob queued_job_of(od::object object) {
  QueuedJob job;
  walk(object, "", [&](std::string_view path, od::value value) {
    if (path == "array_job_id") {
      job.array = whole_of(value).value_or(0);
    } else if (path == "array_task_id") {
      job.task = whole_of(value);
    } else if (path == "array_task_string") {
      job.tasks = text_of(value);
    } else if (path == "user_name") {
      job.user = text_of(value);
    } else if (path == "job_state") {
      take_states(job, value);
    } else if (path == "state_reason") {
      job.reason = text_of(value);
    } else if (path == "state_description") {
      job.description = text_of(value);
    } else if (path == "tres_req_str") {
      job.asks = accounting::read_tres(text_of(value));
    } else if (path == "tres_alloc_str") {
      job.has = accounting::read_tres(text_of(value));
    } else if (path == "time_limit") {
      job.time_limit = number_of(value);
    } else if (path == "submit_time") {
      job.submitted = time_of(value);
    } else if (path == "eligible_time") {
      job.eligible = time_of(value);
    } else if (path == "start_time") {
      job.start = time_of(value);
    } else if (path == "end_time") {
      job.end = time_of(value);
    } else if (path == "dependency") {
      job.dependency = text_of(value);
    } else if (path == "resv_name") {
      job.reservation = text_of(value);
    } else if (path == "required_nodes") {
      job.required_nodes = text_of(value);
    } else {
      return take_common(job, path, value);
    }
    return true;
  });
  if (job.id <= 0) throw Nonsense{"a job without a number"};
  return job;
}

QueuedJob ended_job_of(od::object object) {
  QueuedJob job;
  walk(object, "", [&](std::string_view path, od::value value) {
    // The steps of a job are not jobs.
    if (path == "steps") return true;
    if (path == "array/job_id") {
      job.array = integer_of(value);
    } else if (path == "array/task_id") {
      job.task = whole_of(value);
    } else if (path == "user") {
      job.user = text_of(value);
    } else if (path == "state/current") {
      take_states(job, value);
    } else if (path == "state/reason") {
      job.reason = text_of(value);
    } else if (path == "time/limit") {
      job.time_limit = number_of(value);
    } else if (path == "time/submission") {
      job.submitted = time_of(value);
    } else if (path == "time/start") {
      job.start = time_of(value);
    } else if (path == "time/end") {
      job.end = time_of(value);
    } else {
      return take_common(job, path, value);
    }
    return true;
  });
  if (job.id <= 0) throw Nonsense{"a job without a number"};
  return job;
}

/// Reads [{"name": "cpu", "value": 21.9}].
std::map<std::string, double, std::less<>> seconds_of(od::value value) {
  std::map<std::string, double, std::less<>> out;
  if (value.type() != od::json_type::array) return out;
  for (auto item : value.get_array()) {
    std::string name;
    std::optional<double> seconds;
    for (auto field : item.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "name") name = text_of(field.value());
      if (key == "value") seconds = fraction_of(field.value());
    }
    if (!name.empty() && seconds) out[name] = *seconds;
  }
  return out;
}

Share share_of(od::object object) {
  Share out;
  walk(object, "", [&](std::string_view path, od::value value) {
    if (path == "cluster") {
      out.cluster = text_of(value);
    } else if (path == "name") {
      out.name = text_of(value);
    } else if (path == "parent") {
      out.parent = text_of(value);
    } else if (path == "partition") {
      out.partition = text_of(value);
    } else if (path == "effective_usage") {
      out.usage = fraction_of(value);
    } else if (path == "fairshare/factor") {
      out.factor = fraction_of(value);
    } else if (path == "tres/usage") {
      out.tres_seconds = seconds_of(value);
    } else if (path == "type") {
      for_words(value, [&](std::string_view word) { out.is_user = out.is_user || word == "USER"; });
    } else {
      // Descends into these two objects, which contain the numbers above.
      return path != "tres" && path != "fairshare";
    }
    return true;
  });
  if (out.name.empty()) throw Nonsense{"a share without a name"};
  return out;
}

PartitionRules partition_rules_of(od::object object) {
  PartitionRules out;
  walk(object, "", [&](std::string_view path, od::value value) {
    if (path == "name") {
      out.name = text_of(value);
    } else if (path == "qos/assigned") {
      out.qos = text_of(value);
    } else if (path == "maximums/time") {
      out.max_minutes = number_of(value);
    } else if (path == "maximums/nodes") {
      out.max_nodes = number_of(value);
    } else if (path == "minimums/nodes") {
      out.min_nodes = integer_of(value);
    } else if (path == "defaults/time") {
      out.default_minutes = number_of(value);
    } else if (path == "partition/state") {
      for_words(value, [&](std::string_view word) {
        if (out.state.empty()) out.state = word;
      });
    } else {
      return false;
    }
    return true;
  });
  if (out.name.empty()) throw Nonsense{"a partition without a name"};
  return out;
}

}  // namespace

core::Result<Decoded<QueuedJob>> decode_queue(std::string body) {
  return decode_list<QueuedJob>(std::move(body), "jobs", queued_job_of);
}

core::Result<Decoded<QueuedJob>> decode_ended_jobs(std::string body) {
  return decode_list<QueuedJob>(std::move(body), "jobs", ended_job_of);
}

core::Result<Decoded<Share>> decode_shares(std::string body) {
  Decoded<Share> out;
  const auto read = read_document(body, &out.envelope, [&](std::string_view key, od::value value) {
    if (key != "shares" || value.type() != od::json_type::object) return;
    for (auto field : value.get_object()) {
      const bool list = std::string_view(field.unescaped_key()) == "shares";
      od::value shares = field.value();
      if (!list || shares.type() != od::json_type::array) continue;
      out.present = true;
      for (auto item : shares.get_array()) out.rows.push_back(std::make_shared<const Share>(share_of(item.get_object())));
    }
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

core::Result<Decoded<PartitionRules>> decode_partition_rules(std::string body) {
  return decode_list<PartitionRules>(std::move(body), "partitions", partition_rules_of);
}

}  // namespace slurm
