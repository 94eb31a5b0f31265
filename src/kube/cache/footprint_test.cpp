#include "kube/cache/footprint.hpp"

#include <gtest/gtest.h>

#include "kube/cache/cache.hpp"

namespace kube {
namespace {

const std::string kLong(1000, 'x');

TEST(FootprintTest, EveryLongTextCountsOnce) {
  PodRecord pod;
  const std::size_t empty = heap_bytes(pod);
  EXPECT_EQ(empty, 0U);
  pod.meta.labels["a"] = kLong;
  pod.meta.annotations[kLong] = "short";
  pod.meta.owners.emplace_back().name = kLong;
  pod.meta.finalizers.push_back(kLong);
  pod.node_name = kLong;
  pod.message = kLong;
  pod.conditions.emplace_back().message = kLong;
  pod.containers.emplace_back().name = kLong;
  pod.containers.back().message = kLong;
  EXPECT_GT(heap_bytes(pod), 9 * kLong.size());
  EXPECT_LT(heap_bytes(pod), 10 * kLong.size());
}

TEST(FootprintTest, JsonIsWalked) {
  const core::Json deep = {{"list", {kLong, {{"key", kLong}}}}, {"number", 7}};
  EXPECT_GT(heap_bytes(deep), 2 * kLong.size());
  EXPECT_LT(heap_bytes(deep), 3 * kLong.size());
  EXPECT_EQ(heap_bytes(core::Json(7)), 0U);
}

TEST(FootprintTest, ACacheCountsRecordsAndIndices) {
  const auto record = [] {
    auto secret = std::make_shared<SecretRecord>();
    secret->meta.name = kLong;
    secret->value_hashes["k"] = kLong;
    return secret;
  };
  Cache<SecretRecord> plain;
  plain.upsert(record());
  EXPECT_GT(plain.bytes(), 3 * kLong.size()) << "the name stands in the record and in the key";
  Cache<SecretRecord> indexed;
  indexed.add_index("all", [](const SecretRecord&) { return std::vector<std::string>{""}; });
  indexed.upsert(record());
  EXPECT_GT(indexed.bytes(), plain.bytes() + kLong.size());
  indexed.erase({"", kLong});
  EXPECT_EQ(indexed.bytes(), 0U);
}

// The figure is maintained, so that a scrape of the metrics does not walk the cache. After any changes it must equal the figure
// of the contents.
TEST(FootprintTest, ACachesFigureIsThatOfItsContents) {
  const auto record = [](int number, std::string version, std::string label) {
    auto object = std::make_shared<Object>();
    object->meta.name = kLong + std::to_string(number);
    object->meta.uid = std::to_string(number);
    object->meta.resource_version = std::move(version);
    object->meta.labels["owner"] = std::move(label);
    return object;
  };
  const auto cache = [] {
    auto made = std::make_unique<Cache<Object>>();
    made->add_index("owner", [](const Object& o) {
      return std::vector<std::string>{std::string(o.meta.label("owner")), "all"};
    });
    return made;
  };
  const auto lived = cache();
  lived->replace({record(1, "1", kLong), record(2, "1", "b")}, "1");
  lived->upsert(record(1, "2", "b"));
  lived->upsert(record(3, "3", kLong + kLong));
  lived->upsert(record(3, "4", kLong));
  lived->upsert(record(3, "4", kLong));
  lived->erase({"", record(2, "", "")->meta.name});
  lived->erase({"", "nobody"});
  const auto fresh = cache();
  fresh->upsert(record(3, "4", kLong));
  fresh->upsert(record(1, "2", "b"));
  EXPECT_EQ(lived->bytes(), fresh->bytes());
  lived->replace({}, "9");
  EXPECT_EQ(lived->bytes(), 0U);
}

TEST(FootprintTest, RecordsOfSchedulersCountWhatTheyHaveMore) {
  SchedulingPodRecord pod;
  EXPECT_EQ(heap_bytes(pod), 0U);
  pod.node_name = kLong;
  pod.gates.push_back(kLong);
  pod.scheduler = kLong;
  pod.requests[kLong] = 1;
  pod.tolerations.emplace_back().key = kLong;
  pod.node_selector["a"] = kLong;
  pod.affinity = {{"a", kLong}};
  EXPECT_GT(heap_bytes(pod), 7 * kLong.size());
  EXPECT_LT(heap_bytes(pod), 8 * kLong.size());
  SchedulingNodeRecord node;
  EXPECT_EQ(heap_bytes(node), 0U);
  node.taints.emplace_back().value = kLong;
  node.allocatable[kLong] = 1;
  node.conditions.emplace_back().message = kLong;
  EXPECT_GT(heap_bytes(node), 3 * kLong.size());
  EXPECT_LT(heap_bytes(node), 4 * kLong.size());
  MetadataRecord metadata;
  metadata.meta.name = kLong;
  EXPECT_GT(heap_bytes(metadata), kLong.size());
}

}  // namespace
}  // namespace kube
