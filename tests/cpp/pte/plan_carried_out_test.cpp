// SPDX-License-Identifier: Apache-2.0
//
// Every combination of the kinds, shapes, dtypes and representations below is planned, and each plan is carried out on small
// arrays: what the planned ops give must be what NumPy's rules give, and "stock" must be planned exactly where stock's kernel,
// which reads one row of the weight, gives the same.
#include <etvk_guard/plan.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>

namespace etvk_guard {
namespace {

using Dims = std::vector<int64_t>;

constexpr DType kF = DType::kFloat32;
constexpr DType kH = DType::kFloat16;

TensorDesc desc(Kind kind, Dims dims, DType dtype = DType::kFloat32, Storage storage = Storage::kTexture3D,
                Layout layout = Layout::kWidthPacked) {
  return {kind, dtype, storage, layout, std::move(dims)};
}

struct Array {
  Dims dims;
  std::vector<double> data;
};

int64_t count(const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()); }

// Values that no product or sum of others hits by chance.
Array numbers(const Dims& dims, double seed) {
  Array array{dims, std::vector<double>(static_cast<size_t>(count(dims)))};
  for (size_t i = 0; i < array.data.size(); ++i) {
    array.data[i] = std::sin(seed + 1.7 * static_cast<double>(i) * (1 + seed)) + 0.3 * seed;
  }
  return array;
}

std::optional<Dims> numpy_dims(Dims a, Dims b) {
  const size_t rank = std::max(a.size(), b.size());
  a.insert(a.begin(), rank - a.size(), 1);
  b.insert(b.begin(), rank - b.size(), 1);
  for (size_t i = 0; i < rank; ++i) {
    if (a[i] != b[i] && std::min(a[i], b[i]) != 1) {
      return std::nullopt;
    }
    a[i] = std::max(a[i], b[i]);
  }
  return a;
}

// Element of `array` that belongs to flat index `flat` of shape `dims`.
double pick(const Array& array, const Dims& dims, int64_t flat) {
  int64_t index = 0, stride = 1;
  for (size_t i = 0; i < dims.size(); ++i) {
    const size_t axis = dims.size() - 1 - i;
    const int64_t at = flat % dims[axis];
    flat /= dims[axis];
    if (i < array.dims.size()) {
      const int64_t size = array.dims[array.dims.size() - 1 - i];
      index += (size == 1 ? 0 : at) * stride;
      stride *= size;
    }
  }
  return array.data[static_cast<size_t>(index)];
}

std::optional<Array> elementwise(const Array& a, const Array& b, double (*op)(double, double)) {
  const std::optional<Dims> dims = numpy_dims(a.dims, b.dims);
  if (!dims) {
    return std::nullopt;
  }
  Array out{*dims, std::vector<double>(static_cast<size_t>(count(*dims)))};
  for (size_t i = 0; i < out.data.size(); ++i) {
    out.data[i] = op(pick(a, *dims, static_cast<int64_t>(i)), pick(b, *dims, static_cast<int64_t>(i)));
  }
  return out;
}
double times(double a, double b) { return a * b; }
double plus(double a, double b) { return a + b; }

// The norm with a weight and shift for each row: `weight(row, column)`.
Array norm(NormKind kind, const Array& x, const std::function<double(int64_t, int64_t)>& weight,
           const std::function<double(int64_t, int64_t)>& shift) {
  const int64_t width = x.dims.back();
  Array out = x;
  for (int64_t row = 0; row < count(x.dims) / width; ++row) {
    const double* from = x.data.data() + row * width;
    const double mean = kind == NormKind::kLayer ? std::accumulate(from, from + width, 0.0) / static_cast<double>(width) : 0;
    double square = 0;
    for (int64_t i = 0; i < width; ++i) {
      square += (from[i] - mean) * (from[i] - mean) / static_cast<double>(width);
    }
    for (int64_t i = 0; i < width; ++i) {
      out.data[static_cast<size_t>(row * width + i)] =
          (from[i] - mean) / std::sqrt(square + 1e-6) * weight(row, i) + shift(row, i);
    }
  }
  return out;
}

double unit(int64_t, int64_t) { return 1; }
double zero(int64_t, int64_t) { return 0; }

struct Values {
  Array x, weight, bias;
};

Values values_of(const NormSite& site) {
  return {numbers(site.x.dims, 0.37), numbers(site.weight.dims, 0.71), numbers(site.bias.dims, 0.53)};
}

bool has_bias(const NormSite& site) { return site.kind == NormKind::kLayer && site.bias.kind != Kind::kNone; }

// What the model means.
std::optional<Array> meaning(const NormSite& site, const Values& values) {
  std::optional<Array> out = norm(site.kind, values.x, unit, zero);
  if (site.weight.kind != Kind::kNone) {
    out = elementwise(*out, values.weight, times);
  }
  if (out && has_bias(site)) {
    out = elementwise(*out, values.bias, plus);
  }
  return out && out->dims == site.out.dims ? out : std::nullopt;
}

// What stock computes: it throws unless weight (and bias) are constants, and reads their first row, in order.
std::optional<Array> stock(const NormSite& site, const Values& values) {
  const int64_t width = site.x.dims.back();
  const auto throws = [&](const TensorDesc& operand) { return operand.kind != Kind::kConstant || count(operand.dims) < width; };
  if (throws(site.weight) || (site.kind == NormKind::kLayer && throws(site.bias)) || site.out.dims != site.x.dims) {
    return std::nullopt;
  }
  return norm(
      site.kind, values.x, [&](int64_t, int64_t i) { return values.weight.data[static_cast<size_t>(i)]; },
      [&](int64_t, int64_t i) { return site.kind == NormKind::kLayer ? values.bias.data[static_cast<size_t>(i)] : 0; });
}

bool close(const Array& a, const Array& b) {
  bool same = a.dims == b.dims;
  for (size_t i = 0; same && i < a.data.size(); ++i) {
    same = std::abs(a.data[i] - b.data[i]) < 1e-9;
  }
  return same;
}

bool is_float_dtype(DType dtype) { return dtype == kF || dtype == kH; }

// Textures of floats are converted as they are read and written.
bool in_textures(const NormSite& site) { return site.x.storage == Storage::kTexture3D; }

bool same_dtype(const TensorDesc& operand, const NormSite& site, bool converted) {
  return operand.dtype == site.x.dtype || (converted && is_float_dtype(operand.dtype));
}

// Whether an operand is, after its steps, what a binary op of the delegate takes beside `out`.
void expect_usable(const TensorDesc& operand, const OperandSteps& steps, const TensorDesc& out) {
  const bool moved = steps.prepack || steps.relayout;
  EXPECT_EQ(steps.prepack, operand.kind == Kind::kConstant);
  EXPECT_EQ(steps.cast ? steps.dtype : operand.dtype, out.dtype);
  EXPECT_EQ(moved ? steps.storage : operand.storage, out.storage);
  EXPECT_EQ(moved ? steps.layout : operand.layout, out.layout);
}

// Carries out a plan in ops of the delegate.
std::optional<Array> carry_out(const NormSite& site, const NormPlan& plan, const Values& values) {
  NormSite inner = site;
  inner.out.dims = plan.norm_dims;
  Values own = values;
  const auto neutral = [&](TensorDesc* operand, Array* array, double value) {
    *operand = desc(Kind::kConstant, {site.x.dims.back()}, plan.norm_dtype);
    *array = {operand->dims, std::vector<double>(static_cast<size_t>(site.x.dims.back()), value)};
  };
  if (plan.unit_weight) {
    neutral(&inner.weight, &own.weight, 1);
  }
  if (plan.zero_bias) {
    neutral(&inner.bias, &own.bias, 0);
  }
  EXPECT_TRUE(same_dtype(inner.weight, site, in_textures(site)));
  EXPECT_EQ(plan.cast_norm, site.out.dtype != site.x.dtype);
  std::optional<Array> out = stock(inner, own);
  if (out && plan.multiply.used) {
    expect_usable(site.weight, plan.multiply, site.out);
    out = elementwise(*out, values.weight, times);
  }
  if (out && plan.add.used) {
    EXPECT_EQ(out->dims, plan.multiply_dims);
    expect_usable(site.bias, plan.add, site.out);
    out = elementwise(*out, values.bias, plus);
  }
  return out;
}

// Carries out a plan in our kernel: the row of an operand that it reads for a row of x.
std::optional<Array> carry_out_fused(const NormSite& site, const NormPlan& plan, const Values& values) {
  const int64_t width = site.x.dims.back();
  const auto reader = [&](const OperandSteps& steps, const Array& array, double absent) {
    return [&, absent](int64_t row, int64_t i) {
      if (!steps.used) {
        return absent;
      }
      const int64_t rows = count(array.dims) / width;
      const int64_t of = steps.rows == Rows::kOne ? 0 : steps.rows == Rows::kFull ? row : (row / steps.shared_rows) % rows;
      return array.data[static_cast<size_t>(of * width + i)];
    };
  };
  return norm(site.kind, values.x, reader(plan.multiply, values.weight, 1), reader(plan.add, values.bias, 0));
}

bool is_row(const TensorDesc& operand, const NormSite& site, bool converted) {
  return operand.kind == Kind::kConstant && same_dtype(operand, site, converted) && !operand.dims.empty() &&
         operand.dims.back() == site.x.dims.back() && count(operand.dims) == site.x.dims.back();
}

// Whether stock runs the norm as it is, and right.
bool is_legal(const NormSite& site, bool converted) {
  return is_row(site.weight, site, converted) && (site.kind == NormKind::kRms || is_row(site.bias, site, converted)) &&
         site.out.dims == site.x.dims && same_dtype(site.out, site, converted);
}

// Whether something that the file's repair has to move cannot be moved.
bool beyond_repair(const NormSite& site) {
  const auto unreadable = [&](const TensorDesc& operand) {
    return operand.kind == Kind::kMutable || operand.kind == Kind::kScalar || operand.dims.size() > 4 ||
           operand.dtype == DType::kInt64;
  };
  const auto moves = [&](const TensorDesc& operand) { return !is_row(operand, site, in_textures(site)); };
  const bool moves_bias =
      has_bias(site) && (moves(site.bias) || (site.weight.kind != Kind::kNone && moves(site.weight)));
  return site.out.dims.size() > 4 || (site.weight.kind != Kind::kNone && unreadable(site.weight)) ||
         (moves_bias && unreadable(site.bias));
}

int checked = 0;

void check_site(const NormSite& site) {
  const Values values = values_of(site);
  const std::optional<Array> wanted = meaning(site, values);
  const std::optional<Array> given = stock(site, values);
  const bool legal = is_legal(site, in_textures(site));
  const NormPlan file = plan_norm(site, Target::kFile);
  ++checked;
  ASSERT_EQ(file.form == Form::kStock, legal);
  if (wanted && site.x.dims.back() > 1) {  // a row of one is right also where its shape is not [.., 1]
    const auto read_right = [&](const TensorDesc& tensor) { return same_dtype(tensor, site, in_textures(site)); };
    ASSERT_EQ(legal, given && close(*given, *wanted) && read_right(site.out) && read_right(site.weight) &&
                         (site.kind == NormKind::kRms || read_right(site.bias)));
  }
  if (!legal) {
    ASSERT_EQ(file.form == Form::kRefused, !wanted || beyond_repair(site));
  }
  if (file.form == Form::kUnit || file.form == Form::kUnitThenOps) {
    const std::optional<Array> made = carry_out(site, file, values);
    ASSERT_TRUE(made && close(*made, *wanted));
    ASSERT_EQ(file.form == Form::kUnit, !file.multiply.used && !file.add.used && !file.cast_norm);
  }
  const NormPlan builder = plan_norm(site, Target::kBuilder);
  ASSERT_EQ(builder.form == Form::kRefused, file.form == Form::kRefused);
  if (builder.form == Form::kUnitThenOps) {
    const std::optional<Array> made = carry_out(site, builder, values);
    ASSERT_TRUE(made && close(*made, *wanted));
  } else if (builder.form == Form::kFusedRow || builder.form == Form::kFusedBatch || builder.form == Form::kFusedFull) {
    const std::optional<Array> made = carry_out_fused(site, builder, values);
    ASSERT_TRUE(made && close(*made, *wanted));
  }
  const Form lowering = plan_norm(site, Target::kLowering).form;
  const bool legal_anywhere = is_legal(site, false);
  ASSERT_EQ(lowering == Form::kStock, legal_anywhere);
  ASSERT_EQ(lowering == Form::kRefused, !legal_anywhere && !wanted);
}

const Dims kShapes[] = {{4}, {3, 4}, {2, 3, 4}, {2, 1, 3, 4}, {2, 3, 2, 4}, {1, 1, 1, 5}, {3, 1}};

// Shapes for an operand of x: all that divide it, some that raise the rank, some that do not fit.
std::vector<Dims> operand_shapes(const Dims& x) {
  std::vector<Dims> shapes{{}, {1}};
  for (size_t rank = 1; rank <= x.size(); ++rank) {
    for (unsigned mask = 0; mask < (1u << rank); ++mask) {
      Dims dims(x.end() - static_cast<int64_t>(rank), x.end());
      for (size_t i = 0; i < rank; ++i) {
        dims[i] = (mask >> i & 1u) != 0 ? 1 : dims[i];
      }
      shapes.push_back(dims);
    }
  }
  Dims up = x;
  up.insert(up.begin(), 1);
  shapes.push_back(up);
  up.front() = 2;
  shapes.push_back(up);
  shapes.push_back({x.back() + 1});
  shapes.push_back({5, x.back()});
  std::sort(shapes.begin(), shapes.end());
  shapes.erase(std::unique(shapes.begin(), shapes.end()), shapes.end());
  return shapes;
}

const Kind kKinds[] = {Kind::kConstant, Kind::kRuntime, Kind::kMutable, Kind::kScalar};

std::vector<TensorDesc> operands(const Dims& x, const std::vector<DType>& dtypes) {
  std::vector<TensorDesc> all{TensorDesc()};
  all[0].dtype = dtypes[0];
  for (const Kind kind : kKinds) {
    for (const Dims& dims : operand_shapes(x)) {
      if ((kind == Kind::kMutable || kind == Kind::kScalar) && dims != Dims{x.back()}) {
        continue;  // their shape makes no difference
      }
      for (const DType dtype : dtypes) {
        all.push_back(desc(kind, kind == Kind::kScalar ? Dims() : dims, dtype));
      }
    }
  }
  return all;
}

// The result that the model would have, or x's where there is none.
NormSite site_of(NormKind kind, const Dims& x, const TensorDesc& weight, const TensorDesc& bias, DType x_dtype,
                 DType out_dtype) {
  NormSite site;
  site.kind = kind;
  site.x = desc(Kind::kRuntime, x, x_dtype);
  site.weight = weight;
  site.bias = bias;
  std::optional<Dims> dims = x;
  dims = weight.kind == Kind::kNone ? dims : numpy_dims(*dims, weight.dims);
  if (dims && kind == NormKind::kLayer && bias.kind != Kind::kNone) {
    dims = numpy_dims(*dims, bias.dims);
  }
  site.out = desc(Kind::kRuntime, dims.value_or(x), out_dtype);
  return site;
}

std::string trace(const NormSite& site) {
  return describe(site, plan_norm(site, Target::kFile)) + " kind " + std::to_string(static_cast<int>(site.kind)) + " weight " +
         ::testing::PrintToString(site.weight.dims) + " bias " + ::testing::PrintToString(site.bias.dims) + " x " +
         ::testing::PrintToString(site.x.dims) + " out " + ::testing::PrintToString(site.out.dims);
}

TEST(PlanCarriedOut, RmsNorm) {
  checked = 0;
  for (const Dims& x : kShapes) {
    for (const DType x_dtype : {kF, kH}) {
      for (const DType out_dtype : {kF, kH}) {
        for (const TensorDesc& weight : operands(x, {kF, kH, DType::kInt32, DType::kBool, DType::kInt64})) {
          NormSite site = site_of(NormKind::kRms, x, weight, {}, x_dtype, out_dtype);
          for (const Storage storage : {Storage::kTexture3D, Storage::kBuffer}) {
            site.x.storage = site.weight.storage = site.out.storage = storage;
            check_site(site);
            ASSERT_FALSE(HasFailure()) << trace(site);
          }
        }
      }
    }
  }
  EXPECT_GT(checked, 6000);
}

TEST(PlanCarriedOut, LayerNorm) {
  checked = 0;
  for (const Dims& x : kShapes) {
    const std::vector<TensorDesc> all = operands(x, {kF});
    for (const TensorDesc& weight : all) {
      for (const TensorDesc& bias : all) {
        const NormSite site = site_of(NormKind::kLayer, x, weight, bias, kF, kF);
        check_site(site);
        ASSERT_FALSE(HasFailure()) << trace(site);
      }
    }
  }
  EXPECT_GT(checked, 3000);
}

// Every representation of x and of a run-time multiplier.
TEST(PlanCarriedOut, Representations) {
  const Storage storages[] = {Storage::kBuffer, Storage::kTexture3D, Storage::kTexture2D};
  for (const Storage x_storage : storages) {
    for (int x_layout = 0; x_layout < 5; ++x_layout) {
      for (const Storage storage : storages) {
        for (int layout = 0; layout < 5; ++layout) {
          for (const NormKind kind : {NormKind::kRms, NormKind::kLayer}) {
            NormSite site = site_of(kind, {2, 3, 64},
                                    desc(Kind::kRuntime, {2, 1, 64}, kF, storage, static_cast<Layout>(layout)), {}, kF, kF);
            site.x.storage = site.out.storage = x_storage;
            site.x.layout = site.out.layout = static_cast<Layout>(x_layout);
            const bool texture = x_storage == Storage::kTexture3D;
            const bool norm_takes_x =
                x_storage != Storage::kTexture2D && x_layout <= 2 && (!texture || kind == NormKind::kLayer || x_layout == 0);
            const bool can_move = storage != Storage::kTexture2D && layout <= 2;
            const NormPlan plan = plan_norm(site, Target::kFile);
            ASSERT_EQ(plan.form != Form::kRefused, norm_takes_x && can_move);
            if (plan.form != Form::kRefused) {
              ASSERT_EQ(plan.multiply.relayout, storage != x_storage || layout != x_layout);
              expect_usable(site.weight, plan.multiply, site.out);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace etvk_guard
