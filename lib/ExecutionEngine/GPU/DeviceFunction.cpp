//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a function of a device program through kas-rt: opens the device, loads
// kernels, makes buffers, copies and launches.
//
// All buffers of a function are on the device from `load` on; intermediate
// tensors are parts of one scratch buffer, at the offsets of the manifest. A
// run is: upload the arguments, launch the kernels in order, download the
// results.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/GPU/DeviceFunction.h"
#include "kas/ExecutionEngine/Elements.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>

using namespace kas;
using namespace kas::execution;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using BufferKind = DeviceManifest::BufferKind;

/// The runtime's text of an error; it is of this thread's last call.
static Error check(KasRtStatus status) {
  if (status == KAS_RT_SUCCESS)
    return Error::success();
  return createStringError(kasRtErrorText());
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

Expected<Device> Device::open(StringRef name) {
  KasRtDevice handle = nullptr;
  if (Error error = check(kasRtDeviceOpen(name.str().c_str(), &handle)))
    return error;
  Device device(handle);
  if (Error error = check(kasRtDeviceGetInfo(handle, &device.info)))
    return error;
  return device;
}

Error Device::close() {
  // The destructor must not close it again.
  return check(kasRtDeviceClose(std::exchange(handle, nullptr)));
}

// Who wants to know of errors calls `close`.
Device::~Device() { (void)kasRtDeviceClose(handle); }

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

Expected<std::unique_ptr<DeviceFunction>>
DeviceFunction::load(const Device &device, const DeviceManifest &manifest,
                     StringRef binary, StringRef name, bool ownsTensors) {
  StringRef api = device.getInfo().backend == KAS_RT_CUDA ? "cuda" : "vulkan";
  // A binary for the other API would be refused by the driver with less to say.
  if (manifest.target.api != api)
    return createStringError("expected a program for " + api +
                             ", got one for " + manifest.target.api);
  const DeviceManifest::Function *function = manifest.find(name);
  if (!function)
    return createStringError("the program has no function '" + name + "'");
  // From here on the destructor releases what was made when a step fails.
  std::unique_ptr<DeviceFunction> loaded(new DeviceFunction(device, *function));
  if (Error error = loaded->createBuffers(ownsTensors))
    return error;
  if (Error error = loaded->createKernels(manifest, binary))
    return error;
  return loaded;
}

/// NaN in f32 and, twice, in f16 and bf16.
static constexpr uint32_t quietNaN = 0x7fff7fff;

Error DeviceFunction::createBuffers(bool ownsTensors) {
  if (function.scratchBytes)
    if (Error error = check(
            kasRtBufferCreate(device.get(), function.scratchBytes, &scratch)))
      return error;
  // An element that a kernel reads before any has written it becomes NaN in the
  // result, which a comparison finds.
  if (scratch && function.scratchBytes % 4 == 0)
    if (Error error = check(kasRtBufferFill(scratch, quietNaN)))
      return error;
  buffers.assign(function.buffers.size(), nullptr);
  for (auto [buffer, handle] : llvm::zip_equal(function.buffers, buffers)) {
    // Parts of `scratch`.
    if (buffer.kind == BufferKind::Scratch)
      continue;
    if (!ownsTensors && (buffer.kind == BufferKind::Argument ||
                         buffer.kind == BufferKind::Result))
      continue;
    if (Error error =
            check(kasRtBufferCreate(device.get(), buffer.getBytes(), &handle)))
      return error;
    if (buffer.kind == BufferKind::Constant)
      if (Error error = check(kasRtBufferWrite(handle, 0, buffer.data.data(),
                                               buffer.getBytes())))
        return error;
    // What no kernel writes is detected.
    if ((buffer.kind == BufferKind::Result ||
         buffer.kind == BufferKind::Status) &&
        buffer.getBytes() % 4 == 0)
      if (Error error = check(kasRtBufferFill(handle, quietNaN)))
        return error;
  }
  return Error::success();
}

/// The maps of a kernel as the runtime takes them.
static std::vector<KasRtTensorMap>
getTensorMaps(const DeviceManifest::Kernel &kernel) {
  std::vector<KasRtTensorMap> maps;
  for (const DeviceManifest::TensorMap &map : kernel.tensorMaps) {
    KasRtTensorMap &entry = maps.emplace_back();
    entry = {};
    entry.argument = static_cast<uint32_t>(map.argument);
    entry.rank = static_cast<uint32_t>(map.sizes.size());
    entry.isBFloat16 = kernel.arguments[map.argument].dtype == "bf16";
    llvm::copy(map.sizes, entry.sizes);
    llvm::copy(map.strides, entry.strides);
    llvm::copy(map.box, entry.box);
  }
  return maps;
}

static KasRtElement getElement(StringRef type) {
  return type == "tf32"   ? KAS_RT_TF32
         : type == "f16"  ? KAS_RT_F16
         : type == "bf16" ? KAS_RT_BF16
                          : KAS_RT_F32;
}

/// -1: there is none.
static int32_t getPosition(std::optional<uint64_t> argument) {
  return argument ? static_cast<int32_t>(*argument) : -1;
}

/// As the runtime takes it; the manifest has checked it.
static KasRtMatmul getMatmul(const DeviceManifest::Kernel &kernel) {
  const DeviceManifest::Matmul &matmul = *kernel.matmul;
  auto getMatrix = [](const DeviceManifest::Matrix &from) {
    KasRtMatrix matrix = {static_cast<uint32_t>(from.argument), {}};
    llvm::copy(from.strides, matrix.strides);
    return matrix;
  };
  return {
      .batches = matmul.sizes[0],
      .rows = matmul.sizes[1],
      .columns = matmul.sizes[2],
      .steps = matmul.sizes[3],
      .left = getMatrix(matmul.left),
      .right = getMatrix(matmul.right),
      .result = getMatrix(matmul.result),
      .factorType = getElement(kernel.arguments[matmul.left.argument].dtype),
      .resultType = getElement(kernel.arguments[matmul.result.argument].dtype),
      .precision = getElement(matmul.precision),
      .bias = getPosition(matmul.bias),
      .residual = getPosition(matmul.residual),
      .isRectified = matmul.isRectified};
}

/// The same for a convolution.
static KasRtConvolution getConvolution(const DeviceManifest::Kernel &kernel) {
  const DeviceManifest::Convolution &from = *kernel.convolution;
  KasRtConvolution convolution = {};
  convolution.image = static_cast<uint32_t>(from.image);
  convolution.filter = static_cast<uint32_t>(from.filter);
  convolution.result = static_cast<uint32_t>(from.result);
  llvm::copy(from.imageSizes, convolution.imageSizes);
  llvm::copy(from.filterSizes, convolution.filterSizes);
  llvm::copy(from.strides, convolution.strides);
  llvm::copy(from.dilations, convolution.dilations);
  llvm::copy(from.pads, convolution.pads);
  convolution.areChannelsLast = from.areChannelsLast;
  convolution.elementType = getElement(kernel.arguments[from.image].dtype);
  convolution.precision = getElement(from.precision);
  convolution.bias = getPosition(from.bias);
  convolution.residual = getPosition(from.residual);
  convolution.isRectified = from.isRectified;
  return convolution;
}

/// Tells the runtime what a library may compute in place of a kernel.
static Error useLibrary(const DeviceManifest::Kernel &kernel,
                        KasRtKernel handle) {
  if (kernel.matmul) {
    KasRtMatmul matmul = getMatmul(kernel);
    return check(kasRtKernelUseMatmul(handle, &matmul));
  }
  if (kernel.convolution) {
    KasRtConvolution convolution = getConvolution(kernel);
    return check(kasRtKernelUseConvolution(handle, &convolution));
  }
  return Error::success();
}

Error DeviceFunction::createKernels(const DeviceManifest &manifest,
                                    StringRef binary) {
  if (Error error = check(
          kasRtModuleLoad(device.get(), binary.data(), binary.size(), &module)))
    return error;
  for (const DeviceManifest::Launch &launch : function.launches) {
    const DeviceManifest::Kernel &kernel = manifest.kernels[launch.kernel];
    // Two launches of one kernel share its handle.
    Launch &created = launches.emplace_back();
    llvm::copy(kernel.grid, created.size.grid);
    llvm::copy(kernel.block, created.size.block);
    // Declared memory is known to the driver; this is requested in addition.
    created.size.dynamicSharedBytes = kernel.dynamicSharedBytes;
    created.arguments = launch.arguments;
    std::vector<KasRtTensorMap> maps = getTensorMaps(kernel);
    if (Error error = check(kasRtModuleGetKernelWithTensorMaps(
            module, kernel.name.c_str(),
            static_cast<uint32_t>(created.arguments.size()), maps.data(),
            static_cast<uint32_t>(maps.size()), &created.kernel)))
      return error;
    if (Error error = useLibrary(kernel, created.kernel))
      return error;
  }
  return Error::success();
}

std::vector<KasRtArgument>
DeviceFunction::getArguments(const Launch &launch,
                             llvm::ArrayRef<KasRtBuffer> handles) const {
  std::vector<KasRtArgument> arguments;
  for (size_t position : launch.arguments) {
    const DeviceManifest::Buffer &buffer = function.buffers[position];
    if (buffer.kind == BufferKind::Scratch)
      arguments.push_back({scratch, buffer.offset, buffer.getBytes()});
    else
      arguments.push_back({handles[position], 0, buffer.getBytes()});
  }
  return arguments;
}

DeviceFunction::~DeviceFunction() {
  // Errors of a destructor have nobody to go to; the device's `close` reports
  // what is left.
  (void)kasRtEventDestroy(start);
  (void)kasRtEventDestroy(stop);
  (void)kasRtSequenceDestroy(prepackSequence);
  (void)kasRtSequenceDestroy(sequence);
  (void)kasRtModuleUnload(module);
  for (KasRtBuffer buffer : buffers)
    (void)kasRtBufferDestroy(buffer);
  (void)kasRtBufferDestroy(scratch);
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// An error unless `tensor` has the shape of `buffer`.
static Error checkShape(const DeviceManifest::Function &function,
                        const DeviceManifest::Buffer &buffer,
                        const Tensor &tensor) {
  if (tensor.getShape() == llvm::ArrayRef(buffer.shape))
    return Error::success();
  return createStringError("expected shape " + shapeToString(buffer.shape) +
                           " for '" + buffer.name + "' of function '" +
                           function.name + "', got " +
                           shapeToString(tensor.getShape()));
}

/// The positions of the buffers of a kind; `got` must be as many.
static Expected<std::vector<size_t>>
getPositions(const DeviceManifest::Function &function, BufferKind kind,
             StringRef what, size_t got) {
  std::vector<size_t> positions;
  for (auto [index, buffer] : llvm::enumerate(function.buffers))
    if (buffer.kind == kind)
      positions.push_back(index);
  if (positions.size() != got)
    return createStringError("expected " + llvm::Twine(positions.size()) + " " +
                             what + " for function '" + function.name +
                             "', got " + llvm::Twine(got));
  return positions;
}

Error DeviceFunction::upload(llvm::ArrayRef<Tensor> arguments) {
  auto positions = getPositions(function, BufferKind::Argument, "arguments",
                                arguments.size());
  if (!positions)
    return positions.takeError();
  isPrepacked = false;
  for (auto [position, tensor] : llvm::zip_equal(*positions, arguments)) {
    const DeviceManifest::Buffer &buffer = function.buffers[position];
    if (Error error = checkShape(function, buffer, tensor))
      return error;
    std::vector<uint16_t> narrowed;
    const void *data = tensor.data();
    // The device keeps tensors in fewer bits: rounded to nearest on the way.
    if (buffer.dtype != "f32") {
      narrowed = narrow(tensor.getValues(), buffer.dtype);
      data = narrowed.data();
    }
    if (Error error = check(
            kasRtBufferWrite(buffers[position], 0, data, buffer.getBytes())))
      return error;
  }
  return Error::success();
}

// Results are not specified where an assertion failed, so it is read first.
Error DeviceFunction::checkAssertions() {
  for (auto [buffer, handle] : llvm::zip_equal(function.buffers, buffers)) {
    if (buffer.kind != BufferKind::Status)
      continue;
    // Unsigned: "none failed" is the largest i32, and NaN of a kernel that did
    // not run is no position either.
    uint32_t status = 0;
    if (Error error =
            check(kasRtBufferRead(handle, 0, &status, sizeof(status))))
      return error;
    if (status < function.assertions.size())
      return createStringError(function.assertions[status]);
  }
  return Error::success();
}

Error DeviceFunction::download(llvm::MutableArrayRef<Tensor> results) {
  if (Error error = checkAssertions())
    return error;
  auto positions =
      getPositions(function, BufferKind::Result, "results", results.size());
  if (!positions)
    return positions.takeError();
  for (auto [position, tensor] : llvm::zip_equal(*positions, results)) {
    const DeviceManifest::Buffer &buffer = function.buffers[position];
    if (Error error = checkShape(function, buffer, tensor))
      return error;
    std::vector<uint16_t> narrowed;
    void *data = tensor.data();
    if (buffer.dtype != "f32") {
      narrowed.resize(tensor.getNumElements());
      data = narrowed.data();
    }
    if (Error error = check(
            kasRtBufferRead(buffers[position], 0, data, buffer.getBytes())))
      return error;
    if (!narrowed.empty())
      widen(narrowed, buffer.dtype, tensor.getValues());
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Expected<KasRtSequence>
DeviceFunction::createSequence(size_t first, size_t count,
                               llvm::ArrayRef<KasRtBuffer> handles) const {
  KasRtSequence created = nullptr;
  std::vector<KasRtStep> steps;
  std::vector<std::vector<KasRtArgument>> arguments;
  // In the order of the manifest, which the device keeps.
  for (const Launch &launch : llvm::ArrayRef(launches).slice(first, count)) {
    arguments.push_back(getArguments(launch, handles));
    steps.push_back({launch.kernel, launch.size, arguments.back().data(),
                     static_cast<uint32_t>(arguments.back().size())});
  }
  // A function that hands on its arguments has none.
  if (!steps.empty())
    if (Error error = check(
            kasRtSequenceCreate(device.get(), steps.data(),
                                static_cast<uint32_t>(steps.size()), &created)))
      return error;
  return created;
}

Error DeviceFunction::prepack() {
  size_t count = function.numPrepackLaunches;
  if (isPrepacked || count == 0)
    return Error::success();
  if (!prepackSequence)
    if (Error error =
            createSequence(0, count, buffers).moveInto(prepackSequence))
      return error;
  if (Error error = check(kasRtSequenceLaunch(prepackSequence)))
    return error;
  isPrepacked = true;
  return Error::success();
}

std::vector<std::string> DeviceFunction::getLibraries() const {
  std::vector<std::string> libraries;
  for (const Launch &launch : launches)
    libraries.emplace_back(kasRtKernelGetLibrary(launch.kernel));
  return libraries;
}

// Asynchronous: `download` waits, and gets the errors of kernels.
Error DeviceFunction::launch() {
  if (Error error = prepack())
    return error;
  size_t count = function.numPrepackLaunches;
  if (launches.size() == count)
    return Error::success();
  if (!sequence)
    if (Error error = createSequence(count, launches.size() - count, buffers)
                          .moveInto(sequence))
      return error;
  return check(kasRtSequenceLaunch(sequence));
}

Error DeviceFunction::run(llvm::ArrayRef<Tensor> arguments,
                          llvm::MutableArrayRef<Tensor> results) {
  if (Error error = upload(arguments))
    return error;
  if (Error error = launch())
    return error;
  return download(results);
}

// Only measurements need them, and some devices have no clock.
Error DeviceFunction::createEvents() {
  for (KasRtEvent *event : {&start, &stop})
    if (!*event)
      if (Error error = check(kasRtEventCreate(device.get(), event)))
        return error;
  return Error::success();
}

Expected<Timing> DeviceFunction::measure(const TimingOptions &options) {
  if (Error error = createEvents())
    return error;
  // Once, whatever the number of runs.
  if (Error error = prepack())
    return error;
  llvm::SmallVector<double> times;
  // The first launch compiles PTX or pipelines.
  for (int64_t i = 0; i < options.warmUpRuns; ++i)
    if (Error error = launch())
      return error;
  double begin = monotonicSeconds();
  for (int64_t count = 0; count < options.minRuns ||
                          (monotonicSeconds() - begin < options.seconds &&
                           count < options.maxRuns);
       ++count) {
    // The device's clock, so that neither copies nor the calls count.
    if (Error error = check(kasRtEventRecord(start)))
      return error;
    if (Error error = launch())
      return error;
    if (Error error = check(kasRtEventRecord(stop)))
      return error;
    if (Error error =
            check(kasRtEventElapsed(start, stop, &times.emplace_back())))
      return error;
  }
  return Timing::summarize(times);
}
