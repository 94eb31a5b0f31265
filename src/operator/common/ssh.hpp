// sshd in login pods and workers: its host keys and its configuration.
//
// Host keys are made once and never replaced: a client that has seen one refuses any other.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/status.hpp"
#include "core/json.hpp"
#include "kube/object.hpp"

namespace op {

inline constexpr std::string_view kSshdConfig = "sshd_config";

/// A Secret with new host keys of every type, as recipes (kube/acts.hpp); to be created where there is none. It goes with its
/// owner, whose deletion does not wait for it.
core::Json new_host_keys(const kube::Key& key, const kube::Resource& owner_kind, const kube::ObjectMeta& owner,
                         const kube::StringMap& labels);
/// The names of all private host keys that sshd may have: "ssh_host_rsa_key".
std::vector<std::string> host_key_names();
/// The data keys of the host keys that the Secret has, with those of their public halves.
std::vector<std::string> usable_host_keys(const kube::Named<kube::SecretRecord>& secret);
/// A Secret that is there and has none: a user made it.
std::optional<Problem> host_keys_problem(const kube::Named<kube::SecretRecord>& secret, const kube::Key& key);

/// The first line of a file of authorized keys that is neither a public key nor a comment, counted from 1; 0: there is none.
int bad_key_line(std::string_view text);

/// The text of sshd_config: `extra`, the user's lines, and ours where these say nothing. `host_keys`: the paths of private
/// ones. `kind`: of the object that it is made from.
///
/// Of a keyword that stands several times, sshd takes the first one, and blocks of Match go over what stands outside of them.
/// So ours stand outside of all blocks, behind the user's that do. What the user says is left out of ours, because sshd ends
/// at a second Subsystem of one name, up to OpenSSH 9.4.
std::string sshd_config(std::string_view kind, std::string_view extra, const std::vector<std::string>& host_keys);
/// Appends lines that end with a line.
void add_lines(std::string& to, std::string_view lines);

}  // namespace op
