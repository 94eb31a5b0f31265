#include "core/result.hpp"

namespace core {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid:
      return "Invalid";
    case ErrorCode::kNotFound:
      return "NotFound";
    case ErrorCode::kAlreadyExists:
      return "AlreadyExists";
    case ErrorCode::kConflict:
      return "Conflict";
    case ErrorCode::kExpired:
      return "Expired";
    case ErrorCode::kForbidden:
      return "Forbidden";
    case ErrorCode::kUnauthorized:
      return "Unauthorized";
    case ErrorCode::kTooManyRequests:
      return "TooManyRequests";
    case ErrorCode::kUnavailable:
      return "Unavailable";
    case ErrorCode::kUnknownOutcome:
      return "UnknownOutcome";
    case ErrorCode::kBusy:
      return "Busy";
    case ErrorCode::kUnsupported:
      return "Unsupported";
    case ErrorCode::kInternal:
      return "Internal";
    case ErrorCode::kCancelled:
      return "Cancelled";
  }
  return "Internal";
}

Error Error::with(std::string_view place) const {
  Error error = *this;
  error.message = std::string(place) + ": " + message;
  return error;
}

}  // namespace core
