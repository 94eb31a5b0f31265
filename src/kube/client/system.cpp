#include "kube/client/system.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <system_error>

extern char** environ;

namespace kube {

namespace {

constexpr std::size_t kMaxOutput = 1U << 20U;
constexpr std::size_t kTail = 300;

core::Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return core::fail(core::ErrorCode::kNotFound, path + ": " + std::generic_category().message(errno));
  std::ostringstream text;
  text << file.rdbuf();
  if (!file.good() && !file.eof()) return core::fail(core::ErrorCode::kUnavailable, path + ": cannot be read");
  return std::move(text).str();
}

struct Pipe {
  int fds[2] = {-1, -1};
  Pipe() {
    if (pipe2(fds, O_CLOEXEC) != 0) fds[0] = fds[1] = -1;
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int end) {
    if (fds[end] >= 0) close(fds[end]);
    fds[end] = -1;
  }
};

/// Reads both pipes until they end. Returns false if the deadline passes before that.
bool drain(Pipe& out, Pipe& err, std::string& out_text, std::string& err_text, std::chrono::steady_clock::time_point end) {
  while (out.fds[0] >= 0 || err.fds[0] >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    if (left <= 0) return false;
    pollfd polled[2] = {{out.fds[0], POLLIN, 0}, {err.fds[0], POLLIN, 0}};
    if (poll(polled, 2, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    for (int i = 0; i < 2; ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      char buffer[4096];
      const ssize_t n = read(polled[i].fd, buffer, sizeof buffer);
      std::string& text = i == 0 ? out_text : err_text;
      if (n <= 0) {
        (i == 0 ? out : err).close_end(0);
      } else if (text.size() < kMaxOutput) {
        text.append(buffer, static_cast<std::size_t>(n));
      }
    }
  }
  return true;
}

core::Result<std::string> run(const System::Command& command) {
  Pipe out;
  Pipe err;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.fds[1], 1);
  posix_spawn_file_actions_adddup2(&actions, err.fds[1], 2);
  std::vector<std::string> env;
  // The command's own variables come first, because the first one of several variables with the same name is used.
  for (const auto& [name, value] : command.env) env.push_back(name + "=" + value);
  for (char** e = environ; *e != nullptr; ++e) env.emplace_back(*e);
  std::vector<char*> argv_pointers;
  std::vector<char*> env_pointers;
  for (const std::string& arg : command.argv) argv_pointers.push_back(const_cast<char*>(arg.c_str()));
  for (const std::string& variable : env) env_pointers.push_back(const_cast<char*>(variable.c_str()));
  argv_pointers.push_back(nullptr);
  env_pointers.push_back(nullptr);
  pid_t pid = 0;
  const int failed = posix_spawnp(&pid, argv_pointers[0], &actions, nullptr, argv_pointers.data(), env_pointers.data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return core::fail(core::ErrorCode::kUnavailable, command.argv.front() + ": " + std::generic_category().message(failed));
  out.close_end(1);
  err.close_end(1);
  std::string out_text;
  std::string err_text;
  const bool ended = drain(out, err, out_text, err_text, std::chrono::steady_clock::now() + command.timeout);
  if (!ended) kill(pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return core::fail(core::ErrorCode::kUnavailable, command.argv.front() + ": not done in time");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string tail = err_text.size() > kTail ? err_text.substr(err_text.size() - kTail) : err_text;
    const std::string how = WIFEXITED(status) ? "exit status " + std::to_string(WEXITSTATUS(status)) : "killed by a signal";
    return core::fail(core::ErrorCode::kUnavailable, how + (tail.empty() ? "" : ": " + tail));
  }
  return out_text;
}

}  // namespace

System real_system() {
  System system;
  system.env = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): nothing sets a variable
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  system.read_file = read_file;
  system.run = run;
  return system;
}

}  // namespace kube
