#include "enlist/coordinator/slurm_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "slurm/conf/conf.hpp"

namespace enlist {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

/// Returns the path behind "Include" at the beginning of a line, or "".
std::string_view included_by(std::string_view line) {
  constexpr std::string_view kSpace = " \t\r";
  constexpr std::string_view kInclude = "include";
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  if (line.size() <= kInclude.size() || !same_word(line.substr(0, kInclude.size()), kInclude) ||
      kSpace.find(line[kInclude.size()]) == std::string_view::npos)
    return {};
  line.remove_prefix(kInclude.size());
  line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
  return line.substr(0, line.find_first_of(" \t\r#"));
}

std::vector<std::string> includes_of(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const std::string_view file = included_by(text.substr(0, end)); !file.empty()) out.emplace_back(file);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

std::set<std::string> node_sets_in(const slurm::conf::Conf& conf) {
  std::set<std::string> out;
  for (const slurm::conf::Entry& entry : conf.entries()) {
    if (same_word(entry.head().key, "NodeSet")) out.insert(entry.head().value);
  }
  return out;
}

/// Returns the item KEY=VALUE of a comma list, or "".
std::string item_of(const std::optional<std::string>& list, std::string_view key) {
  std::string_view rest = list ? std::string_view(*list) : std::string_view();
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, end);
    const std::size_t equals = item.find('=');
    if (equals != std::string_view::npos && same_word(item.substr(0, equals), key)) return std::string(item.substr(equals + 1));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

/// Returns "host:port" for a value of SlurmctldHost: "name" or "name(address)".
std::string controller_of(std::string_view host, std::string_view port) {
  const std::size_t open = host.find('(');
  if (open != std::string_view::npos) {
    host.remove_prefix(open + 1);
    host = host.substr(0, host.find(')'));
  }
  const bool ipv6 = host.find(':') != std::string_view::npos && !host.starts_with('[');
  return ipv6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

/// Numbers the major releases: 23.02 is 0, 23.11 is 1, 24.05 is 2. Earlier ones are negative. nullopt: it is none.
std::optional<int> number_of(std::string_view release) {
  int year = 0, month = 0;
  const char* end = release.data() + release.size();
  const auto [dot, error] = std::from_chars(release.data(), end, year);
  if (error != std::errc() || dot == end || *dot != '.') return {};
  if (std::from_chars(dot + 1, end, month).ec != std::errc() || month < 1 || month > 12) return {};
  if (year < 23) return -1 - ((23 * 12 + 2) - (year * 12 + month)) / 9;
  if (year == 23) return month >= 11 ? 1 : 0;
  return (year - 23) * 2 + (month >= 11 ? 1 : 0);
}

}  // namespace

core::Result<SlurmFacts> facts_of(std::string_view slurm_conf) {
  // Include lines and words of later releases are problems to the model. slurmctld is the judge of both.
  const slurm::conf::Conf conf = slurm::conf::parse(slurm::conf::Kind::kSlurm, slurm_conf).conf;
  SlurmFacts out;
  out.cluster_name = conf.get("ClusterName").value_or("");
  if (out.cluster_name.empty()) return core::fail(core::ErrorCode::kInvalid, "ClusterName is not set");
  const std::string ports = conf.get("SlurmctldPort").value_or("6817");
  const std::string_view port = std::string_view(ports).substr(0, ports.find('-'));
  for (const std::string& host : conf.get_all("SlurmctldHost")) {
    // slurmd ends if a host is named twice.
    std::string controller = controller_of(host, port);
    if (std::ranges::find(out.controllers, controller) == out.controllers.end())
      out.controllers.push_back(std::move(controller));
  }
  if (out.controllers.empty()) return core::fail(core::ErrorCode::kInvalid, "SlurmctldHost is not set");
  out.slurm_user = conf.get("SlurmUser").value_or("root");
  // A user may be given as "name(uid)".
  out.slurm_user = out.slurm_user.substr(0, out.slurm_user.find('('));
  out.jwt_key = item_of(conf.get("AuthAltParameters"), "jwt_key");
  if (const auto text = conf.get("MaxNodeCount")) {
    std::size_t count = 0;
    if (std::from_chars(text->data(), text->data() + text->size(), count).ec == std::errc()) out.max_node_count = count;
  }
  out.node_sets = node_sets_in(conf);
  out.includes = includes_of(slurm_conf);
  return out;
}

std::set<std::string> node_sets_of(std::string_view included) {
  return node_sets_in(slurm::conf::parse(slurm::conf::Kind::kSlurm, included).conf);
}

core::Result<void> check_release(std::string_view slurmd, std::string_view slurmctld) {
  const std::optional<int> node = number_of(slurmd), controller = number_of(slurmctld);
  if (!controller) return core::fail(core::ErrorCode::kUnavailable, "the release of slurmctld is not known yet; try again");
  if (!node)
    return core::fail(core::ErrorCode::kInvalid, fmt::format("slurmd's release \"{}\" is not one of Slurm; install slurmd {}",
                                                             slurmd.substr(0, 40), slurmctld));
  if (*node > *controller)
    return core::fail(core::ErrorCode::kInvalid, fmt::format("slurmd {} is newer than slurmctld {}; install slurmd {} or older",
                                                             slurmd, slurmctld, slurmctld));
  if (*controller - *node > 2)
    return core::fail(core::ErrorCode::kInvalid,
                      fmt::format("slurmd {} is more than two major releases older than slurmctld {}; install a newer one",
                                  slurmd, slurmctld));
  return {};
}

}  // namespace enlist
