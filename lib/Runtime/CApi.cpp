//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C functions: they check the arguments and hand over to the back ends.
// Everything that all back ends would check is checked here, before anything
// happens: null arguments, sizes, ranges of copies, limits of the device,
// objects of another device. A back end sees valid calls only, and its errors
// come from its driver (docs/reference/device-runtime.md, "Errors").
// Who owns what, and what must be destroyed before its owner:
//    device +- buffers
//           +- modules -- kernels (unloaded with their module)
//           +- events
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include <algorithm>
#include <charconv>
#include <cstring>

using namespace kas::rt;

/// The text of the last error of this thread. Like `errno`, a success leaves
/// it.
static thread_local std::string lastError;

/// Ends a C function: keeps the text of an error, returns the code.
static KasRtStatus report(const Status &status) {
  if (status.isError())
    lastError = status.getText();
  return status.getCode();
}

/// The result of a call on `device`. Notes when the device is lost, and makes
/// what the validation layer reported since then the error of this call.
static Status note(KasRtDeviceImpl &device, Status status) {
  // For good: later calls fail without asking the driver.
  if (status.getCode() == KAS_RT_ERROR_DEVICE_LOST)
    device.isLost = true;
  status += device.takeMessages();
  return status;
}

/// An error for a device that an earlier call has lost: drivers may hang on it.
static Status checkAlive(const KasRtDeviceImpl &device) {
  if (!device.isLost)
    return {};
  return {KAS_RT_ERROR_DEVICE_LOST,
          device.label + " was lost before: close it and open it again"};
}

/// Runs `call` unless the device is gone.
template <typename Call>
// `call` does the work and returns a Status; all C functions that reach a
// driver go through here, so that a lost device and messages are noted in one
// place.
static KasRtStatus callOn(KasRtDeviceImpl &device, Call call) {
  Status status = checkAlive(device);
  if (!status.isError())
    status = note(device, call());
  return report(status);
}

/// Makes an object by `create` and hands it out; `live` counts it.
template <typename Object, typename Create>
static KasRtStatus createOn(KasRtDeviceImpl &device, uint64_t &live,
                            Object **result, Create create) {
  // Owned here until the call has succeeded as a whole.
  std::unique_ptr<Object> object;
  KasRtStatus code = callOn(device, [&] { return create(object); });
  if (code != KAS_RT_SUCCESS) {
    // The driver made it, but something was reported: it is not handed out.
    if (object)
      (void)object->release();
    return code;
  }
  // Counted, so that closing a device can refuse while something of it is left.
  ++live;
  *result = object.release();
  return code;
}

/// Destroys an object, also on a lost device: the caller must be able to free
/// what it has. Whatever the driver says then is no error.
static KasRtStatus destroy(KasRtObject *object, uint64_t &live) {
  KasRtDeviceImpl &device = object->device;
  bool wasLost = device.isLost;
  Status status = note(device, object->release());
  delete object;
  --live;
  return wasLost ? KAS_RT_SUCCESS : report(status);
}

/// The error of a null argument.
static Status missing(const char *what) {
  return invalidArgument(std::string("expected ") + what + ", got null");
}

const char *kasRtErrorText(void) { return lastError.c_str(); }

const char *kasRtStatusName(KasRtStatus status) {
  switch (status) {
  case KAS_RT_SUCCESS:
    return "success";
  case KAS_RT_ERROR_NO_DEVICE:
    return "no device";
  case KAS_RT_ERROR_INVALID_ARGUMENT:
    return "invalid argument";
  case KAS_RT_ERROR_OUT_OF_MEMORY:
    return "out of memory";
  case KAS_RT_ERROR_DEVICE_LOST:
    return "device lost";
  case KAS_RT_ERROR_INVALID_MODULE:
    return "invalid module";
  case KAS_RT_ERROR_NOT_FOUND:
    return "not found";
  case KAS_RT_ERROR_LIMIT:
    return "limit of the device";
  case KAS_RT_ERROR_VALIDATION:
    return "validation";
  case KAS_RT_ERROR_DRIVER:
    return "error of the driver";
  // Only makes the enumeration an int.
  case KAS_RT_STATUS_WIDTH:
    break;
  }
  return "unknown status";
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

KasRtStatus kasRtDeviceCount(KasRtBackend backend, int32_t *count) {
  if (!count)
    return report(missing("a pointer for the number of devices"));
  // Results are set first, so that a caller which ignores the status reads no
  // garbage.
  *count = 0;
  if (backend == KAS_RT_CUDA)
    return report(countCudaDevices(*count));
  if (backend == KAS_RT_VULKAN)
    return report(countVulkanDevices(*count));
  return report(invalidArgument("expected KAS_RT_CUDA or KAS_RT_VULKAN, got " +
                                std::to_string(int(backend))));
}

/// Splits `vulkan:1` into the back end and the index.
/// Without an index the first device is meant.
static Status parseDeviceName(const char *name, KasRtBackend &backend,
                              int32_t &index) {
  const char *colon = std::strchr(name, ':');
  std::string word = colon ? std::string(name, colon) : name;
  bool valid = word == "cuda" || word == "vulkan";
  backend = word == "cuda" ? KAS_RT_CUDA : KAS_RT_VULKAN;
  index = 0;
  if (colon) {
    const char *end = colon + std::strlen(colon);
    auto [rest, error] = std::from_chars(colon + 1, end, index);
    // `from_chars` takes no sign but minus, no blanks and no text after the
    // number.
    valid &= error == std::errc() && rest == end && index >= 0;
  }
  if (valid)
    return {};
  return invalidArgument("expected a device cuda, cuda:INDEX, vulkan or "
                         "vulkan:INDEX, got '" +
                         makeOneLine(name) + "'");
}

KasRtStatus kasRtDeviceOpen(const char *name, KasRtDevice *device) {
  if (!name || !device)
    return report(
        missing(name ? "a pointer for the device" : "the name of a device"));
  *device = nullptr;
  KasRtBackend backend;
  int32_t index;
  Status status = parseDeviceName(name, backend, index);
  std::unique_ptr<KasRtDeviceImpl> opened;
  if (!status.isError())
    status = backend == KAS_RT_CUDA ? openCudaDevice(index, opened)
                                    : openVulkanDevice(index, opened);
  if (!status.isError())
    *device = opened.release();
  return report(status);
}

KasRtStatus kasRtDeviceClose(KasRtDevice device) {
  if (!device)
    return KAS_RT_SUCCESS;
  // The device stays open: its objects point to it.
  if (device->liveBuffers || device->liveModules || device->liveEvents ||
      device->liveSequences)
    return report(invalidArgument(
        "expected all that was made on " + device->label +
        " to be destroyed before it is closed, got " +
        std::to_string(device->liveBuffers) + " buffers, " +
        std::to_string(device->liveModules) + " modules, " +
        std::to_string(device->liveEvents) + " events and " +
        std::to_string(device->liveSequences) + " sequences left"));
  bool wasLost = device->isLost;
  Status status = device->close();
  status += device->takeMessages();
  delete device;
  return wasLost ? KAS_RT_SUCCESS : report(status);
}

// Also of a lost device: its information needs no driver.
KasRtStatus kasRtDeviceGetInfo(KasRtDevice device, KasRtDeviceInfo *info) {
  if (!device || !info)
    return report(
        missing(device ? "a pointer for the information" : "a device"));
  *info = device->info;
  return KAS_RT_SUCCESS;
}

KasRtStatus kasRtSynchronize(KasRtDevice device) {
  if (!device)
    return report(missing("a device"));
  return callOn(*device, [&] { return device->synchronize(); });
}

KasRtStatus kasRtDeviceSetStream(KasRtDevice device, void *stream) {
  if (!device)
    return report(missing("a device"));
  return callOn(*device, [&] { return device->setStream(stream); });
}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

KasRtStatus kasRtBufferCreate(KasRtDevice device, uint64_t bytes,
                              KasRtBuffer *buffer) {
  if (!device || !buffer)
    return report(missing(device ? "a pointer for the buffer" : "a device"));
  *buffer = nullptr;
  // Neither API has buffers of no bytes.
  if (bytes == 0)
    return report(invalidArgument("expected a buffer of 1 byte or more, got "
                                  "0 bytes"));
  if (bytes > device->info.maxBufferBytes)
    return report(
        {KAS_RT_ERROR_LIMIT, "expected a buffer of at most " +
                                 std::to_string(device->info.maxBufferBytes) +
                                 " bytes, the limit of " + device->label +
                                 ", got " + std::to_string(bytes)});
  return createOn(*device, device->liveBuffers, buffer,
                  [&](std::unique_ptr<KasRtBufferImpl> &created) {
                    return device->createBuffer(bytes, created);
                  });
}

KasRtStatus kasRtBufferBorrow(KasRtDevice device, uint64_t address,
                              uint64_t bytes, KasRtBuffer *buffer) {
  if (!device || !buffer)
    return report(missing(device ? "a pointer for the buffer" : "a device"));
  *buffer = nullptr;
  if (bytes == 0)
    return report(invalidArgument("expected a buffer of 1 byte or more, got "
                                  "0 bytes"));
  // Kernels load and store vectors of 16 bytes.
  if (address == 0 || address % 16 != 0)
    return report(invalidArgument(
        "expected an address on the device that is a multiple of 16, got " +
        std::to_string(address)));
  return createOn(*device, device->liveBuffers, buffer,
                  [&](std::unique_ptr<KasRtBufferImpl> &created) {
                    return device->borrowBuffer(address, bytes, created);
                  });
}

// Null is fine for everything that destroys, as it is for `free`.
KasRtStatus kasRtBufferDestroy(KasRtBuffer buffer) {
  if (!buffer)
    return KAS_RT_SUCCESS;
  return destroy(buffer, buffer->device.liveBuffers);
}

uint64_t kasRtBufferGetSize(KasRtBuffer buffer) {
  return buffer ? buffer->bytes : 0;
}

/// An error unless `bytes` from `offset` on are within the buffer. Subtracts
/// instead of adding, which could overflow.
static Status checkCopy(KasRtBuffer buffer, uint64_t offset, const void *host,
                        uint64_t bytes) {
  if (!buffer)
    return missing("a buffer");
  if (!host && bytes)
    return missing("memory of the host");
  if (offset > buffer->bytes || bytes > buffer->bytes - offset)
    return invalidArgument("expected a copy within the buffer's " +
                           std::to_string(buffer->bytes) + " bytes, got " +
                           std::to_string(bytes) + " bytes from " +
                           std::to_string(offset) + " on");
  return {};
}

KasRtStatus kasRtBufferWrite(KasRtBuffer buffer, uint64_t offset,
                             const void *source, uint64_t bytes) {
  if (Status status = checkCopy(buffer, offset, source, bytes);
      status.isError())
    return report(status);
  if (bytes == 0)
    return KAS_RT_SUCCESS;
  return callOn(buffer->device,
                [&] { return buffer->write(offset, source, bytes); });
}

KasRtStatus kasRtBufferRead(KasRtBuffer buffer, uint64_t offset,
                            void *destination, uint64_t bytes) {
  if (Status status = checkCopy(buffer, offset, destination, bytes);
      status.isError())
    return report(status);
  if (bytes == 0)
    return KAS_RT_SUCCESS;
  return callOn(buffer->device,
                [&] { return buffer->read(offset, destination, bytes); });
}

KasRtStatus kasRtBufferFill(KasRtBuffer buffer, uint32_t word) {
  if (!buffer)
    return report(missing("a buffer"));
  // Both drivers fill words.
  if (buffer->bytes % 4)
    return report(invalidArgument("expected a buffer of a multiple of 4 bytes "
                                  "to fill, got " +
                                  std::to_string(buffer->bytes)));
  return callOn(buffer->device, [&] { return buffer->fill(word); });
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

KasRtStatus kasRtModuleLoad(KasRtDevice device, const void *data, size_t bytes,
                            KasRtModule *module) {
  if (!device || !module || !data)
    return report(missing(!device   ? "a device"
                          : !module ? "a pointer for the module"
                                    : "the bytes of a module"));
  *module = nullptr;
  return createOn(*device, device->liveModules, module,
                  [&](std::unique_ptr<KasRtModuleImpl> &created) {
                    return device->loadModule(data, bytes, created);
                  });
}

KasRtStatus kasRtModuleUnload(KasRtModule module) {
  if (!module)
    return KAS_RT_SUCCESS;
  return destroy(module, module->device.liveModules);
}

/// An error unless the copy engine can traverse the map: the limits of
/// `cuTensorMapEncodeTiled`, whose own error says only "invalid value". `where`
/// names the kernel and ends with ", got ".
static Status checkTensorMap(const KasRtTensorMap &map, uint32_t bufferCount,
                             const std::string &where) {
  if (map.argument >= bufferCount)
    return invalidArgument("expected a map of one of " +
                           std::to_string(bufferCount) + " buffers" + where +
                           std::to_string(map.argument));
  if (map.rank < 1 || map.rank > 5)
    return invalidArgument("expected a map of 1 to 5 dimensions" + where +
                           std::to_string(map.rank));
  for (uint32_t i = 0; i < map.rank; ++i) {
    if (map.sizes[i] < 1 || map.sizes[i] > (uint64_t(1) << 32))
      return invalidArgument("expected sizes of a map of 1 to 2^32" + where +
                             std::to_string(map.sizes[i]));
    if (map.box[i] < 1 || map.box[i] > 256)
      return invalidArgument("expected a box of 1 to 256 elements along each "
                             "dimension of a map" +
                             where + std::to_string(map.box[i]));
    if (i > 0 &&
        (map.strides[i - 1] % 16 || map.strides[i - 1] >= (uint64_t(1) << 40)))
      return invalidArgument("expected strides of a map that are multiples of "
                             "16 bytes and less than 2^40" +
                             where + std::to_string(map.strides[i - 1]));
  }
  return {};
}

/// Whether two lists of maps are equal; strides, sizes and boxes beyond the
/// rank are undefined and not compared.
static bool areSame(const std::vector<KasRtTensorMap> &left,
                    const std::vector<KasRtTensorMap> &right) {
  return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                    [](const KasRtTensorMap &a, const KasRtTensorMap &b) {
                      bool isSame = a.argument == b.argument &&
                                    a.rank == b.rank &&
                                    a.isBFloat16 == b.isBFloat16;
                      for (uint32_t i = 0; isSame && i < a.rank; ++i)
                        isSame =
                            a.sizes[i] == b.sizes[i] && a.box[i] == b.box[i] &&
                            (i == 0 || a.strides[i - 1] == b.strides[i - 1]);
                      return isSame;
                    });
}

KasRtStatus kasRtModuleGetKernel(KasRtModule module, const char *name,
                                 uint32_t bufferCount, KasRtKernel *kernel) {
  return kasRtModuleGetKernelWithTensorMaps(module, name, bufferCount, nullptr,
                                            0, kernel);
}

KasRtStatus kasRtModuleGetKernelWithTensorMaps(
    KasRtModule module, const char *name, uint32_t bufferCount,
    const KasRtTensorMap *maps, uint32_t mapCount, KasRtKernel *kernel) {
  if (!module || !name || !kernel || (!maps && mapCount))
    return report(missing(!module   ? "a module"
                          : !name   ? "the name of a kernel"
                          : !kernel ? "a pointer for the kernel"
                                    : "tensor maps"));
  *kernel = nullptr;
  KasRtDeviceImpl &device = module->device;
  if (bufferCount > device.info.maxBuffers)
    return report(
        {KAS_RT_ERROR_LIMIT, "expected a kernel with at most " +
                                 std::to_string(device.info.maxBuffers) +
                                 " buffers, the limit of " + device.label +
                                 ", got " + std::to_string(bufferCount)});
  // Copied: the caller's array need not outlive this call.
  std::vector<KasRtTensorMap> wanted(maps, maps + mapCount);
  for (const KasRtTensorMap &map : wanted)
    if (Status status = checkTensorMap(
            map, bufferCount, std::string(" for kernel '") + name + "', got ");
        status.isError())
      return report(status);
  // The same kernel is handed out once: a launch then finds its descriptors.
  for (const auto &known : module->kernels)
    if (known->name == name && known->bufferCount == bufferCount &&
        areSame(known->maps, wanted)) {
      *kernel = known.get();
      // For the error of a lost device.
      return callOn(device, [] { return Status(); });
    }
  std::unique_ptr<KasRtKernelImpl> created;
  KasRtStatus code = callOn(device, [&] {
    return module->createKernel(name, bufferCount, wanted, created);
  });
  // Kept even where a message of the validation layer makes this an error: the
  // driver's object must be released with the module.
  if (created)
    module->kernels.push_back(std::move(created));
  if (code == KAS_RT_SUCCESS)
    *kernel = module->kernels.back().get();
  return code;
}

KasRtStatus kasRtKernelUseMatmul(KasRtKernel kernel,
                                 const KasRtMatmul *matmul) {
  if (!kernel || !matmul)
    return report(missing(kernel ? "a product" : "a kernel"));
  if (Status status = checkMatmul(*kernel, *matmul); status.isError())
    return report(status);
  return callOn(kernel->module.device, [&] {
    kernel->useMatmul(*matmul);
    return Status();
  });
}

KasRtStatus kasRtKernelUseConvolution(KasRtKernel kernel,
                                      const KasRtConvolution *convolution) {
  if (!kernel || !convolution)
    return report(missing(kernel ? "a convolution" : "a kernel"));
  if (Status status = checkConvolution(*kernel, *convolution); status.isError())
    return report(status);
  return callOn(kernel->module.device, [&] {
    kernel->useConvolution(*convolution);
    return Status();
  });
}

const char *kasRtKernelGetLibrary(KasRtKernel kernel) {
  return kernel ? kernel->library.c_str() : "";
}

/// A launch must fit the device along each axis and as a whole.
/// Against the limits of the device; those of the kernel, with its registers,
/// are checked by the back end.
static Status checkLaunchSize(const KasRtDeviceImpl &device,
                              const KasRtLaunchSize &size) {
  // Limits are errors of their own kind: another device may have more.
  auto limit = [&](const std::string &what, uint64_t most, uint64_t got) {
    return Status(KAS_RT_ERROR_LIMIT, "expected at most " +
                                          std::to_string(most) + " " + what +
                                          ", the limit of " + device.label +
                                          ", got " + std::to_string(got));
  };
  uint64_t threads = 1;
  for (int axis = 0; axis < 3; ++axis) {
    std::string along = std::string(" along ") + "xyz"[axis];
    if (size.grid[axis] == 0 || size.block[axis] == 0)
      return invalidArgument("expected 1 block and 1 thread or more" + along +
                             ", got 0");
    if (size.grid[axis] > device.info.maxGrid[axis])
      return limit("blocks" + along, device.info.maxGrid[axis],
                   size.grid[axis]);
    if (size.block[axis] > device.info.maxBlock[axis])
      return limit("threads of a block" + along, device.info.maxBlock[axis],
                   size.block[axis]);
    threads *= size.block[axis];
  }
  if (threads > device.info.maxThreadsPerBlock)
    return limit("threads of a block", device.info.maxThreadsPerBlock, threads);
  if (size.dynamicSharedBytes > device.info.maxSharedBytes)
    return limit("bytes of workgroup memory", device.info.maxSharedBytes,
                 size.dynamicSharedBytes);
  return {};
}

/// An error unless `argument` is a part of a buffer of the kernel's device. 256
/// is the offset alignment that every device supports (Vulkan's limit
/// `minStorageBufferOffsetAlignment` is at most 256).
static Status checkArgument(const KasRtKernelImpl &kernel,
                            const KasRtArgument &argument, uint32_t position) {
  const KasRtDeviceImpl &device = kernel.module.device;
  std::string where = " as argument " + std::to_string(position) +
                      " of kernel '" + kernel.name + "', got ";
  if (!argument.buffer)
    return invalidArgument("expected a buffer" + where + "null");
  // A handle of another device would be garbage to this driver.
  if (&argument.buffer->device != &device)
    return invalidArgument("expected a buffer of " + device.label + where +
                           "one of " + argument.buffer->device.label);
  if (argument.offset % 256)
    return invalidArgument("expected an offset that is a multiple of 256" +
                           where + std::to_string(argument.offset));
  uint64_t size = argument.buffer->bytes;
  // `bytes` of 0 is the rest of the buffer.
  if (argument.offset >= size || argument.bytes > size - argument.offset)
    return invalidArgument("expected bytes within a buffer of " +
                           std::to_string(size) + where +
                           std::to_string(argument.bytes) + " from " +
                           std::to_string(argument.offset) + " on");
  return {};
}

/// An error unless the kernel can be launched so.
static Status checkLaunch(const KasRtKernelImpl &kernel,
                          const KasRtLaunchSize &size,
                          const KasRtArgument *arguments, uint32_t count) {
  if (count != kernel.bufferCount)
    return invalidArgument("expected " + std::to_string(kernel.bufferCount) +
                           " arguments for kernel '" + kernel.name + "', got " +
                           std::to_string(count));
  for (uint32_t i = 0; i < count; ++i)
    if (Status status = checkArgument(kernel, arguments[i], i);
        status.isError())
      return status;
  return checkLaunchSize(kernel.module.device, size);
}

KasRtStatus kasRtLaunch(KasRtKernel kernel, const KasRtLaunchSize *size,
                        const KasRtArgument *arguments, uint32_t count) {
  if (!kernel || !size || (!arguments && count))
    return report(missing(!kernel ? "a kernel"
                          : !size ? "the size of a launch"
                                  : "arguments"));
  if (Status status = checkLaunch(*kernel, *size, arguments, count);
      status.isError())
    return report(status);
  return callOn(kernel->module.device,
                [&] { return kernel->launch(*size, arguments); });
}

KasRtStatus kasRtSequenceCreate(KasRtDevice device, const KasRtStep *steps,
                                uint32_t count, KasRtSequence *sequence) {
  if (!device || !steps || !sequence)
    return report(missing(!device  ? "a device"
                          : !steps ? "the launches of a sequence"
                                   : "a pointer for the sequence"));
  *sequence = nullptr;
  if (count == 0)
    return report(
        invalidArgument("expected 1 launch or more for a sequence, got 0"));
  std::vector<KasRtLaunchImpl> launches;
  for (uint32_t i = 0; i < count; ++i) {
    const KasRtStep &step = steps[i];
    if (!step.kernel || (!step.arguments && step.count))
      return report(missing(step.kernel ? "arguments" : "a kernel"));
    if (&step.kernel->module.device != device)
      return report(invalidArgument(
          "expected a kernel of " + device->label + " for a sequence, got '" +
          step.kernel->name + "' of " + step.kernel->module.device.label));
    if (Status status =
            checkLaunch(*step.kernel, step.size, step.arguments, step.count);
        status.isError())
      return report(status);
    launches.push_back({step.kernel,
                        step.size,
                        {step.arguments, step.arguments + step.count}});
  }
  return createOn(*device, device->liveSequences, sequence,
                  [&](std::unique_ptr<KasRtSequenceImpl> &created) {
                    return device->createSequence(std::move(launches), created);
                  });
}

KasRtStatus kasRtSequenceDestroy(KasRtSequence sequence) {
  if (!sequence)
    return KAS_RT_SUCCESS;
  return destroy(sequence, sequence->device.liveSequences);
}

KasRtStatus kasRtSequenceLaunch(KasRtSequence sequence) {
  if (!sequence)
    return report(missing("a sequence"));
  return callOn(sequence->device, [&] { return sequence->launch(); });
}

//===----------------------------------------------------------------------===//
// Timing
//===----------------------------------------------------------------------===//

KasRtStatus kasRtEventCreate(KasRtDevice device, KasRtEvent *event) {
  if (!device || !event)
    return report(missing(device ? "a pointer for the event" : "a device"));
  *event = nullptr;
  return createOn(*device, device->liveEvents, event,
                  [&](std::unique_ptr<KasRtEventImpl> &created) {
                    return device->createEvent(created);
                  });
}

KasRtStatus kasRtEventDestroy(KasRtEvent event) {
  if (!event)
    return KAS_RT_SUCCESS;
  return destroy(event, event->device.liveEvents);
}

KasRtStatus kasRtEventRecord(KasRtEvent event) {
  if (!event)
    return report(missing("an event"));
  return callOn(event->device, [&] {
    Status status = event->record();
    // An event can be recorded again; if that fails it has no time.
    event->isRecorded = !status.isError();
    return status;
  });
}

KasRtStatus kasRtEventElapsed(KasRtEvent start, KasRtEvent stop,
                              double *milliseconds) {
  if (!start || !stop || !milliseconds)
    return report(missing(milliseconds ? "two events"
                                       : "a pointer for the milliseconds"));
  if (&start->device != &stop->device)
    return report(invalidArgument("expected two events of one device, got " +
                                  start->device.label + " and " +
                                  stop->device.label));
  // The drivers' own errors, an invalid handle or "not ready", say less.
  if (!start->isRecorded || !stop->isRecorded)
    return report(invalidArgument("expected two recorded events, got one that "
                                  "is not"));
  return callOn(stop->device,
                [&] { return stop->elapsedSince(*start, *milliseconds); });
}
