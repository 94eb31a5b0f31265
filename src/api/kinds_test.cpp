#include "api/kinds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

#include "api/accounting.hpp"
#include "api/controller.hpp"
#include "api/loginset.hpp"
#include "api/nodeset.hpp"
#include "api/restapi.hpp"
#include "api/slurmaccount.hpp"
#include "api/slurmqos.hpp"
#include "api/testing/values.hpp"
#include "api/token.hpp"

namespace api {
namespace {

using core::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::Eq;
using testing::IsEmpty;
using testing::IsSupersetOf;

TEST(Kinds, CommittedFilesAreUpToDate) {
  for (const GeneratedFile& file : generated_files()) {
    std::ifstream in(file.path, std::ios::binary);
    std::stringstream have;
    have << in.rdbuf();
    EXPECT_TRUE(have.str() == file.text) << file.path << " is not what the field lists say: run slurm-operator-gen";
  }
}

TEST(Kinds, GenerationGivesTheSameTextEachTime) {
  const std::vector<GeneratedFile> a = generated_files();
  const std::vector<GeneratedFile> b = generated_files();
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].text, b[i].text);
}

TEST(Kinds, AreFoundByKindAndPlural) {
  EXPECT_EQ(find_kind("NodeSet"), find_kind("nodesets"));
  EXPECT_NE(find_kind("NodeSet"), nullptr);
  EXPECT_EQ(find_kind("Pod"), nullptr);
}

TEST(Kinds, OnlySetsScale) {
  for (const Kind& kind : kinds()) {
    const Json sub = crd(kind)["spec"]["versions"][0]["subresources"];
    EXPECT_TRUE(sub.contains("status"));
    EXPECT_EQ(sub.contains("scale"), kind.kind.ends_with("Set"));
  }
}

/// Visits every schema node with its path.
template <class Visit>
void walk(const Json& schema, const std::string& path, const Visit& visit) {
  visit(path, schema);
  if (schema.contains("properties")) {
    for (const auto& [name, property] : schema["properties"].items())
      walk(property, path.empty() ? name : path + "." + name, visit);
  }
  if (schema.contains("items")) walk(schema["items"], path + "[]", visit);
  if (schema.contains("additionalProperties")) walk(schema["additionalProperties"], path + "{}", visit);
}

TEST(Kinds, EveryFieldIsDescribed) {
  for (const Kind& kind : kinds()) {
    std::vector<std::string> core_types;
    for (const char* claim : {"spec.persistence.", "spec.storageConfig.persistence."}) {
      for (const char* field : {"resources.", "selector.", "dataSource.", "dataSourceRef."})
        core_types.push_back(std::string(claim) + field);
    }
    walk(object_schema(kind), "", [&](const std::string& path, const Json& schema) {
      if (schema.value("x-kubernetes-preserve-unknown-fields", false)) core_types.push_back(path + ".");
      const bool passed_on = std::any_of(core_types.begin(), core_types.end(),
                                         [&](const std::string& core_type) { return path.starts_with(core_type); });
      if (path.starts_with("metadata") || path.ends_with("[]") || path.ends_with("{}") || passed_on) return;
      EXPECT_TRUE(schema.contains("description")) << kind.kind << " " << path;
    });
  }
}

TEST(Kinds, WrongTypesOfWhatIsPassedOnAreRefusedByPath) {
  const auto refused = [](auto kind, const char* path, const char* spec) {
    Json document{{"spec", Json::parse(spec)}};
    document["spec"]["controllerRef"] = {{"name", "c"}};
    const auto read = from_json<decltype(kind)>(document);
    ASSERT_FALSE(read) << spec;
    EXPECT_TRUE(read.error().message.starts_with(std::string(path) + ": ")) << read.error().message;
  };
  refused(NodeSet{}, "spec.template.spec.affinity", R"({"template": {"spec": {"affinity": "x"}}})");
  refused(NodeSet{}, "spec.template.spec.affinity.podAntiAffinity",
          R"({"template": {"spec": {"affinity": {"podAntiAffinity": []}}}})");
  refused(
      NodeSet{}, "spec.template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
      R"({"template": {"spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}}}})");
  refused(NodeSet{}, "spec.template.spec.tolerations", R"({"template": {"spec": {"tolerations": {}}}})");
  refused(NodeSet{}, "spec.template.spec.hostNetwork", R"({"template": {"spec": {"hostNetwork": "true"}}})");
  refused(NodeSet{}, "spec.template.spec.containers[0].args", R"({"template": {"spec": {"containers": [{"args": "-v"}]}}})");
  refused(NodeSet{}, "spec.template.spec.volumes[0]", R"({"template": {"spec": {"volumes": ["x"]}}})");
  refused(NodeSet{}, "spec.slurmd.env", R"({"slurmd": {"env": {"A": "b"}}})");
  refused(NodeSet{}, "spec.logfile.image", R"({"logfile": {"image": 7}})");
  refused(RestApi{}, "spec.slurmrestd.args", R"({"slurmrestd": {"args": "-v"}})");
  refused(RestApi{}, "spec.service.spec.selector", R"({"service": {"spec": {"selector": "x"}}})");
  refused(RestApi{}, "spec.service.spec.selector[a]", R"({"service": {"spec": {"selector": {"a": 1}}}})");
  refused(RestApi{}, "spec.service.spec.ports", R"({"service": {"spec": {"ports": "x"}}})");
}

TEST(Kinds, SchemasAreStructural) {
  for (const Kind& kind : kinds()) {
    walk(object_schema(kind), "", [&](const std::string& path, const Json& schema) {
      EXPECT_TRUE(schema.contains("type") || schema.contains("x-kubernetes-int-or-string")) << kind.kind << " " << path;
      if (schema.contains("default")) {
        EXPECT_THAT(validate(schema, schema["default"], path), IsEmpty());
      }
      // A schema must not require a field that it does not declare.
      for (const Json& name : schema.value("required", Json::array())) {
        EXPECT_TRUE(schema["properties"].contains(name.get<std::string>())) << path << " " << name;
      }
    });
  }
}

TEST(Kinds, NoTextOfAnyLengthIsMatchedByARegex) {
  int patterns = 0;
  for (const Kind& kind : kinds()) {
    walk(object_schema(kind), "", [&](const std::string& path, const Json& schema) {
      if (!schema.contains("pattern")) return;
      ++patterns;
      EXPECT_TRUE(schema.contains("maxLength") || schema["pattern"] == kOneLinePattern) << kind.kind << " " << path;
    });
  }
  EXPECT_GT(patterns, 15);
}

/// Returns the schema of a path ("spec.template.metadata", "spec.a[].b"), or null.
const Json* at_path(const Json& schema, std::string path) {
  const Json* at = &schema;
  std::stringstream parts(path);
  for (std::string part; std::getline(parts, part, '.');) {
    const bool item = part.ends_with("[]");
    if (item) part.resize(part.size() - 2);
    if (!at->contains("properties") || !(*at)["properties"].contains(part)) return nullptr;
    at = &(*at)["properties"][part];
    if (item) at = &(*at)["items"];
  }
  return at;
}

TEST(Kinds, RulesPointAtFieldsThatExist) {
  int rules = 0;
  for (const Kind& kind : kinds()) {
    walk(object_schema(kind), "", [&](const std::string& path, const Json& schema) {
      for (const Json& rule : schema.value("x-kubernetes-validations", Json::array())) {
        ++rules;
        EXPECT_FALSE(rule["message"].get<std::string>().empty());
        if (rule.contains("fieldPath")) {
          EXPECT_NE(at_path(schema, rule["fieldPath"].get<std::string>().substr(1)), nullptr) << path << " " << rule;
        }
      }
    });
  }
  EXPECT_GT(rules, 15);
}

/// Returns the rules of a schema as "fieldPath: message".
std::vector<std::string> rules_of(const Json& schema) {
  std::vector<std::string> out;
  for (const Json& rule : schema.value("x-kubernetes-validations", Json::array())) {
    out.push_back(rule.value("fieldPath", "") + ": " + rule["message"].get<std::string>());
  }
  return out;
}

// tests/conformance/crd_test.sh tries the rules against an API server.
TEST(Kinds, NamesThatNothingCanBeDerivedFromAreRefused) {
  const auto name_rule = [](const char* kind) {
    const Json schema = object_schema(*find_kind(kind));
    for (const Json& rule : schema["x-kubernetes-validations"]) {
      if (rule.value("fieldPath", "") == ".metadata.name") return rule;
    }
    return Json();
  };
  EXPECT_EQ(
      name_rule("Controller")["rule"],
      "has(self.status) || (size(self.metadata.name) <= 41 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$'))");
  EXPECT_EQ(name_rule("Controller")["message"],
            "must have at most 41 characters of a-z, 0-9 and '-', begin with a letter and end with a letter or digit");
  EXPECT_EQ(name_rule("RestApi")["message"],
            "must have at most 55 characters of a-z, 0-9 and '-', begin with a letter and end with a letter or digit");
  EXPECT_EQ(name_rule("NodeSet")["rule"],
            "has(self.status) || (size(self.metadata.name) <= 61 && "
            "self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'))");
  EXPECT_EQ(name_rule("NodeSet")["message"],
            "must have at most 61 characters of a-z, 0-9 and '-', begin with a letter or digit and end with a letter or digit");
  EXPECT_EQ(name_rule("Token")["rule"], "has(self.status) || size(self.metadata.name) <= 63");
  EXPECT_THAT(rules_of(object_schema(*find_kind("NodeSet"))),
              IsSupersetOf(
                  {".metadata.name: must not be 'all' or 'default' without template.spec.hostname: they mean something else to "
                   "Slurm",
                   ".spec.template.spec.hostname: must not be 'all' or 'default', which mean something else to Slurm"}));
}

TEST(Kinds, RulesOfFieldsThatUsersGetWrong) {
  const Json nodeset = object_schema(*find_kind("NodeSet"));
  EXPECT_THAT(rules_of(nodeset["properties"]["spec"]),
              Contains(".template.spec.hostname: cannot be changed, added or removed"));
  EXPECT_THAT(rules_of(*at_path(object_schema(*find_kind("Token")), "spec.lifetime")), ElementsAre(": must be 10s or more"));
}

TEST(Kinds, TopologyIsToldByNamesOfLabels) {
  const auto problems = [](const std::string& label) {
    return validate(*at_path(object_schema(*find_kind("Controller")), "spec.topology.nodeLabels"), Json::array({label}), "");
  };
  for (const char* label : {"zone", "topology.kubernetes.io/zone", "network.example/rack_1.a"})
    EXPECT_THAT(problems(label), IsEmpty()) << label;
  for (const std::string& label : {std::string(), std::string("zone=a"), std::string("zone "), std::string(318, 'z')})
    EXPECT_FALSE(problems(label).empty()) << label;
}

// Users' manifests, charts and tools name these fields and rely on these defaults.
TEST(Kinds, HaveEveryFieldAndDefaultOfRelease121) {
  // In release 1.2.1, the default was an empty name, but no object with an empty name was valid.
  const std::set<std::string> stricter = {"RestApi spec.controllerRef.name", "NodeSet spec.controllerRef.name",
                                          "LoginSet spec.controllerRef.name"};
  std::ifstream in("src/api/testdata/fields_1.2.1.txt");
  int fields = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    std::stringstream words(line);
    std::string kind, path, type, initial;
    words >> kind >> path >> type >> initial;
    const Json schema = object_schema(*find_kind(kind));
    const Json* have = at_path(schema, path);
    ASSERT_NE(have, nullptr) << line;
    ++fields;
    const bool free = have->value("x-kubernetes-int-or-string", false);
    if (type != "any") {
      EXPECT_EQ(free ? "int-or-string" : (*have)["type"].get<std::string>(), type) << line;
    }
    if (!stricter.contains(kind + " " + path)) {
      EXPECT_EQ(have->contains("default") ? (*have)["default"].dump() : "-", initial) << line;
    }
  }
  EXPECT_GT(fields, 200);
}

/// Reads a document as a T, and writes the T as a document again.
template <class T>
Json through(const Json& json) {
  auto value = from_json<T>(json);
  if (!value) {
    ADD_FAILURE() << value.error().message;
    return nullptr;
  }
  return to_json(*value);
}

/// Changes each field of `base`, one at a time and at every depth. Each change must survive a round trip and be the only
/// difference.
template <class T>
class Mutation {
 public:
  Mutation(const Kind& kind, Json base) : base_(through<T>(base)) { members(object_schema(kind), Json::json_pointer(), ""); }
  std::set<std::string> changed;

 private:
  void members(const Json& schema, const Json::json_pointer& at, const std::string& path) {
    for (const auto& [name, property] : schema["properties"].items()) {
      if (path.empty() && name != "spec" && name != "status") continue;
      const std::string here = path.empty() ? name : path + "." + name;
      if (path.empty()) {
        members(property, at / name, here);
        continue;
      }
      change(property, at / name, here);
      const bool inner = property.contains("properties") && !property.value("x-kubernetes-preserve-unknown-fields", false);
      if (inner && base_.contains(at / name)) members(property, at / name, here);
    }
  }

  void change(const Json& schema, const Json::json_pointer& at, const std::string& path) {
    const Json before = base_.contains(at) ? base_[at] : Json();
    Json changed_document = base_;
    const Json value = other_value(schema, before);
    changed_document[at] = value;
    const Json after = through<T>(changed_document);
    EXPECT_TRUE(after.contains(at)) << path << " is lost";
    if (!after.contains(at)) return;
    EXPECT_TRUE(core::contains(after[at], value)) << path << ": " << value << " became " << after[at];
    EXPECT_NE(after, base_) << path;
    for (const std::string& difference : core::diff_paths(base_, after)) {
      EXPECT_TRUE(difference.starts_with(path)) << "changing " << path << " changed " << difference;
    }
    changed.insert(path);
  }

  Json base_;
};

const Json kSomeSpec = {{"controllerRef", {{"name", "c"}}}};

TEST(Kinds, EveryFieldOfAControllerSurvivesARoundTrip) {
  const Mutation<Controller> mutation(*find_kind("Controller"), Json::object());
  EXPECT_THAT(mutation.changed, Contains("spec.persistence.accessModes"));
  EXPECT_THAT(mutation.changed, Contains("spec.metrics.serviceMonitor"));
  EXPECT_GT(mutation.changed.size(), 35u);
}
TEST(Kinds, EveryFieldOfAControllerWithAllPartsSurvivesARoundTrip) {
  const Json schema = object_schema(*find_kind("Controller"));
  const Json all = {{"spec", other_value(schema["properties"]["spec"], Json())}};
  const Mutation<Controller> mutation(*find_kind("Controller"), all);
  EXPECT_THAT(mutation.changed, Contains("spec.metrics.serviceMonitor.labels"));
  EXPECT_THAT(mutation.changed, Contains("spec.externalConfig.host"));
  EXPECT_GT(mutation.changed.size(), 70u);
}
TEST(Kinds, EveryFieldOfARestApiSurvivesARoundTrip) {
  const Mutation<RestApi> mutation(*find_kind("RestApi"), {{"spec", kSomeSpec}});
  EXPECT_GT(mutation.changed.size(), 5u);
}
TEST(Kinds, EveryFieldOfANodeSetSurvivesARoundTrip) {
  const Mutation<NodeSet> mutation(*find_kind("NodeSet"), {{"spec", kSomeSpec}});
  EXPECT_THAT(mutation.changed, Contains("spec.updateStrategy.rollingUpdate.maxUnavailable"));
  EXPECT_THAT(mutation.changed, Contains("status.slurmIdle"));
  EXPECT_GT(mutation.changed.size(), 40u);
}
TEST(Kinds, EveryFieldOfALoginSetSurvivesARoundTrip) {
  const Mutation<LoginSet> mutation(*find_kind("LoginSet"), {{"spec", kSomeSpec}});
  EXPECT_THAT(mutation.changed, Contains("spec.authorizedKeysRefs"));
  EXPECT_THAT(mutation.changed, Contains("spec.strategy"));
  EXPECT_GT(mutation.changed.size(), 12u);
}
TEST(Kinds, EveryFieldOfAnAccountingSurvivesARoundTrip) {
  const Json schema = object_schema(*find_kind("Accounting"));
  const Json all = {{"spec", other_value(schema["properties"]["spec"], Json())}};
  const Mutation<Accounting> mutation(*find_kind("Accounting"), all);
  EXPECT_THAT(mutation.changed, Contains("spec.storageConfig.passwordKeyRef.name"));
  EXPECT_THAT(mutation.changed, Contains("spec.externalConfig.host"));
  EXPECT_GT(mutation.changed.size(), 30u);
}
TEST(Kinds, EveryFieldOfASlurmQosSurvivesARoundTrip) {
  const Json spec = {{"accountingRef", {{"name", "a"}}}, {"limits", {{"grpJobs", 1}, {"grpTRES", {{"cpu", 1}}}}}};
  const Mutation<SlurmQos> mutation(*find_kind("SlurmQos"), {{"spec", spec}});
  EXPECT_THAT(mutation.changed, Contains("spec.limits.grpTRES"));
  EXPECT_THAT(mutation.changed, Contains("spec.capacityCluster"));
  EXPECT_THAT(mutation.changed, Contains("spec.limits.maxWallDurationPerJob"));
  EXPECT_GT(mutation.changed.size(), 40u);
}
TEST(Kinds, EveryFieldOfASlurmAccountSurvivesARoundTrip) {
  const Json spec = {{"accountingRef", {{"name", "a"}}}, {"limits", {{"grpJobs", 1}, {"grpTRES", {{"cpu", 1}}}}}};
  const Mutation<SlurmAccount> mutation(*find_kind("SlurmAccount"), {{"spec", spec}});
  EXPECT_THAT(mutation.changed, IsSupersetOf({"spec.limits.grpTRES", "spec.qos", "spec.clusters", "status.applied"}));
  EXPECT_GT(mutation.changed.size(), 30u);
}
TEST(Kinds, EveryFieldOfASlurmUserSurvivesARoundTrip) {
  const Json association = {{"account", "a"}, {"limits", {{"grpJobs", 1}, {"grpTRES", {{"cpu", 1}}}}}};
  const Json spec = {{"accountingRef", {{"name", "a"}}}, {"associations", Json::array({association})}};
  const Mutation<SlurmUser> mutation(*find_kind("SlurmUser"), {{"spec", spec}});
  EXPECT_THAT(mutation.changed, IsSupersetOf({"spec.adminLevel", "spec.associations", "status.applied"}));
}
TEST(Kinds, EveryFieldOfASlurmAssociationSurvivesARoundTrip) {
  const Json spec = {
      {"accountingRef", {{"name", "a"}}}, {"account", "a"}, {"limits", {{"grpJobs", 1}, {"grpTRES", {{"cpu", 1}}}}}};
  const Mutation<SlurmAssociation> mutation(*find_kind("SlurmAssociation"), {{"spec", spec}});
  EXPECT_THAT(mutation.changed, IsSupersetOf({"spec.user", "spec.partition", "spec.limits.grpTRES", "status.applied"}));
}
TEST(Kinds, EveryFieldOfATokenSurvivesARoundTrip) {
  const Json spec = {{"username", "u"}, {"jwtKeyRef", {{"name", "n"}, {"key", "k"}}}};
  const Mutation<Token> mutation(*find_kind("Token"), {{"spec", spec}});
  EXPECT_GT(mutation.changed.size(), 10u);
}

TEST(Kinds, ANewStructIsWhatAnEmptyDocumentReads) {
  EXPECT_EQ(to_json(Controller{}), through<Controller>(Json::object()));
  EXPECT_EQ(to_json(ControllerSpec{}), through<ControllerSpec>(Json::object()));
  NodeSetSpec spec;
  spec.controller_ref.name = "c";
  EXPECT_EQ(to_json(spec), through<NodeSetSpec>(kSomeSpec));
}

TEST(Yaml, BlockStyleWithQuotesWhereNeeded) {
  EXPECT_EQ(to_yaml({{"a", {1, "b", {{"c", true}, {"d", Json::array()}}}}, {"e", Json::object()}, {"f", {{"g", "x: y"}}}}),
            "a:\n- 1\n- b\n- c: true\n  d: []\ne: {}\nf:\n  g: \"x: y\"\n");
  for (const char* text :
       {"", "true", "No", "null", "1", "-", "a: b", "# c", "a\nb", "\"", "'", "*", " a", "a ", "{", "1.5", "~", "0x1"}) {
    EXPECT_EQ(to_yaml({{"k", text}}), "k: " + Json(text).dump() + "\n");
  }
  EXPECT_EQ(to_yaml({{"k", "plain words, all of them."}}), "k: plain words, all of them.\n");
}

TEST(Yaml, ListsInLists) {
  EXPECT_EQ(to_yaml(Json::array({Json::array({1, 2}), Json::array({3})})), "- - 1\n  - 2\n- - 3\n");
}

}  // namespace
}  // namespace api
