// The operator writes only while it holds the Lease, where it may, and nothing of users' Secrets and ConfigMaps; what it
// deletes it names by uid; observedGeneration never goes back; and at rest nothing is written but what keeps tokens fresh, and
// warnings that still hold.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "net/http.hpp"
#include "sim/kube/api.hpp"

namespace sim {

class WriteOracle {
 public:
  using Tell = std::function<void(std::string)>;
  WriteOracle(core::Loop& loop, KubeApi& api, Tell violation);
  WriteOracle(const WriteOracle&) = delete;
  WriteOracle& operator=(const WriteOracle&) = delete;

  /// Where operators may write; empty: everywhere.
  void limit_to(std::vector<std::string> namespaces) { namespaces_ = std::move(namespaces); }
  /// Writes of an operator. `identity`: its name in the Lease; "": it needs none.
  void to_slurm(const net::HttpRequest& request, const std::string& identity);
  void to_kube(const net::HttpRequest& request, const std::string& identity);
  void deletion(const net::HttpRequest& request);
  /// Writes of operators but Leases, so far; and of these, the ones that keep Tokens as they are declared.
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  [[nodiscard]] std::uint64_t token_writes() const { return token_writes_; }
  /// And those that tell a NodeSet's warning again, ten minutes after the last time (docs/conditions.md).
  [[nodiscard]] std::uint64_t reminders() const { return reminders_; }

 private:
  void listen();
  [[nodiscard]] bool about_tokens(const net::HttpRequest& request) const;
  [[nodiscard]] bool reminds(const net::HttpRequest& request);
  void fenced_write(const net::HttpRequest& request, bool to_slurm, const std::string& identity);

  core::Loop& loop_;
  KubeApi& api_;
  Tell violation_;
  std::vector<std::string> namespaces_;
  std::uint64_t writes_ = 0, token_writes_ = 0, reminders_ = 0;
  std::map<std::string, core::MonoTime> told_;    ///< Warnings of NodeSets, by all that they say.
  std::map<std::string, std::int64_t> observed_;  ///< observedGeneration by uid.
};

}  // namespace sim
