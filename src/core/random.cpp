#include "core/random.hpp"

#include <openssl/rand.h>

#include <limits>
#include <stdexcept>

namespace core {
namespace {

// Throws on failure, because without a random source no key is safe, and no caller could handle the error.
void fill(void* out, std::size_t n) {
  if (n > static_cast<std::size_t>(std::numeric_limits<int>::max()) ||
      RAND_bytes(static_cast<unsigned char*>(out), static_cast<int>(n)) != 1) {
    throw std::runtime_error("the system's random source failed");
  }
}

}  // namespace

std::uint64_t SystemRandom::below(std::uint64_t bound) {
  if (bound == 0) throw std::invalid_argument("Random::below(0)");
  // Draws above the last multiple of bound are dropped, so that all results are equally likely.
  const std::uint64_t limit = std::numeric_limits<std::uint64_t>::max() - std::numeric_limits<std::uint64_t>::max() % bound;
  std::uint64_t value = 0;
  do {
    fill(&value, sizeof value);
  } while (value >= limit);
  return value % bound;
}

std::string SystemRandom::bytes(std::size_t n) {
  std::string out(n, '\0');
  if (n > 0) fill(out.data(), n);
  return out;
}

}  // namespace core
