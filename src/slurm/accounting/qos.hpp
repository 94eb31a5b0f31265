// The fields of a QOS: their names, their values in a neutral form, and their paths in the JSON of slurmrestd's data_parsers.
//
//   Settings wanted{{"GrpJobs", 8}, {"GrpTRES/gres/gpu", 4}, {"MaxWallDurationPerJob", "unlimited"}};
//   for (const Difference& each : differences(wanted, settings_of(found))) ...
//
// Fields have the names of sacctmgr(1). A limit on TRES has one setting for each TRES: "GrpTRES/cpu".
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/result.hpp"
#include "slurm/accounting/model.hpp"

namespace slurm::accounting {

/// Slurm's built-in QOS. It always exists and is never deleted.
inline constexpr std::string_view kNormalQos = "normal";

/// Maps the names of settings to their values. kUnlimited means that there is no limit. kDefault means that Slurm chooses the
/// value. Times are in the unit of their field. Lists are sorted.
using Settings = std::map<std::string, core::Json, std::less<>>;
inline constexpr std::string_view kUnlimited = "unlimited";
inline constexpr std::string_view kDefault = "default";

/// The type of a field's value.
enum class FieldForm {
  kText,
  kFlags,     ///< A list of names in kQosFlags.
  kNames,     ///< A list of names of QOS.
  kMode,      ///< A name in kPreemptModes, or several joined by ",".
  kNumber,    ///< A number. The default is 0.
  kSeconds,   ///< Seconds, as a plain number in JSON. The default is 0.
  kOptional,  ///< A number or kDefault.
  kFraction,  ///< A number with a fraction, or kDefault. The default of UsageFactor is 1.
  kCount,     ///< A number or kUnlimited.
  kMinutes,   ///< Minutes or kUnlimited.
  kTres,      ///< A number or kUnlimited, for each TRES.
  kTruth,     ///< true or false. The default is false.
  kShares,    ///< A number, or "parent". The default is 1.
};

struct QosField {
  std::string_view name, path;
  FieldForm form;
  std::string_view since = "v0.0.40";  ///< The first data_parser that has the field.
  [[nodiscard]] bool limits() const {
    return form == FieldForm::kCount || form == FieldForm::kMinutes || form == FieldForm::kTres;
  }
};
/// All fields that sacctmgr can set, except the name.
extern const std::array<QosField, 33> kQosFields;

/// A value of a field as sacctmgr spells it (`name`), and as the data_parsers spell it (`rest`).
struct Word {
  std::string_view name, rest;
  std::string_view since = "v0.0.40";
};
extern const std::array<Word, 12> kQosFlags;
extern const std::array<Word, 5> kPreemptModes;

/// Returns the field to which a setting of a QOS, an account or a user belongs ("GrpTRES" for "GrpTRES/cpu"), or null if there
/// is none. For a setting with a place ("site: GrpTRES/cpu"), returns the field of an association.
[[nodiscard]] const QosField* field_of(std::string_view setting);
/// Returns the TRES of a setting: "gres/gpu" for "GrpTRES/gres/gpu". Returns "" for a setting without a TRES.
[[nodiscard]] std::string_view tres_of(std::string_view setting);
/// Returns the value that the setting has in a new object. Requires that field_of(setting) is not null.
[[nodiscard]] core::Json default_of(std::string_view setting);

/// Returns the settings of the QOS. A setting that the result does not contain has its default value.
[[nodiscard]] Settings settings_of(const Qos& qos);
/// Returns the value of a setting, or its default if `settings` lacks it.
[[nodiscard]] core::Json value_of(const Settings& settings, std::string_view setting);

struct Difference {
  std::string setting;
  core::Json is, wanted;
  [[nodiscard]] std::string text() const;  ///< Returns "GrpJobs is 20, wanted 10".
  friend bool operator==(const Difference&, const Difference&) = default;
};
/// Returns the settings of `wanted` whose values in `found` differ. Ignores the case of texts and names, because slurmdbd
/// stores them in lower case.
[[nodiscard]] std::vector<Difference> differences(const Settings& wanted, const Settings& found);

/// Returns the body of POST qos: `found`, overwritten by `wanted`. Omits unset limits. Always has the flags and the preempt
/// mode: else Slurm clears them. Errors, with a setting: kUnsupported (slurmrestd cannot write it), kInvalid (unknown).
[[nodiscard]] core::Result<core::Json> qos_body(const std::string& name, const Settings& found, const Settings& wanted,
                                                std::string_view data_parser);

/// Reads a QOS from JSON in the spelling of the data_parser `version` ("": of any). Ignores members that are null, or are
/// {"set": false} and not infinite. Error: kInvalid, with the path of every unknown or wrong member.
[[nodiscard]] core::Result<Settings> read_qos(const core::Json& config, std::string_view version = "");

/// Returns the name in lower case. Names of QOS, accounts and users are case-insensitive in Slurm.
[[nodiscard]] std::string folded(std::string_view name);
/// Reports whether a comma-separated list contains this name. Ignores case.
[[nodiscard]] bool listed(std::string_view list, std::string_view name);

/// Returns why slurmrestd would misread the name of a QOS, or "". slurmrestd converts the parts of a request's path to values:
/// `007` becomes the number 7, and `on` becomes true (data_convert_type() in Slurm's src/common/data.c). In a list of QOS,
/// slurmrestd reads a number as the id of a QOS.
[[nodiscard]] std::string qos_name_problem(std::string_view name);

}  // namespace slurm::accounting
