// All kinds of the API, and what is made from their field lists: the CRDs and the reference documentation.
//
// slurm-operator-gen writes both into the tree; a test compares them with what is committed.
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
  int priority = 0;  ///< 1: only with `kubectl get -o wide`.
};

struct Kind {
  std::string kind, plural, singular;
  std::vector<std::string> short_names;
  const FieldList* fields = nullptr;  ///< Of the whole object: spec and status.
  std::vector<PrinterColumn> columns;
  bool scale = false;   ///< Has the scale subresource.
  std::string example;  ///< YAML, for the documentation.
};

/// In the order in which documentation shows them.
const std::vector<Kind>& kinds();
/// By kind or plural; null when unknown.
const Kind* find_kind(std::string_view name);

/// The schema of the whole object.
core::Json object_schema(const Kind& kind);
/// An apiextensions.k8s.io/v1 CustomResourceDefinition.
core::Json crd(const Kind& kind);
/// "slinky.slurm.net_nodesets.yaml".
std::string crd_file_name(const Kind& kind);
/// Its reference page, in Markdown.
std::string reference_page(const Kind& kind);
/// The page that lists the others.
std::string reference_index();

struct GeneratedFile {
  std::string path;  ///< Below the root of the source tree.
  std::string text;
};
/// Every file that is made from the field lists.
std::vector<GeneratedFile> generated_files();

/// Block-style YAML of a document; the same document always gives the same text.
std::string to_yaml(const core::Json& json);

}  // namespace api
