// SPDX-License-Identifier: Apache-2.0
//
// What the tests ask of a rewritten graph.
#pragma once

#include <map>
#include <string>

#include "builder.h"
#include "graph.h"
#include "program.h"

namespace etvk_guard::testing {

using Names = std::map<int, std::string>;  // of values that a case makes

// A repaired program with one delegate. It must not be moved.
struct Repaired {
  Buffer file;
  BytesReader reader;
  Program program;
  Repair repair;
  Program again;
  Error error;
  const GraphView& graph() const { return again.impl().blobs[0].graph; }
};
void repair_file(const Buffer& file, Repaired* into);

// The graph as "op(arguments)->result; ...": values by their names, constants of the blob's own by what is in them, whole
// numbers, "-" for Null, "." for what is none of these. Other tensors are t0, t1 ... in order of appearance.
std::string graph_words(const Repaired& repaired, Names names);

// What the builders of ET-VK ask of the ops that a repair adds, and of a norm.
void expect_stock_takes(const GraphView& graph);

// Every tensor is written before it is read, and two that share memory are never alive at one time.
void expect_no_overlap(const GraphView& graph);

}  // namespace etvk_guard::testing
