// A model of slurmrestd before a SimSlurm: the paths, spellings, errors and oddities of 24.11 and 26.05, and its bad days.
//
//   sim::SlurmRest rest(loop, slurm, [&] { return jwt_key; });
//   rest.serve(request, [](net::HttpResponse reply) { ... });          // behind net::HttpServer
//   auto transport = slurm_transport(loop, host, random, find, faults);  // on the virtual loop
//
// Answers were taken from real ones of 24.11.5 and 26.05.5; of a node or job only the fields that matter are there, and a few
// beside.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/json.hpp"
#include "core/loop.hpp"
#include "net/http.hpp"
#include "sim/slurm/sim_slurm.hpp"

namespace sim {

/// The claims of a token that this key signed; nothing of any other. Whether it has expired is not asked.
std::optional<core::Json> verify_token(const std::string& token, const std::string& key);

/// What may become of one request to slurmrestd.
struct SlurmFault {
  enum class Kind {
    kNone,
    kRefused,    ///< No connection.
    kLost,       ///< Carried out, but the reply is lost.
    kLostEarly,  ///< The request is lost on its way.
    kSlow,       ///< Late by `delay`.
    kEmpty,      ///< HTTP 200 without a body.
    kOther,      ///< The answer of another cluster's slurmrestd, which has none of our nodes and jobs.
    kBare,       ///< HTTP 200, an envelope without any table, without errors.
    kPartial,    ///< A body cut in the middle, the connection ended properly.
    kError,      ///< HTTP 500 with an error of number -1.
    kUnchanged,  ///< SlurmRest::miss_changes.
  };
  Kind kind = Kind::kNone;
  core::Duration delay{0};
  std::function<void()> after{};  ///< Called once it was carried out: the client dies then.
};

class SlurmRest {
 public:
  /// Decides what becomes of a request; asked once each.
  using Faults = std::function<SlurmFault(const net::HttpRequest&)>;
  using Reply = std::function<void(net::HttpResponse)>;

  /// `key`: the bytes of jwt.key as slurmctld has them.
  SlurmRest(core::Loop& loop, SimSlurm& slurm, std::function<std::string()> key);
  ~SlurmRest();

  /// Answers now, or after ten seconds when slurmctld is away.
  void serve(const net::HttpRequest& request, Reply reply);
  /// Who asks by update_time is told that nothing changed, whatever has, until something changes again.
  void miss_changes();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// A transport on the virtual loop. `find` gives the server that listens there now, or null: connection refused. Requests
/// travel on the network's loop, and are carried out even if the client has died or stands still meanwhile.
std::unique_ptr<net::HttpTransport> slurm_transport(core::Loop& network, core::Loop& client, core::Random& random,
                                                    std::function<SlurmRest*()> find, SlurmRest::Faults faults = {});

}  // namespace sim
