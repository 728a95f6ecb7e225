//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations of warpgroups, and the copies that feed them.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KASGPU_IR_KASGPUOPS_H
#define KAS_DIALECT_KASGPU_IR_KASGPUOPS_H

#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h.inc"

#endif // KAS_DIALECT_KASGPU_IR_KASGPUOPS_H
