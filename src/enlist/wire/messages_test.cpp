#include "enlist/wire/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/hash.hpp"

namespace enlist {
namespace {

using core::ErrorCode;
using core::Json;
using namespace std::chrono_literals;

template <class T>
std::string refusal(const Json& json) {
  const auto read = from_json<T>(json);
  if (read) return "";
  EXPECT_EQ(read.error().code, ErrorCode::kInvalid);
  return read.error().message;
}

Report a_report() {
  return {.hostname = "h1",
          .boot_id = "b1",
          .slurm_version = "26.05.1",
          .conf = R"(CPUs=8 Reason="a b")",
          .instance_id = "i1",
          .running = true,
          .key_revision = "k1",
          .key_loaded = "k0",
          .registrations = 3,
          .error = "no",
          .check_passed = true,
          .started = core::WallTime{2000ms},
          .steps_known = true,
          .steps = {"12.batch"},
          .stopped = true,
          .left = true,
          .note = "n"};
}
Node a_node() {
  Node out{.name = "gpu-1", .pool = "gpu", .key = std::string(64, 'a'), .node_conf = "Weight=5", .registrations = 3};
  out.revoked = true;
  out.joined = core::WallTime{1'767'323'045'678ms};
  out.report = a_report();
  out.confirmed = "i1";
  out.gate_boot = "b0";
  out.phase = Phase::kReady;
  out.message = "m";
  out.leaving = {.wanted = true, .force = true, .dead = true, .stop = true, .since = core::WallTime{1000ms}};
  out.configuring = {.wanted = true, .live = true, .stop = true, .conf = "Weight=5", .since = core::WallTime{1000ms}};
  out.live = {.weight = true, .dropped = {"ssd"}};
  out.marks = {.reason = "fan", .comment = "row 7"};
  out.silent_since = core::WallTime{2000ms};
  return out;
}

TEST(Messages, HaveTheNamesOfTheirMembers) {
  EXPECT_EQ(to_json(a_report()), Json::parse(R"({"hostname": "h1", "boot_id": "b1", "slurm_version": "26.05.1",
      "conf": "CPUs=8 Reason=\"a b\"", "instance_id": "i1", "running": true, "key_revision": "k1", "key_loaded": "k0",
      "registrations": 3,
      "error": "no", "check_passed": true, "started": "1970-01-01T00:00:02.000000Z", "steps_known": true,
      "steps": ["12.batch"], "stopped": true, "left": true, "note": "n"})"));
  EXPECT_EQ(
      to_json(Desired{.node = "gpu-1", .pool = "gpu", .cluster = "c", .controllers = {"a:1", "b:1"}, .node_conf = "Weight=5"}),
      Json::parse(R"({"node": "gpu-1", "pool": "gpu", "cluster": "c", "controllers": ["a:1", "b:1"],
                "node_conf": "Weight=5", "key_revision": "", "registrations": 0, "leave": ""})"));
  Json node = to_json(a_node());
  EXPECT_EQ(node.at("joined"), "2026-01-02T03:04:05.678000Z");
  EXPECT_EQ(node.at("phase"), "Ready");
  EXPECT_EQ(to_json(Token{.pool = "gpu", .expires = core::WallTime{1000ms}, .uses_left = 2}),
            Json::parse(R"({"pool": "gpu", "expires": "1970-01-01T00:00:01.000000Z", "uses_left": 2})"));
  EXPECT_EQ(to_json(Pool{.name = "gpu"}),
            Json::parse(R"({"name": "gpu", "partition_conf": "", "node_conf": "", "next_number": 1, "removing": false})"));
}

TEST(Messages, UnknownMembersAreIgnored) {
  Json json = to_json(a_node());
  json["new"] = Json::object();
  json["report"]["new"] = Json::array({1});
  EXPECT_EQ(*from_json<Node>(json), a_node());
}

TEST(Messages, MissingMembersAreNamedOrHaveTheirDefault) {
  for (const char* name : {"hostname", "boot_id"}) {
    Json json = to_json(a_report());
    json.erase(name);
    EXPECT_EQ(refusal<Report>(json), std::string(name) + ": is missing");
  }
  EXPECT_EQ(*from_json<Report>({{"hostname", "h"}, {"boot_id", "b"}}), (Report{.hostname = "h", .boot_id = "b"}));
  for (const char* name : {"secret", "hostname", "slurm_version", "conf"}) {
    Json json = to_json(JoinRequest{"s", "h", "26.05", "CPUs=1"});
    json.erase(name);
    EXPECT_EQ(refusal<JoinRequest>(json), std::string(name) + ": is missing");
  }
  EXPECT_EQ(refusal<JoinReply>({{"node", "n"}, {"pool", "p"}, {"cluster", "c"}}), "port: is missing");
  EXPECT_EQ(refusal<Sync>(Json::object()), "report: is missing");
  EXPECT_EQ(refusal<Sync>({{"report", {{"hostname", "h"}}}}), "report.boot_id: is missing");
  EXPECT_EQ(refusal<Node>({{"name", "n"}, {"pool", "p"}}), "key: is missing");
  EXPECT_EQ(from_json<Pool>({{"name", "p"}})->next_number, 1);
  EXPECT_EQ(from_json<Token>({{"pool", "p"}})->uses_left, 1);
}

TEST(Messages, WrongTypesAreNamedWithoutTheirValue) {
  const auto with = [](Json json, const char* name, Json value) {
    json[name] = std::move(value);
    return json;
  };
  EXPECT_EQ(refusal<Pool>("text"), "the message: must be an object");
  EXPECT_EQ(refusal<Pool>(nullptr), "the message: must be an object");
  EXPECT_EQ(refusal<JoinRequest>(with(to_json(JoinRequest{}), "secret", 5)), "secret: must be a string");
  EXPECT_EQ(refusal<JoinRequest>(with(to_json(JoinRequest{}), "secret", nullptr)), "secret: must be a string");
  EXPECT_EQ(refusal<Report>(with(to_json(a_report()), "running", 1)), "running: must be true or false");
  EXPECT_EQ(refusal<Report>(with(to_json(a_report()), "registrations", -1)), "registrations: must be an integer of 0 or more");
  EXPECT_EQ(refusal<Pool>(with(to_json(Pool{.name = "p"}), "next_number", 1.5)), "next_number: must be an integer");
  EXPECT_EQ(refusal<Pool>(with(to_json(Pool{.name = "p"}), "next_number", 1ULL << 63U)), "next_number: must be an integer");
  EXPECT_EQ(refusal<Token>(with(to_json(Token{.pool = "p"}), "uses_left", 1LL << 40U)), "uses_left: must be an integer");
  EXPECT_EQ(refusal<Token>(with(to_json(Token{.pool = "p"}), "expires", "soon")),
            "expires: must be a time such as 2026-01-02T03:04:05Z");
  EXPECT_EQ(refusal<Node>(with(to_json(a_node()), "phase", "Beyond")), "phase: must be a phase that this version knows");
  EXPECT_EQ(refusal<Node>(with(to_json(a_node()), "report", "text")), "report: must be an object");
  EXPECT_EQ(refusal<Desired>(with(to_json(Desired{}), "controllers", "a:1")), "controllers: must be a list of strings");
  EXPECT_EQ(refusal<Desired>(with(to_json(Desired{}), "controllers", Json::array({"a", 1}))),
            "controllers[1]: must be a string");
  for (const Json& port : {Json(0), Json(-1), Json(65536), Json("1")})
    EXPECT_EQ(refusal<JoinReply>(with(to_json(JoinReply{"n", "p", "c", 1}), "port", port)),
              "port: must be an integer from 1 to 65535");
  for (const Json& wait : {Json(-1), Json(30001), Json(1e3)})
    EXPECT_EQ(refusal<Sync>(with(to_json(Sync{}), "wait_ms", wait)), "wait_ms: must be an integer from 0 to 30000");
}

TEST(Messages, ATimeThatCouldNotBeReadAgainIsRefused) {
  const auto started = [](const char* time) {
    Json json = to_json(a_report());
    json["started"] = time;
    return refusal<Report>(json);
  };
  EXPECT_EQ(started("9999-12-31T23:59:59.999Z"), "");
  EXPECT_EQ(started("0000-01-01T00:00:00Z"), "");
  for (const char* time : {"9999-12-31T23:59:60Z", "9999-12-31T23:59:59-01:00", "0000-01-01T00:00:00+01:00"})
    EXPECT_EQ(started(time), "started: must be a time such as 2026-01-02T03:04:05Z") << time;
}

/// Draws random values of every type that a member of a message can have.
struct Draw {
  static std::string text() {
    return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("aZ09 =\"\\'\n\t\x01/"))) + "ä";
  }
  static bool yes() { return *rc::gen::arbitrary<bool>(); }
  static std::uint64_t number() { return *rc::gen::arbitrary<std::uint64_t>(); }
  static core::WallTime time() {
    return core::WallTime{core::Duration{*rc::gen::inRange<std::int64_t>(0, 253'402'300'799'999)}};
  }
  static Report report() {
    return {text(), text(), text(), text(), text(), yes(), text(), text(), number(), text(), yes(), time()};
  }
  static Node node() {
    Node out{.name = text(), .pool = text(), .key = text(), .node_conf = text(), .registrations = number()};
    out.revoked = yes();
    out.joined = time();
    out.report = report();
    out.confirmed = text();
    out.gate_boot = text();
    out.phase = static_cast<Phase>(*rc::gen::inRange(0, static_cast<int>(Phase::kSilent) + 1));
    out.message = text();
    return out;
  }
};

template <class T>
bool comes_back(const T& value) {
  const auto json = core::parse_json(core::canonical(to_json(value)));
  const auto read = json ? from_json<T>(*json) : core::Result<T>(std::unexpected(json.error()));
  return read && *read == value;
}

RC_GTEST_PROP(Messages, WhatIsWrittenIsReadAgain, ()) {
  RC_ASSERT(comes_back(Pool{Draw::text(), Draw::text(), Draw::text(), *rc::gen::arbitrary<std::int64_t>()}));
  RC_ASSERT(comes_back(Draw::report()));
  RC_ASSERT(comes_back(Draw::node()));
  RC_ASSERT(comes_back(Token{Draw::text(), Draw::time(), *rc::gen::arbitrary<int>()}));
  RC_ASSERT(comes_back(Desired{
      Draw::text(), Draw::text(), Draw::text(), {Draw::text(), Draw::text()}, Draw::text(), Draw::text(), Draw::number()}));
  RC_ASSERT(comes_back(JoinRequest{Draw::text(), Draw::text(), Draw::text(), Draw::text()}));
  RC_ASSERT(comes_back(JoinReply{Draw::text(), Draw::text(), Draw::text(), *rc::gen::inRange<std::uint16_t>(1, 65535)}));
  RC_ASSERT(comes_back(Sync{Draw::report(), Draw::text(), *rc::gen::inRange(0, 30001)}));
}

}  // namespace
}  // namespace enlist
