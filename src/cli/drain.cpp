#include "cli/drain.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/well_known.hpp"
#include "cli/command.hpp"
#include "cli/objects.hpp"
#include "core/hostlist.hpp"
#include "kube/cache/record.hpp"
#include "slinky/names.hpp"
#include "slinky/worker_names.hpp"
#include "slinky/worker_states.hpp"
#include "slinky/workers.hpp"

namespace cli {
namespace {

using core::Json;

constexpr core::Duration kDrainEvery{2000};
/// How long a drain that the pod shows at the first look is not trusted, because the operator might not have processed the
/// request yet. Also the shortest time between two requests to Slurm.
constexpr core::Duration kSettles{10000};
/// The time to wait for a worker while the verdict on its drain is kUnsure.
constexpr core::Duration kUnsureFor{60000};
constexpr std::string_view kNodePrefix = "node/";
constexpr std::string_view kReasonBegins = "drained ";

Json annotations_patch(const kube::PodRecord& pod, const Json& cordon, const Json& reason) {
  return {{"metadata",
           {{"uid", pod.meta.uid},
            {"annotations",
             {{std::string(api::kAnnotationPodCordon), cordon}, {std::string(api::kAnnotationPodCordonReason), reason}}}}}};
}

core::Result<std::vector<kube::PodPtr>> read_workers(Api& api, const std::string& ns) {
  auto pods = api.list({kube::resources::kPod, ns, std::string(api::kLabelName) + "=" + std::string(slinky::kAppWorker)});
  if (!pods) return std::unexpected(pods.error());
  return pod_records(*pods);
}

core::Result<std::vector<kube::PodPtr>> find_workers(Context& context, Api& api, const std::vector<std::string>& words) {
  const auto pods = read_workers(api, context.one_ns());
  if (!pods) return std::unexpected(pods.error());
  auto found = select_workers(words, *pods);
  if (!found && pods->empty()) found.error().message += ": namespace " + context.one_ns() + " has no workers";
  return found;
}

/// Returns the user's name according to the API server, or "".
std::string user_name(Api& api) {
  static const kube::Resource kReview{"authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", false};
  const auto reply = api.create(kReview, {{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}});
  return reply ? core::get_string(*reply, {"status", "userInfo", "username"}) : "";
}

std::vector<std::string> names_of(const std::vector<kube::PodPtr>& pods) {
  std::vector<std::string> out;
  for (const kube::PodPtr& pod : pods) out.push_back(pod->meta.name);
  return out;
}

/// A worker that the command waits for.
struct Awaited {
  kube::PodPtr pod;
  bool looked = false;         ///< The pod has been read at least once since the request.
  core::MonoTime believed{};   ///< From this time on, the state that the pod shows is trusted.
  DrainState shown{};          ///< The state that the pod showed at the last look.
  DrainJudgement judgement{};  ///< kOpen: the drain is not over, or the pod's state has changed since the last judgement.
  std::optional<core::MonoTime> unsure_since{};
  std::string told{};
};

/// Waits until all workers are drained. Prints a line when something changes.
class DrainWait {
 public:
  DrainWait(Context& context, Api& api, const std::vector<kube::PodPtr>& targets) : context_(context), api_(api) {
    for (const kube::PodPtr& pod : targets) awaited_.push_back({pod});
  }

  int run(core::Duration timeout) {
    const core::MonoTime begun = api_.clock().mono();
    const std::string stays = fmt::format("The drain remains. To end it, run `kubectl slurm resume {}`.", list_of_names());
    while (true) {
      const auto pods = read_workers(api_, context_.one_ns());
      if (!pods && !may_pass(pods.error())) return context_.fail(pods.error());
      if (!pods && pods.error().code != core::ErrorCode::kCancelled && !std::exchange(away_, true))
        context_.note("cannot read the state, trying again: " + pods.error().message);
      if (pods) {
        away_ = false;
        look(*pods);
        if (open_ == 0 && lost_ > 0) return kFailed;
        if (open_ == 0 && unclear_ == 0) return kDone;
        if (open_ == 0) {
          context_.note(stays);
          return kNotYet;
        }
      }
      if (timeout.count() > 0 && api_.clock().mono() - begun >= timeout) {
        context_.note(fmt::format("not drained within {}. {}", short_duration(timeout), stays));
        return kNotYet;
      }
      if (!api_.pause(kDrainEvery)) {
        context_.note("interrupted. " + stays);
        return kInterrupted;
      }
    }
  }

 private:
  using Verdict = DrainJudgement::Verdict;

  [[nodiscard]] std::string list_of_names() const {
    std::vector<std::string> names;
    for (const Awaited& worker : awaited_) names.push_back(worker.pod->meta.name);
    return core::compress_hostlist(names);
  }

  void look(const std::vector<kube::PodPtr>& pods) {
    open_ = lost_ = unclear_ = 0;
    // Slurm's answer lists all nodes and jobs of a cluster, so one request is enough for all workers of the cluster.
    const bool ask = api_.clock().mono() >= next_question_;
    std::map<std::string, SlurmFacts> answers;
    for (Awaited& worker : awaited_) {
      const auto now = std::ranges::find(pods, worker.pod->meta.uid, [](const kube::PodPtr& pod) { return pod->meta.uid; });
      const bool gone = now == pods.end();
      if (gone || !slinky::is_true((*now)->meta.annotation(api::kAnnotationPodCordon))) {
        ++lost_;
        tell(worker, gone ? "the pod is gone, and its drain with it" : "somebody resumed it");
      } else {
        look_at(worker, **now, ask, answers);
      }
    }
  }

  void look_at(Awaited& worker, const kube::PodRecord& pod, bool ask, std::map<std::string, SlurmFacts>& answers) {
    const core::MonoTime mono = api_.clock().mono();
    const Said shown = said_of(pod, nullptr);
    const DrainState state = drain_state(shown);
    // At the first look, the pod may show a state from before the request, because the operator may not have seen it yet.
    if (!std::exchange(worker.looked, true) && state != DrainState::kAsked) worker.believed = mono + kSettles;
    if (worker.shown != state) worker.judgement = {};
    worker.shown = state;
    const bool over = state != DrainState::kAsked && state != DrainState::kDraining && mono >= worker.believed;
    if (!over) {
      ++open_;
      worker.judgement = {};
      worker.unsure_since.reset();
      if (state == DrainState::kAsked || state == DrainState::kDraining) tell(worker, drain_text(shown, api_.clock().wall()));
      return;
    }
    if (ask && (worker.judgement.verdict == Verdict::kOpen || worker.judgement.verdict == Verdict::kUnsure))
      judge(worker, pod, answers);
    const bool unsure = worker.judgement.verdict == Verdict::kUnsure;
    if (unsure && !worker.unsure_since) worker.unsure_since = mono;
    if (!unsure) worker.unsure_since.reset();
    const bool given_up = unsure && mono - *worker.unsure_since >= kUnsureFor;
    if (worker.judgement.verdict == Verdict::kNoNode || given_up) {
      ++unclear_;
    } else if (worker.judgement.verdict != Verdict::kOver) {
      ++open_;
    }
    if (!worker.judgement.message.empty()) tell(worker, worker.judgement.message);
  }

  void judge(Awaited& worker, const kube::PodRecord& pod, std::map<std::string, SlurmFacts>& answers) {
    const std::string cluster(pod.meta.label(api::kLabelCluster));
    auto answer = answers.find(cluster);
    if (answer == answers.end()) {
      answer = answers.emplace(cluster, ask_slurm(api_, {pod.meta.ns, cluster})).first;
      next_question_ = api_.clock().mono() + kSettles;
    }
    worker.judgement = judge_drain(pod, answer->second, api_.clock().wall());
  }

  void tell(Awaited& worker, const std::string& line) {
    // The remaining time changes constantly, so a line that differs only in the time is not printed.
    const std::string key = line.substr(0, line.find(" in "));
    if (std::exchange(worker.told, key) != key) context_.note(worker.pod->meta.name + ": " + line);
  }

  Context& context_;
  Api& api_;
  std::vector<Awaited> awaited_;
  core::MonoTime next_question_{};
  std::size_t open_ = 0, lost_ = 0, unclear_ = 0;
  bool away_ = false;
};

struct DrainArguments {
  std::vector<std::string> words;
  std::string reason;
  bool wait = false;
  double timeout = 0;
};

int run_drain(const DrainArguments& given, Context& context) {
  const auto api = context.api();
  if (!api) return context.fail(api.error());
  const auto targets = find_workers(context, **api, given.words);
  if (!targets) return context.fail(targets.error());
  const std::string reason = cordon_reason(user_name(**api), given.reason);
  for (const kube::PodPtr& pod : *targets) {
    if (slinky::is_true(pod->meta.annotation(api::kAnnotationPodCordon))) {
      context.note(pod->meta.name + ": has been drained before");
      continue;
    }
    const auto done = (*api)->patch(kube::resources::kPod, pod->meta.key(), kube::PatchType::kMerge, drain_patch(*pod, reason));
    if (!done) return context.fail(done.error().with(pod->meta.name));
    context.note(pod->meta.name + ": requested the drain in Slurm from the operator, reason: " + reason);
  }
  if (!given.wait) return kDone;
  return DrainWait(context, **api, *targets).run(seconds(given.timeout));
}

/// Reports whether `why` is a reason that the operator writes into Slurm for the cordon of this pod.
bool is_own_cordon(const kube::PodRecord& pod, std::string_view why) {
  return why == slinky::pod_cordon_reason(pod) || why == slinky::plain_cordon_reason(pod);
}

/// Returns the causes on the worker's Kubernetes node for which the operator drains the worker.
std::vector<std::string> causes_of_host(const ResumeFacts& facts) {
  std::vector<std::string> out;
  if (facts.host == nullptr) return out;
  const std::string& name = facts.host->meta.name;
  if (facts.host->unschedulable) out.push_back(fmt::format("Kubernetes node {0} is cordoned (kubectl uncordon {0})", name));
  for (const kube::Taint& taint : facts.host->taints) {
    if (std::ranges::find(api::kDrainTaints, taint.key) != api::kDrainTaints.end())
      out.push_back(fmt::format(
          "Kubernetes node {} has the taint {}, by which another program announces the removal of the node", name, taint.key));
  }
  return out;
}

/// Reports whether the reason in Slurm is about a Kubernetes node that has become schedulable again since.
bool is_over_with_host(const kube::PodRecord& pod, const ResumeFacts& facts, std::string_view why) {
  if (facts.host == nullptr || facts.host->unschedulable) return false;
  if (why == facts.host->meta.annotation(api::kAnnotationNodeCordonReason)) return true;
  const std::string node = "Node (" + pod.node_name + ") ", taint = node + "has the taint ";
  if (why == node + "was cordoned") return true;
  return why.starts_with(taint) &&
         std::ranges::none_of(facts.host->taints, [&](const kube::Taint& has) { return has.key == why.substr(taint.size()); });
}

ResumeFacts read_resume_facts(Api& api, const kube::PodRecord& pod) {
  ResumeFacts out;
  if (!pod.node_name.empty()) {
    const auto host = api.get(kube::resources::kNode, {"", pod.node_name});
    auto record = host ? kube::record_from_json<kube::NodeRecord>(*host) : std::unexpected(host.error());
    if (record) {
      out.host = std::move(*record);
    } else if (record.error().code != core::ErrorCode::kNotFound) {
      out.host_unread = record.error().message;
    }
  }
  const std::string nodeset(pod.meta.label(api::kLabelInstance));
  if (const auto object = api.get(slinky::resources::kNodeSet, {pod.meta.ns, nodeset});
      object && core::get_int(*object, {"status", "desired"}) < core::get_int(*object, {"status", "replicas"}))
    out.scales_in = nodeset;
  // An external slurmctld has no pod in this Kubernetes cluster, so users run scontrol without kubectl exec.
  const std::string cluster(pod.meta.label(api::kLabelCluster));
  const auto controller = api.get(slinky::resources::kController, {pod.meta.ns, cluster});
  const bool here = controller && !core::get_bool(*controller, {"spec", "external"});
  if (here)
    out.scontrol =
        fmt::format("kubectl -n {} exec {}-0 -c slurmctld -- ", pod.meta.ns, slinky::controller_object_name(cluster));
  out.scontrol += "scontrol";
  return out;
}

int run_resume(const std::vector<std::string>& words, Context& context) {
  const auto api = context.api();
  if (!api) return context.fail(api.error());
  const auto targets = find_workers(context, **api, words);
  if (!targets) return context.fail(targets.error());
  bool refused = false;
  for (const kube::PodPtr& pod : *targets) {
    const ResumeJudgement judgement = judge_resume(*pod, read_resume_facts(**api, *pod));
    if (judgement.remove) {
      const auto done = (*api)->patch(kube::resources::kPod, pod->meta.key(), kube::PatchType::kMerge, resume_patch(*pod));
      if (!done) return context.fail(done.error().with(pod->meta.name));
    }
    context.note(pod->meta.name + ": " + judgement.message);
    refused = refused || judgement.refused;
  }
  return refused ? kRefused : kDone;
}

}  // namespace

core::Result<std::vector<kube::PodPtr>> select_workers(const std::vector<std::string>& words,
                                                       const std::vector<kube::PodPtr>& workers) {
  std::vector<kube::PodPtr> out;
  std::set<std::string> taken;
  const auto found = [&](const auto& wanted) {
    std::vector<kube::PodPtr> matches;
    std::ranges::copy_if(workers, std::back_inserter(matches), [&](const kube::PodPtr& pod) { return wanted(*pod); });
    return matches;
  };
  const auto take = [&](const std::vector<kube::PodPtr>& matches) {
    for (const kube::PodPtr& pod : matches) {
      if (taken.insert(pod->meta.uid).second) out.push_back(pod);
    }
    return !matches.empty();
  };
  const auto on_host = [&](std::string_view host) {
    return found([&](const kube::PodRecord& pod) { return pod.node_name == host; });
  };
  for (const std::string& word : words) {
    if (word.starts_with(kNodePrefix)) {
      const std::string_view node = std::string_view(word).substr(kNodePrefix.size());
      if (!take(on_host(node)))
        return core::fail(core::ErrorCode::kNotFound, fmt::format("no worker is on Kubernetes node {}", node));
      continue;
    }
    const auto names = core::expand_hostlist(word);
    if (!names) return std::unexpected(names.error().with(word));
    for (const std::string& name : *names) {
      auto named = found([&](const kube::PodRecord& pod) { return pod.meta.name == name; });
      if (named.empty()) named = found([&](const kube::PodRecord& pod) { return slinky::slurm_node_name(pod) == name; });
      if (named.size() > 1)
        return core::fail(core::ErrorCode::kInvalid,
                          fmt::format("{} is the Slurm node of several workers: {}. Name their pods.", name,
                                      core::compress_hostlist(names_of(named))));
      if (take(named) || take(on_host(name))) continue;
      return core::fail(
          core::ErrorCode::kNotFound,
          fmt::format("{} is neither a worker, nor the Slurm node of a worker, nor a Kubernetes node with workers", name));
    }
  }
  return out;
}

DrainState drain_state(const Said& said) {
  if (said.missing) return DrainState::kNoNode;
  const slurm::NodeState& state = said.word->state;
  const bool drains = state.has("DRAIN");
  const bool out = state.base == "DOWN" || state.has("FAIL");
  if (state.has("UNDRAIN") || !(drains || out)) return DrainState::kAsked;
  const bool works = state.base == "ALLOCATED" || state.base == "MIXED" || state.has("COMPLETING");
  if (works || said.deadline.busy) return DrainState::kDraining;
  return drains ? DrainState::kDrained : DrainState::kOut;
}

std::string drain_text(const Said& said, core::WallTime now) {
  switch (drain_state(said)) {
    case DrainState::kAsked:
      return "waits for Slurm to drain it";
    case DrainState::kDrained:
      return "drained";
    case DrainState::kOut:
      return fmt::format("is {} in Slurm and runs nothing, which counts as drained", state_text(said.word->state));
    case DrainState::kNoNode:
      return "has no node in Slurm";
    case DrainState::kDraining:
      break;
  }
  const std::string ends = deadline_text(said.deadline, now);
  if (ends == "no limit") return "draining, a job without time limit runs there";
  return "draining" + (ends.empty() ? "" : ", its last job ends at the latest " + ends);
}

DrainJudgement judge_drain(const kube::PodRecord& pod, const SlurmFacts& slurm, core::WallTime now) {
  using Verdict = DrainJudgement::Verdict;
  const Said said = said_of(pod, &slurm);
  const DrainState state = drain_state(said);
  DrainJudgement out{Verdict::kOpen, drain_text(said, now)};
  if (state == DrainState::kNoNode) out.verdict = Verdict::kNoNode;
  if (state != DrainState::kDrained && state != DrainState::kOut) return out;
  const DrainOwner owner = drain_owner(said.word->reason);
  if (slurm.known() || (state == DrainState::kDrained && owner.ours && !owner.others && is_own_cordon(pod, owner.why))) {
    out.verdict = Verdict::kOver;
    return out;
  }
  return {Verdict::kUnsure,
          fmt::format("its pod shows {}{}, which may be older than this drain, and Slurm cannot be queried: {}",
                      state_text(said.word->state), said.word->reason.empty() ? "" : " (" + said.word->reason + ")",
                      slurm.why_not)};
}

std::string cordon_reason(std::string_view user, std::string_view text) {
  std::string out(kReasonBegins);
  out += user.empty() ? "with kubectl slurm" : "by " + std::string(user);
  return text.empty() ? out : out + ": " + std::string(text);
}

Json drain_patch(const kube::PodRecord& pod, std::string_view reason) {
  return annotations_patch(pod, "true", reason);
}

Json resume_patch(const kube::PodRecord& pod) {
  return annotations_patch(pod, nullptr, nullptr);
}

ResumeJudgement judge_resume(const kube::PodRecord& pod, const ResumeFacts& facts) {
  ResumeJudgement out;
  out.remove = !pod.meta.annotation(api::kAnnotationPodCordon).empty();
  std::vector<std::string> causes = causes_of_host(facts);
  if (pod.meta.terminating()) causes.emplace_back("its pod is being deleted");
  if (slinky::is_true(pod.meta.annotation(api::kAnnotationPodCordonRequested)))
    causes.push_back(fmt::format("the annotation {0} of its pod also requires the drain (kubectl -n {1} annotate pod {2} {0}-)",
                                 api::kAnnotationPodCordonRequested, pod.meta.ns, pod.meta.name));
  const auto word = slurm_word(pod);
  const bool drained = word && (word->state.has("DRAIN") || word->state.base == "DOWN" || word->state.has("FAIL"));
  const DrainOwner owner = drained ? drain_owner(word->reason) : DrainOwner{};
  // If the pod lacks the annotation of the drain, a reason of the operator belongs to a drain that was just cancelled.
  const bool own = is_own_cordon(pod, owner.why) || (!out.remove && owner.why.starts_with(kReasonBegins));
  if (owner.others) {
    causes.push_back(fmt::format(
        "in Slurm it is {}, set by {}{}. If you are sure that it can serve again, run: {} update nodename={} state=resume",
        state_text(word->state), owner.who, word->reason.empty() ? "" : " (" + word->reason + ")", facts.scontrol,
        slinky::slurm_node_name(pod)));
  } else if (drained && causes.empty() && !own && !is_over_with_host(pod, facts, owner.why)) {
    // The other cause is, for example, an update or a scale-in.
    causes.push_back(fmt::format("the operator drains it for another cause ({}), and resumes it when that ends", owner.why));
  }
  if (!causes.empty()) {
    out.refused = true;
    out.message = out.remove ? "the drain of its pod is removed, but it stays out of service: " : "stays out of service: ";
    for (const std::string& cause : causes) out.message += (&cause == &causes.front() ? "" : "; ") + cause;
  } else if (!drained && !out.remove) {
    out.message = "is not drained";
  } else if (!facts.host_unread.empty()) {
    out.message = fmt::format(
        "the drain of its pod is removed; whether Kubernetes node {} is cordoned, which would keep it drained, cannot be read: "
        "{}",
        pod.node_name, facts.host_unread);
  } else if (!facts.scales_in.empty()) {
    out.message = fmt::format("resumed, unless it is one of the workers that are scaled in: NodeSet {} is being scaled in",
                              facts.scales_in);
  } else {
    out.message = "resumed";
  }
  return out;
}

Command drain_command() {
  const auto declare = [](CLI::App& app) -> Run {
    auto given = std::make_shared<DrainArguments>();
    app.add_option("WORKER", given->words,
                   "A pod, a Slurm node, a hostlist (cpu-[0-3]), or node/NAME for all workers on a Kubernetes node")
        ->required();
    app.add_option("--reason", given->reason, "Shown in Slurm, with your name");
    app.add_flag("--wait", given->wait, "Wait until the last job has ended");
    add_timeout(app, given->timeout, "With --wait: the longest time to wait");
    return [given](Context& context) -> int { return run_drain(*given, context); };
  };
  return {.path = "drain",
          .about = "Let running jobs end on workers, and start no new ones there",
          .names = Names::kWorkers,
          .declare = declare};
}

Command resume_command() {
  const auto declare = [](CLI::App& app) -> Run {
    auto words = std::make_shared<std::vector<std::string>>();
    app.add_option("WORKER", *words, "The same names as for drain")->required();
    return [words](Context& context) -> int { return run_resume(*words, context); };
  };
  return {
      .path = "resume", .about = "End a drain that was made with kubectl slurm", .names = Names::kWorkers, .declare = declare};
}

}  // namespace cli
