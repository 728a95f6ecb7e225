//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Adds the tensor map (TMA descriptor) parameters to kernels whose asynchronous
// copies need them.
// A descriptor is the pair of a buffer and a `#kas_gpu.tensor_map`; copies with
// the same pair share it. The manifest lists them in the same order, that of
// `getTensorMaps`, so that the runtime can append them to the buffers.
//
//===----------------------------------------------------------------------===//

#include "TensorMaps.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUPASSTENSORMAPSPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

FailureOr<TensorMaps> kas::codegen::getTensorMaps(gpu::GPUFuncOp kernel) {
  TensorMaps maps;
  WalkResult result = kernel.walk([&](TensorCopyOp copy) {
    auto argument = dyn_cast<BlockArgument>(copy.getBuffer());
    // The host encodes descriptors before the launch, so only buffers that it
    // passes can have one.
    if (!argument || argument.getOwner() != &kernel.getBody().front() ||
        argument.getArgNumber() >= kernel.getNumArguments()) {
      copy.emitOpError() << "expected a copy from an argument of the kernel";
      return WalkResult::interrupt();
    }
    maps[{argument.getArgNumber(), copy.getMap()}].push_back(copy);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return failure();
  return maps;
}

/// Adds a parameter of 128 bytes for each map, after the buffers.
static LogicalResult addParameters(gpu::GPUFuncOp kernel) {
  FailureOr<TensorMaps> maps = getTensorMaps(kernel);
  if (failed(maps))
    return failure();
  if (maps->empty())
    return success();
  Builder builder(kernel.getContext());
  auto pointer = LLVM::LLVMPointerType::get(kernel.getContext());
  // Upstream drops the attributes of parameters here.
  kernel->setAttr(
      KasGPUDialect::numTensorMapsName,
      builder.getI64IntegerAttr(static_cast<int64_t>(maps->size())));
  for (auto &[key, copies] : *maps) {
    unsigned number = kernel.getNumArguments();
    if (failed(kernel.insertArgument(
            number, pointer, builder.getDictionaryAttr({}), kernel.getLoc())))
      return kernel.emitError() << "expected a kernel that takes a descriptor";
    for (TensorCopyOp copy : copies)
      copy.getDescriptorMutable().assign(kernel.getArgument(number));
  }
  return success();
}

namespace {
struct GPUPassTensorMaps
    : kas::codegen::impl::KasGPUPassTensorMapsPassBase<GPUPassTensorMaps> {
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(addParameters(kernel)))
        return signalPassFailure();
  }
};
} // namespace
