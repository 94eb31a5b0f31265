#include "cluster/keys.hpp"

#include <charconv>

#include "core/hash.hpp"
#include "core/json.hpp"

namespace op {

std::string KeyRotation::generation() const {
  return id + "-" + std::to_string(static_cast<int>(begins() ? KeyStep::kBoth : step));
}

std::string KeyRotation::str() const {
  core::Json out{{"id", id}, {"step", static_cast<int>(step)}, {"to", to}};
  if (!other_note.empty()) out["otherNote"] = other_note;
  if (loaded_at) out["loadedAt"] = core::format_rfc3339(*loaded_at);
  if (!loaded_by.empty()) out["loadedBy"] = loaded_by;
  if (logins_at) out["loginsAt"] = core::format_rfc3339(*logins_at);
  return core::canonical(out);
}

std::optional<KeyRotation> KeyRotation::parse(std::string_view text) {
  const auto read = core::parse_json(text);
  if (!read || !read->is_object()) return {};
  const std::int64_t step = core::get_int(*read, {"step"});
  KeyRotation out{.id = core::get_string(*read, {"id"}), .to = core::get_string(*read, {"to"})};
  if (out.id.empty() || out.to.empty() || step < 1 || step > 4) return {};
  out.step = static_cast<KeyStep>(step);
  out.other_note = core::get_string(*read, {"otherNote"});
  if (const auto at = core::parse_rfc3339(core::get_string(*read, {"loadedAt"}))) out.loaded_at = *at;
  out.loaded_by = core::get_string(*read, {"loadedBy"});
  if (const auto at = core::parse_rfc3339(core::get_string(*read, {"loginsAt"}))) out.logins_at = *at;
  return out;
}

SecretFacts read_key(kube::Recorder& recorder, const std::string& ns, const KeyRef& ref) {
  const kube::Named<kube::SecretRecord> named = recorder.secret({ns, ref.secret});
  SecretFacts out{ref, named.presence, false, "", {}, ""};
  if (named.presence != kube::Presence::kPresent) return out;
  out.meta = named.record->meta;
  const auto size = named.record->sizes.find(ref.key);
  if (size != named.record->sizes.end())
    std::from_chars(size->second.data(), size->second.data() + size->second.size(), out.size);
  out.has_key = out.size > 0;
  const auto hash = named.record->value_hashes.find(ref.key);
  if (hash != named.record->value_hashes.end()) out.digest = hash->second.substr(0, 16);
  const auto content = named.record->contents.find(ref.key);
  if (content != named.record->contents.end()) out.content = content->second;
  return out;
}

namespace {

/// Reads what the keyring notes of a rotation. False: that does not fit to its other data.
bool read_rotation(const kube::StringMap& contents, const std::string& controller_uid, SecretFacts& out) {
  out.rotation = KeyRotation::parse(out.meta->annotation(api::kAnnotationKeyRotation));
  const bool jwks = contents.contains(api::kKeyJwks);
  const auto other = contents.find(api::kKeyOther);
  if (contents.contains(api::kKeyLoginJwks) != (out.rotation && out.rotation->has_login_keys())) return false;
  if (!out.rotation || out.rotation->step == KeyStep::kAlone) return !jwks && other == contents.end();
  return jwks && other != contents.end() && keyring_note(controller_uid, other->second) == out.rotation->other_note;
}

}  // namespace

SecretFacts read_keyring(kube::Recorder& recorder, const std::string& ns, const std::string& controller) {
  SecretFacts out =
      read_key(recorder, ns, {.secret = keyring_name(controller), .key = std::string(api::kKeySlurm), .generated = true});
  if (!out.meta) return out;
  out.digest = out.meta->annotation(api::kAnnotationSlurmKeyHash);
  // One that builds before made has no note; that of another Controller, or of one that is gone, cannot be judged.
  const std::string_view note = out.meta->annotation(api::kAnnotationDataHash);
  const kube::OwnerReference* owner = out.meta->controller_owner();
  out.edited = !note.empty() && owner != nullptr &&
               (note != keyring_note(owner->uid, out.content) ||
                !read_rotation(recorder.secret({ns, out.ref.secret}).record->contents, owner->uid, out));
  out.has_key = out.has_key && !out.edited && !out.digest.empty() && !out.meta->terminating();
  return out;
}

std::string keyring_note(std::string_view controller_uid, std::string_view content) {
  return core::short_digest(std::string(controller_uid) + '\n' + std::string(content));
}

std::optional<Problem> key_problem(const SecretFacts& facts, std::string_view ns, const std::string& field) {
  const std::string secret = "Secret " + std::string(ns) + "/" + facts.ref.secret;
  switch (facts.presence) {
    case kube::Presence::kUnknown:
      return Problem{"Waiting", secret + " is being read", Problem::Kind::kComing};
    case kube::Presence::kAbsent:
      if (facts.ref.generated) return Problem{"Waiting", secret + " does not exist yet", Problem::Kind::kComing};
      return Problem{"SecretMissing", field + ".name: " + secret + " does not exist"};
    case kube::Presence::kPresent:
      break;
  }
  if (facts.edited)
    return Problem{"Waiting", secret + " was edited: see the conditions of the Controller", Problem::Kind::kComing};
  if (!facts.has_key) {
    return Problem{"SecretKeyMissing",
                   (facts.ref.generated ? "" : field + ".key: ") + secret + " has no data under the key " + facts.ref.key};
  }
  return {};
}

}  // namespace op
