// Checks that a token without refresh is minted once. A new token is due only if its Token or its key has changed, or if
// somebody has deleted its Secret. (Tokens with refresh are renewed in time: see service.hpp.)
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "sim/kube/api.hpp"

namespace sim {

class TokenOracle {
 public:
  using Tell = std::function<void(std::string)>;
  TokenOracle(KubeApi& api, Tell violation);
  TokenOracle(const TokenOracle&) = delete;
  TokenOracle& operator=(const TokenOracle&) = delete;

 private:
  void listen();
  void learn_token(const core::Json& secret);

  KubeApi& api_;
  Tell violation_;
  std::map<kube::Key, std::pair<std::string, std::string>> minted_;  ///< By Secret: the inputs of its token, and its data.
};

}  // namespace sim
