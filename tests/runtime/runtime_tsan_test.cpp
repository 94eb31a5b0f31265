// The threaded runtime as the binary runs it (production loop, worker threads, sockets) against a simulated Kubernetes and
// Slurm behind HTTP servers on another thread, under load and cut connections; health and metrics are read meanwhile. Made for
// -fsanitize=thread: what it asserts is little, what it runs is all. Token and certificates rotate, slurmrestd has its bad
// days, and the log is the real one. Takes less than half a minute; the clocks are real.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <thread>

#include "core/log.hpp"
#include "core/random.hpp"
#include "kube/credentials.hpp"
#include "kube/health.hpp"
#include "kube/manager.hpp"
#include "kube/metrics.hpp"
#include "net/asio_loop.hpp"
#include "net/beast_transport.hpp"
#include "net/http_server.hpp"
#include "net/testing/identity.hpp"
#include "operator/common/names.hpp"
#include "operator/operator.hpp"
#include "sim/http_front.hpp"
#include "sim/oracles.hpp"
#include "sim/world.hpp"

namespace {

using namespace std::chrono_literals;

/// The files of a kubeconfig, replaced by one thread while others read them.
class RotatingFiles {
 public:
  RotatingFiles() {
    for (int i = 0; i < 4; ++i) identities_.push_back(net::testing::make_identity("IP:127.0.0.1"));
    rotate();
  }
  /// Another token, client certificate and CA file. The CA file names the server's next certificate as well.
  void rotate() {
    const std::lock_guard lock(mutex_);
    ++round_;
    files_["/k/token"] = "token-" + std::to_string(round_);
    files_["/k/ca.crt"] = identity(0).cert + identity(1).cert;
    files_["/k/tls.crt"] = identity(0).cert;
    files_["/k/tls.key"] = identity(0).key;
  }
  void set_port(std::uint16_t port) {
    const std::lock_guard lock(mutex_);
    files_["/k/config"] = fmt::format(
        "clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', certificate-authority: ca.crt}}}}]\n"
        "users: [{{name: u, user: {{tokenFile: token, client-certificate: tls.crt, client-key: tls.key}}}}]\n"
        "contexts: [{{name: x, context: {{cluster: c, user: u}}}}]\n"
        "current-context: x\n",
        port);
  }
  core::Result<std::string> read(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto file = files_.find(path);
    if (file == files_.end()) return core::fail(core::ErrorCode::kNotFound, path);
    return file->second;
  }
  /// What the server is, and whom it lets in: clients of this round, and of the one before.
  [[nodiscard]] net::Tls server() const {
    const std::lock_guard lock(mutex_);
    return {identity(0).cert + identity(3).cert, identity(0).cert, identity(0).key};
  }

 private:
  [[nodiscard]] const net::testing::Identity& identity(std::size_t ahead) const {
    return identities_[(round_ + ahead) % identities_.size()];
  }
  mutable std::mutex mutex_;
  std::size_t round_ = 0;
  std::vector<net::testing::Identity> identities_;
  std::map<std::string, std::string> files_;
};

/// Lets in who sends the token of the day.
class Gate final : public sim::Server {
 public:
  explicit Gate(sim::Server& server) : server_(server) {}
  void set_token(std::string token) { wanted_ = "Bearer " + std::move(token); }
  net::HttpResponse serve(const net::HttpRequest& request) override {
    return knows(request) ? server_.serve(request) : kUnauthorized;
  }
  [[nodiscard]] bool is_stream(const net::HttpRequest& request) const override { return server_.is_stream(request); }
  std::expected<StreamId, net::HttpResponse> open(const net::HttpRequest& request, sim::StreamSink sink) override {
    if (!knows(request)) return std::unexpected(kUnauthorized);
    return server_.open(request, std::move(sink));
  }
  void close(StreamId id) override { server_.close(id); }
  [[nodiscard]] net::HttpResponse fault_reply(int status) const override { return server_.fault_reply(status); }

 private:
  [[nodiscard]] bool knows(const net::HttpRequest& request) const {
    const auto sent = request.headers.find("authorization");
    return sent != request.headers.end() && sent->second == wanted_;
  }
  const net::HttpResponse kUnauthorized{401, {}, "{}"};
  sim::Server& server_;
  std::string wanted_;
};

enum class SlurmDay { kGood, kAway, kSlow, kEmpty };

/// Kubernetes and Slurm on a thread of their own.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(RotatingFiles& files) : files_(files) {
    gate_.set_token(*files_.read("/k/token"));
    kube_.add_namespace("default");
    kube_.add_namespace("slurm-operator");
    site_.attach(kube_.api());
    for (int i = 0; i < 3; ++i) kube_.nodes().add_node("kube-" + std::to_string(i));
    kube_.nodes().set_process_factory(
        [this](sim::PodView pod, const std::string& container) { return site_.make_process(std::move(pod), container); });
    EXPECT_TRUE(front_.start());
    EXPECT_TRUE(slurmrestd_.start());
    kube_port_ = front_.port();
    slurm_port_ = slurmrestd_.port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~SimulatedCluster() {
    loop_.stop();
    thread_.join();
  }

  [[nodiscard]] std::uint16_t kube_port() const { return kube_port_; }
  [[nodiscard]] std::uint16_t slurm_port() const { return slurm_port_; }

  /// Runs something on the cluster's thread, and waits for it.
  template <class Call>
  auto on_cluster(Call call) {
    using Result = decltype(call(*this));
    auto promise = std::make_shared<std::promise<Result>>();
    loop_.post([this, promise, call = std::move(call)]() mutable {
      if constexpr (std::is_void_v<Result>) {
        call(*this);
        promise->set_value();
      } else {
        promise->set_value(call(*this));
      }
    });
    return promise->get_future().get();
  }

  void apply(const kube::Resource& resource, const core::Json& object) {
    const std::string name = core::get_string(object, {"metadata", "name"});
    const auto result =
        kube_.api().patch(resource, {"default", name}, sim::PatchKind::kApply, object, {"user", "kubectl"}, "", true);
    EXPECT_TRUE(result) << result.error().dump();
  }
  void scale(const std::string& nodeset, int replicas) {
    (void)kube_.api().patch(op::resources::kNodeSet, {"default", nodeset}, sim::PatchKind::kMerge,
                            {{"spec", {{"replicas", replicas}}}});
  }
  [[nodiscard]] std::vector<std::string> workers() const {
    std::vector<std::string> out;
    for (const auto& [key, stored] : const_cast<sim::SimKube&>(kube_).api().store().all("pods")) {
      if (core::get_string(stored->body, {"metadata", "labels", "app.kubernetes.io/name"}) == "slurmd") out.push_back(key.name);
    }
    return out;
  }
  void rotate() {
    files_.rotate();
    gate_.set_token(*files_.read("/k/token"));
    EXPECT_TRUE(front_.set_tls(files_.server()));
  }
  void set_slurm_day(SlurmDay day) { slurm_day_ = day; }
  /// Requests that slurmrestd did not answer as it should.
  [[nodiscard]] int slurm_faults() const { return slurm_faults_; }
  sim::SimKube& kube() { return kube_; }
  sim::Faults& faults() { return faults_; }
  sim::Oracles& oracles() { return oracles_; }
  sim::SimSlurm* slurm() {
    const auto* cluster = site_.find({"default", "demo"});
    return cluster == nullptr || !cluster->slurm->up() ? nullptr : cluster->slurm.get();
  }

 private:
  void serve_slurm(const net::HttpRequest& request, net::Responder responder) {
    sim::SlurmRest* rest = site_.listening("demo-restapi.default", 6820);
    if (rest == nullptr || slurm_random_.chance(cut_slurm_)) return responder.cut();
    const SlurmDay day = slurm_day_;
    if (day != SlurmDay::kGood) ++slurm_faults_;
    if (day == SlurmDay::kAway) return responder.cut();
    if (day == SlurmDay::kEmpty) return responder.respond({200, {}, ""});
    rest->serve(request, [this, day, responder](net::HttpResponse reply) mutable {
      if (day == SlurmDay::kGood) return responder.respond(std::move(reply));
      loop_.after(700ms, [responder, reply = std::move(reply)]() mutable { responder.respond(std::move(reply)); });
    });
  }

  RotatingFiles& files_;
  SlurmDay slurm_day_ = SlurmDay::kGood;
  int slurm_faults_ = 0;
  net::AsioLoop loop_{1};
  sim::SeededRandom random_{7};
  sim::SeededRandom slurm_random_{8};
  double cut_slurm_ = 0.02;
  sim::SlurmSite site_{loop_, random_, {.epilog = 100ms, .registration = 50ms, .answer = 100ms, .config_retry = 500ms}};
  sim::SimKube kube_{loop_,
                     random_.fork(),
                     {{},
                      {5ms, 50ms},
                      {.least_schedule = 1ms,
                       .most_schedule = 20ms,
                       .least_start = 5ms,
                       .most_start = 60ms,
                       .least_pull = 5ms,
                       .most_pull = 60ms}}};
  sim::Oracles oracles_{loop_, kube_.api(), site_};
  sim::Tap tap_{kube_, oracles_};
  sim::Faults faults_{random_.fork()};
  Gate gate_{tap_};
  sim::HttpFront front_{loop_, gate_, faults_, {.use_tls = true, .tls = files_.server()}};
  net::HttpServer slurmrestd_{
      loop_, {}, [this](net::HttpRequest request, net::Responder responder) { serve_slurm(request, responder); }};
  std::uint16_t kube_port_ = 0, slurm_port_ = 0;
  std::thread thread_;
};

/// The operator as src/cmd wires it, on a thread of its own.
class OperatorThread {
 public:
  OperatorThread(const SimulatedCluster& cluster, RotatingFiles& files) : files_(files), slurm_port_(cluster.slurm_port()) {
    files_.set_port(cluster.kube_port());
    std::promise<std::uint16_t> listening;
    thread_ = std::thread([this, &listening] { run(listening); });
    health_port_ = listening.get_future().get();
  }
  ~OperatorThread() {
    loop_.post([this] { manager_->stop([this] { loop_.stop(); }); });
    thread_.join();
  }
  [[nodiscard]] std::uint16_t health_port() const { return health_port_; }
  /// How often other certificates were taken into use.
  [[nodiscard]] int rotations() const { return rotations_; }

 private:
  void run(std::promise<std::uint16_t>& listening) {
    core::SpdLogger log(core::Level::kInfo, loop_.clock());
    core::SystemRandom random;
    kube::Metrics metrics;
    kube::System system;
    system.env = [](const std::string&) { return std::nullopt; };
    system.read_file = [this](const std::string& path) { return files_.read(path); };
    const std::unique_ptr<kube::Credentials> credentials = kube::kubeconfig_credentials(loop_, system, "/k/config").value();
    net::BeastTransport api(loop_, credentials->endpoint());
    credentials->on_change([&](const net::Endpoint& endpoint) {
      EXPECT_TRUE(api.set_endpoint(endpoint));
      ++rotations_;
    });
    kube::ClientOptions client_options;
    client_options.user_agent = std::string(sim::kOperatorAgent) + "/tsan";
    client_options.observe = [&](const kube::RequestRecord& record) { metrics.request(record, "sim"); };
    kube::Client client(loop_, random, api, *credentials, client_options);
    kube::ManagerOptions options;
    options.metrics = &metrics;
    options.election = kube::LeaseOptions{{"slurm-operator", "slurm-operator"}, "tsan"};
    kube::Manager manager(loop_, random, log, client, options);
    op::Operator slurm_operator(
        loop_, random, log, manager,
        [this](const slurm::Endpoint&) -> std::unique_ptr<net::HttpTransport> {
          return std::make_unique<net::BeastTransport>(loop_, net::Endpoint{"http", "127.0.0.1", slurm_port_, {}});
        },
        {});
    net::HttpServer health(loop_, {},
                           kube::health_handler({.ready = [&] { return manager.synced(); },
                                                 .healthy = {},
                                                 .metrics =
                                                     [&] {
                                                       manager.collect();
                                                       return metrics.text();
                                                     }}));
    EXPECT_TRUE(health.start());
    manager_ = &manager;
    manager.start();
    listening.set_value(health.port());
    loop_.run();
  }

  RotatingFiles& files_;
  std::uint16_t slurm_port_, health_port_ = 0;
  std::atomic<int> rotations_{0};
  net::AsioLoop loop_{2};
  kube::Manager* manager_ = nullptr;
  std::thread thread_;
};

/// Reads health and metrics over and over, as a kubelet and a Prometheus do.
class Scraper {
 public:
  explicit Scraper(std::uint16_t port) : transport_(loop_, {"http", "127.0.0.1", port, {}}) {
    thread_ = std::thread([this] {
      ask(0);
      loop_.run();
    });
  }
  ~Scraper() {
    loop_.stop();
    thread_.join();
  }
  [[nodiscard]] int answers() const { return answers_; }

 private:
  void ask(std::size_t which) {
    static const std::vector<std::string> kPaths{"/metrics", "/healthz", "/readyz"};
    net::HttpRequest request;
    request.target = kPaths[which % kPaths.size()];
    transport_.send(std::move(request), [this, which](core::Result<net::HttpResponse> reply) {
      if (reply && reply->status == 200) ++answers_;
      loop_.after(20ms, [this, which] { ask(which + 1); });
    });
  }
  net::AsioLoop loop_{1};
  net::BeastTransport transport_;
  std::atomic<int> answers_{0};
  std::thread thread_;
};

TEST(Runtime, KeepsThreeNodeSetsUnderLoadAndFaults) {
  RotatingFiles files;
  SimulatedCluster cluster(files);
  cluster.on_cluster([](SimulatedCluster& c) {
    // A worker that ends between its last words and its last breath is missed within the patience below, not within five
    // minutes.
    c.apply(op::resources::kController, sim::controller_json("SlurmdTimeout=15"));
    c.apply(op::resources::kRestApi, sim::restapi_json());
    for (const char* name : {"a", "b", "c"}) c.apply(op::resources::kNodeSet, sim::nodeset_json(name, 4));
    c.faults().rates = sim::FaultRates::all(0.01);
    c.faults().rates.gone = 0;
    c.faults().rates.withhold_bookmark = 0;
  });
  OperatorThread subject(cluster, files);
  Scraper scraper(subject.health_port());

  sim::SeededRandom random(3);
  // On a slow machine Slurm's first bad day may find nobody who asks for it yet.
  const auto begun = std::chrono::steady_clock::now();
  const auto runs_for = [&](core::Duration time) { return std::chrono::steady_clock::now() - begun < time; };
  bool met_faults = false;
  for (int turn = 1; runs_for(14s) || (!met_faults && runs_for(60s)); ++turn) {
    met_faults = cluster.on_cluster([&random, turn](SimulatedCluster& c) {
      if (turn % 15 == 0) c.rotate();
      if (turn % 5 == 0) c.set_slurm_day(random.chance(0.5) ? SlurmDay::kGood : static_cast<SlurmDay>(random.between(1, 3)));
      const std::string nodeset(1, static_cast<char>('a' + random.below(3)));
      c.scale(nodeset, static_cast<int>(random.between(1, 8)));
      const std::vector<std::string> workers = c.workers();
      if (!workers.empty() && random.chance(0.5)) {
        (void)c.kube().api().remove(kube::resources::kPod, {"default", workers[random.below(workers.size())]}, {},
                                    {"user", "kubectl"});
      }
      if (sim::SimSlurm* slurm = c.slurm()) (void)slurm->submit({.user = "u", .partition = nodeset, .duration = 300ms});
      if (random.chance(0.2)) c.kube().api().end_watches();
      if (random.chance(0.2)) c.kube().api().compact();
      return c.slurm_faults() > 0;
    });
    std::this_thread::sleep_for(150ms);
  }
  cluster.on_cluster([](SimulatedCluster& c) {
    c.faults().rates = {};
    c.set_slurm_day(SlurmDay::kGood);
    EXPECT_GT(c.slurm_faults(), 0);
    for (const char* name : {"a", "b", "c"}) c.scale(name, 3);
    for (const auto& violation : c.oracles().violations()) ADD_FAILURE() << violation;
  });

  std::vector<std::string> unmet;
  const auto patience = std::chrono::steady_clock::now() + 60s;
  do {
    std::this_thread::sleep_for(200ms);
    unmet = cluster.on_cluster([](SimulatedCluster& c) { return c.oracles().unmet(); });
  } while (!unmet.empty() && std::chrono::steady_clock::now() < patience);
  EXPECT_TRUE(unmet.empty()) << unmet.front();
  EXPECT_GT(scraper.answers(), 20);
  EXPECT_GE(subject.rotations(), 2);
}

}  // namespace
