// The sidecar that prints a daemon's log: what it runs where users give it no command.
#pragma once

namespace op {

/// Makes the FIFO $SOCKET that the daemon logs to, and copies it out. It keeps the FIFO open for writing too, so that a daemon
/// that restarts is no end of file. A shell hears TERM only between two commands, or while it waits for one in the background:
/// otherwise the pod would take its whole grace period to end. What was written last is printed first.
inline constexpr const char* kLogfileScript =
    "set -eu\n"
    "mkdir -p \"$(dirname \"$SOCKET\")\"\n"
    "[ -p \"$SOCKET\" ] || { rm -f \"$SOCKET\"; mkfifo -m 0666 \"$SOCKET\"; }\n"
    "trap 'sleep 0.1; kill $! || true; exit 0' TERM\n"
    "while true; do cat <>\"$SOCKET\" & wait $! || sleep 1; done\n";

}  // namespace op
