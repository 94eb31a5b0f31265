#include "cluster/keys.hpp"

#include "core/hash.hpp"

namespace op {

SecretFacts read_key(kube::Recorder& recorder, const std::string& ns, const KeyRef& ref) {
  const kube::Named<kube::SecretRecord> named = recorder.secret({ns, ref.secret});
  SecretFacts out{ref, named.presence, false, "", {}, ""};
  if (named.presence != kube::Presence::kPresent) return out;
  out.meta = named.record->meta;
  const auto size = named.record->sizes.find(ref.key);
  out.has_key = size != named.record->sizes.end() && size->second != "0";
  const auto hash = named.record->value_hashes.find(ref.key);
  if (hash != named.record->value_hashes.end()) out.digest = hash->second.substr(0, 16);
  const auto content = named.record->contents.find(ref.key);
  if (content != named.record->contents.end()) out.content = content->second;
  return out;
}

SecretFacts read_keyring(kube::Recorder& recorder, const std::string& ns, const std::string& controller) {
  SecretFacts out =
      read_key(recorder, ns, {.secret = keyring_name(controller), .key = std::string(api::kKeySlurm), .generated = true});
  if (!out.meta) return out;
  out.digest = out.meta->annotation(api::kAnnotationSlurmKeyHash);
  // One that builds before made has no note; that of another Controller, or of one that is gone, cannot be judged.
  const std::string_view note = out.meta->annotation(api::kAnnotationDataHash);
  const kube::OwnerReference* owner = out.meta->controller_owner();
  out.edited = !note.empty() && owner != nullptr && note != keyring_note(owner->uid, out.content);
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
