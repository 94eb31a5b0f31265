#include "api/token.hpp"

#include "api/well_known.hpp"
#include "core/hash.hpp"

namespace api {
namespace {

/// The limit for names of Kubernetes objects.
constexpr std::size_t kMaxObjectName = 253;
/// The readable part that replaces a username is made from at most this many of its first characters.
constexpr std::size_t kReadablePart = 40;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/// Reports whether a valid object name can end with this username.
bool fits_in_name(std::string_view username) {
  for (std::size_t i = 0; i < username.size(); ++i) {
    if (is_word(username[i])) continue;
    const bool inside = i > 0 && i + 1 < username.size();
    // A dot may only stand between two words.
    const bool joins =
        username[i] == '-' || (username[i] == '.' && inside && is_word(username[i - 1]) && is_word(username[i + 1]));
    if (!joins || i + 1 == username.size()) return false;
  }
  return true;
}

/// Returns the username if an object name can contain it. Otherwise returns the readable part and a hash of the whole
/// username. Slurm users can have names such as jane.doe@corp.example.
std::string in_name(std::string_view username, std::size_t room) {
  if (username.size() <= room && fits_in_name(username)) return std::string(username);
  std::string out;
  for (const char c : username.substr(0, kReadablePart)) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (is_word(lower)) {
      out += lower;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  if (!out.empty() && out.back() != '-') out += '-';
  return out + core::short_hash(username, 8);
}

}  // namespace

const FieldList& field_list(const TokenSpec*) {
  static const FieldList kList =
      FieldList("The desired state of a Token.")
          .add(field("jwtKeyRef", &TokenSpec::jwt_key_ref)
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe("The Secret's key that holds the auth/jwt key (HS256) of the cluster. For a key that the operator "
                             "generated, "
                             "the Secret <controller>-jwt-key and the key jwt.key. Cannot be changed."))
          .add(field("jwtHs256KeyRef", &TokenSpec::jwt_hs256_key_ref)
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe("Deprecated: the old name of jwtKeyRef. If both are set, jwtKeyRef takes precedence."))
          .add(field("username", &TokenSpec::username).required().min_length(1).describe("The Slurm user of the token."))
          .add(field("lifetime", &TokenSpec::lifetime)
                   .rule("duration(self) >= duration('10s')", "must be 10s or more")
                   .describe("How long a token is valid: 10s or more. Absent: 15m. It is renewed after four fifths of it."))
          .add(field("refresh", &TokenSpec::refresh)
                   .has_default()
                   .describe("Whether the token is renewed. If not, the Secret is immutable."))
          .add(field("secretRef", &TokenSpec::secret_ref)
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe("The Secret to write, and its key. Absent: <name>-jwt-<username>, and SLURM_JWT. If username "
                             "cannot be part of a Secret's name (jane.doe@corp.example), its valid characters and a hash "
                             "replace it: <name>-jwt-jane-doe-corp-example-<hash>. When the Secret changes, the previous one "
                             "is deleted as soon as the new one has a token."))
          .rule("has(self.jwtKeyRef) || has(self.jwtHs256KeyRef)", "required", "jwtKeyRef")
          .rule(jwt_key_unchanged());
  return kList;
}

const FieldList& field_list(const TokenStatus*) {
  static const FieldList kList =
      FieldList("The observed state of a Token.")
          .add(field("observedGeneration", &TokenStatus::observed_generation)
                   .always()
                   .describe("The generation of the Token that this status describes."))
          .add(field("issuedAt", &TokenStatus::issued_at).always().describe("When the current token was issued."))
          .add(field("conditions", &TokenStatus::conditions).always().describe("The state, by aspect."));
  return kList;
}

const FieldList& field_list(const Token*) {
  static const FieldList kList =
      FieldList(
          "A Token is a Slurm JWT for one user. The operator keeps it in a Secret, with the labels and annotations of the "
          "Token, and renews it.")
          .add(field("spec", &Token::spec))
          .add(field("status", &Token::status))
          // The name becomes the value of a label of the Secret. Like name_is_label(), the rule applies only to new objects.
          .rule("has(self.status) || size(self.metadata.name) <= " + std::to_string(kMaxTokenName),
                "must have at most " + std::to_string(kMaxTokenName) + " characters", "metadata.name");
  return kList;
}

SecretKeySelector token_secret(const TokenSpec& spec, std::string_view name) {
  if (spec.secret_ref) return *spec.secret_ref;
  SecretKeySelector out;
  out.name = std::string(name) + "-jwt-";
  out.name += in_name(spec.username, kMaxObjectName - out.name.size());
  out.key = kKeyToken;
  return out;
}

}  // namespace api
