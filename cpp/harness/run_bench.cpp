// SPDX-License-Identifier: Apache-2.0
#include "run_bench.h"

#include <algorithm>
#include <cstdio>

#include "json.h"

namespace etvk_guard::harness {
namespace {

using kernels::Dtype;
using kernels::Norm;
using kernels::Storage;

using Shape = std::pair<std::int32_t, std::int32_t>;
const std::vector<Shape> kGpuShapes = {{1, 4096},    {2048, 2048}, {8192, 4096}, {16384, 4096}, {1, 2048},   {1, 16384},
                                       {32, 4096},   {128, 1024},  {4096, 128},  {65535, 64},   {512, 8192}, {2048, 4095},
                                       {1, 256},     {16, 256}};
const std::vector<Shape> kCpuShapes = {{1, 4096}, {64, 2048}, {512, 1024}, {256, 4096}, {1, 256}, {2048, 128}, {64, 1000}};

// Bytes of two tensors above which no cache holds them, so that there is no "resident" to time.
constexpr double kNeverResident = 256e6;

struct Row {
  BenchSpec spec;
  kernels::Plan plan;
  Timing ours;
  Timing baseline;
  Timing copy;
  Timing texture_copy;  // 0 for buffers
  Timing empty;
  double total_bytes;
};

// Where x and out are, and weight and shift.
const std::pair<Storage, Storage> kStorages[] = {{Storage::kBuffer, Storage::kBuffer},
                                                 {Storage::kTexture3d, Storage::kTexture3d},
                                                 {Storage::kTexture3d, Storage::kBuffer}};

const char* text_of(Storage storage) { return storage == Storage::kTexture3d ? "texture3d" : "buffer"; }

std::string storage_of(const BenchSpec& spec) {
  const std::string operands = spec.x_storage == spec.operand_storage ? "" : std::string("/") + text_of(spec.operand_storage);
  return text_of(spec.x_storage) + operands;
}

std::string plan_text(const kernels::Plan& plan) {
  char text[128];
  std::snprintf(text, sizeof(text), "%ux%u groups %ux%u chunks %u rows %u early %u each %u%s %s", plan.local_size[0],
                plan.local_size[1], plan.groups[0], plan.groups[2], plan.spec.chunks, plan.spec.rows,
                static_cast<std::uint32_t>(plan.spec.early), plan.spec.each, plan.key.access == kernels::Access::kWhole ? " whole" : "",
                plan.key.reduction == kernels::Reduction::kSubgroup ? "subgroup" : "shared");
  return text;
}

// The spec, its operands of one row, in both storages and dtypes; then every kind of operand at two shapes.
std::vector<BenchSpec> list_specs(const DeviceInfo& device, const BenchOptions& options) {
  std::vector<Shape> shapes = options.shapes;
  if (shapes.empty()) {
    shapes = device.type == "cpu" ? kCpuShapes : kGpuShapes;
    shapes.resize(options.quick ? 4 : shapes.size());
  }
  std::vector<BenchSpec> specs;
  for (const Dtype dtype : {Dtype::kFloat, Dtype::kHalf}) {
    for (const auto& [storage, operand_storage] : kStorages) {
      for (const Shape& shape : shapes) {
        BenchSpec spec;
        spec.x_storage = storage;
        spec.operand_storage = operand_storage;
        spec.dtype = dtype;
        spec.rows = shape.first;
        spec.width = shape.second;
        specs.push_back(spec);
        const double bytes = 2.0 * shape.first * shape.second * (dtype == Dtype::kHalf ? 2.0 : 4.0);
        if (device.type != "cpu" && bytes > 16e6 && bytes < kNeverResident) {
          specs.back().cold = true;
          specs.push_back(spec);
        }
      }
    }
  }
  return specs;
}

std::vector<BenchSpec> operand_specs(const DeviceInfo& device) {
  const std::vector<Shape> shapes =
      device.type == "cpu" ? std::vector<Shape>{{256, 1024}} : std::vector<Shape>{{8, 4096}, {2048, 4096}};
  const std::pair<OperandKind, OperandKind> kinds[] = {
      {OperandKind::kNone, OperandKind::kNone}, {OperandKind::kRow, OperandKind::kNone},
      {OperandKind::kRow, OperandKind::kRow},   {OperandKind::kBatch, OperandKind::kNone},
      {OperandKind::kBatch, OperandKind::kBatch}, {OperandKind::kFull, OperandKind::kNone},
      {OperandKind::kFull, OperandKind::kFull}};
  std::vector<BenchSpec> specs;
  for (const Norm norm : {Norm::kRms, Norm::kLayer}) {
    for (const auto& [storage, operand_storage] : kStorages) {
      for (const Shape& shape : shapes) {
        for (const auto& [weight, shift] : kinds) {
          BenchSpec spec;
          spec.norm = norm;
          spec.x_storage = storage;
          spec.operand_storage = operand_storage;
          spec.rows = shape.first;
          spec.width = shape.second;
          spec.weight = weight;
          spec.shift = shift;
          specs.push_back(spec);
        }
      }
    }
  }
  return specs;
}

std::string row_json(const Row& row) {
  const BenchSpec& spec = row.spec;
  return JsonObject()
      .add("norm", spec.norm == Norm::kRms ? "rms" : "layer")
      .add("dtype", spec.dtype == Dtype::kHalf ? "half" : "float")
      .add("storage", text_of(spec.x_storage))
      .add("operand_storage", text_of(spec.operand_storage))
      .add("rows", static_cast<double>(spec.rows))
      .add("width", static_cast<double>(spec.width))
      .add("weight", name_of(spec.weight))
      .add("shift", name_of(spec.shift))
      .add("cold", spec.cold)
      .add("us", row.ours.each_us)
      .add("us_single", row.ours.single_us)
      .add("us_baseline", row.baseline.each_us)
      .add("us_copy", row.copy.each_us)
      .add("us_texture_copy", row.texture_copy.each_us)
      .add("us_empty", row.empty.each_us)
      .add("bytes", row.total_bytes)
      .add("plan", plan_text(row.plan))
      .text();
}

void print_header() {
  std::printf("%-5s %-5s %-16s %13s %-11s %-4s %9s %9s %9s %9s %9s %9s %7s  %s\n", "norm", "dtype", "storage",
              "rows x width", "weight+shift", "", "us", "single", "baseline", "copy", "texture", "empty", "GB/s", "dispatch");
}

std::string name_of(const BenchSpec& spec) {
  return std::string(spec.norm == Norm::kRms ? "rms " : "layer ") + (spec.dtype == Dtype::kHalf ? "half " : "float ") +
         storage_of(spec) + " " + std::to_string(spec.rows) + "x" + std::to_string(spec.width) + " " +
         name_of(spec.weight) + "+" + name_of(spec.shift) + (spec.cold ? " cold" : "");
}

void print_row(const Row& row) {
  const BenchSpec& spec = row.spec;
  const std::string shape = std::to_string(spec.rows) + "x" + std::to_string(spec.width);
  const std::string operands = name_of(spec.weight) + "+" + name_of(spec.shift);
  std::printf("%-5s %-5s %-16s %13s %-11s %-4s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %7.0f  %s\n",
              spec.norm == Norm::kRms ? "rms" : "layer", spec.dtype == Dtype::kHalf ? "half" : "float",
              storage_of(spec).c_str(), shape.c_str(), operands.c_str(), spec.cold ? "cold" : "", row.ours.each_us,
              row.ours.single_us, row.baseline.each_us, row.copy.each_us, row.texture_copy.each_us, row.empty.each_us,
              row.total_bytes / row.ours.each_us / 1e3,
              plan_text(row.plan).c_str());
}

Row time_spec(const Device& device, ProgramCache& programs, const BenchSpec& spec, TimingOptions timing) {
  Bench bench(device, programs, spec);
  Row row{spec, bench.chosen(), {}, {}, {}, {}, {}, bench.total_bytes()};
  row.ours = bench.time_plan(bench.chosen(), timing);
  timing.warm_up_us = 0.0;
  row.baseline = bench.time_baseline(timing);
  row.copy = bench.time_copy(timing);
  if (spec.x_storage == Storage::kTexture3d) {
    row.texture_copy = bench.time_texture_copy(timing);
  }
  row.empty = bench.time_empty(timing);
  return row;
}

std::uint32_t band_count(const Bench& bench, std::uint32_t rows) {
  const std::int32_t* x = bench.problem().x_sizes;
  return (static_cast<std::uint32_t>(x[1]) + rows - 1) / rows * static_cast<std::uint32_t>(x[2] * x[3]);
}

// The local size and rows of `plan`, with each time to load the operands, rows of a thread and split of a row.
void add_grids(const Bench& bench, const DeviceInfo& info, kernels::Plan plan, std::vector<kernels::Plan>* plans) {
  const bool may_early = bench.problem().operand_storage == Storage::kTexture3d || bench.problem().x_storage == Storage::kTexture3d;
  const bool whole = plan.key.access == kernels::Access::kWhole && plan.local_size[1] == 1;
  plan.groups[1] = 1;
  for (const kernels::Early early : {kernels::Early::kNot, kernels::Early::kRow}) {
    for (std::uint32_t each = 1; each <= (whole ? 4u : 1u); each *= 2) {
      const std::uint32_t bands = band_count(bench, plan.spec.rows * each);
      plan.groups[0] = (bands + plan.local_size[1] - 1) / plan.local_size[1];
      const bool may_split = plan.groups[0] <= 64 && bench.problem().x_storage == Storage::kTexture3d;
      for (std::uint32_t split = 1; split <= (may_split ? plan.spec.chunks : 1u); split *= 2) {
        plan.spec.early = early;
        plan.spec.each = each;
        plan.spec.split = plan.groups[2] = split;
        if (plan.groups[0] <= info.limits.max_groups_x && (may_early || early == kernels::Early::kNot)) {
          plans->push_back(plan);
        }
      }
    }
  }
}

// Every way to dispatch that keeps a row in at most 16 chunks a thread, without threads that have nothing to do.
std::vector<kernels::Plan> ways(const Bench& bench, const DeviceInfo& info) {
  const std::uint32_t elements = bench.chosen().key.access == kernels::Access::kVec8 ? 8 : 4;
  const std::uint32_t chunks = (static_cast<std::uint32_t>(bench.problem().x_sizes[0]) + elements - 1) / elements;
  const std::uint32_t narrowest = info.limits.subgroup_size;
  std::vector<kernels::Plan> plans;
  for (const std::uint32_t rows : {1u, 2u, 4u}) {
    const bool possible = bench.problem().x_storage == Storage::kTexture3d &&
                          bench.problem().x_sizes[1] >= static_cast<std::int32_t>(rows);
    for (std::uint32_t threads = narrowest; threads <= info.limits.max_threads; threads *= 2) {
      const std::uint32_t each = (chunks * rows + threads - 1) / threads;
      const bool idle = threads > narrowest && threads / 2 >= chunks * rows;
      if ((rows > 1 && !possible) || each > 16 || idle) {
        continue;
      }
      for (std::uint32_t units = 1; units <= (threads == narrowest ? 8u : 1u); units *= 2) {
        kernels::Plan plan = bench.chosen();
        plan.spec.rows = rows;
        plan.spec.chunks = each;
        plan.local_size[0] = threads;
        plan.local_size[1] = units;
        kernels::settle_access(bench.problem(), &plan);
        if (threads * units > info.limits.max_threads) {
          continue;
        }
        add_grids(bench, info, plan, &plans);
        if (info.type == "cpu" && each > 1) {  // reads rows twice, from a cache
          plan.spec.chunks = 1;
          kernels::settle_access(bench.problem(), &plan);
          add_grids(bench, info, plan, &plans);
        }
      }
    }
  }
  return plans;
}

void sweep_spec(const Device& device, ProgramCache& programs, const BenchSpec& spec, TimingOptions timing) {
  Bench bench(device, programs, spec);
  std::vector<std::pair<double, kernels::Plan>> timed;
  const std::vector<kernels::Plan> plans = ways(bench, device.info());
  for (const kernels::Plan& plan : plans) {
    programs.get(program_of(plan));  // before any is timed: while a driver compiles, the device's clock falls
  }
  bench.time_plan(bench.chosen(), timing);
  timing.warm_up_us = 0.0;
  for (const kernels::Plan& plan : plans) {
    timed.emplace_back(bench.time_plan(plan, timing).each_us, plan);
  }
  std::sort(timed.begin(), timed.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < std::min<std::size_t>(timed.size(), 12); ++i) {
    std::printf("    %9.2f  %s\n", timed[i].first, plan_text(timed[i].second).c_str());
  }
}

}  // namespace

void run_bench(const Instance& instance, VkPhysicalDevice physical, const BenchOptions& options) {
  const Device device(instance, physical);
  ProgramCache programs(device);
  std::vector<BenchSpec> specs = list_specs(device.info(), options);
  if (options.shapes.empty() && !options.quick) {
    const std::vector<BenchSpec> more = operand_specs(device.info());
    specs.insert(specs.end(), more.begin(), more.end());
  }
  std::vector<std::string> rows;
  if (!options.json) {
    std::printf("%s\n", device.info().name.c_str());
    print_header();
  }
  for (const BenchSpec& spec : specs) {
    if (!Bench::fits(device.info(), spec) || name_of(spec).find(options.only) == std::string::npos) {
      continue;
    }
    const Row row = time_spec(device, programs, spec, options.timing);
    rows.push_back(row_json(row));
    if (!options.json) {
      print_row(row);
      if (options.sweep) {
        sweep_spec(device, programs, spec, options.timing);
      }
      std::fflush(stdout);
    }
  }
  if (options.json) {
    std::printf("%s\n", JsonObject()
                            .add("device", device.info().name)
                            .add("type", device.info().type)
                            .add("driver", static_cast<double>(device.info().driver_version))
                            .add("chain", static_cast<double>(options.timing.chain))
                            .add("runs", static_cast<double>(options.timing.runs))
                            .add_json("rows", json_array(rows))
                            .text()
                            .c_str());
  }
}

}  // namespace etvk_guard::harness
