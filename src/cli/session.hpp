// A command's access to the API server: one loop and one connection. A command sends one request at a time and waits for the
// answer. Only Api::lists sends several requests at once.
//
// Commands decide and render in pure functions. Between these calls, commands send requests through Api, which runs the loop
// until the answer has arrived. Tests pass a Session of their own that simulates the API server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "core/random.hpp"
#include "core/result.hpp"
#include "kube/client/client.hpp"
#include "kube/client/credentials.hpp"
#include "net/http.hpp"

namespace cli {

class Session {
 public:
  virtual ~Session() = default;
  virtual core::Loop& loop() = 0;
  virtual core::Random& random() = 0;
  virtual net::HttpTransport& transport() = 0;  ///< The transport to the API server.
  virtual kube::Credentials& credentials() = 0;
  /// Runs the loop until `done` holds or the user interrupts. Returns false if interrupted.
  virtual bool run_until(const std::function<bool()>& done) = 0;
  /// Makes run_until check `done` again.
  virtual void wake() = 0;
};

/// Opens a session with a context of a kubeconfig. For empty arguments, see kube::discover_credentials.
core::Result<std::unique_ptr<Session>> open_session(const std::string& kubeconfig, const std::string& context);

/// A list to request. An empty namespace means all.
struct ListRequest {
  kube::Resource resource;
  std::string ns{};
  std::string label_selector{}, field_selector{};
  bool metadata_only = false;
  bool optional = false;  ///< Makes the list empty if the cluster lacks the kind.
};

/// Sends requests and waits for their answers. Errors are those of kube::Client, and kCancelled if the user interrupted.
class Api {
 public:
  explicit Api(Session& session);

  core::Result<core::Json> get(const kube::Resource& resource, const kube::Key& key);
  /// Sends all requests at once. Returns the items of each list, in the order of the requests. Adds apiVersion and kind, which
  /// the API server leaves out in lists, and removes managedFields.
  std::vector<core::Result<std::vector<core::Json>>> lists(const std::vector<ListRequest>& requests);
  core::Result<std::vector<core::Json>> list(const ListRequest& request);
  core::Result<core::Json> create(const kube::Resource& resource, const core::Json& object);
  core::Result<core::Json> patch(const kube::Resource& resource, const kube::Key& key, kube::PatchType type,
                                 const core::Json& patch);
  core::Result<void> remove(const kube::Resource& resource, const kube::ObjectMeta& object);
  /// Reads the text at the path and query `target`, for answers that are not JSON, such as the log of a container.
  core::Result<std::string> text(const std::string& target);

  /// Waits for `time`. Returns false if the user interrupted the wait.
  bool pause(core::Duration time);
  [[nodiscard]] const core::Clock& clock() { return session_.loop().clock(); }
  [[nodiscard]] Session& session() { return session_; }
  [[nodiscard]] kube::Client& client() { return client_; }

  /// Calls `start` with a callback, runs the loop until the callback is called, and returns the result passed to the callback.
  template <class T>
  core::Result<T> await(const std::function<void(std::function<void(core::Result<T>)>)>& start) {
    auto answer = std::make_shared<std::optional<core::Result<T>>>();
    start([answer, session = &session_](core::Result<T> result) {
      *answer = std::move(result);
      session->wake();
    });
    if (!session_.run_until([&] { return answer->has_value(); })) return core::fail(core::ErrorCode::kCancelled, "interrupted");
    return std::move(**answer);
  }

 private:
  Session& session_;
  kube::Client client_;
};

/// Reports whether the error can pass without intervention. A command that waits tries again after such an error.
bool may_pass(const core::Error& error);
/// Describes an error in our own words, and what the user can do about the error.
std::string explain(const core::Error& error);

}  // namespace cli
