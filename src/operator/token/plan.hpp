// Plans what a Token needs: mints the JWT once, again after four fifths of its lifetime, and at once when its key, user or
// lifetime changes.
//
// If the token moves to another Secret, the previous Secret is deleted once the new one has a token. If the token moves within
// the Secret, the previous data key is removed.
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
