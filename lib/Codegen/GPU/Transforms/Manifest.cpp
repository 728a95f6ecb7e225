//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Manifest.h"
#include "../NVVM/TensorMaps.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/ExecutionEngine/Signature.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/Support/Base64.h"
#include "llvm/Support/JSON.h"

namespace kas::codegen {
#define GEN_PASS_DEF_GPUWRITEMANIFEST
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace kas::execution;
using namespace mlir;

//===----------------------------------------------------------------------===//
// From functions
//===----------------------------------------------------------------------===//

static std::string getDtype(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

int64_t GPUManifest::TensorShape::getBytes() const {
  int64_t bytes = dtype == "f16" || dtype == "bf16" || dtype == "i16" ? 2
                  : dtype == "f64" || dtype == "i64"                  ? 8
                  : dtype == "i8" || dtype == "i1"                    ? 1
                                                                      : 4;
  for (int64_t size : shape)
    bytes *= size;
  return bytes;
}

namespace {

class ManifestReader {
public:
  ManifestReader(ModuleOp module, GPUManifest &manifest)
      : module(module), manifest(manifest) {}

  LogicalResult read();

private:
  template <typename Tensor>
  static void setShape(Tensor &tensor, Type type) {
    auto shaped = cast<MemRefType>(type);
    tensor.dtype = getDtype(shaped.getElementType());
    tensor.shape.assign(shaped.getShape().begin(), shaped.getShape().end());
  }

  static FailureOr<GPUManifest::Kernel> readKernel(gpu::GPUFuncOp kernel);
  static LogicalResult readTensorMaps(gpu::GPUFuncOp kernel,
                                      GPUManifest::Kernel &result);
  FailureOr<GPUManifest::Function> readFunction(func::FuncOp function);
  void readBuffers(func::FuncOp function, GPUManifest::Function &result);
  LogicalResult readConstant(memref::GetGlobalOp op,
                             GPUManifest::Function &result);
  LogicalResult readOperation(Operation &op, GPUManifest::Function &result);

  ModuleOp module;
  GPUManifest &manifest;
  llvm::StringMap<unsigned> kernels;
  llvm::DenseMap<Value, unsigned> buffers;
};

} // namespace

LogicalResult ManifestReader::readTensorMaps(gpu::GPUFuncOp kernel,
                                             GPUManifest::Kernel &result) {
  FailureOr<TensorMaps> maps = getTensorMaps(kernel);
  if (failed(maps))
    return failure();
  for (auto &[key, copies] : *maps) {
    auto [number, map] = key;
    GPUManifest::TensorMap &entry = result.tensorMaps.emplace_back();
    entry.argument = number;
    llvm::append_range(entry.sizes, map.getSizes().asArrayRef());
    llvm::append_range(entry.box, map.getBox().asArrayRef());
    for (int64_t stride : map.getOuterStrides())
      entry.strides.push_back(
          stride *
          cast<MemRefType>(kernel.getArgument(number).getType())
              .getElementTypeBitWidth() /
          8);
  }
  return success();
}

FailureOr<GPUManifest::Kernel>
ManifestReader::readKernel(gpu::GPUFuncOp kernel) {
  GPUManifest::Kernel result;
  result.name = kernel.getName();
  auto grid = kernel.getKnownGridSizeAttr().asArrayRef();
  auto block = kernel.getKnownBlockSizeAttr().asArrayRef();
  for (unsigned i = 0; i < 3; ++i) {
    result.grid[i] = grid[i];
    result.block[i] = block[i];
  }
  for (BlockArgument shared : kernel.getWorkgroupAttributions()) {
    GPUManifest::TensorShape shape;
    setShape(shape, shared.getType());
    result.sharedBytes += llvm::alignTo(shape.getBytes(), 16);
  }
  if (auto bytes =
          kernel->getAttrOfType<IntegerAttr>(KasGPUDialect::dynamicBytesName))
    result.dynamicSharedBytes = bytes.getInt();
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
    GPUManifest::Argument &argument = result.arguments.emplace_back();
    setShape(argument, kernel.getArgument(i).getType());
    auto access =
        kernel.getArgAttrOfType<StringAttr>(i, KasGPUDialect::accessName);
    argument.access = access ? access.str() : "read_write";
  }
  if (failed(readTensorMaps(kernel, result)))
    return failure();
  return result;
}

void ManifestReader::readBuffers(func::FuncOp function,
                                 GPUManifest::Function &result) {
  // -kas-bufferize puts results after the arguments, and only the arguments
  // keep attributes; what a kernel writes is a result.
  llvm::DenseSet<Value> written;
  function.walk([&](gpu::LaunchFuncOp launch) {
    const GPUManifest::Kernel &kernel =
        manifest.kernels[kernels.lookup(launch.getKernelName())];
    for (auto [argument, output] :
         llvm::zip_equal(kernel.arguments, launch.getKernelOperands())) {
      if (argument.access == "read")
        continue;
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
    GPUManifest::Buffer buffer;
    bool isResult = written.contains(argument);
    bool isStatus = !result.assertions.empty() &&
                    argument == function.getArguments().back();
    buffer.kind = isStatus   ? GPUManifest::Buffer::Kind::Status
                  : isResult ? GPUManifest::Buffer::Kind::Result
                             : GPUManifest::Buffer::Kind::Argument;
    if (isStatus)
      buffer.name = "status";
    setShape(buffer, argument.getType());
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      nameAttribute);
    if (name)
      buffer.name = name.str();
    buffers[argument] = result.buffers.size();
    result.buffers.push_back(std::move(buffer));
  }
}

LogicalResult ManifestReader::readConstant(memref::GetGlobalOp op,
                                           GPUManifest::Function &result) {
  auto global = module.lookupSymbol<memref::GlobalOp>(op.getName());
  ElementsAttr values;
  if (global)
    values = dyn_cast_if_present<ElementsAttr>(
        global.getInitialValue().value_or(Attribute()));
  GPUManifest::Buffer buffer;
  buffer.kind = GPUManifest::Buffer::Kind::Constant;
  buffer.name = op.getName();
  setShape(buffer, op.getType());
  if (auto dense = dyn_cast_if_present<DenseElementsAttr>(values)) {
    ArrayRef<char> bytes = dense.getRawData();
    int64_t times = dense.isSplat() ? dense.getNumElements() : 1;
    for (int64_t i = 0; i < times; ++i)
      buffer.data.append(bytes.begin(), bytes.end());
  } else if (auto resource =
                 dyn_cast_if_present<DenseResourceElementsAttr>(values)) {
    if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
      buffer.data.assign(blob->getData().begin(), blob->getData().end());
  }
  if (static_cast<int64_t>(buffer.data.size()) != buffer.getBytes())
    return op.emitError() << "expected a constant of " << buffer.getBytes()
                          << " bytes, got " << buffer.data.size();
  buffers[op] = result.buffers.size();
  result.buffers.push_back(std::move(buffer));
  return success();
}

LogicalResult ManifestReader::readOperation(Operation &op,
                                            GPUManifest::Function &result) {
  if (op.hasTrait<OpTrait::ConstantLike>() || isa<func::ReturnOp>(op))
    return success();
  if (auto alloc = dyn_cast<memref::AllocOp>(op);
      alloc && alloc->hasAttr(KasGPUDialect::scratchName)) {
    result.scratchBytes = alloc.getType().getNumElements();
    return success();
  }
  if (auto view = dyn_cast<memref::ViewOp>(op)) {
    APInt offset;
    if (!matchPattern(view.getByteShift(), m_ConstantInt(&offset)))
      return view.emitError()
             << "expected a constant offset, got " << view.getByteShift();
    GPUManifest::Buffer buffer;
    buffer.kind = GPUManifest::Buffer::Kind::Scratch;
    buffer.offset = offset.getSExtValue();
    setShape(buffer, view.getType());
    buffers[view] = result.buffers.size();
    result.buffers.push_back(std::move(buffer));
    return success();
  }
  if (auto constant = dyn_cast<memref::GetGlobalOp>(op))
    return readConstant(constant, result);
  if (isa<memref::CollapseShapeOp, memref::ExpandShapeOp>(op)) {
    buffers[op.getResult(0)] =
        buffers.lookup(cast<ViewLikeOpInterface>(op).getViewSource());
    return success();
  }
  if (auto launch = dyn_cast<gpu::LaunchFuncOp>(op)) {
    GPUManifest::Launch &entry = result.launches.emplace_back();
    entry.kernel = kernels.lookup(launch.getKernelName());
    for (Value operand : launch.getKernelOperands())
      entry.arguments.push_back(buffers.lookup(operand));
    return success();
  }
  return op.emitError() << "expected a function that launches kernels and does "
                           "nothing else, got "
                        << op.getName();
}

FailureOr<GPUManifest::Function>
ManifestReader::readFunction(func::FuncOp function) {
  GPUManifest::Function result;
  result.name = function.getName();
  buffers.clear();
  readBuffers(function, result);
  for (Operation &op : function.getBody().front())
    if (failed(readOperation(op, result)))
      return failure();
  // Names where the program gives none.
  unsigned numArguments = 0, numResults = 0;
  for (GPUManifest::Buffer &buffer : result.buffers) {
    if (buffer.kind != GPUManifest::Buffer::Kind::Argument &&
        buffer.kind != GPUManifest::Buffer::Kind::Result)
      continue;
    bool isResult = buffer.kind == GPUManifest::Buffer::Kind::Result;
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
      FailureOr<GPUManifest::Kernel> result = readKernel(kernel);
      if (failed(result))
        return failure();
      manifest.kernels.push_back(std::move(*result));
    }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    FailureOr<GPUManifest::Function> result = readFunction(function);
    if (failed(result))
      return failure();
    manifest.functions.push_back(std::move(*result));
  }
  return success();
}

FailureOr<GPUManifest> GPUManifest::get(ModuleOp module, GPUTarget target) {
  GPUManifest manifest;
  manifest.target = std::move(target);
  if (failed(ManifestReader(module, manifest).read()))
    return failure();
  return manifest;
}

//===----------------------------------------------------------------------===//
// To JSON
//===----------------------------------------------------------------------===//

static void writeNumbers(llvm::json::OStream &json, StringRef name,
                         ArrayRef<int64_t> numbers) {
  json.attributeArray(name, [&] {
    for (int64_t number : numbers)
      json.value(number);
  });
}

static void writeKernel(llvm::json::OStream &json,
                        const GPUManifest::Kernel &kernel) {
  json.object([&] {
    json.attribute("name", kernel.name);
    writeNumbers(json, "grid", kernel.grid);
    writeNumbers(json, "block", kernel.block);
    json.attribute("shared_bytes", kernel.sharedBytes);
    json.attribute("dynamic_shared_bytes", kernel.dynamicSharedBytes);
    json.attributeArray("arguments", [&] {
      for (const GPUManifest::Argument &argument : kernel.arguments)
        json.object([&] {
          json.attribute("dtype", argument.dtype);
          writeNumbers(json, "shape", argument.shape);
          json.attribute("access", argument.access);
        });
    });
    if (kernel.tensorMaps.empty())
      return;
    json.attributeArray("tensor_maps", [&] {
      for (const GPUManifest::TensorMap &map : kernel.tensorMaps)
        json.object([&] {
          json.attribute("argument", map.argument);
          writeNumbers(json, "sizes", map.sizes);
          writeNumbers(json, "strides", map.strides);
          writeNumbers(json, "box", map.box);
        });
    });
  });
}

static void writeBuffer(llvm::json::OStream &json,
                        const GPUManifest::Buffer &buffer) {
  using Kind = GPUManifest::Buffer::Kind;
  json.object([&] {
    if (buffer.kind != Kind::Scratch)
      json.attribute("name", buffer.name);
    json.attribute("kind", buffer.kind == Kind::Argument   ? "argument"
                           : buffer.kind == Kind::Result   ? "result"
                           : buffer.kind == Kind::Status   ? "status"
                           : buffer.kind == Kind::Constant ? "constant"
                                                           : "scratch");
    json.attribute("dtype", buffer.dtype);
    writeNumbers(json, "shape", buffer.shape);
    json.attribute("bytes", buffer.getBytes());
    if (buffer.kind == Kind::Scratch)
      json.attribute("offset", buffer.offset);
    if (buffer.kind == Kind::Constant)
      json.attribute("data", llvm::encodeBase64(buffer.data));
  });
}

static void writeFunction(llvm::json::OStream &json,
                          const GPUManifest::Function &function) {
  json.object([&] {
    json.attribute("name", function.name);
    json.attributeArray("buffers", [&] {
      for (const GPUManifest::Buffer &buffer : function.buffers)
        writeBuffer(json, buffer);
    });
    json.attribute("scratch_bytes", function.scratchBytes);
    if (!function.assertions.empty())
      json.attributeArray("assertions", [&] {
        for (const std::string &text : function.assertions)
          json.value(llvm::json::fixUTF8(text));
      });
    json.attributeArray("launches", [&] {
      for (const GPUManifest::Launch &launch : function.launches)
        json.object([&] {
          json.attribute("kernel", launch.kernel);
          json.attributeArray("arguments", [&] {
            for (unsigned argument : launch.arguments)
              json.value(argument);
          });
        });
    });
  });
}

std::string GPUManifest::toJSON() const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream);
  json.object([&] {
    json.attribute("version", 1);
    json.attributeObject("target", [&] {
      json.attribute("api", target.api);
      json.attribute("chip", target.chip);
      json.attribute("format", target.format);
      json.attributeArray("capabilities", [&] {
        for (const std::string &capability : target.capabilities)
          json.value(capability);
      });
    });
    json.attributeArray("kernels", [&] {
      for (const Kernel &kernel : kernels)
        writeKernel(json, kernel);
    });
    json.attributeArray("functions", [&] {
      for (const Function &function : functions)
        writeFunction(json, function);
    });
  });
  return text;
}

namespace {
struct GPUWriteManifest
    : kas::codegen::impl::GPUWriteManifestBase<GPUWriteManifest> {
  using GPUWriteManifestBase::GPUWriteManifestBase;

  void runOnOperation() override {
    GPUTarget target{
        api, chip, format, {capabilities.begin(), capabilities.end()}};
    FailureOr<GPUManifest> manifest = GPUManifest::get(getOperation(), target);
    if (failed(manifest))
      return signalPassFailure();
    getOperation()->setAttr(KasGPUDialect::manifestName,
                            StringAttr::get(&getContext(), manifest->toJSON()));
  }
};
} // namespace
