#include "enlist/agent/memory_file.hpp"

#include <algorithm>
#include <iterator>

#include "enlist/wire/messages.hpp"

namespace enlist {

namespace {

core::Json written(const KeyFile& key) {
  return {{"file", key.file}, {"revision", key.revision}, {"digest", key.digest}};
}
KeyFile read_key(const core::Json& json) {
  return {core::get_string(json, {"file"}), core::get_string(json, {"revision"}), core::get_string(json, {"digest"})};
}

}  // namespace

std::string memory_text(const Memory& memory) {
  core::Json out = {{"host", memory.host},
                    {"port", memory.port},
                    {"coordinator", memory.coordinator},
                    {"node", memory.node},
                    {"pool", memory.pool},
                    {"cluster", memory.cluster},
                    {"key", written(memory.key)},
                    {"loadedKey", memory.loaded_key},
                    {"registrations", memory.registrations}};
  for (const KeyFile& former : memory.former) out["former"].push_back(written(former));
  if (!memory.started_with.empty()) out["startedWith"] = memory.started_with;
  if (memory.stale_image) out["staleImage"] = *memory.stale_image;
  if (!memory.prepared.empty()) out["prepared"] = memory.prepared;
  if (!memory.restarted_for.empty()) out["restartedFor"] = memory.restarted_for;
  if (memory.stopped) out["stopped"] = true;
  if (memory.left) out["left"] = true;
  if (memory.desired) out["desired"] = to_json(*memory.desired);
  return out.dump(2, ' ', false, core::Json::error_handler_t::replace) + "\n";
}

core::Result<Memory> memory_from(std::string_view text) {
  const auto json = core::parse_json(text);
  if (!json) return std::unexpected(json.error());
  Memory out;
  out.host = core::get_string(*json, {"host"});
  out.coordinator = core::get_string(*json, {"coordinator"});
  const long long port = core::get_int(*json, {"port"}), registrations = core::get_int(*json, {"registrations"});
  if (out.host.empty()) return core::fail(core::ErrorCode::kInvalid, "host is missing");
  if (port < 1 || port > 65535) return core::fail(core::ErrorCode::kInvalid, "port is missing or wrong");
  if (out.coordinator.empty()) return core::fail(core::ErrorCode::kInvalid, "coordinator is missing");
  if (registrations < 0) return core::fail(core::ErrorCode::kInvalid, "registrations is wrong");
  out.port = static_cast<std::uint16_t>(port);
  out.registrations = static_cast<std::uint64_t>(registrations);
  out.node = core::get_string(*json, {"node"});
  out.pool = core::get_string(*json, {"pool"});
  out.cluster = core::get_string(*json, {"cluster"});
  if (const core::Json* key = core::find(*json, {"key"})) out.key = read_key(*key);
  if (const core::Json* former = core::find(*json, {"former"}); former != nullptr && former->is_array())
    std::ranges::transform(*former, std::back_inserter(out.former), read_key);
  out.started_with = core::get_string(*json, {"startedWith"});
  out.loaded_key = core::get_string(*json, {"loadedKey"});
  if (core::find(*json, {"staleImage"}) != nullptr) out.stale_image = core::get_string(*json, {"staleImage"});
  out.prepared = core::get_string(*json, {"prepared"});
  out.restarted_for = core::get_string(*json, {"restartedFor"});
  out.stopped = core::get_bool(*json, {"stopped"});
  out.left = core::get_bool(*json, {"left"});
  if (const core::Json* desired = core::find(*json, {"desired"})) {
    auto read = from_json<Desired>(*desired);
    if (!read) return std::unexpected(read.error().with("desired"));
    out.desired = *std::move(read);
  }
  return out;
}

core::Result<Memory> read_memory(Host& host, const std::filesystem::path& folder) {
  const auto text = host.read(folder / kMemoryFile);
  if (!text) return std::unexpected(text.error());
  auto memory = memory_from(*text);
  if (!memory) return std::unexpected(memory.error().with((folder / kMemoryFile).string()));
  return memory;
}

core::Result<void> write_memory(Host& host, const std::filesystem::path& folder, const Memory& memory) {
  return host.write(folder / kMemoryFile, memory_text(memory), 0600);
}

}  // namespace enlist
