#include "kube/client/credentials.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>

#include "core/base64.hpp"
#include "core/json.hpp"

namespace kube {

namespace {

constexpr core::Duration kTokenReread{60000};
constexpr core::Duration kCertificateReread{300000};
constexpr core::Duration kLeeway{10000};  ///< A token is renewed this long before it expires.
constexpr const char* kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/";

std::string trimmed(std::string text) {
  const auto space = [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; };
  while (!text.empty() && space(text.back())) text.pop_back();
  text.erase(text.begin(), std::ranges::find_if_not(text, space));
  return text;
}

/// A program that issues tokens (client.authentication.k8s.io).
struct ExecPlugin {
  std::string api_version;
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> env;
  bool provide_cluster_info = false;
  std::string install_hint;
};

/// The settings of a context or a pod, before any file is read.
struct Source {
  net::Endpoint endpoint;
  std::string base_path;
  std::string ns = "default";
  std::string ca_file, cert_file, key_file, token_file, token;
  std::optional<ExecPlugin> exec;
};

/// The contents of the files of a Source, or its constants. Files are read again periodically.
struct Material {
  std::string ca_pem, cert_pem, key_pem, token;
};

struct Issued {
  std::string token;
  std::string cert_pem, key_pem;
  std::optional<core::WallTime> expires;
};

core::Result<void> read_into(const System& system, const std::string& path, std::string& out) {
  if (path.empty()) return {};
  auto text = system.read_file(path);
  if (!text) return std::unexpected(text.error());
  out = std::move(*text);
  return {};
}

core::Result<Material> read_material(const System& system, const Source& source) {
  Material m{source.endpoint.tls.ca_pem, source.endpoint.tls.cert_pem, source.endpoint.tls.key_pem, source.token};
  for (const auto& result : {read_into(system, source.ca_file, m.ca_pem), read_into(system, source.cert_file, m.cert_pem),
                             read_into(system, source.key_file, m.key_pem), read_into(system, source.token_file, m.token)}) {
    if (!result) return std::unexpected(result.error());
  }
  m.token = trimmed(std::move(m.token));
  return m;
}

core::Result<Issued> parse_exec_credential(const std::string& output) {
  const auto json = core::parse_json(output);
  if (!json) return std::unexpected(json.error().with("ExecCredential"));
  Issued issued;
  issued.token = core::get_string(*json, {"status", "token"});
  issued.cert_pem = core::get_string(*json, {"status", "clientCertificateData"});
  issued.key_pem = core::get_string(*json, {"status", "clientKeyData"});
  const std::string expires = core::get_string(*json, {"status", "expirationTimestamp"});
  if (!expires.empty()) {
    const auto at = core::parse_rfc3339(expires);
    if (!at) return std::unexpected(at.error().with("ExecCredential"));
    issued.expires = *at;
  }
  if (issued.token.empty() && (issued.cert_pem.empty() || issued.key_pem.empty())) {
    return core::fail(core::ErrorCode::kInvalid, "ExecCredential: neither a token nor a certificate with its key");
  }
  return issued;
}

System::Command exec_command(const ExecPlugin& plugin, const net::Endpoint& endpoint) {
  core::Json info = {{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", {{"interactive", false}}}};
  if (plugin.provide_cluster_info) {
    core::Json cluster = {{"server", endpoint.scheme + "://" + endpoint.host + ":" + std::to_string(endpoint.port)}};
    if (!endpoint.tls.ca_pem.empty()) cluster["certificate-authority-data"] = core::base64_encode(endpoint.tls.ca_pem);
    if (!endpoint.tls.server_name.empty()) cluster["tls-server-name"] = endpoint.tls.server_name;
    if (endpoint.tls.insecure_skip_verify) cluster["insecure-skip-tls-verify"] = true;
    info["spec"]["cluster"] = std::move(cluster);
  }
  System::Command command;
  command.argv = plugin.argv;
  command.env = plugin.env;
  command.env.emplace_back("KUBERNETES_EXEC_INFO", info.dump());
  return command;
}

/// Credentials from files, constants or a plugin.
class SourceCredentials final : public Credentials {
 public:
  SourceCredentials(core::Loop& loop, System system, Source source, const Material& first)
      : loop_(loop), system_(std::move(system)), source_(std::move(source)), endpoint_(source_.endpoint), timer_(loop) {
    take(first);
    schedule();
  }
  ~SourceCredentials() override { alive_.reset(); }

  [[nodiscard]] const net::Endpoint& endpoint() const override { return endpoint_; }
  [[nodiscard]] std::string base_path() const override { return source_.base_path; }
  [[nodiscard]] std::string default_namespace() const override { return source_.ns; }

  [[nodiscard]] std::optional<std::string> token() const override {
    if (!source_.exec) return token_;
    if (!issued_ || (expires_ && loop_.clock().wall() + kLeeway >= *expires_)) return std::nullopt;
    return token_;
  }

  void refresh(Done done) override {
    waiting_.push_back(std::move(done));
    if (waiting_.size() > 1) return;
    if (source_.exec) return run_plugin();
    if (!reads_files()) return finish(core::fail(core::ErrorCode::kUnauthorized, "these credentials cannot be renewed"));
    read_again([this](const core::Result<void>& result) { finish(result); });
  }

 private:
  [[nodiscard]] bool reads_files() const {
    return !source_.token_file.empty() || !source_.ca_file.empty() || !source_.cert_file.empty();
  }

  template <class Value>
  void off_loop(std::function<core::Result<Value>()> work, std::function<void(core::Result<Value>)> then) {
    auto box = std::make_shared<core::Result<Value>>(core::fail(core::ErrorCode::kCancelled, "not run"));
    loop_.offload([box, work = std::move(work)] { *box = work(); },
                  [box, then = std::move(then), weak = std::weak_ptr<bool>(alive_)] {
                    if (!weak.expired()) then(std::move(*box));
                  });
  }

  void schedule() {
    if (!reads_files()) return;
    const core::Duration period = source_.token_file.empty() ? kCertificateReread : kTokenReread;
    timer_.set(period, [this] {
      // No caller waits for this read. Callers of refresh() wait for a read or a plugin run that refresh() has started.
      read_again({});
      schedule();
    });
  }

  void read_again(Done then) {
    off_loop<Material>([system = system_, source = source_] { return read_material(system, source); },
                       [this, then = std::move(then)](core::Result<Material> read) {
                         // If a file cannot be read, keep the previous contents, because the file may be about to be replaced.
                         if (read) take(*read);
                         if (read_) read_(read.has_value());
                         if (then) then(read ? core::Result<void>() : std::unexpected(read.error()));
                       });
  }

  void take(const Material& material) {
    net::Endpoint next = endpoint_;
    next.tls.ca_pem = material.ca_pem;
    // The token and certificate of a plugin are used until the plugin returns others.
    if (!source_.exec) {
      token_ = material.token;
      next.tls.cert_pem = material.cert_pem;
      next.tls.key_pem = material.key_pem;
    }
    swap_endpoint(std::move(next));
  }

  void swap_endpoint(net::Endpoint next) {
    if (next == endpoint_) return;
    endpoint_ = std::move(next);
    if (changed_) changed_(endpoint_);
  }

  void run_plugin() {
    off_loop<Issued>(
        [system = system_, command = exec_command(*source_.exec, endpoint_)]() -> core::Result<Issued> {
          const auto output = system.run(command);
          if (!output) return std::unexpected(output.error());
          return parse_exec_credential(*output);
        },
        [this](core::Result<Issued> issued) {
          if (!issued) {
            core::Error error = issued.error().with("credential plugin " + source_.exec->argv.front());
            if (!source_.exec->install_hint.empty()) error.message += " (" + source_.exec->install_hint + ")";
            return finish(std::unexpected(std::move(error)));
          }
          issued_ = true;
          token_ = issued->token;
          expires_ = issued->expires;
          if (!issued->cert_pem.empty()) {
            net::Endpoint next = endpoint_;
            next.tls.cert_pem = issued->cert_pem;
            next.tls.key_pem = issued->key_pem;
            swap_endpoint(std::move(next));
          }
          finish({});
        });
  }

  void finish(const core::Result<void>& result) {
    const std::vector<Done> waiting = std::exchange(waiting_, {});
    for (const Done& done : waiting) {
      // Calls back in a later iteration of the loop, so that refresh() calls no caller back before it returns.
      loop_.after(core::Duration{0}, [done, result, weak = std::weak_ptr<bool>(alive_)] {
        if (!weak.expired()) done(result);
      });
    }
  }

  core::Loop& loop_;
  System system_;
  Source source_;
  net::Endpoint endpoint_;
  std::string token_;
  bool issued_ = false;
  std::optional<core::WallTime> expires_;
  std::vector<Done> waiting_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  core::Timer timer_;
};

// --- Kubeconfig ---

core::Result<void> parse_server(const std::string& url, Source& source) {
  const auto bad = [&](const std::string& why) {
    return core::fail(core::ErrorCode::kInvalid, "kubeconfig: server \"" + url + "\": " + why);
  };
  const auto scheme_end = url.find("://");
  if (scheme_end == std::string::npos) return bad("must begin with http:// or https://");
  net::Endpoint& endpoint = source.endpoint;
  endpoint.scheme = url.substr(0, scheme_end);
  if (endpoint.scheme != "http" && endpoint.scheme != "https") return bad("must begin with http:// or https://");
  std::string rest = url.substr(scheme_end + 3);
  if (const auto slash = rest.find('/'); slash != std::string::npos) {
    source.base_path = rest.substr(slash);
    while (source.base_path.ends_with('/')) source.base_path.pop_back();
    rest.resize(slash);
  }
  endpoint.port = endpoint.scheme == "https" ? 443 : 80;
  std::string port;
  if (rest.starts_with('[')) {
    const auto close = rest.find(']');
    if (close == std::string::npos) return bad("no closing bracket");
    endpoint.host = rest.substr(1, close - 1);
    if (close + 1 < rest.size() && rest[close + 1] == ':') port = rest.substr(close + 2);
  } else {
    const auto colon = rest.rfind(':');
    endpoint.host = rest.substr(0, colon);
    if (colon != std::string::npos) port = rest.substr(colon + 1);
  }
  if (endpoint.host.empty()) return bad("no host");
  if (!port.empty()) {
    const auto [at, error] = std::from_chars(port.data(), port.data() + port.size(), endpoint.port);
    if (error != std::errc{} || at != port.data() + port.size()) return bad("bad port");
  }
  return {};
}

std::string text_of(const YAML::Node& node, const char* name) {
  const YAML::Node value = node[name];
  return value && value.IsScalar() ? value.as<std::string>() : "";
}

bool flag_of(const YAML::Node& node, const char* name) {
  const YAML::Node value = node[name];
  return value && value.IsScalar() && value.as<bool>();
}

core::Result<std::string> decoded(const YAML::Node& node, const char* name) {
  const std::string encoded = text_of(node, name);
  if (encoded.empty()) return std::string();
  auto bytes = core::base64_decode(encoded);
  if (!bytes) return std::unexpected(bytes.error().with(std::string("kubeconfig: ") + name));
  return bytes;
}

std::string beside(const std::string& config_path, const std::string& path) {
  if (path.empty() || path.starts_with('/')) return path;
  const auto slash = config_path.rfind('/');
  return slash == std::string::npos ? path : config_path.substr(0, slash + 1) + path;
}

/// An entry of a named list, and the file of the entry. Paths in the entry are relative to this file.
struct Found {
  YAML::Node node;
  std::string path;
};

class Kubeconfig {
 public:
  core::Result<void> load(const System& system, const std::string& paths) {
    std::optional<core::Error> missing;
    for (std::size_t begin = 0; begin <= paths.size();) {
      const std::size_t end = std::min(paths.find(':', begin), paths.size());
      const std::string path = paths.substr(begin, end - begin);
      begin = end + 1;
      if (path.empty()) continue;
      auto text = system.read_file(path);
      if (!text) {
        missing = text.error().with("kubeconfig");
        continue;
      }
      try {
        files_.push_back({YAML::Load(*text), path});
      } catch (const YAML::Exception& error) {
        return core::fail(core::ErrorCode::kInvalid, "kubeconfig " + path + ": " + error.what());
      }
    }
    if (!files_.empty()) return {};
    if (missing) return std::unexpected(*missing);
    return core::fail(core::ErrorCode::kNotFound, "kubeconfig: no path given");
  }

  [[nodiscard]] std::string current_context() const {
    for (const Found& file : files_) {
      if (std::string name = text_of(file.node, "current-context"); !name.empty()) return name;
    }
    return "";
  }

  [[nodiscard]] core::Result<Found> find(const char* list, const char* item, const std::string& name) const {
    for (const Found& file : files_) {
      const YAML::Node entries = file.node[list];
      if (!entries || !entries.IsSequence()) continue;
      for (const YAML::Node& entry : entries) {
        if (text_of(entry, "name") == name && entry[item]) return Found{entry[item], file.path};
      }
    }
    return core::fail(core::ErrorCode::kNotFound, std::string("kubeconfig: no ") + item + " named \"" + name + "\"");
  }

 private:
  std::vector<Found> files_;
};

core::Result<void> take_cluster(const Found& cluster, Source& source) {
  if (const auto parsed = parse_server(text_of(cluster.node, "server"), source); !parsed) return parsed;
  if (!text_of(cluster.node, "proxy-url").empty()) {
    return core::fail(core::ErrorCode::kUnsupported, "kubeconfig: proxy-url is not supported");
  }
  auto ca = decoded(cluster.node, "certificate-authority-data");
  if (!ca) return std::unexpected(ca.error());
  source.endpoint.tls.ca_pem = std::move(*ca);
  if (source.endpoint.tls.ca_pem.empty()) source.ca_file = beside(cluster.path, text_of(cluster.node, "certificate-authority"));
  source.endpoint.tls.server_name = text_of(cluster.node, "tls-server-name");
  source.endpoint.tls.insecure_skip_verify = flag_of(cluster.node, "insecure-skip-tls-verify");
  return {};
}

core::Result<void> take_exec(const Found& user, Source& source) {
  const YAML::Node exec = user.node["exec"];
  if (!exec) return {};
  ExecPlugin plugin;
  plugin.api_version = text_of(exec, "apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" && plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    return core::fail(core::ErrorCode::kUnsupported,
                      "kubeconfig: exec apiVersion \"" + plugin.api_version + "\" is not supported");
  }
  if (text_of(exec, "interactiveMode") == "Always") {
    return core::fail(core::ErrorCode::kUnsupported, "kubeconfig: exec needs a terminal (interactiveMode Always)");
  }
  const std::string command = text_of(exec, "command");
  if (command.empty()) return core::fail(core::ErrorCode::kInvalid, "kubeconfig: exec without command");
  // A name without a slash is looked up in PATH.
  plugin.argv.push_back(command.find('/') == std::string::npos ? command : beside(user.path, command));
  for (const YAML::Node& arg : exec["args"]) plugin.argv.push_back(arg.as<std::string>());
  for (const YAML::Node& variable : exec["env"]) plugin.env.emplace_back(text_of(variable, "name"), text_of(variable, "value"));
  plugin.provide_cluster_info = flag_of(exec, "provideClusterInfo");
  plugin.install_hint = text_of(exec, "installHint");
  source.exec = std::move(plugin);
  return {};
}

core::Result<void> take_user(const Found& user, Source& source) {
  if (user.node["auth-provider"] || !text_of(user.node, "username").empty()) {
    return core::fail(core::ErrorCode::kUnsupported,
                      "kubeconfig: auth-provider and username are not supported; use a token, a certificate or exec");
  }
  // Refuse these fields: if we ignored them, our requests would have other rights than the user intended.
  for (const char* key : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    const bool said = !text_of(user.node, key).empty() || (user.node[key] && user.node[key].size() > 0);
    if (said) return core::fail(core::ErrorCode::kUnsupported, std::string("kubeconfig: ") + key + " is not supported");
  }
  auto cert = decoded(user.node, "client-certificate-data");
  auto key = decoded(user.node, "client-key-data");
  if (!cert) return std::unexpected(cert.error());
  if (!key) return std::unexpected(key.error());
  source.endpoint.tls.cert_pem = std::move(*cert);
  source.endpoint.tls.key_pem = std::move(*key);
  if (source.endpoint.tls.cert_pem.empty()) source.cert_file = beside(user.path, text_of(user.node, "client-certificate"));
  if (source.endpoint.tls.key_pem.empty()) source.key_file = beside(user.path, text_of(user.node, "client-key"));
  source.token = text_of(user.node, "token");
  if (source.token.empty()) source.token_file = beside(user.path, text_of(user.node, "tokenFile"));
  return take_exec(user, source);
}

core::Result<Source> source_of(const Kubeconfig& config, std::string context) {
  if (context.empty()) context = config.current_context();
  const auto chosen = config.find("contexts", "context", context);
  if (!chosen) return std::unexpected(chosen.error());
  Source source;
  if (std::string ns = text_of(chosen->node, "namespace"); !ns.empty()) source.ns = std::move(ns);
  const auto cluster = config.find("clusters", "cluster", text_of(chosen->node, "cluster"));
  if (!cluster) return std::unexpected(cluster.error());
  if (const auto taken = take_cluster(*cluster, source); !taken) return std::unexpected(taken.error());
  const std::string user_name = text_of(chosen->node, "user");
  if (user_name.empty()) return source;
  const auto user = config.find("users", "user", user_name);
  if (!user) return std::unexpected(user.error());
  if (const auto taken = take_user(*user, source); !taken) return std::unexpected(taken.error());
  return source;
}

core::Result<std::unique_ptr<Credentials>> make(core::Loop& loop, const System& system, Source source) {
  const auto first = read_material(system, source);
  if (!first) return std::unexpected(first.error());
  return std::make_unique<SourceCredentials>(loop, system, std::move(source), *first);
}

}  // namespace

void StaticCredentials::refresh(Done done) {
  // Calls back at once, because there is no loop for a later callback. Callers accept this.
  done(core::fail(core::ErrorCode::kUnauthorized, "these credentials cannot be renewed"));
}

core::Result<std::unique_ptr<Credentials>> kubeconfig_credentials(core::Loop& loop, const System& system,
                                                                  const std::string& path, const std::string& context) {
  Kubeconfig config;
  if (const auto loaded = config.load(system, path); !loaded) return std::unexpected(loaded.error());
  try {
    auto source = source_of(config, context);
    if (!source) return std::unexpected(source.error());
    return make(loop, system, std::move(*source));
  } catch (const YAML::Exception& error) {
    return core::fail(core::ErrorCode::kInvalid, "kubeconfig " + path + ": " + error.what());
  }
}

core::Result<std::unique_ptr<Credentials>> in_cluster_credentials(core::Loop& loop, const System& system) {
  const auto host = system.env("KUBERNETES_SERVICE_HOST");
  const auto port = system.env("KUBERNETES_SERVICE_PORT");
  if (!host || host->empty() || !port || port->empty()) {
    return core::fail(core::ErrorCode::kNotFound,
                      "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set");
  }
  Source source;
  const std::string bracketed = host->find(':') == std::string::npos ? *host : "[" + *host + "]";
  if (const auto parsed = parse_server("https://" + bracketed + ":" + *port, source); !parsed)
    return std::unexpected(parsed.error());
  source.ca_file = std::string(kServiceAccount) + "ca.crt";
  source.token_file = std::string(kServiceAccount) + "token";
  if (const auto ns = system.read_file(std::string(kServiceAccount) + "namespace"); ns && !trimmed(*ns).empty())
    source.ns = trimmed(*ns);
  return make(loop, system, std::move(source));
}

core::Result<std::unique_ptr<Credentials>> discover_credentials(core::Loop& loop, const std::string& kubeconfig,
                                                                const std::string& context) {
  const System system = real_system();
  if (!kubeconfig.empty()) return kubeconfig_credentials(loop, system, kubeconfig, context);
  if (const auto path = system.env("KUBECONFIG"); path && !path->empty()) {
    return kubeconfig_credentials(loop, system, *path, context);
  }
  auto inside = in_cluster_credentials(loop, system);
  if (inside || inside.error().code != core::ErrorCode::kNotFound) return inside;
  const auto home = system.env("HOME");
  if (!home || home->empty()) return inside;
  return kubeconfig_credentials(loop, system, *home + "/.kube/config", context);
}

}  // namespace kube
