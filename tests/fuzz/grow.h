// SPDX-License-Identifier: Apache-2.0
//
// Sound flatbuffers that differ from others in what they say: another value, shape, op, operand; norms put in; the blob inline
// or in a segment, shared or not.
#pragma once

#include <random>

#include "builder.h"
#include "program.h"

namespace etvk_guard::testing {

using Random = std::minstd_rand;

inline uint32_t below(Random& random, size_t limit) {
  return limit == 0 ? 0 : static_cast<uint32_t>(random() % static_cast<uint32_t>(limit));
}
inline bool one_in(Random& random, uint32_t times) { return random() % times == 0; }

// Names of ops, of those that the contract has rows for and others.
const std::string& op_name(Random& random);

Buffer grow_blob(const Blob& blob, Random& random);          // a blob, header and all
Buffer grow_program(const ProgramImpl& program, Random& random);  // a file around such a blob
Buffer program_around(const Buffer& blob, Random& random);

}  // namespace etvk_guard::testing
