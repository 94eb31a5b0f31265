#include "enlist/coordinator/init.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <sstream>
#include <utility>
#include <vector>

#include "enlist/coordinator/slurm_files.hpp"
#include "enlist/rules/pool_file.hpp"
#include "enlist/rules/text.hpp"
#include "slurm/conf/conf.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using Print = std::function<void(std::string_view)>;

constexpr std::chrono::seconds kProgramLimit{30};
constexpr std::size_t kJwtKeyBytes = 32;
constexpr std::string_view kBackup = ".before-enlist";
constexpr std::string_view kStart =
    "systemctl enable --now slurm-enlist-coordinator (without systemd: slurm-enlist coordinator run)\n";

core::Result<std::string> run(Host& host, const std::vector<std::string>& arguments) {
  core::Result<Output> output = host.run(arguments, kProgramLimit, "");
  if (!output) return std::unexpected(output.error());
  if (output->status == 0) return std::move(output->out);
  std::string why = output->err.substr(0, output->err.find('\n'));
  return core::fail(ErrorCode::kInternal,
                    fmt::format("{} failed: {}", arguments.front(),
                                why.empty() ? fmt::format("exit code {}", output->status) : std::move(why)));
}

/// Reports whether the file exists. Errors: those of Host::read, except kNotFound.
core::Result<bool> exists(Host& host, const fs::path& file) {
  const core::Result<std::string> text = host.read(file);
  if (text) return true;
  if (text.error().code == ErrorCode::kNotFound) return false;
  return std::unexpected(text.error());
}

/// Returns the path with all symbolic links resolved. So init replaces the file that a link points to, not the link.
core::Result<fs::path> without_links(Host& host, const fs::path& path) {
  core::Result<std::string> real = run(host, {"realpath", path.string()});
  if (!real) return std::unexpected(real.error());
  return fs::path(real->substr(0, real->find('\n')));
}

core::Result<bool> user_exists(Host& host, const std::string& user) {
  const core::Result<Output> output = host.run({"getent", "passwd", user}, kProgramLimit, "");
  if (!output) return std::unexpected(output.error());
  if (output->status == 0) return true;
  // getent(1): 2 means that the key was not found.
  if (output->status == 2) return false;
  return core::fail(ErrorCode::kUnavailable, "cannot find out whether user " + user + " exists: getent failed");
}

/// Reports whether a user can read a file, by the file's owner, group and mode.
core::Result<bool> readable_by(Host& host, const std::string& user, const std::string& file) {
  const core::Result<std::string> id = run(host, {"id", "-u", user}), groups = run(host, {"id", "-G", user}),
                                  stat = run(host, {"stat", "-L", "-c", "%a %u %g", file});
  for (const auto* told : {&id, &groups, &stat}) {
    if (!*told) return std::unexpected(told->error());
  }
  unsigned mode = 0, owner = 0, group = 0;
  if (!(std::istringstream(*stat) >> std::oct >> mode >> std::dec >> owner >> group))
    return core::fail(ErrorCode::kInternal, "stat does not show the mode and the owner of " + file);
  if (std::strtoul(id->c_str(), nullptr, 10) == owner) return (mode & 0400U) != 0;
  std::istringstream members(*groups);
  for (unsigned one = 0; members >> one;) {
    if (one == group) return (mode & 0040U) != 0;
  }
  return (mode & 0004U) != 0;
}

/// The changes to make, in this order. slurm.conf comes last, so that it never names a file that does not exist yet.
struct Work {
  bool make_user = false;
  bool make_jwt_key = false;
  bool own_jwt_key = false;  ///< SlurmUser cannot read the key, for example because init was interrupted after creating it.
  bool make_pool_file = false;
  bool write_conf = false;
  fs::path file{};       ///< The path of slurm.conf without symbolic links.
  std::string before{};  ///< The present text of slurm.conf.
  Preflight checked{};
  std::string slurm_user{};
  std::vector<std::string> controllers{};  ///< The names of the SlurmctldHosts, if there are several.
};

core::Result<Work> look(const InitOptions& options, Host& host) {
  const fs::path folder = options.slurm_conf.parent_path();
  core::Result<std::string> text = host.read(options.slurm_conf);
  if (!text) return std::unexpected(text.error().with("run this on the host of slurmctld"));
  core::Result<fs::path> file = without_links(host, options.slurm_conf);
  if (!file) return std::unexpected(file.error());
  const core::Result<std::map<std::string, std::string>> included = read_included(host, options.slurm_conf, *text);
  if (!included) return std::unexpected(included.error());
  Work work{.file = *std::move(file), .before = *std::move(text)};
  work.checked = preflight(work.before, options.max_nodes, (folder / "jwt_hs256.key").string(), *included);
  if (!work.checked.problems.empty()) return work;
  std::string whole = work.checked.text;
  for (const auto& [name, content] : *included) whole += "\n" + content;
  core::Result<SlurmFacts> after = facts_of(whole);
  if (!after) {
    work.checked.problems.push_back(after.error().message);
    return work;
  }
  work.slurm_user = after->slurm_user;
  if (after->controllers.size() > 1) work.controllers = after->controller_names;
  for (const std::string& refused : {std::string("root"), work.slurm_user}) {
    if (options.slurmrestd_user != refused) continue;
    work.checked.problems.push_back("--slurmrestd-user " + refused +
                                    ": slurmrestd refuses to run as root and as SlurmUser; name another");
    return work;
  }
  work.write_conf = work.checked.text != work.before;
  const auto pool_file = exists(host, folder / kPoolFile);
  if (!pool_file) return std::unexpected(pool_file.error());
  const auto user = user_exists(host, options.slurmrestd_user);
  if (!user) return std::unexpected(user.error());
  work.make_pool_file = !*pool_file;
  work.make_user = !*user;
  const auto key = exists(host, work.checked.jwt_key);
  if (!key) return std::unexpected(key.error());
  work.make_jwt_key = !*key;
  if (*key && work.slurm_user != "root") {
    const auto readable = readable_by(host, work.slurm_user, work.checked.jwt_key);
    if (!readable) return std::unexpected(readable.error());
    work.own_jwt_key = !*readable;
  }
  return work;
}

std::vector<std::string> described(const Work& work, const InitOptions& options) {
  std::vector<std::string> out;
  if (work.make_user) out.push_back("make the system user " + options.slurmrestd_user + ", which runs slurmrestd");
  if (work.make_jwt_key)
    out.push_back(fmt::format("make the key {}, which only {} can read", work.checked.jwt_key, work.slurm_user));
  if (work.own_jwt_key)
    out.push_back(fmt::format("make {} the owner of {}, which it cannot read", work.slurm_user, work.checked.jwt_key));
  if (work.make_pool_file)
    out.push_back("make " + (options.slurm_conf.parent_path() / kPoolFile).string() + ", without pools yet");
  for (const std::string& change : work.checked.changes) out.push_back(options.slurm_conf.string() + ": " + change);
  return out;
}

/// Writes a file with the mode and the owner of the file `like`.
core::Result<void> replace(Host& host, const fs::path& file, const fs::path& like, const std::string& text) {
  const core::Result<std::string> mode = run(host, {"stat", "-c", "%a", like.string()});
  if (!mode) return std::unexpected(mode.error());
  return host.write_as(file, text, static_cast<unsigned>(std::strtoul(mode->c_str(), nullptr, 8)), like);
}

core::Result<void> carry_out(const Work& work, const InitOptions& options, Host& host, core::Random& random) {
  const fs::path folder = options.slurm_conf.parent_path();
  if (work.make_user) {
    const auto made = run(host, {"useradd", "--system", "--no-create-home", "--home-dir", "/nonexistent", "--shell",
                                 "/usr/sbin/nologin", options.slurmrestd_user});
    if (!made) return std::unexpected(made.error());
  }
  if (work.make_jwt_key) {
    if (auto made = host.write(work.checked.jwt_key, random.bytes(kJwtKeyBytes), 0600); !made) return made;
  }
  if (work.make_jwt_key || work.own_jwt_key) {
    const auto owned = run(host, {"chown", work.slurm_user, work.checked.jwt_key});
    if (!owned) return std::unexpected(owned.error());
  }
  if (work.own_jwt_key) {
    const auto readable = run(host, {"chmod", "u+r", work.checked.jwt_key});
    if (!readable) return std::unexpected(readable.error());
  }
  if (work.make_pool_file) {
    if (auto made = host.write(folder / kPoolFile, pool_file({}), 0644); !made) return made;
  }
  if (!work.write_conf) return {};
  const fs::path backup = work.file.string() + std::string(kBackup);
  if (auto kept = replace(host, backup, work.file, work.before); !kept) return kept;
  return replace(host, work.file, work.file, work.checked.text);
}

/// Returns a changed key of slurm.conf that slurmctld reads only when it starts; "" if there is none.
std::string needs_restart(const std::string& before, const std::string& after) {
  const slurm::conf::Conf old = slurm::conf::parse(slurm::conf::Kind::kSlurm, before).conf;
  const slurm::conf::Conf now = slurm::conf::parse(slurm::conf::Kind::kSlurm, after).conf;
  for (const std::string_view key : slurm::conf::restart_keys()) {
    if (old.get_all(key) != now.get_all(key)) return std::string(key);
  }
  return {};
}

}  // namespace

int init_coordinator(const InitOptions& options, Host& host, core::Random& random, const Print& out) {
  const core::Result<Work> work = look(options, host);
  if (!work) {
    out("error: " + work.error().message + "\n");
    return 1;
  }
  for (const std::string& problem : work->checked.problems) out("problem: " + problem + "\n");
  if (!work->checked.problems.empty()) {
    out("Nothing was changed. Fix these problems, and run init again.\n");
    return 1;
  }
  if (!work->controllers.empty())
    out(
        fmt::format("note: slurm.conf names the SlurmctldHosts {}. They must share the folder {}: a slurmctld that takes over "
                    "with an older {} ends the jobs of the pools that it lacks.\n",
                    comma_list(work->controllers), options.slurm_conf.parent_path().string(), kPoolFile));
  const std::vector<std::string> changes = described(*work, options);
  for (const std::string& change : changes) out(fmt::format("{}: {}\n", options.yes ? "change" : "would change", change));
  if (changes.empty()) {
    out(fmt::format("Nothing has to be changed. Start the coordinator, if it does not run yet: {}", kStart));
    return 0;
  }
  if (!options.yes) {
    out("Nothing was changed. To make these changes, run init again with --yes.\n");
    return 0;
  }
  if (const auto done = carry_out(*work, options, host, random); !done) {
    out("error: " + done.error().message + "; fix this, and run init again\n");
    return 1;
  }
  if (work->write_conf) {
    out(fmt::format("The old file is {}{}.\n", work->file.string(), kBackup));
    const std::string key = needs_restart(work->before, work->checked.text);
    out(key.empty() ? "Now run: scontrol reconfigure\n"
                    : fmt::format("{} takes effect when slurmctld restarts. Now run: systemctl restart slurmctld\n", key));
  }
  out(fmt::format("Then start the coordinator: {}", kStart));
  return 0;
}

}  // namespace enlist
