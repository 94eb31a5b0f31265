// Checks what users need once everything is settled: tokens are renewed in time, a slurmrestd answers, no worker is held back
// without need, and slurmds have the configuration of slurmctld. Also checks, at all times, the number of requests to the API
// server and to Slurm. Each check has a limit.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "sim/kube/api.hpp"
#include "sim/site/slurm_site.hpp"

namespace sim {

class ServiceOracle {
 public:
  using Tell = std::function<void(std::string)>;
  ServiceOracle(core::Loop& loop, KubeApi& api, SlurmSite& site, Tell violation);
  ServiceOracle(const ServiceOracle&) = delete;
  ServiceOracle& operator=(const ServiceOracle&) = delete;

  /// The namespaces in which operators act, and in which service is due; empty: all.
  void limit_to(std::vector<std::string> namespaces) { namespaces_ = std::move(namespaces); }
  /// True: from now on there are no faults and the declared state is reached, so service is due. False: service is not due.
  void expect(bool due);
  /// Counts a request of an operator, to Slurm or to the API server. Call it for each request.
  void request(bool to_slurm);
  /// Returns the highest number of requests within a minute so far, to Slurm or to the API server.
  [[nodiscard]] std::size_t most(bool to_slurm) const { return pace_[to_slurm ? 1 : 0].most; }
  /// Returns the longest outage of each kind so far, such as "a token is expired".
  [[nodiscard]] const std::map<std::string, core::Duration>& longest() const { return longest_; }

 private:
  struct Pace {
    std::deque<core::MonoTime> last;  ///< The times of the requests in the last minute.
    std::size_t most = 0;
    bool told = false;
  };
  void look();
  void look_at_tokens();
  void look_at_restapis();
  void look_at_workers();
  void look_at_slurmds();
  [[nodiscard]] bool waits_for_machines(const kube::Key& restapi) const;
  /// Records whether the outage `what` exists for `who` now, and reports a violation if it lasts longer than `ceiling`.
  void miss(bool missed, const std::string& what, const std::string& who, core::Duration ceiling);

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  Tell violation_;
  std::vector<std::string> namespaces_;
  std::shared_ptr<int> turn_ = std::make_shared<int>(0);  ///< Counts the changes of expect(). Odd while service is due.
  std::array<Pace, 2> pace_;
  std::map<std::string, core::MonoTime> since_;
  std::map<std::string, core::Duration> longest_;
};

}  // namespace sim
