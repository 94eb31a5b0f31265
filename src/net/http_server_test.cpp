// Uses loopback sockets, because these are under test. Every wait is bounded. For the client: beast_transport_test.cpp.
#include "net/http_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <thread>

#include "net/testing/loop_test.hpp"

namespace net {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct HttpServerTest : testing::LoopTest {
  std::string received;
  bool ended = false;

  std::shared_ptr<tcp::socket> connect(const HttpServer& server) {
    auto socket = std::make_shared<tcp::socket>(loop.context());
    socket->connect({asio::ip::address_v4::loopback(), server.port()});
    listen(socket, std::make_shared<std::array<char, 4096>>());
    return socket;
  }
  void listen(const std::shared_ptr<tcp::socket>& socket, const std::shared_ptr<std::array<char, 4096>>& buffer) {
    socket->async_read_some(asio::buffer(*buffer), [this, socket, buffer](boost::system::error_code error, std::size_t n) {
      ended = static_cast<bool>(error);
      received.append(buffer->data(), n);
      if (!error) listen(socket, buffer);
    });
  }
  static void say(const std::shared_ptr<tcp::socket>& socket, const std::string& text) {
    asio::write(*socket, asio::buffer(text));
  }
};

/// Makes IPv6 sockets fail on this thread. Returns false if that is not possible.
bool refuse_ipv6_sockets() {
  std::array<sock_filter, 6> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

void echo(HttpRequest request, Responder responder) {
  responder.respond({200, {}, request.target});
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  HttpServer server(loop, {}, echo);
  ASSERT_TRUE(server.start());
  const auto client = connect(server);
  say(client, "GET /1 HTTP/1.1\r\n\r\nGET /2 HTTP/1.1\r\n\r\nGET /3 HTTP/1.1\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return ended; }));
  EXPECT_EQ(received,
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n/1HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n/2"
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n/3");
}

TEST_F(HttpServerTest, AClientThatReadsNothingIsNotAnsweredForEver) {
  constexpr int kRequests = 2000;
  const std::string answer(10'000, 'x');
  int calls = 0;
  HttpServer server(loop, {}, [&](HttpRequest, Responder responder) {
    ++calls;
    responder.respond({200, {}, answer});
  });
  ASSERT_TRUE(server.start());
  tcp::socket client(loop.context());
  client.open(tcp::v4());
  client.set_option(asio::socket_base::receive_buffer_size(4096));
  client.connect({asio::ip::address_v4::loopback(), server.port()});
  std::string requests;
  for (int i = 0; i < kRequests; ++i) requests += "GET / HTTP/1.1\r\n\r\n";
  asio::async_write(client, asio::buffer(requests), [](boost::system::error_code, std::size_t) {});
  run_until(
      [&, end = std::chrono::steady_clock::now() + 300ms] { return calls > 0 && std::chrono::steady_clock::now() > end; });
  EXPECT_GT(calls, 0);
  EXPECT_LT(calls, kRequests / 2) << "more than the sockets' own buffers hold";

  // Once the client reads, all requests are answered.
  std::vector<char> buffer(1 << 20);
  std::size_t bytes = 0;
  const std::function<void()> read = [&] {
    client.async_read_some(asio::buffer(buffer), [&](boost::system::error_code error, std::size_t n) {
      bytes += n;
      if (!error) read();
    });
  };
  read();
  EXPECT_TRUE(run_until([&] { return bytes > kRequests * answer.size(); }));
  EXPECT_EQ(calls, kRequests);
}

TEST_F(HttpServerTest, ARequestMayComeByteByByte) {
  HttpServer server(loop, {}, [](HttpRequest request, Responder responder) { responder.respond({200, {}, request.body}); });
  ASSERT_TRUE(server.start());
  const auto client = connect(server);
  for (char c : std::string("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")) {
    say(client, std::string(1, c));
    loop.context().restart();
    loop.context().run_for(1ms);
  }
  ASSERT_TRUE(run_until([&] { return !received.empty(); }));
  EXPECT_THAT(received, EndsWith("\r\n\r\nabcde"));
}

TEST_F(HttpServerTest, NonsenseGets400AndTooMuch413) {
  HttpServer server(loop, {.max_request_bytes = 10}, echo);
  ASSERT_TRUE(server.start());
  say(connect(server), "what\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return ended; }));
  EXPECT_THAT(received, StartsWith("HTTP/1.1 400 "));
  received.clear();
  ended = false;
  say(connect(server), "POST / HTTP/1.1\r\nContent-Length: 11\r\n\r\n01234567890");
  ASSERT_TRUE(run_until([&] { return ended; }));
  EXPECT_THAT(received, StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpServerTest, ADroppedRequestGets500) {
  HttpServer server(loop, {}, [](HttpRequest, Responder) {});
  ASSERT_TRUE(server.start());
  say(connect(server), "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return !received.empty(); }));
  EXPECT_THAT(received, StartsWith("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, OnlyTheFirstAnswerCounts) {
  HttpServer server(loop, {}, [](HttpRequest, Responder responder) {
    Responder copy = responder;
    responder.respond({200, {}, "a"});
    copy.respond({200, {}, "b"});
    copy.begin(200, {});
    copy.end();
    EXPECT_FALSE(copy.open());
  });
  ASSERT_TRUE(server.start());
  say(connect(server), "GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return ended; }));
  EXPECT_THAT(received, EndsWith("\r\n\r\na"));
}

TEST_F(HttpServerTest, TellsWhenTheClientGoes) {
  std::optional<Responder> kept;
  bool gone = false;
  HttpServer server(loop, {}, [&](HttpRequest, Responder responder) {
    kept = responder;
    responder.on_gone([&] { gone = true; });
  });
  ASSERT_TRUE(server.start());
  const auto client = connect(server);
  say(client, "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return kept.has_value(); }));
  EXPECT_TRUE(kept->open());
  client->close();
  ASSERT_TRUE(run_until([&] { return gone; }));
  EXPECT_FALSE(kept->open());
  kept->respond({200, {}, "nobody"});
}

TEST_F(HttpServerTest, IdleClientsAreLetGo) {
  HttpServer server(loop, {.idle_timeout = 30ms}, echo);
  ASSERT_TRUE(server.start());
  const auto client = connect(server);
  EXPECT_TRUE(run_until([&] { return ended; }));
}

// Idle connections must not block the probes of the kubelet.
TEST_F(HttpServerTest, TheClientThatIsIdleForLongestMakesRoom) {
  HttpServer server(loop, {.max_connections = 2}, echo);
  ASSERT_TRUE(server.start());
  const auto first = connect(server);
  say(first, "GET /first HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return received.ends_with("/first"); }));
  run_until([end = std::chrono::steady_clock::now() + 20ms] { return std::chrono::steady_clock::now() > end; });
  const auto second = connect(server);
  run_until([end = std::chrono::steady_clock::now() + 20ms] { return std::chrono::steady_clock::now() > end; });
  EXPECT_FALSE(ended);
  const auto third = connect(server);
  ASSERT_TRUE(run_until([&] { return ended; })) << "the first goes";
  for (const auto& client : {second, third}) {
    received.clear();
    say(client, "GET /here HTTP/1.1\r\n\r\n");
    EXPECT_TRUE(run_until([&] { return received.ends_with("/here"); }));
  }
}

TEST_F(HttpServerTest, ClientsThatAreBeingAnsweredKeepTheirPlaces) {
  std::optional<Responder> kept;
  HttpServer server(loop, {.max_connections = 1}, [&](HttpRequest, Responder responder) { kept = responder; });
  ASSERT_TRUE(server.start());
  const auto first = connect(server);
  say(first, "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return kept.has_value(); }));
  const auto second = connect(server);
  ASSERT_TRUE(run_until([&] { return ended; })) << "the second is turned away";
  kept->respond({200, {}, "at last"});
  EXPECT_TRUE(run_until([&] { return received.ends_with("at last"); }));
}

/// A server that knows its clients only while `known` is set.
struct StrangersTest : HttpServerTest {
  bool known = false;
  std::vector<Responder> kept;
  HttpServer server{loop,
                    {.max_request_bytes = 20'000,
                     .known = [this](const std::string&) { return known; },
                     .max_strangers = 1,
                     .max_stranger_bytes = 10},
                    [this](const HttpRequest& request, Responder responder) {
                      if (request.target == "/wait") return kept.push_back(std::move(responder));
                      responder.respond({200, {}, request.target + " " + std::to_string(request.body.size())});
                    }};

  void SetUp() override { ASSERT_TRUE(server.start()); }
  static std::string post(const std::string& target, std::size_t body, std::size_t head = 0) {
    return "POST " + target + " HTTP/1.1\r\nX: " + std::string(head, 'x') + "\r\nContent-Length: " + std::to_string(body) +
           "\r\n\r\n" + std::string(body, 'b');
  }
  std::string answer(const std::string& request) {
    received.clear();
    ended = false;
    say(connect(server), request);
    run_until([&] { return ended || (known && received.find("\r\n\r\n") != std::string::npos); });
    return received;
  }
};

TEST_F(StrangersTest, StrangersGetOneAnswerAndLittleRoom) {
  EXPECT_EQ(answer(post("/a", 10)), "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\n/a 10");
  EXPECT_TRUE(ended);
  EXPECT_THAT(answer(post("/a", 11)), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(answer(post("/a", 0, 5000)), StartsWith("HTTP/1.1 400 "));
  known = true;
  EXPECT_THAT(answer(post("/a", 20'000, 5000)), EndsWith("\r\n\r\n/a 20000"));
  EXPECT_FALSE(ended) << "it may ask again";
}

TEST_F(StrangersTest, AStrangerThatSaysNothingMakesRoomAfterAWhile) {
  const auto silent = connect(server), other = connect(server);
  say(other, post("/other", 0));
  ASSERT_TRUE(run_until([&] { return ended; })) << "the silent one goes";
  EXPECT_EQ(received, "") << "not the other one";
  EXPECT_TRUE(run_until([&] { return received.ends_with("/other 0"); }));
}

TEST_F(StrangersTest, WhoWaitsBehindStrangersIsAnswered) {
  const auto first = connect(server);
  say(first, post("/wait", 0));
  ASSERT_TRUE(run_until([&] { return kept.size() == 1; }));
  std::vector<std::shared_ptr<tcp::socket>> others;
  for (int i = 0; i < 5; ++i) {
    others.push_back(connect(server));
    say(others.back(), post("/wait", 0));
  }
  run_until([end = std::chrono::steady_clock::now() + 50ms] { return std::chrono::steady_clock::now() > end; });
  EXPECT_EQ(kept.size(), 1U) << "there is room for one";
  for (std::size_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(run_until([&] { return kept.size() == i + 1; }));
    kept[i].respond({200, {}, "<" + std::to_string(i) + ">"});
    EXPECT_TRUE(run_until([&] { return received.find("<" + std::to_string(i) + ">") != std::string::npos; }));
  }
}

TEST_F(StrangersTest, ClientsThatAreKnownTakeNoRoomOfStrangers) {
  known = true;
  std::vector<std::shared_ptr<tcp::socket>> clients;
  for (std::size_t i = 0; i < 5; ++i) {
    clients.push_back(connect(server));
    say(clients.back(), post("/wait", 0));
    ASSERT_TRUE(run_until([&] { return kept.size() == i + 1; }));
  }
  known = false;
  EXPECT_THAT(answer(post("/a", 0)), EndsWith("/a 0"));
  kept[0].respond({200, {}, "here"});
  EXPECT_TRUE(run_until([&] { return received.ends_with("here"); }));
}

TEST_F(HttpServerTest, ATakenPortIsSaid) {
  HttpServer one(loop, {}, echo);
  ASSERT_TRUE(one.start());
  EXPECT_NE(one.port(), 0);
  HttpServer two(loop, {.port = one.port()}, echo);
  const auto refused = two.start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, core::ErrorCode::kUnavailable);
  HttpServer three(loop, {.address = "nowhere"}, echo);
  EXPECT_EQ(three.start().error().code, core::ErrorCode::kInvalid);
}

/// Tests whether a server on all addresses answers a client of each IP version.
struct AllAddressesTest : HttpServerTest {
  HttpServer server{loop, {.address = ""}, echo};

  bool answers(const asio::ip::address& address) {
    auto socket = std::make_shared<tcp::socket>(loop.context());
    boost::system::error_code error;
    if (socket->connect({address, server.port()}, error)) return false;
    received.clear();
    listen(socket, std::make_shared<std::array<char, 4096>>());
    say(socket, "GET /here HTTP/1.1\r\n\r\n");
    return run_until([&] { return received.ends_with("/here"); });
  }
};

TEST_F(AllAddressesTest, ServesBothFamilies) {
  ASSERT_TRUE(server.start());
  EXPECT_TRUE(answers(asio::ip::address_v4::loopback()));
  boost::system::error_code error;
  tcp::acceptor probe(loop.context());
  probe.open(tcp::v6(), error);
  if (!error) probe.bind({asio::ip::address_v6::loopback(), 0}, error);
  if (error) GTEST_SKIP() << "no IPv6 here: " << error.message();
  EXPECT_TRUE(answers(asio::ip::address_v6::loopback()));

  HttpServer second(loop, {.address = "", .port = server.port()}, echo);
  const auto refused = second.start();
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("in use"));
}

TEST_F(AllAddressesTest, ServesIpv4WhereTheKernelHasNoIpv6) {
  core::Result<void> started;
  bool filtered = false;
  // The filter applies only to this thread and ends with the thread.
  std::thread([&] {
    filtered = refuse_ipv6_sockets();
    started = server.start();
  }).join();
  if (!filtered) GTEST_SKIP() << "no system call filters here";
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_TRUE(answers(asio::ip::address_v4::loopback()));
  EXPECT_FALSE(answers(asio::ip::address_v6::loopback()));
}

TEST(ListenAddressTest, IsReadAsUsersWriteIt) {
  const auto read = [](const std::string& text) {
    const auto options = parse_listen_address(text);
    return options ? options->address + " " + std::to_string(options->port) : options.error().message;
  };
  EXPECT_EQ(read(":8081"), " 8081");
  EXPECT_EQ(read("8081"), " 8081");
  EXPECT_EQ(read("127.0.0.1:0"), "127.0.0.1 0");
  EXPECT_EQ(read("[::1]:8081"), "::1 8081");
  EXPECT_EQ(read("[::]:65535"), ":: 65535");
  for (const char* bad :
       {"", ":", "::1:8081", "[::1]", "[::1]8081", "[]:1", "[::1:8081", "::1]:8081", ":65536", ":http", "a:-1"}) {
    EXPECT_THAT(read(bad), HasSubstr("is not host:port")) << bad;
  }
}

TEST_F(HttpServerTest, StopClosesEverything) {
  auto server = std::make_unique<HttpServer>(loop, ServerOptions{}, [](HttpRequest, Responder responder) {
    responder.begin(200, {});
    responder.on_gone([responder] {});
  });
  ASSERT_TRUE(server->start());
  say(connect(*server), "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return !received.empty(); }));
  server.reset();
  EXPECT_TRUE(run_until([&] { return ended; }));
}

/// A server that holds back its answers.
struct DrainTest : HttpServerTest {
  std::vector<Responder> asked;
  bool drained = false;
  HttpServer server{loop, {}, [this](HttpRequest, Responder responder) { asked.push_back(std::move(responder)); }};

  DrainTest() { EXPECT_TRUE(server.start()); }
  void drain(core::Duration grace = 60s) {
    server.drain(grace, [this] { drained = true; });
  }
};

TEST_F(DrainTest, ARequestUnderWayIsAnsweredAndThenItsConnectionCloses) {
  const auto client = connect(server);
  say(client, "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return !asked.empty(); }));
  drain();
  tcp::socket late(loop.context());
  boost::system::error_code refused;
  late.connect({asio::ip::address_v4::loopback(), client->remote_endpoint().port()}, refused);
  EXPECT_EQ(refused, asio::error::connection_refused);
  EXPECT_FALSE(drained);
  asked[0].respond({200, {}, "ok"});
  ASSERT_TRUE(run_until([&] { return ended && drained; }));
  EXPECT_EQ(received, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
}

TEST_F(DrainTest, ARequestThatHasBegunIsTaken) {
  const auto client = connect(server);
  const auto other = connect(server);
  say(client, "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return asked.size() == 1; }));
  asked[0].respond({200, {}, "1"});
  ASSERT_TRUE(run_until([&] { return received.ends_with("1"); }));
  // This request is incomplete. Once the other client's request has arrived, the server has also read this incomplete request.
  say(client, "GET /2 HT");
  say(other, "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return asked.size() == 2; }));
  drain();
  asked[1].respond({200, {}, "2"});
  say(client, "TP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return asked.size() == 3; }));
  EXPECT_FALSE(drained);
  asked[2].respond({200, {}, "3"});
  ASSERT_TRUE(run_until([&] { return drained; }));
  EXPECT_THAT(received, EndsWith("connection: close\r\ncontent-length: 1\r\n\r\n3"));
}

TEST_F(DrainTest, IdleConnectionsCloseAtOnce) {
  connect(server);
  const auto client = connect(server);
  say(client, "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return !asked.empty(); }));
  asked[0].respond({200, {}, "1"});
  ASSERT_TRUE(run_until([&] { return received.ends_with("1"); }));
  drain();
  EXPECT_FALSE(drained) << "later, never from inside of the call";
  EXPECT_TRUE(run_until([&] { return ended && drained; }));
}

TEST_F(DrainTest, WhatDoesNotEndIsCutAfterTheGrace) {
  say(connect(server), "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return !asked.empty(); }));
  drain(1ms);
  EXPECT_TRUE(run_until([&] { return ended && drained; }));
  EXPECT_FALSE(asked[0].open());
}

TEST_F(DrainTest, WhoAsksWhileItIsDrainedIsToldToo) {
  say(connect(server), "GET / HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(run_until([&] { return !asked.empty(); }));
  std::vector<int> told;
  server.drain(60s, [&] { told.push_back(1); });
  server.drain(1ms, [&] { told.push_back(2); });
  EXPECT_TRUE(run_until([&] { return told.size() == 2; }));
  EXPECT_EQ(told, (std::vector{1, 2}));
}

TEST_F(DrainTest, AServerWithoutConnectionsIsDrainedAtOnce) {
  drain();
  EXPECT_TRUE(run_until([&] { return drained; }));
}

}  // namespace
}  // namespace net
