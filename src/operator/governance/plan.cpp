#include "operator/governance/plan.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "api/well_known.hpp"
#include "core/retry.hpp"
#include "kube/acts.hpp"
#include "operator/governance/following.hpp"
#include "operator/governance/references.hpp"
#include "operator/governance/settings.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"

namespace op::governance {
namespace {

namespace acct = slurm::accounting;
using acct::Settings;
using core::Json;

/// How long slurmdbd must be unreachable before the resources report it. A restart of slurmrestd takes less time.
constexpr core::Duration kShortAbsence{30000};
/// The time after which a plan with outdated lists runs again.
constexpr core::Duration kListsAgain{1000};
/// The largest number of differences that a message lists.
constexpr std::size_t kListed = 8;

constexpr std::string_view kPreempt = "Preempt";

/// A QOS, account, user or association in slurmdbd.
struct Found {
  std::int64_t id = 0;  ///< See Claim::id.
  Settings settings;
};

/// The resources that declare the same QOS, account, user or association of the Accounting.
struct Group {
  Subject subject = Subject::kQos;
  std::string name;                  ///< The name in Slurm, in lower case.
  std::vector<const Claim*> claims;  ///< The oldest first.
  const Claim* owner = nullptr;      ///< The oldest resource that is not being deleted, or null.
  std::optional<Found> found;        ///< nullopt: slurmdbd lacks the entity, or its lists are unknown.
  /// The id in the status of one of these resources. 0: no status has an id.
  std::int64_t noted = 0;
  /// Returns the group as text, for example "QOS gpu".
  [[nodiscard]] std::string text() const { return std::string(texts(subject).word) + " " + name; }
};

/// Whether those lists of slurmdbd that a subject needs are known.
enum class Known {
  kYes,
  kForAWhile,  ///< Not known, but known until a moment ago, or this process has just begun to ask.
  kNo,
};

/// True if the status says that the operator was about to create the declared entity. The entity might exist by now.
bool pending(const Claim& claim) {
  return claim.id == 0 && claim.applied.has_value();
}

/// True if the status of `to` has the id or planned creation that is in the status of `from`. If so, `from` can drop it.
bool handed_over(const Claim& from, const Claim& to) {
  if (from.id != 0) return to.id == from.id;
  return !pending(from) || to.id != 0 || pending(to);
}

/// Reports whether the settings in status.applied have been written to slurmdbd. The status records them before the write.
bool was_written(const Claim& claim) {
  static const std::set<std::string_view> kAfterWrite{"InSync",          "PreemptMissing",  "Drifted",     "ClusterUnknown",
                                                      "AccountMissing",  "QosMissing",      "UserMissing", "CapacityUnknown",
                                                      "CapacityInvalid", "PartitionMissing"};
  const api::Condition* synced = api::find_condition(claim.conditions, api::kConditionSynced);
  return synced != nullptr && kAfterWrite.contains(synced->reason);
}

Json json_from(const Settings& settings) {
  Json out = Json::object();
  for (const auto& [setting, value] : settings) out[setting] = value;
  return out;
}

Json json_from(const std::vector<api::CapacityLimitStatus>& limits) {
  Json out = Json::array();
  for (const api::CapacityLimitStatus& limit : limits) out.push_back(api::to_json(limit));
  return out;
}

std::string list_of(const std::vector<acct::Difference>& differences) {
  std::string out;
  for (std::size_t i = 0; i < std::min(differences.size(), kListed); ++i)
    out += (i == 0 ? "" : "; ") + one_line(differences[i].text());
  if (differences.size() > kListed) out += " and " + std::to_string(differences.size() - kListed) + " more";
  return out;
}

/// The next status of a resource, and the write to slurmdbd for this resource.
struct Draft {
  std::int64_t id = 0;
  bool owns = false;  ///< The resource owns what it declares, or is about to create it.
  Settings applied;   ///< The settings that the resource has made.
  std::vector<api::CapacityLimitStatus> capacity_limits = {};
  std::optional<Problem> capacity_problem = {};  ///< Why limits do not follow the capacity.
  bool limits_complete = true;                   ///< False: some limits have no value yet.
  api::ConditionStatus synced = api::ConditionStatus::kFalse;
  std::string reason, message;           ///< The reason and message of the condition Synced.
  bool wrong = true;                     ///< True: a person must act. False: the operator only has to wait.
  std::optional<plan::Step> write = {};  ///< The write to slurmdbd.
  std::optional<plan::Step> event = {};  ///< The event after the write.
};

class Planner {
 public:
  explicit Planner(const Observed& observed) : observed_(observed) {
    // A resource that only observes creates nothing.
    for (const Claim& claim : observed.claims) {
      if (!claim.object->meta.terminating() && claim.enforces()) declared_.emplace(claim.subject, claim.name);
    }
    if (!observed.view) return;
    names_ = Names(*observed.view);
    // The oldest resource of each name is the owner. Only the declarations of owners are written. Declarations of other
    // resources (reason Conflicted) are not.
    std::set<std::pair<Subject, std::string>> owned;
    for (const Claim& claim : observed.claims) {
      if (claim.object->meta.terminating() || !owned.emplace(claim.subject, claim.name).second || !claim.enforces()) continue;
      if (claim.subject == Subject::kQos) {
        note_preempts(claim);
        continue;
      }
      if (const auto* account = std::get_if<api::SlurmAccountSpec>(&claim.spec); account && account->parent)
        names_.parents.emplace(claim.name, acct::folded(*account->parent));
      if (const auto settings = settings_of(claim)) {
        auto& all = claim.subject == Subject::kAssociation ? association_declarations_ : inline_declarations_;
        all[entity_of(claim)].emplace_back(&claim, *settings);
        if (entity_of(claim).subject == Subject::kAccount) note_account(entity_of(claim).name, *settings);
        if (claim.subject == Subject::kAccount && claim.id != 0 && claim.deletes()) note_leaving(claim, *settings);
      }
    }
    for (const auto& [name, row] : *observed.view->qos.rows)
      found_.emplace(std::pair(Subject::kQos, acct::folded(name)), Found{row->id, acct::settings_of(*row)});
    for (const Subject subject : {Subject::kAccount, Subject::kUser}) {
      for (auto& [name, entity] : acct::entities(entity_kind(subject), *observed.view))
        found_.emplace(std::pair(subject, name), Found{1, std::move(entity.settings)});
    }
  }

  plan::Plan plan() {
    std::map<std::pair<Subject, std::string>, Group> groups;
    for (const Claim& claim : observed_.claims) {
      Group& group = groups[{claim.subject, claim.name}];
      group.subject = claim.subject;
      group.name = claim.name;
      group.claims.push_back(&claim);
      if (group.owner == nullptr && !claim.object->meta.terminating()) group.owner = &claim;
      if (group.noted == 0) group.noted = claim.id;
    }
    for (auto& [key, group] : groups) {
      if (known(group.subject) != Known::kNo) group.found = find(group);
      // The id in the owner's status takes precedence over the id in the status of a former owner.
      if (group.owner != nullptr && group.owner->id != 0) group.noted = group.owner->id;
      if (group.noted == 0 && group.found && was_created(group)) group.noted = group.found->id;
      for (const Claim* claim : group.claims) {
        if (claim->object->meta.terminating()) {
          end(*claim, group);
        } else if (claim == group.owner) {
          own(*claim, group);
        } else {
          yield_to_owner(*claim, group);
        }
      }
    }
    return std::move(out_);
  }

 private:
  /// Records the parents and default QOS that a resource declares for an account.
  void note_account(const std::string& account, const Settings& settings) {
    for (const auto& [setting, value] : settings) {
      const auto place = acct::place_of(setting);
      const auto row = place ? names_.accounts.find({place->cluster, account}) : names_.accounts.end();
      if (row == names_.accounts.end()) continue;
      const std::string_view field = acct::without_place(setting);
      if (field == acct::kParent) row->second.parent = value;
      if (field == acct::kDefaultQos && names_.qos.contains(value.get<std::string>())) row->second.default_qos = value;
    }
  }

  /// Records which QOS the QOS of the owner is to preempt.
  void note_preempts(const Claim& owner) {
    const auto& spec = std::get<api::SlurmQosSpec>(owner.spec);
    if (!spec.preempt) return;
    std::set<std::string>& names = names_.preempts[owner.name];
    names.clear();
    for (const std::string& each : *spec.preempt) names.insert(acct::folded(each));
  }

  /// Records the clusters that the account is to leave, so that the users of the account leave these clusters first.
  void note_leaving(const Claim& claim, const Settings& settings) {
    for (const acct::Place& place : made_places(claim)) {
      if (!settings.contains(place.setting(acct::kAssociation)) && names_.clusters.contains(place.cluster))
        names_.leaving.emplace(place.cluster, claim.name);
    }
  }

  // --- What is known of slurmdbd ---

  /// Returns what slurmdbd has for the group. For an association: the settings at the places that the resources declare or have
  /// created.
  [[nodiscard]] std::optional<Found> find(const Group& group) const {
    if (group.subject != Subject::kAssociation) {
      const auto it = found_.find({group.subject, group.name});
      return it == found_.end() ? std::nullopt : std::optional(it->second);
    }
    const EntityName entity = entity_of(*group.claims.front());
    const auto it = found_.find({entity.subject, entity.name});
    if (it == found_.end()) return std::nullopt;
    std::set<acct::Place> places;
    for (const Claim* claim : group.claims) {
      places.merge(places_of(applied_settings(*claim)));
      if (const auto settings = settings_of(*claim)) places.merge(places_of(*settings));
    }
    Found out;
    for (const auto& [setting, value] : it->second.settings) {
      const auto place = acct::place_of(setting);
      if (!place || !places.contains(*place)) continue;
      out.settings[setting] = value;
      if (acct::without_place(setting) == acct::kAssociation && value == true) out.id = 1;
    }
    return out.id == 0 ? std::nullopt : std::optional(std::move(out));
  }

  static std::set<acct::Place> places_of(const Settings& settings) {
    std::set<acct::Place> out;
    for (const auto& [setting, value] : settings) {
      if (auto place = acct::place_of(setting)) out.insert(*std::move(place));
    }
    return out;
  }

  /// The health of a list.
  struct ListState {
    bool complete = false, stale = false;
    core::MonoTime requested_at;
    std::string error;
  };
  template <class Key, class Row>
  static ListState state_of(const acct::Rows<Key, Row>& rows) {
    return {rows.complete(), rows.health == acct::Rows<Key, Row>::Health::kStale, rows.requested_at, rows.error};
  }

  /// Returns the first incomplete list among the lists that the subject needs, or nullopt. Requires a view.
  [[nodiscard]] std::optional<ListState> incomplete(Subject subject) const {
    const acct::View& view = *observed_.view;
    std::vector<ListState> needed{state_of(view.qos)};
    if (subject != Subject::kQos) {
      for (ListState each :
           {state_of(view.accounts), state_of(view.users), state_of(view.associations), state_of(view.clusters)})
        needed.push_back(std::move(each));
    }
    const auto it = std::ranges::find(needed, false, &ListState::complete);
    return it == needed.end() ? std::nullopt : std::optional(*it);
  }

  [[nodiscard]] Known known(Subject subject) const {
    if (!observed_.accounting || !observed_.view) return Known::kNo;
    const std::optional<ListState> list = incomplete(subject);
    if (!list) return Known::kYes;
    const core::MonoTime since = list->stale ? list->requested_at : observed_.view->since;
    return observed_.context.mono - since < kShortAbsence ? Known::kForAWhile : Known::kNo;
  }

  /// Returns the draft with the reason why slurmdbd's lists are not known.
  [[nodiscard]] Draft unknown(Draft draft, Subject subject) const {
    draft.synced = api::ConditionStatus::kUnknown;
    draft.wrong = false;
    if (!observed_.accounting) {
      draft.synced = api::ConditionStatus::kFalse;
      draft.reason = "AccountingMissing";
      draft.message = "spec.accountingRef.name: Accounting " + observed_.key.str() + " does not exist";
      draft.wrong = true;
    } else if (!observed_.view) {
      draft.reason = "NotJoined";
      draft.message =
          "no cluster has joined Accounting " + observed_.key.name +
          " yet. slurmdbd is reached through the slurmrestd of a Controller that names the Accounting and has a RestApi";
    } else {
      draft.reason = "SlurmdbdAway";
      const std::optional<ListState> list = incomplete(subject);
      draft.message = "slurmdbd of Accounting " + observed_.key.name + " cannot be queried" +
                      (!list || list->error.empty() ? " yet" : ": " + one_line(list->error));
    }
    return draft;
  }

  [[nodiscard]] const plan::Outcome* failure(const plan::StepId& id) const {
    const auto it = observed_.context.outcomes.find(id);
    if (it == observed_.context.outcomes.end() || it->second.state != plan::Outcome::State::kFailed || !it->second.error)
      return nullptr;
    return &it->second;
  }

  /// True if a resource of the group created the existing entity: the status of the resource recorded the creation, and the
  /// creation did not fail with kConflict. kConflict would mean that somebody else had created the entity.
  [[nodiscard]] bool was_created(const Group& group) const {
    const plan::Outcome* refused = failure(create_id(group));
    return (refused == nullptr || refused->error->code != core::ErrorCode::kConflict) &&
           std::ranges::any_of(group.claims, [](const Claim* claim) { return pending(*claim); });
  }

  // --- The owner ---

  static plan::StepId write_id(const Group& group) { return {"write", std::string(texts(group.subject).word), group.name}; }
  static plan::StepId create_id(const Group& group) { return {"create", std::string(texts(group.subject).word), group.name}; }
  static plan::StepId delete_id(const Group& group) { return {"delete", std::string(texts(group.subject).word), group.name}; }

  void own(const Claim& claim, const Group& group) {
    const Known state = known(claim.subject);
    if (state == Known::kForAWhile) {
      out_.wake_after(kShortAbsence, "slurmdbd is away");
      // The owner must record what it takes over from another resource, even if slurmdbd does not answer.
      const bool told = api::find_condition(claim.conditions, api::kConditionSynced) != nullptr;
      if (told && std::ranges::all_of(group.claims, [&](const Claim* other) { return handed_over(*other, claim); })) return;
    }
    Draft draft;
    draft.id = claim.id;
    draft.applied = applied_settings(claim);
    draft.owns = claim.applied.has_value();
    draft.capacity_limits = claim.capacity_limits;
    // A resource that only observes owns nothing.
    if (claim.enforces() || !claim.parse_error.empty()) take_over(claim, group, draft);
    if (!claim.parse_error.empty()) {
      draft.reason = "Invalid";
      draft.message = claim.parse_error;
      return tell(claim, std::move(draft));
    }
    core::Result<DeclaredQos> wanted = declared_by(claim);
    if (!wanted) {
      draft.reason = "Invalid";
      draft.message = wanted.error().message;
      return tell(claim, std::move(draft));
    }
    if (std::string problem = name_problem(group); !problem.empty()) {
      draft.reason = "Unsupported";
      draft.message = std::move(problem) + ". Give the " + std::string(texts(group.subject).word) +
                      " another name. To delete this object, set spec.deletionPolicy to Orphan";
      return tell(claim, std::move(draft));
    }
    if (state != Known::kYes) return tell(claim, unknown(std::move(draft), claim.subject));
    Following following = follow(wanted->capacity, claim, draft.applied, observed_);
    for (const slurm::ClusterKey& cluster : following.awaited) out_.waits_on(cluster);
    if (following.look_again) out_.wake_after(*following.look_again, "a limit follows the capacity of a cluster");
    wanted->settings.merge(following.settings);
    draft.capacity_limits = std::move(following.status);
    draft.capacity_problem = std::move(following.problem);
    draft.limits_complete = following.complete;
    claim.enforces() ? enforce(claim, group, std::move(wanted->settings), std::move(draft))
                     : compare(claim, group, wanted->settings, std::move(draft));
  }

  [[nodiscard]] core::Result<DeclaredQos> declared_by(const Claim& claim) const {
    if (claim.subject == Subject::kQos) return declared(std::get<api::SlurmQosSpec>(claim.spec));
    core::Result<Settings> settings = settings_of(claim);
    if (!settings) return std::unexpected(settings.error());
    return DeclaredQos{*std::move(settings), {}};
  }

  /// Returns what an account, a user or an association declares.
  [[nodiscard]] core::Result<Settings> settings_of(const Claim& claim) const {
    if (claim.subject == Subject::kUser) return declared(std::get<api::SlurmUserSpec>(claim.spec), names_.clusters);
    if (claim.subject == Subject::kAssociation)
      return declared(std::get<api::SlurmAssociationSpec>(claim.spec), names_.clusters);
    core::Result<Settings> settings = declared(std::get<api::SlurmAccountSpec>(claim.spec), names_.clusters);
    if (!settings) return settings;
    // For an empty text, slurmdbd stores the name of the account.
    for (const std::string_view field : {acct::kDescription, acct::kOrganization}) {
      if (const auto it = settings->find(field); it != settings->end() && it->second == "") it->second = claim.name;
    }
    return settings;
  }

  static std::string name_problem(const Group& group) {
    if (group.subject == Subject::kQos) return acct::qos_name_problem(group.name);
    const EntityName entity = entity_of(*group.claims.front());
    return acct::entity_name_problem(entity_kind(entity.subject), entity.name);
  }

  /// Copies the id and settings from the status of other resources, before these resources drop them.
  static void take_over(const Claim& claim, const Group& group, Draft& draft) {
    draft.id = group.noted;
    draft.owns = draft.owns || group.noted != 0;
    for (const Claim* other : group.claims) {
      if (other == &claim || !(pending(*other) || (group.noted != 0 && other->id == group.noted))) continue;
      draft.owns = true;
      for (auto& [setting, value] : applied_settings(*other)) draft.applied.try_emplace(setting, value);
    }
  }

  /// Handles policy Observe: compares what the claim declares with what slurmdbd has, and reports the differences.
  void compare(const Claim& claim, const Group& group, const Settings& wanted, Draft draft) {
    if (!group.found) {
      draft.reason = texts(group.subject).missing;
      draft.message = "slurmdbd has no " + group.text() + ", and policy is Observe";
      return tell(claim, std::move(draft));
    }
    const std::vector<acct::Difference> left = acct::differences(wanted, group.found->settings);
    const Writable now = writable(claim, wanted, group.found->settings, names_, declared_);
    if (left.empty() && now.reason == "ClusterUnknown") {
      draft.reason = now.reason;
      draft.message = now.message;
      return tell(claim, std::move(draft));
    }
    if (left.empty()) {
      draft = in_sync(std::move(draft), group);
      check_partitions(wanted, draft);
      return tell(claim, std::move(draft));
    }
    draft.reason = "Drifted";
    draft.message = list_of(left) + " (policy is Observe)";
    tell(claim, std::move(draft));
  }

  static Draft in_sync(Draft draft, const Group& group) {
    if (draft.capacity_problem) {
      draft.wrong = draft.capacity_problem->wrong();
      draft.reason = draft.capacity_problem->reason;
      draft.message = draft.capacity_problem->message;
      return draft;
    }
    draft.synced = api::ConditionStatus::kTrue;
    draft.reason = "InSync";
    draft.message = group.subject == Subject::kQos && group.name == acct::kNormalQos
                        ? "normal is Slurm's own QOS, the default of all jobs: it is never deleted, and keeps its settings "
                          "when this object is deleted"
                        : "";
    return draft;
  }

  /// Adds a problem to the draft. The condition has the reason of the first problem.
  static void add_problem(Draft& draft, std::string_view reason, const std::string& message, bool wrong) {
    if (draft.synced == api::ConditionStatus::kTrue) {
      draft.synced = api::ConditionStatus::kFalse;
      draft.reason = reason;
      draft.message = message;
      draft.wrong = wrong;
    } else {
      draft.message += "; " + message;
      draft.wrong = draft.wrong || wrong;
    }
  }

  /// Reports associations for partitions that do not exist. The associations are written nevertheless, because the partitions
  /// might be created later.
  void check_partitions(const Settings& settings, Draft& draft) const {
    std::set<std::string> absent;
    for (const acct::Place& place : places_of(settings)) {
      const auto known = observed_.partitions.find(place.cluster);
      if (place.partition.empty() || known == observed_.partitions.end() || known->second.contains(place.partition)) continue;
      absent.insert(place.partition + " in cluster " + place.cluster);
    }
    if (absent.empty()) return;
    add_problem(draft, "PartitionMissing",
                "Slurm has no partition " + joined({absent.begin(), absent.end()}) +
                    ". Correct the name, or create the partition. Jobs can use the association when the partition exists",
                true);
  }

  [[nodiscard]] bool is_ours(const Claim& claim, const Group& group) const {
    if (!group.found || group.noted == group.found->id || claim.adoption == api::Adoption::kAdopt) return true;
    // The SlurmAccount owns the association of its account. The SlurmAssociation only declares settings of this association.
    return of_declared_account(claim);
  }

  /// True if the claim is for an account's own association, and a SlurmAccount owns this association.
  [[nodiscard]] bool of_declared_account(const Claim& claim) const {
    if (claim.subject != Subject::kAssociation) return false;
    const EntityName entity = entity_of(claim);
    return entity.subject == Subject::kAccount && std::ranges::any_of(observed_.claims, [&](const Claim& other) {
             return other.subject == Subject::kAccount && other.name == entity.name && other.enforces() && other.applied &&
                    !other.object->meta.terminating();
           });
  }

  /// Returns the SlurmAccount or SlurmUser that also declares settings of the claim's association, or null.
  [[nodiscard]] const Claim* declared_inline(const Claim& claim, const Settings& wanted) const {
    if (claim.subject != Subject::kAssociation) return nullptr;
    const auto all = inline_declarations_.find(entity_of(claim));
    if (all == inline_declarations_.end()) return nullptr;
    for (const auto& [other, settings] : all->second) {
      for (const auto& [setting, value] : wanted) {
        if (settings.contains(setting)) return other;
      }
    }
    return nullptr;
  }

  void enforce(const Claim& claim, const Group& group, Settings wanted, Draft draft) {
    // A SlurmAccount declares in which clusters its account exists. A SlurmAssociation only declares settings of the account in
    // these clusters.
    if (claim.subject == Subject::kAssociation && entity_of(claim).subject == Subject::kAccount) {
      std::erase_if(wanted, [](const auto& each) { return acct::without_place(each.first) == acct::kAssociation; });
    }
    if (const Claim* other = declared_inline(claim, wanted)) {
      draft.reason = "Conflicted";
      draft.message = texts(other->subject).resource.kind + " " + other->object->meta.name + " declares settings of " +
                      group.text() + " as well. Remove them from one of the two";
      return tell(claim, std::move(draft));
    }
    if (!is_ours(claim, group)) {
      draft.id = 0;
      draft.owns = false;
      draft.capacity_limits.clear();
      draft.reason = "AlreadyExists";
      draft.message = "slurmdbd has " + std::string(texts(group.subject).a_word) + " " + group.name + " that no " +
                      texts(group.subject).resource.kind + " manages. It is not changed unless spec.adoption is Adopt";
      return tell(claim, std::move(draft));
    }
    const Settings found = group.found ? group.found->settings : Settings{};
    Writable now = writable(claim, std::move(wanted), found, names_, declared_);
    if (now.hold) {
      draft.capacity_limits = claim.capacity_limits;  // The new values are not in force yet.
      draft.wrong = !now.coming;
      draft.reason = std::move(now.reason);
      draft.message = std::move(now.message);
      return tell(claim, std::move(draft));
    }
    // While some limits have no value, a new QOS would allow more than is declared.
    if (!group.found && !draft.limits_complete) {
      draft.capacity_limits = claim.capacity_limits;
      draft = in_sync(std::move(draft), group);
      draft.message += ". Until every limit has a value, the QOS is not created";
      return tell(claim, std::move(draft));
    }
    const bool was_there = draft.id != 0;
    draft.owns = true;
    draft.id = group.found ? group.found->id : 0;
    Settings target = now.settings;
    if (group.found) add_resets(claim, draft.applied, target);
    add_default_account(claim, found, target);
    replace_default(claim, target);
    const std::vector<std::string> stuck = remove_stuck(group, found, target);
    const std::vector<acct::Difference> left = acct::differences(target, found);
    if (group.found && left.empty()) {
      draft.applied = std::move(now.settings);
      draft = in_sync(std::move(draft), group);
      if (!stuck.empty()) {
        for (const std::string& each : stuck) draft.applied[each] = acct::value_of(found, each);
        add_problem(draft, "Unsupported", stuck_text(claim, stuck.front(), acct::value_of(found, stuck.front())), true);
      }
      if (!now.reason.empty()) add_problem(draft, now.reason, now.message, !now.coming);
      check_partitions(draft.applied, draft);
      return tell(claim, std::move(draft));
    }
    write(claim, group, target, left, was_there, draft);
    if (draft.reason != "Writing" && !now.reason.empty()) add_problem(draft, now.reason, now.message, !now.coming);
    for (const auto& [setting, value] : now.settings) draft.applied[setting] = value;
    tell(claim, std::move(draft));
  }

  /// Adds Slurm's defaults for settings that are not declared any more. With deletionPolicy Orphan, associations stay.
  void add_resets(const Claim& claim, const Settings& applied, Settings& target) const {
    const bool of_account = claim.subject == Subject::kAssociation && entity_of(claim).subject == Subject::kAccount;
    for (const auto& [setting, value] : applied) {
      if (target.contains(setting) || declared_elsewhere(claim, setting)) continue;
      const auto place = acct::place_of(setting);
      const std::string_view field = acct::without_place(setting);
      if (place) {
        // slurmdbd deletes the settings of an association together with the association. A default account cannot be reset,
        // only replaced.
        if (field == acct::kDefaultAccount) continue;
        if (field == acct::kAssociation && (!claim.deletes() || of_account)) continue;
        const std::string association = place->setting(acct::kAssociation);
        const bool goes =
            applied.contains(association) && !target.contains(association) && !declared_elsewhere(claim, association);
        if (field != acct::kAssociation && goes && !of_account) continue;
        // Settings can only be reset in clusters that slurmdbd has.
        if (!names_.clusters.contains(place->cluster)) continue;
      }
      // Slurm's default for the description and the organization of an account is the account's name, as in sacctmgr.
      const bool named = claim.subject == Subject::kAccount && !place && acct::default_of(setting).is_string();
      target[setting] = named ? core::Json(claim.name) : acct::default_of(setting);
    }
  }

  /// Reports whether another resource also declares the setting. For a SlurmAssociation, this is the SlurmAccount or SlurmUser.
  /// For a SlurmAccount or SlurmUser, this is a SlurmAssociation. The claim must not reset such a setting.
  [[nodiscard]] bool declared_elsewhere(const Claim& claim, const std::string& setting) const {
    if (claim.subject == Subject::kQos) return false;
    if (claim.subject == Subject::kAccount && acct::without_place(setting) == acct::kAssociation) return false;
    const Declarations& others = claim.subject == Subject::kAssociation ? inline_declarations_ : association_declarations_;
    const auto all = others.find(entity_of(claim));
    return all != others.end() &&
           std::ranges::any_of(all->second, [&](const auto& each) { return each.second.contains(setting); });
  }

  /// If a user has no default account in a cluster, makes the account of the first association the default. A user without a
  /// default account cannot submit jobs.
  void add_default_account(const Claim& claim, const Settings& own, Settings& target) const {
    std::vector<std::string> accounts;
    Settings found = own;
    if (const auto* user = std::get_if<api::SlurmUserSpec>(&claim.spec)) {
      for (const api::UserAssociation& each : user->associations) accounts.push_back(acct::folded(each.account));
    } else if (const auto* association = std::get_if<api::SlurmAssociationSpec>(&claim.spec);
               association && association->user) {
      accounts.push_back(acct::folded(association->account));
      if (const auto it = found_.find({Subject::kUser, entity_of(claim).name}); it != found_.end()) found = it->second.settings;
    }
    std::set<std::string> has;
    for (const Settings* settings : std::initializer_list<const Settings*>{&found, &target}) {
      for (const auto& [setting, value] : *settings) {
        const auto place = acct::place_of(setting);
        if (!place || acct::without_place(setting) != acct::kDefaultAccount || value != true) continue;
        const auto association = target.find(place->setting(acct::kAssociation));
        if (association == target.end() || association->second == true) has.insert(place->cluster);
      }
    }
    for (const std::string& account : accounts) {
      for (const acct::Place& place : default_places(target, account)) {
        if (has.insert(place.cluster).second) target[place.setting(acct::kDefaultAccount)] = true;
      }
    }
  }

  /// If a SlurmAssociation deletes the association in the user's default account, makes another account the default. slurmdbd
  /// deletes an association in the default account only if it is the user's last association in the cluster.
  void replace_default(const Claim& claim, Settings& changes) const {
    if (claim.subject != Subject::kAssociation) return;
    const EntityName entity = entity_of(claim);
    const auto user = found_.find({entity.subject, entity.name});
    if (entity.subject != Subject::kUser || user == found_.end()) return;
    const Settings& found = user->second.settings;
    Settings added;
    for (const auto& [setting, value] : changes) {
      const auto gone = acct::place_of(setting);
      if (!gone || acct::without_place(setting) != acct::kAssociation || value != false) continue;
      if (acct::value_of(found, gone->setting(acct::kDefaultAccount)) != true) continue;
      for (const auto& [other, there] : found) {
        const auto place = acct::place_of(other);
        if (!place || place->cluster != gone->cluster || acct::without_place(other) != acct::kAssociation || there != true ||
            changes.contains(other))
          continue;
        added[place->setting(acct::kDefaultAccount)] = true;
        break;
      }
    }
    changes.merge(added);
  }

  /// Removes and returns the lists that would become empty. slurmrestd ignores empty lists, so these lists cannot be written.
  static std::vector<std::string> remove_stuck(const Group& group, const Settings& found, Settings& target) {
    std::vector<std::string> stuck;
    std::erase_if(target, [&](const auto& each) {
      const bool list =
          group.subject == Subject::kQos ? each.first == kPreempt : acct::without_place(each.first) == acct::kQosList;
      if (!list || !each.second.empty() || acct::value_of(found, each.first).empty()) return false;
      stuck.push_back(each.first);
      return true;
    });
    return stuck;
  }

  static std::string stuck_text(const Claim& claim, const std::string& setting, const Json& list) {
    const std::string names = joined(list.get<std::vector<std::string>>());
    if (claim.subject == Subject::kQos) {
      return "slurmrestd cannot empty the list of QOS that " + claim.name + " preempts, which is " + names +
             ". Run: sacctmgr modify qos " + claim.name + " set preempt=";
    }
    const EntityName entity = entity_of(claim);
    const std::string word(texts(entity.subject).word);
    const acct::Place place = acct::place_of(setting).value_or(acct::Place{});
    std::string where = " where cluster=" + place.cluster;
    if (!place.account.empty()) where += " account=" + place.account;
    if (!place.partition.empty()) where += " partition=" + place.partition;
    return "slurmrestd cannot empty the list of QOS of " + word + " " + entity.name + " (" + place.text() + "), which is " +
           names + ". Run: sacctmgr modify " + word + " " + entity.name + where + " set qos=";
  }

  /// Adds the write of `target`. `left`: the settings that differ from `target` in slurmdbd. `was_there`: the status had an id
  /// before.
  void write(const Claim& claim, const Group& group, const Settings& target, const std::vector<acct::Difference>& left,
             bool was_there, Draft& draft) {
    const bool create = !group.found;
    plan::StepId id = create ? create_id(group) : write_id(group);
    Settings changes;
    if (create) {
      changes = target;
    } else {
      for (const acct::Difference& each : left) changes[each.setting] = each.wanted;
    }
    const bool drift = was_written(claim) && (create ? was_there : std::ranges::all_of(left, [&](const acct::Difference& each) {
                         const auto before = draft.applied.find(each.setting);
                         return before != draft.applied.end() && before->second == each.wanted;
                       }));
    const SubjectTexts& words = texts(group.subject);
    const std::string before =
        create ? (was_there ? "it was deleted in slurmdbd" : "slurmdbd has no such " + std::string(words.word)) : list_of(left);
    draft.wrong = false;
    draft.reason = "Writing";
    draft.message = before;
    if (const plan::Outcome* failed = failure(id)) tell_failure(*failed, draft);
    // An account or user is written by several requests. If one request fails, the changes of earlier requests stay.
    if (draft.reason == "WriteFailed" && !create && group.subject != Subject::kQos)
      draft.message += ". Still different in slurmdbd: " + before;
    plan::ActPtr act = group.subject == Subject::kQos
                           ? slurm::write_qos(observed_.database, group.name, create ? 0 : group.found->id, std::move(changes))
                           : entity_write(claim, create, std::move(changes));
    draft.write = plan::Step{std::move(id), before, std::move(act)};
    const std::string created = drift ? " had been deleted, and was created again" : " was created";
    draft.event = event(claim, drift ? "Warning" : "Normal",
                        drift    ? "DriftMended"
                        : create ? std::string(words.created)
                                 : std::string(words.updated),
                        "Sync", group.text() + (create ? created : ": " + before));
    out_.waits_on(observed_.database);
  }

  /// Returns the act for a claim that is not a QOS. An association is written by a change of its account or user.
  [[nodiscard]] plan::ActPtr entity_write(const Claim& claim, bool create, Settings changes) const {
    const EntityName entity = entity_of(claim);
    return slurm::write_entity(observed_.database, entity_kind(entity.subject), entity.name,
                               create && claim.subject != Subject::kAssociation, std::move(changes));
  }

  static void tell_failure(const plan::Outcome& failed, Draft& draft) {
    const core::Retry retry = core::retry_of(failed.error->code);
    const bool passing = retry == core::Retry::kLater || retry == core::Retry::kSettle || retry == core::Retry::kDecideAnew;
    if (passing && failed.count < 5) return;
    using enum core::ErrorCode;
    // Users need not act if the QOS, account, user or association is in use: the operator deletes it later.
    draft.wrong = failed.error->code != kBusy;
    draft.reason = failed.error->code == kUnsupported ? "Unsupported" : failed.error->code == kBusy ? "InUse" : "WriteFailed";
    draft.message = one_line(failed.error->message);
  }

  // --- Other resources ---

  void yield_to_owner(const Claim& claim, const Group& group) {
    Draft draft;
    // The id stays in this status until the owner's status has the id.
    if (!handed_over(claim, *group.owner)) {
      draft.id = claim.id;
      draft.owns = true;
      draft.applied = applied_settings(claim);
    }
    draft.reason = "Conflicted";
    draft.message = group.text() + " belongs to " + texts(group.subject).resource.kind + " " + group.owner->object->meta.name +
                    ", which is older. Delete one of the two";
    tell(claim, std::move(draft));
  }

  void end(const Claim& claim, const Group& group) {
    const SubjectTexts& words = texts(group.subject);
    const std::string word(words.word);
    if (!kube::has_finalizer(claim.object->meta, words.finalizer)) return;
    if (claim.id == 0 && !pending(claim)) return let_go(claim, group, "this object has created no " + word, "");
    if (group.owner != nullptr) {
      const std::string owner = words.resource.kind + " " + group.owner->object->meta.name;
      if (group.owner->parse_error.empty() && !group.owner->enforces())
        return let_go(claim, group, owner + " only observes the " + word, "policy of " + owner + " is Observe");
      // Somebody might have deleted the QOS, account or user, and might have created it again.
      const bool gone = known(claim.subject) == Known::kYes &&
                        (!group.found || (claim.id != 0 ? group.found->id != claim.id : !was_created(group)));
      if (handed_over(claim, *group.owner) || gone) return let_go(claim, group, owner + " has the " + word + " now", "");
      return out_.waits_on(observed_.database);
    }
    if (!claim.deletes()) {
      return let_go(claim, group, "the " + word + " is kept",
                    claim.built_in()             ? group.name + " is Slurm's own"
                    : !claim.parse_error.empty() ? "the operator cannot read the object"
                    : claim.enforces()           ? "deletionPolicy is Orphan"
                                                 : "policy is Observe");
    }
    if (!observed_.accounting || observed_.accounting->meta.terminating())
      return let_go(claim, group, "its slurmdbd can no longer be queried", "its Accounting is deleted as well");

    Draft draft;
    draft.id = claim.id;
    draft.owns = true;
    draft.applied = applied_settings(claim);
    draft.capacity_limits = claim.capacity_limits;
    if (known(claim.subject) != Known::kYes) {
      draft = unknown(std::move(draft), claim.subject);
      draft.message +=
          ". Until the " + word +
          " can be deleted, this object is kept. With spec.deletionPolicy Orphan, this object is deleted, and the " + word +
          " is kept";
      return tell(claim, std::move(draft));
    }
    if (!group.found) return let_go(claim, group, "slurmdbd has no such " + word, "");
    const bool ours = claim.id != 0 ? group.found->id == claim.id
                                    : was_created(group) && acct::differences(draft.applied, group.found->settings).empty();
    if (!ours) return let_go(claim, group, "the " + word + " is kept", "slurmdbd has another one of that name");
    remove(claim, group, std::move(draft));
  }

  /// Returns who uses the QOS, account or user, or "". Always "" for an association.
  [[nodiscard]] std::string use_of(const Group& group, const Claim& claim) const {
    if (group.subject == Subject::kAssociation) return {};  // The act itself checks for jobs.
    return group.subject == Subject::kQos
               ? slurm::use_of_qos(group.name, *observed_.view)
               : slurm::use_of_entity(entity_kind(group.subject), group.name, made_places(claim), *observed_.view);
  }

  /// Returns the act that deletes the declared entity. Null: there is no evidence that nobody uses the entity.
  [[nodiscard]] plan::ActPtr deletion(const Group& group, const Claim& claim) const {
    if (group.subject == Subject::kAssociation) {
      Settings resets, changes;
      add_resets(claim, applied_settings(claim), resets);
      for (const acct::Difference& each : acct::differences(resets, group.found->settings)) changes[each.setting] = each.wanted;
      replace_default(claim, changes);
      return entity_write(claim, false, std::move(changes));
    }
    if (group.subject == Subject::kQos) {
      const auto evidence = observed_.unused.find(group.name);
      return evidence == observed_.unused.end() ? nullptr : slurm::delete_qos(evidence->second);
    }
    const auto evidence = observed_.unused_entities.find({group.subject, group.name});
    return evidence == observed_.unused_entities.end() ? nullptr : slurm::delete_entity(evidence->second);
  }

  void remove(const Claim& claim, const Group& group, Draft draft) {
    out_.waits_on(observed_.database);
    const std::string use = use_of(group, claim);
    draft.wrong = false;
    draft.reason = "Deleting";
    draft.message = group.text() + " is being deleted";
    if (!use.empty()) {
      draft.reason = "InUse";
      draft.message = group.text() + " is not deleted: " + use;
    } else if (const plan::Outcome* failed = failure(delete_id(group))) {
      if (failed->error->code == core::ErrorCode::kBusy) {
        draft.reason = "InUse";
        draft.message = group.text() + " is not deleted: " + one_line(failed->error->message);
      } else {
        tell_failure(*failed, draft);
      }
    }
    plan::ActPtr act = use.empty() ? deletion(group, claim) : nullptr;
    if (act) {
      plan::Lane& lane = lane_of(claim);
      lane.add({delete_id(group), texts(group.subject).resource.kind + " " + claim.object->meta.name + " is being deleted",
                std::move(act)});
      if (failure(delete_id(group)) == nullptr) {
        lane.then();
        lane.add(event(claim, "Normal", std::string(texts(group.subject).deleted), "Delete", group.text() + " was deleted"));
        // When the finalizer is removed, the object is deleted, so its status is not written.
        lane.then();
        return add_release(lane, claim, "the " + std::string(texts(group.subject).word) + " is deleted");
      }
    } else if (use.empty()) {
      // A list is old or unknown, so there is no evidence. A poll that finds no change does not wake the key.
      out_.wake_after(kListsAgain, "the users of the " + std::string(texts(group.subject).word) + " are not known");
      if (const auto& list = observed_.view->associations; !list.complete()) {
        draft.wrong = false;
        draft.reason = "Deleting";
        draft.message = group.text() + " will be deleted when its users are known";
        if (!list.error.empty()) draft.message += ": " + one_line(list.error);
      }
    }
    tell(claim, std::move(draft));
  }

  void let_go(const Claim& claim, const Group& group, const std::string& why, const std::string& kept) {
    plan::Lane& lane = lane_of(claim);
    if (!kept.empty()) {
      lane.add(event(claim, "Normal", std::string(texts(group.subject).kept), "Delete",
                     group.text() + " is kept in slurmdbd: " + kept));
      lane.then();
    }
    add_release(lane, claim, why);
  }

  static void add_release(plan::Lane& lane, const Claim& claim, const std::string& why) {
    const SubjectTexts& words = texts(claim.subject);
    lane.add({{"remove", "finalizer", claim.label()},
              why,
              kube::remove_finalizer(words.resource, claim.object->meta, words.finalizer)});
  }

  // --- Status, events and writes ---

  /// Adds the resource's label to the step's id, because steps of different resources in one plan need different ids.
  static plan::Step of(const Claim& claim, plan::Step step) {
    step.id.kind = claim.label();
    return step;
  }
  static plan::Step event(const Claim& claim, std::string_view type, std::string reason, std::string_view action,
                          std::string message) {
    return of(claim, event_step(texts(claim.subject).resource, claim.object->meta, std::string(type), std::move(reason),
                                std::string(action), std::move(message)));
  }

  plan::Lane& lane_of(const Claim& claim) {
    return out_.lane(claim.subject == Subject::kQos ? "qos " + claim.label() : claim.label());
  }

  void tell(const Claim& claim, Draft draft) {
    const kube::ObjectMeta& meta = claim.object->meta;
    const SubjectTexts& words = texts(claim.subject);
    plan::Lane& lane = lane_of(claim);
    if (draft.owns && claim.deletes() && !kube::has_finalizer(meta, words.finalizer)) {
      // Adding the finalizer changes the resourceVersion of the object, so the status is written in the next pass.
      lane.add({{"add", "finalizer", claim.label()},
                "the " + std::string(words.word) + " is to be deleted with it",
                kube::add_finalizer(words.resource, meta, words.finalizer)});
      return;
    }
    const bool synced = draft.synced == api::ConditionStatus::kTrue;
    // If this pass corrects a drift, only an event reports the drift, and the status does not change.
    const bool quiet = draft.write && draft.reason == "Writing" && claim.id == draft.id && draft.owns && claim.applied &&
                       *claim.applied == json_from(draft.applied) &&
                       json_from(claim.capacity_limits) == json_from(draft.capacity_limits) &&
                       claim.observed_generation == meta.generation;
    if (!quiet) {
      Conditions conditions(claim.conditions, meta.generation, observed_.context.now);
      conditions.set(api::kConditionSynced, draft.synced, draft.reason, draft.message);
      std::vector<Problem> problems;
      if (!synced) {
        problems.push_back({draft.reason, draft.message, draft.wrong ? Problem::Kind::kWrong : Problem::Kind::kComing});
      }
      set_summary(conditions, synced, problems, "");
      if (auto degraded = degraded_event(words.resource, meta, claim.conditions, conditions))
        out_.lane("events").add(of(claim, *std::move(degraded)));
      Json status{{"observedGeneration", meta.generation}, {"ready", synced}, {"conditions", conditions.json()}};
      if (draft.id != 0) {
        if (claim.subject == Subject::kQos)
          status["id"] = draft.id;
        else
          status["created"] = true;
      }
      if (draft.owns) status["applied"] = json_from(draft.applied);
      if (!draft.capacity_limits.empty()) status["capacityLimits"] = json_from(draft.capacity_limits);
      if (auto step = status_step(words.resource, *claim.object, std::move(status))) {
        step->id.name = claim.label();
        lane.add(std::move(step));
        lane.then();
      }
    }
    if (!draft.write) return;
    lane.add(std::move(draft.write));
    lane.then();
    lane.add(std::move(draft.event));
  }

  const Observed& observed_;
  plan::Plan out_;
  /// Maps an account or user to the resources that declare settings for it or its associations, each with these settings.
  using Declarations = std::map<EntityName, std::vector<std::pair<const Claim*, Settings>>>;
  std::map<std::pair<Subject, std::string>, Found> found_;
  Declarations inline_declarations_;       ///< Declared by SlurmAccounts and SlurmUsers.
  Declarations association_declarations_;  ///< Declared by SlurmAssociations.
  Names names_;
  Declared declared_;
};

}  // namespace

plan::Plan plan(const Observed& observed) {
  return Planner(observed).plan();
}

}  // namespace op::governance
