#include "example/local_disk.hpp"

#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/json.hpp"

namespace example {

namespace {

namespace fs = std::filesystem;

std::unexpected<core::Error> failed(const fs::path& path, const std::string& why) {
  return core::fail(core::ErrorCode::kUnavailable, path.string() + ": " + why);
}

core::Result<std::string> text_of(const fs::path& path) {
  std::ostringstream out;
  std::ifstream file(path);
  if (!file || (file.peek() != std::ifstream::traits_type::eof() && !(out << file.rdbuf())))
    return failed(path, "cannot be read");
  return out.str();
}

bool is_name(std::string_view name) {
  return !name.empty() && !name.starts_with('.') && name.find('/') == std::string_view::npos;
}

core::Result<Files> read_list(const fs::path& path) {
  const auto text = text_of(path);
  if (!text) return std::unexpected(text.error());
  const auto json = core::parse_json(*text);
  if (!json) return std::unexpected(json.error().with(path.string()));
  if (!json->is_object()) return failed(path, "must be an object of texts by file name");
  Files out;
  for (const auto& [name, content] : json->items()) {
    if (!is_name(name) || !content.is_string()) return failed(path, "\"" + name + "\" must be a file name with a text");
    out.emplace(name, content.get<std::string>());
  }
  return out;
}

core::Result<Files> read_folder(const fs::path& folder) {
  std::error_code error;
  Files out;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!is_name(name)) continue;
    // Anything that is not a regular file counts as somebody else's file with this name, so it is not replaced.
    if (!entry->is_regular_file(error)) {
      out.emplace(name, "");
      continue;
    }
    auto text = text_of(entry->path());
    if (!text) return std::unexpected(text.error());
    out.emplace(name, *std::move(text));
  }
  if (error) return failed(folder, error.message());
  return out;
}

}  // namespace

LocalDisk::LocalDisk(fs::path list, fs::path folder) : list_(std::move(list)), folder_(std::move(folder)) {}

core::Result<Contents> LocalDisk::read() {
  auto list = read_list(list_);
  if (!list) return std::unexpected(list.error());
  auto files = read_folder(folder_);
  if (!files) return std::unexpected(files.error());
  return Contents{*std::move(list), *std::move(files)};
}

core::Result<void> LocalDisk::write(const std::string& name, const std::string& text) {
  const fs::path path = folder_ / name, next = folder_ / ("." + name + ".next");
  std::ofstream file(next, std::ios::trunc);
  file << text;
  file.close();
  if (!file) return failed(next, "cannot be written");
  std::error_code error;
  fs::rename(next, path, error);
  if (error) return failed(path, error.message());
  return {};
}

core::Result<void> LocalDisk::remove(const std::string& name) {
  std::error_code error;
  fs::remove(folder_ / name, error);
  if (error) return failed(folder_ / name, error.message());
  return {};
}

}  // namespace example
