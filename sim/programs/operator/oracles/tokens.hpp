// A token that is not to be refreshed is minted once: another one is due only when its Token, or its key, is another, or when
// somebody deleted its Secret. (Tokens that are refreshed are renewed in time: see service.hpp.)
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
  std::map<kube::Key, std::pair<std::string, std::string>> minted_;  ///< By the token's Secret: the source, and the text.
};

}  // namespace sim
