// The watches of the API server: their events and their ends.
#include <fmt/format.h>

#include <cstdlib>

#include "core/hash.hpp"
#include "sim/kube/api_parts.hpp"
#include "sim/kube/refusals.hpp"

namespace sim {

using core::Json;

namespace {

using Event = KubeApi::WatchEvent;

Event make_event(Event::Type type, std::string_view object) {
  static constexpr std::string_view kNames[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
  return {type, fmt::format("{{\"type\":\"{}\",\"object\":{}}}\n", kNames[static_cast<int>(type)], object)};
}

}  // namespace

std::string KubeApi::text_for(const Watch& watch, const Stored& stored) const {
  return watch.metadata_only ? core::canonical(metadata_only(shown(*watch.kind, stored))) : text_of(*watch.kind, stored);
}

std::expected<KubeApi::WatchId, net::HttpResponse> KubeApi::watch(const net::HttpRequest& request, WatchSink sink) {
  auto parsed = parse(request);
  if (!parsed) return std::unexpected(parsed.error());
  auto watch = std::make_shared<Watch>(loop_);
  watch->id = ++last_watch_;
  watch->kind = parsed->kind;
  watch->table = table_name(parsed->kind->resource);
  watch->selection = parsed->selection();
  // If the path contains a name, the watch is for one object (deprecated, but served).
  if (!parsed->key.name.empty()) watch->selection.fields.push_back("metadata.name=" + parsed->key.name);
  watch->bookmarks = parsed->option("allowWatchBookmarks") == "true";
  watch->metadata_only = shape_of(request) == Shape::kMetadata;
  watch->sink = std::move(sink);
  ++counts_["watch " + watch->table];
  if (auto error = open_watch(*parsed, watch)) return std::unexpected(*error);
  return watch->id;
}

std::optional<net::HttpResponse> KubeApi::open_watch(const Parsed& parsed, const std::shared_ptr<Watch>& watch) {
  const std::string version = parsed.option("resourceVersion");
  const bool initial = parsed.option("sendInitialEvents") == "true";
  if (const auto problems = match_problems(parsed.query, true, options_.watch_list); !problems.empty())
    return reply(invalid(kListOptions, "", problems));
  if (version.find_first_not_of("0123456789") != std::string::npos) {
    return reply(
        make_status(500, "InternalError",
                    fmt::format("resourceVersion: Invalid value: \"{}\": strconv.ParseUint: parsing \"{}\": invalid syntax",
                                version, version)));
  }
  const std::uint64_t from = std::strtoull(version.c_str(), nullptr, 10);
  if (from > store_.revision()) {
    return reply(too_large(from, store_.revision()));
  }
  watches_[watch->id] = watch;
  const long long seconds = std::strtoll(parsed.option("timeoutSeconds").c_str(), nullptr, 10);
  const core::Duration timeout = seconds > 0 ? core::Duration{seconds * 1000} : core::Duration{1800000};
  watch->timeout.set(timeout, [this, id = watch->id] {
    const auto held = watches_.at(id);
    if (held->bookmarks) send_bookmark(*held, false);
    end_watch(id);
  });
  if (!bookmarks_.pending()) bookmarks_.set(options_.bookmark_interval, [this] { tick_bookmarks(); });

  if (initial && !options_.watch_progress) {
    loop_.after(core::Duration{0}, [this, id = watch->id] {
      fail_watch(id, make_status(500, "InternalError",
                                 "a watch stream was requested by the client but the required storage feature "
                                 "RequestWatchProgress is disabled"));
    });
    watch->kind = nullptr;  // sends nothing before the error
    return std::nullopt;
  }
  if (initial || from == 0) {
    for (const auto& [key, stored] : store_.all(watch->table)) {
      if (watch->selection.matches(key, stored->body))
        watch->sink.on_event(make_event(Event::Type::kAdded, text_for(*watch, *stored)));
    }
    if (initial) send_bookmark(*watch, true);
    return std::nullopt;
  }
  const auto changes = store_.changes_after(watch->table, from);
  if (!changes) {
    loop_.after(core::Duration{0}, [this, id = watch->id, from] {
      fail_watch(id, make_status(410, "Expired", fmt::format("too old resource version: {} ({})", from, store_.compacted())));
    });
    watch->kind = nullptr;  // sends nothing before the error
    return std::nullopt;
  }
  for (const ChangePtr& change : *changes) deliver(*watch, change);
  return std::nullopt;
}

void KubeApi::close_watch(WatchId id) {
  watches_.erase(id);
}

void KubeApi::end_watch(WatchId id) {
  const auto node = watches_.extract(id);
  if (!node) return;
  const auto watch = node.mapped();
  watch->timeout.cancel();
  if (watch->sink.on_end) watch->sink.on_end();
}

void KubeApi::fail_watch(WatchId id, const Refusal& status) {
  const auto it = watches_.find(id);
  if (it == watches_.end()) return;
  it->second->sink.on_event(make_event(Event::Type::kError, core::canonical(status)));
  end_watch(id);
}

void KubeApi::end_watches() {
  std::vector<WatchId> ids;
  for (const auto& [id, watch] : watches_) ids.push_back(id);
  for (const WatchId id : ids) end_watch(id);
}

void KubeApi::on_change(const std::string& table, const ChangePtr& change) {
  compact_by_age();
  for (const auto& [id, watch] : watches_) {
    if (watch->kind != nullptr && watch->table == table) deliver(*watch, change);
  }
}

void KubeApi::deliver(Watch& watch, const ChangePtr& change) {
  const bool matched = change->before && watch.selection.matches(change->key, change->before->body);
  const bool matches = change->type != Change::Type::kDeleted && watch.selection.matches(change->key, change->object->body);
  if (!matched && !matches) return;
  const Event::Type type = !matched ? Event::Type::kAdded : matches ? Event::Type::kModified : Event::Type::kDeleted;
  if (type == Event::Type::kDeleted && change->type != Change::Type::kDeleted) {
    // The object has left the selection. The watch sends its previous state, with the revision of the change.
    Stored last{change->before->body, change->before->owners, change->revision, change->before->creator};
    last.body["metadata"]["resourceVersion"] = std::to_string(change->revision);
    watch.sink.on_event(make_event(type, text_for(watch, last)));
    return;
  }
  watch.sink.on_event(make_event(type, text_for(watch, *change->object)));
}

void KubeApi::send_bookmark(Watch& watch, bool initial_end) {
  if (watch.kind == nullptr) return;
  Json object{{"kind", watch.kind->resource.kind},
              {"apiVersion", watch.kind->resource.api_version()},
              {"metadata", {{"resourceVersion", std::to_string(store_.revision())}, {"creationTimestamp", nullptr}}}};
  if (initial_end) object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  if (watch.metadata_only) object = metadata_only(object);
  watch.sink.on_event(make_event(Event::Type::kBookmark, core::canonical(object)));
}

void KubeApi::tick_bookmarks() {
  for (const auto& [id, watch] : watches_) {
    if (watch->bookmarks) send_bookmark(*watch, false);
  }
  if (!watches_.empty()) bookmarks_.set(options_.bookmark_interval, [this] { tick_bookmarks(); });
}

void KubeApi::compact_by_age() {
  if (options_.compaction_interval == core::Duration{0}) return;
  const core::MonoTime at = loop_.clock().mono();
  if (at - compact_looked_ < options_.compaction_interval) return;
  store_.compact(compact_next_);
  compact_next_ = store_.revision();
  compact_looked_ = at;
}

}  // namespace sim
