// A custom resource is a plain struct with one field list. The list defines how the struct is read from and written to JSON.
// The CRD schema and its rules, the reference documentation, field diffs, and the tests that mutate every field are also
// derived from the list.
//
//   struct NodeSetSpec {
//     std::int32_t replicas = 1;
//     core::Json slurmd = core::Json::object();   // a core type that is only passed on
//   };
//   const FieldList& field_list(const NodeSetSpec*) {
//     static const FieldList list = FieldList("The desired state of a NodeSet.")
//         .add(field("replicas", &NodeSetSpec::replicas).has_default().minimum(0).describe("How many workers to run."))
//         .add(field("slurmd", &NodeSetSpec::slurmd).describe("Merged over the slurmd container."));
//     return list;
//   }
//   core::Result<NodeSetSpec> spec = api::from_json<NodeSetSpec>(json);
//
// A default is written once, as the member's initializer; has_default() copies it into the schema. For members without a
// default, absent, null and zero mean the same. Only a std::optional distinguishes absent from zero. Objects of other API
// groups have no structs of their own: they stay core::Json.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "core/clock.hpp"
#include "core/json.hpp"
#include "core/result.hpp"

namespace api {

using StringMap = std::map<std::string, std::string, std::less<>>;

/// A number, or a text such as "25%" or "unlimited". The field says which texts are allowed.
struct IntOrString {
  std::variant<std::int64_t, std::string> value = std::int64_t{0};
  friend bool operator==(const IntOrString&, const IntOrString&) = default;
};

/// A CEL rule that the API server evaluates.
struct Rule {
  std::string cel;
  std::string message;  ///< Says what is allowed. The API server prepends the path.
  std::string at;  ///< The path from the field or struct with the rule to the wrong member. "": the field or struct itself.
};

class FieldList;

/// Describes one member of a struct. A Field has the same C++ type for every struct.
class Field {
 public:
  Field& describe(std::string text);
  /// Makes the member's initializer the default value of the field.
  Field& has_default();
  Field& required();
  /// Accepts an explicit null, which means absent.
  Field& nullable();
  Field& minimum(std::int64_t n);
  Field& maximum(std::int64_t n);
  Field& min_length(std::size_t n);
  Field& max_length(std::size_t n);
  /// Limits how many items a list has.
  Field& items(std::size_t least, std::size_t most);
  /// Requires a text that matches `regex`, of at most `longest` characters. The limit bounds the stack that std::regex uses.
  Field& pattern(std::string regex, std::size_t longest);
  /// Requires a single line, not empty, of any length.
  Field& one_line();
  Field& rule(std::string cel, std::string message, std::string at = "");
  /// Forbids changes of a value that is set. For members that users can add or remove, write a rule on the struct instead.
  Field& immutable();
  /// Sets the schema for the value of a core::Json member. The default schema allows an object with any fields.
  Field& schema_of(core::Json schema);
  /// Marks a field that has no effect. The condition FieldsNotActedOn lists the field if it differs from its default.
  Field& not_acted_on();
  /// Marks `member` of a core::Json value as without effect. FieldsNotActedOn lists the member unless its value is zero.
  Field& not_acted_on(std::string member);
  /// Marks a status field that is written even if it is zero, and as null if it is absent, so that a merge patch resets it.
  Field& always();

  /// Returns the type and limits of the member, without description and default.
  [[nodiscard]] core::Json schema() const;

  std::string name;
  std::string description;
  /// Returns the schema of the member's type. If this function is null, `limits` is the whole schema. The schema is not stored,
  /// because every struct around the member would keep another copy.
  core::Json (*type_schema)() = nullptr;
  core::Json limits = core::Json::object();  ///< Keywords that are added to, or replaced in, the schema of the field's type.
  std::vector<Rule> rules;
  bool is_required = false;
  bool is_not_acted_on = false;
  std::vector<std::string> members_not_acted_on;
  bool is_always = false;
  bool is_optional = false;  ///< The member is a std::optional: absent and zero differ.
  /// The fields of the member appear in the JSON object of the struct itself.
  bool is_embedded = false;
  bool is_raw = false;                      ///< The member is core::Json.
  std::optional<core::Json> default_value;  ///< Set by has_default().
  const FieldList* child = nullptr;  ///< The fields of the member's type, or of its items' type; null if that is no struct.

  std::function<core::Json(const void* owner)> write;
  /// Sets the member from validated JSON. `json` is null if the member is absent.
  std::function<void(void* owner, const core::Json& json)> read;
  std::function<core::Json()> initial;  ///< Returns the JSON that this member has in a default-constructed owner.
};

/// The fields of a struct, in the order in which documentation shows them.
class FieldList {
 public:
  explicit FieldList(std::string description) : description_(std::move(description)) {}
  FieldList& add(Field field);
  FieldList& rule(std::string cel, std::string message, std::string at = "") {
    return rule(Rule{std::move(cel), std::move(message), std::move(at)});
  }
  FieldList& rule(Rule rule);
  /// Makes server-side apply replace the struct as a whole (x-kubernetes-map-type: atomic).
  FieldList& atomic();

  [[nodiscard]] const std::vector<Field>& fields() const { return fields_; }
  [[nodiscard]] const std::vector<Rule>& rules() const { return rules_; }
  [[nodiscard]] const std::string& description() const { return description_; }
  /// Returns the structural OpenAPI v3 schema, with descriptions and defaults.
  [[nodiscard]] core::Json schema() const;

  [[nodiscard]] core::Json write(const void* object) const;
  void read(void* object, const core::Json& json) const;

 private:
  std::string description_;
  std::vector<Field> fields_;
  std::vector<Rule> rules_;
  bool atomic_ = false;
};

/// Returns everything in `json` that the schema refuses, each as "path: value, what is allowed" or "path: required"; empty if
/// `json` is valid. `path` is the path of `json` itself. Does not check for unknown fields or CEL rules: the API server does.
std::vector<std::string> validate(const core::Json& schema, const core::Json& json, const std::string& path);
/// Returns the schema without descriptions and CEL rules, which validate() does not read.
core::Json without_texts(core::Json schema);
/// Fills in the schema's defaults as the API server does. Absent objects stay absent.
void apply_defaults(const core::Json& schema, core::Json& json);
/// Returns the paths, below `path`, of the fields marked with not_acted_on() whose values in `json` and `initial` differ.
std::vector<std::string> not_acted_on_paths(const FieldList& list, const core::Json& json, const core::Json& initial,
                                            const std::string& path);

/// Formats a duration as Go does ("1h30m", "90s", "0s").
std::string format_duration(core::Duration d);
/// Parses a duration as Go formats it. Drops fractions of a millisecond. Error: kInvalid.
core::Result<core::Duration> parse_duration(std::string_view text);
extern const std::string_view kDurationPattern;
/// The only pattern that needs no maxLength, because the check does not use std::regex.
extern const std::string_view kOneLinePattern;

template <class T>
concept Described = requires {
  { field_list(static_cast<const T*>(nullptr)) } -> std::same_as<const FieldList&>;
};

/// An enum with a function `constexpr std::array<std::string_view, N> enum_names(E)`, which returns the names in value order.
template <class T>
concept NamedEnum = std::is_enum_v<T> && requires(T e) {
  enum_names(e)[0];
};

template <NamedEnum E>
std::string_view to_string(E value) {
  static constexpr auto kNames = enum_names(E{});
  return kNames[static_cast<std::size_t>(value)];
}

/// Writes values of a type to JSON, reads them from JSON, and returns the schema. `read` gets only validated JSON.
template <class T>
struct Codec;

template <>
struct Codec<bool> {
  static core::Json schema() { return {{"type", "boolean"}}; }
  static core::Json write(bool v) { return v; }
  static void read(const core::Json& j, bool& v) { v = j.get<bool>(); }
};
template <>
struct Codec<std::int32_t> {
  static core::Json schema() { return {{"type", "integer"}, {"format", "int32"}}; }
  static core::Json write(std::int32_t v) { return v; }
  static void read(const core::Json& j, std::int32_t& v) { v = j.get<std::int32_t>(); }
};
template <>
struct Codec<std::int64_t> {
  static core::Json schema() { return {{"type", "integer"}, {"format", "int64"}}; }
  static core::Json write(std::int64_t v) { return v; }
  static void read(const core::Json& j, std::int64_t& v) { v = j.get<std::int64_t>(); }
};
template <>
struct Codec<std::string> {
  static core::Json schema() { return {{"type", "string"}}; }
  static core::Json write(const std::string& v) { return v; }
  static void read(const core::Json& j, std::string& v) { v = j.get<std::string>(); }
};
template <>
struct Codec<core::Json> {
  static core::Json schema() { return {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}; }
  static core::Json write(const core::Json& v) { return v; }
  static void read(const core::Json& j, core::Json& v) { v = j; }
};
template <>
struct Codec<IntOrString> {
  static core::Json schema();
  static core::Json write(const IntOrString& v);
  static void read(const core::Json& j, IntOrString& v);
};
template <>
struct Codec<core::Duration> {
  static core::Json schema();
  static core::Json write(core::Duration v) { return format_duration(v); }
  static void read(const core::Json& j, core::Duration& v);
};
template <>
struct Codec<core::WallTime> {
  static core::Json schema() { return {{"type", "string"}, {"format", "date-time"}}; }
  static core::Json write(core::WallTime v) { return core::format_rfc3339(v); }
  static void read(const core::Json& j, core::WallTime& v);
};
template <NamedEnum E>
struct Codec<E> {
  static core::Json schema() {
    core::Json words = core::Json::array();
    for (std::string_view name : enum_names(E{})) words.push_back(name);
    return {{"type", "string"}, {"enum", words}};
  }
  static core::Json write(E v) { return to_string(v); }
  static void read(const core::Json& j, E& v) {
    std::size_t i = 0;
    for (std::string_view name : enum_names(E{})) {
      if (j == name) v = static_cast<E>(i);
      ++i;
    }
  }
};
template <Described T>
struct Codec<T> {
  static const FieldList& list() { return field_list(static_cast<const T*>(nullptr)); }
  static core::Json schema() { return list().schema(); }
  static core::Json write(const T& v) { return list().write(&v); }
  static void read(const core::Json& j, T& v) { list().read(&v, j); }
};
template <class T>
struct Codec<std::optional<T>> {
  static core::Json schema() { return Codec<T>::schema(); }
  static core::Json write(const std::optional<T>& v) { return v ? Codec<T>::write(*v) : core::Json(nullptr); }
  static void read(const core::Json& j, std::optional<T>& v) { Codec<T>::read(j, v.emplace()); }
};
template <class T>
struct Codec<std::vector<T>> {
  static core::Json schema() { return {{"type", "array"}, {"items", Codec<T>::schema()}}; }
  static core::Json write(const std::vector<T>& v) {
    core::Json out = core::Json::array();
    for (const T& item : v) out.push_back(Codec<T>::write(item));
    return out;
  }
  static void read(const core::Json& j, std::vector<T>& v) {
    v.clear();
    for (const core::Json& item : j) Codec<T>::read(item, v.emplace_back());
  }
};
template <>
struct Codec<StringMap> {
  static core::Json schema() { return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}}; }
  static core::Json write(const StringMap& v);
  static void read(const core::Json& j, StringMap& v);
};

template <>
struct Codec<std::map<std::string, IntOrString, std::less<>>> {
  using Map = std::map<std::string, IntOrString, std::less<>>;
  static core::Json schema() { return {{"type", "object"}, {"additionalProperties", Codec<IntOrString>::schema()}}; }
  static core::Json write(const Map& v) {
    core::Json out = core::Json::object();
    for (const auto& [name, value] : v) out[name] = Codec<IntOrString>::write(value);
    return out;
  }
  static void read(const core::Json& j, Map& v) {
    v.clear();
    for (const auto& [name, value] : j.items()) Codec<IntOrString>::read(value, v[name]);
  }
};

namespace detail {
template <class T>
struct Inner {
  using type = T;
  static constexpr bool kOptional = false;
};
template <class T>
struct Inner<std::optional<T>> {
  using type = T;
  static constexpr bool kOptional = true;
};
template <class T>
struct Inner<std::vector<T>> {
  using type = T;
  static constexpr bool kOptional = false;
};
}  // namespace detail

/// Describes one member of a struct. `name` is its name in JSON.
template <class Owner, class Member>
Field field(std::string name, Member Owner::*member) {
  using Inner = detail::Inner<Member>;
  Field f;
  f.name = std::move(name);
  f.type_schema = &Codec<Member>::schema;
  f.is_optional = Inner::kOptional;
  f.is_raw = std::is_same_v<Member, core::Json>;
  if constexpr (Described<typename Inner::type>) f.child = &Codec<typename Inner::type>::list();
  f.write = [member](const void* owner) { return Codec<Member>::write(static_cast<const Owner*>(owner)->*member); };
  f.read = [member](void* owner, const core::Json& json) {
    Member& target = static_cast<Owner*>(owner)->*member;
    target = Owner{}.*member;
    if (!json.is_null()) {
      Codec<Member>::read(json, target);
    } else if constexpr (Described<Member>) {
      Codec<Member>::read(core::Json::object(), target);
    }
  };
  f.initial = [member] { return Codec<Member>::write(Owner{}.*member); };
  return f;
}

/// Describes a member whose fields appear in the JSON object of the struct itself.
template <class Owner, Described Member>
Field embed(Member Owner::*member) {
  Field f = field("", member);
  f.is_embedded = true;
  return f;
}

/// Describes a core::Json member that holds several fields of the struct's own JSON object. `properties` lists these fields, as
/// in a schema.
template <class Owner>
Field embed_raw(core::Json Owner::*member, core::Json properties) {
  Field f = field("", member);
  f.is_embedded = true;
  return f.schema_of({{"type", "object"}, {"properties", std::move(properties)}});
}

/// Reads a struct. Absent members get their defaults. `path` is the path of `json` itself. Error: kInvalid, with all problems.
template <Described T>
core::Result<T> from_json(const core::Json& json, const std::string& path = "") {
  static const core::Json kSchema = without_texts(Codec<T>::schema());
  if (std::vector<std::string> problems = validate(kSchema, json, path); !problems.empty()) {
    std::string text;
    for (const std::string& problem : problems) text += (text.empty() ? "" : "; ") + problem;
    return core::fail(core::ErrorCode::kInvalid, text);
  }
  T value;
  Codec<T>::list().read(&value, json);
  return value;
}

/// Writes a struct. Members with a default, or marked with always(), are always written. A std::optional is written if it is
/// set, and any other member if it is not zero.
template <Described T>
core::Json to_json(const T& value) {
  return Codec<T>::write(value);
}

/// Returns the paths ("spec.replicas") at which two values differ.
template <Described T>
std::vector<std::string> diff(const T& a, const T& b) {
  return core::diff_paths(to_json(a), to_json(b));
}

/// Returns the paths below `path` of fields that this release accepts but does not act on, and that differ from their default.
template <Described T>
std::vector<std::string> fields_not_acted_on(const T& value, const std::string& path = "spec") {
  static const core::Json kInitial = to_json(T{});
  return not_acted_on_paths(Codec<T>::list(), to_json(value), kInitial, path);
}

}  // namespace api
