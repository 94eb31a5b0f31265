#include "enlist/coordinator/slurm_files.hpp"

#include <memory>
#include <utility>
#include <vector>

#include "enlist/rules/pool_file.hpp"

namespace enlist {
namespace {

constexpr core::Duration kReadAgain{5000};

template <class T>
bool unchanged(const core::Result<T>& one, const core::Result<T>& other) {
  if (one && other) return *one == *other;
  return !one && !other && one.error().message == other.error().message;
}

}  // namespace

core::Result<AuthKey> read_auth_key(Host& host, const std::filesystem::path& slurm_conf) {
  for (const std::string_view file : {kJwksFile, kPlainKeyFile}) {
    core::Result<std::string> content = host.read(slurm_conf.parent_path() / file);
    if (!content && content.error().code == core::ErrorCode::kNotFound) continue;
    if (!content) return std::unexpected(content.error().with("the auth key"));
    if (content->empty()) return core::fail(core::ErrorCode::kInvalid, std::string(file) + " is empty");
    AuthKey out{std::string(file), key_revision(file, *content), *std::move(content)};
    // An invalid file must not get to the hosts, because slurmd exits if it starts with one. The file may be half written.
    if (const auto keys = key_set_of(file, out.revision, out.content); file == kJwksFile && !keys)
      return std::unexpected(keys.error().with("the auth key"));
    return out;
  }
  return core::fail(core::ErrorCode::kNotFound,
                    "there is neither slurm.jwks nor slurm.key in " + slurm_conf.parent_path().string());
}

core::Result<std::map<std::string, std::string>> read_included(Host& host, const std::filesystem::path& slurm_conf,
                                                               const std::string& text) {
  std::map<std::string, std::string> out;
  std::vector<std::string> open = included_files(text);
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    if (out.contains(name)) continue;
    core::Result<std::string> included = host.read(slurm_conf.parent_path() / name);
    if (!included && included.error().code == core::ErrorCode::kNotFound) continue;
    if (!included) return std::unexpected(included.error());
    for (std::string& next : included_files(*included)) open.push_back(std::move(next));
    out.emplace(name, *std::move(included));
  }
  return out;
}

core::Result<SlurmFacts> read_facts(Host& host, const std::filesystem::path& slurm_conf) {
  core::Result<std::string> text = host.read(slurm_conf);
  if (!text) return std::unexpected(text.error());
  const auto included = read_included(host, slurm_conf, *text);
  if (!included) return std::unexpected(included.error());
  for (const auto& [name, content] : *included) *text += "\n" + content;
  // The NodeSets in the pool file count too, because the store may have lost their pools.
  const core::Result<std::string> pools = host.read(slurm_conf.parent_path() / kPoolFile);
  core::Result<SlurmFacts> facts = facts_of(*text, pools ? *pools : "");
  if (!facts) return std::unexpected(facts.error().with(slurm_conf.string()));
  return facts;
}

SlurmFiles::SlurmFiles(core::Loop& loop, core::Logger& log, Host& host, std::filesystem::path slurm_conf,
                       std::function<void()> changed)
    : loop_(loop), log_(log), host_(host), slurm_conf_(std::move(slurm_conf)), changed_(std::move(changed)), again_(loop) {}

struct SlurmFiles::Reading {
  std::uint64_t number = 0;
  core::Result<SlurmFacts> facts;
  std::string file{};
  core::Result<std::string> revision;
  core::Result<KeySet> keys;
};

void SlurmFiles::start() {
  const auto out = std::make_shared<Reading>();
  out->number = ++begun_;
  loop_.offload(
      [&host = host_, file = slurm_conf_, out] {
        out->facts = read_facts(host, file);
        const core::Result<AuthKey> key = read_auth_key(host, file);
        if (key) {
          out->file = key->file;
          out->revision = key->revision;
          out->keys = key_set_of(key->file, key->revision, key->content);
        } else {
          out->revision = std::unexpected(key.error());
          out->keys = std::unexpected(key.error());
        }
      },
      [this, out] { read(std::move(*out)); });
}

void SlurmFiles::stop() {
  stopped_ = true;
  again_.cancel();
}

void SlurmFiles::read(Reading reading) {
  if (stopped_ || reading.number < ended_) return;
  ended_ = reading.number;
  again_.set(kReadAgain, [this] { start(); });
  const bool changed =
      !unchanged(reading.facts, facts_) || !unchanged(reading.revision, key_revision_) || !unchanged(reading.keys, keys_);
  facts_ = std::move(reading.facts);
  key_file_ = std::move(reading.file);
  key_revision_ = std::move(reading.revision);
  keys_ = std::move(reading.keys);
  if (!changed) return;
  if (!facts_) log_.error("no host can join or change until this is fixed", {core::error_field(facts_.error())});
  if (!key_revision_) log_.error("no host can join or change until this is fixed", {core::error_field(key_revision_.error())});
  changed_();
}

void SlurmFiles::read_key(std::function<void(core::Result<AuthKey>)> done) {
  const auto out = std::make_shared<core::Result<AuthKey>>();
  loop_.offload([&host = host_, file = slurm_conf_, out] { *out = read_auth_key(host, file); },
                [out, done = std::move(done)] { done(std::move(*out)); });
}

}  // namespace enlist
