// notify-init: the first process of a container whose daemon was written for systemd.
//
//   notify-init COMMAND [ARG...]
//
// It does the four things systemd does for `slurmctld --systemd` and `slurmd --systemd`, and nothing else:
//
//   1. It owns NOTIFY_SOCKET. A Slurm daemon that reconfigures starts a second process, which reads the new
//      configuration. Only when that one stands does the first announce it (`MAINPID=...`) and leave. When the new
//      configuration is bad, the second process ends and the first keeps running and returns the error. Under `-D`
//      instead, the daemon execs itself in place and a bad configuration ends it, so containers want `--systemd`.
//   2. It reaps whatever is orphaned to it, as process 1 or as a subreaper.
//   3. It forwards signals to the process that is in charge now, not to the one it once started.
//   4. It ends when that process ends, with its exit code, or 128 + N after signal N.
//
// It is linked statically: it must start in any image. It needs no privilege and one writable directory out of those
// in socket_directories.
//
// Not for: several daemons in one container, restarts, or watchdogs.

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kForwarded[] = {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH};

// How long the process in charge may be gone before a successor announces itself. Slurm announces first and leaves
// second, so this only covers a daemon that does it the other way round.
constexpr int kHandoverMs = 1000;

char socket_directory[64];
char socket_path[96];

void log(const char* format, ...) {
  char line[512];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  dprintf(STDERR_FILENO, "notify-init: %s\n", line);
}

void remove_socket() {
  if (socket_path[0] != '\0') unlink(socket_path);
  if (socket_directory[0] != '\0') rmdir(socket_directory);
}

[[noreturn]] void leave(int code) {
  remove_socket();
  _exit(code);
}

[[noreturn]] void die(const char* what) {
  log("%s: %s", what, strerror(errno));
  leave(125);
}

// A datagram socket in a directory that only this user can enter: what arrives there comes from our own daemon.
int open_notify_socket() {
  const char* socket_directories[] = {"/run", "/run/slurmctld", "/dev/shm", "/tmp"};
  for (const char* parent : socket_directories) {
    snprintf(socket_directory, sizeof socket_directory, "%s/notify-init.XXXXXX", parent);
    if (mkdtemp(socket_directory) != nullptr) break;
    socket_directory[0] = '\0';
  }
  if (socket_directory[0] == '\0') die("no writable directory for the notify socket");
  snprintf(socket_path, sizeof socket_path, "%s/notify", socket_directory);

  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) die("socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", socket_path);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) die("bind");
  if (setenv("NOTIFY_SOCKET", socket_path, 1) != 0) die("setenv");
  return fd;
}

// Reads every waiting message, logs its STATUS, and returns the process now in charge.
pid_t read_notifications(int fd, pid_t main_pid) {
  char message[4096];
  for (;;) {
    const ssize_t size = recv(fd, message, sizeof message - 1, 0);
    if (size < 0) return main_pid;  // Nothing more waits.
    message[size] = '\0';
    char* rest = message;
    for (char* line; (line = strsep(&rest, "\n")) != nullptr;) {
      if (strncmp(line, "STATUS=", 7) == 0) {
        log("status: %s", line + 7);
      } else if (strcmp(line, "READY=1") == 0) {
        log("ready");
      } else if (strncmp(line, "MAINPID=", 8) == 0) {
        const pid_t pid = static_cast<pid_t>(atol(line + 8));
        if (pid <= 1 || pid == getpid() || kill(pid, 0) != 0) {
          log("ignored: MAINPID=%s", line + 8);
        } else if (pid != main_pid) {
          log("process %d takes over from %d", static_cast<int>(pid), static_cast<int>(main_pid));
          main_pid = pid;
        }
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: notify-init COMMAND [ARG...]\n");
    return 125;
  }

  // Signals are taken from a descriptor, in order with everything else. Blocking them first loses none.
  sigset_t handled, before;
  sigemptyset(&handled);
  sigaddset(&handled, SIGCHLD);
  for (int number : kForwarded) sigaddset(&handled, number);
  if (sigprocmask(SIG_BLOCK, &handled, &before) != 0) die("sigprocmask");
  const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) die("signalfd");

  // As process 1 orphans come to us anyway; this is for `docker run --init`, shared process namespaces and tests.
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) die("prctl");

  const int notifications = open_notify_socket();

  pid_t main_pid = fork();
  if (main_pid < 0) die("fork");
  if (main_pid == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execvp(argv[1], argv + 1);
    log("%s: %s", argv[1], strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
  }

  bool stopping = false;  // We passed on a signal to stop: no successor will come.
  bool ended = false;     // The process in charge has ended and no successor is known.
  int exit_code = 0;

  for (;;) {
    pollfd events[] = {{signals, POLLIN, 0}, {notifications, POLLIN, 0}};
    const int ready = poll(events, 2, ended ? kHandoverMs : -1);
    if (ready < 0 && errno != EINTR) die("poll");

    // Notifications before deaths: an announcement always precedes the death of the announcer.
    const pid_t known = main_pid;
    main_pid = read_notifications(notifications, main_pid);
    if (main_pid != known) ended = false;
    if (ended && ready == 0) leave(exit_code);

    signalfd_siginfo signal_info;
    while (read(signals, &signal_info, sizeof signal_info) == sizeof signal_info) {
      const int number = static_cast<int>(signal_info.ssi_signo);
      if (number == SIGCHLD) continue;
      if (ended) leave(exit_code);  // Nobody is left who could handle it.
      if (number == SIGTERM || number == SIGINT || number == SIGQUIT) stopping = true;
      kill(main_pid, number);
    }

    int status = 0;
    bool children_left = true;
    for (;;) {
      const pid_t pid = waitpid(-1, &status, WNOHANG);
      if (pid <= 0) {
        children_left = pid == 0;
        break;
      }
      if (pid != main_pid) continue;
      // The announcement may have come between our last look and this death.
      main_pid = read_notifications(notifications, main_pid);
      if (pid != main_pid) continue;
      ended = true;
      exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (exit_code != 0) log("process %d ended with %d", static_cast<int>(pid), exit_code);
    }
    // A daemon that was stopped, that failed, or that left nobody behind, has no successor to wait for.
    if (ended && (stopping || exit_code != 0 || !children_left)) leave(exit_code);
  }
}
