#include "slurm/rest/errors.hpp"

#include <gtest/gtest.h>

namespace slurm {
namespace {

using core::ErrorCode;

TEST(Errors, NumbersSpeakBeforeStatuses) {
  EXPECT_EQ(classify(2016, 500, RequestKind::kWrite), ErrorCode::kBusy);
  EXPECT_EQ(classify(2018, 500, RequestKind::kWrite), ErrorCode::kNotFound);
  EXPECT_EQ(classify(2018, 422, RequestKind::kWrite), ErrorCode::kNotFound);
  EXPECT_EQ(classify(1800, 502, RequestKind::kWrite), ErrorCode::kUnavailable);
  EXPECT_EQ(classify(2002, 500, RequestKind::kWrite), ErrorCode::kForbidden);
  EXPECT_EQ(classify(2027, 500, RequestKind::kWrite), ErrorCode::kUnavailable);
  EXPECT_EQ(classify(1007, 511, RequestKind::kRead), ErrorCode::kUnauthorized);
  EXPECT_EQ(classify(2028, 500, RequestKind::kWrite), ErrorCode::kInvalid);
  EXPECT_EQ(classify(2168, 500, RequestKind::kWrite), ErrorCode::kAlreadyExists);
  EXPECT_EQ(classify(2073, 422, RequestKind::kWrite), ErrorCode::kConflict);
  for (const int number : {7001, 7009, 7011}) EXPECT_EQ(classify(number, 500, RequestKind::kWrite), ErrorCode::kBusy);
  for (const int number : {2045, 2046, 2066}) EXPECT_EQ(classify(number, 500, RequestKind::kWrite), ErrorCode::kInvalid);
  EXPECT_EQ(classify(1804, 500, RequestKind::kWrite), ErrorCode::kTooManyRequests);
}

TEST(Errors, ALostReplyLeavesAWriteOpenAndAReadUndone) {
  for (const int number : {1002, 1003, 1801, 1802, 5004}) {
    EXPECT_EQ(classify(number, 500, RequestKind::kWrite), ErrorCode::kUnknownOutcome) << number;
    EXPECT_EQ(classify(number, 500, RequestKind::kRead), ErrorCode::kUnavailable) << number;
  }
  EXPECT_EQ(classify(0, 504, RequestKind::kWrite), ErrorCode::kUnknownOutcome);
  EXPECT_EQ(classify(0, 504, RequestKind::kRead), ErrorCode::kUnavailable);
}

TEST(Errors, UnknownNumbersGoByStatus) {
  EXPECT_EQ(classify(-1, 500, RequestKind::kRead), ErrorCode::kInternal);
  EXPECT_EQ(classify(9207, 500, RequestKind::kWrite), ErrorCode::kInternal);
  EXPECT_EQ(classify(9999, 422, RequestKind::kWrite), ErrorCode::kInvalid);
  EXPECT_EQ(classify(0, 401, RequestKind::kWrite), ErrorCode::kUnauthorized);
  EXPECT_EQ(classify(0, 500, RequestKind::kWrite), ErrorCode::kUnknownOutcome) << "nobody says that it was not done";
  EXPECT_EQ(classify(0, 500, RequestKind::kRead), ErrorCode::kInternal);
  EXPECT_EQ(classify(0, 200, RequestKind::kWrite), ErrorCode::kInternal) << "200 with errors is an error";
}

TEST(Errors, MessageNamesAllAndReasonTheFirstNumber) {
  const core::Error error = to_error(
      {{0, "No error", "first"}, {2016, "Requested nodes are busy", "Failure to delete node n1"}}, 500, RequestKind::kWrite);
  EXPECT_EQ(error.code, ErrorCode::kBusy);
  EXPECT_EQ(error.reason, "2016");
  EXPECT_EQ(error.http_status, 500);
  EXPECT_EQ(error.message, "first; Failure to delete node n1: Requested nodes are busy");
}

TEST(Errors, PlainTextIsCutToOneLine) {
  const core::Error error = to_error(500, "one\ntwo\n" + std::string(1000, 'x'), RequestKind::kRead);
  EXPECT_EQ(error.message.substr(0, 18), "HTTP 500: one two ");
  EXPECT_LT(error.message.size(), 330U);
}

}  // namespace
}  // namespace slurm
