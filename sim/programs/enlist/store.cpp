#include "sim/programs/enlist/store.hpp"

#include "enlist/wire/messages.hpp"

namespace sim {
namespace {

template <class Row>
std::string text_of_row(const Row& row) {
  return core::canonical(enlist::to_json(row));
}
std::string text_of_row(const core::Json& value) {
  return core::canonical(value);
}

template <class Rows, class Changed>
void drop_same(const Rows& rows, Changed& changed) {
  std::erase_if(changed, [&](const auto& entry) {
    const auto there = rows.find(entry.first);
    return entry.second ? there != rows.end() && there->second == *entry.second : there == rows.end();
  });
}

template <class Rows, class Changed>
void apply(Rows& rows, const Changed& changed) {
  for (const auto& [key, row] : changed) {
    if (row) {
      rows.insert_or_assign(key, *row);
    } else {
      rows.erase(key);
    }
  }
}

template <class Changed>
std::string text_of(const Changed& changed) {
  std::string out;
  for (const auto& [key, row] : changed) out += key + (row ? " " + text_of_row(*row) : std::string()) + "\n";
  return out;
}

}  // namespace

void EnlistStore::commit(Change change, Done done) {
  waiting_.emplace_back(std::move(change), std::move(done));
  loop_.after(core::Duration{2}, [this] { next(); });
}

/// Carries out the oldest waiting commit. Commits run one after another, so each commit sees the results of earlier ones.
void EnlistStore::next() {
  const auto [change, done] = std::move(waiting_.front());
  waiting_.pop_front();
  core::Result<enlist::Changes> changes = change(disk_);
  if (!changes) return done(std::unexpected(changes.error()));
  drop_same(disk_.pools, changes->pools);
  drop_same(disk_.nodes, changes->nodes);
  drop_same(disk_.tokens, changes->tokens);
  drop_same(disk_.values, changes->values);
  const std::string text =
      text_of(changes->pools) + text_of(changes->nodes) + text_of(changes->tokens) + text_of(changes->values);
  if (text.empty()) return done({});
  oracle_.search(text, "the coordinator's records");
  const core::Result<void> written = write(*changes);
  // A process that has died calls no listener and no callback.
  if (machine_.dead) return;
  if (written) {
    for (const auto& listener : listeners_) listener(*changes);
  }
  done(written);
}

core::Result<void> EnlistStore::write(const enlist::Changes& changes) {
  if (machine_.disk_full) return core::fail(core::ErrorCode::kUnavailable, "the records: no space is left");
  bool done = false;
  const auto told = machine_.change("commit", [&] {
    oracle_.stores(changes);
    apply(disk_.pools, changes.pools);
    apply(disk_.nodes, changes.nodes);
    apply(disk_.tokens, changes.tokens);
    apply(disk_.values, changes.values);
    done = true;
  });
  // A commit that was carried out must succeed even if the fault hides its outcome: a failed commit must have changed nothing.
  if (done) return {};
  return core::fail(core::ErrorCode::kUnavailable, told.error().message);
}

}  // namespace sim
