#include "sim/oracles/oracles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <sstream>

#include "api/controller.hpp"
#include "api/token.hpp"
#include "api/well_known.hpp"
#include "core/base64.hpp"
#include "core/jwt.hpp"
#include "kube/acts.hpp"
#include "kube/apply_helper.hpp"
#include "operator/common/names.hpp"
#include "operator/token/plan.hpp"
#include "sim/slurm/text.hpp"

namespace sim {
namespace {

using core::Json;
namespace kinds = kube::resources;

constexpr std::size_t kNotes = 4000;
/// More than are made between a plan and the end of what it does.
constexpr std::size_t kPlans = 64;
/// From the live look of an act to its write: two reads of 12 s each, and the operator may stand still between them.
constexpr core::Duration kLookAndWrite{90000};

/// What an operator may not know yet: a watch that is late, an answer of a slow Slurm.
constexpr core::Duration kNews{40000};
/// From the preStop of a worker to the end of its slurmd, and more.
constexpr core::Duration kPreStop{1000};

std::string text_at(const Json& object, std::initializer_list<std::string_view> path) {
  return core::get_string(object, path);
}
std::string label(const Json& object, std::string_view name) {
  return text_at(object, {"metadata", "labels", name});
}
std::string annotation(const Json& object, std::string_view name) {
  return text_at(object, {"metadata", "annotations", name});
}
bool terminating(const Json& object) {
  return core::find(object, {"metadata", "deletionTimestamp"}) != nullptr;
}
std::string name_of(const Json& object) {
  return text_at(object, {"metadata", "name"});
}
std::string namespace_of(const Json& object) {
  return text_at(object, {"metadata", "namespace"});
}
std::string key_of(const Json& object) {
  return namespace_of(object) + "/" + name_of(object);
}

bool is_worker(const Json& pod) {
  return label(pod, api::kLabelName) == op::kAppWorker && !label(pod, api::kLabelCluster).empty();
}

bool condition_true(const Json& object, std::string_view type) {
  const Json* conditions = core::find(object, {"status", "conditions"});
  if (conditions == nullptr) return false;
  return std::any_of(conditions->begin(), conditions->end(),
                     [&](const Json& c) { return text_at(c, {"type"}) == type && text_at(c, {"status"}) == "True"; });
}

bool ended(const Json& pod) {
  const std::string phase = text_at(pod, {"status", "phase"});
  return phase == "Failed" || phase == "Succeeded";
}

/// Without a node: what a kubelet has not reported yet proves nothing.
bool never_started(const Json& pod) {
  return text_at(pod, {"spec", "nodeName"}).empty();
}

/// Slurm runs nothing there, and starts nothing.
bool idle_and_held(const SimSlurm& slurm, const std::string& name) {
  const SimNode* node = slurm.node(name);
  return (node == nullptr || node->drain || node->down) && !slurm.busy(name);
}

/// A DOWN with this reason is neither the operator's nor slurmctld's own: who gave it has to resume the node.
bool down_by_somebody(const std::string& reason) {
  return !reason.empty() && !given_by_operator(reason) && !reason.ends_with("Not responding") &&
         reason != "Node unexpectedly rebooted";
}

/// slurmctld's own words for a slurmd that has less than its record.
bool tells_lack(const std::string& reason) {
  return reason.starts_with("gres/") || reason.starts_with("Low RealMemory");
}

/// The slurmd of that node is this pod's.
bool runs_slurmd(const SlurmSite::Cluster& cluster, const std::string& node, const Json& pod) {
  const auto slurmd = cluster.slurmds.find(node);
  return slurmd != cluster.slurmds.end() && slurmd->second == text_at(pod, {"metadata", "uid"});
}

std::string shown(const SimSlurm& slurm, const SimNode& node) {
  std::string out;
  for (const std::string& word : slurm.state_words(node)) out += word + " ";
  out += "(" + node.reason + ")";
  if (node.comment.empty()) out += ", no comment";
  if (const auto jobs = slurm.jobs_on(node.name); !jobs.empty())
    out += fmt::format(", job {} {}", jobs.front()->id, to_string(jobs.front()->state));
  return out;
}

/// The uid of an owner of this kind; "": it has none.
std::string owner_uid(const Json& object, std::string_view kind) {
  const Json* owners = core::find(object, {"metadata", "ownerReferences"});
  if (owners == nullptr) return "";
  for (const Json& owner : *owners) {
    if (text_at(owner, {"kind"}) == kind) return text_at(owner, {"uid"});
  }
  return "";
}

/// What every HS256 token begins with.
std::string token_header() {
  const std::string token = core::sign_hs256("", Json::object());
  return token.substr(0, token.find('.'));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

/// What follows `part` in a path, up to the next "/".
std::string word_after(const std::string& target, std::string_view part) {
  const std::size_t at = target.find(part);
  if (at == std::string::npos) return "";
  return target.substr(at + part.size(), target.find_first_of("/?", at + part.size()) - at - part.size());
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

/// As JSON shows bytes that are no text: in plans, requests and log lines.
std::string as_dumped(const std::string& bytes) {
  const std::string quoted = Json(bytes).dump(-1, ' ', false, Json::error_handler_t::replace);
  return quoted.substr(1, quoted.size() - 2);
}

}  // namespace

std::string lease_holder(const KubeApi& api) {
  const Json* lease = api.peek(kinds::kLease, kLeaseKey);
  return lease == nullptr ? "" : text_at(*lease, {"spec", "holderIdentity"});
}

std::string operator_agent(std::string_view identity) {
  return fmt::format("{}/{}", kOperatorAgent, identity);
}

std::string Tap::identity_of(const net::HttpRequest& request) {
  const auto agent = request.headers.find("user-agent");
  const std::string prefix = operator_agent("");
  return agent != request.headers.end() && agent->second.starts_with(prefix) ? agent->second.substr(prefix.size()) : "";
}

Oracles::Oracles(core::Loop& loop, KubeApi& api, SlurmSite& site)
    : loop_(loop),
      api_(api),
      site_(site),
      jobs_(
          loop, api, site, [this](std::string text) { violation(std::move(text)); },
          [this](std::string text) { note(std::move(text)); }),
      service_(loop, api, site, [this](std::string text) { violation(std::move(text)); }),
      drains_(loop, api, [this](std::string text) { violation(std::move(text)); }) {
  watch_admission();
  watch_store();
  site_.on_cluster = [this](SlurmSite::Cluster& cluster) { watch_cluster(cluster); };
  site_.on_slurmd_end = [this](const SlurmSite::Cluster& cluster, const std::string& node) { slurmd_ends(cluster, node); };
}

void Oracles::violation(std::string text) {
  note("VIOLATION " + text);
  violations_.push_back(std::move(text));
}

void Oracles::note(std::string text) {
  notes_.push_back(core::format_rfc3339_micro(loop_.clock().wall()).substr(11, 12) + " " + std::move(text));
  if (notes_.size() > kNotes) notes_.pop_front();
}

// --- Kubernetes -------------------------------------------------------------------------------------------------------

void Oracles::watch_admission() {
  api_.add_admission([this](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation == "DELETE" && request.resource == kinds::kPod && request.before != nullptr &&
        is_worker(*request.before) && request.user == kOperatorAgent) {
      worker_deletion(*request.before);
    }
    const bool input = request.resource == kinds::kSecret || request.resource == kinds::kConfigMap;
    if (!input || request.before == nullptr) return {};
    // Whatever the operator makes is labelled so.
    if (request.user == kOperatorAgent && label(*request.before, api::kLabelName).empty()) {
      violation(fmt::format("{} of {} {}, which is a user's", request.operation, request.resource.kind, request.key.str()));
    }
    // Without it there is none, and another one is due.
    if (request.user != kOperatorAgent && request.operation == "DELETE") minted_.erase(request.key);
    return {};
  });
}

/// Judged by Slurm itself, at the moment of the call.
void Oracles::worker_deletion(const Json& pod) {
  if (terminating(pod)) return;
  const kube::Key controller{namespace_of(pod), label(pod, api::kLabelCluster)};
  const SlurmSite::Cluster* cluster = site_.find(controller);
  if (cluster == nullptr) return;
  const std::string node = slurm_node_of(pod);
  const std::vector<const SimJob*> jobs = cluster->slurm->jobs_on(node);
  // Who runs slurmd is the model's to say: what a kubelet has reported may be old.
  const bool runs = runs_slurmd(*cluster, node, pod);
  if (ended(pod) && (jobs.empty() || !runs)) return;
  // Jobs of an earlier pod of that name are not this one's.
  if (never_started(pod)) return;
  const Json* owner = api_.peek(op::resources::kController, controller);
  const Json* space = api_.peek(kinds::kNamespace, {"", controller.ns});
  const bool space_goes = space == nullptr || terminating(*space);
  if (owner == nullptr && space_goes) return;
  // Whoever waits for a Controller deletes nothing.
  if (owner == nullptr && loop_.clock().mono() - gone_.at(controller) > kLookAndWrite) {
    return violation(fmt::format("worker {} was deleted while there was no Controller {}", key_of(pod), controller.str()));
  }
  const bool goes = owner != nullptr && (terminating(*owner) || space_goes);
  if (goes && text_at(*owner, {"spec", "deletionPolicy"}) != "Drain") return;
  const bool overtaken = was_freed_since(controller, node);
  if (overtaken) jobs_.overtaken({namespace_of(pod), name_of(pod)});
  if (!jobs.empty() && !overtaken) {
    violation(fmt::format("worker {} was deleted while job {} ({}) was on {}, its slurmd {}", key_of(pod), jobs.front()->id,
                          to_string(jobs.front()->state), node, runs ? "running" : "not running"));
    return;
  }
  if (!site_.slurmd_ever_ran(text_at(pod, {"metadata", "uid"}))) return;
  if (idle_and_held(*cluster->slurm, node) || was_idle_and_held(node)) return;
  violation(fmt::format("worker {} was deleted while Slurm could give it jobs: {} is {}", key_of(pod), node,
                        shown(*cluster->slurm, *cluster->slurm->node(node))));
}

/// Never more than were wished for lately: a watch may be late, and an operator may stand still.
void Oracles::count_workers(const Json& made) {
  const std::string owner = owner_uid(made, "NodeSet");
  std::int64_t have = 0, most = 0;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (is_worker(pod) && !terminating(pod) && !ended(pod) && owner_uid(pod, "NodeSet") == owner) ++have;
  }
  const auto& wished = wished_[owner];
  for (auto it = wished.rbegin(); it != wished.rend(); ++it) {
    most = std::max(most, it->second);
    if (loop_.clock().mono() - it->first > kLookAndWrite) break;
  }
  if (have > most)
    violation(fmt::format("worker {} makes {} of its NodeSet, of which {} at most were wished for", key_of(made), have, most));
}

void Oracles::look(const std::string& node) {
  const auto held = [&](const auto& cluster) { return idle_and_held(*cluster.second->slurm, node); };
  asked_[node] = {loop_.clock().mono(), std::ranges::all_of(site_.clusters(), held)};
}

/// Slurm has no conditional write, and Kubernetes none that depends on Slurm: what an admin does, or a slurmd that registers,
/// between the live look and the write is not seen. So what goes must have been idle and held when it was looked at. A look is
/// good for this pod, for a short while, and until the operator itself frees the node.
bool Oracles::was_idle_and_held(const std::string& node) const {
  const auto look = asked_.find(node);
  return look != asked_.end() && look->second.idle_and_held && loop_.clock().mono() - look->second.at < kLookAndWrite;
}

/// It was idle and held, and then an administrator freed it: what has begun there since nobody could see.
bool Oracles::was_freed_since(const kube::Key& controller, const std::string& node) const {
  const auto freed = freed_.find({controller, node});
  return was_idle_and_held(node) && freed != freed_.end() && freed->second >= asked_.at(node).at;
}

/// A NodeSet wants a worker of that node's name, the operator knows it, and no other worker's end has made it so just now.
bool Oracles::wants_worker(const kube::Key& controller, const std::string& node) const {
  const std::size_t dash = node.rfind('-');
  if (dash == std::string::npos) return false;
  const std::string name = node.substr(0, dash);
  const auto ordinal_in = [&](std::string_view pod) {
    int out = -1;
    if (pod.starts_with(name + "-")) std::from_chars(pod.data() + dash + 1, pod.data() + pod.size(), out);
    return out;
  };
  const Json* cluster = api_.peek(op::resources::kController, controller);
  const Json* space = api_.peek(kinds::kNamespace, {"", controller.ns});
  const Json* nodeset = api_.peek(op::resources::kNodeSet, {controller.ns, name});
  if (cluster == nullptr || terminating(*cluster) || space == nullptr || terminating(*space) || nodeset == nullptr ||
      terminating(*nodeset) || text_at(*nodeset, {"spec", "controllerRef", "name"}) != controller.name ||
      core::get_int(*nodeset, {"status", "observedGeneration"}) != core::get_int(*nodeset, {"metadata", "generation"})) {
    return false;
  }
  for (const auto& [pod, at] : left_) {
    if (pod.ns == controller.ns && pod.name != node && ordinal_in(pod.name) >= 0 && loop_.clock().mono() - at < kNews)
      return false;
  }
  std::set<int> used;
  std::int64_t held = 0;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    if (key.ns != controller.ns || !is_worker(stored->body) || ordinal_in(key.name) < 0) continue;
    used.insert(ordinal_in(key.name));
    if (!ended(stored->body)) ++held;
  }
  const std::int64_t wanted = core::get_int(*nodeset, {"spec", "replicas"}, 1);
  const int ordinal = ordinal_in(node);
  if (used.contains(ordinal)) return held <= wanted;
  // The lowest free ones come next.
  std::int64_t free_before = 0;
  for (int i = 0; i < ordinal; ++i) free_before += used.contains(i) ? 0 : 1;
  return free_before < wanted - held;
}

/// Deleted by the operator, with no job on it.
void Oracles::record_deletion(const SlurmSite::Cluster& cluster, const SimNode& node) {
  const auto held = foreign_.find({cluster.controller, node.name});
  const Hold hold = held == foreign_.end() ? Hold{} : held->second;
  // With the record the word of its admin goes, which is meant for the next pod of the name as well.
  if ((hold.drain || hold.down) && loop_.clock().mono() - hold.since > kNews && wants_worker(cluster.controller, node.name)) {
    violation(fmt::format("the record of node {} was deleted, which an admin holds, and a NodeSet wants: {}", node.name,
                          shown(*cluster.slurm, node)));
  }
  if (idle_and_held(*cluster.slurm, node.name) || was_idle_and_held(node.name)) return;
  for (const auto& [key, stored] : api_.store().all(table_name(kinds::kPod))) {
    const Json& pod = stored->body;
    const bool behind = is_worker(pod) && kube::Key{key.ns, label(pod, api::kLabelCluster)} == cluster.controller &&
                        slurm_node_of(pod) == node.name && !ended(pod);
    if (!behind) continue;
    violation(fmt::format("the record of node {} was deleted under worker {}, while Slurm could give it jobs: {}", node.name,
                          key.str(), shown(*cluster.slurm, node)));
    return;
  }
}

void Oracles::watch_store() {
  api_.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (change->type == Change::Type::kDeleted) {
      if (table != "leases.coordination.k8s.io") note(fmt::format("{} {} gone", table, change->key.str()));
      if (table == table_name(op::resources::kController)) {
        abandon_records(change->key);
        gone_[change->key] = loop_.clock().mono();
      }
      if (table == table_name(op::resources::kNodeSet)) abandon_left(change->object->body);
      if (table == "pods") left_[change->key] = loop_.clock().mono();
      if (table == "pods" && is_worker(change->object->body)) abandon_record(change->object->body);
      return;
    }
    const Json& body = change->object->body;
    if (table == "secrets") {
      learn_secret(body);
      learn_token(body);
      search_secrets(body["metadata"].dump(), "the metadata of Secret " + change->key.str());
    }
    if (table == table_name(op::resources::kNodeSet)) {
      auto& wished = wished_[text_at(body, {"metadata", "uid"})];
      const std::int64_t now = core::get_int(body, {"spec", "replicas"}, 1);
      if (wished.empty() || wished.back().second != now) wished.emplace_back(loop_.clock().mono(), now);
      if (terminating(body) && kube::has_finalizer(body, "orphan")) alone_.insert(text_at(body, {"metadata", "uid"}));
    }
    if (table == "pods" && is_worker(body)) {
      if (change->type == Change::Type::kAdded) {
        ++made_[change->key.name];
        count_workers(body);
      }
      if (terminating(body) || ended(body)) left_[change->key] = loop_.clock().mono();
      const std::string node = slurm_node_of(body);
      abandoned_.erase({{change->key.ns, label(body, api::kLabelCluster)}, node});
      // What was seen before was an earlier pod's.
      const auto asked = asked_.find(node);
      if (change->type == Change::Type::kAdded && asked != asked_.end()) asked->second.idle_and_held = false;
    }
    if (const Json* generation = core::find(body, {"status", "observedGeneration"})) {
      const std::int64_t now = generation->get<std::int64_t>();
      std::int64_t& before = observed_[text_at(body, {"metadata", "uid"})];
      const bool ours = table.ends_with(std::string(".") + std::string(api::kGroup));
      if (ours && now < before)
        violation(fmt::format("observedGeneration of {} {} went from {} to {}", table, change->key.str(), before, now));
      before = now;
    }
  });
}

/// Of a worker that goes. Its record was not stamped when nobody owned the worker; and while there is no Controller, nobody can
/// reach it.
void Oracles::abandon_record(const Json& pod) {
  const kube::Key controller{namespace_of(pod), label(pod, api::kLabelCluster)};
  if (!owner_uid(pod, "NodeSet").empty() && api_.peek(op::resources::kController, controller) != nullptr) return;
  abandoned_.insert({controller, slurm_node_of(pod)});
}

/// Of a NodeSet that went while slurmctld was away: it waits for that, but not for ever. One that goes alone waits for nothing:
/// what it leaves is for the next of its name.
void Oracles::abandon_left(const Json& nodeset) {
  const kube::Key controller{namespace_of(nodeset), text_at(nodeset, {"spec", "controllerRef", "name"})};
  const SlurmSite::Cluster* cluster = site_.find(controller);
  const bool alone = alone_.contains(text_at(nodeset, {"metadata", "uid"}));
  if (cluster != nullptr && (alone || !cluster->slurm->up())) abandon_records(controller);
}

void Oracles::abandon_records(const kube::Key& controller) {
  const SlurmSite::Cluster* cluster = site_.find(controller);
  if (cluster == nullptr) return;
  for (const auto& [name, node] : cluster->slurm->nodes()) abandoned_.insert({controller, name});
}

void Oracles::learn_secret(const Json& secret) {
  const Json* data = core::find(secret, {"data"});
  if (data == nullptr || !data->is_object()) return;
  for (const auto& [key, value] : data->items()) {
    const std::string text = value.get<std::string>();
    if (text.size() < 16) continue;
    const auto bytes = core::base64_decode(text);
    if (bytes && bytes->starts_with(token_header())) {
      // All tokens begin alike, and so does whatever shows of one.
      for (const std::string& form : {token_header(), core::base64_encode(token_header()), hex(token_header())}) {
        learn_form(form);
      }
      continue;
    }
    learn_form(text);
    if (bytes) {
      learn_form(*bytes);
      learn_form(hex(*bytes));
      learn_form(core::base64url_encode(*bytes));
      learn_form(as_dumped(*bytes));
    }
  }
}

void Oracles::learn_form(const std::string& text) {
  if (!secrets_.insert(text).second) return;
  std::erase_if(plans_, [&](const std::string& plan) {
    const bool shows = plan.find(text) != std::string::npos;
    if (shows) violation("a secret shows in a plan: " + plan.substr(0, 200));
    return shows;
  });
}

/// One that is not refreshed is another only when its Token, or its key, is: see also watch_admission.
void Oracles::learn_token(const Json& secret) {
  const std::string uid = owner_uid(secret, "Token");
  const kube::Key key{namespace_of(secret), name_of(secret)};
  if (terminating(secret) || uid.empty() || !core::get_bool(secret, {"immutable"})) {
    minted_.erase(key);
    return;
  }
  std::string source = uid + " " + annotation(secret, op::token::kAnnotationInputHash);
  for (const auto& [of, token] : api_.store().all(table_name(op::resources::kToken))) {
    if (text_at(token->body, {"metadata", "uid"}) == uid)
      source += fmt::format(", generation {}", core::get_int(token->body, {"metadata", "generation"}));
  }
  std::pair now{source, secret["data"].dump()};
  const auto before = minted_.find(key);
  if (before != minted_.end() && before->second.first == now.first && before->second.second != now.second)
    violation("a token that is not to be refreshed was minted again: Secret " + key_of(secret));
  minted_[key] = std::move(now);
}

void Oracles::search_secrets(std::string_view text, std::string_view where) {
  for (const std::string& secret : secrets_) {
    if (text.find(secret) != std::string_view::npos) {
      violation(fmt::format("a secret shows in {}", where));
      return;
    }
  }
}

void Oracles::request(const net::HttpRequest& request, bool to_slurm, const std::string& identity) {
  service_.request(to_slurm);
  if (to_slurm) {
    const auto token = request.headers.find("x-slurm-user-token");
    if (token != request.headers.end() && token->second.size() > 16) secrets_.insert(token_header());
    if (const std::size_t at = request.target.rfind("/node/"); request.method == "GET" && at != std::string::npos)
      look(request.target.substr(at + 6));
    if (request.method != "GET" || request.target.find("/reconfigure") != std::string::npos) {
      ++writes_;
      note("slurm " + request.method + " " + request.target + " " + request.body);
      search_secrets(request.body, "a request to Slurm");
      fenced_write(request, to_slurm, identity);
    }
    return;
  }
  if (request.method == "GET") return;
  if (request.target.find("/leases") != std::string::npos) return;
  ++writes_;
  fenced_write(request, to_slurm, identity);
  if (about_tokens(request)) ++token_writes_;
  if (!acts_in(word_after(request.target, "/namespaces/"))) violation("a write outside of its namespaces: " + request.target);
  const bool secret = request.target.find("/secrets") != std::string::npos;
  note("kube " + request.method + " " + request.target + " " + (secret ? "(secret)" : request.body.substr(0, 3000)));
  search_secrets(request.target, "a request's path");
  if (!secret) search_secrets(request.body, "a request to " + request.target);
  if (request.method == "DELETE") {
    const auto body = core::parse_json(request.body.empty() ? "{}" : request.body);
    const std::string uid = body ? core::get_string(*body, {"preconditions", "uid"}) : "";
    if (uid.empty()) violation("a deletion without the uid of what is meant: " + request.target);
  }
}

bool Oracles::acts_in(std::string_view ns) const {
  return namespaces_.empty() || std::ranges::find(namespaces_, ns) != namespaces_.end();
}

/// A token in its Secret, its Token's status, and the event that says that it has expired.
bool Oracles::about_tokens(const net::HttpRequest& request) const {
  const std::string& target = request.target;
  if (target.find("/tokens/") != std::string::npos) return true;
  const std::string ns = word_after(target, "/namespaces/");
  if (target.find("/events") != std::string::npos) {
    // One that is told again says only how often.
    if (const Json* told = api_.peek(kube::resources::kEvent, {ns, word_after(target, "/events/")}))
      return text_at(*told, {"regarding", "kind"}) == "Token";
    const auto event = core::parse_json(request.body);
    return event && text_at(*event, {"regarding", "kind"}) == "Token";
  }
  const Json* secret = api_.peek(kinds::kSecret, {ns, word_after(target, "/secrets/")});
  return secret != nullptr && !owner_uid(*secret, "Token").empty();
}

/// Judged as it is sent to Slurm, and as it arrives at the API server.
void Oracles::fenced_write(const net::HttpRequest& request, bool to_slurm, const std::string& identity) {
  if (identity.empty()) return;
  const std::string holder = lease_holder(api_);
  if (holder == identity) return;
  violation(fmt::format("{} {} {} by {} while \"{}\" held the Lease", request.method, request.target,
                        to_slurm ? "was sent to Slurm" : "came to the API server", identity, holder));
}

void Oracles::read_plan(const plan::Plan& plan) {
  std::string text = plan.describe().dump(-1, ' ', false, Json::error_handler_t::replace);
  search_secrets(text, "a plan: " + text.substr(0, 200));
  if (plan.step_count() == 0) return;
  plans_.push_back(std::move(text));
  if (plans_.size() > kPlans) plans_.pop_front();
}

void Oracles::log_line(std::string_view line) {
  search_secrets(line, "a log line: " + std::string(line.substr(0, 80)));
}

void OracleLogger::log(core::Level level, std::string_view message, std::vector<core::Field> fields) {
  const std::string line = core::format_log_line(clock_.wall(), level, message, fields);
  oracles_.log_line(line);
  if (level == core::Level::kDebug) return;
  oracles_.note(who_ + " " + line);
  if (print_) std::printf("%s %s\n", who_.c_str(), line.c_str());
  // A plan that throws is a bug wherever it happens.
  if (message.find("this is a bug") != std::string_view::npos) oracles_.violation(std::string(message));
}

// --- Slurm ------------------------------------------------------------------------------------------------------------

/// Its preStop has run: nothing is started there any more, unless slurmctld was away or an administrator freed the node.
void Oracles::slurmd_ends(const SlurmSite::Cluster& cluster, const std::string& node) {
  const SimSlurm& slurm = *cluster.slurm;
  const SimNode* record = slurm.node(node);
  const core::MonoTime before = loop_.clock().mono() - kPreStop;
  if (!slurm.up() || slurm.up_since() >= before || record == nullptr || record->down || record->drain) return;
  if (record->made >= before) return;  // Its record was deleted first, and its slurmd registered after its preStop.
  const auto freed = freed_.find({cluster.controller, node});
  if (freed == freed_.end() || freed->second < before)
    violation("the slurmd of " + node + " was ended with its pod, and Slurm may start jobs there");
}

void Oracles::watch_cluster(SlurmSite::Cluster& cluster) {
  jobs_.watch(cluster);
  cluster.slurm->on_update = [this, &cluster](const SimNode& node, const SimNodeUpdate& update, const std::string& user) {
    const auto place = std::pair(cluster.controller, node.name);
    Hold& hold = foreign_[place];
    if (update.state) note(fmt::format("node {} {} by {}: {}", node.name, *update.state, user, update.reason.value_or("")));
    const std::string state = update.state.value_or("");
    const bool frees = state == "RESUME" || state == "UNDRAIN" || state == "IDLE";
    if (user == kSlurmAdmin) {
      if (frees) freed_[place] = loop_.clock().mono();
      hold.since = loop_.clock().mono();
      // Whose reason stands there has the drain too, whoever drained.
      hold.drain = state == "DRAIN" || (state == "DOWN" && node.drain) || (hold.drain && !frees);
      // UNDRAIN leaves a DOWN as it is, be it a preStop's, and over it the reason of the drain: as if he had set it.
      const bool left_down = state == "UNDRAIN" && node.down && down_by_somebody(node.reason);
      hold.down = state == "DOWN" || left_down || (hold.down && (!frees || state == "UNDRAIN"));
      return;
    }
    if (user == "slurm" && state == "DRAIN" && !node.drain) drains_.drained(cluster, node, update.reason.value_or(""));
    const auto asked = asked_.find(node.name);
    const bool unseen = asked != asked_.end() && node.own_drain && *node.own_drain >= asked->second.at;
    if (frees && user == "slurm" && node.own_drain && !unseen)
      violation(fmt::format("{} of node {}, which Slurm itself had drained (reason \"{}\")", state, node.name, node.reason));
    // From here on it takes jobs by the operator's own word.
    if (frees && asked != asked_.end()) asked->second.idle_and_held = false;
    if (!hold.drain && !hold.down) return;
    if (state == "DRAIN" && !update.reason) hold.drain = true;
    // Slurm has no conditional write: what an admin does between our look and our write is lost.
    if ((frees || (update.reason && user == "slurm")) && asked != asked_.end() && hold.since >= asked->second.at) {
      foreign_.erase(place);
      return;
    }
    if (frees) {
      violation(
          fmt::format("{} of node {}, which an admin had drained (its reason now: \"{}\")", state, node.name, node.reason));
      foreign_.erase(place);
    } else if (update.reason && user == "slurm") {
      violation(fmt::format("the reason of node {}, which an admin had drained, was written over", node.name));
    }
  };
  cluster.slurm->on_return = [this, &cluster](const SimNode& node) {
    const auto hold = foreign_.find({cluster.controller, node.name});
    if (hold != foreign_.end() && hold->second.down)
      violation("node " + node.name + ", which an admin had set DOWN, was returned to service by its registration");
  };
  cluster.slurm->on_delete = [this, &cluster](const SimNode& node, const std::vector<const SimJob*>& jobs,
                                              const std::string& user) {
    note("node " + node.name + " deleted from Slurm");
    abandoned_.erase({cluster.controller, node.name});
    if (!jobs.empty()) {
      violation(fmt::format("the record of node {} was deleted under job {} ({})", node.name, jobs.front()->id,
                            to_string(jobs.front()->state)));
    } else if (!user.empty() && user != kSlurmAdmin) {
      record_deletion(cluster, node);
      jobs_.fenced(node);
    }
    foreign_.erase({cluster.controller, node.name});
  };
}

// --- The end ----------------------------------------------------------------------------------------------------------

void Oracles::unmet_nodeset(const Json& nodeset, std::vector<std::string>& out) const {
  const std::string ns = namespace_of(nodeset), name = name_of(nodeset);
  const kube::Key controller{ns, text_at(nodeset, {"spec", "controllerRef", "name"})};
  const Json* owner = api_.peek(op::resources::kController, controller);
  if (owner == nullptr) return;  // Nothing can be run without one.
  const auto site = site_.clusters().find(op::controller_object_name(controller.name) + "." + ns);
  const SimSlurm* slurm = site == site_.clusters().end() ? nullptr : site->second->slurm.get();
  const std::int64_t wanted = core::get_int(nodeset, {"spec", "replicas"}, 1);
  std::int64_t have = 0;
  // Of those that somebody took from work, it is his to give them back: they keep nothing from being ready, but all of them do.
  int usable = 0, aside = 0, others = 0;
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (key.ns != ns || !is_worker(pod) || label(pod, api::kLabelInstance) != name) continue;
    if (terminating(pod) || ended(pod)) {
      out.push_back("pod " + key.str() + " is on its way out");
      continue;
    }
    ++have;
    const std::string node_name = slurm_node_of(pod);
    const SimNode* node = slurm == nullptr ? nullptr : slurm->node(node_name);
    if (!condition_true(pod, "Ready")) out.push_back("pod " + key.str() + " is not ready");
    if (node == nullptr) {
      out.push_back("pod " + key.str() + " has no node in Slurm");
      continue;
    }
    // A kubelet that is cut off cannot say that its pod has failed.
    if (!runs_slurmd(*site->second, node_name, pod)) out.push_back("pod " + key.str() + " has no slurmd");
    const bool cordoned = annotation(pod, api::kAnnotationPodCordon) == "true" || [&] {
      const Json* host = api_.peek(kinds::kNode, {"", text_at(pod, {"spec", "nodeName"})});
      return host != nullptr && core::get_bool(*host, {"spec", "unschedulable"});
    }();
    const auto held = foreign_.find({controller, node_name});
    const Hold hold = held == foreign_.end() ? Hold{} : held->second;
    const bool taken = !node->invalid_reg && (hold.drain || hold.down || cordoned);
    ++(slurm->usable(*node) ? usable : taken ? aside : others);
    if (hold.drain || hold.down) {
      if (hold.drain && !node->drain)
        out.push_back("node " + node_name + " is not drained any more, though its admin did not free it");
      if (hold.down && !node->down)
        out.push_back("node " + node_name + " is not down any more, though its admin did not free it");
    } else if (cordoned) {
      // One that Slurm itself set DOWN takes no jobs either, and keeps Slurm's reason for that.
      if (!node->drain && !node->down) out.push_back("node " + node_name + " is not drained, though cordoned");
    } else if (!slurm->usable(*node)) {
      out.push_back("node " + node_name + " is not usable: " + shown(*slurm, *node));
    }
  }
  if (have != wanted) out.push_back(fmt::format("NodeSet {}/{} has {} workers of {}", ns, name, have, wanted));
  if (core::get_int(nodeset, {"status", "observedGeneration"}) != core::get_int(nodeset, {"metadata", "generation"})) {
    out.push_back("the status of NodeSet " + key_of(nodeset) + " is of an older generation");
  }
  if (core::get_int(nodeset, {"status", "replicas"}) != wanted)
    out.push_back("status.replicas of NodeSet " + key_of(nodeset) + " is wrong");
  const bool ready = others == 0 && (usable > 0 || aside == 0);
  if (condition_true(nodeset, api::kConditionReady) != ready && have == wanted) {
    out.push_back(fmt::format("Ready of NodeSet {} is wrong: {} usable, {} taken from work, {} otherwise not", key_of(nodeset),
                              usable, aside, others));
  }
}

void Oracles::unmet_slurm(const SlurmSite::Cluster& cluster, std::vector<std::string>& out) const {
  const Json* owner = api_.peek(op::resources::kController, cluster.controller);
  if (owner == nullptr) return;
  if (!cluster.slurm->up()) {
    out.push_back("slurmctld of " + cluster.controller.str() + " is down");
    return;
  }
  for (const auto& [name, node] : cluster.slurm->nodes()) {
    const std::string& node_name = name;
    const auto& pods = api_.store().all("pods");
    const bool has_pod = std::any_of(pods.begin(), pods.end(), [&](const auto& entry) {
      const Json& pod = entry.second->body;
      return is_worker(pod) && kube::Key{entry.first.ns, label(pod, api::kLabelCluster)} == cluster.controller &&
             slurm_node_of(pod) == node_name;
    });
    // The state of a cluster that ended may come back with one made anew, and slurmctld when a NodeSet is gone. Whose workers'
    // records are in it is told by their comments, our reasons, and NodeSets of their features; of others nobody can tell.
    const bool nameless = node.down && node.comment.empty() && !given_by_operator(node.reason) &&
                          std::ranges::none_of(node.features, [&](const std::string& feature) {
                            return api_.peek(op::resources::kNodeSet, {cluster.controller.ns, feature}) != nullptr;
                          });
    if (nameless && abandoned_.contains({cluster.controller, name})) continue;
    // An admin's word outlives the worker. Where Slurm refuses the slurmd, the reason tells whose it is: Slurm writes over an
    // admin's, and before 26.05 one that was left over looks like it.
    const auto held = foreign_.find({cluster.controller, name});
    const bool others = node.invalid_reg ? !given_by_operator(node.reason) && !tells_lack(node.reason)
                                         : held != foreign_.end() && (held->second.drain || held->second.down);
    if (others) continue;
    if (!has_pod) out.push_back("node " + name + " is a record without a pod: " + shown(*cluster.slurm, node));
  }
}

void Oracles::unmet_controller(const kube::Key& key, const Json& object, std::vector<std::string>& out) const {
  if (!condition_true(object, api::kConditionReady)) out.push_back("Controller " + key.str() + " is not Ready");
  for (const char* type : {"ConfigAccepted", "SecretsReady"}) {
    if (!condition_true(object, type)) out.push_back(fmt::format("{} of Controller {} is not True", type, key.str()));
  }
  if (condition_true(object, api::kConditionDegraded)) out.push_back("Controller " + key.str() + " is Degraded");
  const Json* map = api_.peek(kinds::kConfigMap, {key.ns, op::config_map_name(key.name)});
  const SlurmSite::Cluster* cluster = site_.find(key);
  if (cluster == nullptr || !cluster->slurm->up()) return;
  const std::string conf = map == nullptr ? "" : text_at(*map, {"data", "slurm.conf"});
  if (cluster->slurm->configuration() != conf) {
    out.push_back("slurmctld of " + key.str() + " runs with another configuration than the ConfigMap's");
  }
  // No history asks for that.
  for (const auto& [name, partition] : cluster->slurm->partitions()) {
    if (partition.state == "DRAIN") out.push_back("partition " + name + " is withheld still");
  }
  unmet_inputs(*cluster, object, out);
}

std::optional<std::string> Oracles::secret_value(const kube::Key& key, const std::string& field) const {
  const Json* secret = api_.peek(kinds::kSecret, key);
  if (secret == nullptr) return {};
  const auto bytes = core::base64_decode(text_at(*secret, {"data", field}));
  return bytes ? std::optional(*bytes) : std::nullopt;
}

/// slurmctld runs with the keys, files and scripts that the Controller names, as they are now.
void Oracles::unmet_inputs(const SlurmSite::Cluster& cluster, const Json& object, std::vector<std::string>& out) const {
  const std::string ns = namespace_of(object);
  const auto controller = api::from_json<api::Controller>(object);
  if (!controller) return;
  const api::ControllerSpec& spec = controller->spec;
  const op::KeyRef jwt = op::jwt_key_ref(spec, name_of(object));
  if (secret_value({ns, jwt.secret}, jwt.key) != cluster.jwt_key) {
    out.push_back("slurmctld runs with another key than Secret " + jwt.secret + " has");
  }
  // What it has read, or, for scripts that it reads whenever it runs them, what is there to be read.
  const auto there = cluster.pod->files(std::string(op::kAppController), "/etc/slurm");
  const auto check = [&](const std::map<std::string, std::string>& files, const std::string& map, const std::string& key,
                         const std::string& path) {
    const Json* source = api_.peek(kinds::kConfigMap, {ns, map});
    const auto file = files.find(path);
    const bool same = source != nullptr && file != files.end() && file->second == text_at(*source, {"data", key});
    if (!same) out.push_back(fmt::format("slurmctld has another {} than ConfigMap {}", path, map));
  };
  const auto check_all = [&](const std::map<std::string, std::string>& files, const api::LocalObjectReference& ref,
                             std::set<std::string>& names) {
    const Json* map = api_.peek(kinds::kConfigMap, {ns, ref.name});
    if (map == nullptr) return out.push_back("ConfigMap " + ref.name + " does not exist");
    for (const auto& [name, text] : (*map)["data"].items()) {
      names.insert(name);
      check(files, ref.name, name, name);
    }
  };
  std::set<std::string> ignored;
  for (const api::LocalObjectReference& ref : spec.config_file_refs) check_all(cluster.etc, ref, ignored);
  if (spec.jwks_key_ref) check(cluster.etc, spec.jwks_key_ref->name, spec.jwks_key_ref->key, "jwks.json");
  struct Scripts {
    const char* key;
    const char* directory;
    const std::vector<api::LocalObjectReference>& refs;
    const std::map<std::string, std::string>& files;
  };
  for (const Scripts& scripts : {Scripts{"Prolog", "", spec.prolog_script_refs, cluster.etc},
                                 {"Epilog", "", spec.epilog_script_refs, cluster.etc},
                                 {"PrologSlurmctld", "/etc/slurm/", spec.prolog_slurmctld_script_refs, there},
                                 {"EpilogSlurmctld", "/etc/slurm/", spec.epilog_slurmctld_script_refs, there}}) {
    std::set<std::string> names;
    for (const api::LocalObjectReference& ref : scripts.refs) check_all(scripts.files, ref, names);
    std::string wanted, loaded;
    for (const std::string& name : names) wanted += fmt::format("{}={}{}\n", scripts.key, scripts.directory, name);
    for (const std::string& line : lines_of(cluster.slurm->configuration())) {
      if (line.starts_with(std::string(scripts.key) + "=")) loaded += line + "\n";
    }
    if (loaded != wanted) out.push_back(fmt::format("slurmctld has \"{}\", and ConfigMaps say \"{}\"", loaded, wanted));
  }
}

void Oracles::unmet_token(const Json& object, std::vector<std::string>& out) const {
  const std::string ns = namespace_of(object), who = "Token " + key_of(object);
  const auto token = api::from_json<api::Token>(object);
  if (!token || token->spec.jwt_key() == nullptr) return out.push_back(who + " cannot be read");
  const api::TokenSpec& spec = token->spec;
  if (token->status.observed_generation != core::get_int(object, {"metadata", "generation"})) {
    out.push_back("the status of " + who + " is of an older generation");
  }
  const api::SecretKeySelector target = api::token_secret(spec, name_of(object));
  for (const auto& [at, secret] : api_.store().all(table_name(kinds::kSecret))) {
    const bool its = owner_uid(secret->body, "Token") == text_at(object, {"metadata", "uid"});
    if (its && at.name != target.name) out.push_back(fmt::format("Secret {} is left of {}", at.str(), who));
  }
  const auto key = secret_value({ns, spec.jwt_key()->name}, spec.jwt_key()->key);
  const auto text = secret_value({ns, target.name}, target.key);
  if (!key || !text) return out.push_back(who + (key ? " has no token" : " has no key to be signed with"));
  const auto claims = verify_token(*text, *key);
  if (!claims) return out.push_back("the token of " + who + " is not signed by its key");
  const core::Duration issued{core::get_int(*claims, {"iat"}) * 1000}, expires{core::get_int(*claims, {"exp"}) * 1000};
  if (text_at(*claims, {"sun"}) != spec.username) out.push_back("the token of " + who + " is another user's");
  if (expires - issued != spec.lifetime.value_or(api::kDefaultTokenLifetime)) {
    out.push_back("the token of " + who + " has another lifetime");
  }
  const Json& secret = *api_.peek(kinds::kSecret, {ns, target.name});
  if (core::get_bool(secret, {"immutable"}) == spec.refresh) {
    out.push_back(fmt::format("the Secret of {} {} change", who, spec.refresh ? "cannot" : "can"));
  }
  // When it was asked for and when it was signed may be a moment apart.
  constexpr core::Duration kMoment{10000};
  const core::Duration left = expires - loop_.clock().wall().since_epoch;
  if (spec.refresh && left <= core::Duration{0}) out.push_back("the token of " + who + " has expired");
  if (!spec.refresh && left < kMoment && left > -kMoment) return;
  const bool good = spec.refresh || left > core::Duration{0};
  if (condition_true(object, api::kConditionReady) != good || condition_true(object, api::kConditionDegraded) == good) {
    out.push_back(fmt::format("Ready or Degraded of {} is wrong: its token is {}", who, good ? "good" : "not"));
  }
}

std::vector<std::string> Oracles::unmet() const {
  std::vector<std::string> out;
  const auto of_kind = [&](const kube::Resource& resource, const auto& check) {
    for (const auto& [key, stored] : api_.store().all(table_name(resource))) {
      if (!acts_in(key.ns)) continue;
      if (terminating(stored->body)) {
        out.push_back(resource.kind + " " + key.str() + " is still being deleted");
        continue;
      }
      check(key, stored->body);
    }
  };
  of_kind(op::resources::kController, [&](const kube::Key& key, const Json& object) { unmet_controller(key, object, out); });
  of_kind(op::resources::kRestApi, [&](const kube::Key& key, const Json& object) {
    const kube::Key controller{key.ns, text_at(object, {"spec", "controllerRef", "name"})};
    if (api_.peek(op::resources::kController, controller) == nullptr) return;
    if (!condition_true(object, api::kConditionReady)) out.push_back("RestApi " + key.str() + " is not Ready");
    if (condition_true(object, api::kConditionDegraded)) out.push_back("RestApi " + key.str() + " is Degraded");
  });
  of_kind(op::resources::kNodeSet, [&](const kube::Key& key, const Json& object) {
    unmet_nodeset(object, out);
    (void)key;
  });
  of_kind(op::resources::kToken, [&](const kube::Key& key, const Json& object) {
    unmet_token(object, out);
    (void)key;
  });
  for (const auto& [host, cluster] : site_.clusters()) unmet_slurm(*cluster, out);
  // Left behind by a NodeSet that went alone: what slurm.conf says of it goes with it.
  for (const auto& [key, stored] : api_.store().all("pods")) {
    const Json& pod = stored->body;
    if (!acts_in(key.ns) || !is_worker(pod) || !terminating(pod)) continue;
    if (api_.peek(op::resources::kNodeSet, {key.ns, label(pod, api::kLabelInstance)}) == nullptr)
      out.push_back("pod " + key.str() + " is on its way out");
  }
  // Orphans: children whose owner is gone.
  for (const std::string& table : api_.store().tables()) {
    for (const auto& [key, stored] : api_.store().all(table)) {
      const Json* owners = core::find(stored->body, {"metadata", "ownerReferences"});
      if (owners == nullptr) continue;
      for (const Json& owner : *owners) {
        const std::string kind = text_at(owner, {"kind"});
        for (const kube::Resource* resource :
             {&op::resources::kController, &op::resources::kRestApi, &op::resources::kNodeSet, &op::resources::kToken}) {
          if (resource->kind != kind) continue;
          const Json* object = api_.peek(*resource, {key.ns, text_at(owner, {"name"})});
          if (object == nullptr || text_at(*object, {"metadata", "uid"}) != text_at(owner, {"uid"})) {
            out.push_back(table + " " + key.str() + " is an orphan of " + kind + " " + text_at(owner, {"name"}));
          }
        }
      }
    }
  }
  return out;
}

namespace {

/// What is not the same from one history to the next, wherever it stands.
void without_chance(Json& value) {
  static const std::set<std::string> kLeftOut{
      // Drawn, or counted, by the API server.
      "uid", "nodeSetUID", "resourceVersion", "generation", "observedGeneration", "managedFields", "restartCount",
      // Of the clock.
      "creationTimestamp", "lastTransitionTime", "lastUpdateTime", "lastProbeTime", "startTime", "startedAt", "finishedAt",
      // Whichever was free: Kubernetes nodes, addresses, volumes. In the comments of Slurm nodes it is "node".
      "nodeName", "node", "podIP", "podIPs", "hostIP", "hostIPs", "clusterIP", "clusterIPs", "volumeName", "containerID"};
  // The keys of a cluster are drawn, so are the digests of them, and of what has such digests in it: that they are there
  // counts.
  static const std::set<std::string> kDrawn{std::string(api::kAnnotationSlurmKeyHash), std::string(api::kAnnotationJwtKeyHash),
                                            "pod-template-hash", "currentRevision", "updateRevision"};
  if (value.is_object()) {
    std::erase_if(value.get_ref<Json::object_t&>(), [](const auto& entry) { return kLeftOut.contains(entry.first); });
    for (const auto& [key, child] : value.items()) {
      if (kDrawn.contains(key)) child = "(drawn)";
    }
  }
  if (value.is_structured()) {
    for (Json& child : value) without_chance(child);
  }
}

/// An object's name, and what of it must be the same. Conditions stand in the order in which they were written first.
std::pair<std::string, Json> lasting(const std::string& table, const kube::Key& key, Json body) {
  without_chance(body);
  Json& meta = body["metadata"];
  std::string name = table + " " + key.str();
  const bool of_deployment = core::find(meta, {"labels", "pod-template-hash"}) != nullptr;
  if (of_deployment) {  // Names of ReplicaSets and of their pods are drawn.
    name = table + " of " + label(body, api::kLabelName);
    for (const char* named : {"name", "generateName", "ownerReferences"}) meta.erase(named);
    if (body["spec"].contains("selector")) body["spec"].erase("selector");
  }
  if (table == "secrets" && body.contains("data")) {
    for (Json& value : body["data"]) value = "(drawn)";
    if (meta["annotations"].contains(api::kAnnotationDataHash))
      meta["annotations"][std::string(api::kAnnotationDataHash)] = "(drawn)";
  }
  const bool tells_keys = table == "configmaps" && meta["annotations"].contains(api::kAnnotationSlurmKeyHash);
  if (table == "statefulsets.apps" || table == "deployments.apps" || tells_keys)
    meta["annotations"][std::string(kube::kIntentHash)] = "(drawn)";
  // How often a kubelet was hurried on: the number behind the digest.
  const std::string refresh = annotation(body, api::kAnnotationConfigRefresh);
  if (!refresh.empty()) meta["annotations"][std::string(api::kAnnotationConfigRefresh)] = refresh.substr(0, refresh.find('.'));
  if (table == "pods" && !is_worker(body) && meta["labels"].contains(api::kLabelRevisionHash)) {
    meta["labels"][std::string(api::kLabelRevisionHash)] = "(drawn)";
  }
  if (core::find(body, {"status", "conditions"}) != nullptr) {
    Json& conditions = body["status"]["conditions"];
    std::sort(conditions.begin(), conditions.end(),
              [](const Json& a, const Json& b) { return text_at(a, {"type"}) < text_at(b, {"type"}); });
  }
  return {std::move(name), std::move(body)};
}

}  // namespace

Json Oracles::final_state() const {
  Json out = Json::object();
  for (const std::string& table : api_.store().tables()) {
    const bool about_time = table.starts_with("events") || table.starts_with("leases") || table.starts_with("endpointslices");
    if (about_time) continue;
    for (const auto& [key, stored] : api_.store().all(table)) {
      auto [name, object] = lasting(table, key, stored->body);
      out[name] = std::move(object);
    }
  }
  for (const auto& [host, cluster] : site_.clusters()) {
    const SimSlurm& slurm = *cluster->slurm;
    for (const auto& [name, node] : slurm.nodes()) {
      Json comment = core::parse_json(node.comment).value_or(Json(node.comment));
      without_chance(comment);
      out["slurm " + host + " " + name] = {{"state", slurm.state_words(node)}, {"reason", node.reason},
                                           {"comment", std::move(comment)},    {"extra", node.extra},
                                           {"features", node.features},        {"partitions", node.partitions}};
    }
    out["slurm " + host] = {{"configuration", slurm.configuration()}};
  }
  return out;
}

Json Oracles::starts() const {
  Json out = site_.starts();
  for (const auto& [name, times] : made_) out["pod " + name] = times;
  return out;
}

Admission worker_policy() {
  return [](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || !(request.resource == kinds::kPod) || request.before == nullptr) return {};
    const Json& pod = *request.before;
    if (!is_worker(pod)) return {};
    if (!request.user.ends_with(":generic-garbage-collector") && !request.user.ends_with(":namespace-controller")) return {};
    if (!annotation(pod, api::kAnnotationDeletionEvidence).empty() || terminating(pod) || ended(pod) || never_started(pod))
      return {};
    return make_status(403, "Forbidden", "worker " + request.key.str() + " may run jobs: slurm-operator has not released it",
                       &request.resource, request.key.name);
  };
}

Admission busy_policy() {
  return [](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || !(request.resource == kinds::kPod) || request.before == nullptr) return {};
    const Json& pod = *request.before;
    if (request.user != "system:kube-scheduler" || !is_worker(pod) || label(pod, api::kLabelPodBusy) != "true") return {};
    const bool released = annotation(pod, api::kAnnotationPodRelease) == "true" ||
                          core::find(pod, {"metadata", "annotations", api::kAnnotationDeletionEvidence}) != nullptr;
    if (released || terminating(pod) || ended(pod)) return {};
    return make_status(403, "Forbidden", "worker " + request.key.str() + " runs jobs", &request.resource, request.key.name);
  };
}

namespace {

/// It is being deleted, and waits for the operator.
bool ends(const Json& object, std::string_view finalizer) {
  return terminating(object) && kube::has_finalizer(object, finalizer);
}

bool owned_by(const Json& object, const std::string& uid) {
  const Json* owners = core::find(object, {"metadata", "ownerReferences"});
  return owners != nullptr &&
         std::any_of(owners->begin(), owners->end(), [&](const Json& owner) { return text_at(owner, {"uid"}) == uid; });
}

}  // namespace

Admission cluster_policy(const KubeApi& api) {
  return [&api](const AdmissionRequest& request) -> std::optional<Refusal> {
    if (request.operation != "DELETE" || request.before == nullptr || terminating(*request.before)) return {};
    const bool cleaner = request.user.ends_with(":namespace-controller");
    if (!cleaner && !request.user.ends_with(":generic-garbage-collector")) return {};
    const bool restapi = request.resource == op::resources::kRestApi;
    const std::string app = label(*request.before, api::kLabelName);
    if (!restapi) {
      if (app != op::kAppController && app != op::kAppRestApi && app != op::kAppWorker) return {};
      if (request.resource == kinds::kPod && app == op::kAppWorker) return {};
      static const std::set<std::string> kept{"Pod",    "Service",     "Endpoints",  "EndpointSlice", "ConfigMap",
                                              "Secret", "StatefulSet", "Deployment", "ReplicaSet"};
      if (!kept.contains(request.resource.kind)) return {};
    }
    const auto refuse = [&](const std::string& why) {
      return make_status(403, "Forbidden", why, &request.resource, request.key.name);
    };
    const Json* space = api.peek(kinds::kNamespace, {"", request.key.ns});
    const bool namespace_ends = cleaner || (space != nullptr && terminating(*space));
    for (const auto& [key, stored] : api.store().all(table_name(op::resources::kController))) {
      if (key.ns != request.key.ns || text_at(stored->body, {"spec", "deletionPolicy"}) != "Drain") continue;
      if (!namespace_ends && (restapi || !ends(stored->body, api::kFinalizerController))) continue;
      return refuse("Controller " + key.str() + " has deletionPolicy: Drain, its workers are not gone yet");
    }
    if (namespace_ends || app != op::kAppRestApi ||
        (request.resource.kind != "Service" && request.resource.kind != "Deployment"))
      return {};
    for (const auto& [key, stored] : api.store().all(table_name(op::resources::kRestApi))) {
      if (key.ns != request.key.ns || !ends(stored->body, api::kFinalizerRestApi)) continue;
      if (!owned_by(*request.before, text_at(stored->body, {"metadata", "uid"}))) continue;
      return refuse("RestApi " + key.str() + " serves NodeSets that are being drained");
    }
    return {};
  };
}

}  // namespace sim
