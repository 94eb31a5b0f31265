// Checks that each field of a spec has an effect or is reported to have none, and that the effect ends when the field is
// removed. The tests of all controllers use it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "operator/common/slinky.hpp"
#include "operator/testing/opaque.hpp"
#include "slinky/names.hpp"

namespace op::testing {

/// The state of a world after a spec was applied and the controller has nothing left to do.
struct State {
  core::Json all;            ///< All objects, and everything else that can show an effect of the spec.
  std::string not_acted_on;  ///< The message of the condition FieldsNotActedOn.
};

/// Applies the specs one after the other to one new world, and returns the state after each spec.
using States = std::function<std::vector<State>(const std::vector<core::Json>& specs)>;

/// Findings by field: "no effect"; "told" if FieldsNotActedOn lists the field; otherwise a description of the error. A field
/// that has an effect has no finding.
using Findings = std::map<std::string, std::string>;

/// Tests each field at every depth, including fields that `base` lacks: sets, changes and removes the field, and reverts each
/// change. `base` should set fields that enable other fields, to values other than the defaults. A part with arbitrary content,
/// such as a pod template, counts as one field. A field that the CRD does not allow to change is tested by a comparison of two
/// worlds. So are the `fixed` fields, which have an effect only when an object is created.
Findings field_findings(const char* kind, const core::Json& base, const States& states,
                        const std::vector<std::string>& fixed = {});

/// Makes a States function. `begin` creates the world with the first spec. `ask` applies a spec to the world, and returns the
/// state.
template <class W>
States in_turn(std::function<W(const core::Json&)> begin, std::function<State(W&, const core::Json&)> ask) {
  struct Begun {
    W world;
    State state;
  };
  auto begun = std::make_shared<std::map<std::string, Begun>>();
  return [=](const std::vector<core::Json>& specs) {
    const std::string first = specs.front().dump();
    auto there = begun->find(first);
    if (there == begun->end()) {
      W world = begin(specs.front());
      State state = ask(world, specs.front());
      there = begun->emplace(first, Begun{std::move(world), std::move(state)}).first;
    }
    W world = there->second.world;
    std::vector<State> out{there->second.state};
    for (std::size_t i = 1; i < specs.size(); ++i) out.push_back(ask(world, specs[i]));
    return out;
  };
}

/// Removes the versions and times of writes, which differ between two writes of the same content.
core::Json without_versions(core::Json json);

/// Makes plans and carries them out until two plans in a row are empty, at most 60 times. Calls `kubelet` after each plan.
template <class Controller>
void settle(
    World& world, const kube::Key& key, const std::function<void()>& kubelet = [] {}) {
  int quiet = 0;
  for (int pass = 0; pass < 60 && quiet < 2; ++pass) {
    quiet = world.carry_out(world.plan<Controller>(key)).empty() ? quiet + 1 : 0;
    kubelet();
    world.advance(core::Duration{60'000});
  }
  EXPECT_EQ(quiet, 2) << "it does not come to rest";
}

/// Returns all objects of the world, and the conditions of the object `x` of that kind.
State state_of(const World& world, const char* kind);

/// Returns the states of the world while a controller reconciles an object `x` of `kind` in the simplest cluster.
template <class Controller>
States states_of(const char* kind) {
  const auto begin = [kind](const core::Json& spec) { return world_with(kind, spec); };
  const auto ask = [kind](World& world, const core::Json& spec) {
    world.edit(kind, {"default", "x"}, spec);
    settle<Controller>(world, {"default", "x"});
    return state_of(world, kind);
  };
  return in_turn<World>(begin, ask);
}

}  // namespace op::testing
