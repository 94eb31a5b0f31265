#include "operator/common/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kube/cache/record.hpp"

namespace op {
namespace {

using core::Json;
using ::testing::HasSubstr;

std::vector<std::string> refusals(const Json& state, const char* phase = "Running") {
  const Json pod{{"metadata", {{"name", "login-1"}}},
                 {"status", {{"phase", phase}, {"initContainerStatuses", {{{"name", "check"}, {"state", state}}}}}}};
  std::vector<std::string> out;
  for (const Problem& problem : refused_files({kube::record_from_json<kube::PodRecord>(pod).value()}))
    out.push_back(problem.reason + " " + problem.message);
  return out;
}

Json ended(const char* message) {
  return {{"terminated", {{"exitCode", 0}, {"message", message}}}};
}

TEST(Check, WhatDaemonsRefuseIsQuoted) {
  const std::vector<std::string> none;
  EXPECT_EQ(refusals(ended("")), none);
  EXPECT_EQ(refusals(ended("sshd: no hostkeys available -- exiting.\n")),
            std::vector<std::string>{"SshdRefuses pod login-1: sshd reports: no hostkeys available -- exiting."});
  EXPECT_EQ(refusals(ended("sssd: Failed to parse\nEqual sign is missing.\n")),
            std::vector<std::string>{"SssdRefuses pod login-1: SSSD reports: Failed to parse; Equal sign is missing."});
  EXPECT_EQ(refusals(ended("sshd: a\nb\nsssd: c\n")), (std::vector<std::string>{"SshdRefuses pod login-1: sshd reports: a; b",
                                                                                "SssdRefuses pod login-1: SSSD reports: c"}));
  EXPECT_EQ(refusals(ended("OOMKilled")), none);
  EXPECT_EQ(refusals({{"waiting", {{"reason", "PodInitializing"}, {"message", "sshd: x"}}}}), none);
  EXPECT_EQ(refusals(ended("sshd: x"), "Failed"), none) << "another one is made in its place";
}

TEST(Check, LooksAtWhatThePodHas) {
  const auto script = [](Checked what) { return check_container("i", what, Json::array())["command"][2].get<std::string>(); };
  EXPECT_THAT(script({.sshd = true}), HasSubstr("sshd -t"));
  EXPECT_EQ(script({.sshd = true}).find("sssd"), std::string::npos);
  EXPECT_THAT(script({.sssd = true}), HasSubstr("sssd -i"));
}

}  // namespace
}  // namespace op
