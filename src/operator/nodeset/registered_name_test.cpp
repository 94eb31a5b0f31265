#include "operator/nodeset/registered_name.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace op::nodeset {
namespace {

using core::Json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

api::NodeSetSpec plain() {
  return {};
}
api::NodeSetSpec by_host() {
  api::NodeSetSpec spec;
  spec.scaling_mode = api::ScalingMode::kDaemonSet;
  return spec;
}
api::NodeSetSpec on_host(api::NodeSetSpec spec = {}) {
  spec.pod_template.spec = {{"hostNetwork", true}};
  return spec;
}

Json field(const char* name, const char* path) {
  return {{"name", name}, {"valueFrom", {{"fieldRef", {{"fieldPath", path}}}}}};
}
const Json& env() {
  static const Json kEnv = Json::array({field("POD_NAME", "metadata.name"),
                                        field("HOST_NODE", "spec.nodeName"),
                                        field("POD_IP", "status.podIP"),
                                        field("HOST_LABEL", "metadata.labels['nodeset.slinky.slurm.net/pod-hostname']"),
                                        {{"name", "ALIAS"}, {"value", "$(POD_NAME)"}},
                                        {{"name", "FIXED"}, {"value", "cpu-0"}}});
  return kEnv;
}

using Strings = std::vector<std::string>;

std::string of_args(const Strings& args, const api::NodeSetSpec& spec = {}) {
  return registered_name_problem({{"env", env()}, {"args", args}}, spec, "cpu");
}
std::string of_script(const char* script, const api::NodeSetSpec& spec = {}) {
  return registered_name_problem({{"env", env()}, {"command", Strings{"/bin/sh", "-ec", script}}}, spec, "cpu");
}

TEST(RegisteredName, IsFoundInEverySpelling) {
  for (const Strings& args : std::vector<Strings>{{"-N", "x"},
                                                  {"-Nx"},
                                                  {"-N x"},
                                                  {"-DN", "x"},
                                                  {"-DvvNx"},
                                                  {"-D -Nx"},
                                                  {"-vv", "-f", "/etc/slurm.conf", "-N", "x"},
                                                  {"--conf", "Weight=2", "-N", "x"},
                                                  {"--conf='Weight=2 Feature=a'", "-N", "\"x\""},
                                                  {"-Fgpu", "-N", "x"},
                                                  {"-F", "-N", "x"}}) {
    EXPECT_THAT(of_args(args), HasSubstr("option -N x ")) << Json(args);
  }
  EXPECT_THAT(registered_name_problem({{"command", Strings{"tini", "--", "slurmd", "-D", "-Nx"}}}, plain(), "cpu"),
              HasSubstr("-N x "));
  EXPECT_THAT(registered_name_problem({{"command", Strings{"/entrypoint.sh", "-N"}}, {"args", Strings{"x"}}}, plain(), "cpu"),
              HasSubstr("-N x "));
  EXPECT_THAT(
      registered_name_problem({{"command", Strings{"sh", "-c", "exec slurmd \"$@\"", "--", "-N", "x"}}}, plain(), "cpu"),
      HasSubstr("-N x "));
  EXPECT_THAT(of_script("set -e; ulimit -n 9\nexec /usr/sbin/slurmd -D -N \"x\" || exit 1"), HasSubstr("-N x "));
  EXPECT_THAT(
      registered_name_problem({{"env", Json::array({{{"name", "SLURMD_OPTIONS"}, {"value", "-D -Nx"}}})}}, plain(), "cpu"),
      HasSubstr("-N x "))
      << "the images put it before the arguments";
}

TEST(RegisteredName, OtherOptionsAreNotTakenForIt) {
  for (const Strings& args : std::vector<Strings>{{},
                                                  {"-vv"},
                                                  {"-n", "-5"},
                                                  {"-L", "-N"},
                                                  {"-fN"},
                                                  {"-DLN"},
                                                  {"-dN", "-FN"},
                                                  {"--conf", "-N", "-D"},
                                                  {"--conf", "Feature=-N"},
                                                  {"--extra=-N x"},
                                                  {"--systemd"},
                                                  {"a-N", "5-N"}}) {
    EXPECT_THAT(of_args(args), IsEmpty()) << Json(args);
  }
  EXPECT_THAT(of_script("sort -N x | tail -N; exec slurmd -D"), IsEmpty()) << "another command's";
  EXPECT_THAT(of_script("exec numactl -N 0 slurmd -D"), IsEmpty()) << "that of what starts slurmd";
  EXPECT_THAT(registered_name_problem({{"command", {"numactl", "-N", "0", "slurmd"}}, {"args", {"-D"}}}, plain(), "cpu"),
              IsEmpty());
  EXPECT_THAT(registered_name_problem({{"command", {"numactl", "-N", "0", "slurmd"}}, {"args", {"-N", "x"}}}, plain(), "cpu"),
              HasSubstr("-N x"));
  EXPECT_THAT(registered_name_problem(Json::object(), plain(), "cpu"), IsEmpty());
  EXPECT_THAT(registered_name_problem({{"args", nullptr}, {"command", "x"}, {"env", {{"a", 1}}}}, plain(), "cpu"), IsEmpty());
}

TEST(RegisteredName, IsAcceptedWhereItIsCertainlyTheWorkers) {
  EXPECT_THAT(of_args({"-N", "$(POD_NAME)"}), IsEmpty());
  EXPECT_THAT(of_args({"-N$(ALIAS)"}), IsEmpty());
  EXPECT_THAT(of_args({"-N", "$(HOST_LABEL)"}), IsEmpty());
  EXPECT_THAT(of_args({"-N", "$(HOST_LABEL)"}, by_host()), IsEmpty());
  EXPECT_THAT(of_args({"-N", "$(WORKER_NAME)"}, on_host()), IsEmpty());
  EXPECT_THAT(of_args({"-N", "$(HOST_NODE)"}, on_host()), IsEmpty());
  EXPECT_THAT(of_args({"-N", "$(HOST_NODE)"}, on_host(by_host())), IsEmpty());
  for (const char* name : {"$(hostname)", "\"$(hostname -s)\"", "`hostname`", "$HOSTNAME", "${POD_NAME}", "\"$ALIAS\"",
                           "$(POD_NAME)", "'$(POD_NAME)'"}) {
    EXPECT_THAT(of_script(("exec slurmd -D -N " + std::string(name)).c_str()), IsEmpty()) << name;
  }
}

TEST(RegisteredName, IsRefusedWhereItMayBeAnother) {
  for (const char* name : {"$(HOST_NODE)", "$(POD_IP)", "$(FIXED)", "$(FROM_SOMEWHERE)", "$(WORKER_NAME)", "$(hostname)",
                           "$POD_NAME", "cpu-0", ""}) {
    EXPECT_THAT(of_args({"-N", name}), HasSubstr("hostNetwork: true")) << name;
  }
  EXPECT_THAT(of_args({"-N"}), HasSubstr("remove the option"));
  for (const char* name : {"$NAME", "${FIXED}", "'$(hostname)'", "$(cat /name)", "${POD_NAME%-*}"}) {
    EXPECT_THAT(of_script(("exec slurmd -D -N " + std::string(name)).c_str()), HasSubstr("remove the option")) << name;
  }
  EXPECT_THAT(of_args({"-N", "$(POD_NAME)"}, by_host()), HasSubstr("hostname-override")) << "these pods have other names";
  EXPECT_THAT(of_args({"-N", "$(HOST_NODE)"}, by_host()), HasSubstr("hostname-override")) << "it may have a domain";
  EXPECT_THAT(of_args({"-N", "$(POD_NAME)"}, on_host()), HasSubstr("its Kubernetes node"));
  EXPECT_THAT(of_script("exec slurmd -N $(hostname)", on_host()), HasSubstr("its Kubernetes node"))
      << "a host need not call itself like its Kubernetes node";
  api::NodeSetSpec spec;
  spec.pod_template.spec = {{"hostname", "c1-"}};
  EXPECT_THAT(of_args({"-N", "$(POD_NAME)"}, spec), HasSubstr("its pod's hostname"));
  spec.pod_template.spec = {{"hostname", "cpu-"}};
  EXPECT_THAT(of_args({"-N", "$(POD_NAME)"}, spec), IsEmpty());
}

TEST(RegisteredName, AVariableIsReadAsKubernetesReadsIt) {
  const auto of = [](const Json& env) {
    return registered_name_problem({{"env", env}, {"args", Strings{"-N", "$(A)"}}}, plain(), "cpu");
  };
  const Json name = field("POD_NAME", "metadata.name"), alias{{"name", "A"}, {"value", "$(POD_NAME)"}};
  EXPECT_THAT(of(Json::array({name, alias})), IsEmpty());
  EXPECT_THAT(of(Json::array({alias, name})), HasSubstr("-N $(A)")) << "what comes later is not known to it";
  EXPECT_THAT(of(Json::array({name, alias, {{"name", "A"}, {"value", "x"}}})), HasSubstr("-N $(A)")) << "the last one counts";
  EXPECT_THAT(of(Json::array({{{"name", "A"}, {"value", "$(A)"}}})), HasSubstr("-N $(A)"));
}

TEST(RegisteredName, TheOperatorsVariableIsNotForUsers) {
  const Json slurmd{{"env", Json::array({{{"name", "WORKER_NAME"}, {"value", "x"}}})}};
  EXPECT_THAT(registered_name_problem(slurmd, on_host(), "cpu"), HasSubstr("WORKER_NAME is set by the operator"));
  EXPECT_THAT(registered_name_problem(slurmd, plain(), "cpu"), IsEmpty()) << "it is set with hostNetwork only";
}

}  // namespace
}  // namespace op::nodeset
