#include "sim/site/slurm_site.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "slinky/names.hpp"
#include "slurm/holds.hpp"

namespace sim {
namespace {

using core::Json;

std::string label(const Json& pod, std::string_view name) {
  return core::get_string(pod, {"metadata", "labels", name});
}

/// Replaces "$(NAME)" by the value from the container's environment.
std::string expanded(std::string text, const std::map<std::string, std::string>& env) {
  for (const auto& [name, value] : env) {
    const std::string word = "$(" + name + ")";
    if (const std::size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), value);
  }
  return text;
}

std::string argument(const PodView& pod, const std::string& container, std::string_view option) {
  const std::vector<std::string> args = pod.args(container);
  for (std::size_t i = 0; i + 1 < args.size(); ++i) {
    if (args[i] == option) return expanded(args[i + 1], pod.env(container));
  }
  return "";
}

/// Decodes base64url. Returns "" for invalid input.
std::string bytes_of(std::string base64url) {
  std::ranges::replace(base64url, '-', '+');
  std::ranges::replace(base64url, '_', '/');
  base64url.resize((base64url.size() + 3) / 4 * 4, '=');
  return core::base64_decode(base64url).value_or("");
}

/// Returns the keys of a daemon. slurm.jwks takes precedence over slurm.key. slurmctld finds slurm.jwks beside slurm.conf, and
/// slurmd finds it through the environment variable.
SlurmKeys keys_of(const PodView& pod, const std::string& container) {
  const std::map<std::string, std::string> env = pod.env(container);
  const auto told = env.find("SLURM_SACK_JWKS");
  const std::string beside = container == slinky::kAppController ? "/etc/slurm/slurm.jwks" : "";
  const auto jwks = core::parse_json(pod.file(container, told == env.end() ? beside : told->second).value_or(""));
  if (!jwks) {
    return {.kids = {pod.file(container, "/etc/slurm/" + std::string(api::kKeySlurm)).value_or("")}, .alone = true};
  }
  SlurmKeys out{.kids = {}};
  for (const Json& key : jwks->value("keys", Json::array())) {
    // slurmctld and slurmd end if two keys have the same kid.
    if (out.bytes.contains(core::get_string(key, {"kid"}))) return {.kids = {}};
    out.kids.push_back(core::get_string(key, {"kid"}));
    out.bytes[out.kids.back()] = bytes_of(core::get_string(key, {"k"}));
    if (core::get_string(key, {"use"}) == "default") out.use_default = out.kids.back();
  }
  return out;
}

std::string without_port(const std::string& endpoint) {
  return endpoint.substr(0, endpoint.rfind(':'));
}

/// Returns "host" of SlurmctldHost=name(host); "" if there is no such line.
std::string slurmctld_host(const std::string& conf) {
  const std::size_t at = conf.find("SlurmctldHost=");
  const std::size_t open = at == std::string::npos ? at : conf.find('(', at);
  const std::size_t close = open == std::string::npos ? open : conf.find(')', open);
  return close == std::string::npos ? "" : conf.substr(open + 1, close - open - 1);
}

}  // namespace

void run_pre_stop(SimSlurm& slurm, const std::string& node, const std::string& pod_uid) {
  const SimNode* known = slurm.node(node);
  if (known == nullptr) return;
  slurm::Holds holds = slurm::Holds::read(known->reason);
  const bool own = holds.has(slurm::Owner::kOperator);
  const bool kept = (known->drain || known->down) && !known->reason.empty() && !own && !slurm::slurms_own(known->reason);
  if (known->drain && !known->down && !own && !slurm.busy(node)) return;
  const bool missed = known->down && known->reason.ends_with(" : Not responding");
  if (!known->drain && (!known->down || missed)) holds = {};  // left over from an earlier drain
  SimNodeUpdate update;
  update.reason = kept                   ? known->reason
                  : known->drain && !own ? "drained without a reason"
                                         : holds.hold(slurm::Owner::kOperator, "Pod is terminating (" + pod_uid + ")").reason();
  if (!kept && (own || !known->drain)) {
    update.state = "DRAIN";
    slurm.update_node(node, update, "root");
  }
  update.state = "DOWN";
  slurm.update_node(node, update, "root");
}

std::string slurm_node_of(const Json& pod) {
  if (core::get_bool(pod, {"spec", "hostNetwork"})) return core::get_string(pod, {"spec", "nodeName"});
  const std::string host = core::get_string(pod, {"spec", "hostname"});
  return host.empty() ? core::get_string(pod, {"metadata", "name"}) : host;
}

// --- Processes --------------------------------------------------------------------------------------------------------

/// A process of a Slurm daemon in a pod. When SimSlurm reports a change, the site lets the kubelet check the process again.
class SlurmSite::SlurmProcess : public Process {
 public:
  SlurmProcess(SlurmSite& site, PodView pod, std::string container)
      : site_(site), pod_(std::move(pod)), container_(std::move(container)), number_(++site.last_process_) {
    site_.processes_[number_] = this;
  }
  ~SlurmProcess() override { site_.processes_.erase(number_); }
  [[nodiscard]] std::optional<int> exit_code() const override { return failed_ ? std::optional(1) : std::nullopt; }
  [[nodiscard]] const PodView& pod() const { return pod_; }
  /// Returns the host of the slurmctld that the process runs, belongs to or waits for.
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] virtual std::string node() const { return ""; }

 protected:
  SlurmSite& site_;
  PodView pod_;
  std::string container_, host_;
  bool failed_ = false;

 private:
  std::uint64_t number_;
};

class SlurmSite::Slurmctld final : public SlurmProcess {
 public:
  Slurmctld(SlurmSite& site, PodView pod, std::string container) : SlurmProcess(site, std::move(pod), std::move(container)) {
    const std::string controller = label(pod_.object(), api::kLabelInstance);
    host_ = slinky::controller_object_name(controller) + "." + pod_.key().ns;
    Cluster& cluster = site_.cluster_for({pod_.key().ns, controller});
    if (cluster.slurm->up()) cluster.slurm->stop();
    cluster.pod = pod_;
    cluster.jwt_key = pod_.file(container_, "/etc/slurm/" + std::string(api::kKeyJwt)).value_or("");
    const Json* claim = site_.api_->peek(kube::resources::kPersistentVolumeClaim,
                                         {pod_.key().ns, "statesave-" + slinky::controller_object_name(controller) + "-0"});
    // Without a claim, slurmctld starts with an empty state in each pod.
    const std::string volume = claim == nullptr ? pod_.uid() : core::get_string(*claim, {"metadata", "uid"});
    if (cluster.volume != volume) cluster.slurm->lose_state();
    cluster.volume = volume;
    failed_ = cluster.jwt_key.empty() || !cluster.slurm->start();
  }
  ~Slurmctld() override {
    if (mine()) site_.at_host(host_)->slurm->stop();
  }
  [[nodiscard]] bool ready() const override { return mine() && site_.at_host(host_)->slurm->up(); }

 private:
  [[nodiscard]] bool mine() const {
    const Cluster* cluster = site_.at_host(host_);
    return cluster != nullptr && cluster->pod && cluster->pod->uid() == pod_.uid();
  }
};

class SlurmSite::Slurmd final : public SlurmProcess {
 public:
  Slurmd(SlurmSite& site, PodView pod, std::string container) : SlurmProcess(site, std::move(pod), std::move(container)) {
    host_ = without_port(argument(pod_, container_, "--conf-server"));
    node_ = pod_.hostname();
    site_.ran_.insert(pod_.uid());
    Cluster* cluster = site_.at_host(host_);
    if (cluster == nullptr) {
      failed_ = true;  // slurmctld's host name cannot be resolved
      return;
    }
    cluster->slurmds[node_] = pod_.uid();  // start_slurmd() reads the keys of this pod
    failed_ = !cluster->slurm->start_slurmd(node_, argument(pod_, container_, "--conf"), pod_.ip(), pod_.uid(), "",
                                            pod_.machine_started());
    if (failed_) cluster->slurmds.erase(node_);
  }
  ~Slurmd() override {
    if (!mine()) return;
    Cluster& cluster = *site_.at_host(host_);
    cluster.slurm->stop_slurmd(node_);
    cluster.slurmds.erase(node_);
  }
  [[nodiscard]] bool ready() const override { return mine() && site_.at_host(host_)->slurm->slurmd_ready(node_); }
  void pre_stop() override {
    const Json* container = pod_.container(container_);
    const Json* hook = container == nullptr ? nullptr : core::find(*container, {"lifecycle", "preStop", "exec", "command"});
    const bool ours = hook != nullptr && hook->dump().find("slurm-operator: Pod is terminating") != std::string::npos;
    if (ours && mine()) run_pre_stop(*site_.at_host(host_)->slurm, node_, pod_.uid());
  }
  void terminate() override {
    const Json* pod = site_.api_->peek(kube::resources::kPod, pod_.key());
    const bool deleted = pod != nullptr && core::find(*pod, {"metadata", "deletionTimestamp"}) != nullptr;
    if (deleted && mine() && site_.on_slurmd_end) site_.on_slurmd_end(*site_.at_host(host_), node_);
  }
  [[nodiscard]] std::string node() const override { return node_; }

 private:
  /// Reports whether this slurmd was the last to start under its node's name. Only the last one represents the node.
  [[nodiscard]] bool mine() const {
    const Cluster* cluster = site_.at_host(host_);
    if (cluster == nullptr) return false;
    const auto it = cluster->slurmds.find(node_);
    return it != cluster->slurmds.end() && it->second == pod_.uid();
  }
  std::string node_;
};

class SlurmSite::Slurmrestd final : public SlurmProcess {
 public:
  Slurmrestd(SlurmSite& site, PodView pod, std::string container) : SlurmProcess(site, std::move(pod), std::move(container)) {
    host_ = slurmctld_host(pod_.file(container_, "/etc/slurm/slurm.conf").value_or(""));
    failed_ = host_.empty();
    if (!failed_) site_.restds_[pod_.uid()] = this;
  }
  ~Slurmrestd() override {
    const auto it = site_.restds_.find(pod_.uid());
    if (it != site_.restds_.end() && it->second == this) site_.restds_.erase(it);
  }
};

/// The init container of a worker: bash -c SCRIPT HOST PORT. It ends when the slurmctld at this host is up.
class SlurmSite::WaitController final : public SlurmProcess {
 public:
  WaitController(SlurmSite& site, PodView pod, std::string container)
      : SlurmProcess(site, std::move(pod), std::move(container)) {
    const Json* spec = pod_.container(container_);
    const Json* command = spec == nullptr ? nullptr : core::find(*spec, {"command"});
    if (command != nullptr && command->size() >= 5) host_ = (*command)[3].get<std::string>();
  }
  [[nodiscard]] std::optional<int> exit_code() const override {
    const Cluster* cluster = site_.at_host(host_);
    return cluster != nullptr && cluster->slurm->up() ? std::optional(0) : std::nullopt;
  }
};

/// An ephemeral container that waits for the files of one step of a key rotation.
class SlurmSite::KeysWitness final : public SlurmProcess {
 public:
  using SlurmProcess::SlurmProcess;
  [[nodiscard]] std::optional<int> exit_code() const override {
    const std::string have = pod_.file(container_, "/etc/slurm/" + std::string(api::kKeyGeneration)).value_or("");
    const Json* spec = pod_.container(container_);
    const Json* command = spec == nullptr ? nullptr : core::find(*spec, {"command"});
    const bool there = !have.empty() && command != nullptr && command->dump().find("= " + have + " ]") != std::string::npos;
    return there ? std::optional(0) : std::nullopt;
  }
  void files_changed() override { pod_.changed(); }
};

/// The init container of a login pod. It reports the key rotation to which the pod's keys belong.
class SlurmSite::InitConf final : public SlurmProcess {
 public:
  using SlurmProcess::SlurmProcess;
  [[nodiscard]] std::optional<int> exit_code() const override { return 0; }
  [[nodiscard]] std::string last_words() const override {
    return pod_.file(container_, "/mnt/slurm/" + std::string(api::kKeyLoginGeneration)).value_or("");
  }
};

std::unique_ptr<Process> SlurmSite::make_process(PodView pod, const std::string& container) {
  const std::string app = label(pod.object(), api::kLabelName);
  if (app == slinky::kAppWorker && container == "wait-controller") {
    return std::make_unique<WaitController>(*this, std::move(pod), container);
  }
  if (app == slinky::kAppLogin && container == "initconf") return std::make_unique<InitConf>(*this, std::move(pod), container);
  if (container.starts_with("keys-")) return std::make_unique<KeysWitness>(*this, std::move(pod), container);
  if (container != app) return nullptr;
  ++starts_[app + " " + (app == slinky::kAppWorker ? pod.key().name : label(pod.object(), api::kLabelInstance))];
  if (app == slinky::kAppController) return std::make_unique<Slurmctld>(*this, std::move(pod), container);
  if (app == slinky::kAppWorker) return std::make_unique<Slurmd>(*this, std::move(pod), container);
  if (app == slinky::kAppRestApi) return std::make_unique<Slurmrestd>(*this, std::move(pod), container);
  return nullptr;
}

// --- The site ---------------------------------------------------------------------------------------------------------

SlurmSite::SlurmSite(core::Loop& loop, core::Random& random, SlurmOptions options)
    : loop_(loop), random_(random), options_(std::move(options)) {}
SlurmSite::~SlurmSite() = default;

SlurmSite::Cluster* SlurmSite::at_host(const std::string& host) const {
  const auto it = clusters_.find(host);
  return it == clusters_.end() ? nullptr : it->second.get();
}

SlurmSite::Cluster* SlurmSite::find(const kube::Key& controller) const {
  return at_host(slinky::controller_object_name(controller.name) + "." + controller.ns);
}

SlurmSite::Cluster& SlurmSite::cluster_for(const kube::Key& controller) {
  const std::string host = slinky::controller_object_name(controller.name) + "." + controller.ns;
  std::unique_ptr<Cluster>& slot = clusters_[host];
  if (slot) return *slot;
  slot = std::make_unique<Cluster>();
  Cluster* cluster = slot.get();
  cluster->controller = controller;
  cluster->slurm = std::make_unique<SimSlurm>(
      loop_, random_,
      [cluster] {
        if (!cluster->pod) return std::string();
        cluster->etc = cluster->pod->files(std::string(slinky::kAppController), "/etc/slurm");
        return cluster->etc["slurm.conf"];
      },
      options_);
  cluster->slurm->key_file = [this, cluster, host](const std::string& node) {
    if (node.empty()) return keys_of(*cluster->pod, std::string(slinky::kAppController));
    for (const auto& [number, process] : processes_) {
      if (process->node() != node || process->host() != host) continue;
      // Of two pods with one name, the one that started last owns the node.
      const auto owner = cluster->slurmds.find(node);
      if (owner != cluster->slurmds.end() && owner->second == process->pod().uid()) {
        return keys_of(process->pod(), std::string(slinky::kAppWorker));
      }
    }
    return SlurmKeys{};
  };
  cluster->rest = std::make_unique<SlurmRest>(loop_, *cluster->slurm, [cluster] { return cluster->jwt_key; });
  cluster->slurm->on_moved = [this, host](const std::string& node) { moved(host, node); };
  if (on_cluster) on_cluster(*cluster);
  return *cluster;
}

void SlurmSite::moved(const std::string& host, const std::string& node) {
  for (const auto& [number, process] : processes_) {
    if (process->host() == host && (node.empty() || process->node() == node)) process->pod().changed();
  }
}

SlurmRest* SlurmSite::listening(const std::string& host, std::uint16_t) const {
  const std::size_t dot = host.find('.');
  if (dot == std::string::npos) return nullptr;
  const kube::Key service{host.substr(dot + 1), host.substr(0, dot)};
  const Json* object = api_->peek(kube::resources::kService, service);
  const Json* selector = object == nullptr ? nullptr : core::find(*object, {"spec", "selector"});
  if (selector == nullptr) return nullptr;
  for (const auto& [uid, restd] : restds_) {
    if (restd->pod().key().ns != service.ns) continue;
    const Json* labels = core::find(restd->pod().object(), {"metadata", "labels"});
    if (labels == nullptr || !core::contains(*labels, *selector)) continue;
    if (const Cluster* cluster = at_host(restd->host())) return cluster->rest.get();
  }
  return nullptr;
}

}  // namespace sim
