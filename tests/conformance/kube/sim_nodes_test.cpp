// Compares the controllers and kubelets of a real cluster (that of KUBECONFIG) with those of SimKube: the same requests must
// give the same watch events, except for times, uids and random names. Each test (a "play") notes the events that it sees. It
// runs once in the cluster and with several seeds in SimKube, each time in a new namespace, and the notes are compared. Without
// KUBECONFIG it runs in SimKube only, and all seeds must give the same notes. NOTES=1 prints the notes of SimKube.
//
// Pods run one program that is controlled by its environment (kProgram). SimKube's containers read the same environment.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "core/json.hpp"
#include "real_api.hpp"
#include "sim/base/loop.hpp"
#include "sim/kube/sim_kube.hpp"

namespace sim {
namespace {

using core::Json;
using namespace std::chrono_literals;

/// Any image on the nodes that has a shell. SLURMD_IMAGE replaces it where the newest release is not available.
const char* const kImage = std::getenv("SLURMD_IMAGE") == nullptr ? "local/slurmd:26.05" : std::getenv("SLURMD_IMAGE");

// ENDS: the seconds until the program ends with CODE. Without ENDS, it ends at SIGTERM. DEAF: the program ignores SIGTERM.
// READY, STARTS: the seconds until the readiness probe and the startup probe succeed. LIVES: the seconds until the liveness
// probe fails. WANT: the text that the readiness probe must find in /etc/conf/key.
constexpr const char* kProgram =
    "if [ \"$DEAF\" ]; then trap '' TERM; else trap 'exit 0' TERM; fi;"
    " [ -z \"$STARTS\" ] || { sleep $STARTS; touch /tmp/started; } & [ -z \"$LIVES\" ] || { sleep $LIVES; touch /tmp/dead; } &"
    " (sleep ${READY:-0}; touch /tmp/ready) & sleep ${ENDS:-infinity} & wait $!; exit ${CODE:-0}";
constexpr const char* kProbe = "[ -f /tmp/ready ] && { [ -z \"$WANT\" ] || grep -qs \"$WANT\" /etc/conf/key; }";

/// The model of the same program. HOOK seconds: the duration of its preStop hook.
class Program final : public Process {
 public:
  Program(core::Loop& loop, PodView pod, const std::string& container)
      : loop_(loop), pod_(std::move(pod)), name_(container), env_(pod_.env(container)), begun_(loop.clock().mono()) {
    for (const char* when : {"ENDS", "READY", "STARTS", "LIVES"}) {
      if (env_.contains(when)) wake_after(seconds(when));
    }
  }
  [[nodiscard]] bool started() const override { return passed() >= seconds("STARTS"); }
  [[nodiscard]] bool alive() const override { return !env_.contains("LIVES") || passed() < seconds("LIVES"); }
  [[nodiscard]] bool ready() const override {
    if (passed() < seconds("READY")) return false;
    if (!env_.contains("WANT")) return true;
    return pod_.file(name_, "/etc/conf/key").value_or("").find(env_.at("WANT")) != std::string::npos;
  }
  [[nodiscard]] std::optional<int> exit_code() const override {
    if (env_.contains("ENDS") && passed() >= seconds("ENDS")) return env_.contains("CODE") ? std::stoi(env_.at("CODE")) : 0;
    if (stop_ && loop_.clock().mono() >= *stop_ && !env_.contains("DEAF")) return 0;
    return std::nullopt;
  }
  void pre_stop() override {
    stop_ = loop_.clock().mono() + seconds("HOOK");
    wake_after(seconds("HOOK"));
  }
  void terminate() override {
    if (!stop_) stop_ = loop_.clock().mono();
    pod_.changed();
  }
  [[nodiscard]] bool ends_at_once() const override { return false; }
  void files_changed() override { pod_.changed(); }

 private:
  [[nodiscard]] core::Duration passed() const { return loop_.clock().mono() - begun_; }
  [[nodiscard]] core::Duration seconds(const char* name) const {
    const auto it = env_.find(name);
    return it == env_.end() ? core::Duration{0} : core::Duration{1000 * std::stoll(it->second)};
  }
  void wake_after(core::Duration delay) {
    loop_.after(delay, [pod = pod_] { pod.changed(); });
  }

  core::Loop& loop_;
  PodView pod_;
  std::string name_;
  std::map<std::string, std::string> env_;
  core::MonoTime begun_;
  std::optional<core::MonoTime> stop_;
};

constexpr const char* kNodeScript = "NODE_SCRIPT";
constexpr const char* kLostNode = "node-3";
/// Longer than a cluster needs to notice that a node is lost, or back.
constexpr core::Duration kNodeLoss{240000};

/// A cluster in which a play runs.
class Cluster {
 public:
  using OnLine = std::function<void(std::string_view)>;

  virtual ~Cluster() = default;
  virtual net::HttpResponse call(const net::HttpRequest& request) = 0;
  /// Calls `on_piece` with pieces of the watch's body for the lifetime of the cluster, from inside run_until.
  virtual void watch(const std::string& target, OnLine on_piece) = 0;
  /// Lets time pass until `done` holds. Returns false if the limit passes first.
  virtual bool run_until(const std::function<bool()>& done, core::Duration limit) = 0;
  /// Switches a node's machine off, and on again.
  virtual void stop_node(const std::string& node) = 0;
  virtual void start_node(const std::string& node) = 0;
};

class RealCluster final : public Cluster {
 public:
  ~RealCluster() override {
    for (const auto id : streams_) api_.transport().cancel(id);
    for (const std::string& node : stopped_) (void)node_script("start", node);
  }
  net::HttpResponse call(const net::HttpRequest& request) override { return api_.call(request); }
  void watch(const std::string& target, OnLine on_piece) override {
    net::StreamHandler handler;
    handler.on_data = std::move(on_piece);
    handler.on_end = [](const core::Result<void>&) {};
    net::HttpRequest request{"GET", target};
    request.timeout = 600s;
    streams_.push_back(api_.transport().stream(std::move(request), std::move(handler)));
  }
  [[nodiscard]] core::WallTime now() { return api_.loop().clock().wall(); }
  bool run_until(const std::function<bool()>& done, core::Duration limit) override {
    const core::MonoTime end = api_.loop().clock().mono() + limit;
    api_.loop().context().restart();
    while (!done()) {
      if (api_.loop().clock().mono() >= end) return false;
      api_.loop().context().run_one_for(50ms);
    }
    return true;
  }
  void stop_node(const std::string& node) override {
    stopped_.insert(node);
    if (!node_script("stop", node)) throw std::runtime_error(node + " does not stop");
  }
  void start_node(const std::string& node) override {
    if (!node_script("start", node)) throw std::runtime_error(node + " does not start");
    stopped_.erase(node);
  }

 private:
  /// Runs dev/node.sh in the clone that runs the cluster.
  static bool node_script(const std::string& what, const std::string& node) {
    const char* script = std::getenv(kNodeScript);
    return script != nullptr && std::system((std::string(script) + " " + what + " " + node).c_str()) == 0;
  }

  RealApi api_;
  std::vector<net::HttpTransport::RequestId> streams_;
  std::set<std::string> stopped_;
};

class SimCluster final : public Cluster {
 public:
  explicit SimCluster(std::uint64_t seed) : loop_(seed), kube_(loop_, loop_.random().fork(), options()) {
    for (const char* node : {"node-1", "node-2", "node-3"}) kube_.nodes().add_node(node);
    kube_.nodes().preload_image(kImage);
    kube_.nodes().add_image(kImage);
    kube_.nodes().set_process_factory([this](PodView pod, const std::string& container) {
      return std::make_unique<Program>(loop_, std::move(pod), container);
    });
  }
  ~SimCluster() override { kube_.nodes().end_processes(); }
  net::HttpResponse call(const net::HttpRequest& request) override { return kube_.serve(request); }
  void watch(const std::string& target, OnLine on_piece) override {
    const auto opened = kube_.open({"GET", target}, {[on_piece](const StreamPiece& piece) { on_piece(piece.text); }, [] {}});
    if (!opened) throw std::runtime_error(target + ": " + opened.error().body);
  }
  bool run_until(const std::function<bool()>& done, core::Duration limit) override { return loop_.run_until(done, limit); }
  void stop_node(const std::string& node) override { kube_.nodes().crash_node(node); }
  void start_node(const std::string& node) override { kube_.nodes().restart_node(node); }

 private:
  /// Makes the kubelets report at once, so that every state of a pod is reported.
  static SimKubeOptions options() {
    SimKubeOptions out;
    out.kubelets.most_report = out.kubelets.slowest_report = out.kubelets.least_report;
    return out;
  }

  SimLoop loop_;
  SimKube kube_;
};

std::string prefix_of(const std::string& plural) {
  static const std::map<std::string, std::string> groups{{"statefulsets", "/apis/apps/v1"},
                                                         {"deployments", "/apis/apps/v1"},
                                                         {"replicasets", "/apis/apps/v1"},
                                                         {"endpointslices", "/apis/discovery.k8s.io/v1"},
                                                         {"poddisruptionbudgets", "/apis/policy/v1"}};
  const auto it = groups.find(plural);
  return it == groups.end() ? "/api/v1" : it->second;
}

bool terminating(const Json& object) {
  return core::find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}

/// A namespace of a cluster, all that was watched in it, and the notes.
class Scene {
 public:
  struct Event {
    std::string type;  ///< "ADDED", "MODIFIED", "DELETED".
    Json object;
  };
  using Show = std::function<std::string(const Json&)>;

  Scene(Cluster& cluster, core::Duration patience, std::string ns)
      : cluster_(cluster), patience_(patience), ns_(std::move(ns)) {
    (void)must(201, "POST", "/api/v1/namespaces", R"({"metadata": {"name": ")" + ns_ + "\"}}");
    // Pods need this account, which the cluster's own controllers create.
    const std::string account = at("serviceaccounts");
    if (call("GET", account + "/default").first == 404) {
      const bool there = cluster_.run_until([&] { return call("GET", account + "/default").first == 200; }, 2s);
      if (!there) (void)call("POST", account, R"({"metadata": {"name": "default"}})");
    }
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;
  ~Scene() {
    for (const std::string& node : made_nodes_) (void)call("DELETE", at("nodes", node));
    (void)call("DELETE", "/api/v1/namespaces/" + ns_);
  }

  [[nodiscard]] const std::string& ns() const { return ns_; }
  [[nodiscard]] Cluster& cluster() { return cluster_; }
  [[nodiscard]] std::string at(const std::string& plural, const std::string& name = "") const {
    if (plural == "nodes") return "/api/v1/nodes" + (name.empty() ? "" : "/" + name);
    return prefix_of(plural) + "/namespaces/" + ns_ + "/" + plural + (name.empty() ? "" : "/" + name);
  }

  /// Sends a request. Returns the status and the body of the reply.
  std::pair<int, Json> call(const std::string& method, const std::string& target, const std::string& body = "") {
    const std::string type = method == "PATCH" ? "application/merge-patch+json" : "application/json";
    const net::HttpResponse reply = cluster_.call({method, target, {{"content-type", type}}, body});
    return {reply.status, core::parse_json(reply.body).value_or(Json())};
  }
  Json must(int status, const std::string& method, const std::string& target, const std::string& body = "") {
    auto [got, reply] = call(method, target, body);
    if (got != status) throw std::runtime_error(method + " " + target + " " + body + ": " + reply.dump());
    return reply;
  }
  void create(const std::string& plural, const std::string& text) {
    const Json made = must(201, "POST", at(plural), text);
    if (plural == "nodes") made_nodes_.push_back(core::get_string(made, {"metadata", "name"}));
  }
  void change(const std::string& plural, const std::string& name, const std::string& patch) {
    const Json before = see(plural, name);
    (void)must(200, "PATCH", at(plural, name), patch);
    if (!before.is_null()) wait(plural + "/" + name + " seen to change", [&] { return see(plural, name) != before; });
  }
  void remove(const std::string& plural, const std::string& name, const std::string& options = "{}") {
    (void)must(200, "DELETE", at(plural, name), options);
  }

  /// Watches the objects of a kind from now on: those in this namespace. Of the kind Namespace it watches only this namespace,
  /// of the kind Node only kLostNode.
  void watch(const std::string& plural) {
    const std::string target = plural == "namespaces" ? "/api/v1/namespaces?fieldSelector=metadata.name%3D" + ns_
                               : plural == "nodes"    ? at("nodes") + "?fieldSelector=metadata.name%3D" + kLostNode
                                                      : at(plural) + "?";
    const Json list = must(200, "GET", target);
    for (const Json& item : list["items"]) take(plural, {"ADDED", item});
    cluster_.watch(target + "&watch=true&resourceVersion=" + core::get_string(list, {"metadata", "resourceVersion"}),
                   [this, plural, rest = std::make_shared<std::string>()](std::string_view piece) {
                     rest->append(piece);
                     for (std::size_t end = rest->find('\n'); end != std::string::npos; end = rest->find('\n')) {
                       const auto event = core::parse_json(std::string_view(*rest).substr(0, end));
                       rest->erase(0, end + 1);
                       if (event && event->value("type", "") != "BOOKMARK")
                         take(plural, {event->value("type", ""), event->value("object", Json())});
                     }
                   });
  }

  /// Returns the object as last watched; null if it does not exist.
  [[nodiscard]] const Json& see(const std::string& plural, const std::string& name) const {
    static const Json none;
    const auto it = now_.find({plural, name});
    return it == now_.end() ? none : it->second;
  }
  [[nodiscard]] std::vector<Json> all(const std::string& plural) const {
    std::vector<Json> out;
    for (const auto& [place, object] : now_) {
      if (place.first == plural) out.push_back(object);
    }
    return out;
  }
  [[nodiscard]] bool gone(const std::string& plural, const std::string& name) const { return see(plural, name).is_null(); }

  /// Waits until `done` holds for the watched state. Throws if it does not in time.
  void wait(const std::string& what, const std::function<bool()>& done, core::Duration limit = core::Duration{0}) {
    if (!cluster_.run_until(done, limit == core::Duration{0} ? patience_ : limit))
      throw std::runtime_error("in vain waited for: " + what);
  }
  void wait_object(const std::string& plural, const std::string& name, const std::string& what,
                   const std::function<bool(const Json&)>& good) {
    wait(plural + "/" + name + " " + what, [&] {
      const Json& object = see(plural, name);
      return !object.is_null() && good(object);
    });
  }
  /// Returns the number of events so far.
  [[nodiscard]] std::size_t events() const { return events_.size(); }
  /// Waits for a good state of the object after the first `after` events, and returns it. The object may have changed since.
  Json wait_event(std::size_t after, const std::string& plural, const std::string& name, const std::string& what,
                  const std::function<bool(const Json&)>& good) {
    std::size_t next = after;
    wait(plural + "/" + name + " " + what, [&] {
      for (; next < events_.size(); ++next) {
        const auto& [kind, event] = events_[next];
        if (kind == plural && core::get_string(event.object, {"metadata", "name"}) == name && good(event.object)) return true;
      }
      return false;
    });
    return events_[next].second.object;
  }
  void wait_gone(const std::string& plural, const std::string& name) {
    wait(plural + "/" + name + " gone", [&] { return gone(plural, name); });
  }
  void pass(core::Duration time) {
    (void)cluster_.run_until([] { return false; }, time);
  }

  void note(const std::string& line) { notes_ += line + "\n"; }
  [[nodiscard]] bool was(const std::string& plural, const std::string& name, const Show& show, const std::string& part) const {
    return std::any_of(events_.begin(), events_.end(), [&](const auto& seen) {
      return seen.first == plural && core::get_string(seen.second.object, {"metadata", "name"}) == name &&
             show(seen.second.object).find(part) != std::string::npos;
    });
  }
  /// Notes the distinct states of an object in order, as `show` returns them ("": skipped), until one contains `last_part`.
  void note_history(const std::string& plural, const std::string& name, const Show& show, const std::string& last_part = "") {
    note(plural + (name == ns_ ? "" : "/" + name) + ":");
    std::string last;
    for (const auto& [kind, event] : events_) {
      if (kind != plural || core::get_string(event.object, {"metadata", "name"}) != name) continue;
      const std::string state = event.type == "DELETED" ? "gone" : show(event.object);
      if (!state.empty() && state != last) note("  " + state);
      if (!state.empty()) last = state;
      if (!last_part.empty() && state.find(last_part) != std::string::npos) return;
    }
  }
  /// Notes the order in which objects of a kind were deleted.
  void note_ends(const std::string& plural) {
    std::string line = plural + " went:";
    for (const auto& [kind, event] : events_) {
      if (kind == plural && event.type == "DELETED") line += " " + core::get_string(event.object, {"metadata", "name"});
    }
    note(line);
  }
  [[nodiscard]] const std::string& notes() const { return notes_; }
  [[nodiscard]] std::string last_states() const {
    std::string out;
    for (const auto& [place, object] : now_) out += "  " + object.dump() + "\n";
    return out;
  }

 private:
  void take(const std::string& plural, Event event) {
    const std::pair place{plural, core::get_string(event.object, {"metadata", "name"})};
    if (event.type == "DELETED") {
      now_.erase(place);
    } else {
      now_[place] = event.object;
    }
    events_.emplace_back(plural, std::move(event));
  }

  Cluster& cluster_;
  core::Duration patience_;
  std::string ns_;
  std::vector<std::pair<std::string, Event>> events_;
  std::map<std::pair<std::string, std::string>, Json> now_;
  std::string notes_;
  std::vector<std::string> made_nodes_;
};

using Play = std::function<void(Scene&)>;

std::string give(Cluster& cluster, core::Duration patience, const std::string& ns, const std::vector<std::string>& watched,
                 const Play& play, const std::string& where) {
  Scene scene(cluster, patience, ns);
  try {
    for (const std::string& plural : watched) scene.watch(plural);
    play(scene);
  } catch (const std::exception& error) {
    ADD_FAILURE() << where << ": " << error.what() << "\nnoted before:\n"
                  << scene.notes() << "last seen:\n"
                  << scene.last_states();
  }
  return scene.notes();
}

/// Removes the state ContainerCreating. If a container starts quickly or the kubelet is slow, the kubelet never reports this
/// state.
std::string without_starting(const std::string& notes) {
  std::istringstream lines(notes);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (!line.contains("=waiting(ContainerCreating)")) out += line + "\n";
  }
  return out;
}

void compare(const std::vector<std::string>& watched, const Play& play) {
  std::string model;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SimCluster cluster(seed);
    const std::string notes = give(cluster, 120s, "conformance", watched, play, "model, seed " + std::to_string(seed));
    if (seed == 1) model = notes;
    EXPECT_EQ(model, notes) << "seeds 1 and " << seed << " differ";
  }
  if (std::getenv("NOTES") != nullptr) std::fputs(model.c_str(), stderr);
  if (testing::Test::HasFailure() || std::getenv("KUBECONFIG") == nullptr) return;
  RealCluster cluster;
  const std::string real = give(cluster, 120s, new_namespace(), watched, play, "real");
  if (real == model) return;
  EXPECT_EQ(without_starting(real), without_starting(model)) << "the real cluster, and the model";
}

// ------------------------------------------------------------------------------------------------------------- pods, as text

std::string container(const std::string& name, const std::string& env, const std::string& more = "") {
  Json out{{"name", name}, {"image", kImage}, {"imagePullPolicy", "IfNotPresent"}, {"env", Json::array()}};
  out["command"] = Json::array({"bash", "-c", kProgram});
  std::istringstream words(env);
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    out["env"].push_back({{"name", word.substr(0, equals)}, {"value", word.substr(equals + 1)}});
  }
  if (!more.empty()) out.merge_patch(*core::parse_json("{" + more + "}"));
  return out.dump();
}
std::string probe() {
  Json exec{{"command", Json::array({"bash", "-c", kProbe})}};
  return R"("readinessProbe": {"periodSeconds": 1, "exec": )" + exec.dump() + "}";
}
/// Returns a postStart hook that waits until the program has set its traps. The container is reported as running only then.
std::string traps_set() {
  const Json exec{{"command", Json::array({"bash", "-c", "until [ -f /tmp/ready ]; do sleep 0.1; done"})}};
  return R"("lifecycle": {"postStart": {"exec": )" + exec.dump() + "}}";
}
std::string hook(const std::string& seconds) {
  return R"("lifecycle": {"preStop": {"exec": {"command": ["sleep", ")" + seconds + "\"]}}}";
}
/// Returns a pod's spec as JSON text. `containers`: JSON objects, separated by commas. `more`: further fields of the spec.
std::string spec(const std::string& containers, const std::string& more = "") {
  return R"({"terminationGracePeriodSeconds": 10, "automountServiceAccountToken": false, "containers": [)" + containers + "]" +
         (more.empty() ? "" : ", " + more) + "}";
}
std::string pod(const std::string& name, const std::string& pod_spec, const std::string& labels = R"({"app": "x"})") {
  return R"({"metadata": {"name": ")" + name + R"(", "labels": )" + labels + R"(}, "spec": )" + pod_spec + "}";
}

std::string state_of(const Json& status) {
  const Json state = status.value("state", Json::object());
  if (state.contains("running")) return "running";
  for (const char* kind : {"waiting", "terminated"}) {
    if (!state.contains(kind)) continue;
    std::string out = std::string(kind) + "(" + core::get_string(state, {kind, "reason"});
    if (state[kind].contains("exitCode")) out += " " + state[kind]["exitCode"].dump();
    return out + ")";
  }
  return "none";
}
/// Describes the containers: name, state, readiness, restarts.
std::string containers_of(const Json& object) {
  std::string out;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    const Json* statuses = core::find(object, {"status", list});
    if (statuses == nullptr) continue;
    for (const Json& status : *statuses) {
      out += " " + core::get_string(status, {"name"}) + "=" + state_of(status);
      if (core::get_bool(status, {"ready"})) out += "+ready";
      if (const auto restarts = core::get_int(status, {"restartCount"}); restarts > 0) out += " x" + std::to_string(restarts);
    }
  }
  return out;
}
const Json* condition(const Json& object, const std::string& type) {
  const Json* conditions = core::find(object, {"status", "conditions"});
  if (conditions == nullptr) return nullptr;
  for (const Json& item : *conditions) {
    if (core::get_string(item, {"type"}) == type) return &item;
  }
  return nullptr;
}
std::string condition_text(const Json& object, const std::string& type) {
  const Json* found = condition(object, type);
  if (found == nullptr) return "";
  const std::string reason = core::get_string(*found, {"reason"});
  return " " + type + "=" + core::get_string(*found, {"status"}) + (reason.empty() ? "" : "(" + reason + ")");
}
bool holds(const Json& object, const std::string& type) {
  const Json* found = condition(object, type);
  return found != nullptr && core::get_string(*found, {"status"}) == "True";
}
std::string phase_of(const Json& object) {
  return core::get_string(object, {"status", "phase"});
}
std::string pod_state(const Json& object) {
  std::string out = terminating(object) ? "terminating " : "";
  out += phase_of(object) + containers_of(object);
  for (const char* type : {"PodScheduled", "Initialized", "ContainersReady", "Ready"}) out += condition_text(object, type);
  return out;
}
std::string waiting_reason(const Json& object) {
  const Json* statuses = core::find(object, {"status", "containerStatuses"});
  return statuses == nullptr || statuses->empty() ? "" : core::get_string((*statuses)[0], {"state", "waiting", "reason"});
}
/// Describes the name and the finalizers, with a mark if the object is being deleted.
std::string held_by(const Json& object) {
  const Json* finalizers = core::find(object, {"metadata", "finalizers"});
  return std::string(terminating(object) ? "terminating " : "there ") + (finalizers == nullptr ? "[]" : finalizers->dump());
}

std::string config_map(const std::string& name, const std::string& metadata = "", const std::string& key = "") {
  return R"({"metadata": {"name": ")" + name + "\"" + (metadata.empty() ? "" : ", " + metadata) + "}" +
         (key.empty() ? "" : R"(, "data": {"key": ")" + key + "\"}") + "}";
}
std::string owned_by(Scene& scene, const std::vector<std::string>& owners, const std::string& more = "") {
  std::string out = R"("ownerReferences": [)";
  for (const std::string& owner : owners) {
    const Json found = scene.must(200, "GET", scene.at("configmaps", owner));
    out += std::string(out.ends_with('[') ? "" : ", ") + R"({"apiVersion": "v1", "kind": "ConfigMap", "name": ")" + owner +
           R"(", "uid": ")" + core::get_string(found, {"metadata", "uid"}) + "\"" + more + "}";
  }
  return out + "]";
}
std::string owners_of(const Json& object) {
  std::string out;
  for (const Json& owner : object["metadata"].value("ownerReferences", Json::array())) {
    out += " " + core::get_string(owner, {"kind"}) + "/" + core::get_string(owner, {"name"}) +
           (core::get_bool(owner, {"controller"}) ? " controller" : "") +
           (core::get_bool(owner, {"blockOwnerDeletion"}) ? " blocks" : "");
  }
  return out.empty() ? " nobody" : out;
}

// --------------------------------------------------------------------------------------------------- deletion and collection

TEST(SimNodesConformance, BackgroundCollectsWhatNobodyOwnsAnyMore) {
  compare({"configmaps"}, [](Scene& s) {
    for (const char* name : {"owner", "other"}) s.create("configmaps", config_map(name));
    s.create("configmaps", config_map("child", owned_by(s, {"owner"})));
    s.create("configmaps", config_map("grandchild", owned_by(s, {"child"})));
    s.create("configmaps", config_map("shared", owned_by(s, {"owner", "other"})));
    s.remove("configmaps", "owner", R"({"propagationPolicy": "Background"})");
    s.wait_gone("configmaps", "grandchild");
    s.note_ends("configmaps");
    s.wait_object("configmaps", "shared", "has one owner",
                  [](const Json& o) { return o["metadata"]["ownerReferences"].size() == 1; });
    s.note("shared:" + owners_of(s.see("configmaps", "shared")));
  });
}

TEST(SimNodesConformance, ForegroundWaitsForWhatBlocks) {
  compare({"configmaps"}, [](Scene& s) {
    s.create("configmaps", config_map("owner"));
    const std::string hold = R"(, "finalizers": ["conformance.test/hold"])";
    s.create("configmaps", config_map("blocks", owned_by(s, {"owner"}, R"(, "blockOwnerDeletion": true)") + hold));
    s.create("configmaps", config_map("minor", owned_by(s, {"owner"}) + hold));
    s.remove("configmaps", "owner", R"({"propagationPolicy": "Foreground"})");
    s.wait("both are being deleted",
           [&] { return terminating(s.see("configmaps", "blocks")) && terminating(s.see("configmaps", "minor")); });
    s.pass(1s);
    s.note("owner meanwhile: " + held_by(s.see("configmaps", "owner")));
    s.change("configmaps", "blocks", R"({"metadata": {"finalizers": null}})");
    s.wait_gone("configmaps", "owner");
    s.pass(1s);
    s.note_ends("configmaps");
    for (const char* name : {"owner", "blocks", "minor"}) s.note_history("configmaps", name, held_by);
    s.change("configmaps", "minor", R"({"metadata": {"finalizers": null}})");
    s.wait_gone("configmaps", "minor");
  });
}

TEST(SimNodesConformance, OrphansLoseTheirOwner) {
  compare({"configmaps"}, [](Scene& s) {
    s.create("configmaps", config_map("owner"));
    s.create("configmaps", config_map("child", owned_by(s, {"owner"})));
    s.pass(1s);  // the collector must have seen both
    s.remove("configmaps", "owner", R"({"propagationPolicy": "Orphan"})");
    s.wait_gone("configmaps", "owner");
    s.note_history("configmaps", "owner", held_by);
    s.note_history("configmaps", "child", owners_of);
  });
}

TEST(SimNodesConformance, FinalizersKeepAnObjectUntilTheLastGoes) {
  compare({"configmaps"}, [](Scene& s) {
    s.create("configmaps", config_map("held", R"("finalizers": ["conformance.test/a", "conformance.test/b"])"));
    s.remove("configmaps", "held");
    s.change("configmaps", "held", R"({"metadata": {"finalizers": ["conformance.test/b"]}})");
    s.change("configmaps", "held", R"({"data": {"still": "there"}})");
    s.change("configmaps", "held", R"({"metadata": {"finalizers": null}})");
    s.wait_gone("configmaps", "held");
    s.note_history("configmaps", "held", [](const Json& o) { return held_by(o) + o.value("data", Json()).dump(); });
  });
}

TEST(SimNodesConformance, ANamespaceGoesLast) {
  compare({"configmaps", "pods", "namespaces"}, [](Scene& s) {
    s.create("configmaps", config_map("held", R"("finalizers": ["conformance.test/hold"])"));
    s.create("configmaps", config_map("free"));
    s.create("pods", pod("p", spec(container("main", ""), R"("terminationGracePeriodSeconds": 2)")));
    s.wait_object("pods", "p", "ready", [](const Json& o) { return holds(o, "Ready"); });
    (void)s.must(200, "DELETE", "/api/v1/namespaces/" + s.ns());
    s.wait_object("namespaces", s.ns(), "terminating", terminating);
    const auto refused = s.call("POST", s.at("configmaps"), config_map("late"));
    s.note("a late object: " + std::to_string(refused.first) + " " + core::get_string(refused.second, {"reason"}));
    s.wait_gone("pods", "p");
    s.wait_gone("configmaps", "free");
    s.wait_object("configmaps", "held", "terminating", terminating);
    s.note("the namespace meanwhile: " + phase_of(s.see("namespaces", s.ns())));
    s.change("configmaps", "held", R"({"metadata": {"finalizers": null}})");
    s.wait_gone("namespaces", s.ns());
    s.note("left: " + std::to_string(s.all("configmaps").size() + s.all("pods").size() > 0));
    s.note_history("namespaces", s.ns(), phase_of);
  });
}

// --------------------------------------------------------------------------------------------------------------------- watches

TEST(SimNodesConformance, BookmarksTellHowFarAWatchIs) {
  compare({}, [](Scene& s) {
    const auto made = s.must(201, "POST", s.at("configmaps"), config_map("mine", R"("labels": {"marked": "yes"})"));
    const auto version = [](const Json& object) { return core::get_string(object, {"metadata", "resourceVersion"}); };
    const auto watch = [&](const std::string& from, const std::string& more) {
      auto body = std::make_shared<std::string>();
      s.cluster().watch(s.at("configmaps") + "?watch=true&labelSelector=marked&timeoutSeconds=4&resourceVersion=" + from + more,
                        [body](std::string_view piece) { body->append(piece); });
      return body;
    };
    const auto first = [](const std::string& body) {
      return core::parse_json(std::string_view(body).substr(0, body.find('\n'))).value_or(Json::object());
    };
    const auto marked = watch(version(made), "&allowWatchBookmarks=true");
    const auto unmarked = watch(version(made), "");
    // The watch does not select this object, so only a bookmark shows that the watch has passed its creation.
    const Json other = s.must(201, "POST", s.at("configmaps"), config_map("other"));
    s.wait("a bookmark", [&] { return marked->ends_with('\n'); });
    Json bookmark = first(*marked);
    const std::string from = version(bookmark.value("object", Json()));
    s.note("as far as the other: " + std::to_string(std::atoll(from.c_str()) >= std::atoll(version(other).c_str())));
    bookmark["object"]["metadata"].erase("resourceVersion");
    bookmark["object"]["metadata"].erase("creationTimestamp");
    s.note(bookmark.dump());
    s.note("where none is wanted: " + *unmarked);
    s.change("configmaps", "mine", R"({"data": {"k": "1"}})");
    const auto rest = watch(from, "");
    s.wait("a change", [&] { return rest->ends_with('\n'); });
    s.note("from there on: " + first(*rest).value("type", ""));
  });
}

// ------------------------------------------------------------------------------------------------------------------- workloads
// StatefulSets, their claims, and Deployments.

std::string workload(const std::string& name, const std::string& replicas, const std::string& pod_spec,
                     const std::string& more = "") {
  return R"({"metadata": {"name": ")" + name + R"("}, "spec": {"replicas": )" + replicas +
         R"(, "selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}, "spec": )" +
         pod_spec + "}" + (more.empty() ? "" : ", " + more) + "}}";
}
constexpr const char* kNewTemplate = R"({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})";

std::string counters(const Json& object, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += " " + name + "=" + std::to_string(core::get_int(object, {"status", name}));
  return out;
}
bool counted(const Json& object, const std::string& name, long long wanted) {
  return core::get_int(object, {"status", name}) == wanted;
}
bool observed(const Json& object) {
  return core::get_int(object, {"status", "observedGeneration"}) == core::get_int(object, {"metadata", "generation"});
}
std::string uid_of(const Json& object) {
  return core::get_string(object, {"metadata", "uid"});
}
std::string label(const Json& object, const std::string& name) {
  return core::get_string(object, {"metadata", "labels", name});
}

std::string set_status(const Json& set) {
  return counters(set, {"replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas"}) +
         (core::get_string(set, {"status", "currentRevision"}) == core::get_string(set, {"status", "updateRevision"})
              ? " one revision"
              : " two revisions");
}

TEST(SimNodesConformance, StatefulSetsKeepNamesAndClaims) {
  compare({"statefulsets", "pods", "persistentvolumeclaims"}, [](Scene& s) {
    const auto settled = [&](long long replicas) {
      s.wait_object("statefulsets", "s", "settled", [&](const Json& o) {
        return observed(o) && counted(o, "replicas", replicas) && counted(o, "readyReplicas", replicas) &&
               counted(o, "updatedReplicas", replicas) &&
               core::get_string(o, {"status", "currentRevision"}) == core::get_string(o, {"status", "updateRevision"});
      });
      s.note("set:" + set_status(s.see("statefulsets", "s")));
    };
    s.create("statefulsets", workload("s", "1", spec(container("main", "HOOK=2", hook("2"))),
                                      R"("serviceName": "svc", "volumeClaimTemplates": [{"metadata": {"name": "data"},
                      "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}])"));
    settled(1);
    s.note_history("statefulsets", "s", [](const Json& o) { return observed(o) ? set_status(o) : ""; });
    const Json first = s.see("pods", "s-0");
    s.note("pod:" + owners_of(first) + " " + core::get_string(first, {"spec", "hostname"}) + "." +
           core::get_string(first, {"spec", "subdomain"}));
    for (const auto& [name, value] : first["metadata"]["labels"].items()) {
      const bool revision = name == "controller-revision-hash";
      const Json& set = s.see("statefulsets", "s");
      s.note("  " + name + "=" +
             (revision ? std::to_string(value == core::get_string(set, {"status", "updateRevision"})) : value.dump()));
    }
    for (const Json& volume : first["spec"]["volumes"]) s.note("  " + volume.dump());
    const Json claim = s.see("persistentvolumeclaims", "data-s-0");
    s.note("claim:" + owners_of(claim) + " " + held_by(claim) + " " + claim["metadata"]["labels"].dump() + " " +
           core::get_string(claim, {"spec", "storageClassName"}) + " " + phase_of(claim) + " " +
           claim["status"]["capacity"].dump() + claim["status"]["accessModes"].dump() + " " +
           std::to_string(core::get_string(claim, {"spec", "volumeName"}) == "pvc-" + uid_of(claim)));
    s.note_history("persistentvolumeclaims", "data-s-0", phase_of);

    const std::size_t removed = s.events();
    s.remove("pods", "s-0");
    s.note("while it ends:" + set_status(s.wait_event(removed, "statefulsets", "s", "does not count the one that ends",
                                                      [](const Json& o) { return counted(o, "updatedReplicas", 0); })));
    s.wait_object("pods", "s-0", "another, ready",
                  [&](const Json& o) { return uid_of(o) != uid_of(first) && holds(o, "Ready"); });
    settled(1);
    s.note("the same claim: " + std::to_string(uid_of(s.see("persistentvolumeclaims", "data-s-0")) == uid_of(claim)));

    const std::string second = uid_of(s.see("pods", "s-0"));
    const std::size_t changed = s.events();
    s.change("statefulsets", "s", kNewTemplate);
    s.note("while it rolls:" +
           set_status(s.wait_event(changed, "statefulsets", "s", "does not count the one that ends",
                                   [](const Json& o) { return observed(o) && counted(o, "currentReplicas", 0); })));
    s.wait_object("pods", "s-0", "new, ready", [&](const Json& o) { return uid_of(o) != second && holds(o, "Ready"); });
    settled(1);

    s.change("statefulsets", "s", R"({"spec": {"replicas": 0}})");
    s.wait_gone("pods", "s-0");
    settled(0);
    s.note("claim: " + phase_of(s.see("persistentvolumeclaims", "data-s-0")));
    s.change("statefulsets", "s", R"({"spec": {"replicas": 1}})");
    settled(1);
    s.note("the same claim: " + std::to_string(uid_of(s.see("persistentvolumeclaims", "data-s-0")) == uid_of(claim)));
  });
}

TEST(SimNodesConformance, AClaimStaysForAsLongAsAPodUsesIt) {
  compare({"persistentvolumeclaims", "pods"}, [](Scene& s) {
    s.create("persistentvolumeclaims", R"({"metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"],
      "resources": {"requests": {"storage": "1Mi"}}}})");
    s.create("pods", pod("user", spec(container("main", ""),
                                      R"("volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])")));
    s.wait_object("pods", "user", "ready", [](const Json& o) { return holds(o, "Ready"); });
    s.remove("persistentvolumeclaims", "c");
    s.wait_object("persistentvolumeclaims", "c", "terminating", terminating);
    s.pass(2s);
    s.note("while it is used: " + held_by(s.see("persistentvolumeclaims", "c")));
    s.remove("pods", "user");
    for (const auto& [plural, name] : {std::pair{"persistentvolumeclaims", "c"}, {"pods", "user"}}) s.wait_gone(plural, name);
    s.note_history("persistentvolumeclaims", "c", [](const Json& o) { return phase_of(o) + " " + held_by(o); });
  });
}

TEST(SimNodesConformance, DeploymentsRollOverReplicaSets) {
  compare({"deployments", "replicasets", "pods"}, [](Scene& s) {
    const auto settled = [&] {
      s.wait_object("deployments", "d", "settled", [&](const Json& o) {
        const Json* progress = condition(o, "Progressing");
        return observed(o) && counted(o, "replicas", 2) && counted(o, "updatedReplicas", 2) && counted(o, "readyReplicas", 2) &&
               progress != nullptr && core::get_string(*progress, {"reason"}) == "NewReplicaSetAvailable";
      });
      s.wait("two pods", [&] { return s.all("pods").size() == 2; });
      const Json& deployment = s.see("deployments", "d");
      s.note("deployment:" + counters(deployment, {"availableReplicas", "unavailableReplicas"}) +
             condition_text(deployment, "Available") + condition_text(deployment, "Progressing"));
      std::multiset<std::string> sets;
      for (const Json& set : s.all("replicasets")) {
        const std::string hash = label(set, "pod-template-hash");
        std::string line =
            "set:" + owners_of(set) + counters(set, {"replicas", "fullyLabeledReplicas", "readyReplicas"}) + " of " +
            set["spec"]["replicas"].dump() + " named " +
            std::to_string(core::get_string(set, {"metadata", "name"}) == "d-" + hash) + " selects " +
            std::to_string(core::get_string(set, {"spec", "selector", "matchLabels", "pod-template-hash"}) == hash);
        for (const Json& each : s.all("pods")) {
          if (label(each, "pod-template-hash") != hash) continue;
          const std::string name = core::get_string(each, {"metadata", "name"});
          line += "; pod named " + std::to_string(name.starts_with("d-" + hash + "-")) +
                  std::to_string(name.size() == hash.size() + 8) + (owners_of(each).ends_with(" controller blocks") ? "" : "?");
        }
        sets.insert(line);
      }
      for (const std::string& line : sets) s.note(line);
    };
    s.create("deployments", workload("d", "2", spec(container("main", ""))));
    settled();
    s.change("deployments", "d", kNewTemplate);
    settled();
  });
}

// -------------------------------------------------------------------------------------------------------- services and budgets
// The endpoints of Services, and PodDisruptionBudgets.

std::string endpoints_of(const Scene& s, const std::string& service) {
  std::set<std::string> lines;
  for (const Json& slice : s.all("endpointslices")) {
    if (label(slice, "kubernetes.io/service-name") != service) continue;
    lines.insert("  slice:" + owners_of(slice) + " " + core::get_string(slice, {"addressType"}));
    const Json* endpoints = core::find(slice, {"endpoints"});
    if (endpoints == nullptr || !endpoints->is_array()) continue;
    for (const Json& endpoint : *endpoints) {
      const std::string target = core::get_string(endpoint, {"targetRef", "name"});
      const Json& target_pod = s.see("pods", target);
      // The watch of pods may lag behind the watch of slices.
      const std::string ip = core::get_string(target_pod, {"status", "podIP"});
      const bool right = ip.empty() || endpoint["addresses"] == Json::array({ip});
      lines.insert("  " + target + " " + endpoint["conditions"].dump() + " host=" + core::get_string(endpoint, {"hostname"}) +
                   (right ? "" : " of another address"));
    }
  }
  std::string out = service + ":\n";
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

TEST(SimNodesConformance, ServicesListTheirPods) {
  compare({"endpointslices", "pods"}, [](Scene& s) {
    const auto service = [&](const std::string& name, const std::string& more) {
      s.create("services", R"({"metadata": {"name": ")" + name +
                               R"("}, "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}])" + more + "}}");
    };
    service("plain", "");
    service("headless", R"(, "clusterIP": "None")");
    service("all", R"(, "clusterIP": "None", "publishNotReadyAddresses": true)");
    s.create("pods", pod("good", spec(container("main", "", probe()), R"("hostname": "good", "subdomain": "headless")")));
    s.create("pods", pod("bad", spec(container("main", "READY=1000", probe()), R"("hostname": "bad", "subdomain": "all")")));
    s.create("pods", pod("ends", spec(container("main", "HOOK=8", hook("8")))));
    const auto everywhere = [&](const std::string& what) {
      return [&s, what] {
        for (const char* name : {"plain", "headless", "all"}) {
          if (endpoints_of(s, name).find(what) == std::string::npos) return false;
        }
        return true;
      };
    };
    for (const char* name : {"good", "ends"})
      s.wait_object("pods", name, "ready", [](const Json& o) { return holds(o, "Ready"); });
    s.wait("endpoints of all", [&] {
      return everywhere("good {\"ready\":true,\"serving\":true")() && everywhere("ends {\"ready\":true,\"serving\":true")() &&
             everywhere("bad ")();
    });
    for (const char* name : {"plain", "headless", "all"}) s.note(endpoints_of(s, name));
    s.remove("pods", "ends");
    s.wait("it is seen to end", everywhere("\"terminating\":true"));
    s.note("while one ends");
    for (const char* name : {"plain", "headless", "all"}) s.note(endpoints_of(s, name));
    s.wait_gone("pods", "ends");
    s.wait("it is out", [&] {
      return !everywhere("ends ")() && endpoints_of(s, "all").find("ends ") == std::string::npos &&
             endpoints_of(s, "headless").find("ends ") == std::string::npos;
    });
    s.change("pods", "good", R"({"metadata": {"labels": {"app": "y"}}})");
    s.remove("pods", "bad");
    s.wait("nobody is in", [&] {
      const std::string in = endpoints_of(s, "plain");
      return in.find("good ") == std::string::npos && in.find("bad ") == std::string::npos;
    });
    s.note("in the end\n" + endpoints_of(s, "plain"));
  });
}

TEST(SimNodesConformance, BudgetsAllowOneEvictionMore) {
  compare({"poddisruptionbudgets", "pods"}, [](Scene& s) {
    const auto state = [](const Json& o) {
      return observed(o) ? counters(o, {"expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"}) : "";
    };
    const auto settled = [&](const std::string& what) {
      s.wait_object("poddisruptionbudgets", "b", what, [&](const Json& o) { return state(o) == what; });
      s.note("budget:" + what);
    };
    const auto evict = [&](const std::string& name) {
      const auto [status, reply] =
          s.call("POST", s.at("pods", name) + "/eviction",
                 R"({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": ")" + name + "\"}}");
      std::string line = "evict " + name + ": " + std::to_string(status) + " " + core::get_string(reply, {"reason"}) + " " +
                         core::get_string(reply, {"message"});
      if (const Json* causes = core::find(reply, {"details", "causes"})) line += " " + causes->dump();
      s.note(line);
    };
    s.create("poddisruptionbudgets",
             R"({"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}})");
    settled(" expectedPods=0 currentHealthy=0 desiredHealthy=1 disruptionsAllowed=0");
    s.create("pods", pod("a", spec(container("main", "HOOK=8", hook("8")))));
    settled(" expectedPods=1 currentHealthy=1 desiredHealthy=1 disruptionsAllowed=0");
    evict("a");
    s.create("pods", pod("b", spec(container("main", ""))));
    settled(" expectedPods=2 currentHealthy=2 desiredHealthy=1 disruptionsAllowed=1");
    evict("a");
    s.wait_object("pods", "a", "ends", terminating);
    s.note(condition_text(s.see("pods", "a"), "DisruptionTarget"));
    settled(" expectedPods=2 currentHealthy=1 desiredHealthy=1 disruptionsAllowed=0");
    evict("b");
    s.note(std::string("a") + (terminating(s.must(200, "GET", s.at("pods", "a"))) ? " ends" : " stays") + ", b" +
           (terminating(s.must(200, "GET", s.at("pods", "b"))) ? " ends" : " stays"));
    s.wait_gone("pods", "a");
    settled(" expectedPods=1 currentHealthy=1 desiredHealthy=1 disruptionsAllowed=0");
    s.create("pods", pod("sick", spec(container("main", "READY=1000", probe()))));
    s.wait_object("pods", "sick", "runs", [](const Json& o) { return phase_of(o) == "Running"; });
    settled(" expectedPods=2 currentHealthy=1 desiredHealthy=1 disruptionsAllowed=0");
    evict("sick");
    s.wait_gone("pods", "sick");
  });
}

TEST(SimNodesConformance, BudgetsGoByTheScaleOfOwners) {
  compare({"poddisruptionbudgets", "pods"}, [](Scene& s) {
    // The owner wants fewer pods than it has, and its controller leaves these alone: a Deployment's real pods belong to its
    // ReplicaSet.
    s.create("deployments", workload("d", "1", spec(container("main", ""))));
    const std::string owner = uid_of(s.must(200, "GET", s.at("deployments", "d")));
    s.create("poddisruptionbudgets",
             R"({"metadata": {"name": "b"}, "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "y"}}}})");
    for (const char* name : {"a", "b"}) {
      Json owned = *core::parse_json(pod(name, spec(container("main", "")), R"({"app": "y"})"));
      owned["metadata"]["ownerReferences"] = Json::array(
          {{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", "d"}, {"uid", owner}, {"controller", true}}});
      s.create("pods", owned.dump());
    }
    const auto settled = [&](const std::string& what) {
      s.wait_object("poddisruptionbudgets", "b", what, [&](const Json& o) {
        return observed(o) && counters(o, {"expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed"}) == what;
      });
      s.note("budget:" + what);
    };
    const auto evict = [&] {
      const auto [status, reply] = s.call("POST", s.at("pods", "a") + "/eviction",
                                          R"({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}})");
      s.note("evict: " + std::to_string(status) + " " + core::get_string(reply, {"reason"}));
    };
    settled(" expectedPods=1 currentHealthy=2 desiredHealthy=1 disruptionsAllowed=1");
    const auto both = s.call("PATCH", s.at("poddisruptionbudgets", "b"), R"({"spec": {"minAvailable": 1}})");
    s.note("both: " + std::to_string(both.first) + " " + core::get_string(both.second, {"reason"}));
    s.change("poddisruptionbudgets", "b", R"({"spec": {"maxUnavailable": null, "minAvailable": 2147483647}})");
    settled(" expectedPods=2 currentHealthy=2 desiredHealthy=2147483647 disruptionsAllowed=0");
    evict();
    s.change("poddisruptionbudgets", "b", R"({"spec": {"minAvailable": "100%"}})");
    settled(" expectedPods=1 currentHealthy=2 desiredHealthy=1 disruptionsAllowed=1");
    evict();
    s.wait_gone("pods", "a");
    settled(" expectedPods=1 currentHealthy=1 desiredHealthy=1 disruptionsAllowed=0");
  });
}

// ------------------------------------------------------------------------------------------------------------------------ pods

TEST(SimNodesConformance, PodsInitializeRunBecomeReadyAndEnd) {
  compare({"pods"}, [](Scene& s) {
    const std::string never = R"("restartPolicy": "Never")";
    s.create("pods", pod("stays", spec(container("main", "READY=3", probe()),
                                       R"("initContainers": [)" + container("init", "ENDS=3") + "]")));
    s.create("pods", pod("good", spec(container("main", "ENDS=3"), never)));
    s.create("pods", pod("bad", spec(container("main", "ENDS=3 CODE=2"), never)));
    s.create("pods", pod("uninitialized", spec(container("main", ""),
                                               never + R"(, "initContainers": [)" + container("init", "ENDS=3 CODE=4") + "]")));
    for (const char* name : {"good", "bad", "uninitialized"}) {
      s.wait_object("pods", name, "ended", [](const Json& o) { return phase_of(o) == "Succeeded" || phase_of(o) == "Failed"; });
    }
    s.wait_object("pods", "stays", "ready", [](const Json& o) { return holds(o, "Ready"); });
    for (const char* name : {"stays", "good", "bad", "uninitialized"}) s.note_history("pods", name, pod_state);
    std::string order = "conditions:";
    for (const Json& item : s.see("pods", "stays")["status"]["conditions"]) order += " " + core::get_string(item, {"type"});
    s.note(order);
  });
}

TEST(SimNodesConformance, WhatDoesNotStartIsTriedEverMoreSlowly) {
  compare({"pods"}, [](Scene& s) {
    s.create("pods", pod("main", spec(container("main", "ENDS=3 CODE=3"))));
    s.create("pods",
             pod("init", spec(container("main", ""), R"("initContainers": [)" + container("init", "ENDS=3 CODE=3") + "]")));
    s.create("pods", pod("image", spec(container("main", "", R"("image": "localhost:1/none:1")"))));
    s.create("pods", pod("key", spec(container("main", "", R"("env": [{"name": "K", "valueFrom": {"secretKeyRef":
      {"name": "k", "key": "key"}}}])"))));
    s.wait_object("pods", "key", "wants its key",
                  [](const Json& o) { return waiting_reason(o) == "CreateContainerConfigError"; });
    s.create("secrets", R"({"metadata": {"name": "k"}, "stringData": {"key": "v"}})");
    s.wait_object("pods", "key", "ready", [](const Json& o) { return holds(o, "Ready"); });
    s.note_history("pods", "key", pod_state);
    s.wait_object("pods", "image", "backs off", [](const Json& o) { return waiting_reason(o) == "ImagePullBackOff"; });
    s.remove("pods", "image");
    s.wait_gone("pods", "image");
    s.note_history("pods", "image", pod_state);
    for (const char* name : {"main", "init"}) {
      s.wait(std::string(name) + " backs off", [&] { return s.was("pods", name, pod_state, "CrashLoopBackOff"); });
      s.note_history("pods", name, pod_state, "CrashLoopBackOff");
    }
  });
}

TEST(SimNodesConformance, WhatAPodNeedsIsWaitedFor) {
  compare({"pods"}, [](Scene& s) {
    const std::string volumes = R"("volumes": [{"name": "map", "configMap": {"name": "m"}},
      {"name": "key", "secret": {"secretName": "k"}}, {"name": "none", "secret": {"secretName": "none", "optional": true}}])";
    const std::string mounts =
        R"("volumeMounts": [{"name": "map", "mountPath": "/etc/conf"}, {"name": "key", "mountPath": "/key"},
      {"name": "none", "mountPath": "/none"}])";
    s.create("pods", pod("volumes", spec(container("main", "WANT=here", probe() + ", " + mounts), volumes)));
    s.wait_object("pods", "volumes", "waits", [](const Json& o) { return waiting_reason(o) == "ContainerCreating"; });
    s.create("configmaps", config_map("m", "", "here"));
    s.pass(1s);
    s.note("one is missing:" + pod_state(s.see("pods", "volumes")) + " " +
           core::get_string(s.see("pods", "volumes")["status"]["containerStatuses"][0], {"state", "waiting", "message"}));
    s.create("secrets", R"({"metadata": {"name": "k"}, "stringData": {"key": "v"}})");
    s.wait_object("pods", "volumes", "ready", [](const Json& o) { return holds(o, "Ready"); });
    s.note_history("pods", "volumes", pod_state);
  });
}

/// Returns the time from the request that deletes a pod to the end of its container, once both are reported.
std::optional<core::Duration> ended_after(const Json& object) {
  const Json* statuses = core::find(object, {"status", "containerStatuses"});
  if (statuses == nullptr || statuses->empty() || !terminating(object)) return std::nullopt;
  const auto finished = core::parse_rfc3339(core::get_string(statuses->front(), {"state", "terminated", "finishedAt"}));
  const auto due = core::parse_rfc3339(core::get_string(object, {"metadata", "deletionTimestamp"}));
  if (!finished || !due) return std::nullopt;
  return *finished - *due + std::chrono::seconds(core::get_int(object, {"metadata", "deletionGracePeriodSeconds"}));
}

TEST(SimNodesConformance, PodsEndWithinTheirGrace) {
  compare({"pods"}, [](Scene& s) {
    s.create("pods", pod("hooked", spec(container("main", "HOOK=3", hook("3")))));
    s.create("pods", pod("deaf", spec(container("main", "DEAF=1", traps_set()))));
    s.create("pods", pod("polite", spec(container("main", "", traps_set()))));
    for (const char* name : {"hooked", "deaf", "polite"})
      s.wait_object("pods", name, "ready", [](const Json& o) { return holds(o, "Ready"); });
    s.remove("pods", "hooked");
    s.remove("pods", "deaf", R"({"gracePeriodSeconds": 4})");
    s.remove("pods", "polite");
    for (const char* name : {"hooked", "deaf", "polite"}) {
      const Json now = s.call("GET", s.at("pods", name)).second;
      s.note(std::string(name) + ": " + std::to_string(core::get_int(now, {"metadata", "deletionGracePeriodSeconds"})));
    }
    for (const char* name : {"polite", "deaf", "hooked"}) {
      s.wait_gone("pods", name);
      s.note_history("pods", name, pod_state);
    }
    // Uses the reported times, which are in whole seconds.
    for (const auto& [name, least] : {std::pair{"hooked", 3s}, {"deaf", 4s}}) {
      const Json last = s.wait_event(0, "pods", name, "ended", [](const Json& o) { return ended_after(o).has_value(); });
      s.note(std::string(name) + " had its time: " + std::to_string(ended_after(last).value_or(core::Duration{0}) >= least));
    }
  });
}

// ---------------------------------------------------------------------------------------------------------------------- probes
// Liveness probes and startup probes.

std::string probe_of(const std::string& name, const std::string& test, const std::string& failures) {
  const Json exec{{"command", Json::array({"bash", "-c", test})}};
  return "\"" + name + R"(": {"periodSeconds": 1, "failureThreshold": )" + failures + R"(, "exec": )" + exec.dump() + "}";
}
const std::string kStartup = probe_of("startupProbe", "[ -f /tmp/started ]", "30");
const std::string kLiveness = probe_of("livenessProbe", "[ -f /tmp/started -a ! -f /tmp/dead ]", "1");

/// Describes the containers, whether they have started, and how the last run ended.
std::string runs_of(const Json& object) {
  if (phase_of(object) != "Running") return "";
  std::string out = containers_of(object);
  for (const Json& status : object["status"]["containerStatuses"]) {
    out += core::get_bool(status, {"started"}) ? ", started" : ", not started";
    if (const Json* last = core::find(status, {"lastState", "terminated"}))
      out += ", was " + core::get_string(*last, {"reason"}) + " " + (*last)["exitCode"].dump();
  }
  return out + condition_text(object, "Ready");
}

TEST(SimNodesConformance, LivenessProbesRestartContainers) {
  compare({"pods"}, [](Scene& s) {
    const std::string liveness = probe_of("livenessProbe", "[ ! -f /tmp/dead ]", "2");
    s.create("pods", pod("dies", spec(container("main", "LIVES=3", liveness))));
    s.create("pods", pod("deaf", spec(container("main", "LIVES=3 DEAF=1", liveness), R"("terminationGracePeriodSeconds": 2)")));
    s.create("pods", pod("once", spec(container("main", "LIVES=3", liveness), R"("restartPolicy": "Never")")));
    s.create("pods", pod("lives", spec(container("main", "", liveness))));
    s.wait("restarts", [&] {
      return s.was("pods", "dies", runs_of, "x2") && s.was("pods", "deaf", runs_of, "x1") &&
             phase_of(s.see("pods", "once")) == "Succeeded";
    });
    s.note_history("pods", "dies", runs_of, "x2");
    s.note_history("pods", "deaf", runs_of, "x1");
    s.note("once:" + pod_state(s.see("pods", "once")));
    s.note("lives:" + runs_of(s.see("pods", "lives")));
  });
}

TEST(SimNodesConformance, OtherProbesWaitForTheStartupProbe) {
  compare({"pods"}, [](Scene& s) {
    s.create("pods", pod("slow", spec(container("main", "STARTS=3 READY=7", kStartup + ", " + kLiveness + ", " + probe()))));
    s.create("pods", pod("unprobed", spec(container("main", "STARTS=3", kStartup + ", " + kLiveness))));
    s.create("pods", pod("never", spec(container("main", "STARTS=1000",
                                                 probe_of("startupProbe", "[ -f /tmp/started ]", "3") + ", " + probe()))));
    for (const char* name : {"slow", "unprobed"})
      s.wait_object("pods", name, "ready", [](const Json& o) { return holds(o, "Ready"); });
    s.wait("a restart", [&] { return s.was("pods", "never", runs_of, "x1"); });
    s.note_history("pods", "slow", runs_of);
    // A report may or may not show the container as started before it is ready, so `started` is not noted here.
    s.note_history("pods", "unprobed", [](const Json& o) { return phase_of(o) == "Running" ? containers_of(o) : ""; });
    s.note_history("pods", "never", runs_of, "x1");
  });
}

// ----------------------------------------------------------------------------------------------------------------------- nodes
// Nodes that are not ready, and nodes that are lost and return.

/// Describes Ready and the taints. Returns nothing while the taints do not match Ready yet.
std::string node_state(const Json& node) {
  std::multiset<std::string> taints;
  for (const Json& taint : node["spec"].value("taints", Json::array()))
    taints.insert(core::get_string(taint, {"key"}) + ":" + core::get_string(taint, {"effect"}));
  const auto of_kubernetes = std::count_if(taints.begin(), taints.end(),
                                           [](const std::string& taint) { return taint.starts_with("node.kubernetes.io/"); });
  const Json* ready = condition(node, "Ready");
  if (ready == nullptr || of_kubernetes != (core::get_string(*ready, {"status"}) == "True" ? 0 : 2)) return "";
  std::string out = condition_text(node, "Ready");
  for (const std::string& taint : taints) out += " " + taint;
  return out;
}
/// Returns tolerations for the loss of a node: for this many seconds, or for ever.
std::string tolerating(const std::string& seconds = "") {
  std::string out;
  for (const char* what : {"not-ready", "unreachable"}) {
    out += (out.empty() ? "" : ", ") + std::string(R"({"key": "node.kubernetes.io/)") + what +
           R"(", "operator": "Exists", "effect": "NoExecute")" +
           (seconds.empty() ? "" : R"(, "tolerationSeconds": )" + seconds) + "}";
  }
  return R"("tolerations": [)" + out + "]";
}
std::string disrupted_state(const Json& object) {
  return phase_of(object) == "Running" ? pod_state(object) + condition_text(object, "DisruptionTarget") : "";
}

TEST(SimNodesConformance, ANodeThatIsNotReadyIsTainted) {
  compare({"pods"}, [](Scene& s) {
    // Creates a node without a kubelet, for these pods only.
    const std::string node = s.ns() + "-node";
    const std::string target = s.at("nodes", node);
    s.create("nodes", R"({"metadata": {"name": ")" + node +
                          R"("}, "spec": {"taints": [{"key": "conformance.test/away", "effect": "NoSchedule"}]}})");
    int beat = 0;
    const auto say = [&](const std::string& status, const std::string& reason, const std::string& wanted) {
      (void)s.must(200, "PATCH", target + "/status",
                   R"({"status": {"conditions": [{"type": "Ready", "status": ")" + status + R"(", "reason": ")" + reason +
                       R"(", "lastHeartbeatTime": "2026-01-01T00:00:0)" + std::to_string(++beat) + R"(Z"}]}})");
      s.wait(reason + " is followed by taints", [&] { return node_state(s.must(200, "GET", target)) == wanted; });
      s.note(wanted);
    };
    const std::string away = " conformance.test/away:NoSchedule";
    say("True", "KubeletReady", " Ready=True(KubeletReady)" + away);
    const auto pinned = [&](const std::string& name, const std::string& tolerations) {
      s.create("pods", pod(name, spec(container("main", ""), R"("nodeName": ")" + node + "\", " + tolerations)));
    };
    pinned("now", R"("tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoSchedule"},
      {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}])");
    pinned("soon", tolerating("2"));
    pinned("later", tolerating("40"));
    pinned("never", tolerating());
    say("False", "KubeletNotReady",
        " Ready=False(KubeletNotReady)" + away +
            " node.kubernetes.io/not-ready:NoExecute node.kubernetes.io/not-ready:NoSchedule");
    for (const char* name : {"now", "soon"}) s.wait_object("pods", name, "is evicted", terminating);
    say("True", "KubeletReady", " Ready=True(KubeletReady)" + away);
    s.pass(41s);
    for (const char* name : {"now", "soon", "later", "never"}) {
      s.note_history("pods", name, [](const Json& o) {
        return std::string(terminating(o) ? "terminating within " : "there ") +
               std::to_string(core::get_int(o, {"metadata", "deletionGracePeriodSeconds"})) +
               condition_text(o, "DisruptionTarget");
      });
    }
    for (const char* name : {"now", "soon", "later", "never"}) s.remove("pods", name, R"({"gracePeriodSeconds": 0})");
  });
}

TEST(SimNodesConformance, ALostNodeHoldsItsPodsUntilItIsBack) {
  if (std::getenv("KUBECONFIG") != nullptr && std::getenv(kNodeScript) == nullptr)
    GTEST_SKIP() << kNodeScript << " is not set: dev/node.sh, which stops nodes";
  compare({"nodes", "pods", "endpointslices", "statefulsets"}, [](Scene& s) {
    const std::string node = kLostNode;
    const auto pinned = [&](const std::string& name, const std::string& more) {
      s.create("pods", pod(name, spec(container("main", ""), R"("nodeName": ")" + node + "\"" + more), R"({"app": "y"})"));
    };
    s.create(
        "services",
        R"({"metadata": {"name": "svc"}, "spec": {"selector": {"app": "y"}, "clusterIP": "None", "ports": [{"port": 80}]}})");
    pinned("soon", ", " + tolerating("3"));
    pinned("never", ", " + tolerating());
    pinned("default", "");
    s.create("statefulsets", workload("s", "1",
                                      spec(container("main", ""), R"("nodeSelector": {"kubernetes.io/hostname": ")" + node +
                                                                      "\"}, " + tolerating("3")),
                                      R"("serviceName": "s")"));
    const auto all_ready = [&] {
      for (const char* name : {"never", "default", "s-0"}) {
        if (!holds(s.see("pods", name), "Ready") || terminating(s.see("pods", name))) return false;
      }
      return true;
    };
    s.wait("pods", [&] { return all_ready() && holds(s.see("pods", "soon"), "Ready"); });
    s.wait("endpoints", [&] { return endpoints_of(s, "svc").find(R"(soon {"ready":true)") != std::string::npos; });

    s.cluster().stop_node(node);
    const auto tainted = [&] { return node_state(s.see("nodes", node)).find("Ready=Unknown") != std::string::npos; };
    s.wait("it is missed", tainted, kNodeLoss);
    for (const char* name : {"soon", "s-0"}) s.wait_object("pods", name, "is evicted", terminating);
    for (const char* name : {"soon", "s-0", "never", "default"})
      s.wait_object("pods", name, "is not ready", [](const Json& o) { return !holds(o, "Ready"); });
    s.wait("endpoints of its pods", [&] {
      const std::string in = endpoints_of(s, "svc");
      return in.find(R"("terminating":true)") != std::string::npos && in.find(R"("ready":true)") == std::string::npos &&
             in.find(R"("serving":true)") == std::string::npos;
    });
    s.wait_object("statefulsets", "s", "counts none", [](const Json& o) {
      return counted(o, "readyReplicas", 0) && counted(o, "availableReplicas", 0) && counted(o, "updatedReplicas", 0);
    });
    s.pass(2s);
    for (const char* name : {"soon", "s-0", "never", "default"}) s.note_history("pods", name, disrupted_state);
    s.note(endpoints_of(s, "svc"));
    s.note("set:" + set_status(s.see("statefulsets", "s")));

    const std::string lost = uid_of(s.see("pods", "s-0"));
    s.remove("pods", "s-0", R"({"gracePeriodSeconds": 0})");
    s.wait_object("pods", "s-0", "another, unscheduled", [&](const Json& o) {
      return uid_of(o) != lost && condition_text(o, "PodScheduled") == " PodScheduled=False(Unschedulable)";
    });
    s.note("forced:" + pod_state(s.see("pods", "s-0")));

    s.cluster().start_node(node);
    s.wait(
        "it is back", [&] { return node_state(s.see("nodes", node)).starts_with(" Ready=True"); }, kNodeLoss);
    s.wait_gone("pods", "soon");
    s.wait("the others are ready again", all_ready, kNodeLoss);
    s.note_history("nodes", node, node_state);
    for (const char* name : {"never", "default"}) s.note(std::string(name) + ": " + disrupted_state(s.see("pods", name)));
    // Notes s-0 without its disruption. If a real cluster binds s-0 before it sees that the taint is gone, it evicts s-0 once
    // more. The StatefulSet has then replaced that pod.
    s.note("s-0: " + pod_state(s.see("pods", "s-0")));
  });
}

// --------------------------------------------------------------------------------------------------------------- mounted files
// How mounted files follow their ConfigMap.

/// Creates the pod on a node that no test loses.
void mount_old(Scene& s) {
  s.create("configmaps", config_map("m", "", "old"));
  s.create("pods", pod("reader", spec(container("main", "WANT=new",
                                                probe() + R"(, "volumeMounts": [{"name": "m", "mountPath": "/etc/conf"}])"),
                                      R"("nodeName": "node-1", "volumes": [{"name": "m", "configMap": {"name": "m"}}])")));
  s.wait_object("pods", "reader", "runs", [](const Json& o) { return containers_of(o) == " main=running"; });
}
bool reads_new(Scene& s) {
  return holds(s.see("pods", "reader"), "Ready");
}
constexpr const char* kNewData = R"({"data": {"key": "new"}})";

TEST(SimNodesConformance, AChangedPodLooksAtItsFilesAnew) {
  compare({"pods"}, [](Scene& s) {
    mount_old(s);
    s.change("configmaps", "m", kNewData);
    s.pass(1s);  // By now the kubelet knows of the change. It reads the files after a delay, which may end at any time.
    // If the kubelet did not know of the change, it needs another change of the pod.
    for (int look = 0; look < 5 && !reads_new(s); ++look) {
      s.change("pods", "reader", R"({"metadata": {"annotations": {"look": ")" + std::to_string(look) + "\"}}}");
      (void)s.cluster().run_until([&] { return reads_new(s); }, 5s);
    }
    if (!reads_new(s)) throw std::runtime_error("in vain waited for: the new file");
    s.remove("pods", "reader", R"({"gracePeriodSeconds": 0})");
    s.note("forced: " + std::to_string(s.call("GET", s.at("pods", "reader")).first));
    s.wait_gone("pods", "reader");
    s.note_history("pods", "reader", pod_state);
  });
}

/// The longest delay of a kubelet, plus the probe and the report.
constexpr core::Duration kFilesLag = KubeletOptions{}.most_files + core::Duration{10000};

/// Changes a mounted ConfigMap in the real cluster before all tests. The last test waits until the pod reads the new file, so
/// that the other tests run meanwhile.
struct FilesLag : testing::Environment {
  void SetUp() override {
    if (std::getenv("KUBECONFIG") == nullptr) return;
    cluster = std::make_unique<RealCluster>();
    scene = std::make_unique<Scene>(*cluster, 120s, new_namespace());
    scene->watch("pods");
    mount_old(*scene);
    scene->change("configmaps", "m", kNewData);
    changed = now();
  }
  void TearDown() override {
    scene.reset();
    cluster.reset();
  }

  [[nodiscard]] core::WallTime now() const { return cluster->now(); }

  std::unique_ptr<RealCluster> cluster;
  std::unique_ptr<Scene> scene;
  core::WallTime changed;
};
FilesLag* const files_lag = static_cast<FilesLag*>(testing::AddGlobalTestEnvironment(new FilesLag));

TEST(SimNodesConformance, AMountedFileFollowsWithinTheLag) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SimCluster cluster(seed);
    (void)give(
        cluster, 120s, "conformance", {"pods"},
        [](Scene& s) {
          mount_old(s);
          s.change("configmaps", "m", kNewData);
          s.wait(
              "the new file", [&] { return reads_new(s); }, kFilesLag);
        },
        "model, seed " + std::to_string(seed));
  }
  if (files_lag->scene == nullptr) return;
  const auto ready = [] { return reads_new(*files_lag->scene); };
  const auto left = files_lag->changed + kFilesLag - files_lag->now();
  ASSERT_TRUE(files_lag->cluster->run_until(ready, std::max(left, core::Duration{2000})));
  const Json* since = condition(files_lag->scene->see("pods", "reader"), "Ready");
  const auto became = core::parse_rfc3339(core::get_string(*since, {"lastTransitionTime"}));
  ASSERT_TRUE(became);
  EXPECT_LE(*became - files_lag->changed, kFilesLag);
}

}  // namespace
}  // namespace sim
