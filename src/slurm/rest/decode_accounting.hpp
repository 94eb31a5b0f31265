// Lists of an accounting database, read in one pass into the neutral model (slurm/accounting/model.hpp). The same rules as in
// decode.hpp: a list that is not whole is an error, and so is a row without its name.
#pragma once

#include <string>

#include "slurm/accounting/model.hpp"
#include "slurm/rest/decode.hpp"

namespace slurm {

// Error of all: kInternal.
core::Result<Decoded<accounting::Tres>> decode_tres(std::string body);
core::Result<Decoded<accounting::Qos>> decode_qos(std::string body);
core::Result<Decoded<accounting::Account>> decode_accounts(std::string body);
core::Result<Decoded<accounting::User>> decode_users(std::string body);
core::Result<Decoded<accounting::Association>> decode_associations(std::string body);
core::Result<Decoded<accounting::Cluster>> decode_clusters(std::string body);

}  // namespace slurm
