//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of known devices: limits of NVIDIA's compute capabilities ("CUDA
// C++ Programming Guide", technical specifications) and of Vulkan 1.1.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Strategy/Device.h"
#include "kas/Support/FileLocation.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

namespace {
/// Numbers that differ among NVIDIA's chips. A processor is a streaming
/// multiprocessor; bytes are of its shared memory, all blocks together.
struct DeviceNumbers {
  llvm::StringLiteral name;
  int64_t processors, processorThreads, processorSharedBytes;
};
} // namespace

/// Vulkan on a processor.
static constexpr llvm::StringLiteral hostDevice = "vulkan-cpu";

/// The largest GPU of each compute capability. Source: CUDA C++ Programming
/// Guide, "Compute Capabilities", table of technical specifications.
static constexpr DeviceNumbers nvidiaDevices[] = {
    {"sm_75", 72, 1024, 64 << 10},     {"sm_80", 108, 2048, 164 << 10},
    {"sm_86", 84, 1536, 100 << 10},    {"sm_87", 16, 1536, 164 << 10},
    {"sm_89", 144, 1536, 100 << 10},   {"sm_90", 132, 2048, 228 << 10},
    {"sm_90a", 132, 2048, 228 << 10},  {"sm_100", 148, 2048, 228 << 10},
    {"sm_100a", 148, 2048, 228 << 10}, {"sm_120", 188, 1536, 100 << 10}};

llvm::Expected<GPUDeviceAttr> kas::codegen::getGPUDevice(MLIRContext *context,
                                                         StringRef name) {
  // The attribute needs its dialect, which a tool that only names a device may
  // not have loaded.
  context->loadDialect<KasGPUDialect>();
  // What Vulkan 1.1 guarantees ("Required Limits"), and a small integrated GPU.
  if (name == "vulkan")
    return GPUDeviceAttr::get(
        context, name, /*processors=*/16, /*max_threads=*/128,
        /*shared_bytes=*/16 << 10, /*max_blocks=*/65535,
        /*max_bytes=*/int64_t(1) << 27, /*processor_threads=*/1024,
        /*processor_shared_bytes=*/64 << 10, /*registers=*/65536,
        /*thread_registers=*/128, /*subgroup=*/32);
  // 8 lanes of f32 are the subgroup.
  // Mesa's lavapipe with vectors of 256 bits. It keeps registers in memory.
  if (name == hostDevice)
    return GPUDeviceAttr::get(
        context, name, /*processors=*/8, /*max_threads=*/128,
        /*shared_bytes=*/16 << 10, /*max_blocks=*/65535,
        /*max_bytes=*/int64_t(1) << 27, /*processor_threads=*/128,
        /*processor_shared_bytes=*/16 << 10, /*registers=*/16384,
        /*thread_registers=*/128, /*subgroup=*/8);
  std::string known = "vulkan, vulkan-cpu";
  for (const DeviceNumbers &device : nvidiaDevices) {
    // Shared memory that a kernel declares statically; indices of 31 bits.
    if (device.name == name)
      return GPUDeviceAttr::get(
          context, name, device.processors, /*max_threads=*/1024,
          // `max_bytes`: 2^31 - 1 elements of f32, since indices have 32 bits.
          // `registers` are those of a processor, `thread_registers` the most
          // of a thread.
          /*shared_bytes=*/declaredBytes, /*max_blocks=*/INT32_MAX,
          /*max_bytes=*/int64_t(INT32_MAX) * 4, device.processorThreads,
          device.processorSharedBytes, /*registers=*/65536,
          /*thread_registers=*/255, /*subgroup=*/32);
    known += (", " + device.name).str();
  }
  return llvm::createStringError("expected a device of " + known + ", got '" +
                                 name + "'");
}

GPUDeviceAttr
kas::codegen::setLimits(GPUDeviceAttr device, int64_t maxThreads,
                        int64_t sharedBytes,
                        function_ref<InFlightDiagnostic()> emitError) {
  // A caller without a location still needs a diagnostic that getChecked can
  // fill. those that declare it are limited to 48 KiB. A device with a lower
  // limit, by `shared-bytes=`, keeps it.
  auto emitUnknown = [&] {
    return emitError ? emitError()
                     : mlir::emitError(UnknownLoc::get(device.getContext()));
  };
  return GPUDeviceAttr::getChecked(
      emitUnknown, device.getContext(), device.getName(),
      device.getProcessors(), maxThreads ? maxThreads : device.getMaxThreads(),
      sharedBytes ? sharedBytes : device.getSharedBytes(),
      device.getMaxBlocks(), device.getMaxBytes(), device.getProcessorThreads(),
      device.getProcessorSharedBytes(), device.getRegisters(),
      device.getThreadRegisters(), device.getSubgroup());
}

int64_t kas::codegen::getMaxSharedBytes(GPUDeviceAttr device,
                                        GPUStrategy strategy) {
  // A system takes 1 KiB of a processor's for each block.
  // Of what a processor has, a launch may request the rest. A device whose
  // limit was lowered below 48 KiB (`shared-bytes=`) keeps that limit.
  bool mayAskForMore =
      strategy == GPUStrategy::TensorCore || strategy == GPUStrategy::Warpgroup;
  if (mayAskForMore && device.getSharedBytes() >= declaredBytes)
    return std::max(declaredBytes, device.getProcessorSharedBytes() - 1024);
  return device.getSharedBytes();
}

bool kas::codegen::isHostDevice(GPUDeviceAttr device) {
  return device.getName() == hostDevice;
}

bool kas::codegen::hasWarpgroupInstructions(GPUDeviceAttr device) {
  return device.getName() == "sm_90a";
}

/// Of NVIDIA's devices: 90 for sm_90a; 0: another device.
static int getCapability(GPUDeviceAttr device) {
  StringRef name = device.getName();
  int capability = 0;
  if (!name.consume_front("sm_") || name.consumeInteger(10, capability))
    return 0;
  return capability;
}

bool kas::codegen::hasMatrixInstructions(GPUDeviceAttr device) {
  return getCapability(device) >= 80;
}

bool kas::codegen::hasMatrixStores(GPUDeviceAttr device) {
  return getCapability(device) >= 90;
}

bool kas::codegen::isNVIDIADevice(GPUDeviceAttr device) {
  return getCapability(device) != 0;
}

GPUDeviceAttr kas::codegen::getGPUDevice(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  // The device is on the outermost module, kernels are in modules within it.
  for (; module; module = module->getParentOfType<ModuleOp>())
    if (auto device =
            module->getAttrOfType<GPUDeviceAttr>(KasGPUDialect::deviceName))
      return device;
  return nullptr;
}

// sm_90 is what a module without a device is compiled for.
GPUDeviceAttr kas::codegen::getGPUDevice(ModuleOp module, StringRef name) {
  GPUDeviceAttr own = name.empty() ? getGPUDevice(module) : nullptr;
  if (own)
    return own;
  auto named = getGPUDevice(module.getContext(), name.empty() ? "sm_90" : name);
  if (named)
    return *named;
  mlir::emitError(getFileLocation(module), llvm::toString(named.takeError()));
  return nullptr;
}

StringRef kas::codegen::getChipOfDevice(StringRef architecture) {
  return architecture == "sm_90" ? "sm_90a" : architecture;
}
