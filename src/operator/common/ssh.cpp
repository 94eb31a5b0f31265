#include "operator/common/ssh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "core/base64.hpp"
#include "operator/common/children.hpp"

namespace op {
namespace {

constexpr std::array<const char*, 3> kHostKeyTypes{"ecdsa", "ed25519", "rsa"};

std::string host_key_name(const char* type) {
  return fmt::format("ssh_host_{}_key", type);
}

/// True if the line has a public key. Like sshd, looks for a key type followed by base64 text whose decoded data begins with
/// this key type. Options can precede the key type.
bool is_public_key(std::string_view line) {
  std::vector<std::string> words(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '"' && (i == 0 || line[i - 1] != '\\')) quoted = !quoted;
    if ((c == ' ' || c == '\t') && !quoted) {
      if (!words.back().empty()) words.emplace_back();
    } else {
      words.back() += c;
    }
  }
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const core::Result<std::string> blob = core::base64_decode(words[i + 1]);
    const auto length = static_cast<char>(words[i].size());
    if (blob && !words[i].empty() && words[i].size() < 128 && blob->size() > words[i].size() + 4 &&
        blob->starts_with(std::string{0, 0, 0, length} + words[i]))
      return true;
  }
  return false;
}

struct UsersLines {
  std::string_view outside;  ///< The lines before the first Match block.
  std::string_view blocks;   ///< The Match blocks and everything after them.
  /// The keywords that the user sets for all users, in lower case. A subsystem is listed with its name: "subsystem sftp".
  std::set<std::string, std::less<>> said;
};

/// Removes the next word of the line, and returns it. As in sshd, blanks separate words, and one '=' may follow a word.
std::string next_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r";
  const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size())); };
  skip_blanks();
  const bool quoted = line.starts_with('"');
  if (quoted) line.remove_prefix(1);
  const std::size_t end = std::min(line.find_first_of(quoted ? "\"" : " \t\r="), line.size());
  std::string word(line.substr(0, end));
  line.remove_prefix(std::min(end + (quoted ? 1 : 0), line.size()));
  skip_blanks();
  if (line.starts_with('=')) line.remove_prefix(1);
  return word;
}

std::string lower(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return word;
}

UsersLines read_users_lines(std::string_view extra) {
  UsersLines out{extra, {}, {}};
  bool for_all = true;
  for (std::size_t at = 0; at < extra.size();) {
    const std::size_t end = std::min(extra.find('\n', at), extra.size());
    std::string_view line = extra.substr(at, end - at);
    std::string keyword = lower(next_word(line));
    if (keyword == "match") {
      if (out.blocks.empty()) {
        out.outside = extra.substr(0, at);
        out.blocks = extra.substr(at);
      }
      for_all = lower(next_word(line)) == "all";
    } else if (for_all && !keyword.empty() && !keyword.starts_with('#')) {
      if (keyword == "subsystem") keyword += ' ' + next_word(line);
      out.said.insert(std::move(keyword));
    }
    at = end + 1;
  }
  return out;
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

std::string sshd_config(std::string_view kind, std::string_view extra, const std::vector<std::string>& host_keys) {
  const UsersLines theirs = read_users_lines(extra);
  std::string out = fmt::format("# Made by slurm-operator from the {}.\n", kind);
  const auto add_theirs = [&](std::string_view lines) {
    if (lines.empty()) return;
    out += "# extraSshdConfig\n";
    add_lines(out, lines);
    out += '\n';
  };
  const auto add = [&](std::string_view said, std::string_view line) {
    if (!theirs.said.contains(said)) out.append(line).append("\n");
  };
  add_theirs(theirs.outside);
  out += "Include /etc/ssh/sshd_config.d/*.conf\n";
  add("usepam", "UsePAM yes");
  add("x11forwarding", "X11Forwarding yes");
  add("subsystem sftp", "Subsystem sftp internal-sftp");
  for (const std::string& path : host_keys) add("hostkey", "HostKey " + path);
  if (!theirs.blocks.empty()) out += '\n';
  add_theirs(theirs.blocks);
  return out;
}

int bad_key_line(std::string_view text) {
  for (int number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t')) line.remove_suffix(1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (!line.empty() && line.front() != '#' && !is_public_key(line)) return number;
  }
  return 0;
}

void add_lines(std::string& to, std::string_view lines) {
  to += lines;
  if (!to.empty() && to.back() != '\n') to += '\n';
}

}  // namespace op
