#include "net/tls_files.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace net {

namespace {

core::Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return core::fail(core::ErrorCode::kNotFound, path + ": " + std::generic_category().message(errno));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

core::Result<Tls> read_files(const TlsFilesOptions& options) {
  Tls tls;
  for (const auto& [path, text] : {std::pair(&options.cert_file, &tls.cert_pem), std::pair(&options.key_file, &tls.key_pem),
                                   std::pair(&options.ca_file, &tls.ca_pem)}) {
    if (path->empty()) continue;
    auto read = read_file(*path);
    if (!read) return std::unexpected(read.error());
    *text = std::move(*read);
  }
  return tls;
}

}  // namespace

struct TlsFiles::Impl : std::enable_shared_from_this<TlsFiles::Impl> {
  Impl(core::Loop& l, TlsFilesOptions o, Use u) : loop(l), options(std::move(o)), use(std::move(u)), tick(l) {}

  core::Loop& loop;
  TlsFilesOptions options;
  Use use;
  std::function<void(const core::Error&)> failed;
  core::Timer tick;
  Tls used;

  void wait() {
    tick.set(options.interval, [this] { look(); });
  }

  void look() {
    const auto found = std::make_shared<core::Result<Tls>>();
    loop.offload([found, options = options] { *found = read_files(options); },
                 [weak = weak_from_this(), found] {
                   const auto self = weak.lock();
                   if (!self) return;
                   self->take(*found);
                   self->wait();
                 });
  }

  void take(const core::Result<Tls>& found) {
    if (found && *found == used) return;
    core::Result<void> taken;
    if (found) {
      taken = use(*found);
    } else {
      taken = std::unexpected(found.error());
    }
    if (taken) {
      used = *found;
    } else if (failed) {
      failed(taken.error());
    }
  }
};

TlsFiles::TlsFiles(core::Loop& loop, TlsFilesOptions options, Use use)
    : impl_(std::make_shared<Impl>(loop, std::move(options), std::move(use))) {}

TlsFiles::~TlsFiles() {
  impl_->tick.cancel();
}

core::Result<Tls> TlsFiles::read() {
  auto found = read_files(impl_->options);
  if (found) impl_->used = *found;
  return found;
}

void TlsFiles::watch(std::function<void(const core::Error&)> failed) {
  impl_->failed = std::move(failed);
  impl_->wait();
}

}  // namespace net
