//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Corpus.h"
#include "Mutator.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace kas::fuzz;

std::vector<std::string>
kas::fuzz::readCorpus(const std::vector<std::string> &paths) {
  std::vector<std::string> files;
  for (const std::string &path : paths) {
    if (!llvm::sys::fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::error_code error;
    for (llvm::sys::fs::recursive_directory_iterator file(path, error), end;
         file != end && !error; file.increment(error))
      if (llvm::sys::path::extension(file->path()) == ".mlir")
        files.push_back(file->path());
  }
  llvm::sort(files);
  std::vector<std::string> corpus;
  for (const std::string &file : files) {
    auto buffer = llvm::MemoryBuffer::getFile(file);
    if (!buffer) {
      llvm::errs() << "error: cannot read '" << file
                   << "': " << buffer.getError().message() << "\n";
      exit(1);
    }
    llvm::SmallVector<llvm::StringRef> pieces;
    (*buffer)->getBuffer().split(pieces, "// -----");
    for (llvm::StringRef piece : pieces)
      if (!piece.trim().empty() && piece.size() <= Mutator::maxLength)
        corpus.push_back(piece.str());
  }
  return corpus;
}

std::vector<std::string> kas::fuzz::splitTemplates(llvm::StringRef text) {
  while (text.starts_with("#") && !text.starts_with("#csr"))
    text = text.split('\n').second;
  llvm::SmallVector<llvm::StringRef> pieces;
  text.split(pieces, "-----\n");
  std::vector<std::string> result;
  for (llvm::StringRef piece : pieces)
    result.push_back(piece.str());
  return result;
}
