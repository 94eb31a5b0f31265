// The API server's rules on top of the store: verbs, preconditions, generations, finalizers, apply, watches, and the Status
// bodies of refusals. Callers in the same process (controllers of the simulated cluster, tests, users) call the verbs directly;
// all others use HTTP.
//
// Folder sim/kube: the model of Kubernetes. Uses sim/base, and the data of api and kube. Knows nothing of Slurm.
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

/// The Status body with which the API server refuses.
using Refusal = core::Json;
template <class T>
using ApiResult = std::expected<T, Refusal>;

/// Returns a Status of failure. The details are omitted without `resource`.
Refusal make_status(int code, std::string_view reason, std::string message, const kube::Resource* resource = nullptr,
                    std::string_view name = "");

/// Reports whether the condition Ready of a pod or a node is True.
bool is_ready(const core::Json& object);

/// The caller of a verb, and its options.
struct Caller {
  std::string user = "admin";
  std::string manager = "admin";  ///< The field manager.
  bool strict = false;            ///< fieldValidation=Strict.
  bool dry_run = false;
};

struct Deletion {
  std::string uid{}, resource_version{};  ///< Preconditions.
  std::string propagation{};              ///< "Background", "Foreground", "Orphan" or "": the default.
  std::optional<int> grace_seconds{};
};

enum class PatchKind { kJson, kMerge, kStrategic, kApply };

/// A request as an admission rule sees it. The rule returns nullopt to admit the request.
struct AdmissionRequest {
  std::string operation;  ///< "CREATE", "UPDATE", "DELETE".
  const kube::Resource& resource;
  kube::Key key;
  std::string subresource;
  const core::Json* object = nullptr;  ///< The new state. Null for DELETE.
  const core::Json* before = nullptr;  ///< The old state. Null for CREATE.
  std::string user;
};
using Admission = std::function<std::optional<Refusal>(const AdmissionRequest&)>;

struct ApiOptions {
  bool watch_list = true;                      ///< The server supports sendInitialEvents.
  bool watch_progress = true;                  ///< etcd reports progress. If false, a WatchList ends with an ERROR of 500.
  core::Duration bookmark_interval{10000};     ///< The time between bookmarks. Real servers take about a minute.
  core::Duration compaction_interval{300000};  ///< History is kept at least this long; zero: for ever.
};

class KubeApi {
 public:
  KubeApi(core::Loop& loop, core::Random& random, ApiOptions options = {});
  ~KubeApi();

  void serve_kind(KubeKind kind);
  [[nodiscard]] const KubeKind* find_kind(std::string_view group, std::string_view version, std::string_view plural) const;
  /// Finds a kind by table_name(); null if unknown.
  [[nodiscard]] const KubeKind* find_table(const std::string& table) const;
  [[nodiscard]] const std::deque<KubeKind>& kinds() const { return kinds_; }
  void add_admission(Admission admission) { admissions_.push_back(std::move(admission)); }
  KubeStore& store() { return store_; }
  [[nodiscard]] const KubeStore& store() const { return store_; }
  core::Loop& loop() { return loop_; }
  [[nodiscard]] ApiOptions& options() { return options_; }

  // --- Verbs: results are whole objects, with managedFields ---
  ApiResult<core::Json> create(const kube::Resource& resource, core::Json object, const Caller& caller = {});
  [[nodiscard]] ApiResult<core::Json> get(const kube::Resource& resource, const kube::Key& key) const;
  /// Replaces the object, like a PUT. `subresource` is "" or "status".
  ApiResult<core::Json> update(const kube::Resource& resource, core::Json object, const Caller& caller = {},
                               const std::string& subresource = "");
  /// kApply creates a missing object, and then sets `created`. `force` lets kApply take fields from other managers.
  ApiResult<core::Json> patch(const kube::Resource& resource, const kube::Key& key, PatchKind kind, const core::Json& patch,
                              const Caller& caller = {}, const std::string& subresource = "", bool force = false,
                              bool* created = nullptr);
  ApiResult<core::Json> remove(const kube::Resource& resource, const kube::Key& key, const Deletion& deletion = {},
                               const Caller& caller = {});
  /// Sets the condition DisruptionTarget in a pod, with this reason and message.
  void disrupt(core::Json& pod, const char* reason, const char* message) const;
  ApiResult<core::Json> evict(const kube::Key& pod, const Deletion& deletion, const Caller& caller = {});
  /// Acts like POST .../token. `request` is a TokenRequest, and the result is this TokenRequest with a status. The token is not
  /// valid, but unique.
  ApiResult<core::Json> request_token(const kube::Key& account, core::Json request);
  /// Reads the object, calls `change` on it, and writes it back. Returns false if it does not exist or the API refuses the
  /// write.
  bool modify(const kube::Resource& resource, const kube::Key& key, const std::function<void(core::Json&)>& change,
              const Caller& caller = {}, const std::string& subresource = "");
  /// Returns the object without managedFields; null if absent. Valid until the object is next written or deleted.
  [[nodiscard]] const core::Json* peek(const kube::Resource& resource, const kube::Key& key) const;

  // --- HTTP ---
  /// Serves all requests except watches.
  net::HttpResponse serve(const net::HttpRequest& request);
  [[nodiscard]] static bool is_watch(const net::HttpRequest& request);

  struct WatchEvent {
    enum class Type { kAdded, kModified, kDeleted, kBookmark, kError };
    Type type = Type::kAdded;
    std::string line;  ///< Includes the newline.
  };
  struct WatchSink {
    std::function<void(WatchEvent)> on_event;  ///< Can be called from inside of watch() and of verbs. Must not call back.
    std::function<void()> on_end;              ///< The server ended the watch: a timeout, or after an error event.
  };
  using WatchId = std::uint64_t;
  /// Opens a watch. The watch sends events until it is closed. Returns the id of the watch, or the reply with the error.
  std::expected<WatchId, net::HttpResponse> watch(const net::HttpRequest& request, WatchSink sink);
  void close_watch(WatchId id);
  [[nodiscard]] std::size_t watch_count() const { return watches_.size(); }
  /// Ends all watches, like a restart of the API server.
  void end_watches();

  /// Drops all history until now. A watch that resumes from an earlier revision gets 410.
  void compact() { store_.compact(store_.revision()); }
  /// Returns how many requests were served, by verb and table: "create pods", "watch deployments.apps".
  [[nodiscard]] const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  struct Watch;
  struct Parsed;

  std::expected<Parsed, net::HttpResponse> parse(const net::HttpRequest& request) const;
  net::HttpResponse serve_parsed(const Parsed& parsed, const net::HttpRequest& request);
  /// Serves a POST to a subresource that can only be created. Returns nullopt for all other requests.
  std::optional<net::HttpResponse> serve_created_subresource(const Parsed& parsed, const net::HttpRequest& request);
  net::HttpResponse serve_list(const Parsed& parsed);
  net::HttpResponse serve_scale(const Parsed& parsed, const net::HttpRequest& request);
  net::HttpResponse serve_delete(const Parsed& parsed, const net::HttpRequest& request);
  net::HttpResponse serve_patch(const Parsed& parsed, const net::HttpRequest& request);

  const KubeKind& must_find(const kube::Resource& resource) const;
  std::optional<Refusal> admit(const AdmissionRequest& request) const;
  std::optional<Refusal> check_object(const KubeKind& kind, const core::Json& object, const Caller& caller) const;
  std::optional<Refusal> check_namespace(const KubeKind& kind, const kube::Key& key) const;
  /// store() and write() both store the new state. store() returns the stored object, and write() the object as served.
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
  std::deque<KubeKind> kinds_;  ///< Elements never move, because watches point to them.
  std::map<std::string, std::size_t> by_path_;
  std::vector<Admission> admissions_;
  std::map<WatchId, std::shared_ptr<Watch>> watches_;
  WatchId last_watch_ = 0;
  core::Timer bookmarks_;
  std::uint64_t compact_next_ = 0;  ///< The store's revision at compact_looked_.
  core::MonoTime compact_looked_;
  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace sim
