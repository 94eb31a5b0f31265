// Values of fields, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "api/field.hpp"
#include "core/json.hpp"

namespace api {

/// Returns a valid value for a schema, other than `than`. Fails the test if it finds none.
inline core::Json other_value(const core::Json& schema, const core::Json& than) {
  using core::Json;
  if (schema.contains("enum")) {
    for (const Json& word : schema["enum"]) {
      if (word != than) return word;
    }
  }
  if (schema.value("x-kubernetes-int-or-string", false)) return than == 7 ? 8 : 7;
  const std::string type = schema.value("type", "");
  if (type == "boolean") return than != true;
  if (type == "integer") {
    const std::int64_t low = schema.value("minimum", 1);
    return than == low + 1 ? low + 2 : low + 1;
  }
  if (type == "string") {
    if (schema.value("format", "") == "date-time")
      return than == "2026-01-02T03:04:05Z" ? "2026-01-02T03:04:06Z" : "2026-01-02T03:04:05Z";
    for (const char* text : {"abc", "abd", "7h", "8h", "1Gi", "2Gi", "v0.0.44", "v0.0.45"}) {
      if (text != than && validate(schema, text, "").empty()) return text;
    }
  }
  if (type == "array") return Json::array({other_value(schema["items"], than.is_array() && !than.empty() ? than[0] : Json())});
  if (type == "object") {
    if (schema.contains("additionalProperties")) {
      return {{"a", other_value(schema["additionalProperties"], than.is_object() ? than.value("a", Json()) : Json())}};
    }
    if (schema.value("x-kubernetes-preserve-unknown-fields", false)) return {{"anything", than.dump()}};
    Json out = Json::object();
    for (const auto& [name, property] : schema["properties"].items()) {
      out[name] = other_value(property, than.is_object() ? than.value(name, Json()) : Json());
    }
    return out;
  }
  ADD_FAILURE() << "no other value for " << schema.dump();
  return nullptr;
}

}  // namespace api
