// SPDX-License-Identifier: Apache-2.0
//
// Faulty programs, and their repair.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "builder.h"
#include "program.h"

namespace etvk_guard::testing {

inline constexpr int8_t kFloat = GraphBuilder::kFloat;

// A faulty graph: norm(x) * m, x [7, width], m at run time.
inline Buffer faulty_graph(uint32_t width = 4) {
  GraphBuilder graph;
  const int x = graph.input({7, width});
  const int m = graph.input({width});
  graph.outputs({static_cast<uint32_t>(graph.rms_norm(x, m, {7, width}))});
  return graph.finish();
}
inline Buffer blob_of(Buffer graph, Buffer bytes = {}) {
  BlobSpec spec;
  spec.graph = std::move(graph);
  spec.bytes = std::move(bytes);
  return spec.build();
}
inline Buffer clean_graph() {
  GraphBuilder graph;
  const int x = graph.input({1, 4});
  const int y = graph.input({1, 4});
  const int out = graph.tensor({1, 4});
  graph.op("aten.mul.Tensor", {x, y, out});
  graph.outputs({static_cast<uint32_t>(out)});
  return graph.finish();
}
inline Buffer counting(size_t size, uint8_t from) {
  Buffer bytes(size);
  for (size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<uint8_t>(from + i);
  }
  return bytes;
}
inline DelegateSpec in_segment(uint32_t index, std::string backend = "VulkanBackend") {
  DelegateSpec spec;
  spec.index = index;
  spec.backend = std::move(backend);
  return spec;
}
inline DelegateSpec in_line(uint32_t index) {
  DelegateSpec spec;
  spec.location = 0;
  spec.index = index;
  return spec;
}
inline MethodSpec method(std::string name, std::vector<DelegateSpec> delegates) {
  MethodSpec spec;
  spec.name = std::move(name);
  spec.delegates = std::move(delegates);
  spec.call_args = {0, 0, 1};  // two inputs and a result, as the graphs have
  return spec;
}

// A file, its repair, and the repaired file, opened.
struct Run {
  Buffer file, fixed;
  BytesReader reader, fixed_reader;
  Program program, fixed_program;
  Repair repair;
  Error error;
};

inline std::unique_ptr<Run> run(const Buffer& file) {
  auto made = std::make_unique<Run>();
  made->file = file;
  made->reader = BytesReader(made->file.data(), made->file.size());
  made->error = Program::open(made->reader, &made->program);
  if (!made->error) {
    made->error = repair(made->program, &made->repair);
  }
  if (!made->error) {
    made->fixed.resize(made->repair.overlay.size());
    EXPECT_TRUE(made->repair.overlay.read(0, made->fixed.data(), made->fixed.size()));
    made->fixed_reader = BytesReader(made->fixed.data(), made->fixed.size());
    made->error = Program::open(made->fixed_reader, &made->fixed_program);
  }
  return made;
}

inline Buffer slice(const Buffer& file, const Range& range) {
  return Buffer(file.begin() + static_cast<std::ptrdiff_t>(range.offset),
                file.begin() + static_cast<std::ptrdiff_t>(range.end()));
}

// Names, delegates, named data and every segment that is no repaired blob are as before; segments keep the alignment that all
// have.
inline void expect_rest_untouched(const Run& run) {
  const ProgramImpl& before = run.program.impl();
  const ProgramImpl& after = run.fixed_program.impl();
  ASSERT_EQ(after.segments.size(), before.segments.size());
  uint64_t alignment = 65536;
  for (const Range& range : before.segments) {
    while (range.offset % alignment != 0) {
      alignment /= 2;
    }
  }
  for (size_t i = 0; i < before.segments.size(); ++i) {
    EXPECT_EQ(after.segments[i].offset % alignment, 0u) << i;
    const bool blob =
        std::any_of(before.blobs.begin(), before.blobs.end(), [&](const Blob& b) { return b.range == before.segments[i]; });
    if (!blob) {
      EXPECT_EQ(slice(run.fixed, after.segments[i]), slice(run.file, before.segments[i])) << i;
    }
  }
  ASSERT_EQ(after.delegates.size(), before.delegates.size());
  for (size_t i = 0; i < before.delegates.size(); ++i) {
    EXPECT_EQ(after.backend(after.delegates[i]), before.backend(before.delegates[i]));
    EXPECT_EQ(after.delegates[i].segment, before.delegates[i].segment);
  }
  ASSERT_EQ(after.named_data.size(), before.named_data.size());
  for (size_t i = 0; i < before.named_data.size(); ++i) {
    EXPECT_EQ(after.named_data[i].key, before.named_data[i].key);
    EXPECT_EQ(after.named_data[i].segment, before.named_data[i].segment);
  }
}

inline std::vector<std::string> ops(const ProgramImpl& program, size_t delegate) {
  const GraphView& graph = program.blobs[static_cast<size_t>(program.delegates[delegate].blob)].graph;
  std::vector<std::string> names;
  for (uint32_t i = 0; i < graph.op_count(); ++i) {
    names.emplace_back(graph.op_name(i));
  }
  return names;
}
inline const std::vector<std::string> kFixedOps{"et_vk.rms_norm.default", "aten.mul.Tensor"};

inline ProgramSpec faulty() {
  ProgramSpec spec;
  spec.segments = {blob_of(faulty_graph())};
  spec.methods = {method("forward", {in_segment(0)})};
  return spec;
}

}  // namespace etvk_guard::testing
