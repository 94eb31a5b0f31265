#include "operator/controller/named_nodes.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "slurm/conf/conf.hpp"

namespace op::controller {
namespace {

constexpr std::size_t kMostParts = 200000, kDeepest = 32;

/// Collects the names from the events of a YAML parser. The reader builds no tree, so the length of the text bounds the cost.
class Reader final : public YAML::EventHandler {
 public:
  NamedNodes found;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override { take(mark, "", true); }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw YAML::ParserException(mark, "aliases are not followed");
  }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t, const std::string& value) override {
    take(mark, value, true);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    enter(mark, false);
  }
  void OnSequenceEnd() override { leave(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
    enter(mark, true);
  }
  void OnMapEnd() override { leave(); }

 private:
  struct Level {
    bool map = false;
    bool at_value = false;  ///< In a map: the next part of the YAML text is the value of `key`.
    std::string key{};      ///< In a list: the key whose value is this list.
  };
  std::vector<Level> levels_;
  std::size_t parts_ = 0;

  void take(const YAML::Mark& mark, const std::string& value, bool scalar) {
    if (++parts_ > kMostParts) throw YAML::ParserException(mark, "it has too many parts");
    if (levels_.empty()) return;
    Level& level = levels_.back();
    if (level.map && !level.at_value) {
      level.key = value;
    } else if (scalar && level.key == "nodes" && !value.empty()) {
      found.lists.push_back(value);
    } else if (scalar && level.key == "flat" && value == "true") {
      found.all = true;
    }
    if (level.map) level.at_value = !level.at_value;
  }

  void enter(const YAML::Mark& mark, bool map) {
    if (levels_.size() >= kDeepest) throw YAML::ParserException(mark, "it is nested too deep");
    Level level{.map = map};
    if (!levels_.empty() && !map) level.key = levels_.back().key;
    take(mark, "", false);
    levels_.push_back(std::move(level));
  }
  void leave() { levels_.pop_back(); }
};

bool is_nodes(std::string_view key) {
  constexpr std::string_view kKey = "nodes";
  return std::ranges::equal(key, kKey, [](unsigned char a, char b) { return std::tolower(a) == b; });
}

}  // namespace

core::Result<NamedNodes> nodes_of_yaml(std::string_view text) {
  Reader reader;
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(reader)) {
    }
  } catch (const YAML::Exception& error) {
    return core::fail(core::ErrorCode::kInvalid, error.what());
  }
  return std::move(reader.found);
}

NamedNodes nodes_of_conf(std::string_view text) {
  NamedNodes out;
  const slurm::conf::Conf conf = slurm::conf::parse(slurm::conf::Kind::kSlurm, text).conf;
  for (const slurm::conf::Entry& entry : conf.entries()) {
    for (const slurm::conf::Setting& setting : entry.settings) {
      if (is_nodes(setting.key) && !setting.value.empty()) out.lists.push_back(setting.value);
    }
  }
  return out;
}

}  // namespace op::controller
