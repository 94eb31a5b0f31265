#include "operator/common/deletions.hpp"

#include <memory>
#include <utility>

#include "kube/acts.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/status.hpp"

namespace op {
namespace {

/// Returns how much longer to wait for further deletions by the client that deleted the object. A client deletes objects one by
/// one.
core::Duration left_for_company(const kube::ObjectMeta& deleted, core::WallTime now) {
  constexpr core::Duration kCompany{3000};
  const std::optional<core::WallTime>& since = deleted.deletion_timestamp;
  if (!since) return core::Duration{0};
  const core::Duration left = *since + kCompany - now;
  // If the clock is far behind the API server's, do not wait.
  return left > 2 * kCompany ? core::Duration{0} : left;
}

std::string kinds(const Referrers& referrers) {
  return referrers.resource.kind + "s";
}

std::string waiting_for(const plan::Context& context, const kube::ObjectMeta& deleted, const Referrers& referrers,
                        plan::Plan& plan) {
  if (!referrers.ending.empty()) return "waiting for " + kinds(referrers) + " to be deleted: " + some_of(referrers.ending);
  if (!referrers.others.empty()) return referrers.others;
  const core::Duration left = referrers.lasting ? left_for_company(deleted, context.now) : core::Duration{0};
  if (left <= core::Duration{0}) return "";
  std::string waiting = "waiting to see whether " + kinds(referrers) + " are deleted as well";
  plan.wake_after(left, waiting);
  return waiting;
}

}  // namespace

std::optional<Needed> needed_by(const plan::Context& context, const kube::ObjectMeta& deleted, const Referrers& referrers,
                                plan::Plan& plan) {
  constexpr core::Duration kAskAgain{2000};
  if (std::string waiting = waiting_for(context, deleted, referrers, plan); !waiting.empty())
    return Needed{std::move(waiting), !referrers.ending.empty() || !referrers.others.empty()};

  const std::string all = kinds(referrers);
  const auto found = context.facts.find(all);
  if (found == context.facts.end()) {
    auto list = std::make_shared<kube::List>();
    list->resource = referrers.resource;
    list->ns = deleted.ns;
    plan.need({all, std::move(list)});
    return std::nullopt;
  }
  const std::string again = "the " + all + " are listed again";
  const core::Result<core::Json>& answer = found->second.value;
  if (!answer) {
    plan.wake_after(kAskAgain, again);
    return Needed{"waiting for the API server to list the " + all + ": " + one_line(answer.error().message), true};
  }
  Referrers live = referrers;
  live.ending.clear();
  live.lasting = false;
  for (const core::Json& object : (*answer)["items"]) {
    if (core::get_string(object, {"spec", referrers.field, "name"}) != referrers.name) continue;
    if (core::get_string(object, {"metadata", "deletionTimestamp"}).empty()) {
      live.lasting = true;
    } else {
      live.ending.push_back(core::get_string(object, {"metadata", "name"}));
    }
  }
  if (!live.ending.empty()) plan.wake_after(kAskAgain, again);
  return Needed{waiting_for(context, deleted, live, plan), true};
}

}  // namespace op
