//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A stand-in for libcuda: it has no device, but records each call, checks what
// the driver API asks of its caller (initialization, a current context, live
// handles, copies within their allocation, nothing freed while it is in use)
// and lets calls fail. Device memory is memory of the host; a kernel is
// whatever function the test gives for its name.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Runtime/CudaDriver.h"
#include "StandIn.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

using namespace kas::rt;

namespace {

/// A kernel's name and the bytes of its parameters.
using KernelTable = std::map<std::string, std::vector<size_t>>;

/// What begins the descriptors that the stand-in makes.
constexpr uint64_t descriptorMark = 0x7e4503a9;

struct Module {
  KernelTable kernels;
  std::set<CUfunction> functions;
};

constexpr int declaredBytes = 1024;

struct Function {
  Module *module;
  std::string name;
  std::vector<size_t> parameters;
  // Kernels declare `declaredBytes` themselves.
  int maxDynamicBytes = 48 * 1024 - declaredBytes;
};

/// A launch with copies of its parameters.
struct Launch {
  CUfunction function;
  uint32_t grid[3], block[3];
  std::vector<std::vector<uint64_t>> parameters;
  /// What a library does, in place of all that.
  std::function<void()> work = {};
};

struct Event {
  bool isRecorded = false, isDone = false;
  double time = 0;
};

struct State : StandInCalls {
  std::set<std::string> hidden;
  std::ostringstream log, violations;
  std::map<std::string, StandInKernel> kernels;

  bool isInitialized = false;
  int retained = 0;
  int sticky = 0;
  std::vector<CUcontext> current;
  std::map<CUdeviceptr, size_t> memory;
  /// What somebody else in the process has allocated.
  std::map<CUdeviceptr, size_t> others;
  std::set<Module *> modules;
  std::map<CUfunction, Function> functions;
  std::set<CUstream> streams;
  /// Streams that somebody else in the process has made.
  std::set<CUstream> callers;
  std::map<CUevent, Event> events;
  std::map<CUgraph, std::vector<Launch>> graphs;
  std::map<CUgraphExec, std::vector<Launch>> executables;
  /// What records launches, and what it has recorded.
  CUstream capturing = nullptr;
  std::vector<Launch> captured;
  /// What launches and copies that nobody waited for use.
  std::set<CUdeviceptr> busyMemory;
  std::set<Module *> busyModules;
  uintptr_t nextHandle = 0x1000;
  double clock = 0;

  size_t countLive() const {
    return memory.size() + modules.size() + streams.size() + events.size() +
           graphs.size() + executables.size();
  }
  template <typename Handle>
  Handle makeHandle() {
    return reinterpret_cast<Handle>(nextHandle += 0x10);
  }
  void wait() {
    busyMemory.clear();
    busyModules.clear();
    for (auto &[handle, event] : events)
      event.isDone = event.isRecorded;
  }
  /// What a context takes with it.
  void drop() {
    for (auto &[address, bytes] : memory)
      std::free(reinterpret_cast<void *>(address));
    for (Module *module : modules)
      delete module;
    memory.clear();
    modules.clear();
    functions.clear();
    streams.clear();
    events.clear();
    graphs.clear();
    executables.clear();
    capturing = nullptr;
    busyMemory.clear();
    busyModules.clear();
  }
};

State state;
std::string text;

constexpr int deviceCount = 2;
constexpr CUresult notReady = 600;

void violate(const std::string &what) { state.violations << what << "\n"; }

/// Errors after which a context is of no use.
bool isSticky(int error) {
  return error == CudaIllegalAddress || error == CudaEccUncorrectable ||
         error == CudaLaunchTimeout ||
         (error >= CudaHardwareStackError && error <= CudaLaunchFailed);
}

enum Needs { Nothing, Initialized, Context };

/// Records a call; the error that it must return, or success.
template <typename... Arguments>
CUresult enter(const char *function, Needs needs, Arguments... arguments) {
  CUresult result = state.count(function);
  state.log << function << "(";
  const char *separator = "";
  ((state.log << separator << arguments, separator = ", "), ...);
  state.log << ")";
  if (result != CudaSuccess) {
    if (isSticky(result))
      state.sticky = result;
  } else if (needs >= Initialized && !state.isInitialized) {
    violate(std::string(function) + " before cuInit");
  } else if (needs == Context && state.current.empty()) {
    violate(std::string(function) + " without a current context");
  } else if (needs == Context && state.sticky) {
    result = state.sticky;
  }
  if (result != CudaSuccess)
    state.log << " = " << result;
  state.log << "\n";
  return result;
}

#define KAS_ENTER(...)                                                         \
  if (CUresult result = enter(__func__, __VA_ARGS__); result != CudaSuccess)   \
  return result

/// The allocation that holds `bytes` bytes from `address` on, or 0.
CUdeviceptr findMemory(CUdeviceptr address, size_t bytes) {
  for (const auto *memory : {&state.memory, &state.others}) {
    auto after = memory->upper_bound(address);
    if (after == memory->begin())
      continue;
    auto [start, size] = *std::prev(after);
    if (address - start <= size && bytes <= size - (address - start))
      return start;
  }
  return 0;
}

void checkStream(CUstream stream, const char *function) {
  if (!state.streams.count(stream) && !state.callers.count(stream))
    violate(std::string(function) + " on a stream that does not exist");
  // Launches alone are recorded here.
  if (stream && state.capturing == stream &&
      std::strcmp(function, "cuLaunchKernel") != 0 &&
      std::strcmp(function, "work of a library") != 0 &&
      std::strcmp(function, "cuStreamEndCapture") != 0)
    violate(std::string(function) + " on a stream that records");
}

/// The kernels in the text of PTX with the number of their parameters.
KernelTable findPtxKernels(const std::string &ptx) {
  KernelTable kernels;
  for (size_t at = ptx.find(".entry"); at != std::string::npos;
       at = ptx.find(".entry", at + 1)) {
    size_t start = ptx.find_first_not_of(" \t", at + 6);
    size_t open = ptx.find('(', start), close = ptx.find(')', start);
    std::string list = ptx.substr(open, close - open);
    std::vector<size_t> parameters;
    for (size_t i = list.find(".param "); i != std::string::npos;) {
      size_t next = list.find(".param ", i + 1);
      std::string one = list.substr(i, next - i);
      parameters.push_back(one.find("[128]") != std::string::npos  ? 128
                           : one.find(".u32") != std::string::npos ? 4
                                                                   : 8);
      i = next;
    }
    kernels[ptx.substr(start, ptx.find_first_of(" \t\n(", start) - start)] =
        parameters;
  }
  return kernels;
}

const char *nameOf(int error) {
  switch (error) {
  case CudaInvalidValue:
    return "CUDA_ERROR_INVALID_VALUE";
  case CudaOutOfMemory:
    return "CUDA_ERROR_OUT_OF_MEMORY";
  case CudaNoDevice:
    return "CUDA_ERROR_NO_DEVICE";
  case CudaInvalidImage:
    return "CUDA_ERROR_INVALID_IMAGE";
  case CudaInvalidPtx:
    return "CUDA_ERROR_INVALID_PTX";
  case CudaNotFound:
    return "CUDA_ERROR_NOT_FOUND";
  case CudaIllegalAddress:
    return "CUDA_ERROR_ILLEGAL_ADDRESS";
  case CudaLaunchFailed:
    return "CUDA_ERROR_LAUNCH_FAILED";
  default:
    return "CUDA_ERROR_OTHER";
  }
}

} // namespace

/// For programs that run on the stand-in: with KAS_STAND_IN_REPORT=1 it says at
/// the end what was copied and launched, what was wrong and what is left.
namespace {
struct Report {
  ~Report() {
    const char *variable = std::getenv("KAS_STAND_IN_REPORT");
    if (!variable || std::strcmp(variable, "1") != 0)
      return;
    std::istringstream log(state.log.str());
    for (std::string line; std::getline(log, line);)
      if (line.rfind("cuLaunchKernel", 0) == 0 ||
          line.rfind("cuGraphLaunch", 0) == 0 ||
          line.rfind("cuMemcpy", 0) == 0 ||
          line.rfind("cuTensorMapEncodeTiled", 0) == 0 ||
          line.rfind("cuModuleGetFunction", 0) == 0)
        std::fprintf(stderr, "%s\n", line.c_str());
    std::fprintf(
        stderr, "%d allocations, %d copies to the device, %d from it\n",
        state.calls["cuMemAlloc_v2"], state.calls["cuMemcpyHtoDAsync_v2"],
        state.calls["cuMemcpyDtoHAsync_v2"]);
    std::fprintf(stderr, "violations: %s\n",
                 state.violations.str().empty()
                     ? "none"
                     : state.violations.str().c_str());
    std::fprintf(stderr, "left: %zu objects, %d contexts\n", state.countLive(),
                 state.retained);
  }
} report;
} // namespace

//===----------------------------------------------------------------------===//
// Controls
//===----------------------------------------------------------------------===//

static void reset() {
  state.drop();
  state = State();
}

static void start(Launch launch, CUstream stream);

static bool isAllocated(uint64_t address, size_t bytes) {
  CUdeviceptr memory = findMemory(address, bytes);
  if (memory)
    state.busyMemory.insert(memory);
  return memory != 0;
}

static const StandInControls controls = {
    reset,
    [](const char *function, int nth, int error) {
      state.fail(function, nth, error);
    },
    [] { return state.hasFailed; },
    [](const char *function) { state.hidden.insert(function); },
    [](const char *function) { return state.calls[function]; },
    [] { return (text = state.log.str()).c_str(); },
    [] { return (text = state.violations.str()).c_str(); },
    [] { return static_cast<int>(state.countLive()); },
    [](const char *name, StandInKernel kernel) {
      state.kernels[name] = kernel;
    },
    [](void *stream) { state.callers.insert(static_cast<CUstream>(stream)); },
    [](uint64_t address, size_t bytes) { state.others[address] = bytes; },
    [](void *stream, const std::function<void()> &work) {
      checkStream(static_cast<CUstream>(stream), "work of a library");
      start({nullptr, {}, {}, {}, work}, static_cast<CUstream>(stream));
    },
    isAllocated,
    [] { return !state.current.empty(); },
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    nullptr};

extern "C" {
__attribute__((visibility("default"))) const StandInControls *standInControls =
    &controls;

//===----------------------------------------------------------------------===//
// Devices and contexts
//===----------------------------------------------------------------------===//

#define KAS_API __attribute__((visibility("default")))

KAS_API CUresult cuInit(unsigned flags) {
  KAS_ENTER(Nothing, flags);
  state.isInitialized = true;
  return CudaSuccess;
}

#ifndef KAS_OLD_DRIVER
KAS_API CUresult cuDriverGetVersion(int *version) {
  KAS_ENTER(Nothing);
  *version = 12040;
  return CudaSuccess;
}
#endif

KAS_API CUresult cuGetErrorName(CUresult error, const char **name) {
  KAS_ENTER(Nothing, error);
  if (state.hidden.count(__func__))
    return CudaInvalidValue;
  *name = nameOf(error);
  return CudaSuccess;
}

KAS_API CUresult cuGetErrorString(CUresult error, const char **string) {
  KAS_ENTER(Nothing, error);
  if (state.hidden.count(__func__))
    return CudaInvalidValue;
  *string = error == CudaOutOfMemory      ? "out of memory"
            : error == CudaIllegalAddress ? "an illegal memory access was "
                                            "encountered"
                                          : "some text\nof two lines";
  return CudaSuccess;
}

KAS_API CUresult cuDeviceGetCount(int *count) {
  KAS_ENTER(Initialized);
  *count = deviceCount;
  return CudaSuccess;
}

KAS_API CUresult cuDeviceGet(CUdevice *device, int index) {
  KAS_ENTER(Initialized, index);
  *device = index;
  return index < deviceCount ? CudaSuccess : CudaInvalidDevice;
}

KAS_API CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  KAS_ENTER(Initialized, length, device);
  std::strncpy(name, "Stand-in", length);
  return CudaSuccess;
}

KAS_API CUresult cuDeviceGetAttribute(int *value, int attribute,
                                      CUdevice device) {
  KAS_ENTER(Initialized, attribute, device);
  static const std::map<int, int> values = {
      {CudaMaxThreadsPerBlock, 1024},
      {CudaMaxBlockDimX, 1024},
      {CudaMaxBlockDimX + 1, 1024},
      {CudaMaxBlockDimX + 2, 64},
      {CudaMaxGridDimX, 2147483647},
      {CudaMaxGridDimX + 1, 65535},
      {CudaMaxGridDimX + 2, 65535},
      {CudaWarpSize, 32},
      {CudaComputeCapabilityMajor, 9},
      {CudaComputeCapabilityMinor, 0},
      {CudaMaxSharedMemoryPerBlockOptin, 232448}};
  auto found = values.find(attribute);
  if (found == values.end())
    return CudaInvalidValue;
  *value = found->second;
  // Another GPU, such as 70.
  const char *architecture = std::getenv("KAS_STAND_IN_ARCHITECTURE");
  if (architecture && attribute == CudaComputeCapabilityMajor)
    *value = std::atoi(architecture) / 10;
  return CudaSuccess;
}

KAS_API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
  KAS_ENTER(Initialized, device);
  *bytes = size_t(64) << 20;
  return CudaSuccess;
}

KAS_API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  KAS_ENTER(Initialized, device);
  ++state.retained;
  *context = reinterpret_cast<CUcontext>(uintptr_t(0x100 + device));
  return CudaSuccess;
}

KAS_API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  KAS_ENTER(Initialized, device);
  if (state.retained == 0)
    violate("a context is released that is not retained");
  else if (--state.retained == 0) {
    // With the context go all its objects; that is no way to free them.
    if (state.countLive() && !state.sticky)
      violate(std::to_string(state.countLive()) +
              " objects are left when the context goes");
    state.drop();
    state.sticky = 0;
  }
  return CudaSuccess;
}

KAS_API CUresult cuCtxPushCurrent_v2(CUcontext context) {
  KAS_ENTER(Initialized, context);
  if (!state.retained)
    violate("a context becomes current that is not retained");
  state.current.push_back(context);
  return CudaSuccess;
}

KAS_API CUresult cuCtxPopCurrent_v2(CUcontext *context) {
  KAS_ENTER(Initialized);
  if (state.current.empty())
    return CudaInvalidContext;
  *context = state.current.back();
  state.current.pop_back();
  return CudaSuccess;
}

KAS_API CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  KAS_ENTER(Context, flags);
  *stream = state.makeHandle<CUstream>();
  state.streams.insert(*stream);
  return CudaSuccess;
}

KAS_API CUresult cuStreamDestroy_v2(CUstream stream) {
  KAS_ENTER(Context, stream);
  checkStream(stream, __func__);
  state.streams.erase(stream);
  return CudaSuccess;
}

KAS_API CUresult cuStreamSynchronize(CUstream stream) {
  KAS_ENTER(Context, stream);
  checkStream(stream, __func__);
  state.wait();
  return CudaSuccess;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

KAS_API CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
  KAS_ENTER(Context, bytes);
  if (bytes == 0)
    return CudaInvalidValue;
  void *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  // Nothing may rely on what is in fresh memory.
  std::memset(memory, 0xA5, bytes);
  *address = reinterpret_cast<CUdeviceptr>(memory);
  state.memory[*address] = bytes;
  return CudaSuccess;
}

KAS_API CUresult cuMemFree_v2(CUdeviceptr address) {
  KAS_ENTER(Context, address);
  if (!state.memory.erase(address)) {
    violate("memory is freed that is not allocated");
    return CudaInvalidValue;
  }
  if (state.busyMemory.count(address))
    violate("memory is freed that a kernel may use");
  std::free(reinterpret_cast<void *>(address));
  return CudaSuccess;
}

KAS_API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from,
                                      size_t bytes, CUstream stream) {
  KAS_ENTER(Context, to, from, bytes, stream);
  checkStream(stream, __func__);
  CUdeviceptr memory = findMemory(to, bytes);
  if (!memory) {
    violate("a copy beyond an allocation");
    return CudaInvalidValue;
  }
  state.busyMemory.insert(memory);
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  return CudaSuccess;
}

KAS_API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes,
                                      CUstream stream) {
  KAS_ENTER(Context, to, from, bytes, stream);
  checkStream(stream, __func__);
  CUdeviceptr memory = findMemory(from, bytes);
  if (!memory) {
    violate("a copy beyond an allocation");
    return CudaInvalidValue;
  }
  state.busyMemory.insert(memory);
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  return CudaSuccess;
}

KAS_API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned word, size_t count,
                                  CUstream stream) {
  KAS_ENTER(Context, to, word, count, stream);
  checkStream(stream, __func__);
  CUdeviceptr memory = findMemory(to, count * 4);
  if (!memory || to % 4) {
    violate("a fill beyond an allocation");
    return CudaInvalidValue;
  }
  state.busyMemory.insert(memory);
  std::fill_n(reinterpret_cast<unsigned *>(to), count, word);
  return CudaSuccess;
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

KAS_API CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                                    unsigned count, int *options,
                                    void **values) {
  KAS_ENTER(Context, count);
  std::string ptx = static_cast<const char *>(image);
  // What the driver's own assembler would refuse.
  if (ptx.find("syntax error") != std::string::npos) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == static_cast<int>(CudaJitErrorLogBuffer))
        std::strcpy(static_cast<char *>(values[i]),
                    "ptxas application ptx input, line 3;\n error : Parsing "
                    "error near 'syntax'\n");
    return CudaInvalidPtx;
  }
  auto *loaded = new Module{findPtxKernels(ptx), {}};
  state.modules.insert(loaded);
  *module = reinterpret_cast<CUmodule>(loaded);
  return CudaSuccess;
}

KAS_API CUresult cuModuleUnload(CUmodule handle) {
  KAS_ENTER(Context, handle);
  auto *module = reinterpret_cast<Module *>(handle);
  if (!state.modules.erase(module)) {
    violate("a module is unloaded that is not loaded");
    return CudaInvalidValue;
  }
  if (state.busyModules.count(module))
    violate("a module is unloaded while its kernel may run");
  for (CUfunction function : module->functions)
    state.functions.erase(function);
  delete module;
  return CudaSuccess;
}

KAS_API CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle,
                                     const char *name) {
  KAS_ENTER(Context, handle, name);
  auto *module = reinterpret_cast<Module *>(handle);
  if (!state.modules.count(module)) {
    violate("a kernel is requested from a module that is not loaded");
    return CudaInvalidValue;
  }
  auto found = module->kernels.find(name);
  if (found == module->kernels.end())
    return CudaNotFound;
  *function = state.makeHandle<CUfunction>();
  module->functions.insert(*function);
  state.functions[*function] = {module, name, found->second};
  return CudaSuccess;
}

KAS_API CUresult cuFuncGetAttribute(int *value, int attribute,
                                    CUfunction function) {
  KAS_ENTER(Context, attribute, function);
  if (!state.functions.count(function))
    violate("an attribute of a kernel that does not exist");
  *value = attribute == CudaFunctionMaxThreads ? 512 : declaredBytes;
  return CudaSuccess;
}

KAS_API CUresult cuFuncSetAttribute(CUfunction function, int attribute,
                                    int value) {
  KAS_ENTER(Context, function, attribute, value);
  if (!state.functions.count(function) ||
      attribute != CudaFunctionMaxDynamicSharedBytes)
    violate("an attribute that cannot be set");
  state.functions[function].maxDynamicBytes = value;
  return CudaSuccess;
}

// Drivers of CUDA 11 have neither of these.
#ifndef KAS_OLD_DRIVER
KAS_API CUresult cuFuncGetParamInfo(CUfunction function, size_t index,
                                    size_t *offset, size_t *bytes) {
  KAS_ENTER(Context, function, index);
  const std::vector<size_t> &parameters = state.functions[function].parameters;
  if (index >= parameters.size())
    return CudaInvalidValue;
  *offset = index * 8;
  *bytes = parameters[index];
  return CudaSuccess;
}

KAS_API CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type,
                                        uint32_t rank, void *address,
                                        const uint64_t *sizes,
                                        const uint64_t *strides,
                                        const uint32_t *box,
                                        const uint32_t *steps, int interleave,
                                        int swizzle, int promotion, int fill) {
  std::ostringstream numbers;
  for (uint32_t i = 0; i < rank; ++i)
    numbers << (i ? " " : "") << sizes[i] << ":" << box[i] << "@"
            << (i ? strides[i - 1] : 2);
  KAS_ENTER(Context, type, rank, address, numbers.str(), interleave, swizzle,
            promotion, fill);
  if (rank < 1 || rank > 5 || reinterpret_cast<uintptr_t>(address) % 16 ||
      reinterpret_cast<uintptr_t>(map) % 64)
    return CudaInvalidValue;
  size_t end = sizes[0] * 2;
  for (uint32_t i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || box[i] == 0 || box[i] > 256 || steps[i] != 1 ||
        (i > 0 && strides[i - 1] % 16))
      return CudaInvalidValue;
    if (i > 0)
      end += (sizes[i] - 1) * strides[i - 1];
  }
  if (box[0] * 2 > 128 && swizzle == CudaTensorSwizzle128)
    return CudaInvalidValue;
  if (!findMemory(reinterpret_cast<CUdeviceptr>(address), end))
    violate("a tensor beyond an allocation");
  *map = {};
  map->words[0] = descriptorMark;
  map->words[1] = reinterpret_cast<uint64_t>(address);
  return CudaSuccess;
}
#endif

/// Runs a launch of a kernel that exists, on memory that does.
static void run(Launch &launch) {
  state.clock += 0.5;
  if (launch.work)
    return launch.work();
  auto found = state.functions.find(launch.function);
  if (found == state.functions.end())
    return violate("a kernel is launched that does not exist");
  const Function &function = found->second;
  std::vector<void *> parameters;
  for (size_t i = 0; i < launch.parameters.size(); ++i) {
    std::vector<uint64_t> &words = launch.parameters[i];
    parameters.push_back(words.data());
    if (function.parameters[i] == 128) {
      if (words[0] != descriptorMark || !findMemory(words[1], 1))
        violate("a kernel gets a descriptor that was not made");
      continue;
    }
    CUdeviceptr memory = findMemory(words[0], 1);
    if (!memory || words[0] % 16)
      violate("a kernel gets memory that is not allocated");
    state.busyMemory.insert(memory);
  }
  state.busyModules.insert(function.module);
  if (auto kernel = state.kernels.find(function.name);
      kernel != state.kernels.end())
    kernel->second(parameters.data(), launch.grid, launch.block);
}

/// Now, or when the graph that `stream` records is launched.
static void start(Launch launch, CUstream stream) {
  if (stream && state.capturing == stream)
    state.captured.push_back(launch);
  else
    run(launch);
}

KAS_API CUresult cuLaunchKernel(CUfunction handle, unsigned gridX,
                                unsigned gridY, unsigned gridZ, unsigned blockX,
                                unsigned blockY, unsigned blockZ,
                                unsigned sharedBytes, CUstream stream,
                                void **parameters, void **extra) {
  KAS_ENTER(Context, handle, gridX, gridY, gridZ, blockX, blockY, blockZ,
            sharedBytes, stream);
  checkStream(stream, __func__);
  auto found = state.functions.find(handle);
  if (found == state.functions.end()) {
    violate("a kernel is launched that does not exist");
    return CudaInvalidValue;
  }
  const Function &function = found->second;
  if (extra || gridX * gridY * gridZ == 0 || blockX * blockY * blockZ == 0 ||
      blockX * blockY * blockZ > 512)
    violate("a launch of a size that is not allowed");
  if (static_cast<int>(sharedBytes) > function.maxDynamicBytes)
    violate("a launch with more workgroup memory than was requested");
  Launch launch{
      handle, {gridX, gridY, gridZ}, {blockX, blockY, blockZ}, {}, {}};
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    std::vector<uint64_t> words((function.parameters[i] + 7) / 8);
    std::memcpy(words.data(), parameters[i], function.parameters[i]);
    launch.parameters.push_back(words);
  }
  start(std::move(launch), stream);
  return CudaSuccess;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

#ifndef KAS_OLD_DRIVER
KAS_API CUresult cuStreamBeginCapture_v2(CUstream stream, unsigned mode) {
  KAS_ENTER(Context, stream, mode);
  checkStream(stream, __func__);
  if (!stream)
    violate("the default stream records");
  state.capturing = stream;
  state.captured.clear();
  return CudaSuccess;
}

KAS_API CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  // The stream stops recording whatever comes of it.
  bool isCapturing = state.capturing == stream;
  state.capturing = nullptr;
  KAS_ENTER(Context, stream);
  if (!isCapturing) {
    violate("the end of a recording that has not begun");
    return CudaInvalidValue;
  }
  *graph = state.makeHandle<CUgraph>();
  state.graphs[*graph] = state.captured;
  return CudaSuccess;
}

KAS_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *graph, CUgraph from,
                                             unsigned long long flags) {
  KAS_ENTER(Context, from, flags);
  if (!state.graphs.count(from))
    violate("a graph is instantiated that does not exist");
  *graph = state.makeHandle<CUgraphExec>();
  state.executables[*graph] = state.graphs[from];
  return CudaSuccess;
}

KAS_API CUresult cuGraphDestroy(CUgraph graph) {
  KAS_ENTER(Context, graph);
  if (!state.graphs.erase(graph))
    violate("a graph is destroyed that does not exist");
  return CudaSuccess;
}

KAS_API CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  KAS_ENTER(Context, graph, stream);
  checkStream(stream, __func__);
  if (!state.executables.count(graph))
    violate("a graph is launched that does not exist");
  for (Launch &launch : state.executables[graph])
    run(launch);
  return CudaSuccess;
}

KAS_API CUresult cuGraphExecDestroy(CUgraphExec graph) {
  KAS_ENTER(Context, graph);
  if (!state.executables.erase(graph))
    violate("a graph is destroyed that does not exist");
  return CudaSuccess;
}
#endif

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

KAS_API CUresult cuEventCreate(CUevent *event, unsigned flags) {
  KAS_ENTER(Context, flags);
  *event = state.makeHandle<CUevent>();
  state.events[*event] = {};
  return CudaSuccess;
}

KAS_API CUresult cuEventDestroy_v2(CUevent event) {
  KAS_ENTER(Context, event);
  if (!state.events.erase(event))
    violate("an event is destroyed that does not exist");
  return CudaSuccess;
}

KAS_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  KAS_ENTER(Context, event, stream);
  checkStream(stream, __func__);
  if (!state.events.count(event))
    violate("an event is recorded that does not exist");
  state.events[event] = {true, false, state.clock};
  return CudaSuccess;
}

KAS_API CUresult cuEventSynchronize(CUevent event) {
  KAS_ENTER(Context, event);
  if (!state.events.count(event))
    violate("an event is waited for that does not exist");
  state.events[event].isDone = true;
  return CudaSuccess;
}

KAS_API CUresult cuEventElapsedTime(float *milliseconds, CUevent start,
                                    CUevent stop) {
  KAS_ENTER(Context, start, stop);
  if (!state.events.count(start) || !state.events.count(stop))
    violate("a time between events that do not exist");
  if (!state.events[start].isDone || !state.events[stop].isDone)
    return notReady;
  *milliseconds =
      static_cast<float>(state.events[stop].time - state.events[start].time);
  return CudaSuccess;
}
}
