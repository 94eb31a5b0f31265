// A Controller "ns/x" whose keys are there, as its plan sees it; nothing else is.
#pragma once

#include "kube/record.hpp"
#include "operator/controller/observed.hpp"

namespace op::controller::testing {

inline Observed observed_of(const core::Json& spec) {
  Observed out;
  out.object = *kube::record_from_json<kube::Object>(
      {{"kind", "Controller"}, {"metadata", {{"namespace", "ns"}, {"name", "x"}, {"uid", "u"}}}, {"spec", spec}});
  out.controller = *api::from_json<api::Controller>(out.object->body);
  out.slurm_key = {slurm_key_ref(out.controller.spec, "x"), kube::Presence::kPresent, true, "slurm", {}};
  out.jwt_key = {jwt_key_ref(out.controller.spec, "x"), kube::Presence::kPresent, true, "jwt", {}};
  return out;
}

}  // namespace op::controller::testing
