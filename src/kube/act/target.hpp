// Executes the kube acts: Create, Apply, Patch, Delete, Evict, Get, Log, List, DryRun and EventAct.
//
// Guarantees: after a write, the key of the plan waits at a gate until every cache that selects the written object has caught
// up. Such a cache shows the object at the resourceVersion of the write or a newer one, or has seen the deletion of the object.
// There is no gate if no cache selects the object. If the reply of a write is lost, a consistent read after the deadline of the
// request shows the outcome. After a successful eviction, the read starts at once, because the reply does not contain the pod.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/act/events.hpp"
#include "kube/cache/cache.hpp"
#include "kube/cache/watch.hpp"
#include "kube/client/client.hpp"
#include "plan/executor.hpp"

namespace kube {

/// The parts of a cache that gates need.
struct CacheView {
  const CacheBase* cache = nullptr;
  Scope scope;
  std::function<void()> relist;  ///< Lists again. Called after a consistent read has shown that the cache is behind.
};

class CacheDirectory {
 public:
  virtual ~CacheDirectory() = default;
  [[nodiscard]] virtual std::vector<CacheView> caches(const Resource& resource) const = 0;
};

class Target final : public plan::Target {
 public:
  Target(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, const CacheDirectory& caches,
         EventRecorder& events);
  ~Target() override;
  /// Sets a callback that is called when a live read has shown the outcome of a write. The callback must check all gates,
  /// because some of them can then be open.
  void on_settled(std::function<void()> call);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kube
