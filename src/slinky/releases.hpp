// The releases of Slurm's daemons that work together, and the order of upgrades: slurmdbd, then slurmctld, then all other
// daemons (https://slurm.schedmd.com/upgrades.html). slurmdbd itself reports its release. For the other daemons, the tag of the
// image shows the release; an image whose tag names no release is never refused. Before slurmctld starts, its container
// compares its own release with that of slurmdbd, without tags: see operator/controller/accounting.hpp.
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

/// Returns "26.05"; "" for {0, 0}.
std::string to_string(ImageRelease release);

/// Returns the Slurm release in the tag of an image ("local/slurmctld:26.05-x", "x:26.04-slurm24.11"). Returns {0, 0} if the
/// tag names no release, or several. A tag can be a date or another version, so never end a daemon because of its tag.
ImageRelease slurm_release(std::string_view image);

/// Returns the number of releases from `from` to `to`, at two releases a year since 23.11. Negative if `to` is older; 0 if
/// `from` or `to` is unknown.
int releases_between(ImageRelease from, ImageRelease to);

/// Since 24.11, Slurm reads the state files of the three previous releases and works with daemons of these releases.
inline constexpr int kMostReleasesApart = 3;

/// The data key for slurmdbd's release in the ConfigMap of an Accounting (operator/accounting/plan.hpp, release_to_tell).
/// slurmdbd_release() reads the value, and returns {0, 0} if slurmdbd has not reported its release.
inline constexpr std::string_view kReleaseFile = "release";
ImageRelease slurmdbd_release(const kube::Object* config_map);

/// Returns the release of the slurmctld that was last up, from the ConfigMap "X-config"; {0, 0} if unknown.
ImageRelease slurmctld_release(const kube::Object* config_map);

/// Returns why pods of `image` must wait; nullopt if the pods may be created. slurmctld does not understand daemons or clients
/// that are newer than slurmctld. `field` is the path of the field that sets the image.
std::optional<Problem> newer_than_slurmctld(std::string_view field, std::string_view image, const kube::Object* config_map);

}  // namespace slinky
