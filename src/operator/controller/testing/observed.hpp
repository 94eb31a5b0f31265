// Builds the facts about a Controller "ns/x" for tests of its plan. The Controller has its keys and no other objects.
#pragma once

#include "kube/cache/record.hpp"
#include "operator/controller/observed.hpp"

namespace op::controller::testing {

inline Observed observed_of(const core::Json& spec) {
  Observed out;
  out.object = *kube::record_from_json<kube::Object>(
      {{"kind", "Controller"}, {"metadata", {{"namespace", "ns"}, {"name", "x"}, {"uid", "u"}}}, {"spec", spec}});
  out.controller = *api::from_json<api::Controller>(out.object->body);
  out.slurm_key = {slurm_key_ref(out.controller.spec, "x"), kube::Presence::kPresent, true, "slurm", {}, ""};
  out.slurm_key.content = "content";
  out.keyring = {
      {keyring_name("x"), std::string(api::kKeySlurm), true}, kube::Presence::kPresent, true, "slurm", {}, "content"};
  out.keyring.meta = kube::ObjectMeta{};
  out.keyring.meta->labels = controller_labels("x");
  out.keyring.meta->owners = {{"slinky.slurm.net/v1beta1", "Controller", "x", "u", true}};
  out.jwt_key = {jwt_key_ref(out.controller.spec, "x"), kube::Presence::kPresent, true, "jwt", {}, ""};
  return out;
}

}  // namespace op::controller::testing
