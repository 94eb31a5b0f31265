// A certificate and its key in files that others replace: a mounted Secret, whose symbolic link the kubelet swaps.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/loop.hpp"
#include "core/result.hpp"
#include "net/tls.hpp"

namespace net {

struct TlsFilesOptions {
  std::string cert_file, key_file;  ///< PEM; the whole chain, and its key without a passphrase.
  std::string ca_file{};            ///< Who must have signed the client; "": clients need no certificate.
  core::Duration interval{10000};   ///< How often they are read.
};

/// Reads the files again and again, beside the loop, and hands on what is new. Their contents are compared, not their times: a
/// swapped link changes neither the name nor the time of what was there before.
///
/// Guarantees: what `use` refuses (half of a swap is no pair) is offered again each time, and what it took is not.
class TlsFiles {
 public:
  /// Takes a new pair. Error: it is not used, what was used before stays.
  using Use = std::function<core::Result<void>(const Tls&)>;
  TlsFiles(core::Loop& loop, TlsFilesOptions options, Use use);
  ~TlsFiles();
  TlsFiles(const TlsFiles&) = delete;
  TlsFiles& operator=(const TlsFiles&) = delete;

  /// Reads them now; to be used before the first connection. Errors: kNotFound (a file), and what Tls is refused for later.
  [[nodiscard]] core::Result<Tls> read();
  /// From now on reads them every interval. `failed` is told why a pair is not used, each time.
  void watch(std::function<void(const core::Error&)> failed);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace net
