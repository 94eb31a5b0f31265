#include "core/retry.hpp"

namespace core {

Retry retry_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kTooManyRequests:
    case ErrorCode::kUnavailable:
      return Retry::kLater;
    case ErrorCode::kBusy:
      return Retry::kHeld;
    case ErrorCode::kUnknownOutcome:
      return Retry::kSettle;
    case ErrorCode::kAlreadyExists:
    case ErrorCode::kConflict:
    case ErrorCode::kExpired:
    case ErrorCode::kCancelled:
      return Retry::kDecideAnew;
    case ErrorCode::kUnauthorized:
      return Retry::kRenewCredentials;
    case ErrorCode::kInvalid:
    case ErrorCode::kNotFound:
    case ErrorCode::kForbidden:
    case ErrorCode::kUnsupported:
    case ErrorCode::kInternal:
      return Retry::kNotByItself;
  }
  return Retry::kNotByItself;
}

ErrorCode code_of_read(ErrorCode code) {
  return retry_of(code) == Retry::kSettle ? ErrorCode::kUnavailable : code;
}

}  // namespace core
