// SPDX-License-Identifier: Apache-2.0
//
// Installed or not, what was built so far, and the status that says so. No ExecuTorch: what touches the delegate's registry comes in as Hooks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include "recipe.h"

namespace etvk_guard::vulkan {

inline constexpr std::array<const char*, 4> kOps = {"et_vk.rms_norm.default", "aten.native_layer_norm.default", "aten.native_group_norm.default",
                                                    "aten._native_batch_norm_legit_no_training.default"};

enum class State : int { kActive = 0, kInactive = 1, kDisabled = 2, kRefused = 3 };  // those of vulkan.h
const char* name(State state);

struct Hooks {
  // Null: the delegate is one that we can work with. Else why not. Asked again at each installation.
  std::string (*find_mismatch)();
  void (*put_ours)();              // into the registry; calling it again does nothing
  bool (*is_ours)(const char* op); // what the registry answers now
  void (*log)(const char* line, bool is_error);
};

struct BuildFacts {
  const char* executorch_version;
  bool event_tracer;
  size_t compute_graph_bytes;
  size_t kernels;
};

class Control {
 public:
  Control(const Hooks& hooks, const BuildFacts& facts) : hooks_(hooks), facts_(facts) {}

  // As the functions of the same names in vulkan.h. start(): what loading the library does; `setting` is ETVK_GUARD's value or null.
  State start(const char* setting);
  State install();
  State uninstall();
  std::string status();

  // For the builders: whether they are to work or to hand the site to stock.
  bool is_active() const { return state_.load(std::memory_order_acquire) == State::kActive; }
  // The delegate turned out not to fit, at the first site: from now on stock builds.
  void refuse(const std::string& why);
  void count(Path path) { sites_[static_cast<size_t>(path)].fetch_add(1, std::memory_order_relaxed); }

 private:
  State set(State state, const std::string& message, bool is_error);

  const Hooks hooks_;
  const BuildFacts facts_;
  std::mutex mutex_;
  std::atomic<State> state_{State::kInactive};
  std::string message_ = "never installed";
  std::array<std::atomic<unsigned long>, kPathCount> sites_{};
};

}  // namespace etvk_guard::vulkan
