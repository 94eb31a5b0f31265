// The value of slurmd's --conf: what was detected, what the administrator says, who wins, and the feature of the pool.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace enlist {

/// Parses the output of `slurmd -C`: "NodeName=h CPUs=8 Boards=1 ... RealMemory=64000" and a line of UpTime. Returns the words
/// without NodeName, as for --conf. Error: kInvalid if there are no CPUs or no RealMemory.
[[nodiscard]] core::Result<std::string> detected_conf(std::string_view slurmd_c);

/// Returns the words of `base` with those of `over`, which win. If `over` has any word of the CPU topology (CPUs, Boards,
/// Sockets, SocketsPerBoard, CoresPerSocket, ThreadsPerCore, Procs), all such words of `base` are dropped, because Slurm would
/// combine them. Features are united. Error: kInvalid with the word, if slurmd would not start with it
/// (slurm::conf::parse_node_conf), or if `over` has State, Reason, NodeName, NodeAddr, NodeHostname or Port, which enlistment
/// decides.
[[nodiscard]] core::Result<std::string> merged_conf(std::string_view base, std::string_view over);

/// Checks words that a person gives for --conf. `releases`: those of the daemons that must know the words, such as "26.05.1";
/// one that cannot be read is ignored. Error: kInvalid, with the word and the cause, as for merged_conf, for words that no
/// release is known to have, and for those that one of the releases does not have yet.
[[nodiscard]] core::Result<void> check_node_words(std::string_view words, const std::vector<std::string>& releases);

/// Reports whether words for --conf differ in nothing but Weight and Features, which Slurm can change while slurmd runs.
[[nodiscard]] bool differ_live(std::string_view one, std::string_view other);

/// Return the Weight of words for --conf, or Slurm's default, and their Features.
[[nodiscard]] std::int64_t weight_in(std::string_view words);
[[nodiscard]] std::vector<std::string> features_in(std::string_view words);
/// Reports whether the words have this key.
[[nodiscard]] bool has_word(std::string_view words, std::string_view key);

/// Returns the words for --conf: `words`, the pool among the features, and the gate (State=DRAIN Reason="slurm-enlist:
/// joining").
[[nodiscard]] std::string gated_conf(std::string_view words, std::string_view pool);

/// The arguments of slurmd, in this order: -Z -N node --conf words --conf-server a:1,b:1 --instance-id id.
[[nodiscard]] std::vector<std::string> slurmd_arguments(std::string_view node, std::string_view conf,
                                                        const std::vector<std::string>& controllers,
                                                        std::string_view instance_id);

}  // namespace enlist
