//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A directory for the files of one test.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_LIB_TEMPORARYDIRECTORY_H
#define TEST_LIB_TEMPORARYDIRECTORY_H

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace kas {

/// Gone, with all that is in it, with this object.
class TemporaryDirectory {
public:
  TemporaryDirectory() {
    llvm::cantFail(llvm::errorCodeToError(
        llvm::sys::fs::createUniqueDirectory("kas-test", path)));
  }
  ~TemporaryDirectory() { llvm::sys::fs::remove_directories(path); }

  std::string getPath(llvm::StringRef name) const {
    llvm::SmallString<128> result(path);
    llvm::sys::path::append(result, name);
    return result.str().str();
  }

private:
  llvm::SmallString<128> path;
};

inline std::string readFile(llvm::StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

inline void writeFile(llvm::StringRef path, llvm::StringRef contents) {
  std::error_code code;
  llvm::raw_fd_ostream(path, code) << contents;
}

} // namespace kas

#endif // TEST_LIB_TEMPORARYDIRECTORY_H
