// A model of slurmrestd in front of a SimSlurm: the paths, spellings, errors and oddities of 24.11 and 26.05, and its faults.
//
//   sim::SlurmRest rest(loop, slurm, [&] { return jwt_key; });
//   rest.serve(request, [](net::HttpResponse reply) { ... });          // behind net::HttpServer
//   auto transport = slurm_transport(loop, host, random, find, faults);  // on the virtual loop
//
// The answers are copied from real answers of 24.11.5 and 26.05.5. Nodes and jobs contain only the relevant fields, and a few
// others.
//
// Folder sim/slurm: the model of Slurm. Uses sim/base and net. Does not use slurm, so that model and programs do not share
// mistakes about Slurm.
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

/// Returns the claims of a token signed by this key; nullopt for other tokens. Does not check the expiry.
std::optional<core::Json> verify_token(const std::string& token, const std::string& key);

/// The fault of one request to slurmrestd.
struct SlurmFault {
  enum class Kind {
    kNone,
    kRefused,    ///< No connection.
    kLost,       ///< Carried out, but the reply is lost.
    kLostEarly,  ///< The request is lost before it arrives.
    kSlow,       ///< Delayed by `delay`.
    kEmpty,      ///< HTTP 200 without a body.
    kOther,      ///< The answer of another cluster's slurmrestd, without any of our nodes and jobs.
    kBare,       ///< HTTP 200 with a body that has neither tables nor errors.
    kPartial,    ///< A truncated body on a properly closed connection.
    kError,      ///< HTTP 500 with an error of number -1. Not carried out.
    kUnchanged,  ///< Carried out, with the effect of SlurmRest::miss_changes.
  };
  Kind kind = Kind::kNone;
  core::Duration delay{0};
  std::function<void()> after{};  ///< Called when the request is carried out, before the reply is sent. Can end the client.
};

class SlurmRest {
 public:
  /// Decides the fault of a request. Called once for each request.
  using Faults = std::function<SlurmFault(const net::HttpRequest&)>;
  using Reply = std::function<void(net::HttpResponse)>;

  /// `key` returns the jwt.key that slurmctld has.
  SlurmRest(core::Loop& loop, SimSlurm& slurm, std::function<std::string()> key);
  ~SlurmRest();

  /// Answers at once. If the request needs slurmctld, but slurmctld is down, answers after ten seconds (nine before 26.05). A
  /// ping with a token that slurmctld does not accept is also answered after ten seconds.
  void serve(const net::HttpRequest& request, Reply reply);
  /// Answers requests with update_time as if nothing had changed, until the next change.
  void miss_changes();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Returns a transport on the virtual loop. `find` returns the server that listens now; null means that connections are
/// refused. Requests travel on the network's loop, and are carried out even if the client has died or is paused meanwhile.
std::unique_ptr<net::HttpTransport> slurm_transport(core::Loop& network, core::Loop& client, core::Random& random,
                                                    std::function<SlurmRest*()> find, SlurmRest::Faults faults = {});

}  // namespace sim
