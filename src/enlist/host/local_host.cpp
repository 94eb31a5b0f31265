#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <system_error>

#include "enlist/host/host.hpp"
#include "enlist/host/spawn.hpp"

namespace enlist {

namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using SteadyTime = std::chrono::steady_clock::time_point;

constexpr std::size_t kMostOutput = 1UL << 20;

std::unexpected<core::Error> system_failure(const fs::path& path, int number) {
  const ErrorCode code = number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kUnavailable;
  return core::fail(code, path.string() + ": " + std::generic_category().message(number));
}

/// A running program: writes its standard input, and collects its output.
class Running {
 public:
  Running(pid_t pid, Fd in, Fd out, Fd err, const std::string& input)
      : pid_(pid), in_(std::move(in)), out_(std::move(out)), err_(std::move(err)), input_(input) {}

  enum class End { kEnded, kTooLong, kTooMuch };
  End wait(SteadyTime limit) {
    while (true) {
      // Checks for the end of the program even while the pipes are open, because a grandchild may hold them open.
      if (waitpid(pid_, &status_, WNOHANG) == pid_) {
        collect();
        return End::kEnded;
      }
      const auto now = std::chrono::steady_clock::now();
      const bool too_much = output_.out.size() > kMostOutput || output_.err.size() > kMostOutput;
      if (now >= limit || too_much) {
        kill(-pid_, SIGKILL);
        waitpid(pid_, &status_, 0);
        return too_much ? End::kTooMuch : End::kTooLong;
      }
      exchange();
    }
  }
  Output output() {
    output_.status = exit_code(status_);
    return std::move(output_);
  }

 private:
  void exchange() {
    constexpr int kLookAgain = 50, kLookSoon = 2;  // milliseconds
    std::array<pollfd, 3> wanted = {
        {{out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}, {in_.get(), static_cast<short>(POLLOUT), 0}}};
    const bool waits = out_.open() || err_.open() || in_.open();
    if (poll(wanted.data(), wanted.size(), waits ? kLookAgain : kLookSoon) <= 0) return;
    if (wanted[0].revents != 0 && !read_some(out_.get(), output_.out)) out_.close();
    if (wanted[1].revents != 0 && !read_some(err_.get(), output_.err)) err_.close();
    if (wanted[2].revents != 0) pass_input();
  }
  void pass_input() {
    const ssize_t count = send(in_.get(), input_.data() + passed_, input_.size() - passed_, MSG_NOSIGNAL);
    if (count > 0) passed_ += static_cast<std::size_t>(count);
    if ((count < 0 && errno != EAGAIN && errno != EINTR) || passed_ == input_.size()) in_.close();
  }
  /// Reads the rest of the output that the program wrote before it ended.
  void collect() {
    for (auto [fd, text] : {std::pair{&out_, &output_.out}, std::pair{&err_, &output_.err}}) {
      std::size_t before = 0;
      do {
        before = text->size();
      } while (fd->open() && text->size() <= kMostOutput && read_some(fd->get(), *text) && text->size() > before);
    }
  }

  pid_t pid_;
  Fd in_, out_, err_;
  const std::string& input_;
  std::size_t passed_ = 0;
  int status_ = 0;
  Output output_;
};

core::Result<void> write_whole(int fd, std::string_view text, unsigned mode, const fs::path& path) {
  if (fchmod(fd, mode) != 0) return system_failure(path, errno);
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_failure(path, errno);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (fsync(fd) != 0) return system_failure(path, errno);
  return {};
}

class LocalHost final : public Host {
 public:
  core::Result<Output> run(const std::vector<std::string>& arguments, std::chrono::milliseconds limit,
                           const std::string& input) override {
    const auto end = std::chrono::steady_clock::now() + limit;
    auto out = make_pipe(), err = make_pipe(), in = make_sockets();
    for (const auto* made : {&out, &err, &in}) {
      if (!*made) return std::unexpected(made->error());
    }
    const auto pid = spawn({.arguments = arguments,
                            .in = input.empty() ? -1 : in->first.get(),
                            .out = out->second.get(),
                            .err = err->second.get()});
    if (!pid) return std::unexpected(pid.error());
    out->second.close();
    err->second.close();
    in->first.close();
    if (input.empty()) in->second.close();
    Running running(*pid, std::move(in->second), std::move(out->first), std::move(err->first), input);
    switch (running.wait(end)) {
      case Running::End::kTooLong:
        return core::fail(ErrorCode::kUnavailable,
                          arguments.front() + " did not end within " + std::to_string(limit.count()) + " ms: it was killed");
      case Running::End::kTooMuch:
        return core::fail(ErrorCode::kInternal, arguments.front() + " wrote more than 1 MiB: it was killed");
      case Running::End::kEnded:
        break;
    }
    return running.output();
  }

  core::Result<std::string> read(const fs::path& file) override {
    const Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd.open()) return system_failure(file, errno);
    std::string out;
    std::array<char, 16384> buffer{};
    while (true) {
      const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return core::fail(ErrorCode::kUnavailable, system_failure(file, errno).error().message);
      if (count == 0) return out;
      out.append(buffer.data(), static_cast<std::size_t>(count));
    }
  }

  core::Result<void> write(const fs::path& file, const std::string& text, unsigned mode) override {
    return replace(file, text, mode, nullptr);
  }
  core::Result<void> write_as(const fs::path& file, const std::string& text, unsigned mode, const fs::path& owner_of) override {
    struct stat owner {};
    if (stat(owner_of.c_str(), &owner) != 0) return system_failure(owner_of, errno);
    std::error_code error;
    const fs::path itself = fs::weakly_canonical(file, error);
    if (error) return core::fail(ErrorCode::kUnavailable, file.string() + ": " + error.message());
    return replace(itself, text, mode & owner.st_mode, &owner);
  }
  core::Result<void> write_like(const fs::path& file, const std::string& text, const fs::path& like) override {
    struct stat found {};
    if (stat(like.c_str(), &found) != 0) return system_failure(like, errno);
    return replace(file, text, found.st_mode & 07777, &found);
  }
  core::Result<void> remove_leftovers(const fs::path& file) override {
    const std::string begin = "." + file.filename().string() + ".";
    std::error_code error;
    for (fs::directory_iterator at(folder_of(file), error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename();
      const auto is_random = [](unsigned char c) { return c < 128 && std::isalnum(c) != 0; };
      if (name.size() != begin.size() + kRandom.size() || !name.starts_with(begin)) continue;
      if (!std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin.size()), name.end(), is_random)) continue;
      if (auto removed = remove(at->path()); !removed) return removed;
    }
    if (error && error != std::errc::no_such_file_or_directory)
      return core::fail(ErrorCode::kUnavailable, folder_of(file).string() + ": " + error.message());
    return {};
  }
  core::Result<void> remove(const fs::path& file) override {
    if (std::remove(file.c_str()) != 0 && errno != ENOENT) return system_failure(file, errno);
    return {};
  }

 private:
  static constexpr std::string_view kRandom = "XXXXXX";  ///< mkostemp(3) replaces this by random letters and digits.
  static fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

  static core::Result<void> replace(const fs::path& file, const std::string& text, unsigned mode, const struct stat* owner) {
    const fs::path folder = folder_of(file);
    if (auto made = make_folders(folder); !made) return made;
    std::string temporary = (folder / ("." + file.filename().string() + "." + std::string(kRandom))).string();
    Fd fd(mkostemp(temporary.data(), O_CLOEXEC));
    if (!fd.open()) return core::fail(ErrorCode::kUnavailable, system_failure(file, errno).error().message);
    core::Result<void> written;
    if (owner != nullptr && fchown(fd.get(), owner->st_uid, owner->st_gid) != 0) written = system_failure(file, errno);
    if (written) written = write_whole(fd.get(), text, mode, file);
    fd.close();
    if (written && ::rename(temporary.c_str(), file.c_str()) != 0) written = system_failure(file, errno);
    if (!written) {
      unlink(temporary.c_str());
      return written;
    }
    const Fd parent(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!parent.open() || fsync(parent.get()) != 0) return system_failure(folder, errno);
    return {};
  }

  static core::Result<void> make_folders(const fs::path& folder) {
    fs::path made;
    for (const fs::path& part : folder) {
      made /= part;
      if (mkdir(made.c_str(), 0755) == 0) continue;
      if (const int number = errno; number != EEXIST && number != EROFS && number != EACCES)
        return system_failure(made, number);
      std::error_code error;
      if (!fs::is_directory(made, error))
        return core::fail(ErrorCode::kUnavailable, made.string() + ": the folder cannot be made");
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<Host> local_host() {
  return std::make_unique<LocalHost>();
}

}  // namespace enlist
