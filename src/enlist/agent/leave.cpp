#include "enlist/agent/leave.hpp"

#include <string>

#include "core/hash.hpp"
#include "enlist/agent/memory_file.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/rules/leave.hpp"
#include "enlist/rules/service_files.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;

constexpr core::Duration kShowAgain{200};
constexpr core::Duration kAskLimit{20000};
/// The status file may stay unchanged for this long before a warning. A running agent changes it as soon as the leave begins.
constexpr core::Duration kQuiet{10000};

class Leave {
 public:
  Leave(const LeaveOptions& options, const JoinParts& parts) : options_(options), parts_(parts) {}

  int run() {
    const fs::path folder = options_.agent.state;
    const auto memory = read_memory(parts_.host, folder);
    if (!memory && memory.error().code == core::ErrorCode::kNotFound) return failed("this host has not joined a pool");
    if (!memory) return failed(memory.error().message);
    // Without host.key, parts_.identity would make a new key, which the coordinator does not know.
    if (const auto key = parts_.host.read(folder / "host.key"); !key) return failed(key.error().message);
    const auto identity = parts_.identity(folder, "host");
    if (!identity) return failed(identity.error().message);
    const net::Endpoint endpoint{
        .scheme = "https",
        .host = memory->host,
        .port = memory->port,
        .tls = {.cert_pem = identity->cert_pem, .key_pem = identity->key_pem, .pinned_key = memory->coordinator}};
    const auto reply = parts_.send(endpoint, {.method = "POST",
                                              .target = "/v1/leave",
                                              .headers = {{"content-type", "application/json"}},
                                              .body = "{}",
                                              .timeout = kAskLimit});
    const std::string where = "the coordinator at " + memory->host + ":" + std::to_string(memory->port) + ": ";
    if (!reply) return failed(where + reply.error().message);
    if (reply->status != 200) {
      const auto body = core::parse_json(reply->body);
      const std::string said = body ? core::get_string(*body, {"error"}) : "";
      if (said.starts_with("this host is not known here"))
        return failed(where + "this host is not known here, and may have been removed" + by_hand(*memory));
      return failed(where + (said.empty() ? "HTTP status " + std::to_string(reply->status) : said));
    }
    say("Node " + memory->node + " leaves. You can interrupt this command: the host continues to leave.");
    return wait();
  }

 private:
  /// Returns the commands with which a person cleans up this host without its agent: they name the files of this program.
  std::string by_hand(const Memory& memory) {
    const AgentOptions& agent = options_.agent;
    const auto service = [](const std::string& unit) { return " " + fs::path(unit).filename().string(); };
    std::string services, files;
    for (const std::string& file : {agent.agent_unit, agent.slurmd_unit, agent.slurmd_defaults}) {
      const auto text = parts_.host.read(file);
      if (!text || !text->starts_with(kFileMark)) continue;
      files += " " + file;
      if (file != agent.slurmd_defaults) services += service(file);
    }
    for (const std::string_view name : {kPlainKeyFile, kJwksFile}) {
      const fs::path file = fs::path(agent.slurm_folder) / name;
      const auto text = parts_.host.read(file);
      if (text && wrote(memory, name, core::sha256_hex(*text))) files += " " + file.string();
    }
    return ". When no job runs here, clean it up by hand:\n" +
           (services.empty() ? "  end slurmd and the agent\n" : "  systemctl disable --now" + services + "\n") +
           (files.empty() ? "" : "  rm" + files + "\n") + "  rm -r " + agent.state +
           "\n  systemctl daemon-reload\nIf Slurm still has the node, on the controller:\n  scontrol delete NodeName=" +
           memory.node;
  }

  int wait() {
    const core::MonoTime began = parts_.now();
    quiet_since_ = began;
    std::string shown;
    bool leaving = false;
    while (!options_.wait || parts_.now() - began < *options_.wait) {
      // The agent removes agent.json only at the end of the leave.
      if (const auto memory = read_memory(parts_.host, options_.agent.state);
          !memory && memory.error().code == core::ErrorCode::kNotFound) {
        say("This host has left.");
        return 0;
      }
      show(shown, leaving);
      warn_of_agent(leaving);
      if (leaving && stays_) return failed("the node stays: the request was cancelled");
      parts_.sleep(kShowAgain);
    }
    if (options_.wait->count() == 0) return 0;
    return failed("the host has not left after " + std::to_string(options_.wait->count()) + " s. It continues to leave.");
  }

  void show(std::string& shown, bool& leaving) {
    const auto text = parts_.host.read(options_.agent.status_file);
    if (const std::string now = text.value_or(""); now != status_) {
      status_ = now;
      quiet_since_ = parts_.now();
    }
    const auto status = text ? core::parse_json(*text) : core::Result<core::Json>(core::Json::object());
    if (!status) return;
    const std::string phase = core::get_string(*status, {"phase"}), message = core::get_string(*status, {"message"}),
                      error = core::get_string(*status, {"error"});
    std::string line = phase + (message.empty() ? "" : ": " + message) + (error.empty() ? "" : " (" + error + ")");
    const auto known = phase_from(phase);
    stays_ = known && !leaves(*known);
    if (known && leaves(*known)) leaving = true;
    if (leaving && line != shown) say(line);
    shown = std::move(line);
  }

  /// Warns once if no agent seems to handle the leave. The status of an agent that waits for jobs does not change either, so
  /// asks systemd.
  void warn_of_agent(bool leaving) {
    if (warned_ || parts_.now() - quiet_since_ < kQuiet) return;
    quiet_since_ = parts_.now();
    const std::string service = fs::path(options_.agent.agent_unit).filename().string();
    const std::string state = state_of(service);
    const bool down = state == "inactive" || state == "failed";
    if (!down && leaving) return;
    warned_ = true;
    const std::string waits =
        "the agent has to take the node out of the cluster, and has not reported for 10 s that it does so. ";
    std::string text = waits + "Does slurm-enlist agent run?";
    if (down) {
      text = "the agent does not run (" + service + " is " + state +
             "), and the host does not leave without it. Start it: systemctl start " + service;
    } else if (!state.empty()) {
      text = waits + "See its log: journalctl -u " + service;
    }
    parts_.write_err("slurm-enlist leave: " + text + "\n");
  }
  /// Returns the state of the agent's service, from `systemctl is-active`; "": there is no such unit, or no systemd.
  std::string state_of(const std::string& service) {
    if (!parts_.host.read(options_.agent.agent_unit)) return "";
    const auto output = parts_.host.run({"systemctl", "is-active", service}, kAskLimit, "");
    return output ? output->out.substr(0, output->out.find('\n')) : "";
  }

  int failed(const std::string& why) {
    parts_.write_err("slurm-enlist leave: " + why + "\n");
    return 1;
  }
  void say(const std::string& line) { parts_.write_out(line + "\n"); }

  const LeaveOptions& options_;
  const JoinParts& parts_;
  bool stays_ = false;
  std::string status_;  ///< The last content of the status file.
  core::MonoTime quiet_since_{};
  bool warned_ = false;
};

}  // namespace

int leave(const LeaveOptions& options, const JoinParts& parts) {
  return Leave(options, parts).run();
}

}  // namespace enlist
