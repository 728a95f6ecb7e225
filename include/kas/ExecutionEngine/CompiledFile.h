//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Files of compiled code: machine code, what is to be known about it, and
// tensors. `CompiledFunction::save` and the cache of what was compiled have
// this one format (docs/internals/rfc/0006-compiled-files.md).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_EXECUTIONENGINE_COMPILEDFILE_H
#define KAS_EXECUTIONENGINE_COMPILEDFILE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <memory>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
class raw_ostream;
} // namespace llvm

namespace kas::execution {

/// The machines that code runs on.
struct CodeTarget {
  std::string triple;
  /// That the processor must have, as LLVM names them, sorted.
  std::vector<std::string> features;

  /// Of what `machine` compiles.
  static CodeTarget get(const llvm::TargetMachine &machine);
  /// An error where this machine is none of them: another architecture, or
  /// a processor that lacks features.
  llvm::Error checkRunsHere() const;
};

/// A description and parts, each of which begins at a multiple of 64 bytes of
/// the file.
struct CompiledFile {
  /// Alignment of a part in bytes.
  static constexpr uint64_t alignment = 64;

  llvm::json::Object description;
  CodeTarget target;
  /// In `memory`.
  llvm::SmallVector<llvm::StringRef> parts;
  std::unique_ptr<llvm::MemoryBuffer> memory;

  /// Writes a file. The version of kas and the target are part of it.
  static void write(llvm::raw_ostream &stream, const CodeTarget &target,
                    llvm::json::Object description,
                    llvm::ArrayRef<llvm::StringRef> parts);

  /// Reads what `write` has written. Errors: something else, a file that is
  /// damaged, in any byte that matters, one of another version of kas, code for
  /// another machine.
  static llvm::Expected<CompiledFile>
  read(std::unique_ptr<llvm::MemoryBuffer> memory);

  /// The same of a file, which is mapped: it may be removed or replaced, but
  /// not written to. Messages begin with `path`.
  static llvm::Expected<CompiledFile> read(llvm::StringRef path);
};

} // namespace kas::execution

#endif // KAS_EXECUTIONENGINE_COMPILEDFILE_H
