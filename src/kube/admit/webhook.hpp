// An admission webhook: calls a function of ours for each AdmissionReview (admission.k8s.io/v1), and returns the verdict.
//
//   kube::WebhookServer webhook(loop, logger, {.files = {cert_file, key_file}},
//                               {{"/validate-pods", [](const kube::AdmissionRequest& request) {
//                                   return request.object.contains("spec") ? kube::admit() : kube::refuse("no spec");
//                                 }}});
//   if (auto started = webhook.start(); !started) ...
//   webhook.stop([&] { ... });   // requests under way are answered
//
// The function runs on the loop, so it must be quick. It decides from the request and from caches. Use a webhook only for
// rules that neither the schema nor CEL can express. failurePolicy in the ValidatingWebhookConfiguration decides whether the
// API server continues without an answer.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "kube/object.hpp"
#include "net/http_server.hpp"
#include "net/tls_files.hpp"

namespace kube {

/// What the API server asks.
struct AdmissionRequest {
  std::string uid;        ///< Of the request; not of the object.
  std::string operation;  ///< "CREATE", "UPDATE", "DELETE" or "CONNECT".
  std::string group, version, kind;
  std::string resource;     ///< The plural.
  std::string subresource;  ///< "" or "status", "scale" ...
  Key key;                  ///< The name is "" where the API server is yet to make one up (generateName).
  std::string user;
  std::vector<std::string> groups;  ///< Of the user.
  bool dry_run = false;             ///< Nothing of it will be stored.
  core::Json object;                ///< As it would be stored; null for DELETE.
  core::Json old_object;            ///< As it is stored; null for CREATE.
};

struct AdmissionVerdict {
  bool allowed = true;
  std::string message;                ///< Why it is refused; the user reads it.
  int code = 403;                     ///< The HTTP status of a refusal.
  std::vector<std::string> warnings;  ///< Shown by kubectl, also with a refusal. At most 256 characters each.
  core::Json patch;                   ///< Operations of a JSON patch (RFC 6902) that change the object; null: none.
};
AdmissionVerdict admit();
AdmissionVerdict refuse(std::string message);

using Review = std::function<AdmissionVerdict(const AdmissionRequest&)>;

/// Answers one request to the path of a review. What is no AdmissionReview v1 in JSON gets 400, another method 405, another
/// content type 415; a review that throws (a bug) gets 500.
net::HttpResponse answer_review(const Review& review, const net::HttpRequest& request);

struct WebhookOptions {
  /// Where to listen, and limits; `use_tls` and `tls` are set from `files`. The API server takes objects of 3 MiB, and sends
  /// the old and the new one. Of connections it opens one for each request that is under way.
  net::ServerOptions listen{.max_request_bytes = 7UL << 20, .max_connections = 64};
  net::TlsFilesOptions files{};  ///< The certificate and its key; a new pair is used for new connections.
  core::Duration grace{10000};   ///< For requests under way at stop().
};

class WebhookServer {
 public:
  /// `reviews`: by path.
  WebhookServer(net::AsioLoop& loop, core::Logger& logger, WebhookOptions options, std::map<std::string, Review> reviews);
  ~WebhookServer();

  /// Errors: those of the files and of net::HttpServer::start.
  core::Result<void> start();
  /// New connections are refused, requests under way are answered, within the grace; then `done`. Requires that it was started.
  void stop(std::function<void()> done);
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace kube
