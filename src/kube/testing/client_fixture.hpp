// A fixture for unit tests of code that sends requests to the API server.
#pragma once

#include "core/log.hpp"
#include "core/testing/manual_loop.hpp"
#include "kube/client/client.hpp"
#include "kube/client/credentials.hpp"
#include "kube/testing/fake_transport.hpp"

namespace kube {

/// A client on virtual time. The test answers its requests.
struct ClientFixture {
  core::ManualLoop loop;
  FakeRandom random;
  core::NullLogger log;
  FakeTransport api;
  StaticCredentials credentials{{}};
  Client client{loop, random, api, credentials, {}};
};

}  // namespace kube
