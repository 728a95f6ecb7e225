//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// What is timed: operators with several schedules, and whole networks.

#include "../../tools/kas-bench/GpuCases.h"
#include "../../tools/kas-bench/KasBench.h"
#include "SessionCases.h"
#include "kas/Codegen/GPU/Strategy/ScheduleSpace.h"
#include "kas/Conversion/OperatorModule.h"
#include "kas/ExecutionEngine/CPUFunction.h"
#include "kas/Support/DeviceManifest.h"
#include "kas/Support/ParseModule.h"
#include "kas/Support/Random.h"
#include "kas/Support/RunPasses.h"
#include "kas/Target/Text.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace kas::gpusession;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

namespace {
/// What a function computes, at some positions of its first result.
struct CPUResult {
  llvm::SmallVector<int64_t> shape;
  std::vector<uint32_t> positions;
  std::vector<float> values;
  double largest = 0;

  void setExpected(PackedCase &packed, double tolerance) const {
    packed.setExpectedAt(shape, positions, values, tolerance, largest);
  }
};
} // namespace

/// How many positions of a large result are compared.
static constexpr uint64_t numPositions = 4096;

/// `seed` is that of the arguments.
static Expected<CPUResult> computeOnCPU(mlir::ModuleOp module, StringRef name,
                                        uint64_t seed) {
  auto function = compileForCPU(module, name);
  if (!function)
    return function.takeError();
  const FunctionSignature &signature = function->getSignature();
  auto arguments = signature.makeArguments({}, seed);
  if (!arguments)
    return arguments.takeError();
  auto results = signature.makeResults();
  if (!results)
    return results.takeError();
  if (Error error = (*function)(*arguments, *results))
    return error;
  const Tensor &tensor = results->front();
  CPUResult result;
  result.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  for (float value : tensor.getValues())
    result.largest = std::max(result.largest, std::fabs(double(value)));
  uint64_t elements = static_cast<uint64_t>(tensor.getNumElements());
  Random random(seed);
  for (uint64_t i = 0; i < std::min(numPositions, elements); ++i) {
    result.positions.push_back(static_cast<uint32_t>(
        elements <= numPositions ? i : random.below(elements)));
    result.values.push_back(tensor.getValues()[result.positions.back()]);
  }
  return result;
}

static bool isPacked(const GPUVariant &variant, const SessionOptions &options) {
  return options.precisions.empty() ||
         llvm::is_contained(options.precisions, variant.name);
}

/// Those of `chips` that devices take: with its `a`, a chip does not count.
static std::vector<std::string>
getBestChips(llvm::ArrayRef<std::string> chips) {
  std::vector<std::string> best;
  for (const std::string &chip : chips)
    if (!llvm::is_contained(chips, chip + "a"))
      best.push_back(chip);
  return best;
}

Expected<std::optional<GPUProgram>>
gpusession::compileForChip(mlir::ModuleOp module, StringRef chip,
                           const GPUFrontOptions &front,
                           const SessionOptions &options) {
  if (chip == "vulkan") {
    if (front.precision != GPUPrecision::F32)
      return std::nullopt;
    SPIRVPipelineOptions pipeline;
    pipeline.front = front;
    return compileForSPIRV(module, pipeline);
  }
  NVVMPipelineOptions pipeline;
  pipeline.front = front;
  pipeline.chip = chip.str();
  pipeline.format = options.format;
  return compileForNVVM(module, pipeline);
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// Up to `count` schedules of `op`, the cost model's choice first. Half of them
/// are the cheapest ones, of those with the same tiles one only; the others are
/// spread over all that it says take up to eight times as long.
static Expected<std::vector<mlir::Attribute>>
getSchedules(mlir::Operation *op, GPUDeviceAttr device, GPUPrecision precision,
             unsigned count) {
  auto space = getGPUScheduleSpace(op, device, precision);
  if (!space)
    return space.takeError();
  std::vector<const SchedulePoint *> points;
  for (const SchedulePoint &point : space->points)
    if (point.cost.first <= 8 * space->leastCost)
      points.push_back(&point);
  // Of equal ones the first: they are in one array.
  llvm::sort(points, [](const SchedulePoint *left, const SchedulePoint *right) {
    return std::tie(left->cost, left) < std::tie(right->cost, right);
  });
  llvm::SetVector<mlir::Attribute> schedules;
  llvm::SmallVector<std::tuple<GPUStrategy, mlir::Attribute, mlir::Attribute>>
      seen;
  for (const SchedulePoint *point : points) {
    auto schedule = mlir::cast<GPUScheduleAttr>(point->schedule);
    std::tuple<GPUStrategy, mlir::Attribute, mlir::Attribute> key(
        schedule.getStrategy(), schedule.getBlock(), schedule.getTile());
    if (schedules.size() == llvm::divideCeil(count, 2) ||
        llvm::is_contained(seen, key))
      continue;
    seen.push_back(key);
    schedules.insert(point->schedule);
  }
  size_t missing = count - schedules.size();
  for (size_t i = 0; i < missing; ++i)
    schedules.insert(points[points.size() * (i + 1) / (missing + 1)]->schedule);
  return std::vector<mlir::Attribute>(schedules.begin(), schedules.end());
}

/// Adds programs for `chip`: in the i-th one each kernel has the i-th schedule
/// of its own.
static Error addPrograms(PackedCase &packed, mlir::ModuleOp module,
                         StringRef chip, const GPUVariant &variant,
                         const SessionOptions &options) {
  mlir::OwningOpRef<mlir::ModuleOp> formed = module.clone();
  if (Error error = runPasses(*formed, "the operator has no kernels",
                              [&](mlir::OpPassManager &manager) {
                                GPUFrontOptions front;
                                front.device = chip.str();
                                front.elements = variant.getElements();
                                buildGPUKernelFormation(manager, front);
                              }))
    return error;
  auto device = codegen::getGPUDevice(module.getContext(), chip);
  if (!device)
    return device.takeError();
  llvm::MapVector<mlir::Operation *, std::vector<mlir::Attribute>> schedules;
  size_t most = 1;
  formed->walk([&](mlir::Operation *op) {
    if (!mlir::isa<ApplyOp, mlir::linalg::GenericOp>(op))
      return;
    auto found =
        getSchedules(op, *device, variant.getPrecision(), options.schedules);
    // What is no sum of products has one form.
    if (!found)
      return llvm::consumeError(found.takeError());
    most = std::max(most, found->size());
    schedules[op] = std::move(*found);
  });
  for (size_t i = 0; i < most; ++i) {
    std::string text;
    for (auto &[op, all] : schedules) {
      mlir::Attribute schedule = all[std::min(i, all.size() - 1)];
      op->setAttr(KasGPUDialect::scheduleName, schedule);
      llvm::raw_string_ostream(text) << (text.empty() ? "" : "; ") << schedule;
    }
    GPUFrontOptions front;
    front.precision = variant.getPrecision();
    front.elements = variant.getElements();
    auto program = compileForChip(*formed, chip, front, options);
    if (!program)
      return program.takeError();
    if (*program)
      packed.addProgram(chip, text, **program);
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Adds the program that leaves to libraries what they are expected to be
/// faster at, if there is anything.
static Error addLibraryProgram(PackedCase &packed, mlir::ModuleOp module,
                               StringRef chip, const GPUVariant &variant,
                               const SessionOptions &options) {
  GPUFrontOptions front;
  front.precision = variant.getPrecision();
  front.elements = variant.getElements();
  front.libraries = GPULibraries::Auto;
  auto program = compileForChip(module, chip, front, options);
  if (!program)
    return program.takeError();
  if (!*program)
    return Error::success();
  auto manifest = DeviceManifest::fromJSON((*program)->manifest);
  if (!manifest)
    return manifest.takeError();
  if (llvm::any_of(manifest->kernels, [](const DeviceManifest::Kernel &kernel) {
        return kernel.matmul || kernel.convolution;
      }))
    packed.addLibraryProgram(chip, **program);
  return Error::success();
}

/// The cases of one operator, one for each precision. `name` is as people write
/// it: `kas.conv2d<N=1,...>`.
static Expected<std::vector<PackedCase>>
packTimed(const BenchOperator &loaded, StringRef name, StringRef className,
          const SessionOptions &options) {
  auto signature = FunctionSignature::get(*loaded.module, operatorFunctionName);
  if (!signature)
    return signature.takeError();
  auto expected = computeOnCPU(*loaded.module, operatorFunctionName, 0);
  if (!expected)
    return expected.takeError();
  std::string composite;
  llvm::raw_string_ostream stream(composite);
  target::writePyTorch(loaded.op, stream);
  std::vector<PackedCase> cases;
  for (const GPUVariant &variant : gpuVariants) {
    if (!isPacked(variant, options))
      continue;
    PackedCase packed((name + "/" + variant.name).str(), "time");
    packed.set("class", className.str());
    packed.set("flops", 2 * loaded.existingMacs);
    packed.set("composite", composite);
    for (const TensorSignature &argument : signature->arguments)
      packed.addArgument(argument, /*seed=*/0);
    for (const std::string &chip : getBestChips(options.chips))
      if (Error error = llvm::joinErrors(
              addPrograms(packed, *loaded.module, chip, variant, options),
              addLibraryProgram(packed, *loaded.module, chip, variant,
                                options)))
        return error;
    if (!packed.hasPrograms())
      continue;
    expected->setExpected(packed, variant.tolerance);
    cases.push_back(std::move(packed));
  }
  return cases;
}

static Expected<std::vector<PackedCase>>
packNamed(mlir::MLIRContext &context, const GPUCase &entry,
          const SessionOptions &options) {
  auto loaded = BenchOperator::load(context, entry.op, entry.binding);
  if (!loaded)
    return loaded.takeError();
  return packTimed(*loaded, (entry.op + "<" + entry.binding + ">").str(),
                   entry.className, options);
}

/// All operators of `FILE:BINDING`, called `FILE.operator<BINDING>`. A sequence
/// is so many operators: what is between them has kernels of its own in
/// PyTorch, too.
static Expected<std::vector<PackedCase>>
packFile(mlir::MLIRContext &context, StringRef text,
         const SessionOptions &options) {
  auto [file, binding] = text.rsplit(':');
  auto names = parseModule(context, file);
  if (!names)
    return names.takeError();
  std::vector<PackedCase> cases;
  for (auto op : (*names)->getOps<OperatorOp>()) {
    auto library = parseModule(context, file);
    if (!library)
      return library.takeError();
    auto source = mlir::cast<OperatorOp>(
        mlir::SymbolTable::lookupSymbolIn(**library, op.getSymName()));
    auto loaded = BenchOperator::load(std::move(*library), source, binding);
    if (!loaded)
      return loaded.takeError();
    std::string name = (llvm::sys::path::stem(file) + "." + op.getSymName() +
                        "<" + binding + ">")
                           .str();
    auto more = packTimed(*loaded, name, "found", options);
    if (!more)
      return more.takeError();
    llvm::move(*more, std::back_inserter(cases));
  }
  return cases;
}

std::vector<SessionJob>
gpusession::getTimingJobs(const SessionOptions &options) {
  std::vector<SessionJob> jobs;
  auto add = [&](const GPUCase &entry) {
    jobs.push_back([&entry, options](mlir::MLIRContext &context) {
      return packNamed(context, entry, options);
    });
  };
  llvm::for_each(gpuCases, add);
  if (options.otherCases)
    llvm::for_each(gpuOtherCases, add);
  return jobs;
}

std::vector<SessionJob>
gpusession::getOperatorJobs(const SessionOptions &options) {
  std::vector<SessionJob> jobs;
  for (const std::string &text : options.operators)
    jobs.push_back([text, options](mlir::MLIRContext &context) {
      return packFile(context, text, options);
    });
  return jobs;
}

//===----------------------------------------------------------------------===//
// Networks
//===----------------------------------------------------------------------===//

static Expected<std::vector<PackedCase>>
packNetwork(mlir::MLIRContext &context, StringRef file,
            const SessionOptions &options) {
  auto module = parseModule(context, file);
  if (!module)
    return module.takeError();
  constexpr StringRef function = "forward";
  constexpr uint64_t seed = 7;
  auto signature = FunctionSignature::get(**module, function);
  if (!signature)
    return signature.takeError();
  auto expected = computeOnCPU(**module, function, seed);
  if (!expected)
    return expected.takeError();
  std::vector<PackedCase> cases;
  for (const GPUVariant &variant : gpuVariants) {
    if (!isPacked(variant, options))
      continue;
    PackedCase packed((llvm::sys::path::stem(file) + "/" + variant.name).str(),
                      "network");
    packed.set("function", function.str());
    for (const TensorSignature &argument : signature->arguments)
      packed.addArgument(argument, seed);
    for (const std::string &chip : getBestChips(options.chips)) {
      GPUFrontOptions front;
      front.precision = variant.getPrecision();
      front.elements = variant.getElements();
      auto program = compileForChip(**module, chip, front, options);
      if (!program)
        return program.takeError();
      if (*program)
        packed.addProgram(chip, "", **program);
      if (Error error =
              addLibraryProgram(packed, **module, chip, variant, options))
        return error;
    }
    if (!packed.hasPrograms())
      continue;
    // Errors of one layer go through all that follow.
    expected->setExpected(packed, 5 * variant.tolerance);
    cases.push_back(std::move(packed));
  }
  return cases;
}

std::vector<SessionJob>
gpusession::getNetworkJobs(const SessionOptions &options) {
  std::vector<SessionJob> jobs;
  for (const std::string &file : options.networks)
    jobs.push_back([file, options](mlir::MLIRContext &context) {
      return packNetwork(context, file, options);
    });
  return jobs;
}
