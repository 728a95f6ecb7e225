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
#include <list>
#include <mutex>
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
       llvm::StringRef binary, llvm::StringRef name) {
    return load(device, manifest, binary, name, /*ownsTensors=*/true);
  }
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
  friend class CallerFunction;

  struct Launch {
    KasRtKernel kernel;
    KasRtLaunchSize size;
    /// Positions in `buffers`.
    std::vector<size_t> arguments;
  };

  DeviceFunction(const Device &device, const DeviceManifest::Function &function)
      : device(device), function(function) {}
  /// Arguments and results have buffers only if the function owns them.
  static llvm::Expected<std::unique_ptr<DeviceFunction>>
  load(const Device &device, const DeviceManifest &manifest,
       llvm::StringRef binary, llvm::StringRef name, bool ownsTensors);
  llvm::Error createBuffers(bool ownsTensors);
  llvm::Error createKernels(const DeviceManifest &manifest,
                            llvm::StringRef binary);
  /// What a launch takes where the tensors are in these buffers.
  std::vector<KasRtArgument>
  getArguments(const Launch &launch, llvm::ArrayRef<KasRtBuffer> handles) const;
  /// Of launches from `first` on; null: there is none.
  llvm::Expected<KasRtSequence>
  createSequence(size_t first, size_t count,
                 llvm::ArrayRef<KasRtBuffer> handles) const;
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

/// A function of a compiled program on tensors in the caller's memory on a CUDA
/// device, such as those of a framework: no copies, in the caller's stream.
/// Any number of threads may call functions of a device.
class CallerFunction {
public:
  /// As `DeviceFunction::load`; `lock` is that of all functions of the device.
  static llvm::Expected<std::unique_ptr<CallerFunction>>
  load(const Device &device, std::mutex &lock, const DeviceManifest &manifest,
       llvm::StringRef binary, llvm::StringRef name);
  ~CallerFunction();

  /// Starts all kernels in `stream` (see `kasRtDeviceSetStream`) on dense
  /// tensors at these addresses, multiples of 16: those of the arguments, then
  /// those of the results. Returns before they are done, unless the function
  /// has assertions. With the same addresses as in a call before it is one
  /// launch. Weights are prepacked by the first call, and again where their
  /// addresses are others. Errors: another number of addresses, an assertion
  /// that failed, whatever the runtime reports.
  llvm::Error call(llvm::ArrayRef<uint64_t> addresses, void *stream);

  /// Weights have changed where they are: the next call prepacks them again.
  void forgetWeights();

  const DeviceManifest::Function &getFunction() const {
    return function->function;
  }
  std::vector<std::string> getLibraries() const {
    return function->getLibraries();
  }

private:
  /// Tensors of a call, which may come again.
  struct Tensors {
    std::vector<uint64_t> addresses;
    /// As `DeviceFunction::buffers`; those at `addresses` are this entry's.
    std::vector<KasRtBuffer> buffers;
    /// Made when the tensors come for the second time.
    KasRtSequence sequence = nullptr;
    bool isNew = true;
  };

  CallerFunction(std::unique_ptr<DeviceFunction> function, std::mutex &lock)
      : function(std::move(function)), lock(lock) {}
  /// The entry of these addresses, at the front of `recent`.
  llvm::Expected<Tensors *> enter(llvm::ArrayRef<uint64_t> addresses);
  llvm::Error prepack(const Tensors &tensors);
  llvm::Error launch(Tensors &tensors);
  /// Launches `count` kernels from `first` on, each by itself.
  llvm::Error launchEach(size_t first, size_t count, const Tensors &tensors);
  void release(Tensors &tensors) const;

  std::unique_ptr<DeviceFunction> function;
  std::mutex &lock;
  /// The last ones first.
  std::list<Tensors> recent;
  /// Those that were prepacked last, by position.
  std::vector<uint64_t> prepacked;
};

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_GPU_DEVICEFUNCTION_H
