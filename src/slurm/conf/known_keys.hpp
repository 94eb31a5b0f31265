// The keys of Slurm 24.11 to 26.05, from the option tables of its parser (read_config.c, cgroup.c, slurmdbd/read_config.c).
#pragma once

#include <array>
#include <string_view>

namespace slurm::conf {

// clang-format off

/// Settings of slurm.conf.
constexpr auto kSlurmKeys = std::to_array<std::string_view>({
    "AccountingStorageBackupHost", "AccountingStorageEnforce", "AccountingStorageExternalHost", "AccountingStorageHost",
    "AccountingStorageLoc", "AccountingStorageParameters", "AccountingStoragePass", "AccountingStoragePort",
    "AccountingStorageTRES", "AccountingStorageType", "AccountingStorageUser", "AccountingStoreFlags",
    "AccountingStoreJobComment", "AcctGatherEnergyType", "AcctGatherFilesystemType", "AcctGatherInfinibandType",
    "AcctGatherInterconnectType", "AcctGatherNodeFreq", "AcctGatherProfileType", "AllowSpecResourcesUsage",
    "AuthAltParameters", "AuthAltTypes", "AuthInfo", "AuthType", "BackupAddr", "BackupController", "BatchStartTimeout",
    "BcastExclude", "BcastParameters", "BurstBufferParameters", "BurstBufferType", "CertgenParameters", "CertgenType",
    "CertmgrParameters", "CertmgrType", "CliFilterParameters", "CliFilterPlugins", "ClusterName", "CommunicationParameters",
    "CompleteWait", "ControlAddr", "ControlMachine", "CoreSpecPlugin", "CpuFreqDef", "CpuFreqGovernors", "CredType",
    "CryptoType", "DataParserParameters", "DebugFlags", "DefCPUPerGPU", "DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode",
    "DependencyParameters", "DisableRootJobs", "EioTimeout", "EnforcePartLimits", "Epilog", "EpilogMsgTime",
    "EpilogSlurmctld", "EpilogTimeout", "ExtSensorsFreq", "ExtSensorsType", "FairShareDampeningFactor", "FastSchedule",
    "FederationParameters", "FirstJobId", "GetEnvTimeout", "GpuFreqDef", "GresTypes", "GroupUpdateForce", "GroupUpdateTime",
    "HashPlugin", "HealthCheckInterval", "HealthCheckNodeState", "HealthCheckProgram", "HealthCheckTimeout", "HttpParserType",
    "InactiveLimit", "InteractiveStepOptions", "JobAcctGatherFrequency", "JobAcctGatherParams", "JobAcctGatherType",
    "JobCompHost", "JobCompLoc", "JobCompParams", "JobCompPass", "JobCompPassScript", "JobCompPort", "JobCompType",
    "JobCompUser", "JobContainerType", "JobCredentialPrivateKey", "JobCredentialPublicCertificate", "JobFileAppend",
    "JobRequeue", "JobSubmitPlugins", "KeepAliveTime", "KillOnBadExit", "KillWait", "LaunchParameters", "LaunchType",
    "LicenseParameters", "Licenses", "LogTimeFormat", "MailDomain", "MailProg", "MaxArraySize", "MaxBatchRequeue",
    "MaxDBDMsgs", "MaxJobCount", "MaxJobId", "MaxMemPerCPU", "MaxMemPerNode", "MaxNodeCount", "MaxStepCount",
    "MaxTasksPerNode", "MCSParameters", "MCSPlugin", "MessageTimeout", "MetricsAuthUsers", "MetricsParameters", "MetricsType",
    "MinJobAge", "MpiDefault", "MpiParams", "NamespaceType", "NodeFeaturesPlugins", "OverTimeLimit", "PluginDir",
    "PlugStackConfig", "PowerParameters", "PowerPlugin", "PreemptExemptTime", "PreemptMode", "PreemptParameters",
    "PreemptType", "PrEpParameters", "PrEpPlugins", "PriorityCalcPeriod", "PriorityDecayHalfLife", "PriorityFavorSmall",
    "PriorityFlags", "PriorityMaxAge", "PriorityParameters", "PrioritySiteFactorParameters", "PrioritySiteFactorPlugin",
    "PriorityType", "PriorityUsageResetPeriod", "PriorityWeightAge", "PriorityWeightAssoc", "PriorityWeightFairshare",
    "PriorityWeightJobSize", "PriorityWeightPartition", "PriorityWeightQOS", "PriorityWeightTRES", "PrivateData",
    "ProctrackType", "Prolog", "PrologEpilogTimeout", "PrologFlags", "PrologSlurmctld", "PrologTimeout",
    "PropagatePrioProcess", "PropagateResourceLimits", "PropagateResourceLimitsExcept", "RebootProgram", "ReconfigFlags",
    "RequeueExit", "RequeueExitHold", "ResumeFailProgram", "ResumeProgram", "ResumeRate", "ResumeTimeout", "ResvEpilog",
    "ResvOverRun", "ResvProlog", "ReturnToService", "RoutePlugin", "SallocDefaultCommand", "SbcastParameters",
    "SchedulerParameters", "SchedulerTimeSlice", "SchedulerType", "ScronParameters", "SelectType", "SelectTypeParameters",
    "SlurmctldAddr", "SlurmctldDebug", "SlurmctldHost", "SlurmctldHttpAuthParameters", "SlurmctldLogFile",
    "SlurmctldParameters", "SlurmctldPidFile", "SlurmctldPort", "SlurmctldPrimaryOffProg", "SlurmctldPrimaryOnProg",
    "SlurmctldSyslogDebug", "SlurmctldTimeout", "SlurmdDebug", "SlurmdHttpAuthParameters", "SlurmdLogFile",
    "SlurmdParameters", "SlurmdPidFile", "SlurmdPort", "SlurmdSpoolDir", "SlurmdSyslogDebug", "SlurmdTimeout", "SlurmdUser",
    "SlurmSchedLogFile", "SlurmSchedLogLevel", "SlurmUser", "SrunEpilog", "SrunPortRange", "SrunProlog", "StateSaveLocation",
    "SuspendExcNodes", "SuspendExcParts", "SuspendExcStates", "SuspendProgram", "SuspendRate", "SuspendTime",
    "SuspendTimeout", "SwitchParameters", "SwitchType", "TaskEpilog", "TaskPlugin", "TaskPluginParam", "TaskProlog",
    "TCPTimeout", "TLSParameters", "TLSType", "TmpFS", "TopologyParam", "TopologyPlugin", "TrackWCKey", "TreeWidth",
    "UnkillableStepProgram", "UnkillableStepTimeout", "UrlParserType", "UsePAM", "VSizeFactor", "WaitTime", "X11Parameters"});

/// Keys that begin a record.
constexpr auto kRecordKeys = std::to_array<std::string_view>({
    "DownNodes", "FrontendName", "NodeName", "NodeSet", "PartitionName", "PowerAction"});

/// Parameters of NodeName= and, with few exceptions, of slurmd's --conf.
constexpr auto kNodeParameters = std::to_array<std::string_view>({
    "BcastAddr", "Boards", "CoreSpecCount", "CoresPerSocket", "CpuBind", "CPUs", "CPUSpecList", "Feature", "Features", "Gres",
    "GresConf", "MemSpecLimit", "NodeAddr", "NodeHostname", "Parameters", "Port", "Procs", "RealMemory", "Reason",
    "RestrictedCoresPerGPU", "Sockets", "SocketsPerBoard", "State", "SuspendTime", "ThreadsPerCore", "TmpDisk", "Topology",
    "TRESWeights", "Weight"});

/// Parameters of NodeSet=.
constexpr auto kNodeSetParameters = std::to_array<std::string_view>({
    "Feature", "Nodes"});

/// Parameters of PartitionName=.
constexpr auto kPartitionParameters = std::to_array<std::string_view>({
    "AllocNodes", "AllowAccounts", "AllowGroups", "AllowQos", "Alternate", "CpuBind", "Default", "DefaultTime",
    "DefCPUPerGPU", "DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode", "DenyAccounts", "DenyQos", "DisableRootJobs",
    "Exclusive", "ExclusiveTopo", "ExclusiveUser", "GraceTime", "Hidden", "LLN", "MaxCPUsPerNode", "MaxCPUsPerSocket",
    "MaxMemPerCPU", "MaxMemPerNode", "MaxNodes", "MaxTime", "MinNodes", "Nodes", "OverSubscribe", "OverTimeLimit",
    "PowerDownOnIdle", "PreemptMode", "Priority", "PriorityJobFactor", "PriorityTier", "QOS", "ReqResv", "ResumeTimeout",
    "RootOnly", "SelectTypeParameters", "Shared", "State", "SuspendTime", "SuspendTimeout", "Topology", "TRESBillingWeights"});

/// Parameters of DownNodes=.
constexpr auto kDownNodesParameters = std::to_array<std::string_view>({
    "Reason", "State"});

/// Parameters of PowerAction=.
constexpr auto kPowerActionParameters = std::to_array<std::string_view>({
    "Location", "Program"});

/// Settings of cgroup.conf.
constexpr auto kCgroupKeys = std::to_array<std::string_view>({
    "AllowedDevicesFile", "AllowedRAMSpace", "AllowedSwapSpace", "CgroupAutomount", "CgroupJobIdPaths", "CgroupMountpoint",
    "CgroupPlugin", "CgroupReleaseAgentDir", "CgroupSlice", "ConstrainCores", "ConstrainDevices", "ConstrainRAMSpace",
    "ConstrainSwapSpace", "EnableControllers", "EnableExtraControllers", "IgnoreSystemd", "IgnoreSystemdOnFailure",
    "MaxRAMPercent", "MaxSwapPercent", "MemoryLimitEnforcement", "MemoryLimitThreshold", "MemorySwappiness", "MinRAMSpace",
    "SignalChildrenProcesses", "SystemdTimeout"});

/// Settings of slurmdbd.conf.
constexpr auto kSlurmdbdKeys = std::to_array<std::string_view>({
    "AllowNoDefAcct", "AllResourcesAbsolute", "ArchiveDir", "ArchiveEvents", "ArchiveJobEnv", "ArchiveJobs",
    "ArchiveJobScript", "ArchiveResvs", "ArchiveScript", "ArchiveSteps", "ArchiveSuspend", "ArchiveTXN", "ArchiveUsage",
    "AuthAltParameters", "AuthAltTypes", "AuthInfo", "AuthType", "CommitDelay", "CommunicationParameters", "DbdAddr",
    "DbdBackupHost", "DbdHost", "DbdPort", "DebugFlags", "DebugLevel", "DebugLevelSyslog", "DefaultQOS",
    "DisableArchiveCommands", "DisableCoordDBD", "DisableRollups", "HashPlugin", "JobPurge", "LogFile", "LogTimeFormat",
    "MaxPurgeLimit", "MaxQueryTimeRange", "MessageTimeout", "Parameters", "PidFile", "PluginDir", "PrivateData",
    "PurgeEventAfter", "PurgeEventMonths", "PurgeJobAfter", "PurgeJobEnvAfter", "PurgeJobMonths", "PurgeJobScriptAfter",
    "PurgeResvAfter", "PurgeStepAfter", "PurgeStepMonths", "PurgeSuspendAfter", "PurgeSuspendMonths", "PurgeTXNAfter",
    "PurgeTXNMonths", "PurgeUsageAfter", "PurgeUsageMonths", "SlurmUser", "StepPurge", "StorageBackupHost", "StorageHost",
    "StorageLoc", "StorageParameters", "StoragePass", "StoragePassScript", "StoragePort", "StorageType", "StorageUser",
    "TCPTimeout", "TLSParameters", "TLSType", "TrackSlurmctldDown", "TrackWCKey"});

/// Settings of slurm.conf that are whole numbers.
constexpr auto kSlurmNumbers = std::to_array<std::string_view>({
    "AccountingStoragePort", "AcctGatherNodeFreq", "BatchStartTimeout", "CompleteWait", "DefCPUPerGPU", "DefMemPerCPU",
    "DefMemPerGPU", "DefMemPerNode", "EioTimeout", "EpilogMsgTime", "EpilogTimeout", "ExtSensorsFreq",
    "FairShareDampeningFactor", "FastSchedule", "FirstJobId", "GetEnvTimeout", "GroupUpdateForce", "GroupUpdateTime",
    "HealthCheckInterval", "HealthCheckTimeout", "InactiveLimit", "JobCompPort", "JobFileAppend", "JobRequeue",
    "KeepAliveTime", "KillOnBadExit", "KillWait", "MaxArraySize", "MaxBatchRequeue", "MaxDBDMsgs", "MaxJobCount", "MaxJobId",
    "MaxMemPerCPU", "MaxMemPerNode", "MaxNodeCount", "MaxStepCount", "MaxTasksPerNode", "MessageTimeout", "MinJobAge",
    "OverTimeLimit", "PriorityWeightAge", "PriorityWeightAssoc", "PriorityWeightFairshare", "PriorityWeightJobSize",
    "PriorityWeightPartition", "PriorityWeightQOS", "PrologEpilogTimeout", "PrologTimeout", "PropagatePrioProcess",
    "ResumeRate", "ResumeTimeout", "ResvOverRun", "ReturnToService", "SchedulerTimeSlice", "SlurmctldTimeout", "SlurmdPort",
    "SlurmdTimeout", "SlurmSchedLogLevel", "SuspendRate", "SuspendTimeout", "TCPTimeout", "TreeWidth",
    "UnkillableStepTimeout", "VSizeFactor", "WaitTime"});

/// Parameters of PartitionName= that are whole numbers.
constexpr auto kPartitionNumbers = std::to_array<std::string_view>({
    "DefCPUPerGPU", "DefMemPerCPU", "DefMemPerGPU", "DefMemPerNode", "GraceTime", "MaxCPUsPerNode", "MaxCPUsPerSocket",
    "MaxMemPerCPU", "MaxMemPerNode", "MaxNodes", "MinNodes", "Priority", "PriorityJobFactor", "PriorityTier", "ResumeTimeout",
    "SuspendTimeout"});

/// Parameters of NodeName= that are whole numbers.
constexpr auto kNodeNumbers = std::to_array<std::string_view>({
    "Boards", "CoreSpecCount", "CoresPerSocket", "CPUs", "MemSpecLimit", "Procs", "RealMemory", "RestrictedCoresPerGPU",
    "Sockets", "SocketsPerBoard", "ThreadsPerCore", "TmpDisk", "Weight"});

/// Settings of cgroup.conf that are whole numbers.
constexpr auto kCgroupNumbers = std::to_array<std::string_view>({
    "MemorySwappiness", "MinRAMSpace", "SystemdTimeout"});

/// Settings of slurmdbd.conf that are whole numbers.
constexpr auto kSlurmdbdNumbers = std::to_array<std::string_view>({
    "CommitDelay", "DbdPort", "JobPurge", "MaxPurgeLimit", "MessageTimeout", "PurgeEventMonths", "PurgeJobMonths",
    "PurgeStepMonths", "PurgeSuspendMonths", "PurgeTXNMonths", "PurgeUsageMonths", "StepPurge", "StoragePort", "TCPTimeout"});

/// Settings and parameters of all these files that are yes or no.
constexpr auto kYesNo = std::to_array<std::string_view>({
    "AccountingStoreJobComment", "AllowNoDefAcct", "AllowSpecResourcesUsage", "AllResourcesAbsolute", "ArchiveEvents",
    "ArchiveJobEnv", "ArchiveJobs", "ArchiveJobScript", "ArchiveResvs", "ArchiveSteps", "ArchiveSuspend", "ArchiveTXN",
    "ArchiveUsage", "CgroupAutomount", "CgroupJobIdPaths", "ConstrainCores", "ConstrainDevices", "ConstrainRAMSpace",
    "ConstrainSwapSpace", "Default", "DisableArchiveCommands", "DisableCoordDBD", "DisableRollups", "DisableRootJobs",
    "EnableControllers", "ExclusiveTopo", "ExclusiveUser", "Hidden", "IgnoreSystemd", "IgnoreSystemdOnFailure", "LLN",
    "MemoryLimitEnforcement", "PowerDownOnIdle", "PriorityFavorSmall", "ReqResv", "RootOnly", "SignalChildrenProcesses",
    "TrackSlurmctldDown", "TrackWCKey", "UsePAM"});

// clang-format on

}  // namespace slurm::conf
