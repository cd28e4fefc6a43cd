// SPDX-License-Identifier: Apache-2.0
#include <etvk_guard/plan.h>

#include "bind.h"

namespace etvk_guard::bind {

namespace {

// kind, dtype, storage, layout, dims.
using TensorRow = std::tuple<std::string, int8_t, uint8_t, uint8_t, std::vector<int64_t>>;
// prepack, cast, relayout, dtype, storage, layout, rows, shared_rows, view; None where the operand takes no part.
using StepsRow =
    std::optional<std::tuple<bool, bool, bool, int8_t, uint8_t, uint8_t, const char*, int64_t, std::vector<int64_t>>>;
// form, reason, problem, text, unit_weight, zero_bias, norm_dtype, norm_dims, cast_norm, multiply, add, multiply_dims,
// added_dims, computed, relayout_x, relayout_out.
using PlanRow = std::tuple<const char*, const char*, const char*, py::str, bool, bool, int8_t, std::vector<int64_t>, bool,
                           StepsRow, StepsRow, std::vector<int64_t>, int32_t, bool, bool, bool>;

template <typename T, size_t N>
T pick(const std::string& name, const char* what, const std::pair<const char*, T> (&table)[N]) {
  for (const auto& [known, value] : table) {
    if (name == known) {
      return value;
    }
  }
  throw py::value_error(std::string("unknown ") + what + " '" + name + "'");
}

constexpr std::pair<const char*, Kind> kKinds[] = {{"none", Kind::kNone},
                                                   {"constant", Kind::kConstant},
                                                   {"runtime", Kind::kRuntime},
                                                   {"mutable", Kind::kMutable},
                                                   {"scalar", Kind::kScalar}};
constexpr std::pair<const char*, NormKind> kNorms[] = {{"rms", NormKind::kRms},
                                                       {"layer", NormKind::kLayer},
                                                       {"group", NormKind::kGroup},
                                                       {"batch", NormKind::kBatch}};
constexpr std::pair<const char*, Target> kTargets[] = {
    {"lowering", Target::kLowering}, {"file", Target::kFile}, {"builder", Target::kBuilder}};

TensorDesc tensor(const TensorRow& row) {
  const auto& [kind, dtype, storage, layout, dims] = row;
  return {pick(kind, "kind", kKinds), static_cast<DType>(dtype), static_cast<Storage>(storage), static_cast<Layout>(layout),
          dims};
}

const char* rows_name(Rows rows) {
  switch (rows) {
    case Rows::kNone:
      return "none";
    case Rows::kOne:
      return "one";
    case Rows::kBatch:
      return "batch";
    case Rows::kFull:
      return "full";
    case Rows::kOther:
      break;
  }
  return "other";
}

StepsRow steps(const OperandSteps& made) {
  if (!made.used) {
    return std::nullopt;
  }
  return StepsRow({made.prepack, made.cast, made.relayout, static_cast<int8_t>(made.dtype), static_cast<uint8_t>(made.storage),
                   static_cast<uint8_t>(made.layout), rows_name(made.rows), made.shared_rows, made.view});
}

PlanRow plan(const std::string& kind, const TensorRow& x, const TensorRow& weight, const TensorRow& bias, const TensorRow& out,
             int32_t normalized_dims, const TensorRow& mean, const TensorRow& variance, const std::string& target) {
  const NormSite site{pick(kind, "norm", kNorms), tensor(x),    tensor(weight),  tensor(bias), tensor(out),
                      normalized_dims,            tensor(mean), tensor(variance)};
  const NormPlan made = plan_norm(site, pick(target, "target", kTargets));
  return {name(made.form),
          name(made.reason),
          name(made.problem),
          text(describe(site, made)),
          made.unit_weight,
          made.zero_bias,
          static_cast<int8_t>(made.norm_dtype),
          made.norm_dims,
          made.cast_norm,
          steps(made.multiply),
          steps(made.add),
          made.multiply_dims,
          made.added_dims,
          made.computed,
          made.relayout_x,
          made.relayout_out};
}

}  // namespace

void bind_planner(py::module_& module) {
  module.def("plan_norm", &plan, py::arg("kind"), py::arg("x"), py::arg("weight"), py::arg("bias"), py::arg("out"),
             py::arg("normalized_dims"), py::arg("mean"), py::arg("variance"), py::arg("target"),
             "The legal form of a norm, and why.");
}

}  // namespace etvk_guard::bind
