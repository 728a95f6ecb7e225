//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ops of networks between their layers. Apart from Kas.h, so that those who
// need only operators do not compile them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASNETWORKOPS_H
#define KAS_DIALECT_KAS_IR_KASNETWORKOPS_H

#include "kas/Dialect/Kas/IR/Kas.h"

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasNetworkOps.h.inc"

#endif // KAS_DIALECT_KAS_IR_KASNETWORKOPS_H
