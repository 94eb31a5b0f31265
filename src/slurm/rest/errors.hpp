// Slurm's error numbers as the project's errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace slurm {

enum class RequestKind : std::uint8_t {
  kRead,
  kTable,  ///< Reads a whole table, which may take long.
  kWrite,  ///< If its reply is lost, nobody knows whether it was carried out.
};

/// One entry of a reply's errors[].
struct RestError {
  std::int64_t number = 0;
  std::string text;         ///< Slurm's words for the number.
  std::string description;  ///< What slurmrestd was about to do.
};

/// Class of an error number (slurm/slurm_errno.h). A lost connection between slurmrestd and slurmctld leaves the outcome of a
/// write unknown. Numbers without a class of their own are told by `http_status`.
[[nodiscard]] core::ErrorCode classify(std::int64_t number, int http_status, RequestKind kind);

/// The error that a reply's errors[] (not empty) stand for: the first that has a number speaks; all are in the message. Its
/// `reason` is the number.
[[nodiscard]] core::Error to_error(const std::vector<RestError>& errors, int http_status, RequestKind kind);

/// The error of a reply without an envelope (plain text, a proxy's page).
[[nodiscard]] core::Error to_error(int http_status, std::string_view body, RequestKind kind);

}  // namespace slurm
