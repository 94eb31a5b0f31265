#include "api/restapi.hpp"

namespace api {

const FieldList& field_list(const RestApiSpec*) {
  static const FieldList kList =
      FieldList("The desired state of a RestApi.")
          .add(field("controllerRef", &RestApiSpec::controller_ref)
                   .required()
                   .immutable()
                   .describe("The Controller whose REST API this is. Cannot be changed."))
          .add(field("replicas", &RestApiSpec::replicas).has_default().minimum(0).describe("How many slurmrestd to run."))
          .add(field("slurmrestd", &RestApiSpec::slurmrestd)
                   .schema_of(container_schema())
                   .describe("A core/v1 Container, merged over the operator's own container slurmrestd. args come before the "
                             "address to listen on; an address of your own with the container's port replaces it."))
          .add(field("template", &RestApiSpec::pod_template).describe("What to add to the slurmrestd pods."))
          .add(field("sssdConfRef", &RestApiSpec::sssd_conf_ref)
                   .nullable()
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe("The Secret's key that holds sssd.conf, which says who users are: SSSD then runs in a sidecar of "
                             "slurmrestd. Absent: slurmrestd knows the users that its image has. A change replaces the pods."))
          .add(field("service", &RestApiSpec::service).describe("What to change in the Service of slurmrestd."));
  return kList;
}

const FieldList& field_list(const RestApiStatus*) {
  static const FieldList kList =
      FieldList("The observed state of a RestApi.")
          .add(field("observedGeneration", &RestApiStatus::observed_generation)
                   .always()
                   .describe("The generation of the RestApi that this status describes."))
          .add(field("conditions", &RestApiStatus::conditions).always().describe("The state, by aspect."));
  return kList;
}

const FieldList& field_list(const RestApi*) {
  static const FieldList kList =
      FieldList("A RestApi is the slurmrestd of a Controller; the operator itself connects to Slurm through it.")
          .add(field("spec", &RestApi::spec))
          .add(field("status", &RestApi::status))
          .rule(name_is_label(kMaxRestApiName, true));
  return kList;
}

}  // namespace api
