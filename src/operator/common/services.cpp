#include "operator/common/services.hpp"

namespace op {

core::Json service_port(std::string_view name, int port, std::string_view target, int node_port) {
  core::Json out{{"name", name}, {"protocol", "TCP"}, {"port", port}, {"targetPort", target}};
  if (node_port != 0) out["nodePort"] = node_port;
  return out;
}

core::Json merge_service_spec(core::Json base, const core::Json& over, const kube::StringMap& selector, core::Json ports) {
  core::Json spec = core::merge(std::move(base), over.is_object() ? core::without_unsaid(over) : core::Json::object());
  spec.erase("externalIPs");
  if (!spec["selector"].is_object()) spec["selector"] = core::Json::object();
  for (const auto& [name, value] : selector) spec["selector"][name] = value;
  if (spec.contains("ports") && spec["ports"].is_array()) {
    for (const core::Json& port : spec["ports"]) ports.push_back(port);
  }
  spec["ports"] = std::move(ports);
  return spec;
}

}  // namespace op
