//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The controls of the stand-ins for drivers and libraries, looked up by name in
// theirs. Each stand-in makes the Nth call of a function fail on request.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_RUNTIME_STANDIN_H
#define TEST_UNITTESTS_RUNTIME_STANDIN_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

/// A kernel as the stand-in for CUDA runs it: its parameters as addresses.
using StandInKernel = void (*)(void *const *parameters, const uint32_t *grid,
                               const uint32_t *block);

/// The calls of a stand-in, and the failure that is requested.
struct StandInCalls {
  std::string failing;
  int failAt = 0, error = 0;
  bool hasFailed = false;
  std::map<std::string, int> calls;

  void fail(const char *function, int nth, int code) {
    failing = function;
    failAt = nth;
    error = code;
  }
  /// Counts a call; the error that it must return, or 0, which is success of
  /// all of them.
  int count(const char *function) {
    if (++calls[function] != failAt || failing != function)
      return 0;
    hasFailed = true;
    return error;
  }
};

/// What all of them export as `standInControls`, of type
/// `const StandInControls *`.
struct StandInControls {
  /// Forgets calls and requests.
  void (*reset)();
  /// Lets the call number `nth` (from 1) of `function` return `error`.
  void (*fail)(const char *function, int nth, int error);
  /// Whether the requested failure has happened.
  bool (*hasFailed)();
  /// Hides a function, as a driver that is too old would; CUDA: lets those that
  /// describe errors know none.
  void (*hide)(const char *function);
  int (*countCalls)(const char *function);

  // CUDA only.
  /// Each call with its arguments, one on a line.
  const char *(*getLog)();
  /// What the caller did that the driver does not allow; empty when all is
  /// well.
  const char *(*getViolations)();
  /// Objects and allocations that exist.
  int (*countLive)();
  /// What kernels of this name compute.
  void (*setKernel)(const char *name, StandInKernel kernel);
  /// A stream that the caller has made; null: the default one.
  void (*addStream)(void *stream);
  /// Memory on the device that the caller has, such as a framework's tensor.
  void (*addMemory)(uint64_t address, size_t bytes);
  /// For stand-ins of libraries that launch kernels of their own: does `work`
  /// in order with what else is in the stream, at once or when the graph runs
  /// that the stream records.
  void (*enqueue)(void *stream, const std::function<void()> &work);
  /// Whether so many bytes are in one allocation; work uses them from then on.
  bool (*isAllocated)(uint64_t address, size_t bytes);
  /// Whether a context is current.
  bool (*hasContext)();

  // Vulkan only.
  /// Memory of the device is out of the host's sight, as on a graphics card.
  void (*setDiscrete)(bool discrete);
  /// The device has no clock.
  void (*setClock)(bool clock);
  /// The system has no device.
  void (*setDevices)(bool devices);
  /// No memory of the device can be that of a buffer.
  void (*setMemory)(bool memory);
  /// How many bytes the last cache of pipelines was made of.
  std::size_t (*getInitialPipelineBytes)();
};

#endif // TEST_UNITTESTS_RUNTIME_STANDIN_H
