// Groups of pods that start together. A group gets one job. Either all pods of the group run, or none. The kinds of groups:
//
//   podgroup/NAME   the pods with the label of a PodGroup (scheduler-plugins), in its namespace
//   job/NAME        the pods of a Job of Kubernetes, if they have the annotation kAnnotationGang
//
// The key of a group has one of these names. A name of a pod contains no "/", so it is never the name of a group.
#pragma once

#include <optional>
#include <string>

#include "core/result.hpp"
#include "kube/object.hpp"
#include "run/key.hpp"

namespace bridge {

/// Returns the group of the pod; nullopt for a pod that starts alone.
[[nodiscard]] std::optional<run::Key> group_of(const kube::ObjectMeta& pod);
[[nodiscard]] bool is_group(const run::Key& key);

/// The object that defines the size of the group.
struct GroupObject {
  kube::Resource resource;
  kube::Key key;
};
[[nodiscard]] GroupObject object_of(const run::Key& group);

/// The UID of the group's object, and the size of the group.
struct GroupSpec {
  std::string uid;
  int size = 0;  ///< From the object, not counted from existing pods. 0: a Job that needs no more pods.
};
/// Reads the object of the group. Error: kInvalid, with the name of the wrong field.
[[nodiscard]] core::Result<GroupSpec> read_group(const run::Key& group, const core::Json& object);
/// Reports whether the pod belongs to the group's object with this UID. A Job that is created again has pods of its own. For a
/// PodGroup, the UID does not matter.
[[nodiscard]] bool belongs_to(const kube::ObjectMeta& pod, const run::Key& group, const std::string& uid);

/// Returns the index that the pod's controller gave to the pod (Indexed Job, StatefulSet); nullopt if the pod has none.
[[nodiscard]] std::optional<int> index_of(const kube::ObjectMeta& pod);
/// Reports whether `a` comes before `b`: by index, then by name, where numbers count as numbers ("p-2" before "p-10").
[[nodiscard]] bool comes_before(const kube::ObjectMeta& a, const kube::ObjectMeta& b);

}  // namespace bridge
