#include "net/reach.hpp"

#include <gtest/gtest.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <optional>

#include "net/testing/loop_test.hpp"

namespace net {
namespace {

using boost::asio::ip::tcp;
using namespace std::chrono_literals;

struct ReachTest : testing::LoopTest {
  const tcp::endpoint any{boost::asio::ip::address_v4::loopback(), 0};

  core::Result<void> reach(const std::string& host, std::uint16_t port, core::Duration timeout = 30s) {
    std::optional<core::Result<void>> result;
    net::reach(loop, host, port, timeout, [&](core::Result<void> got) {
      EXPECT_FALSE(result) << "called twice";
      result = std::move(got);
    });
    EXPECT_FALSE(result) << "called from inside of reach";
    EXPECT_TRUE(run_until([&] { return result.has_value(); }));
    return result.value_or(core::fail(core::ErrorCode::kInternal, "no result"));
  }
};

TEST_F(ReachTest, WhoListensIsReached) {
  const tcp::acceptor live(loop.context(), any);
  const std::uint16_t port = live.local_endpoint().port();
  EXPECT_TRUE(reach("127.0.0.1", port));
  EXPECT_TRUE(reach("localhost", port)) << "by name, even if another address of it refuses";
}

TEST_F(ReachTest, WhereNobodyListensTheCauseIsTold) {
  tcp::socket taken(loop.context(), any);
  const std::uint16_t port = taken.local_endpoint().port();
  const auto refused = reach("127.0.0.1", port);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kUnavailable);
  EXPECT_EQ(refused.error().message, "127.0.0.1:" + std::to_string(port) + ": connect: Connection refused");
}

TEST_F(ReachTest, WhoDoesNotAcceptInTimeIsNotReached) {
  tcp::acceptor full(loop.context());
  full.open(tcp::v4());
  full.bind(any);
  full.listen(0);
  std::vector<tcp::socket> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(loop.context());
    waiting.back().async_connect(full.local_endpoint(), [](boost::system::error_code) {});
  }
  const std::uint16_t port = full.local_endpoint().port();
  const auto silent = reach("127.0.0.1", port, 50ms);
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().message, "127.0.0.1:" + std::to_string(port) + ": no answer after 50 ms");
}

}  // namespace
}  // namespace net
