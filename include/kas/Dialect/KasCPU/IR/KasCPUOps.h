//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The products of narrow elements.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASCPU_IR_KASCPUOPS_H
#define KAS_DIALECT_KASCPU_IR_KASCPUOPS_H

#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#define GET_OP_CLASSES
#include "kas/Dialect/KasCPU/IR/KasCPUOps.h.inc"

#endif // KAS_DIALECT_KASCPU_IR_KASCPUOPS_H
