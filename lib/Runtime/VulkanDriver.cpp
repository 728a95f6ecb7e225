//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vulkan's loader and instance: functions, devices, and messages of the
// validation layer.
// Functions are looked up through `vkGetInstanceProcAddr`: the library links no
// loader, and a machine without Vulkan gets an error instead of a failed start.
//
//===----------------------------------------------------------------------===//

#include "VulkanDriver.h"
#include "Device.h"
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <link.h>

using namespace kas::rt;

/// The name of an error code; null for one of an extension that is not used
/// here.
static const char *nameOf(VkResult result) {
  switch (result) {
#define KAS_NAME(name)                                                         \
  case name:                                                                   \
    return #name;
    KAS_NAME(VK_NOT_READY)
    KAS_NAME(VK_TIMEOUT)
    KAS_NAME(VK_INCOMPLETE)
    KAS_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    KAS_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    KAS_NAME(VK_ERROR_INITIALIZATION_FAILED)
    KAS_NAME(VK_ERROR_DEVICE_LOST)
    KAS_NAME(VK_ERROR_MEMORY_MAP_FAILED)
    KAS_NAME(VK_ERROR_LAYER_NOT_PRESENT)
    KAS_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    KAS_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    KAS_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    KAS_NAME(VK_ERROR_TOO_MANY_OBJECTS)
    KAS_NAME(VK_ERROR_FRAGMENTED_POOL)
    KAS_NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
    KAS_NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    KAS_NAME(VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS)
    KAS_NAME(VK_ERROR_INVALID_SHADER_NV)
    KAS_NAME(VK_ERROR_UNKNOWN)
#undef KAS_NAME
  default:
    return nullptr;
  }
}

/// What a caller can do about an error.
static KasRtStatus classify(VkResult result) {
  switch (result) {
  case VK_ERROR_OUT_OF_HOST_MEMORY:
  case VK_ERROR_OUT_OF_DEVICE_MEMORY:
  case VK_ERROR_OUT_OF_POOL_MEMORY:
  case VK_ERROR_FRAGMENTED_POOL:
  case VK_ERROR_TOO_MANY_OBJECTS:
    return KAS_RT_ERROR_OUT_OF_MEMORY;
  case VK_ERROR_DEVICE_LOST:
    return KAS_RT_ERROR_DEVICE_LOST;
  case VK_ERROR_INVALID_SHADER_NV:
    return KAS_RT_ERROR_INVALID_MODULE;
  case VK_ERROR_INITIALIZATION_FAILED:
  case VK_ERROR_INCOMPATIBLE_DRIVER:
  case VK_ERROR_LAYER_NOT_PRESENT:
    return KAS_RT_ERROR_NO_DEVICE;
  default:
    return KAS_RT_ERROR_DRIVER;
  }
}

// Codes of Vulkan have no texts of their own, so the two that users meet get
// one.
Status kas::rt::checkVulkan(VkResult result, const std::string &what) {
  if (result == VK_SUCCESS)
    return {};
  // A driver may return codes of extensions: these have a number only.
  const char *name = nameOf(result);
  const char *text = result == VK_ERROR_DEVICE_LOST ? "device lost ("
                     : classify(result) == KAS_RT_ERROR_OUT_OF_MEMORY
                         ? "out of memory ("
                         : "";
  return {classify(result),
          what + " failed: " + text +
              (name ? name : "error " + std::to_string(int(result))) +
              (*text ? ")" : "")};
}

/// Called by the validation layer during a call; `takeMessages` makes the
/// messages an error of that call.
static VKAPI_ATTR VkBool32 VKAPI_CALL keepMessage(
    VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
    const VkDebugUtilsMessengerCallbackDataEXT *data, void *instance) {
  static_cast<VulkanInstance *>(instance)->messages.push_back(
      makeOneLine(data->pMessage));
  // Do not abort the call, so that all of its messages arrive.
  return VK_FALSE;
}

Status VulkanInstance::loadLibrary() {
  if (Status status =
          library.open("Vulkan loader", "libvulkan.so.1", "KAS_RT_LIBVULKAN");
      status.isError())
    return status;
  auto lacks = [&](const char *name) {
    return Status(KAS_RT_ERROR_NO_DEVICE,
                  "no Vulkan loader: looked for the function " +
                      std::string(name) + " in " + library.getName() +
                      ", which has none");
  };
  getFunction = reinterpret_cast<PFN_vkGetInstanceProcAddr>(
      library.lookUp("vkGetInstanceProcAddr"));
  // The one function that is exported for certain; it finds all others.
  if (!getFunction)
    return lacks("vkGetInstanceProcAddr");
// Functions that need no instance.
#define KAS_LOAD(name)                                                         \
  name = reinterpret_cast<PFN_##name>(getFunction(VK_NULL_HANDLE, #name));     \
  if (!name)                                                                   \
    return lacks(#name);
  KAS_VULKAN_GLOBAL_FUNCTIONS(KAS_LOAD)
#undef KAS_LOAD
  return {};
}

/// The layer of the package `vulkan-validationlayers`.
static constexpr const char *validationLayer = "VK_LAYER_KHRONOS_validation";

/// Whether the loader knows the validation layer.
/// `KAS_RT_VALIDATION=1` without the layer is an error: a test that believes to
/// be validated would pass for nothing.
static Status requireValidationLayer(const VulkanInstance &instance) {
  uint32_t count = 0;
  Status status =
      checkVulkan(instance.vkEnumerateInstanceLayerProperties(&count, nullptr),
                  "vkEnumerateInstanceLayerProperties");
  std::vector<VkLayerProperties> layers(count);
  if (!status.isError())
    status = checkVulkan(
        instance.vkEnumerateInstanceLayerProperties(&count, layers.data()),
        "vkEnumerateInstanceLayerProperties");
  if (status.isError())
    return status;
  for (const VkLayerProperties &layer : layers)
    if (std::strcmp(layer.layerName, validationLayer) == 0)
      return {};
  return {KAS_RT_ERROR_VALIDATION,
          std::string("KAS_RT_VALIDATION is 1: looked for the layer ") +
              validationLayer + " among " + std::to_string(count) +
              " layers of Vulkan, which do not have it"};
}

Status VulkanInstance::createInstance(bool validate) {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.pApplicationName = "kas";
  // The version that kernels are compiled for (docs/internals/gpu.md, S11).
  application.apiVersion = VK_API_VERSION_1_1;
  // No extensions of windows: kernels draw nothing.
  VkInstanceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  create.pApplicationInfo = &application;

  // Chained to the creation, it also hears what the creation and the
  // destruction of the instance report.
  VkDebugUtilsMessengerCreateInfoEXT listener{};
  listener.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT;
  listener.messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                             VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  // Not the general messages: in these the loader complains about drivers for
  // devices that are not there.
  listener.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                         VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  listener.pfnUserCallback = keepMessage;
  listener.pUserData = this;
  // Finds a missing barrier between two launches.
  VkValidationFeatureEnableEXT enabled[] = {
      VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  VkValidationFeaturesEXT features{};
  features.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT;
  features.pNext = &listener;
  features.enabledValidationFeatureCount = 1;
  features.pEnabledValidationFeatures = enabled;
  const char *extension = VK_EXT_DEBUG_UTILS_EXTENSION_NAME;
  // `features` is at the head of the chain, `listener` after it.
  if (validate) {
    create.pNext = &features;
    create.enabledLayerCount = 1;
    create.ppEnabledLayerNames = &validationLayer;
    create.enabledExtensionCount = 1;
    create.ppEnabledExtensionNames = &extension;
  }
  Status status = checkVulkan(vkCreateInstance(&create, nullptr, &handle),
                              "vkCreateInstance");
  if (status.isError()) {
    handle = VK_NULL_HANDLE;
    return {status.getCode() == KAS_RT_ERROR_OUT_OF_MEMORY
                ? status.getCode()
                : KAS_RT_ERROR_NO_DEVICE,
            "no Vulkan device: " + library.getName() + " was found, but " +
                status.getText()};
  }
// Functions of the instance, all before the check: the destructor needs
// `vkDestroyInstance` in any case.
#define KAS_LOAD(name)                                                         \
  name = reinterpret_cast<PFN_##name>(getFunction(handle, #name));
  KAS_VULKAN_FUNCTIONS(KAS_LOAD)
#undef KAS_LOAD
#define KAS_REQUIRE(name)                                                      \
  if (!name)                                                                   \
    return {KAS_RT_ERROR_NO_DEVICE,                                            \
            "no Vulkan device: looked for the function " #name " in " +        \
                library.getName() + ", which has none"};
  KAS_VULKAN_FUNCTIONS(KAS_REQUIRE)
#undef KAS_REQUIRE
  if (!validate)
    return {};
  auto createMessenger = reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(
      getFunction(handle, "vkCreateDebugUtilsMessengerEXT"));
  // The extension was enabled, so a loader without the function is broken.
  if (!createMessenger)
    return {KAS_RT_ERROR_VALIDATION,
            "KAS_RT_VALIDATION is 1: looked for the function "
            "vkCreateDebugUtilsMessengerEXT, got none"};
  return checkVulkan(createMessenger(handle, &listener, nullptr, &messenger),
                     "vkCreateDebugUtilsMessengerEXT");
}

Status VulkanInstance::open() {
  if (Status status = loadLibrary(); status.isError())
    return status;
  const char *variable = std::getenv("KAS_RT_VALIDATION");
  isValidating = variable && std::strcmp(variable, "1") == 0;
  if (isValidating)
    if (Status status = requireValidationLayer(*this); status.isError())
      return status;
  return createInstance(isValidating);
}

/// Keeps every library that is loaded in memory until the process ends.
static void keepLibraries() {
  std::vector<std::string> names;
  // Names first: libraries cannot be opened while the list is walked.
  dl_iterate_phdr(
      [](dl_phdr_info *info, size_t, void *data) {
        static_cast<std::vector<std::string> *>(data)->push_back(
            info->dlpi_name);
        return 0;
      },
      &names);
  for (const std::string &name : names)
    if (!name.empty())
      // Only marks libraries that are there as not to be unloaded.
      dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

// In the reverse order of creation. The messenger goes before the instance, yet
// `listener` at its creation still hears what the destruction reports.
void VulkanInstance::close() {
  if (!handle)
    return;
  // Memory that layers and drivers do not give back would otherwise have no
  // owner that a leak checker can name, as they are unloaded now.
  if (isValidating)
    keepLibraries();
  if (messenger)
    if (auto destroy = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
            getFunction(handle, "vkDestroyDebugUtilsMessengerEXT")))
      destroy(handle, messenger, nullptr);
  messenger = VK_NULL_HANDLE;
  if (vkDestroyInstance)
    vkDestroyInstance(handle, nullptr);
  handle = VK_NULL_HANDLE;
}

VulkanInstance::~VulkanInstance() { close(); }

Status VulkanInstance::takeMessages() {
  if (messages.empty())
    return {};
  std::string text = "the validation layer reports: " + messages.front();
  // An error is one line; the first message is usually the cause of the others.
  if (messages.size() > 1)
    text += " (and " + std::to_string(messages.size() - 1) + " more)";
  messages.clear();
  return {KAS_RT_ERROR_VALIDATION, text};
}

// A family for compute alone runs next to graphics, which may share the device
// with a desktop.
bool kas::rt::findComputeQueue(const VulkanInstance &instance,
                               VkPhysicalDevice device, uint32_t &family,
                               uint32_t &timestampBits) {
  uint32_t count = 0;
  instance.vkGetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  // This enumeration cannot fail.
  std::vector<VkQueueFamilyProperties> families(count);
  instance.vkGetPhysicalDeviceQueueFamilyProperties(device, &count,
                                                    families.data());
  // The first family that computes, unless a later one does nothing but
  // compute.
  bool found = false;
  for (uint32_t i = 0; i < count; ++i) {
    if (!(families[i].queueFlags & VK_QUEUE_COMPUTE_BIT))
      continue;
    bool alone = !(families[i].queueFlags & VK_QUEUE_GRAPHICS_BIT);
    if (found && !alone)
      continue;
    family = i;
    timestampBits = families[i].timestampValidBits;
    found = true;
    if (alone)
      break;
  }
  return found;
}

Status
VulkanInstance::listDevices(std::vector<VkPhysicalDevice> &devices) const {
  uint32_t count = 0;
  Status status =
      checkVulkan(vkEnumeratePhysicalDevices(handle, &count, nullptr),
                  "vkEnumeratePhysicalDevices");
  if (status.isError())
    return status;
  std::vector<VkPhysicalDevice> all(count);
  status = checkVulkan(vkEnumeratePhysicalDevices(handle, &count, all.data()),
                       "vkEnumeratePhysicalDevices");
  if (status.isError())
    return status;
  // Older devices and those that only draw are not counted, so indices are
  // those of usable devices.
  for (VkPhysicalDevice device : all) {
    VkPhysicalDeviceProperties2 properties{};
    properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
    vkGetPhysicalDeviceProperties2(device, &properties);
    uint32_t family, bits;
    if (properties.properties.apiVersion >= VK_API_VERSION_1_1 &&
        findComputeQueue(*this, device, family, bits))
      devices.push_back(device);
  }
  return {};
}

// An instance of its own, as no device is open yet.
Status kas::rt::countVulkanDevices(int32_t &count) {
  VulkanInstance instance;
  std::vector<VkPhysicalDevice> devices;
  Status status = instance.open();
  if (!status.isError())
    status = instance.listDevices(devices);
  if (!status.isError())
    count = static_cast<int32_t>(devices.size());
  return status;
}
