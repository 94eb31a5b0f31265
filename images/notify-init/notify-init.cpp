// notify-init: the first process of a container whose daemon was written for systemd.
//
//   notify-init COMMAND [ARG...]
//
// notify-init is the service manager of sd_notify(3) for `slurmctld --systemd` and `slurmd --systemd`. It does four things:
//
//   1. It receives the notifications of the daemon on the socket in $NOTIFY_SOCKET. A Slurm daemon that reconfigures starts a
//      second process, which reads the new configuration. Once the second process is ready, the first process sends
//      MAINPID= with the PID of the second process, and exits. If the new configuration is bad, the second process exits, and
//      the first process keeps running and returns the error. With `-D`, the daemon would exec itself in place, and exit if
//      the configuration is bad. So containers need `--systemd`.
//   2. It reaps orphaned processes, as process 1 or as a subreaper.
//   3. It forwards signals to the main process: the one that MAINPID= named last, or else the one that notify-init started.
//   4. It exits when the main process exits, with the exit code of the main process, or 128 + N after signal N.
//
// notify-init is linked statically, so that it starts in any image. It needs no privileges. One of the directories in
// socket_directories must be writable.
//
// notify-init does not support several daemons in one container, restarts, or watchdogs (WATCHDOG=1).

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

// How long notify-init waits for MAINPID= after the main process has exited. A Slurm daemon sends MAINPID= before it exits, so
// this time only matters for a daemon that exits first.
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

// Opens the notification socket and sets $NOTIFY_SOCKET. The directory of the socket admits only the user of notify-init, so
// all notifications come from our own daemon.
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

// Reads all pending notifications, logs STATUS= and READY=1, and returns the PID of the main process: the last valid MAINPID=,
// or else `main_pid`.
pid_t read_notifications(int fd, pid_t main_pid) {
  char message[4096];
  for (;;) {
    const ssize_t size = recv(fd, message, sizeof message - 1, 0);
    if (size < 0) return main_pid;  // No more notifications.
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

  // Signals are read from a signalfd in the main loop. They are blocked before the fork, so that none is lost.
  sigset_t handled, before;
  sigemptyset(&handled);
  sigaddset(&handled, SIGCHLD);
  for (int number : kForwarded) sigaddset(&handled, number);
  if (sigprocmask(SIG_BLOCK, &handled, &before) != 0) die("sigprocmask");
  const int signals = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signals < 0) die("signalfd");

  // Process 1 gets all orphaned processes. If notify-init is not process 1 (`docker run --init`, shared process namespaces,
  // tests), it must be a subreaper to get them.
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

  bool stopping = false;  // A signal to stop was forwarded: no MAINPID= is expected.
  bool ended = false;     // The main process has exited, and no MAINPID= has named a new one.
  int exit_code = 0;

  for (;;) {
    pollfd events[] = {{signals, POLLIN, 0}, {notifications, POLLIN, 0}};
    const int ready = poll(events, 2, ended ? kHandoverMs : -1);
    if (ready < 0 && errno != EINTR) die("poll");

    // Read notifications before exit statuses, because a daemon sends MAINPID= before it exits.
    const pid_t known = main_pid;
    main_pid = read_notifications(notifications, main_pid);
    if (main_pid != known) ended = false;
    if (ended && ready == 0) leave(exit_code);

    signalfd_siginfo signal_info;
    while (read(signals, &signal_info, sizeof signal_info) == sizeof signal_info) {
      const int number = static_cast<int>(signal_info.ssi_signo);
      if (number == SIGCHLD) continue;
      if (ended) leave(exit_code);  // No process is left to handle the signal.
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
      // MAINPID= may have arrived after the last read of notifications and before this exit.
      main_pid = read_notifications(notifications, main_pid);
      if (pid != main_pid) continue;
      ended = true;
      exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      if (exit_code != 0) log("process %d ended with %d", static_cast<int>(pid), exit_code);
    }
    // Do not wait for MAINPID= if the daemon was stopped, if it failed, or if no child process is left.
    if (ended && (stopping || exit_code != 0 || !children_left)) leave(exit_code);
  }
}
