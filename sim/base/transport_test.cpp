#include "sim/base/transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/json.hpp"
#include "sim/base/loop.hpp"
#include "sim/kube/sim_kube.hpp"

namespace sim {
namespace {

using core::ErrorCode;
using namespace std::chrono_literals;
using testing::HasSubstr;

struct TransportTest : testing::TestWithParam<std::uint64_t> {
  SimLoop loop{GetParam()};
  SimHost host{loop};
  SimKube kube{loop, loop.random().fork()};
  Faults faults{loop.random().fork()};
  Transport transport{loop, host, kube, faults, loop.random().fork()};

  TransportTest() { kube.add_namespace("ns"); }

  static constexpr const char* kMaps = "/api/v1/namespaces/ns/configmaps";
  static net::HttpRequest create(const std::string& name) {
    return {"POST", kMaps, {{"content-type", "application/json"}}, R"({"metadata": {"name": ")" + name + "\"}}"};
  }
  core::Result<net::HttpResponse> send(net::HttpRequest request) {
    std::optional<core::Result<net::HttpResponse>> got;
    transport.send(std::move(request), [&](core::Result<net::HttpResponse> reply) { got = std::move(reply); });
    EXPECT_TRUE(loop.run_until([&] { return got.has_value(); }, 60s));
    return *got;
  }
  bool exists(const std::string& name) { return kube.api().peek(kube::resources::kConfigMap, {"ns", name}) != nullptr; }
};
INSTANTIATE_TEST_SUITE_P(Seeds, TransportTest, testing::Range<std::uint64_t>(1, 6));

TEST_P(TransportTest, EachFaultDoesWhatItSays) {
  struct Case {
    Fault fault;
    bool carried_out;
    int status;  // 0: the client gets no reply, but an error
    ErrorCode code;
  };
  int number = 0;
  for (const Case& c : {Case{Fault::kNone, true, 201, {}},
                        {Fault::kRefuse, false, 0, ErrorCode::kUnavailable},
                        {Fault::kLostRequest, false, 0, ErrorCode::kUnknownOutcome},
                        {Fault::kLostReply, true, 0, ErrorCode::kUnknownOutcome},
                        {Fault::kTooMany, false, 429, {}},
                        {Fault::kInternal, false, 500, {}},
                        {Fault::kInternalAfter, true, 500, {}},
                        {Fault::kForbidden, false, 403, {}},
                        {Fault::kSlow, true, 201, {}}}) {
    const std::string name = "m" + std::to_string(number);
    faults.at_write(static_cast<std::uint64_t>(number++), c.fault);
    const auto reply = send(create(name));
    EXPECT_EQ(exists(name), c.carried_out) << to_string(c.fault);
    if (c.status != 0) {
      ASSERT_TRUE(reply) << to_string(c.fault);
      EXPECT_EQ(reply->status, c.status) << to_string(c.fault);
    } else {
      ASSERT_FALSE(reply) << to_string(c.fault);
      EXPECT_EQ(reply.error().code, c.code) << to_string(c.fault);
    }
  }
  EXPECT_EQ(faults.writes(), 9U);
  EXPECT_EQ(faults.log().size(), 8U);
}

TEST_P(TransportTest, CrashesComeBeforeOrAfter) {
  int crashes = 0;
  faults.on_crash = [&] { ++crashes; };
  faults.at_write(0, Fault::kCrashBefore);
  faults.at_write(1, Fault::kCrashAfter);
  int replies = 0;
  for (const char* name : {"before", "after"}) {
    auto request = create(name);
    request.timeout = 3600s;
    transport.send(std::move(request), [&](const core::Result<net::HttpResponse>&) { ++replies; });
    loop.run_for(10s);
  }
  EXPECT_EQ(crashes, 2);
  EXPECT_EQ(replies, 0);
  EXPECT_FALSE(exists("before"));
  EXPECT_TRUE(exists("after"));
}

TEST_P(TransportTest, ARequestOnItsWayArrivesWithoutItsSender) {
  {
    Transport gone(loop, host, kube, faults, loop.random().fork());
    gone.send(create("late"), [](const core::Result<net::HttpResponse>&) { FAIL(); });
  }
  loop.run_for(1s);
  EXPECT_TRUE(exists("late"));
}

TEST_P(TransportTest, APausedHostHearsNothingUntilItGoesOn) {
  int replies = 0;
  transport.send(create("m"), [&](const core::Result<net::HttpResponse>&) { ++replies; });
  host.pause();
  loop.run_for(5s);
  EXPECT_EQ(replies, 0);
  EXPECT_TRUE(exists("m"));
  host.resume();
  loop.run_for(1s);
  EXPECT_EQ(replies, 1);
}

TEST_P(TransportTest, NobodyListens) {
  kube.set_listening(false);
  const auto reply = send(create("m"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
}

struct Stream {
  int status = 0;
  std::string body;
  std::optional<core::Result<void>> end;
  net::StreamHandler handler() {
    return {[this](int s, const net::Headers&) { status = s; }, [this](std::string_view piece) { body += piece; },
            [this](core::Result<void> result) { end = std::move(result); }};
  }
};

TEST_P(TransportTest, StreamsKeepTheirOrderWhateverTheirPieces) {
  Stream stream;
  transport.stream(
      {"GET",
       std::string(kMaps) + "?watch=true&timeoutSeconds=30&resourceVersion=" + std::to_string(kube.api().store().revision()),
       {},
       "",
       120s},
      stream.handler());
  loop.run_for(1s);
  for (int i = 0; i < 40; ++i) ASSERT_EQ(send(create("m" + std::to_string(i)))->status, 201);
  loop.run_for(60s);
  EXPECT_EQ(stream.status, 200);
  ASSERT_TRUE(stream.end.has_value() && stream.end->has_value());
  std::size_t at = 0;
  for (int i = 0; i < 40; ++i) {
    at = stream.body.find("\"name\":\"m" + std::to_string(i) + "\"", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_EQ(kube.api().watch_count(), 0U);
}

TEST_P(TransportTest, StreamFaults) {
  const auto watch = [&](Stream& stream) {
    transport.stream(
        {"GET",
         std::string(kMaps) + "?watch=true&timeoutSeconds=60&resourceVersion=" + std::to_string(kube.api().store().revision()),
         {},
         "",
         120s},
        stream.handler());
    loop.run_for(1s);
  };
  Stream cut, gone, twice;
  watch(cut);
  faults.rates.cut = 1;
  (void)send(create("a"));
  loop.run_for(20s);
  faults.rates = {};
  ASSERT_TRUE(cut.end.has_value());
  EXPECT_FALSE(cut.end->has_value());
  EXPECT_FALSE(cut.body.empty());
  EXPECT_FALSE(cut.body.ends_with("\n"));

  watch(gone);
  faults.rates.gone = 1;
  (void)send(create("b"));
  loop.run_for(20s);
  faults.rates = {};
  EXPECT_THAT(gone.body, HasSubstr("\"code\":410"));
  EXPECT_TRUE(gone.end.has_value() && gone.end->has_value());

  watch(twice);
  faults.rates.duplicate = 1;
  (void)send(create("c"));
  loop.run_for(20s);
  EXPECT_EQ(std::count(twice.body.begin(), twice.body.end(), '\n'), 2);
  EXPECT_EQ(kube.api().watch_count(), 1U);
}

TEST_P(TransportTest, CancelIsHeardByTheServer) {
  Stream stream;
  const auto id = transport.stream({"GET", std::string(kMaps) + "?watch=true"}, stream.handler());
  loop.run_for(1s);
  EXPECT_EQ(kube.api().watch_count(), 1U);
  transport.cancel(id);
  EXPECT_EQ(kube.api().watch_count(), 0U);
  loop.run_for(1s);
  EXPECT_FALSE(stream.end.has_value());
}

TEST_P(TransportTest, SilenceIsNoticed) {
  Stream stream;
  transport.stream({"GET", std::string(kMaps) + "?watch=true&timeoutSeconds=600", {}, "", 20s}, stream.handler());
  loop.run_for(19s);
  EXPECT_FALSE(stream.end.has_value());
  loop.run_for(3s);
  ASSERT_TRUE(stream.end.has_value());
  EXPECT_FALSE(stream.end->has_value());
}

TEST(Faults, ChancesComeFromTheSeed) {
  const auto drawn = [](std::uint64_t seed) {
    Faults faults{SeededRandom(seed)};
    faults.rates = FaultRates::all(0.05);
    for (int i = 0; i < 200; ++i) (void)faults.decide({"PUT", "/x"});
    return faults.log();
  };
  EXPECT_EQ(drawn(3), drawn(3));
  EXPECT_NE(drawn(3), drawn(4));
  EXPECT_GT(drawn(3).size(), 40U);
}

TEST(Faults, WhatMeetsNoSingleRequestBeginsAtAWrite) {
  Faults faults;
  int begun = 0;
  faults.at_write(1, [&] {
    ++begun;
    faults.rates.forbidden = 1;
  });
  EXPECT_EQ(faults.decide({"PUT", "/x"}), Fault::kNone);
  EXPECT_EQ(faults.decide({"GET", "/x"}), Fault::kNone);
  EXPECT_EQ(begun, 0);
  EXPECT_EQ(faults.decide({"PUT", "/x"}), Fault::kForbidden);  // the fault applies to this write already
  EXPECT_EQ(faults.decide({"PUT", "/x"}), Fault::kForbidden);
  EXPECT_EQ(begun, 1);
}

TEST(Faults, LeasesAndEventsAreNoNumberedWrites) {
  Faults faults;
  (void)faults.decide({"PUT", "/apis/coordination.k8s.io/v1/namespaces/ns/leases/l"});
  (void)faults.decide({"POST", "/apis/events.k8s.io/v1/namespaces/ns/events"});
  (void)faults.decide({"GET", "/api/v1/pods"});
  EXPECT_EQ(faults.writes(), 0U);
  (void)faults.decide({"POST", "/api/v1/namespaces/ns/pods"});
  EXPECT_EQ(faults.writes(), 1U);
}

}  // namespace
}  // namespace sim
