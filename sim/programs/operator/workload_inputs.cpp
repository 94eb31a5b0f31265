// The objects that users provide beside their cluster: keys, files, scripts and Tokens.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "sim/programs/operator/workload.hpp"
#include "sim/programs/operator/workload_parts.hpp"
#include "slinky/names.hpp"

namespace sim {

using core::Json;
namespace kinds = kube::resources;

namespace {

const std::vector<std::string> kUsers{"alice", "bob", "carol"};
constexpr const char* kSlurmKeySecret = "site-slurm-key";
constexpr const char* kJwtKeySecret = "site-jwt-key";
/// A ConfigMap of the site: the Controller's field that names the ConfigMap, the ConfigMap's name, and the names of its files.
/// The first file always exists.
struct SiteFiles {
  const char* field;
  const char* name;
  std::vector<std::string> files;
};
const std::vector<SiteFiles> kSiteFiles{
    {"configFileRefs", "site-files", {"gres.conf", "topology.yaml"}},
    {"prologScriptRefs", "site-prolog", {"10-scratch.sh", "20-gpu.sh"}},
    {"epilogScriptRefs", "site-epilog", {"80-clean.sh", "90-report.sh"}},
    {"prologSlurmctldScriptRefs", "site-ctld-prolog", {"begin.sh", "license.sh"}},
    {"epilogSlurmctldScriptRefs", "site-ctld-epilog", {"end.sh"}},
    {"jwksKeyRef", "site-jwks", {"jwks.json"}},
};

Json reference(const SiteFiles& of) {
  if (std::string_view(of.field) == "jwksKeyRef") return {{"name", of.name}, {"key", of.files.front()}};
  return Json::array({{{"name", of.name}}});
}

}  // namespace

Json OperatorWorkload::controller() const {
  Json out = controller_json();
  if (volatile_) out["spec"]["persistence"] = {{"enabled", false}};
  if (own_keys_) {
    out["spec"]["slurmKeyRef"] = {{"name", kSlurmKeySecret}, {"key", api::kKeySlurm}};
    out["spec"]["jwtKeyRef"] = {{"name", kJwtKeySecret}, {"key", api::kKeyJwt}};
  }
  if (!own_files_) return out;
  for (const SiteFiles& of : kSiteFiles) out["spec"][of.field] = reference(of);
  return out;
}

std::vector<std::string> OperatorWorkload::inputs() const {
  std::vector<std::string> out;
  if (own_keys_) out = {kSlurmKeySecret, kJwtKeySecret};
  if (!own_files_) return out;
  for (const SiteFiles& of : kSiteFiles) out.emplace_back(of.name);
  return out;
}

const kube::Resource& OperatorWorkload::kind_of_input(const std::string& name) {
  return name == kSlurmKeySecret || name == kJwtKeySecret ? kinds::kSecret : kinds::kConfigMap;
}

/// Creates or updates an input. A Secret keeps its key. The first file of a ConfigMap gets a new version. Each other file gets
/// a new version or is left out, at random.
void OperatorWorkload::put_input(const std::string& name) {
  if (kind_of_input(name) == kinds::kSecret) {
    std::string& key = keys_[name];
    if (key.empty()) key = random_.bytes(32);
    return world_.apply(secret_json(name, {{std::string(name == kJwtKeySecret ? api::kKeyJwt : api::kKeySlurm), key}}));
  }
  const auto of = std::ranges::find(kSiteFiles, name, &SiteFiles::name);
  std::map<std::string, std::string> data;
  for (const std::string& file : of->files) {
    if (data.empty() || random_.chance(0.7)) data[file] = fmt::format("# version {}\n", ++edits_);
  }
  world_.apply(config_map_json(name, data));
}

/// If the auth/slurm key was changed under running workers, restores the key with which the workers run.
void OperatorWorkload::put_slurm_key_back() {
  note_key();
  if (!own_keys_ || ran_with_.empty() || keys_[kSlurmKeySecret] == ran_with_) return;
  keys_[kSlurmKeySecret] = ran_with_;
  put_input(kSlurmKeySecret);
}

/// Remembers the key with which daemons run. The copy in the keyring can be deleted with its Controller while daemons continue.
void OperatorWorkload::note_key() {
  const Json* keyring = world_.find(kinds::kSecret, slinky::keyring_name(World::kCluster));
  if (keyring == nullptr) return;
  const auto key = core::base64_decode(core::get_string(*keyring, {"data", api::kKeySlurm}));
  if (key && !key->empty()) ran_with_ = *key;
}

void OperatorWorkload::bring_inputs_back() {
  for (const std::string& name : inputs()) {
    if (world_.find(kind_of_input(name), name) == nullptr) put_input(name);
  }
}

void OperatorWorkload::fill_input_actions() {
  if (inputs().empty()) return;
  actions_.push_back({4, [this] {
                        const std::string name = some(inputs());
                        const bool there = world_.find(kind_of_input(name), name) != nullptr;
                        if (!there || kind_of_input(name) == kinds::kConfigMap) put_input(name);
                      }});
  actions_.push_back({2, [this] {
                        const std::string name = some(inputs());
                        if (world_.find(kind_of_input(name), name) != nullptr) world_.remove(kind_of_input(name), name);
                      }});
  actions_.push_back({2, [this] { bring_inputs_back(); }});
  if (own_keys_) {
    actions_.push_back({1, [this] {
                          const std::string name = some({kJwtKeySecret, kSlurmKeySecret});
                          keys_[name] = random_.bytes(32);
                          rekeyed_ = true;
                          put_input(name);
                        }});
  }
  if (!own_files_) return;
  actions_.push_back({1, [this] {
                        const SiteFiles& of = kSiteFiles[random_.below(kSiteFiles.size())];
                        const Json value = random_.chance(0.4) ? Json(nullptr) : reference(of);
                        world_.merge(slinky::resources::kController, World::kCluster, {{"spec", {{of.field, value}}}});
                      }});
}

void OperatorWorkload::fill_token_actions() {
  const auto any_token = [this] { return some(world_.names(slinky::resources::kToken)); };
  const auto login = [](const std::string& name) { return Json{{"name", name + "-login"}, {"key", "token"}}; };
  const auto lifetime = [this] { return Json(some({"10s", "45s", "2m", "15m", "24h"})); };
  actions_.push_back({4, [=, this] {
                        const std::string name = some(kUsers);
                        if (world_.find(slinky::resources::kToken, name) != nullptr) return;
                        Json token = own_keys_ ? token_json(name, kJwtKeySecret, std::string(api::kKeyJwt))
                                               : token_json(name, slinky::generated_jwt_key_name(World::kCluster),
                                                            std::string(api::kKeyJwt));
                        if (random_.chance(0.8)) token["spec"]["lifetime"] = lifetime();
                        if (random_.chance(0.3)) token["spec"]["refresh"] = false;
                        if (random_.chance(0.3)) token["spec"]["secretRef"] = login(name);
                        world_.apply(token);
                      }});
  actions_.push_back({3, [=, this] {
                        const std::string name = any_token();
                        Json spec;
                        switch (random_.below(4)) {
                          case 0:
                            spec["lifetime"] = lifetime();
                            break;
                          case 1:
                            spec["username"] = fmt::format("{}{}", name, random_.below(3));
                            break;
                          case 2:
                            spec["secretRef"] = random_.chance(0.5) ? login(name) : Json(nullptr);
                            break;
                          default:
                            spec["refresh"] = random_.chance(0.6);
                        }
                        if (!name.empty()) world_.merge(slinky::resources::kToken, name, {{"spec", spec}});
                      }});
  actions_.push_back({1, [=, this] {
                        const std::string name = any_token();
                        if (!name.empty())
                          world_.remove(slinky::resources::kToken, name, random_.chance(0.5) ? "Background" : "Foreground");
                      }});
  actions_.push_back({1, [=, this] {
                        // Deletes the Secret of a Token, or creates a Secret that prevents the creation of the Token's Secret.
                        const std::string secret = some(kUsers) + "-login";
                        if (world_.find(kinds::kSecret, secret) != nullptr) {
                          world_.remove(kinds::kSecret, secret);
                        } else {
                          world_.apply(secret_json(secret, {{"password", "correct horse battery"}}));
                        }
                      }});
}

/// Removes the Secrets that have the names of Tokens' Secrets. In reality, the user would have to remove them.
void OperatorWorkload::remove_taken_secrets() {
  for (const std::string& user : kUsers) {
    const Json* secret = world_.find(kinds::kSecret, user + "-login");
    if (secret != nullptr && core::find(*secret, {"data", "password"}) != nullptr)
      world_.remove(kinds::kSecret, user + "-login");
  }
}

std::vector<std::string> OperatorWorkload::edit_one_by_one() {
  const Json* named = world_.find(slinky::resources::kController, World::kCluster);
  std::vector<std::function<void()>> edits;
  for (const SiteFiles& of : kSiteFiles) {
    if (named != nullptr && core::find(*named, {"spec", of.field}) != nullptr)
      edits.emplace_back([this, &of] { put_input(of.name); });
  }
  for (const std::string& token : world_.names(slinky::resources::kToken)) {
    edits.emplace_back([this, token] {
      world_.merge(slinky::resources::kToken, token, {{"spec", {{"username", token + "9"}}}});
    });
  }
  if (has_prologs_ && !volatile_) {
    edits.emplace_back([this] {
      const Json annotations{{"edited", std::to_string(++edits_)}};
      world_.merge(slinky::resources::kController, World::kCluster,
                   {{"spec", {{"template", {{"metadata", {{"annotations", annotations}}}}}}}});
    });
  }
  for (const auto& edit : edits) {
    submit_with_prolog();
    edit();
    if (std::vector<std::string> unmet = world_.settle(kSettle); !unmet.empty()) return unmet;
  }
  return {};
}

}  // namespace sim
