// The memory of this process, for benchmarks.
#pragma once

#include <malloc.h>

namespace sim {

/// Returns the allocated memory in bytes.
inline double allocated() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

}  // namespace sim
