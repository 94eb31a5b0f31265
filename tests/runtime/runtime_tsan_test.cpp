// Runs the program slurm-operator as child processes, under load and with cut connections. This process simulates Kubernetes
// and Slurm behind HTTP servers, and reads health and metrics. Made for builds of both programs with -fsanitize=thread: it runs
// much code and asserts little. Tokens and certificates rotate, and slurmrestd fails at times. One operator is a dry run. Of
// the two others, the first stops under load and the second takes over. Takes less than half a minute in real time. Needs root,
// to create a network and an /etc/hosts of its own.

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "net/asio_loop.hpp"
#include "net/beast_transport.hpp"
#include "net/http_server.hpp"
#include "net/testing/identity.hpp"
#include "sim/base/http_front.hpp"
#include "sim/oracles/tap.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/oracles.hpp"
#include "sim/programs/operator/users.hpp"
#include "sim/site/slurm_site.hpp"
#include "slinky/names.hpp"

namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

/// The address of slurmrestd for the operators: its Service's name.
constexpr const char* kSlurmrestdHost = "demo-restapi.default";
constexpr std::uint16_t kSlurmrestdPort = 6820;

/// The files of the operators, on a file system that ends with this process.
const fs::path kFiles = "/mnt";

void write_file(const fs::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error(path.string() + " cannot be written");
}

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

/// Gives this thread, and its later threads and processes, a network of its own where every port is free, an /etc/hosts that
/// names slurmrestd's Service, and an empty kFiles. Throws std::system_error.
void isolate() {
  const auto must = [](int result, const char* what) {
    if (result < 0) throw std::system_error(errno, std::generic_category(), what);
    return result;
  };
  must(unshare(CLONE_NEWNS | CLONE_NEWNET), "unshare (as root?)");
  must(mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "mount /");
  must(mount("none", kFiles.c_str(), "tmpfs", 0, nullptr), "mount a tmpfs");
  write_file(kFiles / "hosts", fmt::format("127.0.0.1 localhost {}\n", kSlurmrestdHost));
  must(mount((kFiles / "hosts").c_str(), "/etc/hosts", nullptr, MS_BIND, nullptr), "mount /etc/hosts");
  ifreq loopback{};
  std::strcpy(loopback.ifr_name, "lo");
  loopback.ifr_flags = IFF_UP | IFF_RUNNING;
  const int any = must(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket");
  must(ioctl(any, SIOCSIFFLAGS, &loopback), "lo up");
  close(any);
}

/// The files that kubeconfigs name. They are replaced all at once while operators read them, as a kubelet does.
class RotatingFiles {
 public:
  RotatingFiles() {
    for (int i = 0; i < 4; ++i) identities_.push_back(net::testing::make_identity("IP:127.0.0.1", fmt::format("test {}", i)));
    rotate();
  }
  /// Replaces the tokens, the client certificate and the CA file. The CA file also has the server's next two certificates,
  /// because an operator that is reading the files may see some of this round and some of the next.
  void rotate() {
    ++round_;
    const fs::path dir = kFiles / fmt::format("round-{}", round_), link = kFiles / "next";
    fs::create_directory(dir);
    for (const char* name : {"first", "second", "dry"}) write_file(dir / name, token(name));
    write_file(dir / "ca.crt", identity(0).cert + identity(1).cert + identity(2).cert);
    write_file(dir / "tls.crt", identity(0).cert);
    write_file(dir / "tls.key", identity(0).key);
    fs::create_symlink(dir, link);
    fs::rename(link, kFiles / "current");
  }
  /// Returns the path of a kubeconfig for the operator of this name.
  static std::string kubeconfig(const std::string& name, std::uint16_t port) {
    const fs::path path = kFiles / (name + ".kubeconfig");
    write_file(
        path,
        fmt::format(
            "clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:{}', certificate-authority: current/ca.crt}}}}]\n"
            "users: [{{name: u, user: {{tokenFile: current/{}, client-certificate: current/tls.crt, "
            "client-key: current/tls.key}}}}]\n"
            "contexts: [{{name: x, context: {{cluster: c, user: u, namespace: {}}}}}]\n"
            "current-context: x\n",
            port, name, sim::kLeaseKey.ns));
    return path;
  }
  /// Returns the current token of the operator of this name.
  [[nodiscard]] std::string token(const std::string& name) const { return fmt::format("{}.{}", name, round_); }
  /// The server's certificate, and the clients that it accepts: those of this round and of the two before.
  [[nodiscard]] net::Tls server() const {
    return {identity(0).cert + identity(3).cert + identity(2).cert, identity(0).cert, identity(0).key};
  }

 private:
  [[nodiscard]] const net::testing::Identity& identity(std::size_t ahead) const {
    return identities_[(round_ + ahead) % identities_.size()];
  }
  std::size_t round_ = 0;
  std::vector<net::testing::Identity> identities_;
};

/// Accepts clients that send a current token. Adds the operator's name in the Lease to each request, for the oracles.
class Gate final : public sim::Server {
 public:
  Gate(sim::Server& server, const RotatingFiles& files) : server_(server), files_(files) {}
  net::HttpResponse serve(const net::HttpRequest& request) override {
    const auto known = admit(request);
    return known ? server_.serve(*known) : kUnauthorized;
  }
  [[nodiscard]] bool is_stream(const net::HttpRequest& request) const override { return server_.is_stream(request); }
  std::expected<StreamId, net::HttpResponse> open(const net::HttpRequest& request, sim::StreamSink sink) override {
    const auto known = admit(request);
    if (!known) return std::unexpected(kUnauthorized);
    return server_.open(*known, std::move(sink));
  }
  void close(StreamId id) override { server_.close(id); }
  [[nodiscard]] net::HttpResponse fault_reply(int status) const override { return server_.fault_reply(status); }

  struct Client {
    std::string identity;          ///< The name in the Lease. The operator's name until it tries to take the Lease.
    std::set<std::string> tokens;  ///< The tokens with which it was accepted.
  };
  /// Returns what is known of the operator of this name.
  Client& client(const std::string& name) { return clients_.try_emplace(name, Client{name, {}}).first->second; }

 private:
  std::optional<net::HttpRequest> admit(const net::HttpRequest& request) {
    const auto sent = request.headers.find("authorization");
    if (sent == request.headers.end() || !sent->second.starts_with("Bearer ")) return {};
    const std::string token = sent->second.substr(7), name = token.substr(0, token.find('.'));
    if (token != files_.token(name)) return {};
    Client& sender = client(name);
    sender.tokens.insert(token);
    if (request.method != "GET" && request.target.find("/leases") != std::string::npos) {
      const auto lease = core::parse_json(request.body);
      const std::string holder = lease ? core::get_string(*lease, {"spec", "holderIdentity"}) : "";
      if (!holder.empty()) sender.identity = holder;
    }
    net::HttpRequest known = request;
    known.headers["user-agent"] = sim::operator_agent(sender.identity);
    return known;
  }
  const net::HttpResponse kUnauthorized{401, {}, "{}"};
  sim::Server& server_;
  const RotatingFiles& files_;
  std::map<std::string, Client> clients_;
};

enum class SlurmDay { kGood, kAway, kSlow, kEmpty };

/// Kubernetes and Slurm on their own thread.
class SimulatedCluster {
 public:
  explicit SimulatedCluster(RotatingFiles& files) : files_(files) {
    kube_.add_namespace("default");
    kube_.add_namespace("slurm-operator");
    site_.attach(kube_.api());
    for (int i = 0; i < 3; ++i) kube_.nodes().add_node("kube-" + std::to_string(i));
    kube_.nodes().set_process_factory(
        [this](sim::PodView pod, const std::string& container) { return site_.make_process(std::move(pod), container); });
    EXPECT_TRUE(front_.start());
    EXPECT_TRUE(slurmrestd_.start());
    kube_port_ = front_.port();
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~SimulatedCluster() {
    loop_.stop();
    thread_.join();
  }

  [[nodiscard]] std::uint16_t kube_port() const { return kube_port_; }

  /// Runs a function on the cluster's thread, and waits for it.
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
    (void)kube_.api().patch(slinky::resources::kNodeSet, {"default", nodeset}, sim::PatchKind::kMerge,
                            {{"spec", {{"replicas", replicas}}}});
  }
  [[nodiscard]] std::vector<std::string> workers() const {
    std::vector<std::string> out;
    for (const auto& [key, stored] : const_cast<sim::SimKube&>(kube_).api().store().all("pods")) {
      if (core::get_string(stored->body, {"metadata", "labels", "app.kubernetes.io/name"}) == "slurmd") out.push_back(key.name);
    }
    return out;
  }
  /// Replaces the files, but only if each of these operators has used the current ones: an operator that misses a round is no
  /// longer accepted.
  void rotate(const std::set<std::string>& operators) {
    for (const std::string& name : operators) {
      if (!client(name).tokens.contains(files_.token(name))) return;
    }
    files_.rotate();
    EXPECT_TRUE(front_.set_tls(files_.server()));
  }
  void set_slurm_day(SlurmDay day) { slurm_day_ = day; }
  /// Returns the number of requests that slurmrestd cut, delayed or answered without a body on a day that is not kGood.
  [[nodiscard]] int slurm_faults() const { return slurm_faults_; }
  sim::SimKube& kube() { return kube_; }
  sim::Faults& faults() { return faults_; }
  sim::Oracles& oracles() { return oracles_; }
  Gate::Client& client(const std::string& name) { return gate_.client(name); }
  [[nodiscard]] std::string lease_holder() { return sim::lease_holder(kube_.api()); }
  bool leads(const std::string& name) { return lease_holder() == client(name).identity; }
  sim::SimSlurm* slurm() {
    const auto* cluster = site_.find({"default", "demo"});
    return cluster == nullptr || !cluster->slurm->up() ? nullptr : cluster->slurm.get();
  }

 private:
  void serve_slurm(const net::HttpRequest& request, net::Responder responder) {
    sim::SlurmRest* rest = site_.listening(kSlurmrestdHost, kSlurmrestdPort);
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
  sim::Oracles oracles_{loop_, kube_.api()};
  sim::OperatorOracles judges_{oracles_, loop_, kube_.api(), site_};
  sim::Tap tap_{kube_, [this](const net::HttpRequest& request) { judges_.request(request, false, sim::identity_of(request)); }};
  sim::Faults faults_{random_.fork()};
  Gate gate_{tap_, files_};
  sim::HttpFront front_{loop_, gate_, faults_, {.use_tls = true, .tls = files_.server()}};
  net::HttpServer slurmrestd_{loop_, {.port = kSlurmrestdPort}, [this](net::HttpRequest request, net::Responder responder) {
                                serve_slurm(request, responder);
                              }};
  std::uint16_t kube_port_ = 0;
  std::thread thread_;
};

/// One process of the program, from its start to its orderly end.
class OperatorProcess {
 public:
  OperatorProcess(const std::string& name, std::string address, std::uint16_t kube_port,
                  const std::vector<std::string>& flags = {})
      : address_(std::move(address)), log_(kFiles / (name + ".log")) {
    std::vector<std::string> args{SLURM_OPERATOR, "--kubeconfig", RotatingFiles::kubeconfig(name, kube_port)};
    args.insert(args.end(), {"--health-addr", address_ + ":8081", "--metrics-addr", address_ + ":8080"});
    args.insert(args.end(), flags.begin(), flags.end());
    std::vector<char*> argv;
    for (std::string& arg : args) argv.push_back(arg.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ != 0) return;
    // Only calls that are safe after a fork of a process with threads. The child must not keep the simulators' sockets, or they
    // could not be cut.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int log = open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (log >= 0 && dup2(log, STDERR_FILENO) >= 0 && close_range(3, ~0U, 0) == 0) execv(argv[0], argv.data());
    _exit(127);
  }
  ~OperatorProcess() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (testing::Test::HasFailure()) std::cerr << "--- " << log_ << "\n" << log();
  }
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] std::string log() const { return read_file(log_); }
  /// Sends SIGTERM, but only once: a second signal would end the process at once.
  void terminate() {
    if (!std::exchange(asked_, true)) kill(pid_, SIGTERM);
  }
  /// Ends the process with SIGTERM, and checks that it stopped in order and that ThreadSanitizer found nothing.
  void finish() {
    terminate();
    int status = 0;
    const auto patience = std::chrono::steady_clock::now() + 120s;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > patience) {
        ADD_FAILURE() << log_ << ": did not end";
        return;
      }
      std::this_thread::sleep_for(20ms);
    }
    pid_ = 0;
    const std::string said = log();
    const bool stopped = said.ends_with("\"msg\":\"stopped\"}\n");
    const bool clean = said.find("ThreadSanitizer") == std::string::npos;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0 && stopped && clean) << log_ << ": wait status " << status;
  }

 private:
  std::string address_;
  fs::path log_;
  pid_t pid_ = 0;
  bool asked_ = false;
};

/// Reads health and metrics continuously, like a kubelet and a Prometheus.
class Scraper {
 public:
  explicit Scraper(const std::string& address)
      : health_(loop_, {"http", address, 8081, {}}), metrics_(loop_, {"http", address, 8080, {}}) {
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
    (request.target == "/metrics" ? metrics_ : health_)
        .send(std::move(request), [this, which](core::Result<net::HttpResponse> reply) {
          if (reply && reply->status == 200) ++answers_;
          loop_.after(20ms, [this, which] { ask(which + 1); });
        });
  }
  net::AsioLoop loop_{1};
  net::BeastTransport health_, metrics_;
  std::atomic<int> answers_{0};
  std::thread thread_;
};

/// Checks the condition repeatedly until it holds. Returns false if that takes longer than `patience`.
template <class Condition>
bool eventually(std::chrono::seconds patience, Condition condition) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(100ms);
  }
  return true;
}

TEST(Runtime, KeepsThreeNodeSetsUnderLoadAndFaults) {
  isolate();
  RotatingFiles files;
  SimulatedCluster cluster(files);
  cluster.on_cluster([](SimulatedCluster& c) {
    // If a worker ends abruptly, Slurm notices within the limits below instead of within five minutes.
    c.apply(slinky::resources::kController, sim::controller_json("SlurmdTimeout=15"));
    c.apply(slinky::resources::kRestApi, sim::restapi_json());
    for (const char* name : {"a", "b", "c"}) c.apply(slinky::resources::kNodeSet, sim::nodeset_json(name, 4));
    c.faults().rates = sim::FaultRates::all(0.01);
    c.faults().rates.gone = 0;
    c.faults().rates.withhold_bookmark = 0;
  });
  OperatorProcess first("first", "127.0.0.2", cluster.kube_port());
  ASSERT_TRUE(eventually(120s, [&] { return cluster.on_cluster([](SimulatedCluster& c) { return c.leads("first"); }); }));
  OperatorProcess second("second", "127.0.0.3", cluster.kube_port());
  OperatorProcess dry("dry", "127.0.0.4", cluster.kube_port(), {"--dry-run", "--log-level=debug"});
  Scraper of_first(first.address()), of_second(second.address()), of_dry(dry.address());

  sim::SeededRandom random(3);
  std::set<std::string> running{"first", "second", "dry"};
  bool planned = false, slurm_failed = false, rotated = false;
  const auto began = std::chrono::steady_clock::now();
  const auto goes_on = [&] {
    const auto since = std::chrono::steady_clock::now() - began;
    return since < 12s || (since < 240s && !(planned && slurm_failed && rotated));
  };
  for (int turn = 1; goes_on(); ++turn) {
    cluster.on_cluster([&](SimulatedCluster& c) {
      if (turn % 15 == 0) c.rotate(running);
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
      // No faults while the first operator stops and still holds the Lease. Otherwise it might not be able to release the
      // Lease, and the second operator would wait too long for its expiry.
      c.faults().enabled = running.contains("first") || !c.leads("first");
      slurm_failed = c.slurm_faults() > 0;
      rotated = c.client("second").tokens.size() >= 3;
    });
    if (!planned) planned = dry.log().find("plan (not carried out)") != std::string::npos;
    if (planned && of_dry.answers() > 10 && running.erase("dry") > 0) dry.terminate();
    if (turn >= 30 && slurm_failed && of_first.answers() > 10 && running.erase("first") > 0) first.terminate();
    // Waits for answers of the second operator, because on a slow machine the operators cannot follow a faster loop.
    const int heard = of_second.answers();
    std::this_thread::sleep_for(150ms);
    (void)eventually(2s, [&] { return of_second.answers() >= heard + 3; });
  }
  EXPECT_TRUE(planned && slurm_failed && rotated);
  dry.finish();
  cluster.on_cluster([](SimulatedCluster& c) {
    c.faults().rates = {};
    c.set_slurm_day(SlurmDay::kGood);
    for (const char* name : {"a", "b", "c"}) c.scale(name, 3);
  });
  first.finish();

  std::vector<std::string> unmet;
  EXPECT_TRUE(eventually(240s, [&] {
    unmet = cluster.on_cluster([](SimulatedCluster& c) {
      std::vector<std::string> now = c.oracles().unmet();
      if (!c.leads("second")) now.push_back("the Lease is not the second operator's but \"" + c.lease_holder() + "\"'s");
      return now;
    });
    return unmet.empty();
  })) << unmet.front();
  second.finish();
  for (const Scraper* scraper : {&of_first, &of_second, &of_dry}) EXPECT_GT(scraper->answers(), 10);
  cluster.on_cluster([&](SimulatedCluster& c) {
    // An operator that does not know the outcome of a write does not release the Lease, which then expires by itself.
    const bool kept = second.log().find("the lease is not released") != std::string::npos;
    EXPECT_EQ(c.lease_holder().empty(), !kept) << c.lease_holder();
    for (const OperatorProcess* each : {&first, &second, &dry}) {
      std::istringstream lines(each->log());
      for (std::string line; std::getline(lines, line);) c.oracles().log_line(line);
    }
    for (const auto& violation : c.oracles().violations()) ADD_FAILURE() << violation;
  });
}

}  // namespace
