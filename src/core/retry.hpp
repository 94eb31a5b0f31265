// Maps the code of an error to when the failed request may be sent again. No other code in the project decides this.
#pragma once

#include "core/result.hpp"

namespace core {

enum class Retry {
  /// Try again after a wait (Error::retry_after, if the server has set it). The request was certainly not carried out, so even
  /// a write may be sent again. Requests about other objects should wait as well, because the server would refuse them too.
  kLater,
  /// Try again after a wait, because something else uses the object. Requests about other objects need not wait.
  kHeld,
  /// Find out the outcome first, because the server might have carried out the write. For a read, see code_of_read.
  kSettle,
  /// Observe and decide again, because the state has changed since the decision. No user needs to act.
  kDecideAnew,
  /// Try again once, with new credentials.
  kRenewCredentials,
  /// The request succeeds only after somebody has changed something. The error is reported at once. The request is tried again
  /// with a growing backoff, because nothing reports the change.
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

/// Returns the code to use if the failed request was a read: kUnavailable for kUnknownOutcome, since a read has no effect.
[[nodiscard]] ErrorCode code_of_read(ErrorCode code);

}  // namespace core
