#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "enlist/host/host.hpp"
#include "enlist/host/spawn.hpp"

namespace enlist {

namespace {

constexpr core::Duration kFirstPause{300}, kLongestPause{10000};
/// How often the child is polled. The pause before a restart is longer than this, so that a restart would not be much earlier
/// with SIGCHLD.
constexpr core::Duration kLook{100};
constexpr std::size_t kKept = 8192;  ///< How many bytes of the end of its output are stored.

class Child final : public Supervised {
 public:
  Child(core::Loop& loop, Command command, std::function<void()> changed)
      : loop_(loop), command_(std::move(command)), changed_(std::move(changed)), next_(loop) {
    next_.set(core::Duration{0}, [this] { start(); });
  }
  ~Child() override {
    if (pid_ == 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void stop() override {
    stopped_ = true;
    if (pid_ != 0) kill(pid_, SIGTERM);
    if (pid_ == 0) next_.cancel();
  }
  [[nodiscard]] bool running() const override { return pid_ != 0; }
  [[nodiscard]] std::string last_error() const override { return error_; }

 private:
  void start() {
    const auto pid = spawn_child();
    if (!pid) return ended(pid.error().message);
    pid_ = *pid;
    error_.clear();
    output_.clear();
    started_ = loop_.clock().mono();
    next_.set(kLook, [this] { look(); });
    changed_();
  }
  core::Result<pid_t> spawn_child() {
    auto pipe = make_pipe();
    if (!pipe) return std::unexpected(pipe.error());
    auto pid = spawn({.arguments = command_.arguments,
                      .environment = command_.environment,
                      .user = command_.user,
                      .folder = command_.folder.string(),
                      .err = pipe->second.get(),
                      .ends_with_us = true});
    if (pid) log_ = std::move(pipe->first);
    return pid;
  }
  void look() {
    int status = 0;
    const bool over = waitpid(pid_, &status, WNOHANG) == pid_;
    read_log();
    if (!over) return next_.set(kLook, [this] { look(); });
    pid_ = 0;
    if (loop_.clock().mono() - started_ > kLongestPause) pause_ = kFirstPause;
    const std::string said = telling_lines(output_);
    ended(command_.arguments.front() + " ended (exit code " + std::to_string(exit_code(status)) + ")" +
          (said.empty() ? "" : ": " + said));
  }
  /// Reads the child's output, because the child would block when the pipe is full.
  void read_log() {
    std::size_t before = 0;
    do {
      before = output_.size();
      if (log_.open() && !read_some(log_.get(), output_)) log_.close();
    } while (output_.size() > before && output_.size() < 64 * kKept);
    if (output_.size() > kKept) output_.erase(0, output_.size() - kKept);
  }
  void ended(std::string error) {
    error_ = std::move(error);
    if (!stopped_) {
      next_.set(pause_, [this] { start(); });
      pause_ = std::min(pause_ * 2, kLongestPause);
    }
    changed_();
  }

  core::Loop& loop_;
  Command command_;
  std::function<void()> changed_;
  pid_t pid_ = 0;  ///< 0: the child does not run.
  Fd log_;
  std::string output_, error_;
  core::MonoTime started_;
  core::Duration pause_ = kFirstPause;
  bool stopped_ = false;
  core::Timer next_;
};

}  // namespace

std::unique_ptr<Supervised> supervise(core::Loop& loop, Command command, std::function<void()> changed) {
  return std::make_unique<Child>(loop, std::move(command), std::move(changed));
}

}  // namespace enlist
