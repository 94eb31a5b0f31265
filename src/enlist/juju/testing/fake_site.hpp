// A model of Juju with both charms on machines in memory, and of the Slurm cluster that the charms set up.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json.hpp"
#include "enlist/agent/plan.hpp"
#include "enlist/host/testing/fake_host.hpp"
#include "enlist/juju/program.hpp"
#include "enlist/juju/testing/fake_juju.hpp"
#include "enlist/rules/pool_file.hpp"

namespace enlist::juju::testing {

inline constexpr const char* kPoolPath = "/etc/slurm/slurm-enlist.conf";
inline constexpr const char* kKeyPath = "/etc/slurm/slurm.key";
inline constexpr const char* kSlurmConf =
    "ClusterName=c\nSlurmctldHost=ctl(10.0.0.1)\nSlurmctldHost=spare(10.0.0.2)\nAuthType=auth/slurm\n"
    "SlurmctldParameters=enable_configless\nMaxNodeCount=100\nInclude slurm-enlist.conf\n";

/// A job, or a task of an array job. `shown`: the id that squeue prints for a task, "11_3".
struct FakeJob {
  std::string state = "RUNNING";  ///< The state that squeue prints: COMPLETING, SUSPENDED, PENDING ...
  std::string partition = "slurmd";
  std::string node{};      ///< The node that the job holds; "": none.
  std::string required{};  ///< The nodes that the job asks for by name, as a hostlist.
  std::string shown{};
  bool stays = false;  ///< The job stays COMPLETING when it is cancelled, because its epilog does not end.
};

/// slurmctld with its nodes and jobs.
struct FakeSlurm {
  std::set<std::string> up{"ctl"};  ///< The hosts whose slurmctld answers.
  std::string loaded;               ///< The pool file with which slurmctld runs.
  std::string refuses;              ///< slurmctld refuses a file that contains this text.
  int starting = 0;                 ///< How many more calls of squeue show a job in its prolog.
  bool full = false;                ///< slurmctld refuses new nodes.
  bool loses_answer = false;        ///< slurmctld loads the file, and its answer is lost.
  bool loses_request = false;       ///< slurmctld does not load the file, and scontrol gets no answer.
  std::map<std::string, core::Json> nodes;
  std::map<int, FakeJob> jobs;
  std::vector<int> ended{};         ///< The jobs that slurmctld has ended because their partition or node was removed.
  std::vector<std::string> acts{};  ///< The changes in their order: "drain slurmd-0: REASON", "delete slurmd-0".
  std::string given_reason{};       ///< The reason of the last update.

  /// Registers a slurmd. If Slurm already has the node, ignores the registration and its settings.
  void add(const Launch& launch) {
    if (full || nodes.contains(launch.node)) return;
    core::Json partitions = core::Json::array();
    for (const auto& [name, pool] : pools()) {
      if (launch.conf.find("Features=" + name) != std::string::npos || launch.conf.find("," + name) != std::string::npos)
        partitions.push_back(name);
    }
    nodes[launch.node] = {
        {"name", launch.node}, {"instance_id", launch.instance}, {"partitions", partitions}, {"conf", launch.conf}};
    const std::size_t gate = launch.conf.find(" State=DRAIN Reason=\"");
    if (gate == std::string::npos) return set_state(launch.node, {"IDLE", "DYNAMIC_NORM"}, "");
    const std::string reason = launch.conf.substr(launch.conf.find('"', gate) + 1);
    set_state(launch.node, {"IDLE", "DRAIN", "DYNAMIC_NORM"}, reason.substr(0, reason.find('"')));
  }
  void load(const std::string& text) {
    loaded = text;
    const auto there = pools();
    end_jobs(
        [&](const FakeJob& job) { return job.partition.find(',') == std::string::npos && !there.contains(job.partition); });
  }
  template <class Which>
  void end_jobs(Which which) {
    std::erase_if(jobs, [&](const auto& entry) {
      if (which(entry.second)) ended.push_back(entry.first);
      return which(entry.second);
    });
  }
  void set_state(const std::string& node, const std::vector<std::string>& state, const std::string& reason) {
    nodes.at(node)["state"] = state;
    nodes.at(node)["reason"] = reason;
  }
  /// Sets the state of a node whose slurmd has not answered for SlurmdTimeout.
  void silence(const std::string& node, const std::string& reason = "Not responding") {
    std::vector<std::string> state{"DOWN", "NOT_RESPONDING", "DYNAMIC_NORM"};
    if (drains(node)) state.insert(state.begin() + 1, "DRAIN");
    set_state(node, state, reason);
  }
  [[nodiscard]] bool drains(const std::string& node) const {
    return core::Json(nodes.at(node).at("state")).dump().find("DRAIN") != std::string::npos;
  }
  /// Carries out `scontrol update NodeName=NODE KEY=VALUE...` Returns the exit code.
  int update(const std::string& node, std::map<std::string, std::string> words) {
    if (!nodes.contains(node)) return 1;
    given_reason = words["Reason"];
    if (const std::string state = words["State"]; !state.empty()) {
      const bool drain = state == "DRAIN";
      acts.push_back((drain ? "drain " : state + " ") + node + (drain ? ": " + words["Reason"] : ""));
      std::vector<std::string> now{"IDLE", "DYNAMIC_NORM"};
      if (drain) {
        now = nodes.at(node).at("state").get<std::vector<std::string>>();
        if (!drains(node)) now.insert(now.begin() + 1, "DRAIN");
      }
      set_state(node, now, drain ? words["Reason"] : "");
    } else {
      acts.push_back("features " + node + ": " + words["AvailableFeatures"] + " " + words["ActiveFeatures"]);
    }
    return 0;
  }
  int cancel(const std::vector<std::string>& words) {
    for (auto& [id, job] : jobs) {
      const std::string name = job.shown.empty() ? std::to_string(id) : job.shown;
      if (std::find(words.begin() + 1, words.end(), name) == words.end()) continue;
      acts.push_back("cancel " + name);
      job.state = job.stays ? "COMPLETING" : "CANCELLED";
    }
    return 0;
  }
  int remove(const std::string& node) {
    if (!nodes.contains(node)) return 1;
    // A node with a suspended job counts as idle, so Slurm would delete it.
    for (const auto& [id, job] : jobs) {
      if (job.node == node && job.state != "SUSPENDED") return 1;
    }
    end_jobs([&](const FakeJob& job) { return job.node == node || job.required.find(node) != std::string::npos; });
    acts.push_back("delete " + node);
    nodes.erase(node);
    return 0;
  }
  [[nodiscard]] std::string squeue(const std::vector<std::string>& words) const {
    std::string out;
    for (const auto& [id, job] : jobs) {
      bool shown = true;
      for (const std::string& word : words) {
        if (word.starts_with("--nodelist=")) shown &= word == "--nodelist=" + job.node;
        if (word.starts_with("--partition="))
          shown &= ("," + job.partition + ",").find("," + word.substr(12) + ",") != std::string::npos;
        if (word == "--states=PENDING") shown &= job.state == "PENDING";
      }
      const std::string name = job.shown.empty() ? std::to_string(id) : job.shown;
      if (shown) out += std::to_string(id) + "|" + name + "|" + job.state + "|" + job.partition + "|" + job.required + "\n";
    }
    return out;
  }
  [[nodiscard]] std::map<std::string, std::string> pools() const {
    std::map<std::string, std::string> out;
    for (std::size_t at = loaded.find("PartitionName="); at != std::string::npos; at = loaded.find("PartitionName=", at + 1)) {
      const std::string line = loaded.substr(at, loaded.find('\n', at) - at);
      out.emplace(line.substr(14, line.find(' ') - 14), line);
    }
    return out;
  }
};

/// A machine whose Slurm commands talk to a FakeSlurm.
class Machine final : public enlist::testing::FakeHost {
 public:
  explicit Machine(FakeSlurm& slurm) : slurm_(slurm) {
    programs["/usr/sbin/slurmd -V"] = programs["slurmctld -V"] = {0, "slurm 26.05.1\n", ""};
    programs["/usr/sbin/slurmd -C"] = {0, "NodeName=h CPUs=8 Boards=1 RealMemory=64000\nUpTime=1\n", ""};
    files["/proc/sys/kernel/hostname"] = {"h\n", 0444};
    files["/proc/sys/kernel/random/boot_id"] = {"b\n", 0444};
  }
  core::Result<Output> run(const std::vector<std::string>& words, std::chrono::milliseconds limit,
                           const std::string& input) override {
    std::string line;
    for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
    if (words.front() != "scontrol" && words.front() != "squeue" && words.front() != "scancel")
      return FakeHost::run(words, limit, input);
    ran.push_back(line);
    if (line == "scontrol ping") {
      Output out{slurm_.up.empty() ? 1 : 0, "", ""};
      for (const char* host : {"ctl", "spare"})
        out.out += std::string("Slurmctld(x) at ") + host + " is " + (slurm_.up.contains(host) ? "UP\n" : "DOWN\n");
      return out;
    }
    if (words[1] == "listjobs") return FakeHost::run(words, limit, input);
    if (!signs()) return Output{1, "", "scontrol: error: failed to connect to any sack sockets\n"};
    if (slurm_.up.empty()) return Output{1, "", "Unable to contact slurm controller (connect failure)\n"};
    if (line == "scontrol reconfigure") {
      const std::string& text = files[kPoolPath].first;
      if (!slurm_.refuses.empty() && text.find(slurm_.refuses) != std::string::npos)
        return Output{1, "", "slurm_reconfigure error:\tUnspecified error\n"};
      if (!slurm_.loses_request) slurm_.load(text);
      if (slurm_.loses_answer || slurm_.loses_request)
        return Output{1, "", "slurm_reconfigure error: Unable to contact slurm controller (receive failure)\n"};
      return Output{};
    }
    if (words.front() == "scancel") return Output{slurm_.cancel(words), "", ""};
    if (words[1] == "update") {
      std::map<std::string, std::string> settings;
      for (const std::string& word : words) settings[word.substr(0, word.find('='))] = value(word);
      return Output{slurm_.update(settings["NodeName"], settings), "", "slurm_update error\n"};
    }
    if (words[1] == "delete") return Output{slurm_.remove(value(words[2])), "", "Requested nodes are busy\n"};
    if (line.starts_with("squeue --all --noheader --format=%A|")) return Output{0, slurm_.squeue(words), ""};
    if (words.front() == "squeue") return Output{0, slurm_.starting-- > 0 ? "RUNNING Prolog\n" : "RUNNING None\n", ""};
    if (words[1] == "--all") {
      Output out;
      for (const auto& [name, partition] : slurm_.pools()) out.out += partition + "\n";
      return out;
    }
    core::Json nodes = core::Json::array();
    if (const auto found = slurm_.nodes.find(words.back()); found != slurm_.nodes.end()) nodes.push_back(found->second);
    return Output{0, core::Json{{"nodes", nodes}}.dump(), ""};
  }
  core::Result<void> remove(const std::filesystem::path& file) override {
    if (file == fixed) return core::fail(core::ErrorCode::kUnavailable, fixed + ": Read-only file system");
    return FakeHost::remove(file);
  }
  std::string fixed{};                                ///< A file that cannot be removed.
  std::function<bool()> signs = [] { return true; };  ///< Reports whether a daemon here signs the commands' requests.
  [[nodiscard]] int count(const std::string& line) const {
    int out = 0;
    for (const std::string& ran_line : ran) out += ran_line == line ? 1 : 0;
    return out;
  }

 private:
  static std::string value(const std::string& word) { return word.substr(word.find('=') + 1); }

  FakeSlurm& slurm_;
};

class FakeService final : public Service {
 public:
  explicit FakeService(FakeSlurm& slurm) : slurm_(slurm) {}
  core::Result<ServiceState> state() override { return now; }
  core::Result<void> start(const std::vector<std::string>& arguments) override {
    ++starts;
    if (!fails.empty()) return core::fail(core::ErrorCode::kUnavailable, fails);
    now = {.running = true, .error = {}, .changing = false, .arguments = arguments};
    if (!ends.empty()) now = {.running = false, .error = ends, .changing = false, .arguments = arguments};
    if (now.running) slurm_.add(launch_of(arguments));
    return {};
  }
  core::Result<void> prepare(const std::vector<std::string>&) override { return {}; }
  core::Result<void> reload() override {
    ++reloads;
    if (now.running) slurm_.add(launch_of(now.arguments.value()));
    return {};
  }
  core::Result<void> stop() override {
    ++stops;
    now.running = false;
    return {};
  }
  core::Result<void> uninstall() override {
    now = {};
    return {};
  }
  core::Result<std::vector<std::string>> steps() override { return there; }

  ServiceState now;
  std::string fails;  ///< start() fails with this error. "": it succeeds.
  std::string ends;   ///< slurmd ends with this error right after its start. "": slurmd runs.
  core::Result<std::vector<std::string>> there = std::vector<std::string>();  ///< The result of steps().
  int starts = 0, reloads = 0, stops = 0;

 private:
  FakeSlurm& slurm_;
};

struct FakeSite {
  struct Place {
    explicit Place(FakeSlurm& slurm) : machine(slurm), slurmd(slurm) {}
    Machine machine;
    FakeService slurmd;
  };

  FakeSite() {
    juju.dispatch = [this](const std::string& unit, const FakeJuju::Environment& environment, HookTools& tools) {
      Place& place = at(unit);
      const CharmParts parts{.host = place.machine,
                             .tools = tools,
                             .slurmd = place.slurmd,
                             .pause =
                                 [this, unit](auto time) {
                                   paused += time;
                                   if (on_pause) on_pause(unit);
                                 },
                             .now = [this] { return core::MonoTime{paused}; }};
      const int code = run_charm(charms.at(unit.substr(0, unit.find('/'))), environment, parts,
                                 [this](std::string_view text) { said += text; });
      if (after) after(unit, environment.at("JUJU_DISPATCH_PATH"));
      return code;
    };
    juju.read_file = [this](const std::string& unit, const std::filesystem::path& file) {
      return at(unit).machine.files.at(file).first;
    };
  }
  Place& at(const std::string& unit) {
    auto& place = places[unit];
    if (!place) {
      place = std::make_unique<Place>(slurm);
      if (charms.at(unit.substr(0, unit.find('/'))) == "slurmd")
        place->machine.signs = [&slurmd = place->slurmd] { return slurmd.now.running; };
      if (charms.at(unit.substr(0, unit.find('/'))) == "slurmctld") {
        place->machine.files["/etc/slurm/slurm.conf"] = {kSlurmConf, 0644};
        place->machine.files[kKeyPath] = {key, 0600};
        place->machine.files[kPoolPath] = {pool_file({}), 0644};
        if (slurm.loaded.empty()) slurm.loaded = pool_file({});
      }
    }
    return *place;
  }
  void deploy(const std::string& app, const std::string& charm, int count = 1) {
    charms[app] = charm;
    juju.deploy(app, count);
  }
  std::string integrate(const std::string& compute, const std::string& controller = "slurmctld") {
    return juju.integrate(compute, "slurmctld", controller, "slurmd");
  }
  /// Deploys slurmctld and slurmd, with one unit each.
  void deploy_both() {
    deploy("slurmctld", "slurmctld");
    deploy("slurmd", "slurmd");
  }
  /// Deploys slurmctld and slurmd, and integrates them.
  void begin() {
    deploy_both();
    integrate("slurmd");
  }
  [[nodiscard]] std::string pools(const std::string& unit = "slurmctld/0") { return at(unit).machine.files[kPoolPath].first; }
  [[nodiscard]] int reconfigures() { return at("slurmctld/0").machine.count("scontrol reconfigure"); }
  [[nodiscard]] std::string message(const std::string& unit) { return juju.statuses.at(unit).message; }
  [[nodiscard]] Launch launch(const std::string& unit) { return launch_of(at(unit).slurmd.now.arguments.value()); }

  std::string key = std::string("k\0\xff", 3) + "ey";  ///< Binary, like a key of Slurm.
  FakeSlurm slurm;
  FakeJuju juju;
  std::map<std::string, std::string> charms;  ///< The charm of each application.
  std::map<std::string, std::unique_ptr<Place>> places;
  std::chrono::milliseconds paused{0};
  std::string said;
  std::function<void(const std::string& unit, const std::string& hook)> after;  ///< Called after each hook.
  std::function<void(const std::string& unit)> on_pause;                        ///< Called while a hook waits.
};

}  // namespace enlist::juju::testing
