//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface of kas: modules, operators and compiled functions, for other
// languages. It hides MLIR altogether: a client needs this header alone.
//
// Every module has an MLIR context of its own. Calls on one module exclude each
// other, calls on different modules run at the same time; a compiled function
// may be called by any number of threads. Compiled functions are kept on disk
// for the next process that compiles the same, in $KAS_CACHE_DIR, else
// kas/compiled in $XDG_CACHE_HOME or ~/.cache, $KAS_CACHE_MB megabytes of them
// at most (512; 0: nothing is kept).
//
//===----------------------------------------------------------------------===//

#ifndef KAS_C_KAS_H
#define KAS_C_KAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct KasModule KasModule;
typedef struct KasFunction KasFunction;

/// Where text goes: `write` may be called several times.
typedef struct KasStream {
  void (*write)(const char *text, size_t length, void *userData);
  void *userData;
} KasStream;

typedef enum KasSeverity {
  KasSeverityError,
  KasSeverityWarning,
  KasSeverityRemark,
  KasSeverityNote,
} KasSeverity;

/// Where diagnostics go. `location` is empty where there is none. A call that
/// fails has reported an error; the others are reported, too, when they occur.
typedef struct KasDiagnostics {
  void (*report)(KasSeverity severity, const char *location,
                 const char *message, void *userData);
  void *userData;
} KasDiagnostics;

/// Such as `0.1.0`.
const char *kasGetVersion(void);

//===----------------------------------------------------------------------===//
// The library of named operators and kernels
//===----------------------------------------------------------------------===//

typedef enum KasLibrary { KasLibraryOperators, KasLibraryKernels } KasLibrary;

typedef enum KasLibraryText {
  KasLibraryTextName,
  KasLibraryTextTitle,
  KasLibraryTextFormula,
  KasLibraryTextSource,
  /// The whole file, which kasModuleParse reads.
  KasLibraryTextFile,
} KasLibraryText;

size_t kasLibraryGetSize(KasLibrary library);
/// Writes a text of the entry `index`, which must be below the size.
void kasLibraryGetText(KasLibrary library, size_t index, KasLibraryText text,
                       KasStream output);

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// Parses and verifies text, or bytecode, in any dialect that kas compiles.
/// `name` is what diagnostics call the text. Null when it fails.
KasModule *kasModuleParse(const char *text, size_t length, const char *name,
                          KasDiagnostics diagnostics);
void kasModuleDestroy(KasModule *module);

void kasModulePrint(KasModule *module, bool generic, KasStream output);
/// Writes the module as MLIR's bytecode, which kasModuleParse reads, too: in a
/// tenth of the time of its text. False when it fails.
bool kasModuleWriteBytecode(KasModule *module, KasStream output,
                            KasDiagnostics diagnostics);
bool kasModuleVerify(KasModule *module, KasDiagnostics diagnostics);

/// Runs a pipeline such as `kas-canonicalize,cse` or
/// `builtin.module(func.func(cse))`. The module stays as it was when it fails.
bool kasModuleRunPasses(KasModule *module, const char *pipeline,
                        KasDiagnostics diagnostics);

typedef struct KasPassOptions {
  /// Verify the module after each pass, as `mlir-opt -verify-each` does, and
  /// not only after the last one. That takes up to half of the time; without
  /// it a pass may get what one before it should not have made.
  bool verifyEach;
} KasPassOptions;

/// The same in another way.
bool kasModuleRunPassesWith(KasModule *module, const char *pipeline,
                            KasPassOptions options, KasDiagnostics diagnostics);

/// Which layers an operator takes the place of.
typedef struct KasLayers {
  /// Those of this space, a `kas.space` of the module.
  const char *space;
  /// Those of these names, as `kas-extract` has marked them; none: all.
  const char *const *names;
  size_t numNames;
  /// Sizes of the operator before those of the layers, such as `k=3,g=2`; null
  /// for none.
  const char *binding;
} KasLayers;

/// Puts an operator in the place of layers that `kas-extract` has marked, as
/// `kas-substitute` does. `text` is a `kas.operator`, or operators and then a
/// `kas.sequence` of them; names that the module has are changed. A layer that
/// it does not fit stays and is reported as a remark. The module stays as it
/// was when it fails.
bool kasModuleSubstitute(KasModule *module, const char *text, size_t length,
                         KasLayers layers, KasDiagnostics diagnostics);

/// Writes a JSON array of the symbols, each `{"kind": ..., "name": ...}` with
/// the op's name as kind, such as `kas.operator`; a `kas.sequence` also has the
/// arrays `stages` (names of operators) and `between` (steps).
void kasModuleListSymbols(KasModule *module, KasStream json);

/// Writes the op that is called `name` alone: a space, a kernel, a function.
bool kasModuleGetText(KasModule *module, const char *name, KasStream output,
                      KasDiagnostics diagnostics);

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

/// Where `binding` is taken, it is text such as `N=1,C=64`; an operator
/// without symbols takes an empty one. A null pointer means no binding, where
/// that is allowed.

/// Writes a JSON object: `name`, `primaries`, `coefficients`, `output`, `data`
/// (arrays of sizes), `weights` (an array of such), `batch` (whether the first
/// dimension of data and output is one), `unordered_output`, `unordered_data`
/// (arrays of booleans), `weight_outputs` (for each weight the output
/// dimensions that its coordinates are made of), and the costs `macs`, `flops`,
/// `flops_unprepared`, `training_flops`, `parameters` and `bytes` over the
/// symbols (null where they do not fit).
bool kasOperatorDescribe(KasModule *module, const char *name, KasStream json,
                         KasDiagnostics diagnostics);

/// Writes a JSON object with the shapes at the binding: `data`, `weights` (an
/// array of shapes) and `output`.
bool kasOperatorGetShapes(KasModule *module, const char *name,
                          const char *binding, KasStream json,
                          KasDiagnostics diagnostics);

/// Writes the zero-padded convolution that the operator is at a binding as a
/// JSON object (see kas/Dialect/Kas/Analysis/EffectiveConvolution.h): `rolls`,
/// `batch` (pairs of a data and an output dimension), `data_channels`,
/// `output_channels`, `windows` (objects with `data`, `output`, `stride`,
/// `dilation`, `size`, `first`), `inputs`, `outputs`, `groups`, `terms`,
/// `divisor`, `exists` (or null where all products do) and `elements`. Fails
/// where it is none, or lists of more than `limit` elements were needed.
bool kasOperatorGetEffectiveConvolution(KasModule *module, const char *name,
                                        const char *binding, int64_t limit,
                                        KasStream json,
                                        KasDiagnostics diagnostics);

/// See kas/Dialect/Kas/Analysis/Cost.h: `macs` and `flops` are the fewest when
/// what depends on weights alone was computed before.
typedef struct KasCost {
  int64_t macs, flops, flopsUnprepared, trainingFlops, parameters, bytes;
} KasCost;

bool kasOperatorGetCost(KasModule *module, const char *name,
                        const char *binding, KasCost *cost,
                        KasDiagnostics diagnostics);

/// The part of `flops` that has no zero of a padding: what rates are
/// made of (see kas/Dialect/Kas/Transforms/ExistingCost.h).
bool kasOperatorGetExistingFlops(KasModule *module, const char *name,
                                 const char *binding, int64_t *flops,
                                 KasDiagnostics diagnostics);

/// The number F such that weights whose product has variance 2 / F keep the
/// mean square of rectified data (see kas/Dialect/Kas/Analysis/FanIn.h).
bool kasOperatorGetFanIn(KasModule *module, const char *name,
                         const char *binding, double *fanIn,
                         KasDiagnostics diagnostics);

/// The milliseconds that the machine model of this machine predicts for one
/// core, weights packed ahead; the usual model where `kas-bench calibrate` made
/// none (see kas/Search/Evaluators/PredictedTimeEvaluator.h). Fails for what no
/// search could make, such as reductions other than sums.
bool kasOperatorPredictTime(KasModule *module, const char *name,
                            const char *binding, double *milliseconds,
                            KasDiagnostics diagnostics);

/// Writes `[o, i]` when an element of the output at position o of its dimension
/// `output` reads the data at position i > stride * o of its dimension `input`,
/// else `null`: then the operator is causal along them (see
/// kas/Dialect/Kas/Analysis/Causality.h).
bool kasOperatorFindLookahead(KasModule *module, const char *name,
                              const char *binding, int64_t output,
                              int64_t input, int64_t stride, KasStream json,
                              KasDiagnostics diagnostics);

/// Writes a list with an object for each axis of the operator: its dimensions
/// `output` and `data`, its `size`, the `fewest_read` and `most_read`
/// positions, its `translations` as a word, and whether weights fit `any_grid`
/// (see kas/Dialect/Kas/Analysis/AxisProperties.h).
bool kasOperatorGetAxes(KasModule *module, const char *name,
                        const char *binding, KasStream json,
                        KasDiagnostics diagnostics);

typedef enum KasOperatorText {
  /// The operator alone, as it is; the binding may be null.
  KasOperatorTextMLIR,
  /// One line, over the symbols; the binding may be null.
  KasOperatorTextFormula,
  /// A graph for Graphviz, over the symbols; the binding may be null.
  KasOperatorTextGraph,
  /// The loops in C, at a binding.
  KasOperatorTextLoopNest,
  /// A Python file with a torch.nn.Module, at a binding.
  KasOperatorTextPyTorch,
  /// The operator alone, in canonical form; the binding may be null.
  KasOperatorTextCanonical,
} KasOperatorText;

bool kasOperatorGetText(KasModule *module, const char *name,
                        KasOperatorText text, const char *binding,
                        KasStream output, KasDiagnostics diagnostics);

/// Computes the operator by the reference evaluator, slowly: `tensors` are
/// dense, row-major f32: the data, the weights, then the output.
bool kasOperatorEvaluate(KasModule *module, const char *name,
                         const char *binding, float *const *tensors,
                         KasDiagnostics diagnostics);

//===----------------------------------------------------------------------===//
// Compiled functions
//===----------------------------------------------------------------------===//

typedef struct KasCompileOptions {
  /// Threads of parallel loops: 1 makes serial code, 0 leaves it to OpenMP.
  unsigned threads;
  /// Optimization level of LLVM, 0 to 3.
  unsigned optLevel;
} KasCompileOptions;

/// Compiles the operator for the CPU at hand: from the data and the weights to
/// the output. Null when it fails.
KasFunction *kasOperatorCompile(KasModule *module, const char *name,
                                const char *binding, KasCompileOptions options,
                                KasDiagnostics diagnostics);

typedef struct KasExactOptions {
  uint64_t seed;
  /// How often inputs are drawn; 0: until a wrong function passes with a
  /// probability of 1e-6 at most, but 32 times at most, 64 where maxima are
  /// taken.
  unsigned draws;
} KasExactOptions;

/// Compiles the operator, as kasOperatorCompile, runs it on random integers for
/// which no sum rounds, in any order, and compares all bits of the results with
/// the reference. Writes a JSON object: `summary` (one line), `difference` (one
/// line about the first result that differs, or null), `degree`, `magnitudes`
/// (the largest value of each tensor), `density` (the share that is not zero),
/// `draws`, `bitwise` (false where means divide by no power of two: results are
/// rounded first), `miss_probability` (the bound, or null where a maximum is
/// taken). False when it fails, also where there are no such integers.
bool kasOperatorCheckExactly(KasModule *module, const char *name,
                             const char *binding, KasCompileOptions compile,
                             KasExactOptions options, KasStream json,
                             KasDiagnostics diagnostics);

/// How a gradient is computed.
typedef enum KasGradientStrategy {
  /// By structured operations where elements are used often.
  KasGradientStrategyAuto,
  /// As contractions and other structured operations, in register tiles.
  KasGradientStrategyStructured,
  /// As one loop nest.
  KasGradientStrategyLoops,
} KasGradientStrategy;

/// Compiles the gradient of the operator with respect to its tensor number
/// `tensor` (0: the data, then the weights), for the CPU at hand: from the
/// data, the weights and the gradient of the output. Equal values under a `max`
/// share its gradient. Null when it fails, also where there is no such
/// strategy.
KasFunction *kasOperatorCompileGradient(KasModule *module, const char *name,
                                        const char *binding, size_t tensor,
                                        KasGradientStrategy strategy,
                                        KasCompileOptions options,
                                        KasDiagnostics diagnostics);

//===----------------------------------------------------------------------===//
// Kernels of the tensor level
//===----------------------------------------------------------------------===//

/// A binding of a kernel has a value for each of its symbols, variables
/// included; those that are left out are taken from the kernel's own first
/// binding. `batch` samples are taken at once, as the first dimension of the
/// inputs and the output.

/// Writes a JSON object: `name`, `inputs` (how many) and `symbols`.
bool kasKernelDescribe(KasModule *module, const char *name, KasStream json,
                       KasDiagnostics diagnostics);

/// Writes a JSON object: the shapes `inputs`, `weights` (in program order) and
/// `output`, and `deviations`: standard deviations that the weights start with.
bool kasKernelGetShapes(KasModule *module, const char *name,
                        const char *binding, int64_t batch, KasStream json,
                        KasDiagnostics diagnostics);

/// Compiles the kernel for the CPU at hand: from the inputs and the weights to
/// the output. Null when it fails.
KasFunction *kasKernelCompile(KasModule *module, const char *name,
                              const char *binding, int64_t batch,
                              KasCompileOptions options,
                              KasDiagnostics diagnostics);

/// Compiles the gradients of the kernel: from the inputs, the weights and the
/// gradient of the output to the output and the gradient of each input and
/// weight. Null when it fails.
KasFunction *kasKernelCompileGradient(KasModule *module, const char *name,
                                      const char *binding, int64_t batch,
                                      KasCompileOptions options,
                                      KasDiagnostics diagnostics);

/// Computes the kernel on one sample by the reference evaluator, slowly:
/// `tensors` are dense, row-major f32 without a batch: the inputs, the weights,
/// then the output.
bool kasKernelEvaluate(KasModule *module, const char *name, const char *binding,
                       float *const *tensors, KasDiagnostics diagnostics);

/// Writes the kernel as a Python file for PyTorch that needs no kas.
bool kasKernelToPyTorch(KasModule *module, const char *name,
                        const char *binding, KasStream text,
                        KasDiagnostics diagnostics);

/// Compiles a `func.func` on tensors of static shape, of floats or integers.
/// Null when it fails.
KasFunction *kasModuleCompile(KasModule *module, const char *function,
                              KasCompileOptions options,
                              KasDiagnostics diagnostics);

/// What the factors of products of f32 may be rounded to where the processor
/// has instructions for that and it saves time. Sums are of f32.
typedef enum KasPrecision { KasPrecisionF32, KasPrecisionBF16 } KasPrecision;

/// How a function is to be called, and how exact it is.
typedef struct KasCallOptions {
  /// All arguments but the first and those with the attribute `kas.data` are
  /// weights, which kasFunctionPrepack packs before the first call.
  bool prepackWeights;
  /// Batches may have any size, for kasFunctionCallBatch: the data and the
  /// results have samples first, which are computed one by one from the data
  /// and weights, else it fails. The batch that the function has, 2 to 4 096
  /// samples, is the largest that it is fast for. Without prepacked weights
  /// each part of a batch packs them again.
  bool anyBatch;
  KasPrecision precision;
  /// For kasFunctionSave.
  bool keepCode;
} KasCallOptions;

/// The same for functions that are called in another way.
KasFunction *kasModuleCompileWith(KasModule *module, const char *function,
                                  KasCompileOptions options,
                                  KasCallOptions call,
                                  KasDiagnostics diagnostics);

/// The same as kasOperatorCheckExactly for a `func.func`, which must compute
/// with `kas.apply` alone.
bool kasModuleCheckExactly(KasModule *module, const char *function,
                           KasCompileOptions compile, KasExactOptions options,
                           KasStream json, KasDiagnostics diagnostics);

/// Writes a function that was compiled with `keepCode` to a file, for programs
/// on machines with the same kind of processor and the same version of kas.
/// `weights` has one pointer per argument: to a weight that becomes part of the
/// file, or null. Weights that are prepacked must be there all or not at all;
/// they are prepacked for it.
bool kasFunctionSave(KasFunction *function, const char *path,
                     float *const *weights, KasDiagnostics diagnostics);

/// The function of such a file. Its arguments are those that are not in the
/// file, which is mapped: it may be replaced or removed, but not written to.
/// Null when it fails: also for a file that is damaged, of another version of
/// kas, or for a processor with features that this one does not have.
KasFunction *kasFunctionLoad(const char *path, KasDiagnostics diagnostics);

void kasFunctionDestroy(KasFunction *function);

size_t kasFunctionGetNumArguments(const KasFunction *function);
size_t kasFunctionGetNumResults(const KasFunction *function);
/// Tensors are counted from the first argument to the last result. The shape
/// and the name live as long as the function.
size_t kasFunctionGetRank(const KasFunction *function, size_t tensor);
const int64_t *kasFunctionGetShape(const KasFunction *function, size_t tensor);
const char *kasFunctionGetName(const KasFunction *function, size_t tensor);
/// The type of the elements as MLIR writes it: f32, f64, f16, bf16, i1 (a byte
/// each), i8, i16, i32 or i64; ui8, ui16, ui32 or ui64 for integers that
/// `kas.unsigned` marks.
const char *kasFunctionGetElementType(const KasFunction *function,
                                      size_t tensor);
double kasFunctionGetCompileMilliseconds(const KasFunction *function);

/// Calls the function with one pointer to dense, row-major elements per tensor;
/// pointers to elements of other types than f32 are cast.
/// Results must not overlap with anything else. Returns null, or what the
/// assertion says that failed ("FILE:LINE:COLUMN: TEXT"), which lives as long
/// as the function; the results are not specified then.
const char *kasFunctionCall(const KasFunction *function, float *const *tensors);

/// Whether the function was compiled for batches of any size.
bool kasFunctionHasAnyBatch(const KasFunction *function);

/// The same as kasFunctionCall with `samples` samples in the data and in all
/// results, 0 or more. Returns a message, and computes nothing, where there are
/// fewer and for functions without `anyBatch`.
const char *kasFunctionCallBatch(const KasFunction *function,
                                 float *const *tensors, int64_t samples);

/// Packs the weights of a function with `prepackWeights`, which has one pointer
/// for each argument, for all calls that follow; again when a weight has
/// changed. No call may run meanwhile. Calls still take all pointers. Does
/// nothing for other functions. Returns null, or a message as kasFunctionCall.
const char *kasFunctionPrepack(KasFunction *function, float *const *arguments);

#ifdef __cplusplus
}
#endif

#endif // KAS_C_KAS_H
