//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the manifest of a device program (docs/internals/gpu.md, "The
// manifest") from the functions that launch its kernels.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Manifest.h"
#include "../NVVM/TensorMaps.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUWRITEMANIFESTPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// `f32`, `i8`, ... as MLIR prints types.
static std::string getDtype(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

namespace {

/// Kernels first, since functions refer to them by position. Within a function,
/// operations are read in order, and each buffer gets its position when it
/// first occurs: arguments and results, then constants, views and launches.
class ManifestReader {
public:
  ManifestReader(ModuleOp module, DeviceManifest &manifest)
      : module(module), manifest(manifest) {}

  LogicalResult read();

private:
  /// An error at `loc` where the type is not that of a buffer that a manifest
  /// describes.
  template <typename Tensor>
  static LogicalResult setShape(Tensor &tensor, Type type, Location loc) {
    auto shaped = dyn_cast<MemRefType>(type);
    if (!shaped || !shaped.hasStaticShape() ||
        !shaped.getElementType().isIntOrFloat())
      return emitError(loc)
             << "expected buffers of numbers of static shape in what a device "
                "runs, got "
             << type;
    tensor.dtype = getDtype(shaped.getElementType());
    tensor.shape.assign(shaped.getShape().begin(), shaped.getShape().end());
    return success();
  }

  /// Grid, block, workgroup memory and arguments of a kernel.
  static FailureOr<DeviceManifest::Kernel> readKernel(gpu::GPUFuncOp kernel);
  static LogicalResult readTensorMaps(gpu::GPUFuncOp kernel,
                                      DeviceManifest::Kernel &result);
  /// Buffers and launches of one function, and names for what has none.
  FailureOr<DeviceManifest::Function> readFunction(func::FuncOp function);
  LogicalResult checkLaunches(func::FuncOp function);
  /// The arguments of the function on buffers as arguments, results and status.
  LogicalResult readBuffers(func::FuncOp function,
                            DeviceManifest::Function &result);
  /// Adds the values of a constant as a buffer, with its bytes.
  LogicalResult readConstant(memref::GetGlobalOp op,
                             DeviceManifest::Function &result);
  /// One operation of a function: a buffer, a view of one, or a launch.
  /// Anything else would have to run on the host, which is an error.
  LogicalResult readOperation(Operation &op, DeviceManifest::Function &result);

  ModuleOp module;
  DeviceManifest &manifest;
  /// Positions in the manifest: of kernels by name, of buffers by value.
  llvm::StringMap<unsigned> kernels;
  llvm::DenseMap<Value, unsigned> buffers;
};

} // namespace

LogicalResult ManifestReader::readTensorMaps(gpu::GPUFuncOp kernel,
                                             DeviceManifest::Kernel &result) {
  FailureOr<TensorMaps> maps = getTensorMaps(kernel);
  if (failed(maps))
    return failure();
  for (auto &[key, copies] : *maps) {
    auto [number, map] = key;
    DeviceManifest::TensorMap &entry = result.tensorMaps.emplace_back();
    entry.argument = number;
    llvm::append_range(entry.sizes, map.getSizes().asArrayRef());
    llvm::append_range(entry.box, map.getBox().asArrayRef());
    // In bytes, as `cuTensorMapEncodeTiled` takes them.
    for (int64_t stride : map.getOuterStrides())
      entry.strides.push_back(
          stride *
          cast<MemRefType>(kernel.getArgument(number).getType())
              .getElementTypeBitWidth() /
          8);
  }
  return success();
}

/// Reads what products and convolutions have in common.
template <typename Library>
static void readEpilogue(Library library, DeviceManifest::Epilogue &epilogue) {
  if (library.getBias() >= 0)
    epilogue.bias = library.getBias();
  if (library.getResidual() >= 0)
    epilogue.residual = library.getResidual();
  epilogue.isRectified = library.getRectified();
  epilogue.precision = stringifyEnum(library.getPrecision());
}

static DeviceManifest::Matmul readMatmul(GPUMatmulAttr product) {
  auto getMatrix = [](DenseI64ArrayAttr entries) {
    ArrayRef<int64_t> numbers = entries;
    DeviceManifest::Matrix matrix;
    matrix.argument = numbers.front();
    matrix.strides.assign(numbers.begin() + 1, numbers.end());
    return matrix;
  };
  DeviceManifest::Matmul matmul;
  llvm::append_range(matmul.sizes, product.getSizes().asArrayRef());
  matmul.left = getMatrix(product.getLeft());
  matmul.right = getMatrix(product.getRight());
  matmul.result = getMatrix(product.getResult());
  readEpilogue(product, matmul);
  return matmul;
}

static DeviceManifest::Convolution readConvolution(GPUConvolutionAttr from) {
  auto getNumbers = [](DenseI64ArrayAttr array) {
    ArrayRef<int64_t> numbers = array;
    return std::vector<uint64_t>(numbers.begin(), numbers.end());
  };
  DeviceManifest::Convolution convolution;
  convolution.image = from.getImage();
  convolution.filter = from.getFilter();
  convolution.result = from.getResult();
  convolution.imageSizes = getNumbers(from.getImageSizes());
  convolution.filterSizes = getNumbers(from.getFilterSizes());
  convolution.strides = getNumbers(from.getStrides());
  convolution.dilations = getNumbers(from.getDilations());
  convolution.pads = getNumbers(from.getPads());
  convolution.areChannelsLast = from.getChannelsLast();
  readEpilogue(from, convolution);
  return convolution;
}

FailureOr<DeviceManifest::Kernel>
ManifestReader::readKernel(gpu::GPUFuncOp kernel) {
  DeviceManifest::Kernel result;
  result.name = kernel.getName();
  // Only `-kas-gpu-outline` is sure to set them.
  if (!kernel.getKnownGridSizeAttr() || !kernel.getKnownBlockSizeAttr())
    return kernel.emitError() << "expected a kernel with known_grid_size and "
                                 "known_block_size, got none";
  auto grid = kernel.getKnownGridSizeAttr().asArrayRef();
  auto block = kernel.getKnownBlockSizeAttr().asArrayRef();
  for (unsigned i = 0; i < 3; ++i) {
    result.grid[i] = grid[i];
    result.block[i] = block[i];
  }
  for (BlockArgument shared : kernel.getWorkgroupAttributions()) {
    DeviceManifest::TensorShape shape;
    if (failed(setShape(shape, shared.getType(), kernel.getLoc())))
      return failure();
    // Each attribution is aligned to 16 bytes (`-kas-gpu-prepare-nvvm`).
    result.sharedBytes += llvm::alignTo(shape.getBytes(), 16);
  }
  if (auto bytes =
          kernel->getAttrOfType<IntegerAttr>(KasGPUDialect::dynamicBytesName))
    result.dynamicSharedBytes = bytes.getInt();
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    DeviceManifest::Argument &argument = result.arguments.emplace_back();
    if (failed(setShape(argument, kernel.getArgument(i).getType(),
                        kernel.getLoc())))
      return failure();
    auto access =
        kernel.getArgAttrOfType<StringAttr>(i, KasGPUDialect::accessName);
    // Kernels that others wrote may lack the attribute.
    argument.access = access ? access.str() : "read_write";
  }
  if (failed(readTensorMaps(kernel, result)))
    return failure();
  Attribute library = kernel->getAttr(KasGPUDialect::libraryName);
  if (auto product = dyn_cast_if_present<GPUMatmulAttr>(library))
    result.matmul = readMatmul(product);
  if (auto convolution = dyn_cast_if_present<GPUConvolutionAttr>(library))
    result.convolution = readConvolution(convolution);
  return result;
}

/// Kernels of the module alone are known here.
LogicalResult ManifestReader::checkLaunches(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError() << "expected a function of one block to launch "
                                   "kernels, got several";
  WalkResult result = function.walk([&](gpu::LaunchFuncOp launch) {
    auto found = kernels.find(launch.getKernelName());
    if (found != kernels.end() &&
        manifest.kernels[found->second].arguments.size() ==
            launch.getKernelOperands().size())
      return WalkResult::advance();
    launch.emitError() << "expected a launch of a gpu.func of the module with "
                          "all of its arguments, got '"
                       << launch.getKernelName() << "'";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

LogicalResult ManifestReader::readBuffers(func::FuncOp function,
                                          DeviceManifest::Function &result) {
  // -kas-bufferize puts results after the arguments, and only the arguments
  // keep attributes; what a kernel writes is a result.
  llvm::DenseSet<Value> written;
  function.walk([&](gpu::LaunchFuncOp launch) {
    const DeviceManifest::Kernel &kernel =
        manifest.kernels[kernels.lookup(launch.getKernelName())];
    for (auto [argument, output] :
         llvm::zip_equal(kernel.arguments, launch.getKernelOperands())) {
      if (argument.access == "read")
        continue;
      // A view of a result is written: so is the result.
      while (auto view = output.getDefiningOp<ViewLikeOpInterface>())
        output = view.getViewSource();
      written.insert(output);
    }
  });
  if (auto texts =
          function->getAttrOfType<ArrayAttr>(KasGPUDialect::assertionsName))
    for (auto text : texts.getAsRange<StringAttr>())
      result.assertions.push_back(text.str());
  for (BlockArgument argument : function.getArguments()) {
    DeviceManifest::Buffer buffer;
    bool isResult = written.contains(argument);
    // `-kas-gpu-return-assertions` adds the status as the last result.
    bool isStatus = !result.assertions.empty() &&
                    argument == function.getArguments().back();
    buffer.kind = isStatus   ? DeviceManifest::BufferKind::Status
                  : isResult ? DeviceManifest::BufferKind::Result
                             : DeviceManifest::BufferKind::Argument;
    if (isStatus)
      buffer.name = "status";
    if (failed(setShape(buffer, argument.getType(), function.getLoc())))
      return failure();
    auto name = function.getArgAttrOfType<StringAttr>(
        argument.getArgNumber(), KasDialect::argumentNameAttrName);
    if (name)
      buffer.name = name.str();
    buffers[argument] = result.buffers.size();
    result.buffers.push_back(std::move(buffer));
  }
  return success();
}

LogicalResult ManifestReader::readConstant(memref::GetGlobalOp op,
                                           DeviceManifest::Function &result) {
  auto global = module.lookupSymbol<memref::GlobalOp>(op.getName());
  ElementsAttr values;
  if (global)
    values = dyn_cast_if_present<ElementsAttr>(
        global.getInitialValue().value_or(Attribute()));
  DeviceManifest::Buffer buffer;
  buffer.kind = DeviceManifest::BufferKind::Constant;
  buffer.name = op.getName();
  if (failed(setShape(buffer, op.getType(), op.getLoc())))
    return failure();
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(values)) {
    ArrayRef<char> bytes = dense.getRawData();
    // A splat stores one element.
    int64_t times = dense.isSplat() ? dense.getNumElements() : 1;
    for (int64_t i = 0; i < times; ++i)
      buffer.data.append(bytes.begin(), bytes.end());
  } else if (auto resource =
                 dyn_cast_if_present<DenseResourceElementsAttr>(values)) {
    // A resource may be missing from the file: the size below reports it.
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      buffer.data.assign(blob->getData().begin(), blob->getData().end());
  }
  if (buffer.data.size() != buffer.getBytes())
    return op.emitError() << "expected a constant of " << buffer.getBytes()
                          << " bytes, got " << buffer.data.size();
  buffers[op] = result.buffers.size();
  result.buffers.push_back(std::move(buffer));
  return success();
}

LogicalResult ManifestReader::readOperation(Operation &op,
                                            DeviceManifest::Function &result) {
  if (op.hasTrait<OpTrait::ConstantLike>() || isa<func::ReturnOp>(op))
    return success();
  // The memory of all temporaries (`-kas-gpu-plan-buffers`): its views are the
  // buffers, each with an offset.
  if (auto alloc = dyn_cast<memref::AllocOp>(op);
      alloc && alloc->hasAttr(KasGPUDialect::scratchName)) {
    result.scratchBytes = alloc.getType().getNumElements();
    return success();
  }
  // Two views at one offset are two buffers of the manifest that share memory.
  if (auto view = dyn_cast<memref::ViewOp>(op)) {
    APInt offset;
    if (!matchPattern(view.getByteShift(), m_ConstantInt(&offset)))
      return view.emitError()
             << "expected a constant offset, got " << view.getByteShift();
    DeviceManifest::Buffer buffer;
    buffer.kind = DeviceManifest::BufferKind::Scratch;
    buffer.offset = offset.getSExtValue();
    if (failed(setShape(buffer, view.getType(), view.getLoc())))
      return failure();
    buffers[view] = result.buffers.size();
    result.buffers.push_back(std::move(buffer));
    return success();
  }
  if (auto constant = dyn_cast<memref::GetGlobalOp>(op))
    return readConstant(constant, result);
  if (isa<memref::CollapseShapeOp, memref::ExpandShapeOp>(op)) {
    // A reshape is the same buffer.
    buffers[op.getResult(0)] =
        buffers.lookup(cast<ViewLikeOpInterface>(op).getViewSource());
    return success();
  }
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
    DeviceManifest::Launch &entry = result.launches.emplace_back();
    entry.kernel = kernels.lookup(launch.getKernelName());
    for (Value operand : launch.getKernelOperands()) {
      auto buffer = buffers.find(operand);
      if (buffer == buffers.end())
        return launch.emitError() << "expected arguments, constants and views "
                                     "of the scratch memory, got "
                                  << operand;
      entry.arguments.push_back(buffer->second);
    }
    return success();
  }
  return op.emitError() << "expected a function that launches kernels and does "
                           "nothing else, got "
                        << op.getName();
}

FailureOr<DeviceManifest::Function>
ManifestReader::readFunction(func::FuncOp function) {
  DeviceManifest::Function result;
  result.name = function.getName();
  buffers.clear();
  if (failed(checkLaunches(function)) || failed(readBuffers(function, result)))
    return failure();
  for (Operation &op : function.getBody().front())
    if (failed(readOperation(op, result)))
      return failure();
  if (auto count = function->getAttrOfType<IntegerAttr>(
          KasGPUDialect::numPrepackLaunchesName))
    result.numPrepackLaunches = std::min<size_t>(
        static_cast<size_t>(count.getInt()), result.launches.size());
  // Names where the program gives none.
  unsigned numArguments = 0, numResults = 0;
  for (DeviceManifest::Buffer &buffer : result.buffers) {
    if (buffer.kind != DeviceManifest::BufferKind::Argument &&
        buffer.kind != DeviceManifest::BufferKind::Result)
      continue;
    bool isResult = buffer.kind == DeviceManifest::BufferKind::Result;
    unsigned number = isResult ? numResults++ : numArguments++;
    if (buffer.name.empty())
      buffer.name = (isResult ? "result" : "argument") + std::to_string(number);
  }
  return result;
}

LogicalResult ManifestReader::read() {
  for (auto kernelModule : module.getOps<gpu::GPUModuleOp>())
    for (auto kernel : kernelModule.getOps<gpu::GPUFuncOp>()) {
      kernels[kernel.getName()] = manifest.kernels.size();
      FailureOr<DeviceManifest::Kernel> result = readKernel(kernel);
      if (failed(result))
        return failure();
      manifest.kernels.push_back(std::move(*result));
    }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    FailureOr<DeviceManifest::Function> result = readFunction(function);
    if (failed(result))
      return failure();
    manifest.functions.push_back(std::move(*result));
  }
  return success();
}

FailureOr<DeviceManifest>
kas::codegen::getDeviceManifest(ModuleOp module,
                                DeviceManifest::Target target) {
  DeviceManifest manifest;
  manifest.target = std::move(target);
  if (failed(ManifestReader(module, manifest).read()))
    return failure();
  return manifest;
}

namespace {
struct GPUWriteManifest
    : kas::codegen::impl::KasGPUWriteManifestPassBase<GPUWriteManifest> {
  using KasGPUWriteManifestPassBase::KasGPUWriteManifestPassBase;

  void runOnOperation() override {
    DeviceManifest::Target target{toString(api).str(),
                                  chip,
                                  toString(format).str(),
                                  {capabilities.begin(), capabilities.end()}};
    FailureOr<DeviceManifest> manifest =
        getDeviceManifest(getOperation(), target);
    if (failed(manifest))
      return signalPassFailure();
    getOperation()->setAttr(KasGPUDialect::manifestName,
                            StringAttr::get(&getContext(), manifest->toJSON()));
  }
};
} // namespace
