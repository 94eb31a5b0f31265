// A certificate and its key in files that others replace, such as a mounted Secret, whose symbolic link the kubelet replaces.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/loop.hpp"
#include "core/result.hpp"
#include "net/tls.hpp"

namespace net {

struct TlsFilesOptions {
  std::string cert_file, key_file;  ///< PEM files: the whole chain, and its key without a passphrase.
  std::string ca_file{};            ///< The authority of client certificates; "": clients need no certificate.
  core::Duration interval{10000};   ///< The time between two readings of the files.
};

/// Reads the files periodically, on another thread than the loop's, and passes new contents to `use`. Compares the contents,
/// because a replaced link does not always change names and times.
///
/// Guarantees: a pair that `use` refuses (such as a new certificate with an old key) is passed again at each reading.
class TlsFiles {
 public:
  /// Uses a new pair. On an error the old pair stays in use.
  using Use = std::function<core::Result<void>(const Tls&)>;
  TlsFiles(core::Loop& loop, TlsFilesOptions options, Use use);
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  /// Reads the files now, before the first connection. `use` is not called for these contents. Does not check the contents.
  /// Error: kNotFound (a file).
  [[nodiscard]] core::Result<Tls> read();
  /// Reads the files every interval from now on. Calls `failed` whenever the files cannot be read or `use` refuses the pair.
  void watch(std::function<void(const core::Error&)> failed);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace net
