//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sizes of a kernel as numbers.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_LIB_REFERENCE_KERNELSIZES_H
#define KAS_LIB_REFERENCE_KERNELSIZES_H

#include "kas/Reference/KernelEvaluator.h"

namespace kas::reference {

/// No step may have more elements: 2 GiB of values.
inline constexpr int64_t maxElements = int64_t(1) << 28;

using KernelShape = llvm::SmallVector<int64_t>;

/// Sizes of a kernel as numbers.
struct SizeValues {
  SymbolSet symbols;
  const Binding &binding;
  EmitErrorFn emitError;

  llvm::FailureOr<int64_t> get(SizeAttr size) const {
    std::optional<int64_t> value = evaluate(size, symbols, binding);
    if (!value)
      return emitError() << "requires sizes that are integers (K3), got "
                         << size << " at this binding";
    return *value;
  }

  llvm::FailureOr<KernelShape> get(llvm::ArrayRef<SizeAttr> sizes) const {
    KernelShape shape;
    for (SizeAttr size : sizes) {
      llvm::FailureOr<int64_t> value = get(size);
      if (mlir::failed(value))
        return mlir::failure();
      shape.push_back(*value);
    }
    std::optional<int64_t> numElements = getNumElements(shape);
    if (!numElements || *numElements > maxElements)
      return emitError() << "requires at most " << maxElements
                         << " elements in each tensor";
    return shape;
  }

  llvm::FailureOr<KernelShape> get(mlir::Type type) const {
    return get(llvm::cast<SymbolicTensorType>(type).getDims());
  }
};

/// The product of some extents, all of a tensor that fits.
inline int64_t product(llvm::ArrayRef<int64_t> extents) {
  return *getNumElements(extents);
}

} // namespace kas::reference

#endif // KAS_LIB_REFERENCE_KERNELSIZES_H
