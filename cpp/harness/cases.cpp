// SPDX-License-Identifier: Apache-2.0
#include "cases.h"

namespace etvk_guard::harness {
namespace {

using kernels::Dtype;
using kernels::Norm;
using kernels::Storage;

// Widths around what changes in a kernel: a texel, a chunk of 8, a subgroup, a workgroup, the registers' end.
constexpr std::int32_t kWidths[] = {1,   2,   3,    4,    5,    7,    8,    12,   31,   32,   33,   64,    100,  127,
                                    128, 129, 255,  256,  257,  320,  512,  768,  1000, 1023, 1024, 1025,  1536, 2048,
                                    2560, 3072, 4095, 4096, 4097, 5120, 8190, 8192, 11008, 12288, 16383, 16384};
constexpr std::int32_t kFewWidths[] = {1, 3, 4, 8, 31, 100, 257, 1024, 4098, 16384};

struct Mix {
  Storage x;
  Storage operand;
};
constexpr Mix kSame[] = {{Storage::kBuffer, Storage::kBuffer}, {Storage::kTexture3d, Storage::kTexture3d}};
constexpr Mix kMixed[] = {{Storage::kBuffer, Storage::kTexture3d}, {Storage::kTexture3d, Storage::kBuffer}};
constexpr Dtype kDtypes[] = {Dtype::kFloat, Dtype::kHalf};
constexpr Norm kNorms[] = {Norm::kRms, Norm::kLayer};

Sizes row_of(const Sizes& x) { return {x[0], 1, 1, 1}; }

NormCase make(Norm norm, Mix mix, Dtype dtype, const Sizes& x) {
  NormCase test;
  test.norm = norm;
  test.x_storage = mix.x;
  test.operand_storage = mix.operand;
  test.dtype = dtype;
  test.x = x;
  test.weight = row_of(x);
  if (norm == Norm::kLayer) {
    test.shift = row_of(x);
    test.offset = 3.0f;
  }
  return test;
}

// Every width for the kernels that most graphs use; fewer for the rest.
void add_widths(std::vector<NormCase>* cases) {
  for (const Dtype dtype : kDtypes) {
    for (const Mix& mix : kSame) {
      for (const std::int32_t width : kWidths) {
        cases->push_back(make(Norm::kRms, mix, dtype, {width, 3, 1, 1}));
      }
      for (const std::int32_t width : kFewWidths) {
        cases->push_back(make(Norm::kLayer, mix, dtype, {width, 3, 1, 1}));
      }
      for (const std::int32_t width : {4, 257, 2048}) {
        for (const Norm norm : kNorms) {
          cases->push_back(make(norm, mix, dtype, {width, 2, 1, 1}));
          cases->back().subgroups = false;
        }
      }
    }
    for (const Mix& mix : kMixed) {
      for (const std::int32_t width : {3, 100, 4096}) {
        for (const Norm norm : kNorms) {
          for (const bool subgroups : {true, false}) {
            cases->push_back(make(norm, mix, dtype, {width, 2, 1, 1}));
            cases->back().subgroups = subgroups;
          }
        }
      }
    }
  }
}

void add_rows(std::vector<NormCase>* cases) {
  for (const Mix& mix : kSame) {
    for (const Sizes& x : {Sizes{3, 256, 16, 16}, Sizes{4, 256, 256, 1}, Sizes{16, 2048, 1, 1}, Sizes{64, 7, 5, 3},
                           Sizes{128, 1, 1, 77}, Sizes{64, 1, 40, 1}, Sizes{256, 33, 1, 2}}) {
      cases->push_back(make(Norm::kRms, mix, Dtype::kFloat, x));
      cases->push_back(make(Norm::kLayer, mix, Dtype::kHalf, x));
    }
  }
}

// Weights and shifts of every kind that broadcasts, in every storage.
void add_operands(std::vector<NormCase>* cases) {
  struct Pair {
    std::optional<Sizes> weight;
    std::optional<Sizes> shift;
  };
  for (const std::int32_t w : {20, 33}) {
    const Sizes x{w, 5, 3, 2};
    const Sizes row{w, 1, 1, 1};
    const Pair pairs[] = {{row, row},
                          {row, std::nullopt},
                          {std::nullopt, row},
                          {std::nullopt, std::nullopt},
                          {x, x},
                          {Sizes{w, 1, 1, 2}, Sizes{w, 1, 1, 2}},
                          {Sizes{w, 1, 3, 2}, x},
                          {Sizes{w, 5, 1, 1}, Sizes{w, 1, 3, 1}},
                          {Sizes{w, 5, 3, 1}, Sizes{w, 1, 1, 2}},
                          {x, row}};
    for (const Mix& mix : {kSame[0], kSame[1], kMixed[0], kMixed[1]}) {
      for (const Pair& pair : pairs) {
        const bool trims = mix.x != mix.operand && (&pair - pairs) % 3 != 0;  // a third of them will do
        if (trims || (!pair.weight && !pair.shift && mix.x != mix.operand)) {
          continue;
        }
        NormCase test = w == 20 ? make(Norm::kRms, mix, Dtype::kFloat, x) : make(Norm::kLayer, mix, Dtype::kHalf, x);
        test.weight = pair.weight;
        test.shift = pair.shift;
        cases->push_back(test);
      }
    }
  }
}

// Values that lose range or precision where arithmetic is not float32, or not centred.
void add_values(std::vector<NormCase>* cases) {
  for (const Mix& mix : kSame) {
    for (const Dtype dtype : kDtypes) {
      NormCase large = make(Norm::kRms, mix, dtype, {2048, 4, 1, 1});
      large.magnitude = dtype == Dtype::kHalf ? 5000.0f : 1e15f;
      cases->push_back(large);
      NormCase small = make(Norm::kRms, mix, dtype, {640, 4, 1, 1});
      small.magnitude = 1e-3f;
      cases->push_back(small);
      NormCase far = make(Norm::kLayer, mix, dtype, {2048, 4, 1, 1});
      far.offset = 1000.0f;
      far.magnitude = dtype == Dtype::kHalf ? 50.0f : 1.0f;
      cases->push_back(far);
    }
  }
}

// Ways of dispatching that choose() may not take on this device, but may on another.
void add_forced(Norm norm, Mix mix, bool subgroups, std::uint32_t subgroup_size, std::vector<NormCase>* cases) {
  NormCase plain = make(norm, mix, Dtype::kFloat, {1001, 9, 2, 1});
  plain.subgroups = subgroups;
  plain.units = 1;
  NormCase beyond_registers = plain;
  beyond_registers.chunks = 1;
  beyond_registers.threads = 64;
  beyond_registers.early = kernels::Early::kNot;
  cases->push_back(beyond_registers);
  NormCase several_units = plain;
  several_units.chunks = 4;
  several_units.threads = subgroup_size;
  several_units.units = 4;
  several_units.early = kernels::Early::kRow;
  cases->push_back(several_units);
  if (mix.x == Storage::kBuffer) {
    several_units.chunks = 2;
    several_units.groups = 3;  // a grid of two dimensions, with workgroups that have no row
    cases->push_back(several_units);
    return;
  }
  several_units.rows = 2;
  cases->push_back(several_units);
  NormCase four_rows = plain;
  four_rows.rows = 4;
  four_rows.threads = 128;
  four_rows.chunks = 16;
  cases->push_back(four_rows);
  NormCase split = beyond_registers;
  split.split = 3;
  split.early = kernels::Early::kRow;
  cases->push_back(split);
  NormCase each = make(norm, mix, Dtype::kFloat, {1024, 9, 2, 1});  // whole rows, of which the last band has not all
  each.subgroups = subgroups;
  each.units = 1;
  each.chunks = 8;
  each.threads = 32;
  each.each = 4;
  each.early = kernels::Early::kRow;
  cases->push_back(each);
  NormCase few = each;  // whole rows that workgroups share, with what they need kept
  few.each = 1;
  few.split = 4;
  cases->push_back(few);
  few.dtype = Dtype::kHalf;
  cases->push_back(few);
  each.dtype = Dtype::kHalf;
  each.rows = 2;
  each.threads = 64;
  each.each = 2;
  cases->push_back(each);
  each.weight = Sizes{each.x[0], 1, each.x[2], 1};  // a row of weight for each plane
  each.shift = each.weight;
  cases->push_back(each);
  each.weight = each.x;  // a row of weight for each
  each.early = kernels::Early::kNot;
  cases->push_back(each);
}

}  // namespace

std::vector<NormCase> all_cases(std::uint32_t subgroup_size) {
  std::vector<NormCase> cases;
  add_widths(&cases);
  add_rows(&cases);
  add_operands(&cases);
  add_values(&cases);
  for (const Norm norm : kNorms) {
    for (const Mix& mix : {kSame[0], kSame[1], kMixed[1]}) {
      add_forced(norm, mix, true, subgroup_size, &cases);
      add_forced(norm, mix, false, subgroup_size, &cases);
    }
  }
  if (subgroup_size >= 32) {  // where choose() gives threads several rows; a CPU driver would take too long
    for (const Norm norm : {Norm::kRms, Norm::kLayer}) {
      cases.push_back(make(norm, kSame[1], Dtype::kFloat, {2048, 515, 1, 1}));
    }
  }
  return cases;
}

}  // namespace etvk_guard::harness
