#include "operator/governance/capacity.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

namespace op::governance {
namespace {

using Kind = Expression::Kind;
using Tree = core::Result<Expression>;

/// The longest expression, in bytes. This limit also bounds the depth of the syntax tree.
constexpr std::size_t kMaxText = 128;
/// The largest integer that every JSON parser reads exactly.
constexpr double kMaxValue = 9007199254740991;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

Expression node(Kind kind, std::vector<Expression> args) {
  Expression out;
  out.kind = kind;
  for (Expression& arg : args) out.args.push_back(std::make_shared<const Expression>(std::move(arg)));
  return out;
}

Expression number(double value) {
  Expression out;
  out.number = value;
  return out;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Tree whole() {
    Tree out = sum();
    if (!out) return out;
    skip();
    if (at_ != text_.size()) return wrong("expected +, - or *, or the end of the expression");
    if (!follows_)
      return core::fail(core::ErrorCode::kInvalid, "\"" + std::string(text_) + "\": has no %, all or partition(NAME)");
    return out;
  }

 private:
  std::unexpected<core::Error> wrong(const std::string& why) const {
    return core::fail(core::ErrorCode::kInvalid,
                      "\"" + std::string(text_) + "\": " + why + " at position " + std::to_string(at_ + 1));
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  /// Skips white space. If the next character is `wanted`, consumes it and returns true.
  bool take(char wanted) {
    skip();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  Tree sum() {
    Tree left = product();
    while (left) {
      const bool plus = take('+');
      if (!plus && !take('-')) return left;
      Tree right = product();
      if (!right) return right;
      left = node(plus ? Kind::kAdd : Kind::kSubtract, {*std::move(left), *std::move(right)});
    }
    return left;
  }

  Tree product() {
    Tree left = term();
    while (left && take('*')) {
      Tree right = term();
      if (!right) return right;
      left = node(Kind::kMultiply, {*std::move(left), *std::move(right)});
    }
    return left;
  }

  Tree term() {
    skip();
    if (take('(')) {
      Tree out = sum();
      if (out && !take(')')) return wrong("expected )");
      return out;
    }
    if (at_ < text_.size() && is_digit(text_[at_])) return constant();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    const std::string_view word = text_.substr(start, at_ - start);
    if (word == "all") {
      follows_ = true;
      return node(Kind::kAll, {});
    }
    if (word == "partition") return partition();
    if (word == "min") return call(Kind::kMin, 2);
    if (word == "max") return call(Kind::kMax, 2);
    if (word == "floor") return call(Kind::kFloor, 1);
    if (word == "ceil") return call(Kind::kCeil, 1);
    if (word == "round") return call(Kind::kRound, 1);
    at_ = start;
    return wrong("expected a number, a percentage, all, partition(NAME), min, max, floor, ceil, round or (");
  }

  Tree constant() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value, std::chars_format::fixed);
    if (error != std::errc{} || value > kMaxValue) return wrong("the number is too large");
    at_ += static_cast<std::size_t>(end - begin);
    if (!take('%')) return number(value);
    follows_ = true;
    return node(Kind::kMultiply, {node(Kind::kAll, {}), number(value / 100)});
  }

  Tree partition() {
    if (!take('(')) return wrong("expected (");
    skip();
    const std::size_t end = std::min(text_.find_first_of(" \t(),", at_), text_.size());
    Expression out;
    out.kind = Kind::kPartition;
    out.partition = std::string(text_.substr(at_, end - at_));
    if (out.partition.empty()) return wrong("expected the name of a partition");
    at_ = end;
    if (!take(')')) return wrong("expected )");
    follows_ = true;
    return out;
  }

  Tree call(Kind kind, std::size_t count) {
    if (!take('(')) return wrong("expected (");
    std::vector<Expression> args;
    while (args.size() < count) {
      if (!args.empty() && !take(',')) return wrong("expected ,");
      Tree arg = sum();
      if (!arg) return arg;
      args.push_back(*std::move(arg));
    }
    if (!take(')')) return wrong("expected )");
    return node(kind, std::move(args));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool follows_ = false;  ///< True if the parsed text contains a part that depends on the capacity.
};

/// Returns the tolerance for rounding errors. Binary fractions are not exact: 100 * 0.29 is a little less than 29.
double tolerance(double value) {
  return 1e-12 * std::max(1.0, std::abs(value));
}
double round_down(double value) {
  return std::floor(value + tolerance(value));
}
double round_up(double value) {
  return std::ceil(value - tolerance(value));
}

std::int64_t count_in(const Capacity::Counts& counts, std::string_view tres) {
  const auto found = counts.find(tres);
  return found == counts.end() ? 0 : found->second;
}

class Evaluator {
 public:
  Evaluator(std::string_view tres, const Capacity& capacity) : tres_(tres), capacity_(capacity) {}
  std::map<std::string, std::int64_t, std::less<>> inputs;

  core::Result<double> value(const Expression& expression) {
    if (expression.kind == Kind::kNumber) return expression.number;
    if (expression.kind == Kind::kAll) return input("all", capacity_.all);
    if (expression.kind == Kind::kPartition) {
      const auto found = capacity_.partitions.find(expression.partition);
      if (found == capacity_.partitions.end())
        return core::fail(core::ErrorCode::kNotFound, "the cluster has no partition " + expression.partition);
      return input("partition(" + expression.partition + ")", found->second);
    }
    std::vector<double> args;
    for (const auto& arg : expression.args) {
      const core::Result<double> each = value(*arg);
      if (!each) return each;
      args.push_back(*each);
    }
    return apply(expression.kind, args);
  }

 private:
  double input(std::string name, const Capacity::Counts& counts) {
    const std::int64_t out = count_in(counts, tres_);
    inputs[std::move(name)] = out;
    return static_cast<double>(out);
  }

  static double apply(Kind kind, const std::vector<double>& args) {
    switch (kind) {
      case Kind::kAdd:
        return args[0] + args[1];
      case Kind::kSubtract:
        return args[0] - args[1];
      case Kind::kMultiply:
        return args[0] * args[1];
      case Kind::kMin:
        return std::min(args[0], args[1]);
      case Kind::kMax:
        return std::max(args[0], args[1]);
      case Kind::kCeil:
        return round_up(args[0]);
      case Kind::kRound:
        return round_down(args[0] + 0.5);
      default:
        return round_down(args[0]);
    }
  }

  std::string_view tres_;
  const Capacity& capacity_;
};

/// Adds the GPUs in a node's Gres: "gpu:h100:8(S:0-1),gpu:2,shard:16". Counts may have a K, M or G.
void add_gpus(std::string_view gres, std::int64_t factor, Capacity::Counts& to) {
  while (!gres.empty()) {
    // The sockets in parentheses can contain commas.
    std::size_t end = 0;
    for (int depth = 0; end < gres.size() && (depth > 0 || gres[end] != ','); ++end) {
      depth += gres[end] == '(' ? 1 : gres[end] == ')' ? -1 : 0;
    }
    std::string_view each = gres.substr(0, end);
    gres.remove_prefix(std::min(end + 1, gres.size()));
    each = each.substr(0, each.find('('));
    if (!each.starts_with("gpu:")) continue;
    each.remove_prefix(4);
    const std::size_t colon = each.rfind(':');
    const std::string_view type = colon == std::string_view::npos ? std::string_view() : each.substr(0, colon);
    const std::string_view count = colon == std::string_view::npos ? each : each.substr(colon + 1);
    std::int64_t gpus = 0;
    if (std::from_chars(count.data(), count.data() + count.size(), gpus).ec != std::errc{}) continue;
    to["gres/gpu"] += gpus * factor;
    if (!type.empty()) to["gres/gpu:" + std::string(type)] += gpus * factor;
  }
}

/// Adds the TRES of a node. A node that does not count as capacity adds 0 to each of its TRES, so that the TRES are known by
/// name.
void add(const slurm::Node& node, Capacity::Counts& to) {
  const std::int64_t factor = is_capacity(node) ? 1 : 0;
  to["node"] += factor;
  to["cpu"] += node.cpus * factor;
  to["mem"] += node.real_memory_mib * factor;
  add_gpus(node.gres, factor, to);
}

}  // namespace

core::Result<Expression> read_expression(std::string_view text) {
  if (text.size() > kMaxText)
    return core::fail(core::ErrorCode::kInvalid, "is longer than " + std::to_string(kMaxText) + " characters");
  return Parser(text).whole();
}

bool is_expression(std::string_view text) {
  return text.contains('%') || text.contains("all") || text.contains("partition");
}

core::Result<void> check_tres(std::string_view tres) {
  constexpr std::string_view kTyped = "gres/gpu:";
  if (tres == "cpu" || tres == "mem" || tres == "node" || tres == "gres/gpu") return {};
  if (tres.starts_with(kTyped) && tres.size() > kTyped.size()) return {};
  return core::fail(core::ErrorCode::kInvalid, "an expression cannot limit " + std::string(tres) +
                                                   ": only cpu, mem, node, gres/gpu and gres/gpu:TYPE have a capacity");
}

bool is_capacity(const slurm::Node& node) {
  const slurm::NodeState& state = node.state;
  if (state.base == "DOWN" || state.base == "ERROR" || state.base == "FUTURE" || state.base == "UNKNOWN") return false;
  if (state.drains()) return false;
  // Slurm powers a POWERED_DOWN node up for a job, so such a node counts.
  for (const std::string_view flag : {"FAIL", "NOT_RESPONDING", "REBOOT_REQUESTED", "REBOOT_ISSUED", "REBOOT"}) {
    if (state.has(flag)) return false;
  }
  return true;
}

std::optional<Capacity> capacity_of(const slurm::Snapshot& snapshot, core::MonoTime now) {
  if (!snapshot.fresh(now)) return std::nullopt;
  Capacity out;
  for (const auto& [name, partition] : snapshot.partitions) out.partitions.try_emplace(name);
  out.all = {{"cpu", 0}, {"mem", 0}, {"node", 0}};
  for (const auto& [name, node] : snapshot.nodes) {
    add(*node, out.all);
    for (const std::string& partition : node->partitions) add(*node, out.partitions[partition]);
  }
  return out;
}

bool capacity_changed(const std::vector<std::string>& nodes, const slurm::Snapshot& before, const slurm::Snapshot& now) {
  return std::ranges::any_of(nodes, [&](const std::string& name) {
    const slurm::Node* then = before.node(name);
    const slurm::Node* node = now.node(name);
    if (then == nullptr || node == nullptr) return then != node;
    const auto counted = [](const slurm::Node& each) {
      return std::tie(each.cpus, each.real_memory_mib, each.gres, each.partitions);
    };
    return is_capacity(*then) != is_capacity(*node) || counted(*then) != counted(*node);
  });
}

core::Result<Evaluation> evaluate(const Expression& expression, std::string_view tres, const Capacity& capacity) {
  if (core::Result<void> known = check_tres(tres); !known) return std::unexpected(known.error());
  if (!capacity.all.contains(tres))
    return core::fail(core::ErrorCode::kNotFound, "no node of the cluster has the TRES " + std::string(tres));
  Evaluator evaluator(tres, capacity);
  const core::Result<double> value = evaluator.value(expression);
  if (!value) return std::unexpected(value.error());
  const double whole = std::max(0.0, round_down(*value));
  if (!(whole <= kMaxValue)) return core::fail(core::ErrorCode::kInvalid, "the value is too large for a limit");
  return Evaluation{static_cast<std::int64_t>(whole), std::move(evaluator.inputs)};
}

std::optional<Damping> damp(std::optional<std::int64_t> now_value, const std::optional<Damped>& last, core::WallTime now) {
  if (!now_value) return last ? std::optional(Damping{{last->value, std::nullopt}, std::nullopt}) : std::nullopt;
  if (!last || *now_value >= last->value) return Damping{{*now_value, std::nullopt}, std::nullopt};
  // If `lower_since` is in the future, another clock has set it, so it does not count.
  const bool counts = last->lower_since && *last->lower_since <= now;
  const core::WallTime since = counts ? *last->lower_since : now;
  if (now - since >= kFallDelay) return Damping{{*now_value, std::nullopt}, std::nullopt};
  return Damping{{last->value, since}, since + kFallDelay};
}

}  // namespace op::governance
