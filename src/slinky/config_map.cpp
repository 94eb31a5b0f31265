#include "slinky/config_map.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "api/well_known.hpp"
#include "core/hash.hpp"

namespace slinky {
namespace {

/// Returns the text in lower case, because Slurm compares flags without regard to case.
std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Returns the value of the key if it is a number.
template <class Number>
std::optional<Number> number(const slurm::conf::Conf& conf, std::string_view key) {
  const std::string said = conf.get(key).value_or("");
  Number out = 0;
  const auto [end, error] = std::from_chars(said.data(), said.data() + said.size(), out);
  if (error != std::errc() || end != said.data() + said.size()) return {};
  return out;
}

}  // namespace

std::string loaded_file(const kube::Object& config_map, std::string_view file) {
  const bool loaded = config_map.meta.annotation(api::kAnnotationSlurmConfigHash) ==
                      config_map.meta.annotation(api::kAnnotationAcceptedConfigHash);
  return core::get_string(config_map.body,
                          {"data", loaded ? std::string(file) : std::string(kAcceptedPrefix) + std::string(file)});
}

std::string_view slurm_conf(const std::map<std::string, std::string>& files) {
  const auto it = files.find(std::string(kSlurmConf));
  return it == files.end() ? std::string_view() : std::string_view(it->second);
}

slurm::conf::Conf offered_conf(const kube::Object& config_map) {
  return slurm::conf::parse(slurm::conf::Kind::kSlurm, core::get_string(config_map.body, {"data", kSlurmConf})).conf;
}

std::optional<Places> read_places(const kube::Object& config_map) {
  Places out;
  if (const auto at = core::parse_rfc3339(config_map.meta.annotation(api::kAnnotationPlacesGiven))) out.given_until = *at;
  if (const auto at = core::parse_rfc3339(config_map.meta.annotation(api::kAnnotationPlacesDue))) out.due = *at;
  return out.given_until || out.due ? std::optional(out) : std::nullopt;
}

std::string restart_digest(std::string_view text) {
  const slurm::conf::Conf parsed = slurm::conf::parse(slurm::conf::Kind::kSlurm, text).conf;
  std::string values;
  for (std::string_view key : slurm::conf::restart_keys()) {
    for (const std::string& value : parsed.get_all(key)) values += std::string(key) + "=" + value + "\n";
  }
  return core::short_digest(values);
}

std::string slurmdbd_of(std::string_view text) {
  // Most clusters have no slurmdbd, and parsing takes time.
  if (text.find(kSlurmdbdStorage) == std::string_view::npos) return "";
  const slurm::conf::Conf parsed = slurm::conf::parse(slurm::conf::Kind::kSlurm, text).conf;
  if (parsed.get("AccountingStorageType") != kSlurmdbdStorage) return "";
  return parsed.get("AccountingStorageHost").value_or("localhost") + ":" +
         parsed.get("AccountingStoragePort").value_or(std::to_string(api::kPortSlurmdbd));
}

std::string joined_slurmdbd(const kube::Object& config_map) {
  const bool seen = !config_map.meta.annotation(api::kAnnotationAcceptedConfigHash).empty();
  return slurmdbd_of(seen ? loaded_file(config_map, kSlurmConf) : core::get_string(config_map.body, {"data", kSlurmConf}));
}

std::string slurmrestd_digest(std::string_view text) {
  const std::string slurmdbd = slurmdbd_of(text);
  return slurmdbd.empty() ? restart_digest(text) : core::short_digest(restart_digest(text) + " " + slurmdbd);
}

core::Duration slurmd_timeout(const slurm::conf::Conf& conf) {
  constexpr std::uint16_t kSlurms = 300;
  return std::chrono::seconds{number<std::uint16_t>(conf, "SlurmdTimeout").value_or(kSlurms)};
}

std::optional<std::size_t> max_node_count(const slurm::conf::Conf& conf) {
  return number<std::size_t>(conf, "MaxNodeCount");
}

bool enables_ipv6(const slurm::conf::Conf& conf) {
  return lower_case(conf.get("CommunicationParameters").value_or("")).find("enableipv6") != std::string::npos;
}

bool contains_jobs(const slurm::conf::Conf& conf) {
  // Each of these flags turns on the containment of jobs in prolog_str2flags() of slurmctld.
  constexpr std::array<std::string_view, 3> kFlags{"contain", "runinjob", "x11"};
  const std::string said = lower_case(conf.get("PrologFlags").value_or(""));
  return std::ranges::any_of(kFlags, [&](std::string_view flag) { return said.find(flag) != std::string::npos; });
}

bool contains_jobs(const kube::Object& config_map) {
  return contains_jobs(offered_conf(config_map));
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

}  // namespace slinky
