#include "cluster/config_map.hpp"

#include <charconv>

#include "api/well_known.hpp"
#include "core/hash.hpp"
#include "slurm/conf/conf.hpp"

namespace op {
namespace {

/// A number that the text of a slurm.conf has for the key, if it is one.
template <class Number>
std::optional<Number> number(std::string_view text, std::string_view key) {
  const std::string said = slurm::conf::parse(slurm::conf::Kind::kSlurm, text).conf.get(key).value_or("");
  Number out = 0;
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), out);
  if (error != std::errc() || end != said.data() + said.size()) return {};
  return out;
}

}  // namespace

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
  return core::short_digest(values);
}

core::Duration slurmd_timeout(std::string_view text) {
  constexpr std::uint16_t kSlurms = 300;
  return std::chrono::seconds{number<std::uint16_t>(text, "SlurmdTimeout").value_or(kSlurms)};
}

std::optional<std::size_t> max_node_count(std::string_view text) {
  return number<std::size_t>(text, "MaxNodeCount");
}

LeftOuts read_left_out(const kube::Object& config_map) {
  LeftOuts out;
  const core::Result<core::Json> json = core::parse_json(config_map.meta.annotation(api::kAnnotationLeftOut));
  if (!json || !json->is_object()) return out;
  for (const auto& [name, item] : json->items()) {
    LeftOut& read = out[name];
    read.config = core::get_string(item, {"config"});
    read.refusal = core::get_string(item, {"refusal"});
    if (const auto at = core::parse_rfc3339(core::get_string(item, {"refusedAt"}))) read.refused_at = *at;
    read.refusals = static_cast<int>(core::get_int(item, {"refusals"}));
    read.trying = core::get_bool(item, {"trying"});
  }
  return out;
}

std::string write_left_out(const LeftOuts& left_out) {
  core::Json out = core::Json::object();
  for (const auto& [name, item] : left_out) {
    core::Json& written = out[name] = {{"config", item.config}, {"refusal", item.refusal}};
    if (item.refused_at) written["refusedAt"] = core::format_rfc3339(*item.refused_at);
    if (item.refusals > 0) written["refusals"] = item.refusals;
    if (item.trying) written["trying"] = true;
  }
  return core::canonical(out);
}

}  // namespace op
