#include "bridge/predecessor.hpp"

#include <memory>
#include <utility>

namespace bridge {
namespace {

const kube::Resource kWebhooks{"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
                               "mutatingwebhookconfigurations", false};
constexpr core::Duration kTryAgain{5000};

struct Ending : std::enable_shared_from_this<Ending> {
  Ending(core::Loop& on, core::Logger& to, kube::Client& with, Predecessor of)
      : loop(on), log(to), client(with), predecessor(std::move(of)) {}
  core::Loop& loop;
  core::Logger& log;
  kube::Client& client;
  Predecessor predecessor;

  void begin() {
    if (predecessor.webhook.empty()) return scale();
    client.remove(kWebhooks, {"", predecessor.webhook}, {},
                  [self = shared_from_this()](const core::Result<core::Json>& reply) {
                    if (self->done("the webhook of the bridge is not deleted", reply)) self->scale();
                  },
                  {.fenced = false});
  }

  void scale() {
    client.patch(kube::resources::kDeployment, predecessor.deployment, kube::PatchType::kMerge, {{"spec", {{"replicas", 0}}}},
                 [self = shared_from_this()](const core::Result<core::Json>& reply) {
                   if (self->done("the Deployment of the bridge is not scaled to 0", reply))
                     self->log.info("the bridge ends, and this process takes its place",
                                    {{"deployment", self->predecessor.deployment.str()}});
                 },
                 {.subresource = "scale", .fenced = false});
  }

  /// Reports whether a step is done. Otherwise begins again later.
  bool done(std::string_view what, const core::Result<core::Json>& reply) {
    if (reply || reply.error().code == core::ErrorCode::kNotFound) return true;
    log.warn(what, {core::error_field(reply.error())});
    loop.after(kTryAgain, [self = shared_from_this()] { self->begin(); });
    return false;
  }
};

}  // namespace

void end_predecessor(core::Loop& loop, core::Logger& log, kube::Client& client, Predecessor predecessor) {
  std::make_shared<Ending>(loop, log, client, std::move(predecessor))->begin();
}

}  // namespace bridge
