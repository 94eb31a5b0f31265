// The keys with which the coordinator and the hosts authenticate each other. No authority signs them: a peer is identified by
// the fingerprint of its key, and revoked by deleting that fingerprint. Nothing expires, so a host that was off for months can
// return.
//
// Folder src/enlist/wire: the messages between agents, administrators and the coordinator, and how they authenticate each
// other. Uses enlist/rules, net and core.
#pragma once

#include <filesystem>
#include <string>

#include "core/result.hpp"

namespace enlist {

struct Identity {
  std::string cert_pem, key_pem;  ///< A self-signed certificate that does not expire, and its key on the curve P-256.
  std::string fingerprint;        ///< net::fingerprint_of(cert_pem).
};
/// Reads the identity from NAME.crt and NAME.key in the folder. Creates what is missing: the folder (mode 0700), the key (mode
/// 0600), and the certificate if there is a key without one. Never overwrites a file. Two processes that call this at once get
/// the same identity. `name`: 1 to 64 characters. Blocks. Errors: kInvalid (a file cannot be read, the key does not fit the
/// certificate or is missing, or other users may read the key), kUnavailable (the folder cannot be written).
core::Result<Identity> load_or_make_identity(const std::filesystem::path& folder, const std::string& name);

}  // namespace enlist
