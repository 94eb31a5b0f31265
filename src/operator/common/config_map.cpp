#include "operator/common/config_map.hpp"

#include "api/well_known.hpp"
#include "operator/common/children.hpp"
#include "slurm/conf/conf.hpp"

namespace op {

std::string_view slurm_conf(const std::map<std::string, std::string>& files) {
  const auto it = files.find(std::string(kSlurmConf));
  return it == files.end() ? std::string_view() : std::string_view(it->second);
}

std::string restart_digest(std::string_view text) {
  const slurm::conf::Conf parsed = slurm::conf::parse(slurm::conf::Kind::kSlurm, text).conf;
  std::string values;
  for (std::string_view key : slurm::conf::restart_keys()) {
    for (const std::string& value : parsed.get_all(key)) values += std::string(key) + "=" + value + "\n";
  }
  return short_digest(values);
}

std::map<std::string, LeftOut, std::less<>> read_left_out(const kube::Object& config_map) {
  std::map<std::string, LeftOut, std::less<>> out;
  const core::Result<core::Json> json = core::parse_json(config_map.meta.annotation(api::kAnnotationLeftOut));
  if (!json || !json->is_object()) return out;
  for (const auto& [name, item] : json->items()) {
    out[name] = {core::get_string(item, {"config"}), core::get_string(item, {"refusal"})};
  }
  return out;
}

}  // namespace op
