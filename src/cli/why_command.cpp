#include <CLI/CLI.hpp>

#include "cli/command.hpp"
#include "cli/why_pod.hpp"
#include "cli/why_target.hpp"

namespace cli {
namespace {

int show(const Context& context, const core::Json& document, const std::function<std::string()>& text) {
  context.out(context.options().format == Format::kTable ? text() : render(document, context.options().format));
  return kDone;
}

int explain_job(Context& context, Api& api, const kube::Key& controller, const JobName& name) {
  const auto cluster = reach_cluster(api, controller);
  if (!cluster) return context.fail(cluster.error());
  const auto facts = read_why(api, *cluster, name);
  if (!facts) return context.fail(facts.error());
  const core::Json document = why_document(*facts);
  return show(context, document, [&] { return why_text(document, context.style(), facts->cluster.now); });
}

int explain_pod(Context& context, Api& api, const std::optional<kube::Key>& controller, const PodName& pod) {
  const auto facts = read_pod_facts(api, {context.one_ns(), pod.name}, controller);
  if (!facts) return context.fail(facts.error());
  const core::Json document = why_pod_document(*facts);
  return show(context, document, [&] { return why_pod_text(document, context.style(), facts->now); });
}

int run_why(Context& context, const std::vector<std::string>& words, const std::string& cluster) {
  const auto target = read_target(words);
  auto controller = target ? read_cluster(cluster, *target) : core::Result<kube::Key>(std::unexpected(target.error()));
  if (!controller) {
    context.note("error: " + controller.error().message);
    return kUsage;
  }
  const auto api = context.api();
  if (!api) return context.fail(api.error());
  if (const auto* pod = std::get_if<PodName>(&*target))
    return explain_pod(context, **api, cluster.empty() ? std::nullopt : std::optional(*controller), *pod);
  if (controller->ns.empty()) controller->ns = context.one_ns();
  return explain_job(context, **api, *controller, std::get<JobName>(*target));
}

}  // namespace

Command why_command() {
  const auto declare = [](CLI::App& app) -> Run {
    struct Arguments {
      std::vector<std::string> what;
      std::string cluster;
    };
    auto given = std::make_shared<Arguments>();
    app.add_option("JOB|pod/NAME", given->what, "The number of a job, 12_3 for a task of an array, or a pod of slurm-bridge")
        ->required()
        ->expected(1, 2);
    app.add_option("--cluster,--controller", given->cluster,
                   "A Controller, as NAME or NAMESPACE/NAME (default: the only one of the namespace, or that of slurm-bridge)");
    return [given](Context& context) -> int { return run_why(context, given->what, given->cluster); };
  };
  return {.path = "why",
          .about = "Why a job or a pod waits: the limit that holds it, or another reason, and when it may start",
          .names = Names::kWaitingPods,
          .formats = true,
          .declare = declare};
}

}  // namespace cli
