// The functions that all runners of tests/scenarios use. tests/scenarios/README.md describes the language.
#pragma once

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"
#include "plan/plan.hpp"
#include "slurm/model.hpp"

namespace op::testing {

/// Converts a YAML document. Numbers and booleans are read as in JSON. Quoted scalars are strings.
inline core::Json from_yaml(const YAML::Node& node) {
  if (node.IsMap()) {
    core::Json out = core::Json::object();
    for (const auto& item : node) out[item.first.as<std::string>()] = from_yaml(item.second);
    return out;
  }
  if (node.IsSequence()) {
    core::Json out = core::Json::array();
    for (const auto& item : node) out.push_back(from_yaml(item));
    return out;
  }
  if (!node.IsScalar()) return nullptr;
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // Quoted.
  core::Json parsed = core::Json::parse(text, nullptr, false);
  return parsed.is_number() || parsed.is_boolean() ? parsed : core::Json(text);
}

/// True if the text matches the pattern, in which "*" stands for any text.
inline bool matches(std::string_view pattern, std::string_view text) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  for (std::size_t from = star; from <= text.size(); ++from) {
    if (matches(pattern.substr(star + 1), text.substr(from))) return true;
  }
  return false;
}

/// Compares what a scenario wants with what was found (nullopt: the thing does not exist). "(absent)" matches only a thing that
/// does not exist, and "(present)" only one that does. Other texts are patterns for things that exist. A leading "!" negates a
/// pattern.
inline bool holds(std::string_view want, const std::optional<std::string>& found) {
  if (want == "(absent)") return !found.has_value();
  if (!found) return false;
  if (want == "(present)") return true;
  return want.starts_with('!') ? !matches(want.substr(1), *found) : matches(want, *found);
}

/// Formats a list for test messages, one item a line.
inline std::string lines(const std::vector<std::string>& items) {
  std::string out;
  for (const std::string& item : items) out += "  - " + item + "\n";
  return out.empty() ? "  (nothing)\n" : out;
}

/// Formats what was wanted and what was found, for test messages.
inline std::string found_of(const core::Json& want, const std::optional<std::string>& found) {
  return "\n  wanted: " + want.dump() + "\n  found:  " + found.value_or("(absent)");
}

/// Throws std::invalid_argument, because a scenario with a misspelt word could pass for the wrong reason.
[[noreturn]] inline void unknown(std::string_view word) {
  throw std::invalid_argument("unknown: " + std::string(word));
}

/// Throws std::invalid_argument for a key that is not among `known`.
inline void check_keys(const core::Json& object, const std::vector<std::string_view>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) == known.end()) unknown(key);
  }
}

/// Returns the only key and value of an action such as `- advance: 600`. Throws std::invalid_argument unless the action has
/// exactly one key.
inline std::pair<std::string, core::Json> only_item(const core::Json& action) {
  if (action.size() != 1) throw std::invalid_argument("not one action: " + action.dump());
  return {action.begin().key(), action.begin().value()};
}

/// The value of `run:` in a step. `passes`: the maximum number of passes. `must_rest`: the test fails if something is left to
/// do after these passes. "settle", the default, means 25 passes with must_rest. "once" means 1 pass, and "none" means 0
/// passes, both without must_rest.
struct Run {
  int passes = 25;
  bool must_rest = true;
};
inline Run run_of(const core::Json& step) {
  if (!step.contains("run") || step["run"] == "settle") return {};
  const core::Json& run = step["run"];
  if (run == "once") return {1, false};
  if (run == "none") return {0, false};
  if (!run.is_number_unsigned()) unknown(run.dump());
  return {run.get<int>(), false};
}

/// Returns the error code with this name ("Forbidden"). Throws std::invalid_argument for an unknown name.
inline core::ErrorCode code_of(const std::string& word) {
  using enum core::ErrorCode;
  for (const auto code :
       {kInvalid, kForbidden, kUnauthorized, kAlreadyExists, kConflict, kUnavailable, kBusy, kUnsupported, kInternal}) {
    if (core::to_string(code) == word) return code;
  }
  unknown(word);
}

/// Splits "Kind/name" at `at`. The second part is "" if `at` does not occur.
inline std::pair<std::string, std::string> split(const std::string& text, char at = '/') {
  const std::size_t place = text.find(at);
  return place == std::string::npos ? std::pair(text, std::string()) : std::pair(text.substr(0, place), text.substr(place + 1));
}

// ---- Slurm's state ----

/// Parses "IDLE+DRAIN": adds the flags after the first '+' to `flags` and returns what precedes it.
template <class Flags>
std::string read_state(const std::string& text, Flags& flags) {
  std::istringstream words(text);
  std::string base;
  std::getline(words, base, '+');
  for (std::string flag; std::getline(words, flag, '+');) flags.insert(flag);
  return base;
}

/// Reads `node: {name, state, reason, comment, features, topology, started, weight, address, hostname}`. Changes only the given
/// members. An example of a state is "IDLE+DRAIN".
inline void read_node(slurm::Node& node, const core::Json& want) {
  check_keys(want, {"name", "state", "reason", "comment", "features", "topology", "started", "weight", "address", "hostname",
                    "cpus", "memory", "gres", "partitions"});
  if (want.contains("started")) node.slurmd_start_time = core::parse_rfc3339(want["started"].get<std::string>()).value();
  if (want.contains("state")) {
    node.state.flags.clear();
    node.state.base = read_state(want["state"], node.state.flags);
  }
  if (want.contains("reason")) node.reason = want["reason"];
  if (want.contains("comment")) node.comment = want["comment"];
  if (want.contains("topology")) node.topology = want["topology"];
  if (want.contains("address")) node.address = want["address"];
  if (want.contains("hostname")) node.hostname = want["hostname"];
  if (want.contains("weight")) node.weight = want["weight"];
  if (want.contains("cpus")) node.cpus = want["cpus"];
  if (want.contains("memory")) node.real_memory_mib = want["memory"];
  if (want.contains("gres")) node.gres = want["gres"];
  if (want.contains("partitions")) node.partitions = want["partitions"].get<std::vector<std::string>>();
  if (want.contains("features")) node.features = node.active_features = want["features"].get<std::vector<std::string>>();
}

/// Returns the state in the format that `read_node` parses, followed by the reason: "IDLE+DRAIN bad disk".
inline std::string text_of(const slurm::Node& node) {
  std::string out = node.state.base;
  for (const std::string& flag : node.state.flags) out += "+" + flag;
  return node.reason.empty() ? out : out + " " + node.reason;
}

/// Reads `job: cpu-0`, a job on that node, or `job: {id, on, requires, state, prolog, partition, limited, requeue, licenses,
/// gres}`. The job ends in an hour. With `limited: false`, it has no time limit.
inline slurm::Job read_job(const core::Json& want, core::WallTime now) {
  slurm::Job job;
  const core::Json said = want.is_object() ? want : core::Json{{"on", want}};
  check_keys(said, {"id", "on", "requires", "state", "prolog", "partition", "limited", "requeue", "licenses", "gres"});
  job.id = said.value("id", std::int64_t{0});
  if (said.contains("on")) {
    const core::Json& on = said["on"];
    job.nodes = (on.is_array() ? on : core::Json::array({on})).get<std::vector<std::string>>();
  }
  job.required_nodes = said.value("requires", "");
  job.state = read_state(said.value("state", "RUNNING"), job.flags);
  job.prolog = said.value("prolog", false);
  job.partition = said.value("partition", "");
  job.batch = true;
  job.requeue = said.value("requeue", true);
  if (said.value("limited", true)) job.end = now + core::Duration{3600000};
  job.licenses = said.value("licenses", std::vector<std::string>{});
  job.gres = said.value("gres", std::vector<std::string>{});
  return job;
}

// ---- Expectations ----

/// True for steps that only report something. The expectation `did` ignores such steps.
inline bool is_report(std::string_view id) {
  for (const char* prefix :
       {"status", "event ", "create ControllerRevision", "delete ControllerRevision", "renew ControllerRevision",
        "record ControllerRevision", "complete ControllerRevision", "report ", "comment ", "mark "}) {
    if (id.starts_with(prefix)) return true;
  }
  return false;
}

inline void expect_did(const core::Json& want, std::vector<std::string> did) {
  std::erase_if(did, [](const std::string& id) { return is_report(id.starts_with('!') ? id.substr(1) : id); });
  const auto wanted = want.get<std::vector<std::string>>();
  const bool same = std::equal(wanted.begin(), wanted.end(), did.begin(), did.end(),
                               [](const std::string& pattern, const std::string& id) { return matches(pattern, id); });
  EXPECT_TRUE(same) << "wanted:\n" << lines(wanted) << "did:\n" << lines(did);
}

inline void expect_did_not(const core::Json& patterns, const std::vector<std::string>& did) {
  for (const core::Json& pattern : patterns) {
    for (const std::string& id : did) EXPECT_FALSE(matches(pattern.get<std::string>(), id)) << "did: " << id;
  }
}

inline void expect_events(const core::Json& want, const std::vector<std::string>& events) {
  ASSERT_EQ(events.size(), want.size()) << lines(events);
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(matches(want[i].get<std::string>(), events[i])) << events[i];
}

/// Compares all existing things with `want`, by name. `text` returns the description of a thing, in the notation of scenarios.
template <class Things, class Text>
void expect_each(const core::Json& want, const Things& things, const Text& text) {
  for (const auto& [name, thing] : things) EXPECT_TRUE(want.contains(name)) << "unexpected: " << name;
  for (const auto& [name, value] : want.items()) {
    const auto it = things.find(name);
    const std::optional<std::string> found = it == things.end() ? std::nullopt : std::optional<std::string>(text(it->second));
    EXPECT_TRUE(holds(value.template get<std::string>(), found)) << name << found_of(value, found);
  }
}

/// Compares conditions with texts like "False SecretMissing message". `text` describes a condition; nullopt: it does not exist.
template <class Text>
void expect_conditions(const core::Json& want, const Text& text) {
  for (const auto& [type, value] : want.items()) {
    const std::optional<std::string> found = text(type);
    EXPECT_TRUE(holds(value.template get<std::string>(), found)) << type << found_of(value, found);
  }
}

inline void expect_wake(const core::Json& want, const plan::Plan& last) {
  EXPECT_EQ(last.wake() ? last.wake()->count() : 0, want.get<long long>());
}

// ---- Files ----

/// Returns the files of tests/scenarios/FOLDER, sorted. The list is empty outside of the root of the repository.
inline std::vector<std::string> scenario_files(const std::vector<std::string>& folders) {
  std::vector<std::string> out;
  for (const std::string& folder : folders) {
    const std::filesystem::path path = std::filesystem::path("tests/scenarios") / folder;
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      if (entry.path().extension() == ".yaml") out.push_back(entry.path().string());
    }
  }
  std::ranges::sort(out);
  return out;
}

/// Returns FOLDER_FILE as the name of a test.
inline std::string scenario_name(const ::testing::TestParamInfo<std::string>& info) {
  const std::filesystem::path path(info.param);
  std::string out = path.parent_path().filename().string() + "_" + path.stem().string();
  std::ranges::replace_if(
      out, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return out;
}

}  // namespace op::testing
