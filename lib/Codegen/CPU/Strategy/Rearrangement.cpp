//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A contraction on the rearranged copies of its tensors.
//
//===----------------------------------------------------------------------===//

#include "Rearrangement.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

SmallVector<int64_t> kas::codegen::getShape(const Contraction &contraction,
                                            ArrayRef<unsigned> loops) {
  return llvm::map_to_vector(
      loops, [&](unsigned loop) { return contraction.loops[loop].extent; });
}

Contraction kas::codegen::rearrange(const Contraction &contraction,
                                    const Rearrangement &rearrangement,
                                    ValueRange copied) {
  Contraction result = contraction;
  // A sum of everything has no index.
  MLIRContext *context = copied.empty()
                             ? contraction.output.front().getContext()
                             : copied.front().getContext();
  auto getDims = [&](ArrayRef<unsigned> loops) {
    return llvm::map_to_vector(
        loops, [&](unsigned loop) { return getAffineDimExpr(loop, context); });
  };
  for (auto [copy, value] : llvm::zip_equal(rearrangement.copies, copied)) {
    Contraction::Input &input = result.inputs[copy.input];
    input.value = value;
    input.indices.clear();
    llvm::append_range(input.indices, getDims(copy.loops));
  }
  if (!rearrangement.outputLoops.empty()) {
    result.output.clear();
    llvm::append_range(result.output, getDims(rearrangement.outputLoops));
  }
  return result;
}
