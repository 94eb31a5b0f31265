#include "enlist/rules/service_files.hpp"

#include <algorithm>
#include <optional>

namespace enlist {
namespace {

constexpr std::string_view kOptions = "SLURMD_OPTIONS=";

/// Escapes % in a text for a unit, where systemd takes % for the beginning of a specifier.
std::string without_specifiers(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '%' ? "%%" : std::string(1, c);
  return out;
}

std::string escaped(std::string_view text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// Quotes an argument for systemd, which splits $SLURMD_OPTIONS into words: quotes group characters, and a backslash makes the
/// next character literal. Single quotes are used because --conf has double quotes.
std::string quoted_argument(const std::string& argument) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:=,@%+()[]").find(c) != std::string_view::npos;
  };
  if (!argument.empty() && std::ranges::all_of(argument, plain)) return argument;
  return "'" + escaped(argument, "'\\") + "'";
}

/// Returns the line that sets SLURMD_OPTIONS. Within double quotes in an EnvironmentFile, a backslash makes the four characters
/// " \ ` and $ literal.
std::string options_line(const std::vector<std::string>& arguments) {
  std::string words;
  for (const std::string& argument : arguments) words += (words.empty() ? "" : " ") + quoted_argument(argument);
  return std::string(kOptions) + "\"" + escaped(words, "\"\\`$") + "\"\n";
}

/// Finds the first `end` that has no backslash before it. Removes it and the text before it from `text`, and returns that text
/// with its escapes resolved. nullopt: there is no such `end`.
std::optional<std::string> take_quoted(std::string_view& text, char end) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == end) {
      text.remove_prefix(i + 1);
      return out;
    }
    if (text[i] == '\\' && i + 1 < text.size()) ++i;
    out += text[i];
  }
  return std::nullopt;
}

/// Splits arguments that quoted_argument() has written. The result is undefined for arguments with other quoting.
std::vector<std::string> split_arguments(std::string_view words) {
  std::vector<std::string> out;
  while (!words.empty()) {
    if (words.starts_with('\'')) {
      words.remove_prefix(1);
      out.push_back(take_quoted(words, '\'').value_or(""));
      words.remove_prefix(std::min<std::size_t>(1, words.size()));
    } else {
      const std::size_t end = std::min(words.find(' '), words.size());
      out.emplace_back(words.substr(0, end));
      words.remove_prefix(std::min(end + 1, words.size()));
    }
  }
  return out;
}

}  // namespace

std::string defaults_file(const std::vector<std::string>& arguments) {
  return std::string(kFileMark) + options_line(arguments);
}

core::Result<std::vector<std::string>> arguments_of(std::string_view defaults_file) {
  // Of several lines, systemd uses the last one.
  std::size_t at = defaults_file.rfind("\n" + std::string(kOptions));
  if (at != std::string_view::npos) {
    ++at;
  } else if (defaults_file.starts_with(kOptions)) {
    at = 0;
  } else {
    return core::fail(core::ErrorCode::kInvalid, "the file has no SLURMD_OPTIONS");
  }
  const std::string_view line = defaults_file.substr(at);
  std::string_view rest = line.substr(kOptions.size());
  if (rest.starts_with('"')) {
    rest.remove_prefix(1);
    if (const auto words = take_quoted(rest, '"')) {
      std::vector<std::string> out = split_arguments(*words);
      if (line.starts_with(options_line(out))) return out;
    }
  }
  return core::fail(core::ErrorCode::kInvalid, "SLURMD_OPTIONS is not written as slurm-enlist writes it");
}

std::string unit_file(std::string_view slurmd, std::string_view defaults) {
  std::string program = without_specifiers(slurmd);
  if (program.find_first_of(" \t\"'\\") != std::string::npos) program = "\"" + escaped(program, "\"\\") + "\"";
  return std::string(kFileMark) +
         "[Unit]\n"
         "Description=Slurm node daemon\n"
         "After=network-online.target remote-fs.target sssd.service\n"
         "Wants=network-online.target\n"
         // After five failed starts in 30 s, the unit fails, so that the error of slurmd is visible.
         "StartLimitIntervalSec=30\n"
         "StartLimitBurst=5\n"
         "\n"
         "[Service]\n"
         "Type=notify\n"
         // The file is required (no "-" in front): without its arguments, slurmd would run as another node.
         "EnvironmentFile=" +
         without_specifiers(defaults) +
         "\n"
         "RuntimeDirectory=slurm\n"
         "RuntimeDirectoryMode=0755\n"
         // Jobs outlive slurmd, and the commands in them read /run/slurm/conf.
         "RuntimeDirectoryPreserve=yes\n"
         "ExecStart=" +
         program +
         " --systemd $SLURMD_OPTIONS\n"
         "ExecReload=/bin/kill -HUP $MAINPID\n"
         "KillMode=process\n"
         "Delegate=yes\n"
         "TimeoutStartSec=infinity\n"
         "Restart=on-failure\n"
         "RestartSec=1\n"
         "LimitNOFILE=131072\n"
         "LimitMEMLOCK=infinity\n"
         "LimitSTACK=infinity\n"
         "TasksMax=infinity\n"
         "\n"
         "[Install]\n"
         "WantedBy=multi-user.target\n";
}

}  // namespace enlist
