#include "bridge/rights.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace bridge {
namespace {

TEST(Rights, TheChartGrantsWhatThePartsDeclare) {
  const api::GeneratedFile file = rights_file();
  std::ifstream in(file.path, std::ios::binary);
  std::stringstream have;
  have << in.rdbuf();
  EXPECT_EQ(have.str(), file.text) << file.path << " is not what the parts declare: run slurm-operator-gen";
}

}  // namespace
}  // namespace bridge
