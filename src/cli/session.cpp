#include "cli/session.hpp"

#include <fmt/format.h>

#include <tuple>

#include "api/well_known.hpp"
#include "net/beast_transport.hpp"

namespace cli {
namespace {

class KubeconfigSession final : public Session {
 public:
  KubeconfigSession() {
    loop_.on_signals([this](int) {
      // A second signal ends the process at once, in case the command does not stop.
      if (interrupted_) std::_Exit(kInterruptedStatus);
      interrupted_ = true;
      loop_.stop();
    });
  }

  core::Result<void> open(const std::string& kubeconfig, const std::string& context) {
    auto found = kube::discover_credentials(loop_, kubeconfig, context);
    if (!found) return std::unexpected(found.error());
    credentials_ = std::move(*found);
    transport_ = std::make_unique<net::BeastTransport>(loop_, credentials_->endpoint());
    credentials_->on_change([this](const net::Endpoint& endpoint) { std::ignore = transport_->set_endpoint(endpoint); });
    return {};
  }

  core::Loop& loop() override { return loop_; }
  core::Random& random() override { return random_; }
  net::HttpTransport& transport() override { return *transport_; }
  kube::Credentials& credentials() override { return *credentials_; }
  bool run_until(const std::function<bool()>& done) override {
    while (!interrupted_ && !done()) loop_.run();
    return !interrupted_;
  }
  void wake() override { loop_.stop(); }

 private:
  static constexpr int kInterruptedStatus = 130;

  net::AsioLoop loop_;
  core::SystemRandom random_;
  std::unique_ptr<kube::Credentials> credentials_;
  std::unique_ptr<net::BeastTransport> transport_;
  bool interrupted_ = false;
};

kube::ClientOptions client_options() {
  kube::ClientOptions options;
  options.user_agent = "kubectl-slurm";
  options.field_manager = "kubectl-slurm";
  options.timeout = core::Duration{30000};
  // One retry is enough, because a person at a terminal sees the error and tries again.
  options.max_retries = 1;
  return options;
}

/// Returns the items of a list. Adds apiVersion and kind, which the API server omits in lists.
std::vector<core::Json> items_of(core::Json list, const kube::Resource& resource) {
  std::vector<core::Json> out;
  if (!list.contains("items") || !list["items"].is_array()) return out;
  for (core::Json& item : list["items"]) {
    item["apiVersion"] = resource.api_version();
    item["kind"] = resource.kind;
    if (item.contains("metadata")) item["metadata"].erase("managedFields");
    out.push_back(std::move(item));
  }
  return out;
}

}  // namespace

core::Result<std::unique_ptr<Session>> open_session(const std::string& kubeconfig, const std::string& context) {
  auto session = std::make_unique<KubeconfigSession>();
  if (auto opened = session->open(kubeconfig, context); !opened) return std::unexpected(opened.error());
  return session;
}

Api::Api(Session& session)
    : session_(session),
      client_(session.loop(), session.random(), session.transport(), session.credentials(), client_options()) {}

core::Result<core::Json> Api::get(const kube::Resource& resource, const kube::Key& key) {
  return await<core::Json>([&](auto done) { client_.get(resource, key, std::move(done)); });
}

std::vector<core::Result<std::vector<core::Json>>> Api::lists(const std::vector<ListRequest>& requests) {
  struct Answers {
    std::vector<core::Result<std::vector<core::Json>>> lists;
    std::size_t open = 0;
  };
  auto answers = std::make_shared<Answers>();
  answers->lists.resize(requests.size(), core::fail(core::ErrorCode::kCancelled, "interrupted"));
  answers->open = requests.size();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const ListRequest& request = requests[i];
    kube::ListOptions options;
    options.label_selector = request.label_selector;
    options.field_selector = request.field_selector;
    options.metadata_only = request.metadata_only;
    client_.list_all(request.resource, request.ns, options,
                     [answers, i, resource = request.resource, absent = request.optional,
                      session = &session_](core::Result<core::Json> reply) {
                       if (reply) {
                         answers->lists[i] = items_of(std::move(*reply), resource);
                       } else if (absent && reply.error().code == core::ErrorCode::kNotFound) {
                         answers->lists[i] = std::vector<core::Json>{};
                       } else {
                         answers->lists[i] = std::unexpected(reply.error().with(resource.plural));
                       }
                       if (--answers->open == 0) session->wake();
                     });
  }
  (void)session_.run_until([&] { return answers->open == 0; });
  return answers->lists;
}

core::Result<std::vector<core::Json>> Api::list(const ListRequest& request) {
  return std::move(lists({request}).front());
}

core::Result<core::Json> Api::create(const kube::Resource& resource, const core::Json& object) {
  return await<core::Json>([&](auto done) { client_.create(resource, object, std::move(done)); });
}

core::Result<core::Json> Api::patch(const kube::Resource& resource, const kube::Key& key, kube::PatchType type,
                                    const core::Json& patch) {
  return await<core::Json>([&](auto done) { client_.patch(resource, key, type, patch, std::move(done)); });
}

core::Result<void> Api::remove(const kube::Resource& resource, const kube::ObjectMeta& object) {
  auto reply = await<core::Json>([&](auto done) { client_.remove(resource, object.key(), {object.uid, {}}, std::move(done)); });
  if (!reply && reply.error().code != core::ErrorCode::kNotFound) return std::unexpected(reply.error());
  return {};
}

core::Result<std::string> Api::text(const std::string& target) {
  return await<std::string>([&](std::function<void(core::Result<std::string>)> done) {
    auto read = std::make_shared<std::string>();
    net::StreamHandler handler;
    handler.on_data = [read](std::string_view piece) { read->append(piece); };
    handler.on_end = [read, done = std::move(done)](core::Result<void> end) {
      if (!end) return done(std::unexpected(end.error()));
      done(std::move(*read));
    };
    client_.stream(target, core::Duration{30000}, std::move(handler));
  });
}

bool Api::pause(core::Duration time) {
  auto over = std::make_shared<bool>(false);
  core::Timer timer(session_.loop());
  timer.set(time, [over, session = &session_] {
    *over = true;
    session->wake();
  });
  return session_.run_until([&] { return *over; });
}

bool may_pass(const core::Error& error) {
  return error.code != core::ErrorCode::kUnauthorized && error.code != core::ErrorCode::kForbidden;
}

std::string explain(const core::Error& error) {
  switch (error.code) {
    case core::ErrorCode::kForbidden:
      return error.message + "\nYour user lacks this right. Ask an administrator of the Kubernetes cluster for it.";
    case core::ErrorCode::kUnauthorized:
      return error.message +
             "\nThe API server does not accept the credentials of your kubeconfig. Log in again, or name another context.";
    case core::ErrorCode::kUnavailable:
      return error.message + "\nThe API server cannot be reached. Is this the right context? (kubectl config current-context)";
    case core::ErrorCode::kNotFound:
      if (error.message.find("could not find the requested resource") == std::string::npos) return error.message;
      return fmt::format(
          "{}\nThis Kubernetes cluster does not have the resources of {}. Is this the right context, and are the definitions "
          "installed?",
          error.message, api::kGroup);
    default:
      return error.message;
  }
}

}  // namespace cli
