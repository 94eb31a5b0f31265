#include "api/loginset.hpp"

namespace api {
namespace {

constexpr const char* kPercentage = "^[0-9]+%$";
constexpr std::size_t kMaxPercentage = 16;

}  // namespace

const FieldList& field_list(const DeploymentRollingUpdate*) {
  static const FieldList kList = FieldList("How RollingUpdate proceeds.")
                                     .add(field("maxUnavailable", &DeploymentRollingUpdate::max_unavailable)
                                              .minimum(0)
                                              .pattern(kPercentage, kMaxPercentage)
                                              .describe("How many pods may be unavailable during the update: a number, or a "
                                                        "percentage, rounded down. Absent: 0."))
                                     .add(field("maxSurge", &DeploymentRollingUpdate::max_surge)
                                              .minimum(0)
                                              .pattern(kPercentage, kMaxPercentage)
                                              .describe("How many pods may exist beyond replicas during the update: a number, "
                                                        "or a percentage, rounded up. Absent: 25%."));
  return kList;
}

const FieldList& field_list(const DeploymentStrategy*) {
  static const FieldList kList = FieldList("How pods are replaced, as in a Deployment.")
                                     .add(field("type", &DeploymentStrategy::type)
                                              .describe("RollingUpdate: new pods are created before old ones are deleted. "
                                                        "Recreate: all old pods are deleted first. Absent: RollingUpdate."))
                                     .add(field("rollingUpdate", &DeploymentStrategy::rolling_update)
                                              .nullable()
                                              .describe("How RollingUpdate proceeds. Not used with the type Recreate."));
  return kList;
}

const FieldList& field_list(const LoginSetSpec*) {
  static const FieldList kList =
      FieldList("The desired state of a LoginSet.")
          .add(field("controllerRef", &LoginSetSpec::controller_ref)
                   .required()
                   .immutable()
                   .describe("The Controller whose login nodes these are. Cannot be changed."))
          .add(field("replicas", &LoginSetSpec::replicas).has_default().minimum(0).describe("How many login pods to run."))
          .add(field("login", &LoginSetSpec::login)
                   .schema_of(container_schema())
                   .describe("A core/v1 Container, merged over the operator's own container login. A port named login is the "
                             "one that sshd listens on; set Port in extraSshdConfig to the same number."))
          .add(
              field("initconf", &LoginSetSpec::initconf)
                  .schema_of(container_schema())
                  .describe("A core/v1 Container, merged over the init container that gives sackd its key. Without an image it "
                            "uses the one of the container login."))
          .add(field("template", &LoginSetSpec::pod_template).describe("What to add to the login pods."))
          .add(field("rootSshAuthorizedKeys", &LoginSetSpec::root_ssh_authorized_keys)
                   .describe(
                       "SSH public keys that may log in as root, in the format of authorized_keys. A change usually reaches "
                       "running pods within seconds, and restarts nothing."))
          .add(field("authorizedKeysRefs", &LoginSetSpec::authorized_keys_refs)
                   .nullable()
                   .describe(
                       "ConfigMaps with SSH public keys of users: each key is the name of a user, and its value has the format "
                       "of authorized_keys. If several ConfigMaps have keys of the same user, the last one counts. A change of "
                       "their data usually reaches running pods within seconds. A change of the list itself replaces the pods, "
                       "which wait for their sessions. When set, AuthorizedKeysCommand in extraSshdConfig has no effect."))
          .add(field("extraSshdConfig", &LoginSetSpec::extra_sshd_config)
                   .describe("Lines for sshd_config. They take precedence over the operator's own, which are UsePAM, "
                             "X11Forwarding, Subsystem sftp, HostKey, and files that the image includes."))
          .add(field("sssdConfRef", &LoginSetSpec::sssd_conf_ref)
                   .nullable()
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe("The Secret's key that holds sssd.conf, which says who users are. Absent: only the users that the "
                             "image has can log in."))
          .add(field("strategy", &LoginSetSpec::strategy)
                   .describe("How pods are replaced when their template changes. A pod that is to be deleted waits for its SSH "
                             "sessions."))
          .add(field("service", &LoginSetSpec::service).describe("What to change in the Service of sshd."));
  return kList;
}

const FieldList& field_list(const LoginSetStatus*) {
  static const FieldList kList =
      FieldList("The observed state of a LoginSet.")
          .add(field("replicas", &LoginSetStatus::replicas).always().describe("How many pods there are."))
          .add(field("readyReplicas", &LoginSetStatus::ready_replicas).always().describe("How many pods are ready."))
          .add(field("observedGeneration", &LoginSetStatus::observed_generation)
                   .always()
                   .describe("The generation of the LoginSet that this status describes."))
          .add(field("conditions", &LoginSetStatus::conditions).always().describe("The state, by aspect."))
          .add(field("selector", &LoginSetStatus::selector)
                   .always()
                   .describe("The label selector of the pods, for autoscalers."));
  return kList;
}

const FieldList& field_list(const LoginSet*) {
  static const FieldList kList =
      FieldList("A LoginSet is a set of login nodes of a Controller: users log in by SSH, and submit jobs from there.")
          .add(field("spec", &LoginSet::spec))
          .add(field("status", &LoginSet::status))
          .rule(name_is_label(kMaxLoginSetName, true));
  return kList;
}

}  // namespace api
