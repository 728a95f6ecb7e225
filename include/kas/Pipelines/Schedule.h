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

#ifndef KAS_PIPELINES_SCHEDULE_H
#define KAS_PIPELINES_SCHEDULE_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Dialect.h"

#include "kas/Pipelines/ScheduleDialect.h.inc"
#include "kas/Pipelines/ScheduleEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "kas/Pipelines/ScheduleAttrs.h.inc"

#endif // KAS_PIPELINES_SCHEDULE_H
