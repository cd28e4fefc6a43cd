// SPDX-License-Identifier: Apache-2.0
#include "exercise.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etvk_guard::testing::exercise_overlay(data, size);
  return 0;
}
