// SPDX-License-Identifier: Apache-2.0
//
// Methods: values, lists and instructions refer to what exists. A method here has values 0 and 1 (tensors), the case's own from
// 2 on, one operator, one delegate and one delegate call.
#include "verify.h"

#include <gtest/gtest.h>

#include <ostream>

#include "builder.h"
#include "program.h"

namespace etvk_guard::testing {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using Values = std::vector<Offset<et::EValue>>;
using Instructions = std::vector<Offset<et::Instruction>>;

struct Case {
  std::string name;
  std::function<void(FlatBufferBuilder&, Values*, Instructions*)> extra;
  ErrorCode expected;
  std::string words = "";
};
void PrintTo(const Case& c, std::ostream* os) { *os << c.name; }

template <typename Create>
std::function<void(FlatBufferBuilder&, Values*, Instructions*)> value(et::KernelTypes type, Create create) {
  return [=](FlatBufferBuilder& fbb, Values* values, Instructions*) {
    const Offset<void> content = create(fbb);
    values->push_back(et::CreateEValue(fbb, type, content));
  };
}

template <typename Create>
std::function<void(FlatBufferBuilder&, Values*, Instructions*)> step(et::InstructionArguments type, Create create) {
  return [=](FlatBufferBuilder& fbb, Values*, Instructions* instructions) {
    const Offset<void> content = create(fbb);
    instructions->push_back(et::CreateInstruction(fbb, type, content));
  };
}

auto int_list(std::vector<int64_t> items) {
  return value(et::KernelTypes::IntList,
               [=](FlatBufferBuilder& f) { return et::CreateIntList(f, f.CreateVector(items)).Union(); });
}
auto tensors(std::vector<int32_t> items) {
  return value(et::KernelTypes::TensorList,
               [=](FlatBufferBuilder& f) { return et::CreateTensorList(f, f.CreateVector(items)).Union(); });
}
auto optional_tensors(std::vector<int32_t> items) {
  return value(et::KernelTypes::OptionalTensorList,
               [=](FlatBufferBuilder& f) { return et::CreateOptionalTensorList(f, f.CreateVector(items)).Union(); });
}
auto kernel(int32_t op, std::vector<int32_t> args) {
  return step(et::InstructionArguments::KernelCall,
              [=](FlatBufferBuilder& f) { return et::CreateKernelCall(f, op, f.CreateVector(args)).Union(); });
}
auto move(int32_t from, int32_t to) {
  return step(et::InstructionArguments::MoveCall,
              [=](FlatBufferBuilder& f) { return et::CreateMoveCall(f, from, to).Union(); });
}
auto jump(int32_t condition, int32_t to) {
  return step(et::InstructionArguments::JumpFalseCall,
              [=](FlatBufferBuilder& f) { return et::CreateJumpFalseCall(f, condition, to).Union(); });
}
auto release(int32_t id) {
  return step(et::InstructionArguments::FreeCall, [=](FlatBufferBuilder& f) { return et::CreateFreeCall(f, id).Union(); });
}
Offset<void> nothing(FlatBufferBuilder&) { return 0; }
Offset<void> null_table(FlatBufferBuilder& fbb) { return et::CreateNull(fbb).Union(); }

constexpr auto kIndex = ErrorCode::kBadValueIndex;
constexpr auto kBad = ErrorCode::kBadProgramFlatbuffer;

const Case kCases[] = {
    {"int_list", int_list({0, 1, 2}), ErrorCode::kNone},
    {"int_list_high", int_list({0, 3}), kIndex, "int list"},
    {"int_list_negative", int_list({-1}), kIndex, "int list"},
    {"int_list_64_bits", int_list({int64_t{1} << 32}), kIndex, "int list"},
    {"tensor_list", tensors({0, 1}), ErrorCode::kNone},
    {"tensor_list_high", tensors({3}), kIndex, "tensor list"},
    {"tensor_list_negative", tensors({-1}), kIndex, "tensor list"},
    {"optional_tensor_list", optional_tensors({-1, 1}), ErrorCode::kNone},
    {"optional_tensor_list_high", optional_tensors({3}), kIndex, "optional"},
    {"optional_tensor_list_low", optional_tensors({-2}), kIndex, "optional"},
    {"null_value", value(et::KernelTypes::Null, null_table), ErrorCode::kNone},
    {"value_of_no_type", value(et::KernelTypes::NONE, nothing), ErrorCode::kNone},
    {"value_of_a_newer_type", value(static_cast<et::KernelTypes>(99), null_table), ErrorCode::kNone},
    {"value_without_content", value(et::KernelTypes::Tensor, nothing), kBad, "no content"},
    {"list_without_items", value(et::KernelTypes::IntList, [](FlatBufferBuilder& f) { return et::CreateIntList(f).Union(); }),
     ErrorCode::kNone},
    {"tensor_without_sizes", value(et::KernelTypes::Tensor, [](FlatBufferBuilder& f) { return et::CreateTensor(f).Union(); }),
     ErrorCode::kNone},
    {"kernel", kernel(0, {0, 1}), ErrorCode::kNone},
    {"kernel_operator", kernel(1, {0}), kBad, "operator 1 of 1"},
    {"kernel_operator_negative", kernel(-1, {0}), kBad, "operator -1 of 1"},
    {"kernel_argument", kernel(0, {2}), kIndex, "argument of an operator"},
    {"move", move(0, 1), ErrorCode::kNone},
    {"move_from", move(2, 1), kIndex, "source"},
    {"move_to", move(0, -1), kIndex, "target"},
    {"jump_to_the_end", jump(0, 2), ErrorCode::kNone},
    {"jump_beyond", jump(0, 3), kBad, "instruction 3"},
    {"jump_before", jump(0, -1), kBad, "instruction -1"},
    {"jump_condition", jump(2, 0), kIndex, "condition"},
    {"free", release(1), ErrorCode::kNone},
    {"free_nothing", release(2), kIndex, "operand of a free"},
    {"instruction_of_no_type", step(et::InstructionArguments::NONE, null_table), kBad, "no type"},
    {"instruction_without_content", step(et::InstructionArguments::KernelCall, nothing), kBad, "no content"},
    {"instruction_of_a_newer_type", step(static_cast<et::InstructionArguments>(99), null_table), ErrorCode::kNone},
};

class PlanCase : public ::testing::TestWithParam<Case> {};

TEST_P(PlanCase, IsHeldToItsValues) {
  GraphBuilder graph;
  graph.null();
  ProgramSpec spec = program_of(graph);
  spec.methods[0].extra = GetParam().extra;
  const Buffer file = spec.build();
  Opened opened;
  open_and_check(file, &opened);
  EXPECT_EQ(opened.error.code, GetParam().expected) << opened.error.message;
  EXPECT_NE(opened.error.message.find(GetParam().words), std::string::npos) << opened.error.message;
  if (opened.error) {
    EXPECT_EQ(opened.error.where.method, "forward");
    EXPECT_LT(opened.error.where.offset, file.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Table, PlanCase, ::testing::ValuesIn(kCases), [](const auto& info) { return info.param.name; });

// flatbuffers' verifier aligns the length of a vector of 64-bit numbers, not the numbers. Of two buffers that differ by 4 bytes
// of padding one has them aligned.
TEST(Verify, NumbersOf64BitsMustBeAligned) {
  int refused = 0;
  for (int padding = 0; padding < 2; ++padding) {
    GraphBuilder graph;
    graph.fbb().CreateVector(std::vector<int32_t>(static_cast<size_t>(4 + padding), 7));  // room behind, and padding
    const auto items = graph.fbb().CreateVector(std::vector<int32_t>{1, 2});              // read as 2 numbers of 64 bits
    const auto list = vk::CreateIntList(graph.fbb(), items.o);
    graph.typed(vk::GraphTypes::IntList, list.Union());
    graph.integer(1);  // has the builder align the whole to 8
    const Buffer bytes = graph.finish();
    GraphView view;
    const Error error = GraphView::open(bytes.data(), bytes.size(), 0, &view);
    if (error) {
      EXPECT_EQ(error.code, ErrorCode::kBadGraphFlatbuffer);
      EXPECT_NE(error.message.find("not aligned"), std::string::npos) << error.message;
    }
    refused += static_cast<bool>(error);
  }
  EXPECT_EQ(refused, 1);
}

TEST(Verify, BudgetIsSpentByLongListsOnly) {
  Budget budget(1000);
  for (int i = 0; i < 10000; ++i) {
    ASSERT_TRUE(budget.spend(Budget::kFree));
  }
  EXPECT_TRUE(budget.spend(900));
  EXPECT_FALSE(budget.spend(101));
  EXPECT_TRUE(budget.spend(100));
  EXPECT_FALSE(budget.spend(Budget::kFree + 1));
}

}  // namespace
}  // namespace etvk_guard::testing
