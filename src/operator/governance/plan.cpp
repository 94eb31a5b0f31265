#include "operator/governance/plan.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "api/well_known.hpp"
#include "core/retry.hpp"
#include "kube/acts.hpp"
#include "operator/governance/settings.hpp"
#include "slinky/names.hpp"
#include "slinky/status.hpp"

namespace op::governance {
namespace {

namespace acct = slurm::accounting;
using acct::Settings;
using core::Json;

/// How long slurmdbd may be away before the resources report it. A restart of slurmrestd is shorter.
constexpr core::Duration kShortAbsence{30000};
/// The number of differences in a message.
constexpr std::size_t kListed = 8;

constexpr std::string_view kPreempt = "Preempt";

/// The resources that declare the same QOS of the Accounting.
struct Group {
  std::string name;                        ///< The name in Slurm, in lower case.
  std::vector<const QosResource*> claims;  ///< The oldest first.
  const QosResource* owner = nullptr;      ///< The oldest that is not being deleted, or null.
  const acct::Qos* found = nullptr;        ///< Null if slurmdbd has no such QOS, or is not known.
  /// The number of the QOS that belongs to one of these resources, according to their statuses. 0: none.
  std::int64_t noted = 0;
};

/// Whether the QOS of slurmdbd are known.
enum class Known {
  kYes,
  kForAWhile,  ///< They were until a moment ago, or this process has just begun to ask.
  kNo,
};

/// Reports whether its QOS was about to be created, and may exist now.
bool pending(const api::SlurmQosStatus& status) {
  return status.id == 0 && status.applied.has_value();
}

/// Reports whether `to` has noted the QOS of `from`.
bool handed_over(const api::SlurmQosStatus& from, const api::SlurmQosStatus& to) {
  if (from.id != 0) return to.id == from.id;
  return !pending(from) || to.id != 0 || pending(to);
}

/// Reports whether the settings in status.applied were written. They are noted before.
bool was_written(const api::SlurmQosStatus& status) {
  const api::Condition* synced = api::find_condition(status.conditions, api::kConditionSynced);
  return synced != nullptr && (synced->reason == "InSync" || synced->reason == "PreemptMissing" || synced->reason == "Drifted");
}

bool enforces(const QosResource& resource) {
  return resource.parse_error.empty() && resource.qos.spec.policy == api::DriftPolicy::kEnforce;
}

/// Reports whether the QOS is deleted with the resource.
bool deletes(const QosResource& resource) {
  return enforces(resource) && resource.qos.spec.deletion_policy == api::QosDeletion::kDelete &&
         resource.qos_name() != acct::kNormalQos;
}

Settings applied_of(const api::SlurmQosStatus& status) {
  Settings out;
  if (!status.applied) return out;
  // A later release has written fields that are unknown here. Leave them alone.
  for (const auto& [setting, value] : status.applied->items()) {
    if (acct::field_of(setting) != nullptr) out[setting] = value;
  }
  return out;
}

Json json_from(const Settings& settings) {
  Json out = Json::object();
  for (const auto& [setting, value] : settings) out[setting] = value;
  return out;
}

std::string list_of(const std::vector<acct::Difference>& differences) {
  std::string out;
  for (std::size_t i = 0; i < std::min(differences.size(), kListed); ++i)
    out += (i == 0 ? "" : "; ") + one_line(differences[i].text());
  if (differences.size() > kListed) out += " and " + std::to_string(differences.size() - kListed) + " more";
  return out;
}

std::string joined(const std::vector<std::string>& names, std::string_view separator) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : std::string(separator)) + name;
  return out;
}

/// The next status of a resource, and the write for it.
struct Draft {
  std::int64_t id = 0;
  bool owns = false;  ///< The QOS is the resource's, or is about to be created.
  Settings applied;   ///< The settings that the resource has made.
  api::ConditionStatus synced = api::ConditionStatus::kFalse;
  std::string reason, message;           ///< Those of the condition Synced.
  bool wrong = true;                     ///< A person must act. False: it only takes time.
  std::optional<plan::Step> write = {};  ///< The write to slurmdbd.
  std::optional<plan::Step> event = {};  ///< The event after the write.
};

class Planner {
 public:
  explicit Planner(const Observed& observed) : observed_(observed) {
    if (observed.view) {
      for (const auto& [name, row] : *observed.view->qos.rows) by_name_.emplace(acct::folded(name), row.get());
      for (const auto& [id, row] : *observed.view->tres.rows) tres_.insert(row->name);
    }
  }

  plan::Plan plan() {
    std::map<std::string, Group> groups;
    for (const QosResource& resource : observed_.qos) {
      const std::string name = resource.qos_name();
      Group& group = groups[name];
      group.name = name;
      group.claims.push_back(&resource);
      if (group.owner == nullptr && !resource.object->meta.terminating()) group.owner = &resource;
      if (group.noted == 0) group.noted = resource.qos.status.id;
    }
    for (auto& [name, group] : groups) {
      if (known() != Known::kNo) {
        const auto it = by_name_.find(name);
        if (it != by_name_.end()) group.found = it->second;
      }
      // The owner's note has precedence over that of the resource that it takes over from.
      if (group.owner != nullptr && group.owner->qos.status.id != 0) group.noted = group.owner->qos.status.id;
      if (group.noted == 0 && group.found != nullptr && was_created(group)) group.noted = group.found->id;
      for (const QosResource* resource : group.claims) {
        if (resource->object->meta.terminating()) {
          end(*resource, group);
        } else if (resource == group.owner) {
          own(*resource, group);
        } else {
          yield_to_owner(*resource, group);
        }
      }
    }
    return std::move(out_);
  }

 private:
  // --- What is known of slurmdbd ---

  [[nodiscard]] Known known() const {
    if (!observed_.accounting || !observed_.view) return Known::kNo;
    const auto& rows = observed_.view->qos;
    if (rows.complete()) return Known::kYes;
    const bool before = rows.health == acct::Rows<std::string, acct::Qos>::Health::kStale;
    const core::MonoTime since = before ? rows.requested_at : observed_.view->since;
    return observed_.context.mono - since < kShortAbsence ? Known::kForAWhile : Known::kNo;
  }

  /// Adds why the QOS are not known.
  [[nodiscard]] Draft unknown(Draft draft) const {
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
      draft.message = "slurmdbd of Accounting " + observed_.key.name + " cannot be asked" +
                      (observed_.view->qos.error.empty() ? " yet" : ": " + one_line(observed_.view->qos.error));
    }
    return draft;
  }

  [[nodiscard]] const plan::Outcome* failure(const plan::StepId& id) const {
    const auto it = observed_.context.outcomes.find(id);
    if (it == observed_.context.outcomes.end() || it->second.state != plan::Outcome::State::kFailed || !it->second.error)
      return nullptr;
    return &it->second;
  }

  /// Reports whether a resource of the group has created the QOS that exists. It noted the creation before, and a creation that
  /// finds an existing QOS fails with kConflict.
  [[nodiscard]] bool was_created(const Group& group) const {
    const plan::Outcome* refused = failure(create_id(group));
    return (refused == nullptr || refused->error->code != core::ErrorCode::kConflict) &&
           std::ranges::any_of(group.claims, [](const QosResource* claim) { return pending(claim->qos.status); });
  }

  // --- The owner ---

  static plan::StepId write_id(const Group& group) { return {"write", "QOS", group.name}; }
  static plan::StepId create_id(const Group& group) { return {"create", "QOS", group.name}; }
  static plan::StepId delete_id(const Group& group) { return {"delete", "QOS", group.name}; }

  void own(const QosResource& resource, const Group& group) {
    const Known state = known();
    if (state == Known::kForAWhile) {
      out_.wake_after(kShortAbsence, "slurmdbd is away");
      // A QOS that another resource hands over must be noted, even if slurmdbd does not answer.
      const bool told = api::find_condition(resource.qos.status.conditions, api::kConditionSynced) != nullptr;
      if (told && std::ranges::all_of(group.claims, [&](const QosResource* claim) {
            return handed_over(claim->qos.status, resource.qos.status);
          })) {
        return;
      }
    }
    Draft draft;
    draft.id = resource.qos.status.id;
    draft.applied = applied_of(resource.qos.status);
    draft.owns = resource.qos.status.applied.has_value();
    // A resource that only observes owns nothing.
    if (enforces(resource) || !resource.parse_error.empty()) take_over(resource, group, draft);
    if (!resource.parse_error.empty()) {
      draft.reason = "Invalid";
      draft.message = resource.parse_error;
      return tell(resource, std::move(draft));
    }
    core::Result<Declared> wanted = declared(resource.qos.spec);
    if (!wanted) {
      draft.reason = "Invalid";
      draft.message = wanted.error().message;
      return tell(resource, std::move(draft));
    }
    if (!wanted->capacity.empty()) {
      draft.reason = "Unsupported";
      draft.message = "spec.limits." + wanted->capacity.begin()->second.limit + ": expressions are not written yet";
      return tell(resource, std::move(draft));
    }
    if (std::string problem = acct::qos_name_problem(group.name); !problem.empty()) {
      draft.reason = "Unsupported";
      draft.message = std::move(problem) + ". Give the QOS another name";
      return tell(resource, std::move(draft));
    }
    if (state != Known::kYes) return tell(resource, unknown(std::move(draft)));
    enforces(resource) ? enforce(resource, group, std::move(wanted->settings), std::move(draft))
                       : compare(resource, group, wanted->settings, std::move(draft));
  }

  /// Takes over the notes of other resources about the QOS, before they remove them.
  static void take_over(const QosResource& resource, const Group& group, Draft& draft) {
    draft.id = group.noted;
    draft.owns = draft.owns || group.noted != 0;
    for (const QosResource* claim : group.claims) {
      const api::SlurmQosStatus& status = claim->qos.status;
      if (claim == &resource || !(pending(status) || (group.noted != 0 && status.id == group.noted))) continue;
      draft.owns = true;
      for (auto& [setting, value] : applied_of(status)) draft.applied.try_emplace(setting, value);
    }
  }

  /// Compares, for policy Observe.
  void compare(const QosResource& resource, const Group& group, const Settings& wanted, Draft draft) {
    if (group.found == nullptr) {
      draft.reason = "QosMissing";
      draft.message = "slurmdbd has no QOS " + group.name + ", and policy is Observe";
      return tell(resource, std::move(draft));
    }
    const std::vector<acct::Difference> left = acct::differences(wanted, acct::settings_of(*group.found));
    if (left.empty()) return tell(resource, in_sync(std::move(draft), group));
    draft.reason = "Drifted";
    draft.message = list_of(left) + " (policy is Observe)";
    tell(resource, std::move(draft));
  }

  static Draft in_sync(Draft draft, const Group& group) {
    draft.synced = api::ConditionStatus::kTrue;
    draft.reason = "InSync";
    draft.message =
        group.name == acct::kNormalQos
            ? "normal is Slurm's own QOS, which jobs get that name none: it is never deleted, and stays as it is when "
              "this object is deleted"
            : "";
    return draft;
  }

  [[nodiscard]] static bool is_ours(const QosResource& resource, const Group& group) {
    if (group.found == nullptr) return true;
    if (group.noted == group.found->id) return true;
    return resource.qos.spec.adoption == api::Adoption::kAdopt;
  }

  void enforce(const QosResource& resource, const Group& group, Settings wanted, Draft draft) {
    if (!is_ours(resource, group)) {
      draft.id = 0;
      draft.owns = false;
      draft.reason = "AlreadyExists";
      draft.message =
          "slurmdbd has a QOS " + group.name + " that no SlurmQos has made. It is left alone unless spec.adoption is Adopt";
      return tell(resource, std::move(draft));
    }
    if (std::string problem = unknown_tres(wanted); !problem.empty()) {
      draft.reason = "TresUnknown";
      draft.message = std::move(problem);
      return tell(resource, std::move(draft));
    }
    const std::vector<std::string> absent = keep_existing(wanted);
    const bool was_there = draft.id != 0;
    draft.owns = true;
    draft.id = group.found == nullptr ? 0 : group.found->id;
    // Settings that are not declared any more are reset to Slurm's defaults.
    Settings target = wanted;
    for (const auto& [setting, value] : draft.applied) {
      if (group.found != nullptr && !wanted.contains(setting)) target[setting] = acct::default_of(setting);
    }
    const Settings found = group.found == nullptr ? Settings{} : acct::settings_of(*group.found);
    // slurmrestd ignores an empty list, so it cannot be written.
    const bool stuck =
        acct::value_of(target, kPreempt).empty() && target.contains(kPreempt) && !acct::value_of(found, kPreempt).empty();
    if (stuck) target.erase(std::string(kPreempt));
    const std::vector<acct::Difference> left = acct::differences(target, found);
    if (group.found != nullptr && left.empty()) {
      draft.applied = std::move(wanted);
      draft = in_sync(std::move(draft), group);
      if (stuck) {
        draft.applied[std::string(kPreempt)] = acct::value_of(found, kPreempt);
        draft.synced = api::ConditionStatus::kFalse;
        draft.reason = "Unsupported";
        draft.message = "slurmrestd cannot empty the list of QOS that " + group.name + " preempts, which is " +
                        joined(acct::value_of(found, kPreempt), ", ") + ". Run: sacctmgr modify qos " + group.name +
                        " set preempt=";
      } else if (!absent.empty()) {
        draft.synced = api::ConditionStatus::kFalse;
        draft.reason = "PreemptMissing";
        draft.message = "spec.preempt: slurmdbd has no QOS " + joined(absent, ", ");
      }
      return tell(resource, std::move(draft));
    }
    write(resource, group, target, left, was_there, draft);
    for (const auto& [setting, value] : wanted) draft.applied[setting] = value;
    tell(resource, std::move(draft));
  }

  /// Adds the write of `target`, whose differences from the QOS are `left`.
  void write(const QosResource& resource, const Group& group, const Settings& target, const std::vector<acct::Difference>& left,
             bool was_there, Draft& draft) {
    const bool create = group.found == nullptr;
    plan::StepId id = create ? create_id(group) : write_id(group);
    Settings changes;
    if (create) {
      changes = target;
    } else {
      for (const acct::Difference& each : left) changes[each.setting] = each.wanted;
    }
    const bool drift =
        was_written(resource.qos.status) && (create ? was_there : std::ranges::all_of(left, [&](const acct::Difference& each) {
          const auto before = draft.applied.find(each.setting);
          return before != draft.applied.end() && before->second == each.wanted;
        }));
    const std::string before = create ? (was_there ? "it was deleted in slurmdbd" : "slurmdbd has no such QOS") : list_of(left);
    draft.wrong = false;
    draft.reason = "Writing";
    draft.message = before;
    if (const plan::Outcome* failed = failure(id)) tell_failure(*failed, draft);
    draft.write =
        plan::Step{std::move(id), before,
                   slurm::write_qos(observed_.database, group.name, create ? 0 : group.found->id, std::move(changes))};
    const std::string created = drift ? " had been deleted, and was created again" : " was created";
    draft.event = of(resource, event_step(resources::kSlurmQos, resource.object->meta, drift ? "Warning" : "Normal",
                                          drift    ? "DriftMended"
                                          : create ? "QosCreated"
                                                   : "QosUpdated",
                                          "Sync", "QOS " + group.name + (create ? created : ": " + before)));
    out_.waits_on(observed_.database);
  }

  static void tell_failure(const plan::Outcome& failed, Draft& draft) {
    const core::Retry retry = core::retry_of(failed.error->code);
    const bool passing = retry == core::Retry::kLater || retry == core::Retry::kSettle || retry == core::Retry::kDecideAnew;
    if (passing && failed.count < 5) return;
    draft.wrong = true;
    draft.reason = failed.error->code == core::ErrorCode::kUnsupported ? "Unsupported" : "WriteFailed";
    draft.message = one_line(failed.error->message);
  }

  /// Removes QOS that do not exist from Preempt, and returns their names. Slurm would refuse them.
  [[nodiscard]] std::vector<std::string> keep_existing(Settings& wanted) const {
    std::vector<std::string> absent;
    const auto preempt = wanted.find(kPreempt);
    if (preempt == wanted.end()) return absent;
    Json there = Json::array();
    for (const Json& name : preempt->second) {
      if (by_name_.contains(name.get<std::string>())) {
        there.push_back(name);
      } else {
        absent.push_back(name.get<std::string>());
      }
    }
    preempt->second = std::move(there);
    return absent;
  }

  [[nodiscard]] std::string unknown_tres(const Settings& wanted) const {
    if (!observed_.view->tres.complete()) return "";
    std::set<std::string> absent;
    for (const auto& [setting, value] : wanted) {
      const std::string name(acct::tres_of(setting));
      if (!name.empty() && value.is_number() && !tres_.contains(name)) absent.insert(name);
    }
    if (absent.empty()) return "";
    return "slurmdbd does not know the TRES " + joined({absent.begin(), absent.end()}, ", ") +
           ": set AccountingStorageTRES in spec.extraConf of a Controller. Until then nothing of this object is written";
  }

  // --- Other resources ---

  void yield_to_owner(const QosResource& resource, const Group& group) {
    Draft draft;
    // Keep the note until the owner has it.
    if (!handed_over(resource.qos.status, group.owner->qos.status)) {
      draft.id = resource.qos.status.id;
      draft.owns = true;
      draft.applied = applied_of(resource.qos.status);
    }
    draft.reason = "Conflicted";
    draft.message = "QOS " + group.name + " belongs to SlurmQos " + group.owner->object->meta.name +
                    ", which is older. Delete one of the two";
    tell(resource, std::move(draft));
  }

  void end(const QosResource& resource, const Group& group) {
    const kube::ObjectMeta& meta = resource.object->meta;
    if (!kube::has_finalizer(meta, api::kFinalizerSlurmQos)) return;
    const api::SlurmQosStatus& status = resource.qos.status;
    if (status.id == 0 && !pending(status)) return let_go(resource, group, "it has made no QOS", "");
    if (group.owner != nullptr) {
      const bool noted = handed_over(status, group.owner->qos.status) || !enforces(*group.owner);
      if (noted || (known() == Known::kYes && group.found == nullptr))
        return let_go(resource, group, "SlurmQos " + group.owner->object->meta.name + " has the QOS now", "");
      return out_.waits_on(observed_.database);
    }
    if (!deletes(resource)) {
      return let_go(resource, group, "the QOS stays",
                    group.name == acct::kNormalQos  ? "normal is Slurm's own"
                    : !resource.parse_error.empty() ? "the operator cannot read the object"
                    : enforces(resource)            ? "deletionPolicy is Orphan"
                                                    : "policy is Observe");
    }
    if (!observed_.accounting || observed_.accounting->meta.terminating())
      return let_go(resource, group, "nobody can be asked any more", "its Accounting is deleted as well");

    Draft draft;
    draft.id = status.id;
    draft.owns = true;
    draft.applied = applied_of(status);
    if (known() != Known::kYes) {
      draft = unknown(std::move(draft));
      draft.message +=
          ". Until the QOS can be deleted this object stays; with spec.deletionPolicy Orphan it goes, and the QOS "
          "stays";
      return tell(resource, std::move(draft));
    }
    if (group.found == nullptr) return let_go(resource, group, "slurmdbd has no such QOS", "");
    const bool ours = status.id != 0
                          ? group.found->id == status.id
                          : was_created(group) && acct::differences(draft.applied, acct::settings_of(*group.found)).empty();
    if (!ours) return let_go(resource, group, "the QOS stays", "slurmdbd has another one of that name");
    remove(resource, group, std::move(draft));
  }

  void remove(const QosResource& resource, const Group& group, Draft draft) {
    out_.waits_on(observed_.database);
    const std::string use = slurm::use_of_qos(group.name, *observed_.view);
    const auto evidence = observed_.unused.find(group.name);
    draft.wrong = false;
    draft.reason = "Deleting";
    draft.message = "QOS " + group.name + " is being deleted";
    if (!use.empty()) {
      draft.reason = "InUse";
      draft.message = "QOS " + group.name + " is not deleted: " + use;
    } else if (const plan::Outcome* failed = failure(delete_id(group))) {
      if (failed->error->code == core::ErrorCode::kBusy) {
        draft.reason = "InUse";
        draft.message = "QOS " + group.name + " is not deleted: " + one_line(failed->error->message);
      } else {
        tell_failure(*failed, draft);
      }
    }
    if (use.empty() && evidence != observed_.unused.end()) {
      plan::Lane& lane = lane_of(resource);
      lane.add({delete_id(group), "SlurmQos " + resource.object->meta.name + " is being deleted",
                slurm::delete_qos(evidence->second)});
      if (failure(delete_id(group)) == nullptr) {
        lane.then();
        lane.add(of(resource, event_step(resources::kSlurmQos, resource.object->meta, "Normal", "QosDeleted", "Delete",
                                         "QOS " + group.name + " was deleted")));
        // The object is gone at once, so its status is not written.
        lane.then();
        return add_release(lane, resource, "the QOS is deleted");
      }
    }
    tell(resource, std::move(draft));
  }

  void let_go(const QosResource& resource, const Group& group, const std::string& why, const std::string& kept) {
    plan::Lane& lane = lane_of(resource);
    if (!kept.empty()) {
      lane.add(of(resource, event_step(resources::kSlurmQos, resource.object->meta, "Normal", "QosKept", "Delete",
                                       "QOS " + group.name + " stays in slurmdbd: " + kept)));
      lane.then();
    }
    add_release(lane, resource, why);
  }

  static void add_release(plan::Lane& lane, const QosResource& resource, const std::string& why) {
    lane.add({{"remove", "finalizer", resource.object->meta.name},
              why,
              kube::remove_finalizer(resources::kSlurmQos, resource.object->meta, api::kFinalizerSlurmQos)});
  }

  // --- Status, events and writes ---

  /// Makes the ids of steps of different resources differ, because they are in one plan.
  static plan::Step of(const QosResource& resource, plan::Step step) {
    step.id.kind = resource.object->meta.name;
    return step;
  }

  plan::Lane& lane_of(const QosResource& resource) { return out_.lane("qos " + resource.object->meta.name); }

  void tell(const QosResource& resource, Draft draft) {
    const kube::ObjectMeta& meta = resource.object->meta;
    const api::SlurmQosStatus& before = resource.qos.status;
    plan::Lane& lane = lane_of(resource);
    if (draft.owns && deletes(resource) && !kube::has_finalizer(meta, api::kFinalizerSlurmQos)) {
      // The finalizer changes the version of the object, so the status follows in the next pass.
      lane.add({{"add", "finalizer", meta.name},
                "the QOS is to be deleted with it",
                kube::add_finalizer(resources::kSlurmQos, meta, api::kFinalizerSlurmQos)});
      return;
    }
    const bool synced = draft.synced == api::ConditionStatus::kTrue;
    // A drift that is mended at once is reported by its event alone.
    const bool quiet = draft.write && draft.reason == "Writing" && before.id == draft.id && draft.owns && before.applied &&
                       *before.applied == json_from(draft.applied) && before.observed_generation == meta.generation;
    if (!quiet) {
      Conditions conditions(before.conditions, meta.generation, observed_.context.now);
      conditions.set(api::kConditionSynced, draft.synced, draft.reason, draft.message);
      std::vector<Problem> problems;
      if (!synced) {
        problems.push_back({draft.reason, draft.message, draft.wrong ? Problem::Kind::kWrong : Problem::Kind::kComing});
      }
      set_summary(conditions, synced, problems, "");
      if (auto event = degraded_event(resources::kSlurmQos, meta, before.conditions, conditions))
        out_.lane("events").add(of(resource, *std::move(event)));
      Json status{{"observedGeneration", meta.generation}, {"ready", synced}, {"conditions", conditions.json()}};
      if (draft.id != 0) status["id"] = draft.id;
      if (draft.owns) status["applied"] = json_from(draft.applied);
      if (auto step = status_step(resources::kSlurmQos, *resource.object, std::move(status))) {
        step->id.name = meta.name;
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
  std::map<std::string, const acct::Qos*, std::less<>> by_name_;
  std::set<std::string, std::less<>> tres_;
};

}  // namespace

plan::Plan plan(const Observed& observed) {
  return Planner(observed).plan();
}

}  // namespace op::governance
