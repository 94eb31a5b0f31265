#include "sim/base/faults.hpp"

#include <fmt/format.h>

#include <utility>

namespace sim {

std::string_view to_string(Fault fault) {
  switch (fault) {
    case Fault::kNone:
      return "none";
    case Fault::kRefuse:
      return "refuse";
    case Fault::kLostRequest:
      return "lost request";
    case Fault::kLostReply:
      return "lost reply";
    case Fault::kConflict:
      return "409";
    case Fault::kTooMany:
      return "429";
    case Fault::kInternal:
      return "500";
    case Fault::kInternalAfter:
      return "500 after";
    case Fault::kForbidden:
      return "403";
    case Fault::kSlow:
      return "slow";
    case Fault::kCrashBefore:
      return "crash before";
    case Fault::kCrashAfter:
      return "crash after";
  }
  return "?";
}

const std::vector<Fault>& all_faults() {
  static const std::vector<Fault> kAll{Fault::kRefuse,  Fault::kLostRequest, Fault::kLostReply,     Fault::kConflict,
                                       Fault::kTooMany, Fault::kInternal,    Fault::kInternalAfter, Fault::kForbidden,
                                       Fault::kSlow,    Fault::kCrashBefore, Fault::kCrashAfter};
  return kAll;
}

FaultRates FaultRates::all(double rate) {
  FaultRates rates;
  for (double* one : {&rates.refuse, &rates.lost_request, &rates.lost_reply, &rates.conflict, &rates.too_many, &rates.internal,
                      &rates.internal_after, &rates.forbidden, &rates.slow, &rates.cut, &rates.gone, &rates.duplicate,
                      &rates.delay, &rates.withhold_bookmark}) {
    *one = rate;
  }
  return rates;
}

bool Faults::default_is_write(const net::HttpRequest& request) {
  return request.method != "GET" && request.target.find("/leases") == std::string::npos &&
         request.target.find("/events") == std::string::npos;
}

Fault Faults::decide(const net::HttpRequest& request) {
  Fault fault = Fault::kNone;
  const bool write = is_write(request);
  if (write) {
    const std::uint64_t number = writes_++;
    if (const auto begins = begins_.find(number); begins != begins_.end()) begins->second();
    if (const auto scripted = script_.find(number); scripted != script_.end()) fault = scripted->second;
  }
  if (!enabled) return Fault::kNone;
  if (fault == Fault::kNone && choose) fault = choose(request).value_or(Fault::kNone);
  if (fault == Fault::kNone) {
    double drawn = random_.unit();
    for (const auto& [rate, kind] : {std::pair{rates.refuse, Fault::kRefuse},
                                     {rates.lost_request, Fault::kLostRequest},
                                     {rates.lost_reply, Fault::kLostReply},
                                     {rates.conflict, Fault::kConflict},
                                     {rates.too_many, Fault::kTooMany},
                                     {rates.internal, Fault::kInternal},
                                     {rates.internal_after, Fault::kInternalAfter},
                                     {rates.forbidden, Fault::kForbidden},
                                     {rates.slow, Fault::kSlow},
                                     {write ? rates.crash_before : 0, Fault::kCrashBefore},
                                     {write ? rates.crash_after : 0, Fault::kCrashAfter}}) {
      if (drawn < rate) {
        fault = kind;
        break;
      }
      drawn -= rate;
    }
  }
  if (fault == Fault::kConflict && (request.method == "GET" || request.method == "POST")) fault = Fault::kInternal;
  if (fault != Fault::kNone) log_.push_back(fmt::format("{}: {} {}", to_string(fault), request.method, request.target));
  return fault;
}

StreamFault Faults::decide_piece() {
  if (!enabled) return StreamFault::kNone;
  double drawn = random_.unit();
  for (const auto& [rate, kind] : {std::pair{rates.cut, StreamFault::kCut},
                                   {rates.gone, StreamFault::kGone},
                                   {rates.duplicate, StreamFault::kDuplicate},
                                   {rates.delay, StreamFault::kDelay}}) {
    if (drawn < rate) return kind;
    drawn -= rate;
  }
  return StreamFault::kNone;
}

bool Faults::withhold_bookmark() {
  return enabled && random_.chance(rates.withhold_bookmark);
}

}  // namespace sim
