// Decodes the lists of an accounting database into the neutral model (slurm/accounting/model.hpp). As in decode.hpp, an
// incomplete list is an error. So is a row without its name.
#pragma once

#include <string>

#include "slurm/accounting/model.hpp"
#include "slurm/rest/decode.hpp"

namespace slurm {

// The only error of these functions is kInternal.
core::Result<Decoded<accounting::Tres>> decode_tres(std::string body);
core::Result<Decoded<accounting::Qos>> decode_qos(std::string body);
core::Result<Decoded<accounting::Account>> decode_accounts(std::string body);
core::Result<Decoded<accounting::User>> decode_users(std::string body);
core::Result<Decoded<accounting::Association>> decode_associations(std::string body);
core::Result<Decoded<accounting::Cluster>> decode_clusters(std::string body);
/// Decodes the jobs of slurmdbd or of slurmctld.
core::Result<Decoded<accounting::JobUse>> decode_job_uses(std::string body);

}  // namespace slurm
