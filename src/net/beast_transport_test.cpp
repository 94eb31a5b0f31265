// Uses loopback sockets, because these are under test. Every wait is bounded.
#include "net/beast_transport.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "net/certificate.hpp"
#include "net/http_server.hpp"
#include "net/testing/identity.hpp"
#include "net/testing/loop_test.hpp"

namespace net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using core::ErrorCode;
using testing::Identity;
using testing::make_identity;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct NetTest : testing::LoopTest {
  static Endpoint local(std::uint16_t port) { return {"http", "127.0.0.1", port, {}}; }

  core::Result<HttpResponse> fetch(BeastTransport& transport, HttpRequest request) {
    std::optional<core::Result<HttpResponse>> got;
    transport.send(std::move(request), [&](core::Result<HttpResponse> reply) { got = std::move(reply); });
    EXPECT_FALSE(got) << "called from inside of send";
    EXPECT_TRUE(run_until([&] { return got.has_value(); }));
    return got ? *got : core::fail(ErrorCode::kInternal, "the test ran out of time");
  }
};

/// A server that sends exactly the bytes that the test specifies.
class RawServer {
 public:
  using Socket = std::shared_ptr<tcp::socket>;
  /// Called each time data arrives, with the number of the connection (from 1).
  using Script = std::function<void(int connection, const std::string& received, const Socket& socket)>;

  RawServer(asio::io_context& io, Script script)
      : acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)), script_(std::move(script)) {
    accept();
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  int connections = 0;

  static void say(const Socket& socket, const std::string& text) { asio::write(*socket, asio::buffer(text)); }
  static void cut(const Socket& socket) {
    boost::system::error_code ignored;
    socket->shutdown(tcp::socket::shutdown_both, ignored);
    socket->close(ignored);
  }

 private:
  void accept() {
    acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
      if (error) return;
      read(++connections, std::make_shared<tcp::socket>(std::move(socket)), std::make_shared<std::array<char, 4096>>());
      accept();
    });
  }
  void read(int number, const Socket& socket, const std::shared_ptr<std::array<char, 4096>>& buffer) {
    socket->async_read_some(asio::buffer(*buffer),
                            [this, number, socket, buffer](boost::system::error_code error, std::size_t n) {
                              if (error) return;
                              script_(number, std::string(buffer->data(), n), socket);
                              if (socket->is_open()) read(number, socket, buffer);
                            });
  }
  tcp::acceptor acceptor_;
  Script script_;
};

const std::string kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(NetTest, TalksOverAUnixSocket) {
  std::string folder = std::filesystem::temp_directory_path() / "net-unix-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/socket";
  asio::local::stream_protocol::acceptor acceptor(loop.context(), asio::local::stream_protocol::endpoint(path));
  std::string received;
  std::array<char, 4096> buffer{};
  std::optional<asio::local::stream_protocol::socket> peer;
  int connections = 0;
  std::function<void()> read = [&] {
    peer->async_read_some(asio::buffer(buffer), [&](boost::system::error_code error, std::size_t n) {
      if (error) return;
      received.append(buffer.data(), n);
      if (received.ends_with("\r\n\r\n"))
        asio::write(*peer, asio::buffer(std::string("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi")));
      read();
    });
  };
  acceptor.async_accept([&](boost::system::error_code error, asio::local::stream_protocol::socket socket) {
    ASSERT_FALSE(error);
    ++connections;
    peer.emplace(std::move(socket));
    read();
  });
  {
    BeastTransport transport(loop, {.host = path});
    for (int i = 0; i < 2; ++i) {
      const auto reply = fetch(transport, {.target = "/x"});
      ASSERT_TRUE(reply) << reply.error().message;
      EXPECT_EQ(reply->body, "hi");
    }
  }
  EXPECT_EQ(received, "GET /x HTTP/1.1\r\nhost: localhost\r\n\r\nGET /x HTTP/1.1\r\nhost: localhost\r\n\r\n");
  EXPECT_EQ(connections, 1) << "it is kept";
  acceptor.close();
  std::filesystem::remove_all(folder);
  for (const std::string& wrong : {path, "/" + std::string(200, 'x')}) {
    BeastTransport transport(loop, {.host = wrong});
    const auto reply = fetch(transport, {});
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
    EXPECT_THAT(reply.error().message, HasSubstr("connect " + wrong + ": ")) << reply.error().message;
  }
}

TEST_F(NetTest, GoesThereAndBack) {
  HttpServer server(loop, {}, [](HttpRequest request, Responder responder) {
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.target, "/a?b=c%20d");
    EXPECT_EQ(request.headers["x-thing"], "1");
    responder.respond({201, {{"x-reply", "2"}}, request.body + "!"});
  });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()));
  const auto reply = fetch(transport, {"POST", "/a?b=c%20d", {{"x-thing", "1"}}, std::string(100'000, 'x')});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 201);
  EXPECT_EQ(reply->headers.at("x-reply"), "2");
  EXPECT_EQ(reply->body, std::string(100'000, 'x') + "!");
}

TEST_F(NetTest, KeepsConnections) {
  HttpServer server(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, "ok"}); });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(fetch(transport, {}));
  EXPECT_EQ(transport.stats().opened, 1U);
  EXPECT_EQ(transport.stats().idle, 1U);
}

TEST_F(NetTest, ClosesKeptConnectionsAfterAWhile) {
  HttpServer server(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, "ok"}); });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()), {.idle_timeout = 20ms});
  ASSERT_TRUE(fetch(transport, {}));
  EXPECT_TRUE(run_until([&] { return transport.stats().open == 0; }));
}

TEST_F(NetTest, BoundsConnectionsAndServesTheQueueInOrder) {
  int most = 0, now = 0;
  std::vector<std::string> order;
  HttpServer server(loop, {}, [&](HttpRequest request, Responder responder) {
    most = std::max(most, ++now);
    order.push_back(request.target);
    loop.after(5ms, [&now, responder]() mutable {
      --now;
      responder.respond({200, {}, ""});
    });
  });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()), {.max_connections = 2});
  int done = 0;
  for (int i = 0; i < 7; ++i) {
    transport.send({"GET", "/" + std::to_string(i)}, [&](const core::Result<HttpResponse>& reply) { done += reply ? 1 : 100; });
  }
  EXPECT_EQ(transport.stats().waiting, 5U);
  ASSERT_TRUE(run_until([&] { return done >= 7; }));
  EXPECT_EQ(done, 7);
  EXPECT_EQ(most, 2);
  EXPECT_THAT(std::vector(order.begin() + 2, order.end()), ElementsAre("/2", "/3", "/4", "/5", "/6"));
  EXPECT_EQ(transport.stats().opened, 2U);
}

TEST_F(NetTest, StreamsDoNotUseUpTheBound) {
  HttpServer server(loop, {}, [](HttpRequest request, Responder responder) {
    if (request.target == "/watch") {
      responder.begin(200, {});
      responder.on_gone([responder] {});  // holds the connection open
      return;
    }
    responder.respond({200, {}, "ok"});
  });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()), {.max_connections = 1});
  for (int i = 0; i < 3; ++i) transport.stream({"GET", "/watch"}, {});
  EXPECT_TRUE(fetch(transport, {}));
}

TEST_F(NetTest, UrgentRequestsNeitherWaitNorUseUpTheBound) {
  std::vector<Responder> held;
  std::vector<std::string> order;
  HttpServer server(loop, {}, [&](HttpRequest request, Responder responder) {
    order.push_back(request.target);
    if (request.target == "/held") {
      held.push_back(responder);
    } else {
      responder.respond({200, {}, ""});
    }
  });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()), {.max_connections = 1});
  int done = 0;
  const auto count = [&](const core::Result<HttpResponse>& reply) { done += reply ? 1 : 100; };
  transport.send({"GET", "/held"}, count);
  for (int i = 0; i < 3; ++i) transport.send({"GET", "/waits"}, count);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(fetch(transport, {.target = "/urgent", .timeout = 30s, .urgent = true}));
  EXPECT_THAT(order, ElementsAre("/held", "/urgent", "/urgent", "/urgent"));
  EXPECT_EQ(transport.stats().waiting, 3U) << "what an urgent request leaves behind is not taken for a free place";
  ASSERT_EQ(held.size(), 1U);
  held.front().respond({200, {}, ""});
  ASSERT_TRUE(run_until([&] { return done >= 4; }));
  EXPECT_EQ(done, 4);
}

/// Returns the socket of this process that is connected to this port, or -1 if there is none.
int socket_to(std::uint16_t port) {
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const bool connected = getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (connected && peer.sin_family == AF_INET && ntohs(peer.sin_port) == port) return fd;
  }
  return -1;
}

TEST_F(NetTest, APeerThatIsGoneWithoutAWordIsNoticed) {
  HttpServer server(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, "ok"}); });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()));
  ASSERT_TRUE(fetch(transport, {}));
  const int fd = socket_to(server.port());
  ASSERT_GE(fd, 0);
  const auto option = [fd](int level, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    getsockopt(fd, level, name, &value, &size);
    return value;
  };
  EXPECT_EQ(option(SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPIDLE), 15);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPINTVL), 5);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_KEEPCNT), 3);
  EXPECT_EQ(option(IPPROTO_TCP, TCP_USER_TIMEOUT), 30'000);
}

// An address must not wait for the one thread that resolves all names.
TEST_F(NetTest, AnAddressIsNotResolved) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  HttpServer server(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, "ok"}); });
  ASSERT_TRUE(server.start());
  const auto before = threads();
  BeastTransport by_address(loop, local(server.port()));
  ASSERT_TRUE(fetch(by_address, {}));
  EXPECT_EQ(threads(), before);
  BeastTransport by_name(loop, {"http", "localhost", server.port(), {}});
  fetch(by_name, {});
  EXPECT_EQ(threads(), before + 1) << "nothing was measured";
}

TEST_F(NetTest, NoServerMeansUnavailable) {
  // Holds a port on which nobody listens.
  const tcp::socket taken(loop.context(), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  BeastTransport transport(loop, local(taken.local_endpoint().port()));
  const auto reply = fetch(transport, {"POST", "/"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(reply.error().message, HasSubstr("connect"));
  EXPECT_EQ(transport.stats().open, 0U);
}

TEST_F(NetTest, ACutAfterTheRequestMeansUnknownOutcome) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket& socket) { RawServer::cut(socket); });
  BeastTransport transport(loop, local(server.port()));
  const auto reply = fetch(transport, {"GET", "/"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnknownOutcome);
  EXPECT_EQ(server.connections, 1) << "a fresh connection is no reason to try again";
}

TEST_F(NetTest, ACutInTheMiddleOfTheBodyMeansUnknownOutcome) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket& socket) {
    RawServer::say(socket, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf");
    RawServer::cut(socket);
  });
  BeastTransport transport(loop, local(server.port()));
  EXPECT_EQ(fetch(transport, {"GET", "/"}).error().code, ErrorCode::kUnknownOutcome);
}

TEST_F(NetTest, ABodyMayEndWithTheConnection) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket& socket) {
    RawServer::say(socket, "HTTP/1.0 200 OK\r\n\r\nall of it");
    RawServer::cut(socket);
  });
  BeastTransport transport(loop, local(server.port()));
  const auto reply = fetch(transport, {"GET", "/"});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "all of it");
}

TEST_F(NetTest, SlowPeersMeetTheDeadline) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket& socket) {
    RawServer::say(socket, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nslow");
  });
  BeastTransport transport(loop, local(server.port()));
  // The timeout is long enough to send the request on any machine.
  const auto reply = fetch(transport, {"GET", "/", {}, "", 2s});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnknownOutcome);
  EXPECT_THAT(reply.error().message, HasSubstr("2000 ms"));
  EXPECT_EQ(transport.stats().open, 0U) << "the connection still owes a reply";
}

TEST_F(NetTest, TheDeadlineRunsInTheQueueToo) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket&) {});
  BeastTransport transport(loop, local(server.port()), {.max_connections = 1});
  transport.send({}, [](const core::Result<HttpResponse>&) {});
  const auto reply = fetch(transport, {"POST", "/", {}, "", 30ms});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable) << "it was never sent";
}

// A server that is not ours must not be able to fill our memory.
TEST_F(NetTest, RepliesShareOneBudgetAndNoneTakesItAll) {
  HttpServer server(loop, {}, [](const HttpRequest& request, Responder responder) {
    responder.respond({200, {}, std::string(std::stoul(request.target.substr(1)), 'x')});
  });
  ASSERT_TRUE(server.start());
  TransportOptions options;
  options.budget = std::make_shared<ReplyBudget>(1000);
  BeastTransport one(loop, local(server.port()), options);
  BeastTransport two(loop, local(server.port()), options);
  const auto too_long = fetch(one, {.target = "/501"});
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code, ErrorCode::kInternal);
  EXPECT_THAT(too_long.error().message, HasSubstr("longer than there is room for"));
  EXPECT_EQ(options.budget->used(), 0U);
  auto held = fetch(one, {.target = "/500"});
  ASSERT_TRUE(held);
  EXPECT_EQ(options.budget->used(), 500U);
  EXPECT_FALSE(fetch(two, {.target = "/251"})) << "half of what the other leaves";
  EXPECT_TRUE(fetch(two, {.target = "/250"}));
  held = core::fail(ErrorCode::kInternal, "read by now");
  EXPECT_EQ(options.budget->used(), 0U);
  EXPECT_TRUE(fetch(two, {.target = "/500"}));
}

// Bytes of a write that the kernel has not sent by the write's deadline must not arrive after the Lease has expired.
TEST_F(NetTest, NothingOfAWriteArrivesAfterItsDeadline) {
  tcp::acceptor acceptor(loop.context(), tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  BeastTransport transport(loop, local(acceptor.local_endpoint().port()));
  const auto reply =
      fetch(transport, {.method = "POST", .body = std::string(16UL << 20, 'x'), .timeout = core::Duration{2000}});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnknownOutcome);
  tcp::socket peer(loop.context());
  acceptor.accept(peer);
  boost::system::error_code error;
  std::vector<char> buffer(1UL << 20);
  while (!error) peer.read_some(asio::buffer(buffer), error);
  EXPECT_EQ(error, asio::error::connection_reset) << error.message();
}

// After a pause, a process can notice that the connection is ready before it notices that the deadline has expired.
TEST_F(NetTest, WhatIsPastItsDeadlineIsNotSent) {
  int heard = 0;
  RawServer::Socket client;
  RawServer server(loop.context(), [&](int, const std::string&, const RawServer::Socket& socket) {
    ++heard;
    client = socket;
  });
  BeastTransport transport(loop, local(server.port()), {.max_connections = 1});
  transport.send({}, [](const core::Result<HttpResponse>&) {});
  ASSERT_TRUE(run_until([&] { return client != nullptr; }));
  std::optional<core::Result<HttpResponse>> got;
  transport.send({.method = "POST", .timeout = core::Duration{50}},
                 [&](core::Result<HttpResponse> reply) { got = std::move(reply); });
  RawServer::say(client, kOk);
  std::this_thread::sleep_for(100ms);
  ASSERT_TRUE(run_until([&] { return got.has_value(); }));
  ASSERT_FALSE(*got);
  EXPECT_EQ(got->error().code, ErrorCode::kUnavailable) << got->error().message;
  EXPECT_EQ(heard, 1);
}

TEST_F(NetTest, AStaleConnectionIsTriedOnceMore) {
  // Answers the first request of each connection, and closes the connection at the second request.
  std::map<int, int> seen;
  RawServer server(loop.context(), [&](int connection, const std::string&, const RawServer::Socket& socket) {
    if (++seen[connection] == 1) return RawServer::say(socket, kOk);
    RawServer::cut(socket);
  });
  BeastTransport transport(loop, local(server.port()));
  ASSERT_TRUE(fetch(transport, {"GET", "/1"}));
  EXPECT_TRUE(fetch(transport, {"GET", "/2"})) << "idempotent";
  EXPECT_EQ(server.connections, 2);
  const auto post = fetch(transport, {"POST", "/3"});
  ASSERT_FALSE(post) << "it may have been carried out";
  EXPECT_EQ(post.error().code, ErrorCode::kUnknownOutcome);
  EXPECT_EQ(server.connections, 2);
}

TEST_F(NetTest, WhenOneKeptConnectionIsDeafNoneIsUsedAgain) {
  // If `deaf` is set, the server no longer answers on existing connections.
  bool deaf = false;
  int first_ones = 0;
  RawServer server(loop.context(), [&](int connection, const std::string&, const RawServer::Socket& socket) {
    if (!deaf) first_ones = std::max(first_ones, connection);
    if (!deaf || connection > first_ones) RawServer::say(socket, kOk);
  });
  BeastTransport transport(loop, local(server.port()));
  int done = 0;
  for (int i = 0; i < 3; ++i) transport.send({}, [&](const core::Result<HttpResponse>&) { ++done; });
  ASSERT_TRUE(run_until([&] { return done == 3; }));
  ASSERT_EQ(transport.stats().idle, 3U);
  deaf = true;
  EXPECT_FALSE(fetch(transport, {.method = "PUT", .timeout = 50ms}));
  EXPECT_EQ(transport.stats().open, 0U);
  EXPECT_TRUE(fetch(transport, {.method = "PUT", .timeout = 30s}));
}

TEST_F(NetTest, AConnectionClosedAtRestIsNotUsedAgain) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket& socket) {
    RawServer::say(socket, kOk);
    RawServer::cut(socket);
  });
  BeastTransport transport(loop, local(server.port()));
  ASSERT_TRUE(fetch(transport, {"POST", "/1"}));
  ASSERT_TRUE(run_until([&] { return transport.stats().open == 0; }));
  EXPECT_TRUE(fetch(transport, {"POST", "/2"}));
}

TEST_F(NetTest, NonsenseIsAnError) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket& socket) {
    RawServer::say(socket, "SSH-2.0-OpenSSH_9.2\r\n");
  });
  BeastTransport transport(loop, local(server.port()));
  EXPECT_EQ(fetch(transport, {}).error().code, ErrorCode::kUnknownOutcome);
}

TEST_F(NetTest, InterimRepliesAreSkipped) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket& socket) {
    RawServer::say(socket, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + kOk);
  });
  BeastTransport transport(loop, local(server.port()));
  const auto reply = fetch(transport, {});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  EXPECT_EQ(reply->body, "ok");
}

TEST_F(NetTest, TooLongRepliesAreAnError) {
  HttpServer server(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, std::string(5000, 'x')}); });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()), {.max_reply_bytes = 4999});
  const auto reply = fetch(transport, {"GET", "/jobs"});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kInternal);
  EXPECT_THAT(reply.error().message, HasSubstr("GET /jobs: the reply is longer than 4999 bytes"));
  HttpRequest large{"GET", "/jobs"};
  large.max_reply_bytes = 5000;
  EXPECT_TRUE(fetch(transport, large)) << "its own limit counts";
  large.max_reply_bytes = 4000;
  const auto own = fetch(transport, large);
  ASSERT_FALSE(own);
  EXPECT_THAT(own.error().message, HasSubstr("4000 bytes, the limit of such requests"));
}

TEST_F(NetTest, HeadHasNoBody) {
  RawServer server(loop.context(), [](int, const std::string&, const RawServer::Socket& socket) {
    RawServer::say(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
  });
  BeastTransport transport(loop, local(server.port()));
  ASSERT_TRUE(fetch(transport, {"HEAD", "/"}));
  EXPECT_EQ(transport.stats().idle, 1U);
}

TEST_F(NetTest, RefusesRequestsThatWouldSmuggle) {
  BeastTransport transport(loop, local(1));
  EXPECT_EQ(fetch(transport, {"GET", "/a\r\nX: y"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(fetch(transport, {"GET", "/", {{"x", "a\nb"}}}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(fetch(transport, {"GET", "/a b"}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(fetch(transport, {"GET", ""}).error().code, ErrorCode::kInvalid);
}

TEST_F(NetTest, StreamsInPieces) {
  std::optional<Responder> kept;
  HttpServer server(loop, {}, [&](HttpRequest, Responder responder) {
    responder.begin(200, {{"content-type", "application/json"}});
    responder.write("{\"a\":1}\n");
    kept = responder;
  });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()));
  std::vector<std::string> events;
  transport.stream({"GET", "/watch"}, {[&](int status, const Headers& headers) {
                                         events.push_back(std::to_string(status) + " " + headers.at("content-type"));
                                       },
                                       [&](std::string_view piece) { events.emplace_back(piece); },
                                       [&](const core::Result<void>& end) { events.push_back(end ? "end" : "error"); }});
  ASSERT_TRUE(run_until([&] { return events.size() == 2; }));
  kept->write("{\"b\":2}\n");
  ASSERT_TRUE(run_until([&] { return events.size() == 3; }));
  kept->end();
  kept.reset();
  ASSERT_TRUE(run_until([&] { return events.size() == 4; }));
  EXPECT_THAT(events, ElementsAre("200 application/json", "{\"a\":1}\n", "{\"b\":2}\n", "end"));
  EXPECT_EQ(transport.stats().idle, 1U) << "a stream that ended properly leaves a usable connection";
}

TEST_F(NetTest, ACutStreamIsAnError) {
  HttpServer server(loop, {}, [&](HttpRequest, Responder responder) {
    responder.begin(200, {});
    responder.write("{\"half");
    loop.after(10ms, [responder]() mutable { responder.cut(); });
  });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()));
  std::optional<core::Result<void>> end;
  transport.stream({"GET", "/watch"}, {{}, {}, [&](core::Result<void> result) { end = std::move(result); }});
  ASSERT_TRUE(run_until([&] { return end.has_value(); }));
  ASSERT_FALSE(*end);
  EXPECT_EQ(end->error().code, ErrorCode::kUnknownOutcome);
}

TEST_F(NetTest, SilenceEndsAStreamAndPiecesPutItOff) {
  std::optional<Responder> kept;
  HttpServer server(loop, {}, [&](HttpRequest, Responder responder) {
    responder.begin(200, {});
    for (int i = 1; i <= 4; ++i) loop.after(i * 400ms, [responder]() mutable { responder.write("x"); });
    kept = responder;
  });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()));
  core::MonoTime last;
  std::optional<core::Result<void>> end;
  transport.stream({"GET", "/watch", {}, "", 1s}, {[&](int, const Headers&) { last = loop.clock().mono(); },
                                                   [&](std::string_view) { last = loop.clock().mono(); },
                                                   [&](core::Result<void> result) { end = std::move(result); }});
  ASSERT_TRUE(run_until([&] { return end.has_value(); }));
  ASSERT_FALSE(*end);
  EXPECT_THAT(end->error().message, HasSubstr("silence after 1000 ms"));
  // The stream ends 1000 ms after a piece. On a stalled machine, this piece is possibly not the last one. If pieces did not
  // extend the timeout, the stream would end 200 ms after a piece. The 300 ms allow for a piece that is reported late.
  EXPECT_GE(loop.clock().mono() - last, 700ms);
}

TEST_F(NetTest, CancelEndsAllCallsAndTheConnection) {
  bool gone = false;
  HttpServer server(loop, {}, [&](HttpRequest, Responder responder) {
    responder.begin(200, {});
    responder.write("one");
    responder.on_gone([&gone, responder] { gone = true; });
  });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()));
  HttpTransport::RequestId id = 0;
  int calls = 0;
  id = transport.stream({"GET", "/"}, {{},
                                       [&](std::string_view) {
                                         ++calls;
                                         transport.cancel(id);
                                       },
                                       [&](const core::Result<void>&) { calls += 100; }});
  ASSERT_TRUE(run_until([&] { return gone; }));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(transport.stats().open, 0U);
  transport.cancel(id);
}

TEST_F(NetTest, CancelBeforeConnectedAndInTheQueue) {
  HttpServer server(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, "ok"}); });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, local(server.port()), {.max_connections = 1});
  int calls = 0;
  const auto count = [&](const core::Result<HttpResponse>&) { ++calls; };
  const auto first = transport.send({}, count);
  const auto second = transport.send({}, count);
  transport.cancel(first);
  transport.cancel(second);
  EXPECT_TRUE(fetch(transport, {}));
  EXPECT_EQ(calls, 0);
}

TEST_F(NetTest, TheTransportMayGoInsideOfACallback) {
  HttpServer server(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, "ok"}); });
  ASSERT_TRUE(server.start());
  auto transport = std::make_unique<BeastTransport>(loop, local(server.port()));
  int calls = 0;
  transport->send({}, [&](const core::Result<HttpResponse>&) {
    ++calls;
    transport.reset();
  });
  transport->send({}, [&](const core::Result<HttpResponse>&) { ++calls; });
  ASSERT_TRUE(run_until([&] { return calls == 1; }));
  run_until([&] { return loop.context().poll() == 0; });
  EXPECT_EQ(calls, 1);
}

TEST_F(NetTest, ANewEndpointIsForNewConnections) {
  HttpServer one(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, "one"}); });
  HttpServer two(loop, {}, [](HttpRequest, Responder responder) { responder.respond({200, {}, "two"}); });
  ASSERT_TRUE(one.start());
  ASSERT_TRUE(two.start());
  BeastTransport transport(loop, local(one.port()));
  EXPECT_EQ(fetch(transport, {})->body, "one");
  ASSERT_TRUE(transport.set_endpoint(local(two.port())));
  EXPECT_EQ(transport.stats().open, 0U);
  EXPECT_EQ(fetch(transport, {})->body, "two");
  Endpoint bad{"https", "127.0.0.1", 1, {.ca_pem = "nonsense"}};
  const auto refused = transport.set_endpoint(bad);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(fetch(transport, {})->body, "two");
}

struct TlsTest : NetTest {
  Identity server_id = make_identity("DNS:api.example,IP:127.0.0.1");
  Identity client_id = make_identity("DNS:client");

  core::Result<HttpResponse> over(HttpServer& server, Tls tls, const std::string& host = "127.0.0.1") {
    BeastTransport transport(loop, {"https", host, server.port(), std::move(tls)});
    return fetch(transport, {"POST", "/"});
  }
  HttpServer make_server(std::string client_ca = "") {
    return HttpServer(
        loop, {.use_tls = true, .tls = {.ca_pem = std::move(client_ca), .cert_pem = server_id.cert, .key_pem = server_id.key}},
        [](HttpRequest, Responder responder) {
          responder.respond({200, {}, "secure"});
        });
  }
};

TEST_F(TlsTest, VerifiesAddressesAndNames) {
  HttpServer server = make_server();
  ASSERT_TRUE(server.start());
  const auto by_address = over(server, {.ca_pem = server_id.cert});
  ASSERT_TRUE(by_address) << by_address.error().message;
  EXPECT_EQ(by_address->body, "secure");
  EXPECT_TRUE(over(server, {.ca_pem = server_id.cert, .server_name = "api.example"}));
}

TEST_F(TlsTest, RefusesOtherNamesAndOtherAuthorities) {
  HttpServer server = make_server();
  ASSERT_TRUE(server.start());
  for (const Tls& tls : {Tls{.ca_pem = server_id.cert, .server_name = "other.example"},
                         Tls{.ca_pem = server_id.cert, .server_name = "127.0.0.2"}, Tls{.ca_pem = client_id.cert}, Tls{}}) {
    const auto reply = over(server, tls);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable) << "nothing was sent";
    EXPECT_THAT(reply.error().message, HasSubstr("certificate refused"));
  }
  EXPECT_TRUE(over(server, {.insecure_skip_verify = true}));
}

TEST_F(TlsTest, ShowsItsOwnCertificate) {
  HttpServer server = make_server(client_id.cert);
  ASSERT_TRUE(server.start());
  EXPECT_TRUE(over(server, {.ca_pem = server_id.cert, .cert_pem = client_id.cert, .key_pem = client_id.key}));
  EXPECT_FALSE(over(server, {.ca_pem = server_id.cert}));
}

TEST_F(TlsTest, CertificatesRotate) {
  HttpServer server = make_server();
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, {"https", "127.0.0.1", server.port(), {.ca_pem = server_id.cert}});
  ASSERT_TRUE(fetch(transport, {}));
  const Identity next = make_identity("IP:127.0.0.1");
  ASSERT_TRUE(server.set_tls({.cert_pem = next.cert, .key_pem = next.key}));
  EXPECT_TRUE(fetch(transport, {})) << "the kept connection lives on";
  ASSERT_TRUE(transport.set_endpoint({"https", "127.0.0.1", server.port(), {.ca_pem = next.cert}}));
  EXPECT_TRUE(fetch(transport, {}));
  EXPECT_EQ(transport.stats().opened, 2U);
}

TEST_F(TlsTest, AKeyOfAnotherCertificateIsInvalid) {
  BeastTransport transport(loop, {"https", "127.0.0.1", 1, {.cert_pem = client_id.cert, .key_pem = server_id.key}});
  const auto reply = fetch(transport, {});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(reply.error().message, HasSubstr("private key"));
}

TEST_F(TlsTest, StreamsAndLargeBodies) {
  HttpServer server(loop, {.use_tls = true, .tls = {.cert_pem = server_id.cert, .key_pem = server_id.key}},
                    [](HttpRequest request, Responder responder) {
                      responder.begin(200, {});
                      for (int i = 0; i < 100; ++i) responder.write(request.body);
                      responder.end();
                    });
  ASSERT_TRUE(server.start());
  BeastTransport transport(loop, {"https", "127.0.0.1", server.port(), {.ca_pem = server_id.cert}});
  const auto reply = fetch(transport, {"POST", "/", {}, std::string(50'000, 'y')});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, std::string(5'000'000, 'y'));
}

/// A client that tries to resume its session, which BeastTransport never does. Blocks, so it has a thread of its own.
struct ResumingClient {
  ResumingClient(const SelfSigned& id, int version) : context(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_max_proto_version(context, version);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT);
    BIO* cert = BIO_new_mem_buf(id.cert.data(), static_cast<int>(id.cert.size()));
    BIO* key = BIO_new_mem_buf(id.key.data(), static_cast<int>(id.key.size()));
    X509* x509 = PEM_read_bio_X509(cert, nullptr, nullptr, nullptr);
    EVP_PKEY* pkey = PEM_read_bio_PrivateKey(key, nullptr, nullptr, nullptr);
    SSL_CTX_use_certificate(context, x509);
    SSL_CTX_use_PrivateKey(context, pkey);
    X509_free(x509);
    EVP_PKEY_free(pkey);
    BIO_free(cert);
    BIO_free(key);
  }
  ~ResumingClient() {
    SSL_SESSION_free(session);
    SSL_CTX_free(context);
  }
  ResumingClient(const ResumingClient&) = delete;
  ResumingClient& operator=(const ResumingClient&) = delete;

  std::string get(std::uint16_t port) {
    BIO* bio = BIO_new_ssl_connect(context);
    BIO_set_conn_hostname(bio, ("127.0.0.1:" + std::to_string(port)).c_str());
    SSL* ssl = nullptr;
    BIO_get_ssl(bio, &ssl);
    if (session != nullptr) SSL_set_session(ssl, session);
    std::string out;
    if (BIO_do_connect(bio) == 1 && BIO_puts(bio, "GET / HTTP/1.1\r\nconnection: close\r\n\r\n") > 0) {
      std::array<char, 1024> buffer{};
      for (int n = 0; (n = BIO_read(bio, buffer.data(), buffer.size())) > 0;)
        out.append(buffer.data(), static_cast<std::size_t>(n));
      resumed = SSL_session_reused(ssl) == 1;
      SSL_SESSION_free(session);
      session = SSL_get1_session(ssl);
    }
    BIO_free_all(bio);
    return out;
  }

  SSL_CTX* context;
  SSL_SESSION* session = nullptr;
  bool resumed = false;
};

/// A server that accepts any client and answers with the fingerprint of the client's key.
struct PinnedTlsTest : NetTest {
  SelfSigned server_id = make_self_signed("server"), client_id = make_self_signed("client");
  std::string server_key = fingerprint_of(server_id.cert).value(), client_key = fingerprint_of(client_id.cert).value();
  int requests = 0;
  HttpServer server{loop,
                    {.use_tls = true, .tls = {.cert_pem = server_id.cert, .key_pem = server_id.key, .any_client = true}},
                    [this](const HttpRequest& request, Responder responder) {
                      ++requests;
                      responder.respond({200, {}, "<" + request.peer_key + ">"});
                    }};

  void SetUp() override { ASSERT_TRUE(server.start()); }
  Endpoint to(Tls tls) { return {"https", "127.0.0.1", server.port(), std::move(tls)}; }
  core::Result<HttpResponse> over(Tls tls) {
    BeastTransport transport(loop, to(std::move(tls)));
    return fetch(transport, {"POST", "/"});
  }
  std::string get(ResumingClient& client) {
    std::atomic<bool> ended = false;
    std::string reply;
    std::thread thread([&] {
      reply = client.get(server.port());
      ended = true;
    });
    EXPECT_TRUE(run_until([&] { return ended.load(); }));
    thread.join();
    return reply;
  }
};

TEST_F(PinnedTlsTest, BothSidesKnowEachOtherByTheirKeys) {
  const auto reply = over({.cert_pem = client_id.cert, .key_pem = client_id.key, .pinned_key = server_key});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "<" + client_key + ">");
}

TEST_F(PinnedTlsTest, AClientNeedsNoCertificate) {
  const auto reply = over({.pinned_key = server_key});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "<>");
}

TEST_F(PinnedTlsTest, AnotherServerIsRefusedBeforeAnythingIsSent) {
  const auto reply = over({.cert_pem = client_id.cert, .key_pem = client_id.key, .pinned_key = client_key});
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kUnavailable) << "nothing was sent";
  EXPECT_THAT(reply.error().message, HasSubstr("certificate refused: the server's key has the fingerprint " + server_key +
                                               ", expected " + client_key));
  ASSERT_TRUE(over({.pinned_key = server_key}));
  EXPECT_EQ(requests, 1);
}

TEST_F(PinnedTlsTest, DatesAndNamesDoNotMatter) {
  // This identity is from an unknown authority, for another name, and expired long ago.
  const core::WallTime then = core::parse_rfc3339("2001-02-03T04:05:06Z").value();
  const ServerIdentity old = make_server_identity("old", {"elsewhere.example"}, then, then + 1h);
  ASSERT_TRUE(server.set_tls({.cert_pem = old.cert, .key_pem = old.key, .any_client = true}));
  const std::string old_key = fingerprint_of(old.cert).value();
  const auto reply = over({.cert_pem = old.cert, .key_pem = old.key, .pinned_key = old_key});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "<" + old_key + ">");
}

TEST_F(PinnedTlsTest, AKeptConnectionKeepsTheKey) {
  BeastTransport transport(loop, to({.cert_pem = client_id.cert, .key_pem = client_id.key, .pinned_key = server_key}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(fetch(transport, {})->body, "<" + client_key + ">");
  EXPECT_EQ(transport.stats().opened, 1U);
}

TEST_F(PinnedTlsTest, NoSessionIsResumedSoThatTheKeyIsProvenEachTime) {
  ResumingClient client(client_id, TLS1_3_VERSION);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(get(client), HasSubstr("<" + client_key + ">"));
    EXPECT_FALSE(client.resumed);
    ASSERT_NE(client.session, nullptr);
    EXPECT_EQ(SSL_SESSION_is_resumable(client.session), 0);
  }
}

TEST_F(PinnedTlsTest, OlderTlsIsRefused) {
  ResumingClient client(client_id, TLS1_2_VERSION);
  EXPECT_EQ(get(client), "");
  EXPECT_EQ(requests, 0);
}

TEST_F(PinnedTlsTest, ServersThatAskForNoCertificateSeeNoKey) {
  ASSERT_TRUE(server.set_tls({.cert_pem = server_id.cert, .key_pem = server_id.key}));
  EXPECT_EQ(over({.cert_pem = client_id.cert, .key_pem = client_id.key, .pinned_key = server_key})->body, "<>");
  ASSERT_TRUE(server.set_tls({.ca_pem = client_id.cert, .cert_pem = server_id.cert, .key_pem = server_id.key}));
  EXPECT_FALSE(over({.pinned_key = server_key}));
}

TEST_F(PinnedTlsTest, WhatContradictsAPinIsInvalid) {
  for (const Tls& tls : {Tls{.pinned_key = "abc"}, Tls{.pinned_key = std::string(64, 'A')},
                         Tls{.ca_pem = server_id.cert, .pinned_key = server_key},
                         Tls{.insecure_skip_verify = true, .pinned_key = server_key}, Tls{.any_client = true}}) {
    const auto reply = over(tls);
    ASSERT_FALSE(reply);
    EXPECT_EQ(reply.error().code, ErrorCode::kInvalid) << reply.error().message;
  }
  BeastTransport plain(loop, {"http", "127.0.0.1", server.port(), {.pinned_key = server_key}});
  EXPECT_EQ(fetch(plain, {}).error().code, ErrorCode::kInvalid);
  for (const Tls& tls :
       {Tls{.ca_pem = client_id.cert, .cert_pem = server_id.cert, .key_pem = server_id.key, .any_client = true},
        Tls{.cert_pem = server_id.cert, .key_pem = server_id.key, .pinned_key = client_key}, Tls{.any_client = true}}) {
    const auto refused = server.set_tls(tls);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
  }
  EXPECT_TRUE(over({.pinned_key = server_key})) << "the earlier certificate stays in use";
}

}  // namespace
}  // namespace net
