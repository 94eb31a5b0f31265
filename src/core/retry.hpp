// Decides by the code of an error when a failed request may be tried again. No other code decides it.
#pragma once

#include "core/result.hpp"

namespace core {

enum class Retry {
  /// After a wait (Error::retry_after, if the server said how long). The request was certainly not carried out, so even a write
  /// may be sent again. Meanwhile the server would refuse other requests as well.
  kLater,
  /// After a wait, because something else uses the object. Requests about other objects need not wait.
  kHeld,
  /// After the outcome is known, because a write may have been carried out. A read has no outcome: see code_of_read.
  kSettle,
  /// After a new observation and decision, because the state has changed since. No user needs to act.
  kDecideAnew,
  /// With new credentials, once.
  kRenewCredentials,
  /// Not until somebody changes something. The error is reported at once, and the request is tried again with a growing
  /// backoff, because nobody announces the change.
  kNotByItself,
};

/// | Code | Retry | Because |
/// | --- | --- | --- |
/// | kInvalid | kNotByItself | The request itself is wrong. |
/// | kNotFound | kNotByItself | Something that the request needs is missing, and somebody has to create it. |
/// | kAlreadyExists | kDecideAnew | We or somebody else created the object since we looked for it. |
/// | kConflict | kDecideAnew | The object has changed since we read it. |
/// | kExpired | kDecideAnew | A version (list again) or evidence (observe again) is no longer valid. |
/// | kForbidden | kNotByItself | Rights are missing. |
/// | kUnauthorized | kRenewCredentials | The token was refused. |
/// | kTooManyRequests | kLater | The server refused the request before doing anything. |
/// | kUnavailable | kLater | The request did not reach the server that would carry it out. |
/// | kUnknownOutcome | kSettle | The reply was lost. |
/// | kBusy | kHeld | Slurm still uses the object. |
/// | kUnsupported | kNotByItself | This server does not support the request. |
/// | kInternal | kNotByItself | Nobody knows when the server will stop failing. |
/// | kCancelled | kDecideAnew | We cancelled the request: we do not lead, or our lease is about to end. |
[[nodiscard]] Retry retry_of(ErrorCode code);

/// Returns the code to use for a read that failed with `code`: kUnavailable for a lost reply, because a read has no effect.
[[nodiscard]] ErrorCode code_of_read(ErrorCode code);

}  // namespace core
