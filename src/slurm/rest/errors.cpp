#include "slurm/rest/errors.hpp"

#include <algorithm>
#include <optional>

#include "core/retry.hpp"

namespace slurm {
namespace {

using core::ErrorCode;

/// Returns the error code of a request whose reply was lost.
ErrorCode lost_reply(RequestKind kind) {
  return kind == RequestKind::kWrite ? ErrorCode::kUnknownOutcome : core::code_of_read(ErrorCode::kUnknownOutcome);
}

std::optional<ErrorCode> by_number(std::int64_t number, RequestKind kind) {
  const ErrorCode lost = lost_reply(kind);
  switch (number) {
    case 111:   // ECONNREFUSED
    case 1001:  // SLURM_COMMUNICATIONS_CONNECTION_ERROR
    case 1021:  // SLURM_COMMUNICATIONS_CONNECT_TIMEOUT
    case 1800:  // SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR
    case 1805:  // SLURMCTLD_COMMUNICATIONS_HARD_DROP
    case 2027:  // ESLURM_IN_STANDBY_MODE
    case 2041:  // ESLURM_TAKEOVER_NO_HEARTBEAT
      return ErrorCode::kUnavailable;
    case 104:   // ECONNRESET
    case 110:   // ETIMEDOUT
    case 1002:  // SLURM_COMMUNICATIONS_SEND_ERROR
    case 1003:  // SLURM_COMMUNICATIONS_RECEIVE_ERROR
    case 1004:  // SLURM_COMMUNICATIONS_SHUTDOWN_ERROR
    case 1022:  // SLURM_COMMUNICATIONS_WRITE_TIMEOUT
    case 1023:  // SLURM_COMMUNICATIONS_READ_TIMEOUT
    case 1801:  // SLURMCTLD_COMMUNICATIONS_SEND_ERROR
    case 1802:  // SLURMCTLD_COMMUNICATIONS_RECEIVE_ERROR
    case 1803:  // SLURMCTLD_COMMUNICATIONS_SHUTDOWN_ERROR
    case 5003:  // ESLURM_PROTOCOL_INCOMPLETE_PACKET
    case 5004:  // SLURM_PROTOCOL_SOCKET_IMPL_TIMEOUT
    case 5005:  // SLURM_PROTOCOL_SOCKET_ZERO_BYTES_SENT
    case 7000:  // ESLURM_DB_CONNECTION
    case 7008:  // ESLURM_DB_CONNECTION_INVALID
      return lost;
    case 1804:  // SLURMCTLD_COMMUNICATIONS_BACKOFF
      return ErrorCode::kTooManyRequests;
    case 1007:  // SLURM_PROTOCOL_AUTHENTICATION_ERROR
      return ErrorCode::kUnauthorized;
    case 2002:  // ESLURM_ACCESS_DENIED
    case 2010:  // ESLURM_USER_ID_MISSING
      return ErrorCode::kForbidden;
    case 2016:  // ESLURM_NODES_BUSY
    case 2019:  // ESLURM_WRITING_TO_FILE
    case 2020:  // ESLURM_TRANSITION_STATE_NO_UPDATE
    case 2055:  // ESLURM_RESERVATION_BUSY
    case 2061:  // ESLURM_PROLOG_RUNNING
    case 2075:  // ESLURM_PARTITION_IN_USE
    case 7001:  // ESLURM_JOBS_RUNNING_ON_ASSOC
    case 7009:  // ESLURM_NO_REMOVE_DEFAULT_ACCOUNT
    case 7011:  // ESLURM_NO_REMOVE_DEFAULT_QOS
      return ErrorCode::kBusy;
    case 2017:  // ESLURM_INVALID_JOB_ID
    case 2018:  // ESLURM_INVALID_NODE_NAME
    case 2021:  // ESLURM_ALREADY_DONE
    case 9003:  // ESLURM_REST_EMPTY_RESULT
      return ErrorCode::kNotFound;
    case 2073:  // ESLURM_JOB_NOT_PENDING
    case 9210:  // ESLURM_DATA_AMBIGUOUS_MODIFY
      return ErrorCode::kConflict;
    case 2168:  // ESLURM_NODE_ALREADY_EXISTS
      return ErrorCode::kAlreadyExists;
    case 1005:  // SLURM_PROTOCOL_VERSION_ERROR
    case 2036:  // ESLURM_NOT_SUPPORTED
    case 2037:  // ESLURM_DISABLED
      return ErrorCode::kUnsupported;
    case 2000:  // ESLURM_INVALID_PARTITION_NAME
    case 2028:  // ESLURM_INVALID_NODE_STATE
    case 2029:  // ESLURM_INVALID_FEATURE
    case 2031:  // ESLURM_ACTIVE_FEATURE_NOT_SUBSET
    case 2045:  // ESLURM_INVALID_ACCOUNT
    case 2046:  // ESLURM_INVALID_PARENT_ACCOUNT
    case 2047:  // ESLURM_SAME_PARENT_ACCOUNT
    case 2066:  // ESLURM_INVALID_QOS
    case 7104:  // ESLURM_INVALID_CLUSTER_NAME
    case 2180:  // ESLURM_INVALID_NODE_STATE_TRANSITION
    case 7004:  // ESLURM_BAD_NAME
      return ErrorCode::kInvalid;
    default:
      return std::nullopt;
  }
}

ErrorCode by_status(int status, RequestKind kind) {
  switch (status) {
    case 401:
    case 511:  // Network Authentication Required: slurmrestd reports a token that slurmctld refused.
      return ErrorCode::kUnauthorized;
    case 403:
      return ErrorCode::kForbidden;
    case 404:
      return ErrorCode::kNotFound;
    case 429:
      return ErrorCode::kTooManyRequests;
    case 503:
      return ErrorCode::kUnavailable;
    case 502:
    case 504:
      return lost_reply(kind);
    default:
      if (status >= 400 && status < 500) return ErrorCode::kInvalid;
      return kind == RequestKind::kWrite && status >= 500 ? ErrorCode::kUnknownOutcome : ErrorCode::kInternal;
  }
}

std::string one_line(std::string_view text) {
  constexpr std::size_t kLongest = 300;
  std::string out(text.substr(0, kLongest));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

ErrorCode classify(std::int64_t number, int http_status, RequestKind kind) {
  if (const auto known = by_number(number, kind)) return *known;
  // An unknown number is still a refusal, because slurmctld has answered.
  return by_status(http_status, number == 0 ? kind : RequestKind::kRead);
}

core::Error to_error(const std::vector<RestError>& errors, int http_status, RequestKind kind) {
  const auto numbered = std::ranges::find_if(errors, [](const RestError& e) { return e.number != 0; });
  const std::int64_t number = numbered == errors.end() ? 0 : numbered->number;
  core::Error out;
  out.code = classify(number, http_status, kind);
  out.http_status = http_status;
  if (number != 0) out.reason = std::to_string(number);
  for (const RestError& error : errors) {
    if (!out.message.empty()) out.message += "; ";
    out.message += error.description;
    if (error.number != 0) out.message += (error.description.empty() ? "" : ": ") + error.text;
  }
  out.message = one_line(out.message);
  return out;
}

core::Error to_error(int http_status, std::string_view body, RequestKind kind) {
  core::Error out;
  out.code = by_status(http_status, kind);
  out.http_status = http_status;
  out.message = "HTTP " + std::to_string(http_status) + (body.empty() ? "" : ": ") + one_line(body);
  return out;
}

}  // namespace slurm
