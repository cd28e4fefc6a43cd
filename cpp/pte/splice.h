// SPDX-License-Identifier: Apache-2.0
//
// A program file with other Vulkan blobs in it.
#pragma once

#include <etvk_guard/pte.h>

#include <string>
#include <vector>

#include "program.h"
#include "rewrite.h"

namespace etvk_guard {

struct NewBlob {
  uint32_t blob = 0;  // index in ProgramImpl::blobs; at most once in a list
  RewrittenGraph graph;
};

// What else uses the data of a blob, so that it must not change, e.g. "named data"; empty if nothing does.
std::string other_user(const ProgramImpl& program, const Blob& blob);

// The file as an overlay. A blob in a segment grows in place, and later segments move by a multiple of the alignment that they
// all have; an inline blob moves to the end of the Program flatbuffer. Numbers in headers and flatbuffer are changed in place,
// and nothing else. No blob may have another user. kUnsupportedSchema: a number that must change is not stored, or is stored
// once for things that now differ. kTooLarge, kIoError.
Error splice(const ProgramImpl& program, const std::vector<NewBlob>& blobs, Overlay* into);

}  // namespace etvk_guard
