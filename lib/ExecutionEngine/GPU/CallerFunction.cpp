//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs a function of a device program on tensors in the caller's memory.
//
// Frameworks give the same memory again and again: the last sets of addresses
// are kept, each with its launches as a sequence (a graph with CUDA) from the
// second time on. A set that never comes again costs no recording.
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/GPU/DeviceFunction.h"
#include "llvm/ADT/STLExtras.h"

using namespace kas;
using namespace kas::execution;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using BufferKind = DeviceManifest::BufferKind;

/// Sets of addresses that are kept: more than a caller with two streams and
/// results that live for some calls takes turns with.
static constexpr size_t maxRecent = 16;

/// The runtime's text of an error; it is of this thread's last call.
static Error check(KasRtStatus status) {
  if (status == KAS_RT_SUCCESS)
    return Error::success();
  return createStringError(kasRtErrorText());
}

Expected<std::unique_ptr<CallerFunction>>
CallerFunction::load(const Device &device, std::mutex &lock,
                     const DeviceManifest &manifest, llvm::StringRef binary,
                     llvm::StringRef name) {
  if (device.getInfo().backend != KAS_RT_CUDA)
    return createStringError("expected a CUDA device for tensors in the "
                             "caller's memory, got '" +
                             llvm::Twine(device.getInfo().name) + "'");
  std::lock_guard<std::mutex> guard(lock);
  auto loaded = DeviceFunction::load(device, manifest, binary, name,
                                     /*ownsTensors=*/false);
  if (!loaded)
    return loaded.takeError();
  return std::unique_ptr<CallerFunction>(
      new CallerFunction(std::move(*loaded), lock));
}

CallerFunction::~CallerFunction() {
  std::lock_guard<std::mutex> guard(lock);
  for (Tensors &tensors : recent)
    release(tensors);
  function.reset();
}

// Errors have nobody to go to; the device reports them again.
void CallerFunction::release(Tensors &tensors) const {
  (void)kasRtSequenceDestroy(tensors.sequence);
  for (auto [buffer, handle] :
       llvm::zip_equal(getFunction().buffers, tensors.buffers))
    if (buffer.kind == BufferKind::Argument ||
        buffer.kind == BufferKind::Result)
      (void)kasRtBufferDestroy(handle);
}

Expected<CallerFunction::Tensors *>
CallerFunction::enter(ArrayRef<uint64_t> addresses) {
  auto found = llvm::find_if(recent, [&](const Tensors &tensors) {
    return ArrayRef(tensors.addresses) == addresses;
  });
  if (found != recent.end()) {
    recent.splice(recent.begin(), recent, found);
    return &recent.front();
  }
  if (recent.size() == maxRecent) {
    release(recent.back());
    recent.pop_back();
  }
  Tensors &tensors = recent.emplace_front();
  tensors.addresses = addresses;
  tensors.buffers = function->buffers;
  const uint64_t *next = addresses.begin();
  for (auto [buffer, handle] :
       llvm::zip_equal(getFunction().buffers, tensors.buffers)) {
    if (buffer.kind != BufferKind::Argument &&
        buffer.kind != BufferKind::Result)
      continue;
    if (Error error = check(kasRtBufferBorrow(function->device.get(), *next++,
                                              buffer.getBytes(), &handle))) {
      release(tensors);
      recent.pop_front();
      return error;
    }
  }
  return &tensors;
}

Error CallerFunction::launchEach(size_t first, size_t count,
                                 const Tensors &tensors) {
  for (const auto &launch : ArrayRef(function->launches).slice(first, count)) {
    std::vector<KasRtArgument> arguments =
        function->getArguments(launch, tensors.buffers);
    if (Error error =
            check(kasRtLaunch(launch.kernel, &launch.size, arguments.data(),
                              static_cast<uint32_t>(arguments.size()))))
      return error;
  }
  return Error::success();
}

// The prepacked weights are in the scratch memory that all calls share.
Error CallerFunction::prepack(const Tensors &tensors) {
  size_t count = getFunction().numPrepackLaunches;
  std::vector<uint64_t> read;
  for (const auto &launch : ArrayRef(function->launches).take_front(count))
    for (size_t position : launch.arguments)
      // Arguments come first among the buffers.
      if (getFunction().buffers[position].kind == BufferKind::Argument)
        read.push_back(tensors.addresses[position]);
  // Constants alone: `prepacked` says nothing about these.
  if (function->isPrepacked && read == prepacked)
    return Error::success();
  if (Error error = launchEach(0, count, tensors))
    return error;
  prepacked = std::move(read);
  function->isPrepacked = true;
  return Error::success();
}

Error CallerFunction::launch(Tensors &tensors) {
  size_t first = getFunction().numPrepackLaunches;
  size_t count = function->launches.size() - first;
  if (count == 0)
    return Error::success();
  if (std::exchange(tensors.isNew, false))
    return launchEach(first, count, tensors);
  if (!tensors.sequence)
    if (Error error = function->createSequence(first, count, tensors.buffers)
                          .moveInto(tensors.sequence))
      return error;
  return check(kasRtSequenceLaunch(tensors.sequence));
}

Error CallerFunction::call(ArrayRef<uint64_t> addresses, void *stream) {
  size_t expected =
      llvm::count_if(getFunction().buffers, [](const auto &buffer) {
        return buffer.kind == BufferKind::Argument ||
               buffer.kind == BufferKind::Result;
      });
  if (addresses.size() != expected)
    return createStringError("expected " + llvm::Twine(expected) +
                             " tensors for function '" + getFunction().name +
                             "', got " + llvm::Twine(addresses.size()));
  std::lock_guard<std::mutex> guard(lock);
  if (Error error = check(kasRtDeviceSetStream(function->device.get(), stream)))
    return error;
  auto tensors = enter(addresses);
  if (!tensors)
    return tensors.takeError();
  if (Error error = prepack(**tensors))
    return error;
  if (Error error = launch(**tensors))
    return error;
  // Reads a word, and so waits; functions without assertions have none.
  return function->checkAssertions();
}

void CallerFunction::forgetWeights() {
  std::lock_guard<std::mutex> guard(lock);
  function->isPrepacked = false;
}
