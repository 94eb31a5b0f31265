#include "operator/testing/fields.hpp"

#include <algorithm>
#include <set>
#include <sstream>

#include "api/kinds.hpp"
#include "api/testing/values.hpp"
#include "api/well_known.hpp"
#include "kube/apply_helper.hpp"

namespace op::testing {
namespace {

using Pointer = Json::json_pointer;

Json at(const Json& json, const Pointer& pointer) {
  return json.contains(pointer) ? json[pointer] : Json();
}

Json with(Json json, const Pointer& pointer, Json value) {
  json[pointer] = std::move(value);
  return json;
}

Json without(Json json, const Pointer& pointer) {
  if (json.contains(pointer)) json[pointer.parent_pointer()].erase(pointer.back());
  return json;
}

std::string dotted(const Pointer& pointer) {
  std::string out = pointer.to_string().substr(1);
  std::ranges::replace(out, '/', '.');
  return out;
}

/// Finds the fields that validation rules of the CRD compare with their old values.
void find_fixed(const Json& schema, const Pointer& here, std::set<Pointer>& out) {
  for (const Json& rule : schema.value("x-kubernetes-validations", Json::array())) {
    if (rule["rule"].get_ref<const std::string&>().find("oldSelf") == std::string::npos) continue;
    std::string path = rule.value("fieldPath", "");
    std::ranges::replace(path, '.', '/');
    out.insert(here / Pointer(path));
  }
  const Json properties = schema.value("properties", Json::object());
  for (const auto& [name, property] : properties.items()) find_fixed(property, here / name, out);
}

/// True if FieldsNotActedOn lists the field or a field that contains it. If `parts` is true, also true if FieldsNotActedOn
/// lists a part of the field.
bool tells(const State& state, const std::string& field, bool parts) {
  const std::string path = "spec." + field;
  const std::size_t list = state.not_acted_on.find(": ");
  if (list == std::string::npos) return false;
  std::istringstream words(state.not_acted_on.substr(list + 2));
  for (std::string word; words >> word;) {
    if (word.ends_with(',')) word.pop_back();
    if (path == word || path.starts_with(word + ".") || (parts && word.starts_with(path + "."))) return true;
  }
  return false;
}

std::string differences(const Json& a, const Json& b) {
  std::string out;
  for (const Json& change : Json::diff(a, b)) {
    out += "\n  " + change["op"].get<std::string>() + " " + change["path"].get<std::string>() + " " +
           change.value("value", Json()).dump().substr(0, 200);
  }
  return out;
}

class Search {
 public:
  Search(const char* kind, Json base, const States& states, const std::vector<std::string>& also_fixed)
      : base_(std::move(base)), states_(states) {
    for (const std::string& field : also_fixed) fixed_.insert(Pointer("/" + field));
    const Json schema = api::object_schema(*api::find_kind(kind));
    std::set<Pointer> fixed;
    find_fixed(schema, Pointer(), fixed);
    for (const Pointer& field : fixed) {
      const std::string text = field.to_string();
      if (text.starts_with("/spec/")) fixed_.insert(Pointer(text.substr(std::string_view("/spec").size())));
    }
    members(schema["properties"]["spec"], Pointer());
  }

  Findings found;

 private:
  void members(const Json& schema, const Pointer& at_owner) {
    Json required = schema.value("required", Json::array());
    for (const Json& rule : schema.value("x-kubernetes-validations", Json::array())) {
      if (rule["message"] == "must not be empty") required.push_back(rule.value("fieldPath", ".").substr(1));
    }
    for (const auto& [name, property] : schema["properties"].items()) {
      const Pointer here = at_owner / name;
      const bool inner = property.contains("properties") && !property.value("x-kubernetes-preserve-unknown-fields", false) &&
                         base_.contains(here);
      const bool must = std::ranges::find(required, Json(name)) != required.end();
      field(property, here, inner, must);
      if (inner) members(property, here);
    }
  }

  [[nodiscard]] bool refused(const std::vector<Json>& specs) const {
    return std::ranges::any_of(fixed_, [&](const Pointer& field) {
      return std::ranges::any_of(specs, [&](const Json& spec) { return at(spec, field) != at(specs.front(), field); });
    });
  }

  /// Returns the states after these specs. Applies the specs to one world. If the CRD refuses the changes between the specs,
  /// uses a new world for each spec.
  std::vector<State> states(const std::vector<Json>& specs) {
    if (!refused(specs)) return states_(specs);
    std::vector<State> out;
    for (const Json& spec : specs) out.push_back(states_({spec}).front());
    return out;
  }

  /// Checks one field. `inner`: the caller checks the members of the field one by one. `must`: the field cannot be removed.
  void field(const Json& property, const Pointer& here, bool inner, bool must) {
    const bool there = base_.contains(here);
    const Json initial = property.value("default", Json());
    const Json value = there ? base_[here] : api::other_value(property, initial);
    const Json set = with(base_, here, value), absent = without(base_, here);
    std::vector<Json> specs{base_};
    if (!inner) {
      if (!there) specs.push_back(set);
      specs.push_back(with(base_, here, api::other_value(property, value)));
      specs.push_back(base_);
    }
    if (there && !must) {
      specs.push_back(absent);
      specs.push_back(base_);
    }
    const std::vector<State> is = states(specs);
    const auto of = [&](const Json& spec) -> const State& {
      return is[static_cast<std::size_t>(std::ranges::find(specs, spec) - specs.begin())];
    };
    judge(dotted(here), of(set), inner ? nullptr : &is[there ? 1 : 2], must || value == initial ? nullptr : &of(absent));
    for (std::size_t i = 1; i < specs.size(); ++i) {
      if (specs[i] != base_) continue;
      const std::string left = differences(is[0].all, is[i].all);
      if (!left.empty() || is[0].not_acted_on != is[i].not_acted_on) found[dotted(here)] = "not restored:" + left;
    }
  }

  void judge(const std::string& name, const State& set, const State* changed, const State* absent) {
    const bool set_shows = absent != nullptr && absent->all != set.all;
    const bool change_shows = changed != nullptr && changed->all != set.all;
    const auto is_told = [&](bool parts) {
      return tells(set, name, parts) || (changed != nullptr && tells(*changed, name, parts));
    };
    if (set_shows || change_shows) {
      if (changed != nullptr && is_told(false))
        found[name] = "told, and has an effect";
      else if (absent != nullptr && !set_shows)
        found[name] = "no effect when it is set";
      else if (changed != nullptr && !change_shows)
        found[name] = "no effect when it changes";
    } else if (absent != nullptr || changed != nullptr) {
      found[name] = is_told(true) ? "told" : "no effect";
    }
  }

  Json base_;
  const States& states_;
  std::set<Pointer> fixed_;
};

bool of_writing(const std::string& name) {
  static const std::set<std::string, std::less<>> kNames{"uid",
                                                         "resourceVersion",
                                                         "generation",
                                                         "observedGeneration",
                                                         "creationTimestamp",
                                                         "lastTransitionTime",
                                                         "issuedAt",
                                                         "token.slinky.slurm.net/issued-at",
                                                         std::string(api::kAnnotationConfigRefresh),
                                                         std::string(api::kAnnotationAskedHash),
                                                         std::string(kube::kIntentHash)};
  return kNames.contains(name);
}

}  // namespace

Json without_versions(Json json) {
  if (json.is_object()) {
    Json out = Json::object();
    for (auto& [name, value] : json.items()) {
      if (!of_writing(name)) out[name] = without_versions(std::move(value));
    }
    return out;
  }
  if (!json.is_array()) return json;
  Json out = Json::array();
  for (Json& value : json) {
    if (!value.is_object() || value.value("type", Json()) != api::kConditionFieldsNotActedOn)
      out.push_back(without_versions(std::move(value)));
  }
  // If an item is removed from a list of named items and added again, it is at the end of the list. So the order does not
  // count.
  if (std::all_of(out.begin(), out.end(), [](const Json& value) { return value.is_object() && value.contains("name"); })) {
    std::sort(out.begin(), out.end(), [](const Json& a, const Json& b) { return a["name"].dump() < b["name"].dump(); });
  }
  return out;
}

State state_of(const World& world, const char* kind) {
  State out;
  for (Json object : world.objects()) {
    const std::string type = core::get_string(object, {"kind"}), name = core::get_string(object, {"metadata", "name"});
    if (type == kind && name == "x") {
      object.erase("spec");
      if (const Json* conditions = core::find(object, {"status", "conditions"})) {
        for (const Json& condition : *conditions) {
          if (condition["type"] == api::kConditionFieldsNotActedOn) out.not_acted_on = condition["message"];
        }
      }
    }
    // The values of Secrets do not count, because a newly minted token differs.
    if (type == "Secret") {
      for (auto& [key, value] : object["data"].items()) value = "";
    }
    out.all[type + "/" + name] = without_versions(std::move(object));
  }
  return out;
}

Findings field_findings(const char* kind, const Json& base, const States& states, const std::vector<std::string>& fixed) {
  return Search(kind, base, states, fixed).found;
}

}  // namespace op::testing
