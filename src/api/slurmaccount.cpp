#include "api/slurmaccount.hpp"

#include "api/limits.hpp"

namespace api {
namespace {

using namespace limits;

/// The largest number of shares. Slurm stores shares in 31 bits, and the largest 31-bit number stands for "parent".
constexpr std::int64_t kMaxShares = 2147483646;
constexpr const char* kShares = "^(parent|default|[0-9]+)$";
constexpr const char* kOptionalName = "^([A-Za-z0-9][A-Za-z0-9_.+-]*)?$";

constexpr const char* kSetHere =
    " The operator does not change fields in Slurm that are not set here. A field that is removed here is reset to Slurm's "
    "default.";

template <class Owner>
Field fair_share(std::optional<IntOrString> Owner::*member) {
  return value("fairShare", member, kShares,
               "The share of the machine, relative to the other associations of the same parent: a number; parent, which uses "
               "the share of the parent; or default, which is 1.")
      .maximum(kMaxShares);
}

template <class Owner>
Field priority(std::optional<IntOrString> Owner::*member) {
  return value("priority", member, kNumber, "The priority that jobs get here: a number, or default, which is none.");
}

template <class Owner>
Field default_qos(std::optional<std::string> Owner::*member) {
  return field("defaultQOS", member)
      .min_length(1)
      .pattern(kLowerName, kMaxName)
      .describe(
          "The QOS of jobs that name none. It must be one of the QOS that may be used here. When the field is removed, the "
          "default QOS of the parent applies.");
}

template <class Owner>
Field qos(std::optional<std::vector<std::string>> Owner::*member) {
  return names("qos", member, kLowerName, 1,
               "All QOS that may be used here, at least one. Jobs cannot use other QOS. When the field is removed, the QOS of "
               "the parent apply.");
}

Rule default_qos_is_allowed() {
  return {"!has(self.defaultQOS) || !has(self.qos) || self.defaultQOS in self.qos", "must be in qos", "defaultQOS"};
}

template <class Spec>
Field accounting_ref(AccountingReference Spec::*member, const std::string& what) {
  return field("accountingRef", member)
      .required()
      .immutable()
      .describe("The Accounting whose slurmdbd has the " + what + ". Immutable.");
}

template <class Spec>
Field entity_name(std::optional<std::string> Spec::*member, const std::string& what) {
  return field("name", member)
      .min_length(1)
      .pattern(kName, kMaxName)
      .describe("The name of the " + what +
                " in Slurm, which compares it without case. Defaults to the name of the object. Immutable.");
}

template <class Spec>
Field adoption(Adoption Spec::*member, const std::string& what, const std::string& kind) {
  return field("adoption", member)
      .has_default()
      .describe("Whether the object may take over " + what + " of that name that no " + kind + " has made. Never: Slurm's " +
                "record is left alone. Adopt: the fields that are set here are written.");
}

template <class Spec>
Field policy(DriftPolicy Spec::*member) {
  return field("policy", member)
      .has_default()
      .describe(
          "Enforce: changes that others make in Slurm are reverted. Observe: nothing is written to Slurm, and the "
          "condition Synced lists the differences.");
}

}  // namespace

const FieldList& field_list(const AssociationLimits*) {
  using L = AssociationLimits;
  static const FieldList kList =
      FieldList("The limits of an association, by the names of sacctmgr(1).")
          .add(count("grpJobs", &L::grp_jobs, "The number of running jobs of the association and those below it."))
          .add(count("grpJobsAccrue", &L::grp_jobs_accrue,
                     "The number of pending jobs of the association and those below it that gain priority by age."))
          .add(count("grpSubmitJobs", &L::grp_submit_jobs,
                     "The number of pending and running jobs of the association and those below it."))
          .add(tres("grpTRES", &L::grp_tres, "The TRES of all running jobs together."))
          .add(tres("grpTRESMins", &L::grp_tres_mins, "The TRES minutes that all jobs may use."))
          .add(tres("grpTRESRunMins", &L::grp_tres_run_mins,
                    "The TRES minutes that all running jobs together may still use up to their time limits."))
          .add(wall("grpWall", &L::grp_wall, "The total run time of all jobs."))
          .add(count("maxJobs", &L::max_jobs, "The number of running jobs of each user."))
          .add(
              count("maxJobsAccrue", &L::max_jobs_accrue, "The number of pending jobs of each user that gain priority by age."))
          .add(count("maxSubmitJobs", &L::max_submit_jobs, "The number of pending and running jobs of each user."))
          .add(tres("maxTRESMinsPerJob", &L::max_tres_mins_per_job, "The TRES minutes that a job may use."))
          .add(tres("maxTRESPerJob", &L::max_tres_per_job, "The TRES of a job."))
          .add(tres("maxTRESPerNode", &L::max_tres_per_node, "The TRES of a job on each node."))
          .add(wall("maxWallDurationPerJob", &L::max_wall_duration_per_job, "The run time of a job."))
          .add(count("minPrioThreshold", &L::min_prio_threshold,
                     "The lowest priority at which a pending job reserves resources."));
  return kList;
}

const FieldList& field_list(const SlurmAccountSpec*) {
  using S = SlurmAccountSpec;
  static const FieldList kList =
      FieldList(std::string("The desired state of an account.") + kSetHere)
          .add(accounting_ref(&S::accounting_ref, "account"))
          .add(entity_name(&S::name, "account"))
          .add(field("parent", &S::parent)
                   .min_length(1)
                   .pattern(kName, kMaxName)
                   .describe("The account above this one, in all clusters of this account. If it is not set, a new account is "
                             "below root, and later changes with sacctmgr are left alone. The operator "
                             "waits until the parent exists."))
          .add(field("description", &S::description).max_length(kMaxDescription).describe("A text for people."))
          .add(field("organization", &S::organization)
                   .max_length(kMaxDescription)
                   .describe("The organization of the account, a text for people."))
          .add(names("coordinators", &S::coordinators, kName, 0,
                     "All users who may manage the account and those below it with sacctmgr. A user who does not exist yet is "
                     "added as soon as the user exists."))
          .add(names("clusters", &S::clusters, kLowerName, 0,
                     "The names of the clusters in which the account is. Empty: all clusters of the Accounting, and those that "
                     "join later. An account is removed from a cluster that is removed here."))
          .add(fair_share(&S::fair_share))
          .add(priority(&S::priority))
          .add(default_qos(&S::default_qos))
          .add(qos(&S::qos))
          .add(
              field("limits", &S::limits)
                  .describe("Limits on jobs. The limits with max apply to each user of the account who has none of their own."))
          .add(adoption(&S::adoption, "an account", "SlurmAccount"))
          .add(policy(&S::policy))
          .add(field("deletionPolicy", &S::deletion_policy)
                   .has_default()
                   .describe("Delete: the account is deleted with this object, once it has no users and no accounts below it, "
                             "and no unfinished job uses it. Orphan: it is kept. The account root is always kept."))
          .rule(name_unchanged())
          .rule(default_qos_is_allowed());
  return kList;
}

const FieldList& field_list(const EntityStatus*) {
  static const FieldList kList =
      FieldList("The observed state of an account, a user or an association.")
          .add(field("observedGeneration", &EntityStatus::observed_generation)
                   .always()
                   .describe("The generation of the object that this status describes."))
          .add(field("ready", &EntityStatus::ready)
                   .always()
                   .describe("Whether Slurm has the account, user or association as declared here."))
          .add(field("created", &EntityStatus::created)
                   .describe("Whether Slurm has had the account, user or association since this object has owned it. Absent: "
                             "the object owns nothing yet."))
          .add(field("applied", &EntityStatus::applied)
                   .describe("The settings that this object has made in Slurm, by the names of sacctmgr. A setting of an "
                             "association is prefixed with the account and the cluster: \"physics@site: GrpTRES/cpu\". Wall "
                             "times are in minutes."))
          .add(field("conditions", &EntityStatus::conditions).always().describe("The conditions of the object."));
  return kList;
}

const FieldList& field_list(const SlurmAccount*) {
  static const FieldList kList = FieldList(
                                     "A SlurmAccount is an account in the accounting database of an Accounting: its place in "
                                     "the tree of accounts, and the "
                                     "limits, shares and QOS of those who use it.")
                                     .add(field("spec", &SlurmAccount::spec))
                                     .add(field("status", &SlurmAccount::status))
                                     .rule(
                                         "!has(self.spec) || !has(self.spec.parent) || self.spec.parent.lowerAscii() != "
                                         "(has(self.spec.name) ? self.spec.name : self.metadata.name).lowerAscii()",
                                         "must not be the account itself", "spec.parent");
  return kList;
}

const FieldList& field_list(const UserAssociation*) {
  using A = UserAssociation;
  static const FieldList kList =
      FieldList("A user in an account.")
          .add(field("account", &A::account)
                   .required()
                   .min_length(1)
                   .pattern(kName, kMaxName)
                   .describe("The account. The operator waits until it exists."))
          .add(field("partition", &A::partition)
                   .pattern(kOptionalName, kMaxName)
                   .describe(
                       "The partition to which the association is confined. Empty: all partitions. It may be created later."))
          .add(names(
              "clusters", &A::clusters, kLowerName, 0,
              "The names of the clusters in which the association is. Empty: all clusters of the Accounting that have the "
              "account, and those that join later."))
          .add(fair_share(&A::fair_share))
          .add(priority(&A::priority))
          .add(default_qos(&A::default_qos))
          .add(qos(&A::qos))
          .add(field("limits", &A::limits).describe("Limits on the jobs of the user in this account."))
          .rule(default_qos_is_allowed());
  return kList;
}

const FieldList& field_list(const SlurmUserSpec*) {
  using S = SlurmUserSpec;
  static const FieldList kList =
      FieldList(std::string("The desired state of a user.") + kSetHere +
                " An association that is removed here is deleted in Slurm. Associations that others have made are left alone.")
          .add(accounting_ref(&S::accounting_ref, "user"))
          .add(entity_name(&S::name, "user"))
          .add(field("adminLevel", &S::admin_level)
                   .describe("What the user may do with sacctmgr and scontrol: None, Operator or Administrator."))
          .add(
              field("defaultAccount", &S::default_account)
                  .min_length(1)
                  .pattern(kName, kMaxName)
                  .describe(
                      "The account of jobs that name none. If it is not set, a user without a default account gets that of the "
                      "first association, and later changes with sacctmgr are left alone."))
          .add(field("associations", &S::associations)
                   .required()
                   .items(1, kMaxList)
                   .describe("The accounts of the user, at least one. An account may be listed again for another partition or "
                             "other clusters."))
          .add(adoption(&S::adoption, "a user", "SlurmUser"))
          .add(policy(&S::policy))
          .add(field("deletionPolicy", &S::deletion_policy)
                   .has_default()
                   .describe("Delete: the user is deleted with this object, once they have no associations that others have "
                             "made, and no unfinished jobs. Orphan: the user is kept. The user root is always kept."))
          .rule(name_unchanged());
  return kList;
}

const FieldList& field_list(const SlurmUser*) {
  static const FieldList kList = FieldList(
                                     "A SlurmUser is a user in the accounting database of an Accounting, with associations: "
                                     "the accounts that the user may "
                                     "use, and the limits, shares and QOS there.")
                                     .add(field("spec", &SlurmUser::spec))
                                     .add(field("status", &SlurmUser::status));
  return kList;
}

const FieldList& field_list(const SlurmAssociationSpec*) {
  using S = SlurmAssociationSpec;
  static const FieldList kList =
      FieldList(std::string("The desired state of an association.") + kSetHere)
          .add(accounting_ref(&S::accounting_ref, "association"))
          .add(field("account", &S::account)
                   .required()
                   .immutable()
                   .min_length(1)
                   .pattern(kName, kMaxName)
                   .describe("The account. The operator waits until it exists. Immutable."))
          .add(
              field("user", &S::user)
                  .min_length(1)
                  .pattern(kName, kMaxName)
                  .describe("The user. The operator waits until the user exists. Unset: the association of the account itself, "
                            "for limits that it has in some clusters only. Immutable."))
          .add(field("partition", &S::partition)
                   .pattern(kOptionalName, kMaxName)
                   .describe("The partition to which the association of the user is confined. Empty: all partitions. It may be "
                             "created "
                             "later. Immutable."))
          .add(names(
              "clusters", &S::clusters, kLowerName, 0,
              "The names of the clusters in which the association is. Empty: all clusters of the Accounting that have the "
              "account, and those that join later."))
          .add(fair_share(&S::fair_share))
          .add(priority(&S::priority))
          .add(default_qos(&S::default_qos))
          .add(qos(&S::qos))
          .add(field("limits", &S::limits).describe("Limits on the jobs of the association."))
          .add(adoption(&S::adoption, "an association", "resource"))
          .add(policy(&S::policy))
          .add(field("deletionPolicy", &S::deletion_policy)
                   .has_default()
                   .describe(
                       "Delete: the association of a user is deleted with this object, once no unfinished job uses it. The "
                       "settings of the association of an account are reset to Slurm's defaults. Orphan: all is kept."))
          .rule("(has(self.user) ? self.user : '') == (has(oldSelf.user) ? oldSelf.user : '')",
                "cannot be changed, added or removed", "user")
          .rule("(has(self.partition) ? self.partition : '') == (has(oldSelf.partition) ? oldSelf.partition : '')",
                "cannot be changed, added or removed", "partition")
          .rule("has(self.user) || !has(self.partition) || self.partition == ''", "needs user", "partition")
          .rule(default_qos_is_allowed());
  return kList;
}

const FieldList& field_list(const SlurmAssociation*) {
  static const FieldList kList =
      FieldList(
          "A SlurmAssociation is an association that no SlurmUser declares: of a user with an account, or the limits that an "
          "account has in some clusters only.")
          .add(field("spec", &SlurmAssociation::spec))
          .add(field("status", &SlurmAssociation::status));
  return kList;
}

}  // namespace api
