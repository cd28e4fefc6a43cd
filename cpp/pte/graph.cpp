// SPDX-License-Identifier: Apache-2.0
#include "graph.h"

#include "bytes.h"
#include "error.h"
#include "program.h"
#include "verify.h"

namespace etvk_guard {
namespace {

constexpr uint32_t kMaxRank = 16;  // ExecuTorch's own limit

// Checks what the structural verifier cannot know. Every check returns false after setting the error.
class GraphVerifier {
 public:
  GraphVerifier(const vk::VkGraph& root, const uint8_t* data, size_t size, uint64_t file_offset)
      : root_(root),
        data_(data),
        file_offset_(file_offset),
        budget_(size),
        value_count_(static_cast<int64_t>(count(root.values()))) {}

  Error run() {
    if (constants() && values() && chain()) {
      if (spend(&root_, count(root_.input_ids()) + count(root_.output_ids())) &&
          (items_below(root_.input_ids(), value_count_) || bad_index(&root_, "an input of the graph"))) {
        items_below(root_.output_ids(), value_count_) || bad_index(&root_, "an output of the graph");
      }
    }
    return error_;
  }

 private:
  bool fail(ErrorCode code, const void* at, std::string message) {
    error_.code = code;
    error_.message = std::move(message);
    error_.where.offset = file_offset_ + static_cast<uint64_t>(static_cast<const uint8_t*>(at) - data_);
    return false;
  }
  bool bad(const void* at, std::string message) { return fail(ErrorCode::kBadGraphFlatbuffer, at, std::move(message)); }
  bool bad_index(const void* at, const char* what) {
    return fail(ErrorCode::kBadValueIndex, at,
                format("%s is not one of the graph's %lld values", what, static_cast<long long>(value_count_)));
  }
  bool spend(const void* at, uint64_t items) {
    return budget_.spend(items) || bad(at, "its lists have more items than it has room for");
  }

  bool constants() {
    for (uint32_t i = 0; i < count(root_.constants()); ++i) {
      const vk::VkBytes* bytes = root_.constants()->Get(i);
      if (bytes->offset() == UINT64_MAX && count(bytes->named_key()) == 0) {
        return fail(ErrorCode::kBadConstant, bytes, format("constant %u has neither an offset nor a name", i));
      }
      if (!spend(bytes, count(bytes->named_key()))) {
        return false;
      }
    }
    return true;
  }

  bool values() {
    for (uint32_t i = 0; i < count(root_.values()); ++i) {
      if (!value(*root_.values()->Get(i), static_cast<int32_t>(i))) {
        return false;
      }
    }
    return true;
  }

  bool value(const vk::VkValue& value, int32_t id) {
    if (value.value_type() == vk::GraphTypes::NONE || value.value() == nullptr) {
      return bad(&value, format("value %d has no content", id));
    }
    switch (value.value_type()) {
      case vk::GraphTypes::VkTensor:
        return tensor(*value.value_as_VkTensor(), id);
      case vk::GraphTypes::ValueList:
        return value_list(*value.value_as_ValueList(), id);
      case vk::GraphTypes::IntList:
        return numbers(value, value.value_as_IntList()->items());
      case vk::GraphTypes::DoubleList:
        return numbers(value, value.value_as_DoubleList()->items());
      case vk::GraphTypes::BoolList:
        return numbers(value, value.value_as_BoolList()->items());
      case vk::GraphTypes::String:
        return spend(&value, count(value.value_as_String()->string_val()));
      default:
        return true;  // scalars, and types from a newer schema, which nothing here looks into
    }
  }

  template <typename V>
  bool numbers(const vk::VkValue& value, const V* items) {
    return (items_aligned(items) || bad(&value, "a list of 64-bit numbers is not aligned")) && spend(&value, count(items));
  }

  // A list may hold lists, but only earlier ones: there are no cycles.
  bool value_list(const vk::ValueList& list, int32_t id) {
    if (!spend(&list, count(list.items()))) {
      return false;
    }
    if (!items_below(list.items(), value_count_)) {
      return bad_index(&list, "an item of a value list");
    }
    for (uint32_t i = 0; i < count(list.items()); ++i) {
      const int32_t item = list.items()->Get(i);
      if (item >= id && root_.values()->Get(static_cast<uint32_t>(item))->value_type() == vk::GraphTypes::ValueList) {
        return fail(ErrorCode::kBadValueIndex, &list,
                    format("value list %d holds value list %d, which is not before it", id, item));
      }
    }
    return true;
  }

  bool tensor(const vk::VkTensor& tensor, int32_t id) {
    const uint64_t rank = count(tensor.dims());
    if (rank > kMaxRank) {
      return fail(ErrorCode::kTooLarge, &tensor,
                  format("value %d has rank %llu; ExecuTorch allows %u", id, static_cast<unsigned long long>(rank), kMaxRank));
    }
    if (tensor.constant_id() < 0) {
      return true;
    }
    if (static_cast<uint64_t>(tensor.constant_id()) >= count(root_.constants())) {
      return fail(ErrorCode::kBadConstant, &tensor,
                  format("value %d is constant %d of %llu", id, tensor.constant_id(),
                         static_cast<unsigned long long>(count(root_.constants()))));
    }
    return constant_size(tensor, id);
  }

  bool constant_size(const vk::VkTensor& tensor, int32_t id) {
    uint64_t bytes = element_size(static_cast<DType>(tensor.datatype()));
    bool fits = true;
    for (uint32_t i = 0; fits && i < count(tensor.dims()); ++i) {
      fits = checked_mul(bytes, tensor.dims()->Get(i), &bytes);
    }
    const uint64_t length = root_.constants()->Get(static_cast<uint32_t>(tensor.constant_id()))->length();
    return (fits && bytes <= length) || fail(ErrorCode::kBadConstant, &tensor,
                                             format("value %d needs more than the %s bytes of constant %d", id,
                                                    number(length).c_str(), tensor.constant_id()));
  }

  bool chain() {
    for (uint32_t i = 0; i < count(root_.chain()); ++i) {
      const vk::OperatorCall* op = root_.chain()->Get(i);
      bool ok = op->name() != nullptr || bad(op, format("op %u has no name", i));
      ok = ok && spend(op, op->name()->size()) && spend(op, count(op->args()));
      ok = ok && (items_below(op->args(), value_count_) || bad_index(op, "an argument"));
      if (!ok) {
        error_.where.op_index = static_cast<int32_t>(i);
        error_.where.op = excerpt(view(op->name()));
        return false;
      }
    }
    return true;
  }

  const vk::VkGraph& root_;
  const uint8_t* data_;
  uint64_t file_offset_;
  Budget budget_;
  int64_t value_count_;
  Error error_;
};

}  // namespace

Error GraphView::open(const uint8_t* data, size_t size, uint64_t file_offset, GraphView* into) {
  if (size < 8 || !vk::VkGraphBufferHasIdentifier(data)) {
    return make_error(ErrorCode::kBadGraphFlatbuffer, file_offset, "it does not have the identifier \"%s\"",
                      vk::VkGraphIdentifier());
  }
  if (!verify_structure<vk::VkGraph>(data, size, vk::VkGraphIdentifier())) {
    return make_error(ErrorCode::kBadGraphFlatbuffer, file_offset,
                      "a table, vector or string lies outside its %s bytes, or is misaligned", number(size).c_str());
  }
  GraphView graph;
  graph.root_ = vk::GetVkGraph(data);
  graph.data_ = data;
  graph.size_ = size;
  graph.file_offset_ = file_offset;
  if (Error error = GraphVerifier(*graph.root_, data, size, file_offset).run()) {
    return error;
  }
  graph.op_count_ = static_cast<uint32_t>(count(graph.root_->chain()));
  graph.value_count_ = static_cast<uint32_t>(count(graph.root_->values()));
  graph.index_values();
  *into = std::move(graph);
  return {};
}

// Each value list is gone through once, however many ops write it.
void GraphView::index_values() {
  flags_.assign(value_count_, 0);
  producers_.assign(value_count_, -1);
  for (uint32_t i = 0; i < count(root_->input_ids()); ++i) {
    flags_[root_->input_ids()->Get(i)] |= kInput;
  }
  for (uint32_t i = 0; i < count(root_->output_ids()); ++i) {
    flags_[root_->output_ids()->Get(i)] |= kOutput;
  }
  for (uint32_t id = 0; id < value_count_; ++id) {
    const auto* items = value_list(static_cast<int32_t>(id));
    for (uint32_t i = 0; i < count(items); ++i) {
      if (value_type(items->Get(i)) == vk::GraphTypes::SymInt) {
        flags_[id] |= kSymbolic;
      }
    }
  }
  for (uint32_t op_index = 0; op_index < op_count_; ++op_index) {
    const uint32_t args = arg_count(op_index);
    if (args == 0) {
      continue;
    }
    const int32_t written = arg(op_index, args - 1);
    int32_t& producer = producers_[static_cast<size_t>(written)];
    if (producer >= 0) {
      continue;
    }
    producer = static_cast<int32_t>(op_index);
    const auto* items = value_list(written);
    for (uint32_t i = 0; i < count(items); ++i) {
      int32_t& item_producer = producers_[static_cast<size_t>(items->Get(i))];
      item_producer = item_producer < 0 ? static_cast<int32_t>(op_index) : item_producer;
    }
  }
}

std::string_view GraphView::op_name(uint32_t index) const { return view(op(index).name()); }

uint32_t GraphView::arg_count(uint32_t index) const { return static_cast<uint32_t>(count(op(index).args())); }

const flatbuffers::Vector<int32_t>* GraphView::value_list(int32_t id) const {
  const vk::ValueList* list = value(id).value_as_ValueList();
  return list == nullptr || count(list->items()) == 0 ? nullptr : list->items();
}

int32_t GraphView::result(uint32_t index) const {
  const uint32_t args = arg_count(index);
  if (args == 0) {
    return -1;
  }
  const int32_t last = arg(index, args - 1);
  const auto* items = value_list(last);
  const int32_t id = items == nullptr ? last : items->Get(0);
  return tensor(id) == nullptr ? -1 : id;
}

Kind GraphView::kind(int32_t id) const {
  if (is_null(id)) {
    return Kind::kNone;
  }
  const vk::VkTensor* found = tensor(id);
  if (found == nullptr) {
    return Kind::kScalar;
  }
  if (found->constant_id() < 0) {
    return Kind::kRuntime;
  }
  return is_input(id) || producer(id) >= 0 ? Kind::kMutable : Kind::kConstant;
}

TensorDesc GraphView::describe(int32_t id) const {
  TensorDesc desc;
  desc.kind = kind(id);
  const vk::VkTensor* found = tensor(id);
  if (found == nullptr) {
    return desc;
  }
  const auto storage = static_cast<Storage>(found->storage_type());
  const auto layout = static_cast<Layout>(found->memory_layout());
  desc.dtype = static_cast<DType>(found->datatype());
  desc.storage = storage == Storage::kDefault ? static_cast<Storage>(root_->storage_type_override()) : storage;
  desc.layout = layout == Layout::kDefault ? static_cast<Layout>(root_->memory_layout_override()) : layout;
  for (uint32_t i = 0; i < count(found->dims()); ++i) {
    desc.dims.push_back(found->dims()->Get(i));
  }
  return desc;
}

uint32_t element_size(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
      return 1;
    case DType::kFloat16:
      return 2;
    case DType::kInt32:
    case DType::kFloat32:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
      return 8;
    case DType::kUnset:
      return 0;
  }
  return 0;
}

uint64_t numel(const std::vector<int64_t>& dims) {
  uint64_t product = 1;
  bool fits = true;
  for (int64_t dim : dims) {
    if (dim == 0) {
      return 0;
    }
    fits = fits && checked_mul(product, static_cast<uint64_t>(dim), &product);
  }
  return fits ? product : UINT64_MAX;
}

}  // namespace etvk_guard
