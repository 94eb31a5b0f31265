// Requests to the API server, with typed errors. Live reads and writes only; cached reads are kube/cache/cache.hpp.
//
// What the client does on its own: adds credentials and User-Agent; renews the token once on 401; sends again, within bounds,
// what was certainly not carried out (core::Retry::kLater: 429 and 503 that carry Retry-After; connections never opened).
// Everything else is the caller's: a level-triggered controller simply plans again.
//
// Requires: all calls are on the loop; loop, transport and credentials outlive the client.
// Guarantees: `done` is called once, later, on the loop, unless the client is destroyed before. With a lease hook, writes are
// fenced: one is refused (kCancelled) unless we lead, and its deadline ends before the lease does.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "core/result.hpp"
#include "kube/acts.hpp"
#include "kube/client/credentials.hpp"
#include "kube/object.hpp"
#include "net/http.hpp"

namespace kube {

struct ListOptions {
  std::string field_selector{};
  std::string label_selector{};
  int limit = 0;                 ///< 0: all at once.
  std::string continue_token{};  ///< Where the page before ended (metadata.continue of its reply).
  bool metadata_only = false;    ///< A PartialObjectMetadataList.
};

struct ReadOptions {
  std::optional<core::Duration> timeout{};
  bool urgent = false;         ///< See net::HttpRequest.
  bool metadata_only = false;  ///< A PartialObjectMetadata.
};

struct WriteOptions {
  /// "" or "status", "scale" ... Of create: "binding", "eviction", "token" ...; metadata.name is then that of the object that
  /// it belongs to.
  std::string subresource{};
  std::string field_manager{};  ///< "": the client's own.
  bool fenced = true;           ///< False only for the Lease itself.
  std::optional<core::Duration> timeout{};
  bool urgent = false;   ///< See net::HttpRequest.
  bool dry_run = false;  ///< Of create: all is done but the writing.
};

struct DeleteOptions {
  std::string uid{}, resource_version{};  ///< Preconditions, where given.
};

/// One finished exchange, for metrics.
struct RequestRecord {
  std::string method;
  int status = 0;  ///< 0: no reply.
  core::Duration took{0};
  std::size_t sent_bytes = 0, received_bytes = 0;
  bool retry = false;
};

struct ClientOptions {
  std::string user_agent = "slurm-operator/dev";
  std::string field_manager = "slurm-operator";
  core::Duration timeout{10000};
  /// The end of our lease: nullopt when we do not lead. Unset: writes are not fenced.
  std::function<std::optional<core::MonoTime>()> lease_deadline;
  /// How long before the lease ends every write must have ended.
  core::Duration lease_margin{1000};
  int max_retries = 4;
  std::function<void(const RequestRecord&)> observe;
};

class Client {
 public:
  /// The JSON is an object with metadata, or a Status. Any other is an error: kInternal, of a write kUnknownOutcome.
  using Done = std::function<void(core::Result<core::Json>)>;
  using StreamId = std::uint64_t;

  Client(core::Loop& loop, core::Random& random, net::HttpTransport& transport, Credentials& credentials,
         ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// A consistent read (no resourceVersion).
  void get(const Resource& resource, const Key& key, Done done, const ReadOptions& options = {});
  /// The last line that a container has written within the last `since`, by its kubelet's clock; "": none.
  void last_line(const Key& pod, std::string_view container, std::chrono::seconds since,
                 std::function<void(core::Result<std::string>)> done);
  /// A consistent list of one page; the reply is the List as JSON (small collections only; caches stream). Error: kExpired,
  /// when the API server has forgotten the version that `continue_token` is of.
  void list(const Resource& resource, const std::string& ns, const ListOptions& options, Done done);
  /// A consistent list of all, by pages of `limit` objects (0: 500); the reply is one List. Where the API server forgets its
  /// version between two pages it begins anew, up to kMaxListRestarts times. Error: kExpired, after that.
  void list_all(const Resource& resource, const std::string& ns, ListOptions options, Done done);
  static constexpr int kMaxListRestarts = 2;
  /// Strict field validation. The reply is the object as stored; of a subresource, what it answers (often only a Status).
  void create(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options = {});
  /// PUT. For the Lease, whose whole content is ours.
  void update(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options = {});
  /// Server-side apply; takes fields over from other managers. `object` needs apiVersion, kind and metadata.name.
  void apply(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options = {});
  void patch(const Resource& resource, const Key& key, PatchType type, const core::Json& patch, Done done,
             const WriteOptions& options = {});
  /// What the object owns is deleted in the background.
  void remove(const Resource& resource, const Key& key, const DeleteOptions& delete_options, Done done,
              const WriteOptions& options = {});

  /// A streamed GET (watch, list). Statuses other than 200 end with a typed error, read from the body; on_head is not called
  /// for them. Not retried. `accept`: "" is plain JSON; see kMetadataOnly.
  StreamId stream(const std::string& target, core::Duration timeout, net::StreamHandler handler, std::string accept = "");
  void cancel_stream(StreamId id);

  [[nodiscard]] const ClientOptions& options() const;
  /// Until when writes may be under way: the lease's end less the margin. nullopt when we do not lead; the end of time when
  /// writes are not fenced. For writers to other servers, which the lease fences too.
  [[nodiscard]] std::optional<core::MonoTime> write_deadline() const;
  /// Replaces the fence; for the election, which needs the client itself.
  void set_lease_deadline(std::function<std::optional<core::MonoTime>()> hook);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// What to accept, to be answered with the metadata of objects alone: of one (also in watches), and of each in a list.
inline constexpr std::string_view kMetadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
inline constexpr std::string_view kMetadataOnlyList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The typed error of a reply that is not 2xx: code from status and reason, message from the Status body with its causes.
core::Error error_from_response(int status, const net::Headers& headers, std::string_view body);
/// The same of a Status object as it comes in a watch's ERROR event.
core::Error error_from_status(const core::Json& status, int http_status = 0);
/// Percent-encodes a query value (RFC 3986 unreserved characters stay).
std::string query_escape(std::string_view value);

}  // namespace kube
