#include "cluster/releases.hpp"

#include <fmt/format.h>

#include "api/well_known.hpp"

namespace op {
namespace {

/// The months of Slurm's releases.
constexpr int kFirstHalf = 5, kSecondHalf = 11;

}  // namespace

std::string to_string(ImageRelease release) {
  return release.major == 0 ? "" : fmt::format("{}.{:02}", release.major, release.minor);
}

ImageRelease slurm_release(std::string_view image) {
  const ImageRelease release = image_release(image);
  const bool is_one = release >= ImageRelease{23, kSecondHalf} && (release.minor == kFirstHalf || release.minor == kSecondHalf);
  return is_one ? release : ImageRelease{};
}

int releases_between(ImageRelease from, ImageRelease to) {
  if (from.major == 0 || to.major == 0) return 0;
  const auto number = [](ImageRelease release) { return 2 * release.major + (release.minor >= kSecondHalf ? 1 : 0); };
  return number(to) - number(from);
}

ImageRelease slurmctld_release(const kube::Object* config_map) {
  if (config_map == nullptr) return {};
  return slurm_release("slurmctld:" + std::string(config_map->meta.annotation(api::kAnnotationSlurmctldRelease)));
}

std::optional<Problem> newer_than_slurmctld(std::string_view field, std::string_view image, const kube::Object* config_map) {
  const ImageRelease wanted = slurm_release(image), slurmctld = slurmctld_release(config_map);
  if (releases_between(slurmctld, wanted) <= 0) return {};
  return Problem{
      "NewerThanSlurmctld",
      fmt::format("{} is of Slurm {}, and slurmctld is of {}: nothing may be newer than slurmctld. Pods of that image "
                  "are made when slurmctld is up with an image of Slurm {} or later (spec.slurmctld.image of the "
                  "Controller)",
                  field, to_string(wanted), to_string(slurmctld), to_string(wanted)),
      Problem::Kind::kComing};
}

}  // namespace op
