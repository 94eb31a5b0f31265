#include "sim/kube/sim_kube.hpp"

#include "core/hash.hpp"

namespace sim {

SimKube::SimKube(core::Loop& loop, SeededRandom random, SimKubeOptions options)
    : random_(std::move(random)),
      api_(loop, random_, options.api),
      controllers_(api_, random_.fork(), options.controllers),
      kubelets_(api_, random_.fork(), options.kubelets) {
  for (KubeKind& kind : project_kinds()) api_.serve_kind(std::move(kind));
}

void SimKube::add_namespace(const std::string& name) {
  (void)api_.create(kube::resources::kNamespace, {{"metadata", {{"name", name}}}});
}

void SimKube::set_listening(bool listening) {
  listening_ = listening;
  if (!listening) api_.end_watches();
}

std::expected<Server::StreamId, net::HttpResponse> SimKube::open(const net::HttpRequest& request, StreamSink sink) {
  using Type = KubeApi::WatchEvent::Type;
  KubeApi::WatchSink inner;
  inner.on_event = [on_piece = std::move(sink.on_piece)](KubeApi::WatchEvent event) {
    StreamPiece piece{StreamPiece::Kind::kData, std::move(event.line)};
    if (event.type == Type::kError) piece.kind = StreamPiece::Kind::kError;
    if (event.type == Type::kBookmark) {
      const bool last = piece.text.find("k8s.io/initial-events-end") != std::string::npos;
      piece.kind = last ? StreamPiece::Kind::kLastBookmark : StreamPiece::Kind::kBookmark;
    }
    on_piece(std::move(piece));
  };
  inner.on_end = std::move(sink.on_end);
  return api_.watch(request, std::move(inner));
}

net::HttpResponse SimKube::fault_reply(int status) const {
  const auto body = [&](const char* reason, const char* message) {
    return net::HttpResponse{
        status, {{"content-type", "application/json"}}, core::canonical(make_status(status, reason, message))};
  };
  switch (status) {
    case 403:
      return body("Forbidden", "injected: forbidden");
    case 409:
      return body("Conflict",
                  "injected: the object has been modified; please apply your changes to the latest version and try again");
    case 410:
      return body("Expired", "injected: too old resource version");
    case 429: {
      net::HttpResponse reply = body("TooManyRequests", "injected: too many requests, please try again later");
      reply.headers.emplace("retry-after", "1");
      return reply;
    }
    default:
      return body("InternalError", "injected: internal error");
  }
}

}  // namespace sim
