//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// CUDA's driver and its devices.
// The driver API of CUDA, loaded at run time (CudaDriver.h), so that the
// library builds and loads on machines without CUDA. Names and meanings of
// errors: "CUDA Driver API", CUresult.
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"
#include <algorithm>

using namespace kas::rt;

//===----------------------------------------------------------------------===//
// The driver
//===----------------------------------------------------------------------===//

/// What a caller can do about an error. After those that are "device lost" the
/// context is unusable until the process ends or the context is reset ("CUDA
/// Driver API", on CUDA_ERROR_ILLEGAL_ADDRESS and its like).
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

std::string CudaLibrary::describe(CUresult result) const {
  const char *name = nullptr, *text = nullptr;
  if (cuGetErrorName(result, &name) != CudaSuccess || !name)
    return "error " + std::to_string(result);
  // The name alone tells what to look up.
  if (cuGetErrorString(result, &text) != CudaSuccess || !text)
    return name;
  return makeOneLine(text) + " (" + name + ")";
}

Status CudaLibrary::check(CUresult result, const std::string &what) const {
  if (result == CudaSuccess)
    return {};
  return {classify(result), what + " failed: " + describe(result)};
}

Status CudaLibrary::load() {
  if (Status status =
          library.open("CUDA driver", "libcuda.so.1", "KAS_RT_LIBCUDA");
      status.isError())
    return status;
// All functions first, then the check: both run over the same list.
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
  CudaLibrary driver;
  Status status = driver.load();
  // The result is left alone after an error.
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
  // `close` releases what a failed `open` has made so far.
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
  // Pointers of 8 bytes: half of the 4 KiB of parameters that any driver takes.
  info.maxBuffers = 256;
  // Since compute capability 5.3; kernels are compiled for 7.5 and later.
  info.hasFloat16 = 1;
  Status status;
  // Errors accumulate: the first one is returned after all attributes were
  // tried.
  auto read = [&](int attribute) {
    int value = 0;
    status += check(driver.cuDeviceGetAttribute(&value, attribute, device),
                    "cuDeviceGetAttribute");
    return static_cast<uint32_t>(std::max(value, 0));
  };
  info.maxThreadsPerBlock = read(CudaMaxThreadsPerBlock);
  for (int axis = 0; axis < 3; ++axis) {
    // The attributes of x, y and z are consecutive numbers.
    info.maxBlock[axis] = read(CudaMaxBlockDimX + axis);
    info.maxGrid[axis] = read(CudaMaxGridDimX + axis);
  }
  // What a launch may request, more than the 48 KiB that a kernel may declare.
  info.maxSharedBytes = read(CudaMaxSharedMemoryPerBlockOptin);
  info.warpSize = read(CudaWarpSize);
  uint32_t major = read(CudaComputeCapabilityMajor);
  uint32_t minor = read(CudaComputeCapabilityMinor);
  // As `chip=` of the pipeline takes it.
  copyName(info.architecture,
           "sm_" + std::to_string(major) + std::to_string(minor));
  size_t bytes = 0;
  status +=
      check(driver.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
  // One buffer may take all memory.
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
  // Said here, since the driver's own error would not tell how many there are.
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
  // From here on errors name the device, not only its index.
  label += std::string(" (") + info.name + ")";
  if (Status status = readLimits(); status.isError())
    return status;
  // Shared with the rest of the process, such as PyTorch, whose pointers are
  // then valid here.
  if (Status status = check(driver.cuDevicePrimaryCtxRetain(&context, device),
                            "cuDevicePrimaryCtxRetain");
      status.isError()) {
    context = nullptr;
    return status;
  }
  return inContext([&] {
    // Not synchronized with the default stream, which others in the process
    // use.
    Status status =
        check(driver.cuStreamCreate(&ownStream, CudaStreamNonBlocking),
              "cuStreamCreate");
    if (status.isError())
      ownStream = nullptr;
    stream = ownStream;
    return status;
  });
}

Status CudaDevice::close() {
  Status status;
  // Destroyed in the reverse order; errors do not end it, so that nothing
  // leaks.
  if (ownStream)
    status += inContext([&] {
      Status result =
          check(driver.cuStreamSynchronize(stream), "cuStreamSynchronize");
      result += blas.close();
      result += dnn.close();
      result += workspace.close();
      result += check(driver.cuStreamDestroy_v2(ownStream), "cuStreamDestroy");
      return result;
    });
  // The context itself lives on if others in the process use it.
  if (context)
    status += check(driver.cuDevicePrimaryCtxRelease_v2(device),
                    "cuDevicePrimaryCtxRelease");
  return status;
}

// Two streams know nothing of each other: without the wait work would no longer
// run in the order of the calls.
Status CudaDevice::setStream(void *caller) {
  CUstream next =
      caller == KAS_RT_OWN_STREAM ? ownStream : static_cast<CUstream>(caller);
  if (next == stream)
    return {};
  Status status = synchronize();
  if (!status.isError())
    stream = next;
  return status;
}

Status CudaDevice::synchronize() {
  return inContext([&] {
    return check(driver.cuStreamSynchronize(stream), "waiting for the kernels");
  });
}
