// Translates Slurm's error numbers to core::Error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace slurm {

enum class RequestKind : std::uint8_t {
  kRead,
  kTable,  ///< Reads a whole table, which can take long.
  kWrite,  ///< A write. If its reply is lost, nobody knows whether the write was carried out.
};

/// One entry of a reply's errors[].
struct RestError {
  std::int64_t number = 0;
  std::string text;         ///< Slurm's text for the number.
  std::string description;  ///< The operation that slurmrestd tried.
};

/// Returns the class of an error number (slurm/slurm_errno.h). If slurmrestd lost its connection to slurmctld, the outcome of a
/// write is unknown. A number that we do not know is a refusal, because slurmctld has answered; `http_status` gives its class.
[[nodiscard]] core::ErrorCode classify(std::int64_t number, int http_status, RequestKind kind);

/// Returns the error for a reply's errors[], which must not be empty. The first entry with a number decides. The message has
/// all entries. `reason` is the number, or "" if no entry has one.
[[nodiscard]] core::Error to_error(const std::vector<RestError>& errors, int http_status, RequestKind kind);

/// Returns the error for a reply without an envelope (plain text, a proxy's page).
[[nodiscard]] core::Error to_error(int http_status, std::string_view body, RequestKind kind);

}  // namespace slurm
