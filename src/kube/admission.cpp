#include "kube/admission.hpp"

namespace kube {
namespace resources {
const Resource kMutatingWebhookConfiguration{"admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
                                             "mutatingwebhookconfigurations", false};
const Resource kPriorityClass{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false};
}  // namespace resources

AdmissionVerdict admit() {
  return {};
}

AdmissionVerdict refuse(std::string message) {
  AdmissionVerdict verdict;
  verdict.allowed = false;
  verdict.message = std::move(message);
  return verdict;
}

}  // namespace kube
