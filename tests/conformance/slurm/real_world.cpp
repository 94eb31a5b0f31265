#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "core/base64.hpp"
#include "core/json.hpp"
#include "core/random.hpp"
#include "net/asio_loop.hpp"
#include "net/beast_transport.hpp"
#include "world.hpp"

namespace conformance {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream out;
  out << file.rdbuf();
  return out.str();
}

std::string shell_word(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

class RealWorld final : public World {
 public:
  RealWorld(const std::string& url, std::string release, std::string dir) : release_(std::move(release)), dir_(std::move(dir)) {
    const std::size_t colon = url.rfind(':');
    endpoint_.host = url.substr(7, colon - 7);
    endpoint_.port = static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1)));
    conf_ = read_file(dir_ + "/etc/slurm.conf");
    const std::size_t added = conf_.find(kAdded);
    if (added != std::string::npos) conf_.resize(added);
  }
  ~RealWorld() override { configure(""); }

  std::string release() const override { return release_; }
  core::Loop& loop() override { return loop_; }
  core::Random& random() override { return random_; }
  std::unique_ptr<net::HttpTransport> transport() override { return std::make_unique<net::BeastTransport>(loop_, endpoint_); }
  std::string key() const override { return read_file(dir_ + "/etc/jwt.key"); }

  bool until(const std::function<bool()>& test, core::Duration most) override {
    // Waits longer than `most`, because on a busy machine everything takes longer.
    const core::MonoTime end = loop_.clock().mono() + 4 * most;
    bool held = test();
    std::function<void()> look = [&] {
      held = test();
      if (held || loop_.clock().mono() >= end) return loop_.stop();
      loop_.after(core::Duration{20}, look);
    };
    if (!held) {
      loop_.after(core::Duration{0}, look);
      loop_.run();
    }
    return held;
  }

  std::int64_t submit(const std::string& nodes, core::Duration duration, const std::string& partition) override {
    const auto count = 1 + std::count(nodes.begin(), nodes.end(), ',');
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration).count();
    const std::string sbatch =
        "setpriv --reuid=1000 --regid=1000 --clear-groups sbatch --parsable -D /tmp -o /dev/null -e /dev/null --mem=100 -t 10 "
        "-p " +
        partition + " -N" + std::to_string(count) + " --ntasks-per-node=1 -w " + nodes + " --wrap " +
        shell_word("sleep " + std::to_string(seconds));
    return std::stoll(exec("sh -c " + shell_word(sbatch + " 2>/dev/null || echo 0")));
  }
  void suspend(std::int64_t job) override { exec("scontrol suspend " + std::to_string(job)); }
  void resume(std::int64_t job) override { exec("scontrol resume " + std::to_string(job)); }
  void cancel(std::int64_t job) override { exec("scancel " + std::to_string(job)); }
  void scontrol(const std::string& node, const std::string& state, const std::string& reason) override {
    exec("scontrol update nodename=" + node + " state=" + state + (reason.empty() ? "" : " reason=" + shell_word(reason)));
  }
  void configure(const std::string& lines) override {
    std::ofstream(dir_ + "/etc/slurm.conf") << conf_ << (lines.empty() ? "" : kAdded + std::string("\n") + lines);
  }
  void start_node(const std::string& name, const std::string& conf, const std::string& servers) override {
    local("add-node", name + " " + shell_word(conf) + " " + shell_word(servers));
  }
  void stop_node(const std::string& name) override { local("remove-node", name); }
  bool slurmd_runs(const std::string& name) override {
    return exec("sh -c " + shell_word("kill -0 " + slurmd(name) + " 2>/dev/null && echo yes || true")) == "yes\n";
  }
  void reload_node(const std::string& name) override { exec("kill -HUP " + slurmd(name)); }
  std::string show(const std::string& what) override { return exec("scontrol --oneliner show " + what); }
  void reserve(const std::string& reservation, const std::string& node) override {
    exec("scontrol create reservation reservationname=" + reservation + " nodes=" + node +
         " starttime=now duration=60 users=root");
  }
  void end_reservation(const std::string& reservation) override { exec("scontrol delete reservationname=" + reservation); }
  bool create_node(const std::string& name) override {
    return exec("sh -c " + shell_word("scontrol create nodename=" + name + " state=CLOUD >&2 && echo made || true"))
        .ends_with("made\n");
  }
  std::string slow_epilog() override {
    const std::string path = dir_ + "/tmp/epilog";
    std::ofstream(path) << "#!/bin/sh\nsleep 25\n";
    std::filesystem::permissions(path, std::filesystem::perms(0755));
    return "Epilog=/tmp/epilog";
  }
  void lose_state() override {
    for (const auto& entry : std::filesystem::directory_iterator(dir_ + "/spool/slurmctld")) {
      std::filesystem::remove_all(entry.path());
    }
  }
  std::string slurmctld_host() override { return "127.0.0.1"; }
  std::uint16_t slurmctld_port() override { return static_cast<std::uint16_t>(endpoint_.port - 1); }
  void set_keys(const std::string& host, const std::vector<std::string>& kids, const std::string& use_default) override {
    const std::string etc = host.empty() ? dir_ + "/etc" : dir_ + "/hosts/" + host + "/etc";
    const std::string path = etc + "/slurm.jwks";
    std::filesystem::remove(path);
    if (kids.empty()) return;
    core::Json keys = core::Json::array();
    for (const std::string& kid : kids) {
      const std::string secret = std::string(32 - kid.size(), '.') + kid;
      keys.push_back({{"alg", "HS256"}, {"kty", "oct"}, {"kid", kid}, {"k", core::base64url_encode(secret)}});
      if (kid == use_default) keys.back()["use"] = "default";
    }
    std::filesystem::create_directories(etc);
    std::ofstream(path) << core::Json{{"keys", keys}}.dump();
    std::filesystem::permissions(path, std::filesystem::perms(0600));
    if (host.empty()) exec("chown slurm:slurm /etc/slurm/slurm.jwks");
  }
  int http_status(const std::string& host, const std::string& path) override {
    std::string port = std::to_string(slurmctld_port());
    if (!host.empty()) port = read_file(dir_ + "/hosts/" + host + "/port");
    if (port.ends_with('\n')) port.pop_back();
    const std::string line = exec("timeout 5 bash -c " +
                                  shell_word("exec 2>/dev/null; exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf 'GET " + path +
                                             " HTTP/1.1\\r\\nHost: here\\r\\n\\r\\n' >&3; head -n 1 <&3 || true") +
                                  " || true");
    return line.starts_with("HTTP/") ? std::stoi(line.substr(line.find(' ') + 1)) : 0;
  }
  void start_slurmctld() override { local("slurmctld", "start"); }
  void stop_slurmctld() override { local("slurmctld", "stop"); }

 private:
  static constexpr const char* kAdded = "# added by a test";

  std::string local(const std::string& verb, const std::string& rest) {
    const std::string command = "dev/slurm-local.sh " + release_ + " " + verb + " " + shell_word(dir_) + " " + rest + " 2>&1";
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error(command);
    std::string out;
    std::array<char, 4096> piece;
    while (const std::size_t n = fread(piece.data(), 1, piece.size(), pipe)) out.append(piece.data(), n);
    if (pclose(pipe) != 0) throw std::runtime_error(command + ": " + out);
    return out;
  }
  /// Returns the pid of the slurmd in the instance.
  [[nodiscard]] std::string slurmd(const std::string& name) const {
    const std::string pid = read_file(dir_ + "/hosts/" + name + "/pid");
    return pid.substr(0, pid.find('\n'));
  }
  std::string exec(const std::string& command) { return local("exec", command); }

  std::string release_, dir_, conf_;
  net::AsioLoop loop_;
  net::Endpoint endpoint_;
  core::SystemRandom random_;
};

}  // namespace

std::unique_ptr<World> real_world() {
  const std::string url = environment("SLURM_REST_URL");
  if (url.empty()) return nullptr;
  return std::make_unique<RealWorld>(url, environment("SLURM_LOCAL_RELEASE"), environment("SLURM_LOCAL_DIR"));
}

}  // namespace conformance
