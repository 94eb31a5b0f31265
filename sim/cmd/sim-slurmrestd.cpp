// sim-slurmrestd: a simulated Slurm behind slurmrestd's own port, for clusters whose workers are pods without a slurmd.
// Replaces slurmrestd in its pod, with the same arguments and the same configuration in /etc/slurm. The test that creates the
// workers reports them with these requests:
//
//   PUT  /admin/conf       slurm.conf from now on; loaded with the next reconfigure
//   POST /admin/workers    {"start": ["cpu-0", ...], "stop": ["cpu-7"], "conf": "Features=cpu"}   their slurmds came or went
//   GET  /admin/state      {"nodes": 10, "usable": 10, "requests": {"GET nodes": 7, ...}}
//
// These requests have no authentication, because the program is only for tests.

#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "core/json.hpp"
#include "core/random.hpp"
#include "net/asio_loop.hpp"
#include "net/http_server.hpp"
#include "sim/site/slurm_site.hpp"
#include "sim/slurm/rest.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace {

using core::Json;
using namespace std::chrono_literals;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Flags {
  std::string conf = "/etc/slurm/slurm.conf";
  std::string jwt_key = "/etc/slurm/jwt.key";
  std::string release = "26.05.5";
  net::ServerOptions listen{.address = "0.0.0.0", .port = 6820};
};

/// Ignores the arguments of slurmrestd other than the port.
Flags parse(int argc, char** argv) {
  Flags out;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::string next = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--conf") out.conf = next;
    if (word == "--jwt-key") out.jwt_key = next;
    if (word == "--release") out.release = next;
    if (word.starts_with('-')) {
      ++i;
    } else if (const std::size_t colon = word.rfind(':'); colon != std::string::npos) {
      // For [::], slurmrestd also opens an IPv4 socket if slurm.conf does not enable IPv6.
      out.listen.address = word.starts_with("[::]") ? "0.0.0.0" : word.substr(0, colon);
      out.listen.port = static_cast<std::uint16_t>(std::stoi(word.substr(colon + 1)));
    }
  }
  return out;
}

class Server {
 public:
  Server(net::AsioLoop& loop, core::Random& random, Flags flags)
      : loop_(loop),
        flags_(std::move(flags)),
        slurm_(loop, random, [this] { return conf_ ? *conf_ : read_file(flags_.conf); }, {.release = flags_.release}),
        rest_(loop, slurm_, [key = read_file(flags_.jwt_key)] { return key; }),
        http_(loop, flags_.listen,
              [this](net::HttpRequest request, net::Responder responder) { handle(request, std::move(responder)); }) {}

  core::Result<void> start() {
    start_slurm();
    return http_.start();
  }

 private:
  void start_slurm() {
    const auto started = slurm_.start();
    if (started) return;
    std::cerr << started.error().message << "\n";
    loop_.after(1s, [this] { start_slurm(); });
  }

  void handle(const net::HttpRequest& request, net::Responder responder) {
    if (request.target.starts_with("/admin/")) return responder.respond(admin(request));
    ++requests_[request.method + " " + subject(request.target)];
    rest_.serve(request, [responder](net::HttpResponse reply) mutable { responder.respond(std::move(reply)); });
  }

  /// Returns "nodes" for a target such as "/slurm/v0.0.45/nodes/?update_time=1", "node" for "/slurm/v0.0.45/node/cpu-1".
  static std::string subject(const std::string& target) {
    if (!target.starts_with("/slurm/")) return target.substr(0, target.find('?'));
    const std::size_t begin = target.find('/', 7) + 1;
    return target.substr(begin, target.find_first_of("/?", begin) - begin);
  }

  net::HttpResponse admin(const net::HttpRequest& request) {
    if (request.method == "PUT" && request.target == "/admin/conf") {
      conf_ = request.body;
      return {200, {}, "{}"};
    }
    if (request.method == "POST" && request.target == "/admin/workers") {
      const auto body = core::parse_json(request.body);
      if (!body) return {400, {}, body.error().message};
      return workers(*body);
    }
    if (request.method == "GET" && request.target == "/admin/state") return state();
    return {404, {}, "no such thing"};
  }

  net::HttpResponse workers(const Json& body) {
    for (const Json& name : body.value("stop", Json::array())) stop_worker(name.get<std::string>());
    const std::string conf = core::get_string(body, {"conf"});
    for (const Json& name : body.value("start", Json::array())) {
      if (!slurm_.start_slurmd(name.get<std::string>(), conf)) return {400, {}, "slurmd refuses: " + conf};
    }
    return {200, {}, "{}"};
  }

  void stop_worker(const std::string& name) {
    sim::run_pre_stop(slurm_, name, name);
    slurm_.stop_slurmd(name);
  }

  net::HttpResponse state() const {
    int usable = 0;
    for (const auto& [name, node] : slurm_.nodes()) usable += slurm_.usable(node) ? 1 : 0;
    const Json body{{"nodes", slurm_.nodes().size()}, {"usable", usable}, {"requests", requests_}};
    return {200, {{"content-type", "application/json"}}, body.dump()};
  }

  net::AsioLoop& loop_;
  Flags flags_;
  std::optional<std::string> conf_;
  sim::SimSlurm slurm_;
  sim::SlurmRest rest_;
  std::map<std::string, int> requests_;
  net::HttpServer http_;
};

}  // namespace

int main(int argc, char** argv) {
  net::AsioLoop loop(1);
  core::SystemRandom random;
  Server server(loop, random, parse(argc, argv));
  if (const auto started = server.start(); !started) {
    std::cerr << started.error().message << "\n";
    return 1;
  }
  loop.on_signals([&](int) { loop.stop(); });
  loop.run();
}
