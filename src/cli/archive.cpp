#include "cli/archive.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/hash.hpp"

namespace cli {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kName = 100, kPrefix = 155;
/// The longest name of a namespace. A path has room for two folders of this length, besides our own folder.
constexpr std::size_t kFolder = 63;

class Header {
 public:
  void put(std::size_t at, std::string_view text) { std::ranges::copy(text, bytes_.begin() + static_cast<std::ptrdiff_t>(at)); }
  /// Writes an octal number, ended by a NUL.
  void number(std::size_t at, std::size_t digits, std::uint64_t value) { put(at, fmt::format("{:0{}o}", value, digits)); }
  std::string finish() {
    constexpr std::size_t kSum = 148;
    std::fill_n(bytes_.begin() + kSum, 8, ' ');
    const auto sum = std::accumulate(bytes_.begin(), bytes_.end(), 0U,
                                     [](unsigned all, char c) { return all + static_cast<unsigned char>(c); });
    number(kSum, 6, sum);
    bytes_[kSum + 6] = '\0';
    return {bytes_.begin(), bytes_.end()};
  }

 private:
  std::array<char, kBlock> bytes_{};
};

core::Result<std::string> header_of(const ArchiveFile& file, core::WallTime at) {
  std::string_view name = file.path, prefix;
  if (name.size() > kName) {
    const std::size_t slash = name.find('/', name.size() - kName - 1);
    if (slash == std::string_view::npos || slash > kPrefix)
      return core::fail(core::ErrorCode::kInvalid, "the path is too long for an archive: " + file.path);
    prefix = name.substr(0, slash);
    name = name.substr(slash + 1);
  }
  Header header;
  header.put(0, name);
  header.put(100, "0000600");
  header.put(108, "0000000");
  header.put(116, "0000000");
  header.number(124, 11, file.content.size());
  header.number(136, 11, static_cast<std::uint64_t>(at.since_epoch.count() / 1000));
  header.put(156, "0");
  header.put(257, std::string_view("ustar\0"
                                   "00",
                                   8));
  header.put(345, prefix);
  return header.finish();
}

core::Result<std::string> gzip(std::string_view text) {
  z_stream stream{};
  // Adding 16 selects a gzip header.
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return core::fail(core::ErrorCode::kInternal, "zlib does not start");
  std::string out(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib does not write there.
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return core::fail(core::ErrorCode::kInternal, "zlib does not compress");
  return out;
}

/// Shortens a name that is too long to its beginning, a hash and its extension.
std::string shortened_name(std::string_view name, std::size_t most) {
  constexpr std::size_t kHash = 10, kExtension = 10;
  if (name.size() <= most) return std::string(name);
  const std::size_t dot = name.rfind('.');
  const std::string_view extension =
      dot == std::string_view::npos || name.size() - dot > kExtension ? std::string_view() : name.substr(dot);
  return fmt::format("{}-{}{}", name.substr(0, most - kHash - 1 - extension.size()), core::short_hash(name, kHash), extension);
}

}  // namespace

std::string archive_path(std::string_view path) {
  std::string out;
  for (std::size_t slash = 0; (slash = path.find('/')) != std::string_view::npos; path.remove_prefix(slash + 1))
    out += shortened_name(path.substr(0, slash), kFolder) + "/";
  return out + shortened_name(path, kName);
}

core::Result<std::string> tar_gz(const std::vector<ArchiveFile>& files, core::WallTime at) {
  std::string tar;
  for (const ArchiveFile& file : files) {
    const auto header = header_of(file, at);
    if (!header) return std::unexpected(header.error());
    tar += *header + file.content;
    tar.append((kBlock - file.content.size() % kBlock) % kBlock, '\0');
  }
  tar.append(2 * kBlock, '\0');
  return gzip(tar);
}

}  // namespace cli
