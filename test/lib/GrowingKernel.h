//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A kernel that grows by steps, of which those that are not legal, or too large
// to be run in a test, are not taken: what random kernels are made with.
//
//===----------------------------------------------------------------------===//

#ifndef KAS_TEST_LIB_GROWINGKERNEL_H
#define KAS_TEST_LIB_GROWINGKERNEL_H

#include "RandomKernel.h"
#include "kas/Support/Random.h"
#include "mlir/IR/Builders.h"

namespace kas::test {

class GrowingKernel {
public:
  /// Adds a kernel without steps, over drawn symbols `<C, H, W | G, K, A>` with
  /// G dividing C, to `module`; and the operators `@pointwise` and `@rows` when
  /// they are not there.
  GrowingKernel(mlir::ModuleOp module, llvm::StringRef name, uint64_t seed,
                const RandomKernelOptions &options);

protected:
  /// A tensor of the kernel with its sizes as numbers and a bound of its
  /// values.
  struct Tensor {
    mlir::Value value;
    llvm::SmallVector<int64_t> shape;
    unsigned numChannels;
    double magnitude;
    bool isUsed = false;
  };

  static SymbolicTensorType getType(const Tensor &tensor) {
    return llvm::cast<SymbolicTensorType>(tensor.value.getType());
  }
  static int64_t getRank(const Tensor &tensor) { return tensor.shape.size(); }
  static int64_t product(llvm::ArrayRef<int64_t> shape);

  SizeAttr symbol(llvm::StringRef name) {
    return SizeAttr::getSymbol(context, name);
  }
  SizeAttr number(int64_t value) {
    return SizeAttr::getConstant(context, value);
  }
  int64_t evaluate(SizeAttr size);
  Tensor describe(mlir::Value value, double magnitude);

  template <typename Entry>
  Entry pick(llvm::ArrayRef<Entry> entries) {
    return entries[random.below(entries.size())];
  }
  int64_t pick(std::initializer_list<int64_t> entries) {
    return pick(llvm::ArrayRef<int64_t>(entries.begin(), entries.size()));
  }
  bool flip() { return random.below(2) == 0; }
  /// A size for new channels.
  SizeAttr pickSize();
  SizeAttr pickWindow();
  Tensor &pickTensor();
  /// Some of the dimensions from `first` to `last` - 1, in any order.
  llvm::SmallVector<int64_t> pickDims(int64_t first, int64_t last);

  /// Takes the op when it is small and legal; otherwise nothing has happened.
  /// An op that does not infer its type is an error of ours, but one whose
  /// sizes do not fit is not.
  template <typename OpTy, typename... Arguments>
  bool add(llvm::ArrayRef<Tensor *> operands, double magnitude,
           Arguments &&...arguments) {
    auto op = OpTy::create(builder, builder.getUnknownLoc(),
                           std::forward<Arguments>(arguments)...);
    return keep(llvm::cast<DagOpInterface>(op.getOperation()), operands,
                magnitude);
  }

  mlir::MLIRContext *context;
  mlir::OpBuilder builder;
  Random random;
  const RandomKernelOptions &options;
  KernelOp kernel;
  /// Grows while references are held: a deque would do, but so few are needed.
  llvm::SmallVector<Tensor, 0> tensors;

private:
  void declare(mlir::ModuleOp module, llvm::StringRef name);
  double getPoints(const SizeProduct &term);
  bool keep(DagOpInterface step, llvm::ArrayRef<Tensor *> operands,
            double magnitude);

  llvm::SmallVector<int64_t> numbers;
};

} // namespace kas::test

#endif // KAS_TEST_LIB_GROWINGKERNEL_H
