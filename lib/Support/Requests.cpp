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
    if (!value)
      return value.takeError();
    const llvm::json::Object *request = value->getAsObject();
    std::optional<int64_t> id =
        request ? request->getInteger("id") : std::nullopt;
    if (!id)
      return llvm::createStringError("requires objects with an integer 'id'");
    llvm::json::Object answer = common;
    answer["id"] = *id;
    if (Expected<llvm::json::Object> metrics = evaluate(*request))
      answer["metrics"] = std::move(*metrics);
    else
      answer["error"] = llvm::toString(metrics.takeError());
    llvm::outs() << llvm::json::Value(std::move(answer)) << "\n";
    llvm::outs().flush();
  }
  return Error::success();
}
