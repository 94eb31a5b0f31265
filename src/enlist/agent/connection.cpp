#include "enlist/agent/connection.hpp"

#include <algorithm>
#include <utility>

#include "core/base64.hpp"
#include "core/hash.hpp"

namespace enlist {

namespace {

constexpr core::Duration kWaitAtRest{20000};
/// While a node is not ready, its phase changes without a new desired state. Some coordinators do not answer early for it.
constexpr core::Duration kWaitOnTheWay{1000};
constexpr core::Duration kFirstPause{300}, kLongestPause{5000};
/// The time limit of an answer, in addition to the time for which the coordinator is asked to wait.
constexpr core::Duration kAnswer{10000};
constexpr std::size_t kLongestReply = 1UL << 20;

std::string said(const net::HttpResponse& response) {
  const auto body = core::parse_json(response.body);
  const std::string error = body ? core::get_string(*body, {"error"}) : "";
  return error.empty() ? "HTTP status " + std::to_string(response.status) : error;
}

core::Result<Connection::Key> key_from(const core::Result<net::HttpResponse>& reply) {
  if (!reply) return core::fail(core::ErrorCode::kUnavailable, "the auth key: " + reply.error().message);
  if (reply->status == 401 || reply->status == 403)
    return core::fail(core::ErrorCode::kForbidden, "the coordinator refuses the auth key: " + said(*reply));
  if (reply->status != 200) return core::fail(core::ErrorCode::kUnavailable, "the auth key: " + said(*reply));
  // An error must not quote the reply, which contains the key.
  const core::Result<Connection::Key> malformed =
      core::fail(core::ErrorCode::kInternal, "the coordinator's answer with the auth key cannot be read");
  const auto body = core::parse_json(reply->body);
  if (!body) return malformed;
  auto content = core::base64_decode(core::get_string(*body, {"content"}));
  if (!content || content->empty()) return malformed;
  return Connection::Key{core::get_string(*body, {"file"}), core::get_string(*body, {"revision"}), *std::move(content)};
}

}  // namespace

Connection::Connection(core::Loop& loop, core::Random& random, net::HttpTransport& transport, Callbacks callbacks)
    : loop_(loop), random_(random), transport_(transport), callbacks_(std::move(callbacks)), next_(loop) {}

void Connection::stop() {
  stopped_ = true;
  next_.cancel();
  for (auto* request : {&waiting_, &key_request_}) {
    if (*request) transport_.cancel(**request);
    request->reset();
  }
}

void Connection::report(Report report) {
  if (stopped_ || report_ == report) return;
  report_ = std::move(report);
  sent_ = heard_ = false;
  if (failures_ > 0) return;  // The next try sends the report.
  sync();
}

void Connection::sync() {
  next_.cancel();
  if (waiting_) transport_.cancel(*waiting_);
  sent_ = true;
  sent_at_ = loop_.clock().mono();
  // After a failure, asks for an immediate answer, which shows that the coordinator is back.
  wait_ = failures_ > 0 || revision_.empty() ? core::Duration{0} : ready_ ? kWaitAtRest : kWaitOnTheWay;
  const Sync message{*report_, revision_, static_cast<int>(wait_.count())};
  waiting_ = transport_.send({.method = "POST",
                              .target = "/v1/sync",
                              .headers = {{"content-type", "application/json"}},
                              .body = core::canonical(to_json(message)),
                              .timeout = wait_ + kAnswer,
                              .max_reply_bytes = kLongestReply},
                             [this](const core::Result<net::HttpResponse>& reply) { answered(reply); });
}

void Connection::answered(const core::Result<net::HttpResponse>& reply) {
  waiting_.reset();
  if (!reply) return failed("the coordinator does not answer: " + reply.error().message, false);
  heard_ = sent_ && (reply->status == 200 || reply->status == 401 || reply->status == 403);
  if (reply->status == 401 || reply->status == 403) return failed("the coordinator refuses this host: " + said(*reply), true);
  if (reply->status != 200) return failed("the coordinator answers: " + said(*reply), false);
  const auto body = core::parse_json(reply->body);
  if (!body) return failed("the coordinator's answer cannot be read: " + body.error().message, false);
  const auto message = from_json<SyncReply>(*body);
  if (!message) return failed("the coordinator's answer cannot be read: " + message.error().message, false);
  replied(*message);
}

void Connection::replied(const SyncReply& reply) {
  failures_ = 0;
  trouble_.clear();
  ready_ = reply.phase == to_string(Phase::kReady);
  const bool news = std::exchange(revision_, reply.revision) != reply.revision;
  // Pauses if the coordinator has answered early without news, because it may never wait, and must not be asked in a busy loop.
  const bool early = !news && loop_.clock().mono() - sent_at_ < std::max(wait_, kFirstPause);
  next_.set(sent_ && early ? kFirstPause : core::Duration{0}, [this] { sync(); });
  callbacks_.on_reply(reply);
}

void Connection::failed(const std::string& why, bool refused) {
  ++failures_;
  core::Duration pause = kFirstPause;
  for (int i = 1; i < failures_ && pause < kLongestPause; ++i) pause *= 2;
  pause = std::min(pause, kLongestPause);
  const auto half = static_cast<std::uint64_t>(pause.count() / 2);
  const core::Duration jittered{static_cast<core::Duration::rep>(half + random_.below(half + 1))};
  next_.set(std::max(jittered, kFirstPause), [this] { sync(); });
  // A single lost request is not reported as trouble.
  if (trouble_ == why || (failures_ < 2 && !refused)) return;
  trouble_ = why;
  callbacks_.on_trouble(why);
}

void Connection::fetch_key(std::function<void(core::Result<Key>)> done) {
  if (stopped_) return;  // The agent ends, and writes no key any more.
  key_request_ = transport_.send({.method = "GET", .target = "/v1/key", .max_reply_bytes = kLongestReply},
                                 [this, done = std::move(done)](const core::Result<net::HttpResponse>& reply) {
                                   key_request_.reset();
                                   done(key_from(reply));
                                 });
}

}  // namespace enlist
