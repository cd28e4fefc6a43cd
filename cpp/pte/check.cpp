// SPDX-License-Identifier: Apache-2.0
#include <etvk_guard/plan.h>

#include "context.h"
#include "error.h"
#include "fix.h"
#include "operands.h"
#include "program.h"
#include "quirks.h"
#include "site.h"

namespace etvk_guard {
namespace {

// The name in the contract of what a norm produces; it has no row of its own.
constexpr const char* kResultName = "out";

// Ops whose builders take an input of one rank only, and what another rank comes to.
struct InputRank {
  std::string_view op;
  size_t rank;
  FindingCode code;
};
constexpr InputRank kInputRanks[] = {
    {"aten._native_batch_norm_legit_no_training.default", 4, FindingCode::kNormDims},
    {"aten.native_group_norm.default", 4, FindingCode::kNormRank},
};

bool is_row(const TensorDesc& desc, int64_t row) {
  return !desc.dims.empty() && desc.dims.back() == row && numel(desc.dims) == static_cast<uint64_t>(row);
}

std::string tensor_text(const TensorDesc& desc) { return std::string(dtype_name(desc.dtype)) + " " + dims_text(desc.dims); }

// A texture that says so itself: what "default" comes to is the delegate's affair.
bool is_packed_otherwise(const TensorDesc& desc) {
  return desc.storage == Storage::kTexture3D && desc.layout != Layout::kDefault && desc.layout != Layout::kWidthPacked;
}

bool refused(const NormSite& site, Target target) { return plan_norm(site, target).form == Form::kRefused; }

// Checks one op of one delegate.
class OpChecker {
 public:
  OpChecker(const ProgramImpl& program, const DelegateView& delegate, const GraphView& graph, const GraphContext& context,
            bool guarded, uint32_t index, std::vector<Finding>* findings)
      : program_(program),
        delegate_(delegate),
        graph_(graph),
        context_(context),
        guarded_(guarded),
        index_(index),
        findings_(findings),
        args_(graph.arg_count(index)) {}

  void run() {
    const OpInfo* info = find_op(graph_.op_name(index_));
    if (find_missing_op(graph_.op_name(index_)) != nullptr) {
      add(FindingCode::kMissingOp, "", "the exporter writes this op, but no runtime registers it", false);
      return;
    }
    if (info == nullptr) {
      add(FindingCode::kUnknownOp, "", "no release of the Vulkan delegate that is known here has this op", false);
      return;
    }
    norm_ = info->row_count == 0 ? nullptr : row_norm_args();
    for (uint16_t i = 0; i < info->row_count; ++i) {
      check_row(kPrepackRows[info->first_row + i]);
    }
    check_lists(*info);
    check_constant_inputs(*info);
    check_input_dims();
    check_quirks();
    if (norm_ != nullptr) {
      check_result();
    }
  }

 private:
  // Of a norm over the last dim.
  const NormArgs* row_norm_args() const {
    const NormArgs* args = norm_args(graph_, index_);
    return args != nullptr && (args->kind == NormKind::kRms || args->kind == NormKind::kLayer) ? args : nullptr;
  }

  // The value at an argument's position, or -1: the op has none there. The last argument is the result.
  int32_t operand(uint32_t position) const { return position + 1 < args_ ? graph_.arg(index_, position) : -1; }

  void check_row(const PrepackRow& row) {
    const int32_t id = operand(row.arg);
    FindingCode code = FindingCode::kNone;
    switch (id < 0 ? Kind::kNone : graph_.kind(id)) {
      case Kind::kNone:
        code = row.none_ok ? FindingCode::kNone : row.none;
        break;
      case Kind::kMutable:
        code = row.mutable_;
        break;
      case Kind::kRuntime:
      case Kind::kScalar:
        code = row.runtime;
        break;
      case Kind::kConstant:
        code = constant_code(row, id);
        break;
    }
    if (code != FindingCode::kNone) {
      report(code, row.name, culprit(row.name, id));
    }
  }

  // A size that only running tells where the op reads numbers.
  void check_lists(const OpInfo& info) {
    for (uint32_t position = 0; position + 1 < args_ && position < 32; ++position) {
      if (graph_.is_symbolic(graph_.arg(index_, position)) && (info.symbolic_mask >> position & 1u) == 0) {
        const std::string name = format("argument %u", position);
        report_at(FindingCode::kSymbolicSize, position, name, name + " is a list that holds a size which is computed while running");
      }
    }
  }

  void check_quirks() {
    std::vector<Quirk> quirks = find_quirks(graph_, index_);
    const CallPlan plan = quirks.empty() ? CallPlan() : plan_fix(graph_, index_, context_).call;
    for (Quirk& quirk : quirks) {
      const std::string refusal = plan.refusal_of(quirk.code);
      if (!refusal.empty()) {
        quirk.message += "; repair has no rewrite: " + refusal;
      }
      add(quirk.code, quirk.argument, std::move(quirk.message), plan.settles(quirk.code, quirk.argument));
    }
    if (graph_.op_name(index_) == kEmbeddingOp && args_ == kEmbeddingArgs) {
      const Fix fix = plan_fix(graph_, index_, context_);
      if (is_misplaced(fix.embedding.indices, fix.embedding.out)) {
        report(FindingCode::kEmbeddingPacking, "out",
               "the result, " + tensor_text(fix.embedding.out) + ", is a texture that is not packed along its width");
      }
    }
  }

  // A constant where the op takes a tensor of the graph only.
  void check_constant_inputs(const OpInfo& info) {
    uint32_t allowed = info.either_mask;
    for (uint16_t i = 0; i < info.row_count; ++i) {
      allowed |= 1u << kPrepackRows[info.first_row + i].arg;
    }
    for (uint32_t position = 0; position + 1 < args_ && position < 32; ++position) {
      const int32_t id = graph_.arg(index_, position);
      if ((allowed >> position & 1u) == 0 && graph_.kind(id) == Kind::kConstant) {
        const std::string name = format("argument %u", position);
        report_at(FindingCode::kConstantInput, position, name, culprit(name.c_str(), id));
      }
    }
  }

  void check_input_dims() {
    if (norm_ != nullptr && norm_->kind == NormKind::kLayer && make_site(graph_, index_).normalized_dims > 1) {
      add(FindingCode::kNormDims, "normalized_shape", "the norm is over more than the last dim", false);
    }
    const int32_t x = operand(0);
    if (norm_ != nullptr && norm_->kind == NormKind::kRms && graph_.tensor(x) != nullptr && is_packed_otherwise(graph_.describe(x))) {
      add(FindingCode::kNormLayout, "x", culprit("x", x), false);
    }
    for (const InputRank& row : kInputRanks) {
      if (row.op == graph_.op_name(index_) && x >= 0 && graph_.tensor(x) != nullptr &&
          graph_.describe(x).dims.size() != row.rank) {
        report(row.code, "x", culprit("x", x));
      }
    }
  }

  FindingCode constant_code(const PrepackRow& row, int32_t id) const {
    if (row.condition != Condition::kRowConstant || operand(0) < 0) {
      return FindingCode::kNone;
    }
    const TensorDesc x = graph_.describe(operand(0));
    const TensorDesc constant = graph_.describe(id);
    if (row.shape != FindingCode::kNone && !x.dims.empty() && !is_row(constant, x.dims.back())) {
      return row.shape;
    }
    return norm_ != nullptr && misread(constant, x) ? FindingCode::kNormDtype : FindingCode::kNone;
  }

  // Whether the norm's shader takes a tensor for one of another dtype.
  bool misread(const TensorDesc& desc, const TensorDesc& x) const {
    const int32_t result = graph_.result(index_);
    const bool converted = result >= 0 && converts_floats(x, graph_.describe(result)) && is_float(desc.dtype);
    return desc.dtype != x.dtype && !converted;
  }

  void check_result() {
    const int32_t id = graph_.result(index_);
    if (id < 0 || graph_.tensor(operand(0)) == nullptr) {
      return;
    }
    const TensorDesc x = graph_.describe(operand(0));
    const TensorDesc out = graph_.describe(id);
    if (out.dims != x.dims) {
      report(FindingCode::kNormResultShape, kResultName, culprit(kResultName, id));
    } else if (misread(out, x)) {
      report(FindingCode::kNormDtype, kResultName, culprit(kResultName, id));
    }
  }

  // For a norm "weight is a run-time value, float32 [1, 1, 64], made by op 3 (aten.add.Tensor); x is float32 [1, 7, 64]"
  std::string culprit(const char* name, int32_t id) const {
    std::string text = name;
    text += id < 0 || graph_.is_null(id) ? " is missing" : " is " + value_text(id);
    const int32_t x = operand(0);
    if (norm_ != nullptr && graph_.tensor(x) != nullptr) {
      text += "; x is " + tensor_text(graph_.describe(x));
    }
    return text;
  }

  std::string value_text(int32_t id) const {
    if (graph_.tensor(id) == nullptr) {
      return format("not a tensor, but a %s", type_name(graph_.value_type(id))) + origin(id);
    }
    const TensorDesc desc = graph_.describe(id);
    switch (desc.kind) {
      case Kind::kConstant:
        return "a constant, " + tensor_text(desc);
      case Kind::kMutable:
        return "a mutable buffer, " + tensor_text(desc) + origin(id);
      default:
        break;
    }
    return id == graph_.result(index_) ? tensor_text(desc) : "a run-time value, " + tensor_text(desc) + origin(id);
  }

  // Which op made a value.
  std::string origin(int32_t id) const {
    const int32_t producer = graph_.producer(id);
    if (producer >= 0) {
      return format(", made by op %d (%s)", producer, excerpt(graph_.op_name(static_cast<uint32_t>(producer))).c_str());
    }
    return graph_.is_input(id) ? ", an input of the graph" : "";
  }

  static const char* type_name(vk::GraphTypes type) {
    return type > vk::GraphTypes::MAX ? "value of an unknown type" : vk::EnumNameGraphTypes(type);
  }

  // What is wrong with an op may be planned for, and with a norm meant for the guarded runtime.
  void report(FindingCode code, const char* argument, std::string message) {
    const Fix fix = plan_fix(graph_, index_, context_);
    if (norm_ != nullptr && guarded_ && !refused(fix.norm, Target::kBuilder)) {
      code = FindingCode::kNeedsGuardedRuntime;
    } else if (fix.kind != FixKind::kNone && !fix.possible()) {
      message += "; repair has no rewrite: " + fix.refusal;
    }
    add(code, argument, std::move(message), fix.kind != FixKind::kCall && fix.possible());
  }

  // What is wrong with an argument that the contract has no row for.
  void report_at(FindingCode code, uint32_t position, const std::string& name, std::string message) {
    const Fix fix = plan_fix(graph_, index_, context_);
    if (fix.kind == FixKind::kFactor && fix.settles(position) && !fix.possible()) {
      message += "; repair has no rewrite: " + fix.refusal;
    }
    add(code, name, std::move(message), fix.possible() && fix.settles(position));
  }

  void add(FindingCode code, const std::string& argument, std::string message, bool fixable) {
    Finding finding;
    finding.code = code;
    finding.where = program_.where(delegate_);
    finding.where.op_index = static_cast<int32_t>(index_);
    finding.where.op = excerpt(graph_.op_name(index_));
    finding.where.argument = argument;
    finding.where.offset = graph_.offset_of(&graph_.op(index_));
    finding.message = std::move(message);
    finding.fixable = fixable;
    findings_->push_back(std::move(finding));
  }

  const ProgramImpl& program_;
  const DelegateView& delegate_;
  const GraphView& graph_;
  const GraphContext& context_;
  const bool guarded_;
  const uint32_t index_;
  std::vector<Finding>* findings_;
  const uint32_t args_;
  const NormArgs* norm_ = nullptr;  // the op is a norm with the arguments of one
};

template <typename V>
int64_t length(const V* vector) {
  return vector == nullptr ? 0 : vector->size();
}

// The runtime hands a graph its inputs, then its outputs, by position.
void check_call(const ProgramImpl& program, const DelegateView& delegate, const GraphView& graph, int64_t given, Report* report) {
  const int64_t wanted = length(graph.root().input_ids()) + length(graph.root().output_ids());
  if (given < 0 || given == wanted) {
    return;
  }
  Finding finding;
  finding.code = FindingCode::kDelegateArguments;
  finding.where = program.where(delegate);
  finding.where.offset = graph.file_offset();
  finding.message = format("the graph has %lld inputs and outputs, and the method passes it %lld values",
                           static_cast<long long>(wanted), static_cast<long long>(given));
  report->findings.push_back(std::move(finding));
}

void check_delegate(const ProgramImpl& program, const GraphContexts& contexts, const DelegateView& delegate, Report* report) {
  DelegateSummary summary;
  summary.method = std::string(program.plan_name(delegate.id.plan));
  summary.delegate = static_cast<int32_t>(delegate.id.index);
  summary.backend = std::string(program.backend(delegate));
  if (delegate.blob >= 0) {
    const GraphView& graph = program.blobs[static_cast<size_t>(delegate.blob)].graph;
    const GraphContext context = contexts.of(delegate);
    const bool guarded = program.compile_spec(delegate, kGuardedSpec) != nullptr;
    summary.graph = graph.data();
    summary.graph_size = graph.size();
    summary.ops.reserve(graph.op_count());
    check_call(program, delegate, graph, contexts.call(delegate).given, report);
    for (uint32_t i = 0; i < graph.op_count(); ++i) {
      summary.ops.push_back(graph.op_name(i));
      OpChecker(program, delegate, graph, context, guarded, i, &report->findings).run();
    }
  }
  report->delegates.push_back(std::move(summary));
}

}  // namespace

Error check(const Program& program, Report* into) {
  const ProgramImpl& impl = program.impl();
  const GraphContexts contexts(impl);
  Report report;
  for (const DelegateView& delegate : impl.delegates) {
    check_delegate(impl, contexts, delegate, &report);
  }
  *into = std::move(report);
  return {};
}

}  // namespace etvk_guard
