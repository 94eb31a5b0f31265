// The default command of the sidecar that prints a daemon's log.
#pragma once

namespace op {

/// Creates the FIFO $SOCKET, to which the daemon logs, and copies the log to stdout. Keeps the FIFO open for writing, so that
/// the copy does not end when the daemon restarts. The copy runs in the background, because a shell handles TERM only between
/// two commands or while it waits for a background command. Otherwise the pod would need its whole grace period to end. Before
/// the script ends, it prints the last output of the daemon.
inline constexpr const char* kLogfileScript =
    "set -eu\n"
    "mkdir -p \"$(dirname \"$SOCKET\")\"\n"
    "[ -p \"$SOCKET\" ] || { rm -f \"$SOCKET\"; mkfifo -m 0666 \"$SOCKET\"; }\n"
    "trap 'sleep 0.1; kill $! || true; exit 0' TERM\n"
    "while true; do cat <>\"$SOCKET\" & wait $! || sleep 1; done\n";

}  // namespace op
