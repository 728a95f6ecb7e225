//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes metrics and origin of a candidate as attributes of its operation.
//
//===----------------------------------------------------------------------===//

#include "kas/Search/Operators/Score.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/IR/Builders.h"

using namespace kas;
using namespace kas::search;

/// Counts are exact up to 2^53. All metrics but these are real numbers.
static mlir::Attribute getAttribute(mlir::Builder &builder,
                                    llvm::StringRef name, double value) {
  if (name == "flops" || name == "flops_unprepared" ||
      name == "training_flops" || name == "params" || name == "bytes")
    return builder.getI64IntegerAttr(static_cast<int64_t>(value));
  return builder.getF64FloatAttr(value);
}

/// Attributes of an earlier search are replaced.
void kas::search::setScore(mlir::Operation *op, const Metrics &metrics,
                           llvm::StringRef space,
                           std::optional<uint64_t> candidate) {
  mlir::Builder builder(op->getContext());
  mlir::NamedAttrList score;
  for (const auto &[name, value] : metrics)
    score.append(name, getAttribute(builder, name, value));
  op->setAttr(KasDialect::scoreAttrName, score.getDictionary(op->getContext()));
  op->setAttr(KasDialect::originAttrName, builder.getStringAttr(space));
  if (candidate)
    op->setAttr(KasDialect::candidateAttrName,
                builder.getI64IntegerAttr(static_cast<int64_t>(*candidate)));
}
