// Starts a program: without a shell, without our file descriptors, and with default signals.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace enlist {

/// A file descriptor of ours that is closed with its owner.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { close(); }
  void close();
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct Spawn {
  std::vector<std::string> arguments;      ///< The first is the program: a path, or a name that is looked up in PATH.
  std::vector<std::string> environment{};  ///< "NAME=value", beside our own.
  std::string user{};                      ///< "": our own.
  std::string folder{};                    ///< As Command::folder; "": none.
  int in = -1, out = -1, err = -1;         ///< The descriptors of the program; -1: /dev/null.
  bool ends_with_us = false;               ///< It gets SIGTERM when the thread that started it ends.
};

/// Starts the program in a session and process group of its own. Errors: kNotFound (no such program), kInvalid (no such user),
/// kUnavailable (the system refused, such as too many processes, or rights that are missing; or the folder is not the user's).
[[nodiscard]] core::Result<pid_t> spawn(const Spawn& spawn);

/// Returns both ends, for reading and for writing. They are not blocking, closed in programs that are started, and above 2.
[[nodiscard]] core::Result<std::pair<Fd, Fd>> make_pipe();
/// Returns both ends of a pair of sockets, so that writing to an end without a reader gives an error and no signal.
[[nodiscard]] core::Result<std::pair<Fd, Fd>> make_sockets();

/// Appends what can be read now. Returns false at the end of the file, or after an error.
bool read_some(int fd, std::string& to);

/// Returns the exit code of a status of waitpid(2); 128 + the signal if a signal ended the program.
[[nodiscard]] int exit_code(int status);

/// Returns what the end of a log says of a failure, in one line: the last line with "fatal:", or else the last three. Lines
/// with "error:" are not preferred: daemons of Slurm also write them about what does no harm.
[[nodiscard]] std::string telling_lines(std::string_view log);

}  // namespace enlist
