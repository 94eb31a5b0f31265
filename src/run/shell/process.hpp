// What this process uses of its machine, under the names that Prometheus' own clients use, and may use.
#pragma once

#include <cstdint>

namespace run {

struct ProcessUsage {
  double cpu_seconds = 0;         ///< User and system.
  double start_time_seconds = 0;  ///< Since the epoch.
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double heap_used_bytes = 0;  ///< Handed out by malloc, mapped blocks included.
  double heap_free_bytes = 0;  ///< Held by malloc, and free.
};

/// From /proc and malloc (proc(5), mallinfo(3)). What cannot be read stays 0.
ProcessUsage read_process_usage();

/// As many file descriptors as the hard limit allows, as Go's runtime has it: each watch, and each client of ours, takes one.
void raise_fd_limit();

}  // namespace run
