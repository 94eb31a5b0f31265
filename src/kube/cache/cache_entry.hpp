// A cache with the watch that fills it. Used within the manager.
#pragma once

#include <memory>
#include <typeindex>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/cache/cache.hpp"
#include "kube/cache/record.hpp"
#include "kube/cache/watch.hpp"
#include "kube/client/client.hpp"

namespace kube {

struct CacheEntry {
  Resource resource;
  Scope scope;
  std::type_index record = typeid(void);
  std::unique_ptr<CacheBase> cache;
  std::unique_ptr<WatchSink> sink;
  std::unique_ptr<Watch> watch;
  std::uint64_t lists_needed = 1;  ///< synced() is false until the watch has completed this many lists.

  [[nodiscard]] bool synced() const { return cache->synced() && watch->stats().complete_lists >= lists_needed; }
  /// Requests a new list. synced() is false until that list is complete.
  void renew() {
    lists_needed = watch->stats().complete_lists + 1;
    watch->relist_from_now();
  }
};

/// Makes CacheEntries, and must outlive them.
class CacheMaker {
 public:
  CacheMaker(core::Loop& loop, core::Random& random, core::Logger& logger, Client& client, WatchOptions options,
             std::string secret_salt)
      : loop_(loop), random_(random), logger_(logger), client_(client), options_(options) {
    context_.secret_salt = std::move(secret_salt);
  }

  [[nodiscard]] const ParseContext& context() const { return context_; }
  /// Returns an entry whose watch has not been started.
  [[nodiscard]] std::unique_ptr<CacheEntry> make(Resource resource, Scope scope, std::type_index record,
                                                 std::unique_ptr<CacheBase> cache, std::unique_ptr<WatchSink> sink) {
    auto entry = std::make_unique<CacheEntry>();
    entry->resource = std::move(resource);
    entry->scope = std::move(scope);
    entry->record = record;
    entry->cache = std::move(cache);
    entry->sink = std::move(sink);
    entry->watch = std::make_unique<Watch>(loop_, random_, logger_, client_, parser_, entry->resource, entry->scope,
                                           *entry->sink, options_);
    return entry;
  }

 private:
  core::Loop& loop_;
  core::Random& random_;
  core::Logger& logger_;
  Client& client_;
  WatchOptions options_;
  ParseContext context_;
  DocumentParser parser_;
};

}  // namespace kube
