// SPDX-License-Identifier: Apache-2.0
#include "grow.h"

#include <etvk_guard/contract.h>

#include <algorithm>

#include "site.h"
#include "verify.h"

namespace etvk_guard::testing {
namespace {

constexpr uint32_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 16, 64, 65536, 0x7fffffff, 0x80000000, 0xffffffff};
constexpr int8_t kDtypes[] = {-1, 0, 1, 3, 4, 5, 6, 7, 8, 127};
constexpr uint8_t kStorages[] = {0, 1, 2, 3, 255};
constexpr uint8_t kLayouts[] = {0, 1, 2, 3, 255};

template <typename T, size_t N>
T pick(const T (&items)[N], Random& random) {
  return items[below(random, N)];
}

class Grower {
 public:
  Grower(const GraphView& old, Random& random) : old_(old), random_(random) {}

  Buffer run() {
    constants();
    for (uint32_t id = 0; id < old_.value_count(); ++id) {
      copy(static_cast<int32_t>(id));
    }
    for (uint32_t i = 0; i < old_.op_count(); ++i) {
      if (one_in(random_, 4)) {
        norm();
      }
      if (!one_in(random_, 12)) {
        op(i);
      }
    }
    norm();
    graph_.inputs(ids(old_.root().input_ids()));
    graph_.outputs(ids(old_.root().output_ids()));
    if (one_in(random_, 8)) {
      graph_.overrides(pick(kStorages, random_), pick(kLayouts, random_));
    }
    return graph_.finish();
  }

 private:
  void constants() {
    for (uint32_t i = 0; i < count(old_.root().constants()); ++i) {
      const vk::VkBytes* bytes = old_.root().constants()->Get(i);
      const std::string key(view(bytes->named_key()));
      const bool named = bytes->offset() == UINT64_MAX && !key.empty();
      constant_ids_ = graph_.add_bytes(named ? UINT64_MAX : below(random_, 5) * 16, bytes->length(),
                                       named ? (one_in(random_, 6) ? "w" : key.c_str()) : nullptr) +
                      1;
    }
  }

  void add(int id) { made_ = id + 1; }
  int any() { return static_cast<int>(below(random_, static_cast<size_t>(made_))); }

  int constant_of(int old) {
    if (one_in(random_, 10)) {
      return one_in(random_, 2) || constant_ids_ == 0 ? -1 : static_cast<int>(below(random_, constant_ids_));
    }
    return old;
  }

  void tensor(const vk::VkTensor& tensor) {
    std::vector<uint32_t> dims;
    for (uint32_t i = 0; i < count(tensor.dims()); ++i) {
      dims.push_back(one_in(random_, 16) ? pick(kSizes, random_) : tensor.dims()->Get(i));
    }
    if (one_in(random_, 20)) {
      dims.insert(dims.begin(), one_in(random_, 2) ? 1 : pick(kSizes, random_));
    } else if (one_in(random_, 20) && !dims.empty()) {
      dims.erase(dims.begin());
    }
    const auto dtype = one_in(random_, 16) ? pick(kDtypes, random_) : tensor.datatype();
    const auto storage = one_in(random_, 16) ? pick(kStorages, random_) : tensor.storage_type();
    const auto layout = one_in(random_, 16) ? pick(kLayouts, random_) : tensor.memory_layout();
    const int memory = one_in(random_, 16) ? INT32_MAX : tensor.mem_obj_id();
    add(graph_.tensor(dims, constant_of(tensor.constant_id()), dtype, memory, storage, layout));
  }

  void copy(int32_t id) {
    const vk::VkValue& value = old_.value(id);
    switch (value.value_type()) {
      case vk::GraphTypes::VkTensor:
        return tensor(*value.value_as_VkTensor());
      case vk::GraphTypes::Int:
        return add(graph_.integer(value.value_as_Int()->int_val()));
      case vk::GraphTypes::Double:
        return add(graph_.number(value.value_as_Double()->double_val()));
      case vk::GraphTypes::SymInt:
        return add(graph_.symint(value.value_as_SymInt()->value()));
      case vk::GraphTypes::IntList: {
        const auto* items = value.value_as_IntList()->items();
        return add(graph_.int_list(std::vector<int64_t>(1 + below(random_, count(items) + 1), 4)));
      }
      case vk::GraphTypes::ValueList: {
        std::vector<int32_t> items;
        for (uint32_t i = 0; i < count(value.value_as_ValueList()->items()); ++i) {
          items.push_back(value.value_as_ValueList()->items()->Get(i));
        }
        return add(graph_.value_list(items));
      }
      default:
        return add(graph_.null());
    }
  }

  void op(uint32_t index) {
    std::vector<int32_t> args;
    for (uint32_t i = 0; i < old_.arg_count(index); ++i) {
      args.push_back(one_in(random_, 16) ? any() : old_.arg(index, i));
    }
    if (one_in(random_, 24) && !args.empty()) {
      args.pop_back();
    }
    graph_.op(one_in(random_, 12) ? op_name(random_) : std::string(old_.op_name(index)), args);
    if (one_in(random_, 24)) {
      graph_.op(std::string(old_.op_name(index)), args);
    }
  }

  // Over any value, with any weight, into a tensor of its own or one that is there.
  void norm() {
    if (made_ == 0) {
      return;
    }
    const int x = any();
    std::vector<uint32_t> dims = {1, 4};
    if (x < static_cast<int>(old_.value_count()) && old_.tensor(x) != nullptr && count(old_.tensor(x)->dims()) != 0) {
      dims.assign(old_.tensor(x)->dims()->begin(), old_.tensor(x)->dims()->end());
    }
    const int weight = one_in(random_, 3) ? graph_.tensor({dims.back()}) : any();
    if (one_in(random_, 2)) {
      add(graph_.rms_norm(x, weight, dims, one_in(random_, 6) ? GraphBuilder::kHalf : GraphBuilder::kFloat,
                          pick(kStorages, random_)));
      return;
    }
    const int bias = one_in(random_, 2) ? graph_.null() : any();
    add(graph_.layer_norm(x, weight, bias, dims));
  }

  std::vector<uint32_t> ids(const flatbuffers::Vector<uint32_t>* list) {
    std::vector<uint32_t> made;
    for (uint32_t i = 0; i < count(list); ++i) {
      made.push_back(one_in(random_, 24) ? static_cast<uint32_t>(any()) : list->Get(i));
    }
    return made;
  }

  const GraphView& old_;
  Random& random_;
  GraphBuilder graph_;
  int made_ = 0;                // ids of values below it are taken
  size_t constant_ids_ = 0;
};

std::vector<DelegateSpec> delegates(Random& random, bool inlined) {
  std::vector<DelegateSpec> made(1 + below(random, 3));
  for (DelegateSpec& delegate : made) {
    delegate.location = inlined ? 0 : 1;
    if (one_in(random, 8)) {
      delegate.backend = "XnnpackBackend";
    }
    if (one_in(random, 8)) {
      delegate.specs = {one_in(random, 2) ? "storage_type_override" : "etvk_guard_runtime"};
    }
  }
  return made;
}

}  // namespace

const std::string& op_name(Random& random) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made = {kRmsNorm, kLayerNorm, "aten.sigmoid.default", "no.such.op", ""};
    for (const OpInfo& info : kKnownOps) {
      if (info.row_count != 0) {
        made.emplace_back(info.name);
      }
    }
    return made;
  }();
  return one_in(random, 3) ? names[below(random, 2)] : names[below(random, names.size())];
}

Buffer grow_blob(const Blob& blob, Random& random) {
  BlobSpec spec;
  spec.graph = Grower(blob.graph, random).run();
  spec.bytes = Buffer(below(random, 5) * 64, 1);
  return spec.build();
}

Buffer program_around(const Buffer& blob, Random& random) {
  ProgramSpec spec;
  const bool inlined = one_in(random, 4);
  (inlined ? spec.inline_blobs : spec.segments).push_back(blob);
  for (uint32_t i = 0; i < 1 + below(random, 3); ++i) {
    MethodSpec method;
    method.name = std::string(1 + i, 'm');
    method.delegates = delegates(random, inlined);
    spec.methods.push_back(std::move(method));
  }
  if (!inlined || one_in(random, 2)) {
    spec.segments.push_back(Buffer(below(random, 300), 7));
    spec.named = {{"w", below(random, 8) == 0 ? 0 : static_cast<uint32_t>(spec.segments.size() - 1)}};
  }
  if (one_in(random, 6)) {
    spec.constant_segment = {{static_cast<uint32_t>(below(random, spec.segments.size())), {0, 0}}};
  }
  spec.header = inlined && spec.segments.empty() ? one_in(random, 2) : true;
  return spec.build();
}

Buffer grow_program(const ProgramImpl& program, Random& random) {
  if (program.blobs.empty()) {
    return {};
  }
  return program_around(grow_blob(program.blobs[below(random, program.blobs.size())], random), random);
}

}  // namespace etvk_guard::testing
