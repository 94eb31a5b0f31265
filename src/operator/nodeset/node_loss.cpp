#include "operator/nodeset/node_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "api/well_known.hpp"
#include "operator/nodeset/daemon_nodes.hpp"
#include "operator/nodeset/observed.hpp"

namespace op::nodeset {
namespace {

constexpr std::string_view kOnly = "only ", kOf = " of ", kSince = " Kubernetes nodes match since ";

/// Parses the number at the beginning of `text` and removes that number from `text`. Returns 0 if `text` begins with no number.
int take_number(std::string_view& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return 0;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// True if the pod is on, or is bound to, a Kubernetes node that should not have a worker any more.
bool concerns(const Observed& observed, const kube::PodRecord& pod) {
  const std::optional<SlotKey> place = place_of(pod, observed.meta().name);
  if (!place) return false;
  const std::string& node = place->numbered() ? pod.node_name : place->kube_node;
  const auto host = observed.hosts.find(node);
  return !node.empty() && (host == observed.hosts.end() || !host->second.wanted);
}

}  // namespace

std::string NodeLoss::text() const {
  return fmt::format("{}{}{}{}{}{}", kOnly, now, kOf, before, kSince, since);
}

bool implausible_loss(int before, int now) {
  const int lost = before - now;
  return 2 * now < before && lost >= (now == 0 ? 2 : 3);
}

NodeLoss told_loss(const std::vector<api::Condition>& conditions) {
  const auto told = std::ranges::find(conditions, api::kConditionDeletionsStopped, &api::Condition::type);
  if (told == conditions.end()) return {};
  NodeLoss out;
  std::string_view text = told->message;
  if (!take(text, kOnly)) return {};
  out.now = take_number(text);
  if (!take(text, kOf)) return {};
  out.before = take_number(text);
  if (!take(text, kSince)) return {};
  out.since = text.substr(0, text.find_first_of(" ,;:", text.find('Z')));
  return out;
}

NodeLoss find_node_loss(const Observed& observed) {
  if (!observed.by_host() || !observed.reads_kube_nodes || observed.pods.empty() || !observed.invalid.empty()) return {};
  const api::NodeSetStatus& status = observed.nodeset.status;
  NodeLoss out = told_loss(status.conditions);
  if (!out.any()) {
    if (status.observed_generation != observed.meta().generation) return {};
    out.before = status.desired;
    out.since = core::format_rfc3339(observed.now);
  }
  out.now = observed.hosts_wanted();
  out.confirmed = observed.meta().annotation(api::kAnnotationConfirmNodeLoss) == out.since;
  // A user's confirmation of the loss ends when no worker is left on a Kubernetes node that should not have one.
  if (out.confirmed && std::ranges::none_of(observed.pods, [&](const kube::PodPtr& pod) { return concerns(observed, *pod); }))
    return {};
  // More Kubernetes nodes were lost since the last status was written. No user has confirmed this new loss.
  if (out.confirmed && implausible_loss(status.desired, out.now))
    out = {status.desired, out.now, core::format_rfc3339(observed.now), false};
  return implausible_loss(out.before, out.now) ? out : NodeLoss{};
}

}  // namespace op::nodeset
