#include "operator/common/ssh.hpp"

#include <fmt/format.h>

#include <array>

#include "operator/common/children.hpp"

namespace op {
namespace {

constexpr std::array<const char*, 3> kHostKeyTypes{"ecdsa", "ed25519", "rsa"};

std::string host_key_name(const char* type) {
  return fmt::format("ssh_host_{}_key", type);
}

}  // namespace

core::Json new_host_keys(const kube::Key& key, const kube::Resource& owner_kind, const kube::ObjectMeta& owner,
                         const kube::StringMap& labels) {
  core::Json out = owned_child(kube::resources::kSecret, key, owner_kind, owner, labels);
  out["metadata"]["ownerReferences"][0].erase("blockOwnerDeletion");
  out["type"] = "Opaque";
  out["immutable"] = true;
  for (const char* type : kHostKeyTypes) {
    const std::string name = host_key_name(type);
    out["data"][name] = {{"$sshKey", {{"type", type}, {"publicKey", name + ".pub"}, {"comment", owner.name}}}};
  }
  return out;
}

std::vector<std::string> host_key_names() {
  std::vector<std::string> out;
  for (const char* type : kHostKeyTypes) out.push_back(host_key_name(type));
  return out;
}

std::vector<std::string> usable_host_keys(const kube::Named<kube::SecretRecord>& secret) {
  std::vector<std::string> out;
  if (secret.presence != kube::Presence::kPresent) return out;
  const auto has = [&](const std::string& key) {
    const auto size = secret.record->sizes.find(key);
    return size != secret.record->sizes.end() && size->second != "0";
  };
  for (const char* type : kHostKeyTypes) {
    const std::string key = host_key_name(type);
    if (!has(key)) continue;
    out.push_back(key);
    if (has(key + ".pub")) out.push_back(key + ".pub");
  }
  return out;
}

std::optional<Problem> host_keys_problem(const kube::Named<kube::SecretRecord>& secret, const kube::Key& key) {
  if (secret.presence != kube::Presence::kPresent || !usable_host_keys(secret).empty()) return {};
  return Problem{"SecretKeyMissing",
                 fmt::format("Secret {} has none of ssh_host_rsa_key, ssh_host_ecdsa_key and ssh_host_ed25519_key", key.str())};
}

std::string sshd_config(std::string_view kind, std::string_view own, std::string_view extra) {
  std::string out = fmt::format(
      "# Made by slurm-operator from the {}.\n"
      "Include /etc/ssh/sshd_config.d/*.conf\n"
      "UsePAM yes\n"
      "X11Forwarding yes\n"
      "Subsystem sftp internal-sftp\n"
      "{}\n"
      "# extraSshdConfig\n",
      kind, own);
  add_lines(out, extra);
  return out;
}

void add_lines(std::string& to, std::string_view lines) {
  to += lines;
  if (!to.empty() && to.back() != '\n') to += '\n';
}

}  // namespace op
