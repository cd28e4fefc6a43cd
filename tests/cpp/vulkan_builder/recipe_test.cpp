// SPDX-License-Identifier: Apache-2.0
//
// Recipes for every combination of operands, carried out on numbers: what comes out must be norm(x) * weight + bias by NumPy's rule of
// broadcasting. Kernels are replaced by what norm_kernels.h says of them.
#include "recipe.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace etvk_guard::vulkan {
namespace {

using Dims = std::vector<int64_t>;
using kernels::OperandMode;

constexpr double kEps = 1e-6;

// ---- a tensor of numbers

struct Numbers {
  Dims dims;
  std::vector<double> values;
};

int64_t product(const Dims& dims) {
  int64_t n = 1;
  for (const int64_t size : dims) {
    n *= size;
  }
  return n;
}

Numbers make_numbers(const Dims& dims, int seed) {
  Numbers numbers{dims, {}};
  for (int64_t i = 0; i < product(dims); ++i) {
    numbers.values.push_back(std::sin(static_cast<double>(i * 7 + seed)) + 0.1);
  }
  return numbers;
}

Dims broadcast_dims(const Dims& a, const Dims& b) {
  Dims dims(std::max(a.size(), b.size()));
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t left = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t right = i < b.size() ? b[b.size() - 1 - i] : 1;
    dims[dims.size() - 1 - i] = std::max(left, right);
  }
  return dims;
}

double at(const Numbers& tensor, const Dims& dims, int64_t index) {
  int64_t offset = 0, stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t size = dims[dims.size() - 1 - i];
    const int64_t place = index % size;
    index /= size;
    if (i < tensor.dims.size()) {
      const int64_t own = tensor.dims[tensor.dims.size() - 1 - i];
      offset += own == 1 ? 0 : place * stride;
      stride *= own;
    }
  }
  return tensor.values[static_cast<size_t>(offset)];
}

template <typename Op>
Numbers elementwise(const Numbers& a, const Numbers& b, Op op) {
  Numbers result{broadcast_dims(a.dims, b.dims), {}};
  for (int64_t i = 0; i < product(result.dims); ++i) {
    result.values.push_back(op(at(a, result.dims, i), at(b, result.dims, i)));
  }
  return result;
}

Numbers multiply(const Numbers& a, const Numbers& b) {
  return elementwise(a, b, [](double x, double y) { return x * y; });
}
Numbers add(const Numbers& a, const Numbers& b) {
  return elementwise(a, b, [](double x, double y) { return x + y; });
}

Numbers norm(const Numbers& x, NormKind kind) {
  Numbers result = x;
  const auto width = static_cast<size_t>(x.dims.back());
  for (size_t row = 0; row < x.values.size() / width; ++row) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < width; ++i) {
      mean += kind == NormKind::kLayer ? x.values[row * width + i] / static_cast<double>(width) : 0.0;
    }
    for (size_t i = 0; i < width; ++i) {
      square += std::pow(x.values[row * width + i] - mean, 2) / static_cast<double>(width);
    }
    for (size_t i = 0; i < width; ++i) {
      result.values[row * width + i] = (x.values[row * width + i] - mean) / std::sqrt(square + kEps);
    }
  }
  return result;
}

// ---- what our kernel does with an operand, by its mode (norm_kernels.h)

double operand_at(OperandMode mode, const Numbers& operand, const std::int32_t x[4], int64_t row, int64_t column) {
  std::int32_t sizes[4];
  set_whcn(operand.dims, sizes);
  const int64_t h = row % x[1], c = row / x[1] % x[2], n = row / x[1] / x[2];
  int64_t operand_row = 0;
  if (mode == OperandMode::kFull) {
    operand_row = row;
  } else if (mode == OperandMode::kBroadcast || mode == OperandMode::kPlane) {
    operand_row = (sizes[1] == 1 ? 0 : h) + sizes[1] * ((sizes[2] == 1 ? 0 : c) + sizes[2] * (sizes[3] == 1 ? 0 : n));
  }
  return operand.values.at(static_cast<size_t>(operand_row * x[0] + column));
}

Numbers our_kernel(const kernels::NormProblem& problem, const Numbers& x, const Numbers& weight, const Numbers& shift) {
  Numbers result = norm(x, problem.norm == kernels::Norm::kRms ? NormKind::kRms : NormKind::kLayer);
  const int64_t width = x.dims.back();
  for (int64_t i = 0; i < product(x.dims); ++i) {
    double& value = result.values[static_cast<size_t>(i)];
    if (problem.weight != OperandMode::kNone) {
      value *= operand_at(problem.weight, weight, problem.x_sizes, i / width, i % width);
    }
    if (problem.shift != OperandMode::kNone) {
      value += operand_at(problem.shift, shift, problem.x_sizes, i / width, i % width);
    }
  }
  return result;
}

// ---- carrying a recipe out

struct Values {
  Numbers x, weight, bias;
};

bool is_fused(Path path) { return path == Path::kFusedRow || path == Path::kFusedBatch || path == Path::kFusedFull; }

Numbers carry_out(const NormSite& site, const Recipe& recipe, const Values& values) {
  if (is_fused(recipe.path)) {
    return our_kernel(recipe.problem, values.x, values.weight, values.bias);
  }
  Numbers result = norm(values.x, site.kind);
  if (recipe.our_norm) {
    EXPECT_EQ(recipe.problem.weight, OperandMode::kNone);
    EXPECT_EQ(recipe.problem.shift, OperandMode::kNone);
  } else if (recipe.path == Path::kStock || !recipe.plan.unit_weight) {
    result = multiply(result, values.weight);  // stock reads a legal weight only: checked below
  }
  if (site.kind == NormKind::kLayer && !recipe.our_norm && (recipe.path == Path::kStock || !recipe.plan.zero_bias)) {
    result = add(result, values.bias);
  }
  if (recipe.plan.multiply.used && recipe.path != Path::kStock) {
    result = multiply(result, values.weight);
  }
  if (recipe.plan.add.used && recipe.path != Path::kStock) {
    result = add(result, values.bias);
  }
  return result;
}

Numbers expected(const NormSite& site, const Values& values) {
  Numbers result = norm(values.x, site.kind);
  if (site.weight.kind != Kind::kNone) {
    result = multiply(result, values.weight);
  }
  return site.bias.kind == Kind::kNone ? result : add(result, values.bias);
}

// ---- the table

TensorDesc tensor(Kind kind, Dims dims, DType dtype = DType::kFloat32, Storage storage = Storage::kTexture3D,
                  Layout layout = Layout::kWidthPacked) {
  return {kind, dtype, storage, layout, std::move(dims)};
}

kernels::DeviceLimits device() {
  kernels::DeviceLimits limits;
  limits.subgroup_size = 32;
  limits.subgroup_arithmetic = limits.storage_16bit = true;
  limits.max_threads = limits.max_size_x = limits.max_size_y = 1024;
  return limits;
}

std::vector<TensorDesc> operands(const Dims& x) {
  std::vector<TensorDesc> all = {TensorDesc{}};
  const int64_t width = x.back();
  std::vector<Dims> shapes = {{width}, {1, width}, {1}, {}, x};
  for (size_t keep = 0; keep < 8; ++keep) {  // x's leading sizes, some of them 1
    Dims dims = x;
    for (size_t i = 0; i + 1 < x.size(); ++i) {
      dims[i] = (keep >> i & 1) != 0 ? x[i] : 1;
    }
    shapes.push_back(dims);
  }
  for (const Dims& dims : shapes) {
    for (const Kind kind : {Kind::kConstant, Kind::kRuntime}) {
      for (const Storage storage : {Storage::kBuffer, Storage::kTexture3D}) {
        for (const Layout layout : {Layout::kWidthPacked, Layout::kChannelsPacked}) {
          for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
            all.push_back(tensor(kind, dims, dtype, storage, layout));
          }
        }
      }
    }
  }
  return all;
}

// What must hold of every recipe, whatever its numbers are.
void check_sound(const NormSite& site, const Recipe& recipe, bool has_device) {
  if (!has_device) {
    ASSERT_FALSE(recipe.our_norm);
    ASSERT_FALSE(is_fused(recipe.path));
  }
  if (is_fused(recipe.path)) {
    ASSERT_TRUE(recipe.our_norm);
    ASSERT_EQ(site.x.layout, Layout::kWidthPacked);
  }
  if (recipe.path == Path::kStock) {
    ASSERT_EQ(site.weight.kind, Kind::kConstant);
    ASSERT_EQ(product(site.weight.dims), site.x.dims.back());
  }
  if (!recipe.our_norm) {
    return;
  }
  const bool buffer = site.x.storage == Storage::kBuffer;
  ASSERT_EQ(recipe.problem.x_storage, buffer ? kernels::Storage::kBuffer : kernels::Storage::kTexture3d);
  ASSERT_EQ(recipe.problem.dtype, site.x.dtype == DType::kFloat16 ? kernels::Dtype::kHalf : kernels::Dtype::kFloat);
  if (!is_fused(recipe.path)) {
    return;
  }
  for (const auto& [steps, desc] : {std::pair{&recipe.plan.multiply, &site.weight}, std::pair{&recipe.plan.add, &site.bias}}) {
    if (!steps->used) {
      ASSERT_EQ(desc->kind, Kind::kNone);
      continue;
    }
    ASSERT_EQ(steps->prepack, desc->kind == Kind::kConstant);
    // A texture's sampler converts.
    ASSERT_EQ(steps->cast, desc->dtype != site.x.dtype && steps->storage == Storage::kBuffer);
    ASSERT_EQ(steps->dtype, steps->cast ? site.x.dtype : desc->dtype);
    ASSERT_EQ(steps->layout, Layout::kWidthPacked);
    ASSERT_EQ(recipe.problem.operand_storage == kernels::Storage::kBuffer, steps->storage == Storage::kBuffer);
    if (!steps->prepack) {
      ASSERT_EQ(steps->relayout, desc->storage != steps->storage || desc->layout != steps->layout);
    }
  }
}

void check_site(const NormSite& site, const kernels::DeviceLimits* limits, std::map<Path, int>* seen) {
  const Recipe recipe = make_recipe(site, limits);
  ++(*seen)[recipe.path];
  check_sound(site, recipe, limits != nullptr);
  if (recipe.path == Path::kRefused) {
    ASSERT_FALSE(recipe.message.empty());
    return;
  }
  const Values values = {make_numbers(site.x.dims, 1), make_numbers(site.weight.dims, 2), make_numbers(site.bias.dims, 3)};
  const Numbers want = expected(site, values);
  const Numbers got = carry_out(site, recipe, values);
  ASSERT_EQ(got.dims, want.dims);
  for (size_t i = 0; i < want.values.size(); ++i) {
    ASSERT_NEAR(got.values[i], want.values[i], 1e-12);
  }
}

std::string show(const NormSite& site) {
  return "x " + describe(site.x) + ", weight " + describe(site.weight) + ", bias " + describe(site.bias) + ", out " + describe(site.out);
}

TEST(Recipe, EveryWeightOfRmsNorm) {
  std::map<Path, int> seen;
  const kernels::DeviceLimits limits = device();
  for (const Dims& dims : {Dims{5}, Dims{4, 6}, Dims{2, 3, 8}, Dims{2, 3, 4, 6}, Dims{1, 3, 8}}) {
    for (const Storage storage : {Storage::kBuffer, Storage::kTexture3D}) {
      for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
        for (const TensorDesc& weight : operands(dims)) {
          NormSite site;
          site.x = tensor(Kind::kRuntime, dims, dtype, storage);
          site.weight = weight;
          site.out = tensor(Kind::kRuntime, broadcast_dims(dims, weight.dims), dtype, storage);
          SCOPED_TRACE(show(site));
          check_site(site, &limits, &seen);
          check_site(site, nullptr, &seen);
          ASSERT_FALSE(testing::Test::HasFatalFailure());
        }
      }
    }
  }
  for (const Path path : {Path::kStock, Path::kFusedRow, Path::kFusedBatch, Path::kFusedFull, Path::kUnitThenOps}) {
    EXPECT_GT(seen[path], 0) << name(path);
  }
  EXPECT_EQ(seen[Path::kRefused], 0);
}

TEST(Recipe, EveryWeightAndBiasOfLayerNorm) {
  std::map<Path, int> seen;
  const kernels::DeviceLimits limits = device();
  const Dims dims = {2, 3, 4};
  for (const Storage storage : {Storage::kBuffer, Storage::kTexture3D}) {
    for (const TensorDesc& weight : operands(dims)) {
      for (const TensorDesc& bias : operands(dims)) {
        NormSite site;
        site.kind = NormKind::kLayer;
        site.x = tensor(Kind::kRuntime, dims, DType::kFloat32, storage);
        site.weight = weight;
        site.bias = bias;
        site.out = site.x;
        SCOPED_TRACE(show(site));
        check_site(site, &limits, &seen);
        ASSERT_FALSE(testing::Test::HasFatalFailure());
      }
    }
  }
  EXPECT_GT(seen[Path::kFusedRow], 0);
  EXPECT_GT(seen[Path::kFusedFull], 0);
  EXPECT_EQ(seen[Path::kRefused], 0);
}

TEST(Recipe, OperandsOfOneKernelShareAStorage) {
  NormSite site;
  site.kind = NormKind::kLayer;
  site.x = site.out = tensor(Kind::kRuntime, {2, 8});
  site.weight = tensor(Kind::kRuntime, {8}, DType::kFloat32, Storage::kBuffer);
  site.bias = tensor(Kind::kRuntime, {8});
  const kernels::DeviceLimits limits = device();
  Recipe recipe = make_recipe(site, &limits);
  EXPECT_FALSE(recipe.plan.multiply.relayout);
  EXPECT_TRUE(recipe.plan.add.relayout);
  EXPECT_EQ(recipe.plan.add.storage, Storage::kBuffer);
  site.weight.kind = Kind::kConstant;  // is copied anyway: then to where the other one is
  recipe = make_recipe(site, &limits);
  EXPECT_EQ(recipe.plan.multiply.storage, Storage::kTexture3D);
  EXPECT_FALSE(recipe.plan.add.relayout);
}

TEST(Recipe, ConstantsAreInBuffersWhereThatIsFaster) {
  struct Row {
    DType x, weight;
    int64_t width;
    uint32_t subgroup;
    Storage storage;
  };
  const Row rows[] = {{DType::kFloat32, DType::kFloat32, 8, 32, Storage::kBuffer},    {DType::kFloat16, DType::kFloat16, 8, 32, Storage::kBuffer},
                      {DType::kFloat16, DType::kFloat32, 8, 32, Storage::kTexture3D}, {DType::kFloat32, DType::kFloat32, 7, 32, Storage::kTexture3D},
                      {DType::kFloat32, DType::kFloat32, 8, 64, Storage::kTexture3D}, {DType::kFloat32, DType::kFloat32, 8, 8, Storage::kTexture3D}};
  for (const Row& row : rows) {
    NormSite site;
    site.kind = NormKind::kLayer;
    site.x = site.out = tensor(Kind::kRuntime, {2, row.width}, row.x);
    site.weight = site.bias = tensor(Kind::kConstant, {row.width}, row.weight);
    kernels::DeviceLimits limits = device();
    limits.subgroup_size = row.subgroup;
    SCOPED_TRACE(show(site));
    const Recipe recipe = make_recipe(site, &limits);
    EXPECT_EQ(recipe.plan.multiply.storage, row.storage);
    EXPECT_EQ(recipe.plan.add.storage, row.storage);
    EXPECT_FALSE(recipe.plan.multiply.cast);
  }
}

TEST(Recipe, WithoutHalfStorageTheDelegatesOwnOpsAreUsed) {
  kernels::DeviceLimits limits = device();
  limits.storage_16bit = false;
  NormSite site;  // an odd width: the kernel for it reads half by half
  site.x = site.out = tensor(Kind::kRuntime, {2, 7}, DType::kFloat16, Storage::kBuffer);
  site.weight = tensor(Kind::kConstant, {7}, DType::kFloat16, Storage::kBuffer);
  EXPECT_EQ(make_recipe(site, &limits).path, Path::kStock);
  site.weight.kind = Kind::kRuntime;
  const Recipe recipe = make_recipe(site, &limits);
  EXPECT_EQ(recipe.path, Path::kUnitThenOps);
  EXPECT_FALSE(recipe.our_norm);
}

TEST(Recipe, RefusalNamesOpOperandsShapesAndDtypes) {
  NormSite site;
  site.x = site.out = tensor(Kind::kRuntime, {2, 8});
  site.weight = tensor(Kind::kRuntime, {3, 5}, DType::kInt32, Storage::kBuffer);
  const kernels::DeviceLimits limits = device();
  const Recipe recipe = make_recipe(site, &limits);
  ASSERT_EQ(recipe.path, Path::kRefused);
  for (const char* part : {"et_vk.rms_norm.default", "x float32 [2, 8] texture width-packed", "weight int32 [3, 5] buffer", "out float32 [2, 8]"}) {
    EXPECT_NE(recipe.message.find(part), std::string::npos) << part << " in: " << recipe.message;
  }
}

TEST(Recipe, FitsAfterAResize) {
  const std::int32_t x[4] = {8, 5, 2, 1};
  const std::int32_t row[4] = {8, 1, 1, 1}, batch[4] = {8, 1, 2, 1}, full[4] = {8, 5, 2, 1}, other[4] = {8, 4, 1, 1}, narrow[4] = {4, 1, 1, 1};
  EXPECT_TRUE(still_fits(OperandMode::kOneRow, x, row));
  EXPECT_FALSE(still_fits(OperandMode::kOneRow, x, batch));
  EXPECT_TRUE(still_fits(OperandMode::kBroadcast, x, batch));
  EXPECT_TRUE(still_fits(OperandMode::kBroadcast, x, full));
  EXPECT_TRUE(still_fits(OperandMode::kBroadcast, x, row));
  EXPECT_TRUE(still_fits(OperandMode::kPlane, x, batch));
  EXPECT_TRUE(still_fits(OperandMode::kPlane, x, row));
  EXPECT_FALSE(still_fits(OperandMode::kPlane, x, full));
  EXPECT_TRUE(still_fits(OperandMode::kFull, x, full));
  EXPECT_FALSE(still_fits(OperandMode::kFull, x, batch));
  for (const OperandMode mode : {OperandMode::kOneRow, OperandMode::kBroadcast, OperandMode::kFull, OperandMode::kPlane}) {
    EXPECT_FALSE(still_fits(mode, x, other));
    EXPECT_FALSE(still_fits(mode, x, narrow));
    EXPECT_FALSE(still_fits(mode, x, nullptr));
  }
  EXPECT_TRUE(still_fits(OperandMode::kNone, x, nullptr));
}

}  // namespace
}  // namespace etvk_guard::vulkan
