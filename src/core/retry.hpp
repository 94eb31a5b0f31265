// What has to happen before a request that failed may be tried again. The one place that decides it, by the code of its error.
#pragma once

#include "core/result.hpp"

namespace core {

enum class Retry {
  /// After a wait (Error::retry_after, where the server said how long). It was certainly not carried out, so the same request
  /// may be sent again, a write too. Until then the server would refuse others as well.
  kLater,
  /// After a wait: something else holds what it is about. Requests about other things need not wait.
  kHeld,
  /// After it is known what became of it: a write may have been carried out. A read has no outcome: see code_of_read.
  kSettle,
  /// After another look at what is, and a new decision: what the request was made from has changed since. It mends itself.
  kDecideAnew,
  /// With new credentials, once.
  kRenewCredentials,
  /// Not by itself: the same request gets the same answer until somebody changes something. Users are told at once; it is tried
  /// again with a growing backoff, because nobody says when they have.
  kNotByItself,
};

/// | Code | Retry | Because |
/// | --- | --- | --- |
/// | kInvalid | kNotByItself | The request itself is wrong. |
/// | kNotFound | kNotByItself | What it needs is missing; somebody has to make it. |
/// | kAlreadyExists | kDecideAnew | Made since it was looked for, by us or by somebody else. |
/// | kConflict | kDecideAnew | Changed since it was read. |
/// | kExpired | kDecideAnew | What it refers to is not good any more: a version (list again), or evidence (observe again). |
/// | kForbidden | kNotByItself | Rights are missing. |
/// | kUnauthorized | kRenewCredentials | The token was refused. |
/// | kTooManyRequests | kLater | Refused before anything was done. |
/// | kUnavailable | kLater | It never got to whoever would have carried it out. |
/// | kUnknownOutcome | kSettle | The reply was lost. |
/// | kBusy | kHeld | Slurm still uses it. |
/// | kUnsupported | kNotByItself | This server cannot do it. |
/// | kInternal | kNotByItself | A server that fails like that says nothing of when it would not. |
/// | kCancelled | kDecideAnew | We withdrew it (not the leader, the lease is about to end). |
[[nodiscard]] Retry retry_of(ErrorCode code);

/// The code of a read that failed with this code: one whose reply was lost left nothing behind, and may be sent again.
[[nodiscard]] ErrorCode code_of_read(ErrorCode code);

}  // namespace core
