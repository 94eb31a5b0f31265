#include "enlist/agent/join.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <thread>
#include <utility>
#include <vector>

#include "core/hash.hpp"
#include "enlist/agent/memory_file.hpp"
#include "enlist/host/spawn.hpp"
#include "enlist/rules/key_file.hpp"
#include "enlist/rules/service_files.hpp"
#include "enlist/wire/messages.hpp"
#include "enlist/wire/token.hpp"
#include "net/beast_transport.hpp"

namespace enlist {

namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using namespace std::chrono_literals;

/// The time limit of the coordinator's answer. A person must see within 10 s why a host is refused.
constexpr core::Duration kJoinLimit{10000};
constexpr core::Duration kJoinAgain{500}, kStatusAgain{100};

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = std::min(text.find_first_not_of(kSpace), text.size());
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find_last_not_of(kSpace) + 1));
}

core::Result<TokenText> token_of(const JoinOptions& options, const JoinParts& parts) {
  if (!options.token.empty()) return read_token(options.token);
  if (options.token_file.empty()) return core::fail(ErrorCode::kInvalid, "a token is needed: --token or --token-file");
  const auto text = options.token_file == "-" ? parts.read_input() : parts.host.read(options.token_file);
  if (!text) return std::unexpected(text.error());
  return read_token(trimmed(*text));
}

core::Result<JoinReply> read_reply(const core::Result<net::HttpResponse>& reply) {
  if (!reply) return std::unexpected(reply.error());
  const auto body = core::parse_json(reply->body);
  if (reply->status == 200 && body) return from_json<JoinReply>(*body);
  const std::string said = body ? core::get_string(*body, {"error"}) : "";
  const ErrorCode code = reply->status >= 500 || reply->status == 429 ? ErrorCode::kUnavailable : ErrorCode::kInvalid;
  return core::fail(code, said.empty() ? "HTTP status " + std::to_string(reply->status) : said);
}

/// Sends the request until the coordinator has answered. A repetition is safe, because the same key gets the same node.
core::Result<JoinReply> ask(const JoinParts& parts, const TokenText& token, const Identity& identity,
                            const JoinRequest& message) {
  const net::Endpoint endpoint{
      .scheme = "https",
      .host = token.host,
      .port = token.port,
      .tls = {.cert_pem = identity.cert_pem, .key_pem = identity.key_pem, .pinned_key = token.coordinator}};
  const core::MonoTime end = parts.now() + kJoinLimit;
  bool unknown = false;
  while (true) {
    const core::Duration rest = std::max(end - parts.now(), core::Duration{1000});
    auto reply = read_reply(parts.send(endpoint, {.method = "POST",
                                                  .target = "/v1/join",
                                                  .headers = {{"content-type", "application/json"}},
                                                  .body = core::canonical(to_json(message)),
                                                  .timeout = rest}));
    if (reply) return reply;
    ErrorCode& code = reply.error().code;
    unknown = unknown || code == ErrorCode::kUnknownOutcome;
    const bool may_pass = code == ErrorCode::kUnavailable || code == ErrorCode::kUnknownOutcome;
    if (!may_pass || parts.now() + kJoinAgain >= end) {
      // The last error does not tell whether an earlier request, whose answer was lost, was successful.
      if (unknown) code = ErrorCode::kUnknownOutcome;
      return reply;
    }
    parts.sleep(kJoinAgain);
  }
}

class Join {
 public:
  Join(const JoinOptions& options, const JoinParts& parts) : options_(options), parts_(parts) {}

  int run() {
    const fs::path folder = options_.agent.state;
    const auto before = read_memory(parts_.host, folder);
    if (before && !options_.again) {
      say("This host is already " + before->node + " of the pool " + before->pool + " of " + before->host + " (" +
          (folder / kMemoryFile).string() +
          "). The agent keeps its flags. To join again with other flags, use --again. To move to another pool, run "
          "slurm-enlist leave, and then join.");
      if (options_.no_service || !agent_is_down()) return 0;
      say("Its agent does not run. slurm-enlist join starts it.");
      // An existing unit is kept, because it has the flags of the first join.
      return begin_agent(exists(options_.agent.agent_unit));
    }
    if (!before && before.error().code != ErrorCode::kNotFound && !options_.again) return failed(before.error());
    auto joined = register_host();
    if (!joined) return failed(joined.error());
    say("This host is " + joined->node + " of the pool " + joined->pool + " of the cluster " + joined->cluster + ".");
    return begin_agent(false);
  }

 private:
  int begin_agent(bool has_unit) {
    // wait_until_ready() would take an old status for the status of the new agent.
    if (auto removed = parts_.host.remove(options_.agent.status_file); !removed) return failed(removed.error());
    if (!options_.no_service) {
      if (auto started = start_agent(has_unit); !started) return failed(started.error());
    }
    return options_.wait.count() > 0 ? wait_until_ready() : 0;
  }

  core::Result<JoinReply> register_host() {
    const fs::path folder = options_.agent.state;
    const auto token = token_of(options_, parts_);
    if (!token) return std::unexpected(token.error());
    const auto facts = read_facts(parts_.host, machine_options(options_.agent));
    if (!facts) return std::unexpected(facts.error());
    // The agent could not start slurmd beside somebody else's.
    if (auto free = nobody_else_runs_slurmd(); !free) return std::unexpected(free.error());
    JoinRequest request{token->secret, facts->hostname, facts->slurm_version, facts->detected};
    for (const auto& [file, revision] : {std::pair{kPlainKeyFile, &request.plain_key}, {kJwksFile, &request.jwks}}) {
      auto foreign = foreign_key_revision(file);
      if (!foreign) return std::unexpected(foreign.error());
      *revision = *std::move(foreign);
    }
    const bool had_folder = exists(folder), had_key = exists(folder / "host.key");
    const auto identity = parts_.identity(folder, "host");
    if (!identity) return std::unexpected(identity.error());
    auto reply = ask(parts_, *token, *identity, request);
    if (!reply) {
      // If the answer was lost, the coordinator may know the host's key, and the next join must use the same key.
      if (!had_key && reply.error().code != ErrorCode::kUnknownOutcome) forget_key(!had_folder);
      core::Error error = reply.error().with("the coordinator at " + token->host + ":" + std::to_string(token->port));
      if (error.message.contains("resolve " + token->host + ": "))
        error.message += ". Let this host resolve the name, by DNS or in /etc/hosts, and join again with the same token";
      return std::unexpected(std::move(error));
    }
    // Keeps what the agent has stored about key files and slurmd, including what it has stored since this command began.
    Memory memory = read_memory(parts_.host, folder).value_or(Memory{});
    memory.host = token->host;
    memory.port = reply->port;
    memory.coordinator = token->coordinator;
    memory.node = reply->node;
    memory.pool = reply->pool;
    memory.cluster = reply->cluster;
    memory.desired.reset();
    memory.registrations = 0;
    memory.stopped = memory.left = false;
    if (auto written = write_memory(parts_.host, folder, memory); !written) return std::unexpected(written.error());
    return reply;
  }
  [[nodiscard]] core::Result<void> nobody_else_runs_slurmd() const {
    const auto slurmd = parts_.slurmd(options_.agent);
    if (!slurmd) return std::unexpected(slurmd.error().with("--supervisor"));
    const auto state = (*slurmd)->state();
    if (!state) return std::unexpected(state.error());
    if (state->running && !state->arguments) {
      return core::fail(ErrorCode::kConflict,
                        std::string(kForeignSlurmd) + " (systemctl disable --now slurmd), and join again");
    }
    return {};
  }
  /// Returns the revision of a key file that this program has not written; "" if there is none.
  [[nodiscard]] core::Result<std::string> foreign_key_revision(std::string_view file) const {
    const auto content = parts_.host.read(fs::path(options_.agent.slurm_folder) / file);
    if (!content && content.error().code == ErrorCode::kNotFound) return std::string();
    if (!content) return std::unexpected(content.error());
    const auto memory = read_memory(parts_.host, options_.agent.state);
    if (memory && wrote(*memory, file, core::sha256_hex(*content))) return std::string();
    return key_revision(file, *content);
  }
  /// Reports whether the file or folder exists. Returns true if that is not known.
  [[nodiscard]] bool exists(const fs::path& path) const {
    const auto content = parts_.host.read(path);
    return content || content.error().code != ErrorCode::kNotFound;
  }
  void forget_key(bool and_folder) {
    const fs::path folder = options_.agent.state;
    std::vector<fs::path> made = {folder / "host.key", folder / "host.crt"};
    if (and_folder) made.push_back(folder);
    for (const fs::path& path : made) {
      if (auto removed = parts_.host.remove(path); !removed) complain(removed.error().message);
    }
  }

  /// Reports whether systemd has not started the agent: an earlier join may have been killed before it did that. Returns false
  /// without systemd, because somebody else runs the agent then.
  [[nodiscard]] bool agent_is_down() const {
    const std::string service = fs::path(options_.agent.agent_unit).filename().string();
    const auto output = parts_.host.run({"systemctl", "is-active", service}, 60s, "");
    return output && output->status != 0;
  }

  core::Result<void> start_agent(bool has_unit) {
    const fs::path unit = options_.agent.agent_unit;
    if (!has_unit) {
      if (auto written = parts_.host.write(unit, agent_unit(parts_.program, options_.agent), 0644); !written) return written;
    }
    const std::string service = unit.filename().string();
    for (const std::vector<std::string>& words : {std::vector<std::string>{"systemctl", "daemon-reload"},
                                                  {"systemctl", "enable", service},
                                                  {"systemctl", "restart", "--no-block", service}}) {
      const auto output = parts_.host.run(words, 60s, "");
      if (!output)
        return core::fail(output.error().code,
                          output.error().message + " (the host has joined; without systemd, run slurm-enlist agent)");
      if (output->status != 0)
        return core::fail(ErrorCode::kUnavailable, "systemctl " + words[1] + ": " + telling_lines(output->err));
    }
    return {};
  }

  int wait_until_ready() {
    const core::MonoTime end = parts_.now() + options_.wait;
    std::string shown, error;
    while (true) {
      core::Json status;
      if (const auto text = parts_.host.read(options_.agent.status_file)) {
        if (auto read = core::parse_json(*text)) status = *std::move(read);
      }
      const std::string phase = core::get_string(status, {"phase"}), message = core::get_string(status, {"message"});
      error = core::get_string(status, {"error"});
      std::string line = phase.empty() ? "" : phase + (message.empty() ? "" : ": " + message);
      for (const std::string& more : {error, core::get_string(status, {"note"})}) {
        if (!more.empty() && !message.contains(more)) line += (line.empty() ? "" : " (") + more + (line.empty() ? "" : ")");
      }
      if (!line.empty() && line != shown) say(line);
      if (!line.empty()) shown = line;
      if (phase == to_string(Phase::kReady)) return 0;
      if (phase == to_string(Phase::kRefused) || phase == to_string(Phase::kInvalid) || phase == to_string(Phase::kImpostor)) {
        complain("the node was refused: " + (message.empty() ? error : message));
        return 1;
      }
      if (parts_.now() >= end) break;
      parts_.sleep(kStatusAgain);
    }
    complain("the node is not ready after " + std::to_string(options_.wait.count()) + " s" +
             (shown.empty() ? ": the agent has not written " + options_.agent.status_file : "") + ". The agent keeps trying.");
    return 1;
  }

  int failed(const core::Error& error) {
    complain(error.message);
    return 1;
  }
  void say(const std::string& line) { parts_.write_out(line + "\n"); }
  void complain(const std::string& line) { parts_.write_err("slurm-enlist join: " + line + "\n"); }

  const JoinOptions& options_;
  const JoinParts& parts_;
};

core::Result<net::HttpResponse> send_and_wait(const net::Endpoint& endpoint, const net::HttpRequest& request) {
  net::AsioLoop loop(1);
  core::Result<net::HttpResponse> out = core::fail(ErrorCode::kUnavailable, "no answer");
  net::BeastTransport transport(loop, endpoint, {.max_reply_bytes = 1UL << 20});
  transport.send(request, [&](core::Result<net::HttpResponse> reply) {
    out = std::move(reply);
    loop.stop();
  });
  loop.run();
  return out;
}

}  // namespace

std::string take_token(int argc, char** argv) {
  constexpr std::string_view kFlag = "--token";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    char* secret = nullptr;
    if (word == kFlag && i + 1 < argc) {
      secret = argv[i + 1];
    } else if (word.starts_with(kFlag) && word.substr(kFlag.size()).starts_with('=')) {
      secret = argv[i] + kFlag.size() + 1;
    }
    if (secret == nullptr) continue;
    std::string out = secret;
    std::fill_n(secret, out.size(), 'x');
    return out;
  }
  return {};
}

std::string agent_unit(const std::string& program, const AgentOptions& options) {
  const AgentOptions defaults;
  std::vector<std::string> words = {program, "agent"};
  for (const auto& [flag, member] : std::initializer_list<std::pair<const char*, std::string AgentOptions::*>>{
           {"--state", &AgentOptions::state},
           {"--status-file", &AgentOptions::status_file},
           {"--slurm-folder", &AgentOptions::slurm_folder},
           {"--slurmd", &AgentOptions::slurmd},
           {"--check", &AgentOptions::check},
           {"--gpu-detector", &AgentOptions::gpu_detector},
           {"--supervisor", &AgentOptions::supervisor},
           {"--slurmd-unit", &AgentOptions::slurmd_unit},
           {"--slurmd-defaults", &AgentOptions::slurmd_defaults},
           {"--slurmd-log", &AgentOptions::slurmd_log},
           {"--agent-unit", &AgentOptions::agent_unit}}) {
    if (options.*member == defaults.*member) continue;
    words.emplace_back(flag);
    words.push_back(options.*member);
  }
  std::string command;
  for (const std::string& word : words) {
    // systemd.service(5): quotes group words, a backslash escapes the next character, and %% and $$ stand for % and $.
    std::string quoted = "\"";
    for (const char c : word) {
      if (c == '"' || c == '\\') quoted += '\\';
      if (c == '%' || c == '$') quoted += c;
      quoted += c;
    }
    command += (command.empty() ? "" : " ") + quoted + "\"";
  }
  return std::string(kFileMark) +
         "[Unit]\n"
         "Description=Agent of slurm-enlist: runs slurmd as the coordinator of the cluster asks\n"
         "After=network-online.target\n"
         "Wants=network-online.target\n"
         "StartLimitIntervalSec=0\n"
         "\n"
         "[Service]\n"
         "ExecStart=" +
         command +
         "\n"
         "Restart=always\n"
         "RestartSec=1\n"
         // A slurmd that is a child of the agent must outlive the agent.
         "KillMode=process\n"
         "RuntimeDirectory=slurm-enlist\n"
         "RuntimeDirectoryPreserve=yes\n"
         "\n"
         "[Install]\n"
         "WantedBy=multi-user.target\n";
}

int join(const JoinOptions& options, const JoinParts& parts) {
  return Join(options, parts).run();
}

int join(const JoinOptions& options) {
  return with_parts([&](const JoinParts& parts) { return join(options, parts); });
}

int with_parts(const std::function<int(const JoinParts&)>& command) {
  const auto host = local_host();
  const core::SystemClock clock;
  std::error_code error;
  return command({.host = *host,
                  .identity = load_or_make_identity,
                  .send = send_and_wait,
                  .slurmd = [&](const AgentOptions& options) { return slurmd_service(*host, options); },
                  .read_input = []() -> core::Result<std::string> {
                    std::string line;
                    if (std::getline(std::cin, line)) return line;
                    return core::fail(ErrorCode::kInvalid, "standard input has no token");
                  },
                  .write_out = [](std::string_view text) { std::cout << text << std::flush; },
                  .write_err = [](std::string_view text) { std::cerr << text << std::flush; },
                  .now = [&] { return clock.mono(); },
                  .sleep = [](core::Duration time) { std::this_thread::sleep_for(time); },
                  .program = fs::read_symlink("/proc/self/exe", error).string()});
}

}  // namespace enlist
