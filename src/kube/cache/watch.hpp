// Keeps a cache equal to the API server's state: lists, watches, resumes lost watches, and lists again when the server no
// longer has the history.
//
// Guarantees: the sink receives complete lists or single changes, in the order of resourceVersions. While a list is under way,
// or after a failed list, the sink keeps its previous contents.
//
// Every list is a consistent read: a watch without a resourceVersion that begins with the existing objects (WatchList). If the
// server refuses a WatchList, or a WatchList fails, the list is read in pages. A lost watch resumes at the last resourceVersion
// that it has seen. After a 410 or 404, the watch lists again; meanwhile, the cache keeps its old contents. Backoff and
// timeouts have client-go's values.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/log.hpp"
#include "core/loop.hpp"
#include "core/random.hpp"
#include "kube/cache/cache.hpp"
#include "kube/cache/record.hpp"
#include "kube/client/client.hpp"

namespace kube {

/// Selects objects of a resource by namespace ("": all), labels and fields.
struct Scope {
  std::string ns{};
  std::string label_selector{};
  std::string field_selector{};
  friend auto operator<=>(const Scope&, const Scope&) = default;
};

/// Returns a text that identifies a resource under a scope, for names and for sorting.
[[nodiscard]] std::string place(const Resource& resource, const Scope& scope);

/// The receiver of a watch. Objects are only valid during the call.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  /// Returns true if the sink needs only metadata. The watch then requests only metadata.
  [[nodiscard]] virtual bool metadata_only() const { return false; }
  /// Begins a list. Drops the objects that an earlier list staged before it failed.
  virtual void begin() = 0;
  virtual core::Result<void> stage(const simdjson::dom::element& object) = 0;
  virtual void unstage(const ObjectMeta& meta) = 0;
  /// Ends a list. The staged objects are the whole contents at `rv`.
  virtual void commit(std::string rv) = 0;
  virtual core::Result<void> upsert(const simdjson::dom::element& object) = 0;
  virtual void erase(const ObjectMeta& meta) = 0;
  virtual void bookmark(std::string rv) = 0;
};

/// Feeds a Cache.
template <class Record>
class CacheSink final : public WatchSink {
 public:
  CacheSink(Cache<Record>& cache, const ParseContext& context) : cache_(&cache), context_(&context) {}
  [[nodiscard]] bool metadata_only() const override { return std::is_same_v<Record, MetadataRecord>; }
  void begin() override { staged_.clear(); }
  core::Result<void> stage(const simdjson::dom::element& object) override {
    auto record = parse_record<Record>(object, *context_);
    if (!record) return std::unexpected(record.error());
    staged_[(*record)->meta.key()] = std::move(*record);
    return {};
  }
  void unstage(const ObjectMeta& meta) override { staged_.erase(meta.key()); }
  void commit(std::string rv) override {
    std::vector<typename Cache<Record>::Ptr> records;
    records.reserve(staged_.size());
    for (auto& [key, record] : staged_) records.push_back(std::move(record));
    staged_.clear();
    cache_->replace(std::move(records), std::move(rv));
  }
  core::Result<void> upsert(const simdjson::dom::element& object) override {
    auto record = parse_record<Record>(object, *context_);
    if (!record) return std::unexpected(record.error());
    cache_->upsert(std::move(*record));
    return {};
  }
  void erase(const ObjectMeta& meta) override { cache_->erase(meta.key(), meta.resource_version, meta.uid); }
  void bookmark(std::string rv) override { cache_->bookmark(std::move(rv)); }

 private:
  Cache<Record>* cache_;
  const ParseContext* context_;
  std::map<Key, typename Cache<Record>::Ptr> staged_;
};

struct WatchOptions {
  core::Duration backoff_base{800};
  core::Duration backoff_cap{30000};
  core::Duration backoff_reset{120000};  ///< After this time without a failure, the backoff starts from backoff_base again.
  core::Duration timeout_least{300000};  ///< The server ends each watch after a random time of at least this.
  core::Duration timeout_most{600000};   ///< The server ends each watch after a random time of at most this.
  core::Duration very_short{1000};       ///< A watch without an event that ends sooner counts as a failure.
  core::Duration head_timeout{30000};
  core::Duration slow_list{10000};          ///< Logs a warning if the initial events of a WatchList take longer.
  core::Duration list_silence{30000};       ///< The longest silence while a list is under way.
  core::Duration bookmark_silence{180000};  ///< The longest silence once the server has sent bookmarks (one a minute).
  int page_size = 500;
  bool watch_list = true;  ///< Tries a WatchList first. False: always lists in pages.
};

/// Counters for metrics.
struct WatchStats {
  std::uint64_t lists = 0, complete_lists = 0, watches = 0, failures = 0, events = 0, expired = 0;
  bool used_watch_list = false;  ///< The last complete list was a WatchList.
};

class Watch {
 public:
  /// Derives a separate stream of random numbers from `random`. The stream is named after place().
  Watch(core::Loop& loop, const core::Random& random, core::Logger& logger, Client& client, DocumentParser& parser,
        Resource resource, Scope scope, WatchSink& sink, WatchOptions options = {});
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void start();
  void stop();
  /// Lists again at once, unless a list is already under way. Call it if the contents might be wrong.
  void relist();
  /// Begins a new list, even if a list is under way. The contents of the new list are no older than this call.
  void relist_from_now();
  [[nodiscard]] const WatchStats& stats() const;
  /// Returns the last failure; nullopt after a success.
  [[nodiscard]] const std::optional<core::Error>& error() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Splits a byte stream that arrives in arbitrary pieces into lines. A line longer than `max` bytes is an error.
class LineFramer {
 public:
  using OnLine = std::function<bool(std::string_view line)>;  ///< Return false to stop.
  explicit LineFramer(std::size_t max = 64U << 20U) : max_(max) {}
  /// Calls `on_line` for each complete, non-empty line. Error: kInvalid if a line is too long.
  core::Result<void> feed(std::string_view piece, const OnLine& on_line);
  /// Returns the text after the last end of line.
  [[nodiscard]] std::string_view rest() const { return rest_; }
  void clear();

 private:
  std::size_t max_;
  std::string rest_;
};

/// Extracts the items of a List while its text arrives, so that no whole page is in memory. Stores only the rest of the text.
class ListSplitter {
 public:
  using OnItem = std::function<bool(std::string_view item)>;  ///< Return false to stop.
  /// Error: kInvalid if the text is not a JSON object.
  core::Result<void> feed(std::string_view piece, const OnItem& on_item);
  /// Returns the list without its items, once complete().
  [[nodiscard]] const std::string& frame() const { return frame_; }
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  bool take(char c, const OnItem& on_item);

  std::string frame_, item_, key_;
  int depth_ = 0;
  bool in_string_ = false, escaped_ = false;
  bool expect_key_ = false;  ///< The next string at depth 1 is a key.
  bool in_key_ = false;      ///< The current string is a key at depth 1.
  bool in_items_ = false, complete_ = false;
};

}  // namespace kube
