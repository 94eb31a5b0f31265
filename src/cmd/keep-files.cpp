// keep-files: the program of docs/how-to/add-a-program.md. Keeps the files of a folder equal to the contents that a list
// specifies.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "example/keeper.hpp"
#include "example/local_disk.hpp"
#include "run/shell/shell.hpp"

namespace {

class KeepFiles final : public run::Shell {
 public:
  KeepFiles()
      : Shell({.name = "keep-files", .version = "0.1.0", .about = "Keeps the files of a folder equal to those in a list."},
              std::make_unique<run::Metrics>("keep-files")) {
    flag("--list", list_, "A file with the texts by file name, in JSON");
    flag("--folder", folder_, "The folder of the files");
  }

 private:
  std::optional<int> prepare() override {
    keeper_.emplace(loop(), random(), log(), std::make_shared<example::LocalDisk>(list_, folder_), &metrics());
    return {};
  }
  run::HealthChecks health() override {
    return {.ready = [this] { return keeper_->ready(); }, .healthy = [this] { return keeper_->passes().plans_in_time(); }};
  }
  void begin() override { keeper_->start(); }
  void end(std::function<void()> done) override { keeper_->stop(std::move(done)); }
  void collect() override { keeper_->passes().collect(); }

  std::string list_, folder_;
  std::optional<example::Keeper> keeper_;
};

}  // namespace

int main(int argc, char** argv) {
  KeepFiles program;
  if (const std::optional<int> code = program.start(argc, argv)) return *code;
  return program.run();
}
