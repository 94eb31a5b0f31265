// The coordinator's records in a world, on a disk that survives the coordinator's processes. A commit is carried out completely
// or not at all.
#pragma once

#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "enlist/store/store.hpp"
#include "sim/programs/enlist/host.hpp"

namespace sim {

class EnlistStore final : public enlist::Store {
 public:
  /// `disk` contains the stored records, and must outlive the store.
  EnlistStore(core::Loop& loop, EnlistHost& machine, EnlistOracle& oracle, enlist::Contents& disk)
      : loop_(loop), machine_(machine), oracle_(oracle), disk_(disk) {}
  [[nodiscard]] const enlist::Contents& contents() const override { return disk_; }
  void commit(Change change, Done done) override;
  void listen(std::function<void(const enlist::Changes&)> listener) override { listeners_.push_back(std::move(listener)); }

 private:
  void next();
  [[nodiscard]] core::Result<void> write(const enlist::Changes& changes);

  core::Loop& loop_;
  EnlistHost& machine_;
  EnlistOracle& oracle_;
  enlist::Contents& disk_;
  std::deque<std::pair<Change, Done>> waiting_;
  std::vector<std::function<void(const enlist::Changes&)>> listeners_;
};

}  // namespace sim
