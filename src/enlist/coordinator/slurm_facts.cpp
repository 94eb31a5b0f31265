#include "enlist/coordinator/slurm_facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "enlist/rules/text.hpp"
#include "slurm/conf/conf.hpp"

namespace enlist {
namespace {

/// Returns the names of the records of a kind, such as "NodeSet". Leaves out records of defaults.
std::set<std::string> names_in(const slurm::conf::Conf& conf, std::string_view kind) {
  std::set<std::string> out;
  for (const slurm::conf::Entry& entry : conf.entries()) {
    if (same_word(entry.head().key, kind) && !entry.defaults()) out.insert(entry.head().value);
  }
  return out;
}

/// Returns the value of the item KEY=VALUE in a list with commas, or "".
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

/// Returns the value of an item KEY=VALUE in a list with commas as a number; `otherwise` if it is missing or not above 0.
std::int64_t seconds_in(const std::optional<std::string>& list, std::string_view key, std::int64_t otherwise) {
  const std::string text = item_of(list, key);
  std::int64_t out = 0;
  return std::from_chars(text.data(), text.data() + text.size(), out).ec == std::errc() && out > 0 ? out : otherwise;
}

std::vector<std::string> accounting_hosts_in(const slurm::conf::Conf& conf) {
  std::vector<std::string> out;
  if (!same_word(conf.get("AccountingStorageType").value_or(""), "accounting_storage/slurmdbd")) return out;
  out.push_back(conf.get("AccountingStorageHost").value_or("localhost"));
  if (const auto backup = conf.get("AccountingStorageBackupHost")) out.push_back(*backup);
  // "HOST[:PORT],...": slurmctld registers there as well (slurm.conf(5)).
  const std::string external = conf.get("AccountingStorageExternalHost").value_or("");
  for (std::string_view rest = external; !rest.empty();) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view item = rest.substr(0, end);
    std::string host(item.substr(0, item.find(':')));
    if (!host.empty() && std::ranges::find(out, host) == out.end()) out.push_back(std::move(host));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return out;
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

}  // namespace

core::Result<SlurmFacts> facts_of(std::string_view text, std::string_view pool_file) {
  // Ignores the problems that the parser reports, such as Include lines and keys of later releases: slurmctld checks the file.
  const slurm::conf::Conf conf = slurm::conf::parse(slurm::conf::Kind::kSlurm, text).conf;
  SlurmFacts out;
  out.cluster_name = conf.get("ClusterName").value_or("");
  if (out.cluster_name.empty()) return core::fail(core::ErrorCode::kInvalid, "ClusterName is not set");
  const std::string ports = conf.get("SlurmctldPort").value_or("6817");
  const std::string_view port = std::string_view(ports).substr(0, ports.find('-'));
  for (const std::string& host : conf.get_all("SlurmctldHost")) {
    out.controller_names.push_back(host.substr(0, host.find('(')));
    // slurmd exits if --conf-server names a host twice.
    std::string controller = controller_of(host, port);
    if (std::ranges::find(out.controllers, controller) == out.controllers.end())
      out.controllers.push_back(std::move(controller));
  }
  if (out.controllers.empty()) return core::fail(core::ErrorCode::kInvalid, "SlurmctldHost is not set");
  out.slurm_user = conf.get("SlurmUser").value_or("root");
  // SlurmUser may have the form "name(uid)".
  out.slurm_user = out.slurm_user.substr(0, out.slurm_user.find('('));
  out.jwt_key = item_of(conf.get("AuthAltParameters"), "jwt_key");
  if (out.jwt_key.empty()) out.jwt_key = item_of(conf.get("AuthInfo"), "jwt_key");
  // The default path: see slurm.conf(5), AuthAltParameters.
  if (out.jwt_key.empty()) out.jwt_key = conf.get("StateSaveLocation").value_or("/var/spool") + "/jwt_hs256.key";
  if (const auto limit = conf.get("MaxNodeCount")) out.max_node_count = whole_number(*limit);
  out.node_sets = names_in(conf, "NodeSet");
  out.node_sets.merge(names_in(slurm::conf::parse(slurm::conf::Kind::kSlurm, pool_file).conf, "NodeSet"));
  out.partitions = names_in(conf, "PartitionName");
  out.accounting_hosts = accounting_hosts_in(conf);
  // The defaults are those of auth_slurm.h (ttl) and of slurm.conf(5) (cred_expire).
  out.signed_for_s =
      std::max(seconds_in(conf.get("AuthInfo"), "ttl", 60), seconds_in(conf.get("AuthInfo"), "cred_expire", 120));
  return out;
}

}  // namespace enlist
