#include "enlist/juju/hook_tools.hpp"

#include <chrono>
#include <utility>

#include "core/base64.hpp"
#include "enlist/host/spawn.hpp"

namespace enlist::juju {
namespace {

using core::ErrorCode;
using Words = std::vector<std::string>;
using namespace std::chrono_literals;

/// The time limit of a hook tool. The tool asks Juju's agent of the unit, which asks the Juju controller.
constexpr auto kToolLimit = 120s;
constexpr std::string_view kScheme = "secret:";
// The names of the values in the secret.
constexpr const char *kAuthKey = "auth-key", *kFileName = "file";

std::string whole_id(std::string id) {
  return id.starts_with(kScheme) ? id : std::string(kScheme) + id;
}

std::string_view word_of(Status::Kind kind) {
  return kind == Status::Kind::kActive ? "active" : kind == Status::Kind::kWaiting ? "waiting" : "blocked";
}

class JujuTools final : public HookTools {
 public:
  explicit JujuTools(Host& host) : host_(host) {}

  core::Result<bool> is_leader() override {
    const auto json = ask({"is-leader"});
    if (!json) return std::unexpected(json.error());
    return *json == true;
  }
  core::Result<core::Json> config() override { return ask({"config-get"}); }
  core::Result<std::optional<Status>> status() override {
    const auto json = ask({"status-get", "--include-data"});
    if (!json) return std::unexpected(json.error());
    for (const Status::Kind kind : {Status::Kind::kActive, Status::Kind::kWaiting, Status::Kind::kBlocked}) {
      if (core::get_string(*json, {"status"}) == word_of(kind)) return Status{kind, core::get_string(*json, {"message"})};
    }
    return std::nullopt;
  }
  core::Result<void> set_status(const Status& status) override {
    return done(tell({"status-set", std::string(word_of(status.kind)), status.message}));
  }
  void log(std::string_view level, const std::string& message) override {
    [[maybe_unused]] const auto ignored = tell({"juju-log", "--log-level", std::string(level), "--", message});
  }

  core::Result<Words> relations(std::string_view endpoint) override {
    const auto json = ask({"relation-ids", std::string(endpoint)});
    if (!json) return std::unexpected(json.error());
    return texts_of(*json);
  }
  core::Result<std::string> remote_app(const std::string& relation) override {
    const auto json = ask({"relation-list", "--relation", relation, "--app"});
    if (!json) return std::unexpected(json.error());
    if (json->is_string() && !json->empty() && *json != "") return json->get<std::string>();
    return core::fail(ErrorCode::kUnavailable, "relation-list shows no application of " + relation);
  }
  core::Result<Words> remote_units(const std::string& relation) override {
    const auto json = ask({"relation-list", "--relation", relation});
    if (!json) return std::unexpected(json.error());
    // relation-list prints null for an empty list.
    if (!json->is_array() && !json->is_null())
      return core::fail(ErrorCode::kUnavailable, "relation-list shows no units of " + relation);
    return texts_of(*json);
  }
  core::Result<Databag> databag(const std::string& relation, const std::string& app) override {
    const auto json = ask({"relation-get", "--relation", relation, "--app", "-", app});
    if (!json) return std::unexpected(json.error());
    Databag out;
    if (!json->is_object()) return out;
    for (const auto& [key, value] : json->items()) {
      if (value.is_string()) out.emplace(key, value.get<std::string>());
    }
    return out;
  }
  core::Result<void> publish(const std::string& relation, const Databag& databag) override {
    return done(tell({"relation-set", "--relation", relation, "--app", "--file", "-"}, core::Json(databag).dump()));
  }

  core::Result<core::Json> action_parameters() override { return ask({"action-get"}); }
  core::Result<void> set_results(const std::map<std::string, std::string>& results) override {
    Words words{"action-set"};
    for (const auto& [key, value] : results) words.push_back(key + "=" + value);
    return done(tell(words));
  }
  core::Result<void> fail_action(const std::string& message) override { return done(tell({"action-fail", message})); }

  core::Result<std::vector<OwnedSecret>> owned_secrets() override {
    const auto ids = ask({"secret-ids"});
    if (!ids) return std::unexpected(ids.error());
    std::vector<OwnedSecret> out;
    for (const std::string& id : texts_of(*ids)) {
      const auto info = ask({"secret-info-get", whole_id(id)});
      if (!info) return std::unexpected(info.error());
      for (const auto& [key, secret] : info->items()) out.push_back({whole_id(id), core::get_string(secret, {"label"})});
    }
    return out;
  }
  core::Result<std::string> add_key(const std::string& label, const std::filesystem::path& file) override {
    Words words{"secret-add", "--owner", "application", "--label", label};
    append(words, file);
    auto id = tell(words);
    if (!id) return id;
    while (!id->empty() && id->back() == '\n') id->pop_back();
    return whole_id(*std::move(id));
  }
  core::Result<void> set_key(const std::string& id, const std::filesystem::path& file) override {
    Words words{"secret-set", id};
    append(words, file);
    return done(tell(words));
  }
  core::Result<void> grant_secret(const std::string& id, const std::string& relation) override {
    return done(tell({"secret-grant", id, "--relation", relation}));
  }
  core::Result<void> remove_secret(const std::string& id) override { return done(tell({"secret-remove", id})); }
  core::Result<SharedKey> key(const std::string& id, bool peek) override {
    const std::string how = peek ? "--peek" : "--refresh";
    const auto file = ask({"secret-get", id, how, kFileName});
    if (!file) return std::unexpected(file.error());
    // Reads the key in base64, so that no byte of a binary key is lost.
    const auto key = ask({"secret-get", id, how, std::string(kAuthKey) + "#base64"});
    if (!key) return std::unexpected(key.error());
    if (!file->is_string() || !key->is_string())
      return core::fail(ErrorCode::kInvalid, "the secret with the key has other values");
    auto content = core::base64_decode(key->get<std::string>());
    if (!content) return core::fail(ErrorCode::kInvalid, "the key in the secret is not in base64");
    return SharedKey{file->get<std::string>(), *std::move(content)};
  }

 private:
  static void append(Words& words, const std::filesystem::path& file) {
    words.push_back(std::string(kAuthKey) + "#file=" + file.string());
    words.push_back(std::string(kFileName) + "=" + file.filename().string());
  }
  static Words texts_of(const core::Json& list) {
    Words out;
    if (!list.is_array()) return out;
    for (const core::Json& item : list) {
      if (item.is_string()) out.push_back(item.get<std::string>());
    }
    return out;
  }
  static core::Result<void> done(const core::Result<std::string>& result) {
    if (!result) return std::unexpected(result.error());
    return {};
  }
  core::Result<std::string> tell(const Words& words, const std::string& input = {}) {
    auto output = host_.run(words, kToolLimit, input);
    if (!output) return std::unexpected(output.error().with(words.front()));
    if (output->status == 0) return std::move(output->out);
    const std::string said = telling_lines(output->err);
    const ErrorCode code = said.find("permission denied") != std::string::npos ? ErrorCode::kForbidden
                           : said.find("not found") != std::string::npos       ? ErrorCode::kNotFound
                                                                               : ErrorCode::kUnavailable;
    return core::fail(code, words.front() + ": " + (said.empty() ? "exit code " + std::to_string(output->status) : said));
  }
  core::Result<core::Json> ask(Words words) {
    words.insert(words.begin() + 1, "--format=json");
    const auto text = tell(words);
    if (!text) return std::unexpected(text.error());
    auto json = core::parse_json(*text);
    if (!json) return std::unexpected(json.error().with(words.front()));
    return json;
  }

  Host& host_;
};

}  // namespace

std::unique_ptr<HookTools> juju_tools(Host& host) {
  return std::make_unique<JujuTools>(host);
}

}  // namespace enlist::juju
