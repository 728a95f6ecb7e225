//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions whose kernels run on a device of kas-rt.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_GPU_DEVICEFUNCTION_H
#define KAS_EXECUTIONENGINE_GPU_DEVICEFUNCTION_H

#include "kas-rt/kas-rt.h"
#include "kas/ExecutionEngine/Tensor.h"
#include "kas/ExecutionEngine/Timing.h"
#include "kas/Support/DeviceManifest.h"
#include <utility>

namespace kas::execution {

/// An open device of the runtime, closed when it goes. What uses it must go
/// before.
class Device {
public:
  /// `cuda`, `cuda:1`, `vulkan`, ...; see `kasRtDeviceOpen`.
  static llvm::Expected<Device> open(llvm::StringRef name);
  Device(Device &&other)
      : handle(std::exchange(other.handle, nullptr)), info(other.info) {}
  Device &operator=(Device &&other) {
    std::swap(handle, other.handle);
    std::swap(info, other.info);
    return *this;
  }
  ~Device();
  /// Closes it now and says what the driver or a validation layer has to say.
  llvm::Error close();

  const KasRtDeviceInfo &getInfo() const { return info; }
  KasRtDevice get() const { return handle; }

private:
  explicit Device(KasRtDevice handle) : handle(handle) {}

  KasRtDevice handle;
  KasRtDeviceInfo info = {};
};

/// A function of a compiled program on a device: its buffers and kernels. All
/// buffers stay on the device, so kernels pass temporaries on without copies.
class DeviceFunction {
public:
  /// Loads the kernels in `binary` and makes the buffers of function `name`.
  /// Errors: a malformed manifest, one for another API, whatever the runtime
  /// reports.
  static llvm::Expected<std::unique_ptr<DeviceFunction>>
  load(const Device &device, const DeviceManifest &manifest,
       llvm::StringRef binary, llvm::StringRef name);
  ~DeviceFunction();

  /// Copies the arguments to the device; their shapes must be the manifest's.
  /// Elements that are f16 or bf16 there are rounded to nearest.
  llvm::Error upload(llvm::ArrayRef<Tensor> arguments);

  /// Starts all kernels, by one call of the runtime, and before the first call
  /// after an upload those that prepack weights; returns before they are done.
  llvm::Error launch();

  /// What computes each launch, as `kasRtKernelGetLibrary` says: `kernel`, a
  /// library, or why it is none. May change when a library fails.
  std::vector<std::string> getLibraries() const;

  /// Waits for the kernels and copies the results from the device. Error: what
  /// the first assertion says, in the order of the program, that failed
  /// ("FILE:LINE:COLUMN: TEXT"); `results` stay as they are then.
  llvm::Error download(llvm::MutableArrayRef<Tensor> results);

  /// Uploads, launches and downloads.
  llvm::Error run(llvm::ArrayRef<Tensor> arguments,
                  llvm::MutableArrayRef<Tensor> results);

  /// Times the kernels alone by the device's clock, with the data that is
  /// there.
  llvm::Expected<Timing> measure(const TimingOptions &options = {});

private:
  struct Launch {
    KasRtKernel kernel;
    KasRtLaunchSize size;
    std::vector<KasRtArgument> arguments;
  };

  DeviceFunction(const Device &device, const DeviceManifest::Function &function)
      : device(device), function(function) {}
  llvm::Error createBuffers();
  llvm::Error createKernels(const DeviceManifest &manifest,
                            llvm::StringRef binary);
  /// Of launches from `first` on; null: there is none.
  llvm::Expected<KasRtSequence> createSequence(size_t first, size_t count);
  /// Prepacks the weights that are there, unless it has been done.
  llvm::Error prepack();
  llvm::Error checkAssertions();
  llvm::Error createEvents();

  const Device &device;
  DeviceManifest::Function function;
  KasRtModule module = nullptr;
  /// For each of the function's buffers; those in the scratch are null.
  std::vector<KasRtBuffer> buffers;
  KasRtBuffer scratch = nullptr;
  std::vector<Launch> launches;
  /// Of the launches that prepack weights, and of the others; made by the first
  /// call.
  KasRtSequence prepackSequence = nullptr, sequence = nullptr;
  bool isPrepacked = false;
  KasRtEvent start = nullptr, stop = nullptr;
};

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_GPU_DEVICEFUNCTION_H
