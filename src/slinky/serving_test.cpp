#include "slinky/serving.hpp"

#include <gtest/gtest.h>

namespace slinky {
namespace {

Server server(const std::string& name, int age, bool ready) {
  Server out;
  out.meta.ns = "ns";
  out.meta.name = name;
  out.meta.created = core::WallTime{core::Duration{100 - age}};
  out.restapi.emplace();
  out.ready = ready;
  return out;
}

ServingObserved observed_of(std::vector<Server> servers, const std::string& before = "") {
  ServingObserved out;
  out.meta.emplace();
  out.meta->ns = "ns";
  out.meta->name = "x";
  out.controller.emplace();
  out.servers = std::move(servers);
  out.before = before;
  return out;
}

std::string serving(const ServingObserved& observed) {
  const std::optional<Serving> out = plan_serving(observed);
  return out ? out->restapi : "(none)";
}

TEST(Serving, TheOldestThatIsReadyServes) {
  EXPECT_EQ(serving(observed_of({})), "(none)");
  EXPECT_EQ(serving(observed_of({server("a", 1, true), server("b", 5, true), server("c", 9, false)})), "b");
  EXPECT_EQ(serving(observed_of({server("a", 1, true), server("b", 5, true)}, "a")), "b") << "whoever served before";
  EXPECT_EQ(serving(observed_of({server("b", 5, true), server("a", 5, true)})), "a") << "of one age, the first by name";
}

TEST(Serving, WhereNoneIsReadyTheOneThatServedStays) {
  EXPECT_EQ(serving(observed_of({server("a", 1, false), server("b", 5, false)}, "a")), "a");
  EXPECT_EQ(serving(observed_of({server("a", 1, false), server("b", 5, false)}, "gone")), "b");
  EXPECT_EQ(serving(observed_of({server("a", 1, false), server("b", 5, true)}, "a")), "b");
}

TEST(Serving, NobodyServesAClusterThatIsNotThere) {
  ServingObserved observed = observed_of({server("a", 1, true)});
  ASSERT_EQ(serving(observed), "a");
  observed.controller->spec.external = true;
  EXPECT_EQ(serving(observed), "a") << "a slurmctld outside of Kubernetes is spoken to through its slurmrestd as well";
  observed.controller.reset();
  EXPECT_EQ(serving(observed), "(none)") << "its spec cannot be read";
  observed = observed_of({server("a", 1, true)});
  observed.meta.reset();
  EXPECT_EQ(serving(observed), "(none)") << "there is no Controller";
}

TEST(Serving, AClusterThatEndsIsServedForItsDrain) {
  ServingObserved observed = observed_of({server("a", 1, true)});
  observed.meta->deletion_timestamp = core::WallTime{};
  EXPECT_EQ(serving(observed), "(none)");
  observed.controller->spec.deletion_policy = api::DeletionPolicy::kDrain;
  EXPECT_EQ(serving(observed), "a");
}

TEST(Serving, ASpecThatCannotBeReadNamesNoServer) {
  ServingObserved observed = observed_of({server("a", 1, true), server("b", 5, true)});
  observed.servers[1].restapi.reset();
  EXPECT_EQ(serving(observed), "(none)") << "another than the oldest would be a change of servers";
}

TEST(Serving, TellsWhereItListensAndTheKeyOfItsTokens) {
  ServingObserved observed = observed_of({server("a", 1, true)});
  EXPECT_EQ(plan_serving(observed)->endpoint, (slurm::Endpoint{"a-restapi.ns", 6820, "ns_x"}));
  EXPECT_EQ(plan_serving(observed)->key, jwt_key_ref(observed.controller->spec, "x"));
  observed.controller->spec.jwt_key_ref.emplace().name = "mine";
  EXPECT_EQ(plan_serving(observed)->key.secret, "mine");
}

TEST(Serving, NamesTheClusterThatIsMeantWhereThatIsKnown) {
  ServingObserved observed = observed_of({server("a", 1, true)});
  const auto name = [&] { return plan_serving(observed)->endpoint.cluster_name; };
  EXPECT_EQ(name(), "ns_x");
  observed.controller->spec.cluster_name = "site";
  EXPECT_EQ(name(), "site");
  observed.controller->spec.external = true;
  EXPECT_EQ(name(), "") << "what somebody else's slurmctld calls itself, nobody has said";
}

}  // namespace
}  // namespace slinky
