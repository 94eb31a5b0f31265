// An act that destroys something needs evidence: a value that states why the act cannot lose work.
//
// Evidence is issued only while a controller observes. Issuing it requires an Observing, which only the runtime makes and
// passes to `observe`. To each object that it copies, `observe` attaches all evidence that the facts allow. The plan selects
// from that evidence. Code that deletes a worker without evidence does not compile.
//
// Each folder defines its own kinds of evidence about its own subjects (kube::PodEvidence, slurm::NodeEvidence). A kind is a
// class derived from Evidence with a function that checks facts and issues the evidence. An act takes the kind that it needs.
// When the target executes the act, it checks again that the evidence is about the act's object and still valid.
//
// Folder src/plan: plans, evidence, and the executor of plans.
// Knows neither Kubernetes nor Slurm. Uses core.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"

namespace run {
template <class Observed, class Reads>
class TypedController;
}
namespace plan::testing {
struct Observer;
}

namespace plan {

/// The permission to issue evidence. An Observing cannot be copied, so `observe` cannot pass it to the plan.
class Observing {
 public:
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;
  ~Observing() = default;
  /// Returns the time of this observation.
  [[nodiscard]] core::MonoTime now() const { return now_; }

 private:
  template <class Observed, class Reads>
  friend class run::TypedController;
  friend struct testing::Observer;
  explicit Observing(core::MonoTime now) : now_(now) {}

  core::MonoTime now_;
};

class Evidence {
 public:
  /// Returns one word for what the evidence states, such as "Drained".
  [[nodiscard]] std::string_view kind() const { return kind_; }
  /// Returns what was observed, as a text for users.
  [[nodiscard]] const std::string& detail() const { return detail_; }
  /// Reports whether acts may still use the evidence.
  [[nodiscard]] bool good_at(core::MonoTime now) const { return !good_until_ || now <= *good_until_; }
  /// Returns when the evidence expires. nullopt: never, because the evidence cannot become false, or because the act
  /// fails if the object has changed.
  [[nodiscard]] const std::optional<core::MonoTime>& good_until() const { return good_until_; }

 protected:
  /// `kind` must be a string literal, because only a view of it is kept. `good_until` nullopt means forever.
  Evidence(const Observing& /*observing*/, std::string_view kind, std::string detail, std::optional<core::MonoTime> good_until)
      : kind_(kind), detail_(std::move(detail)), good_until_(good_until) {}

 private:
  std::string_view kind_;
  std::string detail_;
  std::optional<core::MonoTime> good_until_;
};

}  // namespace plan
