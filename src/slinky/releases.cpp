#include "slinky/releases.hpp"

#include <fmt/format.h>

#include "api/well_known.hpp"

namespace slinky {
namespace {

/// Slurm releases in May and November.
constexpr int kFirstHalf = 5, kSecondHalf = 11;

std::string_view tag_of(std::string_view image) {
  image = image.substr(0, image.find('@'));
  const std::size_t colon = image.rfind(':');
  const std::size_t slash = image.rfind('/');
  if (colon == std::string_view::npos || (slash != std::string_view::npos && colon < slash)) return {};
  return image.substr(colon + 1);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Accepts "26.05", "26.05.3", "26.05-ubuntu24.04" and "slurm26.05". Rejects "26.05rc1", which is ambiguous, and the "26.05" in
/// "1.26.05".
ImageRelease release_at(std::string_view tag, std::size_t at) {
  constexpr std::size_t kLength = 5;
  const std::string_view text = tag.substr(at, kLength);
  if (text.size() < kLength || text[2] != '.') return {};
  for (const std::size_t digit : {0U, 1U, 3U, 4U}) {
    if (!is_digit(text[digit])) return {};
  }
  if (at > 0 && (is_digit(tag[at - 1]) || tag[at - 1] == '.')) return {};
  const std::string_view rest = tag.substr(at + kLength);
  if (!rest.empty() && rest.front() != '.' && rest.front() != '-' && rest.front() != '_') return {};
  const auto number = [&](std::size_t digit) { return 10 * (text[digit] - '0') + text[digit + 1] - '0'; };
  const ImageRelease release{number(0), number(3)};
  const bool is_one = release >= ImageRelease{23, kSecondHalf} && (release.minor == kFirstHalf || release.minor == kSecondHalf);
  return is_one ? release : ImageRelease{};
}

}  // namespace

std::string to_string(ImageRelease release) {
  return release.major == 0 ? "" : fmt::format("{}.{:02}", release.major, release.minor);
}

ImageRelease slurm_release(std::string_view image) {
  const std::string_view tag = tag_of(image);
  ImageRelease out;
  for (std::size_t i = 0; i < tag.size(); ++i) {
    const ImageRelease found = release_at(tag, i);
    if (found == ImageRelease{}) continue;
    if (out != ImageRelease{} && out != found) return {};
    out = found;
  }
  return out;
}

int releases_between(ImageRelease from, ImageRelease to) {
  if (from.major == 0 || to.major == 0) return 0;
  const auto number = [](ImageRelease release) { return 2 * release.major + (release.minor >= kSecondHalf ? 1 : 0); };
  return number(to) - number(from);
}

ImageRelease slurmdbd_release(const kube::Object* config_map) {
  if (config_map == nullptr) return {};
  const std::string said = core::get_string(config_map->body, {"data", kReleaseFile});
  return said.empty() ? ImageRelease{} : slurm_release("slurmdbd:" + said);
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
      fmt::format("{} is of Slurm {}, and slurmctld is of {}: no daemon may be newer than slurmctld. Pods of that image are "
                  "created when slurmctld runs an image of Slurm {} or later (spec.slurmctld.image of the Controller)",
                  field, to_string(wanted), to_string(slurmctld), to_string(wanted)),
      Problem::Kind::kComing};
}

}  // namespace slinky
