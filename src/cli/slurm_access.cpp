#include "cli/slurm_access.hpp"

#include <fmt/format.h>

#include "core/base64.hpp"
#include "slinky/serving.hpp"
#include "slinky/status.hpp"

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
    // The API server consumes this header. slurmrestd identifies the user by headers of its own.
    if (const auto token = session_.credentials().token(); token && !token->empty())
      request.headers["authorization"] = "Bearer " + *token;
    return request;
  }

  Session& session_;
  std::string prefix_;
};

/// The time to wait for a slurmrestd that does not answer.
constexpr core::Duration kPatience{6000};
/// The Slurm user of the requests, who may see all jobs. The operator uses this user as well.
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

class ProxiedAccess final : public SlurmAccess {
 public:
  ProxiedAccess(Api& api, const std::string& ns, const slinky::Serving& serving, std::string key)
      : proxy_(api.session(), ns, slinky::restapi_object_name(serving.restapi), serving.endpoint.port),
        tokens_(api.clock(), std::move(key), kUser),
        client_(api.session().loop(), proxy_, tokens_, log_, options()) {}

  core::Result<void> connect(Api& api) {
    auto connected = await<slurm::Capabilities>(api, [&](auto done) { client_.connect(std::move(done)); });
    if (!connected) return std::unexpected(connected.error());
    capabilities_ = std::move(*connected);
    return {};
  }
  slurm::Client& client() override { return client_; }
  [[nodiscard]] const slurm::Capabilities& capabilities() const override { return capabilities_; }

 private:
  static slurm::ClientOptions options() {
    slurm::ClientOptions out;
    out.read_timeout = kPatience;
    out.job_details = true;
    return out;
  }

  ServiceProxy proxy_;
  slurm::Hs256Tokens tokens_;
  core::NullLogger log_;
  slurm::Client client_;
  slurm::Capabilities capabilities_;
};

}  // namespace

core::Error SlurmAccess::no_answer(const core::Error& error) {
  core::Error out = error;
  if (error.code == core::ErrorCode::kCancelled) return out;
  out.message = "Slurm does not answer: " + slinky::one_line(error.message);
  // Replaces kUnavailable, which would mean that the API server does not answer. Here the API server has answered.
  if (out.code == core::ErrorCode::kUnavailable) out.code = core::ErrorCode::kInternal;
  return out;
}

std::optional<kube::Key> controller_key(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == text.npos || slash == 0 || slash + 1 == text.size() || text.find('/', slash + 1) != text.npos)
    return std::nullopt;
  return kube::Key{std::string(text.substr(0, slash)), std::string(text.substr(slash + 1))};
}

core::Result<core::Json> one_controller(const std::vector<core::Json>& controllers, const std::string& ns,
                                        const std::string& name) {
  if (name.empty() && controllers.size() == 1) return controllers.front();
  std::string names;
  for (const core::Json& controller : controllers) {
    const std::string found = kube::key_of(controller).name;
    if (found == name) return controller;
    names += (names.empty() ? "" : ", ") + found;
  }
  if (!name.empty())
    return core::fail(core::ErrorCode::kNotFound, fmt::format("there is no cluster (Controller) {} in namespace {}", name, ns));
  if (controllers.empty()) {
    return core::fail(core::ErrorCode::kNotFound,
                      fmt::format("there is no cluster (Controller) in namespace {}; -n names another namespace", ns));
  }
  return core::fail(core::ErrorCode::kInvalid,
                    fmt::format("namespace {} has several clusters: name one with --cluster ({})", ns, names));
}

core::Result<ReachedCluster> reach_cluster(Api& api, const kube::Key& controller) {
  auto lists = api.lists({{slinky::resources::kController, controller.ns}, {slinky::resources::kRestApi, controller.ns}});
  for (const auto& list : lists) {
    if (!list) return std::unexpected(list.error());
  }
  auto found = one_controller(*lists[0], controller.ns, controller.name);
  if (!found) return std::unexpected(found.error());
  auto slurm = reach_slurm(api, *found, *lists[1]);
  if (!slurm) return std::unexpected(slurm.error());
  return ReachedCluster{std::move(*found), std::move(*slurm)};
}

core::Result<std::unique_ptr<SlurmAccess>> reach_slurm(Api& api, const core::Json& controller,
                                                       const std::vector<core::Json>& restapis) {
  const slinky::ServingObserved observed = serving_facts(controller, restapis);
  const std::optional<slinky::Serving> serving = slinky::plan_serving(observed);
  if (!serving) return core::fail(core::ErrorCode::kNotFound, "no RestApi belongs to this cluster");
  const auto secret = api.get(kube::resources::kSecret, {observed.meta->ns, serving->key.secret});
  if (!secret) {
    core::Error error = secret.error();
    error.message = "the JWT key cannot be read: " + error.message;
    return std::unexpected(std::move(error));
  }
  const auto key = core::base64_decode(core::get_string(*secret, {"data", serving->key.key}));
  if (!key || key->empty()) {
    return core::fail(core::ErrorCode::kNotFound,
                      fmt::format("Secret {} has no JWT key under {}", serving->key.secret, serving->key.key));
  }
  auto out = std::make_unique<ProxiedAccess>(api, observed.meta->ns, *serving, *key);
  if (const auto connected = out->connect(api); !connected) return std::unexpected(connected.error());
  return out;
}

}  // namespace cli
