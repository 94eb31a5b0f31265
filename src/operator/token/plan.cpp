#include "operator/token/plan.hpp"

#include <algorithm>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "kube/acts.hpp"
#include "operator/common/children.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/status.hpp"

namespace op::token {
namespace {

/// The lifetime of a token of `scontrol token lifespan=infinite`: INT_MAX - 1 seconds.
constexpr core::Duration kLongestLifetime{(2147483647LL - 1) * 1000};
/// New Tokens cannot have a shorter lifetime. An older Token with a shorter lifetime would be renewed all the time, so this
/// limit applies.
constexpr core::Duration kShortestLifetime{10000};
/// The longest wait for the next pass. The wait uses the monotonic clock, but the wall clock measures the token's age. Because
/// of the limit, the operator soon notices a correction of the wall clock.
constexpr core::Duration kLongestSleep{5 * 60 * 1000};

core::Duration lifetime_of(const api::TokenSpec& spec) {
  return std::clamp(spec.lifetime.value_or(api::kDefaultTokenLifetime), kShortestLifetime, kLongestLifetime);
}

/// Returns a hash of everything that determines the token, except the time.
std::string input_hash(const Observed& observed) {
  const api::TokenSpec& spec = observed.token.spec;
  return core::short_digest(spec.username + "\n" + std::to_string(lifetime_of(spec).count()) + "\n" + observed.key.ref.secret +
                            "\n" + observed.key.ref.key + "\n" + observed.key.digest);
}

core::Json mint(const Observed& observed) {
  const api::TokenSpec& spec = observed.token.spec;
  return {
      {"$mintToken",
       {{"keyRef", {{"namespace", observed.object->meta.ns}, {"name", observed.key.ref.secret}, {"key", observed.key.ref.key}}},
        {"claims", {{"sun", spec.username}, {"iss", api::kOperatorName}}},
        {"lifetimeSeconds", lifetime_of(spec).count() / 1000}}}};
}

/// Returns the labels of the Secret. They include the Token's labels, because tools that copy Secrets select Secrets by labels.
kube::StringMap labels(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  kube::StringMap out;
  add_metadata(out, meta.labels);
  for (const auto& [name, value] : component_labels(kAppToken, meta.name, "token")) out[name] = value;
  return out;
}

kube::StringMap lasting_annotations(const Observed& observed) {
  kube::StringMap out;
  add_metadata(out, observed.object->meta.annotations);
  for (std::string_view of_a_token : {kAnnotationIssuedAt, kAnnotationInputHash, kAnnotationSecretKey})
    out.erase(std::string(of_a_token));
  return out;
}

/// Returns the annotations of the Secret, including the annotations that describe a token that is minted now.
kube::StringMap annotations(const Observed& observed) {
  kube::StringMap out = lasting_annotations(observed);
  out.emplace(kAnnotationIssuedAt, core::format_rfc3339(observed.context.now));
  out.emplace(kAnnotationInputHash, input_hash(observed));
  out.emplace(kAnnotationSecretKey, observed.target.key);
  return out;
}

/// Returns the labels and annotations of the Token that the Secret lacks. Labels and annotations that were removed from the
/// Token stay on the Secret, because somebody else might have set them on the Secret.
core::Json lacking_metadata(const Observed& observed, const kube::ObjectMeta& secret) {
  core::Json out = core::Json::object();
  const auto compare = [&out](const char* field, const kube::StringMap& wanted, const kube::StringMap& have) {
    for (const auto& [name, value] : wanted) {
      const auto there = have.find(name);
      if (there == have.end() || there->second != value) out[field][name] = value;
    }
  };
  compare("labels", labels(observed), secret.labels);
  compare("annotations", lasting_annotations(observed), secret.annotations);
  return out;
}

core::Json new_secret(const Observed& observed) {
  const kube::ObjectMeta& meta = observed.object->meta;
  core::Json out = child_json(kube::resources::kSecret, {meta.ns, observed.target.name}, resources::kToken, meta,
                              labels(observed), annotations(observed));
  out["type"] = "Opaque";
  out["data"] = {{observed.target.key, mint(observed)}};
  if (!observed.token.spec.refresh) out["immutable"] = true;
  return out;
}

/// Returns the data key under which the Secret has the token. "": this is already the wanted data key.
std::string_view key_before(const Observed& observed) {
  const std::string_view written = observed.secret.record->meta.annotation(kAnnotationSecretKey);
  return written == observed.target.key ? std::string_view{} : written;
}

/// Returns a patch with a new token. The patch also makes the Token the owner of the Secret. In a Secret that the Go operator
/// created, the owner before the patch is the Secret with the signing key.
core::Json renewal(const Observed& observed) {
  core::Json meta{
      {"labels", labels(observed)},
      {"annotations", annotations(observed)},
      {"ownerReferences", core::Json::array({kube::owner_reference_json(resources::kToken, observed.object->meta)})}};
  core::Json data{{observed.target.key, mint(observed)}};
  if (const std::string_view before = key_before(observed); !before.empty()) data[std::string(before)] = nullptr;
  return {{"metadata", std::move(meta)}, {"data", std::move(data)}};
}

bool ours(const Observed& observed) {
  const kube::OwnerReference* owner = observed.secret.record->meta.controller_owner();
  if (owner == nullptr) return false;
  return owner->uid == observed.object->meta.uid || (owner->kind == "Secret" && owner->name == observed.key.ref.secret);
}

std::optional<core::WallTime> issued_at(const Observed& observed) {
  if (!observed.secret.record) return {};
  const std::string_view text = observed.secret.record->meta.annotation(kAnnotationIssuedAt);
  const auto time = core::parse_rfc3339(text);
  return time ? std::optional(*time) : std::nullopt;
}

/// Returns how much longer a token without refresh is valid. nullopt: there is no token, or the operator refreshes the token.
std::optional<core::Duration> time_left(const Observed& observed) {
  const auto issued = issued_at(observed);
  if (observed.token.spec.refresh || !issued) return {};
  return lifetime_of(observed.token.spec) - (observed.context.now - *issued);
}

struct Decision {
  std::string why;  ///< Not empty: a new token is due for this reason.
  std::optional<core::Duration> wait;
};

Decision renewal_due(const Observed& observed) {
  const kube::SecretRecord& secret = *observed.secret.record;
  if (!secret.sizes.contains(observed.target.key)) return {"the Secret has no data under " + observed.target.key, {}};
  if (!key_before(observed).empty()) return {"it is kept under another key of the Secret", {}};
  if (!secret.immutable && !observed.token.spec.refresh)
    return {"it is not refreshed any more, and its Secret could still change", {}};
  if (secret.immutable && observed.token.spec.refresh) return {"it is to be refreshed, and its Secret cannot change", {}};
  if (secret.meta.annotation(kAnnotationInputHash) != input_hash(observed)) return {"user, lifetime or key have changed", {}};
  if (!observed.token.spec.refresh) return {};
  const auto issued = issued_at(observed);
  if (!issued) return {"it does not say when it was issued", {}};
  // A token that was issued in the future is replaced as well. In this case the clock was set back, so the token's age does not
  // show whether the token has expired.
  const core::Duration due = lifetime_of(observed.token.spec) * 4 / 5;
  const core::Duration age = observed.context.now - *issued;
  if (age >= due || age < core::Duration{-60000}) return {"it has reached four fifths of its life", {}};
  // The wait and the age use different clocks. So the wait is limited, to notice a correction of the wall clock in time.
  return {"", std::min(due - age, lifetime_of(observed.token.spec) / 10)};
}

void plan_secret(const Observed& observed, plan::Plan& plan, std::vector<Problem>& problems) {
  const std::string& name = observed.target.name;
  if (auto problem = key_problem(observed.key, observed.object->meta.ns, "spec.jwtKeyRef")) {
    problems.push_back(std::move(*problem));
    return;
  }
  switch (observed.secret.presence) {
    case kube::Presence::kUnknown:
      return;
    case kube::Presence::kAbsent:
      plan.lane("secret").add(
          {{"create", "Secret", name}, "there is no token yet", kube::create(kube::resources::kSecret, new_secret(observed))});
      return;
    case kube::Presence::kPresent:
      break;
  }
  const kube::SecretRecord& secret = *observed.secret.record;
  if (secret.meta.terminating()) return;
  if (!ours(observed)) {
    problems.push_back({"SecretTaken", "Secret " + name + " exists and does not belong to this Token"});
    return;
  }
  const Decision decision = renewal_due(observed);
  if (!decision.why.empty()) {
    if (secret.immutable || !observed.token.spec.refresh) {
      plan.lane("secret").add(
          {{"delete", "Secret", name}, decision.why, kube::delete_object(kube::resources::kSecret, secret.meta)});
    } else {
      plan.lane("secret").add({{"renew", "Secret", name},
                               decision.why,
                               kube::merge_patch(kube::resources::kSecret, secret.meta, renewal(observed))});
    }
    return;
  }
  if (core::Json meta = lacking_metadata(observed, secret.meta); !meta.empty()) {
    plan.lane("secret").add({{"label", "Secret", name},
                             "labels or annotations of the Token have changed",
                             kube::merge_patch(kube::resources::kSecret, secret.meta, {{"metadata", std::move(meta)}})});
  }
  // The token in the superseded Secret stays valid until it expires. The operator deletes this Secret so that nobody uses that
  // token any more.
  for (const kube::SecretPtr& old : observed.superseded) {
    if (old->meta.terminating()) continue;
    plan.lane("superseded")
        .add({{"delete", "Secret", old->meta.name},
              "the token is in Secret " + name,
              kube::delete_object(kube::resources::kSecret, old->meta)});
  }
  if (decision.wait) plan.wake_after(*decision.wait, "the token is renewed then");
}

}  // namespace

plan::Plan plan(const Observed& observed) {
  plan::Plan out;
  // The garbage collector deletes the Secret of a deleted Token, because the Token owns it.
  if (!observed.object || observed.object->meta.terminating()) return out;
  const kube::Object& object = *observed.object;
  std::vector<Problem> problems;
  if (observed.parse_error.empty()) {
    plan_secret(observed, out, problems);
  } else {
    problems.push_back({"Invalid", observed.parse_error});
  }
  for (Problem& problem : step_problems(observed.context.outcomes, out)) problems.push_back(std::move(problem));

  // The next pass reports a token that is minted in this pass. Until the next pass there is nothing to report.
  if (problems.empty() && out.step_count() > 0) return out;

  const auto issued = issued_at(observed);
  const auto left = observed.parse_error.empty() ? time_left(observed) : std::nullopt;
  const bool expired = left && *left <= core::Duration{0};
  if (expired) problems.push_back({"Expired", "the token has expired, and spec.refresh is false"});
  if (left && !expired) out.wake_after(*left, "the token expires then");
  if (issued) out.wake_after(kLongestSleep, "the clock may have been set");
  const bool ready = !expired && observed.parse_error.empty() && observed.secret.record && ours(observed) &&
                     observed.secret.record->sizes.contains(observed.target.key) &&
                     observed.secret.record->meta.annotation(kAnnotationInputHash) == input_hash(observed);
  Conditions conditions(observed.token.status.conditions, object.meta.generation, observed.context.now);
  set_fields_not_acted_on(conditions, api::fields_not_acted_on(observed.token.spec));
  set_summary(conditions, ready, problems,
              ready || expired || std::ranges::any_of(problems, &Problem::wrong) ? "" : "the token is being created");
  // The message names the Secret, because users cannot guess a name that is derived from the username.
  if (ready)
    conditions.set(api::kConditionReady, true, "Ready",
                   "the token is in Secret " + observed.target.name + ", key " + observed.target.key);
  out.lane("events").add(degraded_event(resources::kToken, object.meta, observed.token.status.conditions, conditions));
  core::Json status{{"observedGeneration", object.meta.generation}, {"conditions", conditions.json()}};
  if (issued) status["issuedAt"] = core::format_rfc3339(*issued);
  out.lane("status").add(status_step(resources::kToken, object, std::move(status)));
  return out;
}

}  // namespace op::token
