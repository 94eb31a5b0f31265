#include "enlist/host/spawn.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <system_error>

namespace enlist {

namespace {

using core::ErrorCode;

std::string text_of_errno(int number) {
  return std::generic_category().message(number);
}

struct User {
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
};

core::Result<User> find_user(const std::string& name) {
  std::array<char, 16384> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return core::fail(ErrorCode::kInvalid, "there is no user " + name);
  User out{.uid = entry.pw_uid, .gid = entry.pw_gid, .groups = std::vector<gid_t>(64)};
  int count = static_cast<int>(out.groups.size());
  if (getgrouplist(name.c_str(), out.gid, out.groups.data(), &count) < 0) {
    out.groups.resize(static_cast<std::size_t>(count));
    if (getgrouplist(name.c_str(), out.gid, out.groups.data(), &count) < 0)
      return core::fail(ErrorCode::kUnavailable, "the groups of the user " + name + " cannot be read");
  }
  out.groups.resize(static_cast<std::size_t>(count));
  return out;
}

core::Result<void> make_private(const std::string& folder, uid_t uid, gid_t gid) {
  const auto fail = [&](int number) { return core::fail(ErrorCode::kUnavailable, folder + ": " + text_of_errno(number)); };
  struct stat found {};
  const bool exists = lstat(folder.c_str(), &found) == 0;
  if (!exists && errno != ENOENT) return fail(errno);
  const bool theirs = exists && S_ISDIR(found.st_mode) && found.st_uid == uid;
  if (exists && !theirs && rmdir(folder.c_str()) != 0)
    return core::fail(ErrorCode::kUnavailable, folder + " belongs to another user, or is not an empty folder: remove it");
  if (!theirs && mkdir(folder.c_str(), 0700) != 0) return fail(errno);
  const Fd fd(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.open() || fchown(fd.get(), uid, gid) != 0 || fchmod(fd.get(), 0700) != 0) return fail(errno);
  return {};
}

/// Moves a descriptor above those of the standard streams, which a started program replaces by its own.
Fd above_standard(int fd) {
  if (fd > STDERR_FILENO || fd < 0) return Fd(fd);
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  close(fd);
  return Fd(moved);
}

/// The data that the child needs. They are prepared before fork(2), because between fork and exec the child may only call
/// functions that are safe in signal handlers.
struct Prepared {
  std::vector<char*> argv, envp;
  std::array<int, 3> fds{};
  const User* user = nullptr;
  pid_t parent = 0;
  bool ends_with_us = false;
  int report = -1;
  long most_fds = 0;
};

void close_others(long most) {
  if (close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return;
  for (int fd = STDERR_FILENO + 1; fd < most; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/// Executes the program in the child. Returns errno, and only after an error, because a successful exec does not return.
int become(const Prepared& prepared) {
  setsid();
  for (int signal = 1; signal < NSIG; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  }
  for (int i = 0; i < 3; ++i) {
    if (dup2(prepared.fds[static_cast<std::size_t>(i)], i) < 0) return errno;
  }
  close_others(prepared.most_fds);
  if (prepared.user != nullptr) {
    if (setgroups(prepared.user->groups.size(), prepared.user->groups.data()) != 0) return errno;
    if (setgid(prepared.user->gid) != 0) return errno;
    if (setuid(prepared.user->uid) != 0) return errno;
  }
  if (prepared.ends_with_us) {  // after setuid(2), which resets PDEATHSIG
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0) return errno;
    if (getppid() != prepared.parent) return ESRCH;
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvpe(prepared.argv[0], prepared.argv.data(), prepared.envp.data());
  return errno;
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

void Fd::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

core::Result<std::pair<Fd, Fd>> make_pipe() {
  std::array<int, 2> fds{};
  if (pipe2(fds.data(), O_CLOEXEC) != 0) return core::fail(ErrorCode::kUnavailable, "pipe: " + text_of_errno(errno));
  std::pair out{above_standard(fds[0]), above_standard(fds[1])};
  fcntl(out.first.get(), F_SETFL, O_NONBLOCK);
  return out;
}

core::Result<std::pair<Fd, Fd>> make_sockets() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
    return core::fail(ErrorCode::kUnavailable, "socketpair: " + text_of_errno(errno));
  std::pair out{above_standard(fds[0]), above_standard(fds[1])};
  fcntl(out.second.get(), F_SETFL, O_NONBLOCK);
  return out;
}

bool read_some(int fd, std::string& to) {
  std::array<char, 16384> buffer{};
  while (true) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count > 0) return to.append(buffer.data(), static_cast<std::size_t>(count)), true;
    if (count < 0 && errno == EINTR) continue;
    return count < 0 && errno == EAGAIN;
  }
}

int exit_code(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string telling_lines(std::string_view log) {
  constexpr std::size_t kLines = 3, kLongest = 400;
  std::vector<std::string> last;
  std::string fatal;
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    std::string line(log.substr(0, end));
    log.remove_prefix(std::min(end + 1, log.size()));
    std::erase_if(line, [](char c) { return static_cast<unsigned char>(c) < ' '; });
    if (line.empty()) continue;
    if (line.find("fatal:") != std::string::npos) fatal = line;
    if (last.size() == kLines) last.erase(last.begin());
    last.push_back(std::move(line));
  }
  std::string out = std::move(fatal);
  if (out.empty()) {
    for (const std::string& line : last) out += (out.empty() ? "" : "; ") + line;
  }
  if (out.size() > kLongest) out.erase(0, out.size() - kLongest);
  return out;
}

core::Result<pid_t> spawn(const Spawn& spawn) {
  if (spawn.arguments.empty()) return core::fail(ErrorCode::kInvalid, "no program is named");
  const std::string& program = spawn.arguments.front();
  std::optional<User> user;
  if (!spawn.user.empty()) {
    auto found = find_user(spawn.user);
    if (!found) return std::unexpected(found.error());
    user = *std::move(found);
  }
  if (!spawn.folder.empty()) {
    auto made = make_private(spawn.folder, user ? user->uid : geteuid(), user ? user->gid : getegid());
    if (!made) return std::unexpected(made.error());
  }
  const Fd nothing = above_standard(open("/dev/null", O_RDWR | O_CLOEXEC));
  // A successful exec closes the child's end of this pipe. After an error, the child writes errno to it.
  auto report = make_pipe();
  if (!report) return std::unexpected(report.error());

  std::vector<std::string> arguments = spawn.arguments, environment = spawn.environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view ours(*entry);
    const auto same = [&](const std::string& other) { return other.starts_with(ours.substr(0, ours.find('=') + 1)); };
    if (std::ranges::none_of(spawn.environment, same)) environment.emplace_back(ours);
  }
  const auto or_nothing = [&](int fd) { return fd < 0 ? nothing.get() : fd; };
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  const Prepared prepared{.argv = pointers(arguments),
                          .envp = pointers(environment),
                          .fds = {or_nothing(spawn.in), or_nothing(spawn.out), or_nothing(spawn.err)},
                          .user = user ? &*user : nullptr,
                          .parent = getpid(),
                          .ends_with_us = spawn.ends_with_us,
                          .report = report->second.get(),
                          .most_fds = static_cast<long>(std::min<rlim_t>(limit.rlim_cur, 65536))};

  // Blocks signals, so that no handler of this process runs in the child.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    const int error = become(prepared);
    [[maybe_unused]] const ssize_t told = write(prepared.report, &error, sizeof error);
    _exit(127);
  }
  const int fork_error = errno;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return core::fail(ErrorCode::kUnavailable, program + " cannot be started: " + text_of_errno(fork_error));
  report->second.close();
  fcntl(report->first.get(), F_SETFL, 0);
  int error = 0;
  ssize_t count = 0;
  do {
    count = read(report->first.get(), &error, sizeof error);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return pid;
  waitpid(pid, nullptr, 0);
  if (error == ENOENT || error == ENOTDIR) return core::fail(ErrorCode::kNotFound, "there is no program " + program);
  return core::fail(ErrorCode::kUnavailable, program + " cannot be started: " + text_of_errno(error));
}

}  // namespace enlist
