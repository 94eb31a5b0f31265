#include "operator/common/sssd.hpp"

#include "operator/common/check.hpp"
#include "operator/common/pod_template.hpp"

namespace op {
namespace {

constexpr std::string_view kSidecar = "sssd";
constexpr std::string_view kFile = "sssd.conf";
constexpr std::string_view kGiven = "/mnt/sssd";
constexpr std::string_view kPipesVolume = "sssd-pipes";
constexpr std::string_view kPipes = "/var/lib/sss/pipes";

/// SSSD and its clients require that SSSD's file, directories and sockets belong to root. But in a pod with an fsGroup, volumes
/// have that group, and new files inherit the group. So the script sets the owner. The script also restarts SSSD when SSSD
/// ends. It runs SSSD in the background and waits, because a shell handles TERM at once only while the shell waits.
constexpr std::string_view kRun =
    "trap 'kill $! || true; exit 0' TERM\n"
    "until install -m 0600 /mnt/sssd/sssd.conf /etc/sssd/sssd.conf; do sleep 2 & wait $!; done\n"
    "cd /var/lib/sss/pipes && mkdir -p private && chown 0:0 . private && chmod 00755 . && chmod 00750 private\n"
    "while true; do sssd -i --logger=stderr & wait $!; sleep 2 & wait $!; done\n";

/// Waits until SSSD answers, for 30 s at most. The daemon's container starts after this wait, and the daemon soon needs the
/// groups of its partitions. If SSSD does not answer, the container starts anyway, because a daemon without users is better
/// than no daemon.
constexpr std::string_view kAnswers =
    "n=0; until [ -S /var/lib/sss/pipes/nss ] || [ $n = 150 ]; do n=$((n + 1)); sleep 0.2; done";

std::string image_with_sssd(const api::PodTemplate& over, const std::string& image) {
  const core::Json* theirs = core::find(over.spec, {"initContainers"});
  if (theirs == nullptr || !theirs->is_array()) return image;
  for (const core::Json& container : *theirs) {
    if (core::get_string(container, {"name"}) == kSidecar) return core::get_string(container, {"image"}, image);
  }
  return image;
}

core::Json pipes_mount() {
  return {{"name", kPipesVolume}, {"mountPath", kPipes}};
}

}  // namespace

core::Json sssd_volume(const api::SecretKeySelector& ref, bool optional) {
  core::Json source = project_secret(ref.name, ref.key, kFile);
  if (optional) source["secret"]["optional"] = true;
  return projected_volume(kSssdVolume, core::Json::array({std::move(source)}));
}

core::Json sssd_mount() {
  return read_only_mount(kSssdVolume, "/etc/sssd/sssd.conf", kFile);
}

void add_sssd_sidecar(core::Json& pod, const api::SecretKeySelector& ref, const std::string& image,
                      const api::PodTemplate& over) {
  const core::Json as_root{{"runAsNonRoot", false}, {"runAsUser", 0}, {"runAsGroup", 0}};
  core::Json check =
      check_container(image_with_sssd(over, image), {.sssd = true}, core::Json::array({read_only_mount(kSssdVolume, kGiven)}));
  check["securityContext"] = as_root;
  pod["initContainers"].push_back(std::move(check));
  core::Json sidecar{{"name", kSidecar},
                     {"image", image},
                     {"command", {"sh", "-c", kRun}},
                     {"restartPolicy", "Always"},
                     {"securityContext", as_root},
                     {"lifecycle", {{"postStart", {{"exec", {{"command", {"sh", "-c", kAnswers}}}}}}}},
                     {"volumeMounts", core::Json::array({read_only_mount(kSssdVolume, kGiven), pipes_mount()})}};
  pod["initContainers"].push_back(std::move(sidecar));
  pod["containers"][0]["volumeMounts"].push_back(pipes_mount());
  // The Secret is optional in the volume, so that a daemon whose pod was lost can start again while the Secret is missing.
  pod["volumes"].push_back(sssd_volume(ref, true));
  pod["volumes"].push_back({{"name", kPipesVolume}, {"emptyDir", {{"medium", "Memory"}}}});
}

}  // namespace op
