// The default command of the sidecar that prints a daemon's log.
#pragma once

namespace op {

/// Creates the FIFO $SOCKET to which the daemon logs, and copies it to the output. Keeps the FIFO open for writing, so that a
/// restart of the daemon is not an end of file. A shell handles TERM only between two commands or while it waits for a
/// background command, so the copy runs in the background. Otherwise the pod would need its whole grace period to end. Before
/// the script ends, it prints the daemon's last output.
inline constexpr const char* kLogfileScript =
    "set -eu\n"
    "mkdir -p \"$(dirname \"$SOCKET\")\"\n"
    "[ -p \"$SOCKET\" ] || { rm -f \"$SOCKET\"; mkfifo -m 0666 \"$SOCKET\"; }\n"
    "trap 'sleep 0.1; kill $! || true; exit 0' TERM\n"
    "while true; do cat <>\"$SOCKET\" & wait $! || sleep 1; done\n";

}  // namespace op
