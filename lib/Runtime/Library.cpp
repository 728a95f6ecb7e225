//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loads a driver's shared library, or the one that an environment variable
// names.
//
//===----------------------------------------------------------------------===//

#include "Library.h"
#include "Device.h"
#include <cstdlib>
#include <dlfcn.h>

using namespace kas::rt;

Library::~Library() {
  if (handle)
    dlclose(handle);
}

// RTLD_LOCAL: the driver's symbols must not take the place of those of another
// copy in the process. RTLD_NOW: a library that lacks something fails here, not
// in the middle of a call.
Status Library::open(const char *what, const char *defaultName,
                     const char *variable, bool stays) {
  const char *other = std::getenv(variable);
  // An empty variable counts as none.
  name = other && *other ? other : defaultName;
  handle =
      dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | (stays ? RTLD_NODELETE : 0));
  if (handle)
    return {};
  // Must be taken before any other call of the loader.
  const char *reason = dlerror();
  return {KAS_RT_ERROR_NO_DEVICE,
          std::string("no ") + what + ": looked for the library " + name +
              (other && *other
                   ? std::string(" (from ") + variable + ")"
                   : std::string(" (") + variable + " names another)") +
              ", got: " + makeOneLine(reason ? reason : "no reason")};
}

void *Library::lookUp(const char *symbol) const {
  return dlsym(handle, symbol);
}

// Messages of drivers and layers have line breaks; an error is one line.
std::string kas::rt::makeOneLine(const std::string &text) {
  std::string line;
  bool space = false;
  for (char c : text) {
    if (c == '\n' || c == '\r' || c == '\t' || c == ' ') {
      space = true;
      continue;
    }
    if (space && !line.empty())
      line += ' ';
    space = false;
    line += c;
  }
  return line;
}
