#include "api/accounting.hpp"

namespace api {
namespace {

constexpr int kMaxStoragePort = 65535;
constexpr std::size_t kMaxHost = 253;
/// Limits of MariaDB.
constexpr std::size_t kMaxDatabase = 64, kMaxUsername = 80;

constexpr const char* kNameRule = "has(self.name) && self.name != ''";

}  // namespace

const FieldList& field_list(const StoragePersistence*) {
  static const FieldList kList =
      FieldList("The volume of the operator's own MariaDB.").add(embed_raw(&StoragePersistence::claim, claim_properties()));
  return kList;
}

const FieldList& field_list(const StorageConfig*) {
  static const FieldList kList =
      FieldList("The MariaDB or MySQL that holds the records.")
          .add(field("managed", &StorageConfig::managed)
                   .has_default()
                   .describe("Whether the operator runs a MariaDB for this Accounting, with a volume and a password that it "
                             "generates into the Secret <name>-mariadb. For evaluation and small sites: the operator makes no "
                             "backups of it. host, port and passwordKeyRef have no effect then. Cannot be changed."))
          .add(field("host", &StorageConfig::host)
                   .pattern("^[A-Za-z0-9_.:-]*$", kMaxHost)
                   .describe("Its host name or IP address."))
          .add(field("port", &StorageConfig::port).has_default().minimum(1).maximum(kMaxStoragePort).describe("Its port."))
          .add(field("database", &StorageConfig::database)
                   .has_default()
                   .min_length(1)
                   .pattern("^[A-Za-z0-9_$]+$", kMaxDatabase)
                   .describe(
                       "The name of the database. slurmdbd creates it if it does not exist and the user has the permission."))
          .add(field("username", &StorageConfig::username)
                   .pattern("^[A-Za-z0-9_.@$+-]*$", kMaxUsername)
                   .describe("The user of the database. Empty: slurm."))
          .add(field("passwordKeyRef", &StorageConfig::password_key_ref)
                   .rule(kNameRule, "must not be empty", "name")
                   .describe("The Secret's key that holds the user's password, on one line. Only slurmdbd's pod reads it. A "
                             "change restarts slurmdbd."))
          .add(field("mariadb", &StorageConfig::mariadb)
                   .schema_of(container_schema())
                   .describe("With managed: a core/v1 Container, merged over the operator's own container mariadb. args are "
                             "appended to the options of mariadbd."))
          .add(field("template", &StorageConfig::pod_template).describe("With managed: what to add to the MariaDB pod."))
          .add(field("persistence", &StorageConfig::persistence)
                   .describe("With managed: the volume that holds the database. It outlives the Accounting. Cannot be changed "
                             "while the MariaDB exists."))
          .rule("self.managed || (has(self.host) && self.host != '')", "required when managed is false", "host")
          .rule("self.managed || has(self.passwordKeyRef)", "required when managed is false", "passwordKeyRef")
          .rule("self.managed == oldSelf.managed", "cannot be changed", "managed");
  return kList;
}

const FieldList& field_list(const AccountingSpec*) {
  static const FieldList kList =
      FieldList("The desired state of an Accounting.")
          .add(
              field("slurmKeyRef", &AccountingSpec::slurm_key_ref)
                  .rule(kNameRule, "must not be empty", "name")
                  .describe(
                      "The Secret's key that holds the auth/slurm key, the same as that of the Controllers which name this "
                      "Accounting. Absent: the key of the first Controller that has joined, or else of the oldest Controller."))
          .add(field("jwtKeyRef", &AccountingSpec::jwt_key_ref)
                   .rule(kNameRule, "must not be empty", "name")
                   .describe("The Secret's key that holds the auth/jwt key (HS256), the same as that of the Controllers which "
                             "name this Accounting. Absent: the key of the first Controller that has joined, or else of the "
                             "oldest Controller."))
          .add(field("jwtHs256KeyRef", &AccountingSpec::jwt_hs256_key_ref)
                   .rule(kNameRule, "must not be empty", "name")
                   .describe("Deprecated: the old name of jwtKeyRef. If both are set, jwtKeyRef takes precedence."))
          .add(field("jwksKeyRef", &AccountingSpec::jwks_key_ref)
                   .rule(kNameRule, "must not be empty", "name")
                   .describe("The ConfigMap's key that holds a JWKS file, for tokens that others sign."))
          .add(field("external", &AccountingSpec::external)
                   .has_default()
                   .describe(
                       "Whether slurmdbd is run by somebody else, at the address in externalConfig. The Controllers that name "
                       "this Accounting then use that slurmdbd, and all other fields have no effect. Cannot be changed."))
          .add(field("externalConfig", &AccountingSpec::external_config).describe("Where an external slurmdbd is reached."))
          .add(field("slurmdbd", &AccountingSpec::slurmdbd)
                   .schema_of(container_schema())
                   .describe("A core/v1 Container, merged over the operator's own container slurmdbd. args are appended to its "
                             "options."))
          .add(field("template", &AccountingSpec::pod_template).describe("What to add to the slurmdbd pod."))
          .add(field("storageConfig", &AccountingSpec::storage_config)
                   .describe("The database that slurmdbd keeps its records in."))
          .add(
              field("extraConf", &AccountingSpec::extra_conf)
                  .describe("Lines to append to slurmdbd.conf. Keys that the operator sets are refused, or merged with its own "
                            "values. A change restarts slurmdbd."))
          .add(field("service", &AccountingSpec::service).describe("What to change in the Service of slurmdbd."))
          .rule("!self.external || has(self.externalConfig)", "required when external is true", "externalConfig")
          .rule("self.external || has(self.storageConfig)", "required when external is false", "storageConfig")
          .rule("self.external == oldSelf.external", "cannot be changed", "external");
  return kList;
}

const FieldList& field_list(const AccountingStatus*) {
  static const FieldList kList =
      FieldList("The observed state of an Accounting.")
          .add(field("observedGeneration", &AccountingStatus::observed_generation)
                   .always()
                   .describe("The generation of the Accounting that this status describes."))
          .add(field("conditions", &AccountingStatus::conditions).always().describe("The state, by aspect."));
  return kList;
}

const FieldList& field_list(const Accounting*) {
  static const FieldList kList =
      FieldList("An Accounting is the slurmdbd of one or several Controllers: it keeps the records of their jobs.")
          .add(field("spec", &Accounting::spec))
          .add(field("status", &Accounting::status))
          .rule(name_is_label(kMaxAccountingName, true));
  return kList;
}

}  // namespace api
