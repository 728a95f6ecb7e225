//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Opens libraries of kernels by name, and says why one cannot be used.
//
//===----------------------------------------------------------------------===//

#include "KernelLibrary.h"
#include "CudaDevice.h"

using namespace kas::rt;

//===----------------------------------------------------------------------===//
// The workspace
//===----------------------------------------------------------------------===//

Status LibraryWorkspace::open() {
  if (address)
    return {};
  Status status =
      device.check(device.driver.cuMemAlloc_v2(&address, bytes),
                   "cuMemAlloc of " + std::to_string(bytes) + " bytes");
  if (status.isError())
    address = 0;
  return status;
}

Status LibraryWorkspace::close() {
  return address
             ? device.check(device.driver.cuMemFree_v2(address), "cuMemFree")
             : Status();
}

//===----------------------------------------------------------------------===//
// A library
//===----------------------------------------------------------------------===//

Status KernelLibrary::check(int result, const char *what) {
  if (result == 0)
    return {};
  return {KAS_RT_ERROR_DRIVER,
          std::string(what) + " failed: status " + std::to_string(result)};
}

void *KernelLibrary::getWorkspace() const {
  return reinterpret_cast<void *>(device.workspace.address);
}

Status KernelLibrary::missing(const char *symbol) const {
  return {KAS_RT_ERROR_DRIVER,
          std::string("no ") + names.name + ": looked for the function " +
              symbol + " in " + library.getName() + ", which has none"};
}

Status KernelLibrary::checkVersion() {
  Version version = getVersion();
  std::string separator = " ";
  label = names.name;
  for (size_t number : version) {
    label += separator + std::to_string(number);
    separator = ".";
  }
  if (version[0] >= names.leastMajor && version[0] <= names.mostMajor)
    return {};
  std::string expected;
  for (size_t major = names.leastMajor; major <= names.mostMajor; ++major)
    expected += (expected.empty()           ? ""
                 : major == names.mostMajor ? " or "
                                            : ", ") +
                std::to_string(major);
  return {KAS_RT_ERROR_DRIVER, std::string("no ") + names.name +
                                   ": expected version " + expected + " in " +
                                   library.getName() + ", got " + label};
}

Status KernelLibrary::load() {
  Status status;
  for (const char *file : names.files) {
    // Never unloaded: its kernels are registered with the driver, and others in
    // the process, such as PyTorch, may have loaded it as well.
    Status found =
        library.open(names.name, file, names.variable, /*stays=*/true);
    // Of several errors the first one, which names the newest version.
    status = file == names.files[0] || !found.isError() ? found : status;
    if (!found.isError())
      break;
  }
  if (!status.isError())
    status = loadFunctions();
  return status.isError() ? status : checkVersion();
}

Status KernelLibrary::open() {
  if (isTried)
    return outcome;
  isTried = true;
  outcome = load();
  if (!outcome.isError()) {
    outcome = createHandle();
    hasHandle = !outcome.isError();
  }
  if (!outcome.isError())
    outcome = device.workspace.open();
  return outcome;
}

Status KernelLibrary::close() { return hasHandle ? destroyHandle() : Status(); }

Status LibraryCall::prepare() {
  Status status = kernels.open();
  return status.isError() ? status : describe();
}
