// Destruction needs evidence: a value that says why an act cannot lose work.
//
// Evidence is issued while a controller observes, and at no other time: whatever issues it takes an Observing, which only the
// runtime makes, and only to hand it to `observe`. So `observe` attaches what the facts allow to what it copies, and a plan
// selects. A plan that deletes a worker without a reason does not compile.
//
// Each room has kinds of its own, about subjects of its own (kube::PodEvidence, slurm::NodeEvidence): classes that derive from
// Evidence, each with a function that looks at facts and issues it. An act takes the kind that it needs; its target asks once
// more, when the act is carried out, whether the evidence is about the act's object and still good.
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

/// The key to issuing evidence. It cannot be copied, so nothing that is observed can keep it for the plan.
class Observing {
 public:
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;
  ~Observing() = default;
  /// When this observation is made.
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
  /// One word for what it says, such as "Drained".
  [[nodiscard]] std::string_view kind() const { return kind_; }
  /// The same, in words, with what was seen.
  [[nodiscard]] const std::string& detail() const { return detail_; }
  /// Whether it may still be acted on.
  [[nodiscard]] bool good_at(core::MonoTime now) const { return !good_until_ || now <= *good_until_; }
  /// nullopt: for ever. What it says cannot be undone, or the act is fenced by the version of the object that says it.
  [[nodiscard]] const std::optional<core::MonoTime>& good_until() const { return good_until_; }

 protected:
  /// `kind` must be a literal.
  Evidence(const Observing& /*observing*/, std::string_view kind, std::string detail, std::optional<core::MonoTime> good_until)
      : kind_(kind), detail_(std::move(detail)), good_until_(good_until) {}

 private:
  std::string_view kind_;
  std::string detail_;
  std::optional<core::MonoTime> good_until_;
};

}  // namespace plan
