//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//
// The attribute by which people and tuners say how a contraction is cut.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASCPU_IR_KASCPU_H
#define KAS_DIALECT_KASCPU_IR_KASCPU_H

#include "kas/Dialect/Kas/IR/ScheduleInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"

#include "kas/Dialect/KasCPU/IR/KasCPUDialect.h.inc"
#include "kas/Dialect/KasCPU/IR/KasCPUEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "kas/Dialect/KasCPU/IR/KasCPUAttrs.h.inc"

#endif // KAS_DIALECT_KASCPU_IR_KASCPU_H
