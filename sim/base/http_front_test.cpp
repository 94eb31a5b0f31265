// Tests HttpFront with real clients on loopback sockets. Every wait is bounded.
#include "sim/base/http_front.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "net/beast_transport.hpp"
#include "net/testing/loop_test.hpp"
#include "sim/kube/sim_kube.hpp"

namespace sim {
namespace {

using core::ErrorCode;
using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;

struct HttpFrontTest : net::testing::LoopTest {
  SimKube kube{loop, SeededRandom(1)};
  Faults faults;
  HttpFront front{loop, kube, faults, {}};
  std::unique_ptr<net::BeastTransport> transport;

  void SetUp() override {
    kube.add_namespace("ns");
    ASSERT_TRUE(front.start());
    transport = std::make_unique<net::BeastTransport>(loop, net::Endpoint{"http", "127.0.0.1", front.port(), {}});
  }
  core::Result<net::HttpResponse> create(const std::string& name) {
    std::optional<core::Result<net::HttpResponse>> got;
    transport->send({"POST", kMaps, {}, R"({"metadata": {"name": ")" + name + "\"}}"},
                    [&](core::Result<net::HttpResponse> reply) { got = std::move(reply); });
    EXPECT_TRUE(run_until([&] { return got.has_value(); }));
    return *got;
  }
  bool exists(const std::string& name) { return kube.api().peek(kube::resources::kConfigMap, {"ns", name}) != nullptr; }

  struct Stream {
    std::string body;
    std::optional<core::Result<void>> end;
  };
  void watch(Stream& stream, const std::string& more = "") {
    const std::string from = std::to_string(kube.api().store().revision());
    transport->stream({"GET", std::string(kMaps) + "?watch=true&resourceVersion=" + from + more},
                      {{},
                       [&](std::string_view piece) { stream.body += piece; },
                       [&](core::Result<void> end) { stream.end = std::move(end); }});
    ASSERT_TRUE(run_until([&] { return kube.api().watch_count() == 1; }));
  }

  static constexpr const char* kMaps = "/api/v1/namespaces/ns/configmaps";
};

TEST_F(HttpFrontTest, ServesRequestsAndWatches) {
  Stream stream;
  watch(stream, "&timeoutSeconds=5");
  ASSERT_EQ(create("a")->status, 201);
  EXPECT_EQ(create("a")->status, 409);
  ASSERT_TRUE(run_until([&] { return !stream.body.empty(); }));
  EXPECT_THAT(stream.body, HasSubstr("\"type\":\"ADDED\""));
  EXPECT_THAT(stream.body, EndsWith("}\n"));
  ASSERT_TRUE(run_until([&] { return stream.end.has_value(); }));
  EXPECT_TRUE(stream.end->has_value());
}

TEST_F(HttpFrontTest, FaultsMeetRequests) {
  faults.at_write(0, Fault::kLostRequest);
  faults.at_write(1, Fault::kLostReply);
  faults.at_write(2, Fault::kTooMany);
  faults.at_write(3, Fault::kInternalAfter);
  EXPECT_EQ(create("a").error().code, ErrorCode::kUnknownOutcome);
  EXPECT_FALSE(exists("a"));
  EXPECT_EQ(create("b").error().code, ErrorCode::kUnknownOutcome);
  EXPECT_TRUE(exists("b"));
  const auto busy = create("c");
  EXPECT_EQ(busy->status, 429);
  EXPECT_EQ(busy->headers.at("retry-after"), "1");
  EXPECT_EQ(create("d")->status, 500);
  EXPECT_TRUE(exists("d"));
}

TEST_F(HttpFrontTest, FaultsMeetStreams) {
  Stream cut;
  watch(cut);
  faults.rates.cut = 1;
  ASSERT_TRUE(create("a"));
  ASSERT_TRUE(run_until([&] { return cut.end.has_value(); }));
  EXPECT_FALSE(cut.end->has_value());
  EXPECT_FALSE(cut.body.ends_with("\n"));
  faults.rates = {};
  EXPECT_TRUE(run_until([&] { return kube.api().watch_count() == 0; }));

  Stream gone;
  watch(gone);
  faults.rates.gone = 1;
  ASSERT_TRUE(create("b"));
  ASSERT_TRUE(run_until([&] { return gone.end.has_value(); }));
  EXPECT_TRUE(gone.end->has_value());
  EXPECT_THAT(gone.body, HasSubstr("\"code\":410"));
}

TEST_F(HttpFrontTest, AClientThatGoesEndsItsWatch) {
  Stream stream;
  watch(stream);
  transport.reset();
  EXPECT_TRUE(run_until([&] { return kube.api().watch_count() == 0; }));
}

TEST_F(HttpFrontTest, AServerThatIsAwayRefuses) {
  kube.set_listening(false);
  EXPECT_FALSE(create("a"));
  EXPECT_FALSE(exists("a"));
}

}  // namespace
}  // namespace sim
