// The random source is passed in. Production uses the system's generator, and the simulator uses a generator with a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/ssh_key.hpp"

namespace core {

class Random {
 public:
  virtual ~Random() = default;
  /// Returns a value in [0, bound). Requires bound > 0.
  virtual std::uint64_t below(std::uint64_t bound) = 0;
  /// Returns n random bytes. The production implementation takes them from OpenSSL, so they are good enough for keys.
  virtual std::string bytes(std::size_t n) = 0;
  /// Returns a new key pair. May be called on another thread than the other functions. In production, OpenSSL makes a key of
  /// the given type. Other implementations return an Ed25519 key for every type, because tests only need keys that differ.
  virtual SshKeyPair ssh_key(SshKeyType, std::string_view comment) { return ssh_key_of_seed(bytes(32), comment); }
  /// Returns an independent source for a part of the program. In the simulator, the values of that source depend only on the
  /// seed and on `name`, not on other draws or on the order in which the parts were created.
  [[nodiscard]] virtual std::unique_ptr<Random> stream(std::string_view name) const = 0;
  /// Returns a value in [0, 1).
  double unit() { return static_cast<double>(below(1ULL << 53)) / static_cast<double>(1ULL << 53); }
};

/// OpenSSL's generator.
class SystemRandom final : public Random {
 public:
  std::uint64_t below(std::uint64_t bound) override;
  std::string bytes(std::size_t n) override;
  SshKeyPair ssh_key(SshKeyType type, std::string_view comment) override { return make_ssh_key(type, comment); }
  [[nodiscard]] std::unique_ptr<Random> stream(std::string_view) const override { return std::make_unique<SystemRandom>(); }
};

}  // namespace core
