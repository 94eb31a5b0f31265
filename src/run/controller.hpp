// The interface between controllers and the engine. For a key that a change has woken, the engine observes, plans and acts.
//
//   struct Observed {                       // What the plan needs to know.
//     std::string name;
//     bool exists = false;
//   };
//   plan::Plan plan(const Observed& seen) {
//     plan::Plan out;
//     if (!seen.exists) {
//       out.lane("write").add({{"create", "File", seen.name}, "it is missing", std::make_shared<WriteFile>(seen.name)});
//     }
//     return out;
//   }
//   class Files final : public run::TypedController<Observed> {
//    public:
//     explicit Files(const Folder& folder) : TypedController(plan), folder_(folder) {}
//     std::string name() const override { return "files"; }
//     std::shared_ptr<const Observed> observe_typed(const run::Key& key, run::Recorder&, const run::Observation&) override {
//       return std::make_shared<Observed>(key.name, folder_.has(key.name));
//     }
//    ...
//
// An object that carries out WriteFile is a plan::Target. src/example is a whole program of this kind, and
// docs/how-to/add-a-program.md describes it.
//
// Requires of a controller: `observe` has no effects outside the controller. It reads caches. It reads all other objects
// through the Recorder, so that changes of these objects wake the key. It copies from the caches what the plan needs, and
// issues evidence. It may store data for each key in the controller. `plan` is a pure function.
// Guarantees: `observe` is called on the loop and `plan` on any thread. For one key, calls never overlap.
//
// Folder src/run: the engine that runs controllers. Knows neither Kubernetes nor Slurm. Uses plan and core.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "plan/evidence.hpp"
#include "plan/plan.hpp"
#include "run/key.hpp"

namespace run {

/// `observe` reads uncached objects through this class, so that their changes wake the key. Programs define what can be read.
class Recorder {
 public:
  virtual ~Recorder() = default;
};

/// The input of `observe`: the context of the pass, and the permission to issue evidence.
struct Observation : plan::Context {
  plan::Observing observing;
};

class Controller {
 public:
  virtual ~Controller() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  /// Returns the name of the system, other than the API server, for which passes of the key can wait (a Slurm cluster), or "".
  /// All keys of one system together get only a part of the concurrent passes, in case the system is slow.
  [[nodiscard]] virtual std::string share(const Key& /*key*/) const { return {}; }
  /// Returns what the plan of the key needs to know; never null.
  [[nodiscard]] virtual std::shared_ptr<const void> observe(const Key& key, Recorder& recorder,
                                                            const plan::Context& context) = 0;
  [[nodiscard]] virtual plan::Plan plan(const void* observed) const = 0;
};

/// A controller with a typed Observed and a recorder of type Reads. The plan is a free function, so that it has no access to
/// the controller.
template <class Observed, class Reads = Recorder>
class TypedController : public Controller {
 public:
  [[nodiscard]] std::shared_ptr<const void> observe(const Key& key, Recorder& recorder, const plan::Context& context) final {
    return observe_typed(key, dynamic_cast<Reads&>(recorder), {context, plan::Observing(context.mono)});
  }
  [[nodiscard]] plan::Plan plan(const void* observed) const final { return plan_(*static_cast<const Observed*>(observed)); }

 protected:
  explicit TypedController(std::function<plan::Plan(const Observed&)> plan) : plan_(std::move(plan)) {}
  [[nodiscard]] virtual std::shared_ptr<const Observed> observe_typed(const Key& key, Reads& recorder,
                                                                      const Observation& context) = 0;

 private:
  std::function<plan::Plan(const Observed&)> plan_;
};

}  // namespace run
