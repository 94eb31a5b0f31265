#include "cluster/read_keys.hpp"

#include <charconv>

#include "api/well_known.hpp"

namespace op {

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

}  // namespace op
