#include "enlist/coordinator/pools_target.hpp"

#include <memory>
#include <utility>

#include "enlist/coordinator/pools_plan.hpp"

namespace enlist {
namespace {

constexpr core::Duration kLookEvery{2000};
/// All users may read the file, because Slurm's commands read it like slurm.conf.
constexpr unsigned kPoolFileMode = 0644;

/// Opens when a reading has ended that began after the write. An earlier reading may not show the write.
class LookGate final : public plan::Gate {
 public:
  explicit LookGate(const FileTarget& file) : file_(file), begun_(file.begun()) {}
  [[nodiscard]] bool open() const override { return file_.ended() > begun_; }
  [[nodiscard]] std::string describe() const override { return "the pool file is read again"; }

 private:
  const FileTarget& file_;
  std::uint64_t begun_;
};

FileTarget::Content read(Host& host, const std::filesystem::path& file) {
  core::Result<std::string> text = host.read(file);
  if (text) return std::optional(*std::move(text));
  if (text.error().code == core::ErrorCode::kNotFound) return std::optional<std::string>();
  return std::unexpected(text.error());
}

bool same(const FileTarget::Content& one, const FileTarget::Content& other) {
  if (one && other) return *one == *other;
  return !one && !other && one.error().message == other.error().message;
}

Changes changes_of(const Contents& now, const RecordRollout& act) {
  Changes out;
  if (act.state) out.values[kRolloutValue] = *act.state;
  out.values[kProblemsValue] = act.problems.empty() ? std::nullopt : std::optional(core::Json(act.problems));
  if (act.found.empty()) return out;
  std::map<std::string, Pool> found = found_pools(now.values);
  for (const auto& [name, pool] : act.found) {
    // Somebody may have created a pool of this name since the plan was made.
    if (!now.pools.contains(name)) found.emplace(name, pool);
  }
  out.values[kFoundValue] = found_value(found);
  return out;
}

}  // namespace

FileTarget::FileTarget(core::Loop& loop, Store& store, Host& host, std::filesystem::path file,
                       std::function<void(bool)> on_look)
    : loop_(loop), host_(host), file_(std::move(file)), on_look_(std::move(on_look)), again_(loop) {
  carries_out<RecordRollout>([&store](const auto& act, const Done& done) {
    store.commit([act](const Contents& now) -> core::Result<Changes> { return changes_of(now, *act); },
                 [done](const core::Result<void>& result) {
                   if (result) return done({core::Json::object(), {}});
                   done({std::unexpected(result.error()), {}});
                 });
  });
  carries_out<WritePoolFile>([this](const auto& act, Done done) { write(*act, std::move(done)); });
}

void FileTarget::look() {
  const std::uint64_t reading = ++begun_;
  auto content = std::make_shared<Content>();
  loop_.offload([&host = host_, file = file_, content] { *content = read(host, file); },
                [this, reading, content] { looked(reading, std::move(*content)); });
}

void FileTarget::stop() {
  stopped_ = true;
  again_.cancel();
}

void FileTarget::looked(std::uint64_t reading, Content content) {
  // Readings run on several threads, so an older reading may end after a newer one. It is ignored.
  if (reading < ended_) return;
  ended_ = reading;
  const bool changed = !same(content, content_);
  content_ = std::move(content);
  if (!stopped_) again_.set(kLookEvery, [this] { look(); });
  on_look_(changed);
}

void FileTarget::write(const WritePoolFile& act, Done done) {
  auto result = std::make_shared<core::Result<void>>();
  loop_.offload([&host = host_, file = file_, text = act.text, result] { *result = host.write(file, text, kPoolFileMode); },
                [this, result, done = std::move(done)] {
                  const auto gate = std::make_shared<LookGate>(*this);
                  // The gate waits for a reading. So the next one begins now, and not only after kLookEvery.
                  if (!stopped_) look();
                  if (*result) return done({core::Json::object(), {gate}});
                  done({std::unexpected(result->error()), {gate}});
                });
}

}  // namespace enlist
