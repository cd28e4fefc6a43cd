// SPDX-License-Identifier: Apache-2.0
#include "graph_patch.h"

#include <map>

#include "error.h"
#include "program.h"
#include "verify.h"

namespace etvk_guard {
namespace {

using flatbuffers::Offset;

constexpr size_t kAlignment = 16;
constexpr uint64_t kMaxFlatbuffer = (1u << 31) - (1u << 20);  // offsets are 32 bits, some of them signed

size_t padding(size_t size) { return (kAlignment - size % kAlignment) % kAlignment; }

}  // namespace

int32_t GraphPatch::add(NewValue value) {
  values_.push_back(std::move(value));
  return static_cast<int32_t>(graph_.value_count() + values_.size() - 1);
}

int32_t GraphPatch::add_tensor(NewTensor tensor) {
  NewValue value;
  value.type = NewValue::Type::kTensor;
  value.tensor = std::move(tensor);
  return add(std::move(value));
}

int32_t GraphPatch::add_value_list(std::vector<int32_t> items) {
  NewValue value;
  value.type = NewValue::Type::kValueList;
  value.items = std::move(items);
  return add(std::move(value));
}

int32_t GraphPatch::null() {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].type == NewValue::Type::kNull) {
      return static_cast<int32_t>(graph_.value_count() + i);
    }
  }
  return add({});
}

int32_t GraphPatch::integer(int64_t value) {
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].type == NewValue::Type::kInt && values_[i].number == value) {
      return static_cast<int32_t>(graph_.value_count() + i);
    }
  }
  NewValue made;
  made.type = NewValue::Type::kInt;
  made.number = value;
  return add(std::move(made));
}

int32_t GraphPatch::integers(std::vector<int64_t> items) {
  const auto found = lists_.emplace(std::move(items), -1);
  if (found.second) {
    NewValue made;
    made.type = NewValue::Type::kIntList;
    made.numbers = found.first->first;
    found.first->second = add(std::move(made));
  }
  return found.first->second;
}

int32_t GraphPatch::add_constant(uint64_t offset, uint64_t length) {
  constants_.push_back({offset, length});
  return static_cast<int32_t>(count(graph_.root().constants()) + constants_.size() - 1);
}

void GraphPatch::replace(uint32_t op_index, std::vector<NewOp> ops) { replacements_.push_back({op_index, std::move(ops)}); }

// More than the new flatbuffer can take.
uint64_t GraphPatch::size_bound() const {
  constexpr uint64_t kTable = 128;  // with its vtable and padding
  uint64_t bytes =
      graph_.size() + kTable + 8ull * (graph_.value_count() + graph_.op_count() + count(graph_.root().constants()));
  bytes += (kTable + 8) * constants_.size();
  for (const NewValue& value : values_) {
    bytes += 2 * kTable + 8 * (value.tensor.dims.size() + value.items.size() + value.numbers.size());
  }
  for (const Replacement& replacement : replacements_) {
    for (const NewOp& op : replacement.ops) {
      bytes += kTable + op.name.size() + 8 * op.args.size();
    }
  }
  return bytes;
}

// Writes the new flatbuffer.
class GraphPatchWriter {
 public:
  explicit GraphPatchWriter(const GraphPatch& patch) : patch_(patch), graph_(patch.graph_) {
    fbb_.Align(kAlignment);
    const std::vector<uint8_t> zeros(padding(graph_.size()));
    fbb_.PushBytes(zeros.data(), zeros.size());
    fbb_.PushBytes(graph_.data(), graph_.size());
    old_size_ = fbb_.GetSize();
  }

  std::vector<uint8_t> run() {
    const auto chain = fbb_.CreateVector(ops());
    const auto values = fbb_.CreateVector(all_values());
    const auto constants = fbb_.CreateVector(all_constants());
    const vk::VkGraph& root = graph_.root();
    vk::VkGraphBuilder builder(fbb_);
    builder.add_version(old(root.version()));
    builder.add_chain(chain);
    builder.add_values(values);
    builder.add_input_ids(old(root.input_ids()));
    builder.add_output_ids(old(root.output_ids()));
    builder.add_constants(constants);
    builder.add_shaders(old(root.shaders()));
    builder.add_storage_type_override(root.storage_type_override());
    builder.add_memory_layout_override(root.memory_layout_override());
    fbb_.Finish(builder.Finish(), vk::VkGraphIdentifier());
    return {fbb_.GetBufferPointer(), fbb_.GetBufferPointer() + fbb_.GetSize()};
  }

 private:
  // An item of the old buffer, as the builder counts: from the end. Null stays null.
  template <typename T>
  Offset<T> old(const T* item) const {
    if (item == nullptr) {
      return 0;
    }
    const auto position = static_cast<size_t>(reinterpret_cast<const uint8_t*>(item) - graph_.data());
    return Offset<T>(static_cast<flatbuffers::uoffset_t>(old_size_ - position));
  }

  Offset<flatbuffers::String> name(const std::string& text) {
    const auto found = names_.find(text);
    if (found != names_.end()) {
      return found->second;
    }
    return names_.emplace(text, fbb_.CreateString(text)).first->second;
  }

  std::vector<Offset<vk::OperatorCall>> ops() {
    std::vector<Offset<vk::OperatorCall>> chain;
    chain.reserve(graph_.op_count() + 4 * patch_.replacements_.size());
    auto next = patch_.replacements_.begin();
    for (uint32_t i = 0; i < graph_.op_count(); ++i) {
      if (next == patch_.replacements_.end() || next->op_index != i) {
        chain.push_back(old(&graph_.op(i)));
        continue;
      }
      for (const NewOp& op : (next++)->ops) {
        const auto args = fbb_.CreateVector(op.args);
        chain.push_back(vk::CreateOperatorCall(fbb_, graph_.op(i).node_id(), name(op.name), args));
      }
    }
    return chain;
  }

  std::vector<Offset<vk::VkValue>> all_values() {
    std::vector<Offset<vk::VkValue>> values;
    values.reserve(graph_.value_count() + patch_.values_.size());
    for (uint32_t i = 0; i < graph_.value_count(); ++i) {
      values.push_back(old(&graph_.value(static_cast<int32_t>(i))));
    }
    for (const auto& value : patch_.values_) {
      values.push_back(write(value));
    }
    return values;
  }

  Offset<vk::VkValue> write(const GraphPatch::NewValue& value) {
    using Type = GraphPatch::NewValue::Type;
    switch (value.type) {
      case Type::kTensor:
        return vk::CreateVkValue(fbb_, vk::GraphTypes::VkTensor, tensor(value.tensor).Union());
      case Type::kValueList:
        return vk::CreateVkValue(fbb_, vk::GraphTypes::ValueList,
                                 vk::CreateValueList(fbb_, fbb_.CreateVector(value.items)).Union());
      case Type::kInt:
        return vk::CreateVkValue(fbb_, vk::GraphTypes::Int, vk::CreateInt(fbb_, value.number).Union());
      case Type::kIntList:
        return vk::CreateVkValue(fbb_, vk::GraphTypes::IntList,
                                 vk::CreateIntList(fbb_, fbb_.CreateVector(value.numbers)).Union());
      case Type::kNull:
        break;
    }
    return vk::CreateVkValue(fbb_, vk::GraphTypes::Null, vk::CreateNull(fbb_).Union());
  }

  Offset<vk::VkTensor> tensor(const NewTensor& made) {
    std::vector<uint32_t> dims;
    for (const int64_t size : made.dims) {
      dims.push_back(static_cast<uint32_t>(size));
    }
    const auto dtype = static_cast<int8_t>(made.dtype);
    return vk::CreateVkTensor(fbb_, dtype, fbb_.CreateVector(dims), made.constant, made.mem_obj_id,
                              static_cast<uint8_t>(made.storage), static_cast<uint8_t>(made.layout), dtype);
  }

  std::vector<Offset<vk::VkBytes>> all_constants() {
    std::vector<Offset<vk::VkBytes>> constants;
    for (uint32_t i = 0; i < count(graph_.root().constants()); ++i) {
      constants.push_back(old(graph_.root().constants()->Get(i)));
    }
    for (const auto& constant : patch_.constants_) {
      // An empty key, as the exporter writes it: its own reader does not take an absent one.
      constants.push_back(vk::CreateVkBytes(fbb_, constant.offset, constant.length, name("")));
    }
    return constants;
  }

  const GraphPatch& patch_;
  const GraphView& graph_;
  flatbuffers::FlatBufferBuilder fbb_;
  size_t old_size_ = 0;  // with its padding
  std::map<std::string, Offset<flatbuffers::String>> names_;
};

Error GraphPatch::finish(std::vector<uint8_t>* into) const {
  const auto newer = [this](const auto* table, const flatbuffers::TypeTable* type, const char* what) {
    const bool found = has_unknown_fields(reinterpret_cast<const flatbuffers::Table*>(table), known_fields(type));
    return !found ? Error()
                  : make_error(ErrorCode::kUnsupportedSchema, graph_.offset_of(table),
                               "%s has a field from a newer schema, which a rewrite would lose", what);
  };
  if (Error error = newer(&graph_.root(), vk::VkGraphTypeTable(), "the Vulkan graph")) {
    return error;
  }
  for (const Replacement& replacement : replacements_) {
    if (Error error = newer(&graph_.op(replacement.op_index), vk::OperatorCallTypeTable(), "an op that has to be rewritten")) {
      error.where.op_index = static_cast<int32_t>(replacement.op_index);
      error.where.op = excerpt(graph_.op_name(replacement.op_index));
      return error;
    }
  }
  if (size_bound() > kMaxFlatbuffer) {
    return make_error(ErrorCode::kTooLarge, graph_.file_offset(), "the rewritten graph could take %s bytes",
                      number(size_bound()).c_str());
  }
  *into = GraphPatchWriter(*this).run();
  return {};
}

}  // namespace etvk_guard
