#include "slurm/snapshot/keyed_cluster.hpp"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "core/testing/fake_random.hpp"
#include "core/testing/manual_loop.hpp"

namespace slurm {
namespace {

using namespace std::chrono_literals;

/// A slurmrestd that answers each request with this status; 0: refuses connections.
class StatusServer final : public net::HttpTransport {
 public:
  StatusServer(core::Loop& loop, const int& status) : loop_(loop), status_(status) {}
  RequestId send(net::HttpRequest, Done done) override {
    loop_.after(1ms, [this, done = std::move(done)] {
      if (status_ == 0) return done(core::fail(core::ErrorCode::kUnavailable, "refused"));
      done(net::HttpResponse{.status = status_});
    });
    return ++last_;
  }
  RequestId stream(net::HttpRequest, net::StreamHandler) override { return 0; }
  void cancel(RequestId) override {}

 private:
  core::Loop& loop_;
  const int& status_;
  RequestId last_ = 0;
};

/// Connects to a StatusServer with a key that the test supplies.
class KeyedClusterTest : public testing::Test {
 protected:
  KeyedClusterTest() {
    clusters.listen([this](const Change& change) { cluster.changed(change); });
  }
  KeyedCluster::ReadKey reader(const std::string& name = "key") {
    return [this, name](KeyedCluster::KeyDone done) { asked.emplace_back(name, std::move(done)); };
  }
  /// Answers the only read under way. Returns the name of the key that was read.
  std::string answer(core::Result<std::string> bytes) {
    EXPECT_EQ(asked.size(), 1U);
    const auto [name, done] = std::move(asked.front());
    asked.clear();
    done(std::move(bytes));
    return name;
  }

  core::ManualLoop loop;
  core::FakeRandom random;
  core::NullLogger log;
  int status = 0;
  std::vector<std::string> endpoints;
  std::vector<std::pair<std::string, KeyedCluster::KeyDone>> asked;
  Clusters clusters{loop, random, log, [this](const Endpoint& endpoint) {
                      endpoints.push_back(endpoint.host);
                      return std::make_unique<StatusServer>(loop, status);
                    }};
  KeyedCluster cluster{loop, clusters, "site"};
};

TEST_F(KeyedClusterTest, ConnectsWhenTheKeyIsRead) {
  cluster.connect({"a"}, reader());
  EXPECT_FALSE(clusters.contains("site"));
  answer("0123456789abcdef");
  EXPECT_TRUE(clusters.contains("site"));
  EXPECT_EQ(endpoints, std::vector<std::string>{"a"});
}

TEST_F(KeyedClusterTest, ReadsAMissingKeyAgain) {
  cluster.connect({"a"}, reader());
  answer(core::fail(core::ErrorCode::kNotFound, "no such Secret"));
  loop.advance(4s);
  EXPECT_TRUE(asked.empty());
  loop.advance(1s);
  answer("");
  cluster.read_missing_key();
  answer("0123456789abcdef");
  EXPECT_TRUE(clusters.contains("site"));
  cluster.read_missing_key();
  EXPECT_TRUE(asked.empty());
}

TEST_F(KeyedClusterTest, ReadsTheKeyAgainWhenTheConnectionFails) {
  cluster.connect({"a"}, reader());
  answer("0123456789abcdef");
  loop.advance(1min);
  answer("0123456789abcdef");
  EXPECT_EQ(endpoints.size(), 1U) << "the same key changes nothing";
  loop.advance(1min);
  answer("another key, as long");
  EXPECT_EQ(endpoints.size(), 2U);
}

TEST_F(KeyedClusterTest, ReadsARefusedKeyAgainAtOnce) {
  status = 401;
  cluster.connect({"a"}, reader());
  answer("0123456789abcdef");
  loop.advance(1s);
  answer("another key, as long");
  EXPECT_EQ(endpoints.size(), 2U);
}

TEST_F(KeyedClusterTest, TheLastWishCounts) {
  cluster.connect({"a"}, reader("old"));
  cluster.connect({"b"}, reader("new"));
  EXPECT_EQ(answer("0123456789abcdef"), "old") << "one read at a time";
  EXPECT_FALSE(clusters.contains("site"));
  EXPECT_EQ(answer("0123456789abcdef"), "new");
  EXPECT_EQ(endpoints, std::vector<std::string>{"b"});
}

TEST_F(KeyedClusterTest, DisconnectsForGood) {
  cluster.connect({"a"}, reader());
  cluster.disconnect();
  answer("0123456789abcdef");
  EXPECT_FALSE(clusters.contains("site"));
  cluster.connect({"a"}, reader());
  answer("0123456789abcdef");
  cluster.disconnect();
  EXPECT_FALSE(clusters.contains("site"));
  loop.advance(1min);
  EXPECT_TRUE(asked.empty());
}

}  // namespace
}  // namespace slurm
