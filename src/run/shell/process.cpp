#include "run/shell/process.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace run {

namespace {

/// Returns the fields of /proc/self/stat from the third (state) on. The second, the name, may contain spaces.
std::vector<std::string> stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(line.substr(name_end + 1));
  std::vector<std::string> fields;
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

/// Returns the boot time of the machine, in seconds since the epoch: "btime" of /proc/stat.
double boot_time() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    if (word != "btime") continue;
    double seconds = 0;
    file >> seconds;
    return seconds;
  }
  return 0;
}

}  // namespace

ProcessUsage read_process_usage() {
  ProcessUsage usage;
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  // Field numbers of proc(5), minus the offset of the third field.
  constexpr std::size_t kUserTime = 14 - 3, kSystemTime = 15 - 3, kStartTime = 22 - 3, kVirtual = 23 - 3, kResident = 24 - 3;
  const std::vector<std::string> fields = stat_fields();
  if (fields.size() > kResident) {
    usage.cpu_seconds = (std::stod(fields[kUserTime]) + std::stod(fields[kSystemTime])) / ticks;
    usage.start_time_seconds = boot_time() + std::stod(fields[kStartTime]) / ticks;
    usage.virtual_bytes = std::stod(fields[kVirtual]);
    usage.resident_bytes = std::stod(fields[kResident]) * static_cast<double>(sysconf(_SC_PAGESIZE));
  }
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error)) {
    usage.open_fds += 1;
  }
  if (usage.open_fds > 0) usage.open_fds -= 1;  // the descriptor of the directory itself
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) usage.max_fds = static_cast<double>(limit.rlim_cur);
  const struct mallinfo2 heap = mallinfo2();
  usage.heap_used_bytes = static_cast<double>(heap.uordblks + heap.hblkhd);
  usage.heap_free_bytes = static_cast<double>(heap.fordblks);
  return usage;
}

void raise_fd_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace run
