//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelEmitter.h"
#include "kas/GPU/GPU.h"
#include "kas/GPU/Passes.h"

namespace kas {
#define GEN_PASS_DEF_GPUOUTLINE
#include "kas/GPU/Passes.h.inc"
} // namespace kas

using namespace kas;
using namespace mlir;

namespace {

class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module), rewriter(module) {}

  LogicalResult outline(ApplyOp apply);
  OutlinedKernels made;

private:
  /// Kernels are the same where operator, schedule and element type are.
  using Key = std::tuple<Operation *, Attribute, Type>;

  LogicalResult checkSizes(ApplyOp apply, const GPUKernelProblem &problem,
                           GPUDeviceAttr device);
  FailureOr<gpu::GPUFuncOp> getKernel(ApplyOp apply, OperatorOp op);
  gpu::GPUFuncOp createKernel(ApplyOp apply, const GPUKernelProblem &problem,
                              const LaunchShape &launch);
  gpu::GPUModuleOp getKernelModule();
  /// `tensor` as a buffer of one dimension.
  Value flatten(Location loc, Value buffer);

  ModuleOp module;
  IRRewriter rewriter;
  llvm::DenseMap<Key, gpu::GPUFuncOp> kernels;
  llvm::DenseMap<Operation *, unsigned> numKernels;
};

} // namespace

gpu::GPUModuleOp Outliner::getKernelModule() {
  if (auto existing = module.lookupSymbol<gpu::GPUModuleOp>(kernelModuleName))
    return existing;
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  rewriter.getUnitAttr());
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToEnd(module.getBody());
  return gpu::GPUModuleOp::create(rewriter, module.getLoc(), kernelModuleName);
}

static MemRefType getFlatType(ShapedType type) {
  return MemRefType::get({type.getNumElements()}, type.getElementType());
}

LogicalResult Outliner::checkSizes(ApplyOp apply,
                                   const GPUKernelProblem &problem,
                                   GPUDeviceAttr device) {
  auto check = [&](Type type, const Twine &name) -> LogicalResult {
    auto shaped = cast<ShapedType>(type);
    int64_t bytes = shaped.getNumElements() *
                    llvm::divideCeil(shaped.getElementTypeBitWidth(), 8);
    if (bytes <= device.getMaxBytes())
      return success();
    return apply.emitError()
           << "expected tensors of at most " << device.getMaxBytes()
           << " bytes for the device '" << device.getName() << "', got "
           << bytes << " for " << name;
  };
  for (auto [i, type] : llvm::enumerate(apply->getOperandTypes()))
    if (failed(
            check(type, i == 0 ? Twine("the data") : "weight " + Twine(i - 1))))
      return failure();
  return check(apply.getResult().getType(), "the result");
}

gpu::GPUFuncOp Outliner::createKernel(ApplyOp apply,
                                      const GPUKernelProblem &problem,
                                      const LaunchShape &launch) {
  SmallVector<Type> types;
  for (Type type : apply->getOperandTypes())
    types.push_back(getFlatType(cast<ShapedType>(type)));
  types.push_back(getFlatType(cast<ShapedType>(apply.getResult().getType())));

  gpu::GPUModuleOp kernelModule = getKernelModule();
  auto function = apply->getParentOfType<func::FuncOp>();
  std::string name =
      (function.getName() + "_" + Twine(numKernels[function.getOperation()]++))
          .str();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToEnd(kernelModule.getBody());
  auto kernel =
      gpu::GPUFuncOp::create(rewriter, apply.getLoc(), name,
                             rewriter.getFunctionType(types, TypeRange()));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                  rewriter.getUnitAttr());
  auto toDimensions = [](const std::array<int64_t, 3> &sizes) {
    return SmallVector<int32_t>(sizes.begin(), sizes.end());
  };
  kernel.setKnownBlockSizeAttr(
      rewriter.getDenseI32ArrayAttr(toDimensions(launch.block)));
  kernel.setKnownGridSizeAttr(
      rewriter.getDenseI32ArrayAttr(toDimensions(launch.grid)));
  for (unsigned i = 0; i < types.size(); ++i)
    kernel.setArgAttr(
        i, KasGPUDialect::accessName,
        rewriter.getStringAttr(i + 1 < types.size() ? "read" : "write"));

  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  auto end = gpu::ReturnOp::create(rewriter, apply.getLoc());
  rewriter.setInsertionPoint(end);
  auto schedule =
      apply->getAttrOfType<GPUScheduleAttr>(KasGPUDialect::scheduleName);
  if (schedule.getRoad() == GPURoad::Direct)
    emitDirectKernel(rewriter, apply.getLoc(), problem, schedule, launch,
                     kernel.getArguments());
  else
    emitStagedKernel(rewriter, apply.getLoc(), problem, schedule, launch,
                     kernel);
  return kernel;
}

FailureOr<gpu::GPUFuncOp> Outliner::getKernel(ApplyOp apply, OperatorOp op) {
  auto schedule =
      apply->getAttrOfType<GPUScheduleAttr>(KasGPUDialect::scheduleName);
  Type elementType =
      cast<ShapedType>(apply.getResult().getType()).getElementType();
  gpu::GPUFuncOp &kernel = kernels[{op.getOperation(), schedule, elementType}];
  if (kernel)
    return kernel;
  GPUDeviceAttr device = getGPUDevice(apply);
  if (!device)
    return apply.emitError()
           << "expected a module with " << KasGPUDialect::deviceName
           << " (see -kas-gpu-schedule), got none";
  GPUKernelProblem problem = GPUKernelProblem::get(op);
  if (failed(checkSizes(apply, problem, device)))
    return failure();
  FailureOr<LaunchShape> launch = getLaunchShape(
      problem, schedule, device, [&] { return apply.emitError(); });
  if (failed(launch))
    return failure();
  ++made.kernels;
  return kernel = createKernel(apply, problem, *launch);
}

Value Outliner::flatten(Location loc, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getRank() == 1)
    return buffer;
  if (type.getRank() == 0)
    return memref::ExpandShapeOp::create(rewriter, loc, getFlatType(type),
                                         buffer,
                                         ArrayRef<ReassociationIndices>());
  ReassociationIndices all(llvm::to_vector(llvm::seq<int64_t>(type.getRank())));
  return memref::CollapseShapeOp::create(rewriter, loc, buffer,
                                         ArrayRef<ReassociationIndices>(all));
}

LogicalResult Outliner::outline(ApplyOp apply) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete())
    return apply.emitOpError() << "requires a concrete operator (see "
                                  "-kas-specialize), got '@"
                               << apply.getCallee() << "'";
  FailureOr<gpu::GPUFuncOp> kernel = getKernel(apply, op);
  if (failed(kernel))
    return failure();

  Location loc = apply.getLoc();
  rewriter.setInsertionPoint(apply);
  auto getBufferType = [](Value tensor) {
    return cast<MemRefType>(
        bufferization::getMemRefTypeWithStaticIdentityLayout(
            cast<TensorType>(tensor.getType())));
  };
  SmallVector<Value> arguments;
  for (Value tensor : apply->getOperands())
    arguments.push_back(flatten(
        loc, bufferization::ToBufferOp::create(rewriter, loc,
                                               getBufferType(tensor), tensor,
                                               /*read_only=*/true)));
  Value output =
      memref::AllocOp::create(rewriter, loc, getBufferType(apply.getResult()),
                              rewriter.getI64IntegerAttr(64));
  arguments.push_back(flatten(loc, output));
  auto toSizes = [&](DenseI32ArrayAttr sizes) {
    auto constant = [&](int32_t size) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, size);
    };
    return gpu::KernelDim3{constant(sizes[0]), constant(sizes[1]),
                           constant(sizes[2])};
  };
  gpu::LaunchFuncOp::create(rewriter, loc, *kernel,
                            toSizes(kernel->getKnownGridSizeAttr()),
                            toSizes(kernel->getKnownBlockSizeAttr()),
                            /*dynamicSharedMemorySize=*/Value(), arguments);
  rewriter.replaceOpWithNewOp<bufferization::ToTensorOp>(
      apply, apply.getResult().getType(), output, /*restrict=*/true,
      /*writable=*/true);
  ++made.launches;
  return success();
}

FailureOr<OutlinedKernels> kas::outlineKernels(ModuleOp module) {
  SmallVector<ApplyOp> applies;
  module->walk([&](ApplyOp apply) {
    if (apply->hasAttr(KasGPUDialect::scheduleName))
      applies.push_back(apply);
  });
  Outliner outliner(module);
  for (ApplyOp apply : applies)
    if (failed(outliner.outline(apply)))
      return failure();
  return outliner.made;
}

namespace {
struct GPUOutline : kas::impl::GPUOutlineBase<GPUOutline> {
  void runOnOperation() override {
    FailureOr<OutlinedKernels> made = outlineKernels(getOperation());
    if (failed(made))
      return signalPassFailure();
    numKernels += made->kernels;
    numLaunches += made->launches;
  }
};
} // namespace
