// A model of slurmctld and its slurmds, as far as an operator can see them: registration, states, jobs, configuration. The
// model of their REST API is sim/slurm/rest.hpp.
//
//   sim::SimSlurm slurm(loop, random, [&] { return projected_slurm_conf; });
//   slurm.start();
//   slurm.start_slurmd("cpu-0", "Features=cpu");       // -Z --conf
//   slurm.submit({.user = "alice", .partition = "cpu", .duration = 60s});
//
// Every rule here was observed on a real Slurm (24.11.5, 25.11, 26.05.5) unless its comment says otherwise.
// tests/conformance/slurm/README.md lists the tests of each rule. Not modelled: accounting, topology, backfill, power saving,
// jobs in reservations, the features that a user's job needs, and the refusal of a user's job that needs more memory than any
// node has.
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
  core::Duration registration{150};        ///< The time from slurmd's start, with slurmctld up, to its record.
  core::Duration answer{600};              ///< How long UNDRAIN, RESUME and IDLE leave a node NOT_RESPONDING.
  core::Duration scheduling{200};          ///< The time from a change to the start of jobs.
  core::Duration requeue_delay{20000};     ///< The time until BeginTime of a requeued job (real: 120 s).
  core::Duration slurmd_timeout{300000};   ///< SlurmdTimeout, unless the configuration sets it.
  core::Duration config_retry{10000};      ///< The time until slurmd tries again after it found no slurmctld.
  core::Duration reload{300};              ///< The time from a reconfigure to the registrations of all slurmds.
  core::Duration reservation{3000};        ///< The time from the start of a reservation to the flag RESERVED of its nodes.
  core::Duration failover{2000};           ///< The time slurmd needs for a host of --conf-server that does not answer.
  std::string listens = "slurmctld:6817";  ///< The address of this slurmctld for --conf-server.
  int cpus = 4;                            ///< The CPUs of a node, unless its --conf sets them.
  /// A node record keeps the instance id of its first registration (seen with 26.05.5).
  bool keeps_instance = false;
  /// If set, accounting is enforced, and a job with another account or QOS is refused.
  std::optional<std::set<std::string>> accounts{}, qos{};
  std::int64_t memory = 24000;  ///< A machine's memory in MiB, unless set_memory changes it. Machines have no GRES.
};

/// The error numbers of Slurm that this model returns.
enum class SlurmErrno : int {
  kSuccess = 0,
  kUnspecified = -1,
  kInvalidArgument = 22,
  kNoController = 1800,
  kInvalidPartition = 2000,
  kAccessDenied = 2002,
  kScriptMissing = 2009,
  kNodeConfiguration = 2014,
  kPartitionConfiguration = 2015,
  kBusy = 2016,
  kInvalidJob = 2017,
  kInvalidNode = 2018,
  kInvalidState = 2028,
  kAlreadyDone = 2021,
  kInvalidFeature = 2029,
  kActiveFeatures = 2031,
  kNotSupported = 2036,
  kDisabled = 2037,
  kBatchOnly = 2039,
  kJobHeld = 2042,
  kInvalidAccount = 2045,
  kInvalidReservation = 2053,
  kInvalidTime = 2054,
  kInvalidQos = 2066,
  kNodeNotAvailable = 2068,
  kPartitionNotAvailable = 2070,
  kInvalidGres = 2072,
  kJobNotPending = 2073,
  kJobFinished = 2084,
  kReservationStarted = 2104,
  kNodeExists = 2168,
  kNodeTableFull = 2169,
  kInvalidTransition = 2180,
  kInvalidExternalJob = 2189,
};

/// The keys of auth/slurm that a daemon has, by their kid as in slurm.jwks; or only the key in slurm.key, which has no kid.
struct SlurmKeys {
  std::vector<std::string> kids{"slurm.key"};
  std::string use_default{};                   ///< The kid of the key that signs; "": the first.
  std::map<std::string, std::string> bytes{};  ///< The keys by kid, if known. Two daemons can have different keys with one kid.
  bool alone = false;                          ///< The daemon has only slurm.key. `kids` contains the content of that file.
  [[nodiscard]] const std::string& signs() const { return use_default.empty() ? kids.front() : use_default; }
  /// Reports whether this daemon can verify a message of `sender`. The daemon uses its key with the message's kid. If the
  /// message has no kid, it uses the key with which it signs messages. A daemon with only slurm.key ignores kids.
  [[nodiscard]] bool accept(const SlurmKeys& sender) const;

 private:
  [[nodiscard]] const std::string& key(const std::string& kid) const;
};

struct SimNode {
  std::string name, address, hostname, reason, reason_user, comment, extra, instance_id, gres;
  std::string reservation;                     ///< The active reservation of the node; "": none.
  bool maintenance = false;                    ///< The reservation has MAINT.
  std::optional<core::MonoTime> maintained{};  ///< When a reservation with MAINT was last active.
  std::vector<std::string> features, active_features;
  /// The node's partitions. Recomputed when a node is added or removed, and by a reconfigure; not when features change.
  std::set<std::string> partitions;
  bool down = false;
  bool drain = false;
  std::optional<core::MonoTime> own_drain{};  ///< When slurmctld itself drained the node. Not set if it was drained before.
  bool not_responding = false;
  bool invalid_reg = false;
  bool cloud = false;  ///< Created by hand with State=CLOUD: powered down, and never powered up here.
  /// Created by hand with State=EXTERNAL: it has no slurmd, is in service at once, and takes external jobs only.
  bool external = false;
  int cpus = 4;
  int cores = 4;  ///< Cores per socket. A node has one socket, and a core has one thread.
  int weight = 1;
  int conf_weight = 1;  ///< The weight from --conf, to which a reconfigure returns.
  std::int64_t real_memory = 1000;
  core::MonoTime made{};           ///< When the record was created.
  std::int64_t registered_at = 0;  ///< When its slurmd last registered after a start: seconds, wall clock.
  std::int64_t reason_at = 0;      ///< When the reason was set: seconds, wall clock.
  std::int64_t heard_of = 0;       ///< The last registration or end of its slurmd, or RESUME: seconds, wall clock.
};

struct SimReservation {
  std::set<std::string> nodes;
  std::string users = "root";
  std::set<std::string> flags{};    ///< SPEC_NODES is implied.
  std::int64_t start = 0, end = 0;  ///< Seconds, wall clock. If it recurs: of the current or next occurrence.
  /// Returns the seconds between two occurrences; 0 if the reservation does not recur.
  [[nodiscard]] std::int64_t period() const;
};

/// Represents, in a job's name, a byte that JSON does not allow. Slurm passes such bytes on unchanged.
inline constexpr char kOddByte = '\x1a';

struct JobRequest {
  std::string user = "user";
  std::string partition{};  ///< "": the default partition, or the first one.
  int nodes = 1;
  core::Duration duration{60000};
  bool exclusive = false;  ///< Without this, the job takes tasks_per_node * cpus_per_task CPUs of each node.
  int tasks_per_node = 1, cpus_per_task = 1;
  std::int64_t memory = 1;  ///< MiB on each node; 0: all of the node's memory, as for a job that requests none.
  bool requeue = true;
  std::vector<std::string> required_nodes{};
  std::optional<core::Duration> limit{};  ///< The time limit; nullopt: none.
  std::string name = "wrap";              ///< kOddByte stands for a byte that is not UTF-8.
  bool prolog_fails = false, epilog_fails = false;
  core::Duration prolog{0};  ///< The duration of the prolog. The launch waits for it (PrologFlags=Alloc,DeferBatch).
  std::string admin_comment{};
  bool external = false;  ///< EXTERNAL_JOB: it has no script, and runs until its time limit or until somebody ends it.
  std::vector<std::string> excluded_nodes{};
  // The following members are used by external jobs only.
  std::string account{}, qos{}, comment{}, mcs_label{}, constraints{};  ///< Constraints: features, joined by "&".
  std::string tres_per_node{};                                          ///< "gres/gpu:2".
  bool held = false;                                                    ///< Priority 0.
  /// Returns the number of CPUs that the job takes of each node. Does not consider `exclusive`.
  [[nodiscard]] int cpus() const { return tasks_per_node * cpus_per_task; }
  /// Returns the numbers in tres_per_node, by name.
  [[nodiscard]] std::map<std::string, int> gres() const;
};

/// A change to a job by REST. Only members that are set are changed.
struct JobUpdate {
  std::optional<std::vector<std::string>> excluded_nodes{};
  std::optional<std::string> comment{}, admin_comment{};
  std::optional<core::Duration> limit{};
  std::optional<bool> held{};
};

struct SimJob {
  enum class State { kPending, kRunning, kSuspended, kCompleted, kCancelled, kNodeFail, kTimeout, kPreempted, kFailed };
  std::int64_t id = 0;
  JobRequest request;
  State state = State::kPending;
  bool completing = false;
  std::vector<std::string> nodes;
  core::Duration left{0};           ///< The time that it still had to run when it last started or was suspended.
  core::MonoTime resumed_at;        ///< When it last began to run.
  core::MonoTime not_before;        ///< The earliest start of a requeued job.
  std::int64_t start = 0, end = 0;  ///< Seconds, wall clock; 0: not yet.
  int restarts = 0;
  core::MonoTime submitted;
  std::int64_t submitted_at = 0;  ///< Seconds, wall clock.
  core::MonoTime started;         ///< When it was last given its nodes.
  core::MonoTime prolog_until;    ///< When its prolog ends or ended.
  bool unlaunched = false;        ///< slurmctld lost the launch: the job never runs.
  bool doomed = false;            ///< Its processes do not exist, or ended with a slurmd, but Slurm does not know this yet.
  // Mainly used by external jobs. For other jobs, the scheduler does not record why they wait.
  std::string reason = "None", description{};  ///< Why it waits or has ended, as Slurm spells it.
  std::string failed_node{};
  std::int64_t preempted = 0;  ///< When its grace time began, in seconds of the wall clock; 0: never.
  bool excludes_none = false;  ///< An update of the job failed, and slurmctld dropped its list of excluded nodes.
  [[nodiscard]] bool ended() const {
    return state != State::kPending && state != State::kRunning && state != State::kSuspended && !completing;
  }
  [[nodiscard]] bool holds(std::string_view node) const;
};
std::string_view to_string(SimJob::State state);

/// A job that neither ran to its end nor was ended by its user.
struct JobLoss {
  enum class What {
    kLost,      ///< The job has failed.
    kRequeued,  ///< The job starts again from the beginning, if at all.
    kStranded,  ///< Slurm considers it running or suspended, but it never ends by itself: its processes are gone or
                ///< unreachable.
  };
  enum class Cause {
    kDown,           ///< `by` set its node DOWN.
    kSilence,        ///< slurmctld had no answer from its node for SlurmdTimeout.
    kOtherKey,       ///< slurmctld had no answer from its node for SlurmdTimeout, because the slurmd has other keys.
    kSlurmdEnded,    ///< slurmd ended, together with all processes.
    kSlurmdBegan,    ///< A new slurmd process registered for the node on which the job ran.
    kNoSlurmd,       ///< It was started on a node without a registered slurmd.
    kPartitionGone,  ///< Its partition disappeared from the configuration, at a start or reconfigure.
    kNodeGone,       ///< A node that it requires by name was missing at a start or reconfigure. Running jobs fail too.
    kStateLost,      ///< slurmctld's volume was lost.
    kRecordGone,     ///< `by` deleted its node while it was suspended.
    kProlog,         ///< Its prolog failed.
    kRequeued,       ///< `by` requeued it.
    kCancelled,      ///< `by`, who is not its user, cancelled it.
    kReconfigured,   ///< A reconfigure of slurmctld during its prolog lost the launch (before 26.11).
    kRestarted,      ///< A restart of slurmctld during its prolog lost the launch.
    kPreempted,      ///< A job of a higher priority took its nodes.
  };
  What what = What::kLost;
  Cause cause = Cause::kDown;
  std::string node{}, by{};
  bool pending = false;  ///< The job had not started.
  bool told = false;     ///< The job was already reported as stranded.
};
std::string_view to_string(JobLoss::What what);
std::string_view to_string(JobLoss::Cause cause);

struct SimPartition {
  std::string name;
  std::string nodes_expression;    ///< The value of Nodes=: names of NodeSets, ALL, or a hostlist.
  std::vector<std::string> words;  ///< The expression's parts: names of nodes and NodeSets, or ALL.
  std::set<std::string> members;
  bool hidden = false, root_only = false, is_default = false;
  std::string state = "UP";
};

/// A change to a node by REST or scontrol.
struct SimNodeUpdate {
  std::optional<std::string> state{}, reason{}, comment{}, extra{}, gres{};
  std::optional<std::vector<std::string>> features{}, active_features{};
  std::optional<int> weight{};
};

class SimSlurm {
 public:
  /// Returns the slurm.conf in slurmctld's /etc/slurm, as the kubelet projected it.
  using ConfigSource = std::function<std::string()>;

  SimSlurm(core::Loop& loop, core::Random& random, ConfigSource config, SlurmOptions options = {});
  ~SimSlurm();
  SimSlurm(const SimSlurm&) = delete;
  SimSlurm& operator=(const SimSlurm&) = delete;

  // --- slurmctld ---
  /// Starts slurmctld, which reads the configuration and the saved state. Error: kInvalid with the reason if it ends at once.
  core::Result<void> start();
  /// Ends slurmctld, as a signal or a crash does. Its state stays on the volume, and jobs continue.
  void stop();
  /// Ends slurmctld as SIGKILL does before slurmctld has saved its last changes. Restores the node records that were deleted in
  /// the last `unsaved`, but without a drain that the user slurm set in that time. Drops the records that slurmds created in
  /// that time, unless jobs are on them. All other state counts as saved. (SAVE_MAX_WAIT in slurmctld's state_save.c: 5 s.)
  void kill(core::Duration unsaved);
  /// Removes the volume, so that slurmctld forgets nodes and jobs, and numbers jobs from 1 again. Call this only while
  /// slurmctld is down.
  void lose_state();
  [[nodiscard]] bool up() const { return up_; }
  /// Returns when slurmctld last came up.
  [[nodiscard]] core::MonoTime up_since() const { return up_since_; }
  /// Replaces the process by a new process, which loads the configuration. After an error, old process and configuration stay.
  SlurmErrno reconfigure();
  /// Returns the text of the configuration in force.
  [[nodiscard]] const std::string& configuration() const { return configuration_; }
  [[nodiscard]] std::string cluster_name() const { return cluster_name_; }
  /// Returns the content of the key file of slurmctld ("") or of a slurmd (its name). Both daemons read it at their start and
  /// at every reconfigure, slurmd also after a SIGHUP. By default, all daemons have the same key.
  std::function<SlurmKeys(const std::string& name)> key_file = [](const std::string&) { return SlurmKeys{}; };
  /// Returns the HTTP status of a probe's GET to slurmctld ("") or to a slurmd; 0 without an answer, as always before 25.11.
  [[nodiscard]] int http_status(const std::string& name, std::string_view path) const;

  // --- slurmd: names are the names of the Slurm nodes ---
  /// Runs `slurmd -Z --conf CONF`. Returns false if slurmd ends at once (unknown keys, NodeName). `conf_server` is
  /// "HOST:PORT,...", or "" for this slurmctld. If it names a host twice, slurmd finds no slurmctld. `booted` is the time at
  /// which the machine of the slurmd started, in seconds of the wall clock.
  bool start_slurmd(const std::string& name, const std::string& conf, const std::string& address = "10.0.0.1",
                    const std::string& instance = "", const std::string& conf_server = "", std::int64_t booted = 0);
  /// Sends SIGHUP: slurmd restarts while its jobs continue, and registers, even if its record was deleted or refused.
  void reload_slurmd(const std::string& name);
  /// Sets the memory in MiB that slurmds report from their next registrations on.
  void set_memory(std::int64_t memory) { options_.memory = memory; }
  /// Ends the slurmd with all of its jobs, as the end of its container or of its machine does. The record stays.
  void stop_slurmd(const std::string& name);
  /// Ends only the slurmd. Its jobs go on, as on a host where slurmstepd outlives slurmd. The next slurmd of this name finds
  /// these jobs.
  void end_slurmd(const std::string& name);
  /// Cuts the slurmd off from slurmctld, or connects it again. Use it also for a slurmd that hangs. A new slurmd of this name
  /// is connected.
  void cut_slurmd(const std::string& name, bool cut);
  /// Loses the registrations that are under way: slurmctld has answered the slurmds, and creates no records.
  void lose_registrations();
  [[nodiscard]] bool slurmd_runs(const std::string& name) const { return slurmds_.contains(name); }
  /// Reports whether the slurmd has a connection to slurmctld, and each of the two accepts the messages of the other.
  [[nodiscard]] bool hears(const std::string& name) const;
  /// Reports whether the slurmd runs and has a connection to slurmctld.
  [[nodiscard]] bool reached(const std::string& name) const;
  /// Returns the slurmds that slurmctld knows and whose configuration differs from slurmctld's. slurmctld sends a new
  /// configuration only to slurmds that have registered before.
  [[nodiscard]] std::vector<std::string> outdated() const;
  /// Reports whether the slurmd runs and slurmctld has answered its registration, even if slurmctld created no record.
  [[nodiscard]] bool slurmd_ready(const std::string& name) const;

  // --- Requests of clients: kNoController while slurmctld is down ---
  SlurmErrno update_node(const std::string& name, const SimNodeUpdate& update, const std::string& user = "slurm");
  SlurmErrno delete_node(const std::string& name, const std::string& user = "slurm");
  /// Creates a node with State=CLOUD and no slurmd. Before 26.05, a refusal with kNodeExists deletes that node if it is idle.
  SlurmErrno create_node(const std::string& name);
  /// Creates the node of a line "NodeName=... State=CLOUD ...", or State=EXTERNAL (25.05 and later). If the name exists, does
  /// the same as create_node(). Returns kUnspecified if the line cannot be read.
  SlurmErrno create_nodes(const std::string& line);
  /// Reserves the nodes from now on. Does nothing while a job holds one of them.
  void reserve(const std::string& reservation, std::set<std::string> nodes);
  void end_reservation(const std::string& reservation);
  /// Creates a reservation as REST does. The reservation must not exist yet.
  SlurmErrno create_reservation(const std::string& name, SimReservation wanted);
  /// Replaces the nodes of an existing reservation as REST does. Ignores names of unknown nodes.
  SlurmErrno set_reservation_nodes(const std::string& name, const std::set<std::string>& nodes);
  SlurmErrno delete_reservation(const std::string& name);
  std::int64_t submit(JobRequest request);
  struct Submission {
    std::int64_t id = 0;                      ///< 0: refused.
    SlurmErrno error = SlurmErrno::kSuccess;  ///< For an accepted job: why it waits, which Slurm reports as a warning.
  };
  /// Submits an external job. A job that no node can ever run is refused, but is still listed as FAILED.
  Submission submit_external(JobRequest request);
  /// Changes a job that has not ended. Excluded nodes can only be changed while it waits.
  SlurmErrno update_job(std::int64_t job, const JobUpdate& update);
  /// Preempts a running job for a job of a higher priority, with PreemptMode=CANCEL. If there is a grace time, the job
  /// continues for that time, and shows it in preempt_time and end_time. Returns false if the job does not run.
  bool preempt(std::int64_t job, core::Duration grace = core::Duration{0});
  bool suspend(std::int64_t job);
  bool resume(std::int64_t job);
  bool cancel(std::int64_t job);
  /// Cancels a job on behalf of another user.
  SlurmErrno cancel_by(std::int64_t job, const std::string& user);
  /// Acts like `scontrol requeue incomplete`: only on a running or suspended job. kDisabled: the job must not be requeued.
  SlurmErrno requeue(std::int64_t job, const std::string& user);
  void cancel_all();

  // --- State: base states and flags as Slurm writes them ---
  [[nodiscard]] const std::map<std::string, SimNode>& nodes() const { return nodes_; }
  [[nodiscard]] const std::map<std::int64_t, SimJob>& jobs() const { return jobs_; }
  [[nodiscard]] const std::map<std::string, SimPartition>& partitions() const { return partitions_; }
  [[nodiscard]] const std::map<std::string, SimReservation>& reservations() const { return reservations_; }
  [[nodiscard]] const SimNode* node(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> state_words(const SimNode& node) const;
  /// Returns the RUNNING, SUSPENDED and COMPLETING jobs of the node.
  [[nodiscard]] std::vector<const SimJob*> jobs_on(std::string_view node) const;
  [[nodiscard]] bool busy(std::string_view node) const { return !jobs_on(node).empty(); }
  /// Reports whether the job's prolog has not ended.
  [[nodiscard]] bool in_prolog(const SimJob& job) const;
  /// Reports whether Slurm would start jobs on the node.
  [[nodiscard]] bool usable(const SimNode& node) const {
    return !node.down && !node.drain && !node.not_responding && !node.invalid_reg && !node.cloud;
  }

  /// Return when the tables last changed, in seconds of the wall clock.
  [[nodiscard]] std::int64_t nodes_changed() const { return nodes_changed_; }
  [[nodiscard]] std::int64_t jobs_changed() const { return jobs_changed_; }
  [[nodiscard]] std::int64_t partitions_changed() const { return partitions_changed_; }
  [[nodiscard]] std::int64_t now_seconds() const;
  [[nodiscard]] const SlurmOptions& options() const { return options_; }
  [[nodiscard]] bool release_at_least(int major, int minor, int micro = 0) const;

  /// Called when slurmctld has started or ended (`node` is ""), or has accepted or refused a slurmd.
  std::function<void(const std::string& node)> on_moved;
  /// Called before a client changes a node, for oracles.
  std::function<void(const SimNode& node, const SimNodeUpdate& update, const std::string& user)> on_update;
  /// Called before a record is deleted by a client, with the jobs that hold it, or is lost with the state (`user` is "").
  std::function<void(const SimNode& node, const std::vector<const SimJob*>& jobs, const std::string& user)> on_delete;
  /// Called for a record that a registration creates.
  std::function<void(const SimNode& node)> on_new;
  /// Called before a registration ends a DOWN (ReturnToService).
  std::function<void(const SimNode& node)> on_return;
  /// Called for every job that is lost, requeued or stranded, for any cause, once the job is in its new state.
  std::function<void(const SimJob& job, const JobLoss& loss)> on_job_loss;

 private:
  struct Loaded;
  enum class Registration {
    kAnswer,  ///< slurmctld asked a running slurmd to register.
    kReload,  ///< slurmd restarted while its jobs continue.
    kStart,   ///< A new process. The jobs of the previous one are gone.
  };
  struct Slurmd {
    std::string conf, address, instance;
    std::uint64_t incarnation = 0;
    std::int64_t booted = 0;
    bool refused = false;     ///< slurmctld answered with success, but created no record; slurmd does not retry.
    bool registered = false;  ///< slurmctld has accepted its registration since its start.
    bool away = false;        ///< The slurmd is cut off from slurmctld.
    bool finds_jobs = false;  ///< Jobs of the previous slurmd of this name still run.
    SlurmKeys keys;
    /// The configuration that slurmd fetched at its start, or received from slurmctld later; nullopt: none yet.
    std::optional<std::string> fetched;
    /// The time that slurmd takes to find a slurmctld that is up; nullopt: it never finds one, and keeps trying.
    std::optional<core::Duration> finds;
  };

  [[nodiscard]] core::Result<Loaded> load(const std::string& text) const;
  void put_in_force(Loaded loaded);
  void recompute_membership();
  void join_partitions(SimNode& node);
  /// Updates the partitions after a node was added (`joined`) or removed (null), as slurmctld does: for all nodes if features
  /// have changed since the last time, else for the added node only.
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
  void await_answer(SimNode& node);
  void lose_external_nodes(const SimJob& job);
  void set_down(SimNode& node, JobLoss::Cause cause, const std::string& by);
  /// Ends the jobs of the node. `external`: whether to end external jobs too, which the start of a new slurmd does not end.
  /// `doomed_only`: ends only jobs with SimJob::doomed.
  void release_jobs(const std::string& node, JobLoss::Cause cause, const std::string& by, bool external = true,
                    bool doomed_only = false);
  void doom_jobs(const std::string& node);
  void fail_job(SimJob& job, JobLoss::Cause cause);
  void lose_launches(JobLoss::Cause cause);
  void tell_loss(const SimJob& job, const JobLoss& loss) const {
    if (on_job_loss) on_job_loss(job, loss);
  }
  void schedule_soon();
  void schedule();
  bool try_start(SimJob& job);
  [[nodiscard]] bool may_use(const SimJob& job, const SimNode& node) const;
  [[nodiscard]] SlurmErrno prospects(const SimJob& job) const;
  void tell_why(SimJob& job, SlurmErrno why, bool first);
  void run_out(std::int64_t id, std::uint64_t turn);
  void end_job(SimJob& job, SimJob::State state);
  void start_clock(SimJob& job);
  [[nodiscard]] int free_cpus(const SimNode& node) const;
  [[nodiscard]] bool has_free(const SimNode& node, const JobRequest& request) const;
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
  std::map<std::string, std::string> node_sets_;  ///< Maps a NodeSet to its feature.
  std::set<std::string> gres_types_;              ///< The names in GresTypes.
  std::map<std::string, SimPartition> partitions_;
  bool features_moved_ = false;  ///< Features have changed since the partitions were last computed.
  std::map<std::string, SimReservation> reservations_;
  std::uint64_t tended_ = 0;  ///< A number that invalidates older timers.

  std::map<std::string, SimNode> nodes_;
  std::map<std::int64_t, SimJob> jobs_;
  /// Maps a node to the jobs that started there. Some of these jobs possibly have left the node or the list of jobs. Makes
  /// jobs_on() fast with thousands of jobs.
  std::map<std::string, std::set<std::int64_t>, std::less<>> given_;
  std::map<std::string, Slurmd> slurmds_;
  std::set<std::string> left_jobs_;                ///< The slurmds that have ended, but whose jobs still run.
  std::map<std::int64_t, std::uint64_t> turns_;    ///< Maps a job to a number that invalidates older timers.
  std::map<std::string, std::uint64_t> silences_;  ///< Maps a node to a number that invalidates older timers.
  std::int64_t last_job_ = 0;
  std::uint64_t last_incarnation_ = 0;
  std::vector<std::pair<core::MonoTime, SimNode>> deleted_;  ///< The records that clients deleted lately, for kill().
  bool scheduling_ = false;
  std::int64_t nodes_changed_ = 0, jobs_changed_ = 0, partitions_changed_ = 0;
};

}  // namespace sim
