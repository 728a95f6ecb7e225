//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The evaluator that defines the meaning of operators: a program of loops over
// integer registers, run point by point.
//
// Method: the body of the operator becomes a nest of loops, one per output
// coordinate and per reduction, and a list of integer steps per loop. Each step
// runs in the outermost loop in which its operands are known, so that an
// element costs a few integer operations. Nothing is shared with Coordinates.h
// or with a lowering, on purpose. Meaning: Syno, sections 4 and 5; padding,
// `mean` and `max`: docs/reference/dialect.md.
//
//===----------------------------------------------------------------------===//

#include "kas/Reference/Evaluator.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <tuple>
#include <vector>

using namespace mlir;
using namespace kas;
using namespace kas::reference;

OperatorShapes kas::reference::getShapes(OperatorOp op) {
  assert(op.isConcrete() && "shapes are numbers in concrete operators only");
  auto toShape = [](ArrayRef<SizeAttr> sizes) {
    return llvm::map_to_vector(
        sizes, [](SizeAttr size) { return *size.getConstantValue(); });
  };
  OperatorShapes shapes;
  shapes.output = toShape(op.getOutputSizes());
  shapes.data = toShape(op.getDataSizes());
  for (ArrayRef<SizeAttr> weight : op.getWeightSizes())
    shapes.weights.push_back(toShape(weight));
  return shapes;
}

/// Sizes come from a verified binding, but their product may still overflow;
/// each caller says so instead of allocating a wrapped size.
std::optional<int64_t> kas::reference::getNumElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    if (llvm::MulOverflow(count, extent, count))
      return std::nullopt;
  return count;
}

//===----------------------------------------------------------------------===//
// The program of one operator
//===----------------------------------------------------------------------===//

namespace {

/// One computation on integer registers. Steps are what the primitives and the
/// row-major offsets of the tensors come down to.
struct Step {
  enum Kind {
    Combine,   // result = first * factor + second
    Quotient,  // result = first / factor
    Remainder, // result = first mod factor
    Rotate,    // result = (first + factor) mod extent, with 0 <= factor
    Window     // result = first + second - factor, must lie in [0, extent)
  };
  Kind kind;
  /// Registers. `second` is read by Combine and Window only.
  unsigned result = 0, first = 0, second = 0;
  /// Constants of the operator. `factor` of Window is how far the window begins
  /// below its coordinate (the padding at the low border).
  int64_t factor = 1, extent = 0;
};

/// One loop: an output coordinate or a reduction. `steps` are those that need
/// this loop's variable and no variable of a loop further inside.
struct Loop {
  int64_t extent = 1;
  /// Nothing for an output coordinate. Loops with a kind are innermost.
  std::optional<ReduceKind> kind;
  SmallVector<Step> steps;
};

/// The loop nest of an operator. Registers 0 to loops.size()-1 are the loop
/// variables.
struct Program {
  SmallVector<Loop> loops;
  /// Loop variables and one result per step: each register is written by one
  /// loop or one step, so that no order of steps but that of the body is
  /// needed.
  unsigned numRegisters = 0;
  /// The registers that hold the offset of the element of the data and of each
  /// weight.
  SmallVector<unsigned> offsets;
};

/// Translates the body of a concrete operator.
class ProgramBuilder {
public:
  explicit ProgramBuilder(OperatorOp op) : op(op) {}

  Program build() {
    for (BlockArgument argument : op.getOutputs())
      addLoop(argument, std::nullopt);
    // All loops exist before the first step: a step looks up the loops that its
    // operands depend on. Reductions nest in program order, which counts where
    // kinds differ (a maximum of sums is no sum of maxima).
    for (auto reduce : op.getBody().getOps<ReduceOp>())
      addLoop(reduce.getResult(), reduce.getKind());
    for (Operation &primitive : op.getBody().front())
      addPrimitive(&primitive);
    // `levels` has one entry per register; loop variable i is register i.
    program.numRegisters = levels.size();
    return std::move(program);
  }

private:
  void addLoop(Value coordinate, std::optional<ReduceKind> kind) {
    registers[coordinate] = levels.size();
    levels.push_back(program.loops.size());
    program.loops.push_back({getConcreteSize(coordinate), kind, {}});
  }

  /// Adds `step`, whose `second` counts only when it is read, to the innermost
  /// loop that it depends on; returns the register of its result.
  unsigned addStep(Step step) {
    unsigned level = levels[step.first];
    // (Quotient, Remainder and Rotate leave `second` at 0, the outermost loop.)
    if (step.kind == Step::Combine || step.kind == Step::Window)
      level = std::max(level, levels[step.second]);
    step.result = levels.size();
    levels.push_back(level);
    program.loops[level].steps.push_back(step);
    return step.result;
  }

  void addPrimitive(Operation *primitive) {
    TypeSwitch<Operation *>(primitive)
        // [outer, inner] -> outer * size(inner) + inner.
        .Case([&](SplitOp split) {
          registers[split.getResult()] = addStep(
              {Step::Combine, 0, at(split.getOuter()), at(split.getInner()),
               getConcreteSize(split.getInner())});
        })
        // i -> [i / block, i mod block], the inverse of a split.
        .Case([&](MergeOp merge) {
          int64_t block = *merge.getBlock().getConstantValue();
          unsigned coord = at(merge.getCoord());
          registers[merge.getQuotient()] =
              addStep({Step::Quotient, 0, coord, 0, block});
          registers[merge.getRemainder()] =
              addStep({Step::Remainder, 0, coord, 0, block});
        })
        // A rotation, no padding: the verifier has |amount| < extent, so that
        // one addition makes the amount positive and `%` is the mathematical
        // remainder.
        .Case([&](ShiftOp shift) {
          int64_t extent = getConcreteSize(shift.getCoord());
          int64_t amount = shift.getAmount();
          registers[shift.getResult()] =
              addStep({Step::Rotate, 0, at(shift.getCoord()), 0,
                       amount < 0 ? amount + extent : amount, extent});
        })
        // i, w -> i + w - low, which may lie in the padding: Window tests it.
        .Case([&](UnfoldOp unfold) {
          registers[unfold.getResult()] = addStep(
              {Step::Window, 0, at(unfold.getCoord()), at(unfold.getWindow()),
               getLow(unfold), getConcreteSize(unfold.getCoord())});
        })
        // i -> factor * i.
        .Case([&](StrideOp stride) {
          registers[stride.getResult()] = addScale(
              at(stride.getCoord()), *stride.getFactor().getConstantValue());
        })
        // No step: data and weight read the same register.
        .Case([&](ShareOp share) {
          registers[share.getData()] = at(share.getCoord());
          registers[share.getWeight()] = at(share.getCoord());
        })
        .Case([&](YieldOp yield) {
          addTensor(yield.getData());
          for (OperandRange weight : yield.getWeights())
            addTensor(weight);
        })
        // A reduction is a loop already, and nothing reads an expanded
        // coordinate.
        .Case<ReduceOp, ExpandOp>([](auto) {})
        .Default([](Operation *) { llvm_unreachable("not a primitive"); });
  }

  static int64_t getLow(UnfoldOp unfold) {
    return unfold.getLowValue(
        [](SizeAttr size) { return *size.getConstantValue(); });
  }

  /// factor * first, as (factor - 1) * first + first.
  unsigned addScale(unsigned first, int64_t factor) {
    return addStep({Step::Combine, 0, first, first, factor - 1});
  }

  /// Adds the row-major offset of one tensor's element. Coordinates of outer
  /// loops come first, so that their part is not computed again in inner ones.
  void addTensor(OperandRange coordinates) {
    struct Term {
      /// The loop that the coordinate is known in, its dimension of the tensor,
      /// and its register.
      unsigned level, dimension, coordinate;
      int64_t stride;
    };
    SmallVector<Term> terms;
    int64_t stride = 1;
    for (unsigned i = coordinates.size(); i-- > 0;) {
      unsigned coordinate = at(coordinates[i]);
      terms.push_back({levels[coordinate], i, coordinate, stride});
      stride *= getConcreteSize(coordinates[i]);
    }
    // Ties go by dimension: the order is total, so the program is the same with
    // any implementation of sort.
    llvm::sort(terms, [](const Term &left, const Term &right) {
      return std::tie(left.level, left.dimension) <
             std::tie(right.level, right.dimension);
    });
    unsigned offset = addScale(terms.front().coordinate, terms.front().stride);
    for (const Term &term : ArrayRef(terms).drop_front())
      offset =
          addStep({Step::Combine, 0, term.coordinate, offset, term.stride});
    program.offsets.push_back(offset);
  }

  unsigned at(Value coordinate) const { return registers.lookup(coordinate); }

  OperatorOp op;
  Program program;
  llvm::DenseMap<Value, unsigned> registers;
  /// The innermost loop that each register depends on.
  SmallVector<unsigned> levels;
};

//===----------------------------------------------------------------------===//
// Running it
//===----------------------------------------------------------------------===//

/// The larger one; NaN when either is, and +0 above -0.
/// `std::max` is neither commutative for NaN nor aware of the sign of zero;
/// compiled code uses `arith.maximumf`, which is both.
double maximum(double left, double right) {
  if (std::isnan(left) || std::isnan(right))
    return left + right;
  if (left == right)
    return std::signbit(left) ? right : left;
  return left > right ? left : right;
}

/// Runs a program. `tensors` are the data and the weights, in the order of
/// `Program::offsets`. One object evaluates one output, from `position` 0 on.
class Evaluation {
public:
  Evaluation(const Program &program, ArrayRef<const float *> tensors,
             MutableArrayRef<float> output)
      : program(program), tensors(tensors), output(output),
        registers(program.numRegisters, 0) {}

  void run() { runOutputs(0); }

private:
  /// The loops over output coordinates, from `level` inwards.
  /// Outputs are written in row-major order, because loops over them are
  /// outermost and in the order of the dimensions.
  void runOutputs(unsigned level) {
    if (level == program.loops.size() || program.loops[level].kind) {
      // The only rounding to f32.
      output[position++] = float(reduce(level).value_or(0.0));
      return;
    }
    const Loop &loop = program.loops[level];
    for (int64_t i = 0; i < loop.extent; ++i) {
      registers[level] = i;
      if (runSteps(loop)) {
        runOutputs(level + 1);
        continue;
      }
      // None of the points below exists.
      int64_t skipped = 1;
      for (const Loop &inner : ArrayRef(program.loops).drop_front(level + 1))
        skipped *= inner.kind ? 1 : inner.extent;
      std::fill_n(output.begin() + position, skipped, 0.0f);
      position += skipped;
    }
  }

  /// The value of the reductions from `level` inwards, if there is a point.
  /// Nothing: a window of each point leaves its range. That is not 0 for `max`:
  /// the maximum over [-1, nothing] is -1.
  std::optional<double> reduce(unsigned level) {
    if (level == program.loops.size())
      return multiply();
    const Loop &loop = program.loops[level];
    std::optional<double> result;
    for (int64_t i = 0; i < loop.extent; ++i) {
      registers[level] = i;
      if (!runSteps(loop))
        continue;
      std::optional<double> value = reduce(level + 1);
      // A reduction inside without points is no point of this one.
      if (!value)
        continue;
      if (!result)
        result = value;
      else
        result = *loop.kind == ReduceKind::Max ? maximum(*result, *value)
                                               : *result + *value;
    }
    // By the whole extent, not by the number of points that exist: padding
    // counts as zero, as in average pooling with `count_include_pad`.
    if (result && *loop.kind == ReduceKind::Mean)
      *result /= double(loop.extent);
    return result;
  }

  /// One product, in double precision: that of two f32 values is exact in it.
  double multiply() const {
    double product = tensors[0][registers[program.offsets[0]]];
    for (size_t i = 1, e = tensors.size(); i < e; ++i)
      product *= double(tensors[i][registers[program.offsets[i]]]);
    return product;
  }

  /// False when a window leaves its range.
  bool runSteps(const Loop &loop) {
    for (const Step &step : loop.steps) {
      int64_t first = registers[step.first];
      int64_t &result = registers[step.result];
      switch (step.kind) {
      case Step::Combine:
        result = first * step.factor + registers[step.second];
        break;
      case Step::Quotient:
        result = first / step.factor;
        break;
      case Step::Remainder:
        result = first % step.factor;
        break;
      case Step::Rotate:
        result = (first + step.factor) % step.extent;
        break;
      case Step::Window:
        result = first + registers[step.second] - step.factor;
        if (result < 0 || result >= step.extent)
          return false;
        break;
      }
    }
    return true;
  }

  const Program &program;
  ArrayRef<const float *> tensors;
  MutableArrayRef<float> output;
  std::vector<int64_t> registers;
  size_t position = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// evaluateOperator
//===----------------------------------------------------------------------===//

static std::string toString(ArrayRef<int64_t> shape) {
  return "[" +
         llvm::join(
             llvm::map_range(
                 shape, [](int64_t extent) { return llvm::itostr(extent); }),
             ", ") +
         "]";
}

/// Reports a tensor of another shape, or one with a wrong number of values.
/// `what` names it in the diagnostic.
static LogicalResult verifyTensor(ReferenceTensor tensor,
                                  ArrayRef<int64_t> shape, const Twine &what,
                                  EmitErrorFn emitError) {
  if (tensor.shape != shape)
    return emitError() << "requires shape " << toString(shape) << " for "
                       << what << ", got " << toString(tensor.shape);
  if (int64_t(tensor.values.size()) != *getNumElements(shape))
    return emitError() << "requires " << *getNumElements(shape)
                       << " values for " << what << ", got "
                       << tensor.values.size();
  return success();
}

static LogicalResult verifyTensors(OperatorOp op, ReferenceTensor data,
                                   ArrayRef<ReferenceTensor> weights,
                                   ArrayRef<float> output,
                                   EmitErrorFn emitError) {
  OperatorShapes shapes = getShapes(op);
  if (failed(verifyTensor(data, shapes.data, "the data", emitError)))
    return failure();
  if (weights.size() != shapes.weights.size())
    return emitError() << "requires " << shapes.weights.size()
                       << " weights for operator '" << op.getSymName()
                       << "', got " << weights.size();
  for (auto [index, weight, shape] : llvm::enumerate(weights, shapes.weights))
    if (failed(
            verifyTensor(weight, shape, "weight " + Twine(index), emitError)))
      return failure();
  return verifyTensor({shapes.output, output}, shapes.output, "the output",
                      emitError);
}

LogicalResult kas::reference::evaluateOperator(
    OperatorOp op, ReferenceTensor data, ArrayRef<ReferenceTensor> weights,
    MutableArrayRef<float> output, EmitErrorFn emitError) {
  if (!op.isConcrete())
    return emitError() << "requires an operator without symbols, got '"
                       << op.getSymName() << "': specialize it";
  // A concrete operator may still have sizes that are no integers or windows
  // that do not fit: the loops below rely on both.
  if (failed(verifyBinding(op, {}, emitError)) ||
      failed(verifyTensors(op, data, weights, output, emitError)))
    return failure();
  Program program = ProgramBuilder(op).build();
  SmallVector<const float *> tensors = {data.values.data()};
  for (ReferenceTensor weight : weights)
    tensors.push_back(weight.values.data());
  Evaluation(program, tensors, output).run();
  return success();
}
