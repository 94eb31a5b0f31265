// The interface with which controllers read objects that other objects name.
#pragma once

#include "kube/object.hpp"
#include "run/controller.hpp"

namespace kube {

/// Reads objects that other objects name, and watches each of them while a key names it (kube/cache/named_watches.hpp). A
/// change of a watched object wakes the key.
class Recorder : public run::Recorder {
 public:
  virtual Named<SecretRecord> secret(const Key& key) = 0;
  /// Reads a whole object of any kind but Secret.
  virtual Named<Object> object(const Resource& resource, const Key& key) = 0;
  /// Reads the metadata of an object of any kind.
  virtual Named<MetadataRecord> metadata(const Resource& resource, const Key& key) = 0;

  Named<Object> config_map(const Key& key) { return object(resources::kConfigMap, key); }
};

template <class Observed>
using TypedController = run::TypedController<Observed, Recorder>;

}  // namespace kube
