// SPDX-License-Identifier: Apache-2.0
#include "graph_checks.h"

#include <gtest/gtest.h>

#include <functional>

#include "operands.h"

namespace etvk_guard::testing {
namespace {

constexpr int8_t kHalf = GraphBuilder::kHalf;

// "ones", "zeros", or "" for a constant in the blob's own bytes.
std::string content(const Repaired& repaired, const GraphView& graph, const vk::VkTensor& tensor) {
  const vk::VkBytes* bytes = graph.root().constants()->Get(static_cast<uint32_t>(tensor.constant_id()));
  if (bytes->offset() == UINT64_MAX) {
    return "";
  }
  const uint64_t at = repaired.again.impl().blobs[0].bytes.offset + bytes->offset();
  EXPECT_EQ(bytes->offset() % 16, 0u);
  std::vector<uint8_t> data(bytes->length());
  EXPECT_TRUE(repaired.repair.overlay.read(at, data.data(), data.size()));
  const bool half = tensor.datatype() == kHalf;
  const std::vector<uint8_t> one = half ? std::vector<uint8_t>{0, 0x3c} : std::vector<uint8_t>{0, 0, 0x80, 0x3f};
  bool ones = true, zeros = true;
  for (size_t i = 0; i < data.size(); ++i) {
    ones = ones && data[i] == one[i % one.size()];
    zeros = zeros && data[i] == 0;
  }
  return ones ? "ones" : zeros ? "zeros" : "odd";
}

class Words {
 public:
  Words(const Repaired& repaired, Names names) : repaired_(repaired), graph_(repaired.graph()), names_(std::move(names)) {}
  std::string run() {
    std::string text;
    for (uint32_t i = 0; i < graph_.op_count(); ++i) {
      std::string name(graph_.op_name(i));
      name = name.substr(0, name.rfind('.'));
      text += (i == 0 ? "" : "; ") + name.substr(name.rfind('.') + 1) + "(";
      for (uint32_t a = 0; a + 1 < graph_.arg_count(i); ++a) {
        text += (a == 0 ? "" : " ") + value(graph_.arg(i, a));
      }
      text += ")->" + value(graph_.arg(i, graph_.arg_count(i) - 1));
    }
    return text;
  }

 private:
  std::string value(int32_t id) {
    if (names_.count(id) != 0) {
      return names_[id];
    }
    if (const auto* items = graph_.value_list(id)) {
      std::string text = "[";
      for (uint32_t i = 0; i < items->size(); ++i) {
        text += (i == 0 ? "" : " ") + value(items->Get(i));
      }
      return text + "]";
    }
    const vk::VkTensor* tensor = graph_.tensor(id);
    if (tensor == nullptr) {
      const vk::Int* number = graph_.value(id).value_as_Int();
      return number != nullptr ? std::to_string(number->int_val()) : graph_.is_null(id) ? "-" : ".";
    }
    if (tensor->constant_id() >= 0) {
      return content(repaired_, graph_, *tensor);
    }
    const std::string name = "t" + std::to_string(made_++);
    return names_[id] = name;
  }

  const Repaired& repaired_;
  const GraphView& graph_;
  Names names_;
  int made_ = 0;
};

}  // namespace

void repair_file(const Buffer& file, Repaired* into) {
  into->file = file;
  into->reader = BytesReader(into->file.data(), into->file.size());
  into->error = Program::open(into->reader, &into->program);
  if (!into->error) {
    into->error = repair(into->program, &into->repair);
  }
  if (!into->error) {
    into->error = Program::open(into->repair.overlay, &into->again);
  }
}

std::string graph_words(const Repaired& repaired, Names names) { return Words(repaired, std::move(names)).run(); }

void expect_stock_takes(const GraphView& graph) {
  for (uint32_t i = 0; i < graph.op_count(); ++i) {
    const std::string name(graph.op_name(i));
    SCOPED_TRACE(name);
    const TensorDesc a = graph.describe(graph.arg(i, 0));
    const TensorDesc out = graph.describe(graph.result(i));
    const auto alike = [&](const TensorDesc& other) {
      EXPECT_EQ(other.kind, Kind::kRuntime);
      EXPECT_EQ(storage_of(other), storage_of(out));
      EXPECT_EQ(layout_of(other), layout_of(out));
      EXPECT_EQ(other.dtype, out.dtype);
    };
    if (name == "aten.mul.Tensor" || name == "aten.add.Tensor") {
      const TensorDesc b = graph.describe(graph.arg(i, 1));
      alike(a);
      alike(b);
      std::vector<int64_t> dims;
      EXPECT_TRUE(broadcast(a.dims, b.dims, &dims));
      EXPECT_EQ(dims, out.dims);
    } else if (name == "et_vk.rms_norm.default" || name == "aten.native_layer_norm.default") {
      const uint32_t weight = name == "et_vk.rms_norm.default" ? 1 : 2;
      alike(a);
      EXPECT_EQ(a.dims, out.dims);
      for (uint32_t at = weight; at < graph.arg_count(i) - 2; ++at) {
        const TensorDesc operand = graph.describe(graph.arg(i, at));
        EXPECT_EQ(operand.kind, Kind::kConstant);
        EXPECT_EQ(count_elements(operand.dims), a.dims.back());
        EXPECT_EQ(operand.dtype, a.dtype);
      }
    } else if (name == "et_vk.prepack.default") {
      EXPECT_EQ(a.kind, Kind::kConstant);
      EXPECT_EQ(out.kind, Kind::kRuntime);
      EXPECT_EQ(a.dims, out.dims);
      EXPECT_EQ(a.dtype, out.dtype);
      EXPECT_EQ(graph.tensor(graph.result(i))->mem_obj_id(), -1);
    } else if (name == "aten.clone.default") {
      EXPECT_EQ(graph.arg_count(i), 3u);
      EXPECT_EQ(a.dims, out.dims);
      EXPECT_TRUE(a.dtype == out.dtype || storage_of(a) == Storage::kTexture3D);
    } else if (name.find("_to") != std::string::npos) {
      EXPECT_EQ(graph.arg_count(i), 8u);
      EXPECT_EQ(a.dims, out.dims);
      EXPECT_EQ(storage_of(out) == Storage::kBuffer, name == "dim_order_ops._to_dim_order_copy.default");
      EXPECT_EQ(storage_of(a), storage_of(out));
    }
  }
}

void expect_no_overlap(const GraphView& graph) {
  std::map<int32_t, std::pair<int, int>> alive;
  const int last = static_cast<int>(graph.op_count());
  std::function<void(int32_t, int, bool)> touch = [&](int32_t id, int at, bool writes) {
    if (const auto* items = graph.value_list(id)) {
      for (const int32_t item : *items) {
        touch(item, at, writes);
      }
      return;
    }
    if (graph.tensor(id) == nullptr || graph.tensor(id)->constant_id() >= 0) {
      return;
    }
    const bool first = alive.count(id) == 0;
    EXPECT_TRUE(!first || writes || graph.is_input(id)) << "value " << id << " is read before it is written";
    if (first) {
      alive[id] = {graph.is_input(id) ? -1 : at, at};
    }
    alive[id].second = graph.is_output(id) ? last : at;
  };
  for (int i = 0; i < last; ++i) {
    const auto op = static_cast<uint32_t>(i);
    for (uint32_t a = 0; a < graph.arg_count(op); ++a) {
      touch(graph.arg(op, a), i, a + 1 == graph.arg_count(op));
    }
  }
  for (const auto& [a, span] : alive) {
    for (const auto& [b, other] : alive) {
      const int32_t id = graph.tensor(a)->mem_obj_id();
      if (a < b && id >= 0 && id == graph.tensor(b)->mem_obj_id()) {
        EXPECT_TRUE(span.second < other.first || other.second < span.first)
            << "values " << a << " and " << b << " share memory " << id;
        EXPECT_EQ(graph.describe(a).storage, graph.describe(b).storage);
      }
    }
  }
}

}  // namespace etvk_guard::testing
