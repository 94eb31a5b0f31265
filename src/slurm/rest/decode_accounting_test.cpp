#include "slurm/rest/decode_accounting.hpp"

#include <gtest/gtest.h>

namespace slurm {
namespace {

std::string reply(const std::string& list, const std::string& rows) {
  return "{\"" + list + "\":[" + rows + R"(],"errors":[],"warnings":[],"meta":{"slurm":{"release":"26.05.5"}}})";
}

TEST(DecodeAccounting, AQosWithEveryKindOfLimit) {
  const auto decoded = decode_qos(reply("qos", R"({
    "id": 7, "name": "gpu", "description": "for GPUs", "flags": ["DENY_LIMIT", "NO_DECAY"],
    "priority": {"set": true, "infinite": false, "number": 100},
    "preempt": {"list": ["low"], "mode": ["CANCEL"], "exempt_time": {"set": true, "infinite": false, "number": 60}},
    "usage_factor": {"set": true, "infinite": false, "number": 1.5},
    "usage_threshold": {"set": false, "infinite": false, "number": 0.0},
    "limits": {
      "grace_time": 30, "factor": {"set": false, "infinite": false, "number": 0},
      "max": {
        "active_jobs": {"accruing": {"set": false, "infinite": true, "number": 0}, "count": {"set": true, "number": 8}},
        "jobs": {"count": {"set": false}, "active_jobs": {"per": {"user": {"set": true, "number": 4}}},
                 "per": {"account": {"set": true, "number": 40}}},
        "tres": {"total": [{"type": "cpu", "name": "", "id": 1, "count": 64}, {"type": "gres", "name": "gpu", "count": 8}],
                 "minutes": {"per": {"job": [{"type": "cpu", "name": "", "count": 600}], "qos": []}}},
        "wall_clock": {"per": {"job": {"set": true, "number": 1440}}}},
      "min": {"priority_threshold": {"set": false}, "tres": {"per": {"job": [{"type": "node", "name": "", "count": 1}]}}}}})"));
  ASSERT_TRUE(decoded) << decoded.error().message;
  ASSERT_EQ(decoded->rows.size(), 1U);
  const accounting::Qos& qos = *decoded->rows[0];
  EXPECT_EQ(qos.id, 7);
  EXPECT_EQ(qos.name, "gpu");
  EXPECT_EQ(qos.description, "for GPUs");
  EXPECT_EQ(qos.flags, (std::set<std::string>{"DENY_LIMIT", "NO_DECAY"}));
  EXPECT_EQ(qos.priority, Number(100));
  EXPECT_EQ(qos.preempts, std::vector<std::string>{"low"});
  EXPECT_EQ(qos.preempt_modes, std::vector<std::string>{"CANCEL"});
  EXPECT_EQ(qos.preempt_exempt_seconds, Number(60));
  EXPECT_EQ(qos.grace_seconds, 30);
  EXPECT_EQ(qos.usage_factor, 1.5);
  EXPECT_EQ(qos.usage_threshold, std::nullopt);
  EXPECT_EQ(qos.limit_factor, std::nullopt);
  const std::map<std::string, Number, std::less<>> counts{{"GrpJobsAccrue", Infinite{}},
                                                          {"GrpJobs", 8},
                                                          {"MaxJobsPerUser", 4},
                                                          {"MaxSubmitJobsPerAccount", 40},
                                                          {"MaxWallDurationPerJob", 1440}};
  EXPECT_EQ(qos.limits.counts, counts);
  const std::map<std::string, std::map<std::string, std::int64_t>, std::less<>> tres{
      {"GrpTRES", {{"cpu", 64}, {"gres/gpu", 8}}}, {"MaxTRESMinsPerJob", {{"cpu", 600}}}, {"MinTRESPerJob", {{"node", 1}}}};
  EXPECT_EQ(qos.limits.tres, tres);
}

TEST(DecodeAccounting, AnAssociationOfOldAndNew) {
  const std::string rest = R"("cluster": "c", "account": "physics", "user": "ann", "partition": "gpu", "parent_account": "",
    "is_default": true, "shares_raw": 5, "comment": "x", "default": {"qos": "normal"}, "qos": ["normal", "gpu"],
    "priority": {"set": true, "number": 3},
    "max": {"jobs": {"active": {"set": true, "number": 2}, "per": {"wall_clock": {"set": true, "number": 60}}},
            "tres": {"group": {"minutes": [{"type": "cpu", "name": "", "count": 1000}]}},
            "per": {"account": {"wall_clock": {"set": true, "number": 90}}}},
    "min": {"priority_threshold": {"set": false}})";
  const auto decoded = decode_associations(
      reply("associations", R"({"id": 12,)" + rest + R"(},{"id": {"id": 13, "user": "bob", "cluster": "d"},)" + rest + "}"));
  ASSERT_TRUE(decoded) << decoded.error().message;
  ASSERT_EQ(decoded->rows.size(), 2U);
  accounting::Association row = *decoded->rows[1];
  EXPECT_EQ(row.id, 13);
  EXPECT_EQ(row.user, "ann") << "the identity repeats names, and is no place to read them";
  row.id = 12;
  EXPECT_EQ(row, *decoded->rows[0]);
  EXPECT_EQ(row.cluster, "c");
  EXPECT_EQ(row.account, "physics");
  EXPECT_EQ(row.partition, "gpu");
  EXPECT_EQ(row.default_qos, "normal");
  EXPECT_EQ(row.qos, (std::vector<std::string>{"normal", "gpu"}));
  EXPECT_EQ(row.shares, 5);
  EXPECT_TRUE(row.is_default);
  EXPECT_EQ(row.priority, Number(3));
  const std::map<std::string, Number, std::less<>> counts{{"MaxJobs", 2}, {"MaxWallDurationPerJob", 60}, {"GrpWall", 90}};
  EXPECT_EQ(row.limits.counts, counts);
  EXPECT_EQ(row.limits.tres.at("GrpTRESMins").at("cpu"), 1000);
}

TEST(DecodeAccounting, AccountsUsersClustersAndTres) {
  const auto accounts =
      decode_accounts(reply("accounts", R"({"name":"a","description":"d","organization":"o","associations":[]})"));
  ASSERT_TRUE(accounts);
  EXPECT_EQ(*accounts->rows.at(0), (accounting::Account{"a", "d", "o"}));
  const auto coordinated = decode_accounts(
      reply("accounts", R"({"name":"a","coordinators":[{"name":"ann","direct":true},{"direct":false,"name":"bob"}]})"));
  ASSERT_TRUE(coordinated);
  EXPECT_EQ(coordinated->rows.at(0)->coordinators, std::set<std::string>{"ann"});
  EXPECT_EQ(coordinated->rows.at(0)->inherited_coordinators, std::set<std::string>{"bob"});
  const auto users = decode_users(reply(
      "users", R"({"name":"ann","default":{"account":"a","qos":0},"administrator_level":["Operator"],"coordinators":[]})"));
  ASSERT_TRUE(users);
  EXPECT_EQ(*users->rows.at(0), (accounting::User{"ann", "a", {"Operator"}}));
  const auto clusters = decode_clusters(reply("clusters", R"({"name":"c","controller":{"host":"10.0.0.1","port":6817}})"));
  ASSERT_TRUE(clusters);
  EXPECT_EQ(*clusters->rows.at(0), (accounting::Cluster{"c", "10.0.0.1", 6817}));
  const auto tres =
      decode_tres(reply("TRES", R"({"type":"gres","name":"gpu","id":1001,"count":0},{"type":"cpu","name":"","id":1})"));
  ASSERT_TRUE(tres);
  EXPECT_EQ(*tres->rows.at(0), (accounting::Tres{1001, "gres/gpu"}));
  EXPECT_EQ(*tres->rows.at(1), (accounting::Tres{1, "cpu"}));
}

TEST(DecodeAccounting, ARowWithoutItsNameMakesTheListNoList) {
  for (const auto& error : {decode_qos(reply("qos", R"({"id":1})")).error(), decode_accounts(reply("accounts", "{}")).error(),
                            decode_users(reply("users", "{}")).error(), decode_clusters(reply("clusters", "{}")).error(),
                            decode_associations(reply("associations", R"({"account":"a"})")).error(),
                            decode_tres(reply("TRES", R"({"id":1})")).error()}) {
    EXPECT_EQ(error.code, core::ErrorCode::kInternal);
    EXPECT_NE(error.message.find("without a name"), std::string::npos) << error.message;
  }
  const auto absent = decode_qos(reply("nothing", ""));
  ASSERT_TRUE(absent);
  EXPECT_FALSE(absent->present);
}

}  // namespace
}  // namespace slurm
