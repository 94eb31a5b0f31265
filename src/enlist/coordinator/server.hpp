// Answers the requests of enlist/wire/messages.hpp: those of hosts that join, of agents, and of administrators. The sockets are
// in process.cpp.
//
// Requires that HttpRequest::peer_key is the fingerprint of the key that the client has proved to have.
// Guarantees: an agent reads and changes the data of its own node only. No secret is in a log or in an error.
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
  std::uint16_t join_port = 0;   ///< The port of the listener for joining, for tokens.
  std::uint16_t agent_port = 0;  ///< The port of the listener for agents, for hosts that join.
  slurm::ClusterKey cluster;
};

class Server {
 public:
  using Reply = std::function<void(net::HttpResponse)>;
  struct Callbacks {
    /// Called for each report of an agent, before it is stored. Returns whether the report is to be stored.
    std::function<bool(const Node& node, const Report& report)> reports;
    std::function<void(const std::string& node)> heard;  ///< Called for each report of an agent, after it is stored or ignored.
    std::function<core::Json()> rotation;                ///< Returns the status of the rotation of the auth key.
  };
  Server(core::Loop& loop, core::Random& random, core::Logger& log, Store& store, slurm::Clusters& clusters, SlurmFiles& files,
         ServerOptions options, Callbacks callbacks);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Answers a request on the listener for joining. The answer to a wrong token is delayed by a constant time. After ten wrong
  /// tokens in a second, further ones are answered with 429 and not logged.
  void join(const net::HttpRequest& request, Reply reply);
  /// Answers a request on the listener for agents and administrators.
  void serve(const net::HttpRequest& request, Reply reply);
  /// Reports whether the key is that of the administrators or of a node that is not revoked. serve() refuses all other keys.
  [[nodiscard]] bool knows(const std::string& key) const;
  /// Answers the waiting agents whose reply has changed because of `changes`. Call it after each change of the store.
  void changed(const Changes& changes);
  /// Answers the waiting agents whose reply has changed for any cause. Call it after each change of SlurmFiles.
  void changed();
  /// Answers all waiting agents at once.
  void stop();

 private:
  /// An agent that waits for a change.
  struct Waiter {
    Reply reply;
    std::string revision;  ///< Sync::revision of the agent's request.
    std::string words;     ///< pool_words() when the wait began.
    std::unique_ptr<core::Timer> limit;
  };
  [[nodiscard]] SlurmNow slurm_now() const;
  [[nodiscard]] const Node* node_of(const std::string& key) const;
  void joined(const JoinAsk& ask, const Joined& got, const core::Result<void>& result, const Reply& reply);
  void refuse_token(const JoinAsk& ask, const Reply& reply, const core::Error& error);
  void log_refused(const net::HttpRequest& request, const std::string& why);
  /// Returns a Reply that logs the response if it is a refusal, and passes it on to `reply`.
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
  /// Commits `change`, a decision about nodes from leaving.hpp or node_words.hpp, and answers with the records of these nodes.
  void change_nodes(std::vector<std::string> nodes, const std::string& what, Store::Change change, Reply reply);
  /// Handles requests about nodes: /v1/nodes/VERB.
  void serve_nodes(const std::string& verb, const net::HttpRequest& request, Reply reply);
  /// Drains or resumes a node in Slurm. `trouble`: the beginning of the error if Slurm refuses the request.
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
  std::map<std::string, Waiter> waiters_;  ///< By the name of the node.
  core::MonoTime second_began_;            ///< The start of the second to which failures_ belongs.
  int failures_ = 0;                       ///< The number of wrong tokens in this second.
  core::MonoTime minute_began_;            ///< The start of the minute to which refused_ belongs.
  std::set<std::string> refused_;          ///< The keys whose refusal was logged in this minute.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace enlist
