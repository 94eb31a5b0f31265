// Sends requests to the API server and returns typed errors. Reads are live; for cached reads see kube/cache/cache.hpp.
//
// The client itself adds credentials and the User-Agent. After a 401, it renews the token once. Within limits, it retries
// requests that certainly had no effect (core::Retry::kLater: 429 and 503 with Retry-After, connections that were never
// opened). The caller handles all other errors: a level-triggered controller makes a new plan.
//
// Requires: all calls are on the loop; loop, transport and credentials outlive the client.
// Guarantees: `done` is called once, in a later iteration of the loop, unless the client is destroyed earlier. If
// lease_deadline is set, writes are fenced: the client refuses a write (kCancelled) unless we lead and the write's deadline is
// before the end of the lease.
//
// Folder src/kube/client: credentials, and requests to the API server. Uses net.
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
  int limit = 0;                 ///< The maximum number of items on a page; 0: no limit.
  std::string continue_token{};  ///< metadata.continue of the previous page.
  bool metadata_only = false;    ///< Requests a PartialObjectMetadataList.
};

struct ReadOptions {
  std::optional<core::Duration> timeout{};
  bool urgent = false;         ///< See net::HttpRequest.
  bool metadata_only = false;  ///< Requests a PartialObjectMetadata.
};

struct WriteOptions {
  /// "" or "status", "scale" ... For a create: "binding", "eviction", "token" ...; metadata.name is then the name of the
  /// parent object.
  std::string subresource{};
  std::string field_manager{};  ///< "": the client's own field manager.
  bool fenced = true;           ///< Refuses the write unless we lead. False only for the Lease itself.
  std::optional<core::Duration> timeout{};
  bool urgent = false;   ///< See net::HttpRequest.
  bool dry_run = false;  ///< Only for create: the server does everything except store the object.
};

struct DeleteOptions {
  std::string uid{}, resource_version{};  ///< Preconditions, if set.
};

/// One finished request, for metrics.
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
  /// Returns the end of our lease; nullopt if we do not lead. If this function is unset, writes are not fenced.
  std::function<std::optional<core::MonoTime>()> lease_deadline;
  /// Every write must end this long before the lease ends.
  core::Duration lease_margin{1000};
  int max_retries = 4;
  std::function<void(const RequestRecord&)> observe;
};

class Client {
 public:
  /// Receives the API server's JSON: an object with metadata, or a Status. Other replies are errors: kInternal, or
  /// kUnknownOutcome for a write.
  using Done = std::function<void(core::Result<core::Json>)>;
  using StreamId = std::uint64_t;

  Client(core::Loop& loop, core::Random& random, net::HttpTransport& transport, Credentials& credentials,
         ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Reads an object consistently, without a resourceVersion.
  void get(const Resource& resource, const Key& key, Done done, const ReadOptions& options = {});
  /// Returns the last line that, by the kubelet's clock, a container has written within `since`; "" if there is none.
  void last_line(const Key& pod, std::string_view container, std::chrono::seconds since,
                 std::function<void(core::Result<std::string>)> done);
  /// Lists one page consistently and returns the List as JSON. Only for small collections. Error: kExpired if
  /// the API server no longer has the version of `continue_token`.
  void list(const Resource& resource, const std::string& ns, const ListOptions& options, Done done);
  /// Lists all objects consistently, in pages of `limit` objects (0: 500), and returns one List. If the API server drops the
  /// version between two pages, the list starts again, up to kMaxListRestarts times. Error: kExpired if the last restart fails
  /// too.
  void list_all(const Resource& resource, const std::string& ns, ListOptions options, Done done);
  static constexpr int kMaxListRestarts = 2;
  /// Creates an object with strict field validation. Passes the stored object to `done`. For a subresource, passes the reply
  /// of the subresource, which is often only a Status.
  void create(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options = {});
  /// Replaces an object (PUT). Only for the Lease, because our process sets all of its content.
  void update(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options = {});
  /// Server-side apply. Takes fields from other managers. The object needs apiVersion, kind and metadata.name.
  void apply(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options = {});
  void patch(const Resource& resource, const Key& key, PatchType type, const core::Json& patch, Done done,
             const WriteOptions& options = {});
  /// Deletes an object. Its dependents are deleted in the background.
  void remove(const Resource& resource, const Key& key, const DeleteOptions& delete_options, Done done,
              const WriteOptions& options = {});

  /// Sends a GET whose reply is a stream (watch, list). If the status is not 200, the stream ends with a typed error from the
  /// body, and on_head is not called. Not retried, except once after a 401. `accept` "" means plain JSON; see kMetadataOnly.
  StreamId stream(const std::string& target, core::Duration timeout, net::StreamHandler handler, std::string accept = "");
  void cancel_stream(StreamId id);

  [[nodiscard]] const ClientOptions& options() const;
  /// Returns the time by which writes must have ended: lease_margin before the end of the lease. Returns nullopt if we do not
  /// lead, and the largest time if writes are not fenced. Writes to other servers must end by this time as well.
  [[nodiscard]] std::optional<core::MonoTime> write_deadline() const;
  /// Replaces ClientOptions::lease_deadline. The election calls this, because it is created after the client.
  void set_lease_deadline(std::function<std::optional<core::MonoTime>()> hook);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// The Accept headers that request only metadata: for one object or a watch, and for a list.
inline constexpr std::string_view kMetadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
inline constexpr std::string_view kMetadataOnlyList = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// Returns the typed error for a reply whose status is not 2xx. The error code follows from the HTTP status and the Status's
/// reason. The message is that of the Status in the body, with the causes of the Status.
core::Error error_from_response(int status, const net::Headers& headers, std::string_view body);
/// Returns the typed error for a Status object, for example from the ERROR event of a watch.
core::Error error_from_status(const core::Json& status, int http_status = 0);
/// Percent-encodes a query value. Unreserved characters of RFC 3986 are kept.
std::string query_escape(std::string_view value);

}  // namespace kube
