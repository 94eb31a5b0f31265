#include "kube/admission.hpp"

namespace kube {

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
