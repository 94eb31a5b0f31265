#include "sim/oracles/secrets.hpp"

#include <fmt/format.h>

#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "core/jwt.hpp"

namespace sim {
namespace {

using core::Json;

/// The number of plans that are kept. Fewer plans are made while one plan is carried out.
constexpr std::size_t kPlans = 64;

/// Returns the beginning of every HS256 token.
std::string token_header() {
  const std::string token = core::sign_hs256("", Json::object());
  return token.substr(0, token.find('.'));
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

/// Returns bytes that are not text in the form in which JSON shows them in plans, requests and log lines.
std::string as_dumped(const std::string& bytes) {
  const std::string quoted = Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

SecretOracle::SecretOracle(KubeApi& api, Tell violation) : api_(api), violation_(std::move(violation)) {
  listen();
}

void SecretOracle::listen() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (change->type == Change::Type::kDeleted || table != "secrets") return;
    const Json& body = change->object->body;
    learn_secret(body);
    search_secrets(body["metadata"].dump(), "the metadata of Secret " + change->key.str());
  });
}

void SecretOracle::learn_secret(const Json& secret) {
  const Json* data = core::find(secret, {"data"});
  if (data == nullptr || !data->is_object()) return;
  for (const auto& [key, value] : data->items()) {
    const std::string text = value.get<std::string>();
    // The names of key rotations and of their steps are not secret. Pods show them in commands and termination messages.
    if (text.size() < 16 || key == api::kKeyGeneration || key == api::kKeyLoginGeneration) continue;
    const auto bytes = core::base64_decode(text);
    if (bytes && bytes->starts_with(token_header())) {
      // All tokens have the same beginning, and so do all their encodings.
      for (const std::string& form : {token_header(), core::base64_encode(token_header()), hex(token_header())}) {
        learn_form(form);
      }
      continue;
    }
    learn_form(text);
    if (bytes) {
      learn_form(*bytes);
      learn_form(hex(*bytes));
      learn_form(core::base64url_encode(*bytes));
      learn_form(as_dumped(*bytes));
    }
  }
}

void SecretOracle::learn_form(const std::string& text) {
  if (!secrets_.insert(text).second) return;
  std::erase_if(plans_, [&](const std::string& plan) {
    const bool shows = plan.find(text) != std::string::npos;
    if (shows) violation_("a secret shows in a plan: " + plan.substr(0, 200));
    return shows;
  });
}

void SecretOracle::learn_token_of(const net::HttpRequest& request) {
  const auto token = request.headers.find("x-slurm-user-token");
  if (token != request.headers.end() && token->second.size() > 16) secrets_.insert(token_header());
}

void SecretOracle::search_secrets(std::string_view text, std::string_view where) {
  for (const std::string& secret : secrets_) {
    if (text.find(secret) != std::string_view::npos) {
      violation_(fmt::format("a secret shows in {}", where));
      return;
    }
  }
}

void SecretOracle::read_plan(const plan::Plan& plan) {
  std::string text = plan.describe().dump(-1, ' ', false, Json::error_handler_t::replace);
  search_secrets(text, "a plan: " + text.substr(0, 200));
  if (plan.step_count() == 0) return;
  plans_.push_back(std::move(text));
  if (plans_.size() > kPlans) plans_.pop_front();
}

void SecretOracle::log_line(std::string_view line) {
  search_secrets(line, "a log line: " + std::string(line.substr(0, 80)));
}

}  // namespace sim
