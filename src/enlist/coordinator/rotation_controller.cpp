#include "enlist/coordinator/rotation_controller.hpp"

#include <algorithm>
#include <utility>

#include "enlist/coordinator/pools_acts.hpp"

namespace enlist {
namespace {

/// The length of a new key: twice that of a hash of HS256.
constexpr std::size_t kFreshKeyBytes = 64;
/// The bits that the mode of the key file may have. Slurm refuses a key file that is open to others.
constexpr unsigned kKeyMode = 0770;

const run::Key kAuthKey{"", "auth key"};

/// Opens when a reading has ended that began after the write.
class KeyReadGate final : public plan::Gate {
 public:
  explicit KeyReadGate(const SlurmFiles& files) : files_(files), begun_(files.begun()) {}
  [[nodiscard]] bool open() const override { return files_.ended() > begun_; }
  [[nodiscard]] std::string describe() const override { return "the file of the auth key is read again"; }

 private:
  const SlurmFiles& files_;
  std::uint64_t begun_;
};

core::Result<void> write_keys(Host& host, const std::filesystem::path& slurm_conf, const WriteAuthKey& act,
                              const std::string& fresh) {
  const core::Result<AuthKey> now = read_auth_key(host, slurm_conf);
  if (!now) return std::unexpected(now.error());
  if (now->revision != act.revision)
    return core::fail(core::ErrorCode::kConflict, now->file + " has changed since it was looked at");
  const core::Result<std::string> text = changed_keys(now->content, act.change, fresh);
  if (!text) return std::unexpected(text.error());
  const std::filesystem::path folder = slurm_conf.parent_path();
  return host.write_as(folder / kJwksFile, *text, kKeyMode, folder / kJwksFile);
}

core::Result<Changes> record_rotation(const Contents& now, const RecordRotation& act) {
  const auto found = now.values.find(kRotationValue);
  if (found == now.values.end() || found->second != act.seen)
    return core::fail(core::ErrorCode::kConflict, "the rotation has changed since");
  return Changes{.values = {{kRotationValue, act.next}}};
}

std::string short_name(std::string_view host) {
  return std::string(host.substr(0, host.find('.')));
}

}  // namespace

std::vector<KeyHolder> key_holders(const SlurmFacts& facts, const std::string& own_host, const std::set<std::string>& also) {
  std::vector<KeyHolder> out;
  const auto add = [&](const std::string& host, const std::string& what) {
    const auto found = std::ranges::find(out, host, &KeyHolder::host);
    if (found == out.end()) {
      const bool here = host == "localhost" || short_name(host) == short_name(own_host);
      out.push_back({host, what, here});
    } else {
      found->what += ", and " + what;
    }
  };
  if (facts.controller_names.size() > 1) {
    for (const std::string& name : facts.controller_names) {
      if (short_name(name) != short_name(own_host)) add(name, "restart slurmctld");
    }
  }
  for (const std::string& host : facts.accounting_hosts) add(host, "restart slurmdbd");
  for (const std::string& host : also) {
    // Hosts that slurm.conf names are in the list already.
    if (std::ranges::find(out, host, &KeyHolder::host) == out.end()) add(host, "reload sackd");
  }
  return out;
}

RotationController::RotationController(core::Loop& loop, Store& store, slurm::Clusters& clusters, slurm::ClusterKey cluster,
                                       SlurmFiles& files, std::string own_host, std::function<void(const run::Key&)> wake)
    : TypedController(plan_rotation),
      loop_(loop),
      store_(store),
      clusters_(clusters),
      cluster_(std::move(cluster)),
      files_(files),
      own_host_(std::move(own_host)),
      wake_(std::move(wake)) {}

void RotationController::wake() {
  const auto state = store_.contents().values.find(kRotationValue);
  if (state == store_.contents().values.end()) return;
  if (core::get_string(state->second, {"phase"}) != to_string(RotationPhase::kEnded)) wake_(kAuthKey);
}

void RotationController::changed(const Changes& changes) {
  if (!changes.nodes.empty() || changes.values.contains(kRotationValue) || changes.values.contains(kRolloutValue)) wake();
}

void RotationController::changed(const slurm::Change& change) {
  if (change.cluster == cluster_) wake();
}

std::shared_ptr<const RotationObserved> RotationController::observe_typed(const run::Key&, run::Recorder&,
                                                                          const run::Observation& context) {
  outcomes_ = context.outcomes;
  return observed(context);
}

std::shared_ptr<const RotationObserved> RotationController::observed(const plan::Context& context) {
  const Contents& contents = store_.contents();
  auto out = std::make_shared<RotationObserved>(RotationObserved{.context = context, .cluster = cluster_});
  const auto value = contents.values.find(kRotationValue);
  if (value == contents.values.end()) return out;
  out->state = value->second;
  out->keys = files_.keys();
  out->pools = contents.pools;
  out->nodes = contents.nodes;
  if (const auto found = contents.values.find(kRolloutValue); found != contents.values.end()) out->pool_file = found->second;
  out->slurm = clusters_.snapshot(cluster_);
  const auto state = rotation_from(*out->state);
  if (!state) return out;
  if (files_.facts()) {
    out->others = key_holders(*files_.facts(), own_host_, state->also);
    out->lifetime = std::chrono::seconds(files_.facts()->signed_for_s);
  } else {
    // Without slurm.conf, the other holders of the key are unknown, so the rotation must not go on.
    out->keys = std::unexpected(files_.facts().error());
  }
  std::string phase;
  if (state->settled != core::WallTime{}) phase = std::string(to_string(state->phase)) + core::format_rfc3339(state->settled);
  if (phase != settled_phase_) {
    settled_phase_ = phase;
    settled_since_ = phase.empty() ? std::nullopt : std::optional(context.mono);
  }
  out->settled_since = settled_since_;
  return out;
}

core::Json RotationController::status() {
  plan::Context context;
  context.now = loop_.clock().wall();
  context.mono = loop_.clock().mono();
  context.outcomes = outcomes_;
  return rotation_status(*observed(context));
}

RotationTarget::RotationTarget(core::Loop& loop, core::Random& random, core::Logger& log, Store& store, Host& host,
                               SlurmFiles& files)
    : loop_(loop), random_(random), log_(log), host_(host), files_(files) {
  carries_out<RecordRotation>([this, &store](const auto& act, const Done& done) {
    store.commit([act](const Contents& now) { return record_rotation(now, *act); },
                 [this, act, done](const core::Result<void>& result) {
                   if (!result) return done({std::unexpected(result.error()), {}});
                   log_.info("the rotation of the auth key", {{"phase", core::get_string(act->next, {"phase"})}});
                   done({core::Json::object(), {}});
                 });
  });
  carries_out<WriteAuthKey>([this](const auto& act, Done done) { write(*act, std::move(done)); });
}

void RotationTarget::write(const WriteAuthKey& act, Done done) {
  const auto result = std::make_shared<core::Result<void>>();
  loop_.offload([&host = host_, file = files_.slurm_conf(), act, result,
                 fresh = random_.bytes(kFreshKeyBytes)] { *result = write_keys(host, file, act, fresh); },
                [this, signer = act.change.signer, result, done = std::move(done)] {
                  const auto gate = std::make_shared<KeyReadGate>(files_);
                  files_.start();
                  if (!*result) return done({std::unexpected(result->error()), {gate}});
                  log_.info("the file of the auth key is written", {{"signs", signer}});
                  done({core::Json::object(), {gate}});
                });
}

}  // namespace enlist
