#include "net/reach.hpp"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "net/socket_stream.hpp"

namespace net {
namespace {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

/// An attempt lives until it has called `done`, because its own callbacks keep it alive.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(AsioLoop& loop, const std::string& host, std::uint16_t port, std::function<void(core::Result<void>)> done)
      : place_(fmt::format("{}:{}", host, port)),
        resolver_(loop.context()),
        stream_(loop.context(), {}),
        timer_(loop),
        done_(std::move(done)) {}

  void start(const std::string& host, std::uint16_t port, core::Duration timeout) {
    timer_.set(timeout,
               [self = shared_from_this(), timeout] { self->end(fmt::format("no answer after {} ms", timeout.count())); });
    ErrorCode no_address;
    const auto address = asio::ip::make_address(host, no_address);
    if (!no_address) return connect({tcp::endpoint(address, port)});
    resolver_.async_resolve(host, std::to_string(port), tcp::resolver::numeric_service,
                            [self = shared_from_this()](const ErrorCode& error, const tcp::resolver::results_type& results) {
                              if (!self->done_) return;
                              if (error) return self->end("resolve: " + error.message());
                              self->connect({results.begin(), results.end()});
                            });
  }

 private:
  void connect(const std::vector<tcp::endpoint>& addresses) {
    constexpr core::Duration kEach{2000};
    stream_.connect(addresses, kEach, [self = shared_from_this()](const ErrorCode& error) {
      self->end(error ? "connect: " + error.message() : "");
    });
  }

  /// Calls `done` and frees everything. `why` is "" if the connection was made.
  void end(const std::string& why) {
    if (!done_) return;
    const auto done = std::exchange(done_, nullptr);
    resolver_.cancel();
    stream_.close();
    if (why.empty()) {
      done({});
    } else {
      done(core::fail(core::ErrorCode::kUnavailable, place_ + ": " + why));
    }
    // Must be the last statement, because the timer's callback may hold the last reference to this object.
    timer_.cancel();
  }

  std::string place_;
  tcp::resolver resolver_;
  SocketStream stream_;
  core::Timer timer_;
  std::function<void(core::Result<void>)> done_;
};

}  // namespace

void reach(AsioLoop& loop, const std::string& host, std::uint16_t port, core::Duration timeout,
           std::function<void(core::Result<void>)> done) {
  std::make_shared<Attempt>(loop, host, port, std::move(done))->start(host, port, timeout);
}

}  // namespace net
