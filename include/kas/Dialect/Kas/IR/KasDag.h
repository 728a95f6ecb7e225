//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensor level of the kas dialect: kernels as graphs of tensors of symbolic
// shape. Apart from Kas.h, so that those who need only operators do not compile
// it.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_DIALECT_KAS_IR_KASDAG_H
#define KAS_DIALECT_KAS_IR_KASDAG_H

#include "kas/Dialect/Kas/IR/Kas.h"
#include "kas/Solver/SizeRules.h"
#include "kas/Solver/TensorRules.h"

namespace kas {
class DagOutputOp;
class KernelOp;

/// `factor` times the product of `sizes`: one term of a cost.
struct SizeProduct {
  int64_t factor = 1;
  llvm::SmallVector<SizeAttr> sizes;
};

/// The dimensions of a tensor; null is a size that does not fit.
struct DagShape {
  unsigned rank = 0, numChannels = 0;
  llvm::SmallVector<SizeAttr> dims;

  DagShape() = default;
  explicit DagShape(SymbolicTensorType type)
      : rank(type.getRank()), numChannels(type.getNumChannelDims()),
        dims(type.getDims()) {}
  explicit DagShape(mlir::Value tensor)
      : DagShape(llvm::cast<SymbolicTensorType>(tensor.getType())) {}

  void append(SizeAttr size) {
    dims.push_back(size);
    ++rank;
  }
  void append(const DagShape &from, unsigned dim) { append(from.dims[dim]); }
};

/// Tensors of the dialect, for `solver::TensorRules`.
struct DagDomain {
  using Size = SizeAttr;
  using Shape = DagShape;
  using Product = llvm::SmallVector<SizeAttr>;
  mlir::MLIRContext *context;

  SizeAttr one() const { return SizeAttr::getConstant(context, 1); }
  SizeAttr multiply(SizeAttr a, SizeAttr b) const {
    return a && b ? a.multiply(b) : SizeAttr();
  }
  SizeAttr divide(SizeAttr a, SizeAttr b) const {
    return a && b ? a.divide(b) : SizeAttr();
  }
  bool contains(llvm::ArrayRef<int64_t> dims, int64_t dim) const {
    return llvm::is_contained(dims, dim);
  }
  void add(Product &product, SizeAttr size) const { product.push_back(size); }
  void add(Product &product, const DagShape &x, solver::DimRange range) const {
    product.append(x.dims.begin() + range.first, x.dims.begin() + range.second);
  }
  void add(Product &product, const DagShape &x,
           llvm::ArrayRef<int64_t> dims) const {
    for (int64_t dim : dims)
      product.push_back(x.dims[dim]);
  }
};
using DagRules = solver::TensorRules<DagDomain>;
} // namespace kas

#include "kas/Dialect/Kas/IR/KasDagEnums.h.inc"
#include "kas/Dialect/Kas/IR/KasDagInterfaces.h.inc"

#define GET_OP_CLASSES
#include "kas/Dialect/Kas/IR/KasDagOps.h.inc"

namespace kas {

/// The product of `sizes`, or null when it does not fit.
SizeAttr getProduct(mlir::MLIRContext *context, llvm::ArrayRef<SizeAttr> sizes);

/// Operations per element.
constexpr unsigned getFlopsPerElement(DagUnaryKind kind) {
  return kind == DagUnaryKind::GELU      ? 4
         : kind == DagUnaryKind::Sigmoid ? 3
         : kind == DagUnaryKind::TanH    ? 5
                                         : 1;
}

/// What a verified kernel says about its symbols. The variables of a solved
/// kernel are ordinary symbols.
solver::SizeRules getSizeRules(KernelOp kernel);

/// The shape of a tensor of a verified kernel, over its symbols.
solver::TensorShape getShape(mlir::Value tensor, const SymbolSet &symbols);

} // namespace kas

#endif // KAS_DIALECT_KAS_IR_KASDAG_H
