// What goes wrong between a client and a server: by chance from a seed, or by a script ("at write number 7 the reply is lost").
//
//   sim::Faults faults(loop.random().fork());
//   faults.rates.lost_reply = 0.02;
//   faults.at_write(7, sim::Fault::kCrashAfter);
//   faults.on_crash = [&] { operator_process.reset(); };
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
  kRefuse,         ///< No connection: not carried out, and the client knows.
  kLostRequest,    ///< Not carried out, and the client cannot know.
  kLostReply,      ///< Carried out, and the client cannot know.
  kConflict,       ///< 409 (PUT, PATCH, DELETE), not carried out.
  kTooMany,        ///< 429 with Retry-After: 1, not carried out.
  kInternal,       ///< 500, not carried out.
  kInternalAfter,  ///< 500 although carried out.
  kForbidden,      ///< 403, not carried out.
  kSlow,           ///< Carried out; the reply takes seconds.
  kCrashBefore,    ///< The client dies; not carried out.
  kCrashAfter,     ///< Carried out; then the client dies.
};
std::string_view to_string(Fault fault);
/// Every fault that can meet a request, for enumerations.
const std::vector<Fault>& all_faults();

/// What happens to a stream, asked at each of its pieces.
enum class StreamFault {
  kNone,
  kCut,        ///< In the middle of the piece.
  kGone,       ///< An error event (410) instead, and the end.
  kDuplicate,  ///< The piece comes twice.
  kDelay,      ///< This and all that follows comes seconds later.
};

/// Probabilities, each of a request or of a piece.
struct FaultRates {
  double refuse = 0, lost_request = 0, lost_reply = 0, conflict = 0, too_many = 0, internal = 0, internal_after = 0,
         forbidden = 0, slow = 0;
  double crash_before = 0, crash_after = 0;  ///< Of writes only.
  double cut = 0, gone = 0, duplicate = 0, delay = 0, withhold_bookmark = 0;

  /// All faults that can meet a client in a bad hour, at a common rate; it does not die.
  static FaultRates all(double rate);
};

class Faults {
 public:
  explicit Faults(SeededRandom random = SeededRandom(0)) : random_(std::move(random)) {}

  FaultRates rates;
  /// Off: nothing happens, but writes are counted still.
  bool enabled = true;
  /// The client dies: called for kCrashBefore and kCrashAfter, in the middle of things; destroy nothing here, schedule it.
  std::function<void()> on_crash;
  /// Asked first, for scripts by content; nullopt leaves it to the rest.
  std::function<std::optional<Fault>(const net::HttpRequest&)> choose;
  /// What counts as a write for at_write. By default everything but GET, and but writes of Leases and events, whose number
  /// depends on time.
  std::function<bool(const net::HttpRequest&)> is_write = default_is_write;

  /// Scripts the fault that meets the write with this number (from 0).
  void at_write(std::uint64_t number, Fault fault) { script_[number] = fault; }
  /// Calls `begin` as the write with this number (from 0) comes, before its own fate is decided: for what meets no single
  /// request.
  void at_write(std::uint64_t number, std::function<void()> begin) { begins_[number] = std::move(begin); }
  void clear_script() { script_.clear(), begins_.clear(); }
  /// Writes seen so far.
  [[nodiscard]] std::uint64_t writes() const { return writes_; }

  /// For transports.
  Fault decide(const net::HttpRequest& request);
  StreamFault decide_piece();
  bool withhold_bookmark();

  /// What was done to whom, one line each, for reports of failing seeds.
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
