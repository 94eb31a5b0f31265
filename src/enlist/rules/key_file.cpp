#include "enlist/rules/key_file.hpp"

#include <algorithm>
#include <cctype>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "core/json.hpp"
#include "enlist/rules/text.hpp"

namespace enlist {
namespace {

using core::ErrorCode;
using core::Json;

/// Slurm refuses a shorter key in a slurm.jwks.
constexpr std::size_t kShortestKey = 16;
constexpr const char* kNote = "slurm-enlist";  ///< The member with KeyChange::note.

/// Returns KeyId::print of a key. The text before the key makes the digest useless for every other purpose.
std::string print_of(std::string_view key) {
  return core::short_digest("slurm-enlist key " + std::string(key));
}

std::string kid_of(const Json& entry) {
  return core::get_string(entry, {"kid"});
}

bool is_default(const Json& entry) {
  return same_word(core::get_string(entry, {"use"}), "default");
}

/// Decodes the key in the member "k": base64 or base64url, with or without padding.
core::Result<std::string> key_of(const Json& entry) {
  std::string text = core::get_string(entry, {"k"});
  std::ranges::replace(text, '-', '+');
  std::ranges::replace(text, '_', '/');
  while (text.size() % 4 != 0) text += '=';
  return core::base64_decode(text);
}

core::Result<Json> entries_of(std::string_view content) {
  const auto wrong = [](const char* what) { return core::fail(ErrorCode::kInvalid, "slurm.jwks " + std::string(what)); };
  const auto json = core::parse_json(content);
  if (!json) return wrong("is not JSON");
  const Json* keys = core::find(*json, {"keys"});
  if (keys == nullptr || !keys->is_array() || keys->empty()) return wrong("has no list of keys");
  std::vector<std::string> kids;
  for (const Json& entry : *keys) {
    const std::string kid = entry.is_object() ? kid_of(entry) : "";
    if (kid.empty()) return wrong("has a key without kid");
    if (std::ranges::find(kids, kid) != kids.end()) return wrong("has two keys with the same kid");
    const auto key = key_of(entry);
    if (!key || key->size() < kShortestKey) return wrong("has a key that is too short, or that cannot be decoded");
    kids.push_back(kid);
  }
  if (std::ranges::count_if(*keys, is_default) > 1) return wrong("has several default keys");
  return *keys;
}

}  // namespace

std::string key_revision(std::string_view file, std::string_view content) {
  // A key has too many bits to be guessed from its digest. With the prefix, the digest is of no use for anything else.
  return core::sha256_hex("slurm-enlist " + std::string(file) + "\n" + std::string(content)).substr(0, 16);
}

core::Result<KeySet> key_set_of(std::string_view file, std::string_view revision, std::string_view content) {
  if (file != kJwksFile) {
    return core::fail(
        ErrorCode::kInvalid,
        "the key is in slurm.key, and a slurmd that was started with it goes on with it when it reloads: move it to "
        "slurm.jwks first (documentation of slurm-enlist, Security, Move from slurm.key to slurm.jwks)");
  }
  const auto entries = entries_of(content);
  if (!entries) return std::unexpected(entries.error());
  KeySet out{.revision = std::string(revision), .keys = {}, .signer = kid_of(entries->front())};
  for (const Json& entry : *entries) {
    out.keys.push_back({.kid = kid_of(entry), .print = print_of(*key_of(entry))});
    if (is_default(entry)) out.signer = kid_of(entry);
  }
  out.note = core::get_string(*core::parse_json(content), {kNote});
  return out;
}

core::Result<std::string> changed_keys(std::string_view content, const KeyChange& change, std::string_view fresh) {
  const auto before = entries_of(content);
  if (!before) return std::unexpected(before.error());
  Json after = Json::array();
  for (const std::string& kid : change.kids) {
    const auto found = std::ranges::find(*before, kid, kid_of);
    const bool makes = found == before->end();
    if (makes && (kid != change.fresh_kid || fresh.size() < kShortestKey))
      return core::fail(ErrorCode::kInvalid, "slurm.jwks lacks the key " + kid);
    Json entry = makes ? Json{{"alg", "HS256"}, {"kty", "oct"}, {"kid", kid}, {"k", core::base64_encode(fresh)}} : *found;
    if (is_default(entry)) entry.erase("use");
    if (kid == change.signer) entry["use"] = "default";
    after.push_back(std::move(entry));
  }
  Json out{{"keys", std::move(after)}};
  // Slurm reads no other member than "keys" (_read_keys_file() in internal.c).
  if (!change.note.empty()) out[kNote] = change.note;
  return out.dump(2) + "\n";
}

bool has_keys(const KeySet& set, const std::vector<KeyId>& keys, std::string_view signer) {
  const auto there = [&](const KeyId& key) {
    return std::ranges::any_of(
        set.keys, [&](const KeyId& other) { return other.kid == key.kid && (key.print.empty() || other.print == key.print); });
  };
  return set.signer == signer && set.keys.size() == keys.size() && std::ranges::all_of(keys, there);
}

}  // namespace enlist
