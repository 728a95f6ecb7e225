//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops of kernels have constant bounds, so an operation runs a known number of
// times; branches count as taken. Rates of products are those of the cost
// model. Cycles of an access are what the cost model's fit to times on an H200
// gives for its warp (research/reports/gpu.md): a scalar of 16 bits that is
// stored takes 0.68 cycles of a processor per element, a vector of four 0.034;
// elements that are loaded one by one cost 71 / 128.
//
//===----------------------------------------------------------------------===//

#include "KernelModel.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace kas;
using namespace mlir;

// Of a warp: cycles of a processor.
static constexpr double narrowStoreCycles = 0.68 * 32;
static constexpr double narrowLoadCycles = 71.0 / 128 * 32;
static constexpr double accessCycles = 0.034 * 128;
// The shortest kernel of a CUDA graph and the start of its first copies, in
// microseconds; cycles per microsecond; bytes per microsecond of the L2 cache.
static constexpr double launchTime = 3.3, clockRate = 1755, cacheRate = 7e6;

double KernelModel::getTime(int64_t processors) const {
  // Blocks are distributed evenly; the processor with the most decides.
  double share = static_cast<double>(llvm::divideCeil(blocks, processors)) /
                 static_cast<double>(std::max<int64_t>(blocks, 1));
  double loading =
      narrowLoads * narrowLoadCycles + (loads - narrowLoads) * accessCycles;
  double storing =
      narrowStores * narrowStoreCycles + (stores - narrowStores) * accessCycles;
  // Loads overlap with products, stores come after them.
  double main = std::max(productCycles, loading) * share / clockRate;
  return launchTime + std::max(main, readBytes / cacheRate) +
         std::max(storing * share / clockRate, writtenBytes / cacheRate);
}

namespace {

class KernelCounter {
public:
  explicit KernelCounter(gpu::GPUFuncOp kernel) : kernel(kernel) {}
  KernelModel count();

private:
  void count(Region &region, double times);
  void count(Operation *op, double times);
  /// An access of `type` by each thread.
  void addAccess(Value memory, Type type, double times, bool isStore);

  gpu::GPUFuncOp kernel;
  KernelModel model;
  /// Warps and threads of the grid.
  double numWarps = 0, numThreads = 0;
};

} // namespace

static double getTrips(scf::ForOp loop) {
  auto get = [](Value value) {
    return getConstantIntValue(getAsOpFoldResult(value)).value_or(1);
  };
  int64_t begin =
      getConstantIntValue(getAsOpFoldResult(loop.getLowerBound())).value_or(0);
  return static_cast<double>(
      llvm::divideCeil(get(loop.getUpperBound()) - begin, get(loop.getStep())));
}

static double getBytes(Type type) {
  double elements = 1;
  if (auto vector = dyn_cast<VectorType>(type))
    elements = static_cast<double>(vector.getNumElements());
  return elements * getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8;
}

void KernelCounter::addAccess(Value memory, Type type, double times,
                              bool isStore) {
  // Arguments of the kernel are in global memory.
  auto argument = dyn_cast<BlockArgument>(memory);
  if (!argument || argument.getOwner() != &kernel.getBody().front() ||
      argument.getArgNumber() >= kernel.getNumArguments())
    return;
  double bytes = getBytes(type);
  (isStore ? model.writtenBytes : model.readBytes) +=
      bytes * times * numThreads;
  (isStore ? model.stores : model.loads) += times * numWarps;
  if (bytes <= 2)
    (isStore ? model.narrowStores : model.narrowLoads) += times * numWarps;
}

void KernelCounter::count(Operation *op, double times) {
  llvm::TypeSwitch<Operation *>(op)
      .Case<memref::LoadOp, vector::LoadOp>([&](auto load) {
        Value memory = load->getOperand(0);
        addAccess(memory, load->getResult(0).getType(), times, false);
      })
      .Case<memref::StoreOp, vector::StoreOp>([&](auto store) {
        Value memory = store->getOperand(1);
        addAccess(memory, store->getOperand(0).getType(), times, true);
      })
      .Case([&](nvgpu::DeviceAsyncCopyOp copy) {
        auto type = cast<MemRefType>(copy.getSrc().getType());
        addAccess(copy.getSrc(),
                  VectorType::get(copy.getDstElements().getSExtValue(),
                                  type.getElementType()),
                  times, false);
      })
      // One thread asks for the whole block.
      .Case([&](TensorCopyOp copy) {
        model.readBytes += static_cast<double>(copy.getMap().getBoxElements()) *
                           2 * times * static_cast<double>(model.blocks);
        model.loads += times * static_cast<double>(model.blocks);
      })
      .Case([&](nvgpu::MmaSyncOp mma) {
        double products =
            16.0 * 8 * static_cast<double>(mma.getMmaShapeAsArray()[2]);
        model.productCycles +=
            products / (mma.getTf32Enabled() ? 512 : 1024) * times * numWarps;
      })
      .Case([&](WarpgroupMmaOp mma) {
        auto type = cast<VectorType>(mma.getSums().getType());
        double products =
            64.0 * 8 * static_cast<double>(type.getDimSize(0)) * 16;
        model.productCycles += products / 2048 * times * numWarps / 4;
      })
      .Case([&](math::FmaOp fma) {
        model.productCycles +=
            getBytes(fma.getType()) / 4 * 32 / 128 * times * numWarps;
      });
}

void KernelCounter::count(Region &region, double times) {
  for (Operation &op : region.getOps()) {
    count(&op, times);
    double inner = times;
    if (auto loop = dyn_cast<scf::ForOp>(op))
      inner *= getTrips(loop);
    for (Region &nested : op.getRegions())
      count(nested, inner);
  }
}

KernelModel KernelCounter::count() {
  auto multiply = [](DenseI32ArrayAttr sizes) {
    int64_t product = 1;
    for (int32_t size : sizes.asArrayRef())
      product *= size;
    return product;
  };
  model.name = kernel.getName().str();
  model.blocks = multiply(kernel.getKnownGridSizeAttr());
  model.threads = multiply(kernel.getKnownBlockSizeAttr());
  numThreads = static_cast<double>(model.blocks * model.threads);
  numWarps = static_cast<double>(model.blocks *
                                 llvm::divideCeil(model.threads, int64_t(32)));
  count(kernel.getBody(), 1);
  Attribute library = kernel->getAttr(KasGPUDialect::libraryName);
  if (library)
    model.library = isa<GPUMatmulAttr>(library) ? "cuBLASLt" : "cuDNN";
  return model;
}

llvm::Expected<std::vector<KernelModel>>
kas::modelKernels(ModuleOp module, const GPUFrontOptions &options) {
  OwningOpRef<ModuleOp> copy = module.clone();
  DialectRegistry registry;
  registerGPUPipelineDialects(registry);
  module.getContext()->appendDialectRegistry(registry);
  PassManager manager(module.getContext());
  buildGPUFrontHalf(manager, options);
  if (failed(manager.run(*copy)))
    return llvm::createStringError("the front half of the pipeline failed");
  std::vector<KernelModel> models;
  copy->walk([&](gpu::GPUFuncOp kernel) {
    models.push_back(KernelCounter(kernel).count());
  });
  return models;
}
