#include "operator/common/check.hpp"

#include <algorithm>
#include <utility>

namespace op {
namespace {

constexpr std::string_view kSshdSays = "sshd: ";
constexpr std::string_view kSssdSays = "sssd: ";

/// Reports the messages of `sshd -t` about sshd's files. An unreadable host key makes sshd fail only if there is no other host
/// key, so messages about host keys are reported even if sshd succeeds.
constexpr std::string_view kSshd =
    "mkdir -p /run/sshd; w=$(/usr/sbin/sshd -t 2>&1) && k='load host key \"' || k=\n"
    "w=$(echo \"$w\" | grep -v '^@' | grep \"$k\" | head -n 4)\n"
    "[ -z \"$w\" ] || echo \"sshd: $w\" >>/dev/termination-log\n";

/// Starts SSSD for a moment, because some errors, like a missing provider, show only after some seconds. SSSD's fatal and
/// critical messages name the cause.
constexpr std::string_view kSssd =
    "f=/mnt/sssd/sssd.conf; [ ! -e $f ] || install -m 0600 $f /etc/sssd/sssd.conf\n"
    "[ -e /etc/sssd/sssd.conf ] || exit 0\n"
    "{ sssd -i --logger=stderr >/tmp/sssd 2>&1; true >/tmp/sssd-ended; } &\n"
    "n=0; until [ -S /var/lib/sss/pipes/nss ] || [ -e /tmp/sssd-ended ] || [ $n = 50 ]; do n=$((n + 1)); sleep 0.2; done\n"
    "[ -e /tmp/sssd-ended ] || exit 0\n"
    "w=$(sed -n \"s/.*(0x00[12]0): //p; /^Can't/p\" /tmp/sssd | head -n 4); [ -n \"$w\" ] || w=$(tail -n 1 /tmp/sssd)\n"
    "echo \"sssd: $w\" >>/dev/termination-log\n";

std::string joined(std::string_view lines) {
  std::string out;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    if (line.empty()) continue;
    if (!out.empty()) out += "; ";
    out += line;
  }
  return one_line(std::move(out));
}

void add(std::string_view words, std::string_view says, const kube::PodRecord& pod, std::vector<Problem>& out) {
  if (!words.starts_with(says)) return;
  words.remove_prefix(says.size());
  const bool of_sshd = says == kSshdSays;
  out.push_back({of_sshd ? "SshdRefuses" : "SssdRefuses",
                 "pod " + pod.meta.name + (of_sshd ? ": sshd reports: " : ": SSSD reports: ") + joined(words)});
}

}  // namespace

core::Json check_container(const std::string& image, Checked what, core::Json mounts) {
  std::string script;
  if (what.sshd) script += kSshd;
  if (what.sssd) script += kSssd;
  script += "exit 0\n";
  return {{"name", kCheck}, {"image", image}, {"command", {"sh", "-c", script}}, {"volumeMounts", std::move(mounts)}};
}

std::vector<Problem> refused_files(const std::vector<kube::PodPtr>& pods) {
  std::vector<Problem> out;
  for (const kube::PodPtr& pod : pods) {
    if (pod->meta.terminating() || pod->phase == "Failed" || pod->phase == "Succeeded") continue;
    for (const kube::ContainerState& container : pod->containers) {
      // While the container waits, its message is a message of the kubelet, not of the daemons.
      if (container.name != kCheck || !container.init || !container.waiting_reason.empty()) continue;
      const std::string_view said = container.message;
      const std::size_t sssd = said.starts_with(kSssdSays) ? 0 : said.find("\nsssd: ");
      add(said.substr(0, sssd), kSshdSays, *pod, out);
      if (sssd != std::string_view::npos) add(said.substr(sssd == 0 ? 0 : sssd + 1), kSssdSays, *pod, out);
    }
  }
  return out;
}

}  // namespace op
