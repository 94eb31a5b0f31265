#include "operator/common/children.hpp"

#include <gtest/gtest.h>

#include "kube/acts.hpp"
#include "operator/common/services.hpp"
#include "operator/common/slinky.hpp"
#include "slinky/names.hpp"

namespace op {
namespace {

using core::Json;

Json intent(int port) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", {{"name", "s"}, {"namespace", "ns"}}},
          {"spec", {{"ports", {{{"name", "a"}, {"port", port}}}}}}};
}

/// Returns the object that results from the apply in the step.
kube::Object applied(const plan::Step& step) {
  const auto* apply = dynamic_cast<const kube::Apply*>(step.act.get());
  kube::Object out;
  out.body = apply->object;
  out.meta = kube::parse_meta(apply->object);
  return out;
}

TEST(ApplyStep, OnceAndThenOnlyForADifference) {
  const auto first = apply_step(kube::resources::kService, intent(1), nullptr, "m");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->id.text(), "apply Service s");
  kube::Object there = applied(*first);
  EXPECT_FALSE(apply_step(kube::resources::kService, intent(1), &there, "m"));
  EXPECT_TRUE(apply_step(kube::resources::kService, intent(2), &there, "m")) << "another intent";

  there.body.erase("apiVersion");
  there.body.erase("kind");
  EXPECT_FALSE(apply_step(kube::resources::kService, intent(1), &there, "m")) << "as lists give items of built-in kinds";
  there.body["spec"]["clusterIP"] = "1.2.3.4";
  EXPECT_FALSE(apply_step(kube::resources::kService, intent(1), &there, "m")) << "what a server adds";
  there.body["spec"]["ports"][0]["port"] = 9;
  EXPECT_TRUE(apply_step(kube::resources::kService, intent(1), &there, "m")) << "somebody changed it";
  there.meta.deletion_timestamp = core::WallTime{};
  EXPECT_FALSE(apply_step(kube::resources::kService, intent(1), &there, "m")) << "it is going anyway";
}

/// Returns the ports of the Service after the step. Null: the step does not replace the ports.
Json replaced_ports(const std::optional<plan::Step>& step) {
  const auto* patch = step ? dynamic_cast<const kube::Patch*>(step->act.get()) : nullptr;
  if (patch == nullptr || patch->resource_version != "7") return nullptr;
  return patch->patch[0]["value"];
}

TEST(ApplyStep, PortsThatAnApplyCannotRepair) {
  const auto first = apply_step(kube::resources::kService, intent(1), nullptr, "m");
  kube::Object there = applied(*first);
  there.meta.resource_version = "7";
  const auto ports_with = [&](Json ports) {
    there.body["spec"]["ports"] = std::move(ports);
    return replaced_ports(apply_step(kube::resources::kService, intent(1), &there, "m"));
  };
  const Json ours{{"name", "a"}, {"port", 1}, {"protocol", "TCP"}}, other{{"name", "b"}, {"port", 2}};
  const Json with_node_port = core::merge(ours, {{"nodePort", 30001}});
  EXPECT_EQ(ports_with(Json::array({{{"name", "a"}, {"port", 9}, {"nodePort", 30001}}, other})),
            Json::array({with_node_port, other}));
  EXPECT_EQ(ports_with(Json::array({{{"name", "a"}, {"port", 1}, {"protocol", "UDP"}}})), Json::array({ours}));
  EXPECT_EQ(ports_with(Json::array({{{"name", "a"}, {"port", 2}}, {{"name", "b"}, {"port", 1}}})), Json::array({ours}))
      << "the number is ours";
  EXPECT_EQ(ports_with(Json::array({{{"name", "a"}, {"port", 1}}, other})), nullptr) << "what others add";
  EXPECT_EQ(ports_with(Json::array({{{"name", "b"}, {"port", 1}}})), nullptr) << "an apply gives it its name";
  EXPECT_EQ(ports_with(Json::array({other})), nullptr) << "an apply adds it";

  there.body["spec"]["ports"] = Json::array({with_node_port});
  Json wanted = intent(3);
  EXPECT_EQ(replaced_ports(apply_step(kube::resources::kService, wanted, &there, "m")),
            Json::array({core::merge(ours, {{"port", 3}})}))
      << "its nodePort was ours, and is wanted no more";

  wanted = intent(1);
  wanted["spec"]["ports"][0]["nodePort"] = 30001;
  there.body["spec"]["ports"] = Json::array({{{"name", "b"}, {"port", 2}, {"nodePort", 30001}}});
  EXPECT_EQ(replaced_ports(apply_step(kube::resources::kService, wanted, &there, "m")), Json::array({with_node_port, other}));
}

TEST(AddMetadata, LeavesToolsTheirOwn) {
  kube::StringMap out;
  add_metadata(out, {{"a", "1"},
                     {"kubectl.kubernetes.io/last-applied-configuration", "{}"},
                     {"meta.helm.sh/release-name", "r"},
                     {"argocd.argoproj.io/tracking-id", "t"},
                     {"objectset.rio.cattle.io/applied", "{}"},
                     {"kapp.k14s.io/original", "{}"},
                     {"controller.slinky.slurm.net/remove-now", "partition/a"},
                     {"kustomize.toolkit.fluxcd.io/name", "n"}});
  EXPECT_EQ(out, (kube::StringMap{{"a", "1"}}));
}

TEST(MergeServiceSpec, SelectorAndPortsStayOurs) {
  const Json over{{"type", "LoadBalancer"},
                  {"externalIPs", {"1.1.1.1"}},
                  {"selector", {{"app", "theirs"}, {"extra", "x"}}},
                  {"ports", {{{"name", "more"}, {"port", 9}}}}};
  const Json spec = merge_service_spec({{"publishNotReadyAddresses", true}}, over, {{"app", "ours"}},
                                       Json::array({service_port("a", 1, "a", 30000)}));
  EXPECT_EQ(spec["type"], "LoadBalancer");
  EXPECT_FALSE(spec.contains("externalIPs"));
  EXPECT_EQ(spec["selector"], (Json{{"app", "ours"}, {"extra", "x"}}));
  ASSERT_EQ(spec["ports"].size(), 2U);
  EXPECT_EQ(spec["ports"][0],
            (Json{{"name", "a"}, {"protocol", "TCP"}, {"port", 1}, {"targetPort", "a"}, {"nodePort", 30000}}));
}

}  // namespace
}  // namespace op
