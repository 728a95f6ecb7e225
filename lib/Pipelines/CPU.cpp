//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The pass pipeline for CPUs, station by station, and its textual options
// (docs/internals/code-generation.md).
//
// The order is what matters here. Operators are lowered while tensors are
// values, since fusion needs use-def chains; whole functions are decided on
// (buffers, tiles, weights to prepack) before kernels are outlined; from there
// on each function is lowered for itself:
//
//   tensors    addOperators      kas to tiles, linalg and loops
//              addBufferization  fusion, then buffers and their deallocations
//   buffers    addTiles          linalg to tiles, weights to prepack
//              -kas-outline-kernels
//   functions  addLoops          linalg to loops, some of them parallel
//              addLLVM           the LLVM dialect, on plain pointers
//
//===----------------------------------------------------------------------===//

#include "kas/Pipelines/CPU.h"
#include "kas/Codegen/CPU/Passes.h"
#include "kas/Codegen/Common/Passes.h"
#include "kas/Conversion/Passes.h"
#include "kas/Dialect/Kas/Transforms/Passes.h"
#include "kas/Dialect/KasCPU/IR/KasCPU.h"
#include "kas/Pipelines/Registration.h"
#include "kas/Support/FormerNames.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include <functional>

using namespace kas;
using namespace kas::codegen;
using namespace mlir;

//===----------------------------------------------------------------------===//
// The pipeline
//===----------------------------------------------------------------------===//

/// The usual patterns, once: what is rewritten is looked at again, and one more
/// traversal of everything hardly ever finds more. There are no blocks to
/// merge.
static std::unique_ptr<Pass> createCanonicalize() {
  GreedyRewriteConfig config;
  config.setMaxIterations(1).setRegionSimplificationLevel(
      GreedySimplifyRegionLevel::Disabled);
  return createCanonicalizerPass(config);
}

/// Rounds the factors of f32 products to bf16 where `precision` allows it and
/// the target gains by it.
static void addContractionPrecision(OpPassManager &manager,
                                    const CPUPipelineOptions &options) {
  KasSetContractionPrecisionPassOptions products;
  products.precision = options.precision;
  products.prepacked = options.prepackWeights;
  products.roundAll = options.roundAll;
  products.verifyLowering = options.verifyLowering;
  manager.addNestedPass<func::FuncOp>(
      createKasSetContractionPrecisionPass(products));
}

/// Operators to panels, to linalg, or to loops where neither can be.
static void addOperators(OpPassManager &manager,
                         const CPUPipelineOptions &options) {
  // Concrete operators: everything after this needs constant sizes.
  manager.addPass(createKasSpecializePass());
  // Clones for several sizes of parts, each compiled like any function.
  if (options.anyBatch) {
    KasBatchVersionsPassOptions versions;
    versions.threads = options.threads;
    manager.addPass(createKasBatchVersionsPass(versions));
  }
  // Else each part would pack weights again.
  if (!options.anyBatch && options.splitBatch && options.prepackWeights) {
    KasSplitBatchPassOptions batch;
    batch.threads = options.threads;
    manager.addPass(createKasSplitBatchPass(batch));
  }
  // Stages: the order in which reductions are computed, with intermediates.
  KasRFactorPassOptions stages;
  // With prepacked weights, stages of weights alone run once and cost nothing.
  stages.cost = options.prepackWeights ? schedule::StageCost::Prepared
                                       : schedule::StageCost::Unprepared;
  stages.traffic = schedule::usualTraffic;
  stages.verifyLowering = options.verifyLowering;
  manager.addPass(createKasRFactorPass(stages));
  // After the stages are known, whose layouts it chooses.
  if (options.packOperators && options.registerTiles) {
    KasBatchInnermostPassOptions samples;
    samples.threads = options.threads;
    samples.vectorBits = options.vectorBits;
    samples.prepacked = options.prepackWeights;
    manager.addPass(createKasBatchInnermostPass(samples));
  }
  addContractionPrecision(manager, options);
  if (options.registerTiles)
    manager.addNestedPass<func::FuncOp>(createKasDenseOutputsPass());
  if (options.packOperators && options.registerTiles) {
    // What follows an operator may be computed with it.
    if (options.prepackWeights)
      manager.addNestedPass<func::FuncOp>(createKasFuseElementwisePass());
    // Before the tiles, for which its batched products are contractions.
    if (options.algorithm == ConvolutionAlgorithm::Winograd) {
      KasWinogradPassOptions winograd;
      winograd.threads = options.threads;
      if (options.sharesShortLoops)
        winograd.minParallelTime = 0;
      winograd.vectorBits = options.vectorBits;
      winograd.prepacked = options.prepackWeights;
      manager.addPass(createKasWinogradPass(winograd));
    }
    KasPackOperatorsPassOptions panels;
    panels.threads = options.threads;
    if (options.sharesShortLoops)
      panels.minParallelTime = 0;
    panels.vectorBits = options.vectorBits;
    panels.prepacked = options.prepackWeights;
    panels.algorithm = options.algorithm;
    manager.addPass(createKasPackOperatorsPass(panels));
  }
  // Whatever has no tiles: linalg first, loops where linalg cannot express it.
  KasToLinalgPassOptions linalg;
  linalg.verifyLowering = options.verifyLowering;
  manager.addPass(createKasToLinalgPass(linalg));
  KasToAffinePassOptions loops;
  loops.parallel = options.threads != 1;
  if (options.sharesShortLoops)
    loops.minParallelWork = 0;
  loops.verifyLowering = options.verifyLowering;
  manager.addPass(createKasToAffinePass(loops));
  manager.addPass(createKasEraseOperatorsPass());
  if (options.registerTiles)
    manager.addNestedPass<func::FuncOp>(createKasPackDotProductsPass());
  KasLowerPoolingPassOptions pooling;
  pooling.threads = options.threads;
  if (options.sharesShortLoops)
    pooling.minParallelWork = 0;
  manager.addNestedPass<func::FuncOp>(createKasLowerPoolingPass(pooling));
  manager.addNestedPass<func::FuncOp>(createKasKeepReadsPass());
}

/// Tensors to buffers.
static void addBufferization(OpPassManager &manager) {
  // Operators and helpers that nothing calls any more.
  manager.addPass(createSymbolDCEPass());
  manager.addPass(createCanonicalize());
  manager.addPass(createCSEPass());
  // Constants were folded just before, so scales and biases fuse, too.
  manager.addNestedPass<func::FuncOp>(createKasFuseElementwisePass());
  manager.addPass(createCanonicalize());
  manager.addPass(createCSEPass());
  manager.addNestedPass<func::FuncOp>(createKasGrowConcatsPass());
  manager.addPass(createKasBufferizePass());
  // As upstream's pipeline, with fewer traversals of everything.
  manager.addPass(memref::createExpandReallocPass());
  manager.addPass(createCanonicalize());
  manager.addPass(bufferization::createOwnershipBasedBufferDeallocationPass());
  manager.addPass(createCanonicalize());
  manager.addPass(bufferization::createBufferDeallocationSimplificationPass());
  manager.addPass(bufferization::createLowerDeallocationsPass());
  manager.addPass(createCSEPass());
  manager.addPass(createCanonicalize());
  // Else all buffers would live until the function returns.
  manager.addNestedPass<func::FuncOp>(
      bufferization::createOptimizeAllocationLivenessPass());
  manager.addPass(createConvertBufferizationToMemRefPass());
  manager.addNestedPass<func::FuncOp>(createKasDelayDeallocationsPass());
}

/// What is decided for a function as a whole: tiles, and weights to prepack.
static void addTiles(OpPassManager &manager,
                     const CPUPipelineOptions &options) {
  KasPackContractionsPassOptions contractions;
  contractions.threads = options.threads;
  if (options.sharesShortLoops)
    contractions.minParallelTime = 0;
  contractions.vectorBits = options.vectorBits;
  contractions.prepacked = options.prepackWeights;
  contractions.algorithm = options.algorithm;
  if (options.registerTiles)
    manager.addNestedPass<func::FuncOp>(
        createKasPackContractionsPass(contractions));
  if (options.prepackWeights)
    manager.addPass(createKasPrepackWeightsPass());
}

/// Buffers and linalg to loops, some of them parallel.
static void addLoops(OpPassManager &manager,
                     const CPUPipelineOptions &options) {
  KasLinalgToCPULoopsPassOptions loops;
  loops.threads = options.threads;
  if (options.sharesShortLoops)
    loops.minParallelWork = 0;
  // Outlined kernels are functions: each is lowered for itself, in parallel.
  OpPassManager &functions = manager.nest<func::FuncOp>();
  functions.addPass(createKasLinalgToCPULoopsPass(loops));
  // Views become index arithmetic, which the loops below fold into addresses.
  functions.addPass(memref::createFoldMemRefAliasOpsPass());
  functions.addPass(createCanonicalize());
  functions.addPass(createCSEPass());
  functions.addPass(createLowerAffinePass());
  if (options.threads != 1)
    // In functions that several threads call at once, as those for a part of a
    // batch.
    functions.addPass(createKasSerializeLoopsPass());
  functions.addPass(createKasExpandMathPass());
  if (options.threads != 1) {
    ConvertSCFToOpenMPPassOptions openMP;
    openMP.numThreads = options.threads;
    manager.addPass(createConvertSCFToOpenMPPass(openMP));
    // Removes scopes around allocations that the lowering below cannot take.
    manager.addPass(createCanonicalizerPass());
  }
  OpPassManager &last = manager.nest<func::FuncOp>();
  // Only now: intrinsics do not say that they allocate nothing, so that scopes
  // around them would stay.
  last.addPass(createKasLowerDotProductsPass());
  // Addresses are arithmetic now and repeat one another. What is left is for
  // LLVM to simplify, which it does faster.
  last.addPass(createCSEPass());
}

/// Loops to the LLVM dialect, functions on plain pointers.
static void addLLVM(OpPassManager &manager, const CPUPipelineOptions &options) {
  // The caller gives the memory of all buffers, instead of `malloc`.
  if (options.workspace)
    manager.addPass(createKasUseWorkspacePass());
  manager.addPass(createKasLowerScalarsPass());
  manager.addNestedPass<func::FuncOp>(createSCFToControlFlowPass());
  // Dynamic sizes become arguments: functions take plain pointers.
  manager.addPass(createKasPassSizesPass());
  // An assertion becomes a message that the function returns; nothing aborts.
  manager.addPass(createKasReturnAssertionsPass());
  OpPassManager &before = manager.nest<func::FuncOp>();
  before.addPass(memref::createExpandStridedMetadataPass());
  before.addPass(createLowerAffinePass());
  before.addPass(createConvertVectorToLLVMPass());
  before.addPass(createConvertMathToLLVMPass());
  before.addPass(arith::createArithExpandOpsPass());
  before.addPass(createUBToLLVMConversionPass());
  // What polynomials do not cover calls the C library.
  manager.addPass(createConvertMathToLibmPass());
  manager.addPass(createFinalizeMemRefToLLVMConversionPass());
  ConvertFuncToLLVMPassOptions functions;
  // Pointers instead of MLIR's descriptors: what C and the JIT call.
  functions.useBarePtrCallConv = true;
  manager.addPass(createConvertFuncToLLVMPass(functions));
  manager.addNestedPass<LLVM::LLVMFuncOp>(createArithToLLVMConversionPass());
  if (options.threads != 1)
    manager.addPass(createConvertOpenMPToLLVMPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  OpPassManager &after = manager.nest<LLVM::LLVMFuncOp>();
  after.addPass(createConvertIndexToLLVMPass());
  after.addPass(createReconcileUnrealizedCastsPass());
  // On LLVM functions, so that nothing before knows of the loop over parts of a
  // batch (docs/internals/code-generation.md, "Batches").
  KasLoopOverBatchPassOptions batch;
  batch.threads = options.threads;
  manager.addPass(createKasLoopOverBatchPass(batch));
  KasDispatchBatchPassOptions versions;
  versions.threads = options.threads;
  manager.addPass(createKasDispatchBatchPass(versions));
  manager.addPass(createKasCheckLoweredPass());
}

void kas::buildCPUBufferPipeline(OpPassManager &manager,
                                 const CPUPipelineOptions &options) {
  // First: vector widths, cache sizes and instructions of the target decide
  // what later passes do.
  KasAttachCPUTargetPassOptions target;
  target.cpu = options.target.cpu;
  target.triple = options.target.triple;
  target.features = options.target.features;
  manager.addPass(createKasAttachCPUTargetPass(target));
  // Before the check, which sees what is left.
  manager.addNestedPass<func::FuncOp>(createKasDecomposePass());
  manager.addPass(createKasCheckOperationsPass());
  addOperators(manager, options);
  addBufferization(manager);
  addTiles(manager, options);
}

void kas::buildCPUKernelPipeline(OpPassManager &manager,
                                 const CPUPipelineOptions &options) {
  addLoops(manager, options);
  addLLVM(manager, options);
}

void kas::buildCPUPipeline(OpPassManager &manager,
                           const CPUPipelineOptions &options) {
  buildCPUBufferPipeline(manager, options);
  KasOutlineKernelsPassOptions outline;
  outline.minKernels = options.minKernels;
  manager.addPass(createKasOutlineKernelsPass(outline));
  buildCPUKernelPipeline(manager, options);
}

/// Former names of options of the pipeline.
static constexpr FormerName formerNames[] = {
    {"prepare-weights", "prepack-weights"}};

namespace {
/// The text form of CPUPipelineOptions.
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  /// An option that stands for a member of CPUPipelineOptions, which has its
  /// default and gets its value: each is named once.
  template <typename Value>
  struct Member : Option<Value> {
    template <typename Access, typename... Modifiers>
    Member(PipelineOptions &parent, StringRef name, Access access,
           const char *description, Modifiers &&...modifiers)
        : Option<Value>(parent, name, llvm::cl::desc(description),
                        llvm::cl::init(std::invoke(access, parent.defaults)),
                        std::forward<Modifiers>(modifiers)...) {
      parent.copies.push_back([this, access](CPUPipelineOptions &options) {
        std::invoke(access, options) = this->getValue();
      });
    }
  };

  /// The options as a struct, for the functions that build pipelines.
  CPUPipelineOptions get() const {
    CPUPipelineOptions options;
    for (const auto &copy : copies)
      copy(options);
    return options;
  }

  /// Reads the former names of options, too.
  LogicalResult parseFromString(StringRef options) {
    CurrentOptions current = renameFormerOptions(options, formerNames);
    LogicalResult parsed = PassPipelineOptions::parseFromString(current.text);
    if (failed(parsed) && !current.note.empty())
      llvm::errs() << current.note << "\n";
    return parsed;
  }

private:
  // Before the options, which are made from these.
  CPUPipelineOptions defaults;
  std::vector<std::function<void(CPUPipelineOptions &)>> copies;

  Member<unsigned> threads{
      *this, "threads", &CPUPipelineOptions::threads,
      "Threads of parallel loops: 1 makes serial code, 0 leaves "
      "the number to OpenMP"};
  Member<bool> sharesShortLoops{
      *this, "share-short-loops", &CPUPipelineOptions::sharesShortLoops,
      "Let threads share loops however short they are, which "
      "takes longer: for tests"};
  Member<std::string> cpu{
      *this, "cpu", [](auto &options) -> auto & { return options.target.cpu; },
      "A CPU that LLVM knows, such as x86-64-v3 or neoverse-n1, "
      "or host; by default that of the module, or host"};
  Member<std::string> triple{
      *this, "triple",
      [](auto &options) -> auto & { return options.target.triple; },
      "The target's triple; by default Linux on the CPU. Without "
      "cpu= it is for any CPU of the architecture"};
  Member<std::string> features{
      *this, "features",
      [](auto &options) -> auto & { return options.target.features; },
      "Changes to what the CPU has, such as +avx512f,-fma"};
  Member<unsigned> vectorBits{
      *this, "vector-bits", &CPUPipelineOptions::vectorBits,
      "Width of the vector registers; 0: those of the target"};
  Member<bool> packOperators{
      *this, "pack-operators", &CPUPipelineOptions::packOperators,
      "Lower operators to packed panels where they suit"};
  Member<bool> registerTiles{*this, "register-tiles",
                             &CPUPipelineOptions::registerTiles,
                             "Cut contractions into register tiles; without it "
                             "they are plain loops"};
  Member<bool> prepackWeights{
      *this, "prepack-weights", &CPUPipelineOptions::prepackWeights,
      "Rearrange weights in a function of its own, to be called "
      "once before"};
  Member<ConvolutionAlgorithm> algorithm{
      *this, "algorithm", &CPUPipelineOptions::algorithm,
      "How convolutions are computed where it suits them; auto: "
      "the least time by the cost model, without winograd",
      llvm::cl::values(
          clEnumValN(ConvolutionAlgorithm::Auto, "auto",
                     "the least time by the cost model"),
          clEnumValN(ConvolutionAlgorithm::Direct, "direct", "direct tiles"),
          clEnumValN(ConvolutionAlgorithm::Im2col, "im2col", "panels"),
          clEnumValN(ConvolutionAlgorithm::SpatialPack, "spatial-pack",
                     "vectors along the rows"),
          clEnumValN(ConvolutionAlgorithm::Winograd, "winograd",
                     "F(4x4, 3x3)"))};
  Member<ContractionPrecision> precision{
      *this, "precision", &CPUPipelineOptions::precision,
      "The type that factors of products of f32 may be rounded to, "
      "where the target has instructions for that and it saves "
      "time",
      llvm::cl::values(
          clEnumValN(ContractionPrecision::F32, "f32", "as they are"),
          clEnumValN(ContractionPrecision::BF16, "bf16",
                     "two products at once"))};
  Member<bool> roundAll{
      *this, "round-all", &CPUPipelineOptions::roundAll,
      "Round factors also where that takes longer: for tests"};
  Member<bool> splitBatch{
      *this, "split-batch", &CPUPipelineOptions::splitBatch,
      "Compute a batch in parts where that takes less time; "
      "only with prepack-weights"};
  Member<bool> anyBatch{
      *this, "any-batch", &CPUPipelineOptions::anyBatch,
      "Let functions take batches of any size, with the number "
      "of samples as their last argument"};
  Member<bool> workspace{*this, "workspace", &CPUPipelineOptions::workspace,
                         "Let functions take memory for their buffers as their "
                         "last argument, instead of malloc; for one thread"};
  Member<unsigned> minKernels{
      *this, "min-kernels", &CPUPipelineOptions::minKernels,
      "Functions with at least so many loop nests are split into "
      "one function for each, equal ones once; 0: none"};
  Member<bool> verifyLowering{
      *this, "verify-lowering", &CPUPipelineOptions::verifyLowering,
      "Prove that stages, linalg ops and loops compute the "
      "operators"};
};
} // namespace

void kas::registerCPUPipeline() {
  registerKasCodegenCommonPasses();
  registerKasCodegenCPUPasses();
  registerModulePipeline<PipelineOptions>(
      "kas-cpu-pipeline",
      "Lower operators, linalg and affine on tensors to the LLVM dialect for "
      "the CPU",
      [](OpPassManager &manager, const PipelineOptions &options) {
        buildCPUPipeline(manager, options.get());
      });
}
