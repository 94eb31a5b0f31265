// The command `slurm-enlist join`: makes this host a node of a pool.
//
// It shows the token to the coordinator, whose key the token pins, and registers the host's own key. It then starts the agent's
// service, and shows what the agent says until the node is ready or refused. The agent does all the rest.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "enlist/agent/program.hpp"
#include "enlist/host/host.hpp"
#include "enlist/wire/identity.hpp"
#include "net/http.hpp"
#include "net/tls.hpp"

namespace enlist {

struct JoinOptions {
  AgentOptions agent{};
  std::string token{};       ///< --token; "": --token-file says where it is.
  std::string token_file{};  ///< --token-file; "-": standard input.
  bool again = false;        ///< --again: also if this host has joined before.
  bool no_service = false;   ///< --no-service: does not install and start the agent's service; somebody else runs the agent.
  std::chrono::seconds wait{60};  ///< --wait: how long the node may take to become ready; 0: it is not waited for.
};

/// Returns the value of --token in a command line ("--token WORD" or "--token=WORD"), and overwrites the word with "x", so that
/// ps(1) does not show it. "": there is none. Call it first of all.
[[nodiscard]] std::string take_token(int argc, char** argv);

/// What the command needs of the outside. Tests use their own.
struct JoinParts {
  Host& host;
  std::function<core::Result<Identity>(const std::filesystem::path& folder, const std::string& name)> identity;
  std::function<core::Result<net::HttpResponse>(const net::Endpoint&, const net::HttpRequest&)> send;
  std::function<core::Result<std::shared_ptr<Service>>(const AgentOptions&)> slurmd;  ///< slurmd_service().
  std::function<core::Result<std::string>()> read_input;                              ///< Standard input.
  std::function<void(std::string_view)> write_out, write_err;
  std::function<core::MonoTime()> now;
  std::function<void(core::Duration)> sleep;
  std::string program;  ///< The path of this program, for the agent's unit.
};

/// Returns the exit code: 0 if the node is ready, or if it is not waited for; 1 with the cause on standard error if it was
/// refused, or is not ready in time. A join that the coordinator refused leaves nothing behind.
int join(const JoinOptions& options);
/// Runs a command with the real host, network and terminal.
int with_parts(const std::function<int(const JoinParts&)>& command);
int join(const JoinOptions& options, const JoinParts& parts);

/// Returns the unit of the agent's service, with the flags that differ from the defaults.
[[nodiscard]] std::string agent_unit(const std::string& program, const AgentOptions& options);

}  // namespace enlist
