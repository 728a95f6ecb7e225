//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to functions on CUDA devices. Open devices are shared by all
// functions of the process, and closed with the last of them.
//
//===----------------------------------------------------------------------===//

#include "kas-c/Device.h"
#include "Handles.h"
#include "kas/ExecutionEngine/GPU/DeviceFunction.h"
#include "kas/ExecutionEngine/GPU/GPUProgram.h"
#include "llvm/ADT/StringMap.h"

using namespace kas;
using namespace kas::execution;
using namespace mlir;
using llvm::Error;
using llvm::Expected;

namespace {
struct SharedDevice {
  explicit SharedDevice(Device device) : device(std::move(device)) {}

  Device device;
  /// Of all calls of functions on the device.
  std::mutex lock;
};
} // namespace

struct KasDeviceFunction {
  // Goes last: the function is on it.
  std::shared_ptr<SharedDevice> device;
  std::unique_ptr<CallerFunction> function;
  FunctionSignature signature;
  double compileMilliseconds = 0;
};

/// `error` with what would help.
static Error addRemedy(Error error, const llvm::Twine &remedy) {
  return llvm::createStringError(llvm::toString(std::move(error)) + "; " +
                                 remedy);
}

static Expected<std::shared_ptr<SharedDevice>> openShared(StringRef name) {
  static std::mutex mutex;
  static llvm::StringMap<std::weak_ptr<SharedDevice>> devices;
  // The same device by another name would be opened twice, which is no harm.
  std::lock_guard<std::mutex> guard(mutex);
  std::weak_ptr<SharedDevice> &entry = devices[name];
  if (std::shared_ptr<SharedDevice> open = entry.lock())
    return open;
  auto device = Device::open(name);
  if (!device)
    return addRemedy(device.takeError(),
                     "install NVIDIA's driver, or compile for the CPU");
  auto opened = std::make_shared<SharedDevice>(std::move(*device));
  entry = opened;
  return opened;
}

/// An error for a tensor that kernels cannot take or give.
static Error checkTypes(const FunctionSignature &signature) {
  for (const auto &tensor : llvm::concat<const TensorSignature>(
           signature.arguments, signature.results)) {
    if (tensor.type != "f32" && tensor.type != "f16" && tensor.type != "bf16")
      return llvm::createStringError("function '" + signature.name +
                                     "': expected elements of f32, f16 "
                                     "or bf16 for '" +
                                     tensor.name + "' on a CUDA device, got " +
                                     tensor.type);
    if (tensor.getNumBytes() == 0)
      return llvm::createStringError("function '" + signature.name +
                                     "': expected elements in '" + tensor.name +
                                     "' on a CUDA device, got none");
  }
  return Error::success();
}

/// What the factors of products are rounded to.
static Expected<GPUPrecision> getPrecision(StringRef name,
                                           const FunctionSignature &signature) {
  std::optional<GPUPrecision> precision = symbolizeGPUPrecision(name);
  if (!precision)
    return llvm::createStringError(
        "expected a precision of f32, tf32, f16 or bf16, got '" + name + "'");
  if (*precision != GPUPrecision::F32 || signature.arguments.empty())
    return *precision;
  // Tensor cores multiply what has 16 bits already as exactly as anything.
  StringRef type = signature.arguments.front().type;
  bool isOfOneType = llvm::all_of(
      llvm::concat<const TensorSignature>(signature.arguments,
                                          signature.results),
      [&](const TensorSignature &tensor) { return tensor.type == type; });
  if (isOfOneType && (type == "f16" || type == "bf16"))
    return *symbolizeGPUPrecision(type);
  return GPUPrecision::F32;
}

/// Says which device a compilation was for, and for which architecture.
static Error addDevice(Error error, StringRef name,
                       const KasRtDeviceInfo &info) {
  return llvm::createStringError(name + " (" + info.name + ", " +
                                 info.architecture +
                                 "): " + llvm::toString(std::move(error)));
}

/// Compiles and loads for the device that is open.
static Error load(ModuleOp module, StringRef name, StringRef deviceName,
                  GPUPrecision precision, codegen::GPULibraries libraries,
                  KasDeviceFunction &created) {
  const KasRtDeviceInfo &info = created.device->device.getInfo();
  auto program = compileForDevice(module, info, precision,
                                  codegen::GPUElements::F32, libraries);
  if (!program)
    return addDevice(program.takeError(), deviceName, info);
  auto manifest = DeviceManifest::fromJSON(program->manifest);
  if (!manifest)
    return manifest.takeError();
  return CallerFunction::load(created.device->device, created.device->lock,
                              *manifest, program->binary, name)
      .moveInto(created.function);
}

using codegen::GPULibraries;

/// Those of `libraries` that are not known to be missing since `function`,
/// which was compiled for them, has been loaded.
static GPULibraries getFound(const CallerFunction &function,
                             GPULibraries libraries) {
  std::vector<std::string> texts = function.getLibraries();
  auto lacks = [&](StringRef name) {
    return llvm::any_of(texts, [&](StringRef text) {
      return text.consume_front("kernel: no ") && text.starts_with(name);
    });
  };
  bool hasProducts = libraries != GPULibraries::CuDNN && !lacks("cuBLASLt:"),
       hasConvolutions =
           libraries != GPULibraries::CuBLASLt && !lacks("cuDNN:");
  GPULibraries found = hasProducts && hasConvolutions ? GPULibraries::Auto
                       : hasProducts                  ? GPULibraries::CuBLASLt
                       : hasConvolutions              ? GPULibraries::CuDNN
                                                      : GPULibraries::None;
  // They are there, and compute nothing.
  bool areUnused =
      llvm::any_of(texts, [](StringRef text) { return text != "kernel"; }) &&
      llvm::all_of(texts,
                   [](StringRef text) { return text.starts_with("kernel"); });
  return found == libraries && areUnused ? GPULibraries::None : found;
}

/// The signature is there already.
static Error load(ModuleOp module, StringRef name, StringRef deviceName,
                  KasDeviceOptions options, KasDeviceFunction &created) {
  if (Error error = checkTypes(created.signature))
    return error;
  auto precision = getPrecision(options.precision, created.signature);
  if (!precision)
    return precision.takeError();
  auto device = openShared(deviceName);
  if (!device)
    return device.takeError();
  created.device = std::move(*device);
  const KasRtDeviceInfo &info = created.device->device.getInfo();
  auto chip = getGPUDevice(module.getContext(), info);
  if (!chip)
    return addDevice(addRemedy(chip.takeError(), "compile for the CPU"),
                     deviceName, info);
  GPULibraries libraries =
      options.useLibraries ? GPULibraries::Auto : GPULibraries::None;
  // Images and weights are in the order of libraries: without one of them
  // kernels, and the other library, are faster in their own. A library is
  // opened where something is left to it, so the second one may be missed
  // later.
  while (true) {
    if (Error error =
            load(module, name, deviceName, *precision, libraries, created))
      return error;
    if (libraries == GPULibraries::None)
      return Error::success();
    GPULibraries found = getFound(*created.function, libraries);
    if (found == libraries)
      return Error::success();
    libraries = found;
  }
}

KasDeviceFunction *kasModuleCompileForDevice(KasModule *module,
                                             const char *function,
                                             const char *device,
                                             KasDeviceOptions options,
                                             KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  double begin = monotonicSeconds();
  auto created = std::make_unique<KasDeviceFunction>();
  Error error =
      FunctionSignature::get(access.getModule(), function, ElementTypes::Any)
          .moveInto(created->signature);
  if (!error)
    error = load(access.getModule(), function, device, options, *created);
  if (error) {
    access.report(std::move(error));
    return nullptr;
  }
  created->compileMilliseconds = (monotonicSeconds() - begin) * 1e3;
  return created.release();
}

void kasDeviceFunctionDestroy(KasDeviceFunction *function) { delete function; }

size_t kasDeviceFunctionGetNumArguments(const KasDeviceFunction *function) {
  return function->signature.arguments.size();
}

size_t kasDeviceFunctionGetNumResults(const KasDeviceFunction *function) {
  return function->signature.results.size();
}

/// Tensors are counted through: arguments, then results.
static const TensorSignature &getTensor(const KasDeviceFunction *function,
                                        size_t tensor) {
  size_t numArguments = function->signature.arguments.size();
  return tensor < numArguments
             ? function->signature.arguments[tensor]
             : function->signature.results[tensor - numArguments];
}

size_t kasDeviceFunctionGetRank(const KasDeviceFunction *function,
                                size_t tensor) {
  return getTensor(function, tensor).shape.size();
}

const int64_t *kasDeviceFunctionGetShape(const KasDeviceFunction *function,
                                         size_t tensor) {
  return getTensor(function, tensor).shape.data();
}

const char *kasDeviceFunctionGetName(const KasDeviceFunction *function,
                                     size_t tensor) {
  return getTensor(function, tensor).name.c_str();
}

const char *kasDeviceFunctionGetElementType(const KasDeviceFunction *function,
                                            size_t tensor) {
  return getTensor(function, tensor).type.c_str();
}

bool kasDeviceFunctionIsWeight(const KasDeviceFunction *function,
                               size_t tensor) {
  return tensor < function->signature.arguments.size() &&
         !function->signature.arguments[tensor].isData;
}

double
kasDeviceFunctionGetCompileMilliseconds(const KasDeviceFunction *function) {
  return function->compileMilliseconds;
}

void kasDeviceFunctionGetLibraries(const KasDeviceFunction *function,
                                   KasStream output) {
  CallbackStream stream(output);
  for (const std::string &library : function->function->getLibraries())
    stream << library << '\n';
}

bool kasDeviceFunctionCall(KasDeviceFunction *function,
                           const uint64_t *addresses, void *stream,
                           KasDiagnostics diagnostics) {
  size_t count = kasDeviceFunctionGetNumArguments(function) +
                 kasDeviceFunctionGetNumResults(function);
  Error error = function->function->call({addresses, count}, stream);
  if (!error)
    return true;
  diagnostics.report(KasSeverityError, "",
                     llvm::toString(std::move(error)).c_str(),
                     diagnostics.userData);
  return false;
}

void kasDeviceFunctionForgetWeights(KasDeviceFunction *function) {
  function->function->forgetWeights();
}
