#include "slinky/keys.hpp"

#include "core/hash.hpp"
#include "core/json.hpp"

namespace slinky {

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

}  // namespace slinky
