#include "kube/cache/named_watches.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "kube/testing/client_fixture.hpp"

namespace kube {
namespace {

using testing::HasSubstr;

const Resource kJob{"batch", "v1", "Job", "jobs", true};

/// manager_test.cpp tests how many objects share a watch of the namespace, and when watches are dropped.
class NamedWatchesTest : public testing::Test, protected ClientFixture {
 protected:
  template <class Look>
  auto read(Look look) {
    NamedWatches::Reading reading(named, key);
    auto found = look(reading);
    loop.run_ready();
    return found;
  }
  /// Sends these objects as the answer to the watch that was just opened.
  FakeTransport::Opened list(const std::vector<core::Json>& objects) {
    auto stream = api.take_stream();
    stream.head();
    for (const core::Json& object : objects) stream.event("ADDED", object);
    stream.event("BOOKMARK", bookmark_json("9", true));
    named.caches_changed();
    return stream;
  }

  const run::WorkKey key{0, {"ns", "reader"}};
  CacheMaker maker{loop, random, log, client, {}, "salt"};
  std::vector<run::WorkKey> woken;
  NamedWatches named{maker, [this](const run::WorkKey& user) { woken.push_back(user); }, [] {}};
};

TEST_F(NamedWatchesTest, AnObjectOfAnyKindIsWatched) {
  const auto look = [](Recorder& recorder) { return recorder.object(kJob, {"ns", "j"}); };
  EXPECT_EQ(read(look).presence, Presence::kUnknown);
  const auto stream = list({object_json("ns", "j", "3", "", {{"spec", {{"x", 1}}}})});
  EXPECT_THAT(stream.request.target, HasSubstr("/apis/batch/v1/namespaces/ns/jobs?fieldSelector=metadata.name%3Dj&watch=true"));
  EXPECT_EQ(woken, std::vector<run::WorkKey>(2, key)) << "of what it is, and that it is known";
  const auto found = read(look);
  ASSERT_EQ(found.presence, Presence::kPresent);
  EXPECT_EQ(found.record->body["spec"]["x"], 1);
  EXPECT_TRUE(api.streams.empty());
}

TEST_F(NamedWatchesTest, AnObjectOfNoNamespaceIsWatchedToo) {
  read([](Recorder& recorder) { return recorder.object(resources::kNode, {"", "n"}); });
  const auto stream = list({});
  EXPECT_THAT(stream.request.target, HasSubstr("/api/v1/nodes?fieldSelector=metadata.name%3Dn&"));
  EXPECT_EQ(read([](Recorder& recorder) { return recorder.object(resources::kNode, {"", "n"}); }).presence, Presence::kAbsent);
}

TEST_F(NamedWatchesTest, WhatHasNoNameIsAbsent) {
  EXPECT_EQ(read([](Recorder& recorder) { return recorder.object(kJob, {"", "j"}); }).presence, Presence::kAbsent);
  EXPECT_EQ(read([](Recorder& recorder) { return recorder.object(resources::kNode, {"", ""}); }).presence, Presence::kAbsent);
  EXPECT_TRUE(api.streams.empty());
}

TEST_F(NamedWatchesTest, MetadataIsAWatchOfItsOwn) {
  read([](Recorder& recorder) {
    (void)recorder.object(kJob, {"ns", "j"});
    return recorder.metadata(kJob, {"ns", "j"});
  });
  ASSERT_EQ(api.streams.size(), 2U);
  EXPECT_EQ(api.take_stream().request.headers.at("accept"), "application/json");
  const auto stream = list({object_json("ns", "j", "3")});
  EXPECT_EQ(stream.request.headers.at("accept"), kMetadataOnly);
  const auto found = read([](Recorder& recorder) {
    (void)recorder.object(kJob, {"ns", "j"});
    return recorder.metadata(kJob, {"ns", "j"});
  });
  ASSERT_EQ(found.presence, Presence::kPresent);
  EXPECT_EQ(found.record->meta.name, "j");
}

TEST_F(NamedWatchesTest, KindsOfOnePluralAreToldApart) {
  const Resource other{"example.com", "v1", "Job", "jobs", true};
  read([&](Recorder& recorder) {
    (void)recorder.object(kJob, {"ns", "j"});
    return recorder.object(other, {"ns", "j"});
  });
  EXPECT_EQ(api.streams.size(), 2U);
}

TEST_F(NamedWatchesTest, NoSecretIsHeldWhole) {
  EXPECT_THROW(read([](Recorder& recorder) { return recorder.object(resources::kSecret, {"ns", "s"}); }), std::logic_error);
  EXPECT_TRUE(api.streams.empty());
  read([](Recorder& recorder) { return recorder.secret({"ns", "s"}); });
  EXPECT_EQ(api.streams.size(), 1U);
}

}  // namespace
}  // namespace kube
