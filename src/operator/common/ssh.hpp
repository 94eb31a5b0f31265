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

/// A Secret with new host keys of every type, as recipes (kube/acts.hpp), to be created if there is none. It is deleted with
/// its owner and does not block the owner's deletion.
core::Json new_host_keys(const kube::Key& key, const kube::Resource& owner_kind, const kube::ObjectMeta& owner,
                         const kube::StringMap& labels);
/// The names of all private host keys that sshd can have: "ssh_host_rsa_key".
std::vector<std::string> host_key_names();
/// The data keys of the Secret's host keys, including their public halves.
std::vector<std::string> usable_host_keys(const kube::Named<kube::SecretRecord>& secret);
/// Reports an existing Secret without host keys, which a user created.
std::optional<Problem> host_keys_problem(const kube::Named<kube::SecretRecord>& secret, const kube::Key& key);

/// The number of the first line, from 1, that is neither a public key nor a comment in a file of authorized keys; 0: none.
int bad_key_line(std::string_view text);

/// The text of sshd_config: `extra`, the user's lines, and ours for keywords that these do not set. `host_keys`: the paths of
/// the private keys. `kind`: the kind of the object that it is made from.
///
/// If a keyword is repeated, sshd uses the first occurrence, and Match blocks override what is outside of them. So ours are
/// outside of all blocks, after the user's outside lines. Keywords that the user sets are omitted from ours, because sshd up to
/// OpenSSH 9.4 exits at a second Subsystem of the same name.
std::string sshd_config(std::string_view kind, std::string_view extra, const std::vector<std::string>& host_keys);
/// Appends lines, followed by a newline if it is missing.
void add_lines(std::string& to, std::string_view lines);

}  // namespace op
