//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SPIR-V for the tests, written in MLIR's dialect.
//
//===----------------------------------------------------------------------===//

#ifndef TEST_UNITTESTS_RUNTIME_SPIRVTEXT_H
#define TEST_UNITTESTS_RUNTIME_SPIRVTEXT_H

#include <string>

/// The bytes of a `spirv.module`; empty, with the reason on stderr, when
/// `text` is none.
std::string assembleSpirv(const std::string &text);

/// `add` of three arrays of 64 floats with 32 threads in a block; beside it
/// `twice`, which writes two times the first array to the second through memory
/// of the workgroup. The module says that the first array is not written; of
/// the second one nothing, though `add` only reads it.
std::string getSpirvKernels();

#endif // TEST_UNITTESTS_RUNTIME_SPIRVTEXT_H
