// The API server's request to an admission webhook, and the webhook's answer, as data. kube/admit/webhook.hpp serves webhooks.
#pragma once

#include <string>
#include <vector>

#include "kube/object.hpp"

namespace kube {

namespace resources {
extern const Resource kMutatingWebhookConfiguration, kPriorityClass;
}

/// The request of a user. The API server asks the webhook whether to allow this request.
struct AdmissionRequest {
  std::string uid;        ///< The uid of the request, not of the object.
  std::string operation;  ///< "CREATE", "UPDATE", "DELETE" or "CONNECT".
  std::string group, version, kind;
  std::string resource;     ///< The plural name.
  std::string subresource;  ///< "" or "status", "scale" ...
  Key key;                  ///< The name is "" if the API server has not generated it yet (generateName).
  std::string user;
  std::vector<std::string> groups;  ///< The user's groups.
  bool dry_run = false;             ///< The request is a dry run: nothing is stored.
  core::Json object;                ///< The object as it would be stored; null for DELETE.
  core::Json old_object;            ///< The stored object; null for CREATE.
};

struct AdmissionVerdict {
  bool allowed = true;
  std::string message;                ///< The reason of a refusal, for the user.
  int code = 403;                     ///< The HTTP status of a refusal.
  std::vector<std::string> warnings;  ///< Warnings that kubectl shows, also for a refusal. At most 256 characters each.
  core::Json patch;                   ///< A JSON patch (RFC 6902) that changes the object; null: no change.
};
AdmissionVerdict admit();
AdmissionVerdict refuse(std::string message);

}  // namespace kube
