//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How large random weights must be for activations to keep their size.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_ANALYSIS_FANIN_H
#define KAS_DIALECT_KAS_ANALYSIS_FANIN_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include <string>

namespace kas {

/// The number F for which independent weights with a product of variance 2 / F
/// keep the mean square of rectified data (He et al., "Delving Deep into
/// Rectifiers", ICCV 2015, section 2.2, carried over to operators): with T
/// terms per output, over which W different products of weight elements are
/// distributed, each product multiplies the sum of R = T / W elements. Such
/// elements are taken as fully correlated, as neighbours after a rectifier
/// nearly are, hence F = W * R**2. A mean over M counts 1 / M**2 of a sum; a
/// maximum counts as one term. `binding` must be legal.
double getFanIn(OperatorOp op, const Binding &binding);

/// The attribute `kas.init` of each weight of `op`: `kaiming(...)` with the
/// same variance for all, whose product is 2 / F. `binding` must be legal.
std::string getWeightInitializer(OperatorOp op, const Binding &binding);

} // namespace kas

#endif // KAS_DIALECT_KAS_ANALYSIS_FANIN_H
