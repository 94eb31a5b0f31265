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

/// Reads a list. `query` points to the member of Spelling with the query, because the query depends on the data_parser.
template <class Row>
void get_with(Connection* connection, std::string path, std::string_view Spelling::*query, Connection::ListDecoder<Row> decoder,
              AccountingClient::Done<Row> done) {
  connection->with_server(
      [connection, path = std::move(path), query, decoder = std::move(decoder),
       done = std::move(done)](core::Result<void> ready) mutable {
        if (!ready) return done(std::unexpected(ready.error()));
        path += "?" + std::string(connection->spelling().*query);
        get<Row>(*connection, std::move(path), std::move(decoder), std::move(done));
      },
      Scope::kAccounting);
}

std::function<void(core::Result<void>)> no_change_is_success(std::function<void(core::Result<void>)> done) {
  return [done = std::move(done)](core::Result<void> result) {
    // SLURM_NO_CHANGE_IN_DATA: slurmdbd already has the values of this write.
    if (!result && result.error().reason == "1900") return done({});
    done(std::move(result));
  };
}

}  // namespace

void AccountingClient::tres(Done<accounting::Tres> done) {
  get<accounting::Tres>(*connection_, "tres/", decode_tres, std::move(done));
}

void AccountingClient::qos(Done<accounting::Qos> done) {
  get<accounting::Qos>(*connection_, "qos/", decode_qos, std::move(done));
}

void AccountingClient::accounts(Done<accounting::Account> done) {
  get_with<accounting::Account>(connection_.get(), "accounts/", &Spelling::coordinators, decode_accounts, std::move(done));
}

void AccountingClient::users(Done<accounting::User> done) {
  get<accounting::User>(*connection_, "users/", decode_users, std::move(done));
}

void AccountingClient::associations(Done<accounting::Association> done) {
  get<accounting::Association>(*connection_, "associations/", decode_associations, std::move(done));
}

void AccountingClient::own_associations(Done<accounting::Association> done) {
  get_with<accounting::Association>(connection_.get(), "associations/", &Spelling::own_limits, decode_associations,
                                    std::move(done));
}

void AccountingClient::job(std::int64_t id, Done<accounting::QueuedJob> done) {
  get<accounting::QueuedJob>(*connection_, "job/" + std::to_string(id), decode_ended_jobs, std::move(done));
}

void AccountingClient::clusters(Done<accounting::Cluster> done) {
  get<accounting::Cluster>(*connection_, "clusters/", decode_clusters, std::move(done));
}

void AccountingClient::jobs_in_qos(std::int64_t id, const std::string& state, Done<accounting::JobUse> done) {
  // slurmrestd filters by the id of the QOS, not by its name, and by one state.
  const std::string path = "jobs/?skip_steps=true&state=" + state + "&qos=" + std::to_string(id);
  get<accounting::JobUse>(*connection_, path, decode_job_uses, std::move(done));
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
        connection->write("POST", "qos/", {{"qos", std::move(rows)}}, no_change_is_success(std::move(done)),
                          Scope::kAccounting);
      },
      Scope::kAccounting);
}

void AccountingClient::delete_qos(const std::string& name, std::function<void(core::Result<void>)> done) {
  if (std::string problem = accounting::qos_name_problem(name); !problem.empty())
    return done(core::fail(core::ErrorCode::kUnsupported, std::move(problem)));
  connection_->write("DELETE", "qos/" + percent_encode(name), nullptr, std::move(done), Scope::kAccounting);
}

void AccountingClient::set_exit_code(std::int64_t id, int exit_code, std::function<void(core::Result<void>)> done) {
  // slurmdbd stores the status that wait() gives, in which the exit code is the second byte.
  constexpr int kExitCodeUnit = 256;
  const auto answered = [done = std::move(done)](core::Result<void> result) {
    // SLURM_NO_CHANGE_IN_DATA: there is no such job.
    if (!result && result.error().reason == "1900") result.error().code = core::ErrorCode::kNotFound;
    done(std::move(result));
  };
  connection_->write("POST", "job/" + std::to_string(id), {{"derived_exit_code", exit_code * kExitCodeUnit}}, answered,
                     Scope::kAccounting);
}

void AccountingClient::post(const std::string& path, core::Json body, std::function<void(core::Result<void>)> done) {
  connection_->write("POST", path, std::move(body), no_change_is_success(std::move(done)), Scope::kAccounting);
}

void AccountingClient::remove(const std::string& path, std::function<void(core::Result<void>)> done) {
  connection_->write("DELETE", path, nullptr, no_change_is_success(std::move(done)), Scope::kAccounting);
}

void AccountingClient::write_accounts(const std::vector<accounting::Account>& accounts,
                                      std::function<void(core::Result<void>)> done) {
  core::Json rows = core::Json::array();
  for (const accounting::Account& each : accounts) {
    core::Json coordinators = core::Json::array();
    for (const auto* names : {&each.coordinators, &each.inherited_coordinators}) {
      for (const std::string& name : *names) coordinators.push_back({{"name", name}});
    }
    rows.push_back({{"name", each.name},
                    {"description", each.description},
                    {"organization", each.organization},
                    {"coordinators", std::move(coordinators)}});
  }
  post("accounts/", {{"accounts", std::move(rows)}}, std::move(done));
}

void AccountingClient::write_users(const std::vector<UserWrite>& users, std::function<void(core::Result<void>)> done) {
  core::Json rows = core::Json::array();
  for (const UserWrite& each : users)
    rows.push_back({{"name", each.name}, {"administrator_level", core::Json::array({each.admin_level})}});
  post("users/", {{"users", std::move(rows)}}, std::move(done));
}

void AccountingClient::restore_user(const UserWrite& user, const accounting::Place& place,
                                    std::function<void(core::Result<void>)> done) {
  core::Json where{{"users", core::Json::array({user.name})},
                   {"accounts", core::Json::array({place.account})},
                   {"clusters", core::Json::array({place.cluster})}};
  if (!place.partition.empty()) where["partitions"] = core::Json::array({place.partition});
  where["association"] = core::Json::object();
  core::Json body{{"association_condition", std::move(where)},
                  {"user", {{"adminlevel", core::Json::array({user.admin_level})}, {"defaultaccount", place.account}}}};
  connection_->write(
      "POST", "users_association/", std::move(body),
      [done = std::move(done)](core::Result<void> result) {
        // SLURM_NO_CHANGE_IN_DATA: slurmdbd has rolled back the restore.
        if (!result && result.error().reason == "1900")
          return done(core::fail(core::ErrorCode::kConflict, "slurmdbd did not restore the user"));
        done(std::move(result));
      },
      Scope::kAccounting);
}

void AccountingClient::add_account_associations(const AccountAssociations& add, std::function<void(core::Result<void>)> done) {
  core::Json association = core::Json::object();
  if (!add.parent.empty()) association["parent"] = add.parent;
  core::Json body{{"association_condition",
                   {{"accounts", add.accounts}, {"clusters", add.clusters}, {"association", std::move(association)}}},
                  {"account", core::Json::object()}};
  post("accounts_association/", std::move(body), std::move(done));
}

void AccountingClient::write_associations(const std::vector<AssociationWrite>& writes,
                                          std::function<void(core::Result<void>)> done) {
  core::Json rows = core::Json::array();
  for (const AssociationWrite& each : writes) {
    core::Result<core::Json> body = accounting::association_body(each.kind, each.name, each.place, each.found, each.wanted);
    if (!body) return done(std::unexpected(body.error()));
    rows.push_back(*std::move(body));
  }
  post("associations/", {{"associations", std::move(rows)}}, std::move(done));
}

void AccountingClient::delete_entity(accounting::EntityKind kind, const std::string& name,
                                     std::function<void(core::Result<void>)> done) {
  if (std::string problem = accounting::entity_name_problem(kind, name); !problem.empty())
    return done(core::fail(core::ErrorCode::kUnsupported, std::move(problem)));
  remove(std::string(accounting::name_of(kind)) + "/" + percent_encode(name), std::move(done));
}

void AccountingClient::delete_association(const accounting::Association& row, std::function<void(core::Result<void>)> done) {
  std::string path = "association/?account=" + percent_encode(row.account) + "&cluster=" + percent_encode(row.cluster);
  if (!row.user.empty()) path += "&user=" + percent_encode(row.user);
  if (!row.partition.empty()) path += "&partition=" + percent_encode(row.partition);
  remove(path, std::move(done));
}

}  // namespace slurm
