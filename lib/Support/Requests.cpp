//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop of worker programs: a JSON request per line in, an answer per line
// out.
// The protocol is that of docs/guide/searching.md: `{"id": 3, ...}` is answered
// by `{"id": 3, "metrics": {...}}` or by `{"id": 3, "error": "..."}`.
//
//===----------------------------------------------------------------------===//

#include "kas/Support/Requests.h"
#include "llvm/Support/raw_ostream.h"
#include <iostream>
#include <string>

using namespace kas;
using llvm::Error;
using llvm::Expected;

Error kas::answerRequests(
    const llvm::json::Object &common,
    llvm::function_ref<Expected<llvm::json::Object>(const llvm::json::Object &)>
        evaluate) {
  for (std::string line; std::getline(std::cin, line);) {
    Expected<llvm::json::Value> value = llvm::json::parse(line);
    // A line that is no request ends the worker: no answer could say which
    // request it belongs to, and the search would wait forever.
    if (!value)
      return value.takeError();
    const llvm::json::Object *request = value->getAsObject();
    // Without an id the asking side could not match the answer.
    std::optional<int64_t> id =
        request ? request->getInteger("id") : std::nullopt;
    if (!id)
      return llvm::createStringError("requires objects with an integer 'id'");
    // Fields that each answer has, such as the name of the machine.
    llvm::json::Object answer = common;
    answer["id"] = *id;
    // A candidate that fails is an answer like any other; the loop goes on.
    if (Expected<llvm::json::Object> metrics = evaluate(*request))
      answer["metrics"] = std::move(*metrics);
    else
      answer["error"] = llvm::toString(metrics.takeError());
    llvm::outs() << llvm::json::Value(std::move(answer)) << "\n";
    // The reader waits for this line before it sends the next request.
    llvm::outs().flush();
  }
  return Error::success();
}
