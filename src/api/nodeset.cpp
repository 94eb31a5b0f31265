#include "api/nodeset.hpp"

namespace api {

using core::Json;

namespace {

/// Returns the schema of a worker's pod template. The template's hostname is the prefix of the workers' hostnames, which end
/// with an ordinal. Hostnames are DNS labels.
Json worker_template_schema() {
  Json schema = Codec<PodTemplate>::schema();
  Json& hostname = schema["properties"]["spec"]["properties"]["hostname"];
  hostname["maxLength"] = kMaxHostnamePrefix;
  hostname["pattern"] = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?-?)?$";
  hostname["description"] =
      "The beginning of the workers' hostnames, made of a-z, 0-9 and '-': the ordinal is appended. Without trailing dashes "
      "also the name of the NodeSet, its feature and its partition in Slurm. Cannot be changed, added or removed: create "
      "another NodeSet instead.";
  return schema;
}

/// Returns a CEL expression for the hostname; the expression gives '' if the hostname is absent.
std::string hostname(const std::string& of) {
  return "(has(" + of + ".template) && has(" + of + ".template.spec) && has(" + of + ".template.spec.hostname) ? " + of +
         ".template.spec.hostname : '')";
}

}  // namespace

const FieldList& field_list(const NodeSetSsh*) {
  static const FieldList kList =
      FieldList("sshd in the worker pods, for users with a job there.")
          .add(field("enabled", &NodeSetSsh::enabled)
                   .has_default()
                   .describe("Whether sshd runs beside slurmd. Needs PrologFlags=Contain in slurm.conf."))
          .add(field("extraSshdConfig", &NodeSetSsh::extra_sshd_config)
                   .describe("Lines for sshd_config. They take precedence over the operator's own, which are UsePAM, "
                             "X11Forwarding, Subsystem sftp, HostKey, and files that the image includes."))
          .add(field("sssdConfRef", &NodeSetSsh::sssd_conf_ref)
                   .nullable()
                   .describe("The Secret's key that holds sssd.conf, which says who users are. Absent: only the users that the "
                             "image has can log in. Workers that run keep what it held when they were created."))
          .rule("!self.enabled || !has(self.sssdConfRef) || (has(self.sssdConfRef.name) && self.sssdConfRef.name != '')",
                "must not be empty when enabled is true", "sssdConfRef.name");
  return kList;
}

const FieldList& field_list(const NodeSetPartition*) {
  static const FieldList kList =
      FieldList("A Slurm partition of the NodeSet's name that holds its workers.")
          .add(field("enabled", &NodeSetPartition::enabled)
                   .has_default()
                   .describe("Whether the partition exists. A partition that is removed is kept with State=DRAIN until its "
                             "jobs have ended."))
          .add(field("config", &NodeSetPartition::config)
                   .one_line()
                   .describe("Options for its line in slurm.conf, such as \"State=UP Default=YES MaxTime=UNLIMITED\". One "
                             "line, not empty."));
  return kList;
}

const FieldList& field_list(const RollingUpdate*) {
  static const FieldList kList =
      FieldList("How RollingUpdate proceeds.")
          .add(field("maxUnavailable", &RollingUpdate::max_unavailable)
                   .has_default()
                   .minimum(1)
                   .pattern("^(100|[1-9][0-9]?)%$", 4)
                   .describe("How many workers may be unavailable during the update, including those that wait for their last "
                             "job: a number of 1 or more, or a percentage from 1% to 100%, rounded up."))
          .add(field("partition", &RollingUpdate::partition)
                   .minimum(0)
                   .describe(
                       "A canary: workers whose ordinal is smaller keep the previous template, also when they are recreated."));
  return kList;
}

const FieldList& field_list(const ScheduledUpdate*) {
  static const FieldList kList =
      FieldList("When ScheduledUpdate proceeds: during a maintenance reservation in Slurm.")
          .add(field("startTime", &ScheduledUpdate::start_time)
                   .describe("When the reservation starts; with a flag such as DAILY, for the first time."))
          .add(field("duration", &ScheduledUpdate::duration)
                   .has_default()
                   .rule("duration(self) >= duration('1m')", "must be 1m or more")
                   .describe("How long it lasts: 1m or more, in whole minutes."))
          .add(field("flags", &ScheduledUpdate::flags)
                   .nullable()
                   .describe("Flags to add to the reservation: HOURLY, DAILY, WEEKDAY, WEEKEND or WEEKLY if it recurs, and "
                             "FLEX, MAGNETIC, "
                             "NO_HOLD_JOBS_AFTER_END, OVERLAP, STATIC, USER_DELETE."));
  return kList;
}

const FieldList& field_list(const UpdateStrategy*) {
  static const FieldList kList =
      FieldList("How workers are replaced when their template changes.")
          .add(field("type", &UpdateStrategy::type)
                   .has_default()
                   .describe("RollingUpdate: a few at a time. OnDelete: when somebody deletes the old pod. ScheduledUpdate: as "
                             "RollingUpdate, during a maintenance reservation in Slurm."))
          .add(field("paused", &UpdateStrategy::paused)
                   .describe("Whether no further worker is replaced for now. Scaling goes on, and new workers get the new "
                             "template."))
          .add(field("rollingUpdate", &UpdateStrategy::rolling_update).describe("How RollingUpdate proceeds."))
          .add(field("scheduledUpdate", &UpdateStrategy::scheduled_update).describe("When ScheduledUpdate proceeds."))
          .rule(
              "self.type != 'ScheduledUpdate' || (has(self.scheduledUpdate) && has(self.scheduledUpdate.startTime) && "
              "has(self.scheduledUpdate.duration))",
              "required when type is ScheduledUpdate", "scheduledUpdate.startTime");
  return kList;
}

const FieldList& field_list(const DrainPolicy*) {
  static const FieldList kList =
      FieldList("How long a worker that is to be deleted waits for its jobs.")
          .add(field("timeout", &DrainPolicy::timeout)
                   .required()
                   .rule("duration(self) >= duration('0s')", "must be 0s or more")
                   .describe("How long the worker waits, counted from its drain: 0s or more, such as 4h."))
          .add(field("onTimeout", &DrainPolicy::on_timeout)
                   .has_default()
                   .describe(
                       "What happens to jobs that still run there after the timeout. Wait: the worker waits on, and an event "
                       "names the jobs. Requeue: those that can be requeued are, and the others are waited for; needs Slurm "
                       "26.05. Cancel: all are cancelled. A job that also runs on other nodes ends there too."));
  return kList;
}

const FieldList& field_list(const ClaimRetentionPolicy*) {
  static const FieldList kList =
      FieldList("What happens to the claims made from volumeClaimTemplates.")
          .add(field("whenDeleted", &ClaimRetentionPolicy::when_deleted)
                   .has_default()
                   .describe("What happens to the claims when the NodeSet is deleted and its workers no longer exist."))
          .add(field("whenScaled", &ClaimRetentionPolicy::when_scaled)
                   .has_default()
                   .describe("What happens to the claims of a worker when it is scaled in and no longer exists."));
  return kList;
}

const FieldList& field_list(const NodeSetSpec*) {
  static const FieldList kList =
      FieldList("The desired state of a NodeSet.")
          .add(field("controllerRef", &NodeSetSpec::controller_ref)
                   .required()
                   .immutable()
                   .describe("The Controller whose workers these are. Cannot be changed."))
          .add(field("replicas", &NodeSetSpec::replicas)
                   .has_default()
                   .minimum(0)
                   .describe("How many workers to run. Not used with scalingMode DaemonSet."))
          .add(field("scalingMode", &NodeSetSpec::scaling_mode)
                   .has_default()
                   .describe("StatefulSet: as many workers as replicas says. DaemonSet: one on each Kubernetes node that "
                             "matches nodeSelector, the required node affinity and the tolerations of template.spec."))
          .add(field("slurmd", &NodeSetSpec::slurmd)
                   .schema_of(container_schema())
                   .describe("A core/v1 Container, merged over the operator's own container slurmd. Its limits are the CPUs "
                             "and the memory that Slurm gets for the node. args are expanded by a shell."))
          .add(field("ssh", &NodeSetSpec::ssh).describe("sshd in the worker pods, for users with a job there."))
          .add(field("logfile", &NodeSetSpec::logfile)
                   .schema_of(container_schema())
                   .describe("A core/v1 Container, merged over the sidecar that prints slurmd's log."))
          .add(field("template", &NodeSetSpec::pod_template)
                   .schema_of(worker_template_schema())
                   .describe("What to add to the worker pods."))
          .add(field("extraConf", &NodeSetSpec::extra_conf)
                   .describe("Key=Value pairs, separated by spaces, for `slurmd --conf`: the parameters of each worker's node "
                             "in Slurm. Features are added to the NodeSet's own."))
          .add(field("partition", &NodeSetSpec::partition)
                   .describe("A Slurm partition of the NodeSet's name that holds its workers."))
          .add(field("volumeClaimTemplates", &NodeSetSpec::volume_claim_templates)
                   .schema_of({{"type", "array"},
                               {"nullable", true},
                               {"items", {{"type", "object"}, {"x-kubernetes-preserve-unknown-fields", true}}}})
                   .immutable()
                   .describe(
                       "core/v1 PersistentVolumeClaims with a metadata.name each. Every worker gets claims of its own, named "
                       "NAME-POD, and volumes of these names, which containers mount; its successors get the same. Cannot "
                       "be changed."))
          .add(field("updateStrategy", &NodeSetSpec::update_strategy)
                   .describe("How workers are replaced when their template changes."))
          .add(field("drainPolicy", &NodeSetSpec::drain_policy)
                   .describe("How long a worker that is scaled in, updated, or deleted with its NodeSet waits for its jobs. "
                             "Absent: until they have ended. Workers that are drained for other causes always wait."))
          .add(field("revisionHistoryLimit", &NodeSetSpec::revision_history_limit)
                   .has_default()
                   .minimum(0)
                   .describe("How many past revisions to keep for a rollback, besides those that workers use."))
          .add(field("persistentVolumeClaimRetentionPolicy", &NodeSetSpec::persistent_volume_claim_retention_policy)
                   .describe("What happens to the claims made from volumeClaimTemplates. Updates and replacements of workers "
                             "never delete them."))
          .add(field("minReadySeconds", &NodeSetSpec::min_ready_seconds)
                   .minimum(0)
                   .describe("How long a worker must be ready before it counts as available."))
          .add(field("ordinalPadding", &NodeSetSpec::ordinal_padding)
                   .has_default()
                   .minimum(0)
                   .maximum(10)
                   .describe("How many digits ordinals have; zeros are put in front. Not used with scalingMode DaemonSet."))
          .add(field("pinToNode", &NodeSetSpec::pin_to_node)
                   .has_default()
                   .describe("Whether a worker always returns to the Kubernetes node on which it first ran, as "
                             "status.ordinalToNode remembers. Not used with scalingMode DaemonSet."))
          .add(field("nodeFeatureLabels", &NodeSetSpec::node_feature_labels)
                   .nullable()
                   .describe("Names of labels of Kubernetes nodes, such as topology.kubernetes.io/zone. Slurm nodes get their "
                             "values as features, with the prefix k8s/."))
          .add(field("workloadDisruptionProtection", &NodeSetSpec::workload_disruption_protection)
                   .has_default()
                   .describe("Whether workers are protected from eviction, by a PodDisruptionBudget."))
          .add(
              field("workloadDisruptionPolicy", &NodeSetSpec::workload_disruption_policy)
                  .has_default()
                  .describe("When workers are protected from eviction. Always: from their creation until they are drained and "
                            "idle; autoscalers then remove a Kubernetes node with workers only if it is cordoned. WhenBusy: "
                            "while Slurm reports jobs there, so a job that started within the last second or two can be lost."))
          .add(field("pruneSlurmNodeRecords", &NodeSetSpec::prune_slurm_node_records)
                   .has_default()
                   .describe("With scalingMode DaemonSet: whether the Slurm node is deleted when its Kubernetes node no longer "
                             "exists and Slurm has set it DOWN."))
          .add(field("oversubscribeNode", &NodeSetSpec::oversubscribe_node)
                   .has_default()
                   .describe("Whether several workers may run on one Kubernetes node. Not meant for production."))
          // Slurm's names derive from the hostname, and must not change under running jobs.
          .rule(hostname("self") + " == " + hostname("oldSelf"), "cannot be changed, added or removed",
                "template.spec.hostname");
  return kList;
}

const FieldList& field_list(const NodeSetStatus*) {
  static const FieldList kList =
      FieldList("The observed state of a NodeSet.")
          .add(field("replicas", &NodeSetStatus::replicas).always().describe("How many pods there are."))
          .add(field("updatedReplicas", &NodeSetStatus::updated_replicas)
                   .always()
                   .describe("How many pods have the newest revision."))
          .add(field("readyReplicas", &NodeSetStatus::ready_replicas).always().describe("How many pods are ready."))
          .add(field("availableReplicas", &NodeSetStatus::available_replicas)
                   .always()
                   .describe("How many pods have been ready for minReadySeconds."))
          .add(field("unavailableReplicas", &NodeSetStatus::unavailable_replicas)
                   .always()
                   .describe("How many of the pods are not available."))
          .add(field("desired", &NodeSetStatus::desired).always().describe("How many workers are wanted."))
          .add(field("slurmIdle", &NodeSetStatus::slurm_idle).always().describe("How many workers are IDLE in Slurm."))
          .add(field("slurmAllocated", &NodeSetStatus::slurm_allocated)
                   .always()
                   .describe("How many workers are ALLOCATED or MIXED in Slurm."))
          .add(field("slurmDown", &NodeSetStatus::slurm_down).always().describe("How many workers are DOWN in Slurm."))
          .add(field("slurmDrain", &NodeSetStatus::slurm_drain)
                   .always()
                   .describe("How many workers have the DRAIN flag in Slurm."))
          .add(field("observedGeneration", &NodeSetStatus::observed_generation)
                   .always()
                   .describe("The generation of the NodeSet that this status describes."))
          .add(field("nodeSetHash", &NodeSetStatus::nodeset_hash)
                   .always()
                   .describe("The controller-revision-hash of the newest revision."))
          .add(field("collisionCount", &NodeSetStatus::collision_count).describe("How often revision names have collided."))
          .add(field("conditions", &NodeSetStatus::conditions).always().describe("The state, by aspect."))
          .add(field("ordinalToNode", &NodeSetStatus::ordinal_to_node)
                   .nullable()
                   .describe("With pinToNode: the Kubernetes node of each ordinal."))
          .add(field("drainsToRestore", &NodeSetStatus::drains_to_restore)
                   .nullable()
                   .describe("Reasons of drains that others have set on Slurm nodes whose node record is being replaced. An "
                             "entry is removed when its drain is restored."))
          .add(field("selector", &NodeSetStatus::selector)
                   .always()
                   .describe("The label selector of the pods, for autoscalers."));
  return kList;
}

const FieldList& field_list(const NodeSet*) {
  // In Slurm, Nodes=all means all nodes of the cluster, and PartitionName=default names no partition. Like name_is_label(),
  // these rules apply only to new objects.
  const std::string old_or_named = "has(self.status) || (has(self.spec) && " + hostname("self.spec") + " != '') || ";
  const std::string old_or_unnamed = "has(self.status) || !has(self.spec) || ";
  static const FieldList kList =
      FieldList("A NodeSet is a set of workers (slurmd pods) of one Controller.")
          .add(field("spec", &NodeSet::spec))
          .add(field("status", &NodeSet::status))
          .rule(name_is_label(kMaxNodeSetName, false))
          .rule(old_or_named + "!(self.metadata.name in ['all', 'default'])",
                "must not be 'all' or 'default' without template.spec.hostname: they mean something else to Slurm",
                "metadata.name")
          .rule(old_or_unnamed + "!(" + hostname("self.spec") + " in ['all', 'all-', 'default', 'default-'])",
                "must not be 'all' or 'default', which mean something else to Slurm", "spec.template.spec.hostname");
  return kList;
}

}  // namespace api
