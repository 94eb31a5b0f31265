#include "run/queue.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace run {

void WorkQueue::add_at(const WorkKey& key, core::MonoTime due, core::MonoTime now, int priority) {
  const auto [it, is_new] = items_.try_emplace(key);
  Item& item = it->second;
  if (is_new) {
    item.due = due;
    item.priority = priority;
    item.sequence = ++sequence_;
  } else {
    const core::MonoTime earliest = std::min(item.due, due);
    const int highest = std::max(item.priority, priority);
    const bool moves = item.ready && share_ && share_(key) != item.share;
    if (earliest == item.due && highest == item.priority && !moves) return;
    unplace(key, item);
    item.due = earliest;
    item.priority = highest;
  }
  place(key, item, now);
}

void WorkQueue::place(const WorkKey& key, Item& item, core::MonoTime now) {
  if (item.due <= now && !std::exchange(item.counted, true)) ++adds_[key.controller];
  if (processing_.contains(key)) return;
  item.ready = item.due <= now;
  if (item.ready) {
    item.rank = item.due.since_start - item.priority * options_.per_priority;
    item.share = share_ ? share_(key) : "";
    ready_[item.share].insert({item.rank, item.sequence, key});
  } else {
    waiting_.insert({item.due, key});
  }
}

void WorkQueue::unplace(const WorkKey& key, const Item& item) {
  if (processing_.contains(key)) return;
  if (item.ready) {
    const auto of_share = ready_.find(item.share);
    of_share->second.erase({item.rank, item.sequence, key});
    if (of_share->second.empty()) ready_.erase(of_share);
  } else {
    waiting_.erase({item.due, key});
  }
}

void WorkQueue::promote(core::MonoTime now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    const WorkKey key = waiting_.begin()->second;
    waiting_.erase(waiting_.begin());
    place(key, items_.at(key), now);
  }
}

core::Duration WorkQueue::add_backoff(const WorkKey& key, core::MonoTime now, core::Duration at_least) {
  const int failures = ++failures_[key];
  const double cap = static_cast<double>(options_.backoff_cap.count());
  const double plain = static_cast<double>(options_.backoff_base.count()) * std::pow(2.0, std::min(failures - 1, 30));
  const double jittered = std::min(plain, cap) * (0.75 + 0.5 * random_->unit());
  const core::Duration delay = std::max(core::Duration{static_cast<core::Duration::rep>(jittered)}, at_least);
  add_after(key, delay, now);
  return delay;
}

int WorkQueue::failures(const WorkKey& key) const {
  const auto it = failures_.find(key);
  return it == failures_.end() ? 0 : it->second;
}

std::optional<WorkKey> WorkQueue::pop(core::MonoTime now, const std::function<bool(const std::string& share)>& may) {
  promote(now);
  auto first = ready_.end();
  for (auto it = ready_.begin(); it != ready_.end(); ++it) {
    const bool earlier = first == ready_.end() || *it->second.begin() < *first->second.begin();
    if (earlier && (!may || may(it->first))) first = it;
  }
  if (first == ready_.end()) return std::nullopt;
  WorkKey key = std::get<2>(*first->second.begin());
  first->second.erase(first->second.begin());
  if (first->second.empty()) ready_.erase(first);
  last_wait_ = now - items_.at(key).due;
  items_.erase(key);
  processing_.insert(key);
  return key;
}

void WorkQueue::done(const WorkKey& key, core::MonoTime now) {
  if (processing_.erase(key) == 0) return;
  const auto it = items_.find(key);
  if (it != items_.end()) place(key, it->second, now);
}

std::optional<core::MonoTime> WorkQueue::next_due() const {
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

WorkQueue::Counts WorkQueue::counts(std::uint32_t controller, core::MonoTime now) const {
  Counts result;
  for (auto it = items_.lower_bound({controller, {}}); it != items_.end() && it->first.controller == controller; ++it) {
    if (it->second.due <= now) ++result.due;
  }
  if (const auto it = adds_.find(controller); it != adds_.end()) result.adds = it->second;
  return result;
}

bool WorkQueue::has_ready(core::MonoTime now) const {
  return !ready_.empty() || (!waiting_.empty() && waiting_.begin()->first <= now);
}

}  // namespace run
