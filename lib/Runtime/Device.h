//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a back end of the device runtime implements. The C functions check the
// arguments and count what is alive; a back end talks to its driver.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_DEVICE_H
#define LIB_RUNTIME_DEVICE_H

#include "Status.h"
#include <memory>
#include <vector>

/// Whatever belongs to a device. `release` gives back what the driver holds and
/// is called once, last; it does all it can even when something fails.
struct KasRtObject {
  explicit KasRtObject(KasRtDeviceImpl &device) : device(device) {}
  virtual ~KasRtObject() = default;
  virtual kas::rt::Status release() = 0;

  KasRtDeviceImpl &device;
};

struct KasRtBufferImpl : KasRtObject {
  KasRtBufferImpl(KasRtDeviceImpl &device, uint64_t bytes)
      : KasRtObject(device), bytes(bytes) {}
  virtual kas::rt::Status write(uint64_t offset, const void *source,
                                uint64_t count) = 0;
  virtual kas::rt::Status read(uint64_t offset, void *destination,
                               uint64_t count) = 0;
  virtual kas::rt::Status fill(uint32_t word) = 0;

  uint64_t bytes;
};

struct KasRtKernelImpl {
  KasRtKernelImpl(KasRtModuleImpl &module, std::string name,
                  uint32_t bufferCount)
      : module(module), name(std::move(name)), bufferCount(bufferCount) {}
  virtual ~KasRtKernelImpl() = default;
  virtual kas::rt::Status launch(const KasRtLaunchSize &size,
                                 const KasRtArgument *arguments) = 0;
  /// Lets a library compute the same, where the back end has one.
  virtual void useMatmul(const KasRtMatmul &) {}
  virtual void useConvolution(const KasRtConvolution &) {}

  KasRtModuleImpl &module;
  std::string name;
  uint32_t bufferCount;
  /// Of descriptors that the kernel takes after the buffers.
  std::vector<KasRtTensorMap> maps;
  /// What computes launches; see `kasRtKernelGetLibrary`.
  std::string library = "kernel";
};

struct KasRtModuleImpl : KasRtObject {
  using KasRtObject::KasRtObject;
  virtual kas::rt::Status
  createKernel(const std::string &name, uint32_t bufferCount,
               const std::vector<KasRtTensorMap> &maps,
               std::unique_ptr<KasRtKernelImpl> &kernel) = 0;

  std::vector<std::unique_ptr<KasRtKernelImpl>> kernels;
};

/// What one launch of a sequence is.
struct KasRtLaunchImpl {
  KasRtKernelImpl *kernel;
  KasRtLaunchSize size;
  std::vector<KasRtArgument> arguments;
};

/// Launches one after another, by calls of their own; a back end that can
/// prepare them has a class of its own.
struct KasRtSequenceImpl : KasRtObject {
  KasRtSequenceImpl(KasRtDeviceImpl &device,
                    std::vector<KasRtLaunchImpl> launches)
      : KasRtObject(device), launches(std::move(launches)) {}
  kas::rt::Status release() override { return {}; }
  virtual kas::rt::Status launch() {
    for (const KasRtLaunchImpl &one : launches)
      if (kas::rt::Status status =
              one.kernel->launch(one.size, one.arguments.data());
          status.isError())
        return status;
    return {};
  }

  std::vector<KasRtLaunchImpl> launches;
};

struct KasRtEventImpl : KasRtObject {
  using KasRtObject::KasRtObject;
  virtual kas::rt::Status record() = 0;
  /// Waits for this event; both have been recorded.
  virtual kas::rt::Status elapsedSince(KasRtEventImpl &start,
                                       double &milliseconds) = 0;

  bool isRecorded = false;
};

struct KasRtDeviceImpl {
  virtual ~KasRtDeviceImpl() = default;
  /// Gives back what the driver holds; called once, last.
  virtual kas::rt::Status close() = 0;
  virtual kas::rt::Status synchronize() = 0;
  /// What is an address or a stream of the caller's is up to the back end.
  virtual kas::rt::Status setStream(void *stream) {
    return kas::rt::invalidArgument(
        "expected a CUDA device for a stream of the caller, got " + label);
  }
  virtual kas::rt::Status
  borrowBuffer(uint64_t address, uint64_t bytes,
               std::unique_ptr<KasRtBufferImpl> &buffer) {
    return kas::rt::invalidArgument(
        "expected a CUDA device for memory of the caller, got " + label);
  }
  virtual kas::rt::Status
  createBuffer(uint64_t bytes, std::unique_ptr<KasRtBufferImpl> &buffer) = 0;
  virtual kas::rt::Status
  loadModule(const void *data, size_t bytes,
             std::unique_ptr<KasRtModuleImpl> &module) = 0;
  virtual kas::rt::Status
  createEvent(std::unique_ptr<KasRtEventImpl> &event) = 0;
  virtual kas::rt::Status
  createSequence(std::vector<KasRtLaunchImpl> launches,
                 std::unique_ptr<KasRtSequenceImpl> &sequence) {
    sequence = std::make_unique<KasRtSequenceImpl>(*this, std::move(launches));
    return {};
  }
  /// What a validation layer reported since the last call.
  virtual kas::rt::Status takeMessages() { return {}; }

  KasRtDeviceInfo info = {};
  /// `cuda:0 (NVIDIA H200)`, for texts.
  std::string label;
  /// Set for good by the first error after which the device is of no use.
  bool isLost = false;
  uint64_t liveBuffers = 0, liveModules = 0, liveEvents = 0, liveSequences = 0;
};

namespace kas::rt {

Status countCudaDevices(int32_t &count);
Status openCudaDevice(int32_t index, std::unique_ptr<KasRtDeviceImpl> &device);
Status countVulkanDevices(int32_t &count);
Status openVulkanDevice(int32_t index,
                        std::unique_ptr<KasRtDeviceImpl> &device);

/// An error unless the matrices are in buffers of the kernel, and neighbours in
/// memory are along one of their dimensions.
Status checkMatmul(const KasRtKernelImpl &kernel, const KasRtMatmul &matmul);

/// An error unless the tensors are in buffers of the kernel, and a window fits
/// the image.
Status checkConvolution(const KasRtKernelImpl &kernel,
                        const KasRtConvolution &convolution);

/// Of images, channels, height and width of the result, 0 where no window fits.
void getResultSizes(const KasRtConvolution &convolution, uint64_t (&sizes)[4]);

/// Copies a name to where a C structure keeps it, cut to what fits.
template <size_t N>
void copyName(char (&to)[N], const std::string &from) {
  to[from.copy(to, N - 1)] = '\0';
}

/// `text` with each line break and what surrounds it made one space.
std::string makeOneLine(const std::string &text);

} // namespace kas::rt

#endif // LIB_RUNTIME_DEVICE_H
