//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Buffers, modules, kernels and events on CUDA.
// All work of a device goes through its one stream, so calls run in order.
// Launches, fills and events return at once; copies wait, since the caller may
// free or reuse its memory when they return.
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"
#include "CudaImage.h"
#include <cstdlib>
#include <cstring>
#include <utility>

using namespace kas::rt;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Status CudaDevice::createBuffer(uint64_t bytes,
                                std::unique_ptr<KasRtBufferImpl> &buffer) {
  auto created = std::make_unique<CudaBuffer>(*this, bytes);
  Status status = inContext([&] {
    // Aligned to at least 256 bytes, as kernels expect of their arguments.
    return check(driver.cuMemAlloc_v2(&created->address, bytes),
                 "cuMemAlloc of " + std::to_string(bytes) + " bytes");
  });
  if (!status.isError())
    buffer = std::move(created);
  return status;
}

Status CudaDevice::borrowBuffer(uint64_t address, uint64_t bytes,
                                std::unique_ptr<KasRtBufferImpl> &buffer) {
  auto created = std::make_unique<CudaBuffer>(*this, bytes);
  created->address = address;
  created->isBorrowed = true;
  buffer = std::move(created);
  return {};
}

// Each object of CUDA is released in the context that it was made in.
Status CudaBuffer::release() {
  CudaDevice &cuda = asCuda(device);
  // Freeing waits for nothing on a stream of its own: kernels may still run.
  return cuda.inContext([&] {
    Status status = cuda.check(cuda.driver.cuStreamSynchronize(cuda.stream),
                               "waiting for the kernels");
    if (!isBorrowed)
      status += cuda.check(cuda.driver.cuMemFree_v2(address), "cuMemFree");
    return status;
  });
}

Status CudaBuffer::write(uint64_t offset, const void *source, uint64_t count) {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    Status status =
        cuda.check(cuda.driver.cuMemcpyHtoDAsync_v2(address + offset, source,
                                                    count, cuda.stream),
                   "cuMemcpyHtoD of " + std::to_string(count) + " bytes");
    // Even after an error the source may be in use until this.
    status += cuda.check(cuda.driver.cuStreamSynchronize(cuda.stream),
                         "waiting for a copy to the device");
    return status;
  });
}

// The wait also lets all kernels end that were launched before, so an error of
// a kernel shows here at the latest.
Status CudaBuffer::read(uint64_t offset, void *destination, uint64_t count) {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    Status status =
        cuda.check(cuda.driver.cuMemcpyDtoHAsync_v2(
                       destination, address + offset, count, cuda.stream),
                   "cuMemcpyDtoH of " + std::to_string(count) + " bytes");
    status += cuda.check(cuda.driver.cuStreamSynchronize(cuda.stream),
                         "waiting for a copy to the host");
    return status;
  });
}

Status CudaBuffer::fill(uint32_t word) {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    return cuda.check(
        cuda.driver.cuMemsetD32Async(address, word, bytes / 4, cuda.stream),
        "cuMemsetD32 of " + std::to_string(bytes) + " bytes");
  });
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

/// What would help where the driver is older than what it was given; empty:
/// another error.
static std::string getRemedy(CUresult result, const CudaLibrary &driver,
                             const char *architecture) {
  if (result != CudaUnsupportedPtxVersion && result != CudaNoBinaryForGpu)
    return "";
  std::string text =
      std::string("; for ") + architecture + " the driver is too old";
  int version = 0;
  if (driver.cuDriverGetVersion &&
      driver.cuDriverGetVersion(&version) == CudaSuccess)
    // 12040 for 12.4.
    text = std::string("; for ") + architecture + " the driver is for CUDA " +
           std::to_string(version / 1000) + "." +
           std::to_string(version % 1000 / 10);
  return text + "; a newer one may know it";
}

// PTX is compiled here by the driver, which may take seconds; a cubin is
// copied.
Status CudaDevice::loadModule(const void *data, size_t bytes,
                              std::unique_ptr<KasRtModuleImpl> &module) {
  std::string image;
  if (Status status = readCudaImage(data, bytes, image); status.isError())
    return status;
  auto created = std::make_unique<CudaModule>(*this);
  Status status = inContext([&] {
    // Filled in for PTX that does not assemble.
    std::string log(4096, '\0');
    int options[] = {CudaJitErrorLogBuffer, CudaJitErrorLogBufferSize};
    // The driver takes the size of the log as a value in place of a pointer.
    void *values[] = {log.data(),
                      reinterpret_cast<void *>(uintptr_t(log.size() - 1))};
    CUresult result = driver.cuModuleLoadDataEx(&created->handle, image.c_str(),
                                                2, options, values);
    std::string what =
        "loading a module of " + std::to_string(bytes) + " bytes on " + label;
    Status status = driver.check(result, what);
    // What the driver's assembler had to say about PTX.
    std::string said = makeOneLine(log.c_str());
    if (status.isError() && !said.empty())
      status = Status(status.getCode(), status.getText() + ": " + said);
    std::string remedy = getRemedy(result, driver, info.architecture);
    if (!remedy.empty())
      status = Status(status.getCode(), status.getText() + remedy);
    return status;
  });
  if (!status.isError())
    module = std::move(created);
  return status;
}

// Kernels of the module may still run.
Status CudaModule::release() {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    Status status = cuda.check(cuda.driver.cuStreamSynchronize(cuda.stream),
                               "waiting for the kernels");
    status += cuda.check(cuda.driver.cuModuleUnload(handle), "cuModuleUnload");
    return status;
  });
}

Status CudaModule::createKernel(const std::string &name, uint32_t bufferCount,
                                const std::vector<KasRtTensorMap> &maps,
                                std::unique_ptr<KasRtKernelImpl> &kernel) {
  CudaDevice &cuda = asCuda(device);
  if (!maps.empty() && !cuda.driver.cuTensorMapEncodeTiled)
    return {KAS_RT_ERROR_DRIVER,
            "expected a driver with the function cuTensorMapEncodeTiled (CUDA "
            "12.0) for kernel '" +
                name + "', got one without it"};
  auto created = std::make_unique<CudaKernel>(*this, name, bufferCount);
  // Descriptors are made at the first launch, when addresses are known.
  created->maps = maps;
  created->descriptors.resize(maps.size());
  Status status = cuda.inContext([&] {
    Status status = cuda.check(
        cuda.driver.cuModuleGetFunction(&created->handle, handle, name.c_str()),
        "looking for kernel '" + makeOneLine(name) + "' in a module");
    return status.isError() ? status : created->readNeeds();
  });
  if (!status.isError())
    kernel = std::move(created);
  return status;
}

// What the driver knows of a compiled kernel is compared with what the caller
// states, once: a wrong number of arguments would otherwise be read from
// beyond the array at each launch.
Status CudaKernel::readNeeds() {
  CudaDevice &cuda = asCuda(module.device);
  const CudaLibrary &driver = cuda.driver;
  int threads = 0, shared = 0;
  Status status = cuda.check(
      driver.cuFuncGetAttribute(&threads, CudaFunctionMaxThreads, handle),
      "cuFuncGetAttribute");
  status += cuda.check(
      driver.cuFuncGetAttribute(&shared, CudaFunctionSharedBytes, handle),
      "cuFuncGetAttribute");
  if (status.isError())
    return status;
  // `sharedBytes`: what the kernel declares, without what a launch requests.
  maxThreads = threads;
  sharedBytes = shared;
  allowedDynamicBytes = declaredLimit - std::min(declaredLimit, sharedBytes);
  // A driver before CUDA 12.4 does not say; the caller is then trusted.
  if (!driver.cuFuncGetParamInfo)
    return {};
  // With fewer arguments than parameters the driver would read beyond them.
  uint32_t count = 0;
  size_t offset = 0, bytes = 0;
  // Up to `total` inclusive: one more parameter than expected is an error, too.
  auto total = static_cast<uint32_t>(bufferCount + maps.size());
  while (count <= total) {
    CUresult result = driver.cuFuncGetParamInfo(handle, count, &offset, &bytes);
    if (result == CudaInvalidValue)
      break;
    if (result != CudaSuccess)
      return cuda.check(result, "cuFuncGetParamInfo");
    // A buffer is a pointer of 8 bytes; a map is a `CUtensorMap` by value.
    bool isMap = count >= bufferCount && count < total;
    if (isMap && bytes != sizeof(CUtensorMap))
      return invalidArgument("expected kernel '" + name +
                             "' to take descriptors of tensors, got a "
                             "parameter " +
                             std::to_string(count) + " of " +
                             std::to_string(bytes) + " bytes");
    if (!isMap && bytes != sizeof(CUdeviceptr))
      return invalidArgument(
          "expected kernel '" + name + "' to take pointers, got a parameter " +
          std::to_string(count) + " of " + std::to_string(bytes) + " bytes");
    ++count;
  }
  if (count != total)
    return invalidArgument(
        "expected the number of parameters of kernel '" + name + "', " +
        (count > total ? "more than " + std::to_string(total)
                       : std::to_string(count)) +
        ", got " + std::to_string(bufferCount) + " buffers" +
        (maps.empty() ? "" : " and " + std::to_string(maps.size()) + " maps"));
  return {};
}

// A descriptor contains the address of its tensor, so it is valid for the
// buffers of one launch; most launches use the same ones again.
Status CudaKernel::encodeMaps(const std::vector<CUdeviceptr> &addresses) {
  CudaDevice &cuda = asCuda(module.device);
  if (maps.empty() || encoded == addresses)
    return {};
  // Not valid if one of the calls below fails.
  encoded.clear();
  // Elements along each dimension of a box are neighbours.
  const uint32_t steps[] = {1, 1, 1, 1, 1};
  for (size_t i = 0; i < maps.size(); ++i) {
    const KasRtTensorMap &map = maps[i];
    // As `kas_gpu.tensor_copy` and the matrix descriptors of kernels assume.
    Status status = cuda.check(
        cuda.driver.cuTensorMapEncodeTiled(
            &descriptors[i],
            map.isBFloat16 ? CudaTensorBFloat16 : CudaTensorFloat16, map.rank,
            reinterpret_cast<void *>(addresses[map.argument]), map.sizes,
            map.strides, map.box, steps, /*interleave=*/0, CudaTensorSwizzle128,
            CudaTensorPromotion256, /*fill=*/0),
        "cuTensorMapEncodeTiled of argument " + std::to_string(map.argument) +
            " of kernel '" + name + "'");
    if (status.isError())
      return status;
  }
  encoded = addresses;
  return {};
}

// Asynchronous: an error of the kernel itself is reported by a later call.
Status CudaKernel::launch(const KasRtLaunchSize &size,
                          const KasRtArgument *arguments) {
  CudaDevice &cuda = asCuda(module.device);
  uint64_t threads = uint64_t(size.block[0]) * size.block[1] * size.block[2];
  // The registers of a kernel may allow fewer threads than the device does.
  if (threads > maxThreads)
    return {KAS_RT_ERROR_LIMIT, "expected at most " +
                                    std::to_string(maxThreads) +
                                    " threads in a block of kernel '" + name +
                                    "', got " + std::to_string(threads)};
  // Declared and requested memory share the limit.
  if (sharedBytes + size.dynamicSharedBytes > cuda.info.maxSharedBytes)
    return {KAS_RT_ERROR_LIMIT,
            "expected at most " + std::to_string(cuda.info.maxSharedBytes) +
                " bytes of workgroup memory in kernel '" + name + "', got " +
                std::to_string(sharedBytes) + " static and " +
                std::to_string(size.dynamicSharedBytes) + " dynamic bytes"};
  std::vector<CUdeviceptr> addresses;
  for (uint32_t i = 0; i < bufferCount; ++i)
    addresses.push_back(
        static_cast<CudaBuffer *>(arguments[i].buffer)->address +
        arguments[i].offset);
  return cuda.inContext([&] {
    if (call) {
      Status status = call->launch(addresses, cuda.stream);
      if (!status.isError())
        return status;
      dropLibrary(status.getText());
    }
    return launchItself(size, addresses);
  });
}

// In the device's context.
Status CudaKernel::launchItself(const KasRtLaunchSize &size,
                                const std::vector<CUdeviceptr> &addresses) {
  CudaDevice &cuda = asCuda(module.device);
  // Before the parameters, which are the descriptors.
  if (Status status = encodeMaps(addresses); status.isError())
    return status;
  // The driver copies the parameters at the launch: locals are enough.
  std::vector<void *> parameters;
  for (const CUdeviceptr &address : addresses)
    parameters.push_back(const_cast<CUdeviceptr *>(&address));
  for (CUtensorMap &descriptor : descriptors)
    parameters.push_back(&descriptor);
  // An attribute of the function, set once for the largest request.
  if (size.dynamicSharedBytes > allowedDynamicBytes) {
    if (Status status =
            cuda.check(cuda.driver.cuFuncSetAttribute(
                           handle, CudaFunctionMaxDynamicSharedBytes,
                           static_cast<int>(size.dynamicSharedBytes)),
                       "cuFuncSetAttribute");
        status.isError())
      return status;
    allowedDynamicBytes = size.dynamicSharedBytes;
  }
  return cuda.check(
      cuda.driver.cuLaunchKernel(handle, size.grid[0], size.grid[1],
                                 size.grid[2], size.block[0], size.block[1],
                                 size.block[2], size.dynamicSharedBytes,
                                 cuda.stream, parameters.data(), nullptr),
      "launching kernel '" + name + "'");
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

/// Whether an environment variable is 0.
static bool isOff(const char *variable) {
  const char *value = std::getenv(variable);
  return value && std::strcmp(value, "0") == 0;
}

void CudaKernel::useMatmul(const KasRtMatmul &product) {
  useLibrary(std::make_unique<CudaMatmul>(asCuda(module.device).blas, product));
}

void CudaKernel::useConvolution(const KasRtConvolution &convolution) {
  useLibrary(std::make_unique<CudaConvolution>(asCuda(module.device).dnn,
                                               convolution));
}

void CudaKernel::useLibrary(std::unique_ptr<LibraryCall> next) {
  // The same kernel is handed out for each of its launches.
  if (call || library != "kernel")
    return;
  if (isOff("KAS_RT_LIBRARIES"))
    return dropLibrary("KAS_RT_LIBRARIES is 0");
  call = std::move(next);
  Status status =
      asCuda(module.device).inContext([&] { return call->prepare(); });
  if (status.isError())
    dropLibrary(status.getText());
  else
    library = call->getLabel();
}

void CudaKernel::dropLibrary(const std::string &reason) {
  call.reset();
  library = "kernel: " + reason;
}

//===----------------------------------------------------------------------===//
// Sequences
//===----------------------------------------------------------------------===//

Status
CudaDevice::createSequence(std::vector<KasRtLaunchImpl> launches,
                           std::unique_ptr<KasRtSequenceImpl> &sequence) {
  // All of them come with one version of the driver.
  if (isOff("KAS_RT_GRAPHS") || !driver.cuStreamBeginCapture_v2 ||
      !driver.cuStreamEndCapture || !driver.cuGraphInstantiateWithFlags ||
      !driver.cuGraphDestroy || !driver.cuGraphLaunch ||
      !driver.cuGraphExecDestroy)
    return KasRtDeviceImpl::createSequence(std::move(launches), sequence);
  auto created = std::make_unique<CudaSequence>(*this, std::move(launches));
  Status status = inContext([&] { return created->capture(); });
  if (!status.isError())
    sequence = std::move(created);
  return status;
}

// The stream records instead of running, with copies of all parameters: so a
// graph has what launches have, and nothing is checked twice. It is the
// device's own one: others may be CUDA's default stream, which cannot record,
// or record already.
Status CudaSequence::capture() {
  CudaDevice &cuda = asCuda(device);
  CUstream current = std::exchange(cuda.stream, cuda.ownStream);
  Status status = captureInStream();
  // What a library does in a stream that records may end the recording.
  if (status.isError() && dropLibraries(status))
    status = captureInStream();
  cuda.stream = current;
  return status;
}

/// Whether there were any.
bool CudaSequence::dropLibraries(const Status &reason) {
  bool any = false;
  for (const KasRtLaunchImpl &one : launches) {
    auto &kernel = static_cast<CudaKernel &>(*one.kernel);
    any |= kernel.call != nullptr;
    if (kernel.call)
      kernel.dropLibrary(reason.getText());
  }
  return any;
}

Status CudaSequence::captureInStream() {
  CudaDevice &cuda = asCuda(device);
  const CudaLibrary &driver = cuda.driver;
  // Relaxed: a driver that loads kernels when they are first used may do so.
  if (Status status = cuda.check(
          driver.cuStreamBeginCapture_v2(cuda.stream, CudaCaptureRelaxed),
          "cuStreamBeginCapture");
      status.isError())
    return status;
  Status status = KasRtSequenceImpl::launch();
  // Also after an error: the stream would go on recording.
  CUgraph graph = nullptr;
  status += cuda.check(driver.cuStreamEndCapture(cuda.stream, &graph),
                       "cuStreamEndCapture");
  if (!status.isError()) {
    status = cuda.check(driver.cuGraphInstantiateWithFlags(&handle, graph, 0),
                        "cuGraphInstantiate");
    if (status.isError())
      handle = nullptr;
  }
  if (graph)
    status += cuda.check(driver.cuGraphDestroy(graph), "cuGraphDestroy");
  if (status.isError() && handle)
    (void)driver.cuGraphExecDestroy(handle);
  return status;
}

Status CudaSequence::launch() {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    return cuda.check(cuda.driver.cuGraphLaunch(handle, cuda.stream),
                      "launching a sequence of " +
                          std::to_string(launches.size()) + " kernels");
  });
}

Status CudaSequence::release() {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    // It may be running.
    Status status = cuda.check(cuda.driver.cuStreamSynchronize(cuda.stream),
                               "cuStreamSynchronize");
    status += cuda.check(cuda.driver.cuGraphExecDestroy(handle),
                         "cuGraphExecDestroy");
    return status;
  });
}

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

Status CudaDevice::createEvent(std::unique_ptr<KasRtEventImpl> &event) {
  auto created = std::make_unique<CudaEvent>(*this);
  Status status = inContext([&] {
    return check(driver.cuEventCreate(&created->handle, 0), "cuEventCreate");
  });
  if (!status.isError())
    event = std::move(created);
  return status;
}

Status CudaEvent::release() {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    return cuda.check(cuda.driver.cuEventDestroy_v2(handle), "cuEventDestroy");
  });
}

Status CudaEvent::record() {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    return cuda.check(cuda.driver.cuEventRecord(handle, cuda.stream),
                      "cuEventRecord");
  });
}

Status CudaEvent::elapsedSince(KasRtEventImpl &start, double &milliseconds) {
  CudaDevice &cuda = asCuda(device);
  return cuda.inContext([&] {
    CUevent from = static_cast<CudaEvent &>(start).handle;
    // The start may have been recorded after this event.
    for (CUevent event : {from, handle})
      if (Status status = cuda.check(cuda.driver.cuEventSynchronize(event),
                                     "cuEventSynchronize");
          status.isError())
        return status;
    float elapsed = 0;
    Status status =
        cuda.check(cuda.driver.cuEventElapsedTime(&elapsed, from, handle),
                   "cuEventElapsedTime");
    milliseconds = elapsed;
    return status;
  });
}
