//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products of narrow elements by what the target has for them: `kas_cpu.dot`
// becomes one instruction (x86: AVX512-VNNI and AVX512-BF16, Arm: USDOT and
// BFDOT), for i16 one and an addition (x86 without VNNI: VPMADDWD) or, where
// there is none, arithmetic with the same results. The views of bf16 and i16 as
// VNNI groups of 32 bits go as well.
//
//===----------------------------------------------------------------------===//

#include "../Strategy/ContractionTarget.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPUOps.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/TargetParser/Triple.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASLOWERDOTPRODUCTSPASS
#include "kas/Codegen/CPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The instruction of `target` for a sum of `bits` bits, as LLVM names it;
/// empty if there is none.
static StringRef getIntrinsic(const Target &target, int64_t bits,
                              bool isOfInt8) {
  // The target says up to which vector size it has the instructions.
  if (bits > (isOfInt8 ? target.byteDotBits : target.bfloatDotBits))
    return "";
  llvm::Triple triple(target.triple);
  if (triple.isAArch64() && bits == 128)
    return isOfInt8 ? "llvm.aarch64.neon.usdot" : "llvm.aarch64.neon.bfdot";
  if (!triple.isX86())
    return "";
  switch (bits) {
  case 128:
    return isOfInt8 ? "llvm.x86.avx512.vpdpbusd.128"
                    : "llvm.x86.avx512bf16.dpbf16ps.128";
  case 256:
    return isOfInt8 ? "llvm.x86.avx512.vpdpbusd.256"
                    : "llvm.x86.avx512bf16.dpbf16ps.256";
  case 512:
    return isOfInt8 ? "llvm.x86.avx512.vpdpbusd.512"
                    : "llvm.x86.avx512bf16.dpbf16ps.512";
  default:
    return "";
  }
}

/// The instruction of `target` that multiplies i16 and adds neighbors to sums
/// of `bits` bits; empty if there is none.
static StringRef getShortIntrinsic(const Target &target, int64_t bits) {
  if (bits > target.shortDotBits)
    return "";
  switch (bits) {
  case 128:
    return "llvm.x86.sse2.pmadd.wd";
  case 256:
    return "llvm.x86.avx2.pmadd.wd";
  case 512:
    return "llvm.x86.avx512.pmaddw.d.512";
  default:
    return "";
  }
}

/// `sum` plus products of i16 in pairs by the instruction `intrinsic`.
static Value addShortProducts(OpBuilder &builder, Location loc, Value sum,
                              Value lhs, Value rhs, StringRef intrinsic) {
  Value products = LLVM::CallIntrinsicOp::create(
                       builder, loc, sum.getType(),
                       builder.getStringAttr(intrinsic), ValueRange{lhs, rhs})
                       .getResult(0);
  return arith::AddIOp::create(builder, loc, sum, products);
}

/// Products of i16 in pairs, by arithmetic on each half of the 32 bits.
static Value expandInt16Dot(OpBuilder &builder, DotOp op) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getSum().getType());
  Value bits = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, int32_t(16)));
  auto widen = [&](Value elements, bool isUpper) -> Value {
    Value pair = vector::BitCastOp::create(builder, loc, type, elements);
    if (!isUpper)
      pair = arith::ShLIOp::create(builder, loc, pair, bits);
    return arith::ShRSIOp::create(builder, loc, pair, bits);
  };
  Value sum = op.getSum();
  for (bool isUpper : {false, true}) {
    Value product = arith::MulIOp::create(
        builder, loc, widen(op.getLhs(), isUpper), widen(op.getRhs(), isUpper));
    sum = arith::AddIOp::create(builder, loc, sum, product);
  }
  return sum;
}

/// The bytes at even and at odd indices, widened to i16, in two vectors that
/// are multiplied and added in pairs. No sum overflows: 2 * 255 * 128 < 2^31.
/// Dot products that share an operand share its widened form.
static Value expandInt8ToShorts(OpBuilder &builder, DotOp op,
                                StringRef intrinsic) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getSum().getType());
  auto shorts = VectorType::get({type.getDimSize(0) * 2}, builder.getI16Type());
  auto splat = [&](int16_t value) {
    return arith::ConstantOp::create(builder, loc,
                                     DenseElementsAttr::get(shorts, value));
  };
  Value lhs = vector::BitCastOp::create(builder, loc, shorts, op.getLhs());
  Value rhs = vector::BitCastOp::create(builder, loc, shorts, op.getRhs());
  Value eight = splat(8);
  // The bytes of `lhs` are unsigned, those of `rhs` signed.
  Value evenLhs = arith::AndIOp::create(builder, loc, lhs, splat(255));
  Value oddLhs = arith::ShRUIOp::create(builder, loc, lhs, eight);
  Value evenRhs = arith::ShLIOp::create(builder, loc, rhs, eight);
  evenRhs = arith::ShRSIOp::create(builder, loc, evenRhs, eight);
  Value oddRhs = arith::ShRSIOp::create(builder, loc, rhs, eight);
  Value sum = op.getSum();
  for (auto [left, right] :
       {std::pair(evenLhs, evenRhs), std::pair(oddLhs, oddRhs)})
    sum = addShortProducts(builder, loc, sum, left, right, intrinsic);
  return sum;
}

/// One product after the other, each of bytes that are taken out of VNNI
/// groups. Each lane of 32 bits holds four bytes, the first in the lowest bits.
static Value expandInt8Dot(OpBuilder &builder, DotOp op) {
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
    // The bytes of `lhs` are unsigned: shifted down and masked.
    left = arith::AndIOp::create(builder, loc, left, splat(255));
    Value right =
        // Those of `rhs` are signed: shifted up to the sign bit, and down
        // arithmetically.
        arith::ShLIOp::create(builder, loc, rhs, splat(24 - 8 * byte));
    right = arith::ShRSIOp::create(builder, loc, right, splat(24));
    Value product = arith::MulIOp::create(builder, loc, left, right);
    sum = arith::AddIOp::create(builder, loc, sum, product);
  }
  return sum;
}

/// A bf16 is the upper half of the f32 of the same value. An FMA rounds as an
/// addition does, since products of bf16 are exact. The upper element of each
/// pair is added first, as `vdpbf16ps` does.
static Value expandBFloatDot(OpBuilder &builder, DotOp op,
                             const Target &target) {
  Location loc = op.getLoc();
  auto type = cast<VectorType>(op.getSum().getType());
  auto words = type.clone(builder.getI32Type());
  auto splat = [&](uint32_t value) {
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(words, static_cast<int32_t>(value)));
  };
  auto widen = [&](Value elements, bool isUpper) -> Value {
    Value bits = vector::BitCastOp::create(builder, loc, words, elements);
    bits =
        isUpper
            // The element at the odd index is the upper half of the VNNI group.
            ? arith::AndIOp::create(builder, loc, bits, splat(0xffff0000))
                  .getResult()
            : arith::ShLIOp::create(builder, loc, bits, splat(16)).getResult();
    return vector::BitCastOp::create(builder, loc, type, bits);
  };
  Value sum = op.getSum();
  for (bool isUpper : {true, false}) {
    Value lhs = widen(op.getLhs(), isUpper), rhs = widen(op.getRhs(), isUpper);
    if (target.hasFMA) {
      sum = vector::FMAOp::create(builder, loc, lhs, rhs, sum);
      continue;
    }
    Value product = arith::MulFOp::create(builder, loc, lhs, rhs);
    sum = arith::AddFOp::create(builder, loc, product, sum);
  }
  return sum;
}

static Value lowerDot(OpBuilder &builder, DotOp op, const Target &target) {
  auto type = cast<VectorType>(op.getSum().getType());
  Type element = cast<VectorType>(op.getLhs().getType()).getElementType();
  int64_t bits = 32 * type.getDimSize(0);
  StringRef shorts = getShortIntrinsic(target, bits);
  if (element.isInteger(16))
    return shorts.empty() ? expandInt16Dot(builder, op)
                          : addShortProducts(builder, op.getLoc(), op.getSum(),
                                             op.getLhs(), op.getRhs(), shorts);
  bool isOfInt8 = element.isInteger(8);
  StringRef intrinsic = getIntrinsic(target, bits, isOfInt8);
  if (intrinsic.empty() && isOfInt8) {
    return shorts.empty() ? expandInt8Dot(builder, op)
                          : expandInt8ToShorts(builder, op, shorts);
  }
  if (intrinsic.empty())
    return expandBFloatDot(builder, op, target);
  // Arm's instruction takes the unsigned bytes first, as Intel's does.
  return LLVM::CallIntrinsicOp::create(
             builder, op.getLoc(), type, builder.getStringAttr(intrinsic),
             ValueRange{op.getSum(), op.getLhs(), op.getRhs()})
      .getResult(0);
}

/// The same memory, described as one of VNNI groups.
static Value lowerView(OpBuilder &builder, ViewVNNIGroupsOp op,
                       const LLVMTypeConverter &converter) {
  Location loc = op.getLoc();
  auto describe = [&](Value value, Type type) {
    // Between a memref and its descriptor; the casts cancel out when memrefs
    // are converted to LLVM.
    return UnrealizedConversionCastOp::create(builder, loc, type, value)
        .getResult(0);
  };
  Type resultType = op.getResult().getType();
  Type descriptor = converter.convertType(resultType);
  MemRefDescriptor source(describe(
      op.getSource(), converter.convertType(op.getSource().getType())));
  auto result = MemRefDescriptor::poison(builder, loc, descriptor);
  result.setAllocatedPtr(builder, loc, source.allocatedPtr(builder, loc));
  result.setAlignedPtr(builder, loc, source.alignedPtr(builder, loc));
  // `flattenInput` views whole buffers, from the start of their allocation.
  result.setConstantOffset(builder, loc, 0);
  result.setConstantSize(builder, loc, 0,
                         cast<MemRefType>(resultType).getDimSize(0));
  result.setConstantStride(builder, loc, 0, 1);
  return describe(result, resultType);
}

namespace {
struct LowerDotProducts
    : kas::codegen::impl::KasLowerDotProductsPassBase<LowerDotProducts> {
  void runOnOperation() override {
    Target target = getContractionTarget(getOperation(), /*vectorBits=*/0);
    SmallVector<DotOp> dots;
    getOperation().walk([&](DotOp op) { dots.push_back(op); });
    for (DotOp op : dots) {
      OpBuilder builder(op);
      op.replaceAllUsesWith(lowerDot(builder, op, target));
      op.erase();
    }
    // Of int8 there are `memref.view`s instead, which upstream lowers.
    SmallVector<ViewVNNIGroupsOp> views;
    getOperation().walk([&](ViewVNNIGroupsOp op) { views.push_back(op); });
    if (views.empty())
      return;
    LLVMTypeConverter converter(&getContext());
    for (ViewVNNIGroupsOp op : views) {
      OpBuilder builder(op);
      op.replaceAllUsesWith(lowerView(builder, op, converter));
      op.erase();
    }
  }
};
} // namespace
