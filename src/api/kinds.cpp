#include "api/kinds.hpp"

#include "api/accounting.hpp"
#include "api/controller.hpp"
#include "api/loginset.hpp"
#include "api/nodeset.hpp"
#include "api/restapi.hpp"
#include "api/slurmaccount.hpp"
#include "api/slurmqos.hpp"
#include "api/token.hpp"
#include "api/well_known.hpp"

namespace api {
namespace {

using core::Json;

const PrinterColumn kAge = {"AGE", "date", ".metadata.creationTimestamp", "", 0};
const PrinterColumn kReady = {"READY", "string", ".status.conditions[?(@.type==\"Ready\")].status",
                              "Whether everything that the resource stands for exists and works.", 0};
const PrinterColumn kSynced = {"SYNCED", "string", ".status.conditions[?(@.type==\"Synced\")].status",
                               "Whether Slurm has it as it is declared.", 0};
const PrinterColumn kReason = {"REASON", "string", ".status.conditions[?(@.type==\"Synced\")].reason",
                               "The reason of the condition Synced.", 1};

Kind controller_kind() {
  return {"Controller",
          "controllers",
          "controller",
          {"slurmctld"},
          &Codec<Controller>::list(),
          {kReady, kAge},
          false,
          R"(apiVersion: slinky.slurm.net/v1beta1
kind: Controller
metadata:
  name: slurm
spec:
  slurmctld:
    image: ghcr.io/slinkyproject/slurmctld:26.05-ubuntu26.04
  persistence:
    resources:
      requests:
        storage: 4Gi
)"};
}

Kind restapi_kind() {
  return {"RestApi",
          "restapis",
          "restapi",
          {"slurmrestd"},
          &Codec<RestApi>::list(),
          {kReady, kAge},
          false,
          R"(apiVersion: slinky.slurm.net/v1beta1
kind: RestApi
metadata:
  name: slurm
spec:
  controllerRef:
    name: slurm
  slurmrestd:
    image: ghcr.io/slinkyproject/slurmrestd:26.05-ubuntu26.04
)"};
}

Kind nodeset_kind() {
  Kind kind = {"NodeSet",
               "nodesets",
               "nodeset",
               {"nodesets", "nss", "slurmd"},
               &Codec<NodeSet>::list(),
               {},
               true,
               R"(apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata:
  name: cpu
spec:
  controllerRef:
    name: slurm
  replicas: 3
  slurmd:
    image: ghcr.io/slinkyproject/slurmd:26.05-ubuntu26.04
    resources:
      limits:
        cpu: "4"
        memory: 8Gi
  partition:
    enabled: true
    config: State=UP Default=YES MaxTime=UNLIMITED
)"};
  kind.columns = {
      {"DESIRED", "integer", ".status.desired", "How many workers are wanted.", 0},
      {"REPLICAS", "integer", ".status.replicas", "How many pods there are.", 0},
      {"UPDATED", "integer", ".status.updatedReplicas", "How many pods have the newest revision.", 0},
      {"READY", "integer", ".status.readyReplicas", "How many pods are ready.", 0},
      {"IDLE", "integer", ".status.slurmIdle", "How many workers are IDLE in Slurm.", 1},
      {"ALLOCATED", "integer", ".status.slurmAllocated", "How many workers are ALLOCATED or MIXED in Slurm.", 1},
      {"DOWN", "integer", ".status.slurmDown", "How many workers are DOWN in Slurm.", 1},
      {"DRAIN", "integer", ".status.slurmDrain", "How many workers have the DRAIN flag in Slurm.", 1},
      kAge,
  };
  return kind;
}

Kind loginset_kind() {
  Kind kind = {"LoginSet",
               "loginsets",
               "loginset",
               {"loginsets", "lss", "sackd"},
               &Codec<LoginSet>::list(),
               {},
               true,
               R"(apiVersion: slinky.slurm.net/v1beta1
kind: LoginSet
metadata:
  name: slurm-login
spec:
  controllerRef:
    name: slurm
  login:
    image: ghcr.io/slinkyproject/login:26.05-ubuntu26.04
  rootSshAuthorizedKeys: |
    ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI... admin@example.com
  sssdConfRef:
    name: sssd
    key: sssd.conf
  service:
    spec:
      type: LoadBalancer
)"};
  kind.columns = {{"REPLICAS", "integer", ".status.replicas", "How many pods there are.", 0}, kReady, kAge};
  return kind;
}

Kind accounting_kind() {
  return {"Accounting",
          "accountings",
          "accounting",
          {"slurmdbd"},
          &Codec<Accounting>::list(),
          {kReady, kAge},
          false,
          R"(apiVersion: slinky.slurm.net/v1beta1
kind: Accounting
metadata:
  name: slurm
spec:
  slurmdbd:
    image: ghcr.io/slinkyproject/slurmdbd:26.05-ubuntu26.04
  storageConfig:
    host: mariadb
    username: slurm
    passwordKeyRef:
      name: mariadb-password
      key: password
)"};
}

Kind token_kind() {
  Kind kind = {
      "Token", "tokens", "token", {"tokens", "jwt"}, &Codec<Token>::list(), {}, false, R"(apiVersion: slinky.slurm.net/v1beta1
kind: Token
metadata:
  name: alice
spec:
  jwtKeyRef:
    name: slurm-jwt-key
    key: jwt.key
  username: alice
  lifetime: 1h
)"};
  kind.columns = {{"USER", "string", ".spec.username", "The Slurm user of the token.", 0},
                  {"IAT", "date", ".status.issuedAt", "When the current token was issued.", 0},
                  kAge};
  return kind;
}

Kind slurmqos_kind() {
  Kind kind = {"SlurmQos",
               "slurmqoses",
               "slurmqos",
               {"qos"},
               &Codec<SlurmQos>::list(),
               {},
               false,
               R"(apiVersion: slinky.slurm.net/v1beta1
kind: SlurmQos
metadata:
  name: gpu
spec:
  accountingRef:
    name: slurm
  description: jobs on GPUs
  priority: 100
  flags: [DenyOnLimit]
  preempt: [scavenger]
  preemptMode: Requeue
  limits:
    maxWallDurationPerJob: 3-00:00:00
    maxTRESPerUser:
      gres/gpu: 8
)"};
  kind.columns = {{"ACCOUNTING", "string", ".spec.accountingRef.name", "The Accounting whose slurmdbd has the QOS.", 0},
                  {"ID", "integer", ".status.id", "The number of the QOS in Slurm.", 0},
                  kSynced,
                  kReason,
                  kReady,
                  kAge};
  return kind;
}

Kind slurmaccount_kind() {
  Kind kind = {"SlurmAccount",
               "slurmaccounts",
               "slurmaccount",
               {"slacct"},
               &Codec<SlurmAccount>::list(),
               {},
               false,
               R"(apiVersion: slinky.slurm.net/v1beta1
kind: SlurmAccount
metadata:
  name: physics
spec:
  accountingRef:
    name: slurm
  description: department of physics
  fairShare: 40
  qos: [gpu, normal]
  defaultQOS: normal
  limits:
    grpTRES:
      gres/gpu: 16
)"};
  kind.columns = {{"ACCOUNTING", "string", ".spec.accountingRef.name", "The Accounting whose slurmdbd has the account.", 0},
                  {"PARENT", "string", ".spec.parent", "The account above this one. Empty: root.", 0},
                  kSynced,
                  kReason,
                  kReady,
                  kAge};
  return kind;
}

Kind slurmuser_kind() {
  Kind kind = {"SlurmUser",
               "slurmusers",
               "slurmuser",
               {"sluser"},
               &Codec<SlurmUser>::list(),
               {},
               false,
               R"(apiVersion: slinky.slurm.net/v1beta1
kind: SlurmUser
metadata:
  name: ann
spec:
  accountingRef:
    name: slurm
  defaultAccount: physics
  associations:
  - account: physics
    fairShare: 10
    limits:
      maxJobs: 20
  - account: chemistry
    partition: debug
)"};
  kind.columns = {{"ACCOUNTING", "string", ".spec.accountingRef.name", "The Accounting whose slurmdbd has the user.", 0},
                  {"DEFAULT ACCOUNT", "string", ".spec.defaultAccount",
                   "The account of jobs that name none. Empty: that of the first association.", 0},
                  kSynced,
                  kReason,
                  kReady,
                  kAge};
  return kind;
}

Kind slurmassociation_kind() {
  Kind kind = {"SlurmAssociation",
               "slurmassociations",
               "slurmassociation",
               {"slassoc"},
               &Codec<SlurmAssociation>::list(),
               {},
               false,
               R"(apiVersion: slinky.slurm.net/v1beta1
kind: SlurmAssociation
metadata:
  name: ann-debug
spec:
  accountingRef:
    name: slurm
  account: physics
  user: ann
  partition: debug
  limits:
    maxJobs: 2
)"};
  kind.columns = {{"ACCOUNTING", "string", ".spec.accountingRef.name", "The Accounting whose slurmdbd has the association.", 0},
                  {"ACCOUNT", "string", ".spec.account", "The account.", 0},
                  {"USER", "string", ".spec.user", "The user. Empty: the account itself.", 0},
                  {"PARTITION", "string", ".spec.partition", "The partition. Empty: all of them.", 0},
                  kSynced,
                  kReason,
                  kReady,
                  kAge};
  return kind;
}

Json column_json(const PrinterColumn& column) {
  Json out = {{"name", column.name}, {"type", column.type}, {"jsonPath", column.json_path}};
  if (!column.description.empty()) out["description"] = column.description;
  if (column.priority != 0) out["priority"] = column.priority;
  return out;
}

/// Declares conditions as a list keyed by type, as server-side apply and kubectl expect.
void make_conditions_a_map(Json& schema) {
  Json& conditions = schema["properties"]["status"]["properties"]["conditions"];
  conditions["x-kubernetes-list-type"] = "map";
  conditions["x-kubernetes-list-map-keys"] = {"type"};
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kKinds = {controller_kind(),       restapi_kind(),  nodeset_kind(),      loginset_kind(),
                                           accounting_kind(),       slurmqos_kind(), slurmaccount_kind(), slurmuser_kind(),
                                           slurmassociation_kind(), token_kind()};
  return kKinds;
}

const Kind* find_kind(std::string_view name) {
  for (const Kind& kind : kinds()) {
    if (kind.kind == name || kind.plural == name) return &kind;
  }
  return nullptr;
}

Json object_schema(const Kind& kind) {
  Json schema = kind.fields->schema();
  Json& properties = schema["properties"];
  properties["apiVersion"] = {{"type", "string"}, {"description", "The version of the schema: slinky.slurm.net/v1beta1."}};
  properties["kind"] = {{"type", "string"}, {"description", "The kind: " + kind.kind + "."}};
  // CEL rules can only refer to declared fields, so the schema declares metadata.name.
  properties["metadata"] = {{"type", "object"}, {"properties", {{"name", {{"type", "string"}}}}}};
  make_conditions_a_map(schema);
  return schema;
}

Json crd(const Kind& kind) {
  Json columns = Json::array();
  for (const PrinterColumn& column : kind.columns) columns.push_back(column_json(column));
  Json subresources = {{"status", Json::object()}};
  if (kind.scale) {
    subresources["scale"] = {{"specReplicasPath", ".spec.replicas"},
                             {"statusReplicasPath", ".status.replicas"},
                             {"labelSelectorPath", ".status.selector"}};
  }
  const Json version = {{"name", kVersion},
                        {"served", true},
                        {"storage", true},
                        {"additionalPrinterColumns", columns},
                        {"subresources", subresources},
                        {"schema", {{"openAPIV3Schema", object_schema(kind)}}}};
  return {{"apiVersion", "apiextensions.k8s.io/v1"},
          {"kind", "CustomResourceDefinition"},
          {"metadata", {{"name", kind.plural + "." + std::string(kGroup)}}},
          {"spec",
           {{"group", kGroup},
            {"scope", "Namespaced"},
            {"names",
             {{"kind", kind.kind},
              {"listKind", kind.kind + "List"},
              {"plural", kind.plural},
              {"singular", kind.singular},
              {"shortNames", kind.short_names}}},
            {"versions", Json::array({version})}}}};
}

std::string crd_file_name(const Kind& kind) {
  return std::string(kGroup) + "_" + kind.plural + ".yaml";
}

std::vector<GeneratedFile> generated_files() {
  std::vector<GeneratedFile> out;
  for (const Kind& kind : kinds()) {
    out.push_back({"charts/slurm-operator-crds/templates/" + crd_file_name(kind),
                   "# Generated by slurm-operator-gen from src/api; edit the field lists there.\n" + to_yaml(crd(kind))});
    out.push_back({"docs/resources/" + kind.plural + ".md", reference_page(kind)});
  }
  out.push_back({"docs/resources/README.md", reference_index()});
  return out;
}

}  // namespace api
