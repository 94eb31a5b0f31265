#include "slinky/worker_states.hpp"

#include "api/well_known.hpp"

namespace slinky {
namespace {

/// slurmctld truncates reasons. The Go operator used the same limit.
constexpr std::size_t kMaxReason = 256;

}  // namespace

std::string clean_reason(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? ' ' : c;
  }
  if (out.size() > kMaxReason) {
    std::size_t end = kMaxReason;
    while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xC0) == 0x80) --end;
    out.resize(end);
  }
  return out;
}

std::string pod_cordon_reason(const kube::PodRecord& pod) {
  std::string given = clean_reason(pod.meta.annotation(api::kAnnotationPodCordonReason));
  return given.empty() ? plain_cordon_reason(pod) : given;
}

std::string plain_cordon_reason(const kube::PodRecord& pod) {
  return "Pod (" + pod.meta.key().str() + ") was cordoned";
}

}  // namespace slinky
