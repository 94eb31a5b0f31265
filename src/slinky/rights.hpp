// The rights in the Kubernetes API that a program needs, as rules of RBAC.
//
//   Rights rights;
//   rights.add(kube::resources::kPod, {"get", "list", "watch"});
//   rights.rules();   // [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
#pragma once

#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/json.hpp"
#include "kube/object.hpp"

namespace slinky {

class Rights {
 public:
  /// Grants the verbs on a resource, or on its `subresource` ("status"). Throws std::invalid_argument for a verb other than
  /// get, list, watch, create, update, patch and delete.
  void add(const kube::Resource& resource, std::initializer_list<std::string_view> verbs, std::string_view subresource = {});
  /// Returns the rules: one for all resources of a group with the same verbs. The order depends only on the contents.
  [[nodiscard]] core::Json rules() const;

 private:
  /// Maps the API group and the resource ("pods/status") to the granted verbs.
  std::map<std::pair<std::string, std::string>, std::set<std::string, std::less<>>> verbs_;
};

}  // namespace slinky
