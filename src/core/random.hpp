// The random source is passed in: the system's in production, a seeded one in the simulator.
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
  /// A value in [0, bound); bound > 0.
  virtual std::uint64_t below(std::uint64_t bound) = 0;
  /// n bytes fit for keys (production: from OpenSSL).
  virtual std::string bytes(std::size_t n) = 0;
  /// A new key pair. May be called on another thread than the rest. Production: of that type, from OpenSSL; else an Ed25519
  /// key, which is as good to tell keys apart.
  virtual SshKeyPair ssh_key(SshKeyType, std::string_view comment) { return ssh_key_of_seed(bytes(32), comment); }
  /// A source of its own, for a part of the program by its name. What it gives does not depend on what else was drawn, or on
  /// the order in which parts were made.
  [[nodiscard]] virtual std::unique_ptr<Random> stream(std::string_view name) const = 0;
  /// A value in [0, 1).
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
