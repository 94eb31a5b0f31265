#include "cli/bundle.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <functional>
#include <set>
#include <system_error>

#include "api/kinds.hpp"
#include "api/well_known.hpp"
#include "cli/command.hpp"
#include "cli/redact.hpp"
#include "cli/status.hpp"
#include "core/base64.hpp"
#include "kube/cache/record.hpp"
#include "slinky/names.hpp"

namespace cli {
namespace {

using core::Json;

constexpr std::size_t kSalt = 16;
constexpr int kLines = 5000;
constexpr int kBytes = 8 << 20;
/// The maximum number of workers whose logs are read. Only workers that are not ready count.
constexpr std::size_t kWorkerLogs = 20;
/// The type of the Secrets in which Helm keeps releases. Their values are long and compressed, and appear in no log.
constexpr std::string_view kHelmRelease = "helm.sh/release.v1";
constexpr std::string_view kServiceAccountToken = "kubernetes.io/service-account-token";
constexpr std::string_view kIntroduction =
    "A support bundle of `kubectl slurm`.\n\nresources/  the cluster's resources, the objects that were made from them, pods, "
    "nodes and events\nlogs/       of the operator, slurmctld, slurmrestd, slurmdbd, login pods, and of workers that are not "
    "ready\nslurm/      nodes and jobs, as Slurm reports them\nstatus.*    what `kubectl slurm status` shows\n\nOf Secrets it "
    "has names, the names of their keys, sizes, and hashes with a salt that nobody knows. Values of\nenvironment variables, "
    "and what looks like a password, a token or a private key, are replaced by \"(redacted)\".\nNames of users, hosts, jobs "
    "and images are in it. Look at it before you pass it on.\n";

std::string lowercase(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string path_of(const Json& object) {
  const kube::Key key = kube::key_of(object);
  std::string name = key.name;
  std::ranges::replace(name, '/', '_');
  return fmt::format("resources/{}/{}/{}.yaml", key.ns.empty() ? "cluster" : key.ns,
                     lowercase(core::get_string(object, {"kind"})), name);
}

/// Finds all references to ConfigMaps in a pod, at any depth of `json`. Calls `take` with each reference and the reference's
/// kind.
void each_config_map(const Json& json, const std::function<void(std::string_view, const Json&)>& take) {
  if (json.is_array()) {
    for (const Json& item : json) each_config_map(item, take);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if ((key == "configMap" || key == "configMapKeyRef" || key == "configMapRef") && value.is_object()) take(key, value);
    each_config_map(value, take);
  }
}

/// ConfigMaps and their data keys whose values are environment variables. The data key "" stands for all keys.
using Variables = std::set<std::pair<kube::Key, std::string>>;

Variables variables_of(const std::vector<Json>& objects) {
  Variables out;
  for (const Json& object : objects) {
    const std::string kind = core::get_string(object, {"kind"});
    if (kind == "ConfigMap" || kind == "Secret") continue;
    each_config_map(object, [&](std::string_view reference, const Json& map) {
      if (reference == "configMap") return;
      out.emplace(kube::Key{kube::key_of(object).ns, core::get_string(map, {"name"})},
                  reference == "configMapKeyRef" ? core::get_string(map, {"key"}) : "");
    });
  }
  return out;
}

/// Returns a ConfigMap without the values of environment variables.
Json without_variables(Json object, const Variables& variables) {
  if (core::get_string(object, {"kind"}) != "ConfigMap") return object;
  const kube::Key map = kube::key_of(object);
  for (const char* list : {"data", "binaryData"}) {
    if (!object.contains(list) || !object[list].is_object()) continue;
    for (auto& [key, value] : object[list].items()) {
      if (variables.contains({map, ""}) || variables.contains({map, key})) value = kRedacted;
    }
  }
  return object;
}

/// Removes the list of images from a Kubernetes node. The list is the longest part of the node, and irrelevant for Slurm.
Json shortened(Json object) {
  if (core::get_string(object, {"kind"}) == "Node" && object.contains("status")) object["status"].erase("images");
  return object;
}

/// Reads the contents of the bundle.
class Collector {
 public:
  Collector(Context& context, Api& api) : context_(context), api_(api) {}

  BundleFacts collect(const std::string& ns) {
    facts_.salt = api_.session().random().bytes(kSalt);
    context_.note("reading resources");
    resources(ns);
    operators();
    context_.note("reading logs");
    logs();
    context_.note("asking Slurm");
    slurm(ns);
    if (auto version = api_.text("/version")) {
      facts_.texts.emplace_back("kubernetes-version.json", *version);
    } else {
      problem("/version", version.error());
    }
    return std::move(facts_);
  }
  [[nodiscard]] bool interrupted() const { return interrupted_; }

 private:
  void problem(const std::string& what, const core::Error& error) {
    if (error.code == core::ErrorCode::kCancelled) interrupted_ = true;
    facts_.problems.push_back(what + ": " + error.message);
  }

  void resources(const std::string& ns) {
    const std::string ours =
        std::string(api::kLabelName) + " in (slurmctld,slurmctld-backup,slurmd,slurmrestd,slurmdbd,login,sackd)";
    std::vector<ListRequest> requests{{kube::resources::kPod, ns, ours}};
    for (const char* kind : {"Controller", "RestApi", "NodeSet", "Token", "LoginSet", "Accounting", "SlurmQos", "SlurmAccount",
                             "SlurmUser", "SlurmAssociation"}) {
      const std::string plural = lowercase(kind) + (std::string_view(kind) == "SlurmQos" ? "es" : "s");
      requests.push_back(
          {.resource = {std::string(api::kGroup), std::string(api::kVersion), kind, plural, true}, .ns = ns, .optional = true});
    }
    namespace known = kube::resources;
    for (const auto& resource :
         {known::kStatefulSet, known::kDeployment, known::kService, known::kControllerRevision, known::kPersistentVolumeClaim})
      requests.push_back({resource, ns, ours});
    for (const auto& resource : {known::kPodDisruptionBudget, known::kEvent, known::kSecret})
      requests.push_back({resource, ns});
    requests.push_back({known::kNode});
    requests.push_back({known::kConfigMap, ns});
    auto lists = api_.lists(requests);
    if (lists.front()) pods_ = *lists.front();
    std::set<std::string> hosts;
    for (const Json& pod : pods_) hosts.insert(core::get_string(pod, {"spec", "nodeName"}));
    const auto mounted = mounted_config_maps(pods_);
    for (std::size_t i = 0; i < lists.size(); ++i) {
      if (!lists[i]) {
        problem(requests[i].resource.plural, lists[i].error());
        continue;
      }
      for (Json& object : *lists[i]) {
        const std::string name = kube::key_of(object).name;
        if (requests[i].resource == known::kNode && !hosts.contains(name)) continue;
        if (requests[i].resource == known::kConfigMap && std::ranges::find(mounted, name) == mounted.end()) continue;
        facts_.objects.push_back(std::move(object));
      }
    }
  }

  void operators() {
    const std::string selector = std::string(api::kLabelName) + "=" + std::string(api::kOperatorName);
    auto lists = api_.lists({{kube::resources::kPod, "", selector}, {kube::resources::kDeployment, "", selector}});
    std::set<std::string> namespaces;
    for (auto& list : lists) {
      if (!list) {
        problem("the operator", list.error());
        continue;
      }
      for (Json& object : *list) {
        namespaces.insert(kube::key_of(object).ns);
        if (core::get_string(object, {"kind"}) == "Pod") pods_.push_back(object);
        facts_.objects.push_back(std::move(object));
      }
    }
    for (const std::string& ns : namespaces) {
      for (auto& list :
           api_.lists({{kube::resources::kLease, ns}, {kube::resources::kEvent, ns}, {kube::resources::kSecret, ns}})) {
        if (!list) {
          problem("the operator's namespace " + ns, list.error());
        } else {
          std::ranges::move(*list, std::back_inserter(facts_.objects));
        }
      }
    }
  }

  void logs() {
    std::size_t workers = 0;
    for (const Json& pod : pods_) {
      if (interrupted_) return;
      const bool worker = core::get_string(pod, {"metadata", "labels", api::kLabelName}) == slinky::kAppWorker;
      const auto record = kube::record_from_json<kube::PodRecord>(pod);
      if (!record || (worker && ((*record)->ready() || ++workers > kWorkerLogs))) continue;
      for (const kube::ContainerState& container : (*record)->containers) {
        if (!container.started_once) continue;
        log_of((*record)->meta.key(), container.name, false);
        if (container.restarts > 0) log_of((*record)->meta.key(), container.name, true);
      }
    }
  }

  void log_of(const kube::Key& pod, const std::string& container, bool previous) {
    const std::string path = fmt::format("logs/{}/{}/{}{}.log", pod.ns, pod.name, container, previous ? ".previous" : "");
    auto text = api_.text(kube::resources::kPod.path(pod.ns, pod.name, "log") +
                          fmt::format("?container={}&tailLines={}&limitBytes={}&timestamps=true{}", container, kLines, kBytes,
                                      previous ? "&previous=true" : ""));
    if (!text) return problem(path, text.error());
    facts_.texts.emplace_back(path, std::move(*text));
  }

  void slurm(const std::string& ns) {
    const auto status = read_status(api_, ns, "", true);
    if (!status) return problem("status", status.error());
    const Json document = status_document(*status, {.jobs = true});
    facts_.documents.emplace_back("status.json", document);
    facts_.texts.emplace_back("status.txt", status_text(document, Style(), api_.clock().wall()));
    for (const auto& [cluster, said] : status->slurm) {
      if (!said.known()) {
        facts_.problems.push_back("Slurm of " + cluster + ": " + said.why_not);
        continue;
      }
      Json nodes = Json::array();
      for (const auto& node : said.nodes) {
        std::vector<std::string> flags(node->state.flags.begin(), node->state.flags.end());
        nodes.push_back({{"name", node->name},
                         {"address", node->address},
                         {"state", node->state.base},
                         {"flags", flags},
                         {"reason", node->reason},
                         {"comment", node->comment},
                         {"version", node->version},
                         {"partitions", node->partitions},
                         {"features", node->features},
                         {"cpus", node->cpus},
                         {"memoryMiB", node->real_memory_mib}});
      }
      facts_.documents.emplace_back("slurm/" + cluster + "/nodes.json", std::move(nodes));
    }
  }

  Context& context_;
  Api& api_;
  BundleFacts facts_;
  std::vector<Json> pods_;
  bool interrupted_ = false;
};

core::Result<void> write_new_file(const std::string& path, std::string_view content) {
  const auto failed = [&] {
    return core::fail(core::ErrorCode::kInvalid, path + ": " + std::generic_category().message(errno));
  };
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return failed();
  while (!content.empty()) {
    const ssize_t written = write(file, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      auto error = failed();
      close(file);
      unlink(path.c_str());
      return error;
    }
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return close(file) == 0 ? core::Result<void>() : failed();
}

int run_bundle(Context& context, std::string path) {
  const auto api = context.api();
  if (!api) return context.fail(api.error());
  Collector collector(context, **api);
  const BundleFacts facts = collector.collect(context.ns());
  if (collector.interrupted()) {
    context.note("interrupted: nothing was written");
    return kInterrupted;
  }
  const core::WallTime now = (*api)->clock().wall();
  const auto archive = tar_gz(bundle_files(facts), now);
  if (!archive) return context.fail(archive.error());
  if (path.empty()) {
    std::string at = core::format_rfc3339(now);
    std::erase_if(at, [](char c) { return c == ':' || c == '-'; });
    path = "slurm-support-" + at + ".tar.gz";
  }
  if (const auto written = write_new_file(path, *archive); !written) return context.fail(written.error());
  for (const std::string& problem : facts.problems) context.note("not in it: " + printable(problem));
  context.out(path + "\n");
  context.note("It has no values of Secrets, but names of users, hosts and jobs. Look at it before you pass it on.");
  return kDone;
}

}  // namespace

std::vector<std::string> secret_values(const std::vector<Json>& objects) {
  std::vector<std::string> out;
  for (const Json& object : objects) {
    const std::string type = core::get_string(object, {"type"});
    if (core::get_string(object, {"kind"}) != "Secret" || type == kHelmRelease) continue;
    const Json* data = core::find(object, {"data"});
    if (data == nullptr || !data->is_object()) continue;
    for (const auto& [key, value] : data->items()) {
      // In the Secret of a service account only the token is secret. The namespace in it is a word that appears everywhere.
      if (!value.is_string() || (type == kServiceAccountToken && key != "token")) continue;
      if (auto bytes = core::base64_decode(value.get<std::string>())) out.push_back(std::move(*bytes));
    }
  }
  return out;
}

std::vector<std::string> mounted_config_maps(const std::vector<Json>& pods) {
  std::set<std::string> out;
  // each_config_map() finds references in a volume, in a projected volume, in env and in envFrom.
  for (const Json& pod : pods)
    each_config_map(pod, [&](std::string_view, const Json& map) { out.insert(core::get_string(map, {"name"})); });
  out.erase("");
  return {out.begin(), out.end()};
}

std::vector<ArchiveFile> bundle_files(const BundleFacts& facts) {
  const Redactor redact(secret_values(facts.objects));
  std::map<std::string, std::string> files;
  std::string problems;
  for (const std::string& problem : facts.problems) problems += "- " + problem + "\n";
  files["README.txt"] =
      std::string(kIntroduction) + (problems.empty() ? "" : "\nWhat could not be read:\n" + redact.text(problems));
  const Variables variables = variables_of(facts.objects);
  for (const Json& object : facts.objects)
    files[path_of(object)] = api::to_yaml(redact.object(without_variables(shortened(object), variables), facts.salt));
  for (const auto& [path, text] : facts.texts) files[path] = redact.text(text);
  for (const auto& [path, document] : facts.documents) files[path] = render(redact.object(document), Format::kJson);
  std::vector<ArchiveFile> out;
  for (auto& [path, content] : files) out.push_back({archive_path("slurm-support/" + path), std::move(content)});
  return out;
}

Command support_bundle_command() {
  const auto declare = [](CLI::App& app) -> Run {
    auto path = std::make_shared<std::string>();
    app.add_option("-o,--output", *path, "The file (default: slurm-support-TIME.tar.gz)");
    return [path](Context& context) -> int { return run_bundle(context, *path); };
  };
  return {.path = "support-bundle",
          .about = "Resources, events, logs and Slurm's state in one file, without secrets",
          .all_namespaces = true,
          .declare = declare};
}

}  // namespace cli
