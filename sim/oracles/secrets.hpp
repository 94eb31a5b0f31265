// No secret leaves through plans, status, events, logs or labels, in any form in which it might show; not even in a plan that
// was made before the secret was written.
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

  /// A request to Slurm shows its token to Slurm only.
  void learn_token_of(const net::HttpRequest& request);
  void search_secrets(std::string_view text, std::string_view where);
  void log_line(std::string_view line);
  /// A plan that an operator made: all that could be shown of it.
  void read_plan(const plan::Plan& plan);

 private:
  void listen();
  void learn_secret(const core::Json& secret);
  void learn_form(const std::string& text);

  KubeApi& api_;
  Tell violation_;
  std::set<std::string> secrets_;  ///< In every form in which they might show.
  std::deque<std::string> plans_;  ///< The last ones: a secret may be known only once it is written.
};

}  // namespace sim
