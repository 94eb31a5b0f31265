#include "kube/cache/cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

ObjectPtr object(std::string_view name, std::string_view rv, std::string_view owner = "", std::string_view ns = "ns") {
  auto result = std::make_shared<Object>();
  result->meta.ns = ns;
  result->meta.name = name;
  result->meta.uid = "uid-" + std::string(name);
  result->meta.resource_version = rv;
  if (!owner.empty()) result->meta.labels["owner"] = owner;
  return result;
}

std::vector<std::string> names(const std::vector<ObjectPtr>& objects) {
  std::vector<std::string> result;
  for (const ObjectPtr& o : objects) result.push_back(o->meta.name);
  return result;
}

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    cache.add_index("owner", [](const Object& o) { return std::vector<std::string>{std::string(o.meta.label("owner"))}; });
    cache.listen([this](const ObjectPtr& before, const ObjectPtr& after) {
      log.push_back((before ? before->meta.resource_version : "-") + ">" + (after ? after->meta.resource_version : "-"));
    });
    cache.listen_changed([this] { ++changes; });
  }
  Cache<Object> cache;
  std::vector<std::string> log;
  int changes = 0;
};

TEST_F(CacheTest, IndicesFollowChanges) {
  cache.upsert(object("b", "1", "x"));
  cache.upsert(object("a", "2", "x"));
  cache.upsert(object("c", "3", "y"));
  EXPECT_THAT(names(cache.by_index("owner", "x")), ElementsAre("a", "b"));
  cache.upsert(object("a", "4", "y"));
  EXPECT_THAT(names(cache.by_index("owner", "x")), ElementsAre("b"));
  EXPECT_THAT(names(cache.by_index("owner", "y")), ElementsAre("a", "c"));
  cache.erase({"ns", "b"});
  EXPECT_THAT(cache.by_index("owner", "x"), IsEmpty());
  EXPECT_THAT(cache.by_index("none", "x"), IsEmpty());
  cache.add_index("name", [](const Object& o) { return std::vector<std::string>{o.meta.name}; });
  EXPECT_THAT(names(cache.by_index("name", "c")), ElementsAre("c")) << "an index that comes late knows what is there";
}

TEST_F(CacheTest, ListenersSeeWhatWasAndWhatIs) {
  cache.upsert(object("a", "1"));
  cache.upsert(object("a", "2"));
  cache.erase({"ns", "a"});
  cache.erase({"ns", "a"});
  EXPECT_THAT(log, ElementsAre("->1", "1>2", "2>-"));
}

TEST_F(CacheTest, ReplaceTellsTheDifferenceOnly) {
  EXPECT_FALSE(cache.synced());
  cache.replace({object("a", "1"), object("b", "2"), object("c", "3")}, "5");
  EXPECT_TRUE(cache.synced());
  log.clear();
  cache.replace({object("a", "1"), object("b", "7"), object("d", "8")}, "9");
  EXPECT_THAT(log, ElementsAre("3>-", "2>7", "->8"));
  EXPECT_EQ(cache.resource_version(), "9");
  EXPECT_THAT(names(cache.all()), ElementsAre("a", "b", "d"));
}

TEST_F(CacheTest, AnEmptyListIsNewsToo) {
  cache.replace({}, "5");
  EXPECT_EQ(changes, 1);
  cache.bookmark("6");
  EXPECT_EQ(changes, 2);
  EXPECT_EQ(cache.resource_version(), "6");
}

TEST_F(CacheTest, AnEventOfThePastDoesNotTurnBackTheVersion) {
  cache.replace({object("a", "10")}, "10");
  cache.upsert(object("a", "9"));
  EXPECT_EQ(cache.resource_version(), "10");
}

TEST_F(CacheTest, TellsWhichObjectItHolds) {
  cache.upsert(object("b", "1"));
  EXPECT_EQ(cache.identity({"ns", "b"}), (std::pair<std::string, std::string>("uid-b", "1")));
  EXPECT_EQ(cache.identity({"ns", "x"}), (std::pair<std::string, std::string>()));
}

RC_GTEST_PROP(CacheProperty, AnIndexIsWhatAScanFinds, ()) {
  Cache<Object> cache;
  cache.add_index("owner", [](const Object& o) { return std::vector<std::string>{std::string(o.meta.label("owner"))}; });
  const auto steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const auto name = *rc::gen::element(std::string("a"), std::string("b"), std::string("c"));
    const auto owner = *rc::gen::element(std::string("x"), std::string("y"));
    const std::string rv = std::to_string(100 + i);
    switch (*rc::gen::inRange(0, 3)) {
      case 0:
        cache.upsert(object(name, rv, owner));
        break;
      case 1:
        cache.erase({"ns", name}, rv);
        break;
      default:
        cache.replace({object(name, rv, owner)}, rv);
    }
    for (const char* wanted : {"x", "y"}) {
      std::vector<std::string> scanned;
      for (const ObjectPtr& o : cache.all()) {
        if (o->meta.label("owner") == wanted) scanned.push_back(o->meta.name);
      }
      RC_ASSERT(names(cache.by_index("owner", wanted)) == scanned);
    }
  }
}

}  // namespace
}  // namespace kube
