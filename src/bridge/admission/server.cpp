#include "bridge/admission/server.hpp"

#include <algorithm>
#include <utility>

#include "bridge/admission/review.hpp"
#include "bridge/common/names.hpp"
#include "kube/admission.hpp"
#include "kube/admit/serving_certificate.hpp"
#include "kube/admit/webhook.hpp"
#include "kube/cache/record.hpp"

namespace bridge::admission {
namespace {

kube::WebhookOptions webhook_options(const net::ServerOptions& listen) {
  kube::WebhookOptions out;
  out.listen.address = listen.address;
  out.listen.port = listen.port;
  return out;
}

kube::ServingCertificateOptions certificate_options(const ServerOptions& options) {
  const kube::Key key{options.ns, options.name};
  return {.program = std::string(kProgram), .secret = key, .service = key, .configuration = options.name};
}

/// Reads the pod of a request. Kubernetes might not have generated the name of the pod yet.
core::Result<std::shared_ptr<const kube::SchedulingPodRecord>> pod_in(core::Json object) {
  if (!object.is_object()) return core::fail(core::ErrorCode::kInvalid, "the request has no pod");
  if (core::get_string(object, {"metadata", "name"}).empty()) object["metadata"]["name"] = "generated";
  return kube::record_from_json<kube::SchedulingPodRecord>(object);
}

kube::AdmissionVerdict refuse(std::string message, int code) {
  kube::AdmissionVerdict out = kube::refuse(std::move(message));
  out.code = code;
  return out;
}

}  // namespace

struct Server::Impl {
  Impl(net::AsioLoop& loop, core::Logger& log, kube::Manager& in_manager, Settings in_settings, const ServerOptions& options)
      : manager(in_manager),
        settings(std::move(in_settings)),
        too_old(options.too_old),
        classes(in_manager.cache<kube::Object>(kube::resources::kPriorityClass)),
        webhook(loop, log, webhook_options(options.listen),
                {{kPath, [this](const kube::AdmissionRequest& request) { return answer(request); }}}),
        certificate(loop, log, in_manager.client(), certificate_options(options),
                    [this](const net::Tls& tls) { return webhook.set_certificate(tls); }) {}

  [[nodiscard]] kube::AdmissionVerdict answer(const kube::AdmissionRequest& request) const {
    if (!manager.synced()) return refuse("slurm-bridge is starting: try again", 503);
    const auto pod = pod_in(request.object);
    if (!pod) return refuse(pod.error().message, 400);
    return review({request, **pod, is_default((*pod)->priority_class), settings, too_old()});
  }

  [[nodiscard]] bool is_default(const std::string& name) const {
    const auto found = classes.find({"", name});
    return found != nullptr && core::get_bool(found->body, {"globalDefault"});
  }

  kube::Manager& manager;
  Settings settings;
  std::function<std::string()> too_old;
  kube::Cache<kube::Object>& classes;
  kube::WebhookServer webhook;
  kube::ServingCertificate certificate;
};

Server::Server(net::AsioLoop& loop, core::Logger& log, kube::Manager& manager, Settings settings, ServerOptions options)
    : impl_(std::make_unique<Impl>(loop, log, manager, std::move(settings), options)) {}
Server::~Server() = default;

void Server::start() {
  impl_->certificate.start();
}

bool Server::ready() const {
  return impl_->certificate.serves();
}

void Server::stop(std::function<void()> done) {
  impl_->webhook.stop(std::move(done));
}

std::uint16_t Server::port() const {
  return impl_->webhook.port();
}

}  // namespace bridge::admission
