//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Conversion of the nvgpu and kas_gpu operations of warps (ldmatrix, mma.sync,
// cp.async) to NVVM.
// Used in place of upstream's `convert-nvgpu-to-nvvm`, which has no bf16 for
// `mma.sync`, truncates factors of tf32, and expects indices of 64 bits. A
// fragment `vector<4x2xf16>` is an array of four vectors in LLVM, one per
// 32-bit register.
//
//===----------------------------------------------------------------------===//

#include "WarpToNVVM.h"
#include "kas/Codegen/GPU/NVVM.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/Conversion/ConvertToLLVM/ToLLVMInterface.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// The `values` as elements of the array that a vector of vectors becomes.
static Value pack(ImplicitLocOpBuilder &b, Type type, ValueRange values) {
  Value result = LLVM::PoisonOp::create(b, type);
  for (auto [i, value] : llvm::enumerate(values))
    result =
        LLVM::InsertValueOp::create(b, result, value, static_cast<int64_t>(i));
  return result;
}

static Value getElement(ImplicitLocOpBuilder &b, Value vector, int64_t i) {
  return LLVM::ExtractElementOp::create(
      b, vector, LLVM::ConstantOp::create(b, b.getI32IntegerAttr(i)));
}

namespace {

/// Registers are loaded as 32-bit integers, whatever they hold.
struct LdMatrixLowering : ConvertOpToLLVMPattern<nvgpu::LdMatrixOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(nvgpu::LdMatrixOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value pointer = getStridedElementPtr(
        rewriter, op.getLoc(), cast<MemRefType>(op.getSrcMemref().getType()),
        adaptor.getSrcMemref(), adaptor.getIndices());
    auto count = static_cast<int64_t>(op.getNumTiles());
    Type i32 = b.getI32Type();
    Type loadedType = count == 1
                          ? i32
                          : LLVM::LLVMStructType::getLiteral(
                                getContext(), SmallVector<Type>(count, i32));
    Value loaded = NVVM::LdMatrixOp::create(
        b, loadedType, pointer, static_cast<uint32_t>(count),
        op.getTranspose() ? NVVM::MMALayout::col : NVVM::MMALayout::row,
        NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
        NVVM::LdStMatrixEltType::B16);
    Type type = getTypeConverter()->convertType(op.getType());
    Type registerType = cast<LLVM::LLVMArrayType>(type).getElementType();
    SmallVector<Value> registers;
    for (int64_t i = 0; i < count; ++i) {
      Value bits = loaded;
      if (count > 1)
        bits = LLVM::ExtractValueOp::create(b, loaded, i);
      registers.push_back(LLVM::BitcastOp::create(b, registerType, bits));
    }
    rewriter.replaceOp(op, pack(b, type, registers));
    return success();
  }
};

/// The inverse: registers of two numbers each, as integers of 32 bits.
struct StoreMatrixLowering : ConvertOpToLLVMPattern<StoreMatrixOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(StoreMatrixOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value pointer = getStridedElementPtr(
        rewriter, op.getLoc(), cast<MemRefType>(op.getMemory().getType()),
        adaptor.getMemory(), adaptor.getAddress());
    SmallVector<Value> registers;
    auto type = cast<LLVM::LLVMArrayType>(adaptor.getFragments().getType());
    for (unsigned i = 0; i < type.getNumElements(); ++i)
      registers.push_back(LLVM::BitcastOp::create(
          b, b.getI32Type(),
          LLVM::ExtractValueOp::create(b, adaptor.getFragments(), i)));
    NVVM::StMatrixOp::create(b, pointer, registers, NVVM::MMALayout::row,
                             NVVM::LdStMatrixShapeAttr::get(getContext(), 8, 8),
                             NVVM::LdStMatrixEltType::B16);
    rewriter.eraseOp(op);
    return success();
  }
};

/// `mma.sync` takes factors as registers and sums as scalars.
struct MmaSyncLowering : ConvertOpToLLVMPattern<nvgpu::MmaSyncOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  /// The registers of a fragment as the instruction takes them. `isRounded`:
  /// those of f32 have been rounded before.
  static SmallVector<Value> getFactors(ImplicitLocOpBuilder &b, Value array,
                                       bool isRounded) {
    SmallVector<Value> registers;
    auto type = cast<LLVM::LLVMArrayType>(array.getType());
    for (unsigned i = 0; i < type.getNumElements(); ++i) {
      Value value = LLVM::ExtractValueOp::create(b, array, i);
      Type elementType =
          cast<VectorType>(type.getElementType()).getElementType();
      // `cvt.rna.tf32`: to nearest, ties away from zero. The instruction itself
      // ignores the low 13 bits, which would round towards zero.
      if (elementType.isF32() && isRounded)
        value =
            LLVM::BitcastOp::create(b, b.getI32Type(), getElement(b, value, 0));
      else if (elementType.isF32())
        value = NVVM::ConvertFloatToTF32Op::create(
            b, b.getI32Type(), getElement(b, value, 0),
            NVVM::FPRoundingMode::RNA, NVVM::SaturationMode::NONE,
            /*relu=*/false);
      // bf16 pairs are plain 32-bit registers for the intrinsic; those of f16
      // are vectors.
      else if (elementType.isBF16())
        value = LLVM::BitcastOp::create(b, b.getI32Type(), value);
      registers.push_back(value);
    }
    return registers;
  }

  /// The four sums of a lane, from `vector<2x2xf32>`.
  static SmallVector<Value> getSums(ImplicitLocOpBuilder &b, Value array) {
    SmallVector<Value> sums;
    for (int64_t i = 0; i < 2; ++i) {
      Value pair = LLVM::ExtractValueOp::create(b, array, i);
      for (int64_t j = 0; j < 2; ++j)
        sums.push_back(getElement(b, pair, j));
    }
    return sums;
  }

  LogicalResult
  matchAndRewrite(nvgpu::MmaSyncOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Type elementType =
        cast<VectorType>(op.getMatrixA().getType()).getElementType();
    auto sumType = cast<VectorType>(op.getType());
    if (!sumType.getElementType().isF32() || sumType.getNumElements() != 4)
      return rewriter.notifyMatchFailure(op, "expected four sums in f32");
    if (elementType.isF32() && !op.getTf32Enabled())
      return rewriter.notifyMatchFailure(op, "expected factors in tf32");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    NVVM::MMATypes type = elementType.isF32()    ? NVVM::MMATypes::tf32
                          : elementType.isBF16() ? NVVM::MMATypes::bf16
                                                 : NVVM::MMATypes::f16;
    Type resultType = LLVM::LLVMStructType::getLiteral(
        getContext(), SmallVector<Type>(4, b.getF32Type()));
    Value result = NVVM::MmaOp::create(
        b, resultType,
        getFactors(b, adaptor.getMatrixA(), KasGPUDialect::isRounded(op, 0)),
        getFactors(b, adaptor.getMatrixB(), KasGPUDialect::isRounded(op, 1)),
        getSums(b, adaptor.getMatrixC()), op.getMmaShapeAsArray(),
        /*b1Op=*/std::nullopt,
        /*intOverflow=*/std::nullopt, std::array{type, type},
        std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
    SmallVector<Value> pairs;
    for (int64_t i = 0; i < 2; ++i) {
      Value pair =
          LLVM::PoisonOp::create(b, VectorType::get({2}, b.getF32Type()));
      for (int64_t j = 0; j < 2; ++j)
        pair = LLVM::InsertElementOp::create(
            b, pair, LLVM::ExtractValueOp::create(b, result, 2 * i + j),
            LLVM::ConstantOp::create(b, b.getI32IntegerAttr(j)));
      pairs.push_back(pair);
    }
    rewriter.replaceOp(
        op, pack(b, getTypeConverter()->convertType(sumType), pairs));
    return success();
  }
};

/// `cp.async` of 4, 8 or 16 bytes; the rest of a shorter source is zeros.
struct AsyncCopyLowering : ConvertOpToLLVMPattern<nvgpu::DeviceAsyncCopyOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(nvgpu::DeviceAsyncCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto getPointer = [&](Value memref, Value descriptor, ValueRange indices) {
      return getStridedElementPtr(rewriter, op.getLoc(),
                                  cast<MemRefType>(memref.getType()),
                                  descriptor, indices);
    };
    Value target =
        getPointer(op.getDst(), adaptor.getDst(), adaptor.getDstIndices());
    Value source =
        getPointer(op.getSrc(), adaptor.getSrc(), adaptor.getSrcIndices());
    // `cp.async` takes a pointer to global memory; buffers are generic
    // pointers.
    source = LLVM::AddrSpaceCastOp::create(
        b,
        LLVM::LLVMPointerType::get(
            getContext(), static_cast<unsigned>(NVVM::NVVMMemorySpace::Global)),
        source);
    int64_t elementBytes =
        cast<MemRefType>(op.getDst().getType()).getElementTypeBitWidth() / 8;
    int64_t bytes = op.getDstElements().getSExtValue() * elementBytes;
    // Fewer bytes than `bytes`: the rest of the target is filled with zeros.
    Value sourceBytes;
    if (Value elements = adaptor.getSrcElements()) {
      if (elements.getType() != b.getI32Type())
        elements = LLVM::TruncOp::create(b, b.getI32Type(), elements);
      sourceBytes = LLVM::MulOp::create(
          b, elements,
          LLVM::ConstantOp::create(b, b.getI32IntegerAttr(elementBytes)));
    }
    // Only copies of 16 bytes can bypass L1 (`.cg`).
    auto modifier = op.getBypassL1() && bytes == 16
                        ? NVVM::LoadCacheModifierKind::CG
                        : NVVM::LoadCacheModifierKind::CA;
    NVVM::CpAsyncOp::create(
        b, target, source, b.getI32IntegerAttr(bytes),
        NVVM::LoadCacheModifierKindAttr::get(getContext(), modifier),
        sourceBytes);
    // Any value for a token, of which only the number of groups matters.
    rewriter.replaceOp(op, LLVM::ConstantOp::create(b, b.getI32IntegerAttr(0)));
    return success();
  }
};

/// Commits the copies since the last group.
struct GroupLowering : ConvertOpToLLVMPattern<nvgpu::DeviceAsyncCreateGroupOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(nvgpu::DeviceAsyncCreateGroupOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    NVVM::CpAsyncCommitGroupOp::create(rewriter, op.getLoc());
    // Groups are counted; tokens have no value.
    rewriter.replaceOpWithNewOp<LLVM::ConstantOp>(
        op, rewriter.getI32IntegerAttr(0));
    return success();
  }
};

/// Waits until at most so many groups are in flight.
struct WaitLowering : ConvertOpToLLVMPattern<nvgpu::DeviceAsyncWaitOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(nvgpu::DeviceAsyncWaitOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncWaitGroupOp>(
        op, rewriter.getI32IntegerAttr(
                static_cast<int32_t>(op.getNumGroups().value_or(0))));
    return success();
  }
};

struct WarpToNVVMInterface : ConvertToLLVMPatternInterface {
  using ConvertToLLVMPatternInterface::ConvertToLLVMPatternInterface;

  void loadDependentDialects(MLIRContext *context) const override {
    context->loadDialect<NVVM::NVVMDialect, nvgpu::NVGPUDialect>();
  }

  void populateConvertToLLVMConversionPatterns(
      ConversionTarget &target, LLVMTypeConverter &converter,
      RewritePatternSet &patterns) const override {
    converter.addConversion([](nvgpu::DeviceAsyncTokenType type) -> Type {
      return IntegerType::get(type.getContext(), 32);
    });
    patterns.add<LdMatrixLowering, StoreMatrixLowering, MmaSyncLowering,
                 AsyncCopyLowering, GroupLowering, WaitLowering>(converter);
    addWarpgroupPatterns(converter, patterns);
    // What no pattern lowers is an error here, not in the translation.
    target.addIllegalDialect<nvgpu::NVGPUDialect, KasGPUDialect>();
  }
};

} // namespace

void kas::codegen::registerConvertKasGPUToNVVMInterface(
    DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *, KasGPUDialect *dialect) {
    // `-kas-gpu-prepare-nvvm` loads this dialect, also for kernels that use
    // nvgpu only.
    dialect->addInterfaces<WarpToNVVMInterface>();
  });
}
