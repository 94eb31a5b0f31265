#include "slurm/rest/client.hpp"

#include <algorithm>
#include <utility>

#include "slurm/rest/connection.hpp"
#include "slurm/rest/decode_accounting.hpp"
#include "slurm/rest/decode_usage.hpp"

namespace slurm {
namespace {

using core::ErrorCode;

constexpr int kInvalidJobId = 2017;  // ESLURM_INVALID_JOB_ID

core::Json whole(std::int64_t number) {
  return {{"set", true}, {"infinite", false}, {"number", number}};
}

/// Returns the names in the form that Slurm needs: it ignores an empty list, and takes a list with one empty name as no names.
std::vector<std::string> sent(const std::vector<std::string>& names) {
  return names.empty() ? std::vector<std::string>{""} : names;
}

core::Json body_of(const NodeUpdate& update) {
  core::Json body = core::Json::object();
  if (update.state) body["state"] = core::Json::array({*update.state});
  if (update.reason) body["reason"] = *update.reason;
  if (update.comment) body["comment"] = *update.comment;
  if (update.extra) body["extra"] = *update.extra;
  if (update.features) {
    // Slurm refuses to remove a feature that is still active.
    body["features"] = sent(*update.features);
    body["features_act"] = sent(update.active_features ? *update.active_features : *update.features);
  }
  if (update.topology) body["topology_str"] = *update.topology;
  if (update.weight) body["weight"] = {{"set", true}, {"infinite", false}, {"number", *update.weight}};
  return body;
}

core::Json body_of(const JobWish& wish) {
  core::Json body = to_json(wish);
  for (const char* key : {"memory_per_node", "priority", "time_limit"}) {
    if (body.contains(key)) body[key] = whole(body[key].get<std::int64_t>());
  }
  if (wish.nodes) body["nodes"] = std::to_string(*wish.nodes);
  // Slurm would ignore an empty list, and the job would keep its excluded nodes.
  if (wish.excluded_nodes && wish.excluded_nodes->empty()) body["excluded_nodes"] = "";
  return body;
}

/// Updates nodes one by one, for servers without batch updates. Returns the first error, but still tries the other nodes.
void write_each(Connection& connection, std::vector<std::string> names, NodeUpdate update, std::optional<core::Error> failed,
                Client::Done<void> done) {
  if (names.empty()) return failed ? done(std::unexpected(*failed)) : done({});
  const std::string path = "node/" + percent_encode(names.back());
  names.pop_back();
  connection.write(
      "POST", path, body_of(update),
      [&connection, names = std::move(names), update, failed = std::move(failed), done](core::Result<void> result) mutable {
        if (!result && !failed) failed = result.error();
        write_each(connection, std::move(names), std::move(update), std::move(failed), std::move(done));
      });
}

template <class Row>
void get_rows(Connection& connection, std::string path, Connection::ListDecoder<Row> decoder,
              AccountingClient::Done<Row> done) {
  const auto rows = [done = std::move(done)](core::Result<Table<Row>> table) {
    if (!table) return done(std::unexpected(table.error()));
    done(std::move(table->rows));
  };
  connection.get_table<Row>(std::move(path), {}, std::move(decoder), rows);
}

}  // namespace

Client::Client(core::Loop& loop, net::HttpTransport& transport, TokenSource& tokens, core::Logger& log, ClientOptions options)
    : connection_(std::make_shared<Connection>(loop, transport, tokens, log, std::move(options))), accounting_(connection_) {}

Client::~Client() {
  connection_->close();
}

void Client::connect(Done<Capabilities> done) {
  connection_->loop().after(core::Duration{0}, [weak = std::weak_ptr(connection_), done = std::move(done)] {
    const auto self = weak.lock();
    if (!self) return;
    self->with_server([impl = self.get(), done](core::Result<void> ready) {
      if (!ready) return done(std::unexpected(ready.error()));
      done(*impl->capabilities());
    });
  });
}

const Capabilities* Client::capabilities() const {
  return connection_->capabilities();
}

void Client::nodes(std::optional<std::int64_t> since, Done<Table<Node>> done) {
  connection_->get_table<Node>("nodes/", since, decode_nodes, std::move(done));
}

void Client::jobs(std::optional<std::int64_t> since, Done<Table<Job>> done) {
  const auto decoder = [details = connection_->job_details()](std::string body) {
    return decode_jobs(std::move(body), details);
  };
  connection_->get_table<Job>("jobs/", since, decoder, std::move(done));
}

void Client::job(std::int64_t id, Done<std::shared_ptr<const Job>> done) {
  const auto decoder = [details = connection_->job_details()](std::string body) {
    return decode_jobs(std::move(body), details);
  };
  connection_->get_list<Job>(
      "job/" + std::to_string(id), decoder, [id, done = std::move(done)](core::Result<Decoded<Job>> decoded, int status) {
        const std::string what = "job " + std::to_string(id);
        // HTTP 404 alone could also mean that slurmrestd lacks this path.
        const bool no_such =
            decoded && decoded->rows.empty() &&
            std::ranges::any_of(decoded->envelope.errors, [](const RestError& e) { return e.number == kInvalidJobId; });
        if (no_such) return done(core::fail(ErrorCode::kNotFound, what + " is not known to Slurm"));
        if (const auto good = Connection::sound(decoded, status); !good) {
          core::Error error = good.error().with(what);
          if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kUnsupported;
          return done(std::unexpected(std::move(error)));
        }
        if (decoded->rows.size() != 1 || decoded->rows.front()->id != id)
          return done(core::fail(ErrorCode::kInternal, what + ": slurmrestd's reply is about other jobs"));
        done(decoded->rows.front());
      });
}

void Client::job_states(Done<std::vector<std::shared_ptr<const JobState>>> done) {
  connection_->get_list<JobState>("jobs/state/", decode_job_states,
                                  [done = std::move(done)](core::Result<Decoded<JobState>> decoded, int status) {
                                    if (const auto good = Connection::sound(decoded, status); !good)
                                      return done(std::unexpected(good.error().with("jobs/state")));
                                    done(std::move(decoded->rows));
                                  });
}

void Client::partitions(std::optional<std::int64_t> since, Done<Table<Partition>> done) {
  connection_->get_table<Partition>("partitions/", since, decode_partitions, std::move(done));
}

void Client::reservations(Done<Table<Reservation>> done) {
  connection_->get_table<Reservation>("reservations/", {}, decode_reservations, std::move(done));
}

void Client::node(const std::string& name, Done<Node> done) {
  connection_->get_list<Node>(
      "node/" + percent_encode(name), decode_nodes,
      [name, done = std::move(done)](core::Result<Decoded<Node>> decoded, int status) {
        // For an unknown node, Slurm answers HTTP 200 with an error of number 0 and no nodes. An empty reply means another
        // error.
        const bool whole = decoded && (status == 200 || status == 404 || status == 422 || status == 500);
        const bool no_such = whole && decoded->rows.empty() &&
                             std::ranges::all_of(decoded->envelope.errors,
                                                 [](const RestError& e) { return e.number == 0 || e.number == 2018; }) &&
                             (!decoded->envelope.errors.empty() || (status == 200 && decoded->present));
        if (no_such) return done(core::fail(ErrorCode::kNotFound, "node " + name + " is not known to Slurm"));
        if (const auto good = Connection::sound(decoded, status); !good) {
          return done(std::unexpected(good.error().with("node " + name)));
        }
        const Node* row = decoded->rows.size() == 1 ? decoded->rows.front().get() : nullptr;
        // If slurmctld has no node of this name, it returns the node of the host with this name.
        if (row != nullptr && row->name != name && row->hostname == name) {
          return done(core::fail(ErrorCode::kConflict, "Slurm has no node " + name + ", but the slurmd of host " + name +
                                                           " has registered as " + row->name + ": drain " + row->name +
                                                           ", and end that slurmd, or its pod, when no job runs there"));
        }
        if (row == nullptr || row->name != name) {
          return done(core::fail(ErrorCode::kInternal, "node " + name + ": slurmrestd's reply is about other nodes"));
        }
        done(*row);
      });
}

void Client::job_uses(AccountingClient::Done<accounting::JobUse> done) {
  get_rows<accounting::JobUse>(*connection_, "jobs/", decode_job_uses, std::move(done));
}

void Client::queue(AccountingClient::Done<accounting::QueuedJob> done) {
  get_rows<accounting::QueuedJob>(*connection_, "jobs/", decode_queue, std::move(done));
}

void Client::shares(AccountingClient::Done<accounting::Share> done) {
  get_rows<accounting::Share>(*connection_, "shares", decode_shares, std::move(done));
}

void Client::partition_rules(AccountingClient::Done<accounting::PartitionRules> done) {
  get_rows<accounting::PartitionRules>(*connection_, "partitions/", decode_partition_rules, std::move(done));
}

void Client::ping(Done<std::vector<Ping>> done) {
  // The spelling is known only after negotiation.
  connection_->with_server([impl = connection_.get(), done = std::move(done)](core::Result<void> ready) {
    if (!ready) return done(std::unexpected(ready.error()));
    const auto decoder = [spelling = &impl->spelling()](std::string body) { return decode_pings(std::move(body), *spelling); };
    impl->get_list<Ping>("ping/", decoder, [done](core::Result<Decoded<Ping>> decoded, int status) {
      if (const auto good = Connection::sound(decoded, status); !good) return done(std::unexpected(good.error().with("ping")));
      std::vector<Ping> pings;
      for (const auto& row : decoded->rows) pings.push_back(*row);
      done(std::move(pings));
    });
  });
}

void Client::diag(Done<Diag> done) {
  connection_->get_list<Diag>("diag/", decode_diag, [done = std::move(done)](core::Result<Decoded<Diag>> decoded, int status) {
    if (const auto good = Connection::sound(decoded, status); !good) return done(std::unexpected(good.error().with("diag")));
    done(*decoded->rows.front());
  });
}

void Client::confirm_cluster(Done<void> done) {
  connection_->with_server([impl = connection_.get(), done = std::move(done)](core::Result<void> ready) {
    if (!ready || !impl->expects_cluster() || !impl->capabilities()->conf) return done({});
    impl->get_list<LoadedConf>("conf", decode_conf, [done](const core::Result<Decoded<LoadedConf>>& decoded, int) {
      if (!decoded && decoded.error().reason == kOtherCluster) return done(std::unexpected(decoded.error()));
      done({});
    });
  });
}

void Client::update_node(const std::string& name, const NodeUpdate& update, Done<void> done) {
  connection_->write("POST", "node/" + percent_encode(name), body_of(update), std::move(done));
}

void Client::update_nodes(const std::vector<std::string>& names, const NodeUpdate& update, Done<void> done) {
  std::vector<std::string> reversed(names.rbegin(), names.rend());
  connection_->with_server([impl = connection_.get(), names = std::move(reversed), update = NodeUpdate(update),
                            done = std::move(done)](core::Result<void> ready) mutable {
    if (!ready) return done(std::unexpected(ready.error()));
    if (!impl->capabilities()->batch_node_update || names.size() == 1) {
      return write_each(*impl, std::move(names), std::move(update), {}, std::move(done));
    }
    core::Json body = body_of(update);
    body["name"] = names;
    impl->write("POST", "nodes/", std::move(body), std::move(done));
  });
}

void Client::delete_node(const std::string& name, Done<void> done) {
  connection_->write("DELETE", "node/" + percent_encode(name), nullptr, std::move(done));
}

void Client::create_node(const std::string& line, Done<void> done) {
  connection_->with_server([impl = connection_.get(), line, done = std::move(done)](core::Result<void> ready) mutable {
    if (!ready) return done(std::unexpected(ready.error()));
    if (!impl->capabilities()->external_jobs) {
      return done(core::fail(ErrorCode::kUnsupported, "slurmrestd " + impl->capabilities()->release +
                                                          " cannot create external nodes (25.11 and later can)"));
    }
    impl->write("POST", "new/node/", {{"node_conf", line}}, std::move(done));
  });
}

void Client::submit_job(const JobWish& wish, const std::string& admin_comment, Done<std::int64_t> done) {
  core::Json job = body_of(wish);
  job["admin_comment"] = admin_comment;
  job["flags"] = core::Json::array({"EXTERNAL_JOB"});
  const auto answered = [done = std::move(done)](const core::Result<Envelope>& reply) {
    if (!reply) return done(std::unexpected(reply.error()));
    if (reply->job_id <= 0) return done(core::fail(ErrorCode::kUnknownOutcome, "the reply has no job number"));
    done(reply->job_id);
  };
  connection_->write_for_reply("POST", "job/submit", {{"job", std::move(job)}}, answered);
}

void Client::update_job(std::int64_t id, const JobWish& wish, Done<void> done) {
  connection_->write("POST", "job/" + std::to_string(id), body_of(wish), std::move(done));
}

bool Client::job_details() const {
  return connection_->job_details();
}

void Client::cancel_job(const std::string& id, Done<void> done) {
  connection_->write("DELETE", "job/" + percent_encode(id), nullptr, std::move(done));
}

void Client::requeue_job(const std::string& id, Done<void> done) {
  connection_->with_server([impl = connection_.get(), id, done = std::move(done)](core::Result<void> ready) mutable {
    if (!ready) return done(std::unexpected(ready.error()));
    if (!impl->capabilities()->requeue) {
      return done(core::fail(ErrorCode::kUnsupported,
                             "slurmrestd " + impl->capabilities()->release + " cannot requeue jobs (26.05 and later can)"));
    }
    // Without the flag Incomplete, Slurm would also requeue a job that has just ended.
    impl->write("POST", "jobs/requeue", {{"jobs", core::Json::array({id})}, {"flags", core::Json::array({"Incomplete"})}},
                std::move(done));
  });
}

void Client::make_reservation(const ReservationWish& wish, Done<void> done) {
  core::Json flags = core::Json::array({"MAINT", "IGNORE_JOBS"});
  for (const std::string& flag : wish.flags) flags.push_back(flag);
  core::Json body{{"name", wish.name},
                  {"node_list", wish.nodes},
                  {"users", core::Json::array({kReservationUser})},
                  {"flags", std::move(flags)},
                  {"start_time", whole(std::chrono::duration_cast<std::chrono::seconds>(wish.start.since_epoch).count())},
                  {"duration", whole(wish.duration.count())},
                  {"comment", wish.comment}};
  connection_->with_server(
      [impl = connection_.get(), body = std::move(body), done = std::move(done)](core::Result<void> ready) mutable {
        if (!ready) return done(std::unexpected(ready.error()));
        if (!impl->capabilities()->reservations) {
          return done(core::fail(ErrorCode::kUnsupported, "slurmrestd " + impl->capabilities()->release +
                                                              " cannot make reservations (25.05 and later can)"));
        }
        impl->write("POST", "reservation", std::move(body), std::move(done));
      });
}

void Client::set_reservation_nodes(const std::string& name, const std::vector<std::string>& nodes, Done<void> done) {
  connection_->write("POST", "reservation", {{"name", name}, {"node_list", nodes}}, std::move(done));
}

void Client::delete_reservation(const std::string& name, Done<void> done) {
  connection_->write("DELETE", "reservation/" + percent_encode(name), nullptr, std::move(done));
}

void Client::reconfigure(Done<void> done) {
  connection_->write("GET", "reconfigure/", nullptr, std::move(done));
}

}  // namespace slurm
