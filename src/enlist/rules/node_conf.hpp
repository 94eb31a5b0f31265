// The value of slurmd's --conf: the detected parameters, those of the administrator, which override them, and the feature of
// the pool.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

/// Parses the output of `slurmd -C`: "NodeName=h CPUs=8 Boards=1 ... RealMemory=64000" and a line of UpTime. Returns the
/// parameters for --conf, without NodeName. Error: kInvalid if there are no CPUs or no RealMemory.
[[nodiscard]] core::Result<std::string> detected_conf(std::string_view slurmd_c);

/// Returns the parameters of `base` and `over`, where `over` overrides `base`. If `over` has any parameter of the CPU topology
/// (CPUs, Boards, Sockets, SocketsPerBoard, CoresPerSocket, ThreadsPerCore, Procs), drops all of them from `base`, because
/// Slurm would combine them. Features are united. Error: kInvalid with the parameter, if slurmd would not start with it
/// (slurm::conf::parse_node_conf), or if it is State, Reason, NodeName, NodeAddr, NodeHostname or Port, which only slurm-enlist
/// sets.
[[nodiscard]] core::Result<std::string> merged_conf(std::string_view base, std::string_view over);

/// Checks parameters that a person gives for --conf. `releases`: those of the daemons that must know the parameters, such as
/// "26.05.1"; a release that cannot be parsed is ignored. Error: kInvalid, with the parameter and the cause, as for
/// merged_conf, and for parameters that no known release has, or that one of the releases does not have yet.
[[nodiscard]] core::Result<void> check_node_words(std::string_view words, const std::vector<std::string>& releases);

/// Reports whether parameters for --conf differ in nothing but Weight and Features, which Slurm can change while slurmd runs.
[[nodiscard]] bool differ_live(std::string_view one, std::string_view other);

/// Return the Weight in parameters for --conf (1, Slurm's default, if it is not set), and the Features.
[[nodiscard]] std::int64_t weight_in(std::string_view words);
[[nodiscard]] std::vector<std::string> features_in(std::string_view words);
/// Reports whether the parameters for --conf have this key.
[[nodiscard]] bool has_word(std::string_view words, std::string_view key);

/// Returns the value of --conf: `words`, with the pool as the first feature and the gate (State=DRAIN Reason="slurm-enlist:
/// joining").
[[nodiscard]] std::string gated_conf(std::string_view words, std::string_view pool);

/// Returns the arguments of slurmd, in this order: -Z -N node --conf conf --conf-server a:1,b:1 --instance-id id. Leaves out
/// --conf-server if `controllers` is empty.
[[nodiscard]] std::vector<std::string> slurmd_arguments(std::string_view node, std::string_view conf,
                                                        const std::vector<std::string>& controllers,
                                                        std::string_view instance_id);

}  // namespace enlist
