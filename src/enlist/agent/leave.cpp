#include "enlist/agent/leave.hpp"

#include <string>

#include "enlist/agent/memory_file.hpp"
#include "enlist/rules/leave.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;

constexpr core::Duration kShowAgain{200};
constexpr core::Duration kAskLimit{20000};

class Leave {
 public:
  Leave(const LeaveOptions& options, const JoinParts& parts) : options_(options), parts_(parts) {}

  int run() {
    const fs::path folder = options_.agent.state;
    const auto memory = read_memory(parts_.host, folder);
    if (!memory && memory.error().code == core::ErrorCode::kNotFound) return failed("this host has not joined a pool");
    if (!memory) return failed(memory.error().message);
    // The key of another host would be of no use.
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
      return failed(where + (said.empty() ? "HTTP status " + std::to_string(reply->status) : said));
    }
    say("Node " + memory->node + " leaves. This can be interrupted: the host goes on leaving.");
    return wait();
  }

 private:
  int wait() {
    const core::MonoTime began = parts_.now();
    std::string shown;
    bool leaving = false;
    while (!options_.wait || parts_.now() - began < *options_.wait) {
      // The agent removes its memory last.
      if (const auto memory = read_memory(parts_.host, options_.agent.state);
          !memory && memory.error().code == core::ErrorCode::kNotFound) {
        say("This host has left.");
        return 0;
      }
      show(shown, leaving);
      if (leaving && stays_) return failed("the node stays: somebody has taken the wish back");
      parts_.sleep(kShowAgain);
    }
    if (options_.wait->count() == 0) return 0;
    return failed("the host has not left after " + std::to_string(options_.wait->count()) + " s. It goes on leaving.");
  }

  void show(std::string& shown, bool& leaving) {
    const auto text = parts_.host.read(options_.agent.status_file);
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

  int failed(const std::string& why) {
    parts_.write_err("slurm-enlist leave: " + why + "\n");
    return 1;
  }
  void say(const std::string& line) { parts_.write_out(line + "\n"); }

  const LeaveOptions& options_;
  const JoinParts& parts_;
  bool stays_ = false;
};

}  // namespace

int leave(const LeaveOptions& options, const JoinParts& parts) {
  return Leave(options, parts).run();
}

}  // namespace enlist
