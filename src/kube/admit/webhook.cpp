#include "kube/admit/webhook.hpp"

#include "core/base64.hpp"

namespace kube {

namespace {

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";
constexpr std::string_view kKind = "AdmissionReview";

net::HttpResponse plain(int status, std::string text) {
  return {status, {{"content-type", "text/plain; charset=utf-8"}}, std::move(text) + "\n"};
}

core::Json member(const core::Json& object, const char* name) {
  const auto it = object.find(name);
  return it == object.end() ? core::Json() : *it;
}

core::Result<AdmissionRequest> parse_review(const std::string& body) {
  const auto bad = [](const std::string& why) {
    return core::fail(core::ErrorCode::kInvalid, "not an AdmissionReview of admission.k8s.io/v1: " + why);
  };
  const auto json = core::parse_json(body);
  if (!json) return bad(json.error().message);
  if (core::get_string(*json, {"apiVersion"}) != kApiVersion || core::get_string(*json, {"kind"}) != kKind) {
    return bad("apiVersion \"" + core::get_string(*json, {"apiVersion"}) + "\", kind \"" + core::get_string(*json, {"kind"}) +
               "\"");
  }
  const core::Json* asked = core::find(*json, {"request"});
  if (asked == nullptr || !asked->is_object()) return bad("it has no request");
  AdmissionRequest request;
  request.uid = core::get_string(*asked, {"uid"});
  request.operation = core::get_string(*asked, {"operation"});
  if (request.uid.empty() || request.operation.empty()) return bad("its request has no uid or no operation");
  request.group = core::get_string(*asked, {"kind", "group"});
  request.version = core::get_string(*asked, {"kind", "version"});
  request.kind = core::get_string(*asked, {"kind", "kind"});
  request.resource = core::get_string(*asked, {"resource", "resource"});
  request.subresource = core::get_string(*asked, {"subResource"});
  request.key = {core::get_string(*asked, {"namespace"}), core::get_string(*asked, {"name"})};
  request.user = core::get_string(*asked, {"userInfo", "username"});
  if (const core::Json* groups = core::find(*asked, {"userInfo", "groups"}); groups != nullptr && groups->is_array()) {
    for (const core::Json& group : *groups) {
      if (group.is_string()) request.groups.push_back(group.get<std::string>());
    }
  }
  request.dry_run = core::get_bool(*asked, {"dryRun"});
  request.object = member(*asked, "object");
  request.old_object = member(*asked, "oldObject");
  return request;
}

std::string text(const core::Json& json) {
  return json.dump(-1, ' ', false, core::Json::error_handler_t::replace);
}

core::Json response_json(const AdmissionRequest& request, const AdmissionVerdict& verdict) {
  core::Json response = {{"uid", request.uid}, {"allowed", verdict.allowed}};
  if (!verdict.allowed) response["status"] = {{"code", verdict.code}, {"message", verdict.message}};
  if (!verdict.warnings.empty()) response["warnings"] = verdict.warnings;
  if (verdict.allowed && verdict.patch.is_array() && !verdict.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = core::base64_encode(text(verdict.patch));
  }
  return {{"apiVersion", kApiVersion}, {"kind", kKind}, {"response", std::move(response)}};
}

bool is_json(const net::HttpRequest& request) {
  const auto type = request.headers.find("content-type");
  return type != request.headers.end() && type->second.substr(0, type->second.find(';')) == "application/json";
}

}  // namespace

net::HttpResponse answer_review(const Review& review, const net::HttpRequest& request) {
  if (request.method != "POST") return plain(405, "only POST");
  if (!is_json(request)) return plain(415, "only application/json");
  const auto asked = parse_review(request.body);
  if (!asked) return plain(400, asked.error().message);
  try {
    return {200, {{"content-type", "application/json"}}, text(response_json(*asked, review(*asked)))};
  } catch (...) {
    return plain(500, "the review failed: this is a bug");
  }
}

struct WebhookServer::Impl {
  Impl(net::AsioLoop& in_loop, core::Logger& in_logger, WebhookOptions given, std::map<std::string, Review> all)
      : loop(in_loop), logger(in_logger), options(std::move(given)), reviews(std::move(all)) {
    if (options.files) files.emplace(loop, *options.files, [this](const net::Tls& tls) { return take(tls); });
  }

  net::AsioLoop& loop;
  core::Logger& logger;
  WebhookOptions options;
  std::map<std::string, Review> reviews;
  std::optional<net::TlsFiles> files;
  std::unique_ptr<net::HttpServer> server;  ///< Null before start() or set_certificate().

  core::Result<void> start() {
    auto tls = files->read();
    if (!tls) return std::unexpected(tls.error().with("webhook certificate"));
    if (auto started = serve(*std::move(tls)); !started) return started;
    files->watch([this](const core::Error& error) {
      logger.warn("webhook: the certificate cannot be used, continuing with the previous one", {core::error_field(error)});
    });
    return {};
  }

  core::Result<void> serve(net::Tls tls) {
    net::ServerOptions listen = options.listen;
    listen.use_tls = true;
    listen.tls = std::move(tls);
    auto made = std::make_unique<net::HttpServer>(
        loop, std::move(listen),
        [this](const net::HttpRequest& request, net::Responder responder) { responder.respond(answer(request)); });
    if (auto started = made->start(); !started) return std::unexpected(started.error().with("webhook"));
    server = std::move(made);
    return {};
  }

  core::Result<void> take(const net::Tls& tls) {
    auto taken = server->set_tls(tls);
    if (taken) logger.info("webhook: new certificate");
    return taken;
  }

  net::HttpResponse answer(const net::HttpRequest& request) {
    // The API server adds "?timeout=10s" to the path.
    const auto review = reviews.find(request.target.substr(0, request.target.find('?')));
    if (review == reviews.end()) return plain(404, "no such review");
    net::HttpResponse response = answer_review(review->second, request);
    if (response.status == 500) logger.error("a review failed: this is a bug", {{"path", review->first}});
    return response;
  }
};

WebhookServer::WebhookServer(net::AsioLoop& loop, core::Logger& logger, WebhookOptions options,
                             std::map<std::string, Review> reviews)
    : impl_(std::make_unique<Impl>(loop, logger, std::move(options), std::move(reviews))) {}

WebhookServer::~WebhookServer() = default;

core::Result<void> WebhookServer::start() {
  return impl_->start();
}

core::Result<void> WebhookServer::set_certificate(net::Tls tls) {
  return impl_->server ? impl_->take(tls) : impl_->serve(std::move(tls));
}

void WebhookServer::stop(std::function<void()> done) {
  if (!impl_->server) {
    impl_->loop.after(core::Duration{0}, std::move(done));
    return;
  }
  impl_->server->drain(impl_->options.grace, std::move(done));
}

std::uint16_t WebhookServer::port() const {
  return impl_->server ? impl_->server->port() : 0;
}

}  // namespace kube
