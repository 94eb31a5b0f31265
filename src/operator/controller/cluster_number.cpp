#include "operator/controller/cluster_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <vector>

#include "api/well_known.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/accounting.hpp"
#include "operator/controller/backups.hpp"
#include "operator/controller/build.hpp"
#include "slinky/config_map.hpp"

namespace op::controller {
namespace {

constexpr const char* kTryAgain = "slurm-operator.try-again";
/// The suffix of numbers_differ once slurmctld has passed the init container. With this suffix, slurmctld does not wait again.
constexpr std::string_view kPassed = " passed";

/// Searches the text for `before`, from position `at` on. Returns the digits that follow, and moves `at` to these digits. "":
/// no digits.
std::string digits_after(const std::string& text, std::string_view before, std::size_t& at) {
  at = text.find(before, at);
  if (at == std::string::npos) return "";
  at += before.size();
  const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
  return text.substr(at, end - at);
}

std::vector<kube::PodPtr> not_ready(const Observed& observed) {
  std::vector<kube::PodPtr> out = observed.pods;
  out.insert(out.end(), observed.backup_pods.begin(), observed.backup_pods.end());
  std::erase_if(out, [](const kube::PodPtr& pod) { return pod->meta.terminating() || pod->ready(); });
  return out;
}

const kube::ContainerState* state_of(const kube::PodRecord& pod, std::string_view name) {
  const auto found = std::ranges::find(pod.containers, name, &kube::ContainerState::name);
  return found == pod.containers.end() ? nullptr : &*found;
}

/// True if the template of a StatefulSet has the init container. Then numbers_differ must be retained: without numbers_differ,
/// the template would change, and slurmctld would be restarted.
bool waits_in_template(const Observed& observed) {
  for (const kube::ObjectPtr& set : {observed.stateful_set, observed.backup_set}) {
    const core::Json* init = set ? core::find(set->body, {"spec", "template", "spec", "initContainers"}) : nullptr;
    if (init == nullptr || !init->is_array()) continue;
    if (std::ranges::any_of(*init, [](const core::Json& each) { return core::get_string(each, {"name"}) == kClusterNumber; }))
      return true;
  }
  return false;
}

}  // namespace

std::optional<ClusterNumbers> differing_numbers(const kube::ContainerState& slurmctld) {
  std::size_t at = slurmctld.ready ? std::string::npos : slurmctld.message.rfind("fatal: CLUSTER ID MISMATCH");
  if (at == std::string::npos) return {};
  ClusterNumbers out;
  out.ours = digits_after(slurmctld.message, "ClusterID=", at);
  if (out.ours.empty()) return {};
  out.theirs = digits_after(slurmctld.message, "should be \"", at);
  if (out.theirs.empty()) return {};
  return out;
}

void note_numbers(const Observed& observed, ConfigState& next) {
  if (joins(observed, next).empty() || (primary_ready(observed) && !waits_in_template(observed))) next.numbers_differ.clear();
  if (primary_ready(observed) && !next.numbers_differ.empty() && !next.numbers_differ.ends_with(kPassed))
    next.numbers_differ += kPassed;
  if (joins(observed, next).empty() || primary_ready(observed)) return;
  for (const kube::PodPtr& pod : not_ready(observed)) {
    const kube::ContainerState* slurmctld = state_of(*pod, kAppController);
    if (slurmctld == nullptr || !slurmctld->crashed) continue;
    if (const auto numbers = differing_numbers(*slurmctld)) {
      next.numbers_differ = fmt::format("{} {} {}", numbers->ours, numbers->theirs, pod->meta.uid);
      return;
    }
  }
}

std::vector<std::string> noted_numbers(const ConfigState& state) {
  std::string_view record = state.numbers_differ;
  if (record.ends_with(kPassed)) record.remove_suffix(kPassed.size());
  std::istringstream words{std::string(record)};
  std::vector<std::string> out;
  for (std::string word; words >> word;) out.push_back(word);
  constexpr std::size_t kParts = 3;
  return out.size() == kParts ? out : std::vector<std::string>{};
}

std::string wait_number_script() {
  // Without a cluster ID in the state, this script ends at once: slurmctld then takes slurmdbd's ID, and join_script waits for
  // slurmdbd. The mark is in the volume of the state, so the mark of the primary also lets the primary's backups pass.
  return std::string(
             "set -u\n"
             "state=$1 ours=$2 theirs=$3 note=$4 mark=$1/slurm-operator.numbers\n"
             "trap 'exit 1' TERM\n"
             "differs() {\n"
             "  [ \"$(cat \"$mark\" 2>/dev/null)\" != \"$note\" ] || return 1\n"
             "  [ \"$(sed -n 's/^[^|]*|//p' \"$state/clustername\" 2>/dev/null)\" = \"$ours\" ]\n"
             "}\n"
             "if differs; then\n"
             "  echo \"the cluster has number $ours in $state/clustername, and $theirs in the database of slurmdbd\"\n"
             "  while differs && [ ! -e \"$state/") +
         kTryAgain +
         "\" ]; do sleep 1 & wait $!; done\n"
         "fi\n"
         "rm -f \"$state/" +
         kTryAgain +
         "\"\n"
         "printf '%s' \"$note\" >\"$mark\"\n";
}

std::optional<Problem> number_problem(const Observed& observed, const ConfigState& state) {
  const std::string slurmdbd = joins(observed, state);
  if (slurmdbd.empty() || primary_ready(observed)) return {};
  const kube::ObjectMeta& meta = observed.object->meta;
  const auto text = [&](const ClusterNumbers& numbers, const std::string& rest) {
    return Problem{
        "ClusterNumberDiffers",
        fmt::format("the number of cluster {} is {} in slurmctld's state, and {} in the database of the slurmdbd at {}, which "
                    "was restored, replaced, or lost its records: {}",
                    api::cluster_name(observed.controller.spec, meta.ns, meta.name), numbers.ours, numbers.theirs, slurmdbd,
                    rest)};
  };
  for (const kube::PodPtr& pod : not_ready(observed)) {
    const kube::ContainerState* waits = state_of(*pod, kClusterNumber);
    if (const auto noted = noted_numbers(state); !noted.empty() && !state.numbers_differ.ends_with(kPassed) &&
                                                 waits != nullptr && waits->started_once && !waits->ready &&
                                                 waits->waiting_reason.empty()) {
      const std::string exec = fmt::format("`kubectl -n {} exec {} -c {} -- ", meta.ns, pod->meta.name, kClusterNumber);
      const std::string directory = state_directory(observed);
      return text({noted[0], noted[1]},
                  fmt::format("slurmctld waits for your decision, and jobs run on. To go back to the former database, restore "
                              "it, and then run {}touch {}/{}`. To go on with the database that is there, run {}rm "
                              "{}/clustername`: slurmctld takes its number, and keeps its jobs",
                              exec, directory, kTryAgain, exec, directory));
    }
    const kube::ContainerState* slurmctld = state_of(*pod, kAppController);
    const auto numbers = slurmctld == nullptr ? std::nullopt : differing_numbers(*slurmctld);
    if (!numbers) continue;
    return text(*numbers, observed.controller.spec.persistence.enabled
                              ? "slurmctld exits at its start, and will then wait for your decision. Jobs run on"
                              : fmt::format("slurmctld exits at each start, until you restore the former database. Jobs run "
                                            "on, and their state is in the pod {}, because spec.persistence.enabled is false. "
                                            "To give them up, set the annotation {}: \"true\" on the Controller",
                                            pod->meta.name, api::kAnnotationLoseJobs));
  }
  return {};
}

}  // namespace op::controller
