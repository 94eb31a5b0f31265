#include "kube/client/client.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/percent.hpp"
#include "core/retry.hpp"

namespace kube {

namespace {

constexpr core::Duration kLongestRetryAfter{60000};
constexpr core::Duration kShortestWrite{200};  ///< A write with less time than this before the lease ends is not started.

std::string_view content_type(PatchType type) {
  switch (type) {
    case PatchType::kMerge:
      return "application/merge-patch+json";
    case PatchType::kJson:
      return "application/json-patch+json";
    case PatchType::kStrategic:
      return "application/strategic-merge-patch+json";
  }
  return "";
}

core::ErrorCode code_of(int status, std::string_view reason) {
  if (reason == "AlreadyExists") return core::ErrorCode::kAlreadyExists;
  if (reason == "Conflict") return core::ErrorCode::kConflict;
  if (reason == "Expired" || reason == "Gone") return core::ErrorCode::kExpired;
  switch (status) {
    case 400:
    case 413:
    case 422:
      return core::ErrorCode::kInvalid;
    case 401:
      return core::ErrorCode::kUnauthorized;
    case 403:
      return core::ErrorCode::kForbidden;
    case 404:
      return core::ErrorCode::kNotFound;
    case 405:
    case 406:
    case 415:
      return core::ErrorCode::kUnsupported;
    case 409:
      return core::ErrorCode::kConflict;
    case 410:
      return core::ErrorCode::kExpired;
    case 429:
      return core::ErrorCode::kTooManyRequests;
    case 503:
      return core::ErrorCode::kUnavailable;
    // 504: the API server no longer waits for its own handler, but the handler may still complete the write.
    case 504:
      return core::ErrorCode::kUnknownOutcome;
    default:
      return core::ErrorCode::kInternal;
  }
}

std::optional<core::Duration> parse_retry_after(const net::Headers& headers) {
  const auto it = headers.find("retry-after");
  if (it == headers.end()) return std::nullopt;
  int seconds = 0;
  const char* end = it->second.data() + it->second.size();
  const auto [at, error] = std::from_chars(it->second.data(), end, seconds);
  if (error != std::errc{} || at != end || seconds < 0) return std::nullopt;
  return std::min(core::Duration{seconds * 1000L}, kLongestRetryAfter);
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// A path with query parameters.
class RequestTarget {
 public:
  explicit RequestTarget(std::string path) : text_(std::move(path)) {}
  RequestTarget& add(std::string_view name, std::string_view value) {
    if (value.empty()) return *this;
    text_.append(query_ ? "&" : "?").append(name).append("=").append(query_escape(value));
    query_ = true;
    return *this;
  }
  [[nodiscard]] std::string str() const { return text_; }

 private:
  std::string text_;
  bool query_ = false;
};

/// Reports whether the reply comes from an API server: it is an object, a list or a Status. A proxy in front of the API server
/// may answer with status 200 and any other JSON.
bool is_answer(const core::Json& reply) {
  const core::Json* meta = core::find(reply, {"metadata"});
  return (meta != nullptr && meta->is_object()) || core::get_string(reply, {"kind"}) == "Status";
}

}  // namespace

std::string query_escape(std::string_view value) {
  return core::percent_encode(value);
}

core::Error error_from_status(const core::Json& status, int http_status) {
  core::Error error;
  error.http_status = http_status != 0 ? http_status : static_cast<int>(core::get_int(status, {"code"}));
  error.reason = core::get_string(status, {"reason"});
  error.code = code_of(error.http_status, error.reason);
  error.message = one_line(core::get_string(status, {"message"}));
  if (const core::Json* causes = core::find(status, {"details", "causes"}); causes != nullptr && causes->is_array()) {
    for (const core::Json& cause : *causes) {
      // The reason "too large resource version" comes with a 504, but no write is lost: the cache of the server is older than
      // ours.
      if (core::get_string(cause, {"reason"}) == "ResourceVersionTooLarge") error.code = core::ErrorCode::kExpired;
      // This 403 is not about rights: NamespaceTerminatingCause of k8s.io/api/core/v1.
      if (core::get_string(cause, {"reason"}) == "NamespaceTerminating") error.reason = "NamespaceTerminating";
      // This 429 does not mean overload: a PodDisruptionBudget protects this pod, and no other request needs to wait.
      if (core::get_string(cause, {"reason"}) == "DisruptionBudget") {
        error.code = core::ErrorCode::kBusy;
        error.reason = "DisruptionBudget";
      }
      const std::string message = one_line(core::get_string(cause, {"message"}));
      if (message.empty() || error.message.find(message) != std::string::npos) continue;
      const std::string field = core::get_string(cause, {"field"});
      error.message += "; " + (field.empty() ? "" : field + ": ") + message;
    }
  }
  const long long retry = core::get_int(status, {"details", "retryAfterSeconds"});
  if (retry > 0) error.retry_after = std::min(core::Duration{retry * 1000}, kLongestRetryAfter);
  if (error.message.empty()) error.message = "HTTP " + std::to_string(error.http_status);
  return error;
}

core::Error error_from_response(int status, const net::Headers& headers, std::string_view body) {
  core::Error error;
  const auto json = core::parse_json(body);
  if (json && core::get_string(*json, {"kind"}) == "Status") {
    error = error_from_status(*json, status);
  } else {
    error.http_status = status;
    error.code = code_of(status, "");
    error.message = one_line("HTTP " + std::to_string(status) + (body.empty() ? "" : ": " + std::string(body.substr(0, 200))));
  }
  if (const auto wait = parse_retry_after(headers)) error.retry_after = wait;
  return error;
}

struct Client::Impl : std::enable_shared_from_this<Client::Impl> {
  using RawDone = std::function<void(core::Result<net::HttpResponse>)>;

  Impl(core::Loop& l, core::Random& r, net::HttpTransport& t, Credentials& c, ClientOptions o)
      : loop(l), random(r), transport(t), credentials(c), options(std::move(o)) {}

  core::Loop& loop;
  core::Random& random;
  net::HttpTransport& transport;
  Credentials& credentials;
  ClientOptions options;
  bool closed = false;

  /// One request with all its attempts.
  struct Call {
    net::HttpRequest request;
    RawDone done;
    bool write = false;
    bool fenced = false;
    bool renewed = false;
    int tries = 0;
    core::MonoTime deadline;  ///< For all attempts together.
    net::HttpTransport::RequestId id = 0;
    core::Loop::TimerId timer = 0;
    core::MonoTime began;
  };
  using CallPtr = std::shared_ptr<Call>;
  std::set<CallPtr> calls;

  struct Stream {
    std::string target;
    std::string accept;
    core::Duration timeout{0};
    net::StreamHandler handler;
    net::HttpTransport::RequestId id = 0;
    bool renewed = false;
    int status = 0;
    net::Headers headers;
    std::string error_body;
  };
  std::map<StreamId, std::shared_ptr<Stream>> streams;
  StreamId last_stream = 0;

  void finish(const CallPtr& call, core::Result<net::HttpResponse> result) {
    if (calls.erase(call) == 0) return;
    const RawDone done = std::move(call->done);
    if (done) done(std::move(result));
  }

  void finish_later(const CallPtr& call, core::Result<net::HttpResponse> result) {
    call->timer = loop.after(core::Duration{0}, [weak = weak_from_this(), call, result = std::move(result)] {
      if (const auto self = weak.lock()) self->finish(call, result);
    });
  }

  void begin(net::HttpRequest request, bool write, bool fenced, RawDone done) {
    auto call = std::make_shared<Call>();
    call->request = std::move(request);
    call->request.target = credentials.base_path() + call->request.target;
    call->done = std::move(done);
    call->write = write;
    call->fenced = fenced;
    call->deadline = loop.clock().mono() + call->request.timeout;
    calls.insert(call);
    attempt(call);
  }

  [[nodiscard]] std::optional<core::MonoTime> write_deadline() const {
    if (!options.lease_deadline) return core::MonoTime{core::Duration::max()};
    const auto lease = options.lease_deadline();
    if (!lease) return std::nullopt;
    return *lease - options.lease_margin;
  }

  /// Returns the time that this attempt may take, or why it may not start.
  [[nodiscard]] core::Result<core::Duration> budget(const Call& call) const {
    const core::MonoTime now = loop.clock().mono();
    core::Duration left = call.deadline - now;
    if (call.fenced && options.lease_deadline) {
      const auto until = write_deadline();
      if (!until) return core::fail(core::ErrorCode::kCancelled, "not the leader: the write was not sent");
      left = std::min(left, *until - now);
      if (left < kShortestWrite)
        return core::fail(core::ErrorCode::kCancelled, "the lease is about to end: the write was not sent");
    }
    if (left <= core::Duration{0}) return core::fail(core::ErrorCode::kUnavailable, "out of time before the request was sent");
    return left;
  }

  void attempt(const CallPtr& call) {
    const auto left = budget(*call);
    if (!left) return finish_later(call, std::unexpected(left.error()));
    const auto token = credentials.token();
    if (!token) return renew(call, core::Error{core::ErrorCode::kUnauthorized, "no credentials", 0, {}, {}});
    net::HttpRequest request = call->request;
    request.timeout = *left;
    decorate(request, *token);
    call->began = loop.clock().mono();
    ++call->tries;
    call->id = transport.send(std::move(request), [weak = weak_from_this(), call](core::Result<net::HttpResponse> reply) {
      if (const auto self = weak.lock()) self->answered(call, std::move(reply));
    });
  }

  void decorate(net::HttpRequest& request, const std::string& token) const {
    request.headers["user-agent"] = options.user_agent;
    request.headers.try_emplace("accept", "application/json");
    if (!token.empty()) request.headers["authorization"] = "Bearer " + token;
  }

  void answered(const CallPtr& call, core::Result<net::HttpResponse> reply) {
    call->id = 0;
    const int status = reply ? reply->status : 0;
    if (options.observe) {
      options.observe({call->request.method, status, loop.clock().mono() - call->began, call->request.body.size(),
                       reply ? reply->body.size() : 0, call->tries > 1});
    }
    if (!reply) {
      if (core::retry_of(reply.error().code) == core::Retry::kLater && retry_after(call, backoff(call->tries))) return;
      if (!call->write) reply.error().code = core::code_of_read(reply.error().code);
      return finish(call, std::move(reply));
    }
    if (status >= 200 && status < 300) return finish(call, std::move(reply));
    core::Error error = error_from_response(status, reply->headers, reply->body);
    const core::Retry retry = core::retry_of(error.code);
    if (retry == core::Retry::kRenewCredentials && !call->renewed) return renew(call, std::move(error));
    // The server may have failed after the write. Webhooks are called before the write, so if a webhook failed, nothing was
    // written.
    const bool unknown = status >= 500 && error.message.find("failed calling webhook") == std::string::npos;
    if (call->write && unknown && error.code == core::ErrorCode::kInternal) error.code = core::ErrorCode::kUnknownOutcome;
    if (retry == core::Retry::kLater && error.retry_after && retry_after(call, *error.retry_after)) return;
    if (!call->write) error.code = core::code_of_read(error.code);
    finish(call, std::unexpected(std::move(error)));
  }

  [[nodiscard]] core::Duration backoff(int tries) const {
    const core::Duration plain{100L << std::min(tries, 5)};
    return plain / 2 + core::Duration{static_cast<core::Duration::rep>(random.unit() * static_cast<double>(plain.count()))};
  }

  /// Schedules another attempt. Returns false if attempts or time are used up.
  bool retry_after(const CallPtr& call, core::Duration delay) {
    if (call->tries > options.max_retries) return false;
    if (loop.clock().mono() + delay >= call->deadline) return false;
    call->timer = loop.after(delay, [weak = weak_from_this(), call] {
      if (const auto self = weak.lock()) self->attempt(call);
    });
    return true;
  }

  void renew(const CallPtr& call, core::Error error) {
    if (call->renewed) return finish_later(call, std::unexpected(std::move(error)));
    call->renewed = true;
    credentials.refresh([weak = weak_from_this(), call, error = std::move(error)](core::Result<void> result) {
      const auto self = weak.lock();
      if (!self || !self->calls.contains(call)) return;
      if (!result) {
        core::Error said = error;
        said.message += " (" + result.error().message + ")";
        return self->finish_later(call, std::unexpected(std::move(said)));
      }
      self->attempt(call);
    });
  }

  // --- Streams ---

  void open(StreamId id) {
    const auto stream = streams.at(id);
    const auto token = credentials.token();
    if (!token) return renew_stream(id, core::Error{core::ErrorCode::kUnauthorized, "no credentials", 0, {}, {}});
    net::HttpRequest request{"GET", credentials.base_path() + stream->target, {}, "", stream->timeout};
    if (!stream->accept.empty()) request.headers["accept"] = stream->accept;
    decorate(request, *token);
    const auto mine = [weak = weak_from_this(), id]() -> std::pair<std::shared_ptr<Impl>, std::shared_ptr<Stream>> {
      const auto self = weak.lock();
      if (!self) return {};
      const auto it = self->streams.find(id);
      if (it == self->streams.end()) return {};
      return {self, it->second};
    };
    net::StreamHandler inner;
    inner.on_head = [mine](int status, const net::Headers& headers) {
      const auto [self, s] = mine();
      if (!self) return;
      s->status = status;
      s->headers = headers;
      if (status == 200 && s->handler.on_head) s->handler.on_head(status, headers);
    };
    inner.on_data = [mine](std::string_view piece) {
      const auto [self, s] = mine();
      if (!self) return;
      if (s->status == 200) {
        if (s->handler.on_data) s->handler.on_data(piece);
      } else if (s->error_body.size() < 64U << 10U) {
        s->error_body.append(piece);
      }
    };
    inner.on_end = [mine, id](core::Result<void> result) {
      const auto [self, s] = mine();
      if (!self) return;
      s->id = 0;
      self->stream_ended(id, std::move(result));
    };
    stream->id = transport.stream(std::move(request), std::move(inner));
  }

  void stream_ended(StreamId id, core::Result<void> result) {
    const auto stream = streams.at(id);
    if (result && stream->status != 200) {
      core::Error error = error_from_response(stream->status, stream->headers, stream->error_body);
      if (core::retry_of(error.code) == core::Retry::kRenewCredentials && !stream->renewed)
        return renew_stream(id, std::move(error));
      error.code = core::code_of_read(error.code);
      result = std::unexpected(std::move(error));
    }
    if (options.observe) options.observe({"WATCH", stream->status, core::Duration{0}, 0, 0, false});
    streams.erase(id);
    if (stream->handler.on_end) stream->handler.on_end(std::move(result));
  }

  void renew_stream(StreamId id, core::Error error) {
    const auto stream = streams.at(id);
    const auto end = [weak = weak_from_this(), id](core::Error why) {
      const auto self = weak.lock();
      if (!self) return;
      self->loop.after(core::Duration{0}, [weak, id, why = std::move(why)] {
        const auto again = weak.lock();
        if (!again) return;
        const auto it = again->streams.find(id);
        if (it == again->streams.end()) return;
        const auto s = it->second;
        again->streams.erase(it);
        if (s->handler.on_end) s->handler.on_end(std::unexpected(why));
      });
    };
    if (stream->renewed) return end(std::move(error));
    stream->renewed = true;
    stream->status = 0;
    stream->error_body.clear();
    credentials.refresh([weak = weak_from_this(), id, end, error = std::move(error)](core::Result<void> result) {
      const auto self = weak.lock();
      if (!self || !self->streams.contains(id)) return;
      if (!result) return end(error);
      self->open(id);
    });
  }

  void close() {
    closed = true;
    for (const CallPtr& call : calls) {
      if (call->id != 0) transport.cancel(call->id);
      if (call->timer != 0) loop.cancel(call->timer);
    }
    calls.clear();
    for (const auto& [id, stream] : streams) {
      if (stream->id != 0) transport.cancel(stream->id);
    }
    streams.clear();
  }

  // --- Requests with JSON ---

  [[nodiscard]] std::string manager(const WriteOptions& write) const {
    return write.field_manager.empty() ? options.field_manager : write.field_manager;
  }

  void send_json(std::string method, std::string target, const core::Json* body, std::string_view type,
                 const WriteOptions* write, Done done, const ReadOptions& read = {}, std::string_view accept = "") {
    net::HttpRequest request;
    if (!accept.empty()) request.headers["accept"] = accept;
    request.method = std::move(method);
    request.target = std::move(target);
    request.timeout = (write != nullptr ? write->timeout : read.timeout).value_or(options.timeout);
    request.urgent = write != nullptr ? write->urgent : read.urgent;
    if (body != nullptr) {
      request.body = body->dump(-1, ' ', false, core::Json::error_handler_t::replace);
      request.headers["content-type"] = type;
    }
    begin(std::move(request), write != nullptr, write != nullptr && write->fenced,
          [done = std::move(done), is_write = write != nullptr](core::Result<net::HttpResponse> reply) {
            if (!reply) return done(std::unexpected(std::move(reply.error())));
            auto json = core::parse_json(reply->body);
            if (json && !is_answer(*json)) json = core::fail(core::ErrorCode::kInvalid, "not an object of Kubernetes");
            if (json) return done(std::move(*json));
            // A write with a 2xx answer was carried out, even if the reply cannot be parsed.
            core::Error error = json.error().with("reply of the API server");
            error.code = is_write ? core::ErrorCode::kUnknownOutcome : core::ErrorCode::kInternal;
            done(std::unexpected(std::move(error)));
          });
  }
};

Client::Client(core::Loop& loop, core::Random& random, net::HttpTransport& transport, Credentials& credentials,
               ClientOptions options)
    : impl_(std::make_shared<Impl>(loop, random, transport, credentials, std::move(options))) {}

Client::~Client() {
  impl_->close();
}

const ClientOptions& Client::options() const {
  return impl_->options;
}

std::optional<core::MonoTime> Client::write_deadline() const {
  return impl_->write_deadline();
}

void Client::set_lease_deadline(std::function<std::optional<core::MonoTime>()> hook) {
  impl_->options.lease_deadline = std::move(hook);
}

void Client::get(const Resource& resource, const Key& key, Done done, const ReadOptions& options) {
  impl_->send_json("GET", resource.path(key.ns, key.name), nullptr, "", nullptr, std::move(done), options,
                   options.metadata_only ? kMetadataOnly : "");
}

void Client::last_line(const Key& pod, std::string_view container, std::chrono::seconds since,
                       std::function<void(core::Result<std::string>)> done) {
  // The API server sends this request on to the kubelet, whose machine might not respond.
  constexpr core::Duration kPatience{5000};
  RequestTarget target(resources::kPod.path(pod.ns, pod.name, "log"));
  target.add("container", container).add("tailLines", "1").add("limitBytes", "4096");
  target.add("sinceSeconds", std::to_string(since.count()));
  net::HttpRequest request;
  request.method = "GET";
  request.target = target.str();
  request.timeout = std::min(kPatience, impl_->options.timeout);
  impl_->begin(std::move(request), false, false, [done = std::move(done)](core::Result<net::HttpResponse> reply) {
    if (!reply) return done(std::unexpected(std::move(reply.error())));
    done(std::move(reply->body));
  });
}

void Client::list(const Resource& resource, const std::string& ns, const ListOptions& options, Done done) {
  RequestTarget target(resource.path(ns));
  target.add("labelSelector", options.label_selector).add("fieldSelector", options.field_selector);
  if (options.limit > 0) target.add("limit", std::to_string(options.limit));
  target.add("continue", options.continue_token);
  impl_->send_json("GET", target.str(), nullptr, "", nullptr, std::move(done), {},
                   options.metadata_only ? kMetadataOnlyList : "");
}

namespace {

/// A list request under way: the pages joined so far, and what is needed to ask for the next page.
struct Pages {
  Client& client;
  Resource resource;
  std::string ns;
  ListOptions options;
  Client::Done done;
  core::Json list;
  int restarts = 0;
};

void next_page(std::shared_ptr<Pages> pages) {
  // The reference to the client is safe: if the client is destroyed, the callback is never called.
  pages->client.list(pages->resource, pages->ns, pages->options, [pages](core::Result<core::Json> reply) {
    if (!reply && reply.error().code == core::ErrorCode::kExpired && ++pages->restarts <= Client::kMaxListRestarts) {
      // The reply has a token that continues the list at a newer version. A list continued so would have objects of two
      // versions.
      pages->options.continue_token.clear();
      pages->list = nullptr;
      return next_page(pages);
    }
    if (!reply) return pages->done(std::move(reply));
    pages->options.continue_token = core::get_string(*reply, {"metadata", "continue"});
    if (pages->list.is_null()) {
      pages->list = std::move(*reply);
    } else {
      for (core::Json& item : (*reply)["items"]) pages->list["items"].push_back(std::move(item));
    }
    if (!pages->options.continue_token.empty()) return next_page(pages);
    for (const char* of_a_page : {"continue", "remainingItemCount"}) pages->list["metadata"].erase(of_a_page);
    pages->done(std::move(pages->list));
  });
}

}  // namespace

void Client::list_all(const Resource& resource, const std::string& ns, ListOptions options, Done done) {
  constexpr int kPage = 500;
  if (options.limit <= 0) options.limit = kPage;
  next_page(std::make_shared<Pages>(Pages{*this, resource, ns, std::move(options), std::move(done), nullptr}));
}

void Client::create(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options) {
  const Key key = key_of(object);
  RequestTarget target(options.subresource.empty() ? resource.path(key.ns)
                                                   : resource.path(key.ns, key.name, options.subresource));
  target.add("fieldManager", impl_->manager(options)).add("fieldValidation", "Strict");
  if (options.dry_run) target.add("dryRun", "All");
  impl_->send_json("POST", target.str(), &object, "application/json", &options, std::move(done));
}

void Client::update(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options) {
  const Key key = key_of(object);
  RequestTarget target(resource.path(key.ns, key.name, options.subresource));
  target.add("fieldManager", impl_->manager(options)).add("fieldValidation", "Strict");
  impl_->send_json("PUT", target.str(), &object, "application/json", &options, std::move(done));
}

void Client::apply(const Resource& resource, const core::Json& object, Done done, const WriteOptions& options) {
  const Key key = key_of(object);
  RequestTarget target(resource.path(key.ns, key.name, options.subresource));
  target.add("fieldManager", impl_->manager(options)).add("fieldValidation", "Strict").add("force", "true");
  // This content type is for YAML, and each JSON document is YAML. Servers before 1.34 know only this type for an apply.
  impl_->send_json("PATCH", target.str(), &object, "application/apply-patch+yaml", &options, std::move(done));
}

void Client::patch(const Resource& resource, const Key& key, PatchType type, const core::Json& patch, Done done,
                   const WriteOptions& options) {
  RequestTarget target(resource.path(key.ns, key.name, options.subresource));
  target.add("fieldManager", impl_->manager(options)).add("fieldValidation", "Strict");
  impl_->send_json("PATCH", target.str(), &patch, content_type(type), &options, std::move(done));
}

void Client::remove(const Resource& resource, const Key& key, const DeleteOptions& delete_options, Done done,
                    const WriteOptions& options) {
  core::Json body = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  if (!delete_options.uid.empty()) body["preconditions"]["uid"] = delete_options.uid;
  if (!delete_options.resource_version.empty()) body["preconditions"]["resourceVersion"] = delete_options.resource_version;
  impl_->send_json("DELETE", resource.path(key.ns, key.name), &body, "application/json", &options, std::move(done));
}

Client::StreamId Client::stream(const std::string& target, core::Duration timeout, net::StreamHandler handler,
                                std::string accept) {
  const StreamId id = ++impl_->last_stream;
  auto stream = std::make_shared<Impl::Stream>();
  stream->target = target;
  stream->timeout = timeout;
  stream->handler = std::move(handler);
  stream->accept = std::move(accept);
  impl_->streams.emplace(id, std::move(stream));
  impl_->open(id);
  return id;
}

void Client::cancel_stream(StreamId id) {
  const auto it = impl_->streams.find(id);
  if (it == impl_->streams.end()) return;
  const auto stream = it->second;
  impl_->streams.erase(it);
  if (stream->id != 0) impl_->transport.cancel(stream->id);
}

}  // namespace kube
