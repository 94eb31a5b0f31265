// The API server's rules on top of the store: verbs, preconditions, generations, finalizers, apply, watches, and the Status
// bodies that say no. In-process callers (controllers of the simulated cluster, tests, users) call the verbs; everything else
// speaks HTTP.
#pragma once

#include <deque>
#include <expected>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "net/http.hpp"
#include "sim/kube/kinds.hpp"
#include "sim/kube/store.hpp"

namespace sim {

/// A failed verb: the Status body that the API server answers.
using Refusal = core::Json;
template <class T>
using ApiResult = std::expected<T, Refusal>;

/// A Status of failure. `kind` is the plural ("pods"); details are left out when it is empty.
Refusal make_status(int code, std::string_view reason, std::string message, const kube::Resource* resource = nullptr,
                    std::string_view name = "");

/// Whether the condition Ready of a pod or a node is True.
bool is_ready(const core::Json& object);

/// Who calls, and how it wants it done.
struct Caller {
  std::string user = "admin";
  std::string manager = "admin";  ///< Field manager.
  bool strict = false;            ///< fieldValidation=Strict.
  bool dry_run = false;
};

struct Deletion {
  std::string uid{}, resource_version{};  ///< Preconditions.
  std::string propagation{};              ///< "Background", "Foreground", "Orphan" or "": the default.
  std::optional<int> grace_seconds{};
};

enum class PatchKind { kJson, kMerge, kStrategic, kApply };

/// What an admission rule is asked about. Answers nothing to let it pass.
struct AdmissionRequest {
  std::string operation;  ///< "CREATE", "UPDATE", "DELETE".
  const kube::Resource& resource;
  kube::Key key;
  std::string subresource;
  const core::Json* object = nullptr;  ///< The new state.
  const core::Json* before = nullptr;  ///< The old state.
  std::string user;
};
using Admission = std::function<std::optional<Refusal>(const AdmissionRequest&)>;

struct ApiOptions {
  bool watch_list = true;                      ///< Serves sendInitialEvents.
  bool watch_progress = true;                  ///< Its etcd tells progress. Where not, WatchList ends with an ERROR of 500.
  core::Duration bookmark_interval{10000};     ///< Real servers: about a minute.
  core::Duration compaction_interval{300000};  ///< History at least this old is forgotten; zero: never.
};

class KubeApi {
 public:
  KubeApi(core::Loop& loop, core::Random& random, ApiOptions options = {});
  ~KubeApi();

  void serve_kind(KubeKind kind);
  [[nodiscard]] const KubeKind* find_kind(std::string_view group, std::string_view version, std::string_view plural) const;
  /// By table_name(); null when unknown.
  [[nodiscard]] const KubeKind* find_table(const std::string& table) const;
  [[nodiscard]] const std::deque<KubeKind>& kinds() const { return kinds_; }
  void add_admission(Admission admission) { admissions_.push_back(std::move(admission)); }
  KubeStore& store() { return store_; }
  [[nodiscard]] const KubeStore& store() const { return store_; }
  core::Loop& loop() { return loop_; }
  [[nodiscard]] ApiOptions& options() { return options_; }

  // Verbs. Results are whole objects, with managedFields.
  ApiResult<core::Json> create(const kube::Resource& resource, core::Json object, const Caller& caller = {});
  [[nodiscard]] ApiResult<core::Json> get(const kube::Resource& resource, const kube::Key& key) const;
  /// PUT. `subresource` is "" or "status".
  ApiResult<core::Json> update(const kube::Resource& resource, core::Json object, const Caller& caller = {},
                               const std::string& subresource = "");
  /// `created` tells whether an apply made the object.
  ApiResult<core::Json> patch(const kube::Resource& resource, const kube::Key& key, PatchKind kind, const core::Json& patch,
                              const Caller& caller = {}, const std::string& subresource = "", bool force = false,
                              bool* created = nullptr);
  ApiResult<core::Json> remove(const kube::Resource& resource, const kube::Key& key, const Deletion& deletion = {},
                               const Caller& caller = {});
  /// Writes into a pod that it is about to be disrupted.
  void disrupt(core::Json& pod, const char* reason, const char* message) const;
  ApiResult<core::Json> evict(const kube::Key& pod, const Deletion& deletion, const Caller& caller = {});
  /// What POST .../binding does: `binding` is a Binding. The pod must be neither bound, nor gated, nor on its way out.
  ApiResult<core::Json> bind(const kube::Key& pod, const core::Json& binding, const Caller& caller = {});
  /// What POST .../token does: `request` is a TokenRequest; the answer is the same with its status. The token is none that
  /// anything checks, but no two are alike.
  ApiResult<core::Json> request_token(const kube::Key& account, core::Json request);
  /// Reads, lets `change` work on the object, and writes it back; no conflict is possible. False: not found or refused.
  bool modify(const kube::Resource& resource, const kube::Key& key, const std::function<void(core::Json&)>& change,
              const Caller& caller = {}, const std::string& subresource = "");
  /// Without managedFields; null when absent.
  [[nodiscard]] const core::Json* peek(const kube::Resource& resource, const kube::Key& key) const;

  // HTTP.
  /// Everything but watches.
  net::HttpResponse serve(const net::HttpRequest& request);
  [[nodiscard]] static bool is_watch(const net::HttpRequest& request);

  struct WatchEvent {
    enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
    Type type = Type::kAdded;
    std::string line;  ///< With its newline.
  };
  struct WatchSink {
    std::function<void(WatchEvent)> on_event;  ///< May come from inside of watch() and of verbs: must not call back.
    std::function<void()> on_end;              ///< The server ends it: timeout, or after an error event.
  };
  using WatchId = std::uint64_t;
  /// Opens a watch: the answer is the error, or the id; events come later, until closed.
  std::expected<WatchId, net::HttpResponse> watch(const net::HttpRequest& request, WatchSink sink);
  void close_watch(WatchId id);
  [[nodiscard]] std::size_t watch_count() const { return watches_.size(); }
  /// Ends all watches, as a restarted API server does.
  void end_watches();

  /// Forgets history older than now: watches that resume from before get 410.
  void compact() { store_.compact(store_.revision()); }
  /// Requests served so far, by verb ("create", "get" ...); for oracles on what happens at rest.
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  struct Watch;
  struct Parsed;

  std::expected<Parsed, net::HttpResponse> parse(const net::HttpRequest& request) const;
  net::HttpResponse serve_parsed(const Parsed& parsed, const net::HttpRequest& request);
  /// nullopt: it is not about a subresource that is only created.
  std::optional<net::HttpResponse> serve_created_subresource(const Parsed& parsed, const net::HttpRequest& request);
  net::HttpResponse serve_list(const Parsed& parsed);
  net::HttpResponse serve_scale(const Parsed& parsed, const net::HttpRequest& request);
  net::HttpResponse serve_delete(const Parsed& parsed, const net::HttpRequest& request);
  net::HttpResponse serve_patch(const Parsed& parsed, const net::HttpRequest& request);

  const KubeKind& must_find(const kube::Resource& resource) const;
  std::optional<Refusal> admit(const AdmissionRequest& request) const;
  std::optional<Refusal> check_object(const KubeKind& kind, const core::Json& object, const Caller& caller) const;
  std::optional<Refusal> check_namespace(const KubeKind& kind, const kube::Key& key) const;
  /// As it is stored then; `write` gives it back as it is shown.
  ApiResult<StoredPtr> store(const KubeKind& kind, const StoredPtr& before, core::Json after, const Caller& caller,
                             const std::string& subresource, std::optional<FieldOwners> owners, bool patched = false);
  ApiResult<core::Json> write(const KubeKind& kind, const StoredPtr& before, core::Json after, const Caller& caller,
                              const std::string& subresource, std::optional<FieldOwners> owners, bool patched = false);
  ApiResult<core::Json> apply(const KubeKind& kind, const kube::Key& key, const core::Json& config, const Caller& caller,
                              const std::string& subresource, bool force, bool* created);
  ApiResult<core::Json> create_owned(const KubeKind& kind, core::Json object, const Caller& caller, FieldOwners owners);
  core::Json finish_removal(const KubeKind& kind, const kube::Key& key);
  core::Json shown(const KubeKind& kind, const Stored& stored) const;
  const std::string& text_of(const KubeKind& kind, const Stored& stored) const;
  std::string text_for(const Watch& watch, const Stored& stored) const;
  void on_change(const std::string& table, const ChangePtr& change);
  void deliver(Watch& watch, const ChangePtr& change);
  void send_bookmark(Watch& watch, bool initial_end);
  std::optional<net::HttpResponse> open_watch(const Parsed& parsed, const std::shared_ptr<Watch>& watch);
  void compact_by_age();
  void end_watch(WatchId id);
  void fail_watch(WatchId id, const Refusal& status);
  void tick_bookmarks();
  std::string now() const;
  std::string new_uid();

  core::Loop& loop_;
  core::Random& random_;
  ApiOptions options_;
  KubeStore store_;
  std::deque<KubeKind> kinds_;  ///< Never moves: watches point into it.
  std::map<std::string, std::size_t> by_path_;
  std::vector<Admission> admissions_;
  std::map<WatchId, std::shared_ptr<Watch>> watches_;
  WatchId last_watch_ = 0;
  core::Timer bookmarks_;
  std::uint64_t compact_next_ = 0;  ///< Revision at the last look at the clock.
  core::MonoTime compact_looked_;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace sim
