// Implements ScheduledUpdate by a reservation in Slurm, which defines the NodeSet's maintenance window. The operator creates
// the reservation, keeps the reservation's nodes current, and deletes the reservation when it is no longer wanted. The state of
// a node and the times of the reservation show whether the node is in its window.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "api/well_known.hpp"
#include "kube/acts.hpp"
#include "operator/nodeset/parts.hpp"
#include "operator/nodeset/schedule.hpp"
#include "slurm/acts.hpp"

namespace op::nodeset {
namespace {

const plan::StepId kMake{"make", "reservation"};
const plan::StepId kSetNodes{"set nodes of", "reservation"};
const plan::StepId kDelete{"delete", "reservation"};
/// The time until reservations are read again. Nothing wakes the NodeSet when somebody changes or deletes a reservation.
constexpr core::Duration kReadAgain{15000};

using Nodes = std::set<std::string, std::less<>>;

std::string self_name(const View& view) {
  return reservation_name(view.in.meta());
}

/// True if the operator made the reservation and the reservation covers only nodes of this NodeSet. Ignores nodes that Slurm no
/// longer has.
bool is_ours(const View& view, const slurm::Reservation& reservation) {
  return slurm::made_by_operator(reservation) && !reservation.nodes_unknown &&
         std::ranges::all_of(reservation.nodes, [&](const std::string& name) {
           const slurm::Node* record = view.known_record(name);
           return record == nullptr || view.is_own_record(*record);
         });
}

/// Returns the nodes that the reservation should cover. Slurm does not delete the records of reserved nodes. So a node whose
/// record is to be deleted is removed from the reservation once the node is drained. Without the reservation, a node that is
/// not drained would get jobs.
Nodes nodes_to_cover(const View& view, const Workers& workers, const Vacancies& vacancies, const slurm::Reservation* found) {
  Nodes out;
  for (const Worker& worker : workers) {
    if (worker.record == nullptr || !view.is_own_record(*worker.record)) continue;
    const bool leaves = worker.goes() && !worker.updates() && worker.has_flag("DRAIN");
    if (!leaves || view.stops()) out.insert(worker.node);
  }
  if (found == nullptr) return out;
  for (const std::string& name : found->nodes) {
    const slurm::Node* record = view.known_record(name);
    if (record == nullptr || view.has_worker(name)) continue;
    const std::optional<SlotKey> place = view.place_of(name);
    const bool awaited = (place && vacancies.places.contains(*place)) || view.is_of_other_pod(name);
    const bool stays = awaited && judge_old_record(view, name) == OldRecord::kStays;
    const bool idle = record->state.has("DRAIN") || record->state.base == "DOWN";
    if (stays || !idle || view.stops()) out.insert(name);
  }
  return out;
}

/// Makes, changes or deletes the reservation in one pass.
class Maintenance {
 public:
  Maintenance(const View& view, const Workers& workers, const Vacancies& vacancies, Finalizer finalizer, Draft& draft)
      : view_(view),
        workers_(workers),
        vacancies_(vacancies),
        draft_(draft),
        wanted_(is_scheduled(view) && view.goal == Goal::kServe),
        tracked_(kube::has_finalizer(view.in.meta(), api::kFinalizerReservation)) {
    out_.finalizer = finalizer;
  }

  MaintenanceResult run() && {
    if ((!wanted_ && !tracked_) || view_.goal == Goal::kHold || view_.goal == Goal::kEndAll) return std::move(out_);
    out_.pending = tracked_;
    if (!view_.slurm_known()) {
      tell("WaitingForSlurm", "waiting for Slurm to answer");
    } else if (!view_.in.snapshot->capabilities.reservations) {
      refuse(
          "ReservationsUnsupported",
          fmt::format("spec.updateStrategy.type: ScheduledUpdate needs a reservation, which slurmrestd {} cannot make (25.05 "
                      "and later can): no worker is updated. Upgrade Slurm, or use RollingUpdate",
                      view_.in.snapshot->capabilities.release));
      // An earlier reservation might exist, but cannot be read now. The deletion of a NodeSet does not wait for that
      // reservation.
      if (view_.in.meta().terminating()) release();
    } else if (read()) {
      keep();
    }
    return std::move(out_);
  }

 private:
  void tell(std::string_view reason, std::string message) {
    if (wanted_) out_.note = {reason, std::move(message), false};
  }
  void refuse(std::string_view reason, const std::string& message) {
    if (!wanted_) return;
    draft_.wrong(reason, message, "Reserve");
    tell(reason, message);
  }

  /// Removes the finalizer, whose presence records that a reservation may exist.
  void release() {
    out_.pending = false;
    if (!tracked_ || view_.in.meta().terminating() || out_.finalizer != Finalizer::kUnchanged) return;
    auto act = kube::remove_finalizer(resources::kNodeSet, view_.in.meta(), api::kFinalizerReservation);
    if (act != nullptr && draft_.step(draft_.lane("finalizer"), kRemoveFinalizer, "it has no reservation", std::move(act)))
      out_.finalizer = Finalizer::kChanged;
  }

  void ask() { draft_.need(need_reservations(view_.in)); }

  /// Asks for Slurm's reservations if they have to be read again. Returns false while the reservations are unknown.
  bool read() {
    const auto& seen = view_.in.seen.reservations;
    draft_.wake_after(kReadAgain, "the reservations may have changed");
    const bool old = seen && !reservations_are_recent(view_);
    const bool wrote = seen && std::ranges::any_of(view_.in.outcomes, [&](const auto& outcome) {
                         const plan::StepId& id = outcome.first;
                         return (id.is(kMake) || id.is(kSetNodes) || id.is(kDelete)) && outcome.second.last >= seen->asked_at;
                       });
    if (!seen || old || wrote) ask();
    if (!seen || wrote) tell("WaitingForSlurm", "waiting for Slurm to report its reservations");
    return seen && !wrote;
  }

  /// True if Slurm's reservations were read so recently that the plan can change them. Otherwise asks for the reservations
  /// again.
  bool fresh() {
    const bool is = view_.in.mono - view_.in.seen.reservations->asked_at <= view_.in.snapshot->good_for();
    if (!is) ask();
    return is;
  }

  void keep() {
    const slurm::Reservation* found = find_reservation(view_.in);
    if (found != nullptr && !is_ours(view_, *found)) {
      refuse("ReservationNotOurs",
             fmt::format("Slurm has a reservation {} that this NodeSet did not make, or that covers nodes of others. It is not "
                         "touched, and no worker is updated: delete it (scontrol delete ReservationName={}), unless it is that "
                         "of another NodeSet of the same name",
                         found->name, found->name));
      return wanted_ ? void() : release();
    }
    if (!wanted_) return found == nullptr ? release() : remove("the NodeSet does not want it any more");
    const Schedule schedule = read_schedule(view_.in.nodeset.spec.update_strategy.scheduled_update);
    if (!schedule.problem.empty()) return refuse("InvalidSchedule", "spec.updateStrategy.scheduledUpdate." + schedule.problem);
    const std::optional<Window> window = schedule.window_at(view_.in.now);
    if (found != nullptr && !schedule.made(*found)) {
      // Slurm deletes a reservation that is over. So this reservation does not belong to a past window, but to another
      // schedule.
      tell("ScheduleChanged", "the reservation of the former schedule is deleted");
      return remove("its schedule has changed");
    }
    if (!window) {
      tell("WindowOver", "the maintenance window is over: set a later spec.updateStrategy.scheduledUpdate.startTime");
      return found == nullptr ? release() : void();
    }
    const Nodes nodes = nodes_to_cover(view_, workers_, vacancies_, found);
    if (nodes.empty()) {
      tell("NoNodes", "no worker is registered in Slurm that a reservation could cover");
      return found == nullptr ? void() : remove("it would cover no node");
    }
    found == nullptr ? make(schedule, *window, nodes) : follow(*found, nodes);
  }

  void remove(const std::string& why) {
    draft_.intent().add(kDelete.of(self_name(view_)));
    if (view_.stops()) return draft_.wake_after(kDoubtAgain, "a reservation is deleted");
    if (!view_.in.own_reservation || !fresh()) return ask();
    draft_.step(draft_.lane("reservation"), kDelete.of(self_name(view_)), why,
                slurm::delete_reservation(*view_.in.own_reservation));
  }

  void follow(const slurm::Reservation& found, const Nodes& nodes) {
    out_.note = {"Created",
                 fmt::format("reservation {} covers {} nodes {}: until it starts, Slurm starts no job there that may overlap "
                             "with it, and so none without a time limit",
                             found.name, nodes.size(), to_text({*found.start, *found.end})),
                 true};
    if (!tracked_) track();
    // Slurm itself removes nodes that no longer exist from a reservation.
    Nodes has;
    std::ranges::copy_if(found.nodes, std::inserter(has, has.end()),
                         [&](const std::string& name) { return view_.known_record(name) != nullptr; });
    if (has == nodes || *found.end <= view_.in.now) return;
    if (!view_.in.own_reservation || !fresh()) return ask();
    draft_.step(draft_.lane("reservation"), kSetNodes.of(found.name), "workers were added or removed",
                slurm::set_reservation_nodes(*view_.in.own_reservation, {nodes.begin(), nodes.end()}));
  }

  void make(const Schedule& schedule, Window window, const Nodes& nodes) {
    const core::WallTime now = view_.in.now;
    std::chrono::minutes duration = schedule.duration;
    if (window.start < now && schedule.period.count() > 0) {
      // Slurm refuses a start in the past, and a later start within this window would shift all repetitions. So begin with the
      // next window.
      window = *schedule.window_at(window.end);
    } else if (window.start < now) {
      window.start = now;
      duration = std::chrono::duration_cast<std::chrono::minutes>(window.end - now);
    }
    if (duration.count() < 1) return tell("WindowOver", "the maintenance window is about to end");
    tell("Creating",
         fmt::format("reservation {} is created over {} nodes {}", self_name(view_), nodes.size(), to_text(window)));
    if (!view_.in.doubt.empty()) return draft_.wake_after(kDoubtAgain, view_.in.doubt);
    draft_.intent().add(kMake.of(self_name(view_)));
    if (!tracked_) return track();
    if (!fresh()) return;
    slurm::ReservationWish wish{self_name(view_),
                                {nodes.begin(), nodes.end()},
                                {schedule.flags.begin(), schedule.flags.end()},
                                window.start,
                                duration,
                                "made by slurm-operator for " + view_.self_text()};
    draft_.step(draft_.lane("reservation"), kMake.of(self_name(view_)), "spec.updateStrategy.scheduledUpdate",
                slurm::make_reservation(view_.cluster(), std::move(wish)));
  }

  /// Adds the finalizer before the reservation is created, so that the NodeSet exists until the reservation is deleted.
  void track() {
    if (out_.finalizer != Finalizer::kUnchanged) return;
    auto act = kube::add_finalizer(resources::kNodeSet, view_.in.meta(), api::kFinalizerReservation);
    if (act != nullptr &&
        draft_.step(draft_.lane("finalizer"), kAddFinalizer, "its reservation is deleted first", std::move(act)))
      out_.finalizer = Finalizer::kChanged;
  }

  const View& view_;
  const Workers& workers_;
  const Vacancies& vacancies_;
  Draft& draft_;
  const bool wanted_, tracked_;
  MaintenanceResult out_;
};

}  // namespace

bool is_scheduled(const View& view) {
  return view.in.nodeset.spec.update_strategy.type == api::UpdateStrategyType::kScheduledUpdate;
}

bool in_window(const View& view, const Slot& worker) {
  if (worker.record == nullptr || !worker.record->state.has("MAINTENANCE")) return false;
  const slurm::Reservation* found = find_reservation(view.in);
  if (found == nullptr || !is_ours(view, *found)) return false;
  // Look at the reservation itself: if several reservations are active, the node's record names only one of them.
  return found->holds(worker.node) && found->start && found->end && *found->start <= view.in.now && view.in.now < *found->end;
}

bool reservations_are_recent(const View& view) {
  const auto& seen = view.in.seen.reservations;
  return seen && view.in.mono - seen->asked_at < kReadAgain;
}

std::optional<std::string> other_reservation(const View& view, const Slot& worker) {
  // The NodeSet's own reservation does not count. It can be distinguished from other reservations only once they have been
  // read.
  const bool is = worker.record != nullptr && reserved(*worker.record);
  if (is && (!is_scheduled(view) || !view.in.seen.reservations)) return worker.record->reservation;
  if (!view.in.seen.reservations) return {};
  // The record of a node does not show a reservation that has not begun, so search all reservations.
  const auto& all = view.in.seen.reservations->all;
  const auto found = std::ranges::find_if(
      all, [&](const slurm::Reservation& one) { return one.name != self_name(view) && one.holds(worker.node); });
  return found == all.end() ? std::nullopt : std::optional(found->name);
}

std::string window_text(const View& view) {
  const Schedule schedule = read_schedule(view.in.nodeset.spec.update_strategy.scheduled_update);
  if (!schedule.problem.empty()) return "spec.updateStrategy.scheduledUpdate." + schedule.problem;
  const std::optional<Window> window = schedule.window_at(view.in.now);
  return window ? "they are updated in the maintenance window " + to_text(*window)
                : "the maintenance window is over: set a later spec.updateStrategy.scheduledUpdate.startTime";
}

MaintenanceResult keep_reservation(const View& view, const Workers& workers, const Vacancies& vacancies, Finalizer finalizer,
                                   Draft& draft) {
  return Maintenance(view, workers, vacancies, finalizer, draft).run();
}

}  // namespace op::nodeset
