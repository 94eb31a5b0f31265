#include "enlist/coordinator/process.hpp"

#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "enlist/coordinator/coordinator.hpp"
#include "enlist/rules/text.hpp"
#include "enlist/wire/identity.hpp"
#include "net/beast_transport.hpp"
#include "net/http_server.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;

constexpr core::Duration kDrain{5000};
/// The largest body of a request. Reports of agents and commands of administrators are far shorter.
constexpr std::size_t kLongestRequest = 256 * 1024;
constexpr std::size_t kSlurmReplies = 1UL << 28;

constexpr std::size_t kLongestAddress = 253;  // The longest host name: RFC 1035.
constexpr std::string_view kHostLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:%";

std::string own_host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

slurm::Clusters::TransportFactory slurm_transport(net::AsioLoop& loop) {
  net::TransportOptions options;
  options.budget = std::make_shared<net::ReplyBudget>(kSlurmReplies);
  return [&loop, options](const slurm::Endpoint& endpoint) -> std::unique_ptr<net::HttpTransport> {
    return std::make_unique<net::BeastTransport>(loop, net::Endpoint{.host = endpoint.host}, options);
  };
}

class Process final : public run::Shell {
 public:
  Process(const std::string& version, Host& host)
      : Shell({.name = "slurm-enlist",
               .version = version,
               .about = "Runs on the host of slurmctld: lets hosts join Slurm, and makes the partitions of the pools."},
              std::make_unique<run::Metrics>("slurm-enlist")),
        host_(host) {
    // The default ports of run::Shell may be in use by other programs on this host, so that these listeners are off by default.
    for (const char* address : {"--health-addr", "--metrics-addr"})
      cli().get_option(address)->run_callback_for_default()->default_val("0");
    flag("--state", state_, "The folder of the coordinator's records and keys");
    flag("--slurm-conf", slurm_conf_, "The slurm.conf of slurmctld; the keys of Slurm are beside it");
    flag("--address", address_, "The name or address of this host, for hosts that join (default: its own name)");
    flag("--join-addr", join_address_, "Where hosts join");
    flag("--agent-addr", agent_address_, "Where agents and administrators are answered");
    flag("--slurmrestd", slurmrestd_, "The program slurmrestd");
    flag("--slurmrestd-folder", slurmrestd_folder_, "A folder for the socket of slurmrestd, which belongs to its user alone");
    flag("--forget-dead-after", forget_dead_after_,
         "How long a host may be silent before its node is removed: 12h, 7d (default: for ever)");
    flag("--slurmrestd-user", slurmrestd_user_, "The user that runs slurmrestd: not root, and not SlurmUser");
  }

 private:
  std::optional<int> prepare() override {
    const auto fail = [this](std::string_view what, const core::Error& error) { return std::optional(fatal(what, error)); };
    CoordinatorOptions options;
    if (auto made = make_state(); !made) return fail("--state", made.error());
    auto own = load_or_make_identity(state_, "coordinator");
    if (!own) return fail("the coordinator's key", own.error());
    const auto admin = load_or_make_identity(state_, "admin");
    if (!admin) return fail("the administrators' key", admin.error());
    if (address_.empty()) address_ = own_host_name();
    // write_token() accepts only these characters.
    if (address_.size() > kLongestAddress || address_.find_first_not_of(kHostLetters) != std::string::npos)
      return fail("--address", core::fail(core::ErrorCode::kInvalid,
                                          address_ + ": must be a name or an IP address, of at most 253 characters")
                                   .error());
    // The name of the socket contains our pid, because an earlier slurmrestd that is still exiting removes its own socket.
    const fs::path socket = fs::path(slurmrestd_folder_) / ("slurmrestd." + std::to_string(getpid()));
    if (!socket.is_absolute() || socket.native().size() >= sizeof sockaddr_un::sun_path) {
      const std::string what = slurmrestd_folder_ + ": must be an absolute path of at most 80 characters";
      return fail("--slurmrestd-folder", core::fail(core::ErrorCode::kInvalid, what).error());
    }
    auto joining = listener("--join-addr", join_address_, *own);
    if (!joining) return fail("flags", joining.error());
    joining->known = [](const std::string&) { return false; };
    auto agents = listener("--agent-addr", agent_address_, *own);
    if (!agents) return fail("flags", agents.error());
    agents->known = [this](const std::string& key) { return coordinator_->server().knows(key); };
    auto store = Store::open(loop(), fs::path(state_) / "coordinator.db");
    if (!store) return fail("the coordinator's records", store.error());
    store_ = *std::move(store);
    clusters_.emplace(loop(), random(), log(), slurm_transport(loop()));

    // The listeners are bound before the coordinator exists, because it needs their ports. No request is read before the loop
    // runs.
    join_.emplace(loop(), *joining, [this](net::HttpRequest request, const net::Responder& responder) {
      coordinator_->server().join(request, reply_to(responder));
    });
    agents_.emplace(loop(), *agents, [this](net::HttpRequest request, const net::Responder& responder) {
      coordinator_->server().serve(request, reply_to(responder));
    });
    if (auto bound = join_->start(); !bound) return fail("--join-addr", bound.error());
    if (auto bound = agents_->start(); !bound) return fail("--agent-addr", bound.error());
    options.slurm_conf = slurm_conf_;
    options.own_host = own_host_name();
    if (!forget_dead_after_.empty()) {
      const auto time = parse_time(forget_dead_after_);
      if (!time) return fail("--forget-dead-after", time.error());
      options.forget_dead_after = *time;
    }
    options.server = {.admin = admin->fingerprint,
                      .own = own->fingerprint,
                      .host = address_,
                      .join_port = join_->port(),
                      .agent_port = agents_->port(),
                      .cluster = {}};
    options.slurmrestd = {.program = slurmrestd_, .user = slurmrestd_user_, .socket = socket};
    const auto supervised = [this](Command command, std::function<void()> changed) {
      return supervise(loop(), std::move(command), std::move(changed));
    };
    coordinator_.emplace(loop(), random(), log(), *store_, host_, supervised, *clusters_, std::move(options), &metrics());
    return {};
  }

  core::Result<void> make_state() const {
    std::error_code error;
    if (fs::is_directory(state_, error)) return {};
    fs::create_directories(state_, error);
    if (!error) fs::permissions(state_, fs::perms::owner_all, error);
    if (error) return core::fail(core::ErrorCode::kUnavailable, state_ + ": " + error.message());
    return {};
  }

  /// Returns the options of a listener. Any client may connect, because the handlers check its key. The server gives clients
  /// with unknown keys little memory (net::ServerOptions::known).
  static core::Result<net::ServerOptions> listener(std::string_view flag, const std::string& address, const Identity& own) {
    auto options = net::parse_listen_address(address);
    if (!options) return std::unexpected(options.error().with(flag));
    options->use_tls = true;
    options->tls = {.cert_pem = own.cert_pem, .key_pem = own.key_pem, .any_client = true};
    options->max_request_bytes = kLongestRequest;
    return options;
  }

  static enlist::Server::Reply reply_to(net::Responder responder) {
    return [responder = std::move(responder)](net::HttpResponse response) mutable { responder.respond(std::move(response)); };
  }

  run::HealthChecks health() override {
    return {.ready = [this] { return coordinator_->ready(); },
            .healthy = [this] { return coordinator_->passes().plans_in_time(); }};
  }
  std::vector<core::Field> connected_to() override {
    return {{"slurm_conf", slurm_conf_}, {"join_port", join_->port()}, {"agent_port", agents_->port()}};
  }
  void begin() override { coordinator_->start(); }
  void end(std::function<void()> done) override {
    join_->stop();
    const auto one_ended = [left = std::make_shared<int>(2), done = std::move(done)] {
      if (--*left == 0) done();
    };
    agents_->drain(kDrain, one_ended);
    coordinator_->stop(one_ended);
  }
  void collect() override { coordinator_->passes().collect(); }

  std::string state_ = "/var/lib/slurm-enlist", slurm_conf_ = "/etc/slurm/slurm.conf", address_;
  std::string join_address_ = ":6831", agent_address_ = ":6830";
  std::string forget_dead_after_;
  std::string slurmrestd_ = "slurmrestd", slurmrestd_user_ = "slurm-enlist";
  std::string slurmrestd_folder_ = "/run/slurm-enlist-coordinator";
  std::unique_ptr<Store> store_;
  Host& host_;
  std::optional<slurm::Clusters> clusters_;
  std::optional<net::HttpServer> join_, agents_;
  std::optional<Coordinator> coordinator_;
};

}  // namespace

std::unique_ptr<run::Shell> make_coordinator(const std::string& version, Host& host) {
  return std::make_unique<Process>(version, host);
}

}  // namespace enlist
