#include "operator/accounting/plan.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <utility>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/accounting/database.hpp"
#include "operator/accounting/slurmdbd.hpp"
#include "operator/common/children.hpp"
#include "operator/common/deletions.hpp"
#include "operator/common/deployments.hpp"
#include "operator/common/namesakes.hpp"
#include "operator/common/one_pod.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/releases.hpp"
#include "slinky/status.hpp"

namespace op::accounting {
namespace {

std::string secret_name(const Observed& observed, const SecretFacts& key) {
  return "Secret " + observed.object->meta.ns + "/" + key.ref.secret;
}

/// Returns a problem if the key for slurmdbd is not usable, or if slurmdbd waits for the key. nullopt: the key is usable.
std::optional<Problem> own_key_problem(const Observed& observed, const std::optional<SecretFacts>& key, bool named_here,
                                       const std::string& field) {
  if (!key && !observed.clusters.empty()) {
    std::vector<std::string> names;
    for (const Cluster& cluster : observed.clusters) names.push_back(cluster.name);
    return Problem{"Waiting", field + " is absent, and the keys of the Controllers that name this Accounting cannot be read: " +
                                  some_of(names) +
                                  ". See their condition Degraded, or set spec.slurmKeyRef and spec.jwtKeyRef here"};
  }
  if (!key) {
    return Problem{
        "Waiting",
        field + " is absent, and no Controller names this Accounting: slurmdbd starts with the key of the first one that does",
        Problem::Kind::kComing};
  }
  const std::string whose = named_here ? field : field + " of Controller " + observed.keys_of;
  return key_problem(*key, observed.object->meta.ns, whose);
}

/// Reports clusters whose key differs from slurmdbd's key. slurmdbd would refuse the slurmctlds or the tokens of these
/// clusters.
void find_other_keys(const Observed& observed, std::vector<Problem>& out) {
  const auto look = [&](const std::optional<SecretFacts>& ours, SecretFacts Cluster::*theirs, const char* field) {
    if (!ours || !ours->usable()) return;
    for (const Cluster& cluster : observed.clusters) {
      const SecretFacts& key = cluster.*theirs;
      if (cluster.ends || !key.usable() || key.content == ours->content) continue;
      out.push_back({"KeyDiffers", std::string(field) + ": the key in " + secret_name(observed, key) + ", of Controller " +
                                       cluster.name + ", differs from the one in " + secret_name(observed, *ours) +
                                       ": slurmdbd has one key only, so name the same Secret in both"});
    }
  };
  look(observed.slurm_key, &Cluster::slurm_key, "spec.slurmKeyRef");
  look(observed.jwt_key, &Cluster::jwt_key, "spec.jwtKeyRef");
}

/// Reports clusters whose slurmctld slurmdbd refuses although they name the same key as slurmdbd. The key's data has changed,
/// and some clusters' copies of the key do not have the new data yet. A cluster takes new data only when no daemon is cut off
/// by it.
void find_keys_in_force(const Observed& observed, std::vector<Problem>& out) {
  if (!observed.slurm_key || !observed.slurm_key->usable()) return;
  const std::string ours = key_in_force(observed).content;
  std::vector<std::string> refused, late;
  for (const Cluster& cluster : observed.clusters) {
    if (cluster.slurm_key.content != observed.slurm_key->content || !cluster.keyring.usable()) continue;
    if (cluster.keyring.content != ours) refused.push_back(cluster.name);
    if (cluster.keyring.content != cluster.slurm_key.content) late.push_back(cluster.name);
  }
  if (refused.empty()) return;
  out.push_back({"KeyDiffers", "slurmdbd refuses the slurmctld of Controllers " + some_of(refused) + ": " +
                                   secret_name(observed, *observed.slurm_key) +
                                   " has new data, which these Controllers do not use yet: " + some_of(late) +
                                   ". See their condition KeyChanged for what they wait for"});
}

/// Returns the number of the MariaDB error in `cause`. The number follows "failed: ". 0: there is no number.
int error_number(std::string_view cause) {
  constexpr std::string_view kBefore = "failed: ";
  const std::size_t at = cause.find(kBefore);
  if (at == std::string_view::npos) return 0;
  int number = 0;
  cause.remove_prefix(at + kBefore.size());
  std::from_chars(cause.data(), cause.data() + cause.size(), number);
  return number;
}

/// Returns the problem for a database error. The problem names the field of the spec that caused the error, and the field's
/// value. The numbers are from https://mariadb.com/kb/en/mariadb-error-codes/.
Problem database_problem(const Observed& observed, const std::string& cause) {
  const Storage storage = storage_of(*observed.accounting.spec.storage_config, observed.object->meta.name);
  const std::string& user = storage.username;
  const std::string text = ": " + one_line(cause);
  if (cause == "later release") {
    return {"DatabaseNewer", "spec.slurmdbd.image: the database " + storage.database +
                                 " was written by a later release of Slurm than this slurmdbd: use an image of that release"};
  }
  if (cause.starts_with("fatal: ")) return {"SlurmdbdFailed", "slurmdbd ends when it starts" + text};
  const int number = error_number(cause);
  const bool unreachable = number == 0 || number == 2002 || number == 2003 || number == 2005;
  if (managed(observed) && unreachable) {
    return {"DatabaseUnreachable", "the MariaDB of this Accounting, in pod " + storage.host + "-0" + text,
            database_ready(observed) ? Problem::Kind::kWrong : Problem::Kind::kComing};
  }
  switch (number) {
    case 2005:  // CR_UNKNOWN_HOST
      return {"DatabaseUnreachable", "spec.storageConfig.host: " + storage.host + text};
    case 1045:  // ER_ACCESS_DENIED_ERROR
    case 1698:  // ER_ACCESS_DENIED_NO_PASSWORD_ERROR
      return {"DatabaseRefused", "spec.storageConfig.username: " + user + ", or its password in " +
                                     secret_name(observed, observed.password) + ", key " + observed.password.ref.key + text};
    case 1044:  // ER_DBACCESS_DENIED_ERROR
    case 1049:  // ER_BAD_DB_ERROR
      return {"DatabaseRefused",
              "spec.storageConfig.database: " + storage.database + ", which user " + user + " may not use or create" + text};
    case 0:
    case 2002:  // CR_CONNECTION_ERROR
    case 2003:  // CR_CONN_HOST_ERROR
      return {"DatabaseUnreachable",
              "spec.storageConfig.host and port: " + storage.host + ":" + std::to_string(storage.port) + text};
    default:
      return {"DatabaseRefused", "spec.storageConfig" + text};
  }
}

/// Returns the init container's last termination message. "": the init container has succeeded since, or there was no error.
std::string words_of_init(const std::vector<kube::PodPtr>& pods) {
  for (const kube::PodPtr& pod : pods) {
    if (pod->meta.terminating()) continue;
    for (const kube::ContainerState& container : pod->containers) {
      if (container.name != kInitConf || container.ready) continue;
      if (!container.last_message.empty()) return container.last_message;
      if (container.crashed || container.waiting_reason.empty()) return container.message;
    }
  }
  return "";
}

/// Returns why slurmdbd does not start, according to its init container (write_conf_script), or nullopt.
std::optional<Problem> init_problem(const Observed& observed) {
  constexpr std::string_view kOfPassword = "password: ", kOfDatabase = "database: ", kOfSlurmdbd = "slurmdbd: ";
  const std::string words = words_of_init(observed.pods);
  if (words.starts_with(kOfPassword)) {
    return Problem{"PasswordInvalid", "spec.storageConfig.passwordKeyRef: " + secret_name(observed, observed.password) +
                                          ", key " + observed.password.ref.key + ": " +
                                          one_line(words.substr(kOfPassword.size()))};
  }
  for (const std::string_view prefix : {kOfDatabase, kOfSlurmdbd}) {
    if (words.starts_with(prefix)) return database_problem(observed, words.substr(prefix.size()));
  }
  return {};
}

/// Returns what the init container reported about `thing` before slurmdbd started, or "".
std::string said_of(const kube::PodRecord& pod, std::string_view thing) {
  for (const kube::ContainerState& container : pod.containers) {
    if (container.name != kInitConf || !container.ready) continue;
    std::istringstream lines(container.message);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(thing)) return one_line(line.substr(thing.size()));
    }
  }
  return "";
}

/// Returns a server variable that slurmdbd complains about, with the value to set. The values are from slurmdbd's own check
/// (accounting_storage_mysql.c).
std::string advice(const std::string& variable) {
  constexpr std::pair<std::string_view, std::string_view> kAdvice[] = {
      {"innodb_buffer_pool_size", "=2G or more"},
      {"innodb_lock_wait_timeout", "=900"},
      {"innodb_log_file_size", "=64M or more"},
      {"innodb_redo_log_capacity", "=128M or more"},
      {"innodb_snapshot_isolation", "=OFF, or a conflicting read ends slurmdbd"},
      {"max_allowed_packet", "=16M or more"},
  };
  const auto* known = std::ranges::find(kAdvice, variable, &std::pair<std::string_view, std::string_view>::first);
  return variable + (known == std::end(kAdvice) ? "" : std::string(known->second));
}

/// Reports the settings of the database server that slurmdbd does not recommend. The init container finds them in slurmdbd's
/// log: see write_conf_script.
void set_database_unsuited(Conditions& conditions, const Observed& observed) {
  for (const kube::PodPtr& pod : observed.pods) {
    const std::string settings = pod->meta.terminating() ? "" : said_of(*pod, "settings: ");
    if (settings.empty()) continue;
    std::istringstream words(settings);
    std::string list;
    for (std::string word; words >> word;) list += (list.empty() ? "" : "; ") + advice(word);
    conditions.set(
        api::kConditionDatabaseUnsuited, true, "SettingsUnsuited",
        std::string("settings of the database server do not suit slurmdbd: ") +
            (managed(observed) ? "in spec.storageConfig.mariadb.args (--NAME=VALUE), set " : "in its configuration, set ") +
            list + (managed(observed) ? ". When its pod is ready again, delete pod " : ". Then delete pod ") + pod->meta.name +
            ", so that slurmdbd checks the settings again");
  }
}

bool serves(const Observed& observed) {
  return std::ranges::any_of(observed.pods, [](const kube::PodPtr& pod) { return !pod->meta.terminating() && pod->ready(); });
}

/// Returns the Controllers whose slurmctld has not loaded a configuration with this slurmdbd yet, except Controllers that are
/// being deleted or are external.
std::vector<std::string> outside(const Observed& observed) {
  std::vector<std::string> out;
  for (const Cluster& cluster : observed.clusters) {
    if (!cluster.ends && !cluster.joined && !cluster.external) out.push_back(cluster.name);
  }
  return out;
}

/// Reports whether the cluster cannot join until somebody changes something: the spec of its Controller cannot be parsed, an
/// earlier cluster has the same name, or its keys are not those of slurmdbd.
bool refused(const Observed& observed, const Cluster& cluster) {
  if (cluster.cluster_name.empty()) return true;
  for (const Cluster& other : observed.clusters) {
    if (&other == &cluster) break;
    if (same_cluster_name(other.cluster_name, cluster.cluster_name)) return true;
  }
  const auto differ = [](const std::optional<SecretFacts>& ours, const SecretFacts& theirs) {
    return ours && ours->usable() && theirs.usable() && ours->content != theirs.content;
  };
  return differ(observed.slurm_key, cluster.slurm_key) || differ(observed.jwt_key, cluster.jwt_key);
}

/// Texts about the clusters that have not joined slurmdbd yet. `waiting`: the clusters that will join without a change.
/// `up_to_users`: the clusters that can join only after a user has changed something.
struct Left {
  std::string waiting;
  std::vector<Problem> up_to_users;
};
Left left_out(const Observed& observed, const std::vector<std::string>& left) {
  std::vector<std::string> coming, stuck;
  for (const Cluster& cluster : observed.clusters) {
    if (std::ranges::find(left, cluster.name) == left.end()) continue;
    (refused(observed, cluster) ? stuck : coming).push_back(cluster.name);
  }
  Left out;
  if (!coming.empty()) out.waiting = "Controllers whose slurmctld has not joined this Accounting yet: " + some_of(coming);
  if (!stuck.empty()) {
    out.up_to_users.push_back({"ClustersRefused", "Controllers that do not join until their spec changes: " + some_of(stuck) +
                                                      ". See their conditions"});
  }
  return out;
}

/// Returns the fields that are set but have no effect. With an external slurmdbd, only its address has an effect. With a
/// managed database, the fields for a user's database have no effect. With a user's database, the fields for a managed database
/// have no effect.
std::vector<std::string> ignored_fields(const api::AccountingSpec& spec) {
  std::vector<std::string> out = api::fields_not_acted_on(spec);
  const auto add = [&](const std::string& path, const core::Json& said, const core::Json& unsaid,
                       std::initializer_list<const char*> fields) {
    for (const char* field : fields) {
      if (said.value(field, core::Json()) != unsaid.value(field, core::Json())) out.push_back(path + field);
    }
  };
  if (spec.external) {
    add("spec.", api::to_json(spec), api::to_json(api::AccountingSpec{}),
        {"slurmKeyRef", "jwtKeyRef", "jwtHs256KeyRef", "jwksKeyRef", "slurmdbd", "template", "storageConfig", "extraConf",
         "service"});
  } else if (spec.storage_config) {
    const core::Json said = api::to_json(*spec.storage_config), unsaid = api::to_json(api::StorageConfig{});
    if (spec.storage_config->managed) {
      add("spec.storageConfig.", said, unsaid, {"host", "port", "passwordKeyRef"});
    } else {
      add("spec.storageConfig.", said, unsaid, {"mariadb", "template", "persistence"});
    }
  }
  return out;
}

void set_serving(Conditions& conditions, const Observed& observed, const std::vector<Problem>& problems, const Report& report) {
  constexpr const char* kKept = ": slurmctld keeps its job records until slurmdbd answers";
  const std::string where =
      accounting_endpoint(observed.accounting.spec, observed.object->meta.ns, observed.object->meta.name).str();
  const bool external = observed.accounting.spec.external;
  if (!report.away.empty()) {
    conditions.set(api::kConditionServing, false, "SlurmdbdAway",
                   "slurmdbd at " + where + " does not answer" + kKept + "; " + report.away);
  } else if (report.answers) {
    conditions.set(api::kConditionServing, true, "Serving", "slurmdbd answers at " + where);
  } else if (external && observed.reached && !observed.reached->result) {
    conditions.set(api::kConditionServing, false, "SlurmdbdAway",
                   "slurmdbd does not answer, so no slurmctld is restarted to join it: " +
                       one_line(observed.reached->result.error().message));
  } else if (external && observed.reached) {
    conditions.set(api::kConditionServing, true, "PortAnswers", "the port of slurmdbd answers at " + where);
  } else if (external) {
    conditions.set(
        api::kConditionServing, api::ConditionStatus::kUnknown, "External",
        "the slurmdbd at " + where + " is not run by the operator" + (report.not_asked.empty() ? "" : "; " + report.not_asked));
  } else if (serves(observed)) {
    conditions.set(api::kConditionServing, true, "PortAnswers",
                   "the port of slurmdbd answers at " + where + (report.not_asked.empty() ? "" : "; " + report.not_asked));
  } else {
    const auto wrong = std::ranges::find_if(problems, &Problem::wrong);
    conditions.set(api::kConditionServing, false, wrong == problems.end() ? "Waiting" : wrong->reason,
                   "slurmdbd does not answer" + std::string(kKept) + (wrong == problems.end() ? "" : "; " + wrong->message));
  }
}

/// Plans the status update. `waiting`: what the Accounting waits for if there is no problem, or "".
void plan_status(const Observed& observed, const std::vector<Problem>& problems, bool ready, const std::string& waiting,
                 const Report& report, plan::Plan& plan, const std::vector<Problem>& up_to_users = {}) {
  // Adding the finalizer changes the resourceVersion on which the status write depends, so the next pass writes the status.
  if (plan.lanes().contains("guard")) return;
  const kube::Object& object = *observed.object;
  Conditions conditions(observed.accounting.status.conditions, object.meta.generation, observed.context.now);
  if (observed.parse_error.empty()) {
    set_fields_not_acted_on(conditions, ignored_fields(observed.accounting.spec));
    set_serving(conditions, observed, problems, report);
    set_database_unsuited(conditions, observed);
  }
  set_summary(conditions, ready, problems, ready ? "" : waiting, up_to_users);
  plan.lane("events").add(
      degraded_event(resources::kAccounting, object.meta, observed.accounting.status.conditions, conditions));
  core::Json status{{"observedGeneration", object.meta.generation}, {"conditions", conditions.json()}};
  plan.lane("status").add(status_step(resources::kAccounting, object, std::move(status)));
}

/// Plans for a slurmdbd outside of Kubernetes. Creates no objects. The slurmrestds of its clusters, and a connection to its
/// port, show the state of the slurmdbd.
void plan_external(const Observed& observed, plan::Plan& plan) {
  const Left left = left_out(observed, outside(observed));
  const Report report = look_at_slurmdbd(observed, true, true, plan);
  look_at_port(observed, report, plan);
  std::string waiting;
  if (!report.away.empty()) {
    waiting = report.away;
  } else if (!left.waiting.empty() && observed.reached && !observed.reached->result) {
    waiting = left.waiting + ": slurmdbd does not answer: " + one_line(observed.reached->result.error().message);
  } else if (std::ranges::all_of(observed.clusters, &Cluster::ends)) {
    waiting = "no Controller names this Accounting, so the operator cannot check the slurmdbd at " +
              accounting_endpoint(observed.accounting.spec, observed.object->meta.ns, observed.object->meta.name).str();
  } else {
    waiting = left.waiting.empty() ? report.waiting : left.waiting;
  }
  plan_status(observed, {}, waiting.empty() && left.up_to_users.empty(), waiting, report, plan, left.up_to_users);
}

const char* starting(const Observed& observed) {
  return managed(observed) && !database_ready(observed) ? "its MariaDB is starting" : "slurmdbd is starting";
}

/// Reports why the pods of slurmdbd and of the managed database do not run, if the status of the pods does not show the cause.
void find_pods(const Observed& observed, plan::Plan& plan, std::vector<Problem>& problems) {
  const auto look = [&](std::string_view since, const kube::ObjectPtr& set, const std::vector<kube::PodPtr>& pods,
                        std::string_view daemon) {
    const api::Condition* told = api::find_condition(observed.accounting.status.conditions, since);
    if (auto missing = find_missing_pod(observed.context, told, set.get(), pods, plan)) problems.push_back(std::move(*missing));
    if (auto lost = find_lost_pod(observed.context, pods, daemon, plan)) problems.push_back(std::move(*lost));
  };
  if (managed(observed) && !database_ready(observed))
    look(api::kConditionReady, observed.database_set, observed.database_pods, kDatabaseContainer);
  if (!serves(observed)) look(api::kConditionServing, observed.stateful_set, observed.pods, kAppAccounting);
}

/// Plans all children, and returns their problems.
std::vector<Problem> plan_children(const Observed& observed, plan::Plan& plan) {
  const api::AccountingSpec& spec = observed.accounting.spec;
  std::vector<Problem> problems = observed.missing;
  const auto note = [&](std::optional<Problem> problem) {
    if (problem) problems.push_back(std::move(*problem));
  };
  note(own_key_problem(observed, observed.slurm_key, spec.slurm_key_ref.has_value(), "spec.slurmKeyRef"));
  note(own_key_problem(observed, observed.jwt_key, spec.jwt_key() != nullptr,
                       spec.jwt_hs256_key_ref && !spec.jwt_key_ref ? "spec.jwtHs256KeyRef" : "spec.jwtKeyRef"));
  note(key_problem(observed.password, observed.object->meta.ns, "spec.storageConfig.passwordKeyRef"));
  if (managed(observed)) plan_database(observed, plan, problems);
  Rendered wanted = render_config(observed);

  plan.lane("network").add(
      apply_step(kube::resources::kService, build_service(observed), observed.service.get(), kManagerAccounting));
  const bool keys = observed.slurm_key && observed.slurm_key->usable() && observed.jwt_key && observed.jwt_key->usable();
  const bool mountable = keys && observed.password.usable() && (!spec.jwks_key_ref || observed.jwks);
  if (wanted.problems.empty()) {
    plan::Lane& lane = plan.lane("pod");
    lane.add(apply_step(kube::resources::kConfigMap, build_config_map(observed, wanted.text), observed.config_map.get(),
                        kManagerAccounting));
    lane.then();
    if (mountable) {
      core::Json set = build_stateful_set(observed, wanted.text);
      lane.add(make_way_step(kube::resources::kStatefulSet, set, observed.stateful_set.get(), observed.context.outcomes));
      lane.then();
      lane.add(apply_step(kube::resources::kStatefulSet, std::move(set), observed.stateful_set.get(), kManagerAccounting));
    }
  }
  std::ranges::move(wanted.problems, std::back_inserter(problems));
  find_other_keys(observed, problems);
  find_keys_in_force(observed, problems);
  if (std::optional<Problem> problem = init_problem(observed)) {
    problems.push_back(std::move(*problem));
  } else {
    std::ranges::move(pod_problems(observed.pods), std::back_inserter(problems));
  }
  find_pods(observed, plan, problems);
  std::ranges::move(step_problems(observed.context.outcomes, plan), std::back_inserter(problems));
  return problems;
}

/// True if a lane of this pass begins with a step that did not fail in the last pass. Steps that fail in each pass do not
/// count, because waiting for such steps is useless.
bool changes(const Observed& observed, const plan::Plan& plan) {
  const auto failed = [&](const plan::Step& step) {
    const auto before = observed.context.outcomes.find(step.id);
    return before != observed.context.outcomes.end() && before->second.state == plan::Outcome::State::kFailed;
  };
  for (const auto& [name, lane] : plan.lanes()) {
    for (const std::vector<plan::Step>& group : lane.groups()) {
      if (!std::ranges::all_of(group, failed)) return true;
      // Later groups of the lane wait for this group, so they are not checked.
      if (!group.empty()) break;
    }
  }
  return false;
}

void plan_running(const Observed& observed, plan::Plan& plan) {
  if (auto act = kube::add_finalizer(resources::kAccounting, observed.object->meta, api::kFinalizerAccounting)) {
    plan.lane("guard").add(
        {{"add", "finalizer"}, "clusters that are deleted with it record their last jobs first", std::move(act)});
  }
  const std::vector<Problem> problems = plan_children(observed, plan);
  const bool made = observed.stateful_set || std::ranges::none_of(problems, &Problem::wrong);
  const Left left = left_out(observed, outside(observed));
  const bool up =
      serves(observed) && rolled_out(observed.stateful_set.get(), 1) && (!managed(observed) || database_ready(observed));
  // Changes of the pod must not wait for an answer of slurmdbd, so slurmdbd is not asked in a pass with changes.
  const Report report = look_at_slurmdbd(observed, serves(observed), !changes(observed, plan), plan);
  const std::string waiting = !up                     ? made ? starting(observed) : ""
                              : !left.waiting.empty() ? left.waiting
                              : report.away.empty()   ? report.waiting
                                                      : report.away;
  const bool ready = up && waiting.empty() && left.up_to_users.empty();
  plan_status(observed, problems, ready, waiting, report, plan, left.up_to_users);
}

/// Returns why slurmdbd cannot run with this spec, or "".
std::string invalid(const Observed& observed) {
  if (!observed.parse_error.empty()) return observed.parse_error;
  const std::optional<api::StorageConfig>& storage = observed.accounting.spec.storage_config;
  if (observed.accounting.spec.external) return "";
  if (!storage) return "spec.storageConfig: required when external is false";
  if (!storage->managed && (storage->host.empty() || !storage->password_key_ref))
    return "spec.storageConfig.host and passwordKeyRef: required when managed is false";
  return "";
}

/// Keeps slurmdbd until no cluster uses it any more. Clusters that are being deleted and drain their workers record their last
/// jobs first. Without slurmdbd, the slurmctld of any other cluster could not start again: slurmdbd's host name would not
/// resolve, and slurmctld would exit ("no TRES").
void plan_end(const Observed& observed, plan::Plan& plan) {
  const kube::ObjectMeta& meta = observed.object->meta;
  if (!kube::has_finalizer(meta, api::kFinalizerAccounting)) return;
  plan.intent.summary = "end slurmdbd";
  const auto let_go = [&](const char* why) {
    plan.lane("tidy").add(
        {{"remove", "finalizer"}, why, kube::remove_finalizer(resources::kAccounting, meta, api::kFinalizerAccounting)});
  };
  // With kubectl delete --cascade=orphan, slurmdbd keeps running without its Accounting.
  if (kube::has_finalizer(meta, "orphan")) return let_go("it is deleted, and the objects that it owns are kept");
  Referrers clusters{
      .resource = resources::kController, .field = "accountingRef", .name = meta.name, .ending = {}, .others = {}};
  std::vector<std::string> users;
  for (const Cluster& cluster : observed.clusters) {
    if (cluster.ends) clusters.ending.push_back(cluster.name);
    if (!cluster.ends && cluster.offered) users.push_back(cluster.name);
    clusters.lasting = clusters.lasting || !cluster.ends;
  }
  if (!users.empty()) {
    clusters.others = "it is still used by the slurmctld of Controllers: " + some_of(users) +
                      ". Remove spec.accountingRef there, or name another Accounting; slurmctld restarts once, and jobs run on";
  } else if (!observed.leaving.empty()) {
    constexpr core::Duration kLookAgain{2000};
    clusters.others = "waiting for the slurmctld of these Controllers to restart without it: " + some_of(observed.leaving);
    plan.wake_after(kLookAgain, "a cluster that no longer names it may have left it");
  }
  const std::optional<Needed> needed = needed_by(observed.context, meta, clusters, plan);
  if (!needed) return;
  if (needed->waiting.empty()) return let_go("no cluster needs it any more");
  plan.intent.summary += ": " + needed->waiting;
  std::vector<Problem> problems{{kReasonTerminating, "the Accounting is being deleted", Problem::Kind::kComing}};
  // A foreground deletion makes Kubernetes delete the children, so the operator applies the children again while something
  // might use slurmdbd.
  if (needed->at_work && invalid(observed).empty())
    std::ranges::move(plan_children(observed, plan), std::back_inserter(problems));
  const Report report = look_at_slurmdbd(observed, serves(observed), !changes(observed, plan), plan);
  plan_status(observed, problems, false, needed->waiting, report, plan);
}

}  // namespace

std::string release_to_tell(const Observed& observed) {
  const std::string before = observed.config_map ? core::get_string(observed.config_map->body, {"data", kReleaseFile}) : "";
  for (const kube::PodPtr& pod : observed.pods) {
    if (pod->meta.terminating()) continue;
    const ImageRelease release = slurm_release("slurmdbd:" + said_of(*pod, "release: "));
    std::string said = to_string(release);
    // slurmdbd is ready and accepts clients. A slurmctld that waits for the release of slurmdbd continues with any value, even
    // "unknown".
    if (pod->ready()) return said.empty() ? "unknown" : said;
    const bool earlier = before.empty() || releases_between(slurm_release("slurmdbd:" + before), release) < 0;
    if (!said.empty() && earlier) return said;
  }
  return before;
}

plan::Plan plan(const Observed& observed) {
  plan::Plan out;
  if (!observed.object) return out;
  if (observed.object->meta.terminating()) {
    plan_end(observed, out);
  } else if (const std::string why = invalid(observed); !why.empty()) {
    plan_status(observed, {{"Invalid", why}}, false, "", {}, out);
  } else if (observed.accounting.spec.external) {
    plan_external(observed, out);
  } else {
    plan_running(observed, out);
  }
  return out;
}

}  // namespace op::accounting
