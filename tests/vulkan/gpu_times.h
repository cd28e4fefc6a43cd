// SPDX-License-Identifier: Apache-2.0
//
// The delegate's own timestamps. A delegate that was built with ET_EVENT_TRACER_ENABLED takes one before and one after each dispatch, and gives them
// to the event tracer of the program.
#pragma once

#include <cstdint>
#include <string>

#include <executorch/runtime/core/event_tracer.h>

// Adds up what the norms took, and the products after them.
class GpuTimes final : public executorch::runtime::EventTracer {
  using Index = executorch::runtime::DelegateDebugIntId;
  using Entry = executorch::runtime::EventTracerEntry;
  using Tensor = executorch::aten::Tensor;
  using Logged = executorch::runtime::Result<bool>;

 public:
  std::uint64_t nanoseconds = 0;
  int norms = 0;

  void restart() {
    nanoseconds = 0;
    norms = 0;
  }
  void log_profiling_delegate(const char* name, Index, et_timestamp_t start, et_timestamp_t end, const void*, size_t) override {
    const std::string shader = name == nullptr ? "" : name;
    const bool norm = shader.find("norm") != std::string::npos;
    norms += norm ? 1 : 0;
    nanoseconds += norm || shader.find("mul") != std::string::npos ? end - start : 0;
  }

  void create_event_block(const char*) override {}
  Entry start_profiling(const char*, executorch::runtime::ChainID, executorch::runtime::DebugHandle) override { return {}; }
  Entry start_profiling_delegate(const char*, Index) override { return {}; }
  void end_profiling_delegate(Entry, const void*, size_t) override {}
  void end_profiling(Entry) override {}
  void track_allocation(executorch::runtime::AllocatorID, size_t) override {}
  executorch::runtime::AllocatorID track_allocator(const char*) override { return 0; }
  Logged log_evalue(const executorch::runtime::EValue&, executorch::runtime::LoggedEValueType) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Index, const Tensor&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Index, const executorch::runtime::ArrayRef<Tensor>) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Index, const int&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Index, const bool&) override { return false; }
  Logged log_intermediate_output_delegate(const char*, Index, const double&) override { return false; }
  void set_delegation_intermediate_output_filter(executorch::runtime::EventTracerFilterBase*) override {}
};
