#include "kube/admit/serving_certificate.hpp"

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base64.hpp"
#include "kube/admission.hpp"

namespace kube {
namespace {

using core::Json;

constexpr std::string_view kManagedBy = "app.kubernetes.io/managed-by";
/// The data keys of the Secret, each with the member of StoredCertificate that has the value.
constexpr std::array<std::pair<std::string_view, std::string StoredCertificate::*>, 5> kDataKeys{{
    {"ca.crt", &StoredCertificate::authorities},
    {"tls.crt", &StoredCertificate::cert},
    {"tls.key", &StoredCertificate::key},
    {"next.crt", &StoredCertificate::next_cert},
    {"next.key", &StoredCertificate::next_key},
}};

/// Returns the decoded PEM text. "": the value is missing or is not base64.
std::string pem_at(const Json& object, std::initializer_list<std::string_view> path) {
  return core::base64_decode(core::get_string(object, path)).value_or("");
}

StoredCertificate stored_in(const Json& secret) {
  StoredCertificate out;
  for (const auto& [name, field] : kDataKeys) out.*field = pem_at(secret, {"data", name});
  return out;
}

/// Returns the data for a Secret. With `patch`, returns the data for a merge patch, in which null removes a key.
Json data_of(const StoredCertificate& stored, bool patch) {
  Json out = Json::object();
  for (const auto& [name, field] : kDataKeys) {
    if (const std::string& value = stored.*field; !value.empty()) {
      out[std::string(name)] = core::base64_encode(value);
    } else if (patch) {
      out[std::string(name)] = nullptr;
    }
  }
  return out;
}

}  // namespace

struct ServingCertificate::Impl : std::enable_shared_from_this<ServingCertificate::Impl> {
  Impl(core::Loop& l, core::Logger& g, Client& c, ServingCertificateOptions o, Use u)
      : loop(l), logger(g), client(c), options(std::move(o)), use(std::move(u)), timer(l) {
    options.rules.dns_name = options.service.name + "." + options.service.ns + ".svc";
  }

  core::Loop& loop;
  core::Logger& logger;
  Client& client;
  ServingCertificateOptions options;
  Use use;
  core::Timer timer;
  net::Tls served;                      ///< The certificate in use. Empty: there is none.
  std::optional<core::MonoTime> since;  ///< Since when the configuration has had `published`.
  std::string published;
  std::string told;  ///< The last problem that was logged.

  /// One round: reads the Secret and the webhook configuration, and writes what has to change.
  struct Round {
    Json secret;           ///< Null: there is no Secret.
    bool foreign = false;  ///< Somebody else created the Secret.
    StoredCertificate stored;
    Json configuration;  ///< Null: there is none, or this process does not write.
    std::optional<core::Error> trouble;
  };
  Round round;

  [[nodiscard]] core::WallTime now() const { return loop.clock().wall(); }
  [[nodiscard]] bool writes() const { return client.write_deadline().has_value(); }

  /// Returns a callback that calls `then` with its result if this object still exists.
  Client::Done here(void (Impl::*then)(core::Result<Json>)) {
    return [weak = weak_from_this(), then](core::Result<Json> result) {
      if (const auto self = weak.lock()) ((*self).*then)(std::move(result));
    };
  }

  void begin() {
    round = {};
    client.get(resources::kSecret, options.secret, here(&Impl::take_secret));
  }

  void take_secret(core::Result<Json> read) {
    if (read) {
      round.secret = *std::move(read);
      round.stored = stored_in(round.secret);
      round.foreign = core::get_string(round.secret, {"metadata", "labels", kManagedBy}) != options.program;
    } else if (read.error().code != core::ErrorCode::kNotFound) {
      return end(read.error().with("Secret " + options.secret.str()));
    }
    if (!writes()) return serve();
    client.get(resources::kMutatingWebhookConfiguration, {"", options.configuration}, here(&Impl::take_configuration));
  }

  void take_configuration(core::Result<Json> read) {
    if (read) {
      round.configuration = *std::move(read);
    } else {
      round.trouble = read.error().with("MutatingWebhookConfiguration " + options.configuration);
    }
    const bool trusted = published_for() >= options.publish;
    const RotationDecision decision = decide_rotation(round.stored, options.rules, trusted, now());
    if (decision.what == Rotation::kNone || round.foreign) return publish();
    const auto make = [this] {
      return net::make_server_identity(options.program, {options.rules.dns_name}, now() - options.rules.backdate,
                                       now() + options.rules.lifetime);
    };
    round.stored = rotate(decision.what, round.stored, bundles().front, make, now());
    logger.info("webhook: writing the certificate", {{"secret", options.secret.str()}, {"why", decision.why}});
    write(round.secret, round.stored, here(&Impl::secret_written));
  }

  void secret_written(core::Result<Json> written) {
    if (!written) return end(written.error().with("writing Secret " + options.secret.str()));
    publish();
  }

  void write(const Json& secret, const StoredCertificate& wanted, Client::Done done) {
    if (secret.is_null()) {
      Json object{{"apiVersion", "v1"}, {"kind", "Secret"}, {"type", "kubernetes.io/tls"}};
      object["metadata"] = meta_json(options.secret, {{std::string(kManagedBy), options.program}});
      object["data"] = data_of(wanted, false);
      return client.create(resources::kSecret, object, std::move(done));
    }
    Json patch{{"data", data_of(wanted, true)}};
    for (const char* name : {"uid", "resourceVersion"}) patch["metadata"][name] = core::get_string(secret, {"metadata", name});
    client.patch(resources::kSecret, options.secret, PatchType::kMerge, patch, std::move(done));
  }

  struct Bundles {
    std::string front;                 ///< The authorities (caBundle) of the first webhook that calls our Service.
    std::vector<std::size_t> indices;  ///< The indices of the webhooks that call our Service.
    bool all_same = true;
  };
  [[nodiscard]] Bundles bundles() const {
    Bundles out;
    const Json* webhooks = core::find(round.configuration, {"webhooks"});
    if (webhooks == nullptr || !webhooks->is_array()) return out;
    for (std::size_t i = 0; i < webhooks->size(); ++i) {
      const Json& one = (*webhooks)[i];
      if (core::get_string(one, {"clientConfig", "service", "name"}) != options.service.name ||
          core::get_string(one, {"clientConfig", "service", "namespace"}) != options.service.ns)
        continue;
      const std::string bundle = pem_at(one, {"clientConfig", "caBundle"});
      if (out.indices.empty()) out.front = bundle;
      out.all_same = out.all_same && bundle == out.front;
      out.indices.push_back(i);
    }
    return out;
  }

  [[nodiscard]] std::string authorities() const { return unexpired(round.stored.authorities, now()); }
  [[nodiscard]] bool is_published() const {
    const Bundles have = bundles();
    return !have.indices.empty() && have.all_same && have.front == authorities();
  }

  /// Returns how long the authorities of the Secret have been in the configuration.
  core::Duration published_for() {
    if (!is_published()) {
      since.reset();
      return core::Duration{0};
    }
    if (!since || published != authorities()) since = loop.clock().mono();
    published = authorities();
    return loop.clock().mono() - *since;
  }

  /// Writes the authorities into the configuration.
  void publish() {
    const std::string wanted = authorities();
    const Bundles have = bundles();
    if (wanted.empty() || have.indices.empty() || is_published()) return serve();
    Json patch = Json::array();
    for (const char* name : {"uid", "resourceVersion"}) {
      const std::string value = core::get_string(round.configuration, {"metadata", name});
      patch.push_back({{"op", "test"}, {"path", std::string("/metadata/") + name}, {"value", value}});
    }
    for (const std::size_t i : have.indices) {
      const std::string path = "/webhooks/" + std::to_string(i) + "/clientConfig/caBundle";
      patch.push_back({{"op", "add"}, {"path", path}, {"value", core::base64_encode(wanted)}});
    }
    logger.info("webhook: publishing its authorities", {{"configuration", options.configuration}});
    client.patch(resources::kMutatingWebhookConfiguration, {"", options.configuration}, PatchType::kJson, patch,
                 here(&Impl::configuration_written));
  }

  void configuration_written(core::Result<Json> written) {
    if (!written) round.trouble = written.error().with("writing MutatingWebhookConfiguration " + options.configuration);
    serve();
  }

  void serve() {
    const StoredCertificate& stored = round.stored;
    if (served.cert_pem != stored.cert || served.key_pem != stored.key) {
      const net::Tls tls{.ca_pem = {}, .cert_pem = stored.cert, .key_pem = stored.key};
      auto good = net::check_server(stored.cert, stored.key, stored.authorities, options.rules.dns_name, now());
      if (good) good = use(tls);
      if (good) {
        served = tls;
      } else {
        round.trouble = good.error().with("Secret " + options.secret.str());
      }
    }
    end(std::move(round.trouble));
  }

  /// Ends the round. Logs a problem only once. Begins the next round later.
  void end(std::optional<core::Error> trouble) {
    if (trouble && trouble->message != told) {
      logger.warn(served.cert_pem.empty() ? "webhook: there is no certificate to serve yet" : "webhook: certificate",
                  {core::error_field(*trouble)});
    }
    told = trouble ? trouble->message : "";
    timer.set(served.cert_pem.empty() ? options.urgent : options.interval, [this] { begin(); });
  }
};

ServingCertificate::ServingCertificate(core::Loop& loop, core::Logger& logger, Client& client,
                                       ServingCertificateOptions options, Use use)
    : impl_(std::make_shared<Impl>(loop, logger, client, std::move(options), std::move(use))) {}
ServingCertificate::~ServingCertificate() {
  impl_->timer.cancel();
}

void ServingCertificate::start() {
  impl_->begin();
}

bool ServingCertificate::serves() const {
  return !impl_->served.cert_pem.empty();
}

}  // namespace kube
