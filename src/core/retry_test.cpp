#include "core/retry.hpp"

#include <gtest/gtest.h>

#include <map>

namespace core {
namespace {

/// The table in retry.hpp. It must contain all codes.
const std::map<ErrorCode, Retry> kTable = {
    {ErrorCode::kInvalid, Retry::kNotByItself},
    {ErrorCode::kNotFound, Retry::kNotByItself},
    {ErrorCode::kAlreadyExists, Retry::kDecideAnew},
    {ErrorCode::kConflict, Retry::kDecideAnew},
    {ErrorCode::kExpired, Retry::kDecideAnew},
    {ErrorCode::kForbidden, Retry::kNotByItself},
    {ErrorCode::kUnauthorized, Retry::kRenewCredentials},
    {ErrorCode::kTooManyRequests, Retry::kLater},
    {ErrorCode::kUnavailable, Retry::kLater},
    {ErrorCode::kUnknownOutcome, Retry::kSettle},
    {ErrorCode::kBusy, Retry::kHeld},
    {ErrorCode::kUnsupported, Retry::kNotByItself},
    {ErrorCode::kInternal, Retry::kNotByItself},
    {ErrorCode::kCancelled, Retry::kDecideAnew},
};

TEST(Retry, EveryCodeHasOneAnswer) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kCancelled); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    ASSERT_TRUE(kTable.contains(code)) << to_string(code);
    EXPECT_EQ(retry_of(code), kTable.at(code)) << to_string(code);
  }
}

TEST(Retry, AReadHasNoOutcomeThatIsUnknown) {
  for (const auto& [code, retry] : kTable) {
    EXPECT_EQ(code_of_read(code), code == ErrorCode::kUnknownOutcome ? ErrorCode::kUnavailable : code) << to_string(code);
  }
}

}  // namespace
}  // namespace core
