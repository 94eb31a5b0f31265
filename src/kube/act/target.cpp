#include "kube/act/target.hpp"

#include <openssl/crypto.h>

#include <algorithm>

#include "core/base64.hpp"
#include "core/hash.hpp"
#include "core/jwt.hpp"
#include "core/retry.hpp"
#include "kube/label_selector.hpp"

namespace kube {

namespace {

constexpr core::Duration kFirstReread{1000};
constexpr core::Duration kLongestReread{30000};
constexpr std::string_view kGenerate = "$generate";
constexpr std::string_view kSshKey = "$sshKey";
constexpr std::string_view kMintToken = "$mintToken";
constexpr std::string_view kCopy = "$copy";
constexpr std::string_view kJwks = "$jwks";
constexpr std::string_view kRequestToken = "$requestToken";

StringMap labels_of(const core::Json& object) {
  return parse_meta(object).labels;
}

/// The state of one object that a gate waits for.
struct Wanted {
  enum class What {
    kUnsettled,  ///< The outcome of the write is unknown; a read is under way.
    kVersion,    ///< The object at resource_version or newer.
    kGone,       ///< No object with this uid.
  };
  What what = What::kUnsettled;
  Resource resource;
  Key key;
  std::string uid, resource_version;
  StringMap labels;
};

bool would_show(const CacheView& view, const Wanted& wanted) {
  if (!view.scope.ns.empty() && view.scope.ns != wanted.key.ns) return false;
  if (!matches_labels(view.scope.label_selector, wanted.labels)) return false;
  if (view.scope.field_selector.empty()) return true;
  // Field selectors other than metadata.name cannot be evaluated here. A cache with such a selector counts only while it
  // contains the object.
  return view.scope.field_selector == "metadata.name=" + wanted.key.name;
}

/// Returns true if the cache does not lag behind the write.
bool shows(const CacheView& view, const Wanted& wanted) {
  // A cache that is not synced does not lag behind, because its first list will be newer than the write.
  if (!view.cache->synced()) return true;
  const auto [uid, version] = view.cache->identity(wanted.key);
  const bool held = !uid.empty() && uid == wanted.uid;
  if (wanted.what == Wanted::What::kGone) return !held;
  if (held) return rv_at_least(version, wanted.resource_version);
  return rv_at_least(view.cache->resource_version(), wanted.resource_version) || !would_show(view, wanted);
}

}  // namespace

struct Target::Impl : std::enable_shared_from_this<Target::Impl> {
  Impl(core::Loop& l, core::Random& r, core::Logger& g, Client& c, const CacheDirectory& d, EventRecorder& e)
      : loop(l), random(r), logger(g), client(c), directory(d), events(e) {}

  core::Loop& loop;
  core::Random& random;
  core::Logger& logger;
  Client& client;
  const CacheDirectory& directory;
  EventRecorder& events;
  std::function<void()> settled;

  class Gate;
  using Then = std::function<void(core::Result<core::Json>)>;

  std::shared_ptr<Gate> gate(Wanted wanted);
  plan::GatePtr version_gate(const Resource& resource, const core::Json& reply);
  plan::GatePtr gone_gate(const Resource& resource, const Key& key, const std::string& uid);

  // --- Recipes ---

  /// Replaces the recipes in object.data by values, and passes the object to `then`.
  void fill(const Resource& resource, core::Json object, Then then) {
    const core::Json* data = core::find(object, {"data"});
    // Only Secrets have recipes. In other kinds, `data` may have any content, such as any object in a ControllerRevision.
    if (resource != resources::kSecret || data == nullptr || !data->is_object()) return then(std::move(object));
    for (const auto& [name, value] : data->items()) {
      if (!value.is_object()) continue;
      if (value.contains(kGenerate)) {
        const long long count = core::get_int(value, {kGenerate, "bytes"});
        if (count < 1 || count > 1 << 20)
          return then(core::fail(core::ErrorCode::kInvalid, "$generate of " + name + ": bad number of bytes"));
        std::string bytes = random.bytes(static_cast<std::size_t>(count));
        if (core::get_string(value, {kGenerate, "as"}) == "hex") {
          std::string digits = core::hex(bytes);
          bytes.swap(digits);
          OPENSSL_cleanse(digits.data(), digits.size());
        }
        object["data"][name] = core::base64_encode(bytes);
        OPENSSL_cleanse(bytes.data(), bytes.size());
        return fill(resource, std::move(object), std::move(then));
      }
      if (value.contains(kSshKey)) return make_ssh_key(resource, std::move(object), name, std::move(then));
      const auto made_by = {std::pair(kMintToken, &Impl::mint), std::pair(kCopy, &Impl::copy),
                            std::pair(kJwks, &Impl::make_jwks), std::pair(kRequestToken, &Impl::request_token)};
      const auto how = std::ranges::find_if(made_by, [&](const auto& one) { return value.contains(one.first); });
      if (how == made_by.end()) return then(core::fail(core::ErrorCode::kInvalid, "data." + name + ": unknown recipe"));
      const core::Json recipe = value[how->first];
      const auto make = how->second;
      auto put_in = [weak = weak_from_this(), resource, object = std::move(object), key = name,
                     then = std::move(then)](core::Result<std::string> bytes) mutable {
        const auto self = weak.lock();
        if (!self) return;
        if (!bytes) return then(std::unexpected(bytes.error()));
        object["data"][key] = core::base64_encode(*bytes);
        OPENSSL_cleanse(bytes->data(), bytes->size());
        self->fill(resource, std::move(object), std::move(then));
      };
      return (this->*make)(recipe, std::move(put_in));
    }
    then(std::move(object));
  }

  /// Creates the key pair of the recipe in object.data[name]. `name` is a copy, because the original is part of the object.
  void make_ssh_key(const Resource& resource, core::Json object, const std::string name, Then then) {
    const core::Json recipe = object["data"][name][std::string(kSshKey)];
    const auto type = core::ssh_key_type(core::get_string(recipe, {"type"}));
    const std::string public_key = core::get_string(recipe, {"publicKey"});
    if (!type || public_key.empty() || public_key == name)
      return then(
          core::fail(core::ErrorCode::kInvalid, "$sshKey of " + name + ": no such type, or no place for its public key"));
    const auto pair = std::make_shared<core::SshKeyPair>();
    loop.offload([this_random = &random, type = *type, comment = core::get_string(recipe, {"comment"}),
                  pair] { *pair = this_random->ssh_key(type, comment); },
                 [weak = weak_from_this(), resource, object = std::move(object), name, public_key, pair,
                  then = std::move(then)]() mutable {
                   const auto self = weak.lock();
                   if (!self) return;
                   object["data"][name] = core::base64_encode(pair->private_key);
                   object["data"][public_key] = core::base64_encode(pair->public_key);
                   OPENSSL_cleanse(pair->private_key.data(), pair->private_key.size());
                   self->fill(resource, std::move(object), std::move(then));
                 });
  }

  using ThenBytes = std::function<void(core::Result<std::string>)>;

  /// Passes the current metadata of the Secret, and the decoded value of one key, to the callback.
  void read_secret(const core::Json& ref, std::string what,
                   std::function<void(core::Result<std::pair<core::Json, std::string>>)> then) {
    const Key secret{core::get_string(ref, {"namespace"}), core::get_string(ref, {"name"})};
    const std::string field = core::get_string(ref, {"key"});
    const std::string place = std::move(what) + " " + secret.str();
    client.get(resources::kSecret, secret, [place, field, then = std::move(then)](core::Result<core::Json> reply) {
      if (!reply) return then(std::unexpected(reply.error().with(place)));
      const core::Json* encoded = core::find(*reply, {"data", field});
      if (encoded == nullptr || !encoded->is_string())
        return then(core::fail(core::ErrorCode::kNotFound, place + " has no key " + field));
      auto bytes = core::base64_decode(encoded->get_ref<const std::string&>());
      if (!bytes || bytes->empty())
        return then(core::fail(core::ErrorCode::kInvalid, place + ": key " + field + " is empty or no base64"));
      then(std::pair((*reply)["metadata"], std::move(*bytes)));
    });
  }

  void mint(const core::Json& recipe, ThenBytes then) {
    read_secret(recipe.value("keyRef", core::Json::object()), "signing key Secret",
                [weak = weak_from_this(), recipe,
                 then = std::move(then)](core::Result<std::pair<core::Json, std::string>> key) mutable {
                  const auto self = weak.lock();
                  if (!self) return;
                  if (!key) return then(std::unexpected(key.error()));
                  const std::string token = self->sign(key->second, recipe);
                  OPENSSL_cleanse(key->second.data(), key->second.size());
                  then(token);
                });
  }

  /// Copies the value only if the Secret has the version that the plan saw, because the plan has not seen a newer version.
  void copy(const core::Json& recipe, ThenBytes then) {
    read_secret(recipe, "Secret",
                [recipe, then = std::move(then)](core::Result<std::pair<core::Json, std::string>> source) mutable {
                  if (!source) return then(std::unexpected(source.error()));
                  for (const char* same : {"uid", "resourceVersion"}) {
                    if (core::get_string(source->first, {same}) == core::get_string(recipe, {same})) continue;
                    OPENSSL_cleanse(source->second.data(), source->second.size());
                    return then(core::fail(core::ErrorCode::kConflict,
                                           "Secret " + core::get_string(recipe, {"name"}) + " has changed: another " + same));
                  }
                  then(std::move(source->second));
                });
  }

  void make_jwks(const core::Json& recipe, ThenBytes then) { add_jwk(recipe, core::Json::array(), std::move(then)); }

  /// Adds the keys of the recipe to `keys`, one after the other. Then passes on the JSON Web Key Set.
  void add_jwk(const core::Json& recipe, core::Json keys, ThenBytes then) {
    const core::Json* sources = core::find(recipe, {"keys"});
    if (sources == nullptr || !sources->is_array() || sources->empty())
      return then(core::fail(core::ErrorCode::kInvalid, "$jwks: no keys"));
    if (keys.size() == sources->size()) {
      std::string text = core::Json{{"keys", std::move(keys)}}.dump();
      return then(std::move(text));
    }
    const core::Json source = (*sources)[keys.size()];
    copy(source, [weak = weak_from_this(), recipe, keys = std::move(keys),
                  then = std::move(then)](core::Result<std::string> key) mutable {
      const auto self = weak.lock();
      if (!self) return;
      if (!key) return then(std::unexpected(key.error()));
      const bool signs = core::get_int(recipe, {"signs"}) == static_cast<std::int64_t>(keys.size());
      core::Json jwk{{"alg", "HS256"}, {"kty", "oct"}, {"kid", core::sha256_hex("kid" + *key).substr(0, 16)}};
      jwk["k"] = core::base64url_encode(*key);
      if (signs) jwk["use"] = "default";
      OPENSSL_cleanse(key->data(), key->size());
      keys.push_back(std::move(jwk));
      self->add_jwk(recipe, std::move(keys), std::move(then));
    });
  }

  void request_token(const core::Json& recipe, ThenBytes then) {
    const core::Json account = recipe.value("serviceAccount", core::Json::object());
    const Key key{core::get_string(account, {"namespace"}), core::get_string(account, {"name"})};
    core::Json spec = recipe;
    spec.erase("serviceAccount");
    const core::Json request = {{"apiVersion", "authentication.k8s.io/v1"},
                                {"kind", "TokenRequest"},
                                {"metadata", {{"namespace", key.ns}, {"name", key.name}}},
                                {"spec", std::move(spec)}};
    WriteOptions options;
    options.subresource = "token";
    client.create(
        resources::kServiceAccount, request,
        [key, then = std::move(then)](core::Result<core::Json> reply) {
          if (!reply) {
            // The API server does not store tokens. If the reply is lost, no read has to find out whether there is a token.
            reply.error().code = core::code_of_read(reply.error().code);
            return then(std::unexpected(reply.error().with("token of ServiceAccount " + key.str())));
          }
          std::string token = core::get_string(*reply, {"status", "token"});
          if (token.empty())
            return then(core::fail(core::ErrorCode::kInternal, "token of ServiceAccount " + key.str() + ": none in the reply"));
          then(std::move(token));
        },
        options);
  }

  std::string sign(std::string_view key, const core::Json& recipe) const {
    core::Json claims = recipe.value("claims", core::Json::object());
    const long long now = std::chrono::duration_cast<std::chrono::seconds>(loop.clock().wall().since_epoch).count();
    claims["iat"] = now;
    claims["nbf"] = now;
    claims["exp"] = now + core::get_int(recipe, {"lifetimeSeconds"}, 900);
    claims["jti"] = core::base64url_encode(random.bytes(16));
    return core::sign_hs256(key, claims);
  }

  // --- Replies of writes ---

  static core::Json identity_json(const core::Json& object) {
    return {{"uid", core::get_string(object, {"metadata", "uid"})},
            {"resourceVersion", core::get_string(object, {"metadata", "resourceVersion"})}};
  }

  void wrote(const Resource& resource, const core::Json& reply, const Done& done) {
    const core::Json identity = identity_json(reply);
    // If an object is being deleted, a write that removes its last finalizer ends the object.
    const bool ends = core::find(reply, {"metadata", "deletionTimestamp"}) != nullptr && !lives_on(reply);
    done({identity,
          {ends ? gone_gate(resource, key_of(reply), core::get_string(identity, {"uid"})) : version_gate(resource, reply)}});
  }

  /// Reports whether a deleted object still exists, because the grace period is not over or because finalizers remain.
  static bool lives_on(const core::Json& object) {
    const core::Json* finalizers = core::find(object, {"metadata", "finalizers"});
    return core::find(object, {"metadata", "deletionTimestamp"}) != nullptr &&
           ((finalizers != nullptr && !finalizers->empty()) ||
            core::get_int(object, {"metadata", "deletionGracePeriodSeconds"}) > 0);
  }

  /// Ends a failed write. If the outcome is unknown, adds a gate that opens when a later read shows the outcome.
  void failed(core::Error error, const Resource& resource, const Key& key, const std::string& uid, core::MonoTime deadline,
              const Done& done);

  core::MonoTime deadline() const { return loop.clock().mono() + client.options().timeout; }

  // --- Acts ---

  void run(std::shared_ptr<const Create> act, Done done) {
    fill(act->resource, act->object, [weak = weak_from_this(), act, done](core::Result<core::Json> object) {
      const auto self = weak.lock();
      if (!self) return;
      if (!object) return done({std::unexpected(object.error()), {}});
      const core::MonoTime until = self->deadline();
      self->client.create(act->resource, *object, [weak, act, done, until](core::Result<core::Json> reply) {
        const auto s = weak.lock();
        if (!s) return;
        if (reply) return s->wrote(act->resource, *reply, done);
        if (reply.error().code == core::ErrorCode::kAlreadyExists) return s->look_whose(act, std::move(reply.error()), done);
        s->failed(std::move(reply.error()), act->resource, key_of(act->object), "", until, done);
      });
    });
  }

  /// Handles a create that failed because an object of that name exists. An earlier attempt of this create may have created
  /// the object, if the reply of that attempt was lost or a cache is behind. If so, the create succeeds, with a gate that
  /// waits until the caches show the object. An object whose labels have changed does not count, because the caches might
  /// never show it.
  void look_whose(std::shared_ptr<const Create> act, core::Error error, Done done) {
    client.get(act->resource, key_of(act->object),
               [weak = weak_from_this(), act, error = std::move(error), done](core::Result<core::Json> live) {
                 const auto self = weak.lock();
                 if (!self) return;
                 if (!live || !ours(act->object, *live)) return done({std::unexpected(error), {}});
                 self->wrote(act->resource, *live, done);
               });
  }

  static bool ours(const core::Json& intent, const core::Json& live) {
    const ObjectMeta want = parse_meta(intent);
    const ObjectMeta have = parse_meta(live);
    if (have.terminating()) return false;
    if (!same_owner(want, have) || (want.controller_owner() == nullptr && want.labels.empty())) return false;
    return std::ranges::all_of(want.labels, [&](const auto& label) { return have.label(label.first) == label.second; });
  }

  void run(std::shared_ptr<const Apply> act, Done done) {
    if (!act->unseen) return put(std::move(act), std::move(done));
    client.get(act->resource, key_of(act->object), [weak = weak_from_this(), act, done](core::Result<core::Json> live) {
      const auto self = weak.lock();
      if (!self) return;
      if (!live && live.error().code != core::ErrorCode::kNotFound) return done({std::unexpected(live.error()), {}});
      if (!live || may_take_over(act->object, *live)) return self->put(act, done);
      done({core::fail(core::ErrorCode::kAlreadyExists, act->resource.kind + " " + key_of(act->object).str() +
                                                            " is somebody else's, so it is not changed: "
                                                            "delete it, or give it another name"),
            {}});
    });
  }

  static bool same_owner(const ObjectMeta& want, const ObjectMeta& have) {
    const OwnerReference* wanted = want.controller_owner();
    const OwnerReference* there = have.controller_owner();
    return wanted == nullptr || (there != nullptr && there->uid == wanted->uid);
  }

  /// Returns true if the existing object may be adopted. An earlier release might have created the object without our labels
  /// and with another owner of our API group. An object that must have no controller must have our labels instead.
  static bool may_take_over(const core::Json& intent, const core::Json& live) {
    const ObjectMeta want = parse_meta(intent), have = parse_meta(live);
    const OwnerReference* wanted = want.controller_owner();
    if (wanted == nullptr) return have.controller_owner() == nullptr && ours(intent, live);
    const auto group = [](const OwnerReference& owner) { return owner.api_version.substr(0, owner.api_version.find('/')); };
    return std::ranges::any_of(have.owners, [&](const OwnerReference& owner) { return group(owner) == group(*wanted); });
  }

  void put(std::shared_ptr<const Apply> act, Done done) {
    fill(act->resource, act->object, [weak = weak_from_this(), act, done](core::Result<core::Json> object) {
      const auto self = weak.lock();
      if (!self) return;
      if (!object) return done({std::unexpected(object.error()), {}});
      // A server-side apply needs apiVersion and kind.
      core::Json body = std::move(*object);
      body["apiVersion"] = act->resource.api_version();
      body["kind"] = act->resource.kind;
      WriteOptions options;
      options.field_manager = act->manager;
      const core::MonoTime until = self->deadline();
      self->client.apply(
          act->resource, body,
          [weak, act, done, until](core::Result<core::Json> reply) {
            const auto s = weak.lock();
            if (!s) return;
            if (reply) return s->wrote(act->resource, *reply, done);
            s->failed(std::move(reply.error()), act->resource, key_of(act->object), "", until, done);
          },
          options);
    });
  }

  void run(std::shared_ptr<const Patch> act, Done done) {
    fill(act->resource, act->patch, [weak = weak_from_this(), act, done](core::Result<core::Json> patch) {
      const auto self = weak.lock();
      if (!self) return;
      if (!patch) return done({std::unexpected(patch.error()), {}});
      WriteOptions options;
      options.subresource = act->subresource;
      const core::MonoTime until = self->deadline();
      self->client.patch(
          act->resource, act->key, act->type, with_preconditions(*act, std::move(*patch)),
          [weak, act, done, until](core::Result<core::Json> reply) {
            const auto s = weak.lock();
            if (!s) return;
            if (reply) return s->wrote(act->resource, *reply, done);
            core::Error error = std::move(reply.error());
            if (precondition_failed(*act, error)) error.code = core::ErrorCode::kConflict;
            s->failed(std::move(error), act->resource, act->key, act->uid, until, done);
          },
          options);
    });
  }

  static core::Json with_preconditions(const Patch& act, core::Json patch) {
    if (act.type != PatchType::kJson) {
      if (!act.uid.empty()) patch["metadata"]["uid"] = act.uid;
      if (!act.resource_version.empty()) patch["metadata"]["resourceVersion"] = act.resource_version;
      return patch;
    }
    core::Json all = core::Json::array();
    const auto test = [&](std::string_view path, const std::string& value) {
      if (!value.empty()) all.push_back({{"op", "test"}, {"path", path}, {"value", value}});
    };
    test("/metadata/uid", act.uid);
    test("/metadata/resourceVersion", act.resource_version);
    for (core::Json& operation : patch) all.push_back(std::move(operation));
    return all;
  }

  /// Reports whether the patch failed because the object has changed. The API server reports this failure as an invalid
  /// object.
  static bool precondition_failed(const Patch& act, const core::Error& error) {
    if (error.http_status != 422) return false;
    if (act.type == PatchType::kJson) {
      return error.message.find("the server rejected our request due to an error in our request") != std::string::npos;
    }
    return !act.uid.empty() && error.message.find("metadata.uid: Invalid value") != std::string::npos;
  }

  void run(std::shared_ptr<const Delete> act, Done done) {
    if (const auto refused = refuse(*act)) return later({std::unexpected(*refused), {}}, done);
    DeleteOptions options;
    options.uid = act->uid;
    options.resource_version = act->required_version();
    const core::MonoTime until = deadline();
    client.remove(act->resource, act->key, options,
                  [weak = weak_from_this(), act, done, until](core::Result<core::Json> reply) {
                    const auto self = weak.lock();
                    if (!self) return;
                    if (reply) return self->deleted(*act, *reply, done);
                    if (reply.error().code == core::ErrorCode::kNotFound) {
                      return done({core::Json::object(), {self->gone_gate(act->resource, act->key, act->uid)}});
                    }
                    if (reply.error().code == core::ErrorCode::kConflict)
                      return self->look_gone(act->resource, act->key, act->uid, std::move(reply.error()), done);
                    self->failed(std::move(reply.error()), act->resource, act->key, act->uid, until, done);
                  });
  }

  [[nodiscard]] std::optional<core::Error> refuse(const Delete& act) const {
    return refuse(act.resource, act.key, act.uid, act.evidence, act.fenced);
  }

  /// Returns why an object may not be deleted or evicted. With `fenced`, the age of the evidence does not count.
  [[nodiscard]] std::optional<core::Error> refuse(const Resource& resource, const Key& key, const std::string& uid,
                                                  const std::optional<PodEvidence>& evidence, bool fenced) const {
    const auto error = [](std::string message, core::ErrorCode code = core::ErrorCode::kInvalid) {
      return core::Error{code, std::move(message), 0, {}, {}};
    };
    if (uid.empty()) return error("a delete needs the uid of " + key.str());
    if (resource != resources::kPod) return std::nullopt;
    if (!evidence) return error("deleting pod " + key.str() + " needs evidence");
    if (evidence->uid() != uid) return error("the evidence for deleting pod " + key.str() + " is about another");
    if (!fenced && !evidence->good_at(loop.clock().mono())) {
      return error("the evidence for deleting pod " + key.str() + " is too old by now: " + evidence->detail(),
                   core::ErrorCode::kExpired);
    }
    return std::nullopt;
  }

  void deleted(const Delete& act, const core::Json& reply, const Done& done) {
    // If the object still exists for a while (grace period, finalizers), the reply is the object. Otherwise the reply is a
    // Status or the last state of the object.
    if (lives_on(reply)) return wrote(act.resource, reply, done);
    done({core::Json::object(), {gone_gate(act.resource, act.key, act.uid)}});
  }

  /// Handles a failed precondition. The act succeeds if the object with this uid is gone.
  void look_gone(const Resource& resource, const Key& key, const std::string& uid, core::Error error, Done done) {
    client.get(resource, key,
               [weak = weak_from_this(), resource, key, uid, error = std::move(error), done](core::Result<core::Json> live) {
                 const auto self = weak.lock();
                 if (!self) return;
                 const bool gone = live ? core::get_string(*live, {"metadata", "uid"}) != uid
                                        : live.error().code == core::ErrorCode::kNotFound;
                 if (gone) return done({core::Json::object(), {self->gone_gate(resource, key, uid)}});
                 done({std::unexpected(error), {}});
               });
  }

  /// Ends a write to a subresource whose reply does not show the object.
  void wrote_beside(const Key& pod, const std::string& uid, const Done& done);

  void run(std::shared_ptr<const Evict> act, Done done) {
    if (const auto refused = refuse(resources::kPod, act->pod, act->uid, act->evidence, false))
      return later({std::unexpected(*refused), {}}, done);
    core::Json eviction = {{"apiVersion", "policy/v1"}, {"kind", "Eviction"}, {"metadata", meta_json(act->pod)}};
    core::Json& preconditions = eviction["deleteOptions"]["preconditions"];
    preconditions["uid"] = act->uid;
    if (!act->evidence->resource_version().empty()) preconditions["resourceVersion"] = act->evidence->resource_version();
    if (act->grace_seconds) eviction["deleteOptions"]["gracePeriodSeconds"] = *act->grace_seconds;
    WriteOptions options;
    options.subresource = "eviction";
    const core::MonoTime until = deadline();
    client.create(
        resources::kPod, eviction,
        [weak = weak_from_this(), act, done, until](core::Result<core::Json> reply) {
          const auto self = weak.lock();
          if (!self) return;
          if (reply) return self->wrote_beside(act->pod, act->uid, done);
          const core::ErrorCode code = reply.error().code;
          if (code == core::ErrorCode::kNotFound || code == core::ErrorCode::kConflict)
            return self->look_gone(resources::kPod, act->pod, act->uid, std::move(reply.error()), done);
          self->failed(std::move(reply.error()), resources::kPod, act->pod, act->uid, until, done);
        },
        options);
  }

  void run(std::shared_ptr<const Get> act, Done done) {
    client.get(act->resource, act->key, [act, done](core::Result<core::Json> reply) {
      if (!reply) return done({std::unexpected(std::move(reply.error())), {}});
      done({without_secrets(act->resource, std::move(*reply)), {}});
    });
  }

  void run(std::shared_ptr<const Log> act, Done done) {
    client.last_line(act->pod, act->container, act->since, [done](core::Result<std::string> line) {
      if (!line) return done({std::unexpected(std::move(line.error())), {}});
      done({core::Json{{"log", std::move(*line)}}, {}});
    });
  }

  void run(std::shared_ptr<const DryRun> act, Done done) {
    auto answered = [act, done](core::Result<core::Json> reply) {
      if (!reply && reply.error().code != core::ErrorCode::kAlreadyExists)
        return done({std::unexpected(std::move(reply.error())), {}});
      done({core::Json::object(), {}});
    };
    client.create(act->resource, act->object, std::move(answered), {.dry_run = true});
  }

  void run(std::shared_ptr<const List> act, Done done) {
    const ListOptions options{
        .field_selector = act->field_selector, .label_selector = act->label_selector, .limit = act->limit};
    auto answered = [act, done](core::Result<core::Json> reply) {
      if (!reply) return done({std::unexpected(std::move(reply.error())), {}});
      core::Json items = core::Json::array();
      for (core::Json& item : (*reply)["items"]) items.push_back(without_secrets(act->resource, std::move(item)));
      core::Json found = core::Json::object();
      found["items"] = std::move(items);
      done({std::move(found), {}});
    };
    if (act->limit > 0) return client.list(act->resource, act->ns, options, std::move(answered));
    client.list_all(act->resource, act->ns, options, std::move(answered));
  }

  /// Replaces the values of a Secret by their lengths. The object becomes part of Observed as a fact, and Observed contains no
  /// secrets.
  static core::Json without_secrets(const Resource& resource, core::Json object) {
    if (core::Json* meta = object.contains("metadata") ? &object["metadata"] : nullptr) meta->erase("managedFields");
    if (resource != resources::kSecret || !object.contains("data")) return object;
    for (auto& [name, value] : object["data"].items()) {
      const auto bytes = core::base64_decode(value.is_string() ? value.get_ref<const std::string&>() : "");
      value = {{"bytes", bytes ? bytes->size() : 0}};
    }
    return object;
  }

  void later(plan::ActResult result, const Done& done) {
    loop.after(core::Duration{0}, [result = std::move(result), done] { done(result); });
  }
};

/// A gate that opens when the outcome of the write is known and no cache of the kind lags behind the write. Requests the
/// caches from the directory each time, because caches of named objects are created and destroyed.
class Target::Impl::Gate final : public plan::Gate, public std::enable_shared_from_this<Target::Impl::Gate> {
 public:
  Gate(std::shared_ptr<Impl> owner, Wanted wanted) : owner_(owner), wanted_(std::move(wanted)) {}

  [[nodiscard]] bool open() const override {
    const auto owner = owner_.lock();
    if (!owner) return true;
    if (wanted_.what == Wanted::What::kUnsettled) return false;
    return std::ranges::all_of(owner->directory.caches(wanted_.resource),
                               [&](const CacheView& view) { return shows(view, wanted_); });
  }

  [[nodiscard]] std::string describe() const override {
    std::string what = wanted_.resource.kind + " " + wanted_.key.str();
    switch (wanted_.what) {
      case Wanted::What::kUnsettled:
        return what + ": outcome of a write not known yet";
      case Wanted::What::kVersion:
        return what + " at resourceVersion " + wanted_.resource_version;
      case Wanted::What::kGone:
        return what + " gone";
    }
    return what;
  }

  /// Reads the object now. If the read shows that caches are behind the write, makes these caches list again.
  [[nodiscard]] bool settle() const override {
    read(true);
    return true;
  }

  /// Reads at `when`. Repeats the read until there is an answer.
  void read_at(core::MonoTime when) const {
    const auto owner = owner_.lock();
    if (!owner) return;
    owner->loop.after(when - owner->loop.clock().mono(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->read(false);
    });
  }

 private:
  void read(bool caches_are_slow) const {
    const auto owner = owner_.lock();
    if (!owner || reading_) return;
    reading_ = true;
    owner->client.get(wanted_.resource, wanted_.key, [weak = weak_from_this(), caches_are_slow](core::Result<core::Json> live) {
      if (const auto self = weak.lock()) self->answered(caches_are_slow, std::move(live));
    });
  }

  void answered(bool caches_are_slow, core::Result<core::Json> live) const {
    const auto owner = owner_.lock();
    reading_ = false;
    if (!owner) return;
    if (live) {
      wanted_.what = Wanted::What::kVersion;
      wanted_.uid = core::get_string(*live, {"metadata", "uid"});
      wanted_.resource_version = core::get_string(*live, {"metadata", "resourceVersion"});
      wanted_.labels = labels_of(*live);
    } else if (live.error().code == core::ErrorCode::kNotFound) {
      wanted_.what = Wanted::What::kGone;
    } else {
      if (wanted_.what == Wanted::What::kUnsettled) {
        read_at(owner->loop.clock().mono() + wait_);
        wait_ = std::min(wait_ * 2, kLongestReread);
      }
      return;
    }
    if (caches_are_slow) {
      for (const CacheView& view : owner->directory.caches(wanted_.resource)) {
        if (!shows(view, wanted_) && view.relist) view.relist();
      }
    }
    if (owner->settled) owner->settled();
  }

  std::weak_ptr<Impl> owner_;
  // Mutable, because passes have const gates, and a live read changes what the gate waits for.
  mutable Wanted wanted_;
  mutable bool reading_ = false;
  mutable core::Duration wait_ = kFirstReread;
};

std::shared_ptr<Target::Impl::Gate> Target::Impl::gate(Wanted wanted) {
  return std::make_shared<Gate>(shared_from_this(), std::move(wanted));
}

plan::GatePtr Target::Impl::version_gate(const Resource& resource, const core::Json& reply) {
  Wanted wanted;
  wanted.what = Wanted::What::kVersion;
  wanted.resource = resource;
  wanted.key = key_of(reply);
  wanted.uid = core::get_string(reply, {"metadata", "uid"});
  wanted.resource_version = core::get_string(reply, {"metadata", "resourceVersion"});
  wanted.labels = labels_of(reply);
  return gate(std::move(wanted));
}

plan::GatePtr Target::Impl::gone_gate(const Resource& resource, const Key& key, const std::string& uid) {
  Wanted wanted;
  wanted.what = Wanted::What::kGone;
  wanted.resource = resource;
  wanted.key = key;
  wanted.uid = uid;
  return gate(std::move(wanted));
}

void Target::Impl::wrote_beside(const Key& pod, const std::string& uid, const Done& done) {
  Wanted wanted;
  wanted.resource = resources::kPod;
  wanted.key = pod;
  wanted.uid = uid;
  const auto closed = gate(std::move(wanted));
  closed->read_at(loop.clock().mono());
  done({core::Json::object(), {plan::GatePtr(closed)}});
}

void Target::Impl::failed(core::Error error, const Resource& resource, const Key& key, const std::string& uid,
                          core::MonoTime deadline, const Done& done) {
  if (core::retry_of(error.code) != core::Retry::kSettle) return done({std::unexpected(std::move(error)), {}});
  Wanted wanted;
  wanted.resource = resource;
  wanted.key = key;
  wanted.uid = uid;
  const auto closed = gate(std::move(wanted));
  closed->read_at(std::max(deadline, loop.clock().mono()));
  done({std::unexpected(std::move(error)), {plan::GatePtr(closed)}});
}

Target::Target(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, const CacheDirectory& caches,
               EventRecorder& events)
    : impl_(std::make_shared<Impl>(loop, random, logger, client, caches, events)) {
  const auto run = [impl = impl_.get()](auto act, Done done) { impl->run(std::move(act), std::move(done)); };
  carries_out<Create>(run);
  carries_out<Apply>(run);
  carries_out<Patch>(run);
  carries_out<Delete>(run);
  carries_out<Evict>(run);
  carries_out<Get>(run);
  carries_out<Log>(run);
  carries_out<List>(run);
  carries_out<DryRun>(run);
  carries_out<EventAct>([impl = impl_.get()](const auto& event, const Done& done) {
    impl->events.record(*event);
    impl->later({core::Json::object(), {}}, done);
  });
}

Target::~Target() = default;

void Target::on_settled(std::function<void()> call) {
  impl_->settled = std::move(call);
}

}  // namespace kube
