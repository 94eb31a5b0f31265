#include "slurm/rest/decode.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/hostlist.hpp"

namespace slurm {
namespace {

namespace od = simdjson::ondemand;

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

/// The length of the well-formed UTF-8 sequence at `at`, by the table of the Unicode standard; 0: there is none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t ahead) {
    return at + ahead < text.size() ? static_cast<unsigned char>(text[at + ahead]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2 ? 0U : first < 0xe0 ? 2U : first < 0xf0 ? 3U : first < 0xf5 ? 4U : 0U;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return length;
}

/// Users write into replies: Slurm passes on the bytes of a job's name as they are. What is no UTF-8 becomes '?', and a control
/// character a space, so that one job cannot make the whole table unreadable.
void repair(std::string& body) {
  for (std::size_t at = 0; at < body.size();) {
    const std::size_t length = utf8_length(body, at);
    if (length == 0) body[at] = '?';
    if (static_cast<unsigned char>(body[at]) < ' ') body[at] = ' ';
    at += std::max<std::size_t>(length, 1);
  }
}

/// "?" for a text whose escapes stand for nothing.
std::string_view text_of(od::value value) {
  std::string_view text;
  if (value.type() != od::json_type::string) return {};
  return value.get_string().get(text) == simdjson::SUCCESS ? text : "?";
}

/// 0 for what is no number, or a greater one than we have room for.
std::int64_t integer_of(od::value value) {
  od::number number;
  if (value.type() != od::json_type::number || value.get_number().get(number) != simdjson::SUCCESS) return 0;
  const double as_double = number.as_double();
  if (as_double >= 9.2e18 || as_double <= -9.2e18) return 0;
  return number.is_double() ? static_cast<std::int64_t>(as_double) : number.get_int64();
}

bool truth_of(od::value value) {
  return value.type() == od::json_type::boolean && value.get_bool();
}

/// {set, infinite, number}, or a plain number of older data_parsers. An infinite one is dumped with set false.
Number number_of(od::value value) {
  const od::json_type type = value.type();
  if (type == od::json_type::number) return integer_of(value);
  if (type != od::json_type::object) return Unset{};
  bool set = false;
  bool infinite = false;
  std::int64_t number = 0;
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    if (key == "set") set = truth_of(field.value());
    if (key == "infinite") infinite = truth_of(field.value());
    if (key == "number") number = integer_of(field.value());
  }
  if (infinite) return Infinite{};
  if (!set) return Unset{};
  return number;
}

std::optional<core::WallTime> time_of(od::value value) {
  const Number number = number_of(value);
  const auto* seconds = std::get_if<std::int64_t>(&number);
  if (seconds == nullptr || *seconds <= 0) return std::nullopt;
  return core::WallTime{std::chrono::seconds{*seconds}};
}

/// Calls `each` for the words of an array, or for the one word that stands in its place.
template <class Each>
void for_words(od::value value, Each each) {
  const od::json_type type = value.type();
  if (type == od::json_type::string) {
    if (const std::string_view word = value.get_string(); !word.empty()) each(word);
  } else if (type == od::json_type::array) {
    for (auto item : value.get_array()) each(text_of(item.value()));
  }
}

std::vector<std::string> words_of(od::value value) {
  std::vector<std::string> out;
  for_words(value, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

/// A reading that came out wrong; only inside this file.
struct Nonsense {
  std::string what;
};

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
    } else if (key == "real_memory") {
      node.real_memory_mib = integer_of(value);
    }
  }
  if (node.name.empty()) throw Nonsense{"a node without a name"};
  // Slurm's own word for it. Nothing is concluded from it but that the node exists.
  if (node.state.base.empty()) node.state.base = "UNKNOWN";
  return node;
}

void add_name(std::vector<std::string>& names, std::string_view name) {
  if (!name.empty() && std::ranges::find(names, name) == names.end()) names.emplace_back(name);
}

/// "matlab:2,idl" or, where any of them will do, "matlab|idl".
void add_licenses(std::vector<std::string>& names, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(",;|"), text.size());
    add_name(names, text.substr(0, std::min(end, text.find_first_of(":("))));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// "cpu=1,gres/gpu:tesla=2" and "gres/gpu:1,gres/shard:4".
void add_gres(std::vector<std::string>& names, std::string_view text) {
  constexpr std::string_view kGres = "gres/";
  for (std::size_t at = text.find(kGres); at != std::string_view::npos; at = text.find(kGres)) {
    text.remove_prefix(at + kGres.size());
    add_name(names, text.substr(0, text.find_first_of(":=,")));
  }
}

/// A job whose state cannot be read holds its nodes; one whose nodes cannot be read, all of them.
Job job_of(od::object object) {
  Job job;
  std::optional<core::WallTime> end;
  Number limit;
  std::string nodes;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "job_id") {
      job.id = integer_of(value);
    } else if (key == "job_state") {
      for_words(value, [&](std::string_view word) {
        if (job.state.empty() && among(kJobBases, word)) {
          job.state = word;
        } else {
          job.flags.emplace(word);
        }
      });
    } else if (key == "user_name") {
      job.user = text_of(value);
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
    }
  }
  // slurmctld remembers ended jobs by the thousand, and each may have had thousands of nodes.
  if (job.holds_nodes()) {
    if (auto names = core::expand_hostlist(nodes)) {
      job.nodes = *std::move(names);
    } else {
      job.nodes_unknown = true;
    }
  }
  // -w may name more nodes than -N takes. Slurm looks all of them up again when it reconfigures, and fails a job, be it
  // running, if one is gone (_sync_detail_bitmaps).
  if (job.holds_nodes() && !job.required_nodes.empty() && job.required_nodes != nodes) {
    if (auto named = core::expand_hostlist(job.required_nodes)) {
      const std::set<std::string, std::less<>> held(job.nodes.begin(), job.nodes.end());
      std::erase_if(*named, [&](const std::string& name) { return held.contains(name); });
      job.nodes.insert(job.nodes.end(), named->begin(), named->end());
    }
  }
  if (job.state != "PENDING") job.required_nodes.clear();
  job.required_nodes.shrink_to_fit();
  // A job that has not ended and has no limit is given a far end by Slurm; it has none.
  const bool open_ended = std::holds_alternative<Infinite>(limit) && (job.state == "RUNNING" || job.state == "SUSPENDED");
  if (!open_ended) job.end = end;
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

void read_errors(od::value value, Envelope& envelope) {
  if (value.type() != od::json_type::array) return;
  for (auto item : value.get_array()) {
    RestError error;
    for (auto field : item.get_object()) {
      const std::string_view key = field.unescaped_key();
      if (key == "error_number") error.number = integer_of(field.value());
      if (key == "error") error.text = text_of(field.value());
      if (key == "description") error.description = text_of(field.value());
    }
    envelope.errors.push_back(std::move(error));
  }
}

void read_warnings(od::value value, Envelope& envelope) {
  if (value.type() != od::json_type::array) return;
  for (auto item : value.get_array()) {
    for (auto field : item.get_object()) {
      if (std::string_view(field.unescaped_key()) == "description") envelope.warnings.emplace_back(text_of(field.value()));
    }
  }
}

void read_meta(od::value value, Envelope& envelope) {
  if (value.type() != od::json_type::object) return;
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    od::value inner = field.value();
    if ((key != "slurm" && key != "Slurm") || inner.type() != od::json_type::object) continue;
    for (auto detail : inner.get_object()) {
      if (std::string_view(detail.unescaped_key()) == "release") envelope.release = text_of(detail.value());
    }
  }
}

/// Reads a whole document: the envelope here, all other keys by `each(key, value)`. What it throws becomes an error.
template <class Each>
core::Result<void> read_document(std::string& body, Envelope* envelope, Each each) {
  try {
    body.reserve(body.size() + simdjson::SIMDJSON_PADDING);
    const simdjson::padded_string_view text(body.data(), body.size(), body.capacity());
    od::parser parser;
    od::document document;
    simdjson::error_code error = parser.iterate(text).get(document);
    if (error == simdjson::UTF8_ERROR || error == simdjson::UNESCAPED_CHARS) {
      repair(body);
      error = parser.iterate(text).get(document);
    }
    if (error != simdjson::SUCCESS) throw simdjson::simdjson_error(error);
    od::object object = document.get_object();
    for (auto field : object) {
      const std::string_view key = field.unescaped_key();
      od::value value = field.value();
      if (envelope != nullptr && key == "errors") {
        read_errors(value, *envelope);
      } else if (envelope != nullptr && key == "warnings") {
        read_warnings(value, *envelope);
      } else if (envelope != nullptr && key == "meta") {
        read_meta(value, *envelope);
      } else {
        each(key, value);
      }
    }
    return {};
  } catch (const simdjson::simdjson_error& error) {
    return core::fail(core::ErrorCode::kInternal, std::string("a reply that does not read as JSON: ") + error.what());
  } catch (const Nonsense& nonsense) {
    return core::fail(core::ErrorCode::kInternal, "a reply that makes no sense: " + nonsense.what);
  }
}

template <class T, class RowOf>
core::Result<Decoded<T>> decode_list(std::string body, std::string_view list, RowOf row_of) {
  Decoded<T> out;
  const auto read = read_document(body, &out.envelope, [&](std::string_view key, od::value value) {
    if (key == "last_update") {
      const Number number = number_of(value);
      if (const auto* seconds = std::get_if<std::int64_t>(&number)) out.last_update = *seconds;
    } else if (key == list && value.type() == od::json_type::array) {
      out.present = true;
      for (auto item : value.get_array()) out.rows.push_back(std::make_shared<const T>(row_of(item.get_object())));
    }
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

}  // namespace

core::Result<Decoded<Node>> decode_nodes(std::string body) {
  return decode_list<Node>(std::move(body), "nodes", [](od::object object) { return node_of(object); });
}

core::Result<Decoded<Job>> decode_jobs(std::string body) {
  std::int64_t unnumbered = 0;
  return decode_list<Job>(std::move(body), "jobs", [&](od::object object) {
    Job job = job_of(object);
    if (job.id <= 0) job.id = --unnumbered;
    return job;
  });
}

core::Result<Decoded<Partition>> decode_partitions(std::string body) {
  return decode_list<Partition>(std::move(body), "partitions", [](od::object object) { return partition_of(object); });
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
    // Before 26.05: "Slurm-24.11.5&openapi/slurmctld".
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
