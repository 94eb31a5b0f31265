// The names on which users, dashboards and the other parts of the project rely: the API group, labels, annotations, finalizers,
// taints and condition types. The values are an interface: they never change.
#pragma once

#include <array>
#include <string_view>

namespace api {

inline constexpr std::string_view kGroup = "slinky.slurm.net";
inline constexpr std::string_view kVersion = "v1beta1";
inline constexpr std::string_view kApiVersion = "slinky.slurm.net/v1beta1";

/// The value of app.kubernetes.io/name on every pod of the operator. The operator's tokens have this issuer, its field
/// managers have this prefix, and its Lease has this name.
inline constexpr std::string_view kOperatorName = "slurm-operator";

// Labels on all children.
inline constexpr std::string_view kLabelName = "app.kubernetes.io/name";            ///< The program: slurmctld, slurmd ...
inline constexpr std::string_view kLabelInstance = "app.kubernetes.io/instance";    ///< The custom resource's name.
inline constexpr std::string_view kLabelComponent = "app.kubernetes.io/component";  ///< The role: controller, worker ...

// Labels on workers.
inline constexpr std::string_view kLabelCluster = "slinky.slurm.net/cluster";  ///< The Controller's name.
inline constexpr std::string_view kLabelPodName = "nodeset.slinky.slurm.net/pod-name";
inline constexpr std::string_view kLabelPodIndex = "nodeset.slinky.slurm.net/pod-index";
inline constexpr std::string_view kLabelPodHostname = "nodeset.slinky.slurm.net/pod-hostname";  ///< The Slurm node's name.
inline constexpr std::string_view kLabelPodProtect = "nodeset.slinky.slurm.net/pod-protect";
inline constexpr std::string_view kLabelPodBusy = "nodeset.slinky.slurm.net/pod-busy";  ///< Set while jobs run on the worker.
inline constexpr std::string_view kLabelScalingMode = "nodeset.slinky.slurm.net/scaling-mode";
/// Release 1.3 of the Go operator sets this label on the pod of the slurmctld in control. This operator only reads the label.
inline constexpr std::string_view kLabelControllerActive = "controller.slinky.slurm.net/active";
inline constexpr std::string_view kLabelRevisionHash = "controller-revision-hash";

// Annotations of Controllers that users set.
/// The stop switch. While the switch is on, the operator deletes nothing of the cluster and does not change slurmctld.
inline constexpr std::string_view kAnnotationStopDeletions = "controller.slinky.slurm.net/stop-deletions";
/// Accepts the loss of jobs if a slurmctld without a volume gets a new pod, or if the auth/slurm key changes: docs/labels.md.
inline constexpr std::string_view kAnnotationLoseJobs = "controller.slinky.slurm.net/lose-jobs";

// Annotations of worker pods that users set or read.
/// "true" cordons the worker: the operator drains the worker's Slurm node until users remove the annotation.
inline constexpr std::string_view kAnnotationPodCordon = "nodeset.slinky.slurm.net/pod-cordon";
/// The reason for the cordon. The reason of the drain in Slurm is "slurm-operator: ", followed by this text.
inline constexpr std::string_view kAnnotationPodCordonReason = "nodeset.slinky.slurm.net/pod-cordon-reason";
/// Set by other programs to request a cordon.
inline constexpr std::string_view kAnnotationPodCordonRequested = "nodeset.slinky.slurm.net/pod-cordon-requested";
/// A whole number. If the NodeSet is scaled in, ready workers with a smaller number are deleted first.
inline constexpr std::string_view kAnnotationPodDeletionCost = "nodeset.slinky.slurm.net/pod-deletion-cost";
/// Allows the eviction and deletion of the worker, even while jobs run on it.
inline constexpr std::string_view kAnnotationPodRelease = "nodeset.slinky.slurm.net/pod-release";
/// Set by the operator: the latest time (RFC 3339) at which the last job on the worker ends. Absent if no job runs.
inline constexpr std::string_view kAnnotationPodDeadline = "nodeset.slinky.slurm.net/pod-deadline";

// Annotations that the operator sets on worker pods, unless a comment names another object or says that users set it.
/// The evidence that allows the worker's deletion. Set before the garbage collector or namespace controller deletes the pod.
inline constexpr std::string_view kAnnotationDeletionEvidence = "nodeset.slinky.slurm.net/deletion-evidence";
/// On a ControllerRevision: "true" if the operator updates workers of earlier revisions to this revision. "false" if this is
/// the first revision that this operator recorded, or if spec.updateStrategy.type was OnDelete.
inline constexpr std::string_view kAnnotationRolls = "nodeset.slinky.slurm.net/rolls";
/// The only Kubernetes node that the worker's node affinity allows. The worker's earlier pod ran on that node.
inline constexpr std::string_view kAnnotationPinnedTo = "nodeset.slinky.slurm.net/pinned-to";
/// On the PVC of a worker that was removed by scaling in: the UID of the worker's pod. The PVC is deleted with the pod.
inline constexpr std::string_view kAnnotationScaledIn = "nodeset.slinky.slurm.net/scaled-in";
/// The revision hash with which the pod was created. Set only on a pod that was updated to a newer template in place.
inline constexpr std::string_view kAnnotationCreatedRevision = "nodeset.slinky.slurm.net/created-revision";
/// On the newest ControllerRevision, until all workers have that revision: the controller-revision-hash of the previous
/// revision. Workers below spec.updateStrategy.rollingUpdate.partition still have the previous revision.
inline constexpr std::string_view kAnnotationBaseRevision = "nodeset.slinky.slurm.net/base-revision";
/// On a ControllerRevision whose template users have restored: the time when this revision became the newest again.
inline constexpr std::string_view kAnnotationNewestSince = "nodeset.slinky.slurm.net/newest-since";
/// On a NodeSet, set by users: confirms the loss of Kubernetes nodes that the condition DeletionsStopped reports. The value is
/// the time from the condition, so a later loss needs another confirmation.
inline constexpr std::string_view kAnnotationConfirmNodeLoss = "nodeset.slinky.slurm.net/confirm-node-loss";
/// On a NodeSet, set by users: allows the operator to replace the workers whose nodes Slurm lost before this time.
inline constexpr std::string_view kAnnotationConfirmStateLoss = "nodeset.slinky.slurm.net/confirm-state-loss";
/// Set once Slurm has shown the worker's node. The value is the name of the node at that time, or "true" from an earlier
/// release. From then on, a missing node in Slurm does not prove that the worker has no jobs.
inline constexpr std::string_view kAnnotationRegistered = "nodeset.slinky.slurm.net/registered";

// Annotations that users set on Kubernetes Nodes, unless a comment says otherwise. The operator also sets
// topology.slinky.slurm.net/spec: on a worker pod, its value is the topology that the operator has set in Slurm.
/// The reason for draining the workers of a Kubernetes node that is unschedulable.
inline constexpr std::string_view kAnnotationNodeCordonReason = "nodeset.slinky.slurm.net/node-cordon-reason";
/// The name of the Slurm node of the worker on this Kubernetes node, with scalingMode DaemonSet and no host networking.
inline constexpr std::string_view kAnnotationNodeHostnameOverride = "nodeset.slinky.slurm.net/hostname-override";
/// On a worker pod, set by the operator: more pairs Key=Value for `slurmd --conf` until Slurm has the worker's node.
inline constexpr std::string_view kAnnotationFirstConf = "nodeset.slinky.slurm.net/first-conf";
/// The topology of the Slurm nodes on this Kubernetes node ("default:switch-1").
inline constexpr std::string_view kAnnotationTopologySpec = "topology.slinky.slurm.net/spec";
/// The features of the Slurm nodes on this Kubernetes node, separated by commas and without kFeaturePrefix.
inline constexpr std::string_view kAnnotationFeaturesSpec = "features.slinky.slurm.net/spec";
/// The prefix of the features that Slurm nodes get from labels and annotations of Kubernetes nodes.
inline constexpr std::string_view kFeaturePrefix = "k8s/";

// Annotations of children and pod templates that the operator sets. X-config is the ConfigMap of the Controller X.
/// On X-config and on pods of slurmctld's backups: the hash of the configuration that X-config offers to slurmctld.
inline constexpr std::string_view kAnnotationSlurmConfigHash = "slinky.slurm.net/slurm-config-hash";
/// On pods of slurmctld, slurmdbd and login nodes, the keyring and X-config: a digest of the auth/slurm key in use.
inline constexpr std::string_view kAnnotationSlurmKeyHash = "slinky.slurm.net/slurm-key-hash";
/// On a keyring, the Secret of the keys that daemons mount: the step of a key rotation (operator/controller/rotation.hpp).
inline constexpr std::string_view kAnnotationKeyRotation = "slinky.slurm.net/key-rotation";
/// On a keyring and on X-config: the digest of the key with which slurmctld's pod was made, if the key has changed since.
inline constexpr std::string_view kAnnotationMadeWithKey = "slinky.slurm.net/made-with-slurm-key-hash";
/// On pods of slurmctld and slurmd: shows that the daemon in the pod reads slurm.jwks if the file exists.
inline constexpr std::string_view kAnnotationReadsJwks = "slinky.slurm.net/reads-slurm-jwks";
/// On pods of slurmctld's backups: the step of the key rotation whose key files the pods read when they started.
inline constexpr std::string_view kAnnotationKeyGeneration = "slinky.slurm.net/key-generation";
/// On X-config: the UID of the slurmctld pod that was last up. Set only if slurmctld's state is lost with its pod.
inline constexpr std::string_view kAnnotationServedBy = "slinky.slurm.net/served-by";
/// On pods of slurmctld and slurmdbd: a digest of the JWT key.
inline constexpr std::string_view kAnnotationJwtKeyHash = "slinky.slurm.net/jwt-key-hash";
/// On slurmdbd's pod: the hash of slurmdbd.conf.
inline constexpr std::string_view kAnnotationSlurmdbdConfHash = "slinky.slurm.net/slurmdbd-conf-hash";
/// On the pods of slurmdbd and of a managed MariaDB: a digest of the database's password.
inline constexpr std::string_view kAnnotationStoragePasswordHash = "slinky.slurm.net/storage-password-hash";
/// On login pods: the hash of sshd_config.
inline constexpr std::string_view kAnnotationSshdConfHash = "slinky.slurm.net/sshd-conf-hash";
/// On worker pods with sshd: the text of sshd_config, which a volume shows to sshd.
inline constexpr std::string_view kAnnotationSshdConfig = "slinky.slurm.net/sshd-config";
/// On pods of slurmctld, slurmrestd and login nodes with sssd: a digest of sssd.conf.
inline constexpr std::string_view kAnnotationSssdConfHash = "slinky.slurm.net/sssd-conf-hash";
/// On login pods: a digest of the SSH host keys.
inline constexpr std::string_view kAnnotationSshHostKeysHash = "slinky.slurm.net/ssh-host-keys-hash";
/// A counter or digest on pods. When the operator changes the value, the kubelet refreshes the pods' ConfigMap volumes at
/// once.
inline constexpr std::string_view kAnnotationConfigRefresh = "slinky.slurm.net/config-refresh";
/// On slurmctld's pods: a digest of the settings that only take effect on a restart.
inline constexpr std::string_view kAnnotationRestartHash = "slinky.slurm.net/restart-hash";
/// On slurmctld's pod template: the hash of the configuration for which the pod of a crashing slurmctld was last replaced.
inline constexpr std::string_view kAnnotationRestartedFor = "slinky.slurm.net/restarted-for";
/// The annotations from here to kAnnotationHeldSince are on X-config, unless a comment names another object: see
/// operator/controller/rollout.hpp. This one is the hash of the last configuration that slurmctld accepted, for rolling back.
inline constexpr std::string_view kAnnotationAcceptedConfigHash = "slinky.slurm.net/accepted-config-hash";
/// The hash of the configuration that slurmctld refused.
inline constexpr std::string_view kAnnotationRefusedConfigHash = "slinky.slurm.net/refused-config-hash";
/// The error with which slurmctld refused the configuration.
inline constexpr std::string_view kAnnotationRefusedReason = "slinky.slurm.net/refused-reason";
/// The hash of the users' settings from which the offered configuration was made: see Rendered::asked.
inline constexpr std::string_view kAnnotationAskedHash = "slinky.slurm.net/asked-hash";
/// The hash of the users' settings from which the refused configuration was made.
inline constexpr std::string_view kAnnotationRefusedAskedHash = "slinky.slurm.net/refused-asked-hash";
/// The digest of the pod template of the slurmctld that refused the configuration.
inline constexpr std::string_view kAnnotationRefusedBy = "slinky.slurm.net/refused-by";
/// The time (RFC 3339) of the last refusal.
inline constexpr std::string_view kAnnotationRefusedAt = "slinky.slurm.net/refused-at";
/// How often slurmctld has refused the configuration.
inline constexpr std::string_view kAnnotationRefusals = "slinky.slurm.net/refusals";
/// The partitions that slurmctld refused, or that might have caused a refusal: see LeftOut in slinky/config_map.hpp.
inline constexpr std::string_view kAnnotationLeftOut = "slinky.slurm.net/left-out-partitions";
/// "true" if slurmctld has run. Set only if no other annotation shows that slurmctld has run.
inline constexpr std::string_view kAnnotationRan = "slinky.slurm.net/slurmctld-ran";
/// The time (RFC 3339) at which a reconfigure or restart began to wait for starting jobs.
inline constexpr std::string_view kAnnotationHeldSince = "slinky.slurm.net/held-since";
/// On X-config: the release of the slurmctld that was last up, from the tag of its image; see slinky/releases.hpp.
inline constexpr std::string_view kAnnotationSlurmctldRelease = "slinky.slurm.net/slurmctld-release";
/// On slurmctld's pod, while slurmctld waits until slurmdbd has been upgraded: the release of slurmdbd that it waits for.
inline constexpr std::string_view kAnnotationSlurmdbdRelease = "slinky.slurm.net/slurmdbd-release";
/// On X-config, if slurmctld ended because its state and slurmdbd have different numbers for the cluster: the number in the
/// state, the number in slurmdbd and the UID of slurmctld's pod, separated by spaces.
inline constexpr std::string_view kAnnotationNumbersDiffer = "slinky.slurm.net/cluster-numbers-differ";
/// On the StatefulSet of slurmctld's backups: the UID of the primary's pod that takes over from a backup, and since when.
inline constexpr std::string_view kAnnotationHandedOver = "slinky.slurm.net/handed-over";
/// On X-config: when slurmctld loaded its configuration while workers were starting. See operator/controller/starting.hpp.
inline constexpr std::string_view kAnnotationStartingAt = "slinky.slurm.net/starting-at";
/// On X-config, if a user's topology.yaml or topology.conf names nodes: given_until of slinky::Places. See
/// operator/controller/places.hpp.
inline constexpr std::string_view kAnnotationPlacesGiven = "slinky.slurm.net/places-given-until";
/// On X-config: the time `due` of slinky::Places.
inline constexpr std::string_view kAnnotationPlacesDue = "slinky.slurm.net/places-due";
/// On X-config: the hash of the users' files that belong to the offered configuration.
inline constexpr std::string_view kAnnotationFilesHash = "slinky.slurm.net/files-hash";
/// On X-config: the hash of the users' files that belong to the accepted configuration.
inline constexpr std::string_view kAnnotationAcceptedFilesHash = "slinky.slurm.net/accepted-files-hash";
/// On X-config: the jobs that were still starting when a reconfigure or restart stopped waiting, and when it stopped waiting.
inline constexpr std::string_view kAnnotationCutShort = "slinky.slurm.net/cut-short-jobs";
/// On a Controller, set by users: what to remove from slurm.conf although jobs use it ("partition/gpu,license/matlab").
inline constexpr std::string_view kAnnotationRemoveNow = "controller.slinky.slurm.net/remove-now";
/// On X-config and on pods of slurmctld's backups: the hash of the scripts that slurmctld itself runs.
inline constexpr std::string_view kAnnotationScriptsHash = "slinky.slurm.net/scripts-hash";
/// On X-config, on the ConfigMaps of its files and on keyrings: a hash of the data, which shows edits by others.
inline constexpr std::string_view kAnnotationDataHash = "slinky.slurm.net/data-hash";

/// Defined by kubectl: the container that `kubectl logs` and `kubectl exec` use by default.
inline constexpr std::string_view kAnnotationDefaultContainer = "kubectl.kubernetes.io/default-container";

// Finalizers. They are removed in this order: NodeSet, RestApi, Controller, Accounting.
inline constexpr std::string_view kFinalizerNodeSet = "nodeset.slinky.slurm.net/drain";
/// The finalizer of a NodeSet for which a reservation (ScheduledUpdate) might exist in Slurm.
inline constexpr std::string_view kFinalizerReservation = "nodeset.slinky.slurm.net/reservation";
inline constexpr std::string_view kFinalizerRestApi = "restapi.slinky.slurm.net/serve";
inline constexpr std::string_view kFinalizerController = "controller.slinky.slurm.net/teardown";
inline constexpr std::string_view kFinalizerAccounting = "accounting.slinky.slurm.net/record";
/// SlurmQos: the operator deletes the QOS in Slurm before the object is gone.
inline constexpr std::string_view kFinalizerSlurmQos = "slurmqos.slinky.slurm.net/delete";
/// SlurmAccount, SlurmAssociation, SlurmUser: the operator deletes the declared entity in Slurm before the object is gone.
inline constexpr std::string_view kFinalizerSlurmAccount = "slurmaccount.slinky.slurm.net/delete";
inline constexpr std::string_view kFinalizerSlurmAssociation = "slurmassociation.slinky.slurm.net/delete";
inline constexpr std::string_view kFinalizerSlurmUser = "slurmuser.slinky.slurm.net/delete";

/// A taint (NoExecute) with which users reserve Kubernetes nodes for workers. Workers tolerate it.
inline constexpr std::string_view kTaintWorker = "nodeset.slinky.slurm.net/worker";

/// Taints with which cluster-autoscaler and Karpenter announce that a Kubernetes node will be removed. The operator drains the
/// workers on such a node.
inline constexpr std::array<std::string_view, 2> kDrainTaints{"ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"};

// Condition types of the custom resources.
inline constexpr std::string_view kConditionReady = "Ready";
inline constexpr std::string_view kConditionProgressing = "Progressing";
inline constexpr std::string_view kConditionDegraded = "Degraded";
inline constexpr std::string_view kConditionFieldsNotActedOn = "FieldsNotActedOn";
inline constexpr std::string_view kConditionDeletionsStopped = "DeletionsStopped";      ///< Controller, NodeSet.
inline constexpr std::string_view kConditionReservationCreated = "ReservationCreated";  ///< NodeSet: Slurm has its reservation.
inline constexpr std::string_view kConditionStateInMemory = "StateInMemory";  ///< Controller: persistence is disabled.
inline constexpr std::string_view kConditionJobsInDoubt = "JobsInDoubt";  ///< Controller: see operator/controller/prologs.hpp.
inline constexpr std::string_view kConditionMetricsServed = "MetricsServed";  ///< Controller: its metrics are served.
inline constexpr std::string_view kConditionKeyChanged = "KeyChanged";        ///< Controller: a new key is not in use yet.
inline constexpr std::string_view kConditionServing = "Serving";              ///< Accounting: slurmdbd answers.
inline constexpr std::string_view kConditionDatabaseUnsuited = "DatabaseUnsuited";  ///< Accounting: bad database settings.
inline constexpr std::string_view kConditionAccountingJoined = "AccountingJoined";  ///< Controller: slurmdbd records its jobs.
inline constexpr std::string_view kConditionSynced = "Synced";  ///< SlurmQos, SlurmUser ...: Slurm has the declared settings.
inline constexpr std::string_view kConditionReconfigured = "Reconfigured";  ///< Controller: the wanted slurm.conf is in force.
inline constexpr std::string_view kConditionPlaced = "WorkersPlaced";       ///< Controller: see operator/controller/places.hpp.
/// A condition of worker pods. The message says since when Slurm has had the worker's node; see slinky/workers.hpp.
inline constexpr std::string_view kPodConditionRegistered = "SlurmNodeRegistered";
/// The prefix of the types of pod conditions that show a worker's state in Slurm. "SlurmNodeStateIdle" shows the state Idle.
inline constexpr std::string_view kPodConditionPrefix = "SlurmNodeState";

// Ports and names that containers rely on.
inline constexpr int kPortSlurmctld = 6817;
inline constexpr int kPortSlurmd = 6818;
inline constexpr int kPortSlurmdbd = 6819;
inline constexpr int kPortSlurmrestd = 6820;
inline constexpr int kPortSsh = 22;
inline constexpr std::string_view kKeySlurm = "slurm.key";  ///< The data key of a generated auth/slurm key.
/// Data keys of a keyring during a key rotation. kKeyJwks: all keys, for slurmctld and slurmd. kKeyOther: the old or the new
/// key, whichever slurm.key does not contain. kKeyGeneration: the rotation and the step for which kKeyJwks and kKeyOther were
/// written.
inline constexpr std::string_view kKeyJwks = "slurm.jwks";
inline constexpr std::string_view kKeyOther = "other.key";
inline constexpr std::string_view kKeyGeneration = "key-generation";
/// Data keys of a keyring for login pods, which read keys only at their start. kKeyLoginJwks: the slurm.jwks of login pods.
/// kKeyLoginGeneration: the rotation and the step for which kKeyLoginJwks was written.
inline constexpr std::string_view kKeyLoginJwks = "login.jwks";
inline constexpr std::string_view kKeyLoginGeneration = "login-generation";
inline constexpr std::string_view kKeyJwt = "jwt.key";  ///< The data key of a generated auth/jwt key.
inline constexpr std::string_view kKeyToken =
    "SLURM_JWT";  ///< The data key of the token in a Token's Secret, unless secretRef names another.

}  // namespace api
