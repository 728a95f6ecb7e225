//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The attributes that say what a GPU offers and how a kernel is cut for it, and
// the model that chooses.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASGPU_IR_KASGPU_H
#define KAS_DIALECT_KASGPU_IR_KASGPU_H

#include "kas/Dialect/Kas/IR/ScheduleInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"
#include "llvm/Support/Error.h"

#include "kas/Dialect/KasGPU/IR/KasGPUDialect.h.inc"
#include "kas/Dialect/KasGPU/IR/KasGPUEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "kas/Dialect/KasGPU/IR/KasGPUAttrs.h.inc"

#endif // KAS_DIALECT_KASGPU_IR_KASGPU_H
