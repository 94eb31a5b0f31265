#include "api/controller.hpp"

namespace api {
namespace {

using core::Json;

/// Forbids changes of the number of backups: slurm.conf lists every slurmctld, and a new list needs a restart of all of them.
Rule ha_unchanged() {
  const auto backups = [](const std::string& of) {
    return "(has(" + of + ".ha) && " + of + ".ha.enabled ? " + of + ".ha.backups : 0)";
  };
  return {backups("self") + " == " + backups("oldSelf"), "cannot be changed", "ha"};
}

constexpr const char* kPowers = "[1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768]";
constexpr std::size_t kMaxTopologyLabels = 10;
constexpr std::size_t kMaxLabelName = 253 + 1 + 63;

/// Requires that each item is a valid name of a Kubernetes label. No node could have a label with another name.
Field label_names(Field list) {
  list.limits["items"]["pattern"] = "^([a-z0-9.-]+/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";
  list.limits["items"]["maxLength"] = kMaxLabelName;
  return list;
}

constexpr const char* kScripts = "ConfigMaps whose keys are script files for /etc/slurm, called in the order of their names: ";

}  // namespace

const FieldList& field_list(const Topology*) {
  static const FieldList kList =
      FieldList("The topology of the network, made from labels of Kubernetes nodes.")
          .add(field("type", &Topology::type)
                   .has_default()
                   .describe("Tree: a tree of switches; the last label names the leaf switch. Block: the values of all labels "
                             "together name a block; blocks with the same values of the wider labels are neighbours."))
          .add(label_names(
              field("nodeLabels", &Topology::node_labels)
                  .required()
                  .items(1, kMaxTopologyLabels)
                  .describe(
                      "Names of labels of Kubernetes nodes, from the widest part of the network to the narrowest, such as "
                      "topology.kubernetes.io/zone and network.example/rack. A Kubernetes node that lacks one of them "
                      "has no place.")))
          .add(field("blockSizes", &Topology::block_sizes)
                   .items(0, 16)
                   .describe("With Block: how many nodes a block has, and the sizes of groups of blocks, each a power of two "
                             "times the first."))
          .rule("self.type != 'Block' || (has(self.blockSizes) && size(self.blockSizes) > 0)", "required when type is Block",
                "blockSizes")
          .rule("self.type == 'Block' || !has(self.blockSizes) || size(self.blockSizes) == 0",
                "must be empty when type is Tree", "blockSizes")
          .rule("!has(self.blockSizes) || self.blockSizes.all(n, n > 0 && " + std::string(kPowers) +
                    ".exists(p, n == self.blockSizes[0] * p))",
                "each must be the first one times a power of two, up to 32768", "blockSizes");
  return kList;
}

const FieldList& field_list(const ControllerHighAvailability*) {
  static const FieldList kList =
      FieldList("High availability: several slurmctld, of which one is active.")
          .add(field("enabled", &ControllerHighAvailability::enabled)
                   .has_default()
                   .describe("Whether there are backups. They need persistence.existingClaim, a volume that all of them share. "
                             "Cannot be changed."))
          .add(field("backups", &ControllerHighAvailability::backups)
                   .has_default()
                   .minimum(1)
                   .describe("How many backups stand by. Cannot be changed."));
  return kList;
}

const FieldList& field_list(const ControllerPersistence*) {
  static const FieldList kList = FieldList("The volume that holds slurmctld's state (StateSaveLocation).")
                                     .add(field("enabled", &ControllerPersistence::enabled)
                                              .has_default()
                                              .describe("Whether the state outlives the pod. Cannot be changed."))
                                     .add(field("existingClaim", &ControllerPersistence::existing_claim)
                                              .max_length(253)
                                              .describe("An existing PersistentVolumeClaim to use. Otherwise one is created "
                                                        "from the other fields. Cannot be changed."))
                                     .add(embed_raw(&ControllerPersistence::claim, claim_properties()));
  return kList;
}

const FieldList& field_list(const ControllerSpec*) {
  static const FieldList kList =
      FieldList("The desired state of a Controller.")
          .add(field("clusterName", &ControllerSpec::cluster_name)
                   .pattern("^[A-Za-z0-9_.-]*$", kMaxClusterName)
                   .describe("Slurm's ClusterName. Absent: <namespace>_<name>. Cannot be changed."))
          .add(field("slurmKeyRef", &ControllerSpec::slurm_key_ref)
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe("The Secret's key that holds the auth/slurm key. Absent: one is generated once, into the Secret "
                             "<name>-slurm-key, and kept as long as the state volume. Its name cannot be changed."))
          .add(field("jwtKeyRef", &ControllerSpec::jwt_key_ref)
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe(
                       "The Secret's key that holds the auth/jwt key (HS256). Absent: one is generated once, into the Secret "
                       "<name>-jwt-key, and kept as long as the state volume. Cannot be changed."))
          .add(field("jwtHs256KeyRef", &ControllerSpec::jwt_hs256_key_ref)
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe("Deprecated: the old name of jwtKeyRef. If both are set, jwtKeyRef takes precedence."))
          .add(field("jwksKeyRef", &ControllerSpec::jwks_key_ref)
                   .describe("The ConfigMap's key that holds a JWKS file, for tokens that others sign."))
          .add(field("accountingRef", &ControllerSpec::accounting_ref)
                   .describe("The Accounting whose slurmdbd keeps the records of the cluster's jobs. Setting, changing or "
                             "removing it restarts slurmctld once; jobs run on."))
          .add(field("external", &ControllerSpec::external)
                   .has_default()
                   .describe(
                       "Whether slurmctld is run by somebody else, at the address in externalConfig. The operator then "
                       "connects to it, and runs workers, slurmrestd and login pods for it. slurmKeyRef and jwtKeyRef name "
                       "that slurmctld's keys. Fields that say how slurmctld runs have no effect. Cannot be changed."))
          .add(field("externalConfig", &ControllerSpec::external_config).describe("Where an external slurmctld is reached."))
          .add(field("ha", &ControllerSpec::ha).describe("High availability: several slurmctld, of which one is active."))
          .add(field("slurmctld", &ControllerSpec::slurmctld)
                   .schema_of(container_schema())
                   .describe("A core/v1 Container, merged over the operator's own container slurmctld. args are appended to "
                             "its options."))
          .add(field("reconfigure", &ControllerSpec::reconfigure)
                   .schema_of(container_schema())
                   .describe("A core/v1 Container, merged over the sidecar reconfigure, which exists when inplaceReconfigure "
                             "is true."))
          .add(field("logfile", &ControllerSpec::logfile)
                   .schema_of(container_schema())
                   .describe("A core/v1 Container, merged over the sidecar that prints slurmctld's log."))
          .add(field("inplaceReconfigure", &ControllerSpec::inplace_reconfigure)
                   .has_default()
                   .describe("Whether a sidecar of slurmctld reconfigures it as well when its files change. The operator does "
                             "so through the "
                             "REST API in any case, and restarts the pod only for settings that slurmctld reads at its start."))
          .add(field("template", &ControllerSpec::pod_template)
                   .describe("What to add to the slurmctld pod. The pod has the Controller's own labels and annotations as "
                             "well: a change "
                             "of these restarts slurmctld."))
          .add(field("extraConf", &ControllerSpec::extra_conf)
                   .describe("Lines to append to slurm.conf. Keys that the operator needs are merged with its own values."))
          .add(field("sssdConfRef", &ControllerSpec::sssd_conf_ref)
                   .nullable()
                   .rule("has(self.name) && self.name != ''", "must not be empty", "name")
                   .describe("The Secret's key that holds sssd.conf, which says who users are: SSSD then runs in a sidecar of "
                             "slurmctld. Absent: slurmctld knows the users that its image has. A change restarts slurmctld."))
          .add(field("configFileRefs", &ControllerSpec::config_file_refs)
                   .nullable()
                   .describe("ConfigMaps whose keys are files for /etc/slurm (gres.conf, topology.yaml, job_submit.lua ...). "
                             "slurm.conf and "
                             "slurmdbd.conf are the operator's own."))
          .add(field("topology", &ControllerSpec::topology)
                   .nullable()
                   .describe(
                       "Makes topology.yaml from labels of Kubernetes nodes, and gives each worker's Slurm node its place. "
                       "Needs Slurm 25.05 or later. Setting or removing it restarts slurmctld."))
          .add(field("prologScriptRefs", &ControllerSpec::prolog_script_refs)
                   .nullable()
                   .describe(std::string(kScripts) + "Prolog, on workers."))
          .add(field("epilogScriptRefs", &ControllerSpec::epilog_script_refs)
                   .nullable()
                   .describe(std::string(kScripts) + "Epilog, on workers."))
          .add(field("prologSlurmctldScriptRefs", &ControllerSpec::prolog_slurmctld_script_refs)
                   .nullable()
                   .describe(std::string(kScripts) + "PrologSlurmctld, beside slurmctld."))
          .add(field("epilogSlurmctldScriptRefs", &ControllerSpec::epilog_slurmctld_script_refs)
                   .nullable()
                   .describe(std::string(kScripts) + "EpilogSlurmctld, beside slurmctld."))
          .add(field("persistence", &ControllerSpec::persistence)
                   .describe("The volume that holds slurmctld's state: whether there is one, and an existing claim to use or "
                             "the settings of a new one."))
          .add(field("service", &ControllerSpec::service).describe("What to change in the Service of slurmctld."))
          .add(field("metrics", &ControllerSpec::metrics).describe("How slurmctld's metrics are collected."))
          .add(field("deletionPolicy", &ControllerSpec::deletion_policy)
                   .has_default()
                   .describe("What happens to the workers when the Controller or its namespace is deleted. Immediate: they are "
                             "deleted at once, with their jobs. Drain: each worker is deleted when its jobs have ended; "
                             "slurmctld and slurmrestd are kept until then."))
          .rule("!self.external || has(self.externalConfig)", "required when external is true", "externalConfig")
          .rule("self.external == oldSelf.external", "cannot be changed", "external")
          .rule(
              "!has(self.ha) || !self.ha.enabled || (has(self.persistence) && self.persistence.enabled && "
              "has(self.persistence.existingClaim) && self.persistence.existingClaim != '')",
              "required when ha.enabled is true, and its access mode must be ReadWriteMany", "persistence.existingClaim")
          .rule(ha_unchanged())
          .rule(
              "(has(self.slurmKeyRef) ? self.slurmKeyRef.name : '') == (has(oldSelf.slurmKeyRef) ? oldSelf.slurmKeyRef.name : "
              "'')",
              "cannot be changed, added or removed", "slurmKeyRef.name")
          .rule(jwt_key_unchanged())
          .rule(
              "(!has(self.persistence) || self.persistence.enabled) == (!has(oldSelf.persistence) || "
              "oldSelf.persistence.enabled)",
              "cannot be changed", "persistence.enabled")
          .rule(
              "(has(self.persistence) && has(self.persistence.existingClaim) ? self.persistence.existingClaim : '') == "
              "(has(oldSelf.persistence) && has(oldSelf.persistence.existingClaim) ? oldSelf.persistence.existingClaim : '')",
              "cannot be changed", "persistence.existingClaim");
  return kList;
}

const FieldList& field_list(const ControllerStatus*) {
  static const FieldList kList =
      FieldList("The observed state of a Controller.")
          .add(field("observedGeneration", &ControllerStatus::observed_generation)
                   .always()
                   .describe("The generation of the Controller that this status describes."))
          .add(field("conditions", &ControllerStatus::conditions).always().describe("The state, by aspect."));
  return kList;
}

const FieldList& field_list(const Controller*) {
  static const FieldList kList =
      FieldList("A Controller is one Slurm cluster: its slurmctld, with configuration, keys and state.")
          .add(field("spec", &Controller::spec))
          .add(field("status", &Controller::status))
          .rule(name_is_label(kMaxControllerName, true))
          .rule(
              "has(self.status) || !has(self.spec) || !has(self.spec.ha) || !self.spec.ha.enabled || "
              "size(self.metadata.name) <= " +
                  std::to_string(kMaxNameWithBackups),
              "must have at most " + std::to_string(kMaxNameWithBackups) + " characters when spec.ha.enabled is true",
              "metadata.name")
          // Setting the default name, NAMESPACE_NAME, explicitly is not a change. The rule cannot see the namespace, so it
          // compares only what follows the last underscore. A namespace has no underscore.
          .rule(
              "(has(self.spec) && has(self.spec.clusterName) ? self.spec.clusterName : '') == "
              "(has(oldSelf.spec) && has(oldSelf.spec.clusterName) ? oldSelf.spec.clusterName : '') || "
              "((!has(oldSelf.spec) || !has(oldSelf.spec.clusterName) || oldSelf.spec.clusterName == '') && "
              "self.spec.clusterName.endsWith('_' + self.metadata.name)) || "
              "((!has(self.spec) || !has(self.spec.clusterName) || self.spec.clusterName == '') && "
              "oldSelf.spec.clusterName.endsWith('_' + self.metadata.name))",
              "cannot be changed", "spec.clusterName");
  return kList;
}

std::string cluster_name(const ControllerSpec& spec, std::string_view ns, std::string_view name) {
  if (!spec.cluster_name.empty()) return spec.cluster_name;
  return std::string(ns) + "_" + std::string(name);
}

}  // namespace api
