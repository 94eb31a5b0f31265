// Checks that the operator writes only while it holds the Lease, only in its namespaces, and never to users' Secrets and
// ConfigMaps. All deletions must name a uid. observedGeneration must never decrease. At rest, the operator may only renew
// tokens and repeat warnings that still hold.
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

  /// The namespaces in which operators may write; empty: all.
  void limit_to(std::vector<std::string> namespaces) { namespaces_ = std::move(namespaces); }
  /// Judge a write of an operator. `identity`: the operator's name in the Lease; "": no Lease is needed.
  void to_slurm(const net::HttpRequest& request, const std::string& identity);
  void to_kube(const net::HttpRequest& request, const std::string& identity);
  void deletion(const net::HttpRequest& request);
  /// Return the number of the operators' writes so far, except Leases, and of those that keep Tokens as declared.
  [[nodiscard]] std::uint64_t writes() const { return writes_; }
  [[nodiscard]] std::uint64_t token_writes() const { return token_writes_; }
  /// Returns the number of writes that repeat a NodeSet's warning after ten minutes or more (docs/conditions.md).
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
  std::map<std::string, core::MonoTime> told_;    ///< Maps a warning of a NodeSet, with its text, to when it was last written.
  std::map<std::string, std::int64_t> observed_;  ///< Maps the uid of an object to its observedGeneration.
};

}  // namespace sim
