//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Registers the dialect kas and its interfaces.
// The verifiers of discardable attributes are in KasDiscardableAttrs.cpp.
//
//===----------------------------------------------------------------------===//

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Dialect/Kas/IR/KasDag.h"
#include "kas/Dialect/Kas/IR/KasNetworkOps.h"
#include "kas/Dialect/Kas/IR/KasSequenceOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace kas;

#include "kas/Dialect/Kas/IR/KasDialect.cpp.inc"
#include "kas/Dialect/Kas/IR/KasEnums.cpp.inc"
#include "kas/Dialect/Kas/IR/KasInterfaces.cpp.inc"

#include "kas/Dialect/Kas/IR/KasDagEnums.cpp.inc"
#include "kas/Dialect/Kas/IR/KasDagInterfaces.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "kas/Dialect/Kas/IR/KasTypes.cpp.inc"

namespace {
/// All that a function may have of this dialect is about its operands alone.
struct KasInlinerInterface : DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;

  bool isLegalToInline(Operation *op, Region *dest, bool wouldBeCloned,
                       IRMapping &mapping) const final {
    return true;
  }
};
} // namespace

/// Op lists are one per TableGen file, so that who needs only operators does
/// not compile the others.
void KasDialect::initialize() {
  addInterfaces<KasInlinerInterface>();
  registerAttributes();
  registerBytecode();
  addTypes<
#define GET_TYPEDEF_LIST
#include "kas/Dialect/Kas/IR/KasTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "kas/Dialect/Kas/IR/KasOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "kas/Dialect/Kas/IR/KasDagOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "kas/Dialect/Kas/IR/KasNetworkOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "kas/Dialect/Kas/IR/KasSequenceOps.cpp.inc"
      >();
}
