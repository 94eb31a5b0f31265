// Plans what a Token needs. The operator mints the JWT once, again after four fifths of the lifetime of the JWT, and at once
// when the signing key, the user or the lifetime changes.
//
// If spec.secretRef names another Secret, the operator deletes the previous Secret once the new Secret has a token. If
// spec.secretRef names another data key of the Secret, the operator removes the previous data key.
//
// Labels and annotations of the Token are copied to the Secret and kept up to date.
//
// Annotations of the Secret say when the token was minted, and from which inputs. With refresh: false, the Secret is immutable
// and the token is minted once. If such a token must change, the operator deletes the Secret and creates it again.
#pragma once

#include "operator/token/observed.hpp"
#include "plan/plan.hpp"

namespace op::token {

inline constexpr std::string_view kAnnotationIssuedAt = "token.slinky.slurm.net/issued-at";
/// The data key under which the Secret has the token.
inline constexpr std::string_view kAnnotationSecretKey = "token.slinky.slurm.net/secret-key";
/// Hash of user, lifetime and signing key.
inline constexpr std::string_view kAnnotationInputHash = "token.slinky.slurm.net/input-hash";

plan::Plan plan(const Observed& observed);

}  // namespace op::token
