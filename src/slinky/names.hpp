// Names, labels and addresses of all objects that the controllers make. The names are those of the Go operator v1.2.1.
//
// Every controller takes names from this header, so that it finds the objects of other controllers. X is the resource's name.
#pragma once

#include <string>
#include <string_view>

#include "api/accounting.hpp"
#include "api/controller.hpp"
#include "api/nodeset.hpp"
#include "api/restapi.hpp"
#include "api/well_known.hpp"
#include "kube/object.hpp"
#include "slurm/model.hpp"

namespace slinky {

/// Our own kinds, as the API server serves them.
namespace resources {
inline kube::Resource own(std::string_view kind, std::string_view plural) {
  return {std::string(api::kGroup), std::string(api::kVersion), std::string(kind), std::string(plural), true};
}
inline const kube::Resource kController = own("Controller", "controllers");
inline const kube::Resource kRestApi = own("RestApi", "restapis");
inline const kube::Resource kNodeSet = own("NodeSet", "nodesets");
inline const kube::Resource kLoginSet = own("LoginSet", "loginsets");
inline const kube::Resource kAccounting = own("Accounting", "accountings");
inline const kube::Resource kToken = own("Token", "tokens");
inline const kube::Resource kSlurmQos = own("SlurmQos", "slurmqoses");
inline const kube::Resource kSlurmAccount = own("SlurmAccount", "slurmaccounts");
inline const kube::Resource kSlurmUser = own("SlurmUser", "slurmusers");
inline const kube::Resource kSlurmAssociation = own("SlurmAssociation", "slurmassociations");
/// The kind ServiceMonitor of the Prometheus operator, which might not be installed, and the name of its CRD.
inline const kube::Resource kServiceMonitor{"monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors", true};
inline constexpr const char* kServiceMonitorDefinition = "servicemonitors.monitoring.coreos.com";
}  // namespace resources

/// Values of the label app.kubernetes.io/name.
inline constexpr std::string_view kAppController = "slurmctld";
/// The standby slurmctlds. Their label differs from the primary's, because most rules for the primary's pod exclude standbys.
inline constexpr std::string_view kAppBackup = "slurmctld-backup";
inline constexpr std::string_view kAppRestApi = "slurmrestd";
inline constexpr std::string_view kAppWorker = "slurmd";
inline constexpr std::string_view kAppLogin = "login";
inline constexpr std::string_view kAppAccounting = "slurmdbd";
inline constexpr std::string_view kAppDatabase = "slurm-mariadb";
inline constexpr std::string_view kAppToken = "slurm-token";
/// Selects the children of our resources in most caches. Contains every kAppX above, except that of Tokens' Secrets.
inline constexpr std::string_view kChildSelector =
    "app.kubernetes.io/name in (slurmctld,slurmctld-backup,slurmdbd,slurm-mariadb,slurmrestd,slurmd,login)";

/// The field managers of server-side apply, one for each controller.
inline constexpr std::string_view kManagerController = "slurm-operator-controller";
inline constexpr std::string_view kManagerRestApi = "slurm-operator-restapi";
inline constexpr std::string_view kManagerLoginSet = "slurm-operator-loginset";
inline constexpr std::string_view kManagerAccounting = "slurm-operator-accounting";

/// Returns the labels (name and instance) that select a component's pods. They never change, because selectors are immutable.
kube::StringMap selector_labels(std::string_view app, std::string_view instance);
/// Returns the labels of a component's objects: selector_labels and app.kubernetes.io/component.
kube::StringMap component_labels(std::string_view app, std::string_view instance, std::string_view component);
kube::StringMap controller_labels(std::string_view controller);
kube::StringMap backup_labels(std::string_view controller);
/// Returns the labels that select all slurmctlds of a Controller, including the standby ones.
kube::StringMap slurmctld_selector(std::string_view controller);
kube::StringMap restapi_labels(std::string_view restapi);
kube::StringMap loginset_labels(std::string_view loginset);
kube::StringMap accounting_labels(std::string_view accounting);
kube::StringMap database_labels(std::string_view accounting);
/// Returns the labels of a worker pod: app.kubernetes.io/instance is the NodeSet, slinky.slurm.net/cluster the Controller.
kube::StringMap worker_labels(std::string_view nodeset, std::string_view controller);

/// "X-controller": the StatefulSet, its serviceName, and the Service in front of the StatefulSet.
std::string controller_object_name(std::string_view controller);
/// "X-controller-internal": the headless Service.
std::string controller_internal_service_name(std::string_view controller);
/// "X-controller-backup": the StatefulSet of the slurmctlds that stand by.
std::string backup_object_name(std::string_view controller);
/// "X-config": the ConfigMap with slurm.conf.
std::string config_map_name(std::string_view controller);
/// "X-config-files": the ConfigMap with copies of the files that the user names, which slurmctld's pods mount.
std::string config_files_name(std::string_view controller);
/// "X-config-files-accepted": the ConfigMap with copies of the files that slurmctld last accepted. It exists while the
/// operator offers newer files to slurmctld. No pod mounts this ConfigMap.
std::string accepted_files_name(std::string_view controller);
/// "statesave-X-controller-0": the claim that the StatefulSet controller makes for slurmctld's state.
std::string state_claim_name(std::string_view controller);
/// "X-keyring": the copy of the auth/slurm key that daemons mount, under the data key slurm.key.
std::string keyring_name(std::string_view controller);
/// "X-slurm-key", "X-jwt-key": generated Secrets.
std::string generated_slurm_key_name(std::string_view controller);
std::string generated_jwt_key_name(std::string_view controller);
/// "X-restapi": the Deployment and its Service.
std::string restapi_object_name(std::string_view restapi);
/// "X-accounting": the StatefulSet, its Service, and the ConfigMap with slurmdbd.conf.
std::string accounting_object_name(std::string_view accounting);
/// "X-mariadb": the StatefulSet of a managed MariaDB, its Service, and the Secret with its password.
std::string database_object_name(std::string_view accounting);
/// "X-ssh-host-keys": the Secret with the host keys of a LoginSet. The Deployment and Service have the name of the LoginSet.
std::string ssh_host_keys_name(std::string_view loginset);
/// "X-ssh-config": the ConfigMap with sshd_config and root's authorized keys.
std::string ssh_config_name(std::string_view loginset);
/// "X-hosts": the EndpointSlice with the names of a LoginSet's pods.
std::string login_hosts_name(std::string_view loginset);
/// "X-worker-ssh-host-keys": the Secret with the host keys of a NodeSet's workers, if the workers run sshd.
std::string worker_ssh_host_keys_name(std::string_view nodeset);
/// "slurm-workers-X": the headless Service of all workers of a Controller, and the subdomain of their pods.
std::string workers_service_name(std::string_view controller);
/// Returns the domain of the Service slurm-workers-X. The names of worker pods and login pods are in this domain. Slurm's
/// daemons have it as a DNS search path.
std::string workers_domain(std::string_view ns, std::string_view controller, std::string_view cluster_domain);
/// "slurm-workers-pdb-X": the PodDisruptionBudget of all workers of a Controller.
std::string workers_pdb_name(std::string_view controller);

/// Returns the key that identifies a Controller's cluster everywhere in this operator: "ns/X".
slurm::ClusterKey cluster_key(std::string_view ns, std::string_view controller);

/// Returns the key of an accounting database: "accounting/ns/X". The key never equals that of a cluster.
slurm::AccountingKey accounting_key(std::string_view ns, std::string_view accounting);

/// A data key of a Secret, and whether the operator generates that Secret.
struct KeyRef {
  std::string secret;
  std::string key;
  bool generated = false;
  friend bool operator==(const KeyRef&, const KeyRef&) = default;
};
KeyRef slurm_key_ref(const api::ControllerSpec& spec, std::string_view controller);
KeyRef jwt_key_ref(const api::ControllerSpec& spec, std::string_view controller);

/// Host and port at which slurmd, sackd and clients reach slurmctld: "X-controller.ns" and the Service's port (or
/// externalConfig).
struct Endpoint {
  std::string host;
  int port = 0;
  [[nodiscard]] std::string str() const;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
Endpoint controller_endpoint(const api::ControllerSpec& spec, std::string_view ns, std::string_view controller);
/// Returns the number of standby slurmctlds.
int backups_of(const api::ControllerSpec& spec);
/// Returns the names of slurmctld's pods if there are backups, the primary's pod first. A pod's name is also its hostname.
std::vector<std::string> slurmctld_pods(std::string_view controller, int backups);
/// Returns the address of one slurmctld's pod, primary or backup: the Service with the pod's name. The pod's name in a
/// headless Service would not resolve while the pod is absent, and Slurm retries an unknown name for seconds.
std::string slurmctld_address(std::string_view pod, std::string_view ns);
/// Returns the --conf-server of slurmd and sackd: the address of each slurmctld if there are backups, then
/// controller_endpoint.
std::string conf_servers(const api::ControllerSpec& spec, std::string_view ns, std::string_view controller);
/// Returns the address of slurmdbd for clusters: "X-accounting.ns" and the Service's port (or externalConfig).
Endpoint accounting_endpoint(const api::AccountingSpec& spec, std::string_view ns, std::string_view accounting);
Endpoint restapi_endpoint(const api::RestApiSpec& spec, std::string_view ns, std::string_view restapi);

/// Returns the name of the NodeSet, Feature and Partition that Slurm has for a NodeSet: template.spec.hostname without
/// trailing dashes, or else the name of the object.
std::string slurm_node_set_name(const api::NodeSetSpec& spec, std::string_view nodeset);
/// Returns the name that Slurm has for a NodeSet, even if other fields of the NodeSet cannot be read.
std::string slurm_node_set_name(const kube::Object& nodeset);

/// Default images: the public ones.
inline constexpr std::string_view kDefaultSlurmctldImage = "ghcr.io/slinkyproject/slurmctld:26.05-ubuntu24.04";
inline constexpr std::string_view kDefaultSlurmdbdImage = "ghcr.io/slinkyproject/slurmdbd:26.05-ubuntu24.04";
inline constexpr std::string_view kDefaultMariadbImage = "docker.io/library/mariadb:11.8";
inline constexpr std::string_view kDefaultSlurmrestdImage = "ghcr.io/slinkyproject/slurmrestd:26.05-ubuntu24.04";
inline constexpr std::string_view kDefaultSlurmdImage = "ghcr.io/slinkyproject/slurmd:26.05-ubuntu24.04";
inline constexpr std::string_view kDefaultLoginImage = "ghcr.io/slinkyproject/login:26.05-ubuntu24.04";

/// The UID and GID of slurmctld and slurmdbd in the images. slurmrestd runs as nobody.
inline constexpr int kSlurmUid = 401;
inline constexpr int kNobodyUid = 65534;
/// The UID and GID of mysql in MariaDB's image.
inline constexpr int kMariadbUid = 999;

/// The reason with which slurmd registers its node as drained. Used if somebody else had drained the node before the operator
/// deleted its record. One word, because scripts of some images split the reason at spaces. Does not name the operator, which
/// would else treat the drain as its own and resume the node.
inline constexpr std::string_view kDrainedBefore = "drained-before-its-record-was-made-anew";

}  // namespace slinky
