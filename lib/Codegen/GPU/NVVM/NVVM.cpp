//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// From kernels to PTX, or with CUDA's tools to machine code.
// Two passes run before and after upstream's `convert-gpu-to-nvvm`: one
// states what it must not lose (alignment, `noalias`, loops not to unroll,
// intrinsics for functions that PTX has), the other one writes what it drops
// and serializes. Each step answers a pitfall of docs/internals/gpu.md,
// "Pitfalls of the toolchain" (N1, N4, N5, N9, N12, N15, N16).
//
//===----------------------------------------------------------------------===//

#include "kas/Codegen/GPU/NVVM.h"
#include "TensorMaps.h"
#include "kas/Codegen/GPU/GPU.h"
#include "kas/Codegen/GPU/Passes.h"
#include "kas/Codegen/GPU/Toolkit.h"
#include "kas/Dialect/KasGPU/IR/KasGPU.h"
#include "kas/Support/FileLocation.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

namespace kas::codegen {
#define GEN_PASS_DEF_KASGPUPREPARENVVMPASS
#define GEN_PASS_DEF_KASGPUSERIALIZENVVMPASS
#include "kas/Codegen/GPU/Passes.h.inc"
} // namespace kas::codegen

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

/// What loads of four f32 need.
static constexpr int64_t alignment = 16;

/// An attribute of `scf.for` that conversions hand on to the branch back.
static constexpr llvm::StringLiteral annotationName = "llvm.loop_annotation";

namespace {
struct GPUPrepareNVVM
    : kas::codegen::impl::KasGPUPrepareNVVMPassBase<GPUPrepareNVVM> {
  void getDependentDialects(DialectRegistry &registry) const override {
    KasGPUPrepareNVVMPassBase::getDependentDialects(registry);
    registry.insert<KasGPUDialect>();
    // Needed by `convert-gpu-to-nvvm`, the next pass of the pipeline.
    registerConvertKasGPUToNVVMInterface(registry);
  }

  /// What conversion upstream makes calls of a library of.
  template <typename MathOp>
  void useIntrinsic(StringRef name) {
    SmallVector<MathOp> ops;
    getOperation()->walk([&](MathOp op) { ops.push_back(op); });
    for (MathOp op : ops) {
      OpBuilder before(op);
      auto call = LLVM::CallIntrinsicOp::create(
          before, op.getLoc(), op.getType(), before.getStringAttr(name),
          op->getOperands());
      op.replaceAllUsesWith(call.getResult(0));
      op.erase();
    }
  }

  /// Copies one block of steps while it multiplies another: several rounds at
  /// once take registers and give nothing.
  void keepLoopsWithBarriers() {
    MLIRContext *context = &getContext();
    // The `disable` flag.
    auto unroll = LLVM::LoopUnrollAttr::get(
        context, BoolAttr::get(context, true), {}, {}, {}, {}, {}, {});
    auto annotation =
        LLVM::LoopAnnotationAttr::get(context, {}, {}, {}, unroll, {}, {}, {},
                                      {}, {}, {}, {}, {}, {}, {}, {});
    // A barrier marks the main loop of a staged kernel; the loop of products
    // within it has none and may be unrolled.
    getOperation()->walk([&](gpu::BarrierOp barrier) {
      if (auto loop = dyn_cast<scf::ForOp>(barrier->getParentOp()))
        loop->setAttr(annotationName, annotation);
    });
  }

  /// LLVM has no conversions between floats and wider integers for NVPTX.
  LogicalResult checkConversions() {
    auto isWide = [](Type type) {
      return getElementTypeOrSelf(type).isInteger() &&
             getElementTypeOrSelf(type).getIntOrFloatBitWidth() > 64;
    };
    return success(!getOperation()
                        ->walk([&](Operation *op) {
                          if (!isa<arith::SIToFPOp, arith::UIToFPOp,
                                   arith::FPToSIOp, arith::FPToUIOp>(op) ||
                              (!isWide(op->getOperand(0).getType()) &&
                               !isWide(op->getResult(0).getType())))
                            return WalkResult::advance();
                          op->emitOpError(
                              "requires integers of at most 64 bits in code "
                              "for GPUs, got ")
                              << op->getOperand(0).getType() << " to "
                              << op->getResult(0).getType();
                          return WalkResult::interrupt();
                        })
                        .wasInterrupted());
  }

  /// Kernels keep their names in PTX, which has no quotes.
  LogicalResult checkNames() {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      StringRef name = kernel.getName();
      if (!llvm::all_of(name, [](char c) {
            return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.';
          }))
        return emitError(kernel.getLoc())
               << "requires a function with a name of letters, digits, '_', "
                  "'$' and '.' in code for GPUs, got '"
               << name << "'";
    }
    return success();
  }

  void runOnOperation() override {
    if (failed(checkConversions()) || failed(checkNames()))
      return signalPassFailure();
    keepLoopsWithBarriers();
    Builder builder(&getContext());
    IntegerAttr align = builder.getI64IntegerAttr(alignment);
    StringRef alignName = LLVM::LLVMDialect::getAlignAttrName();
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      // Without it ptxas spills a few registers so that more blocks fit.
      kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                      builder.getI32IntegerAttr(1));
      for (unsigned i = 0; i < kernel.getNumWorkgroupAttributions(); ++i)
        kernel.setWorkgroupAttributionAttr(i, alignName, align);
      for (unsigned i = 0; i < kernel.getNumArguments(); ++i) {
        if (!isa<MemRefType>(kernel.getArgument(i).getType()))
          continue;
        kernel.setArgAttr(i, alignName, align);
        // Buffers of a launch never overlap: a result is a buffer of its own.
        kernel.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                          builder.getUnitAttr());
      }
    }
    SmallVector<math::FmaOp> products;
    // `math.fma` would become a call of libdevice, which PTX leaves unresolved.
    getOperation()->walk([&](math::FmaOp op) { products.push_back(op); });
    for (math::FmaOp op : products) {
      OpBuilder before(op);
      Value result = LLVM::FMAOp::create(before, op.getLoc(), op.getType(),
                                         op.getA(), op.getB(), op.getC());
      op.replaceAllUsesWith(result);
      op.erase();
    }
    useIntrinsic<math::SqrtOp>("llvm.sqrt");
    useIntrinsic<math::AbsFOp>("llvm.fabs");
    useIntrinsic<math::FloorOp>("llvm.floor");
    useIntrinsic<math::CeilOp>("llvm.ceil");
    useIntrinsic<math::TruncOp>("llvm.trunc");
    useIntrinsic<math::RoundEvenOp>("llvm.roundeven");
    useIntrinsic<math::CopySignOp>("llvm.copysign");
  }
};
} // namespace

/// What `gpu-module-to-binary` calls `format`.
static gpu::CompilationTarget getTarget(GPUFormat format) {
  assert(format != GPUFormat::SPIRV && "that is no format of NVVM");
  return format == GPUFormat::PTX     ? gpu::CompilationTarget::Assembly
         : format == GPUFormat::Cubin ? gpu::CompilationTarget::Binary
                                      : gpu::CompilationTarget::Fatbin;
}

/// LLVM ends PTX with a zero, which is no part of the text.
static void removeTerminators(ModuleOp module) {
  for (auto binary : module.getOps<gpu::BinaryOp>()) {
    SmallVector<Attribute> objects;
    for (auto object : binary.getObjects().getAsRange<gpu::ObjectAttr>()) {
      StringRef text = object.getObject().getValue();
      if (object.getFormat() == gpu::CompilationTarget::Assembly)
        text = text.rtrim('\0');
      objects.push_back(gpu::ObjectAttr::get(
          module.getContext(), object.getTarget(), object.getFormat(),
          StringAttr::get(module.getContext(), text), object.getProperties(),
          object.getKernels()));
    }
    binary.setObjectsAttr(ArrayAttr::get(module.getContext(), objects));
  }
}

/// Conversions keep the annotation as an attribute that no translation reads.
static void annotateBranches(ModuleOp module) {
  module->walk([](LLVM::BrOp branch) {
    if (auto annotation = dyn_cast_if_present<LLVM::LoopAnnotationAttr>(
            branch->removeDiscardableAttr(annotationName)))
      branch.setLoopAnnotationAttr(annotation);
  });
}

/// The attributes of kernels that are functions of LLVM already.
static void completeKernels(ModuleOp module) {
  // Memory that a launch asks for is internal upstream, of no bytes and aligned
  // to 16: PTX makes it a variable of one byte, beside which other memory
  // is declared. Eight lines of 128 bytes with exchanged units have to begin at
  // a multiple of 1024.
  module->walk([](LLVM::GlobalOp global) {
    auto type = dyn_cast<LLVM::LLVMArrayType>(global.getGlobalType());
    if (!type || type.getNumElements() != 0)
      return;
    global.setLinkage(LLVM::Linkage::External);
    global.setDsoLocal(false);
    global.setAlignment(1024);
  });
  // Descriptors of tensors are parameters of 128 bytes, used where they are and
  // not copied to memory of each thread.
  module->walk([](LLVM::LLVMFuncOp kernel) {
    auto count =
        kernel->getAttrOfType<IntegerAttr>(KasGPUDialect::numTensorMapsName);
    if (!count)
      return;
    Builder builder(kernel.getContext());
    auto bytes = LLVM::LLVMArrayType::get(builder.getI8Type(), 128);
    for (int64_t i = 0; i < count.getInt(); ++i) {
      // Descriptors are the last parameters (TensorMaps.cpp).
      unsigned number = kernel.getNumArguments() - 1 - i;
      kernel.setArgAttr(number, LLVM::LLVMDialect::getByValAttrName(),
                        TypeAttr::get(bytes));
      kernel.setArgAttr(number, LLVM::LLVMDialect::getAlignAttrName(),
                        builder.getI64IntegerAttr(64));
      kernel.setArgAttr(number, NVVM::NVVMDialect::getGridConstantAttrName(),
                        builder.getUnitAttr());
    }
  });
}

namespace {
struct GPUSerializeNVVM
    : kas::codegen::impl::KasGPUSerializeNVVMPassBase<GPUSerializeNVVM> {
  using KasGPUSerializeNVVMPassBase::KasGPUSerializeNVVMPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    gpu::CompilationTarget target = getTarget(format);
    // PTX needs no toolkit: LLVM writes it.
    std::string folder;
    if (target != gpu::CompilationTarget::Assembly) {
      auto found = findCUDAToolkit(toolkit);
      if (!found) {
        mlir::emitError(getFileLocation(module),
                        llvm::toString(found.takeError()));
        return signalPassFailure();
      }
      folder = *found;
    }
    completeKernels(module);
    annotateBranches(module);
    gpu::TargetOptions options(folder, {}, "", "", target);
    if (failed(transformGpuModulesToBinaries(module, nullptr, options)))
      return signalPassFailure();
    removeTerminators(module);
  }
};
} // namespace
