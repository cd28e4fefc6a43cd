// SPDX-License-Identifier: Apache-2.0
//
// Writing an overlay to a file that is there whole or not at all.
#pragma once

#include <etvk_guard/pte.h>

namespace etvk_guard {

// As write_file(), with the test that the written bytes must pass before they get their name; `verify` (may be nullptr) reads
// them through the file's descriptor. `unnamed`: try a file without a name first.
Error write_overlay(const Overlay& overlay, const char* path, const char* input_path, Error (*verify)(const Reader& written),
                    bool unnamed = true);

}  // namespace etvk_guard
