// What users wait for, once all is well: tokens that are renewed in time, a
// slurmrestd that answers, workers that nobody needs to hold back. And how much
// is asked of the API server and of Slurm meanwhile. Each has a ceiling.
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

  /// Where operators act, and service is due at all; empty: everywhere.
  void limit_to(std::vector<std::string> namespaces) { namespaces_ = std::move(namespaces); }
  /// From now on there are no faults, and the declared state was reached:
  /// service is due. False: not any more.
  void expect(bool due);
  /// One of an operator, at any time.
  void request(bool to_slurm);
  /// The most requests within a minute so far.
  [[nodiscard]] std::size_t most(bool to_slurm) const { return pace_[to_slurm ? 1 : 0].most; }
  /// The longest time so far, by what was missed.
  [[nodiscard]] const std::map<std::string, core::Duration>& longest() const { return longest_; }

 private:
  struct Pace {
    std::deque<core::MonoTime> last;  ///< Within a minute.
    std::size_t most = 0;
    bool told = false;
  };
  void look();
  void look_at_tokens();
  void look_at_restapis();
  void look_at_workers();
  void look_at_slurmds();
  [[nodiscard]] bool waits_for_machines(const kube::Key& restapi) const;
  /// `what` is missed now, or is not. Of the same `who` one after the other.
  void miss(bool missed, const std::string& what, const std::string& who, core::Duration ceiling);

  core::Loop& loop_;
  KubeApi& api_;
  SlurmSite& site_;
  Tell violation_;
  std::vector<std::string> namespaces_;
  std::shared_ptr<int> turn_ = std::make_shared<int>(0);  ///< Odd: service is due.
  std::array<Pace, 2> pace_;
  std::map<std::string, core::MonoTime> since_;
  std::map<std::string, core::Duration> longest_;
};

}  // namespace sim
