// Records from JSON: what a cache keeps of an object, read straight from the parsed text.
//
// metadata.managedFields is never kept. Secret values are kept as salted hashes and sizes only.
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
  std::string secret_salt;  ///< Beside the Secret's uid, so that hashes cannot be looked up, nor compared between Secrets.
};

/// Reads a record. Errors: kInvalid when it is no object with metadata.name.
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

/// The same from text or a tree, for tests and single replies.
template <class Record>
core::Result<std::shared_ptr<const Record>> parse_record_text(std::string_view text, const ParseContext& context = {});
template <class Record>
core::Result<std::shared_ptr<const Record>> record_from_json(const core::Json& json, const ParseContext& context = {}) {
  return parse_record_text<Record>(json.dump(), context);
}

/// Parses texts one after another in one buffer, which is given back when a text was large.
class DocumentParser {
 public:
  using Use = std::function<core::Result<void>(const simdjson::dom::element& root)>;
  DocumentParser();
  ~DocumentParser();
  DocumentParser(const DocumentParser&) = delete;
  DocumentParser& operator=(const DocumentParser&) = delete;
  /// Calls `use` with the parsed text; the element does not outlive the call. Error: kInvalid.
  /// In the parts of a custom resource that may hold anything, users can write what the API server stores and simdjson refuses,
  /// for the whole text: integers beyond 64 bits come as floating-point numbers, as the API server has them, and what is nested
  /// deeper than 1000 levels as a string.
  core::Result<void> parse(std::string_view text, const Use& use);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The resourceVersion and other facts of an object that need no record.
ObjectMeta meta_of_element(const simdjson::dom::element& object);
core::Json json_of_element(const simdjson::dom::element& element);

}  // namespace kube
