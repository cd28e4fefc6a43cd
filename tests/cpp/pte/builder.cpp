// SPDX-License-Identifier: Apache-2.0
#include "builder.h"

#include <cstring>

namespace etvk_guard::testing {
namespace {

void put(Buffer* into, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    into->push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
}

void pad(Buffer* into, size_t alignment = 16) { into->resize((into->size() + alignment - 1) / alignment * alignment); }

Buffer contents(const flatbuffers::FlatBufferBuilder& fbb) {
  return {fbb.GetBufferPointer(), fbb.GetBufferPointer() + fbb.GetSize()};
}

uint64_t bytes_of(const std::vector<uint32_t>& dims, int8_t dtype) {
  uint64_t bytes = dtype == GraphBuilder::kHalf ? 2 : 4;
  for (uint32_t dim : dims) {
    bytes *= dim;
  }
  return bytes;
}

}  // namespace

int GraphBuilder::add(vk::GraphTypes type, flatbuffers::Offset<void> content) {
  values_.push_back(vk::CreateVkValue(fbb_, type, content));
  return static_cast<int>(values_.size()) - 1;
}

int GraphBuilder::typed(vk::GraphTypes type, flatbuffers::Offset<void> content) { return add(type, content); }

int GraphBuilder::tensor(const std::vector<uint32_t>& dims, int constant_id, int8_t dtype, int mem_obj_id, uint8_t storage,
                         uint8_t layout) {
  const auto list = fbb_.CreateVector(dims);
  return add(vk::GraphTypes::VkTensor, vk::CreateVkTensor(fbb_, dtype, list, constant_id, mem_obj_id, storage, layout).Union());
}

int GraphBuilder::constant(const std::vector<uint32_t>& dims, int8_t dtype) {
  const std::string key = "w" + std::to_string(named_.size());
  const uint64_t bytes = bytes_of(dims, dtype);
  named_.emplace_back(key, bytes);
  return tensor(dims, add_bytes(UINT64_MAX, bytes, key.c_str()), dtype);
}

int GraphBuilder::input(const std::vector<uint32_t>& dims, int8_t dtype, uint8_t storage) {
  const int id = tensor(dims, -1, dtype, -1, storage);
  input_ids_.push_back(static_cast<uint32_t>(id));
  return id;
}

int GraphBuilder::null() { return add(vk::GraphTypes::Null, vk::CreateNull(fbb_).Union()); }
int GraphBuilder::integer(int64_t value) { return add(vk::GraphTypes::Int, vk::CreateInt(fbb_, value).Union()); }
int GraphBuilder::boolean(bool value) { return add(vk::GraphTypes::Bool, vk::CreateBool(fbb_, value).Union()); }
int GraphBuilder::number(double value) { return add(vk::GraphTypes::Double, vk::CreateDouble(fbb_, value).Union()); }
int GraphBuilder::symint(int32_t value) { return add(vk::GraphTypes::SymInt, vk::CreateSymInt(fbb_, value).Union()); }

int GraphBuilder::int_list(const std::vector<int64_t>& items) {
  const auto list = fbb_.CreateVector(items);
  return add(vk::GraphTypes::IntList, vk::CreateIntList(fbb_, list).Union());
}

int GraphBuilder::value_list(const std::vector<int32_t>& items) {
  const auto list = fbb_.CreateVector(items);
  return add(vk::GraphTypes::ValueList, vk::CreateValueList(fbb_, list).Union());
}

int GraphBuilder::add_bytes(uint64_t offset, uint64_t length, const char* key) {
  const auto name = key == nullptr ? flatbuffers::Offset<flatbuffers::String>() : fbb_.CreateString(key);
  constants_.push_back(vk::CreateVkBytes(fbb_, offset, length, name));
  return static_cast<int>(constants_.size()) - 1;
}

void GraphBuilder::op(const std::string& name, const std::vector<int32_t>& args) {
  const auto text = fbb_.CreateString(name);
  const auto list = fbb_.CreateVector(args);
  chain_.push_back(vk::CreateOperatorCall(fbb_, static_cast<uint32_t>(chain_.size()), text, list));
}

void GraphBuilder::nameless_op(const std::vector<int32_t>& args) {
  const auto list = fbb_.CreateVector(args);
  chain_.push_back(vk::CreateOperatorCall(fbb_, 0, 0, list));
}

int GraphBuilder::rms_norm(int x, int weight, const std::vector<uint32_t>& dims, int8_t dtype, uint8_t storage) {
  const int eps = number(1e-6);
  const int out = tensor(dims, -1, dtype, -1, storage);
  op("et_vk.rms_norm.default", {x, weight, eps, out});
  return out;
}

int GraphBuilder::layer_norm(int x, int weight, int bias, const std::vector<uint32_t>& dims, int8_t dtype) {
  std::vector<uint32_t> row = dims;
  row.back() = 1;
  const int shape = int_list({static_cast<int64_t>(dims.back())});
  const int eps = number(1e-5);
  const int out = tensor(dims, -1, dtype);
  const int mean = tensor(row, -1, dtype);
  const int rstd = tensor(row, -1, dtype);
  op("aten.native_layer_norm.default", {x, shape, weight, bias, eps, value_list({out, mean, rstd})});
  return out;
}

Buffer GraphBuilder::finish(const char* identifier) {
  const auto version = fbb_.CreateString("0");
  const auto chain = fbb_.CreateVector(chain_);
  const auto values = fbb_.CreateVector(values_);
  const auto in = fbb_.CreateVector(input_ids_);
  const auto out = fbb_.CreateVector(output_ids_);
  const auto constants = fbb_.CreateVector(constants_);
  fbb_.Finish(vk::CreateVkGraph(fbb_, version, chain, values, in, out, constants, 0, storage_, layout_), identifier);
  return contents(fbb_);
}

Buffer BlobSpec::build() const {
  Buffer padded = graph;
  pad(&padded);
  Buffer blob;
  put(&blob, 0, 4);
  for (char c : magic) {
    blob.push_back(static_cast<uint8_t>(c));
  }
  put(&blob, length.value_or(30), 2);
  put(&blob, flatbuffer_offset.value_or(32), 4);
  put(&blob, flatbuffer_size.value_or(static_cast<uint32_t>(graph.size())), 4);
  put(&blob, bytes_offset.value_or(static_cast<uint32_t>(32 + padded.size())), 4);
  put(&blob, bytes_size.value_or(bytes.size()), 8);
  pad(&blob);
  blob.insert(blob.end(), padded.begin(), padded.end());
  blob.insert(blob.end(), bytes.begin(), bytes.end());
  return blob;
}

namespace {

class ProgramWriter {
 public:
  explicit ProgramWriter(const ProgramSpec& spec) : spec_(spec) {}

  Buffer flatbuffer(const std::vector<SegmentSpec>& table) {
    std::vector<flatbuffers::Offset<et::ExecutionPlan>> plans;
    for (const MethodSpec& method : spec_.methods) {
      plans.push_back(plan(method));
    }
    std::vector<flatbuffers::Offset<et::BackendDelegateInlineData>> blobs;
    for (const Buffer& blob : spec_.inline_blobs) {
      fbb_.ForceVectorAlignment(blob.size(), 1, 16);
      blobs.push_back(et::CreateBackendDelegateInlineData(fbb_, fbb_.CreateVector(blob)));
    }
    std::vector<flatbuffers::Offset<et::DataSegment>> segments;
    for (const SegmentSpec& segment : table) {
      segments.push_back(et::CreateDataSegment(fbb_, segment.offset, segment.size));
    }
    std::vector<flatbuffers::Offset<et::NamedData>> named;
    for (const auto& [key, segment] : spec_.named) {
      named.push_back(et::CreateNamedData(fbb_, fbb_.CreateString(key), segment));
    }
    flatbuffers::Offset<et::SubsegmentOffsets> constants;
    if (spec_.constant_segment) {
      constants =
          et::CreateSubsegmentOffsets(fbb_, spec_.constant_segment->first, fbb_.CreateVector(spec_.constant_segment->second));
    }
    const auto plans_list = fbb_.CreateVector(plans);
    const auto blobs_list = fbb_.CreateVector(blobs);
    const auto segments_list = fbb_.CreateVector(segments);
    const auto named_list = fbb_.CreateVector(named);
    fbb_.Finish(et::CreateProgram(fbb_, 0, plans_list, 0, blobs_list, segments_list, constants, 0, named_list),
                spec_.identifier.c_str());
    return contents(fbb_);
  }

 private:
  flatbuffers::Offset<et::ExecutionPlan> plan(const MethodSpec& method) {
    std::vector<flatbuffers::Offset<et::EValue>> values;
    for (int i = 0; i < method.tensors; ++i) {
      const auto sizes = fbb_.CreateVector(std::vector<int32_t>{1, 4});
      const auto order = fbb_.CreateVector(std::vector<uint8_t>{0, 1});
      const auto tensor = et::CreateTensor(fbb_, 6, 0, sizes, order);
      values.push_back(et::CreateEValue(fbb_, et::KernelTypes::Tensor, tensor.Union()));
    }
    std::vector<flatbuffers::Offset<et::BackendDelegate>> delegates;
    std::vector<flatbuffers::Offset<et::Instruction>> instructions;
    for (size_t i = 0; i < method.delegates.size(); ++i) {
      delegates.push_back(delegate(method.delegates[i]));
      const auto args = fbb_.CreateVector(method.call_args);
      const int32_t index = method.call_delegate < 0 ? static_cast<int32_t>(i) : method.call_delegate;
      const auto call = et::CreateDelegateCall(fbb_, index, args);
      instructions.push_back(et::CreateInstruction(fbb_, et::InstructionArguments::DelegateCall, call.Union()));
    }
    if (method.extra) {
      method.extra(fbb_, &values, &instructions);
    }
    const auto steps = fbb_.CreateVector(instructions);
    const auto chains = fbb_.CreateVector(std::vector<flatbuffers::Offset<et::Chain>>{et::CreateChain(fbb_, 0, 0, steps)});
    const auto operators = fbb_.CreateVector(std::vector<flatbuffers::Offset<et::Operator>>{
        et::CreateOperator(fbb_, fbb_.CreateString("aten::add"), fbb_.CreateString("out"))});
    const auto name = method.no_name ? flatbuffers::Offset<flatbuffers::String>() : fbb_.CreateString(method.name);
    const auto values_list = fbb_.CreateVector(values);
    const auto in = fbb_.CreateVector(method.inputs);
    const auto out = fbb_.CreateVector(method.outputs);
    const auto delegates_list = fbb_.CreateVector(delegates);
    return et::CreateExecutionPlan(fbb_, name, 0, values_list, in, out, chains, operators, delegates_list);
  }

  flatbuffers::Offset<et::BackendDelegate> delegate(const DelegateSpec& delegate) {
    std::vector<flatbuffers::Offset<et::CompileSpec>> specs;
    for (const std::string& key : delegate.specs) {
      const auto text = fbb_.CreateString(key);
      specs.push_back(et::CreateCompileSpec(fbb_, text, fbb_.CreateVector(Buffer{1})));
    }
    const auto list = fbb_.CreateVector(specs);
    const auto id = delegate.no_id ? flatbuffers::Offset<flatbuffers::String>() : fbb_.CreateString(delegate.backend);
    const auto processed = delegate.no_processed
                               ? flatbuffers::Offset<et::BackendDelegateDataReference>()
                               : et::CreateBackendDelegateDataReference(fbb_, delegate.location, delegate.index);
    return et::CreateBackendDelegate(fbb_, id, processed, list);
  }

  const ProgramSpec& spec_;
  flatbuffers::FlatBufferBuilder fbb_;
};

// The header goes between the identifier and the rest, 32 bytes with its padding: the root's offset grows by as much.
void insert_header(const ProgramSpec& spec, uint64_t data_size, Buffer* file) {
  constexpr uint32_t kInserted = 32;
  uint32_t root = 0;
  std::memcpy(&root, file->data(), 4);
  root += kInserted;
  std::memcpy(file->data(), &root, 4);
  const uint64_t program = file->size() + kInserted;
  const uint64_t base = spec.segments.empty() && !spec.table ? 0 : (program + 15) / 16 * 16;
  Buffer header = {'e', 'h', '0', '0'};
  put(&header, spec.header_length, 4);
  put(&header, spec.program_size.value_or(program), 8);
  put(&header, spec.segment_base.value_or(base), 8);
  put(&header, spec.segment_data_size.value_or(data_size), 8);
  file->insert(file->begin() + 8, header.begin(), header.end());
}

}  // namespace

Buffer ProgramSpec::build() const {
  Buffer data;
  std::vector<SegmentSpec> right;
  for (const Buffer& segment : segments) {
    pad(&data);
    right.push_back({data.size(), segment.size()});
    data.insert(data.end(), segment.begin(), segment.end());
  }
  Buffer file = ProgramWriter(*this).flatbuffer(table.value_or(right));
  if (header) {
    insert_header(*this, data.size(), &file);
  }
  if (!data.empty()) {
    pad(&file);
    file.insert(file.end(), data.begin(), data.end());
  }
  return file;
}

ProgramSpec program_of(GraphBuilder& graph) {
  ProgramSpec spec;
  BlobSpec blob;
  blob.graph = graph.finish();
  spec.segments.push_back(blob.build());
  for (const auto& [key, bytes] : graph.named()) {
    Buffer data(bytes);
    for (size_t i = 0; i < data.size(); ++i) {
      data[i] = static_cast<uint8_t>(i + 1);
    }
    spec.named.emplace_back(key, static_cast<uint32_t>(spec.segments.size()));
    spec.segments.push_back(std::move(data));
  }
  spec.methods.push_back({});
  spec.methods.back().delegates.push_back({});
  spec.methods.back().call_args.assign(graph.call_size(), 0);
  return spec;
}

Buffer clean_file() {
  GraphBuilder graph;
  const int x = graph.input({1, 4});
  const int out = graph.rms_norm(x, graph.constant({4}), {1, 4});
  graph.outputs({static_cast<uint32_t>(out)});
  return program_of(graph).build();
}

void open_and_check(const Buffer& file, Opened* into) {
  into->reader = BytesReader(file.data(), file.size());
  into->error = Program::open(into->reader, &into->program);
  if (!into->error) {
    into->error = check(into->program, &into->report);
  }
}

}  // namespace etvk_guard::testing
