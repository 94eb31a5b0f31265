// Starts a program: without a shell, without our file descriptors, and with default signals.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace enlist {

/// Owns a file descriptor, and closes it when it is destroyed.
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
  std::vector<std::string> arguments;      ///< The first is the program: a path, or a name that is found in PATH.
  std::vector<std::string> environment{};  ///< "NAME=value", added to our own.
  std::string user{};                      ///< "": our own user.
  std::string folder{};                    ///< As Command::folder; "": no folder.
  int in = -1, out = -1, err = -1;         ///< The standard streams of the program; -1: /dev/null.
  bool ends_with_us = false;               ///< The program gets SIGTERM when the thread that started it ends.
};

/// Starts the program in its own session and process group. Errors: kNotFound (no such program), kInvalid (no such user, or no
/// arguments), kUnavailable (the system refused it, for example for missing rights, or the folder belongs to another user).
[[nodiscard]] core::Result<pid_t> spawn(const Spawn& spawn);

/// Returns the reading and the writing end of a pipe. Only the reading end does not block. Both are above 2, and programs that
/// are started do not inherit them.
[[nodiscard]] core::Result<std::pair<Fd, Fd>> make_pipe();
/// Returns two connected sockets, above 2 and not inherited. Only the second does not block. Unlike write(2) to a pipe, send(2)
/// with MSG_NOSIGNAL reports a missing reader as an error, without a signal.
[[nodiscard]] core::Result<std::pair<Fd, Fd>> make_sockets();

/// Appends up to 16 KiB that can be read now. Returns false at the end of the file, or after an error.
bool read_some(int fd, std::string& to);

/// Converts a status of waitpid(2) to an exit code, or to 128 + the signal if a signal ended the program.
[[nodiscard]] int exit_code(int status);

/// Returns the part of a log that explains a failure, in one line: the last line with "fatal:", or else the last three lines.
/// Does not prefer lines with "error:", because Slurm's daemons also write such lines about harmless events.
[[nodiscard]] std::string telling_lines(std::string_view log);

}  // namespace enlist
