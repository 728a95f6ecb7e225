//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Output files that are whole or not there: never half-written.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_OUTPUTFILE_H
#define KAS_SUPPORT_OUTPUTFILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace kas {

/// Writes a file through a temporary one beside it and a rename, so that an old
/// file stays whole when `write` or the disk fails. Symbolic links are
/// followed; devices and pipes are written directly. Errors name the file.
llvm::Error
writeFile(llvm::StringRef path,
          llvm::function_ref<llvm::Error(llvm::raw_ostream &)> write);

} // namespace kas

#endif // KAS_SUPPORT_OUTPUTFILE_H
