#include "kube/cache/watch.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cmath>

namespace kube {

namespace {

constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";
/// After the timeout of a watch, we give the server this time to end the watch. Then we end the watch ourselves.
constexpr core::Duration kTimeoutMargin{10000};
constexpr std::size_t kKeepLineBuffer = 256U << 10U;
/// After this many WatchLists that ended early without a reason, the watch lists in pages instead.
constexpr int kMaxBrokenWatchLists = 2;

}  // namespace

std::string place(const Resource& resource, const Scope& scope) {
  return resource.path(scope.ns) + "?" + scope.label_selector + "&" + scope.field_selector;
}

core::Result<void> LineFramer::feed(std::string_view piece, const OnLine& on_line) {
  while (!piece.empty()) {
    const std::size_t end = piece.find('\n');
    if (end == std::string_view::npos) {
      if (rest_.size() + piece.size() > max_) return core::fail(core::ErrorCode::kInvalid, "line too long");
      rest_.append(piece);
      return {};
    }
    if (rest_.size() + end > max_) return core::fail(core::ErrorCode::kInvalid, "line too long");
    std::string_view line = piece.substr(0, end);
    piece.remove_prefix(end + 1);
    std::string whole;
    if (!rest_.empty()) {
      whole = std::move(rest_);
      rest_.clear();
      whole.append(line);
      line = whole;
    }
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !on_line(line)) return {};
  }
  return {};
}

void LineFramer::clear() {
  rest_.clear();
  rest_.shrink_to_fit();
}

core::Result<void> ListSplitter::feed(std::string_view piece, const OnItem& on_item) {
  for (const char c : piece) {
    if (complete_) {
      if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
      return core::fail(core::ErrorCode::kInvalid, "text after the end of a list");
    }
    if (depth_ == 0 && c != '{' && c != ' ' && c != '\n' && c != '\r' && c != '\t') {
      return core::fail(core::ErrorCode::kInvalid, "a list must be a JSON object");
    }
    if (!take(c, on_item)) return {};
  }
  return {};
}

bool ListSplitter::take(char c, const OnItem& on_item) {
  const bool item = in_items_ && depth_ > 2;
  if (item) {
    item_ += c;
  } else if (!in_items_) {
    frame_ += c;
  }
  if (in_string_) {
    if (escaped_) {
      escaped_ = false;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '"') {
      in_string_ = false;
      in_key_ = false;
      return true;
    }
    if (in_key_) key_ += c;
    return true;
  }
  switch (c) {
    case '"':
      in_string_ = true;
      if (depth_ == 1 && expect_key_) {
        in_key_ = true;
        expect_key_ = false;
        key_.clear();
      }
      return true;
    case ',':
      if (depth_ == 1) expect_key_ = true;
      return true;
    case '{':
    case '[':
      ++depth_;
      if (depth_ == 1) expect_key_ = true;
      if (depth_ == 2 && c == '[' && key_ == "items") in_items_ = true;
      if (in_items_ && depth_ == 3) item_ += c;
      return true;
    case '}':
    case ']':
      --depth_;
      if (depth_ == 0) complete_ = true;
      if (!in_items_) return true;
      if (depth_ == 1) {
        in_items_ = false;
        frame_ += c;
        key_.clear();
      } else if (depth_ == 2) {
        std::string whole;
        whole.swap(item_);
        const bool more = on_item(whole);
        if (whole.capacity() <= kKeepLineBuffer) {
          whole.clear();
          item_.swap(whole);
        }
        return more;
      }
      return true;
    default:
      return true;
  }
}

struct Watch::Impl {
  enum class Phase { kStopped, kWaiting, kWatchList, kPages, kWatching };

  Impl(core::Loop& l, const core::Random& r, core::Logger& g, Client& c, DocumentParser& p, Resource res, Scope s, WatchSink& k,
       WatchOptions o)
      : loop(l),
        random(r.stream("watch " + place(res, s))),
        logger(g),
        client(c),
        parser(p),
        resource(std::move(res)),
        scope(std::move(s)),
        sink(k),
        options(o),
        retry(l),
        head(l),
        slow(l),
        silence(l) {}

  core::Loop& loop;
  std::unique_ptr<core::Random> random;
  core::Logger& logger;
  Client& client;
  DocumentParser& parser;
  Resource resource;
  Scope scope;
  WatchSink& sink;
  WatchOptions options;
  WatchStats stats;
  std::optional<core::Error> error;

  Phase phase = Phase::kStopped;
  core::Timer retry;    ///< Waits for the next attempt.
  core::Timer head;     ///< Limits the wait for the head of the reply.
  core::Timer slow;     ///< Warns if the initial events have not ended.
  core::Timer silence;  ///< Limits how long the stream may be silent.
  Client::StreamId stream = 0;
  std::uint64_t generation = 0;  ///< The number of the current stream. Pieces of an older stream are ignored.

  std::string rv;  ///< The resourceVersion to resume from; "" before the first list, and when the history is gone.
  std::string continue_token;
  bool pages_next = false;  ///< List in pages next: WatchList was refused or failed.
  int broken_watch_lists = 0;
  LineFramer framer;
  ListSplitter splitter;

  core::MonoTime opened_at;
  core::MonoTime last_piece;
  core::Duration server_timeout{0};
  std::uint64_t events_of_stream = 0;
  bool bookmarks_seen = false;

  int failures_in_row = 0;
  core::MonoTime last_failure;
  core::MonoTime last_list;

  [[nodiscard]] core::MonoTime now() const { return loop.clock().mono(); }

  // --- Targets ---

  [[nodiscard]] std::string base_target() const {
    std::string target = resource.path(scope.ns) + "?";
    if (!scope.label_selector.empty()) target += "labelSelector=" + query_escape(scope.label_selector) + "&";
    if (!scope.field_selector.empty()) target += "fieldSelector=" + query_escape(scope.field_selector) + "&";
    return target;
  }

  /// Returns the target of a watch that begins at `position`. Also draws a random server_timeout.
  [[nodiscard]] std::string watch_target(const std::string& position) {
    const auto spread = static_cast<std::uint64_t>((options.timeout_most - options.timeout_least).count()) + 1;
    server_timeout = options.timeout_least + core::Duration{static_cast<core::Duration::rep>(random->below(spread))};
    const auto seconds = std::max<core::Duration::rep>(1, server_timeout.count() / 1000);
    return base_target() + "watch=true&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(seconds) + position;
  }

  // --- Opening streams ---

  void begin_list() {
    rv.clear();
    last_list = now();
    ++stats.lists;
    sink.begin();
    if (pages_next || !options.watch_list) {
      continue_token.clear();
      open_page();
    } else {
      open_watch_list();
    }
  }

  void open_watch_list() {
    phase = Phase::kWatchList;
    const std::string target = watch_target("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    open(target, server_timeout + kTimeoutMargin);
    slow.set(options.slow_list, [this] {
      logger.warn("the initial events of a WatchList have not ended yet",
                  fields({{"waited_ms", (now() - opened_at).count()}, {"events", events_of_stream}}));
    });
  }

  void open_page() {
    phase = Phase::kPages;
    splitter = ListSplitter();
    std::string target = base_target() + "limit=" + std::to_string(options.page_size);
    if (!continue_token.empty()) target += "&continue=" + query_escape(continue_token);
    open(target, options.list_silence);
  }

  void open_watch() {
    phase = Phase::kWatching;
    ++stats.watches;
    const std::string target = watch_target("&resourceVersion=" + rv);
    open(target, server_timeout + kTimeoutMargin);
  }

  void open(const std::string& target, core::Duration timeout) {
    close_stream();
    framer.clear();
    events_of_stream = 0;
    bookmarks_seen = false;
    opened_at = last_piece = now();
    const std::uint64_t mine = generation;
    net::StreamHandler handler;
    handler.on_head = [this, mine](int, const net::Headers&) {
      if (mine != generation) return;
      head.cancel();
      last_piece = now();
      watch_silence();
    };
    handler.on_data = [this, mine](std::string_view piece) {
      if (mine == generation) take(piece);
    };
    handler.on_end = [this, mine](core::Result<void> result) {
      if (mine != generation) return;
      stream = 0;
      ended(std::move(result));
    };
    head.set(options.head_timeout, [this] {
      broke({core::ErrorCode::kUnavailable, "no answer to the watch in time", 0, {}, {}});
    });
    const std::string_view accept = phase == Phase::kPages ? kMetadataOnlyList : kMetadataOnly;
    stream = client.stream(target, timeout, std::move(handler), sink.metadata_only() ? std::string(accept) : "");
  }

  void close_stream() {
    ++generation;
    head.cancel();
    slow.cancel();
    silence.cancel();
    if (stream != 0) client.cancel_stream(stream);
    stream = 0;
  }

  // --- Silence: checked when the time is up, not at each piece ---

  [[nodiscard]] core::Duration silence_limit() const {
    if (phase == Phase::kWatchList || phase == Phase::kPages) return options.list_silence;
    return bookmarks_seen ? options.bookmark_silence : server_timeout + kTimeoutMargin;
  }

  void watch_silence() {
    const core::Duration left = silence_limit() - (now() - last_piece);
    if (left > core::Duration{0}) return silence.set(left, [this] { watch_silence(); });
    if (phase == Phase::kWatchList) pages_next = true;
    broke({core::ErrorCode::kUnavailable, "silence on the watch", 0, {}, {}});
  }

  // --- Data ---

  void take(std::string_view piece) {
    last_piece = now();
    const std::uint64_t mine = generation;
    core::Result<void> framed;
    if (phase == Phase::kPages) {
      framed = splitter.feed(piece, [this, mine](std::string_view item) { return take_item(item) && mine == generation; });
    } else {
      framed = framer.feed(piece, [this, mine](std::string_view line) { return take_line(line) && mine == generation; });
    }
    if (mine == generation && !framed) broke(framed.error());
  }

  bool take_item(std::string_view item) {
    const auto parsed = parser.parse(item, [this](const simdjson::dom::element& root) { return sink.stage(root); });
    if (parsed) return true;
    broke(parsed.error().with("list item"));
    return false;
  }

  bool take_line(std::string_view line) {
    ++events_of_stream;
    ++stats.events;
    std::optional<core::Error> status;
    const auto parsed = parser.parse(line, [&](const simdjson::dom::element& root) -> core::Result<void> {
      std::string_view type;
      simdjson::dom::element object;
      if (root["type"].get(type) != simdjson::SUCCESS || root["object"].get(object) != simdjson::SUCCESS) {
        return core::fail(core::ErrorCode::kInvalid, "no watch event");
      }
      if (type == "ERROR") {
        status = error_from_status(json_of_element(object));
        return {};
      }
      return take_event(type, object);
    });
    if (!parsed) {
      broke(parsed.error().with("watch event"));
      return false;
    }
    if (status) {
      broke(*status);
      return false;
    }
    return true;
  }

  core::Result<void> take_event(std::string_view type, const simdjson::dom::element& object) {
    const bool initial = phase == Phase::kWatchList;
    if (type == "ADDED" || type == "MODIFIED") {
      if (initial) return sink.stage(object);
      std::string_view version;
      if (object["metadata"]["resourceVersion"].get(version) != simdjson::SUCCESS) {
        return core::fail(core::ErrorCode::kInvalid, "object without resourceVersion");
      }
      rv = version;
      healthy();
      return sink.upsert(object);
    }
    const ObjectMeta meta = meta_of_element(object);
    if (type == "DELETED") {
      if (initial) {
        sink.unstage(meta);
        return {};
      }
      rv = meta.resource_version;
      healthy();
      sink.erase(meta);
      return {};
    }
    if (type == "BOOKMARK") {
      if (meta.resource_version.empty()) return core::fail(core::ErrorCode::kInvalid, "bookmark without resourceVersion");
      if (!initial) {
        // The server's data are older than before (a restored backup), so the server cannot confirm the newer objects in the
        // cache.
        if (!rv_at_least(meta.resource_version, rv)) return core::fail(core::ErrorCode::kExpired, "resourceVersion went back");
        bookmarks_seen = true;
        rv = meta.resource_version;
        healthy();
        sink.bookmark(rv);
      } else if (meta.annotation(kInitialEventsEnd) == "true") {
        phase = Phase::kWatching;
        slow.cancel();
        ++stats.watches;
        broken_watch_lists = 0;
        listed(meta.resource_version, true);
      }
      return {};
    }
    return core::fail(core::ErrorCode::kInvalid, "unknown watch event " + std::string(type));
  }

  void listed(const std::string& version, bool by_watch_list) {
    stats.used_watch_list = by_watch_list;
    ++stats.complete_lists;
    rv = version;
    healthy();
    sink.commit(version);
  }

  void healthy() { error.reset(); }

  // --- Ends of streams ---

  void ended(core::Result<void> result) {
    close_stream();
    if (!result) return broke(result.error());
    if (phase == Phase::kPages) return page_ended();
    if (phase == Phase::kWatchList) {
      if (++broken_watch_lists >= kMaxBrokenWatchLists) pages_next = true;
      return broke({core::ErrorCode::kUnavailable, "the list ended before it was complete", 0, {}, {}});
    }
    if (events_of_stream == 0 && now() - opened_at < options.very_short) {
      return broke({core::ErrorCode::kUnavailable, "very short watch without an event", 0, {}, {}});
    }
    open_watch();
  }

  void page_ended() {
    if (!splitter.complete()) return broke({core::ErrorCode::kUnavailable, "the list ended before it was complete", 0, {}, {}});
    const auto frame = core::parse_json(splitter.frame());
    if (!frame) return broke(frame.error().with("list"));
    const std::string version = core::get_string(*frame, {"metadata", "resourceVersion"});
    if (version.empty()) return broke({core::ErrorCode::kInvalid, "list without resourceVersion", 0, {}, {}});
    continue_token = core::get_string(*frame, {"metadata", "continue"});
    splitter = ListSplitter();
    if (!continue_token.empty()) return open_page();
    // The server may have been upgraded, so the next list may try WatchList again.
    pages_next = false;
    broken_watch_lists = 0;
    const std::uint64_t mine = generation;
    listed(version, false);
    if (mine == generation) open_watch();
  }

  /// Decides after a failure which request is sent next, and when.
  void broke(core::Error why) {
    const Phase was = phase;
    close_stream();
    framer.clear();
    splitter = ListSplitter();
    phase = Phase::kWaiting;
    error = why;
    ++stats.failures;
    // kInternal: an API server whose etcd cannot report progress (3.4) sends a 500 in an ERROR event, and expects the client to
    // list instead of watching.
    const bool refused = why.code == core::ErrorCode::kInvalid || why.code == core::ErrorCode::kUnsupported ||
                         why.code == core::ErrorCode::kInternal;
    if (was == Phase::kWatchList && refused && why.http_status != 0 && !pages_next) {
      // This server does not support WatchList.
      pages_next = true;
      logger.debug("WatchList refused: listing by pages", fields(why));
      return again(core::Duration{0});
    }
    const bool history_gone = why.code == core::ErrorCode::kExpired || why.code == core::ErrorCode::kNotFound;
    if (history_gone && !rv.empty()) {
      ++stats.expired;
      rv.clear();
      logger.info("watch expired: listing again", fields(why));
      if (now() - last_list > options.backoff_cap) return again(core::Duration{0});
    } else {
      logger.warn("watch failed", fields(why));
    }
    again(std::max(backoff(), why.retry_after.value_or(core::Duration{0})));
  }

  void again(core::Duration delay) {
    phase = Phase::kWaiting;
    retry.set(delay, [this] {
      if (rv.empty()) {
        begin_list();
      } else {
        open_watch();
      }
    });
  }

  core::Duration backoff() {
    if (now() - last_failure > options.backoff_reset) failures_in_row = 0;
    last_failure = now();
    const double plain = static_cast<double>(options.backoff_base.count()) * std::pow(2.0, std::min(failures_in_row++, 20));
    const double capped = std::min(plain, static_cast<double>(options.backoff_cap.count()));
    const double jittered = std::min(capped * (1.0 + random->unit()), static_cast<double>(options.backoff_cap.count()));
    return core::Duration{static_cast<core::Duration::rep>(jittered)};
  }

  [[nodiscard]] std::vector<core::Field> fields(std::vector<core::Field> more) const {
    more.insert(more.begin(), {{"resource", resource.plural},
                               {"namespace", scope.ns},
                               {"labels", scope.label_selector},
                               {"fields", scope.field_selector}});
    return more;
  }
  [[nodiscard]] std::vector<core::Field> fields(const core::Error& why) const { return fields({core::error_field(why)}); }
};

Watch::Watch(core::Loop& loop, const core::Random& random, core::Logger& logger, Client& client, DocumentParser& parser,
             Resource resource, Scope scope, WatchSink& sink, WatchOptions options)
    : impl_(
          std::make_unique<Impl>(loop, random, logger, client, parser, std::move(resource), std::move(scope), sink, options)) {}

Watch::~Watch() {
  stop();
}

void Watch::start() {
  if (impl_->phase != Impl::Phase::kStopped) return;
  impl_->again(core::Duration{0});
}

void Watch::stop() {
  impl_->close_stream();
  impl_->retry.cancel();
  impl_->phase = Impl::Phase::kStopped;
}

void Watch::relist() {
  if (impl_->phase != Impl::Phase::kWatchList && impl_->phase != Impl::Phase::kPages) relist_from_now();
}

void Watch::relist_from_now() {
  if (impl_->phase == Impl::Phase::kStopped) return;
  impl_->close_stream();
  impl_->rv.clear();
  impl_->again(core::Duration{0});
}

const WatchStats& Watch::stats() const {
  return impl_->stats;
}
const std::optional<core::Error>& Watch::error() const {
  return impl_->error;
}

}  // namespace kube
