//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A shared library that is loaded when it is needed.
//
//===----------------------------------------------------------------------===//

#ifndef LIB_RUNTIME_LIBRARY_H
#define LIB_RUNTIME_LIBRARY_H

#include "Status.h"

namespace kas::rt {

/// Closes the library when it goes.
class Library {
public:
  Library() = default;
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  /// Loads `name`, or what the environment variable says instead. `what` is
  /// what a text calls it: `CUDA driver`. One that `stays` is not unloaded.
  Status open(const char *what, const char *name, const char *variable,
              bool stays = false);

  /// Null when the library has no such function.
  void *lookUp(const char *symbol) const;
  const std::string &getName() const { return name; }

private:
  void *handle = nullptr;
  std::string name;
};

} // namespace kas::rt

#endif // LIB_RUNTIME_LIBRARY_H
