#include "example/plan.hpp"

namespace example {

std::optional<Unlisted> Unlisted::of(const plan::Observing& observing, const Contents& contents, const std::string& name) {
  const auto file = contents.files.find(name);
  if (file == contents.files.end() || !is_ours(file->second) || contents.list.contains(name)) return std::nullopt;
  return Unlisted(observing, name);
}

plan::Plan plan(const Observed& observed) {
  plan::Plan out;
  if (!observed.contents) return out;
  const auto& [list, files] = *observed.contents;
  for (const auto& [name, listed] : list) {
    const std::string text = std::string(kMark) + listed;
    const auto found = files.find(name);
    if (found == files.end()) {
      out.lane("write").add({{"create", "File", name}, "it is listed", std::make_shared<WriteFile>(name, text, std::nullopt)});
    } else if (is_ours(found->second) && found->second != text) {
      out.lane("write").add({{"update", "File", name}, "it differs", std::make_shared<WriteFile>(name, text, found->second)});
    }
  }
  for (const auto& [name, evidence] : observed.unlisted)
    out.lane("remove").add({{"remove", "File", name}, evidence.detail(), std::make_shared<RemoveFile>(evidence)});
  return out;
}

}  // namespace example
