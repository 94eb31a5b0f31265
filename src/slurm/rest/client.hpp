// One slurmrestd endpoint: requests in the neutral model out, answers in the neutral model back, whatever its release speaks.
//
//   slurm::Client client(loop, transport, tokens, log);
//   client.nodes({}, [](core::Result<slurm::Table<slurm::Node>> table) { ... });
//
// The first request negotiates: the newest data_parser known on both sides, and what this server can do. Negotiated anew when
// the server was away, when its release changed, or when a path is gone. Above this class only capabilities are seen.
// For polls and caches see snapshot/registry.hpp; for acts of plans see rest/target.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "net/http.hpp"
#include "slurm/model.hpp"
#include "slurm/own_job.hpp"
#include "slurm/reservation.hpp"
#include "slurm/rest/accounting_client.hpp"
#include "slurm/rest/token.hpp"

namespace slurm {

/// A whole table, or word that nothing in it changed.
template <class T>
struct Table {
  bool unchanged = false;        ///< Nothing changed since the time asked about; `rows` says nothing.
  std::int64_t last_update = 0;  ///< Seconds on the server's clock; to be asked about next time.
  std::vector<std::shared_ptr<const T>> rows;
};

/// What slurmctld says of itself.
struct Diag {
  std::int64_t server_threads = 0;
  std::int64_t agent_queue = 0;
  std::int64_t jobs_running = 0;
  std::int64_t jobs_pending = 0;
};

/// The configuration that slurmctld has loaded. Nobody reads more of it yet than whose it is.
struct LoadedConf {};

/// The machine word of the error (kUnavailable) that another cluster answers than ClientOptions::cluster_name.
inline constexpr std::string_view kOtherCluster = "OtherCluster";

struct ClientOptions {
  /// With slurmctld away slurmrestd answers after 9 to 10 s; a shorter wait would hide its word for it.
  core::Duration read_timeout{12000};
  core::Duration write_timeout{11000};
  /// Until when writes may be under way; nullopt: none may be sent. Asked right before each is sent: one without enough time
  /// is not sent (kCancelled), and none is waited for any longer than that. Unset: at any time.
  std::function<std::optional<core::MonoTime>()> write_deadline{};
  /// No newer data_parser is chosen: for tests of the older ones.
  std::string newest_parser = "v0.0.45";
  /// ClusterName of the slurmctld that is meant; "": any. A reply that names another is an error (kOtherCluster); one that
  /// names none is good. Case does not matter: Slurm writes it in lower case.
  std::string cluster_name{};
  /// Reads jobs with JobDetails, and waiting jobs with the times that Slurm expects. Otherwise neither is read or compared, and
  /// a change of them wakes nothing.
  bool job_details = false;
};

class Connection;

/// Calls of `done` come later, on the loop, exactly once; when the client goes first, from its destructor with kCancelled (a
/// write under way: kUnknownOutcome). Errors of every call: kUnavailable (no connection, or slurmctld is away or in standby),
/// kUnauthorized, kForbidden, kTooManyRequests, kInternal (an answer that makes no sense, or is not whole), kUnsupported (no
/// data_parser in common, or no such path), and for writes kUnknownOutcome, and kCancelled when it was too late to send one.
class Client {
 public:
  template <class T>
  using Done = std::function<void(core::Result<T>)>;

  Client(core::Loop& loop, net::HttpTransport& transport, TokenSource& tokens, core::Logger& log, ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Negotiates unless that is done already.
  void connect(Done<Capabilities> done);
  /// The accounting database behind the same slurmrestd.
  [[nodiscard]] AccountingClient& accounting() { return accounting_; }
  /// Null before and between negotiations.
  [[nodiscard]] const Capabilities* capabilities() const;
  /// ClientOptions::job_details.
  [[nodiscard]] bool job_details() const;

  // Reads. `since`: a last_update; the table comes whole unless the server vouches that nothing changed after it.
  void nodes(std::optional<std::int64_t> since, Done<Table<Node>> done);
  void jobs(std::optional<std::int64_t> since, Done<Table<Job>> done);
  void partitions(std::optional<std::int64_t> since, Done<Table<Partition>> done);
  /// Flags, DOWN, reason, comment and features are live. But slurmctld counts allocated CPUs only when somebody asks for the
  /// whole table: until then a node whose jobs have ended still reads MIXED, and one with a new job ALLOCATED. Error:
  /// kNotFound.
  void node(const std::string& name, Done<Node> done);
  void reservations(Done<Table<Reservation>> done);
  /// Answered at once also when slurmctld is away.
  void ping(Done<std::vector<Ping>> done);
  void diag(Done<Diag> done);
  /// Fails with kOtherCluster where slurmctld's own configuration names another cluster. Good where the server cannot tell
  /// (before 26.05), and where it does not answer this.
  void confirm_cluster(Done<void> done);

  // Writes. Errors: kNotFound, kInvalid, kBusy.
  void update_node(const std::string& name, const NodeUpdate& update, Done<void> done);
  /// One request where the server has one, else one each. An unknown name is kNotFound, and the other nodes are changed all the
  /// same.
  void update_nodes(const std::vector<std::string>& names, const NodeUpdate& update, Done<void> done);
  void delete_node(const std::string& name, Done<void> done);
  /// Submits an external job and returns its number. Slurm would take the same job twice.
  void submit_job(const JobWish& wish, const std::string& admin_comment, Done<std::int64_t> done);
  void update_job(std::int64_t id, const JobWish& wish, Done<void> done);
  /// As scancel: SIGTERM, and SIGKILL after KillWait. `id` as Job::full_id.
  void cancel_job(const std::string& id, Done<void> done);
  /// kUnsupported where the server has none.
  void requeue_job(const std::string& id, Done<void> done);
  /// kUnsupported where the server has none. Slurm takes one of that name for the one to change, and changes what it can.
  void make_reservation(const ReservationWish& wish, Done<void> done);
  /// Of a reservation that exists, active or not. Slurm leaves out names that it does not know. `nodes` must not be empty.
  void set_reservation_nodes(const std::string& name, const std::vector<std::string>& nodes, Done<void> done);
  void delete_reservation(const std::string& name, Done<void> done);
  void reconfigure(Done<void> done);

 private:
  std::shared_ptr<Connection> connection_;
  AccountingClient accounting_;
};

}  // namespace slurm
