#include "operator/governance/claim.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/well_known.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"

namespace op::governance {
namespace {

namespace acct = slurm::accounting;

template <class Spec>
std::string name_of(const Spec& spec, const kube::Object& object) {
  return acct::folded(spec.name.value_or(object.meta.name));
}
std::string name_of(const api::SlurmAssociationSpec& spec, const kube::Object& /*object*/) {
  std::string out = acct::folded(spec.account);
  if (spec.user) out += "/" + acct::folded(*spec.user);
  // Names of partitions are case-sensitive.
  return spec.partition.empty() ? out : out + "/" + spec.partition;
}

/// Reads only the fields that identify the entity in Slurm, from an object that cannot be parsed as a whole.
template <class Spec>
void read_identity(const kube::Object& object, Spec& spec) {
  const auto text = [&](const char* member) { return core::get_string(object.body, {"spec", member}); };
  const auto set = [&](const char* member, std::optional<std::string>& to) {
    if (!text(member).empty()) to = text(member);
  };
  if constexpr (std::is_same_v<Spec, api::SlurmAssociationSpec>) {
    // Without an account, a name that begins with "?" is used, so that it cannot be the name of another account.
    spec.account = text("account").empty() ? "?" + object.meta.name : text("account");
    set("user", spec.user);
    spec.partition = text("partition");
  } else {
    set("name", spec.name);
  }
}

template <class Kind>
void read_into(Claim& claim) {
  Kind kind;
  claim.parse_error = read_object(*claim.object, kind);
  if (!claim.parse_error.empty()) read_identity(*claim.object, kind.spec);
  claim.name = name_of(kind.spec, *claim.object);
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
  static const SubjectTexts kAssociation{"association",
                                         "an association",
                                         "AssociationCreated",
                                         "AssociationUpdated",
                                         "AssociationDeleted",
                                         "AssociationKept",
                                         "AssociationMissing",
                                         resources::kSlurmAssociation,
                                         api::kFinalizerSlurmAssociation};
  switch (subject) {
    case Subject::kAssociation:
      return kAssociation;
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

EntityName entity_of(const Claim& claim) {
  if (claim.subject != Subject::kAssociation) return {claim.subject, claim.name};
  const auto& spec = std::get<api::SlurmAssociationSpec>(claim.spec);
  if (spec.user) return {Subject::kUser, acct::folded(*spec.user)};
  return {Subject::kAccount, acct::folded(spec.account)};
}

bool Claim::built_in() const {
  if (subject == Subject::kAssociation) return entity_of(*this).name == acct::kRoot;
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
    case Subject::kAssociation:
      read_into<api::SlurmAssociation>(claim);
      break;
  }
  return claim;
}

bool names_partition(const kube::Object& object) {
  if (!core::get_string(object.body, {"spec", "partition"}).empty()) return true;
  const core::Json* associations = core::find(object.body, {"spec", "associations"});
  return associations != nullptr && associations->is_array() && std::ranges::any_of(*associations, [](const core::Json& each) {
           return !core::get_string(each, {"partition"}).empty();
         });
}

acct::Settings applied_settings(const Claim& claim) {
  acct::Settings out;
  if (!claim.applied) return out;
  // Skip fields that only a later release of the operator knows.
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
