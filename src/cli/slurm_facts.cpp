#include "cli/slurm_facts.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base64.hpp"
#include "slinky/serving.hpp"
#include "slinky/status.hpp"
#include "slinky/worker_names.hpp"
#include "slinky/workers.hpp"
#include "slurm/rest/client.hpp"

namespace cli {
namespace {

/// Sends requests for slurmrestd to the API server, which forwards them.
class ServiceProxy final : public net::HttpTransport {
 public:
  ServiceProxy(Session& session, const std::string& ns, const std::string& service, int port)
      : session_(session),
        prefix_(fmt::format("{}/api/v1/namespaces/{}/services/{}:{}/proxy", session.credentials().base_path(), ns, service,
                            port)) {}

  RequestId send(net::HttpRequest request, Done done) override {
    return session_.transport().send(through(std::move(request)), std::move(done));
  }
  RequestId stream(net::HttpRequest request, net::StreamHandler handler) override {
    return session_.transport().stream(through(std::move(request)), std::move(handler));
  }
  void cancel(RequestId id) override { session_.transport().cancel(id); }

 private:
  [[nodiscard]] net::HttpRequest through(net::HttpRequest request) const {
    request.target = prefix_ + request.target;
    // The API server consumes this header. slurmrestd identifies the user by one of its own.
    if (const auto token = session_.credentials().token(); token && !token->empty())
      request.headers["authorization"] = "Bearer " + *token;
    return request;
  }

  Session& session_;
  std::string prefix_;
};

/// How long to wait for a slurmrestd that does not answer.
constexpr core::Duration kPatience{6000};
/// The operator uses this user as well. It may see all jobs.
constexpr const char* kUser = "slurm";

slinky::ServingObserved serving_facts(const core::Json& controller, const std::vector<core::Json>& restapis) {
  slinky::ServingObserved out;
  out.meta = kube::parse_meta(controller);
  if (auto read = api::from_json<api::Controller>(controller)) out.controller = std::move(*read);
  for (const core::Json& restapi : restapis) {
    if (core::get_string(restapi, {"spec", "controllerRef", "name"}) != out.meta->name) continue;
    slinky::Server& server = out.servers.emplace_back(slinky::Server{kube::parse_meta(restapi), std::nullopt, false});
    auto read = api::from_json<api::RestApi>(restapi);
    if (!read) continue;
    const api::Condition* ready = api::find_condition(read->status.conditions, api::kConditionReady);
    server.ready = ready != nullptr && ready->status == api::ConditionStatus::kTrue;
    server.restapi = std::move(*read);
  }
  return out;
}

SlurmFacts unknown(std::string why) {
  SlurmFacts out;
  out.why_not = std::move(why);
  return out;
}

}  // namespace

const slurm::Node* SlurmFacts::node(std::string_view name) const {
  const auto found = std::ranges::find_if(nodes, [&](const auto& node) { return node->name == name; });
  return found == nodes.end() ? nullptr : found->get();
}

std::vector<const slurm::Job*> SlurmFacts::jobs_on(std::string_view node) const {
  std::vector<const slurm::Job*> out;
  for (const auto& job : jobs) {
    if (job->holds_nodes() && (job->nodes_unknown || job->holds(node))) out.push_back(job.get());
  }
  return out;
}

Said said_of(const kube::PodRecord& pod, const SlurmFacts* slurm) {
  Said out{slurm_word(pod)};
  if (slurm == nullptr || !slurm->known()) {
    out.missing = !out.word || slinky::missing_since(pod);
    out.deadline = deadline_of(pod);
    return out;
  }
  const std::string name = slinky::slurm_node_name(pod);
  const slurm::Node* record = slurm->node(name);
  out.missing = record == nullptr;
  out.word = record == nullptr ? std::nullopt : std::optional(SlurmWord{record->state, record->reason});
  const auto jobs = slurm->jobs_on(name);
  out.jobs = jobs.size();
  out.deadline = {!jobs.empty(), core::WallTime{}};
  for (const slurm::Job* job : jobs) {
    out.ids.push_back(job->id);
    if (!job->end) out.deadline.at.reset();
    if (out.deadline.at) out.deadline.at = std::max(*out.deadline.at, *job->end);
  }
  return out;
}

SlurmFacts ask_slurm(Api& api, const core::Json& controller, const std::vector<core::Json>& restapis) {
  const slinky::ServingObserved observed = serving_facts(controller, restapis);
  const std::optional<slinky::Serving> serving = slinky::plan_serving(observed);
  if (!serving) return unknown("no RestApi belongs to this cluster");
  const auto secret = api.get(kube::resources::kSecret, {observed.meta->ns, serving->key.secret});
  if (!secret) return unknown(fmt::format("the JWT key cannot be read: {}", secret.error().message));
  const auto key = core::base64_decode(core::get_string(*secret, {"data", serving->key.key}));
  if (!key || key->empty())
    return unknown(fmt::format("Secret {} has no JWT key under {}", serving->key.secret, serving->key.key));

  ServiceProxy proxy(api.session(), observed.meta->ns, slinky::restapi_object_name(serving->restapi), serving->endpoint.port);
  slurm::Hs256Tokens tokens(api.clock(), *key, kUser);
  core::NullLogger log;
  slurm::ClientOptions options;
  options.read_timeout = kPatience;
  options.job_details = true;
  slurm::Client client(api.session().loop(), proxy, tokens, log, options);
  const auto connected = api.await<slurm::Capabilities>([&](auto done) { client.connect(std::move(done)); });
  if (!connected) return unknown("Slurm does not answer: " + slinky::one_line(connected.error().message));
  // Read nodes first: a draining node takes no new job, so jobs that are read later are all that it has.
  auto nodes = api.await<slurm::Table<slurm::Node>>([&](auto done) { client.nodes({}, std::move(done)); });
  if (!nodes) return unknown("Slurm does not answer: " + slinky::one_line(nodes.error().message));
  auto jobs = api.await<slurm::Table<slurm::Job>>([&](auto done) { client.jobs({}, std::move(done)); });
  if (!jobs) return unknown("Slurm does not answer: " + slinky::one_line(jobs.error().message));
  SlurmFacts out;
  out.release = connected->release;
  out.nodes = std::move(nodes->rows);
  out.jobs = std::move(jobs->rows);
  return out;
}

SlurmFacts ask_slurm(Api& api, const kube::Key& controller) {
  const auto object = api.get(slinky::resources::kController, controller);
  if (!object) return unknown("Controller " + controller.str() + " cannot be read: " + object.error().message);
  const auto restapis = api.list({slinky::resources::kRestApi, controller.ns});
  if (!restapis) return unknown(restapis.error().message);
  return ask_slurm(api, *object, *restapis);
}

}  // namespace cli
