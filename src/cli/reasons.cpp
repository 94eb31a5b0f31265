#include "cli/reasons.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace cli {
namespace {

struct Entry {
  std::string_view reason;
  Explanation text;
};

constexpr std::string_view kLookAtIt = "An administrator sees more with `scontrol show job` and in the log of slurmctld.";
constexpr std::string_view kGroupAdvice =
    "Wait until jobs that count there end, ask for less, or ask an administrator for a higher limit.";
constexpr std::string_view kJobAdvice =
    "Waiting does not help: ask for less with `scontrol update job`, or ask an administrator for a higher limit.";
constexpr std::string_view kUsedAdvice =
    "It can start when past usage has decayed, if PriorityDecayHalfLife is set, or is reset. Or ask an administrator for a "
    "higher "
    "limit.";

// The reasons of Slurm's src/common/job_state_reason.c, with what they mean and what helps.
constexpr auto kReasons = std::to_array<Entry>({
    {"None", {"Slurm has not looked at the job yet, or is about to start it.", ""}},
    {"Priority",
     {"Jobs with a higher priority wait for the same nodes and come first.",
      "A shorter time limit or fewer nodes can let it start earlier, in a gap that they leave (backfill)."}},
    {"Resources",
     {"It is next, and the nodes, CPUs, memory or GPUs that it asks for are not free yet.",
      "A shorter time limit, or asking for less, can let it start earlier."}},
    {"Dependency",
     {"It waits for other jobs, as its --dependency says.", "`scontrol update job` can change or remove the dependency."}},
    {"DependencyNeverSatisfied",
     {"A job that it depends on ended in a way that can never satisfy its --dependency.",
      "It never starts as it is: change the dependency with `scontrol update job`, or cancel it."}},
    {"BeginTime", {"It is not to start before a time, which --begin, cron or a requeue has set.", ""}},
    {"JobHeldUser", {"Its user holds it.", "`scontrol release` releases it."}},
    {"JobHeldAdmin",
     {"An administrator or coordinator holds it, or its priority is 0.", "Only they can release it: ask them."}},
    {"JobHoldMaxRequeue",
     {"Slurm holds it, because it was requeued too often: its launch failed again and again.",
      "Find out why it fails, then `scontrol release`."}},
    {"JobArrayTaskLimit",
     {"As many tasks of its array run as its % allows.", "`scontrol update job` can change ArrayTaskThrottle."}},
    {"ReqNodeNotAvail",
     {"Nodes that it needs are drained, down, reserved, or taken by others.",
      "`sinfo -R` and `kubectl slurm status` say what is wrong with the nodes. Without --nodelist it could start elsewhere."}},
    {"NodeDown", {"A node that it needs is down.", "`sinfo -R` and `kubectl slurm status` say why."}},
    {"BadConstraints",
     {"No node fits what it asks for.", "It never starts as it is: change its constraints, size or partition."}},
    {"Constraints",
     {"No node fits what it asks for now.", "Look at --constraint, --gres, --mem and the nodes of its partition."}},
    {"PartitionDown",
     {"Its partition takes jobs, but starts none (State=DOWN).",
      "An administrator sets its state to UP; or choose another one."}},
    {"PartitionInactive",
     {"Its partition takes no jobs and starts none (State=INACTIVE).",
      "An administrator sets its state to UP; or choose another one."}},
    {"PartitionNodeLimit",
     {"It asks for more or fewer nodes than its partition allows, or nodes that it needs are down or drained.",
      "Change the number of nodes, or the partition. `sinfo -R` says why nodes are down or drained."}},
    {"PartitionTimeLimit",
     {"Its time limit is longer than its partition allows.", "Set a shorter time limit with `scontrol update job`."}},
    {"PartitionConfig",
     {"What it asks for does not fit the configuration of its partition.", "Change what it asks for, or the partition."}},
    {"Reservation", {"It waits for its reservation to begin, or for room in it.", ""}},
    {"ReservationDeleted",
     {"The reservation that it asks for was deleted.", "Name another one, or none, with `scontrol update job`."}},
    {"ReservationInvalid",
     {"It may not use the reservation that it asks for, or there is none.",
      "Name another one, or none, with `scontrol update job`."}},
    {"FrontEndDown", {"No front end is up that it could run on.", "An administrator brings one up."}},
    {"Licenses", {"Licenses that it asks for are in use.", ""}},
    {"Prolog", {"The prolog of its nodes runs.", ""}},
    {"Cleaning", {"It was requeued, and what it left behind is still being cleaned up.", ""}},
    {"SchedDefer", {"It wanted to start at once, and Slurm defers that.", ""}},
    {"InvalidAccount",
     {"Its user may not use its account, or the account is gone.", "Choose an account of `sacctmgr show assoc`."}},
    {"InvalidQOS", {"Its QOS is gone, or may not be used.", "Choose a QOS of `kubectl slurm tree`."}},
    {"QOSNotAllowed",
     {"Its QOS may not be used by its association, or in its partition.",
      "Choose another QOS or partition; `kubectl slurm tree` shows the QOS of each user."}},
    {"AccountNotAllowed", {"Its account may not be used in its partition.", "Choose another partition or account."}},
    {"QOSUsageThreshold",
     {"Its user has used so much that its QOS takes no more jobs of them (UsageThreshold).",
      "It can start when past usage has decayed."}},
    {"AccountingPolicy", {"A limit of accounting holds it.", kLookAtIt}},
    {"AssociationJobLimit", {"As many jobs run as its association allows.", kGroupAdvice}},
    {"AssociationResourceLimit", {"It asks for more than its association has left.", kGroupAdvice}},
    {"AssociationTimeLimit", {"It asks for more time than its association has left.", kGroupAdvice}},
    {"QOSJobLimit", {"As many jobs run as its QOS allows.", kGroupAdvice}},
    {"QOSResourceLimit", {"It asks for more than its QOS has left.", kGroupAdvice}},
    {"QOSTimeLimit", {"It asks for more time than its QOS has left.", kGroupAdvice}},
    {"MaxMemPerLimit",
     {"It asks for more memory on a node, or for a CPU, than its partition or cluster allows (MaxMemPerNode, MaxMemPerCPU).",
      "Ask for less memory."}},
    {"MaxPoweredUpNodes", {"As many cloud nodes are powered up as MaxPoweredUpNodes allows.", ""}},
    {"BurstBufferResources", {"The burst buffer has no room for it.", ""}},
    {"BurstBufferStageIn", {"Its data is copied to the burst buffer.", ""}},
    {"BurstBufferOperation", {"An operation of the burst buffer failed.", kLookAtIt}},
    {"MpiPortsBusy", {"The ports that its MPI needs are in use.", ""}},
    {"NvidiaImexChannels", {"All NVIDIA IMEX channels are in use.", ""}},
    {"FedJobLock", {"Clusters of the federation agree about who runs it.", ""}},
    {"DeadLine", {"It cannot end before its --deadline.", "It never starts as it is: change the deadline or the time limit."}},
    // Reasons of jobs that have ended or were requeued.
    {"JobLaunchFailure", {"It could not be launched: its user, files or the prolog were at fault.", kLookAtIt}},
    {"NonZeroExitCode", {"Its script ended with an error.", ""}},
    {"RaisedSignal", {"A signal ended it.", ""}},
    {"TimeLimit", {"It ran as long as its time limit allows.", ""}},
    {"InactiveLimit", {"It did nothing for as long as InactiveLimit allows.", ""}},
    {"OutOfMemory", {"It used more memory than it had.", "Ask for more memory."}},
    {"SystemFailure", {"Slurm or a node failed.", kLookAtIt}},
});

constexpr auto kLimits = std::to_array<LimitKind>({
    {"GrpJobs", Measure::kJobs},
    {"GrpSubmitJobs", Measure::kSubmitted},
    {"GrpTRES", Measure::kTres},
    {"GrpTRESMins", Measure::kUsedMinutes},
    {"GrpTRESRunMins", Measure::kRunMinutes},
    {"GrpWall", Measure::kUsedWall},
    {"MaxJobs", Measure::kJobs},
    {"MaxJobsPerAccount", Measure::kJobs, Among::kAccount},
    {"MaxJobsPerUser", Measure::kJobs, Among::kUser},
    {"MaxSubmitJobs", Measure::kSubmitted},
    {"MaxSubmitJobsPerAccount", Measure::kSubmitted, Among::kAccount},
    {"MaxSubmitJobsPerUser", Measure::kSubmitted, Among::kUser},
    {"MaxTRESMinsPerJob", Measure::kJobMinutes},
    {"MaxTRESPerAccount", Measure::kTres, Among::kAccount},
    {"MaxTRESPerJob", Measure::kJobTres},
    {"MaxTRESPerNode", Measure::kNodeTres},
    {"MaxTRESPerUser", Measure::kTres, Among::kUser},
    {"MaxTRESRunMinsPerAccount", Measure::kRunMinutes, Among::kAccount},
    {"MaxTRESRunMinsPerUser", Measure::kRunMinutes, Among::kUser},
    {"MaxWallDurationPerJob", Measure::kJobWall},
    {"MinTRESPerJob", Measure::kLeastTres},
});

/// If `text` begins with one of `words`, removes that word from `text` and returns its index in `words`. Otherwise returns -1.
template <std::size_t N>
int take(std::string_view& text, const std::array<std::string_view, N>& words) {
  for (std::size_t i = 0; i < N; ++i) {
    if (!text.starts_with(words[i])) continue;
    text.remove_prefix(words[i].size());
    return static_cast<int>(i);
  }
  return -1;
}

/// A form of reasons that name a TRES: the text before the TRES ("Grp", "Max" or "Min"), the text after it, and the limit.
struct Form {
  std::string_view begins, ends, name;
};
constexpr auto kTresForms = std::to_array<Form>({
    {"Grp", "", "GrpTRES"},
    {"Grp", "Minutes", "GrpTRESMins"},
    {"Grp", "RunMinutes", "GrpTRESRunMins"},
    {"Max", "PerJob", "MaxTRESPerJob"},
    {"Max", "PerNode", "MaxTRESPerNode"},
    {"Max", "PerUser", "MaxTRESPerUser"},
    {"Max", "PerAccount", "MaxTRESPerAccount"},
    {"Max", "MinutesPerJob", "MaxTRESMinsPerJob"},
    {"Max", "RunMinsPerAccount", "MaxTRESRunMinsPerAccount"},
    {"Max", "RunMinsPerUser", "MaxTRESRunMinsPerUser"},
    {"Min", "", "MinTRESPerJob"},
    {"Min", "NotSatisfied", "MinTRESPerJob"},
});
// Longer words come before shorter ones, because the first word that matches is used.
constexpr std::array<std::string_view, 11> kTresWords{"Unknown", "Billing", "License", "Energy", "Memory", "GRES",
                                                      "Node",    "CPU",     "Cpu",     "Mem",    "BB"};
constexpr std::array<std::string_view, 11> kTresNames{"?",    "billing", "license/", "energy", "mem", "gres/",
                                                      "node", "cpu",     "cpu",      "mem",    "bb/"};
/// Reasons without a TRES, and the limits that they mean. "QOS", "Assoc" and "Limit" are already cut off.
constexpr auto kPlainForms = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"GrpJobs", "GrpJobs"},
    {"GrpSubmitJobs", "GrpSubmitJobs"},
    {"GrpWall", "GrpWall"},
    {"MaxJobs", "MaxJobs"},
    {"MaxSubmitJob", "MaxSubmitJobs"},
    {"MaxJobsPerUser", "MaxJobsPerUser"},
    {"MaxSubmitJobPerUser", "MaxSubmitJobsPerUser"},
    {"MaxJobsPerAccount", "MaxJobsPerAccount"},
    {"MaxSubmitJobsPerAccount", "MaxSubmitJobsPerAccount"},
    {"MaxWallDurationPerJob", "MaxWallDurationPerJob"},
});

}  // namespace

bool NamedLimit::covers(std::string_view of_tres) const {
  if (tres == of_tres) return true;
  if (tres.ends_with('/')) return of_tres.starts_with(tres);
  // In its reasons, Slurm writes "Unknown" for a TRES that has no name there.
  return tres == "?" && !of_tres.empty() && std::ranges::none_of(kTresNames, [&](std::string_view known) {
           return known.ends_with('/') ? of_tres.starts_with(known) : of_tres == known;
         });
}

std::optional<NamedLimit> limit_of_reason(std::string_view reason) {
  constexpr std::string_view kLimitWord = "Limit";
  NamedLimit out;
  const bool assoc = reason.starts_with("Assoc");
  const bool qos = reason.starts_with("QOS");
  std::string_view rest = reason.substr(assoc ? 5 : qos ? 3 : 0);
  out.of_qos = !assoc;
  if (rest.ends_with(kLimitWord)) rest.remove_suffix(kLimitWord.size());
  // Without "Assoc" or "QOS", a reason is about a limit of a QOS only if that limit is for each of its accounts or users.
  const bool each = rest.ends_with("PerAccount") || rest.ends_with("PerUser");
  if (!assoc && !qos && (!each || rest.size() != reason.size())) return {};
  if (const auto plain = std::ranges::find(kPlainForms, rest, [](const auto& form) { return form.first; });
      plain != kPlainForms.end()) {
    out.name = plain->second;
    return out;
  }
  const std::string_view begins = rest.substr(0, 3);
  rest.remove_prefix(begins.size());
  const int word = take(rest, kTresWords);
  if (word < 0) return {};
  const auto form = std::ranges::find_if(kTresForms, [&](const Form& f) { return f.begins == begins && f.ends == rest; });
  if (form == kTresForms.end()) return {};
  out.name = form->name;
  out.tres = kTresNames[static_cast<std::size_t>(word)];
  return out;
}

std::optional<Explanation> explain_reason(std::string_view reason) {
  const auto found = std::ranges::find(kReasons, reason, &Entry::reason);
  return found == kReasons.end() ? std::nullopt : std::optional(found->text);
}

const LimitKind* limit_kind(std::string_view name) {
  const auto found = std::ranges::find(kLimits, name, &LimitKind::name);
  return found == kLimits.end() ? nullptr : &*found;
}

Explanation explain_limit(const LimitKind& kind) {
  switch (kind.measure) {
    case Measure::kJobs:
      return {"As many jobs run at once as this limit allows.",
              "Wait until one of them ends, or ask an administrator for a higher limit."};
    case Measure::kSubmitted:
      return {"As many jobs run and wait as this limit allows.",
              "Wait until one of them ends, or ask an administrator for a higher limit."};
    case Measure::kTres:
      return {"Together with the jobs that run, it would have more than this limit allows.", kGroupAdvice};
    case Measure::kRunMinutes:
      return {
          "Together with what running jobs may still use up to their time limits, it could use more than this limit allows.",
          "Wait, set a shorter time limit, ask for less, or ask an administrator for a higher limit."};
    case Measure::kUsedMinutes:
      return {"Past jobs have used what this limit allows, or too little is left for this job.", kUsedAdvice};
    case Measure::kUsedWall:
      return {"Past jobs have run as long as this limit allows.", kUsedAdvice};
    case Measure::kJobTres:
      return {"It asks for more than this limit allows one job.", kJobAdvice};
    case Measure::kJobMinutes:
      return {"What it asks for, times its time limit, is more than this limit allows one job.",
              "Waiting does not help: set a shorter time limit, ask for less, or ask an administrator for a higher limit."};
    case Measure::kNodeTres:
      return {"It asks for more on each node than this limit allows one job.", kJobAdvice};
    case Measure::kLeastTres:
      return {"It asks for less than this limit demands of a job.",
              "Waiting does not help: ask for more with `scontrol update job`, or choose another QOS."};
    case Measure::kJobWall:
      return {"Its time limit is longer than this limit allows.",
              "Waiting does not help: set a shorter one with `scontrol update job`, or choose another QOS."};
  }
  std::unreachable();
}

std::optional<Explanation> explain_any_reason(std::string_view reason) {
  const auto named = limit_of_reason(reason);
  return named ? std::optional(explain_limit(*limit_kind(named->name))) : explain_reason(reason);
}

}  // namespace cli
