//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Finds the CUDA toolkit with ptxas and libdevice: option, environment, PATH,
// system folder, Python packages.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/Toolkit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"

using namespace llvm;

/// The compiler of PTX, and the library that LLVM links with.
static bool isToolkit(StringRef folder) {
  SmallString<128> assembler(folder), library(folder);
  sys::path::append(assembler, "bin", "ptxas");
  sys::path::append(library, "nvvm", "libdevice", "libdevice.10.bc");
  return sys::fs::can_execute(assembler) && sys::fs::exists(library);
}

/// The folders of a Python environment in which packages put CUDA's tools.
static void addPythonFolders(StringRef site, SmallVectorImpl<std::string> &to) {
  // One folder per component in the wheels of CUDA 11 and 12 (`cuda_nvcc`), one
  // for all in newer ones.
  for (StringRef package : {"cuda_nvcc", "cu13", "cu12"}) {
    SmallString<128> path(site);
    sys::path::append(path, "nvidia", package);
    to.push_back(path.str().str());
  }
}

/// The same for the environment `root`, of whatever version of Python. Versions
/// are sorted, since the order of a folder's entries is not defined.
static void addVirtualEnvironment(StringRef root,
                                  SmallVectorImpl<std::string> &to) {
  SmallString<128> library(root);
  sys::path::append(library, "lib");
  SmallVector<std::string> versions;
  std::error_code error;
  for (sys::fs::directory_iterator entry(library, error), end;
       !error && entry != end; entry.increment(error))
    if (sys::path::filename(entry->path()).starts_with("python"))
      versions.push_back(entry->path());
  llvm::sort(versions);
  for (const std::string &version : versions) {
    SmallString<128> site(version);
    sys::path::append(site, "site-packages");
    addPythonFolders(site, to);
  }
}

Expected<std::string> kas::codegen::findCUDAToolkit(StringRef given) {
  SmallVector<std::string> folders;
  // A folder that the user names is the only candidate: falling back to
  // another version would hide a mistake.
  if (!given.empty()) {
    folders.push_back(given.str());
  } else {
    for (StringRef name : {"CUDA_ROOT", "CUDA_HOME", "CUDA_PATH"})
      if (auto value = sys::Process::GetEnv(name); value && !value->empty())
        folders.push_back(*value);
    if (auto program = sys::findProgramByName("ptxas")) {
      // A link in PATH may lead to the real place.
      SmallString<128> real;
      if (sys::fs::real_path(*program, real))
        real = *program;
      folders.push_back(
          sys::path::parent_path(sys::path::parent_path(real)).str());
    }
    folders.push_back("/usr/local/cuda");
    if (auto site = sys::Process::GetEnv("KAS_PYTHON_SITE"))
      addPythonFolders(*site, folders);
    if (auto root = sys::Process::GetEnv("VIRTUAL_ENV"))
      addVirtualEnvironment(*root, folders);
  }
  std::string looked;
  for (const std::string &folder : folders) {
    if (isToolkit(folder))
      return folder;
    looked += "\n  " + folder;
  }
  return createStringError(
      "expected bin/ptxas and nvvm/libdevice/libdevice.10.bc for formats other "
      "than ptx (install the CUDA toolkit, or the Python package "
      "nvidia-cuda-nvcc), got neither or one of them in:" +
      looked);
}
