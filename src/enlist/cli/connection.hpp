// The administrators' connection to the coordinator: mutual TLS with keys from the coordinator's folder.
//
// Folder src/enlist/cli: the commands of slurm-enlist for people. Uses enlist/wire and net.
#pragma once

#include <string>

#include "enlist/cli/program.hpp"

namespace enlist::cli {

/// Sends a request to the coordinator, and waits for the answer. Used as Outside::ask. Errors: kNotFound (a key file does not
/// exist), kForbidden (a key file cannot be read), kUnavailable (no coordinator answers), and those of read_answer().
core::Result<core::Json> ask_coordinator(const Connection& to, const std::string& path, const core::Json& body);

/// Returns the body of an answer with status 200. Errors: kUnavailable (status 503) or kInvalid, with the answer's own text.
core::Result<core::Json> read_answer(int status, const std::string& body);

}  // namespace enlist::cli
