#include "operator/governance/claim.hpp"

#include <utility>

#include "api/well_known.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"

namespace op::governance {
namespace {

namespace acct = slurm::accounting;

template <class Kind>
void read_into(Claim& claim) {
  Kind kind;
  claim.parse_error = read_object(*claim.object, kind);
  claim.name = acct::folded(kind.spec.name.value_or(claim.object->meta.name));
  claim.adoption = kind.spec.adoption;
  claim.policy = kind.spec.policy;
  claim.deletion_policy = kind.spec.deletion_policy;
  claim.observed_generation = kind.status.observed_generation;
  if constexpr (requires { kind.status.id; }) {
    claim.id = kind.status.id;
  } else {
    claim.id = kind.status.created ? 1 : 0;
  }
  claim.applied = std::move(kind.status.applied);
  if constexpr (requires { kind.status.capacity_limits; }) claim.capacity_limits = std::move(kind.status.capacity_limits);
  claim.conditions = std::move(kind.status.conditions);
  claim.spec = std::move(kind.spec);
}

}  // namespace

const SubjectTexts& texts(Subject subject) {
  static const SubjectTexts kQos{"QOS",     "a QOS",      "QosCreated",         "QosUpdated",           "QosDeleted",
                                 "QosKept", "QosMissing", resources::kSlurmQos, api::kFinalizerSlurmQos};
  static const SubjectTexts kAccount{
      "account",     "an account",     "AccountCreated",         "AccountUpdated",           "AccountDeleted",
      "AccountKept", "AccountMissing", resources::kSlurmAccount, api::kFinalizerSlurmAccount};
  static const SubjectTexts kUser{"user",     "a user",      "UserCreated",         "UserUpdated",           "UserDeleted",
                                  "UserKept", "UserMissing", resources::kSlurmUser, api::kFinalizerSlurmUser};
  switch (subject) {
    case Subject::kAccount:
      return kAccount;
    case Subject::kUser:
      return kUser;
    default:
      return kQos;
  }
}

acct::EntityKind entity_kind(Subject subject) {
  return subject == Subject::kAccount ? acct::EntityKind::kAccount : acct::EntityKind::kUser;
}

bool Claim::built_in() const {
  return name == (subject == Subject::kQos ? acct::kNormalQos : acct::kRoot);
}

std::string Claim::label() const {
  return subject == Subject::kQos ? object->meta.name : std::string(texts(subject).word) + " " + object->meta.name;
}

Claim read_claim(Subject subject, kube::ObjectPtr object) {
  Claim claim;
  claim.object = std::move(object);
  claim.subject = subject;
  switch (subject) {
    case Subject::kQos:
      read_into<api::SlurmQos>(claim);
      break;
    case Subject::kAccount:
      read_into<api::SlurmAccount>(claim);
      break;
    case Subject::kUser:
      read_into<api::SlurmUser>(claim);
      break;
  }
  return claim;
}

acct::Settings applied_settings(const Claim& claim) {
  acct::Settings out;
  if (!claim.applied) return out;
  // A later release has written fields that are unknown here. Leave them alone.
  for (const auto& [setting, value] : claim.applied->items()) {
    if (acct::field_of(setting) != nullptr) out[setting] = value;
  }
  return out;
}

std::set<acct::Place> made_places(const Claim& claim) {
  std::set<acct::Place> out;
  for (const auto& [setting, value] : applied_settings(claim)) {
    const auto place = acct::place_of(setting);
    if (place && acct::without_place(setting) == acct::kAssociation && value == true) out.insert(*place);
  }
  return out;
}

}  // namespace op::governance
