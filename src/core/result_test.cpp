#include "core/result.hpp"

#include <gtest/gtest.h>

#include <set>

namespace core {
namespace {

TEST(Result, WithPutsThePlaceInFrontAndKeepsTheFacts) {
  const Error error{ErrorCode::kTooManyRequests, "slow down", 429, "TooManyRequests", std::chrono::milliseconds{2000}};
  const Error placed = error.with("list pods");
  EXPECT_EQ(placed.message, "list pods: slow down");
  EXPECT_EQ(placed.code, ErrorCode::kTooManyRequests);
  EXPECT_EQ(placed.http_status, 429);
  EXPECT_EQ(placed.retry_after, std::chrono::milliseconds{2000});
}

TEST(Result, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(ErrorCode::kCancelled); ++i) names.insert(to_string(static_cast<ErrorCode>(i)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kCancelled) + 1);
}

}  // namespace
}  // namespace core
