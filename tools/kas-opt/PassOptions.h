//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Errors in the options of passes that say which there are.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TOOLS_KAS_OPT_PASSOPTIONS_H
#define KAS_TOOLS_KAS_OPT_PASSOPTIONS_H

#include "llvm/ADT/ArrayRef.h"

/// Checks the options of kas's passes and pipelines on the command line, also
/// inside of `--pass-pipeline`. Where a pass does not take them, prints an
/// error that names it, and its options, to the standard error stream.
bool checkPassOptions(llvm::ArrayRef<const char *> arguments);

#endif // KAS_TOOLS_KAS_OPT_PASSOPTIONS_H
