#include "slurm/rest/accounting_client.hpp"

#include <utility>

#include "slurm/rest/connection.hpp"
#include "slurm/rest/decode_accounting.hpp"

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

void AccountingClient::clusters(Done<accounting::Cluster> done) {
  get<accounting::Cluster>(*connection_, "clusters/", decode_clusters, std::move(done));
}

}  // namespace slurm
