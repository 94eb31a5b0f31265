#include "enlist/rules/model.hpp"

#include <array>
#include <utility>

namespace enlist {
namespace {

constexpr auto kPhases = std::to_array<std::pair<Phase, std::string_view>>({{Phase::kPending, "Pending"},
                                                                            {Phase::kStarting, "Starting"},
                                                                            {Phase::kConfirming, "Confirming"},
                                                                            {Phase::kEnlisted, "Enlisted"},
                                                                            {Phase::kReady, "Ready"},
                                                                            {Phase::kDraining, "Draining"},
                                                                            {Phase::kStopping, "Stopping"},
                                                                            {Phase::kDeleting, "Deleting"},
                                                                            {Phase::kGone, "Gone"},
                                                                            {Phase::kRefused, "Refused"},
                                                                            {Phase::kInvalid, "Invalid"},
                                                                            {Phase::kImpostor, "Impostor"},
                                                                            {Phase::kLost, "Lost"},
                                                                            {Phase::kSilent, "Silent"},
                                                                            {Phase::kStuck, "Stuck"}});

}  // namespace

std::string_view to_string(Phase phase) {
  for (const auto& [known, name] : kPhases) {
    if (known == phase) return name;
  }
  return "";
}

std::optional<Phase> phase_from(std::string_view text) {
  for (const auto& [phase, name] : kPhases) {
    if (name == text) return phase;
  }
  return std::nullopt;
}

}  // namespace enlist
