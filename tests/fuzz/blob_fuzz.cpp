// SPDX-License-Identifier: Apache-2.0
#include "exercise.h"
#include "mutate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  etvk_guard::testing::exercise_blob(data, size);
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  return etvk_guard::testing::mutate_blob(data, size, max_size, seed);
}
