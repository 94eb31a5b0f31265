#include "enlist/rules/model.hpp"

#include <gtest/gtest.h>

namespace enlist {
namespace {

TEST(Phases, EachHasANameThatIsReadAgain) {
  for (int number = static_cast<int>(Phase::kPending); number <= static_cast<int>(Phase::kSilent); ++number) {
    const auto phase = static_cast<Phase>(number);
    EXPECT_FALSE(to_string(phase).empty()) << number;
    EXPECT_EQ(phase_from(to_string(phase)), phase);
  }
  EXPECT_EQ(to_string(Phase::kConfirming), "Confirming");
  EXPECT_EQ(phase_from("confirming"), std::nullopt);
  EXPECT_EQ(phase_from(""), std::nullopt);
}

}  // namespace
}  // namespace enlist
