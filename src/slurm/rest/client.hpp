// A client of one slurmrestd. Sends requests, and returns answers in a neutral model that does not depend on Slurm's release.
//
//   slurm::Client client(loop, transport, tokens, log);
//   client.nodes({}, [](core::Result<slurm::Table<slurm::Node>> table) { ... });
//
// The first request negotiates the newest data_parser that both sides know, and what the server can do. The client negotiates
// again if the server was away, its release changed, or a path is gone. Callers only see capabilities.
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

/// A whole table, or the information that nothing in the table changed.
template <class T>
struct Table {
  bool unchanged = false;        ///< Nothing changed since the requested time, and `rows` is empty.
  std::int64_t last_update = 0;  ///< Seconds on the server's clock. Pass it as `since` next time.
  std::vector<std::shared_ptr<const T>> rows;
};

/// The state of a job, without anything else.
struct JobState {
  std::int64_t id = 0;  ///< 0 for a task of an array.
  std::string state;    ///< Job::state.
};

/// The counters of slurmctld itself.
struct Diag {
  std::int64_t server_threads = 0;
  std::int64_t agent_queue = 0;
  std::int64_t jobs_running = 0;
  std::int64_t jobs_pending = 0;
};

/// The configuration that slurmctld has loaded. Only its ClusterName is read, into Envelope::slurmctld_cluster.
struct LoadedConf {};

/// The reason of the error kUnavailable that is returned if another cluster than ClientOptions::cluster_name answers.
inline constexpr std::string_view kOtherCluster = "OtherCluster";

struct ClientOptions {
  /// If slurmctld does not respond, slurmrestd reports that after 9 to 10 s. A shorter timeout would miss that answer.
  core::Duration read_timeout{12000};
  core::Duration write_timeout{11000};
  /// Returns the time by which writes must end; nullopt forbids writes. Called right before each write. The client does not
  /// send a write that has too little time left (kCancelled), and waits for no write beyond this time. Unset: no restriction.
  std::function<std::optional<core::MonoTime>()> write_deadline{};
  /// The newest data_parser to use. For tests of older data_parsers.
  std::string newest_parser = "v0.0.45";
  /// The expected ClusterName; "" accepts any. A reply that names another cluster is an error (kOtherCluster); a reply without
  /// a name is accepted. Ignores case, because Slurm writes it in lower case.
  std::string cluster_name{};
  /// True: reads the JobDetails of all jobs, and the times at which Slurm expects waiting jobs to start and end. False: does
  /// not read them, so a change of them counts as no change of the job.
  bool job_details = false;
};

class Connection;

/// A client of one slurmrestd. Calls `done` exactly once, in a later loop iteration. The destructor calls a pending
/// `done` with kCancelled (a write: kUnknownOutcome). Errors of every call: kUnavailable (no connection, or slurmctld is away
/// or in standby), kUnauthorized, kForbidden, kTooManyRequests, kInternal (a malformed or incomplete answer), kUnsupported (no
/// common data_parser, or no such path). Writes also fail with kUnknownOutcome, and with kCancelled if it is too late to send
/// them.
class Client {
 public:
  template <class T>
  using Done = std::function<void(core::Result<T>)>;

  Client(core::Loop& loop, net::HttpTransport& transport, TokenSource& tokens, core::Logger& log, ClientOptions options = {});
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Negotiates unless the client already has, and returns the capabilities.
  void connect(Done<Capabilities> done);
  /// Returns the client of the accounting database behind this slurmrestd.
  [[nodiscard]] AccountingClient& accounting() { return accounting_; }
  /// Returns what the server can do. Null before the first negotiation and while the client has to negotiate again.
  [[nodiscard]] const Capabilities* capabilities() const;
  /// Returns ClientOptions::job_details.
  [[nodiscard]] bool job_details() const;

  // Reads. `since` is a last_update. Returns the whole table unless the server confirms that nothing changed after `since`.
  void nodes(std::optional<std::int64_t> since, Done<Table<Node>> done);
  void jobs(std::optional<std::int64_t> since, Done<Table<Job>> done);
  /// Reads one job, which costs the same however many jobs Slurm has. Error: kNotFound if Slurm does not know the number, for
  /// example because the job ended long ago.
  void job(std::int64_t id, Done<std::shared_ptr<const Job>> done);
  void partitions(std::optional<std::int64_t> since, Done<Table<Partition>> done);
  /// Reads the states of all jobs. Requires Capabilities::job_states.
  void job_states(Done<std::vector<std::shared_ptr<const JobState>>> done);
  /// Reads a node. Flags, DOWN, reason, comment and features are live. Allocated CPUs are not: slurmctld counts them only when
  /// somebody reads the whole table. Until then, a node whose jobs have ended still shows MIXED, and a node with a new job
  /// shows ALLOCATED. Errors: kNotFound; kConflict if the slurmd of a host of this name has registered under another name.
  void node(const std::string& name, Done<Node> done);
  void reservations(Done<Table<Reservation>> done);
  /// Reads all jobs, each with the QOS and the association of the accounting database that it uses.
  void job_uses(AccountingClient::Done<accounting::JobUse> done);
  /// Reads all jobs, with the fields that limits depend on, and those that show why a job waits.
  void queue(AccountingClient::Done<accounting::QueuedJob> done);
  /// Reads the usage of all associations of the cluster, as its slurmctld counts it.
  void shares(AccountingClient::Done<accounting::Share> done);
  /// Reads the limits and rules of all partitions.
  void partition_rules(AccountingClient::Done<accounting::PartitionRules> done);
  /// Asks slurmrestd whether slurmctld responds. slurmrestd answers at once, even if slurmctld is away.
  void ping(Done<std::vector<Ping>> done);
  void diag(Done<Diag> done);
  /// Checks which cluster answers. Fails with kOtherCluster if the configuration of slurmctld itself names another cluster.
  /// Succeeds if any cluster is accepted, or if the server has no GET conf (before 26.05) or does not answer this request.
  void confirm_cluster(Done<void> done);

  // Writes. Errors: kNotFound, kInvalid, kBusy.
  void update_node(const std::string& name, const NodeUpdate& update, Done<void> done);
  /// Sends one request if the server supports it, else one for each node. Fails with kNotFound if a name is unknown, after the
  /// other nodes are changed.
  void update_nodes(const std::vector<std::string>& names, const NodeUpdate& update, Done<void> done);
  void delete_node(const std::string& name, Done<void> done);
  /// Creates the node that a line in the form of slurm.conf describes: "NodeName=... State=EXTERNAL ...". Before 26.05, if a
  /// node of this name exists, Slurm answers kAlreadyExists and deletes that node if idle. Fails with kUnsupported if the
  /// server has no such request.
  void create_node(const std::string& line, Done<void> done);
  /// Submits an external job and returns its number. If called twice, Slurm creates two jobs.
  void submit_job(const JobWish& wish, const std::string& admin_comment, Done<std::int64_t> done);
  void update_job(std::int64_t id, const JobWish& wish, Done<void> done);
  /// Cancels a job as scancel does: SIGTERM, and SIGKILL after KillWait. `id` is a Job::full_id.
  void cancel_job(const std::string& id, Done<void> done);
  /// Requeues a job (`id`: Job::full_id), unless it has ended. Fails with kUnsupported if the server cannot requeue jobs.
  void requeue_job(const std::string& id, Done<void> done);
  /// Makes a reservation. If a reservation of that name exists, Slurm changes it as far as it can. Fails with kUnsupported if
  /// the server has no such request.
  void make_reservation(const ReservationWish& wish, Done<void> done);
  /// Replaces the nodes of a reservation. Requires an existing reservation, active or not, and a non-empty `nodes`. Slurm
  /// ignores names that it does not know.
  void set_reservation_nodes(const std::string& name, const std::vector<std::string>& nodes, Done<void> done);
  void delete_reservation(const std::string& name, Done<void> done);
  void reconfigure(Done<void> done);

 private:
  std::shared_ptr<Connection> connection_;
  AccountingClient accounting_;
};

}  // namespace slurm
