#include "enlist/agent/machine.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/hash.hpp"
#include "enlist/agent/memory_file.hpp"
#include "enlist/host/spawn.hpp"
#include "enlist/rules/node_conf.hpp"
#include "enlist/rules/service_files.hpp"

namespace enlist {

namespace {

using core::ErrorCode;
using namespace std::chrono_literals;

// How often the host is read: while slurmd starts, while the node is joining or leaving, and at rest.
constexpr core::Duration kLookAtStart{250}, kLookOnTheWay{1000}, kLookAtRest{10000};
constexpr core::Duration kStarts{5000};       ///< For this long after an act, slurmd counts as starting.
constexpr core::Duration kCheckAgain{5000};   ///< The pause after a check that did not pass.
constexpr core::Duration kFactsAgain{10000};  ///< How often facts are read while slurmd is down. A driver may load late.
constexpr core::Duration kFactsLate{60000};   ///< How often facts are read while slurmd runs and its node is invalid.
/// How long a reload may take: slurmd first completes the requests that it handles, and their prologs.
constexpr core::Duration kReloads{120'000};
constexpr std::array kKeyFiles = {kPlainKeyFile, kJwksFile};

/// Opens when a reading of the host has ended that began after the act. An earlier reading may not show the act's effect.
class LookGate final : public plan::Gate {
 public:
  explicit LookGate(const Machine& machine) : machine_(machine), begun_(machine.begun()) {}
  [[nodiscard]] bool open() const override { return machine_.ended() > begun_; }
  [[nodiscard]] std::string describe() const override { return "the host is read again"; }

 private:
  const Machine& machine_;
  std::uint64_t begun_;
};

std::string first_line(std::string_view text) {
  return std::string(text.substr(0, text.find('\n')));
}

core::Result<std::string> said_by(Host& host, const std::vector<std::string>& arguments) {
  std::string what;
  for (const std::string& word : arguments) what += (what.empty() ? "" : " ") + word;
  const auto output = host.run(arguments, 10s, "");
  if (!output) return std::unexpected(output.error());
  if (output->status == 0) return output->out;
  const std::string said = telling_lines(output->err);
  return core::fail(ErrorCode::kUnavailable,
                    what + ": " + (said.empty() ? "exit code " + std::to_string(output->status) : said));
}

core::Result<std::string> version_of(Host& host, const std::string& slurmd) {
  const auto said = said_by(host, {slurmd, "-V"});  // "slurm 26.05.1"
  if (!said) return std::unexpected(said.error());
  const std::string line = first_line(*said);
  return line.substr(line.rfind(' ') + 1);
}

/// Returns a text that changes when the program's file is replaced: its device, inode, size and time. "": not known.
std::string file_of(Host& host, const std::string& program) {
  const auto said = said_by(host, {"stat", "-L", "-c", "%d %i %s %Y", program});
  return said ? first_line(*said) : "";
}

/// Reads the release of slurmd after its file was replaced. Does not run `slurmd -C` again, because other values would restart
/// the running slurmd. Returns false if the release cannot be read yet, because the file is just being replaced.
bool read_release(Host& host, const MachineOptions& options, Seen& seen) {
  auto version = version_of(host, options.slurmd);
  if (version && seen.facts) seen.facts->slurm_version = *std::move(version);
  return version.has_value();
}

core::Result<std::string> digest_of_key(Host& host, const std::filesystem::path& folder, std::string_view file) {
  if (file.empty()) return std::string();
  const auto content = host.read(folder / file);
  if (!content && content.error().code == ErrorCode::kNotFound) return std::string();
  if (!content) return std::unexpected(content.error());
  return core::sha256_hex(*content);
}

core::Result<SlurmdSeen> see_slurmd(Service& service) {
  auto state = service.state();
  if (!state) return std::unexpected(state.error());
  return SlurmdSeen{state->running, state->changing,         std::move(state->error), std::move(state->arguments),
                    state->started, std::move(state->image), state->file_missing,     state->keeps_plain_key};
}

/// Reads the facts again while slurmd runs. Other settings for --conf restart slurmd, so does nothing while a job step runs.
void read_late_facts(Host& host, Service& service, const MachineOptions& options, Seen& seen) {
  const auto steps = service.steps();
  if (!steps || !steps->empty()) return;
  if (auto facts = read_facts(host, options)) seen.facts = std::move(facts);
}

/// Removes a key file if its content is what this program wrote. In any case, removes the temporary files of a write of this
/// file that was killed.
core::Result<void> remove_key(Host& host, const MachineOptions& options, const Memory& memory, std::string_view name) {
  const auto file = options.slurm_folder / name;
  if (auto done = host.remove_leftovers(file); !done) return done;
  const auto digest = digest_of_key(host, options.slurm_folder, name);
  if (!digest) return std::unexpected(digest.error());
  if (!wrote(memory, name, *digest)) return {};
  return host.remove(file);
}

/// If the key is in slurm.key, removes a slurm.jwks that this program wrote, because slurmd would prefer it. Error: kConflict
/// if the slurm.jwks is somebody else's.
core::Result<void> remove_former_jwks(Host& host, const MachineOptions& options, const Memory& memory) {
  if (memory.key.file != kPlainKeyFile) return {};
  if (auto removed = remove_key(host, options, memory, kJwksFile); !removed) return removed;
  const auto left = digest_of_key(host, options.slurm_folder, kJwksFile);
  if (!left) return std::unexpected(left.error());
  if (!left->empty()) return core::fail(ErrorCode::kConflict, foreign_key((options.slurm_folder / kJwksFile).string()));
  return {};
}

/// Saves the memory and writes the key file. Fails if the key file has the key of somebody else: other daemons might need it.
core::Result<void> put_key(Host& host, const MachineOptions& options, const Memory& memory, const Connection::Key& key,
                           const KeyFile& before) {
  const auto file = options.slurm_folder / key.file;
  if (before.file != key.file) {
    const auto there = host.read(file);
    if (!there && there.error().code != ErrorCode::kNotFound) return std::unexpected(there.error());
    if (there && *there != key.content && !wrote(memory, key.file, core::sha256_hex(*there)))
      return core::fail(ErrorCode::kInvalid, file.string() +
                                                 " has another key, which slurm-enlist has not written: move it away "
                                                 "if nothing needs it");
  }
  // The memory is saved first: a key file that it does not list would count as somebody else's.
  if (auto saved = write_memory(host, options.state, memory); !saved) return saved;
  if (auto removed = host.remove_leftovers(file); !removed) return removed;
  return host.write(file, key.content, 0600);
}

/// Stores in `stale` which program image slurmd runs now (ServiceState::image), and then runs `act`, which makes slurmd read
/// the key file.
core::Result<void> after_image(Service& service, std::string& stale, const std::function<core::Result<void>()>& act) {
  auto state = service.state();
  if (!state) return std::unexpected(state.error());
  stale = std::move(state->image);
  return act();
}

core::Result<void> stop_slurmd(Service& service) {
  const auto state = service.state();
  if (!state) return std::unexpected(state.error());
  if (!state->arguments) return {};  // This program has not started slurmd.
  const auto steps = service.steps();
  if (!steps) return std::unexpected(steps.error());
  if (!steps->empty()) return core::fail(ErrorCode::kBusy, "step " + steps->front() + " runs on the host");
  return service.stop();
}

core::Result<void> clean_host(Host& host, Service& service, const MachineOptions& options, const Memory& memory) {
  if (auto done = service.uninstall(); !done) return done;
  for (const std::string_view name : kKeyFiles) {
    if (auto done = remove_key(host, options, memory, name); !done) return done;
  }
  return {};
}

/// Removes the agent's files, and its service if `join` has written the unit. systemd then ends this process.
core::Result<void> remove_agent(Host& host, const MachineOptions& options) {
  const auto unit = host.read(options.agent_unit);
  const bool has_unit = unit && unit->starts_with(kFileMark);
  const std::string service = options.agent_unit.filename().string();
  if (has_unit) {
    if (const auto done = said_by(host, {"systemctl", "disable", service}); !done) return std::unexpected(done.error());
    if (auto done = host.remove(options.agent_unit); !done) return done;
    if (const auto done = said_by(host, {"systemctl", "daemon-reload"}); !done) return std::unexpected(done.error());
  }
  // Without agent.json, no agent can start on this host.
  for (const auto& file :
       {options.state / kMemoryFile, options.state / "host.key", options.state / "host.crt", options.status_file}) {
    if (auto done = host.remove(file); !done) return done;
  }
  // Without this, systemd would restart the agent when it ends (Restart=always).
  if (has_unit) (void)said_by(host, {"systemctl", "stop", "--no-block", service});
  return {};
}

}  // namespace

core::Result<Facts> read_facts(Host& host, const MachineOptions& options) {
  Facts out;
  for (auto [file, value] :
       {std::pair{"/proc/sys/kernel/hostname", &out.hostname}, std::pair{"/proc/sys/kernel/random/boot_id", &out.boot_id}}) {
    const auto text = host.read(file);
    if (!text) return std::unexpected(text.error());
    *value = first_line(*text);
  }
  auto version = version_of(host, options.slurmd);
  if (!version) return std::unexpected(version.error());
  out.slurm_version = *std::move(version);
  const auto hardware = said_by(host, {options.slurmd, "-C"});
  if (!hardware) return std::unexpected(hardware.error());
  auto words = detected_conf(*hardware);
  if (words && !options.gpu_detector.empty()) {
    auto gpus = said_by(host, {options.gpu_detector});
    if (!gpus) return std::unexpected(gpus.error());
    std::ranges::replace(*gpus, '\n', ' ');
    if (auto good = check_node_words(*gpus, {out.slurm_version}); !good)
      return std::unexpected(good.error().with(options.gpu_detector));
    words = merged_conf(*words, *gpus);
    if (!words) return std::unexpected(words.error().with(options.gpu_detector));
  }
  if (!words) return std::unexpected(words.error().with(options.slurmd + " -C"));
  out.detected = *std::move(words);
  return out;
}

Machine::Machine(core::Loop& loop, std::shared_ptr<Host> host, std::shared_ptr<Service> service, MachineOptions options,
                 Memory memory, Callbacks callbacks)
    : loop_(loop),
      host_(std::move(host)),
      service_(std::move(service)),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      memory_(std::move(memory)),
      saved_(memory_),
      acted_at_(loop.clock().mono() - kStarts),
      reloaded_at_(loop.clock().mono()),
      next_(loop) {
  check_.wanted = !options_.check.empty();
  carries_out<WriteKey>([this](const auto& act, const Done& done) { write_key(act, done); });
  carries_out<StartSlurmd>([this](const auto& act, const Done& done) { start_slurmd(*act, done); });
  carries_out<ReloadSlurmd>([this](const auto& act, const Done& done) {
    const auto stale = std::make_shared<std::string>();
    carry_out([service = service_, stale] { return after_image(*service, *stale, [&] { return service->reload(); }); },
              [this, act, stale, key = memory_.key.revision] {
                memory_.registrations = std::max(memory_.registrations, act->registrations);
                memory_.loaded_key = key;
                memory_.stale_image = *stale;
                reloaded_at_ = loop_.clock().mono();
              },
              true, done);
  });
  carries_out<PrepareSlurmd>([this](const auto& act, const Done& done) {
    auto arguments = slurmd_arguments(act->launch.node, act->launch.conf, act->launch.controllers, instance_of(memory_));
    carry_out([service = service_, arguments = std::move(arguments)] { return service->prepare(arguments); },
              [this, act] { memory_.prepared = act->launch.conf; }, true, done);
  });
  carries_out<RemoveFormerKey>([this](const auto&, const Done& done) {
    carry_out(
        [host = host_, options = options_, memory = memory_]() -> core::Result<void> {
          for (const KeyFile& former : memory.former) {
            if (former.file == memory.key.file) continue;
            if (auto removed = remove_key(*host, options, memory, former.file); !removed) return removed;
          }
          return {};
        },
        [this] { memory_.former.clear(); }, true, done);
  });
  carries_out<StopSlurmd>([this](const auto&, const Done& done) {
    carry_out([service = service_] { return stop_slurmd(*service); }, [this] { memory_.stopped = true; }, true, done);
  });
  carries_out<CleanHost>([this](const auto&, const Done& done) {
    carry_out([host = host_, service = service_, options = options_,
               memory = memory_] { return clean_host(*host, *service, options, memory); },
              [this] {
                memory_.left = true;
                memory_.key = {};
                memory_.former.clear();
              },
              true, done);
  });
  carries_out<EndAgent>([this](const auto&, const Done& done) {
    carry_out([host = host_, options = options_] { return remove_agent(*host, options); },
              [this] {
                stop();
                callbacks_.ended();
              },
              false, done);
  });
  carries_out<SaveMemory>([this](const auto& act, const Done& done) {
    carry_out([host = host_, folder = options_.state, act] { return write_memory(*host, folder, act->memory); },
              [this, act] { saved_ = act->memory; }, false, done);
  });
  carries_out<WriteStatus>([this](const auto& act, const Done& done) {
    carry_out([host = host_, file = options_.status_file, act] { return host->write(file, act->text, 0644); },
              [this, act] { status_ = act->text; }, false, done);
  });
  carries_out<SendReport>([this](const auto& act, const Done& done) {
    reported_ = act->report;
    callbacks_.report(act->report);
    loop_.after(core::Duration{0}, [done] { done({core::Json::object(), {}}); });
  });
}

bool Machine::desire(const Desired& desired) {
  if (memory_.desired == desired) return false;
  const bool leaves = !desired.leave.empty() && (!memory_.desired || memory_.desired->leave != desired.leave);
  memory_.desired = desired;
  memory_.node = desired.node;
  memory_.pool = desired.pool;
  memory_.cluster = desired.cluster;
  // Reads the host at once: the next reading may be seconds away, and only readings after this point include the steps.
  if (leaves && begun_ > 0) look_soon();
  return true;
}

// --- Readings ---

void Machine::look() {
  next_.cancel();
  ++begun_;
  const auto seen = std::make_shared<Seen>();
  const core::MonoTime now = loop_.clock().mono();
  const bool runs = seen_ && seen_->slurmd && seen_->slurmd->running;
  const bool with_facts = !seen_ || !seen_->facts || (!runs && now >= facts_at_ + kFactsAgain);
  // The node may be invalid because a driver was loaded late.
  const bool late = !with_facts && runs && callbacks_.invalid() && now >= facts_at_ + kFactsLate;
  if (with_facts || late) facts_at_ = now;
  if (!with_facts) seen->facts = seen_->facts;
  loop_.offload(
      [host = host_, service = service_, options = options_, seen, with_facts, late, before = seen_ ? seen_->program : "",
       key = memory_.key.file, node = memory_.node, leaves = memory_.desired && !memory_.desired->leave.empty()] {
        seen->program = file_of(*host, options.slurmd);
        if (with_facts) seen->facts = read_facts(*host, options);
        if (late) read_late_facts(*host, *service, options, *seen);
        if (!with_facts && seen->program != before && !read_release(*host, options, *seen)) seen->program = before;
        // The key file is read before slurmd's state. So the slurmd that is seen has read this content, or is an earlier one.
        seen->key_digest = digest_of_key(*host, options.slurm_folder, key);
        seen->jwks = (options.slurm_folder / kJwksFile).string();
        seen->jwks_digest = digest_of_key(*host, options.slurm_folder, kJwksFile);
        seen->slurmd = see_slurmd(*service);
        const auto& slurmd = seen->slurmd;
        if (leaves || (slurmd && slurmd->arguments && launch_of(*slurmd->arguments).node != node))
          seen->steps = service->steps();
        const auto path = options.slurm_folder / "slurm.conf";
        if (const auto conf = host->read(path)) {
          seen->local_conf = path.string();
          seen->local_cluster = cluster_name_of(*conf);
        }
      },
      [this, seen] { looked(std::move(*seen)); });
}

void Machine::stop() {
  stopped_ = true;
  next_.cancel();
}

void Machine::looked(Seen seen) {
  ++ended_;
  seen.not_reloaded = seen.slurmd && seen.slurmd->running && !seen.slurmd->changing && !seen.slurmd->image.empty() &&
                      seen.slurmd->image == memory_.stale_image && loop_.clock().mono() - reloaded_at_ >= kReloads;
  const bool changed = !seen_ || !same(*seen_, seen);
  const bool starts = (seen.slurmd && seen.slurmd->changing) || loop_.clock().mono() - acted_at_ < kStarts;
  seen_ = std::move(seen);
  if (!stopped_) {
    const core::Duration pace = starts ? kLookAtStart : callbacks_.at_rest() ? kLookAtRest : kLookOnTheWay;
    next_.set(std::exchange(looks_again_, false) ? core::Duration{0} : pace, [this] { look(); });
    run_check();
  }
  callbacks_.on_look(changed);
}

void Machine::look_soon() {
  if (stopped_) return;
  if (begun_ > ended_) {
    looks_again_ = true;
  } else {
    look();
  }
}

// --- The check script ---

void Machine::run_check() {
  if (!check_.wanted || checking_ || !seen_->slurmd || !seen_->slurmd->running || !seen_->slurmd->arguments) return;
  const std::string instance = launch_of(*seen_->slurmd->arguments).instance;
  if (instance.empty() || check_.instance == instance || loop_.clock().mono() < check_at_) return;
  checking_ = true;
  const auto output = std::make_shared<core::Result<Output>>();
  loop_.offload([host = host_, output,
                 words = std::vector{options_.check, memory_.node, memory_.pool}] { *output = host->run(words, 60s, ""); },
                [this, output, instance] { checked(instance, *output); });
}

void Machine::checked(const std::string& instance, const core::Result<Output>& output) {
  checking_ = false;
  check_at_ = loop_.clock().mono() + kCheckAgain;
  const Checked before = check_;
  if (output && output->status == 0) {
    check_.instance = instance;
    check_.error.clear();
  } else if (output) {
    const std::string said = telling_lines(output->err.empty() ? output->out : output->err);
    check_.error = "the check " + options_.check + " fails (exit code " + std::to_string(output->status) + ")" +
                   (said.empty() ? "" : ": " + said);
  } else {
    check_.error = "the check " + options_.check + " fails: " + output.error().message;
  }
  if (check_ != before) callbacks_.on_look(true);
}

// --- Acts ---

void Machine::carry_out(std::function<core::Result<void>()> work, std::function<void()> after, bool looks, Done done) {
  const auto result = std::make_shared<core::Result<void>>();
  loop_.offload([work = std::move(work), result] { *result = work(); },
                [this, result, looks, after = std::move(after), done = std::move(done)] {
                  if (*result) after();
                  std::vector<plan::GatePtr> gates;
                  if (looks) {
                    acted_at_ = loop_.clock().mono();
                    gates.push_back(std::make_shared<LookGate>(*this));
                    look_soon();
                  }
                  if (*result) return done({core::Json::object(), std::move(gates)});
                  done({std::unexpected(result->error()), std::move(gates)});
                });
}

void Machine::start_slurmd(const StartSlurmd& act, const Done& done) {
  auto arguments = slurmd_arguments(act.launch.node, act.launch.conf, act.launch.controllers, instance_of(memory_));
  const auto stale = std::make_shared<std::string>();
  carry_out(
      [host = host_, service = service_, options = options_, memory = memory_, stale,
       arguments = std::move(arguments)]() -> core::Result<void> {
        if (auto removed = remove_former_jwks(*host, options, memory); !removed) return removed;
        return after_image(*service, *stale, [&] { return service->start(arguments); });
      },
      [this, stale, number = act.registrations, key = memory_.key] {
        memory_.registrations = std::max(memory_.registrations, number);
        memory_.loaded_key = key.revision;
        memory_.restarted_for = key.revision;
        memory_.started_with = key.file;
        memory_.stale_image = *stale;
        memory_.stopped = false;
        memory_.prepared.clear();
        check_.instance.clear();  // The check must pass again for the new slurmd.
        check_at_ = {};
      },
      true, done);
}

void Machine::write_key(const std::shared_ptr<const WriteKey>& act, const Done& done) {
  callbacks_.fetch_key([this, act, done](core::Result<Connection::Key> key) { key_fetched(act, std::move(key), done); });
}

void Machine::key_fetched(const std::shared_ptr<const WriteKey>& act, core::Result<Connection::Key> key, const Done& done) {
  if (!key) return done({std::unexpected(key.error()), {}});
  if (key->revision != act->revision)
    return done({core::fail(ErrorCode::kConflict, "the coordinator has another auth key by now"), {}});
  if (std::ranges::find(kKeyFiles, key->file) == kKeyFiles.end())
    return done({core::fail(ErrorCode::kInvalid, "the coordinator names no file of a key of auth/slurm"), {}});
  auto memory = std::make_shared<Memory>(act->memory);
  const KeyFile before = memory->key;
  // slurmd must read the file even if it had this key before, because it may have read another key since then.
  memory->loaded_key.clear();
  memory->key = {key->file, key->revision, core::sha256_hex(key->content)};
  if (!before.file.empty() && before != memory->key) memory->former.push_back(before);
  if (memory->started_with.empty()) memory->started_with = before.file;  // Earlier releases did not store it.
  carry_out(
      [host = host_, options = options_, memory, before, key = std::make_shared<Connection::Key>(*std::move(key))] {
        return put_key(*host, options, *memory, *key, before);
      },
      [this, memory] {
        saved_ = *memory;
        memory_.key = memory->key;
        memory_.loaded_key = memory->loaded_key;
        memory_.started_with = memory->started_with;
        memory_.former = memory->former;
        std::erase_if(memory_.former, [&](const KeyFile& former) { return former.file == memory->key.file; });
      },
      true, done);
}

}  // namespace enlist
