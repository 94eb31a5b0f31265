// What a Token needs done: mint it once, and again at four fifths of its life, or at once when its key, user or lifetime
// changes.
//
// Told to keep it elsewhere, it deletes the Secret in which it was before, as soon as the other one holds a token; or, in the
// same Secret, the data under the key of before.
//
// Labels and annotations of the Token are put on the Secret, and follow it.
//
// When it was minted, and from what, stands in annotations of the Secret. An immutable Secret (refresh: false) is minted once;
// when it must be another, it is deleted and made anew.
#pragma once

#include "operator/token/observed.hpp"
#include "plan/plan.hpp"

namespace op::token {

inline constexpr std::string_view kAnnotationIssuedAt = "token.slinky.slurm.net/issued-at";
/// The data key under which it was put there.
inline constexpr std::string_view kAnnotationSecretKey = "token.slinky.slurm.net/secret-key";
/// Of user, lifetime and signing key.
inline constexpr std::string_view kAnnotationInputHash = "token.slinky.slurm.net/input-hash";

plan::Plan plan(const Observed& observed);

}  // namespace op::token
