// Carries kube acts out: Create, Apply, Patch, Delete, Evict, Get, Log, List, DryRun, EventAct.
//
// Guarantees: after a write its key waits (a gate) until every cache that would show the object does so at that resourceVersion
// or newer, or has seen it go. A kind that no cache watches has no gate. A lost reply is settled by a consistent read that
// starts after the request's deadline; the reply of an eviction, which says nothing of the pod, by one that starts at once.
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

/// A cache as gates see it.
struct CacheView {
  const CacheBase* cache = nullptr;
  Scope scope;
  std::function<void()> relist;  ///< Lists again: a consistent read showed that the cache is behind.
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
  /// Called when a gate was settled by a live read, and may be open now.
  void on_settled(std::function<void()> call);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace kube
