// Creates cache records directly from JSON text.
//
// Records never contain metadata.managedFields or the annotation kubectl.kubernetes.io/last-applied-configuration. Instead of
// the values of a Secret, records contain only salted hashes and sizes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "kube/object.hpp"

namespace simdjson::dom {
class element;
}

namespace kube {

struct ParseContext {
  std::string secret_salt;  ///< Salts the hashes of Secret values, so that they cannot be looked up. value_hashes are also
                            ///< salted with the Secret's uid, so that they cannot be compared between Secrets.
};

/// Parses a record. Error: kInvalid if it is not an object with metadata.name.
template <class Record>
core::Result<std::shared_ptr<const Record>> parse_record(const simdjson::dom::element& object, const ParseContext& context);
template <>
core::Result<std::shared_ptr<const Object>> parse_record<Object>(const simdjson::dom::element& object,
                                                                 const ParseContext& context);
template <>
core::Result<std::shared_ptr<const PodRecord>> parse_record<PodRecord>(const simdjson::dom::element& object,
                                                                       const ParseContext& context);
template <>
core::Result<std::shared_ptr<const SecretRecord>> parse_record<SecretRecord>(const simdjson::dom::element& object,
                                                                             const ParseContext& context);
template <>
core::Result<std::shared_ptr<const NodeRecord>> parse_record<NodeRecord>(const simdjson::dom::element& object,
                                                                         const ParseContext& context);
template <>
core::Result<std::shared_ptr<const MetadataRecord>> parse_record<MetadataRecord>(const simdjson::dom::element& object,
                                                                                 const ParseContext& context);
template <>
core::Result<std::shared_ptr<const SchedulingPodRecord>> parse_record<SchedulingPodRecord>(const simdjson::dom::element& object,
                                                                                           const ParseContext& context);
template <>
core::Result<std::shared_ptr<const SchedulingNodeRecord>> parse_record<SchedulingNodeRecord>(
    const simdjson::dom::element& object, const ParseContext& context);

/// Parses a record from text or from a JSON tree, for tests and single replies.
template <class Record>
core::Result<std::shared_ptr<const Record>> parse_record_text(std::string_view text, const ParseContext& context = {});
template <class Record>
core::Result<std::shared_ptr<const Record>> record_from_json(const core::Json& json, const ParseContext& context = {}) {
  return parse_record_text<Record>(json.dump(), context);
}

/// Parses texts one after the other with a shared buffer. Frees the buffer after a large text.
class DocumentParser {
 public:
  using Use = std::function<core::Result<void>(const simdjson::dom::element& root)>;
  DocumentParser();
  ~DocumentParser();
  DocumentParser(const DocumentParser&) = delete;
  DocumentParser& operator=(const DocumentParser&) = delete;
  /// Calls `use` with the parsed text; the element is only valid during the call. Errors: kInvalid, and those of `use`. In a
  /// custom resource that accepts any content, users can store values for which simdjson refuses the whole text. The parser
  /// converts such values: integers beyond 64 bits become floating-point numbers, as in the API server; values nested deeper
  /// than 1000 levels become strings.
  core::Result<void> parse(std::string_view text, const Use& use);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the metadata of an object, without making a record.
ObjectMeta meta_of_element(const simdjson::dom::element& object);
core::Json json_of_element(const simdjson::dom::element& element);

}  // namespace kube
