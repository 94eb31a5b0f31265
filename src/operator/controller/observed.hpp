// The facts for the Controller's plan, copied from the caches at one moment.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/controller.hpp"
#include "kube/object.hpp"
#include "operator/common/evidence.hpp"
#include "operator/common/slinky.hpp"
#include "operator/controller/usage_missing.hpp"
#include "plan/plan.hpp"
#include "slinky/keys.hpp"
#include "slinky/names.hpp"
#include "slinky/releases.hpp"
#include "slurm/evidence.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::controller {

/// A ConfigMap that the user names.
struct NamedFiles {
  std::string name;
  kube::Presence presence = kube::Presence::kUnknown;
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> binary{};  ///< Binary files, in base64.
};

/// The facts about a NodeSet that matter to slurm.conf.
struct NodeSetFacts {
  std::string object;      ///< The name of the NodeSet object.
  std::string slurm_name;  ///< The name in slurm.conf: NodeSet=, Feature=, PartitionName=.
  bool partition = false;
  std::string partition_config;
  bool terminating = false;
  std::string partition_error;  ///< Not empty: spec.partition cannot be read, so it is unknown whether a partition is wanted.
  std::string host_prefix;      ///< The names of the workers begin with this prefix. An ordinal follows.
  bool ending = false;          ///< The NodeSet is being deleted, and its workers with it.
};

/// A RestApi, which must be deleted before the Controller.
struct RestApiFacts {
  std::string name;
  bool terminating = false;  ///< The RestApi is being deleted and still serves NodeSets that are being deleted.
};

/// A worker whose NodeSet is gone.
struct LeftWorker {
  kube::PodPtr pod;
  std::optional<OwnerEnds> ends;  ///< Evidence that allows the deletion of the pod.
};

/// A worker's node record in Slurm that no NodeSet manages any more. Either the NodeSet was deleted while Slurm did not answer,
/// or the NodeSet belonged to an earlier cluster whose state slurmctld has restored.
struct StaleRecord {
  std::string node;
  std::optional<slurm::LeftBehind> evidence;  ///< Empty while Slurm's answer is too old.
};

/// The Accounting that spec.accountingRef names.
struct AccountingFacts {
  std::string name;
  bool exists = false;
  std::string error;         ///< Not empty: the spec cannot be parsed.
  Endpoint slurmdbd;         ///< The address of slurmdbd. slurmdbd need not run yet.
  bool external = false;     ///< The operator does not run this slurmdbd.
  bool serving = false;      ///< slurmdbd answers.
  bool terminating = false;  ///< The Accounting is being deleted.
  /// The keys of slurmdbd. nullopt: unknown, or not managed by the operator.
  std::optional<SecretFacts> slurm_key, jwt_key;
  /// The release that the running slurmdbd has reported. If slurmdbd has reported no release or is about to be replaced, the
  /// release in the image tag of its StatefulSet. {0, 0}: unknown.
  ImageRelease slurmdbd_release{};
  std::string told_release{};     ///< The release in the Accounting's ConfigMap; "": not reported yet.
  bool slurmdbd_changes = false;  ///< The StatefulSet has a template with which no slurmdbd is ready yet.
  /// Another Controller with the same cluster name and Accounting. It takes precedence, because it has joined the Accounting or
  /// is older than this Controller.
  std::string namesake;
  bool namesake_joined = false;
};

struct Observed {
  plan::Context context;
  slurm::ClusterKey cluster;
  kube::ObjectPtr object;
  api::Controller controller;
  std::string parse_error;                       ///< Not empty: `controller` is not valid.
  std::string cluster_domain = "cluster.local";  ///< For the DNS search path of slurmctld.

  SecretFacts slurm_key, jwt_key;  ///< The Secrets that users name, or generated Secrets.
  SecretFacts keyring;             ///< The copy of slurm_key that daemons mount.
  SecretFacts sssd_conf;           ///< The Secret of spec.sssdConfRef.
  /// Pods of slurmctld and workers that mount the user's Secret of slurm_key, not the keyring. Earlier versions created such
  /// pods.
  std::vector<std::string> old_mounts;
  std::vector<NamedFiles> config_files, prolog, epilog, prolog_slurmctld, epilog_slurmctld;
  std::optional<NamedFiles> jwks;
  std::vector<Problem> missing;  ///< Missing Secrets and ConfigMaps that the pod's spec names.

  std::set<std::string> places;  ///< Topology strings of the Kubernetes nodes, if spec.topology is set.
  bool reads_kube_nodes = true;  ///< The operator is allowed to read Kubernetes nodes.
  bool no_kube_nodes = false;    ///< Kubernetes reports no node at all.

  std::optional<AccountingFacts> accounting;
  std::optional<UsageMissing> usage_missing;  ///< Evidence about the first of `pods` whose slurmctld lacks its usage file.
  /// "ns/name" of an older Controller with the same cluster name. Does not include Controllers with the same Accounting: those
  /// are in AccountingFacts::namesake.
  std::string older_cluster;
  /// The NodeSets of this Controller, sorted by slurm_name. If several have the same name in Slurm, the first NodeSet has the
  /// name.
  std::vector<NodeSetFacts> nodesets;
  std::vector<RestApiFacts> restapis;
  std::vector<kube::PodPtr> worker_pods;  ///< The worker pods that still exist.
  std::vector<std::string> workers;       ///< The names of the worker pods.
  /// Login pods that mount the keyring. Read only if the keyring's key differs from the user's key or rotates.
  std::vector<kube::PodPtr> login_pods;
  std::set<std::string> worker_nodes;  ///< Slurm node names of `worker_pods`.
  /// True if Slurm has ever had the node of a worker, or if a worker's slurmd has started and waits for slurmctld.
  bool workers_registered = false;
  std::vector<core::WallTime> starting;  ///< Creation times of worker pods that might run but have not registered.
  std::vector<LeftWorker> left_workers;  ///< Workers whose NodeSet is gone.
  /// NodeSets that are gone while some of their workers exist. Maps the NodeSet's name in Slurm to the name of the object.
  std::map<std::string, std::string> left_nodesets;

  /// Pods of slurmctld and workers that have HTTP probes, and StatefulSets that create such pods. Earlier releases used HTTP
  /// probes if the image tag named Slurm 25.11 or later.
  std::vector<std::string> http_probed;

  std::vector<StaleRecord> stale_records;  ///< Empty while Slurm does not answer.

  kube::ObjectPtr service, internal_service, workers_service, workers_pdb, config_map, file_copies, accepted_copies,
      stateful_set;
  kube::Presence service_monitors =
      kube::Presence::kAbsent;  ///< Whether the kind ServiceMonitor exists. Read only if metrics are or were requested.
  kube::ObjectPtr service_monitor;
  kube::ObjectPtr backup_set, slurmctld_pdb;                  ///< Exist only with backups.
  std::map<std::string, kube::ObjectPtr> slurmctld_services;  ///< By pod name: see addressed_pods(). Exist only with backups.
  kube::ObjectPtr claim;                  ///< The PersistentVolumeClaim of slurmctld's state, if the StatefulSet created it.
  std::vector<kube::PodPtr> pods;         ///< The pods of slurmctld. With backups, only those of the primary.
  std::vector<kube::PodPtr> backup_pods;  ///< Pods of the standby slurmctlds.
  slurm::SnapshotPtr snapshot;            ///< Null: no RestApi serves this cluster.
  bool stopped = false;                   ///< An annotation stops all deletions.
  std::string doubt;  ///< Why Slurm's answers must not lead to deletions (see doubt_of). "": deletions are allowed.
};

}  // namespace op::controller
