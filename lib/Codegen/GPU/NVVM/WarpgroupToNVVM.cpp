//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The operations of warpgroups in the NVVM dialect.
// Sums are `vector<Nx2x2xf32>` in kas_gpu (8 N columns) and 4 N scalars in a
// struct for the instruction. Source: PTX ISA, "mbarrier",
// "cp.async.bulk.tensor", "Asynchronous warpgroup level matrix instructions".
//
//===----------------------------------------------------------------------===//

#include "WarpToNVVM.h"
#include "kas/Dialect/KasGPU/IR/KasGPUOps.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

static Value createConstant(ImplicitLocOpBuilder &b, Type type, int64_t value) {
  return LLVM::ConstantOp::create(b, b.getIntegerAttr(type, value));
}

/// `value`, an index or a coordinate, in 32 bits.
static Value toI32(ImplicitLocOpBuilder &b, Value value) {
  if (value.getType() == b.getI32Type())
    return value;
  return LLVM::TruncOp::create(b, b.getI32Type(), value);
}

/// The numbers of a vector of vectors of vectors.
static SmallVector<Value> unpackSums(ImplicitLocOpBuilder &b, Value sums) {
  SmallVector<Value> numbers;
  auto type = cast<LLVM::LLVMArrayType>(sums.getType());
  auto count = static_cast<int64_t>(type.getNumElements());
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = 0; j < 2; ++j) {
      Value pair =
          LLVM::ExtractValueOp::create(b, sums, ArrayRef<int64_t>{i, j});
      for (int64_t k = 0; k < 2; ++k)
        numbers.push_back(LLVM::ExtractElementOp::create(
            b, pair, createConstant(b, b.getI32Type(), k)));
    }
  return numbers;
}

/// The inverse of `unpackSums`.
static Value packSums(ImplicitLocOpBuilder &b, Type type,
                      ArrayRef<Value> numbers) {
  Value sums = LLVM::PoisonOp::create(b, type);
  for (size_t i = 0; i < numbers.size(); i += 2) {
    Value pair =
        LLVM::PoisonOp::create(b, VectorType::get({2}, b.getF32Type()));
    for (int64_t k = 0; k < 2; ++k)
      pair = LLVM::InsertElementOp::create(
          b, pair, numbers[i + k], createConstant(b, b.getI32Type(), k));
    sums = LLVM::InsertValueOp::create(
        b, sums, pair,
        ArrayRef<int64_t>{static_cast<int64_t>(i / 4),
                          static_cast<int64_t>(i / 2 % 2)});
  }
  return sums;
}

namespace {

template <typename Op>
/// What the patterns below have in common: addresses in workgroup memory.
struct WarpgroupPattern : ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;

protected:
  /// The address of element `number` of the memref.
  Value getPointer(ConversionPatternRewriter &rewriter, Location loc,
                   Value memref, Value descriptor, Value number) const {
    return this->getStridedElementPtr(
        rewriter, loc, cast<MemRefType>(memref.getType()), descriptor, number);
  }
  /// Of the barrier that `op` names by its number.
  Value getBarrier(ConversionPatternRewriter &rewriter, Op op,
                   typename Op::Adaptor adaptor) const {
    return getPointer(rewriter, op.getLoc(), op.getBarriers(),
                      adaptor.getBarriers(), adaptor.getNumber());
  }
};

/// One `mbarrier.init` per barrier.
struct InitBarriersLowering : WarpgroupPattern<InitBarriersOp> {
  using WarpgroupPattern::WarpgroupPattern;

  LogicalResult
  matchAndRewrite(InitBarriersOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto type = cast<MemRefType>(op.getBarriers().getType());
    if (!type.hasStaticShape())
      return rewriter.notifyMatchFailure(op, "expected a number of barriers");
    // One arrival ends a phase: that of the thread that says how many bytes it
    // expects.
    Value one = createConstant(b, b.getI32Type(), 1);
    for (int64_t i = 0; i < type.getNumElements(); ++i) {
      Value number = createConstant(b, getIndexType(), i);
      NVVM::MBarrierInitOp::create(b,
                                   getPointer(rewriter, op.getLoc(),
                                              op.getBarriers(),
                                              adaptor.getBarriers(), number),
                                   one, /*predicate=*/Value());
    }
    // The copy engine sees them, too.
    NVVM::FenceMbarrierInitOp::create(b);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Arrives at the barrier and adds the bytes that copies will bring.
struct ExpectBytesLowering : WarpgroupPattern<ExpectBytesOp> {
  using WarpgroupPattern::WarpgroupPattern;

  LogicalResult
  matchAndRewrite(ExpectBytesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value barrier = getBarrier(rewriter, op, adaptor);
    Value bytes =
        createConstant(b, b.getI32Type(), static_cast<int64_t>(op.getBytes()));
    // The operation has an optional result, which the short builders do not
    // leave out.
    OperationState state(op.getLoc(),
                         NVVM::MBarrierArriveExpectTxOp::getOperationName());
    NVVM::MBarrierArriveExpectTxOp::build(
        b, state, /*res=*/Type(), barrier, bytes, NVVM::MemScopeKind::CTA,
        /*relaxed=*/false, /*predicate=*/Value());
    b.create(state);
    rewriter.eraseOp(op);
    return success();
  }
};

/// A loop around `mbarrier.try_wait.parity`, which NVVM emits.
struct AwaitPhaseLowering : WarpgroupPattern<AwaitPhaseOp> {
  using WarpgroupPattern::WarpgroupPattern;

  LogicalResult
  matchAndRewrite(AwaitPhaseOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value barrier = getBarrier(rewriter, op, adaptor);
    // How long a thread may sleep at once, in nanoseconds.
    Value ticks = createConstant(b, b.getI32Type(), 10000000);
    NVVM::MBarrierTryWaitParityOp::create(b, barrier,
                                          toI32(b, adaptor.getParity()), ticks);
    rewriter.eraseOp(op);
    return success();
  }
};

/// The descriptor, coordinates in elements and a barrier are all that the copy
/// engine needs; it computes addresses and bounds by itself.
struct TensorCopyLowering : WarpgroupPattern<TensorCopyOp> {
  using WarpgroupPattern::WarpgroupPattern;

  LogicalResult
  matchAndRewrite(TensorCopyOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    if (!op.getDescriptor())
      return rewriter.notifyMatchFailure(
          op, "expected a descriptor (see -kas-gpu-pass-tensor-maps)");
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value target = getPointer(rewriter, op.getLoc(), op.getMemory(),
                              adaptor.getMemory(), adaptor.getOffset());
    Value barrier = getBarrier(rewriter, op, adaptor);
    SmallVector<Value> coordinates;
    for (Value coordinate : adaptor.getCoordinates())
      coordinates.push_back(toI32(b, coordinate));
    // Without a cluster, its workgroup memory is that of the block.
    auto cluster = LLVM::LLVMPointerType::get(
        getContext(),
        static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
    NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
        b, LLVM::AddrSpaceCastOp::create(b, cluster, target),
        adaptor.getDescriptor(), coordinates, barrier,
        /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
        /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
        /*group=*/nullptr, /*predicate=*/Value());
    rewriter.eraseOp(op);
    return success();
  }
};

/// 64 bits: the address, which is known at run time only, and fixed bits.
struct MatrixDescriptorLowering : WarpgroupPattern<MatrixDescriptorOp> {
  using WarpgroupPattern::WarpgroupPattern;

  LogicalResult
  matchAndRewrite(MatrixDescriptorOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value pointer = getPointer(rewriter, op.getLoc(), op.getMemory(),
                               adaptor.getMemory(), adaptor.getOffset());
    Type i32 = b.getI32Type(), i64 = b.getI64Type();
    Value address = LLVM::PtrToIntOp::create(b, i32, pointer);
    // All threads of a warp have the same, which the assembler cannot know.
    address = NVVM::ShflOp::create(
        b, i32, createConstant(b, i32, -1), address, createConstant(b, i32, 0),
        createConstant(b, i32, 31), NVVM::ShflKind::idx, UnitAttr());
    // 18 bits of the address in workgroup memory, in units of 16 bytes.
    address = LLVM::AndOp::create(b, address, createConstant(b, i32, 0x3ffff));
    address = LLVM::LShrOp::create(b, address, createConstant(b, i32, 4));
    address = LLVM::ZExtOp::create(b, i64, address);
    rewriter.replaceOpWithNewOp<LLVM::OrOp>(
        op, address, createConstant(b, i64, op.getFixedBits()));
    return success();
  }
};

/// The sums are both operand and result; LLVM keeps them in the same registers.
struct WarpgroupMmaLowering : WarpgroupPattern<WarpgroupMmaOp> {
  using WarpgroupPattern::WarpgroupPattern;

  LogicalResult
  matchAndRewrite(WarpgroupMmaOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> numbers = unpackSums(b, adaptor.getSums());
    Type type = LLVM::LLVMStructType::getLiteral(
        getContext(), SmallVector<Type>(numbers.size(), b.getF32Type()));
    Value sums = LLVM::PoisonOp::create(b, type);
    for (auto [i, number] : llvm::enumerate(numbers))
      sums =
          LLVM::InsertValueOp::create(b, sums, number, static_cast<int64_t>(i));
    Type elementType =
        cast<MemRefType>(op.getRowMemory().getType()).getElementType();
    auto factors =
        elementType.isBF16() ? NVVM::WGMMATypes::bf16 : NVVM::WGMMATypes::f16;
    auto columns = static_cast<int>(2 * numbers.size());
    // Both are `row` or `col` as in a product of row-major matrices: steps are
    // neighbours in rows of the one and in columns of the other.
    auto layout = [](bool isRow) {
      return isRow ? NVVM::MMALayout::row : NVVM::MMALayout::col;
    };
    Value result = NVVM::WgmmaMmaAsyncOp::create(
        b, type, sums, adaptor.getRows(), adaptor.getColumns(),
        NVVM::MMAShapeAttr::get(getContext(), 64, columns, 16), factors,
        factors, NVVM::WGMMATypes::f32, NVVM::WGMMAScaleOut::one,
        NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one,
        layout(!op.getTransposeRows()), layout(op.getTransposeColumns()),
        /*satfinite=*/nullptr);
    numbers.clear();
    for (unsigned i = 0; i < cast<LLVM::LLVMStructType>(type).getBody().size();
         ++i)
      numbers.push_back(LLVM::ExtractValueOp::create(b, result, i));
    rewriter.replaceOp(op, packSums(b, adaptor.getSums().getType(), numbers));
    return success();
  }
};

/// `nvvm.wgmma.wait.group.sync.aligned` has no operands: LLVM would move what
/// reads the sums before it.
struct WarpgroupWaitLowering : WarpgroupPattern<WarpgroupWaitOp> {
  using WarpgroupPattern::WarpgroupPattern;

  LogicalResult
  matchAndRewrite(WarpgroupWaitOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    SmallVector<Value> numbers;
    for (Value value : adaptor.getValues()) {
      if (isa<LLVM::LLVMArrayType>(value.getType()))
        numbers.append(unpackSums(b, value));
      else
        numbers.push_back(value);
    }
    // Inline assembly with each register as output and, by its number, as the
    // input tied to it: "=f,=f,...,0,1,...". LLVM then cannot move a reader of
    // a sum before the wait, nor copy a sum to another register.
    SmallVector<Type> types;
    std::string outputs, inputs;
    for (auto [i, number] : llvm::enumerate(numbers)) {
      types.push_back(number.getType());
      outputs += number.getType().isF32()         ? "=f,"
                 : number.getType().isInteger(32) ? "=r,"
                                                  : "=l,";
      inputs += std::to_string(i) + ",";
    }
    auto assembly = LLVM::InlineAsmOp::create(
        b, LLVM::LLVMStructType::getLiteral(getContext(), types), numbers,
        "wgmma.wait_group.sync.aligned " + std::to_string(op.getGroups()) + ";",
        outputs + inputs + "~{memory}", /*has_side_effects=*/true,
        /*is_align_stack=*/false, LLVM::TailCallKind::None,
        /*asm_dialect=*/nullptr, /*operand_attrs=*/nullptr);
    for (auto [i, number] : llvm::enumerate(numbers))
      number = LLVM::ExtractValueOp::create(b, assembly.getResult(0),
                                            static_cast<int64_t>(i));
    SmallVector<Value> results;
    ArrayRef<Value> rest = numbers;
    for (Value value : adaptor.getValues()) {
      auto type = dyn_cast<LLVM::LLVMArrayType>(value.getType());
      if (!type) {
        results.push_back(rest.consume_front());
        continue;
      }
      size_t count = type.getNumElements() * 4;
      results.push_back(packSums(b, type, rest.take_front(count)));
      rest = rest.drop_front(count);
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void kas::codegen::addWarpgroupPatterns(const LLVMTypeConverter &converter,
                                        RewritePatternSet &patterns) {
  patterns.add<
      InitBarriersLowering, ExpectBytesLowering, AwaitPhaseLowering,
      TensorCopyLowering, MatrixDescriptorLowering, WarpgroupMmaLowering,
      WarpgroupWaitLowering,
      OneToOneConvertToLLVMPattern<WarpgroupFenceOp, NVVM::WgmmaFenceAlignedOp>,
      OneToOneConvertToLLVMPattern<WarpgroupCommitOp,
                                   NVVM::WgmmaGroupSyncAlignedOp>>(converter);
}
