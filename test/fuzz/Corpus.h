//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The texts that fuzz tests start from.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_FUZZ_CORPUS_H
#define KAS_TEST_FUZZ_CORPUS_H

#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace kas::fuzz {

/// Reads files, or every `.mlir` file below folders in the order of their
/// names; a file is cut at its `// -----` lines. What cannot be read ends the
/// process with a message.
std::vector<std::string> readCorpus(const std::vector<std::string> &paths);

/// The pieces of a file of templates, without the comment at its start.
std::vector<std::string> splitTemplates(llvm::StringRef text);

} // namespace kas::fuzz

#endif // KAS_TEST_FUZZ_CORPUS_H
