#include "slurm/rest/accounting_client.hpp"

#include <utility>

#include "slurm/rest/connection.hpp"
#include "slurm/rest/decode_accounting.hpp"
#include "slurm/rest/decode_usage.hpp"

namespace slurm {
namespace {

template <class Row>
void get(Connection& connection, std::string path, Connection::ListDecoder<Row> decoder, AccountingClient::Done<Row> done) {
  const auto rows = [done = std::move(done)](core::Result<Table<Row>> table) {
    if (!table) return done(std::unexpected(table.error()));
    done(std::move(table->rows));
  };
  connection.get_table<Row>(std::move(path), {}, std::move(decoder), rows, Scope::kAccounting);
}

}  // namespace

void AccountingClient::tres(Done<accounting::Tres> done) {
  get<accounting::Tres>(*connection_, "tres/", decode_tres, std::move(done));
}

void AccountingClient::qos(Done<accounting::Qos> done) {
  get<accounting::Qos>(*connection_, "qos/", decode_qos, std::move(done));
}

void AccountingClient::accounts(Done<accounting::Account> done) {
  get<accounting::Account>(*connection_, "accounts/", decode_accounts, std::move(done));
}

void AccountingClient::users(Done<accounting::User> done) {
  get<accounting::User>(*connection_, "users/", decode_users, std::move(done));
}

void AccountingClient::associations(Done<accounting::Association> done) {
  get<accounting::Association>(*connection_, "associations/", decode_associations, std::move(done));
}

void AccountingClient::own_associations(Done<accounting::Association> done) {
  connection_->with_server(
      [connection = connection_.get(), done = std::move(done)](core::Result<void> ready) mutable {
        if (!ready) return done(std::unexpected(ready.error()));
        const std::string path = "associations/?" + std::string(connection->spelling().own_limits);
        get<accounting::Association>(*connection, path, decode_associations, std::move(done));
      },
      Scope::kAccounting);
}

void AccountingClient::job(std::int64_t id, Done<accounting::QueuedJob> done) {
  get<accounting::QueuedJob>(*connection_, "job/" + std::to_string(id), decode_ended_jobs, std::move(done));
}

void AccountingClient::clusters(Done<accounting::Cluster> done) {
  get<accounting::Cluster>(*connection_, "clusters/", decode_clusters, std::move(done));
}

void AccountingClient::jobs_in_qos(std::int64_t id, const std::string& state, Done<accounting::JobOfQos> done) {
  // slurmrestd filters by the number of the QOS, not its name, and by one state.
  const std::string path = "jobs/?skip_steps=true&state=" + state + "&qos=" + std::to_string(id);
  get<accounting::JobOfQos>(*connection_, path, decode_jobs_of_qos, std::move(done));
}

void AccountingClient::qos(const std::string& name, std::function<void(core::Result<accounting::Qos>)> done) {
  const auto found = [name, done = std::move(done)](const core::Result<Table<accounting::Qos>>& table) {
    if (!table) return done(std::unexpected(table.error()));
    for (const auto& row : table->rows) {
      if (accounting::folded(row->name) == accounting::folded(name)) return done(*row);
    }
    done(core::fail(core::ErrorCode::kNotFound, "slurmdbd has no QOS " + name));
  };
  if (std::string problem = accounting::qos_name_problem(name); !problem.empty())
    return done(core::fail(core::ErrorCode::kUnsupported, std::move(problem)));
  connection_->get_table<accounting::Qos>("qos/" + percent_encode(name), {}, decode_qos, found, Scope::kAccounting);
}

void AccountingClient::write_qos(std::vector<QosWrite> writes, std::function<void(core::Result<void>)> done) {
  connection_->with_server(
      [connection = connection_.get(), writes = std::move(writes), done = std::move(done)](core::Result<void> ready) mutable {
        if (!ready) return done(std::unexpected(ready.error()));
        core::Json rows = core::Json::array();
        for (const QosWrite& each : writes) {
          core::Result<core::Json> body =
              accounting::qos_body(each.name, each.found, each.wanted, connection->capabilities()->data_parser);
          if (!body) return done(std::unexpected(body.error()));
          rows.push_back(*std::move(body));
        }
        const auto written = [done = std::move(done)](core::Result<void> result) {
          // SLURM_NO_CHANGE_IN_DATA
          if (!result && result.error().reason == "1900") return done({});
          done(std::move(result));
        };
        connection->write("POST", "qos/", {{"qos", std::move(rows)}}, written, Scope::kAccounting);
      },
      Scope::kAccounting);
}

void AccountingClient::delete_qos(const std::string& name, std::function<void(core::Result<void>)> done) {
  if (std::string problem = accounting::qos_name_problem(name); !problem.empty())
    return done(core::fail(core::ErrorCode::kUnsupported, std::move(problem)));
  connection_->write("DELETE", "qos/" + percent_encode(name), nullptr, std::move(done), Scope::kAccounting);
}

}  // namespace slurm
