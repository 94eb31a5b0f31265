#include "kube/cache/watch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/testing/manual_loop.hpp"
#include "kube/testing/fake_transport.hpp"

namespace kube {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Stores the logged warnings.
class WarningLogger final : public core::Logger {
 public:
  void log(core::Level level, std::string_view message, std::vector<core::Field> fields) override {
    if (level == core::Level::kWarn) warnings.push_back(core::format_log_line({}, level, message, fields));
  }
  std::vector<std::string> warnings;
};

class WatchTest : public testing::Test {
 protected:
  WatchTest() {
    cache.listen([this](const auto& before, const auto& after) {
      if (!before) {
        changes.push_back("+" + after->meta.name + "@" + after->meta.resource_version);
      } else if (!after) {
        changes.push_back("-" + before->meta.name);
      } else {
        changes.push_back(after->meta.name + "@" + after->meta.resource_version);
      }
    });
  }

  static core::Json object(std::string_view name, std::string_view rv) { return object_json("ns", name, rv); }
  void start() {
    watch.start();
    loop.run_ready();
  }
  /// Returns the stream of a watch that has listed a@1 and is at resourceVersion 5.
  FakeTransport::Opened started() {
    start();
    auto stream = api.take_stream();
    stream.head();
    stream.event("ADDED", object("a", "1"));
    stream.event("BOOKMARK", bookmark_json("5", true));
    changes.clear();
    return stream;
  }

  core::ManualLoop loop;
  FakeRandom random;
  WarningLogger log;
  FakeTransport api;
  StaticCredentials credentials{{}};
  Client client{loop, random, api, credentials, {}};
  Cache<Object> cache;
  ParseContext context;
  DocumentParser parser;
  CacheSink<Object> sink{cache, context};
  WatchOptions options;
  Watch watch{loop, random, log, client, parser, resources::kConfigMap, {"ns", "app=x", "metadata.name=a"}, sink};
  std::vector<std::string> changes;
};

TEST_F(WatchTest, BeginsWithAConsistentWatchList) {
  start();
  const auto stream = api.take_stream();
  const std::string& target = stream.request.target;
  EXPECT_THAT(target, HasSubstr("/api/v1/namespaces/ns/configmaps?labelSelector=app%3Dx&fieldSelector=metadata.name%3Da&"));
  EXPECT_THAT(target, HasSubstr("sendInitialEvents=true"));
  EXPECT_THAT(target, HasSubstr("resourceVersionMatch=NotOlderThan"));
  EXPECT_THAT(target, HasSubstr("allowWatchBookmarks=true"));
  EXPECT_THAT(target, Not(HasSubstr("resourceVersion=")));
  const auto at = target.find("timeoutSeconds=");
  ASSERT_NE(at, std::string::npos);
  const int seconds = std::stoi(target.substr(at + 15));
  EXPECT_GE(seconds, 300);
  EXPECT_LE(seconds, 600);
}

TEST_F(WatchTest, ShowsNothingBeforeTheInitialEventsEnd) {
  start();
  const auto stream = api.take_stream();
  stream.head();
  stream.event("ADDED", object("a", "1"));
  stream.event("ADDED", object("b", "2"));
  stream.event("MODIFIED", object("a", "3"));
  stream.event("DELETED", object("b", "4"));
  stream.event("BOOKMARK", bookmark_json("4"));  // not the end of the initial events
  EXPECT_FALSE(cache.synced());
  EXPECT_EQ(cache.size(), 0U);
  stream.event("BOOKMARK", bookmark_json("5", true));
  EXPECT_TRUE(cache.synced());
  EXPECT_EQ(cache.resource_version(), "5");
  EXPECT_THAT(changes, ElementsAre("+a@3"));
  EXPECT_TRUE(watch.stats().used_watch_list);
}

TEST_F(WatchTest, ASlowWatchListIsWarnedOfOnceATry) {
  start();
  const auto stream = api.take_stream();
  stream.head();
  stream.event("ADDED", object("a", "1"));
  loop.advance(9s);
  EXPECT_TRUE(log.warnings.empty());
  loop.advance(1s);
  ASSERT_EQ(log.warnings.size(), 1U);
  EXPECT_THAT(log.warnings[0], HasSubstr("initial events"));
  EXPECT_THAT(log.warnings[0], HasSubstr("\"resource\":\"configmaps\""));
  EXPECT_THAT(log.warnings[0], HasSubstr("\"events\":1"));
  loop.advance(15s);
  EXPECT_EQ(log.warnings.size(), 1U);
  stream.fail(core::ErrorCode::kUnavailable);
  loop.advance(2s);
  const auto second = api.take_stream();
  second.head();
  log.warnings.clear();
  loop.advance(11s);
  EXPECT_EQ(log.warnings.size(), 1U) << "another try";
  second.event("BOOKMARK", bookmark_json("5", true));
  EXPECT_TRUE(cache.synced());
}

TEST_F(WatchTest, AListInTimeIsNotWarnedOf) {
  const auto stream = started();
  loop.advance(60s);
  EXPECT_TRUE(log.warnings.empty());
}

TEST_F(WatchTest, TheSameStreamGoesOnWithChanges) {
  const auto stream = started();
  stream.event("ADDED", object("b", "6"));
  stream.event("MODIFIED", object("a", "7"));
  stream.event("DELETED", object("b", "8"));
  stream.event("BOOKMARK", bookmark_json("9"));
  EXPECT_THAT(changes, ElementsAre("+b@6", "a@7", "-b"));
  EXPECT_EQ(cache.resource_version(), "9");
}

TEST_F(WatchTest, EventsThatComeTwiceChangeNothing) {
  const auto object_of = [](const char* rv, const char* uid) { return object_json("ns", "a", rv, uid); };
  const auto stream = started();
  stream.event("MODIFIED", object("a", "6"));
  stream.event("MODIFIED", object("a", "7"));
  stream.event("MODIFIED", object("a", "6"));
  stream.event("MODIFIED", object("a", "7"));
  EXPECT_THAT(changes, ElementsAre("a@6", "a@7"));
  EXPECT_EQ(cache.find({"ns", "a"})->meta.resource_version, "7");

  // With two objects of one name, the deletion of the first does not concern the second.
  stream.event("ADDED", object_of("9", "another"));
  stream.event("DELETED", object("a", "8"));
  EXPECT_THAT(changes, ElementsAre("a@6", "a@7", "a@9"));
  stream.event("DELETED", object_of("10", "another"));
  stream.event("DELETED", object_of("10", "another"));
  EXPECT_THAT(changes, ElementsAre("a@6", "a@7", "a@9", "-a"));
}

// A value that a user writes into one object must not make the watch miss all other objects of the kind.

const char* const kWide = "100000000000000000000";
const std::string kDeep = std::string(5000, '[') + std::string(5000, ']');

/// Returns the text of an object that contains the value.
std::string object_with(std::string_view name, std::string_view rv, std::string_view value) {
  std::string text = object_json("ns", name, rv, "uid", {{"spec", {{"anything", "VALUE"}, {"other", 7}}}}).dump();
  const std::string_view place = "\"VALUE\"";
  return text.replace(text.find(place), place.size(), value);
}

TEST_F(WatchTest, ValuesThatSimdjsonRefusesAreReadFromAStream) {
  const auto stream = started();
  const auto added = [](const std::string& object_text) { return R"({"type":"ADDED","object":)" + object_text + "}\n"; };
  stream.handler.on_data(added(object_with("wide", "6", kWide)));
  stream.handler.on_data(added(object_with("deep", "7", kDeep)));
  stream.event("ADDED", object("b", "8"));
  ASSERT_THAT(changes, ElementsAre("+wide@6", "+deep@7", "+b@8"));
  EXPECT_EQ(cache.find({"ns", "wide"})->body["spec"]["anything"], 1e20);
  EXPECT_EQ(cache.find({"ns", "deep"})->body["spec"]["other"], 7);
  EXPECT_EQ(cache.resource_version(), "8");
  EXPECT_EQ(watch.stats().watches, 1U);
  EXPECT_EQ(watch.stats().failures, 0U);
}

TEST_F(WatchTest, ValuesThatSimdjsonRefusesAreReadFromAWatchList) {
  start();
  const auto stream = api.take_stream();
  stream.head();
  stream.handler.on_data(R"({"type":"ADDED","object":)" + object_with("wide", "1", kWide) + "}\n");
  stream.handler.on_data(R"({"type":"ADDED","object":)" + object_with("deep", "2", kDeep) + "}\n");
  stream.event("ADDED", object("a", "3"));
  stream.event("BOOKMARK", bookmark_json("5", true));
  ASSERT_THAT(changes, ElementsAre("+a@3", "+deep@2", "+wide@1"));
  EXPECT_EQ(watch.stats().lists, 1U);
}

TEST_F(WatchTest, ValuesThatSimdjsonRefusesAreReadFromAPage) {
  start();
  api.take_stream().answer(422, status_json(422, "Invalid"));
  loop.run_ready();
  const auto page = api.take_stream();
  page.head();
  page.handler.on_data(R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"10"},"items":[)" +
                       object_with("wide", "1", kWide) + "," + object_with("deep", "2", kDeep) + "," + object("a", "3").dump() +
                       "]}");
  page.end();
  ASSERT_THAT(changes, ElementsAre("+a@3", "+deep@2", "+wide@1"));
  EXPECT_EQ(watch.stats().complete_lists, 1U);
}

TEST_F(WatchTest, ResumesWhereItStoodWhenTheServerEndsTheWatch) {
  const auto stream = started();
  stream.event("MODIFIED", object("a", "7"));
  loop.advance(200s);
  stream.event("BOOKMARK", bookmark_json("8"));
  stream.end();
  loop.run_ready();
  const auto next = api.take_stream();
  EXPECT_THAT(next.request.target, HasSubstr("&resourceVersion=8"));
  EXPECT_THAT(next.request.target, Not(HasSubstr("sendInitialEvents")));
  EXPECT_EQ(watch.stats().lists, 1U);
}

TEST_F(WatchTest, ABrokenConnectionIsResumedAfterABackoff) {
  const auto stream = started();
  stream.handler.on_data(R"({"type":"MODIFIED","object":{"metadata":{"na)");
  stream.fail(core::ErrorCode::kUnknownOutcome);
  loop.run_ready();
  EXPECT_TRUE(api.streams.empty());
  loop.advance(799ms);
  EXPECT_TRUE(api.streams.empty());
  loop.advance(801ms);
  const auto next = api.take_stream();
  EXPECT_THAT(next.request.target, HasSubstr("&resourceVersion=5"));
  next.head();
  next.event("MODIFIED", object("a", "6"));
  EXPECT_THAT(changes, ElementsAre("a@6"));
}

TEST_F(WatchTest, AWatchListCutShortBeginsAnewAndForgetsWhatCame) {
  start();
  const auto stream = api.take_stream();
  stream.head();
  stream.event("ADDED", object("gone", "1"));
  stream.fail(core::ErrorCode::kUnknownOutcome);
  loop.advance(2s);
  const auto next = api.take_stream();
  EXPECT_THAT(next.request.target, HasSubstr("sendInitialEvents"));
  next.head();
  next.event("ADDED", object("a", "2"));
  next.event("BOOKMARK", bookmark_json("3", true));
  EXPECT_THAT(changes, ElementsAre("+a@2"));
}

TEST_F(WatchTest, BackoffGrowsToItsCapAndIsResetAfterTwoGoodMinutes) {
  start();
  std::vector<core::Duration> delays;
  for (int i = 0; i < 12; ++i) {
    api.take_stream().fail(core::ErrorCode::kUnavailable);
    delays.push_back(loop.until_next());
    loop.advance(30s);
  }
  core::Duration plain = 800ms;
  for (const core::Duration delay : delays) {
    EXPECT_GE(delay, std::min<core::Duration>(plain, 30s));
    EXPECT_LE(delay, std::min<core::Duration>(plain * 2, 30s));
    plain = std::min<core::Duration>(plain * 2, 30s);
  }
  auto stream = api.take_stream();
  stream.head();
  stream.event("BOOKMARK", bookmark_json("5", true));
  loop.advance(121s);
  stream.fail(core::ErrorCode::kUnknownOutcome);
  EXPECT_LE(loop.until_next(), 1600ms);
}

TEST_F(WatchTest, GoneListsAgainAndTheDifferenceIsShown) {
  const auto stream = started();
  loop.advance(60s);
  stream.line({{"type", "ERROR"}, {"object", status_json(410, "Expired", "too old resource version")}});
  EXPECT_TRUE(cache.synced()) << "old contents are kept while listing";
  EXPECT_EQ(cache.size(), 1U);
  loop.run_ready();
  const auto next = api.take_stream();
  EXPECT_THAT(next.request.target, HasSubstr("sendInitialEvents"));
  next.head();
  next.event("ADDED", object("b", "20"));
  next.event("BOOKMARK", bookmark_json("21", true));
  EXPECT_THAT(changes, ElementsAre("-a", "+b@20"));
  EXPECT_EQ(watch.stats().expired, 1U);
}

TEST_F(WatchTest, GoneAsHttpStatusListsAgainToo) {
  const auto stream = started();
  stream.end();
  loop.advance(2s);
  api.take_stream().answer(410, status_json(410, "Gone"));
  loop.advance(2s);
  EXPECT_THAT(api.take_stream().request.target, HasSubstr("sendInitialEvents"));
}

TEST_F(WatchTest, TooLargeAResourceVersionListsAgain) {
  const auto stream = started();
  stream.fail(core::ErrorCode::kUnknownOutcome);
  loop.advance(2s);
  core::Json status = status_json(504, "Timeout", "Too large resource version: 5, current: 3");
  status["details"] = {{"causes", {{{"reason", "ResourceVersionTooLarge"}, {"message", "Too large resource version"}}}}};
  api.take_stream().answer(504, status);
  loop.advance(4s);
  EXPECT_THAT(api.take_stream().request.target, HasSubstr("sendInitialEvents"));
}

TEST_F(WatchTest, AServerWhoseTimeWentBackIsListedAgain) {
  const auto stream = started();
  stream.event("BOOKMARK", bookmark_json("4"));
  loop.advance(2s);
  EXPECT_THAT(api.take_stream().request.target, HasSubstr("sendInitialEvents"));
}

TEST_F(WatchTest, AnErrorInTheStreamThatIsNotGoneOnlyResumes) {
  const auto stream = started();
  stream.line({{"type", "ERROR"}, {"object", status_json(500, "InternalError")}});
  loop.advance(2s);
  EXPECT_THAT(api.take_stream().request.target, HasSubstr("&resourceVersion=5"));
  EXPECT_EQ(watch.stats().lists, 1U);
}

TEST_F(WatchTest, RefusedByFlowControlWaitsAsLongAsAsked) {
  start();
  core::Json status = status_json(429, "TooManyRequests");
  status["details"] = {{"retryAfterSeconds", 9}};
  api.take_stream().answer(429, status);
  loop.advance(8900ms);
  EXPECT_TRUE(api.streams.empty());
  loop.advance(200ms);
  EXPECT_FALSE(api.streams.empty());
}

TEST_F(WatchTest, VeryShortWatchesAreFailures) {
  const auto stream = started();
  loop.advance(10s);
  stream.end();
  loop.run_ready();
  auto next = api.take_stream();  // the first watch lasted long enough
  next.head();
  loop.advance(500ms);
  next.end();
  loop.run_ready();
  EXPECT_TRUE(api.streams.empty());
  EXPECT_EQ(watch.stats().failures, 1U);
  loop.advance(2s);
  next = api.take_stream();
  next.head();
  next.event("MODIFIED", object("a", "6"));
  next.end();  // short, but with an event
  loop.run_ready();
  EXPECT_FALSE(api.streams.empty());
  EXPECT_EQ(watch.stats().failures, 1U);
}

TEST_F(WatchTest, WithoutAHeadItTriesAgain) {
  start();
  api.take_stream();
  loop.advance(29s);
  EXPECT_EQ(api.cancelled, 0);
  loop.advance(5s);
  EXPECT_EQ(api.cancelled, 1);
  EXPECT_EQ(api.streams.size(), 1U);
}

TEST_F(WatchTest, SilenceAfterBookmarksEndsTheWatch) {
  auto stream = started();
  loop.advance(250s);  // no bookmark yet, so the silence means nothing
  EXPECT_EQ(api.cancelled, 0);
  stream.event("BOOKMARK", bookmark_json("6"));
  loop.advance(185s);
  EXPECT_EQ(api.cancelled, 1);
  EXPECT_THAT(api.take_stream().request.target, HasSubstr("&resourceVersion=6"));
}

// --- Lists in pages ---

TEST_F(WatchTest, AServerWithoutWatchListIsListedByPages) {
  start();
  api.take_stream().answer(
      422, status_json(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch"));
  loop.run_ready();
  auto page = api.take_stream();
  EXPECT_THAT(page.request.target, HasSubstr("limit=500"));
  EXPECT_THAT(page.request.target, Not(HasSubstr("watch=")));
  EXPECT_THAT(page.request.target, Not(HasSubstr("resourceVersion")));
  page.answer(200, {{"kind", "ConfigMapList"},
                    {"metadata", {{"resourceVersion", "10"}, {"continue", "to/ken"}}},
                    {"items", {object("a", "3")}}});
  EXPECT_FALSE(cache.synced());
  page = api.take_stream();
  EXPECT_THAT(page.request.target, HasSubstr("&continue=to%2Fken"));
  page.answer(200, {{"kind", "ConfigMapList"}, {"metadata", {{"resourceVersion", "10"}}}, {"items", {object("b", "4")}}});
  EXPECT_TRUE(cache.synced());
  EXPECT_THAT(changes, ElementsAre("+a@3", "+b@4"));
  EXPECT_FALSE(watch.stats().used_watch_list);
  const auto watching = api.take_stream();
  EXPECT_THAT(watching.request.target, HasSubstr("watch=true"));
  EXPECT_THAT(watching.request.target, HasSubstr("&resourceVersion=10"));
  // The next list tries WatchList again.
  watching.answer(410, status_json(410, "Gone"));
  loop.advance(2s);
  EXPECT_THAT(api.take_stream().request.target, HasSubstr("sendInitialEvents"));
}

TEST_F(WatchTest, AServerWhoseEtcdHasNoProgressRequestsIsListedByPages) {
  start();
  const auto refused = api.take_stream();
  refused.head();
  refused.event("ERROR", status_json(500, "InternalError",
                                     "a watch stream was requested by the client but the required storage feature "
                                     "RequestWatchProgress is disabled"));
  loop.run_ready();
  const auto page = api.take_stream();
  EXPECT_THAT(page.request.target, HasSubstr("limit=500"));
  page.answer(200, {{"metadata", {{"resourceVersion", "10"}}}, {"items", {object("a", "3")}}});
  EXPECT_THAT(changes, ElementsAre("+a@3"));
  EXPECT_THAT(api.take_stream().request.target, HasSubstr("&resourceVersion=10"));
}

TEST_F(WatchTest, APageWhoseTokenExpiredBeginsTheListAnew) {
  start();
  api.take_stream().answer(422, status_json(422, "Invalid"));
  loop.run_ready();
  api.take_stream().answer(200, {{"metadata", {{"resourceVersion", "10"}, {"continue", "t"}}}, {"items", {object("a", "3")}}});
  api.take_stream().answer(410, status_json(410, "Expired"));
  loop.advance(2s);
  const auto page = api.take_stream();
  EXPECT_THAT(page.request.target, Not(HasSubstr("continue")));
  page.answer(200, {{"metadata", {{"resourceVersion", "11"}}}, {"items", {object("b", "4")}}});
  EXPECT_THAT(changes, ElementsAre("+b@4"));
}

TEST_F(WatchTest, AWatchListThatIgnoresUsEndsInPages) {
  start();
  const auto stream = api.take_stream();
  stream.head();
  stream.event("ADDED", object("a", "1"));  // an old server never ends the initial events
  loop.advance(33s);
  EXPECT_THAT(api.take_stream().request.target, HasSubstr("limit=500"));
}

TEST_F(WatchTest, AHalfListIsNoList) {
  start();
  api.take_stream().answer(422, status_json(422, "Invalid"));
  loop.run_ready();
  const auto page = api.take_stream();
  page.head();
  page.handler.on_data(R"({"kind":"ConfigMapList","metadata":{"resourceVersion":"10"},"items":[)");
  page.handler.on_data(object("a", "3").dump());
  page.end();
  EXPECT_FALSE(cache.synced());
  loop.advance(2s);
  EXPECT_FALSE(api.streams.empty());
}

TEST_F(WatchTest, DistrustListsAgainAtOnce) {
  started();
  watch.relist();
  loop.run_ready();
  EXPECT_EQ(api.cancelled, 1);
  const auto next = api.take_stream();
  EXPECT_THAT(next.request.target, HasSubstr("sendInitialEvents"));
  next.head();
  next.event("BOOKMARK", bookmark_json("30", true));
  EXPECT_THAT(changes, ElementsAre("-a"));
}

TEST_F(WatchTest, PiecesOfAnOldStreamAreNotLookedAt) {
  const auto stream = started();
  watch.relist();
  stream.event("DELETED", object("a", "6"));
  EXPECT_EQ(cache.size(), 1U);
}

TEST_F(WatchTest, StoppedIsSilent) {
  start();
  watch.stop();
  EXPECT_EQ(api.cancelled, 1);
  loop.advance(600s);
  EXPECT_TRUE(api.streams.empty());
}

/// Cuts a text into pieces at random places.
std::vector<std::string> pieces(const std::string& text) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at < text.size();) {
    const auto n = static_cast<std::size_t>(*rc::gen::inRange(1, 12));
    result.push_back(text.substr(at, n));
    at += n;
  }
  return result;
}

RC_GTEST_PROP(LineFramerProperty, LinesDoNotDependOnThePieces, ()) {
  const auto lines = *rc::gen::container<std::vector<std::string>>(
      rc::gen::container<std::string>(rc::gen::elementOf(std::string("ab\r{}\""))));
  std::string text;
  std::vector<std::string> expected;
  for (const std::string& line : lines) {
    text += line + "\n";
    std::string_view kept = line;
    if (kept.ends_with('\r')) kept.remove_suffix(1);
    if (!kept.empty()) expected.emplace_back(kept);
  }
  text += "rest";
  LineFramer framer;
  std::vector<std::string> got;
  for (const std::string& piece : pieces(text)) {
    RC_ASSERT(framer
                  .feed(piece,
                        [&](std::string_view line) {
                          got.emplace_back(line);
                          return true;
                        })
                  .has_value());
  }
  RC_ASSERT(got == expected);
  RC_ASSERT(framer.rest() == "rest");
}

TEST(LineFramerTest, AnEndlessLineIsAnError) {
  LineFramer framer(10);
  EXPECT_TRUE(framer.feed("0123456789", [](auto) { return true; }));
  EXPECT_FALSE(framer.feed("0", [](auto) { return true; }));
}

core::Json any_json(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 5 : 3)) {
    case 0:
      return *rc::gen::container<std::string>(rc::gen::elementOf(std::string("a\"\\{}[],: items\n")));
    case 1:
      return *rc::gen::inRange(-5, 5);
    case 2:
      return nullptr;
    case 3: {
      core::Json array = core::Json::array();
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) array.push_back(any_json(depth - 1));
      return array;
    }
    default: {
      core::Json object = core::Json::object();
      for (int i = *rc::gen::inRange(0, 3); i > 0; --i) {
        object[*rc::gen::element(std::string("items"), std::string("a\""), std::string("metadata"))] = any_json(depth - 1);
      }
      return object;
    }
  }
}

RC_GTEST_PROP(ListSplitterProperty, ItemsAndFrameAreThoseOfTheList, ()) {
  core::Json list = {{"kind", "List"}, {"metadata", {{"x", any_json(2)}}}, {"items", core::Json::array()}};
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) list["items"].push_back({{"value", any_json(3)}});
  if (*rc::gen::arbitrary<bool>()) list["zz"] = any_json(2);
  const std::string text = *rc::gen::arbitrary<bool>() ? list.dump() : list.dump(1);
  ListSplitter splitter;
  core::Json items = core::Json::array();
  for (const std::string& piece : pieces(text + "\n")) {
    RC_ASSERT(splitter
                  .feed(piece,
                        [&](std::string_view item) {
                          items.push_back(core::Json::parse(item));
                          return true;
                        })
                  .has_value());
  }
  RC_ASSERT(splitter.complete());
  RC_ASSERT(items == list["items"]);
  core::Json frame = list;
  frame["items"] = core::Json::array();
  RC_ASSERT(core::Json::parse(splitter.frame()) == frame);
}

TEST(ListSplitterTest, WhatIsNoListIsRefused) {
  ListSplitter splitter;
  EXPECT_FALSE(splitter.feed("<html>", [](auto) { return true; }));
  ListSplitter cut;
  EXPECT_TRUE(cut.feed(R"({"items":[{"a":1})", [](auto) { return true; }));
  EXPECT_FALSE(cut.complete());
}

TEST_F(WatchTest, ACacheOfMetadataAsksForNoMore) {
  Cache<MetadataRecord> metadata;
  CacheSink<MetadataRecord> metadata_sink{metadata, context};
  Watch lean(loop, random, log, client, parser, resources::kConfigMap, {"ns", "", ""}, metadata_sink);
  lean.start();
  loop.run_ready();
  const auto listing = api.take_stream();
  EXPECT_EQ(listing.request.headers.at("accept"), kMetadataOnly);
  listing.head();
  listing.event("ADDED", object("a", "1"));
  listing.event("BOOKMARK", bookmark_json("5", true));
  EXPECT_NE(metadata.find({"ns", "a"}), nullptr);
  WatchOptions by_pages;
  by_pages.watch_list = false;
  Watch paged(loop, random, log, client, parser, resources::kConfigMap, {"ns", "", ""}, metadata_sink, by_pages);
  paged.start();
  loop.run_ready();
  auto stream = api.take_stream();
  EXPECT_EQ(stream.request.headers.at("accept"), kMetadataOnlyList);
  stream.answer(200, {{"metadata", {{"resourceVersion", "10"}}}, {"items", {object("b", "3")}}});
  EXPECT_NE(metadata.find({"ns", "b"}), nullptr);
  EXPECT_EQ(api.take_stream().request.headers.at("accept"), kMetadataOnly) << "events are of one object each";
  start();
  EXPECT_EQ(api.take_stream().request.headers.at("accept"), "application/json");
}

}  // namespace
}  // namespace kube
