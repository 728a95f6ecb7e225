//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kas/ExecutionEngine/GPU/DeviceFunction.h"
#include "../../../lib/Runtime/CudaDriver.h"
#include "DeviceRuntimeTest.h"
#include "SpirvText.h"
#include "llvm/ADT/STLExtras.h"
#include <functional>

using namespace kas;
using namespace kas::execution;

/// out = twice(x) + constant, by way of a temporary: the kernels of
/// `getSpirvKernels`. `target` is the API; `dtype` that of the function.
static std::string getManifest(const std::string &api,
                               const std::string &dtype = "f32") {
  // 64 floats of 1.
  std::string ones;
  for (int i = 0; i < 21; ++i)
    ones += "AACAPwAAgD8AAIA/";
  ones += "AACAPw==";
  auto tensor = [](const std::string &dtype) {
    return "\"dtype\": \"" + dtype + "\", \"shape\": [4, 16]}";
  };
  std::string argument = "{\"access\": \"read\", " + tensor(dtype);
  return R"({"version": 1, "target": {"api": ")" + api +
         R"(", "chip": "sm_90", "format": "any", "capabilities": []},
    "kernels": [
      {"name": "twice", "grid": [2, 1, 1], "block": [32, 1, 1], "new": true,
       "shared_bytes": 128, "dynamic_shared_bytes": 0,
       "arguments": [)" +
         argument + ", " + argument + R"(]},
      {"name": "add", "grid": [2, 1, 1], "block": [32, 1, 1],
       "arguments": [)" +
         argument + ", " + argument + ", " + argument + R"(]}],
    "functions": [{"name": "run", "scratch_bytes": 1024, "buffers": [
      {"kind": "argument", "name": "x", )" +
         tensor(dtype) + R"(,
      {"kind": "result", "name": "y", )" +
         tensor(dtype) + R"(,
      {"kind": "constant", "data": ")" +
         (dtype == "f32" ? ones : ones.substr(0, 168) + "AAA=") + "\", " +
         tensor(dtype) + R"(,
      {"kind": "scratch", "offset": 512, )" +
         tensor(dtype) + R"(],
      "launches": [{"kernel": 0, "arguments": [0, 3]},
                   {"kernel": 1, "arguments": [3, 2, 1]}]}]})";
}

static std::string getError(llvm::StringRef json) {
  auto manifest = DeviceManifest::fromJSON(json);
  return manifest ? "" : llvm::toString(manifest.takeError());
}

/// The error when `from` is replaced in a manifest that is well-formed.
static std::string getError(const std::string &from, const std::string &to) {
  std::string json = getManifest("vulkan");
  size_t position = json.find(from);
  EXPECT_NE(position, std::string::npos) << from;
  return getError(json.replace(position, from.size(), to));
}

TEST(DeviceManifest, IsRead) {
  auto manifest = DeviceManifest::fromJSON(getManifest("cuda"));
  ASSERT_TRUE(bool(manifest)) << llvm::toString(manifest.takeError());
  EXPECT_EQ(manifest->target.api, "cuda");
  EXPECT_EQ(manifest->target.chip, "sm_90");
  ASSERT_EQ(manifest->kernels.size(), 2u);
  EXPECT_EQ(manifest->kernels[0].block, (std::array<uint32_t, 3>{32, 1, 1}));
  EXPECT_EQ(manifest->kernels[0].sharedBytes, 128u);
  ASSERT_EQ(manifest->kernels[1].arguments.size(), 3u);
  EXPECT_EQ(manifest->kernels[1].arguments[2].getBytes(), 256u);
  const DeviceManifest::Function *function = manifest->find("run");
  ASSERT_TRUE(function);
  EXPECT_EQ(function->buffers[3].offset, 512u);
  EXPECT_EQ(function->buffers[2].data.size(), 256u);
  EXPECT_EQ(function->launches[1].arguments, (std::vector<size_t>{3, 2, 1}));
  EXPECT_EQ(manifest->find("none"), nullptr);
}

// Byte for byte: programs are compared and stored by this text.
TEST(DeviceManifest, IsWrittenAsItIsRead) {
  std::string text =
      R"({"version":1,"target":{"api":"cuda","chip":"sm_90","format":"ptx",)"
      R"("capabilities":["Float16"]},"kernels":[{"name":"copy",)"
      R"("grid":[2,1,1],"block":[128,1,1],"shared_bytes":64,)"
      R"("dynamic_shared_bytes":1024,"arguments":[{"dtype":"f16",)"
      R"("shape":[64,64],"access":"read"},{"dtype":"f16","shape":[64,64],)"
      R"("access":"write"}],"tensor_maps":[{"argument":0,"sizes":[64,64],)"
      R"("strides":[128],"box":[64,32]}]}],"functions":[{"name":"run",)"
      R"("buffers":[{"name":"x","kind":"argument","dtype":"f16",)"
      R"("shape":[64,64],"bytes":8192},{"name":"y","kind":"result",)"
      R"("dtype":"f16","shape":[64,64],"bytes":8192},{"name":"one",)"
      R"("kind":"constant","dtype":"f32","shape":[],"bytes":4,)"
      R"("data":"AACAPw=="},{"kind":"scratch","dtype":"f16",)"
      R"("shape":[64,64],"bytes":8192,"offset":256}],"scratch_bytes":8448,)"
      R"("prepack_launches":1,"launches":[{"kernel":0,"arguments":[0,3]},)"
      R"({"kernel":0,"arguments":[3,1]}]}]})";
  auto manifest = DeviceManifest::fromJSON(text);
  ASSERT_TRUE(bool(manifest)) << llvm::toString(manifest.takeError());
  EXPECT_EQ(manifest->toJSON(), text);
}

TEST(DeviceManifest, SaysWhatIsWrong) {
  EXPECT_NE(getError("{").find("malformed manifest: "), std::string::npos);
  EXPECT_EQ(getError("[]"),
            "malformed manifest: expected object when parsing manifest");
  EXPECT_EQ(getError("\"version\": 1", "\"version\": 2"),
            "malformed manifest: expected version 1 at manifest.version");
  EXPECT_EQ(getError("\"api\": \"vulkan\"", "\"api\": \"metal\""),
            "malformed manifest: expected cuda or vulkan at "
            "manifest.target.api");
  EXPECT_EQ(
      getError("[2, 1, 1]", "[2, 0, 1]"),
      "malformed manifest: expected three numbers from 1 to 4294967295 at "
      "manifest.kernels[0].grid");
  EXPECT_EQ(
      getError("[2, 1, 1]", "[2, 1]"),
      "malformed manifest: expected three numbers from 1 to 4294967295 at "
      "manifest.kernels[0].grid");
  EXPECT_EQ(
      getError("\"kind\": \"result\"", "\"kind\": \"output\""),
      "malformed manifest: expected argument, result, status, constant or "
      "scratch "
      "at manifest.functions[0].buffers[1].kind");
  EXPECT_EQ(getError("\"f32\"", "\"f31\""),
            "malformed manifest: expected f32, f16, bf16 or another type at "
            "manifest.kernels[0].arguments[0].dtype");
  EXPECT_EQ(
      getError("[4, 16]", "[4, -16]"),
      "malformed manifest: expected positive extents that memory can hold "
      "at manifest.kernels[0].arguments[0].shape");
  EXPECT_EQ(
      getError("[4, 16]", "[4611686018427387904, 16]"),
      "malformed manifest: expected positive extents that memory can hold "
      "at manifest.kernels[0].arguments[0].shape");
  EXPECT_EQ(getError("\"offset\": 512", "\"offset\": 511"),
            "malformed manifest: expected a multiple of 256 at "
            "manifest.functions[0].buffers[3].offset");
  EXPECT_EQ(getError("\"offset\": 512", "\"offset\": 1024"),
            "malformed manifest: function 'run': expected temporaries within "
            "1024 bytes, got 256 from 1024 on");
  EXPECT_EQ(getError("\"scratch_bytes\"", "\"prepack_launches\": 3, "
                                          "\"scratch_bytes\""),
            "malformed manifest: function 'run': expected at most 2 launches "
            "to prepack weights, got 3");
  EXPECT_EQ(getError("AACAPw==", ""),
            "malformed manifest: expected the constant's bytes in base64 at "
            "manifest.functions[0].buffers[2].data");
  EXPECT_EQ(
      getError("\"kernel\": 1", "\"kernel\": 2"),
      "malformed manifest: function 'run': expected a kernel below 2, got "
      "2");
  EXPECT_EQ(getError("[3, 2, 1]", "[3, 2]"),
            "malformed manifest: function 'run': expected 3 arguments for "
            "kernel 'add', got 2");
  EXPECT_EQ(
      getError("[3, 2, 1]", "[3, 2, 4]"),
      "malformed manifest: function 'run': expected a buffer below 4, got "
      "4");
  EXPECT_EQ(
      getError("[4, 16]", "[4, 15]"),
      "malformed manifest: function 'run': expected a buffer of 240 bytes "
      "as argument 0 of kernel 'twice', got 256");
  EXPECT_EQ(getError("\"dynamic_shared_bytes\": 0",
                     "\"dynamic_shared_bytes\": 4294967296"),
            "malformed manifest: expected 32 bits at "
            "manifest.kernels[0].dynamic_shared_bytes");
  auto getMapError = [](const std::string &map) {
    return getError("\"dynamic_shared_bytes\": 0",
                    "\"tensor_maps\": [{" + map + "}]");
  };
  EXPECT_EQ(getMapError("\"argument\": 0, \"sizes\": [], \"strides\": [], "
                        "\"box\": []"),
            "malformed manifest: expected 1 to 5 numbers at "
            "manifest.kernels[0].tensor_maps[0].sizes");
  EXPECT_EQ(getMapError("\"argument\": 0, \"sizes\": [8, 8], \"strides\": [], "
                        "\"box\": [8, 8]"),
            "malformed manifest: expected one number less than sizes at "
            "manifest.kernels[0].tensor_maps[0].strides");
  EXPECT_EQ(getMapError("\"argument\": 0, \"sizes\": [8, 8], \"strides\": [16],"
                        "\"box\": [8, 257]"),
            "malformed manifest: expected as many numbers of at most 256 as "
            "sizes at manifest.kernels[0].tensor_maps[0].box");
  // Of f32.
  EXPECT_EQ(getMapError("\"argument\": 0, \"sizes\": [8, 8], \"strides\": [16],"
                        "\"box\": [8, 8]"),
            "malformed manifest: expected the position of an argument of f16 "
            "or bf16 at manifest.kernels[0].tensor_maps[0].argument");
  EXPECT_EQ(getError("\"launches\"", "\"launched\""),
            "malformed manifest: missing value at "
            "manifest.functions[0].launches");
}

namespace {

class DeviceFunctionTest : public DeviceRuntimeTest {
protected:
  /// Runs `binary` on `name` and compares with the formula.
  static void run(llvm::StringRef name, const std::string &json,
                  llvm::StringRef binary) {
    auto device = Device::open(name);
    ASSERT_TRUE(bool(device)) << llvm::toString(device.takeError());
    auto manifest = DeviceManifest::fromJSON(json);
    ASSERT_TRUE(bool(manifest)) << llvm::toString(manifest.takeError());
    {
      auto function = DeviceFunction::load(*device, *manifest, binary, "run");
      ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
      Tensor x({4, 16}), y({4, 16});
      for (int i = 0; i < 64; ++i)
        x.getValues()[i] = static_cast<float>(i) / 4;
      llvm::Error error = (*function)->run({std::move(x)}, y);
      ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
      for (int i = 0; i < 64; ++i)
        EXPECT_EQ(y.getValues()[i], static_cast<float>(i) / 2 + 1);
      auto timing = (*function)->measure({.minRuns = 3, .seconds = 0});
      ASSERT_TRUE(bool(timing)) << llvm::toString(timing.takeError());
      EXPECT_EQ(timing->count, 3);
      EXPECT_GE(timing->min, 0);
    }
    llvm::Error error = device->close();
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }
};

const char *const ptx =
    ".version 8.0\n.entry twice(.param .u64 a, .param .u64 b) {}\n"
    ".entry add(.param .u64 a, .param .u64 b, .param .u64 out) {}\n";

template <typename Element>
Element *get(void *const *parameters, int i) {
  return reinterpret_cast<Element *>(
      *static_cast<const CUdeviceptr *>(parameters[i]));
}

class CudaFunctionTest : public DeviceFunctionTest {
protected:
  void SetUp() override {
    useDriver("KAS_RT_LIBCUDA", KAS_CUDA_STAND_IN);
    driver = load(KAS_CUDA_STAND_IN);
    ASSERT_TRUE(driver);
    driver->reset();
    driver->setKernel("twice", [](void *const *parameters, const uint32_t *grid,
                                  const uint32_t *block) {
      for (uint32_t i = 0; i < grid[0] * block[0]; ++i)
        get<float>(parameters, 1)[i] = 2 * get<float>(parameters, 0)[i];
    });
    driver->setKernel("add", [](void *const *parameters, const uint32_t *grid,
                                const uint32_t *block) {
      for (uint32_t i = 0; i < grid[0] * block[0]; ++i)
        get<float>(parameters, 2)[i] =
            get<float>(parameters, 0)[i] + get<float>(parameters, 1)[i];
    });
  }
  void TearDown() override {
    EXPECT_STREQ(driver->getViolations(), "");
    EXPECT_EQ(driver->countLive(), 0);
    driver->reset();
    DeviceRuntimeTest::TearDown();
  }
  /// A program whose first launch prepacks weights; `numPrepacked` counts how
  /// often it runs from now on.
  std::string countPrepacks() {
    numPrepacked = 0;
    driver->setKernel("twice", [](void *const *parameters, const uint32_t *grid,
                                  const uint32_t *block) {
      ++numPrepacked;
      for (uint32_t i = 0; i < grid[0] * block[0]; ++i)
        get<float>(parameters, 1)[i] = 2 * get<float>(parameters, 0)[i];
    });
    std::string json = getManifest("cuda");
    json.insert(json.find("\"scratch_bytes\""), "\"prepack_launches\": 1, ");
    return json;
  }

  const StandInControls *driver = nullptr;
  // Kernels of the stand-in are functions without a context.
  static inline int numPrepacked = 0;
};

class VulkanFunctionTest : public DeviceFunctionTest {
protected:
  void SetUp() override {
    useDriver("VK_ICD_FILENAMES", KAS_LAVAPIPE_ICD);
    useDriver("KAS_RT_VALIDATION", "1");
  }
};

} // namespace

TEST_F(CudaFunctionTest, Runs) { run("cuda", getManifest("cuda"), ptx); }

TEST_F(VulkanFunctionTest, Runs) {
  run("vulkan", getManifest("vulkan"), getSpirvKernels());
}

TEST_F(CudaFunctionTest, KeepsTemporariesOnTheDevice) {
  run("cuda", getManifest("cuda"), ptx);
  // The constant and the argument go there, the result comes back.
  EXPECT_EQ(driver->countCalls("cuMemcpyHtoDAsync_v2"), 2);
  EXPECT_EQ(driver->countCalls("cuMemcpyDtoHAsync_v2"), 1);
  // An argument, a result, a constant, the scratch.
  EXPECT_EQ(driver->countCalls("cuMemAlloc_v2"), 4);
}

// Once for each upload, however often the function is called and measured.
TEST_F(CudaFunctionTest, PrepacksWeightsOnce) {
  std::string json = countPrepacks();
  run("cuda", json, ptx);
  EXPECT_EQ(numPrepacked, 1);
  auto device = Device::open("cuda");
  ASSERT_TRUE(bool(device)) << llvm::toString(device.takeError());
  auto manifest = llvm::cantFail(DeviceManifest::fromJSON(json));
  auto function =
      llvm::cantFail(DeviceFunction::load(*device, manifest, ptx, "run"));
  for (int round : {1, 2}) {
    Tensor x({4, 16}), y({4, 16});
    x.getValues()[5] = static_cast<float>(round);
    llvm::Error error = function->run({std::move(x)}, y);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    EXPECT_EQ(y.getValues()[5], static_cast<float>(2 * round + 1));
    ASSERT_FALSE(bool(function->launch()));
    EXPECT_EQ(numPrepacked, 1 + round);
  }
}

/// 16-bit elements are rounded on their way to the device.
TEST_F(CudaFunctionTest, Converts) {
  for (const char *dtype : {"f16", "bf16"}) {
    SCOPED_TRACE(dtype);
    driver->setKernel("twice", [](void *const *parameters, const uint32_t *,
                                  const uint32_t *) {
      std::copy_n(get<uint16_t>(parameters, 0), 64,
                  get<uint16_t>(parameters, 1));
    });
    driver->setKernel(
        "add", [](void *const *parameters, const uint32_t *, const uint32_t *) {
          std::copy_n(get<uint16_t>(parameters, 0), 64,
                      get<uint16_t>(parameters, 2));
        });
    auto device = Device::open("cuda");
    ASSERT_TRUE(bool(device)) << llvm::toString(device.takeError());
    auto manifest = DeviceManifest::fromJSON(getManifest("cuda", dtype));
    ASSERT_TRUE(bool(manifest)) << llvm::toString(manifest.takeError());
    auto function = DeviceFunction::load(*device, *manifest, ptx, "run");
    ASSERT_TRUE(bool(function)) << llvm::toString(function.takeError());
    Tensor x({4, 16}), y({4, 16});
    // Half a unit in the last place of 1, which goes to the even number, and
    // three quarters of one.
    float unit = dtype == std::string("f16") ? 0x1p-10f : 0x1p-7f;
    x.getValues()[0] = 1 + unit / 2;
    x.getValues()[1] = 1 + 3 * unit / 4;
    x.getValues()[2] = -3;
    llvm::Error error = (*function)->run({std::move(x)}, y);
    ASSERT_FALSE(bool(error)) << llvm::toString(std::move(error));
    EXPECT_EQ(y.getValues()[0], 1);
    EXPECT_EQ(y.getValues()[1], 1 + unit);
    EXPECT_EQ(y.getValues()[2], -3);
    EXPECT_EQ(y.getValues()[3], 0);
  }
}

TEST_F(CudaFunctionTest, SaysWhatDoesNotFit) {
  auto device = Device::open("cuda");
  ASSERT_TRUE(bool(device)) << llvm::toString(device.takeError());
  auto expectError = [&](llvm::Error error, const std::string &text) {
    EXPECT_EQ(llvm::toString(std::move(error)), text);
  };
  auto vulkan = llvm::cantFail(DeviceManifest::fromJSON(getManifest("vulkan")));
  expectError(DeviceFunction::load(*device, vulkan, ptx, "run").takeError(),
              "expected a program for cuda, got one for vulkan");
  auto manifest = llvm::cantFail(DeviceManifest::fromJSON(getManifest("cuda")));
  expectError(DeviceFunction::load(*device, manifest, ptx, "go").takeError(),
              "the program has no function 'go'");
  expectError(DeviceFunction::load(*device, manifest, "", "run").takeError(),
              "expected a cubin, a fatbin or PTX, got 0 bytes");
  auto function =
      llvm::cantFail(DeviceFunction::load(*device, manifest, ptx, "run"));
  Tensor y({4, 16}), flat({64});
  expectError(function->run({}, y),
              "expected 1 arguments for function 'run', got 0");
  expectError(function->run({flat.clone()}, y),
              "expected shape 4x16 for 'x' of function 'run', got 64");
  expectError(function->run({y.clone()}, {}),
              "expected 1 results for function 'run', got 0");
  expectError(function->run({y.clone()}, flat),
              "expected shape 4x16 for 'y' of function 'run', got 64");
}

namespace {
/// A function on tensors of the test's own.
class CallerFunctionTest : public CudaFunctionTest {
protected:
  static constexpr uint64_t stream = 0x77;

  void SetUp() override {
    CudaFunctionTest::SetUp();
    driver->addStream(getStream());
    for (const Memory &memory : {std::cref(x), std::cref(y), std::cref(z)})
      driver->addMemory(getAddress(memory), sizeof(memory));
  }
  void open(const std::string &json) {
    device.emplace(llvm::cantFail(Device::open("cuda")));
    auto manifest = llvm::cantFail(DeviceManifest::fromJSON(json));
    function = llvm::cantFail(
        CallerFunction::load(*device, lock, manifest, ptx, "run"));
  }
  void TearDown() override {
    function.reset();
    device.reset();
    CudaFunctionTest::TearDown();
  }
  struct alignas(16) Memory {
    float values[64] = {};
  };
  static uint64_t getAddress(const Memory &memory) {
    return reinterpret_cast<uint64_t>(&memory);
  }
  static void *getStream() { return reinterpret_cast<void *>(stream); }
  void call(const Memory &from, const Memory &to) {
    llvm::Error error =
        function->call({getAddress(from), getAddress(to)}, getStream());
    EXPECT_FALSE(bool(error)) << llvm::toString(std::move(error));
  }

  Memory x, y, z;
  std::mutex lock;
  std::optional<Device> device;
  std::unique_ptr<CallerFunction> function;
};
} // namespace

TEST_F(CallerFunctionTest, RunsWhereTheTensorsAre) {
  open(getManifest("cuda"));
  int allocated = driver->countCalls("cuMemAlloc_v2");
  x.values[5] = 3;
  call(x, y);
  EXPECT_EQ(y.values[5], 7);
  // Kernels by themselves, then a graph that was recorded once.
  EXPECT_EQ(driver->countCalls("cuGraphLaunch"), 0);
  for (int round : {1, 2, 3}) {
    x.values[5] = static_cast<float>(round);
    call(x, y);
    EXPECT_EQ(y.values[5], static_cast<float>(2 * round + 1));
    EXPECT_EQ(driver->countCalls("cuGraphLaunch"), round);
  }
  EXPECT_EQ(driver->countCalls("cuGraphInstantiateWithFlags"), 1);
  // Another result, and the first one again.
  call(x, z);
  EXPECT_EQ(z.values[5], 7);
  call(x, y);
  EXPECT_EQ(driver->countCalls("cuGraphLaunch"), 4);
  EXPECT_EQ(driver->countCalls("cuMemAlloc_v2"), allocated);
  // The constant alone; nothing comes back.
  EXPECT_EQ(driver->countCalls("cuMemcpyHtoDAsync_v2"), 1);
  EXPECT_EQ(driver->countCalls("cuMemcpyDtoHAsync_v2"), 0);
  std::string log = driver->getLog();
  EXPECT_NE(log.find("32, 1, 1, 0, 0x77)"), std::string::npos);
}

// More sets of addresses than are kept: the oldest ones are given up.
TEST_F(CallerFunctionTest, ForgetsOldTensors) {
  open(getManifest("cuda"));
  std::vector<Memory> many(40);
  driver->addMemory(getAddress(many[0]), many.size() * sizeof(Memory));
  x.values[0] = 1;
  for (int round : {1, 2})
    for (Memory &memory : many) {
      call(x, memory);
      EXPECT_EQ(memory.values[0], 3) << round;
    }
  EXPECT_EQ(driver->countCalls("cuGraphLaunch"), 0);
}

TEST_F(CallerFunctionTest, PrepacksWeightsAgainWhereTheyAreOthers) {
  open(countPrepacks());
  call(x, y);
  call(x, y);
  call(x, z);
  EXPECT_EQ(numPrepacked, 1);
  call(z, y);
  EXPECT_EQ(numPrepacked, 2);
  function->forgetWeights();
  call(z, y);
  call(z, y);
  EXPECT_EQ(numPrepacked, 3);
}

TEST_F(CallerFunctionTest, SaysWhatIsWrong) {
  open(getManifest("cuda"));
  auto getError = [&](std::vector<uint64_t> addresses) {
    return llvm::toString(function->call(addresses, getStream()));
  };
  EXPECT_EQ(getError({4096}), "expected 2 tensors for function 'run', got 1");
  EXPECT_EQ(getError({4096, 4100}),
            "expected an address on the device that is a multiple of 16, got "
            "4100");
  driver->fail("cuLaunchKernel", 2, rt::CudaLaunchFailed);
  EXPECT_NE(getError({getAddress(x), getAddress(y)}).find("LAUNCH_FAILED"),
            std::string::npos);
}

TEST_F(VulkanFunctionTest, HasNoTensorsOfTheCaller) {
  auto device = Device::open("vulkan");
  ASSERT_TRUE(bool(device)) << llvm::toString(device.takeError());
  auto manifest =
      llvm::cantFail(DeviceManifest::fromJSON(getManifest("vulkan")));
  std::mutex lock;
  auto function =
      CallerFunction::load(*device, lock, manifest, getSpirvKernels(), "run");
  EXPECT_NE(llvm::toString(function.takeError())
                .find("expected a CUDA device for tensors in the caller's "
                      "memory, got '"),
            std::string::npos);
}

TEST_F(DeviceRuntimeTest, ReportsThatADeviceCannotBeOpened) {
  useDriver("KAS_RT_LIBCUDA", "libkas-no-such-driver.so");
  auto device = Device::open("cuda");
  ASSERT_FALSE(bool(device));
  EXPECT_NE(llvm::toString(device.takeError()).find("no CUDA driver"),
            std::string::npos);
}
