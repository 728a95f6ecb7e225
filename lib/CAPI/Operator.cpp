//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The C interface to single operators: description, shapes and costs, canonical
// and exported texts, the reference evaluator.
// Functions with a `binding` parameter parse and check it by
// `ModuleAccess::lookupBound`; results are JSON with the names of the Python
// classes.
//
//===----------------------------------------------------------------------===//

#include "Handles.h"
#include "kas/Dialect/Kas/Analysis/AxisProperties.h"
#include "kas/Dialect/Kas/Analysis/Batch.h"
#include "kas/Dialect/Kas/Analysis/Causality.h"
#include "kas/Dialect/Kas/Analysis/Cost.h"
#include "kas/Dialect/Kas/Analysis/FanIn.h"
#include "kas/Dialect/Kas/Analysis/WeightOutputs.h"
#include "kas/Dialect/Kas/Transforms/Canonicalize.h"
#include "kas/Dialect/Kas/Transforms/ExistingCost.h"
#include "kas/Reference/Evaluator.h"
#include "kas/Search/Evaluators/PredictedTimeEvaluator.h"
#include "kas/Target/Text.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/JSON.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::target;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

/// The text of a size in the module's symbols, as in `C/s`.
static std::string toText(SizeAttr size, const SymbolSet &symbols) {
  return toString(*size.toSize(symbols), symbols);
}

/// One text for each dimension.
static void writeSizes(llvm::json::OStream &writer, ArrayRef<SizeAttr> sizes,
                       const SymbolSet &symbols) {
  writer.array([&] {
    for (SizeAttr size : sizes)
      writer.value(toText(size, symbols));
  });
}

static void writeStrings(llvm::json::OStream &writer, StringRef key,
                         ArrayAttr strings) {
  writer.attributeArray(key, [&] {
    for (StringAttr string : strings.getAsRange<StringAttr>())
      writer.value(string.getValue());
  });
}

static void writeFlags(llvm::json::OStream &writer, StringRef key,
                       ArrayRef<bool> flags) {
  writer.attributeArray(key, [&] {
    for (bool flag : flags)
      writer.value(flag);
  });
}

/// Costs as polynomials of symbols, such as `2*N*C*H*W*k**2`; null where they
/// overflow.
static void writeCost(llvm::json::OStream &writer, OperatorOp op,
                      const SymbolSet &symbols) {
  // Nothing where a constant does not fit 63 bits.
  std::optional<SymbolicCost> cost = getSymbolicCost(op);
  auto write = [&](StringRef key, SizePolynomial SymbolicCost::*number) {
    if (cost)
      writer.attribute(key, toString((*cost).*number, symbols));
    else
      writer.attribute(key, nullptr);
  };
  write("macs", &SymbolicCost::macs);
  write("flops", &SymbolicCost::flops);
  write("flops_unprepared", &SymbolicCost::flopsUnprepared);
  write("training_flops", &SymbolicCost::trainingFlops);
  write("parameters", &SymbolicCost::parameters);
  write("bytes", &SymbolicCost::bytes);
}

/// Everything that holds for all bindings: symbols, sizes as texts, costs as
/// polynomials.
bool kasOperatorDescribe(KasModule *module, const char *name, KasStream json,
                         KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OperatorOp op = access.lookupOperator(name);
  if (!op)
    return false;
  SymbolSet symbols = op.getSymbolSet();
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.object([&] {
    writer.attribute("name", op.getSymName());
    writeStrings(writer, "primaries", op.getPrimaries());
    writeStrings(writer, "coefficients", op.getCoefficients());
    // Of each dimension, as in `[N, Cout, H/s, W/s]`.
    writer.attributeBegin("output");
    writeSizes(writer, op.getOutputSizes(), symbols);
    writer.attributeEnd();
    writer.attributeBegin("data");
    writeSizes(writer, op.getDataSizes(), symbols);
    writer.attributeEnd();
    writer.attributeArray("weights", [&] {
      for (ArrayRef<SizeAttr> sizes : op.getWeightSizes())
        writeSizes(writer, sizes, symbols);
    });
    // Whether the first dimension is a batch that every part just carries
    // along.
    writer.attribute("batch", hasBatch(op));
    writeFlags(writer, "unordered_output", op.getOutputUnordered());
    writeFlags(writer, "unordered_data", op.getInputUnordered());
    // For each weight: the outputs that are dimensions of it, for the scales of
    // normalizations and quantizations.
    writer.attributeArray("weight_outputs", [&] {
      for (ArrayRef<unsigned> outputs : getWeightOutputs(op))
        writer.value(llvm::json::Array(outputs));
    });
    writeCost(writer, op, symbols);
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

/// Shapes at one binding.
bool kasOperatorGetShapes(KasModule *module, const char *name,
                          const char *binding, KasStream json,
                          KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  // Shapes come from the concrete operator: numbers, no polynomials.
  OwningOpRef<ModuleOp> alone = access.specializeAlone(name, binding);
  if (!alone)
    return false;
  OperatorShapes shapes = getShapes(*alone->getOps<OperatorOp>().begin());
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.object([&] {
    writer.attribute("data", llvm::json::Array(shapes.data));
    writer.attributeArray("weights", [&] {
      for (ArrayRef<int64_t> shape : shapes.weights)
        writer.value(llvm::json::Array(shape));
    });
    writer.attribute("output", llvm::json::Array(shapes.output));
  });
  return true;
}

/// The same costs as numbers; an overflow of 64 bits is an error.
bool kasOperatorGetCost(KasModule *module, const char *name,
                        const char *binding, KasCost *cost,
                        KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  auto bound = access.lookupBound(name, binding);
  if (!bound)
    return false;
  auto &[op, values] = *bound;
  FailureOr<Cost> numbers = getCost(op, values, [&] { return op.emitError(); });
  if (failed(numbers))
    return false;
  *cost = {
      numbers->macs,          numbers->flops,      numbers->flopsUnprepared,
      numbers->trainingFlops, numbers->parameters, numbers->bytes};
  return true;
}

/// Without products with padding, which kernels leave out
/// (docs/internals/rationale/stages.md).
bool kasOperatorGetExistingFlops(KasModule *module, const char *name,
                                 const char *binding, int64_t *flops,
                                 KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  auto bound = access.lookupBound(name, binding);
  if (!bound)
    return false;
  auto &[op, values] = *bound;
  FailureOr<int64_t> macs =
      getExistingMacs(op, values, [&] { return op.emitError(); });
  if (failed(macs))
    return false;
  // A multiply-add counts as two.
  *flops = 2 * *macs;
  return true;
}

/// Products that one element of the output sums, for initializing weights.
bool kasOperatorGetFanIn(KasModule *module, const char *name,
                         const char *binding, double *fanIn,
                         KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  auto bound = access.lookupBound(name, binding);
  if (!bound)
    return false;
  auto &[op, values] = *bound;
  *fanIn = getFanIn(op, values);
  return true;
}

/// On one core, by the calibration of the machine
/// (docs/internals/predicted-times.md).
bool kasOperatorPredictTime(KasModule *module, const char *name,
                            const char *binding, double *milliseconds,
                            KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  auto bound = access.lookupBound(name, binding);
  if (!bound)
    return false;
  auto &[op, values] = *bound;
  // Fails for operators that no search could make, and without a usable machine
  // model.
  llvm::Expected<double> predicted = search::predictTime(op, values);
  if (!predicted) {
    access.report(predicted.takeError());
    return false;
  }
  *milliseconds = *predicted;
  return true;
}

/// Whether an output at position i reads data after i, along a dimension of
/// each: null if not. Causal models must not.
bool kasOperatorFindLookahead(KasModule *module, const char *name,
                              const char *binding, int64_t output,
                              int64_t input, int64_t stride, KasStream json,
                              KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> alone = access.specializeAlone(name, binding);
  if (!alone)
    return false;
  OperatorOp op = *alone->getOps<OperatorOp>().begin();
  auto isDimension = [&](int64_t dim, size_t rank, StringRef tensor) {
    if (dim >= 0 && dim < static_cast<int64_t>(rank))
      return true;
    access.report("requires a dimension of the " + tensor + ", of rank " +
                  Twine(rank) + ", got " + Twine(dim));
    return false;
  };
  if (!isDimension(output, op.getOutputSizes().size(), "output") ||
      !isDimension(input, op.getDataSizes().size(), "data"))
    return false;
  if (stride < 1) {
    access.report("requires a stride of at least 1, got " + Twine(stride));
    return false;
  }
  CallbackStream stream(json);
  // A pair of positions that shows it.
  if (std::optional<Lookahead> found = findLookahead(op, output, input, stride))
    stream << '[' << found->output << ", " << found->input << ']';
  else
    stream << "null";
  return true;
}

/// What it does along each axis at one binding.
bool kasOperatorGetAxes(KasModule *module, const char *name,
                        const char *binding, KasStream json,
                        KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OperatorOp op = access.lookupOperator(name);
  OwningOpRef<ModuleOp> alone = access.specializeAlone(name, binding);
  if (!op || !alone)
    return false;
  OperatorOp concrete = *alone->getOps<OperatorOp>().begin();
  SmallVector<std::pair<SpaceAxis, AxisProperties>> axes;
  for (const SpaceAxis &axis : getOperatorAxes(op)) {
    FailureOr<AxisProperties> properties = getAxisProperties(
        concrete, axis.output, axis.input, [&] { return op.emitError(); });
    if (failed(properties))
      return false;
    axes.emplace_back(axis, *properties);
  }
  CallbackStream stream(json);
  llvm::json::OStream writer(stream);
  writer.array([&] {
    for (const auto &[axis, properties] : axes)
      writer.object([&, &axis = axis, &properties = properties] {
        writer.attribute("output", axis.output);
        writer.attribute("data", axis.input);
        writer.attribute("size", properties.size);
        writer.attribute("fewest_read", properties.fewestRead);
        writer.attribute("most_read", properties.mostRead);
        writer.attribute("translations", toString(properties.translations));
        writer.attribute("any_grid", fitsAnyGrid(op, axis));
      });
  });
  return true;
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

/// The canonical form of a copy (docs/internals/canonical-form.md): equal
/// operators have equal texts.
static bool writeCanonical(ModuleAccess &access, OperatorOp op,
                           llvm::raw_ostream &stream) {
  OwningOpRef<ModuleOp> alone = ModuleOp::create(op.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(alone->getBody());
  auto copy = cast<OperatorOp>(builder.clone(*op.getOperation()));
  if (failed(canonicalizeOperator(copy))) {
    access.report("the operator has no canonical form");
    return false;
  }
  copy.print(stream);
  stream << "\n";
  return true;
}

/// `binding` is read for the texts with numbers and may be null for the others.
bool kasOperatorGetText(KasModule *module, const char *name,
                        KasOperatorText text, const char *binding,
                        KasStream output, KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  CallbackStream stream(output);
  OperatorOp op = access.lookupOperator(name);
  if (!op)
    return false;
  // Texts with symbols need no binding, the others a concrete operator.
  switch (text) {
  case KasOperatorTextMLIR:
    op.print(stream);
    stream << "\n";
    return true;
  case KasOperatorTextFormula:
    writeFormula(op, stream);
    return true;
  case KasOperatorTextGraph:
    writeGraph(op, stream);
    return true;
  // Of the operator as it is, symbols included.
  case KasOperatorTextCanonical:
    return writeCanonical(access, op, stream);
  case KasOperatorTextLoopNest:
  case KasOperatorTextPyTorch:
    break;
  }
  OwningOpRef<ModuleOp> alone = access.specializeAlone(name, binding);
  if (!alone)
    return false;
  OperatorOp concrete = *alone->getOps<OperatorOp>().begin();
  if (text == KasOperatorTextLoopNest)
    // With the names of the symbolic operator.
    writeLoopNest(concrete, stream, op);
  else
    writePyTorch(concrete, stream,
                 describeForPyTorch(op, binding ? binding : ""));
  return true;
}

//===----------------------------------------------------------------------===//
// Reference
//===----------------------------------------------------------------------===//

/// The meaning of the operator by definition: slow, in double precision.
bool kasOperatorEvaluate(KasModule *module, const char *name,
                         const char *binding, float *const *tensors,
                         KasDiagnostics diagnostics) {
  ModuleAccess access(module, diagnostics);
  OwningOpRef<ModuleOp> alone = access.specializeAlone(name, binding);
  if (!alone)
    return false;
  OperatorOp op = *alone->getOps<OperatorOp>().begin();
  OperatorShapes shapes = getShapes(op);
  // `tensors` are the data, the weights and the result.
  auto view = [&](ArrayRef<int64_t> shape, unsigned index) {
    return ReferenceTensor{
        shape,
        ArrayRef<float>(tensors[index], ShapedType::getNumElements(shape))};
  };
  SmallVector<ReferenceTensor> weights;
  for (ArrayRef<int64_t> shape : shapes.weights)
    weights.push_back(view(shape, weights.size() + 1));
  MutableArrayRef<float> result(tensors[weights.size() + 1],
                                ShapedType::getNumElements(shapes.output));
  return succeeded(evaluateOperator(op, view(shapes.data, 0), weights, result,
                                    [&] { return op.emitError(); }));
}
