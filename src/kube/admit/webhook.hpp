// An admission webhook: calls a function of ours for each AdmissionReview (admission.k8s.io/v1), and returns the verdict.
//
//   kube::WebhookServer webhook(loop, logger, {.files = {{cert_file, key_file}}},
//                               {{"/validate-pods", [](const kube::AdmissionRequest& request) {
//                                   return request.object.contains("spec") ? kube::admit() : kube::refuse("no spec");
//                                 }}});
//   if (auto started = webhook.start(); !started) ...
//   webhook.stop([&] { ... });   // requests under way are answered
//
// The function runs on the loop, so it must be quick. It decides from the request and from caches. Use a webhook only for
// rules that neither the schema nor CEL can express. If the webhook does not answer, failurePolicy in the
// ValidatingWebhookConfiguration decides whether the API server allows the request.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/log.hpp"
#include "kube/admission.hpp"
#include "net/http_server.hpp"
#include "net/tls_files.hpp"

namespace kube {

using Review = std::function<AdmissionVerdict(const AdmissionRequest&)>;

/// Answers one HTTP request with the verdict of `review`. Returns the status 405 if the method is not POST, 415 if the content
/// type is not JSON, 400 if the body is not an AdmissionReview v1, and 500 if `review` throws (a bug).
net::HttpResponse answer_review(const Review& review, const net::HttpRequest& request);

struct WebhookOptions {
  /// The address to listen on, and limits. The server itself sets `use_tls` and `tls`. The API server accepts objects of 3
  /// MiB, and sends the old and the new object. The API server opens one connection for each concurrent request.
  net::ServerOptions listen{.max_request_bytes = 7UL << 20, .max_connections = 64};
  /// The files of the certificate and the key. New connections use the newest contents. nullopt: call set_certificate().
  std::optional<net::TlsFilesOptions> files{};
  core::Duration grace{10000};  ///< How long stop() waits for requests under way.
};

class WebhookServer {
 public:
  /// `reviews` maps the path of a webhook to the function that answers its requests.
  WebhookServer(net::AsioLoop& loop, core::Logger& logger, WebhookOptions options, std::map<std::string, Review> reviews);
  ~WebhookServer();

  /// Starts to serve with the certificate in `files`. Errors: those of reading the files and of net::HttpServer::start.
  core::Result<void> start();
  /// Sets the certificate for new connections. The first call starts to serve. Call it only if `files` is not set. Errors:
  /// those of net::HttpServer::start and net::HttpServer::set_tls; the previous certificate then stays in use.
  core::Result<void> set_certificate(net::Tls tls);
  /// Refuses new connections, answers requests under way within the grace period, then calls `done`.
  void stop(std::function<void()> done);
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
