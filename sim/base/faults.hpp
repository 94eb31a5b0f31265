// Injects faults between client and server: random faults from a seed, or scripted faults ("at write 7 the reply is lost").
//
//   sim::Faults faults(loop.random().fork());
//   faults.rates.lost_reply = 0.02;
//   faults.at_write(7, sim::Fault::kCrashAfter);
//   faults.on_crash = [&] { loop.after(0ms, [&] { operator_process.reset(); }); };
//
// Folder sim/base: virtual time, transports and faults, for all simulated servers. Uses net and core.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.hpp"
#include "sim/base/random.hpp"

namespace sim {

enum class Fault {
  kNone,
  kRefuse,         ///< The connection is refused. The client knows that nothing was carried out.
  kLostRequest,    ///< The request is lost. The client cannot know that it was not carried out.
  kLostReply,      ///< The reply is lost. The client cannot know that the request was carried out.
  kConflict,       ///< 409, not carried out. A GET or a POST gets kInternal instead.
  kTooMany,        ///< 429 with Retry-After: 1, not carried out.
  kInternal,       ///< 500, not carried out.
  kInternalAfter,  ///< 500 although carried out.
  kForbidden,      ///< 403, not carried out.
  kSlow,           ///< Carried out, but the reply takes seconds.
  kCrashBefore,    ///< The client dies. Not carried out.
  kCrashAfter,     ///< Carried out, then the client dies.
};
std::string_view to_string(Fault fault);
/// Returns all faults of requests, for enumerations.
const std::vector<Fault>& all_faults();

/// A fault of a stream, drawn for each of its pieces.
enum class StreamFault {
  kNone,
  kCut,        ///< The connection breaks in the middle of the piece.
  kGone,       ///< An error event (410) in place of the piece, then the end.
  kDuplicate,  ///< The piece arrives twice.
  kDelay,      ///< This piece and all later ones are delayed by seconds.
};

/// The probability of each fault. The members before `cut` apply to each request. `cut` and the members after it apply to each
/// piece of a stream.
struct FaultRates {
  double refuse = 0, lost_request = 0, lost_reply = 0, conflict = 0, too_many = 0, internal = 0, internal_after = 0,
         forbidden = 0, slow = 0;
  double crash_before = 0, crash_after = 0;  ///< The probabilities of a crash at a write.
  double cut = 0, gone = 0, duplicate = 0, delay = 0, withhold_bookmark = 0;

  /// Returns rates in which each fault has this probability, except crashes of the client, which have 0.
  static FaultRates all(double rate);
};

class Faults {
 public:
  explicit Faults(SeededRandom random = SeededRandom(0)) : random_(std::move(random)) {}

  FaultRates rates;
  /// Enables the injection of faults. If false, writes are still counted.
  bool enabled = true;
  /// Called for kCrashBefore and kCrashAfter, in the middle of a request. The callback must not destroy the client at once,
  /// only schedule this.
  std::function<void()> on_crash;
  /// Chooses the fault of a request for which at_write sets none. Use it for scripts that depend on the request. If it returns
  /// nullopt or kNone, the rates decide.
  std::function<std::optional<Fault>(const net::HttpRequest&)> choose;
  /// Decides what counts as a write for at_write. Default: everything except GETs and writes of Leases and events. The number
  /// of writes of Leases and events depends on time.
  std::function<bool(const net::HttpRequest&)> is_write = default_is_write;

  /// Sets the fault for the write with this number (from 0).
  void at_write(std::uint64_t number, Fault fault) { script_[number] = fault; }
  /// Calls `begin` when the write with this number (from 0) arrives, before the fault of that write is decided. Use this for
  /// faults that do not concern a single request.
  void at_write(std::uint64_t number, std::function<void()> begin) { begins_[number] = std::move(begin); }
  /// Returns the number of writes so far.
  [[nodiscard]] std::uint64_t writes() const { return writes_; }

  /// Transports call these functions. They return the fault of a request, the fault of a stream's next piece, and whether the
  /// transport must withhold the next bookmark.
  Fault decide(const net::HttpRequest& request);
  StreamFault decide_piece();
  bool withhold_bookmark();

  /// Returns the injected faults, one line each, for reports of failing seeds.
  [[nodiscard]] const std::vector<std::string>& log() const { return log_; }

 private:
  static bool default_is_write(const net::HttpRequest& request);

  SeededRandom random_;
  std::map<std::uint64_t, Fault> script_;
  std::map<std::uint64_t, std::function<void()>> begins_;
  std::uint64_t writes_ = 0;
  std::vector<std::string> log_;
};

}  // namespace sim
