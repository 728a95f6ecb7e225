//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Libraries of kernels, such as cuBLASLt, as one CUDA device uses them: how
// they are opened, and what of theirs takes the place of a kernel.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_KERNELLIBRARY_H
#define LIB_RUNTIME_KERNELLIBRARY_H

#include "CudaDriver.h"
#include "Library.h"
#include <array>
#include <string>
#include <vector>

namespace kas::rt {

struct CudaDevice;

/// Memory on the device for what libraries compute, which runs one after
/// another in one stream, so all of it is shared.
struct LibraryWorkspace {
  explicit LibraryWorkspace(CudaDevice &device) : device(device) {}
  LibraryWorkspace(const LibraryWorkspace &) = delete;
  LibraryWorkspace &operator=(const LibraryWorkspace &) = delete;

  /// Allocates it at the first call, in the device's context.
  Status open();
  Status close();

  /// 32 MiB is what NVIDIA recommends for cuBLAS on Hopper.
  static constexpr size_t bytes = size_t(32) << 20;
  CUdeviceptr address = 0;

private:
  CudaDevice &device;
};

/// Opened by name when the first kernel is requested. Where that fails it fails
/// once, with the same text each time.
class KernelLibrary {
public:
  KernelLibrary(const KernelLibrary &) = delete;
  KernelLibrary &operator=(const KernelLibrary &) = delete;
  virtual ~KernelLibrary() = default;

  /// Opens the library and makes its handle and the workspace, in the device's
  /// context.
  Status open();
  /// Gives the handle back, in the device's context.
  Status close();
  /// Success, or the error of a call of the library.
  static Status check(int result, const char *what);
  /// `cuBLASLt 12.1.3`, once it is open.
  const std::string &getLabel() const { return label; }
  void *getWorkspace() const;

protected:
  using Version = std::array<size_t, 3>;
  struct Names {
    /// `cuBLASLt`.
    const char *name;
    /// The environment variable that names another file.
    const char *variable;
    /// The newest first. The last component is the major version, within which
    /// functions and numbers do not change.
    std::vector<const char *> files;
    /// Of versions whose functions are known.
    size_t leastMajor, mostMajor;
  };

  KernelLibrary(CudaDevice &device, Names names)
      : device(device), names(std::move(names)) {}

  virtual Status loadFunctions() = 0;
  virtual Version getVersion() const = 0;
  virtual Status createHandle() = 0;
  /// Called where `createHandle` has succeeded.
  virtual Status destroyHandle() = 0;
  /// An error where the library has no such function.
  template <typename Function>
  Status lookUp(Function *&function, const char *symbol) const {
    function = reinterpret_cast<Function *>(library.lookUp(symbol));
    return function ? Status() : missing(symbol);
  }

private:
  Status load();
  Status checkVersion();
  Status missing(const char *symbol) const;

  CudaDevice &device;
  Names names;
  Library library;
  std::string label;
  bool isTried = false, hasHandle = false;
  Status outcome;
};

/// What a library computes in place of one kernel, with all that it must know
/// of it but the addresses.
class LibraryCall {
public:
  explicit LibraryCall(KernelLibrary &kernels) : kernels(kernels) {}
  LibraryCall(const LibraryCall &) = delete;
  LibraryCall &operator=(const LibraryCall &) = delete;
  virtual ~LibraryCall() = default;

  /// Opens the library, and describes what it has to compute.
  Status prepare();
  /// Starts it in `stream`.
  virtual Status launch(const std::vector<CUdeviceptr> &arguments,
                        CUstream stream) = 0;
  const std::string &getLabel() const { return kernels.getLabel(); }

protected:
  /// Makes the descriptions and asks for the library's best kernel.
  virtual Status describe() = 0;

private:
  KernelLibrary &kernels;
};

} // namespace kas::rt

#endif // LIB_RUNTIME_KERNELLIBRARY_H
