// SPDX-License-Identifier: Apache-2.0
//
// Small programs for the tests, written with flatbuffers' own builder: not with the code under test. Wrong values go in as they
// are given.
#pragma once

#include <etvk_guard/pte.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schema.h"

namespace etvk_guard::testing {

using Buffer = std::vector<uint8_t>;

// A VkGraph, value by value and op by op. Every call returns the id of the value it makes.
class GraphBuilder {
 public:
  static constexpr int8_t kHalf = 4;
  static constexpr int8_t kFloat = 5;
  static constexpr uint8_t kBuffer = 0;
  static constexpr uint8_t kTexture = 1;

  int tensor(const std::vector<uint32_t>& dims, int constant_id = -1, int8_t dtype = kFloat, int mem_obj_id = -1,
             uint8_t storage = kTexture, uint8_t layout = 0);
  // A tensor with a constant of the right size, under its own name in the program's named data.
  int constant(const std::vector<uint32_t>& dims, int8_t dtype = kFloat);
  int input(const std::vector<uint32_t>& dims, int8_t dtype = kFloat, uint8_t storage = kTexture);
  int null();
  int integer(int64_t value);
  int number(double value);
  int boolean(bool value);
  int int_list(const std::vector<int64_t>& items);
  int value_list(const std::vector<int32_t>& items);
  int symint(int32_t value);
  int typed(vk::GraphTypes type, flatbuffers::Offset<void> content);  // any union value, also a senseless one

  int add_bytes(uint64_t offset, uint64_t length, const char* key);  // a constant's entry; returns its id
  void op(const std::string& name, const std::vector<int32_t>& args);
  void nameless_op(const std::vector<int32_t>& args);
  void inputs(std::vector<uint32_t> ids) { input_ids_ = std::move(ids); }
  void outputs(std::vector<uint32_t> ids) { output_ids_ = std::move(ids); }
  size_t call_size() const { return input_ids_.size() + output_ids_.size(); }  // arguments of a call of its delegate
  void overrides(uint8_t storage, uint8_t layout) { storage_ = storage, layout_ = layout; }

  // norm(x) * weight in one op, as stock lowers it: [x, weight, eps, out]. Returns out.
  int rms_norm(int x, int weight, const std::vector<uint32_t>& dims, int8_t dtype = kFloat, uint8_t storage = kTexture);
  // [x, normalized_shape, weight, bias, eps, (out, mean, rstd)]. Returns out.
  int layer_norm(int x, int weight, int bias, const std::vector<uint32_t>& dims, int8_t dtype = kFloat);

  Buffer finish(const char* identifier = "VK00");
  flatbuffers::FlatBufferBuilder& fbb() { return fbb_; }
  const std::vector<std::pair<std::string, uint64_t>>& named() const { return named_; }

 private:
  int add(vk::GraphTypes type, flatbuffers::Offset<void> content);

  flatbuffers::FlatBufferBuilder fbb_;
  std::vector<flatbuffers::Offset<vk::VkValue>> values_;
  std::vector<flatbuffers::Offset<vk::OperatorCall>> chain_;
  std::vector<flatbuffers::Offset<vk::VkBytes>> constants_;
  std::vector<uint32_t> input_ids_, output_ids_;
  std::vector<std::pair<std::string, uint64_t>> named_;  // key, bytes
  uint8_t storage_ = 255, layout_ = 255;
};

// A Vulkan blob: header, flatbuffer, bytes, each padded to 16.
struct BlobSpec {
  Buffer graph;
  Buffer bytes;
  std::string magic = "VH00";
  std::optional<uint16_t> length;  // fields of the header, instead of the right ones
  std::optional<uint32_t> flatbuffer_offset, flatbuffer_size, bytes_offset;
  std::optional<uint64_t> bytes_size;
  Buffer build() const;
};

struct DelegateSpec {
  int8_t location = 1;  // 0: inline, 1: segment
  uint32_t index = 0;
  std::string backend = "VulkanBackend";
  std::vector<std::string> specs;  // keys of compile specs
  bool no_processed = false, no_id = false;
};

struct MethodSpec {
  std::string name = "forward";
  std::vector<DelegateSpec> delegates;
  int tensors = 2;  // values of the plan: float [1, 4]; the delegates take 0 and write 1
  std::vector<int32_t> inputs = {0}, outputs = {1};
  std::vector<int32_t> call_args = {0, 1};  // of every delegate call
  bool no_name = false;
  // Adds values after the tensors, and instructions after the calls.
  std::function<void(flatbuffers::FlatBufferBuilder&, std::vector<flatbuffers::Offset<et::EValue>>*,
                     std::vector<flatbuffers::Offset<et::Instruction>>*)>
      extra;
  int32_t call_delegate = -1;  // instead of each delegate in turn
};

struct SegmentSpec {
  uint64_t offset, size;  // after the segment base
};

// A program file: flatbuffer with extended header, then segments, 16-aligned.
struct ProgramSpec {
  std::vector<MethodSpec> methods;
  std::vector<Buffer> segments;
  std::vector<Buffer> inline_blobs;
  std::vector<std::pair<std::string, uint32_t>> named;  // key, segment
  std::optional<std::vector<SegmentSpec>> table;        // Program.segments, instead of the right one
  std::optional<std::pair<uint32_t, std::vector<uint64_t>>> constant_segment;
  std::string identifier = "ET12";
  bool header = true;
  uint32_t header_length = 32;
  std::optional<uint64_t> program_size, segment_base, segment_data_size;
  Buffer build() const;
};

// One method, one Vulkan delegate in a segment, the graph's named constants (bytes 1, 2, 3 ...) in one segment each.
ProgramSpec program_of(GraphBuilder& graph);
// norm(x) * w, w a constant [4]: clean.
Buffer clean_file();

struct Opened {
  Error error;
  BytesReader reader;
  Program program;
  Report report;
};
// Opens and checks. The result must not be moved, and `file` must outlive it.
void open_and_check(const Buffer& file, Opened* into);

}  // namespace etvk_guard::testing
