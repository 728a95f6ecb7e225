//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Texts of assertions that compiled functions return: the location in the model
// and the message.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/Common/Assertions.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

std::string kas::codegen::getAssertionText(Location location,
                                           StringRef message) {
  std::string text;
  // The first position in a file that the location, a name, call or fusion
  // perhaps, holds. Without one the text is the message alone.
  location->walk([&](Location part) {
    auto place = dyn_cast<FileLineColLoc>(part);
    if (!place)
      return WalkResult::advance();
    text = (place.getFilename().getValue() + ":" + Twine(place.getLine()) +
            ":" + Twine(place.getColumn()) + ": ")
               .str();
    return WalkResult::interrupt();
  });
  return text + message.str();
}
