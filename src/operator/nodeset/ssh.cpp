// Runs sshd in workers, in addition to slurmd. Users can log in to a worker on which they have a job. pam_slurm_adopt in the
// image refuses other users.
#include "operator/common/ssh.hpp"

#include <fmt/format.h>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/check.hpp"
#include "operator/common/pod_template.hpp"
#include "operator/common/sssd.hpp"
#include "operator/nodeset/build_worker.hpp"
#include "operator/nodeset/parts.hpp"

namespace op::nodeset {
namespace {

using core::Json;

constexpr std::string_view kPort = "ssh";
constexpr std::string_view kConfigVolume = "ssh-config";
constexpr std::string_view kHostKeysVolume = "ssh-host-keys";
constexpr std::string_view kHostKeys = "/etc/ssh/host_keys.d";

std::string worker_sshd_config(const api::NodeSetSpec& spec) {
  std::vector<std::string> host_keys;
  for (const std::string& key : host_key_names()) host_keys.push_back(fmt::format("{}/{}", kHostKeys, key));
  return sshd_config("NodeSet", spec.ssh->extra_sshd_config, host_keys);
}

/// Returns the reference to the Secret with sssd.conf and to its key. Null: there is no sssd.conf, so only the users in the
/// image exist.
const api::SecretKeySelector* sssd_conf(const api::NodeSetSpec& spec) {
  return spec.ssh->sssd_conf_ref && !spec.ssh->sssd_conf_ref->name.empty() ? &*spec.ssh->sssd_conf_ref : nullptr;
}

Json daemon_mounts(const api::NodeSetSpec& spec) {
  Json out = Json::array({read_only_mount(kConfigVolume, fmt::format("/etc/ssh/{}", kSshdConfig), kSshdConfig),
                          read_only_mount(kHostKeysVolume, kHostKeys)});
  if (sssd_conf(spec) != nullptr) out.push_back(sssd_mount());
  return out;
}

kube::Key host_keys_of(const kube::ObjectMeta& nodeset) {
  return {nodeset.ns, worker_ssh_host_keys_name(nodeset.name)};
}

}  // namespace

bool has_sshd(const api::NodeSetSpec& spec) {
  return spec.ssh && spec.ssh->enabled;
}

kube::StringMap ssh_annotations(const api::NodeSetSpec& spec) {
  if (!has_sshd(spec)) return {};
  return {{std::string(api::kAnnotationSshdConfig), worker_sshd_config(spec)}};
}

std::vector<std::string_view> ssh_volume_names(const api::NodeSetSpec& spec) {
  if (!has_sshd(spec)) return {};
  return {kConfigVolume, kHostKeysVolume, kSssdVolume};
}

void add_ssh_volumes(const Observed& in, Json& volumes) {
  const api::NodeSetSpec& spec = in.nodeset.spec;
  if (!has_sshd(spec)) return;
  // An annotation of the pod contains sshd_config. So each worker has the sshd_config of its own template, also during an
  // update.
  const Json config{
      {"downwardAPI",
       {{"items", Json::array({{{"path", kSshdConfig},
                                {"fieldRef",
                                 {{"fieldPath", fmt::format("metadata.annotations['{}']", api::kAnnotationSshdConfig)}}}}})}}}};
  Json host_keys{{"secret", {{"name", host_keys_of(in.meta()).name}}}};
  // If an update removes spec.ssh, the Secret of the host keys might be deleted. So this Secret is optional for workers below
  // the partition. Other workers wait for the Secret, because a kubelet might not see a Secret yet that was created just before
  // the pod.
  if (in.host_keys == kube::Presence::kUnknown) host_keys["secret"]["optional"] = true;
  volumes.push_back(projected_volume(kConfigVolume, Json::array({config})));
  volumes.push_back(projected_volume(kHostKeysVolume, Json::array({host_keys})));
  if (const api::SecretKeySelector* ref = sssd_conf(spec)) volumes.push_back(sssd_volume(*ref));
}

void add_sshd(const api::NodeSetSpec& spec, Json& slurmd) {
  if (!has_sshd(spec)) return;
  slurmd["ports"].push_back({{"name", kPort}, {"containerPort", api::kPortSsh}, {"protocol", "TCP"}});
  // The image starts sshd if these files are mounted.
  for (Json& mount : daemon_mounts(spec)) slurmd["volumeMounts"].push_back(std::move(mount));
}

void add_check(const api::NodeSetSpec& spec, const Json& slurmd, Json& init) {
  if (!has_sshd(spec)) return;
  Json out = check_container(core::get_string(slurmd, {"image"}), {.sshd = true, .sssd = sssd_conf(spec) != nullptr},
                             daemon_mounts(spec));
  for (const char* same : {"imagePullPolicy", "resources"}) {
    if (slurmd.contains(same)) out[same] = slurmd[same];
  }
  init.push_back(std::move(out));
}

bool keep_host_keys(const View& view, Draft& draft) {
  if (view.goal != Goal::kServe || !has_sshd(view.in.nodeset.spec)) return true;
  // The watch of the Secret has just begun, so it is unknown whether the Secret exists. Create no workers until that is known.
  if (view.in.host_keys == kube::Presence::kUnknown) return false;
  // Do not change an existing Secret: if users created it, it has their own host keys.
  if (view.in.host_keys != kube::Presence::kAbsent) return true;
  const kube::ObjectMeta& self = view.in.meta();
  const kube::Key key = host_keys_of(self);
  plan::Lane& lane = draft.lane("create");
  const kube::StringMap labels = worker_labels(self.name, view.in.nodeset.spec.controller_ref.name);
  const bool made = draft.step(lane, {"create", "Secret", key.name}, "there are no host keys yet",
                               kube::create(kube::resources::kSecret, new_host_keys(key, resources::kNodeSet, self, labels)));
  lane.then();
  return made;
}

void tell_ssh(const View& view, Draft& draft) {
  if (view.goal != Goal::kServe || !has_sshd(view.in.nodeset.spec) || view.in.controller->contains_jobs) return;
  draft.wrong(
      "SshNeedsContain",
      fmt::format("spec.ssh: nobody can log in, because the slurm.conf of Controller {} has no PrologFlags=Contain, without "
                  "which sshd does not see that a user has a job: add it to spec.extraConf of the Controller",
                  view.in.controller->meta.key().str()));
}

}  // namespace op::nodeset
