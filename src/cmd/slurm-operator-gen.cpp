// Generates the CRDs and the reference documentation from the field lists, the rules of the charts' ClusterRoles from the
// declarations of the controllers, and the admission policies of the operator's chart.
//
//   slurm-operator-gen [DIRECTORY]     the root of the source tree; default: the current directory
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "api/kinds.hpp"
#include "bridge/rights.hpp"
#include "operator/common/policies.hpp"
#include "operator/operator.hpp"

namespace {

bool write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  if (!out.flush()) {
    std::fprintf(stderr, "cannot write %s\n", path.c_str());
    return false;
  }
  std::printf("%s\n", path.c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  const std::filesystem::path root = argc > 1 ? argv[1] : ".";
  bool good = true;
  std::vector<api::GeneratedFile> files = api::generated_files();
  files.push_back(op::cluster_role_file());
  files.push_back(op::admission_policies_file());
  files.push_back(bridge::rights_file());
  for (const api::GeneratedFile& file : files) good = write(root / file.path, file.text) && good;
  return good ? 0 : 1;
}
