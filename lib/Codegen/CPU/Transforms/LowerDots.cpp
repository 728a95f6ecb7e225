//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of bytes by what the target has for them.
//
//===----------------------------------------------------------------------===//

#include "PackOperations.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPUOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/TargetParser/Triple.h"

namespace kas::codegen {
#define GEN_PASS_DEF_LOWERDOTS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The instruction of `target` for a sum of `bits` bits, as LLVM names it;
/// empty if there is none.
static StringRef getIntrinsic(const Target &target, int64_t bits) {
  if (bits > target.byteDotBits)
    return "";
  llvm::Triple triple(target.triple);
  if (triple.isAArch64())
    return bits == 128 ? "llvm.aarch64.neon.usdot" : "";
  switch (bits) {
  case 128:
    return "llvm.x86.avx512.vpdpbusd.128";
  case 256:
    return "llvm.x86.avx512.vpdpbusd.256";
  case 512:
    return "llvm.x86.avx512.vpdpbusd.512";
  default:
    return "";
  }
}

/// One product after the other, each of bytes that are taken out of words.
static Value expandDot(OpBuilder &builder, DotOp op) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getSum().getType());
  auto splat = [&](int32_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(type, value));
  };
  Value lhs = vector::BitCastOp::create(builder, loc, type, op.getLhs());
  Value rhs = vector::BitCastOp::create(builder, loc, type, op.getRhs());
  Value sum = op.getSum();
  for (int32_t byte = 0; byte < 4; ++byte) {
    Value left = arith::ShRUIOp::create(builder, loc, lhs, splat(8 * byte));
    left = arith::AndIOp::create(builder, loc, left, splat(255));
    Value right =
        arith::ShLIOp::create(builder, loc, rhs, splat(24 - 8 * byte));
    right = arith::ShRSIOp::create(builder, loc, right, splat(24));
    Value product = arith::MulIOp::create(builder, loc, left, right);
    sum = arith::AddIOp::create(builder, loc, sum, product);
  }
  return sum;
}

static Value lowerDot(OpBuilder &builder, DotOp op, const Target &target) {
  auto type = cast<VectorType>(op.getSum().getType());
  StringRef intrinsic = getIntrinsic(target, 32 * type.getDimSize(0));
  if (intrinsic.empty())
    return expandDot(builder, op);
  // Arm's instruction takes the unsigned bytes first, as Intel's does.
  return LLVM::CallIntrinsicOp::create(
             builder, op.getLoc(), type, builder.getStringAttr(intrinsic),
             ValueRange{op.getSum(), op.getLhs(), op.getRhs()})
      .getResult(0);
}

namespace {
struct LowerDots : kas::codegen::impl::LowerDotsBase<LowerDots> {
  void runOnOperation() override {
    Target target = getContractionTarget(getOperation(), /*vectorBits=*/0);
    SmallVector<DotOp> dots;
    getOperation().walk([&](DotOp op) { dots.push_back(op); });
    for (DotOp op : dots) {
      OpBuilder builder(op);
      op.replaceAllUsesWith(lowerDot(builder, op, target));
      op.erase();
    }
  }
};
} // namespace
