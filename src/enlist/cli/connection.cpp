#include "enlist/cli/connection.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/hash.hpp"
#include "net/asio_loop.hpp"
#include "net/beast_transport.hpp"
#include "net/certificate.hpp"
#include "net/http_server.hpp"

namespace enlist::cli {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;

core::Result<std::string> text_of(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error) && !error)
    return core::fail(
        ErrorCode::kNotFound,
        file.string() + " does not exist; run this on the coordinator's host, after slurm-enlist coordinator run");
  std::ifstream in(file, std::ios::binary);
  std::ostringstream out;
  if (!in || !(out << in.rdbuf()))
    return core::fail(ErrorCode::kForbidden, file.string() + " cannot be read; run this as root");
  return out.str();
}

}  // namespace

core::Result<core::Json> read_answer(int status, const std::string& body) {
  const core::Result<core::Json> json = core::parse_json(body);
  if (status == 200 && json) return json;
  std::string why = json ? core::get_string(*json, {"error"}) : std::string();
  if (why.empty()) why = "the coordinator answers with status " + std::to_string(status);
  return core::fail(status == 503 ? ErrorCode::kUnavailable : ErrorCode::kInvalid, std::move(why));
}

core::Result<core::Json> ask_coordinator(const Connection& to, const std::string& path, const core::Json& body) {
  const fs::path folder = to.state;
  const auto cert = text_of(folder / "admin.crt"), key = text_of(folder / "admin.key"),
             server = text_of(folder / "coordinator.crt");
  for (const auto* text : {&cert, &key, &server}) {
    if (!*text) return std::unexpected(text->error());
  }
  const auto pin = net::fingerprint_of(*server);
  if (!pin) return std::unexpected(pin.error().with((folder / "coordinator.crt").string()));
  const auto address = net::parse_listen_address(to.address);
  if (!address) return std::unexpected(address.error().with("--coordinator"));
  net::AsioLoop loop(1);
  net::BeastTransport transport(loop, {.scheme = "https",
                                       .host = address->address.empty() ? "127.0.0.1" : address->address,
                                       .port = address->port,
                                       .tls = {.cert_pem = *cert, .key_pem = *key, .pinned_key = *pin}});
  net::HttpRequest request{.method = body.is_null() ? "GET" : "POST", .target = path};
  if (!body.is_null()) {
    request.body = core::canonical(body);
    request.headers.emplace("content-type", "application/json");
  }
  std::optional<core::Result<net::HttpResponse>> reply;
  transport.send(std::move(request), [&](core::Result<net::HttpResponse> answer) {
    reply = std::move(answer);
    loop.stop();
  });
  loop.run();
  if (!*reply)
    return std::unexpected((*reply).error().with("no answer from the coordinator at " + to.address + " (does it run?)"));
  return read_answer((*reply)->status, (*reply)->body);
}

}  // namespace enlist::cli
