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

#ifndef LIB_RUNTIME_CUDADEVICE_H
#define LIB_RUNTIME_CUDADEVICE_H

#include "CudaConvolution.h"
#include "CudaDriver.h"
#include "CudaMatmul.h"
#include "Device.h"
#include "Library.h"

namespace kas::rt {

/// The functions of the library.
struct CudaLibrary {
  Library library;
  // The names are the driver's.
  // NOLINTBEGIN(readability-identifier-naming)
#define KAS_DECLARE(name, parameters) CUresult(*name) parameters = nullptr;
  KAS_CUDA_FUNCTIONS(KAS_DECLARE)
  KAS_CUDA_OPTIONAL_FUNCTIONS(KAS_DECLARE)
#undef KAS_DECLARE
  // NOLINTEND(readability-identifier-naming)

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
  Status setStream(void *caller) override;
  Status createBuffer(uint64_t bytes,
                      std::unique_ptr<KasRtBufferImpl> &buffer) override;
  Status borrowBuffer(uint64_t address, uint64_t bytes,
                      std::unique_ptr<KasRtBufferImpl> &buffer) override;
  Status loadModule(const void *data, size_t bytes,
                    std::unique_ptr<KasRtModuleImpl> &module) override;
  Status createEvent(std::unique_ptr<KasRtEventImpl> &event) override;
  Status createSequence(std::vector<KasRtLaunchImpl> launches,
                        std::unique_ptr<KasRtSequenceImpl> &sequence) override;

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

  CudaLibrary driver;
  CUdevice device = 0;
  CUcontext context = nullptr;
  /// Where work goes: its own stream, or one of the caller's.
  CUstream stream = nullptr, ownStream = nullptr;
  LibraryWorkspace workspace{*this};
  CublasLt blas{*this};
  Cudnn dnn{*this};
};

inline CudaDevice &asCuda(KasRtDeviceImpl &device) {
  return static_cast<CudaDevice &>(device);
}

struct CudaBuffer final : KasRtBufferImpl {
  using KasRtBufferImpl::KasRtBufferImpl;
  Status release() override;
  Status write(uint64_t offset, const void *source, uint64_t count) override;
  Status read(uint64_t offset, void *destination, uint64_t count) override;
  Status fill(uint32_t word) override;

  CUdeviceptr address = 0;
  /// Whether the memory is the caller's.
  bool isBorrowed = false;
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
  void useMatmul(const KasRtMatmul &product) override;
  void useConvolution(const KasRtConvolution &convolution) override;
  void useLibrary(std::unique_ptr<LibraryCall> next);
  /// From now on the kernel itself is launched.
  void dropLibrary(const std::string &reason);
  Status launchItself(const KasRtLaunchSize &size,
                      const std::vector<CUdeviceptr> &addresses);
  /// Asks the driver what the kernel needs.
  Status readNeeds();
  /// Makes the descriptors of buffers at other addresses than at the last
  /// launch.
  Status encodeMaps(const std::vector<CUdeviceptr> &addresses);

  CUfunction handle = nullptr;
  uint64_t maxThreads = 0, sharedBytes = 0;
  /// What launches may add: without a request, together with what the kernel
  /// declares, `declaredLimit`.
  uint64_t allowedDynamicBytes = 0;
  static constexpr uint64_t declaredLimit = 48 * 1024;
  /// One for each map, and the addresses they are made of.
  std::vector<CUtensorMap> descriptors;
  std::vector<CUdeviceptr> encoded;
  /// What computes the same, if anything does.
  std::unique_ptr<LibraryCall> call;
};

/// A graph, which one call starts.
struct CudaSequence final : KasRtSequenceImpl {
  using KasRtSequenceImpl::KasRtSequenceImpl;
  /// Lets the driver record the launches; without libraries where it cannot
  /// record what they do.
  Status capture();
  bool dropLibraries(const Status &reason);
  Status captureInStream();
  Status launch() override;
  Status release() override;

  CUgraphExec handle = nullptr;
};

struct CudaEvent final : KasRtEventImpl {
  using KasRtEventImpl::KasRtEventImpl;
  Status release() override;
  Status record() override;
  Status elapsedSince(KasRtEventImpl &start, double &milliseconds) override;

  CUevent handle = nullptr;
};

} // namespace kas::rt

#endif // LIB_RUNTIME_CUDADEVICE_H
