#include "cli/bundle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <map>
#include <set>

#include "cli/testing/objects.hpp"
#include "core/base64.hpp"

namespace cli {
namespace {

using core::Json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The tests put these values at all places where a secret might occur.
constexpr const char* kPassword = "Pl4nted-Passw0rd";
constexpr const char* kKey = "pl4nted-key-bytes-of-slurm";
constexpr const char* kUnknown = "unkn0wn-to-any-Secret";

BundleFacts planted() {
  BundleFacts facts;
  facts.salt = "salt";
  Json secret =
      json(R"({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": {"name": "db", "namespace": "hpc"}})");
  secret["data"] = {{"password", core::base64_encode(kPassword)}, {"slurm.key", core::base64_encode(std::string(kKey) + "\n")}};
  secret["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] =
      std::string("{\"stringData\": \"") + kPassword;
  Json map = json(R"({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scripts", "namespace": "hpc"}})");
  map["data"] = {{"slurmdbd.conf", std::string("StoragePass=") + kUnknown + "\nStorageHost=db"},
                 {"prolog.sh", std::string("curl -H 'Authorization: Bearer ") + kUnknown + "' https://x"}};
  Json pod = worker_object("cpu-0", {"Idle"}, std::string("token=") + kUnknown);
  pod["spec"]["containers"] = Json::array({Json{{"name", "slurmd"},
                                                {"args", Json::array({"--password", std::string("--db-password=") + kUnknown})},
                                                {"env", Json::array({Json{{"name", "ANY"}, {"value", kUnknown}}})}}});
  facts.objects = {secret, map, pod, controller_object()};
  facts.texts = {
      {"logs/hpc/slurm-controller-0/slurmctld.log",
       std::string("error: cannot log in with ") + kPassword + "\nkey " + core::base64_encode(kKey) + "\nnode cpu-0 is up\n"}};
  facts.documents = {{"slurm/nodes.json", Json::array({Json{{"reason", std::string("password: ") + kUnknown}}})}};
  facts.problems = {std::string("cannot read with ") + kPassword};
  return facts;
}

TEST(Bundle, NoPlantedSecretIsInIt) {
  std::string all;
  for (const ArchiveFile& file : bundle_files(planted())) all += file.path + "\n" + file.content;
  for (const std::string& secret :
       {std::string(kPassword), std::string(kKey), std::string(kUnknown), core::base64_encode(kPassword),
        core::base64_encode(kKey), core::base64_encode(std::string(kKey) + "\n")}) {
    EXPECT_THAT(all, Not(HasSubstr(secret)));
  }
  EXPECT_THAT(all, HasSubstr("StorageHost=db"));
  EXPECT_THAT(all, HasSubstr("node cpu-0 is up"));
}

TEST(Bundle, FilesAreByNamespaceAndKind) {
  std::vector<std::string> paths;
  for (const ArchiveFile& file : bundle_files(planted())) paths.push_back(file.path);
  EXPECT_THAT(paths, Contains("slurm-support/resources/hpc/secret/db.yaml"));
  EXPECT_THAT(paths, Contains("slurm-support/resources/hpc/controller/slurm.yaml"));
  EXPECT_THAT(paths, Contains("slurm-support/README.txt"));
}

TEST(Bundle, KnowsWhichConfigMapsPodsMount) {
  const Json pod = json(R"({"spec": {"volumes": [{"configMap": {"name": "a"}},
      {"projected": {"sources": [{"configMap": {"name": "b"}}, {"secret": {"name": "s"}}]}}],
    "containers": [{"envFrom": [{"configMapRef": {"name": "c"}}]}]}})");
  EXPECT_THAT(mounted_config_maps({pod}), ElementsAre("a", "b", "c"));
}

TEST(Bundle, ValuesOfVariablesFromConfigMapsGo) {
  const Json pod = json(R"({"kind": "Pod", "metadata": {"name": "p", "namespace": "hpc"}, "spec": {"containers": [
    {"envFrom": [{"configMapRef": {"name": "all"}}],
     "env": [{"name": "X", "valueFrom": {"configMapKeyRef": {"name": "one", "key": "x"}}}]}],
    "volumes": [{"configMap": {"name": "files"}}]}})");
  const auto map = [](const char* ns, const char* name) {
    Json out = json(R"({"kind": "ConfigMap", "data": {"x": "value of x", "y": "value of y"}})");
    out["metadata"] = {{"name", name}, {"namespace", ns}};
    return out;
  };
  BundleFacts facts;
  facts.objects = {pod, map("hpc", "all"), map("hpc", "one"), map("hpc", "files"), map("other", "all")};
  std::map<std::string, std::string> content;
  for (const ArchiveFile& file : bundle_files(facts)) content[file.path.substr(file.path.find("/") + 1)] = file.content;
  EXPECT_THAT(content["resources/hpc/configmap/all.yaml"], Not(HasSubstr("value of")));
  EXPECT_THAT(content["resources/hpc/configmap/one.yaml"], Not(HasSubstr("value of x")));
  EXPECT_THAT(content["resources/hpc/configmap/one.yaml"], HasSubstr("value of y"));
  EXPECT_THAT(content["resources/hpc/configmap/files.yaml"], HasSubstr("value of x"));
  EXPECT_THAT(content["resources/other/configmap/all.yaml"], HasSubstr("value of x"));
}

TEST(Bundle, OfAServiceAccountOnlyTheTokenIsAValue) {
  Json secret = json(R"({"kind": "Secret", "type": "kubernetes.io/service-account-token"})");
  secret["data"] = {{"token", core::base64_encode("the-token")},
                    {"namespace", core::base64_encode("hpc-production")},
                    {"ca.crt", core::base64_encode("-----BEGIN CERTIFICATE-----")}};
  EXPECT_THAT(secret_values({secret}), ElementsAre("the-token"));
}

TEST(Bundle, LongNamesAreShortened) {
  BundleFacts facts;
  for (const char* end : {"a", "b"}) {
    Json map = json(R"({"kind": "ConfigMap"})");
    map["metadata"] = {{"name", std::string(252, 'n') + end}, {"namespace", std::string(63, 's')}};
    facts.objects.push_back(map);
    facts.texts.emplace_back("logs/" + std::string(63, 's') + "/" + std::string(252, 'p') + end + "/slurmd.previous.log", "x");
  }
  const auto files = bundle_files(facts);
  std::set<std::string> paths;
  for (const ArchiveFile& file : files) paths.insert(file.path);
  EXPECT_EQ(paths.size(), 5U) << "two of a kind do not become one";
  EXPECT_THAT(paths, Contains(testing::MatchesRegex(".*/configmap/n{80,}-[a-z0-9]{10}\\.yaml")));
  const auto archive = tar_gz(files, core::WallTime{});
  EXPECT_TRUE(archive) << archive.error().message;
  EXPECT_EQ(archive_path("a/b.yaml"), "a/b.yaml");
}

TEST(Bundle, ReleasesOfHelmAreNoValues) {
  Json release = json(R"({"kind": "Secret", "type": "helm.sh/release.v1", "data": {"release": "SDRzSUFBQUFBQUFD"}})");
  EXPECT_THAT(secret_values({release}), testing::IsEmpty());
}

std::string unzipped(const std::string& archive) {
  std::string out(1 << 20, '\0');
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(archive.data()));
  stream.avail_in = static_cast<uInt>(archive.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(Archive, IsATarOfWholeBlocks) {
  const std::string deep = std::string(120, 'd') + "/" + std::string(90, 'f');
  const auto archive = tar_gz({{"a.txt", "hello"}, {deep, std::string(512, 'x')}}, core::WallTime{});
  ASSERT_TRUE(archive) << archive.error().message;
  const std::string tar = unzipped(*archive);
  EXPECT_EQ(tar.size(), 6 * 512U);
  EXPECT_STREQ(tar.data(), "a.txt");
  EXPECT_EQ(tar.substr(257, 8), std::string("ustar\0"
                                            "00",
                                            8));
  EXPECT_EQ(tar.substr(512, 5), "hello");
  EXPECT_STREQ(tar.data() + 1024, std::string(90, 'f').c_str());
  EXPECT_STREQ(tar.data() + 1024 + 345, std::string(120, 'd').c_str());
  EXPECT_FALSE(tar_gz({{std::string(300, 'x'), ""}}, core::WallTime{}));
}

}  // namespace
}  // namespace cli
