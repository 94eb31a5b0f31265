#include "enlist/wire/messages.hpp"

namespace enlist {

core::Json to_json(const SyncReply& reply) {
  return {
      {"desired", to_json(reply.desired)}, {"revision", reply.revision}, {"phase", reply.phase}, {"message", reply.message}};
}

template <>
core::Result<SyncReply> from_json<SyncReply>(const core::Json& json) {
  const core::Json* desired = core::find(json, {"desired"});
  if (desired == nullptr) return core::fail(core::ErrorCode::kInvalid, "desired is missing");
  auto read = from_json<Desired>(*desired);
  if (!read) return std::unexpected(read.error().with("desired"));
  return SyncReply{*std::move(read), core::get_string(json, {"revision"}), core::get_string(json, {"phase"}),
                   core::get_string(json, {"message"})};
}

}  // namespace enlist
