//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The side of a worker in the protocol of JSON lines by which searches have
// candidates evaluated (docs/guide/searching.md).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_SUPPORT_REQUESTS_H
#define KAS_SUPPORT_REQUESTS_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"

namespace kas {

/// Answers each line of the standard input, a JSON object with an integer `id`,
/// by one line on the standard output: `common`, the `id`, and what `evaluate`
/// gives as `metrics`, or why it fails as `error`. Returns at the end of the
/// input; an error for a line that is no such object.
llvm::Error
answerRequests(const llvm::json::Object &common,
               llvm::function_ref<llvm::Expected<llvm::json::Object>(
                   const llvm::json::Object &)>
                   evaluate);

} // namespace kas

#endif // KAS_SUPPORT_REQUESTS_H
