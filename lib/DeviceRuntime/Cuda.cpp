//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The back end on CUDA's driver API: the primary context of the device and one
// stream. The context is current only during a call, so that a program that
// uses CUDA itself finds its own context again.
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"
#include "CudaImage.h"
#include "Device.h"
#include "Library.h"
#include <algorithm>

using namespace kas::rt;

namespace {

/// The functions of the library.
struct Driver {
  Library library;
#define KAS_DECLARE(name, parameters) CUresult(*name) parameters = nullptr;
  KAS_CUDA_FUNCTIONS(KAS_DECLARE)
  KAS_CUDA_OPTIONAL_FUNCTIONS(KAS_DECLARE)
#undef KAS_DECLARE

  /// Loads the library and initializes the driver.
  Status load();
  /// Success, or the error `result` of the call `what`.
  Status check(CUresult result, const std::string &what) const;
  /// `out of memory (CUDA_ERROR_OUT_OF_MEMORY)`.
  std::string describe(CUresult result) const;
};

struct CudaDevice final : KasRtDeviceImpl {
  Status open(int32_t index);
  Status close() override;
  Status synchronize() override;
  Status createBuffer(uint64_t bytes,
                      std::unique_ptr<KasRtBufferImpl> &buffer) override;
  Status loadModule(const void *data, size_t bytes,
                    std::unique_ptr<KasRtModuleImpl> &module) override;
  Status createEvent(std::unique_ptr<KasRtEventImpl> &event) override;

  /// Success, or the error of a call on this device.
  Status check(CUresult result, const std::string &what) const {
    return driver.check(result, what + " on " + label);
  }
  /// Runs `body` with the device's context current.
  template <typename Body>
  Status inContext(Body body) {
    if (Status status =
            check(driver.cuCtxPushCurrent_v2(context), "cuCtxPushCurrent");
        status.isError())
      return status;
    Status status = body();
    CUcontext popped;
    // What `body` did is done whatever this says.
    (void)driver.cuCtxPopCurrent_v2(&popped);
    return status;
  }
  Status readLimits();

  Driver driver;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
};

CudaDevice &asCuda(KasRtDeviceImpl &device) {
  return static_cast<CudaDevice &>(device);
}

struct CudaBuffer final : KasRtBufferImpl {
  using KasRtBufferImpl::KasRtBufferImpl;
  Status release() override;
  Status write(uint64_t offset, const void *source, uint64_t count) override;
  Status read(uint64_t offset, void *destination, uint64_t count) override;
  Status fill(uint32_t word) override;

  CUdeviceptr address = 0;
};

struct CudaModule final : KasRtModuleImpl {
  using KasRtModuleImpl::KasRtModuleImpl;
  Status release() override;
  Status createKernel(const std::string &name, uint32_t bufferCount,
                      const std::vector<KasRtTensorMap> &maps,
                      std::unique_ptr<KasRtKernelImpl> &kernel) override;

  CUmodule handle = nullptr;
};

struct CudaKernel final : KasRtKernelImpl {
  using KasRtKernelImpl::KasRtKernelImpl;
  Status launch(const KasRtLaunchSize &size,
                const KasRtArgument *arguments) override;
  /// Asks the driver what the kernel needs.
  Status readNeeds();
  /// Makes the descriptors of buffers at other addresses than at the last
  /// launch.
  Status encodeMaps(const std::vector<CUdeviceptr> &addresses);

  CUfunction handle = nullptr;
  uint64_t maxThreads = 0, sharedBytes = 0;
  /// What the driver was told that launches may add.
  uint64_t allowedDynamicBytes = 48 * 1024;
  /// One for each map, and the addresses they are made of.
  std::vector<CUtensorMap> descriptors;
  std::vector<CUdeviceptr> encoded;
};

struct CudaEvent final : KasRtEventImpl {
  using KasRtEventImpl::KasRtEventImpl;
  Status release() override;
  Status record() override;
  Status elapsedSince(KasRtEventImpl &start, double &milliseconds) override;

  CUevent handle = nullptr;
};

} // namespace

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

static KasRtStatus classify(CUresult result) {
  switch (result) {
  case CudaOutOfMemory:
    return KAS_RT_ERROR_OUT_OF_MEMORY;
  case CudaNoDevice:
  case CudaInvalidDevice:
    return KAS_RT_ERROR_NO_DEVICE;
  case CudaInvalidImage:
  case CudaNoBinaryForGpu:
  case CudaInvalidPtx:
  case CudaUnsupportedPtxVersion:
  case CudaInvalidSource:
    return KAS_RT_ERROR_INVALID_MODULE;
  case CudaNotFound:
    return KAS_RT_ERROR_NOT_FOUND;
  case CudaLaunchOutOfResources:
    return KAS_RT_ERROR_LIMIT;
  case CudaDeviceUnavailable:
  case CudaInvalidContext:
  case CudaEccUncorrectable:
  case CudaIllegalAddress:
  case CudaLaunchTimeout:
  case CudaContextIsDestroyed:
  case CudaHardwareStackError:
  case CudaIllegalInstruction:
  case CudaMisalignedAddress:
  case CudaInvalidAddressSpace:
  case CudaInvalidPc:
  case CudaLaunchFailed:
    return KAS_RT_ERROR_DEVICE_LOST;
  default:
    return KAS_RT_ERROR_DRIVER;
  }
}

std::string Driver::describe(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &name) != CudaSuccess || !name)
    return "error " + std::to_string(result);
  if (cuGetErrorString(result, &text) != CudaSuccess || !text)
    return name;
  return makeOneLine(text) + " (" + name + ")";
}

Status Driver::check(CUresult result, const std::string &what) const {
  if (result == CudaSuccess)
    return {};
  return {classify(result), what + " failed: " + describe(result)};
}

Status Driver::load() {
  if (Status status =
          library.open("CUDA driver", "libcuda.so.1", "KAS_RT_LIBCUDA");
      status.isError())
    return status;
#define KAS_LOAD(symbol, parameters)                                           \
  symbol = reinterpret_cast<CUresult(*) parameters>(library.lookUp(#symbol));
  KAS_CUDA_FUNCTIONS(KAS_LOAD)
  KAS_CUDA_OPTIONAL_FUNCTIONS(KAS_LOAD)
#undef KAS_LOAD
#define KAS_REQUIRE(symbol, parameters)                                        \
  if (!symbol)                                                                 \
    return {KAS_RT_ERROR_NO_DEVICE,                                            \
            "no CUDA driver: looked for the function " #symbol " in " +        \
                library.getName() +                                            \
                ", which has none: a newer driver "                            \
                "is needed"};
  KAS_CUDA_FUNCTIONS(KAS_REQUIRE)
#undef KAS_REQUIRE
  Status status = check(cuInit(0), "cuInit");
  // Whatever keeps the driver from starting, there is no device to use.
  if (status.isError())
    return {KAS_RT_ERROR_NO_DEVICE, "no CUDA device: " + library.getName() +
                                        " was found, but " + status.getText()};
  return status;
}

Status kas::rt::countCudaDevices(int32_t &count) {
  Driver driver;
  Status status = driver.load();
  int found = 0;
  if (!status.isError())
    status = driver.check(driver.cuDeviceGetCount(&found), "cuDeviceGetCount");
  if (!status.isError())
    count = found;
  return status;
}

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

Status kas::rt::openCudaDevice(int32_t index,
                               std::unique_ptr<KasRtDeviceImpl> &device) {
  auto opened = std::make_unique<CudaDevice>();
  Status status = opened->open(index);
  if (status.isError())
    (void)opened->close();
  else
    device = std::move(opened);
  return status;
}

Status CudaDevice::readLimits() {
  info.backend = KAS_RT_CUDA;
  info.maxBuffers = 256;
  info.hasFloat16 = 1;
  Status status;
  auto read = [&](int attribute) {
    int value = 0;
    status += check(driver.cuDeviceGetAttribute(&value, attribute, device),
                    "cuDeviceGetAttribute");
    return static_cast<uint32_t>(std::max(value, 0));
  };
  info.maxThreadsPerBlock = read(CudaMaxThreadsPerBlock);
  for (int axis = 0; axis < 3; ++axis) {
    info.maxBlock[axis] = read(CudaMaxBlockDimX + axis);
    info.maxGrid[axis] = read(CudaMaxGridDimX + axis);
  }
  info.maxSharedBytes = read(CudaMaxSharedMemoryPerBlockOptin);
  info.warpSize = read(CudaWarpSize);
  uint32_t major = read(CudaComputeCapabilityMajor);
  uint32_t minor = read(CudaComputeCapabilityMinor);
  copyName(info.architecture,
           "sm_" + std::to_string(major) + std::to_string(minor));
  size_t bytes = 0;
  status +=
      check(driver.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
  info.memoryBytes = info.maxBufferBytes = bytes;
  return status;
}

Status CudaDevice::open(int32_t index) {
  label = "cuda:" + std::to_string(index);
  if (Status status = driver.load(); status.isError())
    return status;
  int count = 0;
  if (Status status =
          check(driver.cuDeviceGetCount(&count), "cuDeviceGetCount");
      status.isError())
    return status;
  if (index >= count)
    return {KAS_RT_ERROR_NO_DEVICE,
            "no device " + label + ": looked for it in " +
                driver.library.getName() + ", which has " +
                std::to_string(count) + " CUDA devices"};
  if (Status status = check(driver.cuDeviceGet(&device, index), "cuDeviceGet");
      status.isError())
    return status;
  if (Status status =
          check(driver.cuDeviceGetName(info.name, sizeof(info.name), device),
                "cuDeviceGetName");
      status.isError())
    return status;
  label += std::string(" (") + info.name + ")";
  if (Status status = readLimits(); status.isError())
    return status;
  if (Status status = check(driver.cuDevicePrimaryCtxRetain(&context, device),
                            "cuDevicePrimaryCtxRetain");
      status.isError()) {
    context = nullptr;
    return status;
  }
  return inContext([&] {
    Status status = check(driver.cuStreamCreate(&stream, CudaStreamNonBlocking),
                          "cuStreamCreate");
    if (status.isError())
      stream = nullptr;
    return status;
  });
}

Status CudaDevice::close() {
  Status status;
  if (stream)
    status += inContext([&] {
      Status result =
          check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
      result += check(driver.cuStreamDestroy_v2(stream), "cuStreamDestroy");
      return result;
    });
  if (context)
    status += check(driver.cuDevicePrimaryCtxRelease_v2(device),
                    "cuDevicePrimaryCtxRelease");
  return status;
}

Status CudaDevice::synchronize() {
  return inContext([&] {
    return check(driver.cuStreamSynchronize(stream), "waiting for the kernels");
  });
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Status CudaDevice::createBuffer(uint64_t bytes,
                                std::unique_ptr<KasRtBufferImpl> &buffer) {
  auto created = std::make_unique<CudaBuffer>(*this, bytes);
  Status status = inContext([&] {
    return check(driver.cuMemAlloc_v2(&created->address, bytes),
                 "cuMemAlloc of " + std::to_string(bytes) + " bytes");
  });
  if (!status.isError())
    buffer = std::move(created);
  return status;
}

Status CudaBuffer::release() {
  CudaDevice &cuda = asCuda(device);
  // Freeing waits for nothing on a stream of its own: kernels may still run.
  return cuda.inContext([&] {
    Status status = cuda.check(cuda.driver.cuStreamSynchronize(cuda.stream),
                               "waiting for the kernels");
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

Status CudaDevice::loadModule(const void *data, size_t bytes,
                              std::unique_ptr<KasRtModuleImpl> &module) {
  std::string image;
  if (Status status = readCudaImage(data, bytes, image); status.isError())
    return status;
  auto created = std::make_unique<CudaModule>(*this);
  Status status = inContext([&] {
    std::string log(4096, '\0');
    int options[] = {CudaJitErrorLogBuffer, CudaJitErrorLogBufferSize};
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
    return status;
  });
  if (!status.isError())
    module = std::move(created);
  return status;
}

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

Status CudaKernel::readNeeds() {
  CudaDevice &cuda = asCuda(module.device);
  const Driver &driver = cuda.driver;
  int threads = 0, shared = 0;
  Status status = cuda.check(
      driver.cuFuncGetAttribute(&threads, CudaFunctionMaxThreads, handle),
      "cuFuncGetAttribute");
  status += cuda.check(
      driver.cuFuncGetAttribute(&shared, CudaFunctionSharedBytes, handle),
      "cuFuncGetAttribute");
  if (status.isError())
    return status;
  maxThreads = threads;
  sharedBytes = shared;
  if (!driver.cuFuncGetParamInfo)
    return {};
  // With fewer arguments than parameters the driver would read beyond them.
  uint32_t count = 0;
  size_t offset = 0, bytes = 0;
  auto total = static_cast<uint32_t>(bufferCount + maps.size());
  while (count <= total) {
    CUresult result = driver.cuFuncGetParamInfo(handle, count, &offset, &bytes);
    if (result == CudaInvalidValue)
      break;
    if (result != CudaSuccess)
      return cuda.check(result, "cuFuncGetParamInfo");
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

Status CudaKernel::encodeMaps(const std::vector<CUdeviceptr> &addresses) {
  CudaDevice &cuda = asCuda(module.device);
  if (maps.empty() || encoded == addresses)
    return {};
  encoded.clear();
  const uint32_t steps[] = {1, 1, 1, 1, 1};
  for (size_t i = 0; i < maps.size(); ++i) {
    const KasRtTensorMap &map = maps[i];
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

Status CudaKernel::launch(const KasRtLaunchSize &size,
                          const KasRtArgument *arguments) {
  CudaDevice &cuda = asCuda(module.device);
  uint64_t threads = uint64_t(size.block[0]) * size.block[1] * size.block[2];
  if (threads > maxThreads)
    return {KAS_RT_ERROR_LIMIT, "expected at most " +
                                    std::to_string(maxThreads) +
                                    " threads in a block of kernel '" + name +
                                    "', got " + std::to_string(threads)};
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
  std::vector<void *> parameters;
  for (CUdeviceptr &address : addresses)
    parameters.push_back(&address);
  for (CUtensorMap &descriptor : descriptors)
    parameters.push_back(&descriptor);
  return cuda.inContext([&] {
    if (Status status = encodeMaps(addresses); status.isError())
      return status;
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
