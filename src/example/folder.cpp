#include "example/folder.hpp"

#include <utility>

namespace example {

namespace {

constexpr core::Duration kEvery{1000};

/// Opens at the end of the first reading that began after the change. An earlier reading possibly does not show the change.
class ReadGate final : public plan::Gate {
 public:
  explicit ReadGate(const Folder& folder) : folder_(folder), begun_(folder.begun()) {}
  [[nodiscard]] bool open() const override { return folder_.ended() > begun_; }
  [[nodiscard]] std::string describe() const override { return "the folder is read again"; }

 private:
  const Folder& folder_;
  std::uint64_t begun_;
};

bool same(const core::Result<Contents>& one, const core::Result<Contents>& other) {
  if (one && other) return *one == *other;
  return !one && !other && one.error().message == other.error().message;
}

/// Each act reads the disk again, because a file may have changed since the plan was made.
core::Result<void> write(Disk& disk, const WriteFile& act) {
  const auto now = disk.read();
  if (!now) return std::unexpected(now.error());
  const auto found = now->files.find(act.name);
  const bool as_seen = found == now->files.end() ? !act.seen : act.seen == found->second;
  if (!as_seen) return core::fail(core::ErrorCode::kConflict, act.name + " has changed since it was read");
  return disk.write(act.name, act.text);
}

core::Result<void> remove(Disk& disk, const RemoveFile& act) {
  const auto now = disk.read();
  if (!now) return std::unexpected(now.error());
  const std::string& name = act.evidence.name();
  const auto found = now->files.find(name);
  if (found == now->files.end() || !is_ours(found->second) || now->list.contains(name))
    return core::fail(core::ErrorCode::kConflict, name + " or the list has changed since it was read");
  return disk.remove(name);
}

}  // namespace

Folder::Folder(core::Loop& loop, std::shared_ptr<Disk> disk, std::function<void(bool)> on_look)
    : loop_(loop), disk_(std::move(disk)), on_look_(std::move(on_look)), again_(loop) {
  carries_out<WriteFile>(
      [this](const auto& act, Done done) { carry_out([act](Disk& on) { return write(on, *act); }, std::move(done)); });
  carries_out<RemoveFile>(
      [this](const auto& act, Done done) { carry_out([act](Disk& on) { return remove(on, *act); }, std::move(done)); });
}

void Folder::look() {
  ++begun_;
  auto read = std::make_shared<core::Result<Contents>>();
  loop_.offload([disk = disk_, read] { *read = disk->read(); }, [this, read] { looked(std::move(*read)); });
}

void Folder::stop() {
  stopped_ = true;
  again_.cancel();
}

void Folder::looked(core::Result<Contents> contents) {
  ++ended_;
  const bool changed = !same(contents, contents_);
  contents_ = std::move(contents);
  if (!stopped_) again_.set(kEvery, [this] { look(); });
  on_look_(changed);
}

void Folder::carry_out(Change change, Done done) {
  auto result = std::make_shared<core::Result<void>>();
  loop_.offload([disk = disk_, change = std::move(change), result] { *result = change(*disk); },
                [this, result, done = std::move(done)] {
                  const auto gate = std::make_shared<ReadGate>(*this);
                  if (*result) return done({core::Json::object(), {gate}});
                  done({std::unexpected(result->error()), {gate}});
                });
}

}  // namespace example
