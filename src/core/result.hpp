// Errors as values.
//
// Every boundary of the project returns Result<T>. The message of an Error describes the problem so that a user can act on it.
// Code decides by the other members: the code, the HTTP status, how long to wait. Exceptions mean bugs.
//
//   Result<Node> n = parse_node(text);
//   if (!n) return std::unexpected(n.error().with("node table"));
#pragma once

#include <chrono>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace core {

/// The kind of a failure. Where the Kubernetes API has a reason for this kind, the name is that reason.
enum class ErrorCode {
  kInvalid,          ///< The input is wrong; trying again with the same input cannot help.
  kNotFound,         ///< 404, or a Slurm node that does not exist.
  kAlreadyExists,    ///< 409 AlreadyExists: the object to create exists.
  kConflict,         ///< 409 Conflict: a precondition or resourceVersion did not hold.
  kExpired,          ///< 410: the resourceVersion is too old (or too new): list again. Or evidence is too old: observe again.
  kForbidden,        ///< 403: rights are missing.
  kUnauthorized,     ///< 401: renew the credentials.
  kTooManyRequests,  ///< 429: honour retry_after.
  kUnavailable,      ///< The request was not carried out: refused connection, 503, nothing sent in time.
  kUnknownOutcome,   ///< The reply was lost: the request may or may not have been carried out.
  kBusy,             ///< Slurm still uses the object (ESLURM 2016 and the like): wait.
  kUnsupported,      ///< This server does not support the request.
  kInternal,         ///< Another 5xx, or a malformed reply.
  kCancelled,        ///< We cancelled the request.
};

std::string_view to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;                                   ///< One line, no secrets.
  int http_status = 0;                                   ///< 0 if no reply came.
  std::string reason;                                    ///< The server's reason, e.g. "FieldManagerConflict".
  std::optional<std::chrono::milliseconds> retry_after;  ///< How long the server asks to wait.

  /// Returns this error with `place` in front of its message: "place: message".
  [[nodiscard]] Error with(std::string_view place) const;
};

template <class T>
using Result = std::expected<T, Error>;

/// Shorthand for returning a failure: `return fail(ErrorCode::kInvalid, "replicas: -1, must be 0 or more");`
[[nodiscard]] inline std::unexpected<Error> fail(ErrorCode code, std::string message) {
  return std::unexpected(Error{code, std::move(message), 0, {}, {}});
}

}  // namespace core
