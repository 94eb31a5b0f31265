// A model of slurmctld and its slurmds, as far as an operator can tell the difference: registration, states, jobs,
// configuration. Its REST side is sim/slurm/rest.hpp.
//
//   sim::SimSlurm slurm(loop, random, [&] { return projected_slurm_conf; });
//   slurm.start();
//   slurm.start_slurmd("cpu-0", "Features=cpu");       // -Z --conf
//   slurm.submit({.user = "alice", .partition = "cpu", .duration = 60s});
//
// Every rule here was seen on a real Slurm (24.11.5, 25.11, 26.05.5) unless its comment says otherwise; which test holds it to
// that stands in tests/conformance/slurm/README.md. Not modelled: accounting, topology, backfill, power saving, jobs inside of
// reservations.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "core/result.hpp"

namespace sim {

struct SlurmOptions {
  std::string release = "26.05.5";
  core::Duration epilog{400};              ///< How long a job is COMPLETING.
  core::Duration registration{150};        ///< From slurmd's start, with slurmctld up, to its record.
  core::Duration answer{600};              ///< How long UNDRAIN and RESUME leave a node NOT_RESPONDING.
  core::Duration scheduling{200};          ///< From a change to the start of jobs.
  core::Duration requeue_delay{20000};     ///< BeginTime of a requeued job (real: 120 s).
  core::Duration slurmd_timeout{300000};   ///< SlurmdTimeout, unless the configuration has one.
  core::Duration config_retry{10000};      ///< slurmd's sleep when it finds no slurmctld.
  core::Duration reload{300};              ///< From a reconfigure to the registrations of all slurmds.
  core::Duration reservation{3000};        ///< From the begin of a reservation to the RESERVED of its nodes.
  core::Duration failover{2000};           ///< slurmd's time with a host of --conf-server where nobody is.
  std::string listens = "slurmctld:6817";  ///< What --conf-server calls this slurmctld.
  int cpus = 4;                            ///< Of a node, unless its --conf says.
  std::int64_t memory = 24000;             ///< Of a machine, MiB, unless set_memory says. It has no GRES.
};

/// Slurm's error numbers that this model answers.
enum class SlurmErrno : int {
  kSuccess = 0,
  kUnspecified = -1,
  kNoController = 1800,
  kInvalidPartition = 2000,
  kAccessDenied = 2002,
  kScriptMissing = 2009,
  kBusy = 2016,
  kInvalidJob = 2017,
  kInvalidNode = 2018,
  kInvalidState = 2028,
  kAlreadyDone = 2021,
  kActiveFeatures = 2031,
  kNotSupported = 2036,
  kDisabled = 2037,
  kInvalidReservation = 2053,
  kInvalidTime = 2054,
  kJobNotPending = 2073,
  kReservationStarted = 2104,
  kNodeExists = 2168,
  kInvalidTransition = 2180,
};

/// The keys of auth/slurm that a daemon has, by their kid, as slurm.jwks lists them; or that of slurm.key alone, which has
/// none.
struct SlurmKeys {
  std::vector<std::string> kids{"slurm.key"};
  std::string use_default{};                   ///< The kid that signs; "": the first.
  std::map<std::string, std::string> bytes{};  ///< By kid, where they are known: one kid may stand for two keys.
  bool alone = false;                          ///< It is that of slurm.key, and its kid is the key itself.
  [[nodiscard]] const std::string& signs() const { return use_default.empty() ? kids.front() : use_default; }
  /// All of them verify. What has no kid is verified with the key that signs; who has slurm.key alone looks at no kid.
  [[nodiscard]] bool accept(const SlurmKeys& sender) const;

 private:
  [[nodiscard]] const std::string& key(const std::string& kid) const;
};

struct SimNode {
  std::string name, address, hostname, reason, reason_user, comment, extra, instance_id, gres;
  std::string reservation;                     ///< Of an active one; "": none.
  bool maintenance = false;                    ///< That is one with MAINT,
  std::optional<core::MonoTime> maintained{};  ///< and when it last was.
  std::vector<std::string> features, active_features;
  std::set<std::string> partitions;  ///< Recomputed when nodes come or go, and by reconfigure; not by an update of features.
  bool down = false;
  bool drain = false;
  std::optional<core::MonoTime> own_drain{};  ///< Since when slurmctld itself holds it, which nobody held before.
  bool not_responding = false;
  bool invalid_reg = false;
  bool cloud = false;  ///< Made by hand with State=CLOUD: powered down, and nothing here powers it up.
  int cpus = 4;
  int weight = 1;
  int conf_weight = 1;  ///< Of --conf: what a reconfigure goes back to.
  std::int64_t real_memory = 1000;
  core::MonoTime made{};           ///< The record.
  std::int64_t registered_at = 0;  ///< Seconds, wall clock.
  std::int64_t reason_at = 0;      ///< Likewise.
  std::int64_t heard_of = 0;       ///< Likewise: its slurmd answered, or somebody freed it.
};

struct SimReservation {
  std::set<std::string> nodes;
  std::string users = "root";
  std::set<std::string> flags{};    ///< SPEC_NODES goes without saying.
  std::int64_t start = 0, end = 0;  ///< Seconds, wall clock. Of one that recurs: this time, or the next.
  /// Seconds from one time to the next; 0: there is only one.
  [[nodiscard]] std::int64_t period() const;
};

/// Stands in a job's name for a byte that no JSON text may hold, and which Slurm passes on all the same.
inline constexpr char kOddByte = '\x1a';

struct JobRequest {
  std::string user = "user";
  std::string partition{};  ///< "": the default, or the first one.
  int nodes = 1;
  core::Duration duration{60000};
  bool exclusive = false;  ///< Else one CPU of each node.
  bool requeue = true;
  std::vector<std::string> required_nodes{};
  std::optional<core::Duration> limit{};  ///< Absent: none.
  std::string name = "wrap";              ///< kOddByte in it: a byte that is no UTF-8.
  bool prolog_fails = false, epilog_fails = false;
  core::Duration prolog{0};  ///< How long it takes; the launch waits for it (PrologFlags=Alloc,DeferBatch).
  std::string admin_comment{};
  bool external = false;  ///< EXTERNAL_JOB: it has no script, and lasts until somebody ends it.
  std::vector<std::string> excluded_nodes{};
};

struct SimJob {
  enum class State { kPending, kRunning, kSuspended, kCompleted, kCancelled, kNodeFail, kTimeout };
  std::int64_t id = 0;
  JobRequest request;
  State state = State::kPending;
  bool completing = false;
  std::vector<std::string> nodes;
  core::Duration left{0};           ///< Of its duration, when it last started or was suspended.
  core::MonoTime resumed_at;        ///< When it last began to run.
  core::MonoTime not_before;        ///< Of a requeued one.
  std::int64_t start = 0, end = 0;  ///< Seconds, wall clock; 0: not yet.
  int restarts = 0;
  core::MonoTime submitted;
  core::MonoTime started;       ///< When it last was given its nodes.
  core::MonoTime prolog_until;  ///< When its prolog ends, or ended.
  bool unlaunched = false;      ///< slurmctld lost its launch: it never runs.
  bool doomed = false;          ///< Its processes ended with a slurmd, and Slurm does not know yet.
  [[nodiscard]] bool ended() const {
    return state != State::kPending && state != State::kRunning && state != State::kSuspended && !completing;
  }
  [[nodiscard]] bool holds(std::string_view node) const;
};
std::string_view to_string(SimJob::State state);

/// A job that neither ran to its end nor was ended by its user.
struct JobLoss {
  enum class What {
    kLost,      ///< It has failed.
    kRequeued,  ///< It begins anew, if it ever does.
    kStranded,  ///< Slurm has it running or suspended, and it never ends by itself: its processes are gone, or nobody hears
                ///< them.
  };
  enum class Cause {
    kDown,           ///< `by` set its node DOWN.
    kSilence,        ///< slurmctld heard nothing of its node for SlurmdTimeout.
    kOtherKey,       ///< And that because the slurmd there has other keys.
    kSlurmdEnded,    ///< And all processes with it.
    kSlurmdBegan,    ///< Another process registered under the name of the one that ran it.
    kNoSlurmd,       ///< It was started where no slurmd had registered.
    kPartitionGone,  ///< From the configuration, at a start or reconfigure.
    kNodeGone,       ///< Pending, and a node that it asks for by name was gone at a start or reconfigure.
    kStateLost,      ///< With slurmctld's volume.
    kRecordGone,     ///< `by` deleted its node while it was suspended.
    kProlog,         ///< Its prolog failed.
    kRequeued,       ///< `by` requeued it.
    kCancelled,      ///< `by`, who is not its user, cancelled it.
    kReconfigured,   ///< slurmctld was, during its prolog: its launch is lost (before 26.11).
    kRestarted,      ///< Likewise.
  };
  What what = What::kLost;
  Cause cause = Cause::kDown;
  std::string node{}, by{};
  bool pending = false;  ///< It had not begun.
  bool told = false;     ///< Stranded before, and reported then.
};
std::string_view to_string(JobLoss::What what);
std::string_view to_string(JobLoss::Cause cause);

struct SimPartition {
  std::string name;
  std::string nodes_expression;    ///< As configured: names of NodeSets, ALL, or a hostlist.
  std::vector<std::string> words;  ///< Of the expression: names of nodes and NodeSets, or ALL.
  std::set<std::string> members;
  bool hidden = false, root_only = false, is_default = false;
  std::string state = "UP";
};

/// A change to a node, as REST and scontrol make it.
struct SimNodeUpdate {
  std::optional<std::string> state{}, reason{}, comment{}, extra{}, gres{};
  std::optional<std::vector<std::string>> features{}, active_features{};
  std::optional<int> weight{};
};

class SimSlurm {
 public:
  /// What slurmctld finds in its /etc/slurm: slurm.conf as the kubelet projected it.
  using ConfigSource = std::function<std::string()>;

  SimSlurm(core::Loop& loop, core::Random& random, ConfigSource config, SlurmOptions options = {});
  ~SimSlurm();
  SimSlurm(const SimSlurm&) = delete;
  SimSlurm& operator=(const SimSlurm&) = delete;

  // slurmctld.
  /// Reads the configuration and the saved state. Error kInvalid: it ends at once, saying why.
  core::Result<void> start();
  /// Ends, by signal or crash; its state is on the volume. Jobs run on.
  void stop();
  /// The volume is gone: nodes and jobs are forgotten. Only while it is down.
  void lose_state();
  [[nodiscard]] bool up() const { return up_; }
  /// When it last came up.
  [[nodiscard]] core::MonoTime up_since() const { return up_since_; }
  /// Hands over to a new process on success; on failure the old one and its configuration stay.
  SlurmErrno reconfigure();
  /// Text of the configuration in force.
  [[nodiscard]] const std::string& configuration() const { return configuration_; }
  [[nodiscard]] std::string cluster_name() const { return cluster_name_; }
  /// What lies in the key file of slurmctld ("") or of a slurmd (its name). Both read it when they start and with every
  /// reconfigure, slurmd also with SIGHUP. By default all have the same key.
  std::function<SlurmKeys(const std::string& name)> key_file = [](const std::string&) { return SlurmKeys{}; };
  /// Its answer to an HTTP GET of a probe, be it slurmctld's ("") or a slurmd's; 0: none. 25.11 and later have one.
  [[nodiscard]] int http_status(const std::string& name, std::string_view path) const;

  // slurmd. Names are the Slurm nodes' names.
  /// slurmd -Z --conf. False: it ends at once (unknown keys, NodeName). `conf_server` is "HOST:PORT,..."; with a host twice
  /// it finds nobody; "": this slurmctld. `booted`: when its machine was started, seconds of the wall clock.
  bool start_slurmd(const std::string& name, const std::string& conf, const std::string& address = "10.0.0.1",
                    const std::string& instance = "", const std::string& conf_server = "", std::int64_t booted = 0);
  /// SIGHUP: it starts anew under its jobs, and registers, also when its record was deleted or refused.
  void reload_slurmd(const std::string& name);
  /// What slurmds see of their machines from their next registrations on, MiB.
  void set_memory(std::int64_t memory) { options_.memory = memory; }
  /// It ends or its machine goes; the record stays.
  void stop_slurmd(const std::string& name);
  [[nodiscard]] bool slurmd_runs(const std::string& name) const { return slurmds_.contains(name); }
  /// It runs, and takes what slurmctld says.
  [[nodiscard]] bool hears(const std::string& name) const;
  /// Those that know slurmctld, and have another configuration than it. slurmctld tells them of a new one only when they have
  /// registered before.
  [[nodiscard]] std::vector<std::string> outdated() const;
  /// True when the process knows its controller and its node has a record that answers.
  [[nodiscard]] bool slurmd_ready(const std::string& name) const;

  // What clients ask for. kNoController when it is down.
  SlurmErrno update_node(const std::string& name, const SimNodeUpdate& update, const std::string& user = "slurm");
  SlurmErrno delete_node(const std::string& name, const std::string& user = "slurm");
  /// A node with State=CLOUD, from no slurmd. Before 26.05 an idle one of that name is deleted by the refusal.
  SlurmErrno create_node(const std::string& name);
  /// From now on, over these nodes. Refused while jobs hold one.
  void reserve(const std::string& reservation, std::set<std::string> nodes);
  void end_reservation(const std::string& reservation);
  /// As REST does: a new one, or another node list of one that exists. Names that are no nodes are left out then.
  SlurmErrno create_reservation(const std::string& name, SimReservation wanted);
  SlurmErrno set_reservation_nodes(const std::string& name, const std::set<std::string>& nodes);
  SlurmErrno delete_reservation(const std::string& name);
  std::int64_t submit(JobRequest request);
  /// Sets the excluded nodes of a waiting job.
  SlurmErrno update_job(std::int64_t job, std::vector<std::string> excluded_nodes);
  bool suspend(std::int64_t job);
  bool resume(std::int64_t job);
  bool cancel(std::int64_t job);
  /// By whoever is not its user.
  SlurmErrno cancel_by(std::int64_t job, const std::string& user);
  /// `scontrol requeue incomplete`: of what neither runs nor is suspended nothing is made.
  SlurmErrno requeue(std::int64_t job, const std::string& user);
  void cancel_all();

  // What it knows. Base state and flags as Slurm writes them.
  [[nodiscard]] const std::map<std::string, SimNode>& nodes() const { return nodes_; }
  [[nodiscard]] const std::map<std::int64_t, SimJob>& jobs() const { return jobs_; }
  [[nodiscard]] const std::map<std::string, SimPartition>& partitions() const { return partitions_; }
  [[nodiscard]] const std::map<std::string, SimReservation>& reservations() const { return reservations_; }
  [[nodiscard]] const SimNode* node(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> state_words(const SimNode& node) const;
  /// RUNNING, SUSPENDED or COMPLETING jobs there.
  [[nodiscard]] std::vector<const SimJob*> jobs_on(std::string_view node) const;
  [[nodiscard]] bool busy(std::string_view node) const { return !jobs_on(node).empty(); }
  /// Its prolog has not ended.
  [[nodiscard]] bool in_prolog(const SimJob& job) const;
  /// Slurm would start jobs on it.
  [[nodiscard]] bool usable(const SimNode& node) const {
    return !node.down && !node.drain && !node.not_responding && !node.invalid_reg && !node.cloud;
  }

  /// When tables last changed, seconds of the wall clock.
  [[nodiscard]] std::int64_t nodes_changed() const { return nodes_changed_; }
  [[nodiscard]] std::int64_t jobs_changed() const { return jobs_changed_; }
  [[nodiscard]] std::int64_t partitions_changed() const { return partitions_changed_; }
  [[nodiscard]] std::int64_t now_seconds() const;
  [[nodiscard]] const SlurmOptions& options() const { return options_; }
  [[nodiscard]] bool release_at_least(int major, int minor, int micro = 0) const;

  /// Told when slurmctld came or went (""), or a slurmd found its place, or is refused one (its name).
  std::function<void(const std::string& node)> on_moved;
  /// Told of every change of a node's state by a client, for oracles: before it happens.
  std::function<void(const SimNode& node, const SimNodeUpdate& update, const std::string& user)> on_update;
  /// Told before a record is deleted by a client, with the jobs that hold it; or is lost with the state (by "").
  std::function<void(const SimNode& node, const std::vector<const SimJob*>& jobs, const std::string& user)> on_delete;
  /// Told of a record that a registration makes.
  std::function<void(const SimNode& node)> on_new;
  /// Told before a registration ends a DOWN (ReturnToService).
  std::function<void(const SimNode& node)> on_return;
  /// Told of every job that is lost, requeued or stranded, wherever that happens, once the job is in its new state.
  std::function<void(const SimJob& job, const JobLoss& loss)> on_job_loss;

 private:
  struct Loaded;
  enum class Registration {
    kAnswer,  ///< Asked for by slurmctld.
    kReload,  ///< slurmd began anew, under its jobs.
    kStart,   ///< A new process; its jobs went with the one before.
  };
  struct Slurmd {
    std::string conf, address, instance;
    std::uint64_t incarnation = 0;
    std::int64_t booted = 0;
    bool refused = false;     ///< slurmctld said success, but made no record; it does not try again.
    bool registered = false;  ///< Acknowledged since it started.
    SlurmKeys keys;
    /// The configuration that it has fetched: when it started, or when slurmctld told it to. Absent: none yet.
    std::optional<std::string> fetched;
    /// How long it takes to find slurmctld when that is there; absent: it never does, and tries on.
    std::optional<core::Duration> finds;
  };

  [[nodiscard]] core::Result<Loaded> load(const std::string& text) const;
  void put_in_force(Loaded loaded);
  void recompute_membership();
  void join_partitions(SimNode& node);
  /// When a node has come or gone, slurmctld looks again which partition has which: also those whose features are others since.
  void update_partitions(SimNode* joined);
  void register_slurmd(const std::string& name, std::uint64_t incarnation);
  void add_record(const std::string& name, Slurmd& slurmd);
  void renew_record(SimNode& node, Slurmd& slurmd, Registration kind);
  bool check_resources(SimNode& node);
  void drain_itself(SimNode& node, const std::string& reason);
  void fail_prolog(std::int64_t job, std::uint64_t turn);
  void forget_record(const std::string& name);
  void reload_all();
  [[nodiscard]] std::optional<core::Duration> way_to_slurmctld(const std::vector<std::string>& servers) const;
  void tend_reservations();
  void mark_reserved();
  void ask_again(const std::string& name);
  void watch_silence(const std::string& name);
  void set_down(SimNode& node, JobLoss::Cause cause, const std::string& by);
  void release_jobs(const std::string& node, JobLoss::Cause cause, const std::string& by);
  void doom_jobs(const std::string& node);
  void fail_job(SimJob& job, JobLoss::Cause cause);
  void lose_launches(JobLoss::Cause cause);
  void tell_loss(const SimJob& job, const JobLoss& loss) const {
    if (on_job_loss) on_job_loss(job, loss);
  }
  void schedule_soon();
  void schedule();
  bool try_start(SimJob& job);
  void run_out(std::int64_t id, std::uint64_t turn);
  void end_job(SimJob& job, SimJob::State state);
  void start_clock(SimJob& job);
  [[nodiscard]] int free_cpus(const SimNode& node) const;
  [[nodiscard]] bool completing(std::string_view node) const;
  void touch_nodes() { nodes_changed_ = now_seconds(); }
  void touch_jobs() { jobs_changed_ = now_seconds(); }
  void later(core::Duration delay, std::function<void()> call);
  void moved(const std::string& node) const {
    if (on_moved) on_moved(node);
  }

  core::Loop& loop_;
  core::Random& random_;
  ConfigSource config_;
  SlurmOptions options_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);

  bool up_ = false;
  core::MonoTime up_since_;
  std::string configuration_, cluster_name_;
  SlurmKeys keys_;
  int return_to_service_ = 0;
  std::size_t max_nodes_ = 0;
  core::Duration slurmd_timeout_{300000};
  std::map<std::string, std::string> node_sets_;  ///< NodeSet name -> feature.
  std::map<std::string, SimPartition> partitions_;
  bool features_moved_ = false;  ///< Since the partitions were last looked at.
  std::map<std::string, SimReservation> reservations_;
  std::uint64_t tended_ = 0;  ///< Old timers are told by it.

  std::map<std::string, SimNode> nodes_;
  std::map<std::int64_t, SimJob> jobs_;
  std::map<std::string, Slurmd> slurmds_;
  std::map<std::int64_t, std::uint64_t> turns_;    ///< Of a job: old timers are told by it.
  std::map<std::string, std::uint64_t> silences_;  ///< Of a node: old timers are told by it.
  std::int64_t last_job_ = 0;
  std::uint64_t last_incarnation_ = 0;
  bool scheduling_ = false;
  std::int64_t nodes_changed_ = 0, jobs_changed_ = 0, partitions_changed_ = 0;
};

}  // namespace sim
