#include "operator/common/named_objects.hpp"

#include <fmt/format.h>

#include <charconv>
#include <set>

#include "api/well_known.hpp"

namespace op {
namespace {

using core::Json;

template <class Call>
void each(const Json& object, const char* list, const std::string& at, Call call) {
  const Json* items = core::find(object, {list});
  if (items == nullptr || !items->is_array()) return;
  for (std::size_t i = 0; i < items->size(); ++i) call((*items)[i], fmt::format("{}.{}[{}]", at, list, i));
}

bool has_data(const kube::SecretRecord& secret, const std::string& key) {
  return secret.value_hashes.contains(key);
}

bool has_data(const kube::Object& config_map, const std::string& key) {
  return core::find(config_map.body, {"data", key}) != nullptr || core::find(config_map.body, {"binaryData", key}) != nullptr;
}

class Finder {
 public:
  Finder(kube::Recorder& recorder, const std::string& ns) : recorder_(recorder), ns_(ns) {}

  void look_at_pod(const Json& spec, const std::string& at) {
    each(spec, "volumes", at, [&](const Json& volume, const std::string& here) {
      look_at(volume, Kind::kSecret, "secret", "secretName", here);
      look_at(volume, Kind::kConfigMap, "configMap", "name", here);
      if (const Json* projected = core::find(volume, {"projected"})) {
        each(*projected, "sources", here + ".projected", [&](const Json& source, const std::string& there) {
          look_at(source, Kind::kSecret, "secret", "name", there);
          look_at(source, Kind::kConfigMap, "configMap", "name", there);
        });
      }
    });
    for (const char* list : {"initContainers", "containers"}) {
      each(spec, list, at, [&](const Json& container, const std::string& here) { look_at_container(container, here); });
    }
  }

  void look_at_container(const Json& container, const std::string& at) {
    each(container, "envFrom", at, [&](const Json& source, const std::string& here) {
      look_at(source, Kind::kSecret, "secretRef", "name", here);
      look_at(source, Kind::kConfigMap, "configMapRef", "name", here);
    });
    each(container, "env", at, [&](const Json& variable, const std::string& here) {
      const Json* source = core::find(variable, {"valueFrom"});
      if (source == nullptr) return;
      look_at(*source, Kind::kSecret, "secretKeyRef", "name", here + ".valueFrom");
      look_at(*source, Kind::kConfigMap, "configMapKeyRef", "name", here + ".valueFrom");
    });
  }

  std::vector<Problem> found;

 private:
  enum class Kind { kSecret, kConfigMap };

  void look_at(const Json& holder, Kind kind, const char* member, const char* name_field, const std::string& at) {
    const Json* source = core::find(holder, {member});
    if (source == nullptr || core::get_bool(*source, {"optional"})) return;
    const std::string name = core::get_string(*source, {name_field});
    if (name.empty()) return;
    const std::string here = at + "." + member;
    if (kind == Kind::kSecret) {
      judge("Secret", name, recorder_.secret({ns_, name}), *source, here, name_field);
    } else {
      judge("ConfigMap", name, recorder_.config_map({ns_, name}), *source, here, name_field);
    }
  }

  template <class Record>
  void judge(const std::string& kind, const std::string& name, const kube::Named<Record>& named, const Json& source,
             const std::string& at, const char* name_field) {
    const std::string object = fmt::format("{} {}/{}", kind, ns_, name);
    if (named.presence == kube::Presence::kAbsent) tell(kind + "Missing", at + "." + name_field, object + " does not exist");
    if (named.presence != kube::Presence::kPresent) return;
    const auto judge_key = [&](const Json& holder, const std::string& here) {
      const std::string key = core::get_string(holder, {"key"});
      if (!key.empty() && !has_data(*named.record, key))
        tell(kind + "KeyMissing", here + ".key", object + " has no data under the key " + key);
    };
    judge_key(source, at);
    each(source, "items", at, judge_key);
  }

  void tell(std::string reason, const std::string& place, const std::string& what) {
    if (told_.insert(what).second) found.push_back({std::move(reason), place + ": " + what});
  }

  kube::Recorder& recorder_;
  const std::string& ns_;
  std::set<std::string> told_;
};

}  // namespace

std::vector<Problem> missing_objects(kube::Recorder& recorder, const std::string& ns, const api::PodTemplate& pod_template,
                                     std::initializer_list<NamedContainer> containers) {
  Finder finder(recorder, ns);
  for (const NamedContainer& named : containers) finder.look_at_container(named.container, std::string(named.path));
  finder.look_at_pod(pod_template.spec, "spec.template.spec");
  return std::move(finder.found);
}

SecretFacts read_key(kube::Recorder& recorder, const std::string& ns, const KeyRef& ref) {
  const kube::Named<kube::SecretRecord> named = recorder.secret({ns, ref.secret});
  SecretFacts out{ref, named.presence, false, "", {}, ""};
  if (named.presence != kube::Presence::kPresent) return out;
  out.meta = named.record->meta;
  const auto size = named.record->sizes.find(ref.key);
  if (size != named.record->sizes.end())
    std::from_chars(size->second.data(), size->second.data() + size->second.size(), out.size);
  out.has_key = out.size > 0;
  const auto hash = named.record->value_hashes.find(ref.key);
  if (hash != named.record->value_hashes.end()) out.digest = hash->second.substr(0, 16);
  const auto content = named.record->contents.find(ref.key);
  if (content != named.record->contents.end()) out.content = content->second;
  return out;
}

namespace {

/// Parses the keyring's rotation into `out`. Returns false if the rotation does not match the other data of the keyring.
bool read_rotation(const kube::StringMap& contents, const std::string& controller_uid, SecretFacts& out) {
  out.rotation = KeyRotation::parse(out.meta->annotation(api::kAnnotationKeyRotation));
  const bool jwks = contents.contains(api::kKeyJwks);
  const auto other = contents.find(api::kKeyOther);
  if (contents.contains(api::kKeyLoginJwks) != (out.rotation && out.rotation->has_login_keys())) return false;
  if (!out.rotation || out.rotation->step == KeyStep::kAlone) return !jwks && other == contents.end();
  return jwks && other != contents.end() && keyring_note(controller_uid, other->second) == out.rotation->other_note;
}

}  // namespace

SecretFacts read_keyring(kube::Recorder& recorder, const std::string& ns, const std::string& controller) {
  SecretFacts out =
      read_key(recorder, ns, {.secret = keyring_name(controller), .key = std::string(api::kKeySlurm), .generated = true});
  if (!out.meta) return out;
  out.digest = out.meta->annotation(api::kAnnotationSlurmKeyHash);
  // The annotation kAnnotationDataHash is missing in keyrings of an earlier version of the operator. The value of the
  // annotation is salted with the UID of the Controller, so the value cannot be checked if the keyring has no controller owner.
  const std::string_view note = out.meta->annotation(api::kAnnotationDataHash);
  const kube::OwnerReference* owner = out.meta->controller_owner();
  out.edited = !note.empty() && owner != nullptr &&
               (note != keyring_note(owner->uid, out.content) ||
                !read_rotation(recorder.secret({ns, out.ref.secret}).record->contents, owner->uid, out));
  out.has_key = out.has_key && !out.edited && !out.digest.empty() && !out.meta->terminating();
  return out;
}

}  // namespace op
