#include "kube/act/events.hpp"

#include <gtest/gtest.h>

#include "kube/testing/client_fixture.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using core::ErrorCode;
using core::Json;

class EventsTest : public testing::Test, protected ClientFixture {
 protected:
  static EventOptions options() {
    EventOptions o;
    o.instance = "operator-0";
    o.max_queue = 50;
    return o;
  }
  static EventAct event(const std::string& note = "note", const std::string& name = "obj") {
    EventAct e;
    e.regarding = resources::kStatefulSet;
    e.object.ns = "ns";
    e.object.name = name;
    e.object.uid = "uid-" + name;
    e.type = "Normal";
    e.reason = "Scaled";
    e.action = "Scale";
    e.note = note;
    return e;
  }
  Json accept() {
    const auto sent = api.take("POST");
    sent.reply(201, sent.body());
    return sent.body();
  }

  EventRecorder recorder{loop, random, log, client, options()};
};

TEST_F(EventsTest, AnEventSaysWhatWhoAndAbout) {
  recorder.record(event());
  const Json body = accept();
  EXPECT_EQ(body["apiVersion"], "events.k8s.io/v1");
  EXPECT_EQ(body["metadata"]["namespace"], "ns");
  EXPECT_TRUE(body["metadata"]["name"].get<std::string>().starts_with("obj."));
  EXPECT_EQ(body["eventTime"], "2026-01-02T03:04:05.000000Z");
  EXPECT_EQ(body["reportingController"], "slurm-operator");
  EXPECT_EQ(body["reportingInstance"], "operator-0");
  EXPECT_EQ(
      body["regarding"],
      (Json{{"apiVersion", "apps/v1"}, {"kind", "StatefulSet"}, {"namespace", "ns"}, {"name", "obj"}, {"uid", "uid-obj"}}));
  EXPECT_EQ(body["note"], "note");
  EXPECT_EQ(body["reason"], "Scaled");
  EXPECT_EQ(body["action"], "Scale");
  EXPECT_FALSE(body.contains("series"));
}

TEST_F(EventsTest, TheSameAgainIsASeries) {
  recorder.record(event());
  const std::string name = accept()["metadata"]["name"];
  loop.advance(10s);
  recorder.record(event());
  EXPECT_FALSE(api.has("POST"));
  auto patch = api.take("PATCH", "/apis/events.k8s.io/v1/namespaces/ns/events/" + name);
  EXPECT_EQ(patch.body(), (Json{{"series", {{"count", 2}, {"lastObservedTime", "2026-01-02T03:04:15.000000Z"}}}}));
  patch.reply(200, object_json("ns", "e", "2"));
  recorder.record(event());
  EXPECT_TRUE(api.sent.empty()) << "how long it has become is told seldom";
  recorder.record(event());
  patch = api.take("PATCH");
  EXPECT_EQ(patch.body()["series"]["count"], 4) << "when it has doubled";
  patch.reply(200, object_json("ns", "e", "2"));
  recorder.record(event());
  loop.advance(8min);
  EXPECT_TRUE(api.sent.empty()) << "its end is no reason to write";
  recorder.record(event());
  EXPECT_TRUE(api.has("POST")) << "a new one";
}

TEST_F(EventsTest, ALongSeriesIsToldOfEverMoreSeldom) {
  recorder.record(event());
  accept();
  std::vector<Json> told;
  for (int i = 0; i < 13; ++i) {
    loop.advance(5min);
    recorder.record(event());
    if (!api.has("PATCH")) continue;
    auto patch = api.take("PATCH");
    told.push_back(patch.body()["series"]["count"]);
    patch.reply(200, object_json("ns", "e", "2"));
  }
  EXPECT_EQ(told, (std::vector<Json>{2, 4, 8, 14})) << "as it doubles, or after half an hour";
}

TEST_F(EventsTest, RepeatsBeforeTheFirstAnswerAreNotLost) {
  recorder.record(event());
  recorder.record(event());
  recorder.record(event());
  EXPECT_EQ(api.sent.size(), 1U);
  accept();
  EXPECT_EQ(api.take("PATCH").body()["series"]["count"], 3);
}

TEST_F(EventsTest, OneObjectCannotFloodTheServer) {
  for (int i = 0; i < 150; ++i) {
    recorder.record(event("note " + std::to_string(i)));
    if (api.has("POST")) accept();
  }
  EXPECT_EQ(recorder.dropped(), 50U);
  recorder.record(event("note", "another"));
  EXPECT_TRUE(api.has("POST"));
  accept();
  loop.advance(5min);
  recorder.record(event("later"));
  EXPECT_TRUE(api.has("POST")) << "one more each five minutes";
}

TEST_F(EventsTest, TheQueueIsBounded) {
  for (int i = 0; i < 200; ++i) recorder.record(event("note", "obj-" + std::to_string(i)));
  EXPECT_LE(api.sent.size(), 4U);
  EXPECT_EQ(recorder.dropped(), 200U - 54U);
}

TEST_F(EventsTest, WhatIsRefusedIsDropped) {
  recorder.record(event());
  api.take("POST").reply(403, status_json(403, "Forbidden"));
  EXPECT_EQ(recorder.dropped(), 1U);
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(EventsTest, LongNotesAreCutBetweenCharacters) {
  std::string note(1023, 'x');
  note += "\u00e4";
  recorder.record(event(note));
  EXPECT_EQ(accept()["note"], std::string(1023, 'x'));
}

TEST_F(EventsTest, StopWaitsForWhatIsUnderWayButNotForEver) {
  recorder.record(event());
  bool stopped = false;
  recorder.stop(2s, [&] { stopped = true; });
  loop.advance(1s);
  EXPECT_FALSE(stopped);
  accept();
  loop.run_ready();
  EXPECT_TRUE(stopped);
  recorder.record(event("after"));
  EXPECT_TRUE(api.sent.empty());
}

TEST_F(EventsTest, StopGivesUpAfterItsGrace) {
  recorder.record(event());
  int stopped = 0;
  recorder.stop(2s, [&] { ++stopped; });
  loop.advance(3s);
  EXPECT_EQ(stopped, 1);
}

TEST_F(EventsTest, AtRestNothingTicks) {
  recorder.record(event());
  accept();
  loop.advance(10h);
  EXPECT_EQ(loop.pending(), 0U);
}

// A flood of events from one client must not displace new events of others.
TEST_F(EventsTest, AFullMapOfSeriesMakesRoomForNews) {
  EventOptions few = options();
  few.max_series = 3;
  EventRecorder small(loop, random, log, client, few);
  for (const char* note : {"a", "b", "c"}) {
    small.record(event(note));
    accept();
    loop.advance(1s);
  }
  small.record(event("a"));
  EXPECT_TRUE(api.has("PATCH"));
  api.take("PATCH").reply(200, object_json("ns", "e", "2"));
  loop.advance(1s);
  small.record(event("d"));
  EXPECT_EQ(accept()["note"], "d");
  EXPECT_EQ(small.dropped(), 0U);
  small.record(event("a"));
  small.record(event("a"));
  EXPECT_FALSE(api.has("POST")) << "its series goes on: b was quiet for longest";
  small.record(event("b"));
  EXPECT_EQ(accept()["note"], "b") << "it begins anew";
}

}  // namespace
}  // namespace kube
