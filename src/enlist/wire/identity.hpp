// The keys by which the coordinator and the hosts know each other. No authority signs them: whoever knows a key's fingerprint
// knows its owner, and forgetting the fingerprint is the revocation. So a host that was off for months returns.
//
// Folder src/enlist/wire: what agents, administrators and the coordinator say to each other, and how they know each other. Uses
// enlist/rules, net and core.
#pragma once

#include <filesystem>
#include <string>

#include "core/result.hpp"

namespace enlist {

struct Identity {
  std::string cert_pem, key_pem;  ///< A self-signed certificate that does not expire, and its key on the curve P-256.
  std::string fingerprint;        ///< net::fingerprint_of(cert_pem).
};
/// Reads the identity from NAME.crt and NAME.key in the folder, or makes it: the key in a file of mode 0600. Makes the folder
/// with mode 0700 if it is missing. Two processes that do so at once get the same identity. `name`: 1 to 64 characters. Blocks.
/// Errors: kInvalid (a file is there and cannot be read or does not fit, or others may read the key: it is never overwritten),
/// kUnavailable (the folder cannot be written).
core::Result<Identity> load_or_make_identity(const std::filesystem::path& folder, const std::string& name);

}  // namespace enlist
