// Which releases of Slurm's daemons go together, and in which order they are upgraded: slurmdbd, slurmctld, then all else
// (https://slurm.schedmd.com/upgrades.html). That of a slurmdbd is what the program itself says. All others are read from the
// tags of images; of an image whose tag tells none, nothing is refused. A slurmctld compares itself with its slurmdbd before it
// starts, whatever tags say: see operator/controller/accounting.hpp.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "kube/object.hpp"
#include "slinky/status.hpp"

namespace slinky {

/// A release of Slurm, {26, 5} for 26.05.
struct ImageRelease {
  int major = 0, minor = 0;
  friend auto operator<=>(const ImageRelease&, const ImageRelease&) = default;
};

/// "26.05"; "" for {0, 0}.
std::string to_string(ImageRelease release);

/// The release of Slurm that the tag of an image names ("local/slurmctld:26.05-x", "x:26.04-slurm24.11"), or {0, 0}: it names
/// none, or more than one. Tags may be dates, or of something else, and nothing that ends a daemon may depend on them.
ImageRelease slurm_release(std::string_view image);

/// How many releases lie between: Slurm has had two each year since 23.11. Negative: `to` is older. 0 if one is not known.
int releases_between(ImageRelease from, ImageRelease to);

/// Slurm reads the state, and understands the daemons, of the three releases before (from 24.11 on).
inline constexpr int kMostReleasesApart = 3;

/// In the ConfigMap of an Accounting, the release of the slurmdbd that last answered, or that is the first to, by what
/// `slurmdbd -V` says; {0, 0}: it did not say.
inline constexpr std::string_view kReleaseFile = "release";
ImageRelease slurmdbd_release(const kube::Object* config_map);

/// Of the slurmctld that was last up, as the ConfigMap "X-config" tells; {0, 0}: not known.
ImageRelease slurmctld_release(const kube::Object* config_map);

/// Why pods of `image` are not made yet: slurmctld does not understand a daemon or client that is newer than itself. `field`
/// names the image. nullopt: they may be made.
std::optional<Problem> newer_than_slurmctld(std::string_view field, std::string_view image, const kube::Object* config_map);

}  // namespace slinky
