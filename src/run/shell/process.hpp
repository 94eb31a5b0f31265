// The resources that this process uses, as in the process metrics of Prometheus' clients.
#pragma once

#include <cstdint>

namespace run {

struct ProcessUsage {
  double cpu_seconds = 0;         ///< The sum of user and system time.
  double start_time_seconds = 0;  ///< The start of the process, in seconds since the epoch.
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double heap_used_bytes = 0;  ///< Allocated by malloc, including mapped blocks.
  double heap_free_bytes = 0;  ///< Held by malloc, but free.
};

/// Reads /proc and malloc's statistics (proc(5), mallinfo(3)). A value that cannot be read stays 0.
ProcessUsage read_process_usage();

/// Raises the limit of file descriptors to the hard limit, as Go's runtime does: each watch and each client needs a descriptor.
void raise_fd_limit();

}  // namespace run
