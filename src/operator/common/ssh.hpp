// Makes the host keys and the configuration of sshd in login pods and workers.
//
// Host keys are created once and never replaced, because an SSH client that has seen a host key refuses any other host key.
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

/// Returns a Secret to create, with a new host key of each type. The keys are recipes (kube/acts.hpp). Kubernetes deletes the
/// Secret together with `owner`, and the Secret does not block the deletion of `owner`.
core::Json new_host_keys(const kube::Key& key, const kube::Resource& owner_kind, const kube::ObjectMeta& owner,
                         const kube::StringMap& labels);
/// Returns the names of all private host keys that sshd can have, such as "ssh_host_rsa_key".
std::vector<std::string> host_key_names();
/// Returns the data keys under which the Secret has host keys, both private and public. Empty if the Secret does not exist.
std::vector<std::string> usable_host_keys(const kube::Named<kube::SecretRecord>& secret);
/// Returns a problem if the Secret exists but has no host keys. This can happen if a user has created the Secret.
std::optional<Problem> host_keys_problem(const kube::Named<kube::SecretRecord>& secret, const kube::Key& key);

/// Returns the number of the first bad line in a file of authorized keys, counted from 1. A good line is a public key, a
/// comment or blank. 0: all lines are good.
int bad_key_line(std::string_view text);

/// Returns the text of sshd_config. It has the user's lines, `extra`, and our lines for keywords that the user does not set.
/// `host_keys`: the paths of the private host keys. `kind`: the kind of the custom resource, which the text names in a comment.
///
/// If a keyword is repeated, sshd uses the first occurrence. Match blocks override the lines outside of blocks. So our lines
/// come after the user's lines that are outside of blocks, and before the user's Match blocks. Our lines omit the keywords that
/// the user sets, because sshd up to OpenSSH 9.4 exits at a second Subsystem of the same name.
std::string sshd_config(std::string_view kind, std::string_view extra, const std::vector<std::string>& host_keys);
/// Appends `lines` to `to`, and then a newline if the text does not end with a newline.
void add_lines(std::string& to, std::string_view lines);

}  // namespace op
