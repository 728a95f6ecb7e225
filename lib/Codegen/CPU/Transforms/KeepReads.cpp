//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Loops on buffers among operations on tensors read where they are: keeps the
// `bufferization.to_buffer` of two loop nests apart, and tensors that are read
// as buffers from being overwritten, before CSE, canonicalization and
// bufferization.
//
// It is there because contractions become loops on buffers before everything
// else is bufferized, and after that they would be slower: on tensors a padding
// is an operation still, so that tiles read the data unpadded
// (`matchUnpadded`), the only reader of a result becomes its epilogue without a
// proof about aliases (`findReader`), and it is known which operands come from
// weights. CSE and canonicalization between both steps cannot be left out
// either: they merge the elementwise operations and copies that emitters make.
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/Kas/IR/Kas.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASKEEPREADSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace mlir;

/// Whether something after `op` reads its buffer: a read that has folded, or
/// one that will.
static bool isReadLater(bufferization::ToTensorOp op) {
  // Casts of the tensor fold as well.
  SmallVector<Value> tensors = {op.getResult()};
  while (!tensors.empty())
    for (Operation *user : tensors.pop_back_val().getUsers()) {
      // It folds into the buffer, and bufferization does not see it any more.
      if (isa<bufferization::ToBufferOp>(user))
        return true;
      if (isa<tensor::CastOp>(user))
        tensors.push_back(user->getResult(0));
    }
  return llvm::any_of(op.getBuffer().getUsers(), [&](Operation *user) {
    Operation *ancestor = op->getBlock()->findAncestorOpInBlock(*user);
    return ancestor && op->isBeforeInBlock(ancestor);
  });
}

/// Whether an operation on tensors may compute its result in place of `op`'s.
static bool mayBeWritten(bufferization::ToTensorOp op) {
  return op.getWritable() &&
         !llvm::all_of(
             op->getUsers(),
             llvm::IsaPred<bufferization::ToBufferOp, func::ReturnOp>);
}

namespace {

struct KeepReads : kas::codegen::impl::KasKeepReadsPassBase<KeepReads> {
  void runOnOperation() override {
    Builder builder(&getContext());
    // A number makes equal reads different operations, which CSE leaves alone.
    int64_t count = 0;
    getOperation().walk([&](bufferization::ToBufferOp op) {
      op->setAttr(kas::KasDialect::readAttrName,
                  builder.getI64IntegerAttr(count++));
    });
    // Nothing is known of a read that folds into the buffer it is of.
    getOperation().walk([](bufferization::ToTensorOp op) {
      if (mayBeWritten(op) && isReadLater(op))
        op.setWritable(false);
    });
  }
};

} // namespace
