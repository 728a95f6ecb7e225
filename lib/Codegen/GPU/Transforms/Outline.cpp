//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes kernels of scheduled operators and contractions, equal ones once, and
// replaces the operations by launches on flat buffers.
// In: operations with `kas_gpu.schedule`, on tensors; the epilogue of one has
// none. Out: one `gpu.module`
// with a `gpu.func` for each different kernel, and a `gpu.launch_func` with
// freshly allocated results for each operation; `-kas-bufferize` connects them.
//
//===----------------------------------------------------------------------===//

#include "../Emit/KernelEmitter.h"
#include "../Emit/LoopKernel.h"
#include "../Strategy/Prologue.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kas-gpu-outline"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUOUTLINEPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {

class Outliner {
public:
  explicit Outliner(ModuleOp module) : module(module), rewriter(module) {}

  /// Replaces one scheduled operation; fails, with an error, where the schedule
  /// or the sizes do not suit the device.
  LogicalResult outline(Operation *op);
  OutlinedKernels made;

private:
  /// Kernels are the same where operator, schedule, library and element type
  /// are.
  using Key = std::tuple<Operation *, Attribute, Attribute, Type>;
  using EmitBody =
      function_ref<void(const LaunchShape &launch, gpu::GPUFuncOp kernel)>;

  LogicalResult outline(ApplyOp apply);
  LogicalResult outline(linalg::GenericOp op);
  /// A contraction whose kernel computes what it reads first.
  LogicalResult outline(linalg::GenericOp op, ContractionProblem contraction,
                        const Prologue &prologue);

  /// Device and sizes of what `op` computes from `inputs`.
  FailureOr<GPUDeviceAttr> checkSizes(Operation *op, ValueRange inputs);
  FailureOr<GPUDeviceAttr> checkSizes(Operation *op, ValueRange inputs,
                                      const std::optional<Epilogue> &epilogue);
  /// The kernel of a concrete operator; the same one for the same schedule and
  /// types, without emitting it again.
  FailureOr<gpu::GPUFuncOp> getKernel(ApplyOp apply, OperatorOp op,
                                      const std::optional<Epilogue> &epilogue);
  /// Those of contractions and of other linalg operations are emitted, then
  /// compared with what there is.
  FailureOr<gpu::GPUFuncOp> createKernel(Operation *op, ValueRange inputs,
                                         const GPUKernelProblem &problem);
  FailureOr<gpu::GPUFuncOp> createKernel(linalg::GenericOp op,
                                         const LoopProblem &problem);
  /// Reads `inputs`, those of the prologue last.
  FailureOr<gpu::GPUFuncOp> createKernel(linalg::GenericOp op,
                                         ValueRange inputs,
                                         const GPUKernelProblem &problem,
                                         const Prologue &prologue);
  /// Arguments are the inputs, those of the epilogue, and the results of the
  /// last operation.
  gpu::GPUFuncOp createKernel(Operation *op, ValueRange inputs,
                              const std::optional<Epilogue> &epilogue,
                              const LaunchShape &launch, EmitBody emitBody);
  /// An earlier kernel that does the same, or this one.
  gpu::GPUFuncOp unify(gpu::GPUFuncOp kernel, func::FuncOp function);
  void replaceWithLaunch(Operation *op, ValueRange inputs,
                         const std::optional<Epilogue> &epilogue,
                         gpu::GPUFuncOp kernel);
  gpu::GPUModuleOp getKernelModule();
  /// `tensor` as a buffer of one dimension.
  Value flatten(Location loc, Value buffer);

  ModuleOp module;
  IRRewriter rewriter;
  llvm::DenseMap<Key, gpu::GPUFuncOp> kernels;
  /// By type, grid, block and library.
  llvm::MapVector<std::tuple<Type, Attribute, Attribute, Attribute>,
                  SmallVector<gpu::GPUFuncOp>>
      similarKernels;
  /// By function: kernels are named after the first one that launches them.
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

/// Kernels see buffers of one dimension: their addresses are linear.
static MemRefType getFlatType(ShapedType type) {
  return MemRefType::get({type.getNumElements()}, type.getElementType());
}

static GPUScheduleAttr getSchedule(Operation *op) {
  return op->getAttrOfType<GPUScheduleAttr>(KasGPUDialect::scheduleName);
}

FailureOr<GPUDeviceAttr> Outliner::checkSizes(Operation *op,
                                              ValueRange inputs) {
  GPUDeviceAttr device = getGPUDevice(op);
  if (!device)
    return op->emitError() << "expected a module with "
                           << KasGPUDialect::deviceName
                           << " (see -kas-gpu-schedule), got none";
  // Messages name operands as the operation does.
  bool isApply = isa<ApplyOp>(op);
  auto check = [&](Type type, const Twine &name) -> LogicalResult {
    auto shaped = cast<ShapedType>(type);
    int64_t bytes = shaped.getNumElements() *
                    llvm::divideCeil(shaped.getElementTypeBitWidth(), 8);
    if (bytes > device.getMaxBytes())
      return op->emitError()
             << "expected tensors of at most " << device.getMaxBytes()
             << " bytes for the device '" << device.getName() << "', got "
             << bytes << " for " << name;
    // Indices have 32 bits, which LLVM extends with their sign.
    if (shaped.getNumElements() > INT32_MAX)
      return op->emitError()
             << "expected tensors of at most " << INT32_MAX << " elements, got "
             << shaped.getNumElements() << " for " << name;
    return success();
  };
  for (auto [i, input] : llvm::enumerate(inputs))
    if (failed(check(input.getType(), !isApply ? "input " + Twine(i)
                                      : i == 0 ? Twine("the data")
                                               : "weight " + Twine(i - 1))))
      return failure();
  for (Type type : op->getResultTypes())
    if (failed(check(type, "the result")))
      return failure();
  return device;
}

FailureOr<GPUDeviceAttr>
Outliner::checkSizes(Operation *op, ValueRange inputs,
                     const std::optional<Epilogue> &epilogue) {
  FailureOr<GPUDeviceAttr> device = checkSizes(op, inputs);
  if (succeeded(device) && epilogue)
    return checkSizes(epilogue->op, epilogue->inputs);
  return device;
}

/// The inputs of the kernel of an operation.
static SmallVector<Value> getInputs(ValueRange inputs,
                                    const std::optional<Epilogue> &epilogue) {
  SmallVector<Value> all(inputs);
  if (epilogue)
    llvm::append_range(all, epilogue->inputs);
  return all;
}

gpu::GPUFuncOp Outliner::createKernel(Operation *op, ValueRange own,
                                      const std::optional<Epilogue> &epilogue,
                                      const LaunchShape &launch,
                                      EmitBody emitBody) {
  SmallVector<Value> inputs = getInputs(own, epilogue);
  Operation *last = epilogue ? epilogue->op : op;
  SmallVector<Type> types;
  for (Type type :
       llvm::concat<Type>(SmallVector<Type>(ValueRange(inputs).getTypes()),
                          SmallVector<Type>(last->getResultTypes())))
    types.push_back(getFlatType(cast<ShapedType>(type)));

  gpu::GPUModuleOp kernelModule = getKernelModule();
  auto function = op->getParentOfType<func::FuncOp>();
  std::string name =
      (function.getName() + "_" + Twine(numKernels[function.getOperation()]++))
          .str();
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPointToEnd(kernelModule.getBody());
  auto kernel =
      gpu::GPUFuncOp::create(rewriter, op->getLoc(), name,
                             rewriter.getFunctionType(types, TypeRange()));
  // Before the body is emitted: emitters add workgroup memory to the kernel.
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(),
                  rewriter.getUnitAttr());
  auto toDimensions = [](const std::array<int64_t, 3> &sizes) {
    return SmallVector<int32_t>(sizes.begin(), sizes.end());
  };
  // Known sizes: `-kas-gpu-prepare-nvvm` tells ptxas, the CPU emulation makes
  // loops of them, and the manifest takes them over.
  kernel.setKnownBlockSizeAttr(
      rewriter.getDenseI32ArrayAttr(toDimensions(launch.block)));
  kernel.setKnownGridSizeAttr(
      rewriter.getDenseI32ArrayAttr(toDimensions(launch.grid)));
  // For the manifest: what computes the same as the body.
  if (Attribute library = op->getAttr(KasGPUDialect::libraryName))
    kernel->setAttr(KasGPUDialect::libraryName, library);
  for (unsigned i = 0; i < types.size(); ++i)
    kernel.setArgAttr(
        i, KasGPUDialect::accessName,
        rewriter.getStringAttr(i < inputs.size() ? "read" : "write"));

  rewriter.setInsertionPointToStart(&kernel.getBody().front());
  auto end = gpu::ReturnOp::create(rewriter, op->getLoc());
  rewriter.setInsertionPoint(end);
  emitBody(launch, kernel);
  return unify(kernel, function);
}

gpu::GPUFuncOp Outliner::unify(gpu::GPUFuncOp kernel, func::FuncOp function) {
  SmallVector<gpu::GPUFuncOp> &similar =
      similarKernels[{kernel.getFunctionType(), kernel.getKnownGridSizeAttr(),
                      kernel.getKnownBlockSizeAttr(),
                      kernel->getAttr(KasGPUDialect::libraryName)}];
  // Bodies are compared operation by operation; candidates have the same types
  // and launch already.
  for (gpu::GPUFuncOp other : similar) {
    if (!OperationEquivalence::isRegionEquivalentTo(
            &kernel.getBody(), &other.getBody(),
            OperationEquivalence::IgnoreLocations))
      continue;
    // The number is free again, so names do not depend on duplicates.
    --numKernels[function.getOperation()];
    kernel.erase();
    return other;
  }
  ++made.kernels;
  similar.push_back(kernel);
  return kernel;
}

FailureOr<gpu::GPUFuncOp>
Outliner::createKernel(Operation *op, ValueRange inputs,
                       const GPUKernelProblem &problem) {
  FailureOr<GPUDeviceAttr> device = checkSizes(op, inputs, problem.epilogue);
  if (failed(device))
    return failure();
  GPUScheduleAttr schedule = getSchedule(op);
  FailureOr<LaunchShape> shape =
      getLaunchShape(problem, getInputType(inputs), schedule, *device,
                     [&] { return op->emitError(); });
  if (failed(shape))
    return failure();
  LDBG() << op->getLoc() << ": kernel of " << schedule;
  auto emitBody = [&](const LaunchShape &launch, gpu::GPUFuncOp kernel) {
    Location loc = op->getLoc();
    switch (schedule.getStrategy()) {
    case GPUStrategy::Direct:
      return emitDirectKernel(rewriter, loc, problem, schedule, launch, kernel,
                              kernel.getArguments());
    case GPUStrategy::Staged:
      return emitStagedKernel(rewriter, loc, problem, schedule, launch, kernel);
    case GPUStrategy::TensorCore:
      return emitTensorCoreKernel(rewriter, loc, problem, schedule, launch,
                                  kernel);
    case GPUStrategy::Warpgroup:
      return emitWarpgroupKernel(rewriter, loc, problem, schedule, launch,
                                 kernel);
    }
  };
  return createKernel(op, inputs, problem.epilogue, *shape, emitBody);
}

FailureOr<gpu::GPUFuncOp> Outliner::createKernel(linalg::GenericOp op,
                                                 const LoopProblem &problem) {
  FailureOr<GPUDeviceAttr> device =
      checkSizes(op, problem.inputs, problem.epilogue);
  if (failed(device) || failed(problem.verify()))
    return failure();
  GPUScheduleAttr schedule = getSchedule(op);
  FailureOr<LaunchShape> shape = getLaunchShape(
      problem, schedule, *device, [&] { return op->emitError(); });
  if (failed(shape))
    return failure();
  return createKernel(op, problem.inputs, problem.epilogue, *shape,
                      [&](const LaunchShape &launch, gpu::GPUFuncOp kernel) {
                        int64_t width =
                            schedule.getTile()
                                ? schedule.getTile().asArrayRef().back()
                                : 1;
                        emitLoopKernel(rewriter, op->getLoc(), problem, launch,
                                       width, kernel.getArguments());
                      });
}

/// The buffers of a contraction, of which the result of `prologue` is one of
/// workgroup memory: it is computed here. `numOwn` arguments of the kernel are
/// inputs of the contraction; those of the prologue follow.
static SmallVector<Value> emitPrologue(OpBuilder &builder, Location loc,
                                       const Prologue &prologue,
                                       const LaunchShape &launch,
                                       unsigned numOwn, gpu::GPUFuncOp kernel) {
  auto space = gpu::AddressSpaceAttr::get(builder.getContext(),
                                          gpu::AddressSpace::Workgroup);
  auto type = cast<ShapedType>(prologue.getLast()->getResult(0).getType());
  Value memory = kernel.addWorkgroupAttribution(
      MemRefType::get({type.getNumElements()}, type.getElementType(),
                      MemRefLayoutAttrInterface(), space),
      loc);
  SmallVector<Value> buffers(kernel.getArguments().take_front(
      kernel.getFunctionType().getNumInputs()));
  unsigned numInputs = prologue.getInputs().size();
  emitPrologue(builder, loc, prologue.problem, launch.block[0],
               ArrayRef(buffers).slice(numOwn, numInputs), memory);
  buffers.erase(buffers.begin() + numOwn, buffers.begin() + numOwn + numInputs);
  buffers.insert(buffers.begin() + prologue.tensor, memory);
  return buffers;
}

FailureOr<gpu::GPUFuncOp>
Outliner::createKernel(linalg::GenericOp op, ValueRange inputs,
                       const GPUKernelProblem &problem,
                       const Prologue &prologue) {
  FailureOr<GPUDeviceAttr> device = checkSizes(op, inputs, problem.epilogue);
  if (failed(device) || failed(prologue.problem.verify()))
    return failure();
  GPUScheduleAttr schedule = getSchedule(op);
  // Threads of others may leave before the barrier.
  if (schedule.getStrategy() != GPUStrategy::Direct || schedule.getDepth() == 0)
    return op->emitError() << "expected a direct kernel with a depth after "
                           << KasGPUDialect::prologueName << ", got "
                           << schedule;
  int64_t bytes = schedule.getSharedBytes() + prologue.getBytes(),
          most = getMaxSharedBytes(*device, schedule.getStrategy());
  if (bytes > most)
    return op->emitError() << "expected at most " << most
                           << " bytes of workgroup memory for the device '"
                           << device->getName() << "', got " << bytes
                           << " with those of " << KasGPUDialect::prologueName;
  FailureOr<LaunchShape> shape =
      getLaunchShape(problem, getInputType(inputs), schedule, *device,
                     [&] { return op->emitError(); });
  if (failed(shape))
    return failure();
  auto numOwn =
      static_cast<unsigned>(inputs.size() - prologue.getInputs().size());
  return createKernel(op, inputs, problem.epilogue, *shape,
                      [&](const LaunchShape &launch, gpu::GPUFuncOp kernel) {
                        SmallVector<Value> buffers =
                            ::emitPrologue(rewriter, op->getLoc(), prologue,
                                           launch, numOwn, kernel);
                        emitDirectKernel(rewriter, op->getLoc(), problem,
                                         schedule, launch, kernel, buffers);
                      });
}

FailureOr<gpu::GPUFuncOp>
Outliner::getKernel(ApplyOp apply, OperatorOp op,
                    const std::optional<Epilogue> &epilogue) {
  GPUKernelProblem problem = GPUKernelProblem::get(op);
  problem.epilogue = epilogue;
  // Equal epilogues are found when bodies are compared.
  if (epilogue)
    return createKernel(apply, apply->getOperands(), problem);
  Type types = FunctionType::get(apply.getContext(), apply->getOperandTypes(),
                                 apply->getResultTypes());
  Key key(op.getOperation(), getSchedule(apply),
          apply->getAttr(KasGPUDialect::libraryName), types);
  // Repeated layers of a network: nothing is emitted twice.
  if (gpu::GPUFuncOp kernel = kernels.lookup(key))
    return kernel;
  FailureOr<gpu::GPUFuncOp> kernel =
      createKernel(apply, apply->getOperands(), problem);
  if (succeeded(kernel))
    kernels[key] = *kernel;
  return kernel;
}

Value Outliner::flatten(Location loc, Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  if (type.getRank() == 1)
    return buffer;
  // A tensor without dimensions has one element, so it expands to one
  // dimension.
  if (type.getRank() == 0)
    return memref::ExpandShapeOp::create(rewriter, loc, getFlatType(type),
                                         buffer,
                                         ArrayRef<ReassociationIndices>());
  ReassociationIndices all(llvm::to_vector(llvm::seq<int64_t>(type.getRank())));
  return memref::CollapseShapeOp::create(rewriter, loc, buffer,
                                         ArrayRef<ReassociationIndices>(all));
}

/// Erases `op` and the views of its results, which nothing reads.
static void eraseWithViews(IRRewriter &rewriter, Operation *op) {
  for (Operation *view : llvm::make_early_inc_range(op->getUsers()))
    eraseWithViews(rewriter, view);
  rewriter.eraseOp(op);
}

void Outliner::replaceWithLaunch(Operation *first, ValueRange own,
                                 const std::optional<Epilogue> &epilogue,
                                 gpu::GPUFuncOp kernel) {
  SmallVector<Value> inputs = getInputs(own, epilogue);
  Operation *op = epilogue ? epilogue->op : first;
  Location loc = op->getLoc();
  rewriter.setInsertionPoint(op);
  auto getBufferType = [](Value tensor) {
    return cast<MemRefType>(
        bufferization::getMemRefTypeWithStaticIdentityLayout(
            cast<TensorType>(tensor.getType())));
  };
  SmallVector<Value> arguments;
  for (Value tensor : inputs)
    arguments.push_back(flatten(
        loc, bufferization::ToBufferOp::create(rewriter, loc,
                                               getBufferType(tensor), tensor,
                                               /*read_only=*/true)));
  SmallVector<Value> outputs;
  for (Value result : op->getResults()) {
    // Kernels assume 16 bytes; 64 is what bufferization aligns its own buffers
    // to.
    outputs.push_back(memref::AllocOp::create(
        rewriter, loc, getBufferType(result), rewriter.getI64IntegerAttr(64)));
    arguments.push_back(flatten(loc, outputs.back()));
  }
  auto toSizes = [&](DenseI32ArrayAttr sizes) {
    auto constant = [&](int32_t size) -> Value {
      return arith::ConstantIndexOp::create(rewriter, loc, size);
    };
    return gpu::KernelDim3{constant(sizes[0]), constant(sizes[1]),
                           constant(sizes[2])};
  };
  Value dynamicBytes;
  if (auto bytes =
          kernel->getAttrOfType<IntegerAttr>(KasGPUDialect::dynamicBytesName))
    dynamicBytes = arith::ConstantOp::create(
        rewriter, loc,
        rewriter.getI32IntegerAttr(static_cast<int32_t>(bytes.getInt())));
  gpu::LaunchFuncOp::create(
      rewriter, loc, kernel, toSizes(kernel.getKnownGridSizeAttr()),
      toSizes(kernel.getKnownBlockSizeAttr()), dynamicBytes, arguments);
  SmallVector<Value> tensors;
  for (auto [result, output] : llvm::zip_equal(op->getResults(), outputs))
    // `restrict`: nothing else aliases the new buffer, so bufferization needs
    // no copy.
    tensors.push_back(bufferization::ToTensorOp::create(
        rewriter, loc, result.getType(), output, /*restrict=*/true,
        /*writable=*/true));
  rewriter.replaceOp(op, tensors);
  if (epilogue)
    eraseWithViews(rewriter, first);
  ++made.launches;
}

LogicalResult Outliner::outline(ApplyOp apply) {
  OperatorOp op = apply.getOperator();
  if (!op || !op.isConcrete())
    return apply.emitOpError() << "requires a concrete operator (see "
                                  "-kas-specialize), got '@"
                               << apply.getCallee() << "'";
  std::optional<Epilogue> epilogue = Epilogue::get(apply);
  FailureOr<gpu::GPUFuncOp> kernel = getKernel(apply, op, epilogue);
  if (failed(kernel))
    return failure();
  replaceWithLaunch(apply, apply->getOperands(), epilogue, *kernel);
  return success();
}

LogicalResult Outliner::outline(linalg::GenericOp op,
                                ContractionProblem contraction,
                                const Prologue &prologue) {
  std::optional<Epilogue> epilogue = contraction.problem.epilogue;
  SmallVector<Value> inputs(contraction.inputs);
  inputs.erase(inputs.begin() + prologue.tensor);
  llvm::append_range(inputs, prologue.getInputs());
  FailureOr<gpu::GPUFuncOp> kernel =
      createKernel(op, inputs, contraction.problem, prologue);
  if (failed(kernel))
    return failure();
  linalg::GenericOp reduction = prologue.problem.op;
  replaceWithLaunch(op, inputs, epilogue, *kernel);
  // Nothing but views of it is left.
  eraseWithViews(rewriter, reduction);
  return success();
}

LogicalResult Outliner::outline(linalg::GenericOp op) {
  for (Type type : op->getOperandTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape() ||
        !tensor.getElementType().isIntOrFloat())
      return op.emitOpError() << "requires tensors of static shapes (see "
                                 "-kas-gpu-form-kernels) and of numbers, got "
                              << type;
  }
  // As in `-kas-gpu-schedule`: a contraction takes the strategies of operators,
  // any other operation a kernel with a thread per element.
  std::optional<Epilogue> epilogue = Epilogue::get(op);
  if (auto contraction = ContractionProblem::get(op)) {
    contraction->problem.epilogue = epilogue;
    if (auto prologue = Prologue::find(op, *contraction, /*isMarked=*/true))
      return outline(op, *contraction, *prologue);
    FailureOr<gpu::GPUFuncOp> kernel =
        createKernel(op, contraction->inputs, contraction->problem);
    if (failed(kernel))
      return failure();
    replaceWithLaunch(op, contraction->inputs, epilogue, *kernel);
    return success();
  }
  LoopProblem problem = LoopProblem::get(op);
  problem.epilogue = epilogue;
  FailureOr<gpu::GPUFuncOp> kernel = createKernel(op, problem);
  if (failed(kernel))
    return failure();
  replaceWithLaunch(op, problem.inputs, epilogue, *kernel);
  return success();
}

LogicalResult Outliner::outline(Operation *op) {
  if (auto apply = dyn_cast<ApplyOp>(op))
    return outline(apply);
  if (auto generic = dyn_cast<linalg::GenericOp>(op))
    return outline(generic);
  return op->emitError() << "requires a kas.apply or a linalg.generic for a "
                            "schedule, got '"
                         << op->getName() << "'";
}

FailureOr<OutlinedKernels> kas::codegen::outlineKernels(ModuleOp module) {
  SmallVector<Operation *> ops;
  // Collected first: outlining erases the operations.
  module->walk([&](Operation *op) {
    if (op->hasAttr(KasGPUDialect::scheduleName))
      ops.push_back(op);
  });
  Outliner outliner(module);
  for (Operation *op : ops)
    if (failed(outliner.outline(op)))
      return failure();
  WalkResult left = module->walk([](linalg::GenericOp op) {
    if (!op->hasAttr(KasGPUDialect::prologueName))
      return WalkResult::advance();
    op->emitError() << "expected " << KasGPUDialect::prologueName
                    << " on a reduction that one contraction with a schedule "
                       "alone reads, got another operation";
    return WalkResult::interrupt();
  });
  if (left.wasInterrupted())
    return failure();
  return outliner.made;
}

namespace {
struct GPUOutline : kas::codegen::impl::KasGPUOutlinePassBase<GPUOutline> {
  void runOnOperation() override {
    FailureOr<OutlinedKernels> made = outlineKernels(getOperation());
    if (failed(made))
      return signalPassFailure();
    numKernels += made->kernels;
    numLaunches += made->launches;
  }
};
} // namespace
