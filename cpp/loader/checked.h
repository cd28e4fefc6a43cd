// SPDX-License-Identifier: Apache-2.0
//
// The outcome of the one check of a file: what is served, and what is said about it.
#pragma once

#include <etvk_guard/loader.h>

#include <memory>

#include "wrapped.h"

namespace etvk_guard::loader {

// Does not change once it is made.
struct Checked {
  LoadReport report;
  RuntimeError error = RuntimeError::Ok;  // of every call from now on
  bool again = false;                     // worth another check: the wrapped loader failed, or memory ran out
  bool overlaid = false;                  // the overlay is served, else the wrapped loader's bytes
  size_t size = 0;                        // of what is served
  Overlay overlay;                        // its extents and owned bytes are used, never its reader
};

// Reads through the wrapped loader. Never null.
std::unique_ptr<const Checked> check_file(const Wrapped& wrapped, const GuardedLoaderOptions& options);

}  // namespace etvk_guard::loader
