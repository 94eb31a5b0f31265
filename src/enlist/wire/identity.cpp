#include "enlist/wire/identity.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "net/certificate.hpp"

namespace enlist {
namespace {

namespace fs = std::filesystem;
using core::ErrorCode;
using core::fail;

constexpr std::size_t kMaxBytes = 65536;  // The certificate and the key are at most 2 KB each.

std::unexpected<core::Error> system_failure(ErrorCode code, const fs::path& path) {
  return fail(code, path.string() + ": " + std::generic_category().message(errno));
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  explicit operator bool() const { return fd_ >= 0; }
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

/// Returns the file's text; nullopt if there is no such file. `secret`: refuses a file that other users may read.
core::Result<std::optional<std::string>> read_file(const fs::path& path, bool secret) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  struct stat about {};
  if (!file || fstat(file.get(), &about) != 0) return system_failure(ErrorCode::kInvalid, path);
  if (!S_ISREG(about.st_mode)) return fail(ErrorCode::kInvalid, path.string() + ": is not a regular file");
  if (secret && (about.st_mode & 077U) != 0) {
    return fail(ErrorCode::kInvalid, fmt::format("{}: has mode {:04o}, must be 0600: other users may have read the key",
                                                 path.string(), about.st_mode & 07777U));
  }
  std::string text(kMaxBytes, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = read(file.get(), text.data() + size, text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_failure(ErrorCode::kInvalid, path);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  text.resize(size);
  return text;
}

core::Result<void> sync_folder(const fs::path& folder) {
  const Descriptor opened(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || fsync(opened.get()) != 0) return system_failure(ErrorCode::kUnavailable, folder);
  return {};
}

/// Creates a file atomically, with its whole text. Errors: kAlreadyExists, kUnavailable.
core::Result<void> write_new(const fs::path& path, std::string_view text, mode_t mode) {
  std::string next = path.parent_path() / ("." + path.filename().string() + ".XXXXXX");
  const Descriptor file(mkostemp(next.data(), O_CLOEXEC));  // Creates the file with mode 0600.
  if (!file) return system_failure(ErrorCode::kUnavailable, path);
  bool good = fchmod(file.get(), mode) == 0;
  while (good && !text.empty()) {
    const ssize_t n = write(file.get(), text.data(), text.size());
    good = n > 0 || (n < 0 && errno == EINTR);
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
  // link(2) fails if the file exists. rename(2) would replace a file that another process has just written.
  good = good && fsync(file.get()) == 0 && link(next.c_str(), path.c_str()) == 0;
  const int why = errno;
  unlink(next.c_str());
  errno = why;
  if (!good) return system_failure(why == EEXIST ? ErrorCode::kAlreadyExists : ErrorCode::kUnavailable, path);
  return sync_folder(path.parent_path());
}

struct Files {
  fs::path cert, key;
};

core::Result<Identity> identity_of(const Files& files, std::string cert, std::string key) {
  if (auto fits = net::check_pair(cert, key); !fits)
    return std::unexpected(fits.error().with(files.cert.string() + ", " + files.key.filename().string()));
  std::string fingerprint = *net::fingerprint_of(cert);
  return Identity{std::move(cert), std::move(key), std::move(fingerprint)};
}

/// Reads the files that exist and creates the missing ones. Error: kAlreadyExists if another process has created one meanwhile.
core::Result<Identity> read_or_write(const Files& files, const std::string& name) {
  auto cert = read_file(files.cert, false);
  if (!cert) return std::unexpected(cert.error());
  auto key = read_file(files.key, true);
  if (!key) return std::unexpected(key.error());
  if (*cert && *key) return identity_of(files, **std::move(cert), **std::move(key));
  if (*cert) {
    return fail(ErrorCode::kInvalid,
                fmt::format("{}: is missing, though there is {}", files.key.string(), files.cert.filename().string()));
  }
  // The key is the identity, so it is written first. After a crash between the two files, its certificate can be created again.
  auto made = *key ? net::make_self_signed(name, **key) : net::make_self_signed(name);
  if (!made) return std::unexpected(made.error().with(files.key.string()));
  if (!*key) {
    if (auto done = write_new(files.key, made->key, 0600); !done) return std::unexpected(done.error());
  }
  if (auto done = write_new(files.cert, made->cert, 0644); !done) return std::unexpected(done.error());
  return identity_of(files, std::move(made->cert), std::move(made->key));
}

}  // namespace

core::Result<Identity> load_or_make_identity(const fs::path& folder, const std::string& name) {
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return system_failure(ErrorCode::kUnavailable, folder);
  const Files files{folder / (name + ".crt"), folder / (name + ".key")};
  for (int tries = 0;; ++tries) {
    auto identity = read_or_write(files, name);
    const bool again = !identity && identity.error().code == ErrorCode::kAlreadyExists && tries < 10;
    if (!again) return identity;
  }
}

}  // namespace enlist
