// sshd in login pods and workers: its host keys and its configuration.
//
// Host keys are created once and never replaced: a client that has seen one refuses any other.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "kube/object.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/status.hpp"

namespace op {

inline constexpr std::string_view kSshdConfig = "sshd_config";

/// Returns a Secret with new host keys of every type, as recipes (kube/acts.hpp), to be created if there is none. The Secret is
/// deleted with its owner and does not block the deletion of the owner.
core::Json new_host_keys(const kube::Key& key, const kube::Resource& owner_kind, const kube::ObjectMeta& owner,
                         const kube::StringMap& labels);
/// Returns the names of all private host keys that sshd can have, such as "ssh_host_rsa_key".
std::vector<std::string> host_key_names();
/// Returns the data keys of the host keys in the Secret, including their public halves.
std::vector<std::string> usable_host_keys(const kube::Named<kube::SecretRecord>& secret);
/// Returns a problem if the Secret exists, because a user created it, but contains no host keys.
std::optional<Problem> host_keys_problem(const kube::Named<kube::SecretRecord>& secret, const kube::Key& key);

/// Returns the number of the first line, from 1, that is neither a public key nor a comment in a file of authorized keys. 0:
/// there is none.
int bad_key_line(std::string_view text);

/// Returns the text of sshd_config: `extra`, the lines of the user, and our lines for keywords that the user does not set.
/// `host_keys`: the paths of the private keys. `kind`: the kind of the object that the file is made from.
///
/// If a keyword is repeated, sshd uses the first occurrence, and Match blocks override what is outside of them. So our lines
/// are outside of all blocks, after the lines of the user that are outside of blocks. Keywords that the user sets are omitted
/// from our lines, because sshd up to OpenSSH 9.4 exits at a second Subsystem of the same name.
std::string sshd_config(std::string_view kind, std::string_view extra, const std::vector<std::string>& host_keys);
/// Appends lines, followed by a newline if it is missing.
void add_lines(std::string& to, std::string_view lines);

}  // namespace op
