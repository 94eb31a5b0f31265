// Uses loopback sockets. beast_transport_test.cpp and http_server_test.cpp test the other functions of SocketStream.
#include "net/socket_stream.hpp"

#include <gtest/gtest.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>

#include "net/testing/loop_test.hpp"

namespace net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

struct ConnectTest : testing::LoopTest {
  const tcp::endpoint any{asio::ip::address_v4::loopback(), 0};
  SocketStream stream{loop.context(), {}};
  std::optional<ErrorCode> result;

  void connect(const std::vector<tcp::endpoint>& addresses, core::Duration patience) {
    stream.connect(addresses, patience, [this](ErrorCode error) { result = error; });
    EXPECT_FALSE(result) << "called from inside of connect";
  }

  /// Returns an address that no longer answers, because its accept queue is full.
  tcp::endpoint silent() {
    full_.open(tcp::v4());
    full_.bind(any);
    full_.listen(0);
    for (int i = 0; i < 4; ++i) {
      waiting_.emplace_back(loop.context());
      waiting_.back().async_connect(full_.local_endpoint(), [](ErrorCode) {});
    }
    return full_.local_endpoint();
  }
  /// Returns an address at which nobody listens.
  [[nodiscard]] tcp::endpoint refusing() const { return taken_.local_endpoint(); }

 private:
  tcp::socket taken_{loop.context(), any};
  tcp::acceptor full_{loop.context()};
  std::vector<tcp::socket> waiting_;
};

TEST_F(ConnectTest, ADeadAddressDoesNotKeepTheNextFromBeingTried) {
  tcp::acceptor live(loop.context(), any);
  connect({silent(), refusing(), live.local_endpoint()}, 50ms);
  ASSERT_TRUE(run_until([&] { return result.has_value(); }));
  EXPECT_FALSE(*result) << result->message();
  EXPECT_EQ(stream.socket().remote_endpoint(), live.local_endpoint());
}

TEST_F(ConnectTest, TheLastAddressHasAllTheTime) {
  connect({refusing(), silent()}, 20ms);
  const auto end = std::chrono::steady_clock::now() + 200ms;
  run_until([&] { return result.has_value() || std::chrono::steady_clock::now() > end; });
  EXPECT_FALSE(result);
  stream.close();
  ASSERT_TRUE(run_until([&] { return result.has_value(); }));
  EXPECT_EQ(*result, asio::error::operation_aborted);
}

TEST_F(ConnectTest, ClosedItTriesNoOther) {
  tcp::acceptor live(loop.context(), any);
  connect({silent(), live.local_endpoint()}, 2s);
  stream.close();
  ASSERT_TRUE(run_until([&] { return result.has_value(); }));
  EXPECT_EQ(*result, asio::error::operation_aborted);
  EXPECT_FALSE(stream.socket().is_open());
}

TEST_F(ConnectTest, TheErrorIsThatOfTheLast) {
  connect({silent(), refusing()}, 20ms);
  ASSERT_TRUE(run_until([&] { return result.has_value(); }));
  EXPECT_EQ(*result, asio::error::connection_refused);
}

}  // namespace
}  // namespace net
