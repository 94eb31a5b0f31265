#include "enlist/wire/messages.hpp"

#include <fmt/format.h>

#include <concepts>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

namespace enlist {
namespace {

using core::Json;

/// A member of a message: its name in JSON, and a pointer to the member of the struct.
template <class T, class V>
struct Member {
  std::string_view name;
  V T::*place;
  bool required;
  /// The smallest and the largest value of an integer, if its type allows more.
  long long least = std::numeric_limits<long long>::min();
  long long most = std::numeric_limits<long long>::max();
};
template <class T, class V>
constexpr Member<T, V> required(std::string_view name, V T::*place) {
  return {name, place, true};
}
/// Returns a member that other versions may leave out. A missing member has the value of the struct's default initializer.
template <class T, class V>
constexpr Member<T, V> optional(std::string_view name, V T::*place) {
  return {name, place, false};
}

template <class T>
struct Members;
template <>
struct Members<Pool> {
  static constexpr auto kAll = std::tuple(required("name", &Pool::name), optional("partition_conf", &Pool::partition_conf),
                                          optional("node_conf", &Pool::node_conf), optional("next_number", &Pool::next_number),
                                          optional("removing", &Pool::removing));
};
template <>
struct Members<Report> {
  static constexpr auto kAll =
      std::tuple(required("hostname", &Report::hostname), required("boot_id", &Report::boot_id),
                 optional("slurm_version", &Report::slurm_version), optional("conf", &Report::conf),
                 optional("instance_id", &Report::instance_id), optional("running", &Report::running),
                 optional("key_revision", &Report::key_revision), optional("key_loaded", &Report::key_loaded),
                 optional("registrations", &Report::registrations), optional("error", &Report::error),
                 optional("check_passed", &Report::check_passed), optional("started", &Report::started),
                 optional("steps_known", &Report::steps_known), optional("steps", &Report::steps),
                 optional("stopped", &Report::stopped), optional("left", &Report::left), optional("note", &Report::note));
};
template <>
struct Members<Desired> {
  static constexpr auto kAll =
      std::tuple(required("node", &Desired::node), required("pool", &Desired::pool), required("cluster", &Desired::cluster),
                 optional("controllers", &Desired::controllers), optional("node_conf", &Desired::node_conf),
                 optional("key_revision", &Desired::key_revision), optional("registrations", &Desired::registrations),
                 optional("leave", &Desired::leave));
};
template <>
struct Members<Leaving> {
  static constexpr auto kAll =
      std::tuple(optional("wanted", &Leaving::wanted), optional("force", &Leaving::force), optional("dead", &Leaving::dead),
                 optional("stop", &Leaving::stop), optional("since", &Leaving::since));
};
template <>
struct Members<Configuring> {
  static constexpr auto kAll =
      std::tuple(optional("wanted", &Configuring::wanted), optional("live", &Configuring::live),
                 optional("stop", &Configuring::stop), optional("conf", &Configuring::conf),
                 optional("since", &Configuring::since), optional("taken_back", &Configuring::taken_back));
};
template <>
struct Members<LiveWords> {
  static constexpr auto kAll = std::tuple(optional("weight", &LiveWords::weight), optional("dropped", &LiveWords::dropped));
};
template <>
struct Members<Marks> {
  static constexpr auto kAll = std::tuple(optional("reason", &Marks::reason), optional("comment", &Marks::comment));
};
template <>
struct Members<Node> {
  static constexpr auto kAll = std::tuple(
      required("name", &Node::name), required("pool", &Node::pool), required("key", &Node::key),
      optional("node_conf", &Node::node_conf), optional("registrations", &Node::registrations),
      optional("revoked", &Node::revoked), optional("joined", &Node::joined), optional("report", &Node::report),
      optional("confirmed", &Node::confirmed), optional("gate_boot", &Node::gate_boot), optional("phase", &Node::phase),
      optional("message", &Node::message), optional("leaving", &Node::leaving), optional("configuring", &Node::configuring),
      optional("live", &Node::live), optional("marks", &Node::marks), optional("silent_since", &Node::silent_since));
};
template <>
struct Members<Token> {
  static constexpr auto kAll = std::tuple(required("pool", &Token::pool), optional("expires", &Token::expires),
                                          optional("uses_left", &Token::uses_left));
};
template <>
struct Members<JoinRequest> {
  static constexpr auto kAll =
      std::tuple(required("secret", &JoinRequest::secret), required("hostname", &JoinRequest::hostname),
                 required("slurm_version", &JoinRequest::slurm_version), required("conf", &JoinRequest::conf),
                 optional("plain_key", &JoinRequest::plain_key), optional("jwks", &JoinRequest::jwks));
};
template <>
struct Members<JoinReply> {
  static constexpr auto kAll =
      std::tuple(required("node", &JoinReply::node), required("pool", &JoinReply::pool),
                 required("cluster", &JoinReply::cluster), Member{"port", &JoinReply::port, true, 1, 65535});
};
template <>
struct Members<Sync> {
  static constexpr auto kAll = std::tuple(required("report", &Sync::report), optional("revision", &Sync::revision),
                                          Member{"wait_ms", &Sync::wait_ms, false, 0, 30000});
};
template <>
struct Members<SyncReply> {
  static constexpr auto kAll = std::tuple(required("desired", &SyncReply::desired), optional("revision", &SyncReply::revision),
                                          optional("phase", &SyncReply::phase), optional("message", &SyncReply::message));
};

template <class T>
concept Message = requires {
  Members<T>::kAll;
};
template <class T>
concept Number = std::integral<T> && !std::same_as<T, bool>;

template <class T>
Json written(const T& value);

/// Writes microseconds, so that the store returns exactly the value that it was given.
Json written_value(core::WallTime value) {
  return core::format_rfc3339_micro(value);
}
Json written_value(Phase value) {
  return std::string(to_string(value));
}
template <Message T>
Json written_value(const T& value) {
  return written(value);
}
template <class T>
Json written_value(const T& value) {
  return value;
}

template <class T>
Json written(const T& value) {
  Json out = Json::object();
  std::apply([&](const auto&... member) { ((out[std::string(member.name)] = written_value(value.*member.place)), ...); },
             Members<T>::kAll);
  return out;
}

/// Parses a message, and records the first mistake in it. A mistake never contains a value, because some values are secrets.
class Reader {
 public:
  template <class T>
  void read(const Json& json, T& out, const std::string& place) {
    if (!json.is_object()) return wrong(place.empty() ? "the message" : place, "must be an object");
    std::apply([&](const auto&... member) { (read_member(json, out, member, place), ...); }, Members<T>::kAll);
  }
  [[nodiscard]] const std::string& mistake() const { return mistake_; }

 private:
  template <class T, class V>
  void read_member(const Json& json, T& out, const Member<T, V>& member, const std::string& place) {
    const std::string name = place.empty() ? std::string(member.name) : fmt::format("{}.{}", place, member.name);
    const auto found = json.find(member.name);
    if (found == json.end()) {
      if (member.required) wrong(name, "is missing");
      return;
    }
    V& value = out.*member.place;
    if constexpr (Message<V>) {
      read(*found, value, name);
    } else if constexpr (Number<V>) {
      read_number(*found, value, member, name);
    } else {
      read_value(*found, value, name);
    }
  }

  template <class T, Number V>
  void read_number(const Json& json, V& out, const Member<T, V>& member, const std::string& name) {
    const auto take = [&](auto number) {
      if (!std::in_range<V>(number) || std::cmp_less(number, member.least)) return false;
      if (member.most != std::numeric_limits<long long>::max() && std::cmp_greater(number, member.most)) return false;
      out = static_cast<V>(number);
      return true;
    };
    const bool taken = json.is_number_unsigned()  ? take(json.get<std::uint64_t>())
                       : json.is_number_integer() ? take(json.get<std::int64_t>())
                                                  : false;
    if (taken) return;
    if (member.most != std::numeric_limits<long long>::max())
      return wrong(name, fmt::format("must be an integer from {} to {}", member.least, member.most));
    wrong(name, std::is_unsigned_v<V> ? "must be an integer of 0 or more" : "must be an integer");
  }

  void read_value(const Json& json, std::string& out, const std::string& name) {
    if (!json.is_string()) return wrong(name, "must be a string");
    out = json.get<std::string>();
  }
  void read_value(const Json& json, bool& out, const std::string& name) {
    if (!json.is_boolean()) return wrong(name, "must be true or false");
    out = json.get<bool>();
  }
  void read_value(const Json& json, std::vector<std::string>& out, const std::string& name) {
    if (!json.is_array()) return wrong(name, "must be a list of strings");
    out.clear();
    for (const Json& item : json) {
      const std::string place = fmt::format("{}[{}]", name, out.size());
      read_value(item, out.emplace_back(), place);
    }
  }
  void read_value(const Json& json, core::WallTime& out, const std::string& name) {
    const auto time = json.is_string() ? core::parse_rfc3339(json.get<std::string>())
                                       : core::Result<core::WallTime>(core::fail(core::ErrorCode::kInvalid, ""));
    // With a leap second or an offset, the time may be in a year of more than four digits, which could not be parsed again.
    if (!time || !core::parse_rfc3339(core::format_rfc3339_micro(*time)))
      return wrong(name, "must be a time such as 2026-01-02T03:04:05Z");
    out = *time;
  }
  void read_value(const Json& json, Phase& out, const std::string& name) {
    const auto phase = json.is_string() ? phase_from(json.get<std::string>()) : std::nullopt;
    if (!phase) return wrong(name, "must be a phase that this version knows");
    out = *phase;
  }

  void wrong(const std::string& name, std::string_view what) {
    if (mistake_.empty()) mistake_ = fmt::format("{}: {}", name, what);
  }

  std::string mistake_;
};

}  // namespace

Json to_json(const Pool& pool) {
  return written(pool);
}
Json to_json(const Node& node) {
  return written(node);
}
Json to_json(const Token& token) {
  return written(token);
}
Json to_json(const Report& report) {
  return written(report);
}
Json to_json(const Desired& desired) {
  return written(desired);
}
Json to_json(const JoinRequest& request) {
  return written(request);
}
Json to_json(const JoinReply& reply) {
  return written(reply);
}
Json to_json(const Sync& sync) {
  return written(sync);
}
Json to_json(const SyncReply& reply) {
  return written(reply);
}

template <class T>
core::Result<T> from_json(const Json& json) {
  T out{};
  Reader reader;
  reader.read(json, out, "");
  if (!reader.mistake().empty()) return core::fail(core::ErrorCode::kInvalid, reader.mistake());
  return out;
}
template core::Result<Pool> from_json(const Json& json);
template core::Result<Node> from_json(const Json& json);
template core::Result<Token> from_json(const Json& json);
template core::Result<Report> from_json(const Json& json);
template core::Result<Desired> from_json(const Json& json);
template core::Result<JoinRequest> from_json(const Json& json);
template core::Result<JoinReply> from_json(const Json& json);
template core::Result<Sync> from_json(const Json& json);
template core::Result<SyncReply> from_json(const Json& json);

}  // namespace enlist
