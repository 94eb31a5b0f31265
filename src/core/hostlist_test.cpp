#include "core/hostlist.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace core {
namespace {

using testing::ElementsAre;

TEST(Hostlist, Expands) {
  EXPECT_THAT(*expand_hostlist("cpu-[0-2,7],login"), ElementsAre("cpu-0", "cpu-1", "cpu-2", "cpu-7", "login"));
  EXPECT_THAT(*expand_hostlist("n[08-10]"), ElementsAre("n08", "n09", "n10"));
  EXPECT_THAT(*expand_hostlist("n[8-10]"), ElementsAre("n8", "n9", "n10"));
  EXPECT_THAT(*expand_hostlist("r[0-1]n[1-2]-ib"), ElementsAre("r0n1-ib", "r0n2-ib", "r1n1-ib", "r1n2-ib"));
  EXPECT_THAT(*expand_hostlist("a,,b,"), ElementsAre("a", "b"));
  EXPECT_THAT(*expand_hostlist(""), ElementsAre());
}

TEST(Hostlist, RefusesWhatIsMalformed) {
  for (const char* text : {"a[1", "a]1", "a[[1]]", "a[]", "a[3-1]", "a[x]", "a[1-]", "a[-1]", "a[1,]", "a[0-99999999]",
                           "a[0-9999]b[0-9999]", "a[99999999999999999999]"}) {
    const auto names = expand_hostlist(text);
    ASSERT_FALSE(names) << text;
    EXPECT_EQ(names.error().code, ErrorCode::kInvalid);
  }
}

TEST(Hostlist, NamesWithoutBeingWrittenOut) {
  EXPECT_TRUE(hostlist_names("cpu-[0-999999999],login", "cpu-123456789"));
  EXPECT_TRUE(hostlist_names("cpu-[0-999999999],login", "login"));
  EXPECT_FALSE(hostlist_names("cpu-[0-9]", "cpu-10"));
  EXPECT_FALSE(hostlist_names("cpu-[0-9]", "cpu-07"));
  EXPECT_FALSE(hostlist_names("n[08-11]", "n8"));
  EXPECT_TRUE(hostlist_names("n[08-11]", "n08"));
  EXPECT_TRUE(hostlist_names("n[8-11]", "n11"));
  EXPECT_TRUE(hostlist_names("r[0-1]n[1-2]-ib", "r1n2-ib"));
  EXPECT_FALSE(hostlist_names("r[0-1]n[1-2]-ib", "r1n2"));
  EXPECT_FALSE(hostlist_names("", "n"));
  for (const char* text : {"a[1", "a[x]", "a[3-1]"}) {
    EXPECT_TRUE(hostlist_names(text, "a1")) << text << " may name anything";
    HostSet set;
    set.add(text);
    EXPECT_TRUE(set.has("a1")) << text;
  }
}

RC_GTEST_PROP(Hostlist, NamesWhatItExpandsTo, ()) {
  const auto piece = rc::gen::element<std::string>("n[0-3]", "n[2-9]", "n[08-11,2]", "n[007-100]", "n3", "r[0-1]n[00-02]",
                                                   "m1[5-9]", "r0n[7]-ib", "login");
  const auto items = *rc::gen::container<std::vector<std::string>>(piece);
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  const auto expanded = expand_hostlist(text);
  RC_ASSERT(expanded.has_value());
  const std::set<std::string> in(expanded->begin(), expanded->end());
  // clang-format off
  const std::vector<std::string> names{
      "n0", "n3", "n8", "n08", "n008", "n11", "n2", "r1n01", "r1n1", "r2n00", "m15", "m105", "r0n7-ib", "r0n7", "login",
      "login1", "n", "", "n9999999999999999999999"};
  // clang-format on
  HostSet set;
  for (const std::string& item : items) set.add(item);
  std::set<std::string> found;
  HostIndex({names.begin(), names.end()}).look_up(text, [&](std::string_view name) { found.emplace(name); });
  for (const std::string& name : names) {
    RC_ASSERT(hostlist_names(text, name) == in.contains(name));
    RC_ASSERT(found.contains(name) == in.contains(name));
    RC_ASSERT(set.has(name) == in.contains(name));
  }
}

TEST(Hostlist, Compresses) {
  EXPECT_EQ(compress_hostlist({"cpu-2", "cpu-0", "cpu-1", "cpu-10", "cpu-0"}), "cpu-[0-2,10]");
  EXPECT_EQ(compress_hostlist({"n08", "n09", "n10", "n11"}), "n[08-11]");
  EXPECT_EQ(compress_hostlist({"n9", "n10", "n08"}), "n9,n[08,10]");
  EXPECT_EQ(compress_hostlist({"login", "cpu-3"}), "login,cpu-3");
  EXPECT_EQ(compress_hostlist({"12"}), "12");
  EXPECT_EQ(compress_hostlist({}), "");
}

RC_GTEST_PROP(Hostlist, RoundTrip, ()) {
  const auto name = rc::gen::apply([](const std::string& prefix, const std::string& digits,
                                      const std::string& suffix) { return "n" + prefix + digits + suffix; },
                                   rc::gen::element<std::string>("", "a", "cpu-", "r0c"),
                                   rc::gen::resize(4, rc::gen::container<std::string>(rc::gen::inRange<char>('0', '9' + 1))),
                                   rc::gen::element<std::string>("", "", "", "-ib"));
  const auto names = *rc::gen::container<std::vector<std::string>>(name);
  const auto back = expand_hostlist(compress_hostlist(names));
  RC_ASSERT(back.has_value());
  const std::set<std::string> want(names.begin(), names.end());
  RC_ASSERT(std::set<std::string>(back->begin(), back->end()) == want);
  RC_ASSERT(back->size() == want.size());
}

}  // namespace
}  // namespace core
