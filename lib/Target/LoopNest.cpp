//===----------------------------------------------------------------------===//
//
// Part of the kas project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Writes an operator as a loop nest in C.
// A program that can be read and compiled by itself: no kas, no MLIR, one
// function on row-major arrays of f32. It is the plain definition of an
// operator with numbers, and tests compile it against the other forms. Loops
// over outputs are outside, reductions inside; conditions of windows are
// checked as far outside as their indices are known.
//
//===----------------------------------------------------------------------===//

#include "Names.h"
#include "kas/Reference/Evaluator.h"
#include "kas/Support/CNames.h"
#include "kas/Target/Text.h"
#include "llvm/ADT/StringExtras.h"

using namespace kas;
using namespace kas::reference;
using namespace kas::target;
using namespace mlir;

/// Names of the dialect may have dots and dashes, or be keywords of C or names
/// that the file has already: helpers, and functions of math.h.
static std::string getFunctionName(StringRef name) {
  static constexpr StringRef functions[] = {
      "acos",   "acosh",     "asin",      "asinh",      "atan",   "atan2",
      "atanh",  "cbrt",      "ceil",      "copysign",   "cos",    "cosh",
      "erf",    "erfc",      "exp",       "exp2",       "expm1",  "fabs",
      "fdim",   "floor",     "fma",       "fmax",       "fmin",   "fmod",
      "frexp",  "hypot",     "ilogb",     "j0",         "j1",     "jn",
      "ldexp",  "lgamma",    "llrint",    "llround",    "log",    "log10",
      "log1p",  "log2",      "logb",      "lrint",      "lround", "modf",
      "nan",    "nearbyint", "nextafter", "nexttoward", "pow",    "remainder",
      "remquo", "rint",      "round",     "scalbln",    "scalbn", "sin",
      "sinh",   "sqrt",      "tan",       "tanh",       "tgamma", "trunc",
      "y0",     "y1",        "yn"};
  std::string result = cleanForC(name);
  // Each also for float and for long double.
  StringRef ofDouble = result;
  bool isOfMath = llvm::is_contained(functions, result) ||
                  ((ofDouble.consume_back("f") || ofDouble.consume_back("l")) &&
                   llvm::is_contained(functions, ofDouble));
  if (!isCIdentifier(result) || isOfMath || result == "floordiv" ||
      result == "floormod")
    result = "operator_" + result;
  return result;
}

namespace {
/// Without `max` one accumulator goes through all reductions. With it, each
/// reduction has its own, and with clipping also whether any point existed.
/// A maximum of nothing is 0, as docs/reference/dialect.md defines it, which
/// the flag decides.
class LoopNestWriter {
public:
  LoopNestWriter(OperatorOp op, OperatorOp source, llvm::raw_ostream &os)
      : op(op), os(os), nest(getCoordinates(op)), hasMax(nest.hasMax()),
        hasFlags(hasMax && !nest.guards.empty()) {
    // Names come from the operator with symbols, whose loops are the same: `w`
    // says more than `o2`.
    for (auto &[loop, name] : nameLoops(source ? source : op))
      names.push_back(name);
    for (const Axis &axis : nest.axes)
      ranges.push_back({0, axis.extent - 1});
  }

  void write() {
    // The body first: it says which helpers the file needs.
    std::string body;
    {
      llvm::raw_string_ostream stream(body);
      out = &stream;
      writeBody();
    }
    os << "#include <math.h>\n\n";
    // C rounds quotients toward zero; indices that can be negative need floors.
    for (StringRef helper : {"floordiv", "floormod"})
      if (StringRef(body).contains(helper))
        os << "static int " << helper << "(int a, int b) {\n"
           << (helper == "floordiv"
                   ? "  return a / b - (a % b != 0 && (a < 0) != (b < 0));\n"
                   : "  return (a % b + b) % b;\n")
           << "}\n\n";
    writeShapes();
    os << "void " << getFunctionName(op.getSymName()) << "(const float *X";
    for (unsigned weight = 0; weight < op.getNumWeights(); ++weight)
      os << ", const float *" << nameWeight(op, weight);
    os << ", float *Y) {\n" << body << "}\n";
  }

private:
  llvm::raw_ostream &line() { return out->indent(2 * depth); }

  /// A comment with the shapes: `// From X[1][3][8] to Y[1][4][8].`
  void writeShapes() {
    OperatorShapes shapes = getShapes(op);
    auto write = [&](const Twine &name, ArrayRef<int64_t> shape) {
      os << name;
      for (int64_t size : shape)
        os << '[' << size << ']';
    };
    os << "// From ";
    write("X", shapes.data);
    for (auto [index, shape] : llvm::enumerate(shapes.weights)) {
      os << ", ";
      write(nameWeight(op, index), shape);
    }
    os << " to ";
    write("Y", shapes.output);
    os << ".\n";
  }

  void writeBody() {
    for (unsigned axis = 0; axis < nest.numOutputs; ++axis)
      openLoop(axis);
    OperatorShapes shapes = getShapes(op);
    // Outputs are indexed by their loops.
    SmallVector<AffineExpr> identity;
    for (unsigned axis = 0; axis < nest.numOutputs; ++axis)
      identity.push_back(getAffineDimExpr(axis, op.getContext()));
    std::string element = "Y[" + getOffset(identity, shapes.output) + "]";
    // Means are one division at the end.
    if (!hasMax) {
      line() << "float sum = 0;\n";
      writeSum(nest.numOutputs);
      line() << element << " = sum";
      if (double divisor = nest.getMeanDivisor(); divisor != 1)
        *out << " / " << static_cast<int64_t>(divisor);
      *out << ";\n";
    } else {
      std::string value = writeReduction(nest.numOutputs);
      std::string flag = "exists" + std::to_string(nest.numOutputs);
      line() << element << " = "
             << (hasFlags ? flag + " ? " + value + " : 0" : value) << ";\n";
    }
    while (depth > 1)
      close();
  }

  void openLoop(unsigned axis) {
    const std::string &name = names[axis];
    line() << "for (int " << name << " = 0; " << name << " < "
           << nest.axes[axis].extent << "; ++" << name << ") {\n";
    ++depth;
  }
  void close() {
    --depth;
    line() << "}\n";
  }

  /// The condition of the guards that mention no axis from `axis` on, and were
  /// not checked before.
  /// `axis` is the number of loops that are open.
  std::string getCondition(unsigned axis) {
    std::string condition;
    for (const Guard &guard : nest.guards) {
      // The innermost loop that the guard mentions; guards of outputs alone
      // belong before the first reduction.
      unsigned level = nest.numOutputs;
      guard.expr.walk([&](AffineExpr part) {
        if (auto dim = dyn_cast<AffineDimExpr>(part))
          level = std::max(level, dim.getPosition() + 1);
      });
      if (level != axis)
        continue;
      std::string value = printExpr(guard.expr, names, ranges, ExprSyntax::C);
      condition += (condition.empty() ? "" : " && ") + ("0 <= " + value) +
                   " && " + value + " < " + std::to_string(guard.extent);
    }
    return condition;
  }

  /// Opens an `if` where there is something to check.
  bool openGuard(unsigned axis) {
    std::string condition = getCondition(axis);
    if (condition.empty())
      return false;
    line() << "if (" << condition << ") {\n";
    ++depth;
    return true;
  }

  void writeSum(unsigned axis) {
    bool isGuarded = openGuard(axis);
    if (axis == nest.axes.size()) {
      line() << "sum += " << getProduct() << ";\n";
    } else {
      openLoop(axis);
      writeSum(axis + 1);
      close();
    }
    if (isGuarded)
      close();
  }

  /// Declares and computes the value of the reductions from `axis` on, and its
  /// flag `existsN`; returns the value's name.
  /// Reductions of several kinds do not commute, so each loop has a value of
  /// its own: a maximum of sums is not a sum of maxima.
  std::string writeReduction(unsigned axis) {
    std::string value = "value" + std::to_string(axis);
    std::string flag = "exists" + std::to_string(axis);
    bool isPoint = axis == nest.axes.size();
    ReduceKind kind = isPoint ? ReduceKind::Sum : *nest.axes[axis].kind;
    // Each value begins as the identity of its reduction.
    line() << "float " << value << " = "
           << (kind == ReduceKind::Max ? "-INFINITY" : "0") << ";\n";
    if (hasFlags)
      line() << "int " << flag << " = 0;\n";
    bool isGuarded = openGuard(axis);
    if (isPoint) {
      line() << value << " = " << getProduct() << ";\n";
      if (hasFlags)
        line() << flag << " = 1;\n";
    } else {
      openLoop(axis);
      std::string inner = writeReduction(axis + 1);
      if (hasFlags) {
        // An inner reduction of nothing is passed over.
        line() << "if (exists" << axis + 1 << ") {\n";
        ++depth;
        line() << flag << " = 1;\n";
      }
      line() << value
             << (kind == ReduceKind::Max
                     ? " = fmaxf(" + value + ", " + inner + ")"
                     : " += " + inner)
             << ";\n";
      if (hasFlags)
        close();
      close();
      // By the extent and not by how many elements exist: padding counts as
      // zeros.
      if (kind == ReduceKind::Mean)
        line() << value << " /= " << nest.axes[axis].extent << ";\n";
    }
    if (isGuarded)
      close();
    return value;
  }

  /// The data times all weights at the open loops.
  std::string getProduct() {
    OperatorShapes shapes = getShapes(op);
    std::string product = "X[" + getOffset(nest.data, shapes.data) + "]";
    for (auto [index, weight] : llvm::enumerate(nest.weights))
      product += " * " + nameWeight(op, index) + "[" +
                 getOffset(weight, shapes.weights[index]) + "]";
    return product;
  }

  /// The row-major offset of an element, in Horner's form: `(n * 8 + c) * 4`.
  std::string getOffset(ArrayRef<AffineExpr> indices, ArrayRef<int64_t> shape) {
    std::string offset;
    for (auto [index, size] : llvm::zip_equal(indices, shape)) {
      std::string text = printExpr(index, names, ranges, ExprSyntax::C);
      if (offset.empty() || offset == "0") {
        offset = text;
        continue;
      }
      bool isAtom = llvm::all_of(offset, llvm::isAlnum);
      offset = (isAtom ? offset : "(" + offset + ")") + " * " +
               std::to_string(size) + " + " + text;
    }
    return offset.empty() ? "0" : offset;
  }

  OperatorOp op;
  llvm::raw_ostream &os;
  /// Where the body goes, which is written before the head of the file.
  llvm::raw_ostream *out = nullptr;
  Coordinates nest;
  bool hasMax, hasFlags;
  unsigned depth = 1;
  SmallVector<std::string> names;
  /// The values of each loop, which decide if an index can be negative.
  SmallVector<Interval> ranges;
};
} // namespace

void kas::target::writeLoopNest(OperatorOp op, llvm::raw_ostream &os,
                                OperatorOp source) {
  assert(op.isConcrete() && "loops need numbers");
  LoopNestWriter(op, source, os).write();
}
