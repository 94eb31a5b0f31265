// What the Controller's plan knows: copies of what the caches held at one moment, and nothing else.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "api/controller.hpp"
#include "cluster/evidence.hpp"
#include "cluster/keys.hpp"
#include "cluster/names.hpp"
#include "cluster/releases.hpp"
#include "kube/object.hpp"
#include "operator/controller/usage_missing.hpp"
#include "plan/plan.hpp"
#include "slurm/evidence.hpp"
#include "slurm/snapshot/snapshot.hpp"

namespace op::controller {

/// A ConfigMap that the user names.
struct NamedFiles {
  std::string name;
  kube::Presence presence = kube::Presence::kUnknown;
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> binary{};  ///< Those that are no text, in base64.
};

/// What slurm.conf says of a NodeSet.
struct NodeSetFacts {
  std::string object;      ///< The NodeSet's own name.
  std::string slurm_name;  ///< NodeSet=, Feature= and PartitionName=.
  bool partition = false;
  std::string partition_config;
  bool terminating = false;
  std::string partition_error;  ///< Not empty: the partition may be wanted, but that cannot be read.
  std::string host_prefix;      ///< What the names of its workers begin with; an ordinal follows.
  bool ending = false;          ///< It is being deleted, and its workers with it.
};

/// Something that must go before the Controller may.
struct RestApiFacts {
  std::string name;
  bool terminating = false;  ///< And it still serves NodeSets that end.
};

/// A worker that no NodeSet ends any more.
struct LeftWorker {
  kube::PodPtr pod;
  std::optional<OwnerEnds> ends;  ///< The Controller takes it with it.
};

/// A worker's record in Slurm that no NodeSet answers for any more: its NodeSet went while Slurm did not answer, or with a
/// cluster whose state came back.
struct StaleRecord {
  std::string node;
  std::optional<slurm::LeftBehind> evidence;  ///< None while what Slurm said is too old.
};

/// The Accounting that spec.accountingRef names.
struct AccountingFacts {
  std::string name;
  bool exists = false;
  std::string error;      ///< Not empty: its spec cannot be read.
  Endpoint slurmdbd;      ///< Where it is, or will be.
  bool external = false;  ///< It is not known whether its slurmdbd answers.
  bool serving = false;   ///< Its slurmdbd answers.
  /// That its slurmdbd is to have; nullopt: it is not known, or not ours to know.
  std::optional<SecretFacts> slurm_key, jwt_key;
  /// As the one that answers says; while it has not said, or another is to come, by the image of its StatefulSet. {0, 0}: not
  /// known.
  ImageRelease slurmdbd_release{};
  std::string told_release{};     ///< The same as the ConfigMap of the Accounting has it; "": nothing was told yet.
  bool slurmdbd_changes = false;  ///< Its StatefulSet has an image that no slurmdbd answers with yet.
  std::string namesake;           ///< An older Controller that names it as well, and has the same cluster name.
};

struct Observed {
  plan::Context context;
  slurm::ClusterKey cluster;
  kube::ObjectPtr object;
  api::Controller controller;
  std::string parse_error;                       ///< Not empty: `controller` says nothing.
  std::string cluster_domain = "cluster.local";  ///< For the DNS search path of slurmctld.

  SecretFacts slurm_key, jwt_key;  ///< As users name them, or generated.
  SecretFacts keyring;             ///< What daemons mount of the first.
  SecretFacts sssd_conf;           ///< Of spec.sssdConfRef.
  /// Of slurmctld and the workers, those that mount the Secret of slurm_key itself: earlier versions made them.
  std::vector<std::string> old_mounts;
  std::vector<NamedFiles> config_files, prolog, epilog, prolog_slurmctld, epilog_slurmctld;
  std::optional<NamedFiles> jwks;
  std::vector<Problem> missing;  ///< Of the Secrets and ConfigMaps that the pod's parts name.

  std::set<std::string> places;  ///< Topology strings of the Kubernetes nodes, where spec.topology asks for them.
  bool reads_kube_nodes = true;  ///< The operator has the right to.
  bool no_kube_nodes = false;    ///< Kubernetes says that it has no node at all.

  std::optional<AccountingFacts> accounting;
  std::optional<UsageMissing> usage_missing;  ///< Of the first of `pods` that it is true of.
  std::string older_cluster;                  ///< "ns/name" of an older Controller with the same cluster name.
  std::vector<NodeSetFacts> nodesets;         ///< Of this Controller, sorted by slurm_name; of the same, the first one has it.
  std::vector<RestApiFacts> restapis;
  std::vector<kube::PodPtr> worker_pods;  ///< Those that still exist.
  std::vector<std::string> workers;       ///< Their names.
  /// Of login pods that mount the keyring; read only where its key is another than the user's, or rotates.
  std::vector<kube::PodPtr> login_pods;
  std::set<std::string> worker_nodes;    ///< Slurm nodes' names of the same.
  bool workers_registered = false;       ///< Slurm has known one of them, or its slurmd began, which waits for slurmctld.
  std::vector<core::WallTime> starting;  ///< When the pods of workers were made that may have begun, and have not registered.
  std::vector<LeftWorker> left_workers;  ///< Of the same, those whose owner is a NodeSet that is gone.
  /// NodeSets that are gone, while workers of theirs are there: their own name by that in Slurm.
  std::map<std::string, std::string> left_nodesets;

  /// Pods of slurmctld and workers whose daemon is probed by HTTP, and StatefulSets that make such ones. Earlier releases made
  /// them so where the tag of an image named Slurm 25.11 or later.
  std::vector<std::string> http_probed;

  std::vector<StaleRecord> stale_records;  ///< None is known while Slurm does not answer.

  kube::ObjectPtr service, internal_service, workers_service, workers_pdb, config_map, file_copies, accepted_copies,
      stateful_set;
  kube::Presence service_monitors =
      kube::Presence::kAbsent;  ///< Of that kind; read only where metrics are, or were, asked for.
  kube::ObjectPtr service_monitor;
  kube::ObjectPtr backup_set, slurmctld_pdb;                  ///< Only where there are backups.
  std::map<std::string, kube::ObjectPtr> slurmctld_services;  ///< The same, by name: see addressed_pods.
  kube::ObjectPtr claim;                                      ///< The volume of the state, when the StatefulSet made it.
  std::vector<kube::PodPtr> pods;                             ///< Of the slurmctld that runs; with backups, of the primary.
  std::vector<kube::PodPtr> backup_pods;                      ///< Of those that stand by.
  slurm::SnapshotPtr snapshot;                                ///< Null: no RestApi serves this cluster.
  bool stopped = false;                                       ///< Its annotation says that nothing is to be deleted.
  std::string doubt;                                          ///< Why nothing is to be deleted by Slurm's word; see doubt_of.
};

}  // namespace op::controller
