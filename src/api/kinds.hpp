// All kinds of the API, and the CRDs and the reference documentation that are generated from their field lists.
//
// slurm-operator-gen writes the CRDs and the documentation into the tree. A test checks that the files in the tree are current.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/field.hpp"
#include "core/json.hpp"

namespace api {

struct PrinterColumn {
  std::string name;
  std::string type;  ///< "string", "integer" or "date".
  std::string json_path;
  std::string description;
  int priority = 0;  ///< 1: shown only by `kubectl get -o wide`.
};

struct Kind {
  std::string kind, plural, singular;
  std::vector<std::string> short_names;
  const FieldList* fields = nullptr;  ///< The fields of the whole object: spec and status.
  std::vector<PrinterColumn> columns;
  bool scale = false;   ///< The kind has the scale subresource.
  std::string example;  ///< YAML, for the documentation.
};

/// Returns all kinds, in the order of the documentation.
const std::vector<Kind>& kinds();
/// Finds a kind by its name or its plural. Returns null if there is none.
const Kind* find_kind(std::string_view name);

/// Returns the schema of the whole object.
core::Json object_schema(const Kind& kind);
/// Returns the apiextensions.k8s.io/v1 CustomResourceDefinition.
core::Json crd(const Kind& kind);
/// Returns the file name, such as "slinky.slurm.net_nodesets.yaml".
std::string crd_file_name(const Kind& kind);
/// Returns the reference page in Markdown.
std::string reference_page(const Kind& kind);
/// Returns the index of the reference pages.
std::string reference_index();

struct GeneratedFile {
  std::string path;  ///< Relative to the root of the source tree.
  std::string text;
};
/// Returns every file that is generated from the field lists.
std::vector<GeneratedFile> generated_files();

/// Writes a document as block-style YAML. The same document always gives the same text.
std::string to_yaml(const core::Json& json);

}  // namespace api
