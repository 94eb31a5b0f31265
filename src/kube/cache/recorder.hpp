// How controllers read objects that others name.
#pragma once

#include "kube/object.hpp"
#include "run/controller.hpp"

namespace kube {

/// Reads objects that others name: each is watched for as long as a key names it; alone, or where many are named, with its
/// namespace. What was read is what wakes the key again.
class Recorder : public run::Recorder {
 public:
  virtual Named<SecretRecord> secret(const Key& key) = 0;
  /// An object of any kind but Secret, whole.
  virtual Named<Object> object(const Resource& resource, const Key& key) = 0;
  /// The metadata of an object of any kind.
  virtual Named<MetadataRecord> metadata(const Resource& resource, const Key& key) = 0;

  Named<Object> config_map(const Key& key) { return object(resources::kConfigMap, key); }
};

template <class Observed>
using TypedController = run::TypedController<Observed, Recorder>;

}  // namespace kube
