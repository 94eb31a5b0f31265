#include "kube/object.hpp"

#include <gtest/gtest.h>

#include "kube/cache/record.hpp"
#include "kube/testing/fake_transport.hpp"

namespace kube {
namespace {

using core::Json;

TEST(ResourceTest, Paths) {
  EXPECT_EQ(resources::kPod.path("ns", "p", "status"), "/api/v1/namespaces/ns/pods/p/status");
  EXPECT_EQ(resources::kStatefulSet.path("ns", "s"), "/apis/apps/v1/namespaces/ns/statefulsets/s");
  EXPECT_EQ(resources::kStatefulSet.path(""), "/apis/apps/v1/statefulsets");
  EXPECT_EQ(resources::kNode.path("ignored", "n"), "/api/v1/nodes/n");
  EXPECT_EQ(resources::kLease.api_version(), "coordination.k8s.io/v1");
  EXPECT_EQ(resources::kPod.api_version(), "v1");
}

/// Names can come from fields that Kubernetes does not check, such as ownerReferences.
TEST(ResourceTest, NoPartOfAPathAddsAPartOrAQuery) {
  const Resource role{"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", false};
  EXPECT_EQ(role.path("", "system:node"), "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node");
  EXPECT_EQ(resources::kPod.path("ns", "p?watch=true"), "/api/v1/namespaces/ns/pods/p%3Fwatch%3Dtrue");
  EXPECT_EQ(resources::kPod.path("ns", "p#x%2F", "a?b"), "/api/v1/namespaces/ns/pods/p%23x%252F/a%3Fb");
  EXPECT_EQ(resources::kPod.path("n?s", "p"), "/api/v1/namespaces/n%3Fs/pods/p");
  const Resource injected{"batch", "v1/pods?", "Job", "jobs", true};
  EXPECT_EQ(injected.path("ns", "j"), "/apis/batch/v1%252Fpods%3F/namespaces/ns/jobs/j");
  // The API server decodes the path before it splits it. So "/" must still be encoded after that.
  EXPECT_EQ(resources::kPod.path("ns", "../../b/pods/p"), "/api/v1/namespaces/ns/pods/..%252F..%252Fb%252Fpods%252Fp");
  EXPECT_EQ(resources::kPod.path("ns", ".."), "/api/v1/namespaces/ns/pods/%252E%252E");
  EXPECT_EQ(resources::kPod.path("ns", "."), "/api/v1/namespaces/ns/pods/%252E");
}

TEST(ResourceVersionTest, LongerIsNewer) {
  EXPECT_TRUE(rv_at_least("10", "9"));
  EXPECT_FALSE(rv_at_least("9", "10"));
  EXPECT_TRUE(rv_at_least("10", "10"));
  EXPECT_TRUE(rv_at_least("5", ""));
  EXPECT_FALSE(rv_at_least("", "5"));
}

TEST(ObjectMetaTest, FromATreeAsFromAStream) {
  Json object = object_json("ns", "o", "7", "u");
  object["metadata"]["labels"] = {{"a", "b"}};
  object["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z";
  object["metadata"]["finalizers"] = {"x/y"};
  object["metadata"]["ownerReferences"] = {{{"apiVersion", "v1"}, {"kind", "K"}, {"name", "n"}, {"uid", "o"}}};
  const ObjectMeta tree = parse_meta(object);
  const ObjectMeta stream = (*record_from_json<Object>(object))->meta;
  EXPECT_EQ(tree.key(), stream.key());
  EXPECT_EQ(tree.labels, stream.labels);
  EXPECT_EQ(tree.finalizers, stream.finalizers);
  EXPECT_EQ(tree.owners, stream.owners);
  EXPECT_EQ(tree.deletion_timestamp, stream.deletion_timestamp);
  EXPECT_TRUE(tree.terminating());
  EXPECT_EQ(tree.controller_owner(), nullptr);
}

}  // namespace
}  // namespace kube
