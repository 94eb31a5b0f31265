// Checks that no secret appears in plans, status, events, logs or labels, in any encoding. Also checks plans that were made
// before the secret was written.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "net/http.hpp"
#include "plan/plan.hpp"
#include "sim/kube/api.hpp"

namespace sim {

class SecretOracle {
 public:
  using Tell = std::function<void(std::string)>;
  SecretOracle(KubeApi& api, Tell violation);
  SecretOracle(const SecretOracle&) = delete;
  SecretOracle& operator=(const SecretOracle&) = delete;

  /// Learns, from a request to Slurm, the text with which all tokens begin. Only Slurm is allowed to see tokens.
  void learn_token_of(const net::HttpRequest& request);
  void search_secrets(std::string_view text, std::string_view where);
  void log_line(std::string_view line);
  /// Searches a plan of an operator for secrets, and stores the plan.
  void read_plan(const plan::Plan& plan);

 private:
  void listen();
  void learn_secret(const core::Json& secret);
  void learn_form(const std::string& text);

  KubeApi& api_;
  Tell violation_;
  std::set<std::string> secrets_;  ///< The secrets, in every encoding in which they might appear.
  std::deque<std::string> plans_;  ///< The last plans, which are searched for secrets that become known later.
};

}  // namespace sim
