#include "api/field.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <regex>

namespace api {
namespace {

using core::Json;

constexpr std::size_t kShownValue = 80;
constexpr std::size_t kMaxDuration = 64;

/// Reports whether the value is zero or empty. For members without a default, this means the same as absent.
bool is_zero(const Json& json) {
  if (json.is_number()) return json == 0;
  if (json.is_boolean()) return !json.get<bool>();
  if (json.is_string()) return json.get_ref<const std::string&>().empty();
  return json.empty();
}

std::string join(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kShownValue) text = text.substr(0, kShownValue) + "...";
  return text;
}

bool matches(const std::string& pattern, const std::string& text) {
  if (pattern == kOneLinePattern) return !text.empty() && text.find('\n') == std::string::npos;
  static std::mutex mutex;
  static std::map<std::string, std::regex, std::less<>> compiled;
  const std::lock_guard lock(mutex);
  auto it = compiled.find(pattern);
  if (it == compiled.end()) it = compiled.emplace(pattern, std::regex(pattern, std::regex::ECMAScript)).first;
  return std::regex_search(text, it->second);
}

class Validator {
 public:
  std::vector<std::string> problems;

  void value(const Json& schema, const Json& json, const std::string& path) {
    // null has the same meaning as an absent value.
    if (json.is_null()) return;
    if (schema.value("x-kubernetes-int-or-string", false)) {
      if (!json.is_number_integer() && !json.is_string()) refuse(path, json, "must be a number or a string");
      if (json.is_string()) string(schema, json, path);
      if (json.is_number_integer()) integer(schema, json, path);
      return;
    }
    const auto said = schema.find("type");
    const std::string_view type = said == schema.end() ? std::string_view() : said->get_ref<const std::string&>();
    if (type == "object") return object(schema, json, path);
    if (type == "array") return array(schema, json, path);
    if (type == "string") return string(schema, json, path);
    if (type == "integer") return integer(schema, json, path);
    if (type == "boolean" && !json.is_boolean()) refuse(path, json, "must be true or false");
  }

 private:
  void refuse(const std::string& path, const Json& json, const std::string& allowed) {
    problems.push_back((path.empty() ? "object" : path) + ": " + shown(json) + ", " + allowed);
  }

  void object(const Json& schema, const Json& json, const std::string& path) {
    if (!json.is_object()) return refuse(path, json, "must be an object");
    // Iterates over the document, which usually has far fewer members than the schema.
    if (auto properties = schema.find("properties"); properties != schema.end()) {
      for (const auto& [name, member] : json.items()) {
        if (auto it = properties->find(name); it != properties->end()) value(*it, member, join(path, name));
      }
    }
    if (auto items = schema.find("additionalProperties"); items != schema.end()) {
      for (const auto& [name, item] : json.items()) value(*items, item, path + "[" + name + "]");
    }
    if (auto names = schema.find("required"); names != schema.end()) {
      for (const Json& entry : *names) {
        const auto& name = entry.get_ref<const std::string&>();
        const bool absent = !json.contains(name) || json[name].is_null();
        if (absent && !schema["properties"][name].contains("default")) problems.push_back(join(path, name) + ": required");
      }
    }
  }

  void array(const Json& schema, const Json& json, const std::string& path) {
    if (!json.is_array()) return refuse(path, json, "must be a list");
    const std::size_t least = schema.value("minItems", std::size_t{0}), most = schema.value("maxItems", SIZE_MAX);
    if (json.size() < least) refuse(path, json, "must not be empty");
    if (json.size() > most) return refuse(path, json, "must have at most " + std::to_string(most) + " items");
    if (!schema.contains("items")) return;
    for (std::size_t i = 0; i < json.size(); ++i) value(schema["items"], json[i], path + "[" + std::to_string(i) + "]");
  }

  void string(const Json& schema, const Json& json, const std::string& path) {
    if (!json.is_string()) return refuse(path, json, "must be a string");
    const auto& text = json.get_ref<const std::string&>();
    if (auto words = schema.find("enum"); words != schema.end()) {
      std::string allowed;
      for (const Json& word : *words) {
        if (word == json) return;
        allowed += (allowed.empty() ? "" : ", ") + word.get<std::string>();
      }
      return refuse(path, json, "must be one of: " + allowed);
    }
    if (text.size() < schema.value("minLength", std::size_t{0})) refuse(path, json, "must not be empty");
    if (auto limit = schema.find("maxLength"); limit != schema.end() && text.size() > limit->get<std::size_t>()) {
      return refuse(path, json, "must have at most " + limit->dump() + " characters");
    }
    if (auto pattern = schema.find("pattern"); pattern != schema.end() && !matches(pattern->get<std::string>(), text)) {
      refuse(path, json, "must match " + pattern->get<std::string>());
    } else if (pattern != schema.end() && *pattern == kDurationPattern && !parse_duration(text)) {
      refuse(path, json, "is too long");
    }
    if (schema.value("format", "") == "date-time" && !core::parse_rfc3339(text)) {
      refuse(path, json, "must be a time such as 2026-01-02T03:04:05Z");
    }
  }

  void integer(const Json& schema, const Json& json, const std::string& path) {
    if (!json.is_number_integer()) return refuse(path, json, "must be a whole number");
    const auto low = schema.find("minimum");
    const auto high = schema.find("maximum");
    const bool below = low != schema.end() && json < *low;
    const bool above = high != schema.end() && json > *high;
    if (below || above) {
      if (low == schema.end()) return refuse(path, json, "must be " + high->dump() + " or less");
      if (high == schema.end()) return refuse(path, json, "must be " + low->dump() + " or more");
      return refuse(path, json, "must be from " + low->dump() + " to " + high->dump());
    }
    const bool wide = schema.value("format", "") == "int64";
    if (!wide && high == schema.end() && (json > INT32_MAX || json < INT32_MIN)) refuse(path, json, "must fit in 32 bits");
  }
};

Json rules_json(const std::vector<Rule>& rules) {
  Json out = Json::array();
  for (const Rule& rule : rules) {
    Json& entry = out.emplace_back(Json{{"rule", rule.cel}, {"message", rule.message}});
    if (!rule.at.empty()) entry["fieldPath"] = "." + rule.at;
  }
  return out;
}

void append_rules(Json& schema, const std::vector<Rule>& rules) {
  if (rules.empty()) return;
  Json& all = schema["x-kubernetes-validations"];
  for (Json& rule : rules_json(rules)) all.push_back(std::move(rule));
}

/// Collects the deepest paths at which two values differ. A subtree that one side lacks counts as one path.
void differing(const Json& a, const Json& b, const std::string& path, std::vector<std::string>& out) {
  if (a == b) return;
  if (!a.is_object() || !b.is_object()) {
    out.push_back(path);
    return;
  }
  Json keys = a;
  keys.update(b);
  for (const auto& [name, unused] : keys.items()) {
    differing(a.value(name, Json()), b.value(name, Json()), join(path, name), out);
  }
}

}  // namespace

Json Field::schema() const {
  if (type_schema == nullptr) return limits;
  Json out = type_schema();
  out.merge_patch(limits);
  return out;
}

Field& Field::describe(std::string text) {
  description = std::move(text);
  return *this;
}
Field& Field::has_default() {
  default_value = initial();
  return *this;
}
Field& Field::required() {
  is_required = true;
  return *this;
}
Field& Field::nullable() {
  limits["nullable"] = true;
  return *this;
}
Field& Field::minimum(std::int64_t n) {
  limits["minimum"] = n;
  return *this;
}
Field& Field::maximum(std::int64_t n) {
  limits["maximum"] = n;
  return *this;
}
Field& Field::min_length(std::size_t n) {
  limits["minLength"] = n;
  return *this;
}
Field& Field::max_length(std::size_t n) {
  limits["maxLength"] = n;
  return *this;
}
Field& Field::items(std::size_t least, std::size_t most) {
  if (least > 0) limits["minItems"] = least;
  limits["maxItems"] = most;
  return *this;
}
Field& Field::pattern(std::string regex, std::size_t longest) {
  limits["pattern"] = std::move(regex);
  return max_length(longest);
}
Field& Field::one_line() {
  limits["pattern"] = kOneLinePattern;
  return *this;
}
Field& Field::rule(std::string cel, std::string message, std::string at) {
  rules.push_back({std::move(cel), std::move(message), std::move(at)});
  return *this;
}
Field& Field::immutable() {
  return rule("self == oldSelf", "cannot be changed; delete the object and create it again");
}
Field& Field::schema_of(Json new_schema) {
  type_schema = nullptr;
  limits = std::move(new_schema);
  return *this;
}
Field& Field::not_acted_on() {
  is_not_acted_on = true;
  return *this;
}
Field& Field::not_acted_on(std::string member) {
  members_not_acted_on.push_back(std::move(member));
  return *this;
}
Field& Field::always() {
  is_always = true;
  return *this;
}

FieldList& FieldList::add(Field field) {
  fields_.push_back(std::move(field));
  return *this;
}
FieldList& FieldList::rule(Rule rule) {
  rules_.push_back(std::move(rule));
  return *this;
}
FieldList& FieldList::atomic() {
  atomic_ = true;
  return *this;
}

Json FieldList::schema() const {
  Json properties = Json::object();
  Json names = Json::array();
  for (const Field& field : fields_) {
    if (field.is_embedded) {
      properties.update(field.schema()["properties"]);
      continue;
    }
    Json property = field.schema();
    if (!field.description.empty()) property["description"] = field.description;
    if (field.default_value) property["default"] = *field.default_value;
    append_rules(property, field.rules);
    properties[field.name] = std::move(property);
    if (field.is_required) names.push_back(field.name);
  }
  Json out = {{"type", "object"}, {"description", description_}, {"properties", std::move(properties)}};
  if (!names.empty()) out["required"] = std::move(names);
  if (atomic_) out["x-kubernetes-map-type"] = "atomic";
  append_rules(out, rules_);
  return out;
}

Json FieldList::write(const void* object) const {
  Json out = Json::object();
  for (const Field& field : fields_) {
    Json value = field.write(object);
    if (field.is_embedded) {
      out.update(value);
    } else if (field.is_always || (field.is_optional ? !value.is_null() : field.default_value || !is_zero(value))) {
      out[field.name] = std::move(value);
    }
  }
  return out;
}

void FieldList::read(void* object, const Json& json) const {
  static const Json kAbsent;
  for (const Field& field : fields_) {
    if (!field.is_embedded) {
      auto it = json.find(field.name);
      field.read(object, it == json.end() ? kAbsent : *it);
    } else if (field.is_raw) {
      Json part = Json::object();
      for (const auto& [name, unused] : field.limits["properties"].items()) {
        if (auto it = json.find(name); it != json.end() && !it->is_null()) part[name] = *it;
      }
      field.read(object, part);
    } else {
      field.read(object, json);
    }
  }
}

std::vector<std::string> validate(const Json& schema, const Json& json, const std::string& path) {
  Validator validator;
  if (json.is_null()) {
    validator.value(schema, Json::object(), path);
  } else {
    validator.value(schema, json, path);
  }
  return std::move(validator.problems);
}

Json without_texts(Json schema) {
  if (!schema.is_object()) return schema;
  schema.erase("x-kubernetes-validations");
  schema.erase("description");
  if (const auto properties = schema.find("properties"); properties != schema.end()) {
    for (auto& [name, property] : properties->items()) property = without_texts(std::move(property));
  }
  for (const char* below : {"items", "additionalProperties"}) {
    if (const auto found = schema.find(below); found != schema.end()) *found = without_texts(std::move(*found));
  }
  return schema;
}

void apply_defaults(const Json& schema, Json& json) {
  if (json.is_array() && schema.contains("items")) {
    for (Json& item : json) apply_defaults(schema["items"], item);
  }
  if (!json.is_object()) return;
  if (auto properties = schema.find("properties"); properties != schema.end()) {
    for (const auto& [name, property] : properties->items()) {
      const bool absent = !json.contains(name) || (json[name].is_null() && !property.value("nullable", false));
      if (absent && property.contains("default")) json[name] = property["default"];
      if (auto it = json.find(name); it != json.end()) apply_defaults(property, *it);
    }
  }
  if (auto items = schema.find("additionalProperties"); items != schema.end()) {
    for (auto& [name, item] : json.items()) apply_defaults(*items, item);
  }
}

std::vector<std::string> not_acted_on_paths(const FieldList& list, const Json& json, const Json& initial,
                                            const std::string& path) {
  static const Json kAbsent;
  const auto member_of = [](const Json& object, const std::string& name) -> const Json& {
    const auto it = object.find(name);
    return it == object.end() ? kAbsent : *it;
  };
  std::vector<std::string> out;
  for (const Field& field : list.fields()) {
    if (field.is_embedded) continue;
    const Json& is = member_of(json, field.name);
    const Json& was = member_of(initial, field.name);
    const std::string here = join(path, field.name);
    for (const std::string& member : field.members_not_acted_on) {
      if (is.is_object() && is.contains(member) && !is_zero(is[member])) out.push_back(join(here, member));
    }
    if (field.is_not_acted_on) {
      // A zero value requests nothing.
      if (!was.is_null() || !is_zero(is)) differing(is, was, here, out);
    } else if (field.child != nullptr && is.is_object()) {
      for (std::string& below : not_acted_on_paths(*field.child, is, was.is_object() ? was : Json::object(), here)) {
        out.push_back(std::move(below));
      }
    }
  }
  return out;
}

const std::string_view kDurationPattern = R"(^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)$)";

const std::string_view kOneLinePattern = R"(^[^\n]+$)";

std::string format_duration(core::Duration d) {
  std::int64_t left = d.count();
  if (left == 0) return "0s";
  std::string out = left < 0 ? "-" : "";
  left = std::abs(left);
  const auto take = [&](std::int64_t unit, const char* name) {
    if (left >= unit) out += std::to_string(left / unit) + name;
    left %= unit;
  };
  take(3'600'000, "h");
  take(60'000, "m");
  take(1'000, "s");
  take(1, "ms");
  return out;
}

core::Result<core::Duration> parse_duration(std::string_view text) {
  static const std::map<std::string, double, std::less<>> kUnits = {{"ns", 1e-6}, {"us", 1e-3},    {"µs", 1e-3},     {"ms", 1},
                                                                    {"s", 1e3},   {"m", 60 * 1e3}, {"h", 3600 * 1e3}};
  const auto wrong = [&] {
    return core::fail(core::ErrorCode::kInvalid, "\"" + std::string(text) + "\", must be a duration such as 30m, 1h30m or 90s");
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return core::Duration{0};
  if (rest.empty()) return wrong();
  double total = 0;
  while (!rest.empty()) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    const std::size_t end = std::min(rest.find_first_of("0123456789.", digits), rest.size());
    const auto unit = kUnits.find(rest.substr(digits, end - digits));
    const std::string number(rest.substr(0, digits));
    if (unit == kUnits.end() || number.find_first_of("0123456789") == std::string::npos ||
        std::count(number.begin(), number.end(), '.') > 1) {
      return wrong();
    }
    total += std::strtod(number.c_str(), nullptr) * unit->second;
    rest.remove_prefix(end);
  }
  if (total > 9.2e12) return wrong();  // The limit of Go, 292 years.
  const auto count = static_cast<std::int64_t>(total);
  return core::Duration{negative ? -count : count};
}

Json Codec<IntOrString>::schema() {
  return {{"anyOf", {{{"type", "integer"}}, {{"type", "string"}}}}, {"x-kubernetes-int-or-string", true}};
}
Json Codec<IntOrString>::write(const IntOrString& v) {
  return std::visit([](const auto& value) { return Json(value); }, v.value);
}
void Codec<IntOrString>::read(const Json& j, IntOrString& v) {
  if (j.is_string()) {
    v.value = j.get<std::string>();
  } else {
    v.value = j.get<std::int64_t>();
  }
}

Json Codec<core::Duration>::schema() {
  return {{"type", "string"}, {"pattern", kDurationPattern}, {"maxLength", kMaxDuration}};
}
void Codec<core::Duration>::read(const Json& j, core::Duration& v) {
  v = parse_duration(j.get_ref<const std::string&>()).value_or(core::Duration{0});
}

void Codec<core::WallTime>::read(const Json& j, core::WallTime& v) {
  v = core::parse_rfc3339(j.get_ref<const std::string&>()).value_or(core::WallTime{});
}

Json Codec<StringMap>::write(const StringMap& v) {
  Json out = Json::object();
  for (const auto& [name, value] : v) out[name] = value;
  return out;
}
void Codec<StringMap>::read(const Json& j, StringMap& v) {
  v.clear();
  for (const auto& [name, value] : j.items()) v.emplace(name, value.is_string() ? value.get<std::string>() : "");
}

}  // namespace api
