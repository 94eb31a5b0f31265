#include "net/asio_loop.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <csignal>
#include <unordered_map>
#include <utility>

namespace net {
namespace asio = boost::asio;

struct AsioLoop::Impl {
  explicit Impl(std::size_t threads_wanted) : threads(threads_wanted), work(asio::make_work_guard(context)) {}

  struct Pending {
    core::Callback call;
    std::unique_ptr<asio::steady_timer> timer;  ///< Null for calls that are due at once.
  };

  core::SystemClock clock;
  std::size_t threads;
  TimerId last_id = 0;
  std::unordered_map<TimerId, Pending> pending;  ///< Outlives the context, whose handlers can cancel timers when they are
                                                 ///< destroyed.
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work;
  std::unique_ptr<asio::signal_set> signals;
  std::function<void(int)> on_signal;
  std::unique_ptr<asio::thread_pool> pool;  ///< Declared last: it is joined while the context still exists.

  void fire(TimerId id) {
    const auto node = pending.extract(id);
    if (node) node.mapped().call();
  }

  void wait_for_signal() {
    signals->async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      wait_for_signal();
      on_signal(number);
    });
  }
};

AsioLoop::AsioLoop(std::size_t threads) : impl_(new Impl(threads)) {}

AsioLoop::~AsioLoop() {
  if (impl_->pool) impl_->pool->join();
  // The destructor of a callback can call cancel(), so the map is emptied before its callbacks are destroyed.
  const auto pending = std::exchange(impl_->pending, {});
}

const core::Clock& AsioLoop::clock() const {
  return impl_->clock;
}

AsioLoop::TimerId AsioLoop::after(core::Duration delay, core::Callback call) {
  const TimerId id = ++impl_->last_id;
  Impl::Pending& entry = impl_->pending[id];
  entry.call = std::move(call);
  if (delay <= core::Duration{0}) {
    asio::post(impl_->context, [impl = impl_.get(), id] { impl->fire(id); });
    return id;
  }
  entry.timer = std::make_unique<asio::steady_timer>(impl_->context, delay);
  entry.timer->async_wait([impl = impl_.get(), id](const boost::system::error_code& error) {
    if (!error) impl->fire(id);
  });
  return id;
}

void AsioLoop::cancel(TimerId id) {
  impl_->pending.erase(id);
}

void AsioLoop::offload(core::Callback work, core::Callback then) {
  if (!impl_->pool) impl_->pool = std::make_unique<asio::thread_pool>(impl_->threads);
  asio::post(*impl_->pool, [impl = impl_.get(), work = std::move(work), then = std::move(then)]() mutable {
    work();
    work = nullptr;  // destroys what `work` owns on this thread, before `then` may use the same objects
    asio::post(impl->context, std::move(then));
  });
}

void AsioLoop::run() {
  impl_->context.restart();
  impl_->context.run();
}

void AsioLoop::stop() {
  impl_->context.stop();
}

void AsioLoop::post(core::Callback call) {
  asio::post(impl_->context, std::move(call));
}

void AsioLoop::on_signals(std::function<void(int)> call) {
  impl_->on_signal = std::move(call);
  if (impl_->signals) return;
  impl_->signals = std::make_unique<asio::signal_set>(impl_->context, SIGTERM, SIGINT);
  impl_->wait_for_signal();
}

asio::io_context& AsioLoop::context() {
  return impl_->context;
}

}  // namespace net
