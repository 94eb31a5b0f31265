#include "operator/controller/accounting.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <tuple>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/build.hpp"
#include "operator/controller/cluster_number.hpp"
#include "slinky/config_map.hpp"
#include "slinky/releases.hpp"

namespace op::controller {
namespace {

namespace conf = slurm::conf;

constexpr auto kStorageKeys =
    std::to_array<std::string_view>({"AccountingStorageType", "AccountingStorageHost", "AccountingStoragePort"});

std::string accounting_name(const Observed& observed) {
  return "Accounting " + observed.object->meta.ns + "/" + observed.accounting->name;
}

/// Returns why the cluster cannot join the Accounting that it names, or nullopt.
std::optional<Problem> accounting_problem(const Observed& observed) {
  const AccountingFacts& facts = *observed.accounting;
  const std::string name = accounting_name(observed);
  if (!facts.exists) return Problem{"AccountingMissing", "spec.accountingRef.name: " + name + " does not exist"};
  if (!facts.error.empty()) return Problem{"AccountingInvalid", name + ": " + facts.error};
  if (!facts.namesake.empty()) {
    return Problem{"ClusterNameTaken",
                   "Controller " + facts.namesake +
                       (facts.namesake_joined ? " has joined the same Accounting with the same cluster name, "
                                              : " is older, names the same Accounting, and has the same cluster name, ") +
                       api::cluster_name(observed.controller.spec, observed.object->meta.ns, observed.object->meta.name) +
                       ": to slurmdbd both would be one cluster. Delete this one, and create it again with a different "
                       "spec.clusterName"};
  }
  const bool is_new = !read_config_state(observed.config_map.get()).exists();
  const auto differs = [&](const char* field, const std::optional<SecretFacts>& theirs, const SecretFacts& ours,
                           const char* refused) -> std::optional<Problem> {
    if (!theirs || !theirs->usable() || !ours.usable() || theirs->content == ours.content) return {};
    // The Secrets that a Controller names as its keys cannot be changed later.
    return Problem{
        "AccountingKeyDiffers",
        std::string(field) + ": the key in Secret " + ours.ref.secret + " differs from the one in Secret " +
            theirs->ref.secret + ", which " + name + " has: slurmdbd would refuse " + refused + ". " +
            (is_new ? "Delete this Controller, and the claim of its state volume if there is one, and create it again "
                      "with the Secrets of that Accounting in spec.slurmKeyRef and spec.jwtKeyRef"
                    : "Put the same key into both Secrets")};
  };
  if (auto problem = differs("spec.slurmKeyRef", facts.slurm_key, observed.slurm_key, "this cluster")) return problem;
  if (auto problem = differs("spec.jwtKeyRef", facts.jwt_key, observed.jwt_key, "the Tokens of this cluster")) return problem;
  // If slurmdbd had an older release, slurmctld would wait forever for its cluster ID, although slurmctld's port is open.
  const std::string served = read_config_state(observed.config_map.get()).served_release;
  const ImageRelease slurmctld =
      slurm_release(served.empty() ? slurmctld_image(observed.controller.spec) : "slurmctld:" + served);
  if (releases_between(facts.slurmdbd_release, slurmctld) > 0) {
    return Problem{"SlurmdbdFirst", "slurmctld is of Slurm " + to_string(slurmctld) + ", and the slurmdbd of " + name + " of " +
                                        to_string(facts.slurmdbd_release) +
                                        ", which does not understand it: upgrade that slurmdbd first (spec.slurmdbd.image)"};
  }
  return {};
}

/// Returns a problem if keys must be compared before the cluster may join, but cannot be compared yet. slurmctld cannot connect
/// to a slurmdbd with another key.
std::optional<Problem> keys_unknown(const Observed& observed) {
  const AccountingFacts& facts = *observed.accounting;
  for (const auto& [field, theirs, ours] : {std::tuple("spec.slurmKeyRef", &facts.slurm_key, &observed.slurm_key),
                                            {"spec.jwtKeyRef", &facts.jwt_key, &observed.jwt_key}}) {
    if (!*theirs || ((*theirs)->ref.secret == ours->ref.secret && (*theirs)->ref.key == ours->ref.key)) continue;
    if ((*theirs)->usable() && ours->usable()) continue;
    return Problem{"Waiting",
                   std::string(field) + ": slurmctld joins " + accounting_name(observed) + " when the key in Secret " +
                       ours->ref.secret + " can be compared with the one in Secret " + (*theirs)->ref.secret +
                       ", which that Accounting has",
                   Problem::Kind::kComing};
  }
  return {};
}

const kube::ContainerState* join_of(const kube::PodRecord& pod) {
  const auto found = std::ranges::find(pod.containers, std::string_view(kJoin), &kube::ContainerState::name);
  return pod.meta.terminating() || found == pod.containers.end() ? nullptr : &*found;
}

/// Returns the pod whose slurmctld should have joined at its start but started on its own, because slurmdbd did not answer. "":
/// there is none.
std::string missed_join(const Observed& observed) {
  for (const kube::PodPtr& pod : observed.pods) {
    const kube::ContainerState* join = join_of(*pod);
    if (join != nullptr && join->ready && join->message.starts_with("slurmdbd does not answer")) return pod->meta.name;
  }
  return "";
}

void set_storage(conf::Conf& out, const Endpoint& slurmdbd) {
  out.set("AccountingStorageType", std::string(kSlurmdbdStorage));
  out.set("AccountingStorageHost", slurmdbd.host);
  out.set("AccountingStoragePort", std::to_string(slurmdbd.port));
}

}  // namespace

void add_accounting(conf::Conf& out, const Observed& observed, const ConfigState& state, Rendered& rendered) {
  if (!observed.accounting) return;
  const AccountingFacts& facts = *observed.accounting;
  std::optional<Problem> problem = accounting_problem(observed);
  const std::string_view before = slurm_conf(state.offered);
  const std::string now = slurmdbd_of(before);
  const bool is_new = !state.exists();
  // The Go operator omits the namespace in the host name.
  const bool has =
      now == facts.slurmdbd.str() || now == Endpoint{accounting_object_name(facts.name), facts.slurmdbd.port}.str();
  const bool reached = is_new || has || facts.serving || observed.controller.spec.external;
  if (!problem && !has && facts.terminating)
    problem = {"Waiting", accounting_name(observed) + " is being deleted: slurmctld joins it when it exists again"};
  if (!problem && !has) problem = keys_unknown(observed);
  if (!problem && reached) return set_storage(out, facts.slurmdbd);
  if (!problem) {
    problem = {"Waiting", "slurmctld joins " + accounting_name(observed) + " when its slurmdbd answers",
               Problem::Kind::kComing};
  }
  // A slurmdbd that slurmctld already uses stays in slurm.conf. Without it, jobs would end unrecorded.
  if (!now.empty()) {
    const conf::Conf kept = conf::parse(conf::Kind::kSlurm, before).conf;
    for (const std::string_view key : kStorageKeys) {
      if (const auto value = kept.get(key)) out.set(key, *value);
    }
  }
  const bool waits = is_new && !observed.controller.spec.external;
  (waits ? rendered.problems : rendered.warnings).push_back(std::move(*problem));
}

std::vector<conf::Problem> accounting_settings(const Observed& observed, const conf::Conf& user) {
  std::vector<conf::Problem> out;
  if (!observed.accounting) return out;
  const auto same = [](std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
  };
  for (const conf::Entry& entry : user.entries()) {
    const conf::Setting& head = entry.head();
    if (std::ranges::any_of(kStorageKeys, [&](std::string_view key) { return same(key, head.key); }))
      out.push_back({head.line, head.key, "set by spec.accountingRef; remove one of the two"});
  }
  return out;
}

std::string joins(const Observed& observed, const ConfigState& state) {
  return observed.controller.spec.accounting_ref ? slurmdbd_of(slurm_conf(state.offered)) : "";
}

std::string join_script() {
  // The mark is a file that names the slurmdbd from which slurmctld got its cluster ID (the file "clustername"). If slurmdbd
  // does not answer, the ID stays: with the ID, slurmctld starts from its state. Without the ID, slurmctld would wait. If
  // slurmctld never used a slurmdbd, its state has no last_tres, and slurmctld would exit ("no TRES"), so this script waits for
  // slurmdbd. If slurmctld is newer than its slurmdbd, the script writes that once to the container's termination message.
  return "set -u\n"
         "state=$1 slurmdbd=$2 release=$3 told=$4 words=$5 mark=$1/slurm-operator.slurmdbd\n"
         "trap 'exit 1' TERM\n"
         "ours=$(slurmctld -V 2>/dev/null | sed -n 's/^[^ ]* *\\([0-9][0-9]*\\.[0-9][0-9]*\\).*/\\1/p')\n"
         "newer() {\n"
         "  theirs=$(cat \"$release\" 2>/dev/null) || return 1\n"
         "  [ -n \"$ours\" ] && [ -n \"$theirs\" ] && [ \"$ours\" != \"$theirs\" ] &&\n"
         "    [ \"$(printf '%s\\n' \"$ours\" \"$theirs\" | sort -V | tail -n 1)\" = \"$ours\" ]\n"
         "}\n"
         "hold() {\n"
         "  if newer && [ ! -e \"$told\" ]; then\n"
         "    echo \"slurmctld is of Slurm $ours, and slurmdbd of $theirs\"\n"
         "    : >\"$told\"\n"
         "    printf 'newer: %s %s' \"$ours\" \"$theirs\" >\"$words\"\n"
         "    exit 1\n"
         "  fi\n"
         "  while newer; do sleep 1 & wait $!; done\n"
         "}\n"
         "hold\n"
         "answers() { timeout 3 bash -c \"exec 3<>'/dev/tcp/${slurmdbd%:*}/${slurmdbd##*:}'\" 2>/dev/null; }\n"
         // The operator publishes the release of a slurmdbd shortly after that slurmdbd begins to answer.
         "known() { [ -z \"$release\" ] || [ -s \"$release\" ]; }\n"
         // If slurmctld joined but was killed before it first wrote its usage, it would exit at each start. So it joins again.
         "[ -e \"$state/assoc_usage\" ] || [ ! -e \"$mark\" ] || rm -f \"$state/clustername\" \"$mark\"\n"
         "[ \"$(cat \"$mark\" 2>/dev/null)\" != \"$slurmdbd\" ] || [ ! -e \"$state/clustername\" ] || exit 0\n"
         "if [ -e \"$state/clustername\" ] && [ -e \"$state/last_tres\" ] && ! answers; then\n"
         "  echo \"slurmdbd does not answer at $slurmdbd: slurmctld starts without it\" | tee \"$words\"\n"
         "  exit 0\n"
         "fi\n"
         "echo \"waiting for slurmdbd at $slurmdbd\"\n"
         // Most slurmdbds answer soon, and some never answer, so later pauses are longer.
         "tries=0\n"
         "until known && answers; do\n"
         "  tries=$((tries + 1)) pause=0.2\n"
         "  [ $tries -lt 150 ] || pause=1\n"
         "  sleep $pause & wait $!\n"
         "done\n"
         "hold\n"
         "rm -f \"$state/clustername\"\n"
         "printf '%s' \"$slurmdbd\" >\"$mark\"\n";
}

std::string release_map(const std::string& ns, const std::string& slurmdbd) {
  constexpr std::string_view kOurs = "-accounting";
  std::string_view host = std::string_view(slurmdbd).substr(0, slurmdbd.rfind(':'));
  // The Go operator omits the namespace in the host name.
  if (const std::string suffix = "." + ns; host.ends_with(suffix)) host.remove_suffix(suffix.size());
  return host.ends_with(kOurs) && host.find('.') == std::string_view::npos ? std::string(host) : "";
}

std::optional<plan::Step> tell_release(const Observed& observed) {
  if (!observed.accounting || observed.accounting->external || observed.accounting->told_release.empty()) return {};
  const std::string& release = observed.accounting->told_release;
  for (const kube::PodPtr& pod : observed.pods) {
    const auto join = std::ranges::find(pod->containers, std::string_view(kJoin), &kube::ContainerState::name);
    if (pod->meta.terminating() || join == pod->containers.end() || !join->started_once || join->ready) continue;
    if (pod->meta.annotation(api::kAnnotationSlurmdbdRelease) == release) continue;
    return plan::Step{
        {"tell release", "Pod", pod->meta.name},
        "slurmctld waits for the release of its slurmdbd, and a kubelet refreshes volumes of pods that change",
        kube::patch_any_version(kube::resources::kPod, pod->meta,
                                {{"metadata", {{"annotations", {{std::string(api::kAnnotationSlurmdbdRelease), release}}}}}})};
  }
  return {};
}

std::optional<Problem> start_problem(const Observed& observed) {
  constexpr std::string_view kNewer = "newer: ";
  if (!observed.accounting) return {};
  for (const kube::PodPtr& pod : observed.pods) {
    const auto join = std::ranges::find(pod->containers, std::string_view(kJoin), &kube::ContainerState::name);
    if (pod->meta.terminating() || join == pod->containers.end() || join->ready) continue;
    const std::string& words = join->last_message.empty() ? join->message : join->last_message;
    if (!words.starts_with(kNewer)) continue;
    const std::size_t blank = words.find(' ', kNewer.size());
    if (blank == std::string::npos) continue;
    return Problem{"SlurmdbdFirst",
                   "slurmctld reports that it is of Slurm " + words.substr(kNewer.size(), blank - kNewer.size()) +
                       ", and the slurmdbd of " + accounting_name(observed) + " is of " + one_line(words.substr(blank + 1)) +
                       ", which does not understand it: slurmctld does not start, its state is unchanged, and jobs run on. "
                       "Upgrade that slurmdbd first (spec.slurmdbd.image), or restore the previous spec.slurmctld.image"};
  }
  return {};
}

std::string awaited_slurmdbd(const Observed& observed, const ConfigState& state) {
  const std::string slurmdbd = joins(observed, state);
  const bool waits = std::ranges::any_of(observed.pods, [](const kube::PodPtr& pod) {
    const kube::ContainerState* join = join_of(*pod);
    return join != nullptr && join->started_once && !join->ready && join->waiting_reason.empty() && !join->crashed;
  });
  if (slurmdbd.empty() || !waits || start_problem(observed)) return "";
  std::string text = "slurmctld starts when the slurmdbd at " + slurmdbd + " answers, which gives it the number of its cluster";
  if (observed.accounting && observed.accounting->external)
    text += ". Check that it runs, and that spec.externalConfig of " + accounting_name(observed) + " has its address";
  if (observed.controller.spec.persistence.enabled && has_run(observed, state))
    text += ". Running jobs continue, and no job is started. To go on without accounting, remove spec.accountingRef";
  if (!observed.controller.spec.persistence.enabled && has_run(observed, state))
    text +=
        ". The state that contained this number was lost with slurmctld's last pod, because spec.persistence.enabled is false";
  return text;
}

void set_accounting_condition(Conditions& conditions, const Observed& observed, const ConfigState& state,
                              const Rendered& wanted) {
  if (!observed.accounting) return;
  const AccountingFacts& facts = *observed.accounting;
  const std::string slurmdbd = facts.slurmdbd.str();
  const auto set = [&](api::ConditionStatus status, std::string_view reason, std::string text) {
    conditions.set(api::kConditionAccountingJoined, status, reason, std::move(text));
  };
  if (const auto differs = number_problem(observed, state)) {
    set(api::ConditionStatus::kFalse, differs->reason, differs->message);
  } else if (const auto newer = start_problem(observed)) {
    set(api::ConditionStatus::kFalse, newer->reason, newer->message);
  } else if (const auto problem = accounting_problem(observed)) {
    set(api::ConditionStatus::kFalse, problem->reason, problem->message);
  } else if (slurmdbd_of(slurm_conf(state.offered)) != slurmdbd) {
    const auto keys = keys_unknown(observed);
    const auto waits = std::ranges::find(wanted.warnings, std::string_view("Waiting"), &Problem::reason);
    set(api::ConditionStatus::kFalse, "Waiting",
        keys                             ? keys->message
        : waits == wanted.warnings.end() ? "slurmctld is not configured yet to use the slurmdbd at " + slurmdbd
                                         : waits->message);
  } else if (std::string awaited = awaited_slurmdbd(observed, state); !awaited.empty()) {
    set(api::ConditionStatus::kFalse, "Waiting", std::move(awaited));
  } else if (!facts.external && !facts.serving && !has_run(observed, state)) {
    set(api::ConditionStatus::kFalse, "Waiting",
        "slurmctld starts when the slurmdbd of " + accounting_name(observed) + " answers");
  } else if (!facts.external && !facts.serving) {
    set(api::ConditionStatus::kFalse, "AccountingAway",
        accounting_name(observed) + ": its slurmdbd does not answer. Jobs go on, and slurmctld keeps its job records" +
            (observed.controller.spec.persistence.enabled ? ""
                                                          : " in its pod. A slurmctld that starts meanwhile waits for "
                                                            "slurmdbd, because spec.persistence.enabled is false"));
  } else if (const std::string pod = missed_join(observed); !pod.empty()) {
    set(api::ConditionStatus::kUnknown, "JoinMissed",
        "the slurmdbd at " + slurmdbd +
            " did not answer when slurmctld started, so slurmctld may not have the number that slurmdbd gives its cluster. "
            "When "
            "slurmdbd answers, delete pod " +
            pod + ": slurmctld joins with its next start, and jobs run on");
  } else if (observed.restapis.empty()) {
    set(api::ConditionStatus::kUnknown, "NoRestApi",
        "no RestApi refers to this Controller, so the operator cannot see what slurmctld has loaded");
  } else if (state.accepted_hash.empty() || slurmdbd_of(slurm_conf(state.accepted_files())) != slurmdbd) {
    set(api::ConditionStatus::kUnknown, "Loading", kNotLoaded);
  } else {
    set(api::ConditionStatus::kTrue, "Joined", "slurmctld records jobs with the slurmdbd at " + slurmdbd);
  }
}

}  // namespace op::controller
