// The command `slurm-enlist join`: makes this host a node of a pool.
//
// The command sends the token to the coordinator, whose key the token pins, and registers the host's own key. It then starts
// the agent's service, and prints the agent's status until the node is ready or refused. The agent does all the rest.
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
  std::string token{};            ///< --token; "": the token is in token_file.
  std::string token_file{};       ///< --token-file; "-": standard input.
  bool again = false;             ///< --again: joins even if this host has joined before.
  bool no_service = false;        ///< --no-service: does not install the agent's service, because somebody else runs the agent.
  std::chrono::seconds wait{60};  ///< --wait: how long to wait until the node is ready; 0: not at all.
};

/// Returns the value of --token in a command line ("--token WORD" or "--token=WORD"), and overwrites the value with "x", so
/// that ps(1) does not show it. "": there is no --token. Call it before anything else in main().
[[nodiscard]] std::string take_token(int argc, char** argv);

/// The command's access to the outside. Tests pass their own.
struct JoinParts {
  Host& host;
  std::function<core::Result<Identity>(const std::filesystem::path& folder, const std::string& name)> identity;
  std::function<core::Result<net::HttpResponse>(const net::Endpoint&, const net::HttpRequest&)> send;
  std::function<core::Result<std::shared_ptr<Service>>(const AgentOptions&)> slurmd;  ///< slurmd_service().
  std::function<core::Result<std::string>()> read_input;                              ///< Reads a line of standard input.
  std::function<void(std::string_view)> write_out, write_err;
  std::function<core::MonoTime()> now;
  std::function<void(core::Duration)> sleep;
  std::string program;  ///< The path of this program, for the unit of the agent's service.
};

/// Returns the exit code: 0 if the node is ready, or if the command does not wait; 1 with the cause on standard error if the
/// join failed, or the node was refused or is not ready in time. A join that the coordinator has refused leaves no files
/// behind.
int join(const JoinOptions& options);
/// Runs `command` with the real host, network and terminal.
int with_parts(const std::function<int(const JoinParts&)>& command);
int join(const JoinOptions& options, const JoinParts& parts);

/// Returns the unit of the agent's service, with the flags that differ from the defaults.
[[nodiscard]] std::string agent_unit(const std::string& program, const AgentOptions& options);

}  // namespace enlist
