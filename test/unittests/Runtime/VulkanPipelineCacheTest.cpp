//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Pipelines that a driver has compiled are kept for the next process, and a
// file that is damaged, or another driver's, is none.
//
//===----------------------------------------------------------------------===//

#include "VulkanTest.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

namespace fs = std::filesystem;

namespace {

class VulkanPipelineCacheTest : public VulkanTest {
protected:
  void SetUp() override {
    VulkanTest::SetUp();
    folder = fs::path(testing::TempDir()) / "kas-pipelines";
    fs::remove_all(folder);
    useDriver("KAS_CACHE_MB", "1");
    useDriver("KAS_CACHE_DIR", (folder / "made").c_str());
  }
  void TearDown() override {
    fs::remove_all(folder);
    VulkanTest::TearDown();
  }
  /// Opens a device, compiles a kernel, runs it and closes the device. Gives
  /// the bytes that the driver's cache began with.
  size_t run() {
    RunResult result = runThroughApi("vulkan", kernels);
    EXPECT_EQ(result.status, KAS_RT_SUCCESS) << result.text;
    EXPECT_TRUE(result.isCorrect);
    EXPECT_TRUE(result.later.empty());
    return driver->getInitialPipelineBytes();
  }
  std::vector<fs::path> list() const {
    std::vector<fs::path> files;
    if (fs::exists(folder / "made"))
      for (const auto &entry : fs::directory_iterator(folder / "made"))
        files.push_back(entry.path());
    return files;
  }
  static std::string read(const fs::path &file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void write(const fs::path &file, const std::string &content) {
    std::ofstream(file, std::ios::binary) << content;
  }
  /// FNV-1a of 64 bits.
  static std::string checkSum(const std::string &data) {
    uint64_t hash = 0xcbf29ce484222325;
    for (unsigned char byte : data)
      hash = (hash ^ byte) * 0x100000001b3;
    return {reinterpret_cast<const char *>(&hash), sizeof(hash)};
  }
  /// The file after the first run.
  std::string makeFile() {
    EXPECT_EQ(run(), 0u);
    EXPECT_EQ(list().size(), 1u);
    file = list().empty() ? folder : list().front();
    return read(file);
  }

  /// The header of Vulkan, and what the stand-in has after it.
  static constexpr size_t bytes = 32 + 100;
  fs::path folder, file;
};

} // namespace

TEST_F(VulkanPipelineCacheTest, KeepsPipelinesForTheNextProcess) {
  std::string content = makeFile();
  EXPECT_EQ(content.substr(0, 8), "kaspipe1");
  EXPECT_EQ(content.size(), 16 + bytes);
  // `kas cache` lists files with such names.
  EXPECT_EQ(file.extension(), ".kaso");
  EXPECT_EQ(run(), bytes);
  EXPECT_EQ(read(file), content);
  EXPECT_EQ(list().size(), 1u);
}

/// Each byte matters, wherever the file is cut off.
TEST_F(VulkanPipelineCacheTest, TakesNoFileThatIsDamaged) {
  std::string content = makeFile();
  for (size_t i : {size_t(0), size_t(7), size_t(8), size_t(15), size_t(16),
                   size_t(24), size_t(47), size_t(48), content.size() - 1}) {
    SCOPED_TRACE(i);
    std::string changed = content;
    changed[i] ^= 1;
    write(file, changed);
    EXPECT_EQ(run(), 0u);
    // Written anew.
    EXPECT_EQ(read(file), content);
    write(file, content.substr(0, i));
    EXPECT_EQ(run(), 0u);
    EXPECT_EQ(read(file), content);
  }
  write(file, content + "x");
  EXPECT_EQ(run(), 0u);
}

/// A file of another driver or device, whole in itself: its check sum is right.
TEST_F(VulkanPipelineCacheTest, TakesNoFileOfAnotherDriver) {
  std::string content = makeFile();
  // Size and version of the header, vendor, device, identity of the driver.
  for (size_t i : {0, 4, 8, 12, 16, 31}) {
    SCOPED_TRACE(i);
    std::string data = content.substr(16);
    data[i] ^= 1;
    write(file, "kaspipe1" + checkSum(data) + data);
    EXPECT_EQ(run(), 0u);
  }
  // The test makes check sums as the runtime does.
  EXPECT_EQ(content.substr(8, 8), checkSum(content.substr(16)));
}

TEST_F(VulkanPipelineCacheTest, KeepsNothingWhereNothingMayBeKept) {
  useDriver("KAS_CACHE_MB", "0");
  EXPECT_EQ(run(), 0u);
  EXPECT_TRUE(list().empty());
  // A folder that cannot be made: a file is where it would be.
  useDriver("KAS_CACHE_MB", "1");
  fs::create_directories(folder);
  write(folder / "made", "");
  useDriver("KAS_CACHE_DIR", (folder / "made" / "cache").c_str());
  EXPECT_EQ(run(), 0u);
}

/// It only saves time.
TEST_F(VulkanPipelineCacheTest, RunsWithoutACacheOfTheDriver) {
  for (const char *name : {"vkCreatePipelineCache", "vkGetPipelineCacheData"})
    for (int nth : {1, 2}) {
      driver->reset();
      driver->fail(name, nth, VK_ERROR_OUT_OF_HOST_MEMORY);
      EXPECT_EQ(run(), 0u);
      EXPECT_TRUE(list().empty() || nth == 2);
      EXPECT_TRUE(driver->hasFailed() || nth == 2);
      fs::remove_all(folder);
    }
}
