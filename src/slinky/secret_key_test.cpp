#include "slinky/secret_key.hpp"

#include <gtest/gtest.h>

#include "kube/testing/client_fixture.hpp"

namespace slinky {
namespace {

class SecretKeyTest : public ::testing::Test, protected kube::ClientFixture {
 protected:
  core::Result<std::string> read(int status, const core::Json& body) {
    core::Result<std::string> out;
    bool done = false;
    secret_key(client, {"bridge", "jwt"}, "jwt.key")([&](core::Result<std::string> bytes) {
      out = std::move(bytes);
      done = true;
    });
    api.take("GET", "/api/v1/namespaces/bridge/secrets/jwt").reply(status, body);
    loop.run_ready();
    EXPECT_TRUE(done);
    return out;
  }
};

TEST_F(SecretKeyTest, ReadsTheBytesUnderTheDataKey) {
  EXPECT_EQ(read(200, kube::object_json("bridge", "jwt", "1", "", {{"data", {{"jwt.key", "QUFB"}}}})).value(), "AAA");
  EXPECT_EQ(read(200, kube::object_json("bridge", "jwt", "1", "", {{"data", {{"other", "QUFB"}}}})).value(), "");
  EXPECT_FALSE(read(200, kube::object_json("bridge", "jwt", "1", "", {{"data", {{"jwt.key", "?"}}}})).has_value());
  EXPECT_EQ(read(404, {{"kind", "Status"}, {"reason", "NotFound"}}).error().code, core::ErrorCode::kNotFound);
}

TEST_F(SecretKeyTest, ConnectsToAnAddressWithoutARestApi) {
  std::string host;
  slurm::Clusters clusters{loop, random, log, [&](const slurm::Endpoint& endpoint) {
                             host = endpoint.host;
                             return std::make_unique<kube::FakeTransport>();
                           }};
  slurm::KeyedCluster site(loop, clusters, "site");
  site.connect({"slurmrestd.example.org"}, secret_key(client, {"bridge", "jwt"}, "jwt.key"));
  api.take("GET", "/api/v1/namespaces/bridge/secrets/jwt")
      .reply(200, kube::object_json("bridge", "jwt", "1", "",
                                    {{"data", {{"jwt.key", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="}}}}));
  loop.run_ready();
  EXPECT_TRUE(clusters.contains("site"));
  EXPECT_EQ(host, "slurmrestd.example.org");
}

}  // namespace
}  // namespace slinky
