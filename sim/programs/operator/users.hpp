// The objects that users of the operator write.
#pragma once

#include <map>
#include <string>

#include "core/json.hpp"

namespace sim {

inline constexpr const char* kLogin = "login";  ///< The name of the LoginSet.
inline constexpr const char* kAccounting = "records";
inline constexpr const char* kOtherNamespace = "other";

core::Json controller_json(const std::string& extra_conf = "");
core::Json restapi_json();
core::Json nodeset_json(const std::string& name, int replicas);
core::Json loginset_json(int replicas);
/// Returns an Accounting whose slurmdbd is outside of Kubernetes.
core::Json accounting_json();
/// Returns a Token that is signed with this key in this Secret.
core::Json token_json(const std::string& name, const std::string& secret, const std::string& key);
/// Return a ConfigMap or a Secret. `data` maps keys to text.
core::Json config_map_json(const std::string& name, const std::map<std::string, std::string>& data);
core::Json secret_json(const std::string& name, const std::map<std::string, std::string>& data);

}  // namespace sim
