// SPDX-License-Identifier: Apache-2.0
//
// Puts the builder into the delegate's registry, and is the C API.
#include <etvk_guard/vulkan.h>

#include <cstdlib>
#include <cstring>

#include "control.h"
#include "graph_norm.h"
#include "versions.h"

#ifndef ETVK_GUARD_EXECUTORCH_VERSION
#define ETVK_GUARD_EXECUTORCH_VERSION "unknown"
#endif

namespace etvk_guard::vulkan {
namespace {

// For whoever must know before the library is loaded: it may bring the runtime of another release into the process.
__attribute__((used)) const char kBuiltFor[] = "etvk-guard: built for executorch " ETVK_GUARD_EXECUTORCH_VERSION;
#ifdef ETVK_GUARD_SELF_CONTAINED
// Likewise: beside another delegate it would guard its own, which nothing calls.
__attribute__((used)) const char kHasDelegate[] = "etvk-guard: has a delegate of its own";
#endif

Control& control();

struct Builder {
  Build build;
  versions::OpFunction stock;

  void operator()(vkcompute::ComputeGraph& graph, const std::vector<vkcompute::ValueRef>& args) const;
};

// Empty if all is well. A delegate that is not registered yet is checked at the first norm.
std::string find_mismatch() {
  const std::string advice = "; build etvk_guard_vulkan against the headers and options of the delegate in use. The delegate's own builders stay in effect";
  if (versions::delegate_has_event_tracer() != versions::kEventTracer) {
    return std::string("the Vulkan delegate was built ") + (versions::kEventTracer ? "without" : "with") + " ET_EVENT_TRACER_ENABLED, this library " +
           (versions::kEventTracer ? "with" : "without") + " it" + advice;
  }
  const size_t bytes = versions::delegate_graph_bytes();
  if (bytes != 0 && bytes != sizeof(vkcompute::ComputeGraph)) {
    return "the Vulkan delegate's ComputeGraph has " + std::to_string(bytes) + " bytes, but " + std::to_string(sizeof(vkcompute::ComputeGraph)) +
           " in the headers (ExecuTorch " ETVK_GUARD_EXECUTORCH_VERSION ") that this library was built against" + advice;
  }
  return "";
}

// The delegate is registered when a norm is built, however the two were linked and initialised.
void check_at_first_norm() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (const std::string mismatch = find_mismatch(); !mismatch.empty()) {
      control().refuse(mismatch);
    }
  });
}

void Builder::operator()(vkcompute::ComputeGraph& graph, const std::vector<vkcompute::ValueRef>& args) const {
  if (control().is_active()) {
    check_at_first_norm();
  }
  if (!control().is_active()) {
    stock(graph, args);
    return;
  }
  try {
    control().count(build(graph, args, stock));
  } catch (...) {
    control().count(Path::kRefused);
    throw;
  }
}

// If the op is there, ours takes its place and keeps it to call. If it is not, ours comes first, the delegate's own registration is then dropped by the
// registry, and ours calls that function by name.
void put_builder(const char* op, Build build, void (*by_name)(vkcompute::ComputeGraph&, const std::vector<vkcompute::ValueRef>&)) {
  auto& table = versions::table_of(vkcompute::operator_registry());
  const auto found = table.find(op);
  versions::OpFunction stock = by_name;
  if (found != table.end()) {
    if (found->second.target<Builder>() != nullptr) {
      return;
    }
    stock = found->second;
    table.erase(found);
  }
  table.emplace(op, Builder{build, std::move(stock)});
}

void put_ours() {
  put_builder(kOps[0], &build_rms_norm, &vkcompute::rms_norm);
  put_builder(kOps[1], &build_layer_norm, &vkcompute::native_layer_norm);
  put_builder(kOps[2], &build_group_norm, &vkcompute::native_group_norm);
  put_builder(kOps[3], &build_batch_norm, &vkcompute::native_batch_norm);
}

// Asks as the delegate does when it builds a graph.
bool is_ours(const char* op) {
  vkcompute::OperatorRegistry& registry = vkcompute::operator_registry();
  return registry.has_op(op) && registry.get_op_fn(op).target<Builder>() != nullptr;
}

// Never destroyed: graphs may be built while the process ends.
Control& control() {
  static auto* const it = new Control({&find_mismatch, &put_ours, &is_ours, &versions::log_line},
                                      {ETVK_GUARD_EXECUTORCH_VERSION, versions::kEventTracer, sizeof(vkcompute::ComputeGraph),
                                       kernels::kernel_table().count});
  return *it;
}

const State started = control().start(std::getenv("ETVK_GUARD"));

}  // namespace
}  // namespace etvk_guard::vulkan

int etvk_guard_vulkan_install(void) { return static_cast<int>(etvk_guard::vulkan::control().install()); }

int etvk_guard_vulkan_uninstall(void) { return static_cast<int>(etvk_guard::vulkan::control().uninstall()); }

size_t etvk_guard_vulkan_status(char* buffer, size_t size) {
  const std::string text = etvk_guard::vulkan::control().status();
  if (size != 0) {
    const size_t length = text.size() < size ? text.size() : size - 1;
    std::memcpy(buffer, text.data(), length);
    buffer[length] = '\0';
  }
  return text.size();
}
