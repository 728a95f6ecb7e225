//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The file: eight bytes that say what it is, a check sum of 64 bits, and what
// `vkGetPipelineCacheData` gave. Drivers trust these bytes, so a file that was
// cut off or changed does not reach them, and neither does one of another
// driver, which the header of Vulkan shows ("Pipeline Cache Header",
// VkPipelineCacheHeaderVersionOne).
//
// Its name ends as those of all that kas keeps do: `kas cache` lists and
// removes it, and it is forgotten when it was not used for the longest time
// (lib/ExecutionEngine/ObjectCache.cpp).
//
//===----------------------------------------------------------------------===//

#include "VulkanPipelineCache.h"
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

using namespace kas::rt;

namespace fs = std::filesystem;

/// First in each file.
static constexpr char magic[] = "kaspipe1";
static constexpr size_t magicBytes = sizeof(magic) - 1, sumBytes = 8;

/// FNV-1a of 64 bits (Fowler, Noll and Vo): against accidents.
static std::string checkSum(const std::string &bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  std::string sum(sumBytes, '\0');
  std::memcpy(sum.data(), &hash, sumBytes);
  return sum;
}

static std::string getVariable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// Most bytes that are kept; the default where the variable has no number, as
/// nothing that only saves time should fail.
static uint64_t getLimit() {
  std::string text = getVariable("KAS_CACHE_MB");
  uint64_t megabytes = 512;
  (void)std::from_chars(text.data(), text.data() + text.size(), megabytes);
  return megabytes << 20;
}

/// Where all that was compiled is kept; empty: nowhere.
static fs::path getFolder() {
  if (getLimit() == 0)
    return {};
  if (std::string own = getVariable("KAS_CACHE_DIR"); !own.empty())
    return own;
  if (std::string user = getVariable("XDG_CACHE_HOME"); !user.empty())
    return fs::path(user) / "kas" / "compiled";
  if (std::string home = getVariable("HOME"); !home.empty())
    return fs::path(home) / ".cache" / "kas" / "compiled";
  return {};
}

/// The header that the driver of a device writes.
static std::string getHeader(const VkPhysicalDeviceProperties &properties) {
  VkPipelineCacheHeaderVersionOne header{};
  header.headerSize = sizeof(header);
  header.headerVersion = VK_PIPELINE_CACHE_HEADER_VERSION_ONE;
  header.vendorID = properties.vendorID;
  header.deviceID = properties.deviceID;
  std::memcpy(header.pipelineCacheUUID, properties.pipelineCacheUUID,
              VK_UUID_SIZE);
  return std::string(reinterpret_cast<const char *>(&header), sizeof(header));
}

/// What a file has to say to a driver with this header; empty: nothing.
static std::string readFile(const std::string &path,
                            const std::string &header) {
  std::ifstream stream(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(stream), {}};
  if (!stream || content.compare(0, magicBytes, magic) != 0 ||
      content.size() < magicBytes + sumBytes + header.size())
    return {};
  std::string data = content.substr(magicBytes + sumBytes);
  if (content.compare(magicBytes, sumBytes, checkSum(data)) != 0 ||
      data.compare(0, header.size(), header) != 0)
    return {};
  // Where that is not allowed, it seems less used than it is.
  (void)utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  return data;
}

/// Written under another name and renamed: no reader sees a part of it.
static void writeFile(const std::string &path, const std::string &data) {
  std::error_code code;
  fs::path folder = fs::path(path).parent_path();
  // What a driver runs must not be written by others.
  if (fs::create_directories(folder, code))
    fs::permissions(folder, fs::perms::owner_all, code);
  std::string other = path + "-XXXXXX";
  int file = mkstemp(other.data());
  if (file < 0)
    return;
  std::string content = magic + checkSum(data) + data;
  bool isWritten = write(file, content.data(), content.size()) ==
                   static_cast<ssize_t>(content.size());
  isWritten &= ::close(file) == 0;
  if (!isWritten || std::rename(other.c_str(), path.c_str()) != 0)
    (void)unlink(other.c_str());
}

void VulkanPipelineCache::open(const VulkanInstance &instance,
                               VkPhysicalDevice physical, VkDevice opened) {
  driver = &instance;
  device = opened;
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  driver->vkGetPhysicalDeviceProperties2(physical, &properties);
  std::string header = getHeader(properties.properties);
  if (fs::path folder = getFolder(); !folder.empty()) {
    // One for each driver, so that two of them do not take turns.
    std::string name = "vulkan-";
    for (unsigned char byte : header.substr(8)) {
      name += "0123456789abcdef"[byte >> 4];
      name += "0123456789abcdef"[byte & 15];
    }
    path = folder / (name + ".kaso");
    known = readFile(path, header);
  }
  VkPipelineCacheCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO;
  create.initialDataSize = known.size();
  create.pInitialData = known.data();
  if (driver->vkCreatePipelineCache(device, &create, nullptr, &handle) !=
      VK_SUCCESS)
    handle = VK_NULL_HANDLE;
}

void VulkanPipelineCache::save() const {
  size_t size = 0;
  if (path.empty() || driver->vkGetPipelineCacheData(device, handle, &size,
                                                     nullptr) != VK_SUCCESS)
    return;
  std::string data(size, '\0');
  if (driver->vkGetPipelineCacheData(device, handle, &size, data.data()) !=
      VK_SUCCESS)
    return;
  data.resize(size);
  if (data != known && data.size() <= getLimit())
    writeFile(path, data);
}

void VulkanPipelineCache::close(bool isUsable) {
  if (!handle)
    return;
  if (isUsable)
    save();
  driver->vkDestroyPipelineCache(device, handle, nullptr);
  handle = VK_NULL_HANDLE;
}
