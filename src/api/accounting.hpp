// Accounting: the slurmdbd of one or several Controllers.
//
// Folder src/api: the custom resources, a file for each kind or group of related kinds. Data only. Uses core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/common.hpp"
#include "api/field.hpp"

namespace api {

/// The longest name of an Accounting. A label of its pods has the value "<name>-accounting-<10 characters>", at most 63
/// characters.
inline constexpr std::size_t kMaxAccountingName = 41;

/// The volume of a MariaDB that the operator runs.
struct StoragePersistence {
  core::Json claim = core::Json::object();  ///< The fields of a core/v1 PersistentVolumeClaimSpec: see embed_raw.
};

/// The MariaDB or MySQL behind slurmdbd.
struct StorageConfig {
  bool managed = false;  ///< True: the operator runs a MariaDB and sets `host`, `port` and `password_key_ref` itself.
  std::string host;
  std::int32_t port = 3306;  ///< The default of StoragePort in slurmdbd.conf(5).
  std::string database = "slurm_acct_db";
  std::string username;  ///< "" means the user slurm.
  std::optional<SecretKeySelector> password_key_ref;
  // The following members apply only if `managed` is true.
  core::Json mariadb = core::Json::object();  ///< A core/v1 Container that is merged over the operator's own.
  PodTemplate pod_template;
  StoragePersistence persistence;
};

struct AccountingSpec {
  std::optional<SecretKeySelector> slurm_key_ref;      ///< Absent: the key of the Controllers that name this Accounting.
  std::optional<SecretKeySelector> jwt_key_ref;        ///< Absent: jwt_hs256_key_ref is used instead.
  std::optional<SecretKeySelector> jwt_hs256_key_ref;  ///< The old name of jwt_key_ref. Both absent: the Controllers' key.
  std::optional<ConfigMapKeySelector> jwks_key_ref;
  bool external = false;
  std::optional<ExternalConfig> external_config;
  core::Json slurmdbd = core::Json::object();  ///< A core/v1 Container that is merged over the operator's own.
  PodTemplate pod_template;
  std::optional<StorageConfig> storage_config;
  std::string extra_conf;
  ServiceSpec service;

  /// Returns the reference to the JWT key under either name, or null if neither is set.
  [[nodiscard]] const SecretKeySelector* jwt_key() const {
    if (jwt_key_ref) return &*jwt_key_ref;
    return jwt_hs256_key_ref ? &*jwt_hs256_key_ref : nullptr;
  }
};

struct AccountingStatus {
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
};

struct Accounting {
  AccountingSpec spec;
  AccountingStatus status;
};

const FieldList& field_list(const StoragePersistence*);
const FieldList& field_list(const StorageConfig*);
const FieldList& field_list(const AccountingSpec*);
const FieldList& field_list(const AccountingStatus*);
const FieldList& field_list(const Accounting*);

}  // namespace api
