// The administrators' connection to the coordinator: mutual TLS with keys from the coordinator's folder.
//
// Folder src/enlist/cli: the commands of slurm-enlist for people. Uses enlist/wire and net.
#pragma once

#include <string>

#include "enlist/cli/program.hpp"

namespace enlist::cli {

/// Asks the coordinator, and waits for the answer. For Outside::ask. Errors: kNotFound (the keys), kForbidden (the keys cannot
/// be read), kUnavailable (no coordinator), and those of its answer.
core::Result<core::Json> ask_coordinator(const Connection& to, const std::string& path, const core::Json& body);

/// Returns the body of an answer. An answer with another status than 200 is an error with its text.
core::Result<core::Json> read_answer(int status, const std::string& body);

}  // namespace enlist::cli
