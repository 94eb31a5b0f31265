#include "sim/programs/operator/oracles/writes.hpp"

#include <fmt/format.h>

#include <chrono>
#include <string_view>

#include "api/well_known.hpp"
#include "sim/programs/operator/oracles/agents.hpp"
#include "sim/programs/operator/oracles/objects.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

/// A warning is repeated after this time at the earliest: see docs/conditions.md.
constexpr core::Duration kToldAgain{std::chrono::minutes{10}};

/// Returns the part of a path after `part`, up to the next "/" or "?"; "" if the path does not contain `part`.
std::string word_after(const std::string& target, std::string_view part) {
  const std::size_t at = target.find(part);
  if (at == std::string::npos) return "";
  return target.substr(at + part.size(), target.find_first_of("/?", at + part.size()) - at - part.size());
}

}  // namespace

WriteOracle::WriteOracle(core::Loop& loop, KubeApi& api, Tell violation)
    : loop_(loop), api_(api), violation_(std::move(violation)) {
  listen();
}

void WriteOracle::listen() {
  api_.add_admission([this](const AdmissionRequest& request) -> std::optional<Refusal> {
    const bool input = request.resource == kinds::kSecret || request.resource == kinds::kConfigMap;
    if (!input || request.before == nullptr) return {};
    // All objects that the operator creates have this label.
    if (request.user == kOperatorAgent && label(*request.before, api::kLabelName).empty()) {
      violation_(fmt::format("{} of {} {}, which is a user's", request.operation, request.resource.kind, request.key.str()));
    }
    return {};
  });
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (change->type == Change::Type::kDeleted) return;
    const Json& body = change->object->body;
    if (const Json* generation = core::find(body, {"status", "observedGeneration"})) {
      const std::int64_t now = generation->get<std::int64_t>();
      std::int64_t& before = observed_[text_at(body, {"metadata", "uid"})];
      const bool ours = table.ends_with(std::string(".") + std::string(api::kGroup));
      if (ours && now < before)
        violation_(fmt::format("observedGeneration of {} {} went from {} to {}", table, change->key.str(), before, now));
      before = now;
    }
  });
}

void WriteOracle::to_slurm(const net::HttpRequest& request, const std::string& identity) {
  ++writes_;
  fenced_write(request, true, identity);
}

void WriteOracle::to_kube(const net::HttpRequest& request, const std::string& identity) {
  ++writes_;
  fenced_write(request, false, identity);
  if (about_tokens(request)) ++token_writes_;
  if (reminds(request)) ++reminders_;
  if (!acts_in(namespaces_, word_after(request.target, "/namespaces/")))
    violation_("a write outside of its namespaces: " + request.target);
}

void WriteOracle::deletion(const net::HttpRequest& request) {
  const auto body = core::parse_json(request.body.empty() ? "{}" : request.body);
  const std::string uid = body ? core::get_string(*body, {"preconditions", "uid"}) : "";
  if (uid.empty()) violation_("a deletion without the uid of what is meant: " + request.target);
}

/// Reports whether the write concerns a Token: the Token's status, its Secret, or an event about the Token.
bool WriteOracle::about_tokens(const net::HttpRequest& request) const {
  const std::string& target = request.target;
  if (target.find("/tokens/") != std::string::npos) return true;
  const std::string ns = word_after(target, "/namespaces/");
  if (target.find("/events") != std::string::npos) {
    // A write that repeats an event contains only the event's count.
    if (const Json* told = api_.peek(kube::resources::kEvent, {ns, word_after(target, "/events/")}))
      return text_at(*told, {"regarding", "kind"}) == "Token";
    const auto event = core::parse_json(request.body);
    return event && text_at(*event, {"regarding", "kind"}) == "Token";
  }
  const Json* secret = api_.peek(kinds::kSecret, {ns, word_after(target, "/secrets/")});
  return secret != nullptr && !owner_uid(*secret, "Token").empty();
}

bool WriteOracle::reminds(const net::HttpRequest& request) {
  if (request.method != "POST" || request.target.find("/events") == std::string::npos) return false;
  const auto event = core::parse_json(request.body);
  if (!event || text_at(*event, {"regarding", "kind"}) != "NodeSet" || text_at(*event, {"type"}) != "Warning") return false;
  const core::MonoTime now = loop_.clock().mono();
  const std::string all =
      text_at(*event, {"regarding", "uid"}) + " " + text_at(*event, {"reason"}) + ": " + text_at(*event, {"note"});
  const auto [last, first] = told_.try_emplace(all, now);
  const bool again = !first && now - last->second >= kToldAgain;
  last->second = now;
  return again;
}

/// Checks that the sender holds the Lease at the time when the write is sent to Slurm, or arrives at the API server.
void WriteOracle::fenced_write(const net::HttpRequest& request, bool to_slurm, const std::string& identity) {
  if (identity.empty()) return;
  const std::string holder = lease_holder(api_);
  if (holder == identity) return;
  violation_(fmt::format("{} {} {} by {} while \"{}\" held the Lease", request.method, request.target,
                         to_slurm ? "was sent to Slurm" : "came to the API server", identity, holder));
}

}  // namespace sim
