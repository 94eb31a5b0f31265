#include "cli/redact.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <span>
#include <utility>

#include "core/base64.hpp"
#include "core/hash.hpp"

namespace cli {
namespace {

using core::Json;

/// Values shorter than this are not searched for, because removing them would remove ordinary words from texts.
constexpr std::size_t kShortest = 6;
/// A log is split into lines, so the lines of a secret value are also searched for, if they have at least this length.
constexpr std::size_t kShortestLine = 16;

/// Environment variables that the operator sets itself. Their values are shown.
constexpr std::array<std::string_view, 4> kOpenVariables{"POD_CPUS", "POD_MEMORY", "POD_NAME", "POD_NAMESPACE"};

/// Reports whether programs store whole manifests in this annotation; some manifests are compressed.
bool is_manifest(std::string_view annotation) {
  return annotation.ends_with("/last-applied-configuration") || annotation.ends_with("/last-applied") ||
         annotation.starts_with("kapp.k14s.io/original") || annotation == "objectset.rio.cattle.io/applied";
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

bool contains_any(std::string_view word, std::span<const std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return word.find(part) != std::string_view::npos; });
}

/// Reports whether the name is a password in an LDAP configuration file (sssd.conf, nslcd.conf, slapd.conf), where a space can
/// separate the name from the value.
bool of_ldap(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNames{"authtok", "bindpw", "rootpw"};
  return contains_any(lower(name), kNames);
}

/// Reports whether a value with this name is secret. A name that only refers to a secret ("token_file") is not sensitive.
bool sensitive(std::string_view name) {
  const std::string word = lower(name);
  constexpr std::array<std::string_view, 16> kAboutOne{"missing", "taken",    "refused", "expired", "name", "ref",
                                                       "refs",    "hash",     "file",    "path",    "type", "size",
                                                       "seconds", "lifetime", "key_ref", "ready"};
  if (std::ranges::any_of(kAboutOne, [&](std::string_view end) { return word.ends_with(end); })) return false;
  constexpr std::array<std::string_view, 14> kIn{"password",    "passwd",     "passphrase",    "secret",  "token",
                                                 "credential",  "privatekey", "private_key",   "authtok", "bindpw",
                                                 "private-key", "apikey",     "authorization", "rootpw"};
  if (contains_any(word, kIn)) return true;
  constexpr std::array<std::string_view, 9> kEnd{"pass", "pwd", "_pw", "-pw", "api_key", "api-key", "cookie", "_jwt", "-jwt"};
  return word == "jwt" || word == "auth" ||
         std::ranges::any_of(kEnd, [&](std::string_view end) { return word.ends_with(end); });
}

bool in_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}
bool is_quote(char c) {
  return c == '"' || c == '\'';
}

/// Reports whether this argument ("--token") means that the next item of an argument list is a secret value.
bool names_secret(std::string_view argument) {
  return argument.starts_with('-') && argument.find('=') == std::string_view::npos && sensitive(argument);
}

/// Returns the length of the separator between an option and its value in a list; 0 if there is none. The list is JSON
/// (`"--token", "abc"`), or YAML with one item on each line.
std::size_t between_items(std::string_view text) {
  std::size_t at = 0;
  const auto skip = [&](const auto& wanted) {
    const std::size_t begin = at;
    while (at < text.size() && wanted(text[at])) ++at;
    return at > begin;
  };
  const bool quoted = skip([](char c) { return c == '\\' || is_quote(c); });
  skip([](char c) { return c == ' ' || c == '\t'; });
  const bool comma = at < text.size() && text[at] == ',';
  if (comma) ++at;
  const bool line = skip(is_space);
  const bool dash = line && text.substr(at).starts_with("- ");
  if (dash) at += 2;
  if (comma ? !quoted : !dash) return 0;
  skip([](char c) { return c == ' ' || c == '\\'; });
  if (at < text.size() && is_quote(text[at])) ++at;
  return at;
}

/// Copies a text from front to back, without the secrets.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  std::string run() {
    while (!rest_.empty()) {
      if (take_private_key() || take_url_password()) continue;
      if (in_word(rest_.front())) {
        take_word();
      } else {
        copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  void copy(std::size_t count) {
    out_.append(rest_.substr(0, count));
    rest_.remove_prefix(count);
  }
  void drop(std::size_t count) {
    rest_.remove_prefix(std::min(count, rest_.size()));
    out_.append(kRedacted);
  }

  bool take_private_key() {
    constexpr std::string_view kBegin = "-----BEGIN ", kEnd = "-----END ";
    if (!rest_.starts_with(kBegin)) return false;
    const std::string_view head = rest_.substr(0, rest_.find('\n'));
    if (head.find("PRIVATE KEY") == std::string_view::npos) return false;
    const std::size_t end = rest_.find(kEnd);
    const std::size_t dashes = end == std::string_view::npos ? end : rest_.find("-----", end + kEnd.size());
    drop(dashes == std::string_view::npos ? rest_.size() : dashes + 5);
    return true;
  }

  /// Copies "://user:" and drops the password if the text goes on with "://user:PASSWORD@host". Returns false if it does not.
  bool take_url_password() {
    constexpr std::string_view kSlashes = "://";
    if (!rest_.starts_with(kSlashes)) return false;
    const std::size_t end = rest_.find_first_of(" \t\r\n\"'/", kSlashes.size());
    const std::string_view authority =
        rest_.substr(kSlashes.size(), end == std::string_view::npos ? end : end - kSlashes.size());
    const std::size_t at = authority.rfind('@');
    const std::size_t colon = authority.find(':');
    if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) return false;
    copy(kSlashes.size() + colon + 1);
    drop(at - colon - 1);
    return true;
  }

  void take_word() {
    const auto end = std::ranges::find_if_not(rest_, in_word);
    const std::string_view word = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    if (is_jwt(word)) return drop(word.size());
    const std::string kept = lower(word);
    const bool option = names_secret(word);
    // In a configuration file the value extends to the end of the line.
    const bool whole_line = begins_line();
    const bool spaced = option || (whole_line && of_ldap(word));
    const bool secret = sensitive(word);
    copy(word.size());
    if (kept == "bearer" || kept == "basic") return take_after_space();
    if (!secret) return;
    if (const std::size_t length = option ? between_items(rest_) : 0; length > 0) {
      copy(length);
      return drop_value(false);
    }
    // The separator between a name and its value is = or :, with optional quotes and spaces. After an option of a program, the
    // separator can be a space.
    std::size_t at = 0;
    bool separated = false;
    while (at < rest_.size() && (is_quote(rest_[at]) || rest_[at] == ' ' || rest_[at] == '\t' || rest_[at] == '\\' ||
                                 (!separated && (rest_[at] == '=' || rest_[at] == ':')))) {
      separated = separated || rest_[at] == '=' || rest_[at] == ':';
      ++at;
    }
    if (!separated && !(spaced && at > 0)) return;
    copy(at);
    // In "Authorization: Bearer X", the token follows as the next word and is scanned then.
    if (lower(rest_.substr(0, 7)) == "bearer " || lower(rest_.substr(0, 6)) == "basic ") return;
    drop_value(whole_line);
  }

  /// Reports whether only spaces, or the dash of a list, precede the current position on its line.
  [[nodiscard]] bool begins_line() const {
    const std::size_t at = out_.find_last_not_of(" \t-");
    return at == std::string::npos || out_[at] == '\n';
  }

  void drop_value(bool whole_line) {
    const bool quoted = !out_.empty() && is_quote(out_.back());
    const std::size_t length = quoted ? quoted_length() : whole_line ? line_length() : plain_length();
    if (length > 0) drop(length);
  }

  /// Returns the length of a value without quotes. A password may contain any character except a space.
  [[nodiscard]] std::size_t plain_length() const {
    return static_cast<std::size_t>(std::ranges::find_if(rest_, is_space) - rest_.begin());
  }
  [[nodiscard]] std::size_t line_length() const { return std::min(rest_.find_first_of("\r\n"), rest_.size()); }
  /// Returns the length up to the quote that closes the last written quote. In a document within a string, the closing quote
  /// is escaped.
  [[nodiscard]] std::size_t quoted_length() const {
    const char quote = out_.back();
    const bool escaped = out_.size() > 1 && out_[out_.size() - 2] == '\\';
    for (std::size_t at = 0; at < rest_.size(); ++at) {
      if (rest_[at] == quote || rest_[at] == '\n') return escaped && at > 0 && rest_[at - 1] == '\\' ? at - 1 : at;
      if (rest_[at] == '\\' && !escaped) ++at;
    }
    return rest_.size();
  }

  void take_after_space() {
    std::size_t at = 0;
    while (at < rest_.size() && rest_[at] == ' ') ++at;
    if (at == 0) return;
    copy(at);
    if (const std::size_t length = plain_length(); length > 0) drop(length);
  }

  static bool is_jwt(std::string_view word) {
    return word.size() > 20 && word.starts_with("eyJ") && std::ranges::count(word, '.') >= 1;
  }

  std::string_view rest_;
  std::string out_;
};

void add_forms(std::string_view value, std::set<std::string>& forms) {
  while (!value.empty() && std::isspace(static_cast<unsigned char>(value.back())) != 0) value.remove_suffix(1);
  if (value.size() < kShortest) return;
  forms.emplace(value);
  forms.insert(core::base64_encode(value));
  // Also looks for the value as it appears in a JSON document.
  std::string escaped = Json(std::string(value)).dump(-1, ' ', false, Json::error_handler_t::replace);
  forms.insert(escaped.substr(1, escaped.size() - 2));
}

}  // namespace

Redactor::Redactor(const std::vector<std::string>& values) {
  std::set<std::string> forms;
  for (const std::string& value : values) {
    add_forms(value, forms);
    forms.insert(core::base64_encode(value));
    for (std::size_t begin = 0; begin < value.size();) {
      const std::size_t end = std::min(value.find('\n', begin), value.size());
      if (end - begin >= kShortestLine) add_forms(std::string_view(value).substr(begin, end - begin), forms);
      begin = end + 1;
    }
  }
  std::erase_if(forms, [](const std::string& form) { return form.size() < kShortest; });
  values_.assign(forms.begin(), forms.end());
  std::ranges::stable_sort(values_, std::ranges::greater{}, &std::string::size);
}

std::string Redactor::text(std::string_view text) const {
  std::string out(text);
  for (const std::string& value : values_) {
    for (std::size_t at = 0; (at = out.find(value, at)) != std::string::npos; at += kRedacted.size())
      out.replace(at, value.size(), kRedacted);
  }
  return Scanner(out).run();
}

Json Redactor::annotation(std::string_view name, Json value) const {
  if (value.is_string() && !sensitive(name)) {
    // Annotations of other programs often contain whole resources.
    if (auto document = core::parse_json(value.get_ref<const std::string&>()); document && document->is_structured())
      return member("", std::move(*document)).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return member(name, std::move(value));
}

Json Redactor::member(std::string_view name, Json value) const {
  if (value.is_string()) {
    const std::string& content = value.get_ref<const std::string&>();
    return sensitive(name) && !content.empty() ? Json(std::string(kRedacted)) : Json(text(content));
  }
  if (value.is_array()) {
    bool is_value = false;
    for (Json& item : value) {
      // The value of an environment variable can be secret, and so can the argument of a program.
      if (name == "env" && item.is_object() && item.contains("value") && item["value"].is_string() &&
          std::ranges::find(kOpenVariables, core::get_string(item, {"name"})) == kOpenVariables.end())
        item["value"] = kRedacted;
      const bool redacted = std::exchange(is_value, item.is_string() && names_secret(item.get_ref<const std::string&>()));
      item = redacted && item.is_string() ? Json(kRedacted) : member(sensitive(name) ? name : "", std::move(item));
    }
    return value;
  }
  if (!value.is_object()) return value;
  Json out = Json::object();
  for (auto& [key, inner] : value.items()) {
    if (key == "managedFields" || is_manifest(key)) continue;
    out[text(key)] = name == "annotations" ? annotation(key, std::move(inner)) : member(key, std::move(inner));
  }
  return out;
}

Json Redactor::object(Json object, std::string_view salt) const {
  if (core::get_string(object, {"kind"}) == "Secret") {
    Json facts = Json::object();
    for (const char* list : {"data", "stringData"}) {
      const Json* data = core::find(object, {list});
      if (data == nullptr || !data->is_object()) continue;
      for (const auto& [key, value] : data->items()) {
        const std::string encoded = value.is_string() ? value.get<std::string>() : "";
        const std::string bytes = core::base64_decode(encoded).value_or(encoded);
        facts[key] = {{"bytes", bytes.size()}, {"saltedHash", core::short_hash(std::string(salt) + bytes, 16)}};
      }
    }
    object.erase("data");
    object.erase("stringData");
    Json out = member("", std::move(object));
    // The names of keys are never secret.
    out["dataFacts"] = std::move(facts);
    return out;
  }
  return member("", std::move(object));
}

}  // namespace cli
