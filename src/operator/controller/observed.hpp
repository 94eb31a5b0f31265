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
  std::string partition_error;  ///< Not empty: spec.partition cannot be read, so a partition may be wanted.
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
  std::optional<OwnerEnds> ends;  ///< Evidence that the pod may be deleted.
};

/// A worker's record in Slurm that no NodeSet manages any more: its NodeSet was deleted while Slurm did not answer, or together
/// with an earlier cluster whose state slurmctld has restored.
struct StaleRecord {
  std::string node;
  std::optional<slurm::LeftBehind> evidence;  ///< Empty while Slurm's answer is too old.
};

/// The Accounting that spec.accountingRef names.
struct AccountingFacts {
  std::string name;
  bool exists = false;
  std::string error;         ///< Not empty: the spec cannot be parsed.
  Endpoint slurmdbd;         ///< The address of slurmdbd, which may not run yet.
  bool external = false;     ///< The operator does not run this slurmdbd.
  bool serving = false;      ///< slurmdbd answers.
  bool terminating = false;  ///< The Accounting is being deleted.
  /// The keys of slurmdbd. nullopt: unknown, or not managed by the operator.
  std::optional<SecretFacts> slurm_key, jwt_key;
  /// The release that the running slurmdbd has reported. If it has not reported one or is about to be replaced, the release in
  /// the image of its StatefulSet. {0, 0}: unknown.
  ImageRelease slurmdbd_release{};
  std::string told_release{};     ///< The release in the Accounting's ConfigMap; "": not reported yet.
  bool slurmdbd_changes = false;  ///< The StatefulSet has a template with which no slurmdbd is ready yet.
  /// Another Controller with the same cluster name and the same Accounting, which has joined the Accounting or is older.
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

  SecretFacts slurm_key, jwt_key;  ///< The Secrets that users name, or generated ones.
  SecretFacts keyring;             ///< The copy of slurm_key that daemons mount.
  SecretFacts sssd_conf;           ///< The Secret of spec.sssdConfRef.
  /// Pods of slurmctld and workers that mount the Secret of slurm_key itself. Earlier versions created them.
  std::vector<std::string> old_mounts;
  std::vector<NamedFiles> config_files, prolog, epilog, prolog_slurmctld, epilog_slurmctld;
  std::optional<NamedFiles> jwks;
  std::vector<Problem> missing;  ///< Missing Secrets and ConfigMaps that the pod's spec names.

  std::set<std::string> places;  ///< Topology strings of the Kubernetes nodes, if spec.topology is set.
  bool reads_kube_nodes = true;  ///< The operator may read Kubernetes nodes.
  bool no_kube_nodes = false;    ///< Kubernetes reports no node at all.

  std::optional<AccountingFacts> accounting;
  std::optional<UsageMissing> usage_missing;  ///< For the first pod in `pods` whose slurmctld crashes without its usage file.
  /// "ns/name" of an older Controller with the same cluster name. Does not include Controllers with the same Accounting, for
  /// which there is AccountingFacts::namesake.
  std::string older_cluster;
  /// The NodeSets of this Controller, sorted by slurm_name. If several have the same name in Slurm, the first one owns it.
  std::vector<NodeSetFacts> nodesets;
  std::vector<RestApiFacts> restapis;
  std::vector<kube::PodPtr> worker_pods;  ///< The worker pods that still exist.
  std::vector<std::string> workers;       ///< The names of the worker pods.
  /// Login pods that mount the keyring. Read only if the keyring's key differs from the user's key or rotates.
  std::vector<kube::PodPtr> login_pods;
  std::set<std::string> worker_nodes;  ///< Slurm node names of `worker_pods`.
  /// True if Slurm has had the node of a worker, or if a worker's slurmd has started and waits for slurmctld.
  bool workers_registered = false;
  std::vector<core::WallTime> starting;  ///< Creation times of worker pods that may have started but have not registered.
  std::vector<LeftWorker> left_workers;  ///< Workers whose NodeSet is gone.
  /// NodeSets that are gone while some of their workers exist. Maps their names in Slurm to the names of the objects.
  std::map<std::string, std::string> left_nodesets;

  /// Pods of slurmctld and workers with HTTP probes, and StatefulSets that create such pods. Earlier releases used HTTP probes
  /// for images with a tag of Slurm 25.11 or later.
  std::vector<std::string> http_probed;

  std::vector<StaleRecord> stale_records;  ///< Empty while Slurm does not answer.

  kube::ObjectPtr service, internal_service, workers_service, workers_pdb, config_map, file_copies, accepted_copies,
      stateful_set;
  kube::Presence service_monitors =
      kube::Presence::kAbsent;  ///< Whether the kind ServiceMonitor exists. Read only where metrics are, or were, asked for.
  kube::ObjectPtr service_monitor;
  kube::ObjectPtr backup_set, slurmctld_pdb;                  ///< Exist only with backups.
  std::map<std::string, kube::ObjectPtr> slurmctld_services;  ///< Exist only with backups. By pod name: see addressed_pods().
  kube::ObjectPtr claim;                                      ///< The volume claim of the state, if the StatefulSet created it.
  std::vector<kube::PodPtr> pods;         ///< The pods of slurmctld. With backups, only those of the primary.
  std::vector<kube::PodPtr> backup_pods;  ///< Pods of the standby slurmctlds.
  slurm::SnapshotPtr snapshot;            ///< Null: no RestApi serves this cluster.
  bool stopped = false;                   ///< An annotation stops all deletions.
  std::string doubt;                      ///< Why Slurm's answers must not lead to deletions. "": they may. See doubt_of.
};

}  // namespace op::controller
