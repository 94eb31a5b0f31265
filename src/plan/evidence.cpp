#include "plan/evidence.hpp"

namespace plan {

std::string_view to_string(Evidence::Kind kind) {
  switch (kind) {
    case Evidence::Kind::kDrained:
      return "Drained";
    case Evidence::Kind::kNeverStarted:
      return "NeverStarted";
    case Evidence::Kind::kEnded:
      return "Ended";
    case Evidence::Kind::kNeverRegistered:
      return "NeverRegistered";
    case Evidence::Kind::kForgotten:
      return "Forgotten";
    case Evidence::Kind::kSilent:
      return "Silent";
    case Evidence::Kind::kOwnerEnds:
      return "OwnerEnds";
  }
  return "Unknown";
}

}  // namespace plan
