#include "sim/oracles/oracles.hpp"

#include <fmt/format.h>

#include <utility>

namespace sim {
namespace {

constexpr std::size_t kNotes = 4000;

}  // namespace

Oracles::Oracles(core::Loop& loop, KubeApi& api) : loop_(loop) {
  api.store().listen([this](const std::string& table, const ChangePtr& change) {
    if (change->type == Change::Type::kDeleted && table != "leases.coordination.k8s.io")
      note(fmt::format("{} {} gone", table, change->key.str()));
  });
}

void Oracles::violation(std::string text) {
  note("VIOLATION " + text);
  violations_.push_back(std::move(text));
}

void Oracles::note(std::string text) {
  notes_.push_back(core::format_rfc3339_micro(loop_.clock().wall()).substr(11, 12) + " " + std::move(text));
  if (notes_.size() > kNotes) notes_.pop_front();
}

void Oracles::accident(const std::string& pod, Accident what) {
  for (Oracle* oracle : oracles_) oracle->accident(pod, what);
}

void Oracles::clock_jumps(core::Duration by) {
  for (Oracle* oracle : oracles_) oracle->clock_jumps(by);
}

void Oracles::log_line(std::string_view line) {
  for (Oracle* oracle : oracles_) oracle->log_line(line);
}

std::vector<std::string> Oracles::unmet() const {
  std::vector<std::string> out;
  for (const Oracle* oracle : oracles_) {
    for (std::string& what : oracle->unmet()) out.push_back(std::move(what));
  }
  return out;
}

}  // namespace sim
