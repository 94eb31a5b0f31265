// Answers the requests of enlist/wire/messages.hpp: those of hosts that join, of agents, and of administrators. The sockets are
// in coordinator.hpp.
//
// Requires of a request that HttpRequest::peer_key is the key that the client has proved to have.
// Guarantees: an agent reads and writes about its own node only. No secret is in a log or in an error.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "enlist/coordinator/joining.hpp"
#include "enlist/coordinator/slurm_files.hpp"
#include "enlist/coordinator/slurm_requests.hpp"
#include "enlist/store/store.hpp"
#include "enlist/wire/messages.hpp"
#include "net/http.hpp"
#include "slurm/snapshot/registry.hpp"

namespace enlist {

struct ServerOptions {
  std::string admin;             ///< The fingerprint of the administrators' key.
  std::string own;               ///< The fingerprint of the coordinator's key, for tokens.
  std::string host;              ///< The name or address of the coordinator, for tokens.
  std::uint16_t join_port = 0;   ///< The listener for joining, for tokens.
  std::uint16_t agent_port = 0;  ///< The listener for agents, for hosts that join.
  slurm::ClusterKey cluster;
};

class Server {
 public:
  using Reply = std::function<void(net::HttpResponse)>;
  struct Callbacks {
    /// Called for each report of an agent, before it is stored. Returns whether it is to be stored.
    std::function<bool(const Node& node, const Report& report)> reports;
    std::function<void(const std::string& node)> heard;  ///< Called for each report of an agent, after it is in the store.
    std::function<core::Json()> rotation;                ///< Returns the status of the rotation of the auth key.
  };
  Server(core::Loop& loop, core::Random& random, core::Logger& log, Store& store, slurm::Clusters& clusters, SlurmFiles& files,
         ServerOptions options, Callbacks callbacks);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Answers a request on the listener for joining. A wrong token is answered after a constant time. At most ten of them a
  /// second are looked at; the others are answered with 429.
  void join(const net::HttpRequest& request, Reply reply);
  /// Answers a request on the listener for agents and administrators.
  void serve(const net::HttpRequest& request, Reply reply);
  /// Reports whether requests with this key are answered on the listener for agents and administrators with more than a
  /// refusal.
  [[nodiscard]] bool knows(const std::string& key) const;
  /// Answers the agents that wait for something that has changed. Call it after each change of the store.
  void changed(const Changes& changes);
  /// The same for all agents. Call it after each change of SlurmFiles.
  void changed();
  /// Answers all agents that wait, now.
  void stop();

 private:
  /// An agent that waits for a change.
  struct Waiter {
    Reply reply;
    std::string revision;  ///< The agent has this.
    std::string words;     ///< Those of the pool, when the agent was last told.
    std::unique_ptr<core::Timer> limit;
  };
  [[nodiscard]] SlurmNow slurm_now() const;
  [[nodiscard]] const Node* node_of(const std::string& key) const;
  void joined(const JoinAsk& ask, const Joined& got, const core::Result<void>& result, const Reply& reply);
  void refuse_token(const JoinAsk& ask, const Reply& reply, const core::Error& error);
  void log_refused(const net::HttpRequest& request, const std::string& why);
  /// Returns a reply that also logs refusals.
  Reply logged(const std::string& path, Reply reply);
  void serve_admin(const net::HttpRequest& request, Reply reply);
  void serve_node(const net::HttpRequest& request, const Node& node, Reply reply);
  void sync(const net::HttpRequest& request, const Node& node, Reply reply);
  void settle(const std::string& node, const Sync& sync, Reply reply);
  [[nodiscard]] std::string pool_words(const std::string& node) const;
  bool answer_if_new(const std::string& node, const std::string& revision, const Reply& reply, bool anyway);
  void give_key(const std::string& node, Reply reply);
  void make_pool(const net::HttpRequest& request, Reply reply);
  void make_token(const net::HttpRequest& request, Reply reply);
  void remove_pool(const net::HttpRequest& request, Reply reply);
  /// Changes nodes by one of the decisions of leaving.hpp, and answers with their records.
  void change_nodes(std::vector<std::string> nodes, const std::string& what, Store::Change change, Reply reply);
  /// Handles requests about nodes: /v1/nodes/VERB.
  void serve_nodes(const std::string& verb, const net::HttpRequest& request, Reply reply);
  /// `trouble`: the beginning of the error if Slurm refuses it.
  void set_state(const std::string& verb, const std::string& node, const std::string& reason, const std::string& trouble,
                 Reply reply);
  void end_jobs(const net::HttpRequest& request, Reply reply);
  /// Handles requests about the rotation of the auth key: /v1/rotation, or /v1/rotation/VERB.
  void serve_rotation(const std::string& verb, const net::HttpRequest& request, Reply reply);

  core::Loop& loop_;
  core::Random& random_;
  core::Logger& log_;
  Store& store_;
  slurm::Clusters& clusters_;
  SlurmFiles& files_;
  ServerOptions options_;
  SlurmRequests slurm_requests_;
  Callbacks callbacks_;
  std::map<std::string, Waiter> waiters_;  ///< By node.
  core::MonoTime second_began_;            ///< The second in which failures_ were counted.
  int failures_ = 0;
  core::MonoTime minute_began_;    ///< The minute to which refused_ belongs.
  std::set<std::string> refused_;  ///< The keys whose refusal was logged.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace enlist
