// SPDX-License-Identifier: Apache-2.0
#include "emit.h"

#include <cstring>

#include "bytes.h"
#include "operands.h"

namespace etvk_guard {
namespace {

constexpr const char* kPrepack = "et_vk.prepack.default";  // [constant, out]
constexpr const char* kClone = "aten.clone.default";       // [in, memory_format, out]
constexpr const char* kView = "aten.view_copy.default";    // [in, sizes, out]
constexpr const char* kToCopy = "aten._to_copy.default";   // [in, five that are ignored, memory_format, out]
constexpr const char* kToDimOrder = "dim_order_ops._to_dim_order_copy.default";  // [in, six that are ignored, out]

constexpr uint64_t kDataAlignment = 16;

std::vector<uint8_t> element(DType dtype, bool one) {
  if (dtype == DType::kFloat16) {
    return one ? std::vector<uint8_t>{0x00, 0x3c} : std::vector<uint8_t>{0, 0};
  }
  return one ? std::vector<uint8_t>{0x00, 0x00, 0x80, 0x3f} : std::vector<uint8_t>{0, 0, 0, 0};
}

}  // namespace

int32_t NeutralConstants::get(int64_t width, DType dtype, bool one) { return find({{width}, dtype, element(dtype, one)}); }

int32_t NeutralConstants::filled(std::vector<int64_t> dims, float number) {
  uint32_t bits = 0;
  std::memcpy(&bits, &number, sizeof(bits));
  std::vector<uint8_t> pattern;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    pattern.push_back(static_cast<uint8_t>(bits >> shift));
  }
  return find({std::move(dims), DType::kFloat32, std::move(pattern)});
}

int32_t NeutralConstants::find(Key key) {
  const auto found = ids_.emplace(std::move(key), -1);
  if (found.second) {
    found.first->second = make(found.first->first);
  }
  return found.first->second;
}

// The dims were counted by the planner: their product fits.
int32_t NeutralConstants::make(const Key& key) {
  NewTensor tensor;
  NewData data;
  std::tie(tensor.dims, tensor.dtype, data.pattern) = key;
  data.length = static_cast<uint64_t>(count_elements(tensor.dims)) * data.pattern.size();
  data.offset = align_up(size_, kDataAlignment);
  size_ = align_up(data.offset + data.length, kDataAlignment);
  tensor.constant = patch_.add_constant(data.offset, data.length);
  data_.push_back(std::move(data));
  return patch_.add_tensor(std::move(tensor));
}

Error Emitter::finish(RewrittenGraph* into) {
  RewrittenGraph made;
  if (Error error = patch_.finish(&made.flatbuffer)) {
    return error;
  }
  made.bytes_size = neutral_.bytes_size();
  made.data = neutral_.take_data();
  made.added_activation_bytes = scratch_.bytes();
  *into = std::move(made);
  return {};
}

void Emitter::op_as(uint32_t op_index, std::vector<int32_t> args) {
  ops_.push_back({std::string(graph_.op_name(op_index)), std::move(args)});
}

std::vector<int32_t> Emitter::args_of(uint32_t op_index) const {
  std::vector<int32_t> args;
  for (uint32_t i = 0; i < graph_.arg_count(op_index); ++i) {
    args.push_back(graph_.arg(op_index, i));
  }
  return args;
}

Handle Emitter::existing(int32_t id, const TensorDesc& desc) {
  Handle made;
  made.id = id;
  made.tensor = {desc.dtype, desc.dims, storage_of(desc), layout_of(desc), -1, -1};
  return made;
}

Handle Emitter::temporary(NewTensor tensor) {
  Handle made;
  made.slot = scratch_.acquire(tensor);
  tensor.mem_obj_id = made.slot.mem_obj_id;
  made.tensor = tensor;
  made.id = patch_.add_tensor(std::move(tensor));
  return made;
}

Handle Emitter::prepacked(int32_t id, const TensorDesc& desc, Storage storage, Layout layout) {
  const auto found = prepacked_.emplace(std::make_tuple(id, storage, layout), Handle());
  Handle& made = found.first->second;
  if (found.second) {
    made.tensor = {desc.dtype, desc.dims, storage, layout, -1, -1};
    made.id = patch_.add_tensor(made.tensor);
    op(kPrepack, {id, made.id});
  }
  return made;
}

Handle Emitter::prepare(int32_t id, const TensorDesc& desc, const OperandSteps& steps) {
  Handle current = steps.prepack ? prepacked(id, desc, steps.storage, steps.layout) : existing(id, desc);
  if (steps.cast) {
    NewTensor tensor = current.tensor;
    tensor.dtype = steps.dtype;
    const Handle to = temporary(std::move(tensor));
    cast(current, to);
    move(&current, to);
  }
  if (steps.relayout) {
    const Handle to = temporary({steps.dtype, desc.dims, steps.storage, steps.layout, -1, -1});
    clone(current, to);
    move(&current, to);
  }
  if (!steps.view.empty()) {
    const Handle to = temporary({steps.dtype, steps.view, steps.storage, steps.view_layout, -1, -1});
    view(current, to);
    move(&current, to);
  }
  return current;
}

// Buffers have an op that converts. For textures, the op that converts between float and half is a blit, which does not follow
// a change of shape at run time; a clone reads through a sampler, which converts, and does.
void Emitter::cast(const Handle& from, const Handle& to) {
  const int32_t none = patch_.null();
  if (to.tensor.storage == Storage::kBuffer) {
    op(kToDimOrder, {from.id, none, none, none, none, none, none, to.id});
  } else if (is_float(from.tensor.dtype)) {
    op(kClone, {from.id, none, to.id});
  } else {
    op(kToCopy, {from.id, none, none, none, none, none, none, to.id});
  }
}

void Emitter::clone(const Handle& from, const Handle& to) { op(kClone, {from.id, patch_.null(), to.id}); }

void Emitter::view(const Handle& from, const Handle& to) {
  op(kView, {from.id, patch_.integers(to.tensor.dims), to.id});
}

}  // namespace etvk_guard
