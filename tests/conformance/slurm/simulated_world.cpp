#include "sim/base/loop.hpp"
#include "sim/base/random.hpp"
#include "sim/slurm/rest.hpp"
#include "sim/slurm/sim_slurm.hpp"
#include "world.hpp"

namespace conformance {
namespace {

using namespace std::chrono_literals;

/// The configuration of dev/slurm-local.sh, as far as the model supports it.
constexpr const char* kConf =
    "ClusterName=local\nSlurmctldHost=slurmctld(127.0.0.1)\nSlurmUser=slurm\nMaxNodeCount=1024\nReturnToService=2\n"
    "AuthType=auth/slurm\nAuthAltTypes=auth/jwt\nAuthAltParameters=jwt_key=/etc/slurm/jwt.key\n"
    "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";

class SimulatedWorld final : public World {
 public:
  explicit SimulatedWorld(std::string release)
      : release_(std::move(release)),
        slurm_(loop_, loop_.random(), [this] { return kConf + added_; },
               {.release = release_ == "24.11" ? "24.11.5" : "26.05.5", .listens = "127.0.0.1:6817"}),
        rest_(loop_, slurm_, [] { return std::string("conformance key"); }) {
    slurm_.key_file = [this](const std::string& host) {
      const auto file = keys_.find(host);
      return file == keys_.end() ? sim::SlurmKeys{} : file->second;
    };
    if (const auto started = slurm_.start(); !started) throw std::runtime_error(started.error().message);
    for (const char* name : {"n1", "n2"}) slurm_.start_slurmd(name, kNodeConf);
    loop_.run_for(3s);
  }

  std::string release() const override { return release_; }
  core::Loop& loop() override { return loop_; }
  core::Random& random() override { return loop_.random(); }
  std::unique_ptr<net::HttpTransport> transport() override {
    return sim::slurm_transport(loop_, loop_, loop_.random(), [this] { return &rest_; });
  }
  std::string key() const override { return "conformance key"; }
  bool until(const std::function<bool()>& test, core::Duration most) override { return loop_.run_until(test, most); }

  std::int64_t submit(const std::string& nodes, core::Duration duration, const std::string& partition) override {
    sim::JobRequest job;
    job.partition = partition;
    job.duration = duration;
    job.limit = 10min;
    std::string name;
    for (const char c : nodes + ",") {
      if (c != ',') {
        name += c;
      } else {
        job.required_nodes.push_back(name);
        name.clear();
      }
    }
    job.nodes = static_cast<int>(job.required_nodes.size());
    return slurm_.submit(std::move(job));
  }
  void suspend(std::int64_t job) override { slurm_.suspend(job); }
  void resume(std::int64_t job) override { slurm_.resume(job); }
  void cancel(std::int64_t job) override { slurm_.cancel(job); }
  void scontrol(const std::string& node, const std::string& state, const std::string& reason) override {
    sim::SimNodeUpdate update;
    update.state = state;
    if (!reason.empty()) update.reason = reason;
    slurm_.update_node(node, update, "root");
  }
  void configure(const std::string& lines) override { added_ = lines; }
  void start_node(const std::string& name, const std::string& conf, const std::string& servers) override {
    slurm_.start_slurmd(name, conf, "10.0.0.1", "", servers);
  }
  void stop_node(const std::string& name) override { slurm_.stop_slurmd(name); }
  bool slurmd_runs(const std::string& name) override { return slurm_.slurmd_runs(name); }
  void reload_node(const std::string& name) override { slurm_.reload_slurmd(name); }
  void reserve(const std::string& reservation, const std::string& node) override { slurm_.reserve(reservation, {node}); }
  void end_reservation(const std::string& reservation) override { slurm_.end_reservation(reservation); }
  bool create_node(const std::string& name) override { return slurm_.create_node(name) == sim::SlurmErrno::kSuccess; }
  std::string slow_epilog() override { return ""; }  // The model's epilog is always slow.
  void lose_state() override { slurm_.lose_state(); }
  std::string slurmctld_host() override { return "127.0.0.1"; }
  std::uint16_t slurmctld_port() override { return 6817; }
  void set_keys(const std::string& host, const std::vector<std::string>& kids, const std::string& use_default) override {
    keys_.erase(host);
    if (!kids.empty()) keys_[host] = {kids, use_default};
  }
  int http_status(const std::string& host, const std::string& path) override { return slurm_.http_status(host, path); }
  void start_slurmctld() override { (void)slurm_.start(); }
  void stop_slurmctld() override { slurm_.stop(); }

 private:
  std::string release_;
  sim::SimLoop loop_{1};
  std::string added_;
  std::map<std::string, sim::SlurmKeys> keys_;
  sim::SimSlurm slurm_;
  sim::SlurmRest rest_;
};

}  // namespace

std::unique_ptr<World> simulated_world(const std::string& release) {
  return std::make_unique<SimulatedWorld>(release);
}

}  // namespace conformance
