#include "api/slurmqos.hpp"

#include "api/limits.hpp"

namespace api {
namespace {

using namespace limits;

/// The pattern of a number, or of an expression that depends on the capacity of a cluster. The pattern allows the words and
/// characters of expressions in any order; the operator checks the order. A CEL rule would be too costly: if a value can be a
/// number or a text, Kubernetes estimates the cost for a text of any length.
constexpr const char* kTresOrExpression =
    R"(^(unlimited|default|[0-9]+[KMGTP]?|([-0-9.+*(), \t]|min|max|floor|ceil|round)*)"
    R"((%|all|partition[ \t]*\([ \t]*[^ \t\n(),]+[ \t]*\)))"
    R"(([-0-9.+*(), \t%]|min|max|floor|ceil|round|all|partition[ \t]*\([ \t]*[^ \t\n(),]+[ \t]*\))*)$)";
constexpr std::size_t kMaxExpression = 128;
constexpr const char* kFraction = R"(^(default|[0-9]+(\.[0-9]+)?)$)";
/// A pattern like kTime, without "unlimited". Allows no plain number other than 0, because the unit would be ambiguous.
constexpr const char* kSeconds =
    R"(^(default|0|[0-9]+(:[0-9]+){1,2}|[0-9]+-[0-9]+(:[0-9]+){0,2}|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$)";

/// Returns a field of TRES limits whose values can also be expressions. The value of an expression follows the number of nodes
/// in service. GrpTRESMins and MaxTRESMinsPerJob do not allow expressions: slurmctld ends running jobs that exceed these limits
/// (`_qos_job_time_out` in its acct_policy.c). Draining a node would lower such a limit, and so end jobs.
Field follows(std::string name, TresMap QosLimits::*member, const std::string& text) {
  Field out = tres(std::move(name), member, text);
  core::Json& item = out.limits["additionalProperties"];
  item["pattern"] = kTresOrExpression;
  item["maxLength"] = kMaxExpression;
  return out.describe(out.description +
                      " Or an expression over the capacity of a cluster, for cpu, mem, node and gres/gpu: \"50%\", "
                      "\"all - 8\", \"partition(gpu) * 0.25\".");
}

}  // namespace

const FieldList& field_list(const AccountingReference*) {
  static const FieldList kList = FieldList("An Accounting in the same namespace.")
                                     .atomic()
                                     .add(field("name", &AccountingReference::name)
                                              .required()
                                              .min_length(1)
                                              .max_length(kMaxName)
                                              .describe("The name of the Accounting."));
  return kList;
}

const FieldList& field_list(const QosLimits*) {
  static const FieldList kList =
      FieldList("The limits of a QOS, by the names of sacctmgr(1).")
          .add(count("grpJobs", &QosLimits::grp_jobs, "The number of running jobs of the QOS."))
          .add(count("grpJobsAccrue", &QosLimits::grp_jobs_accrue, "The number of pending jobs that gain priority by age."))
          .add(count("grpSubmitJobs", &QosLimits::grp_submit_jobs, "The number of pending and running jobs of the QOS."))
          .add(follows("grpTRES", &QosLimits::grp_tres, "The TRES of all running jobs together."))
          .add(tres("grpTRESMins", &QosLimits::grp_tres_mins,
                    "The TRES minutes that all jobs may use. Slurm ends running jobs when they are used up."))
          .add(follows("grpTRESRunMins", &QosLimits::grp_tres_run_mins,
                       "The TRES minutes that all running jobs together may still use up to their time limits."))
          .add(wall("grpWall", &QosLimits::grp_wall, "The total run time of all jobs."))
          .add(count("maxJobsAccruePerAccount", &QosLimits::max_jobs_accrue_per_account,
                     "The number of pending jobs of an account that gain priority by age."))
          .add(count("maxJobsAccruePerUser", &QosLimits::max_jobs_accrue_per_user,
                     "The number of pending jobs of a user that gain priority by age."))
          .add(count("maxJobsPerAccount", &QosLimits::max_jobs_per_account, "The number of running jobs of an account."))
          .add(count("maxJobsPerUser", &QosLimits::max_jobs_per_user, "The number of running jobs of a user."))
          .add(count("maxSubmitJobsPerAccount", &QosLimits::max_submit_jobs_per_account,
                     "The number of pending and running jobs of an account."))
          .add(count("maxSubmitJobsPerUser", &QosLimits::max_submit_jobs_per_user,
                     "The number of pending and running jobs of a user."))
          .add(tres("maxTRESMinsPerJob", &QosLimits::max_tres_mins_per_job,
                    "The TRES minutes that a job may use. Slurm ends a running job that has used them."))
          .add(follows("maxTRESPerAccount", &QosLimits::max_tres_per_account, "The TRES of all running jobs of an account."))
          .add(follows("maxTRESPerJob", &QosLimits::max_tres_per_job, "The TRES of a job."))
          .add(follows("maxTRESPerNode", &QosLimits::max_tres_per_node, "The TRES of a job on each node."))
          .add(follows("maxTRESPerUser", &QosLimits::max_tres_per_user, "The TRES of all running jobs of a user."))
          .add(follows("maxTRESRunMinsPerAccount", &QosLimits::max_tres_run_mins_per_account,
                       "The TRES minutes that all running jobs of an account together may still use up to their time limits."))
          .add(follows("maxTRESRunMinsPerUser", &QosLimits::max_tres_run_mins_per_user,
                       "The TRES minutes that all running jobs of a user together may still use up to their time limits."))
          .add(wall("maxWallDurationPerJob", &QosLimits::max_wall_duration_per_job, "The run time of a job."))
          .add(count("minPrioThreshold", &QosLimits::min_prio_threshold,
                     "The lowest priority at which a pending job reserves resources."))
          .add(follows("minTRESPerJob", &QosLimits::min_tres_per_job, "The least TRES that a job must request."));
  return kList;
}

const FieldList& field_list(const SlurmQosSpec*) {
  static const FieldList kList =
      FieldList(
          "The desired state of a QOS. The operator does not change fields in Slurm that are not set here. A field that is "
          "removed here is reset to Slurm's default.")
          .add(field("accountingRef", &SlurmQosSpec::accounting_ref)
                   .required()
                   .immutable()
                   .describe("The Accounting whose slurmdbd has the QOS. All clusters of that Accounting share it. Immutable."))
          .add(field("name", &SlurmQosSpec::name)
                   .min_length(1)
                   .pattern(kLowerName, kMaxName)
                   .describe("The name of the QOS in Slurm. Defaults to the name of the object. Immutable."))
          .add(field("description", &SlurmQosSpec::description).max_length(kMaxDescription).describe("A text for people."))
          .add(value("priority", &SlurmQosSpec::priority, kNumber,
                     "The priority that the QOS adds to its jobs: a number, or default, which is 0."))
          .add(field("flags", &SlurmQosSpec::flags)
                   .items(0, kMaxList)
                   .describe(
                       "All flags of the QOS: DenyOnLimit, EnforceUsageThreshold, NoDecay, NoReserve, OverPartQOS, "
                       "PartitionMaxNodes, "
                       "PartitionMinNodes, PartitionQOS, PartitionTimeLimit, Relative, RequiresReservation, UsageFactorSafe."))
          .add(field("graceTime", &SlurmQosSpec::grace_time)
                   .pattern(kSeconds, kMaxValue)
                   .describe("The time that a preempted job may continue: 90s, 00:01:30, or default, which is 0."))
          .add(value("usageFactor", &SlurmQosSpec::usage_factor, kFraction,
                     "A factor for the usage of jobs: a number, quoted if it has a fraction (\"1.5\"), or default, "
                     "which is 1."))
          .add(value("usageThreshold", &SlurmQosSpec::usage_threshold, kFraction,
                     "The lowest fair share with which an association may use the QOS: a number, quoted if it has a "
                     "fraction (\"0.5\"), or default, which is none."))
          .add(value("limitFactor", &SlurmQosSpec::limit_factor, kFraction,
                     "A factor for the TRES limits of associations: a number, quoted if it has a fraction, or default, "
                     "which is none."))
          .add(field("preempt", &SlurmQosSpec::preempt)
                   .items(0, kMaxList)
                   .describe("All QOS whose jobs may be preempted. A QOS that does not exist yet is added when it exists. A "
                             "QOS cannot "
                             "preempt itself, not even through others."))
          .add(field("preemptMode", &SlurmQosSpec::preempt_mode)
                   .describe("What happens to preempted jobs of the QOS. Cluster: what PreemptMode in slurm.conf says."))
          .add(field("preemptExemptTime", &SlurmQosSpec::preempt_exempt_time)
                   .pattern(kSeconds, kMaxValue)
                   .describe("The run time before which a job is not preempted: 90s, 00:01:30, or default, which is "
                             "PreemptExemptTime in slurm.conf."))
          .add(field("limits", &SlurmQosSpec::limits).describe("Limits on jobs."))
          .add(field("config", &SlurmQosSpec::config)
                   .describe("A QOS in the JSON of slurmrestd, in the spelling of any data_parser, or of the one in "
                             "configVersion. If it has an unknown member, or a field that the spec also sets, nothing is "
                             "written, and the condition Synced names that member or field."))
          .add(field("configVersion", &SlurmQosSpec::config_version)
                   .pattern(R"(^(v0\.0\.4[0-6])?$)", kMaxValue)
                   .describe("The data_parser that spelled config: v0.0.40 to v0.0.46. Empty: any."))
          .add(field("capacityCluster", &SlurmQosSpec::capacity_cluster)
                   .min_length(1)
                   .max_length(kMaxName)
                   .describe("The Controller in the same namespace whose cluster counts in expressions. Defaults to the only "
                             "Controller of the Accounting."))
          .add(field("adoption", &SlurmQosSpec::adoption)
                   .has_default()
                   .describe("Whether the object may take over a QOS of that name that no SlurmQos has made. Never: the QOS is "
                             "left alone. Adopt: the fields that are set here are written."))
          .add(field("policy", &SlurmQosSpec::policy)
                   .has_default()
                   .describe("Enforce: changes that others make in Slurm are reverted. Observe: nothing is written to Slurm, "
                             "and the condition Synced lists the differences."))
          .add(field("deletionPolicy", &SlurmQosSpec::deletion_policy)
                   .has_default()
                   .describe("Delete: the QOS is deleted with this object, once no association has it as its default and no "
                             "job uses it. Orphan: it is kept. The QOS normal is always kept."))
          .rule(name_unchanged());
  return kList;
}

const FieldList& field_list(const CapacityLimitStatus*) {
  static const FieldList kList =
      FieldList("A limit that follows the capacity of a cluster.")
          .add(field("limit", &CapacityLimitStatus::limit).always().describe("The limit: grpTRES[cpu]."))
          .add(field("expression", &CapacityLimitStatus::expression).always().describe("The expression in force."))
          .add(field("value", &CapacityLimitStatus::value).always().describe("The value in force."))
          .add(field("cluster", &CapacityLimitStatus::cluster).always().describe("The Controller whose cluster counts."))
          .add(field("inputs", &CapacityLimitStatus::inputs)
                   .describe("What was counted when value or lowerSince was last set: all, partition(NAME)."))
          .add(field("lowerSince", &CapacityLimitStatus::lower_since)
                   .describe(
                       "Since when the expression has been lower than the value in force. After 30 s the value is lowered."));
  return kList;
}

const FieldList& field_list(const SlurmQosStatus*) {
  static const FieldList kList =
      FieldList("The observed state of a QOS.")
          .add(field("observedGeneration", &SlurmQosStatus::observed_generation)
                   .always()
                   .describe("The generation of the SlurmQos that this status describes."))
          .add(field("ready", &SlurmQosStatus::ready).always().describe("Whether Slurm has the QOS as declared here."))
          .add(field("id", &SlurmQosStatus::id).describe("The number of the QOS in Slurm."))
          .add(field("applied", &SlurmQosStatus::applied)
                   .describe("The settings that this object has made in Slurm, by the names of sacctmgr. A TRES limit is named "
                             "like GrpTRES/cpu. Wall times are in minutes, other times in seconds."))
          .add(field("capacityLimits", &SlurmQosStatus::capacity_limits)
                   .describe("The limits that are expressions, with the values in force."))
          .add(field("conditions", &SlurmQosStatus::conditions).always().describe("The conditions of the object."));
  return kList;
}

const FieldList& field_list(const SlurmQos*) {
  static const FieldList kList =
      FieldList(
          "A SlurmQos is a quality of service (QOS) in the accounting database of an Accounting: priority, preemption and "
          "limits of the jobs that use it.")
          .add(field("spec", &SlurmQos::spec))
          .add(field("status", &SlurmQos::status));
  return kList;
}

}  // namespace api
