// SPDX-License-Identifier: Apache-2.0
//
// Rewritten graphs: which ops they have, in short words; and for every one of them, what ET-VK's builders ask of their arguments, and that
// tensors which share memory are never alive at one time.
#include <algorithm>
#include <functional>
#include <map>
#include <ostream>
#include <set>

#include <gtest/gtest.h>

#include "builder.h"
#include "graph.h"
#include "operands.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

using Names = std::map<int, std::string>;  // of values that a case makes

constexpr int8_t kHalf = GraphBuilder::kHalf;
constexpr int8_t kFloat = GraphBuilder::kFloat;

// A repaired program with one delegate.
struct Repaired {
  Buffer file;
  BytesReader reader;
  Program program;
  Repair repair;
  Program again;
  Error error;
  const GraphView& graph() const { return again.impl().blobs[0].graph; }
};

void run(const Buffer& file, Repaired* into) {
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

// The graph as "op(arguments)->result; ...". New temporaries are t0, t1 ... in order of their making.
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

// What the builders of ET-VK ask of the ops that a repair adds, and of a norm.
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

// When a tensor is alive: from the op that writes it to the last that reads it. Two that share memory must not overlap.
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
        EXPECT_TRUE(span.second < other.first || other.second < span.first) << "values " << a << " and " << b << " share memory " << id;
        EXPECT_EQ(graph.describe(a).storage, graph.describe(b).storage);
      }
    }
  }
}

struct Case {
  const char* name;
  std::function<void(GraphBuilder&, Names&)> build;
  const char* words;
  uint64_t added_bytes;
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

int in(GraphBuilder& g, Names& n, const char* name, const std::vector<uint32_t>& dims, int8_t dtype = kFloat, uint8_t storage = 1,
       uint8_t layout = 0) {
  const int id = g.tensor(dims, -1, dtype, -1, storage, layout);
  n[id] = name;
  return id;
}
int constant(GraphBuilder& g, Names& n, const char* name, const std::vector<uint32_t>& dims, int8_t dtype = kFloat) {
  const int id = g.constant(dims, dtype);
  n[id] = name;
  return id;
}
// A norm whose result may differ from x.
void rms(GraphBuilder& g, Names& n, int x, int w, const std::vector<uint32_t>& dims, int8_t dtype = kFloat, const char* name = "y",
         uint8_t storage = 1, uint8_t layout = 0) {
  const int eps = g.number(1e-6);
  const int out = g.tensor(dims, -1, dtype, -1, storage, layout);
  n[out] = name;
  g.op("et_vk.rms_norm.default", {x, w, eps, out});
}
void layer(GraphBuilder& g, Names& n, int x, int w, int b, const std::vector<uint32_t>& dims) {
  const int out = g.layer_norm(x, w, b, dims);
  n[out] = "y";
  n[out + 1] = "mean";
  n[out + 2] = "rstd";
}

const std::vector<uint32_t> kDims{2, 7, 6};
constexpr uint64_t kTexture = 2 * 7 * 8 * 4;  // bytes of it, width-packed

const Case kCases[] = {
    {"runtime",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}), kDims);
     },
     "rms_norm(x ones .)->t0; mul(t0 m)->y", kTexture},
    {"constant_rows",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, constant(g, n, "c", {7, 6}), kDims);
     },
     "prepack(c)->t0; rms_norm(x ones .)->t1; mul(t1 t0)->y", kTexture},
    {"missing",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, g.null(), kDims);
     },
     "rms_norm(x ones .)->y", 0},
    {"half",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kHalf);
       rms(g, n, x, in(g, n, "m", {2, 1, 6}, kHalf), kDims, kHalf);
     },
     "rms_norm(x ones .)->t0; mul(t0 m)->y", kTexture / 2},
    {"other_layout",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, kFloat, 1, 2), kDims);
     },
     "rms_norm(x ones .)->t0; clone(m -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"other_storage",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kFloat, 0);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}), kDims, kFloat, "y", 0);
     },
     "rms_norm(x ones .)->t0; clone(m -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"default_layout_of_rank_3",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {2, 1, 6}, kFloat, 255, 255), kDims);
     },
     "rms_norm(x ones .)->t0; clone(m -)->t1; mul(t0 t1)->y", kTexture + 2 * 8 * 4},
    {"multiplier_of_other_dtype",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, kHalf), kDims);
     },
     "rms_norm(x ones .)->t0; clone(m -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"multiplier_of_other_dtype_in_buffers",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kFloat, 0);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, kHalf, 0), kDims, kFloat, "y", 0);
     },
     "rms_norm(x ones .)->t0; _to_dim_order_copy(m - - - - - -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"whole_numbers",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, 3), kDims);
     },
     "rms_norm(x ones .)->t0; _to_copy(m - - - - - -)->t1; mul(t0 t1)->y", kTexture + 8 * 4},
    {"other_dtype_and_storage",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}, kHalf, 0), kDims);
     },
     "rms_norm(x ones .)->t0; _to_dim_order_copy(m - - - - - -)->t1; clone(t1 -)->t2; mul(t0 t2)->y", kTexture + 2 * 8 * 4},
    {"half_x_float_result",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kHalf);
       rms(g, n, x, in(g, n, "m", {1, 1, 6}), kDims);
     },
     "rms_norm(x ones .)->t0; clone(t0 -)->t1; mul(t1 m)->y", kTexture / 2 + kTexture},
    {"half_x_float_leaf",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kHalf);
       rms(g, n, x, constant(g, n, "c", {6}), kDims);
     },
     "prepack(c)->t0; rms_norm(x ones .)->t1; clone(t1 -)->t2; mul(t2 t0)->y", kTexture / 2 + kTexture},
    {"only_the_result_differs",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims, kHalf);
       rms(g, n, x, constant(g, n, "c", {6}, kHalf), kDims);
     },
     "rms_norm(x c .)->t0; clone(t0 -)->y", kTexture / 2},
    {"raises_the_result",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", {7, 6});
       rms(g, n, x, in(g, n, "m", {3, 2, 1, 6}), {3, 2, 7, 6});
     },
     "rms_norm(x ones .)->t0; mul(t0 m)->y", 7 * 8 * 4},
    {"one_weight_two_norms",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int z = in(g, n, "z", kDims);
       const int c = constant(g, n, "c", {7, 6});
       rms(g, n, x, c, kDims, kFloat, "a");
       rms(g, n, z, c, kDims, kFloat, "b");
     },
     "prepack(c)->t0; rms_norm(x ones .)->t1; mul(t1 t0)->a; rms_norm(z ones .)->t2; mul(t2 t0)->b", kTexture},
    {"a_chain_shares_memory",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int m = in(g, n, "m", {1, 1, 6});
       rms(g, n, x, m, kDims, kFloat, "a");
       const int a = n.rbegin()->first;
       rms(g, n, a, m, kDims, kFloat, "b");
     },
     "rms_norm(x ones .)->t0; mul(t0 m)->a; rms_norm(a ones .)->t1; mul(t1 m)->b", kTexture},
    {"layer_nothing",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       layer(g, n, x, g.null(), g.null(), kDims);
     },
     "native_layer_norm(x . ones zeros .)->[y mean rstd]", 0},
    {"layer_no_bias",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int w = constant(g, n, "w", {6});
       layer(g, n, x, w, g.null(), kDims);
     },
     "native_layer_norm(x . w zeros .)->[y mean rstd]", 0},
    {"layer_runtime_weight",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int w = in(g, n, "w", {6});
       layer(g, n, x, w, constant(g, n, "b", {6}), kDims);
     },
     "prepack(b)->t0; native_layer_norm(x . ones zeros .)->[t1 mean rstd]; mul(t1 w)->t2; add(t2 t0 1)->y", 2 * kTexture},
    {"layer_runtime_bias",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int w = constant(g, n, "w", {6});
       layer(g, n, x, w, in(g, n, "b", {6}), kDims);
     },
     "native_layer_norm(x . w zeros .)->[t0 mean rstd]; add(t0 b 1)->y", kTexture},
    {"layer_everything",
     [](GraphBuilder& g, Names& n) {
       const int x = in(g, n, "x", kDims);
       const int w = in(g, n, "w", {6}, kHalf, 1, 2);
       layer(g, n, x, w, in(g, n, "b", {1, 7, 6}, kFloat, 0), kDims);
     },
     "native_layer_norm(x . ones zeros .)->[t0 mean rstd]; clone(w -)->t1; clone(t1 -)->t2; mul(t0 t2)->t3; clone(b -)->t4; add(t3 t4 "
     "1)->y",
     // t0, then t4; t1, then t3; t2
     2 * kTexture + 8 * 4},
};

// With as many arguments in the call of the delegate as its graph takes.
Buffer file_of(GraphBuilder& graph, size_t args) {
  ProgramSpec spec = program_of(graph);
  spec.methods[0].call_args.assign(args, 0);
  return spec.build();
}

class Rewrite : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, Rewrite, ::testing::ValuesIn(kCases), [](const auto& info) { return std::string(info.param.name); });

Buffer file_of(const Case& c, Names* names) {
  GraphBuilder graph;
  c.build(graph, *names);
  std::vector<uint32_t> inputs, outputs;
  for (const auto& [id, name] : *names) {
    (name == "x" || name == "m" || name == "z" || name == "w" || name == "b" ? inputs : outputs).push_back(static_cast<uint32_t>(id));
  }
  // Constants of those names are no inputs, or they would be mutable; "c" is none either.
  GraphBuilder again;
  Names same;
  c.build(again, same);
  BlobSpec probe;
  probe.graph = graph.finish();
  const auto* values = vk::GetVkGraph(probe.graph.data())->values();
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                              [&](uint32_t id) { return values->Get(id)->value_as_VkTensor()->constant_id() >= 0; }),
               inputs.end());
  outputs.erase(std::remove_if(outputs.begin(), outputs.end(),
                               [&](uint32_t id) { return values->Get(id)->value_as_VkTensor()->constant_id() >= 0; }),
                outputs.end());
  again.inputs(inputs);
  again.outputs(outputs);
  return file_of(again, inputs.size() + outputs.size());
}

TEST_P(Rewrite, OpsAndTheirArguments) {
  Names names;
  Repaired repaired;
  run(file_of(GetParam(), &names), &repaired);
  ASSERT_FALSE(repaired.error) << repaired.error.message;
  EXPECT_TRUE(repaired.repair.changed);
  EXPECT_FALSE(repaired.repair.repaired.empty());
  EXPECT_TRUE(repaired.repair.remaining.empty());
  EXPECT_EQ(Words(repaired, names).run(), GetParam().words);
  EXPECT_EQ(repaired.repair.added_activation_bytes, GetParam().added_bytes);
  expect_stock_takes(repaired.graph());
  expect_no_overlap(repaired.graph());
}

TEST_P(Rewrite, KeepsWhatItDoesNotTouch) {
  Names names;
  Repaired repaired;
  run(file_of(GetParam(), &names), &repaired);
  ASSERT_FALSE(repaired.error) << repaired.error.message;
  const GraphView& before = repaired.program.impl().blobs[0].graph;
  const GraphView& after = repaired.graph();
  ASSERT_GE(after.value_count(), before.value_count());
  for (int32_t id = 0; id < static_cast<int32_t>(before.value_count()); ++id) {
    ASSERT_EQ(after.value_type(id), before.value_type(id));
    if (const vk::VkTensor* tensor = before.tensor(id)) {
      EXPECT_EQ(after.tensor(id)->mem_obj_id(), tensor->mem_obj_id());
      EXPECT_EQ(after.tensor(id)->constant_id(), tensor->constant_id());
      EXPECT_EQ(after.describe(id).dims, before.describe(id).dims);
      EXPECT_EQ(after.is_input(id), before.is_input(id));
      EXPECT_EQ(after.is_output(id), before.is_output(id));
    }
  }
  EXPECT_EQ(after.root().version()->str(), before.root().version()->str());
  std::set<uint32_t> ids;
  for (uint32_t i = 0; i < after.op_count(); ++i) {
    ids.insert(after.op(i).node_id());
  }
  EXPECT_EQ(ids.size(), before.op_count());  // each original node id is there, and no other
  EXPECT_EQ(*ids.rbegin(), before.op_count() - 1);
}

TEST_P(Rewrite, RepairsToItself) {
  Names names;
  Repaired first, second;
  run(file_of(GetParam(), &names), &first);
  ASSERT_FALSE(first.error) << first.error.message;
  Buffer file(first.repair.overlay.size());
  ASSERT_TRUE(first.repair.overlay.read(0, file.data(), file.size()));
  run(file, &second);
  ASSERT_FALSE(second.error) << second.error.message;
  EXPECT_FALSE(second.repair.changed);
  EXPECT_TRUE(second.repair.repaired.empty());
  EXPECT_EQ(second.repair.overlay.size(), file.size());
  EXPECT_EQ(second.repair.overlay.extents().size(), 1u);
}

// 40 norms, one after the other: one temporary's memory for all, beyond the memory objects of the graph.
TEST(RewriteMany, NormsShareOneMemoryObject) {
  GraphBuilder graph;
  const int x = graph.input({1, 7, 4});
  const int m = graph.input({1, 1, 4});
  int current = x;
  for (int i = 0; i < 40; ++i) {
    const int eps = graph.number(1e-6);
    const int out = graph.tensor({1, 7, 4}, -1, kFloat, i % 2);
    graph.op("et_vk.rms_norm.default", {current, m, eps, out});
    current = out;
  }
  graph.outputs({static_cast<uint32_t>(current)});
  Repaired repaired;
  run(file_of(graph, 3), &repaired);
  ASSERT_FALSE(repaired.error) << repaired.error.message;
  EXPECT_EQ(repaired.repair.repaired.size(), 40u);
  EXPECT_EQ(repaired.repair.added_activation_bytes, 7u * 4 * 4);
  std::set<int32_t> ids;
  for (int32_t id = 0; id < static_cast<int32_t>(repaired.graph().value_count()); ++id) {
    if (const vk::VkTensor* tensor = repaired.graph().tensor(id)) {
      ids.insert(tensor->mem_obj_id());
    }
  }
  EXPECT_EQ(ids, (std::set<int32_t>{-1, 0, 1, 2}));
  expect_no_overlap(repaired.graph());
  EXPECT_EQ(repaired.graph().root().constants()->size(), 1u);  // one constant of ones
}

TEST(RewriteMany, NoMemoryObjectIdIsLeft) {
  GraphBuilder graph;
  const int x = graph.tensor({7, 4}, -1, kFloat, INT32_MAX);
  const int m = graph.tensor({4});
  graph.inputs({static_cast<uint32_t>(x), static_cast<uint32_t>(m)});
  graph.outputs({static_cast<uint32_t>(graph.rms_norm(x, m, {7, 4}))});
  Repaired repaired;
  run(file_of(graph, 3), &repaired);
  ASSERT_FALSE(repaired.error) << repaired.error.message;
  EXPECT_EQ(repaired.graph().tensor(repaired.graph().result(0))->mem_obj_id(), -1);
}

}  // namespace
}  // namespace etvk_guard::testing
